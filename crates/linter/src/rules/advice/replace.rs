//! Another column in place of one whose type is to change: add, copy, fill, build, swap, drop.

use super::{backfill, before, list, obstacle, one_line};
use crate::fix::Step;
use crate::phase::Phase;
use crate::rule::RuleContext;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{Column, Constraint, Index, Relation, RelationDetail};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::{Expr, ExprKind, IndexElement, Literal, Name};
use smol_str::SmolStr;

/// The steps, or what depends on the column that they could not take along.
pub(super) fn steps(
    context: &RuleContext<'_>,
    table: &RelationName,
    column: &Name,
    type_text: &str,
    using: Option<&Expr>,
) -> Result<Vec<Step>, String> {
    let relation = before(context, table).ok_or_else(|| format!("no migration shows `{}`", table.name))?;
    let definition =
        relation.column(&column.text).ok_or_else(|| format!("no migration shows the column `{}`", column.text))?;
    if let Some(obstacle) = obstacle::of_column(context, relation, definition) {
        return Err(obstacle);
    }
    let value =
        using.map(|using| one_line(context, using.range).ok_or("the USING expression is in code")).transpose()?;
    let name = |suffix| {
        let taken = || format!("there is no free name for a column `{}_{suffix}`", column.text);
        free_column(relation, &column.text, suffix).map(|name| identifier(&name)).ok_or_else(taken)
    };
    let replacement = Replacement {
        context,
        relation,
        definition,
        table: sql_name(context, table),
        column: identifier(&column.text),
        new: name("new")?,
        old: name("old")?,
        default: default(context, relation, definition, type_text)
            .ok_or_else(|| format!("the default of `{}` may mean something else for {type_text}", column.text))?,
        indexes: indexes(context, relation, &column.text)?,
    };
    let no_key = || format!("`{}` has no key by which it could be filled in batches", table.name);
    replacement.steps(type_text, value.as_deref()).ok_or_else(no_key)
}

/// `c_new`, where the table has no such column.
fn free_column(relation: &Relation, column: &str, suffix: &str) -> Option<String> {
    let name = format!("{column}_{suffix}");
    (relation.column(&name).is_none() && name.len() < 64).then_some(name)
}

/// The default of a column as SQL: empty where it has none, `None` where it cannot be told.
fn default(context: &RuleContext<'_>, relation: &Relation, column: &Column, type_text: &str) -> Option<Vec<Default>> {
    let is_number = NUMBERS.iter().any(|name| type_text.to_ascii_lowercase().starts_with(name));
    let owned = relation.owned_sequences.iter().filter_map(|oid| context.before.get_relation(*oid));
    let mut owned = owned.filter(|sequence| match &sequence.detail {
        RelationDetail::Sequence(sequence) => {
            sequence.owned_by.as_ref().is_some_and(|(table, owner)| *table == relation.oid && *owner == column.name)
        }
        _ => false,
    });
    let sequence = owned.next().map(|sequence| {
        let (schema, name) = (identifier(&sequence.schema), identifier(&sequence.name));
        format!("{schema}.{name}")
    });
    match (&column.default, sequence) {
        (None, None) => Some(Vec::new()),
        (default, Some(sequence)) if default.as_deref().is_none_or(is_next_value) => {
            let sql = format!("nextval('{}')", sequence.replace('\'', "''"));
            Some(vec![Default { sql, sequence: Some(sequence) }])
        }
        (Some(default), None) if is_number => Some(vec![Default { sql: literal(default)?, sequence: None }]),
        (_, _) => None,
    }
}

/// What a serial column has as its default.
fn is_next_value(default: &Expr) -> bool {
    matches!(&default.kind, ExprKind::Call(call) if call.name == "nextval")
}

/// Types for which a number means the same as a default.
const NUMBERS: [&str; 7] = ["bigint", "int8", "integer", "int", "numeric", "decimal", "double precision"];

struct Default {
    sql: String,
    /// The sequence that belongs to the column.
    sequence: Option<String>,
}

fn literal(default: &Expr) -> Option<String> {
    match &default.kind {
        ExprKind::Literal(Literal::Integer(number)) => Some(number.to_string()),
        ExprKind::Literal(Literal::Numeric(number)) => Some(number.to_string()),
        _ => None,
    }
}

/// An index over the column, to be built again over the new one.
struct Rebuilt<'a> {
    name: &'a SmolStr,
    index: &'a Index,
    constraint: Option<&'a Constraint>,
}

