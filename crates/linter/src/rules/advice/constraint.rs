//! CHECK, NOT NULL and FOREIGN KEY without reading the table under a strong lock.

use super::key::named;
use super::{Advice, before, everywhere_at_least, without};
use crate::fix::{Applicability, Edit, Fix, Step};
use crate::rule::RuleContext;
use crate::rules::statement::altered::{Altered, WrittenConstraint};
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{Catalog, RelationKind};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::{AlterTableAction, ConstraintKind};
use pgvet_syntax::source::TextRange;

const LATER: &str = "add the constraint NOT VALID, and validate it in a later transaction:";

/// NOT VALID, then VALIDATE in another transaction.
pub(crate) fn not_valid(
    context: &RuleContext<'_>,
    altered: Altered<'_>,
    written: WrittenConstraint<'_>,
    name: &str,
) -> Advice {
    let table = sql_name(context, altered.table);
    if let Some(attributes) = only_deferrability(context, altered, name) {
        let sql = format!("ALTER TABLE {table} ALTER CONSTRAINT {} {attributes}", identifier(name));
        let advice =
            Advice::new("to change when the foreign key is checked, use ALTER CONSTRAINT, which reads no rows:")
                .sql(sql);
        return if altered.statement.commands.len() == 2 { advice.complete_pair() } else { advice };
    }
    let replaced = replaced_name(altered, name);
    let new_name = match replaced {
        Some(_) => context.before.choose_constraint_name(name, None, "new", &altered.table.schema, &[]),
        None => name.into(),
    };
    let Some(text) = constraint_text(context, written, &new_name) else {
        return Advice::new("add the constraint NOT VALID, and validate it in a later transaction");
    };
    let (new, old) = (identifier(&new_name), identifier(name));
    let mut advice = Advice::new(if replaced.is_some() {
        "add the new constraint NOT VALID under another name, validate it in a later transaction, then replace the old \
         one:"
    } else {
        LATER
    });
    if let Some(definition) = column_alone(context, written) {
        advice = advice.sql(format!("ALTER TABLE {table} ADD COLUMN {definition}"));
    }
    advice = advice
        .sql(format!("ALTER TABLE {table} ADD {text} NOT VALID"))
        .sql(format!("ALTER TABLE {table} VALIDATE CONSTRAINT {new}"));
    if replaced.is_some() {
        advice = advice
            .sql(format!("ALTER TABLE {table} DROP CONSTRAINT {old}"))
            .sql(format!("ALTER TABLE {table} RENAME CONSTRAINT {new} TO {old}"));
    }
    match (replaced, altered.statement.commands.len()) {
        (Some(_), 2) => advice.complete_pair(),
        (Some(_), _) => advice,
        (None, _) => advice.complete(context),
    }
}

/// NOT VALID written behind the constraint; the rows have to be checked in a later migration.
pub(crate) fn without_check(
    context: &RuleContext<'_>,
    altered: Altered<'_>,
    written: WrittenConstraint<'_>,
) -> Option<Fix> {
    let kind = &written.constraint.kind;
    let refused = match kind {
        ConstraintKind::ForeignKey(_) => {
            altered.table.kind == RelationKind::PartitionedTable && !everywhere_at_least(context, 18)
        }
        ConstraintKind::NotNull { .. } => !everywhere_at_least(context, 18),
        ConstraintKind::Check(_) => false,
        _ => true,
    };
    if refused || written.column.is_some() {
        return None;
    }
    Some(Fix {
        title: "Add NOT VALID, and leave existing rows to a later VALIDATE CONSTRAINT".to_owned(),
        applicability: Applicability::Unsafe,
        edits: vec![Edit { range: TextRange::at(written.constraint.range.end), text: " NOT VALID".to_owned() }],
    })
}

/// When a foreign key is checked from now on, if the statement drops it and adds it again with nothing else changed.
///
/// Source: PostgreSQL 18 documentation, "ALTER TABLE": ALTER CONSTRAINT is for foreign keys.
fn only_deferrability(context: &RuleContext<'_>, altered: Altered<'_>, name: &str) -> Option<&'static str> {
    replaced_name(altered, name)?;
    let find = |catalog: &Catalog| {
        let relation = catalog.get_relation(altered.table.oid)?;
        relation.constraint(name).cloned()
    };
    let (old, new) = (find(context.before)?, find(context.after)?);
    let (left, right) = (old.foreign_key()?, new.foreign_key()?);
    let is_same = (&left.columns, left.referenced, &left.referenced_columns, left.on_delete, left.on_update)
        == (&right.columns, right.referenced, &right.referenced_columns, right.on_delete, right.on_update)
        && (&left.set_columns, left.match_full) == (&right.set_columns, right.match_full);
    (is_same && old.valid).then_some(match (new.deferrable, new.initially_deferred) {
        (true, true) => "DEFERRABLE INITIALLY DEFERRED",
        (true, false) => "DEFERRABLE INITIALLY IMMEDIATE",
        (false, _) => "NOT DEFERRABLE",
    })
}

