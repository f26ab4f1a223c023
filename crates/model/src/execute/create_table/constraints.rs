//! The constraints of CREATE TABLE, in the order in which PostgreSQL makes and names them.

use super::{Executor, NewTable, Run, fail};
use crate::builtin::{CastContext, oid};
use crate::catalog::{Constraint, ConstraintKind, Oid};
use crate::execute::alter_table::without_overlaps;
use crate::execute::index::{IndexDefinition, plain_elements, same_element};
use crate::expression::Coercion;
use pgvet_syntax::ast::{
    Constraint as ConstraintSyntax, ConstraintKind as Syntax, Expr, ExprKind, IndexConstraint, Name,
};
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// Adds the constraints: CHECKs and NOT NULLs first, then the primary key, other indexes and foreign keys.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_utilcmd.c`, `transformIndexConstraints` and
    /// `transformFKConstraints`; `src/backend/catalog/heap.c`, `AddRelationNewConstraints`.
    pub(super) fn store_constraints(&mut self, table: Oid, new: &NewTable) -> Run {
        self.check_generated(table)?;
        for constraint in &new.given {
            if self.catalog.relation(table).constraint(&constraint.name).is_none() {
                self.catalog.add_constraint(table, constraint.clone());
            }
        }
        for (_, constraint) in &new.own {
            if let Syntax::Check(expression) = &constraint.kind {
                self.store_check(table, constraint, expression)?;
            }
        }
        let is_primary_key =
            |(_, constraint): &&(_, ConstraintSyntax)| matches!(constraint.kind, Syntax::PrimaryKey(_));
        let primary_keys: Vec<_> = new.own.iter().filter(is_primary_key).collect();
        if let Some((_, second)) = primary_keys.get(1) {
            let reason = format!("multiple primary keys for table \"{}\" are not allowed", new.name);
            return fail("42P16", reason, second.range);
        }
        for (column, constraint) in &primary_keys {
            if let Syntax::PrimaryKey(key) = &constraint.kind {
                for name in key_columns(key, column.as_ref()) {
                    self.mark_not_null(table, &name)?;
                }
            }
        }
        let in_key: Vec<SmolStr> = primary_keys
            .iter()
            .filter_map(|(column, constraint)| match &constraint.kind {
                Syntax::PrimaryKey(key) => Some(key_columns(key, column.as_ref())),
                _ => None,
            })
            .flatten()
            .map(|name| name.text)
            .collect();
        self.store_not_nulls(table, new, &in_key)?;
        let others = new.own.iter().filter(|entry| !is_primary_key(entry));
        let mut keys: Vec<NewKey<'_>> = Vec::new();
        for key in
            primary_keys.into_iter().chain(others).filter_map(|(column, written)| new_key(column.as_ref(), written))
        {
            match keys.iter_mut().find(|earlier| earlier.is_same(&key)) {
                Some(earlier) => earlier.absorb(key),
                None => keys.push(key),
            }
        }
        for key in keys {
            self.store_key(table, key)?;
        }
        for (column, constraint) in &new.own {
            if let Syntax::ForeignKey(key) = &constraint.kind {
                let columns = match column {
                    Some(column) => std::slice::from_ref(column),
                    None => key.columns.as_slice(),
                };
                self.add_foreign_key(table, constraint, columns, false)?;
            }
        }
        Ok(())
    }

    /// A generated column is immutable and reads no other generated column.
    pub(in crate::execute) fn check_generated(&self, table: Oid) -> Run {
        let relation = self.catalog.relation(table);
        let is_generated = |name: &SmolStr| relation.column(name).is_some_and(|column| column.generated.is_some());
        for column in &relation.columns {
            let Some(generated) = &column.generated else { continue };
            let expression = &generated.expression;
            if self.columns_of(table, expression).iter().any(is_generated) {
                let reason = "cannot use generated column in column generation expression";
                return fail("42P17", reason, expression.range);
            }
            self.check_names(table, expression)?;
            self.check_immutable(table, expression, "generation expression", expression.range)?;
            let typed = self.analyze(expression, Some(table)).sql_type;
            let fits =
                self.with_analyzer(|analyzer| analyzer.coercion(typed, column.sql_type, CastContext::Assignment));
            if typed.oid.0 != oid::UNKNOWN && fits == Coercion::Impossible {
                let reason = format!("column \"{}\" is of another type than its generation expression", column.name);
                return fail("42804", reason, expression.range);
            }
            if !generated.stored {
                self.check_virtual(table, expression)?;
            }
        }
        Ok(())
    }

    /// Refuses functions and types that are not PostgreSQL's own, because every reader of the table would run them.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/heap.c`, `check_virtual_generated_security`.
    fn check_virtual(&self, table: Oid, expression: &Expr) -> Run {
        let relation = self.catalog.relation(table);
        let columns = self.columns_of(table, expression);
        let mut types = columns.iter().filter_map(|name| relation.column(name)).map(|column| column.sql_type.oid);
        if types.any(|oid| oid.is_valid() && !oid.is_builtin()) {
            return fail("0A000", "generation expression uses user-defined type", expression.range);
        }
        let mut calls_own = false;
        expression.walk(&mut |part| {
            if let ExprKind::Call(call) = &part.kind {
                calls_own |= !self.called_functions(call).is_empty();
            }
        });
        if calls_own {
            return fail("0A000", "generation expression uses user-defined function", expression.range);
        }
        Ok(())
    }

    fn mark_not_null(&mut self, table: Oid, name: &Name) -> Run {
        let relation = self.catalog.relation_mut(table);
        let known = relation.known;
        match relation.column_mut(&name.text) {
            Some(column) => column.not_null = true,
            None if known => {
                let reason = format!("column \"{}\" named in key does not exist", name.text);
                return fail("42703", reason, name.range);
            }
            None => {}
        }
        Ok(())
    }

    fn store_check(&mut self, table: Oid, constraint: &ConstraintSyntax, expression: &Expr) -> Run {
        self.check_columns_exist(table, expression)?;
        let relation = self.catalog.relation(table);
        if constraint.no_inherit && relation.kind == crate::catalog::RelationKind::PartitionedTable {
            let reason = format!("cannot add NO INHERIT constraint to partitioned table \"{}\"", relation.name);
            return fail("42P16", reason, constraint.range);
        }
        let columns = self.columns_of(table, expression);
        let name =
            constraint.name.as_ref().map_or_else(|| self.choose_check_name(table, &columns), |name| name.text.clone());
        if let Some(existing) = self.catalog.relation(table).constraint(&name) {
            // The same CHECK as a parent's is merged with it.
            let same = matches!(&existing.kind, ConstraintKind::Check { expression: theirs, .. } if theirs.is_same(expression));
            if same && existing.inherited_from > 0 {
                return Ok(());
            }
            let reason = format!("check constraint \"{name}\" already exists");
            return fail("42710", reason, constraint.range);
        }
        let kind = ConstraintKind::Check { expression: Arc::new(expression.clone()), columns };
        self.catalog.add_constraint(table, stored(constraint, name, kind));
        Ok(())
    }

    /// The name of a CHECK that mentions these columns.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/heap.c`, `AddRelationNewConstraints`.
    pub(in crate::execute) fn choose_check_name(&self, table: Oid, columns: &[SmolStr]) -> SmolStr {
        let relation = self.catalog.relation(table);
        let column = columns.first().filter(|_| columns.len() == 1).map(SmolStr::as_str);
        self.catalog.choose_constraint_name(&relation.name, column, "check", &relation.schema, &[])
    }

    /// The columns of a table that an expression over it mentions, each once.
    pub(in crate::execute) fn columns_of(&self, table: Oid, expression: &Expr) -> Vec<SmolStr> {
        let relation = self.catalog.relation(table);
        let mut columns: Vec<SmolStr> = Vec::new();
        expression.walk(&mut |part| {
            let ExprKind::Column(parts) = &part.kind else { return };
            let Some(name) = parts.last() else { return };
            let is_column = relation.column(name).is_some() || !relation.known;
            if is_column && !columns.contains(name) {
                columns.push(name.clone());
            }
        });
        columns
    }

    /// Names a NOT NULL for every column that has one. What the table inherits is its own as well, under a name of its
    /// own, where it says so itself, or its sequence or primary key asks for it.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/heap.c`, `AddRelationNotNullConstraints`.
    fn store_not_nulls(&mut self, table: Oid, new: &NewTable, in_key: &[SmolStr]) -> Run {
        for (column, constraint) in &new.own {
            if let Syntax::NotNull { column: Some(name) } = &constraint.kind
                && column.is_none()
            {
                self.mark_not_null(table, name)?;
            }
        }
        let relation = self.catalog.relation(table);
        let columns: Vec<SmolStr> =
            relation.columns.iter().filter(|column| column.not_null).map(|column| column.name.clone()).collect();
        for column in columns {
            let about = |(own, constraint): &&(Option<Name>, ConstraintSyntax)| match &constraint.kind {
                Syntax::NotNull { column: named } => {
                    named.as_ref().or(own.as_ref()).is_some_and(|about| about.text == column)
                }
                _ => false,
            };
            // `a int NOT NULL, CONSTRAINT n NOT NULL a` is one constraint, under the name that is given.
            let mut written = new.own.iter().filter(about).map(|(_, constraint)| constraint);
            let written = written.clone().find(|constraint| constraint.name.is_some()).or_else(|| written.next());
            let given = self.not_null_constraint(table, &column);
            let name = written.and_then(|constraint| constraint.name.as_ref()).map(|name| name.text.clone());
            let no_inherit = written.is_some_and(|constraint| constraint.no_inherit);
            if let Some(constraint) = written.filter(|one| one.no_inherit && given.is_some()) {
                let reason = format!("cannot define not-null constraint with NO INHERIT on column \"{column}\"");
                return fail("42804", reason, constraint.range);
            }
            // What LIKE has copied keeps its name.
            let of_parent = |name: &SmolStr| {
                self.catalog.relation(table).constraint(name).is_some_and(|given| given.inherited_from > 0)
            };
            let counts =
                given.as_ref().is_some_and(of_parent) && new.sequences.iter().any(|sequence| sequence.column == column);
            let own = written.is_some() || counts || in_key.contains(&column);
            let inherited = given.as_ref().filter(|_| own && self.target.at_least(18));
            if let Some(given) = inherited.and_then(|given| self.catalog.remove_constraint(table, given)) {
                self.add_not_null_constraint(table, &column, name);
                let constraints = &mut self.catalog.relation_mut(table).constraints;
                constraints.update_last(|own| own.inherited_from = given.inherited_from);
            } else if given.is_none() {
                let is_free = |name: &SmolStr| self.catalog.relation(table).constraint(name).is_none();
                self.add_not_null_constraint(table, &column, name.filter(is_free));
                if no_inherit {
                    self.catalog.relation_mut(table).constraints.update_last(|own| own.no_inherit = true);
                }
            }
        }
        Ok(())
    }

    fn store_key(&mut self, table: Oid, key: NewKey<'_>) -> Run {
        let NewKey { definition, columns, written } = key;
        let index = self.define_index(table, &definition)?;
        let columns: Vec<SmolStr> = columns.into_iter().map(|name| name.text).collect();
        let kind = definition.constraint_kind(columns, index);
        let name = self.catalog.relation(index).name.clone();
        self.catalog.add_constraint(table, stored(written, name, kind));
        Ok(())
    }
}