fn indexes<'a>(
    context: &RuleContext<'a>,
    relation: &'a Relation,
    column: &SmolStr,
) -> Result<Vec<Rebuilt<'a>>, String> {
    let mut rebuilt = Vec::new();
    for oid in &relation.indexes {
        let Some(other) = context.before.get_relation(*oid) else { continue };
        let index = other.index().ok_or_else(|| format!("no migration shows the index `{}`", other.name))?;
        let mut parts = index.elements.iter().map(|element| &element.key).chain(index.predicate.as_deref());
        if !parts.any(|part| names(part, column)) && !index.including.contains(column) {
            continue;
        }
        if index.has_expressions() || index.predicate.is_some() {
            return Err(format!("the index `{}` has an expression or a condition", other.name));
        }
        let is_plain = |element: &IndexElement| element.operator_class.is_none() && element.collation.is_none();
        if index.clustered {
            return Err(format!("the table is clustered on the index `{}`", other.name));
        }
        if index.exclusion || index.method != "btree" || !index.elements.iter().all(is_plain) {
            return Err(format!("the index `{}` is not a plain B-tree", other.name));
        }
        let constraint =
            relation.constraints.iter().find(|constraint| constraint.index() == Some(*oid)).map(AsRef::as_ref);
        rebuilt.push(Rebuilt { name: &other.name, index, constraint });
    }
    Ok(rebuilt)
}

/// Whether the expression uses the column.
fn names(expression: &Expr, column: &SmolStr) -> bool {
    let mut found = false;
    expression.walk(&mut |part| {
        found |= matches!(&part.kind, ExprKind::Column(parts) if parts.last() == Some(column));
    });
    found
}

struct Replacement<'s, 'a> {
    context: &'s RuleContext<'a>,
    relation: &'s Relation,
    definition: &'s Column,
    table: String,
    column: String,
    new: String,
    old: String,
    /// One or none.
    default: Vec<Default>,
    indexes: Vec<Rebuilt<'s>>,
}

impl Replacement<'_, '_> {
    fn steps(&self, type_text: &str, value: Option<&str>) -> Option<Vec<Step>> {
        let Self { context, table, column, new, .. } = self;
        let name = RelationName::existing(self.relation);
        // USING may make a value of NULL, and NULL of a value; batches that find NULL again would never end.
        let source = value.map_or_else(|| column.clone(), |value| format!("({value})"));
        let backfill = backfill::step(
            context,
            &name,
            &format!("{new} = {}", value.unwrap_or(column)),
            &format!("{new} IS NULL AND {source} IS NOT NULL"),
        )?;
        let add = Step::new(format!("ALTER TABLE {table} ADD COLUMN {new} {type_text}")).note(format!(
            "{new} replaces {column}: a trigger copies every write, and a loop fills the old rows. These steps do not \
             copy comments, column privileges, the statistics target of the column or storage parameters of its \
             indexes."
        ));
        let add = add.phase(Phase::Expand);
        let mut steps = vec![Step::new("BEGIN"), add];
        steps.extend(self.copy(value).into_iter().map(Step::new));
        steps.push(Step::new("COMMIT"));
        steps.push(backfill.phase(Phase::Backfill));
        if self.definition.not_null {
            let proof = self.proof();
            steps.push(Step::new(format!(
                "ALTER TABLE {table} ADD CONSTRAINT {proof} CHECK ({new} IS NOT NULL) NOT VALID"
            )));
            steps.push(Step::new(format!("ALTER TABLE {table} VALIDATE CONSTRAINT {proof}")));
        }
        steps.extend(self.indexes.iter().map(|rebuilt| Step::new(self.build(rebuilt))));
        steps.extend(self.swap(type_text));
        // With the column their files would be removed while its lock is held.
        let left = self.indexes.iter().filter(|rebuilt| rebuilt.constraint.is_none());
        let schema = identifier(&self.relation.schema);
        steps.extend(left.map(|rebuilt| Step::new(format!("DROP INDEX CONCURRENTLY {schema}.{}", old_name(rebuilt)))));
        let drop = Step::new(format!("ALTER TABLE {table} DROP COLUMN {}", self.old))
            .phase(Phase::Contract)
            .note(format!(
                "Decide when to drop {}: it holds the values from before the change, and they cannot be restored",
                self.old
            ))
            .accepted(format!(
                "{} only contains the values from which {column} was computed, and nothing writes it any \
                              more",
                self.old
            ));
        steps.push(drop);
        Some(steps)
    }

    /// The trigger that copies what others write meanwhile.
    fn copy(&self, value: Option<&str>) -> Vec<String> {
        let (function, trigger) = (self.function(), identifier(&self.trigger_name()));
        let (table, column, new) = (&self.table, &self.column, &self.new);
        let alias = identifier(&self.relation.name);
        let assign = match value {
            None => format!("NEW.{new} := NEW.{column};"),
            Some(value) => format!("SELECT {value} INTO NEW.{new} FROM (SELECT NEW.*) AS {alias};"),
        };
        vec![
            format!(
                "CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $copy$
BEGIN
    {assign}
    RETURN NEW;
END
$copy$"
            ),
            format!(
                "CREATE TRIGGER {trigger} BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {function}()"
            ),
        ]
    }

