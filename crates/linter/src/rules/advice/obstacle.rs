//! What depends on a column so that another one cannot take its place.

use crate::rule::RuleContext;
use crate::rules::text::enumerate;
use pgvet_model::catalog::{Column, Constraint, ConstraintKind, Relation, RelationKind};
use pgvet_syntax::ast::ReplicaIdentity;

/// The first of them, as a sentence.
pub(super) fn of_column(context: &RuleContext<'_>, relation: &Relation, column: &Column) -> Option<String> {
    of_table(relation)
        .or_else(|| of_its_own(column))
        .or_else(|| by_name(context, relation, column))
        .or_else(|| relation.constraints.iter().find_map(|constraint| of_constraint(constraint, column)))
}

fn of_table(relation: &Relation) -> Option<String> {
    let name = &relation.name;
    if !relation.known || relation.unknown_parts {
        return Some(format!("no migration shows all of `{name}`"));
    }
    if relation.kind != RelationKind::Table {
        return Some(format!("`{name}` is not an ordinary table"));
    }
    if !relation.parents.is_empty() || !relation.children.is_empty() {
        return Some(format!("other tables have the columns of `{name}`, as its partitions or by inheritance"));
    }
    relation.of_type.map(|_| format!("`{name}` is a typed table (CREATE TABLE ... OF)"))
}

fn of_its_own(column: &Column) -> Option<String> {
    let name = &column.name;
    if column.identity.is_some() {
        return Some(format!("`{name}` is an identity column, whose sequence cannot move to another one"));
    }
    if column.generated.is_some() {
        return Some(format!(
            "`{name}` is generated, and PostgreSQL cannot turn an existing column into a generated one"
        ));
    }
    column.collation.as_ref().map(|_| format!("`{name}` has a collation of its own"))
}

/// Objects whose definition may name the column: PostgreSQL keeps them at the old one.
fn by_name(context: &RuleContext<'_>, relation: &Relation, column: &Column) -> Option<String> {
    let table = &relation.name;
    let views = relation.viewed_by.iter().filter_map(|view| context.before.get_relation(*view));
    let views: Vec<&str> = views.map(|view| view.name.as_str()).collect();
    let triggers: Vec<&str> = relation.triggers.iter().map(|trigger| trigger.name.as_str()).collect();
    let policies: Vec<&str> = relation.policies.iter().map(|policy| policy.name.as_str()).collect();
    let rules: Vec<&str> = relation.rules.iter().map(smol_str::SmolStr::as_str).collect();
    let generated = relation.columns.iter().filter(|other| other.generated.is_some());
    let generated: Vec<&str> = generated.map(|other| other.name.as_str()).collect();
    let statistics = context.before.statistics_using(relation.oid, &column.name);
    let statistics: Vec<&str> = statistics.iter().map(|(_, name)| name.as_str()).collect();
    let kinds = [
        ("view", views),
        ("trigger", triggers),
        ("policy", policies),
        ("rule", rules),
        ("generated column", generated),
        ("statistics object", statistics),
    ];
    let named = kinds.into_iter().find(|(_, names)| !names.is_empty()).map(|(kind, names)| {
        format!(
            "the {kind} {} of `{table}` may use `{}`, and would still use the old column",
            enumerate(names),
            column.name
        )
    });
    let keys = context.before.foreign_keys_to(relation.oid);
    let refers = |constraint: &Constraint| {
        constraint.foreign_key().is_some_and(|key| key.referenced_columns.contains(&column.name))
    };
    let referring = keys.iter().find(|(_, key)| refers(key)).map(|(oid, key)| {
        let child = context.before.get_relation(*oid).map_or_else(String::new, |child| format!(" of `{}`", child.name));
        format!("the foreign key `{}`{child} refers to `{}`", key.name, column.name)
    });
    let identity = matches!(relation.replica_identity, ReplicaIdentity::Index(_)).then(|| {
        format!(
            "an index of `{table}` identifies rows for replication, and would be dropped with the old \
                         column"
        )
    });
    named.or(referring).or(identity)
}

fn of_constraint(constraint: &Constraint, column: &Column) -> Option<String> {
    let is_ours = constraint.columns().contains(&column.name);
    let kind = match &constraint.kind {
        ConstraintKind::NotNull { .. } => return None,
        ConstraintKind::Exclude { .. } => "exclusion constraint",
        ConstraintKind::PrimaryKey { .. } | ConstraintKind::Unique { .. } if is_ours && constraint.deferrable => {
            "deferrable key"
        }
        ConstraintKind::Check { .. } if is_ours => "CHECK",
        ConstraintKind::ForeignKey(_) if is_ours => "foreign key",
        _ => return None,
    };
    Some(format!("the {kind} `{}` contains `{}`, and would still use the old column", constraint.name, column.name))
}
