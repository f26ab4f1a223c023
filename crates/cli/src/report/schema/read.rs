//! The catalog of a replay, as data.

use super::{Column, Constraint, Enum, Index, Reference, Relation};
use pgvet_model::builtin::Extension;
use pgvet_model::catalog::{
    self, Catalog, ConstraintKind, Function, IdentityKind, Oid, RelationDetail, RelationKind, SqlType, TypeDef,
    TypeKind,
};
use pgvet_model::expression::{Analyzer, Schema};
use pgvet_model::version::Target;
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, Literal, Query};
use smol_str::SmolStr;
use std::sync::Arc;

/// Stands for an expression that is not written out.
const EXPRESSION: &str = "(expression)";

/// Reads the relations, in the order of their names, and the enums.
pub(super) fn read(catalog: &Catalog, target: &Target) -> (Vec<Relation>, Vec<Enum>) {
    let types = Types(catalog);
    let analyzer = Analyzer::new(&types, target);
    let has_rows = |relation: &&&Arc<catalog::Relation>| {
        let kind = relation.kind;
        kind.is_table() || matches!(kind, RelationKind::View | RelationKind::MaterializedView)
    };
    let all = catalog.relations_in_order();
    let mut relations: Vec<Relation> =
        all.iter().filter(has_rows).map(|relation| read_relation(catalog, &analyzer, relation)).collect();
    relations.sort_by(|one, other| (&one.schema, &one.name).cmp(&(&other.schema, &other.name)));
    let mut enums: Vec<Enum> = catalog.types().filter_map(|own| read_enum(own)).collect();
    enums.sort_by(|one, other| (&one.schema, &one.name).cmp(&(&other.schema, &other.name)));
    (relations, enums)
}

fn read_enum(definition: &TypeDef) -> Option<Enum> {
    let TypeKind::Enum { labels } = &definition.kind else { return None };
    Some(Enum {
        schema: definition.schema.to_string(),
        name: definition.name.to_string(),
        labels: labels.iter().map(|label| label.label.to_string()).collect(),
    })
}

fn read_relation(catalog: &Catalog, analyzer: &Analyzer<'_>, relation: &catalog::Relation) -> Relation {
    let named = |oid: &Oid| catalog.get_relation(*oid).map(|other| qualified(other));
    let is_shown = |constraint: &&Arc<catalog::Constraint>| !matches!(constraint.kind, ConstraintKind::NotNull { .. });
    Relation {
        schema: relation.schema.to_string(),
        name: relation.name.to_string(),
        kind: relation.kind.noun(),
        created_by_migrations: relation.known,
        columns: relation.columns.iter().map(|column| read_column(analyzer, column)).collect(),
        constraints: relation.constraints.iter().filter(is_shown).map(|one| read_constraint(catalog, one)).collect(),
        indexes: relation.indexes.iter().filter_map(|oid| read_index(catalog, *oid)).collect(),
        triggers: relation.triggers.iter().map(|trigger| trigger.name.to_string()).collect(),
        partition_of: relation.parents.iter().filter_map(named).collect(),
        row_level_security: relation.row_security,
    }
}

fn qualified(relation: &catalog::Relation) -> String {
    format!("{}.{}", relation.schema, relation.name)
}

fn read_column(analyzer: &Analyzer<'_>, column: &catalog::Column) -> Column {
    let generated = column.generated.as_ref().map(|generated| generated.expression.as_ref());
    let default = column.default.as_deref();
    Column {
        name: column.name.to_string(),
        r#type: analyzer.format_type(column.sql_type),
        not_null: column.not_null,
        default: generated.or(default).map(text_of),
        identity: column.identity.map(|identity| match identity {
            IdentityKind::Always => "always",
            IdentityKind::ByDefault => "by default",
        }),
        generated: generated.is_some(),
    }
}