/// A constraint that an index implements.
struct NewKey<'a> {
    definition: IndexDefinition,
    columns: Vec<Name>,
    written: &'a ConstraintSyntax,
}

impl NewKey<'_> {
    /// Whether it would be the same index. `a int PRIMARY KEY UNIQUE` creates one.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_utilcmd.c`, `transformIndexConstraints`.
    fn is_same(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.definition, &other.definition);
        let same_predicate = match (&ours.predicate, &theirs.predicate) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => ours.is_same(theirs),
            _ => false,
        };
        same_predicate
            && ours.elements.len() == theirs.elements.len()
            && ours.elements.iter().zip(&theirs.elements).all(|(ours, theirs)| same_element(ours, theirs))
            && self.operators().eq(other.operators())
            && ours.including == theirs.including
            && ours.method == theirs.method
            && ours.nulls_not_distinct == theirs.nulls_not_distinct
            && self.written.deferrable == other.written.deferrable
            && self.written.initially_deferred == other.written.initially_deferred
    }

    /// The operators of EXCLUDE.
    fn operators(&self) -> impl Iterator<Item = &SmolStr> {
        let elements = match &self.written.kind {
            Syntax::Exclude(exclude) => exclude.elements.as_slice(),
            _ => &[],
        };
        elements.iter().map(|(_, operator)| operator)
    }

    /// Replaces a later one, and takes its name if it has none of its own.
    fn absorb(&mut self, later: Self) {
        self.definition.unique |= later.definition.unique;
        if self.definition.name.is_none() {
            self.definition.name = later.definition.name;
        }
    }
}

