//! The names that PostgreSQL gives to indexes without one.

use super::{Executor, IndexDefinition};
use crate::catalog::{Oid, index_name_addition};
use pgvet_syntax::ast::{Expr, ExprKind, IndirectionStep, OperatorForm};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::{SmolStr, format_smolstr};

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `ChooseIndexName`.
    pub(in crate::execute) fn choose_index_name(&self, table: Oid, definition: &IndexDefinition) -> SmolStr {
        let relation = self.catalog.relation(table);
        let choose = |addition: Option<&str>, label, is_constraint| {
            self.catalog.choose_relation_name(&relation.name, addition, label, &relation.schema, is_constraint)
        };
        if definition.primary {
            return choose(None, "pkey", true);
        }
        let addition = index_name_addition(&definition.names_of_columns());
        // A copy of the index behind UNIQUE ... WITHOUT OVERLAPS is made as one that excludes.
        let is_copy = definition.column_names.is_some();
        let excludes = definition.exclusion || is_copy && definition.unique && definition.method == "gist";
        match (excludes, definition.constraint) {
            (true, _) => choose(Some(&addition), "excl", true),
            (false, true) => choose(Some(&addition), "key", true),
            (false, false) => choose(Some(&addition), "idx", false),
        }
    }
}

impl IndexDefinition {
    pub(super) fn names_of_columns(&self) -> Vec<SmolStr> {
        self.column_names.clone().unwrap_or_else(|| column_names(self))
    }
}

/// The names of an index's columns, all different: `expr`, `expr1`, ...
///
/// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `ChooseIndexColumnNames`.
fn column_names(definition: &IndexDefinition) -> Vec<SmolStr> {
    let keys = definition.elements.iter().map(|element| figure_name(&element.key).map_or("expr".into(), |it| it.0));
    let (mut names, mut taken) = (Vec::new(), FxHashSet::default());
    // The next number for each name: those before it stay taken.
    let mut numbers: FxHashMap<SmolStr, usize> = FxHashMap::default();
    for original in keys.chain(definition.including.iter().cloned()) {
        let mut name = original.clone();
        while !taken.insert(name.clone()) {
            let number = numbers.entry(original.clone()).or_default();
            *number += 1;
            name = format_smolstr!("{original}{number}");
        }
        names.push(name);
    }
    names
}

/// How sure PostgreSQL is of a name that it takes from an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    /// The name of a cast's type, or `case`.
    Weak,
    Strong,
}

/// Source: PostgreSQL 18, `src/backend/parser/parse_target.c`, `FigureColnameInternal`.
fn figure_name(expr: &Expr) -> Option<(SmolStr, Strength)> {
    let strong = |name: &str| Some((SmolStr::new(name), Strength::Strong));
    match &expr.kind {
        ExprKind::Column(parts) => strong(parts.last()?),
        ExprKind::Call(call) => strong(&call.name),
        ExprKind::Operator { form: OperatorForm::NullIf, .. } => strong("nullif"),
        ExprKind::Cast { operand, target } => match figure_name(operand) {
            Some((name, Strength::Strong)) => Some((name, Strength::Strong)),
            _ => Some((target.name.clone(), Strength::Weak)),
        },
        ExprKind::Collate { operand, .. } => figure_name(operand),
        ExprKind::Case { otherwise, .. } => match otherwise.as_deref().and_then(figure_name) {
            Some((name, Strength::Strong)) => Some((name, Strength::Strong)),
            _ => Some(("case".into(), Strength::Weak)),
        },
        ExprKind::Coalesce(_) => strong("coalesce"),
        ExprKind::Array(_) => strong("array"),
        ExprKind::Row(_) => strong("row"),
        ExprKind::SqlValue(name, _) => strong(name),
        ExprKind::Indirection { operand, steps } => {
            let field = steps.iter().rev().find_map(|step| match step {
                IndirectionStep::Field(name) => Some(name),
                _ => None,
            });
            field.map_or_else(|| figure_name(operand), |name| strong(name))
        }
        _ => None,
    }
}