fn read_constraint(catalog: &Catalog, constraint: &catalog::Constraint) -> Constraint {
    let strings = |names: &[SmolStr]| names.iter().map(SmolStr::to_string).collect();
    let kind = match &constraint.kind {
        ConstraintKind::NotNull { .. } => "not null",
        ConstraintKind::Check { .. } => "check",
        ConstraintKind::PrimaryKey { .. } => "primary key",
        ConstraintKind::Unique { .. } => "unique",
        ConstraintKind::Exclude { .. } => "exclude",
        ConstraintKind::ForeignKey(_) => "foreign key",
    };
    let references = constraint.foreign_key().map(|key| Reference {
        relation: catalog.get_relation(key.referenced).map(|other| qualified(other)).unwrap_or_default(),
        columns: strings(&key.referenced_columns),
    });
    Constraint {
        name: constraint.name.to_string(),
        kind,
        columns: strings(constraint.columns()),
        valid: constraint.valid,
        references,
    }
}

fn read_index(catalog: &Catalog, oid: Oid) -> Option<Index> {
    let relation = catalog.get_relation(oid)?;
    let RelationDetail::Index(index) = &relation.detail else { return None };
    let key = |key: &Expr| key.as_column().map_or_else(|| text_of(key), SmolStr::to_string);
    Some(Index {
        name: relation.name.to_string(),
        unique: index.unique,
        valid: index.valid,
        method: index.method.to_string(),
        keys: index.elements.iter().map(|element| key(&element.key)).collect(),
        partial: index.predicate.is_some(),
    })
}

/// An expression as SQL, if it is simple: the text that it was read from is gone.
fn text_of(expression: &Expr) -> String {
    simple(expression).unwrap_or_else(|| EXPRESSION.to_owned())
}

fn simple(expression: &Expr) -> Option<String> {
    match &expression.kind {
        ExprKind::Literal(literal) => Some(match literal {
            Literal::Integer(number) => number.to_string(),
            Literal::Numeric(digits) => digits.to_string(),
            Literal::Boolean(value) => value.to_string(),
            Literal::String(text) => format!("'{}'", text.replace('\'', "''")),
            Literal::BitString(text) => format!("B'{text}'"),
            Literal::Null => "NULL".to_owned(),
        }),
        ExprKind::SqlValue(name) => Some(name.to_uppercase()),
        ExprKind::Column(parts) => Some(parts.join(".")),
        // The type of the column says it, too.
        ExprKind::Cast { operand, .. } => simple(operand),
        ExprKind::Call(call) => simple_call(call),
        _ => None,
    }
}

fn simple_call(call: &FunctionCall) -> Option<String> {
    let is_plain = !call.star && !call.distinct && call.filter.is_none() && call.window.is_none();
    let arguments: Option<Vec<String>> = call.arguments.iter().map(|argument| simple(&argument.value)).collect();
    arguments.filter(|_| is_plain).map(|arguments| format!("{}({})", call.name, arguments.join(", ")))
}

/// The types of a catalog, with names looked up in `public`.
struct Types<'a>(&'a Catalog);

impl Schema for Types<'_> {
    fn type_named(&self, schema: Option<&str>, name: &str) -> Option<Oid> {
        self.0.type_named(schema.unwrap_or("public"), name)
    }

    fn type_by_oid(&self, oid: Oid) -> Option<Arc<TypeDef>> {
        self.0.get_type(oid).cloned()
    }

    fn functions_named(&self, _: Option<&str>, _: &str) -> Vec<Arc<Function>> {
        Vec::new()
    }

    fn relation_named(&self, _: Option<&str>, _: &str) -> Option<Oid> {
        None
    }

    fn columns(&self, _: Oid) -> Option<Vec<(SmolStr, SqlType)>> {
        None
    }

    fn sql_body(&self, _: &Function) -> Option<Arc<Query>> {
        None
    }

    fn extensions(&self) -> &[&'static Extension] {
        self.0.known_extensions()
    }
}