fn new_key<'a>(column: Option<&Name>, written: &'a ConstraintSyntax) -> Option<NewKey<'a>> {
    let mut definition = IndexDefinition::of_constraint(written.name.as_ref(), written.keyword);
    let columns = match &written.kind {
        Syntax::PrimaryKey(key) | Syntax::Unique(key) => {
            let columns = key_columns(key, column);
            definition.elements = plain_elements(&columns);
            definition.unique = true;
            definition.primary = matches!(written.kind, Syntax::PrimaryKey(_));
            definition.nulls_not_distinct = key.nulls_not_distinct;
            definition.including = key.including.iter().map(|name| name.text.clone()).collect();
            if key.without_overlaps {
                definition.method = "gist".into();
                definition.operators = without_overlaps(columns.len());
            }
            columns
        }
        Syntax::Exclude(exclude) => {
            definition.elements = exclude.elements.iter().map(|(element, _)| element.clone()).collect();
            definition.exclusion = true;
            definition.operators = exclude.elements.iter().map(|(_, operator)| operator.clone()).collect();
            definition.method = exclude.method.clone();
            definition.including = exclude.including.iter().map(|name| name.text.clone()).collect();
            definition.predicate.clone_from(&exclude.predicate);
            Vec::new()
        }
        _ => return None,
    };
    Some(NewKey { definition, columns, written })
}

fn key_columns(key: &IndexConstraint, column: Option<&Name>) -> Vec<Name> {
    match column {
        Some(column) => vec![column.clone()],
        None => key.columns.clone(),
    }
}

/// The constraint of the catalog for one of the syntax. In a new table every constraint is valid.
fn stored(constraint: &ConstraintSyntax, name: SmolStr, kind: ConstraintKind) -> Constraint {
    Constraint {
        enforced: !constraint.not_enforced,
        valid: !constraint.not_enforced,
        deferrable: constraint.deferrable,
        initially_deferred: constraint.initially_deferred,
        no_inherit: constraint.no_inherit,
        ..Constraint::new(name, kind)
    }
}