    /// The two columns change names in one transaction, and what hangs on the old one moves.
    fn swap(&self, type_text: &str) -> Vec<Step> {
        let Self { table, column, new, old, .. } = self;
        let trigger = identifier(&self.trigger_name());
        let meant = format!("{column} keeps its name and its values, as {type_text}");
        let first = Step::new(format!("DROP TRIGGER {trigger} ON {table}")).phase(Phase::Contract).note(format!(
            "Before this step, deploy code that works with {column} as {type_text}. Sessions may have to prepare \
             statements again."
        ));
        let rename = |from: &str, to: &str| {
            Step::new(format!("ALTER TABLE {table} RENAME COLUMN {from} TO {to}")).accepted(meant.clone())
        };
        let mut steps = vec![Step::new("BEGIN"), first, rename(column, old), rename(new, column)];
        let mut sql = Vec::new();
        for default in &self.default {
            sql.push(format!("ALTER TABLE {table} ALTER COLUMN {old} DROP DEFAULT"));
            sql.push(format!("ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT {}", default.sql));
            if let Some(sequence) = &default.sequence {
                sql.push(format!("ALTER SEQUENCE {sequence} OWNED BY {table}.{column}"));
            }
        }
        for rebuilt in &self.indexes {
            if let Some(constraint) = rebuilt.constraint {
                sql.push(format!("ALTER TABLE {table} DROP CONSTRAINT {}", identifier(&constraint.name)));
            }
        }
        if self.definition.not_null {
            sql.push(format!("ALTER TABLE {table} ALTER COLUMN {old} DROP NOT NULL"));
            sql.push(format!("ALTER TABLE {table} ALTER COLUMN {column} SET NOT NULL"));
            sql.push(format!("ALTER TABLE {table} DROP CONSTRAINT {}", self.proof()));
        }
        for rebuilt in &self.indexes {
            sql.extend(self.take_over(rebuilt));
        }
        sql.push(format!("DROP FUNCTION {}()", self.function()));
        steps.extend(sql.into_iter().map(|sql| Step::new(sql).accepted(meant.clone())));
        steps.push(Step::new("COMMIT"));
        steps
    }

    fn build(&self, rebuilt: &Rebuilt<'_>) -> String {
        let index = rebuilt.index;
        let key = |column: &SmolStr| {
            if *column == self.definition.name { self.new.clone() } else { identifier(column) }
        };
        let element = |element: &IndexElement| {
            let mut text = element.key.as_column().map(key).unwrap_or_default();
            if element.descending {
                text.push_str(" DESC");
            }
            match element.nulls_first {
                Some(true) => text.push_str(" NULLS FIRST"),
                Some(false) => text.push_str(" NULLS LAST"),
                None => {}
            }
            text
        };
        let elements: Vec<String> = index.elements.iter().map(element).collect();
        let unique = if index.unique { "UNIQUE " } else { "" };
        let mut text = format!(
            "CREATE {unique}INDEX CONCURRENTLY {} ON {} ({})",
            built_name(rebuilt),
            self.table,
            elements.join(", ")
        );
        if !index.including.is_empty() {
            let included: Vec<String> = index.including.iter().map(key).collect();
            text = format!("{text} INCLUDE ({})", included.join(", "));
        }
        if index.nulls_not_distinct {
            text.push_str(" NULLS NOT DISTINCT");
        }
        text
    }

    fn take_over(&self, rebuilt: &Rebuilt<'_>) -> Vec<String> {
        let (built, name) = (built_name(rebuilt), identifier(rebuilt.name));
        let schema = identifier(&self.relation.schema);
        match rebuilt.constraint {
            Some(constraint) => {
                let kind = if constraint.is_primary_key() { "PRIMARY KEY" } else { "UNIQUE" };
                let constraint = list(std::slice::from_ref(&constraint.name));
                vec![format!("ALTER TABLE {} ADD CONSTRAINT {constraint} {kind} USING INDEX {built}", self.table)]
            }
            None => vec![
                format!("ALTER INDEX {schema}.{name} RENAME TO {}", old_name(rebuilt)),
                format!("ALTER INDEX {schema}.{built} RENAME TO {name}"),
            ],
        }
    }

    fn proof(&self) -> String {
        let (table, column) = (&self.relation.name, &self.definition.name);
        let schema = &self.relation.schema;
        identifier(&self.context.before.choose_constraint_name(table, Some(column), "is_not_null", schema, &[]))
    }

    fn trigger_name(&self) -> String {
        format!("{}_{}_copy", self.relation.name, self.definition.name)
    }

    fn function(&self) -> String {
        format!("{}.{}", identifier(&self.relation.schema), identifier(&self.trigger_name()))
    }
}

fn built_name(rebuilt: &Rebuilt<'_>) -> String {
    identifier(&format!("{}_new", rebuilt.name))
}

fn old_name(rebuilt: &Rebuilt<'_>) -> String {
    identifier(&format!("{}_old", rebuilt.name))
}