/// The constraint of that name that the same statement drops.
fn replaced_name<'a>(altered: Altered<'a>, name: &str) -> Option<&'a str> {
    altered.statement.commands.iter().find_map(|command| match &command.action {
        AlterTableAction::DropConstraint { name: dropped, .. } if dropped.text == name => Some(dropped.as_str()),
        _ => None,
    })
}

/// ADD COLUMN without the constraint.
fn column_alone(context: &RuleContext<'_>, written: WrittenConstraint<'_>) -> Option<String> {
    without(context, written.column?.range, written.constraint.range)
}

/// The constraint as a table constraint with a name.
fn constraint_text(context: &RuleContext<'_>, written: WrittenConstraint<'_>, name: &str) -> Option<String> {
    let (Some(column), ConstraintKind::ForeignKey(_)) = (written.column, &written.constraint.kind) else {
        return named(context, written, name);
    };
    let references =
        super::one_line(context, TextRange::new(written.constraint.keyword.start, written.constraint.range.end))?;
    let column = identifier(&column.name.text);
    Some(format!("CONSTRAINT {} FOREIGN KEY ({column}) {references}", identifier(name)))
}

/// A foreign key without reading the table while both are locked.
pub(crate) fn foreign_key(
    context: &RuleContext<'_>,
    altered: Altered<'_>,
    written: WrittenConstraint<'_>,
    name: &str,
    partitions: &[&RelationName],
) -> Advice {
    if altered.table.kind != RelationKind::PartitionedTable || everywhere_at_least(context, 18) {
        return not_valid(context, altered, written, name);
    }
    // A partition that has an equal, valid foreign key is not checked again when its parent gets it.
    // Source: PostgreSQL 14, `src/backend/commands/tablecmds.c`, `tryAttachPartitionForeignKey`.
    let sentence = "before PostgreSQL 18, a partitioned table cannot have a NOT VALID foreign key. Add the foreign \
                    key NOT VALID to each partition, and validate it there in a later transaction. Then add the \
                    foreign key to the parent, which adopts the foreign keys of the partitions:";
    let (Some(partition), Some(text)) = (partitions.first(), constraint_text(context, written, name)) else {
        return Advice::new(sentence.trim_end_matches(':'));
    };
    let (table, partition) = (sql_name(context, altered.table), sql_name(context, partition));
    let mut advice = Advice::new(sentence);
    if let Some(definition) = column_alone(context, written) {
        advice = advice.sql(format!("ALTER TABLE {table} ADD COLUMN {definition}"));
    }
    let advice = advice
        .sql(format!("ALTER TABLE {partition} ADD {text} NOT VALID"))
        .sql(format!("ALTER TABLE {partition} VALIDATE CONSTRAINT {}", identifier(name)))
        .sql(format!("ALTER TABLE {table} ADD {text}"));
    match partitions.len() {
        1 => advice.complete(context),
        count => {
            let all_known = before(context, altered.table).is_some_and(|parent| parent.known && !parent.unknown_parts);
            let steps = by_partition(context, altered, &text, name, partitions);
            let more = format!(
                "do the same for the foreign keys of the other partitions ({} more) before the last \
                         statement",
                count - 1
            );
            match written.column {
                None if all_known => advice.then(more).with_steps(context, steps),
                _ => advice.then(more),
            }
        }
    }
}

/// The foreign key of each partition, then that of their parent.
fn by_partition(
    context: &RuleContext<'_>,
    altered: Altered<'_>,
    text: &str,
    name: &str,
    partitions: &[&RelationName],
) -> Vec<Step> {
    let name = identifier(name);
    let mut steps = Vec::new();
    for partition in partitions {
        let partition = sql_name(context, partition);
        steps.push(Step::new(format!("ALTER TABLE {partition} ADD {text} NOT VALID")));
        steps.push(Step::new(format!("ALTER TABLE {partition} VALIDATE CONSTRAINT {name}")));
    }
    steps.push(Step::new(format!("ALTER TABLE {} ADD {text}", sql_name(context, altered.table))));
    steps
}

/// Dropping foreign keys one at a time, each with a lock that gives up.
pub(crate) fn drop_foreign_keys(
    context: &RuleContext<'_>,
    dropped: &[&RelationName],
    referenced: &[&RelationName],
) -> Advice {
    let mut statements = Vec::new();
    for table in dropped {
        let Some(relation) = before(context, table) else { continue };
        for constraint in &relation.constraints {
            let Some(key) = constraint.foreign_key() else { continue };
            if referenced.iter().any(|other| other.oid == key.referenced) && constraint.inherited_from == 0 {
                let (table, name) = (sql_name(context, table), identifier(&constraint.name));
                statements.push(format!("ALTER TABLE {table} DROP CONSTRAINT {name}"));
            }
        }
    }
    if statements.is_empty() {
        return give_up_and_retry();
    }
    let which = if statements.len() == 1 { "foreign key first," } else { "foreign keys first, each" };
    Advice::new(format!("drop the {which} in its own transaction, with a short lock_timeout:"))
        .sql("SET lock_timeout = '2s'")
        .all(statements)
}

/// Where nothing but a short wait helps.
pub(crate) fn give_up_and_retry() -> Advice {
    Advice::new("run the statement in its own transaction with a short lock_timeout, and retry if the timeout expires:")
        .sql("SET lock_timeout = '2s'")
}
