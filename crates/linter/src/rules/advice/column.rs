//! New and changed columns without rewriting the table.

use super::{
    Advice, backfill, before, everywhere_at_least, key, not_null, one_line, refusing_trigger, replace, without,
};
use crate::fix::Step;
use crate::rule::RuleContext;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::{ColumnDef, Constraint, ConstraintKind, Expr, Name};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// An UPDATE of some rows, to be repeated with other bounds, each time in a transaction of its own.
fn batch(context: &RuleContext<'_>, table: &RelationName, assignment: &str, missing: &str) -> String {
    let sql_table = sql_name(context, table);
    let key = before(context, table).and_then(|relation| relation.primary_key()).map(|key| key.columns());
    match key {
        Some([column]) => {
            let key = identifier(column);
            format!("UPDATE {sql_table} SET {assignment} WHERE {key} BETWEEN $1 AND $2 AND {missing}")
        }
        _ => format!(
            "UPDATE {sql_table} SET {assignment} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {sql_table} WHERE {missing} \
             LIMIT 5000)) AND {missing}"
        ),
    }
}

/// A second column of the new type that takes the place of the first. `type_range`: the type, and its COLLATE clause.
pub(crate) fn replace(
    context: &RuleContext<'_>,
    table: &RelationName,
    column: &Name,
    type_range: TextRange,
    using: Option<&Expr>,
) -> Advice {
    if let Some(advice) = refusing_trigger::in_place_of_second(context, table, &column.text) {
        return advice;
    }
    let sql_table = sql_name(context, table);
    let (old, new) = (identifier(&column.text), identifier(&format!("{}_new", column.text)));
    let kept = identifier(&format!("{}_old", column.text));
    let type_text = one_line(context, type_range);
    let value = using.map_or_else(|| Some(old.clone()), |using| one_line(context, using.range));
    let (Some(type_text), Some(value)) = (type_text, value) else {
        return Advice::new(
            "add a new column, keep it up to date with a trigger, fill it in batches, then swap the names",
        );
    };
    // USING may make a value of NULL, and NULL of a value; batches that find NULL again would never end.
    let source = using.map_or_else(|| old.clone(), |_| format!("({value})"));
    let advice = Advice::new(
        "add a new column, keep it up to date with a trigger, fill it in batches, then swap the names:",
    )
    .sql(format!("ALTER TABLE {sql_table} ADD COLUMN {new} {type_text}"))
    .sql(batch(context, table, &format!("{new} = {value}"), &format!("{new} IS NULL AND {source} IS NOT NULL")))
    .together(
        context,
        [
            format!("ALTER TABLE {sql_table} RENAME COLUMN {old} TO {kept}"),
            format!("ALTER TABLE {sql_table} RENAME COLUMN {new} TO {old}"),
        ],
    )
    .then(
        "before the swap, also create the old column's indexes and constraints on the new column, without blocking \
         writes",
    );
    match replace::steps(context, table, column, &type_text, using) {
        Ok(steps) => advice.with_steps(context, steps),
        Err(obstacle) => advice.without_steps(obstacle),
    }
}

/// A CHECK in place of the length of varchar(n).
pub(crate) fn limit_length(context: &RuleContext<'_>, table: &RelationName, column: &Name, length: i32) -> Advice {
    let sql_table = sql_name(context, table);
    let sql_column = identifier(&column.text);
    let name = context.before.choose_constraint_name(&table.name, Some(&column.text), "check", &table.schema, &[]);
    let name = identifier(&name);
    // A CHECK is not the type that was asked for: no steps.
    Advice::new(
        "keep the type, limit the length with a CHECK that is NOT VALID, and validate it in a later transaction:",
    )
    .sql(format!(
        "ALTER TABLE {sql_table} ADD CONSTRAINT {name} CHECK (char_length({sql_column}) <= {length}) NOT VALID"
    ))
    .sql(format!("ALTER TABLE {sql_table} VALIDATE CONSTRAINT {name}"))
}

/// Why ADD COLUMN has to compute a value for every row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Filling<'a> {
    Default(&'a Expr),
    Serial(&'static str),
    Identity,
    Stored(&'a Expr),
    Domain,
}

/// ADD COLUMN in steps: the column, then its values in batches, then what needs them.
pub(crate) fn fill_later(
    context: &RuleContext<'_>,
    table: &RelationName,
    column: &ColumnDef,
    filling: Filling<'_>,
) -> Advice {
    if let Some(advice) = refusing_trigger::in_place_of_batches(context, table, &column.name.text) {
        return advice;
    }
    let advice = match filling {
        Filling::Default(default) => with_default(context, table, column, default),
        Filling::Serial(integer) => Some(with_sequence(context, table, column, integer, false)),
        Filling::Identity => {
            let integer = column.type_name.as_ref().and_then(|name| one_line(context, name.range));
            Some(with_sequence(context, table, column, integer.as_deref().unwrap_or("bigint"), true))
        }
        Filling::Stored(expression) => generated(context, table, column, expression),
        Filling::Domain => of_domain(context, table, column),
    };
    advice.unwrap_or_else(|| {
        Advice::new(
            "add the column without the default, set the default in a later statement, and \
                                        fill old rows in batches",
        )
    })
}

fn with_default(context: &RuleContext<'_>, table: &RelationName, column: &ColumnDef, default: &Expr) -> Option<Advice> {
    let (sql_table, name) = (sql_name(context, table), identifier(&column.name.text));
    let (type_text, value) = (type_text(context, column)?, one_line(context, default.range)?);
    let advice = Advice::new(
        "add the column without the default, set the default in a later statement, and fill old \
                              rows in batches:",
    )
    .sql(format!("ALTER TABLE {sql_table} ADD COLUMN {name} {type_text}"))
    .sql(format!("ALTER TABLE {sql_table} ALTER COLUMN {name} SET DEFAULT {value}"))
    .sql(batch(context, table, &format!("{name} = {value}"), &format!("{name} IS NULL")));
    let advice = then_constraints(context, table, column, advice, false);
    Some(with_backfill(context, table, column, advice, &format!("{name} = {value}"), &format!("{name} IS NULL")))
}

/// The steps of the advice, with the batches as a loop; none where there is no way to go through the table in parts.
fn with_backfill(
    context: &RuleContext<'_>,
    table: &RelationName,
    column: &ColumnDef,
    advice: Advice,
    assignment: &str,
    missing: &str,
) -> Advice {
    let Some(backfill) = backfill::step(context, table, assignment, missing) else { return advice };
    if has_more(column) {
        return advice;
    }
    let is_batch = |sql: &String| sql.starts_with("UPDATE ");
    let steps = advice.sql.iter().map(|sql| if is_batch(sql) { backfill.clone() } else { Step::new(sql) }).collect();
    advice.with_steps(context, steps)
}

fn with_sequence(
    context: &RuleContext<'_>,
    table: &RelationName,
    column: &ColumnDef,
    integer: &str,
    identity: bool,
) -> Advice {
    let (sql_table, name) = (sql_name(context, table), identifier(&column.name.text));
    // The sequence of an identity column gets the usual name.
    let label = if identity { "fill_seq" } else { "seq" };
    let chosen = context.before.choose_relation_name(&table.name, Some(&column.name.text), label, &table.schema, false);
    let sequence = sql_name(context, &RelationName { name: chosen, ..table.clone() });
    let next = format!("nextval('{}')", literal(&sequence));
    let owned = if identity { String::new() } else { format!(" OWNED BY {sql_table}.{name}") };
    let advice = Advice::new("add a plain column, set its default from a new sequence, and fill old rows in batches:")
        .sql(format!("ALTER TABLE {sql_table} ADD COLUMN {name} {integer}"))
        .sql(format!("CREATE SEQUENCE {sequence} AS {integer}{owned}"))
        .sql(format!("ALTER TABLE {sql_table} ALTER COLUMN {name} SET DEFAULT {next}"))
        .sql(batch(context, table, &format!("{name} = {next}"), &format!("{name} IS NULL")));
    let advice = then_constraints(context, table, column, advice, true);
    let fill =
        |advice| with_backfill(context, table, column, advice, &format!("{name} = {next}"), &format!("{name} IS NULL"));
    match (identity, everywhere_at_least(context, 12)) {
        (false, _) => fill(advice),
        (true, false) => advice.then(
            "keep the sequence: GENERATED AS IDENTITY needs NOT NULL, and before PostgreSQL 12 SET NOT \
                         NULL always reads the table",
        ),
        (true, true) => fill(then_identity(context, advice, column, &sql_table, &sequence)),
    }
}

/// Text within a string literal.
fn literal(text: &str) -> String {
    text.replace('\'', "''")
}

fn then_identity(context: &RuleContext<'_>, advice: Advice, column: &ColumnDef, table: &str, sequence: &str) -> Advice {
    let name = identifier(&column.name.text);
    let always = column.constraints.iter().any(|one| matches!(one.kind, ConstraintKind::Identity { always: true, .. }));
    let kind = if always { "ALWAYS" } else { "BY DEFAULT" };
    let (table_text, column_text) = (literal(table), literal(&column.name.text));
    advice.then("then make it an identity column that continues the sequence:").together(
        context,
        [
            format!("ALTER TABLE {table} ALTER COLUMN {name} DROP DEFAULT"),
            format!("ALTER TABLE {table} ALTER COLUMN {name} ADD GENERATED {kind} AS IDENTITY"),
            format!(
                "SELECT setval(pg_get_serial_sequence('{table_text}', '{column_text}'), nextval('{}'))",
                literal(sequence)
            ),
            format!("DROP SEQUENCE {sequence}"),
        ],
    )
}

/// Source: PostgreSQL 18 documentation, "ALTER TABLE": SET EXPRESSION is for columns that are generated already.
const STORED: &str = "PostgreSQL cannot turn an existing column into a generated one, so it cannot be filled in \
                     advance; a plain column that a trigger sets, or from PostgreSQL 18 on a virtual column, would be a \
                     different schema";

fn generated(context: &RuleContext<'_>, table: &RelationName, column: &ColumnDef, expression: &Expr) -> Option<Advice> {
    let (sql_table, name) = (sql_name(context, table), identifier(&column.name.text));
    let (type_text, value) = (type_text(context, column)?, one_line(context, expression.range)?);
    if everywhere_at_least(context, 18) {
        return Some(
            Advice::new("use a VIRTUAL generated column, which stores no values in the rows:")
                .sql(format!(
                    "ALTER TABLE {sql_table} ADD COLUMN {name} {type_text} GENERATED ALWAYS AS ({value}) VIRTUAL"
                ))
                .without_steps(STORED),
        );
    }
    Some(
        Advice::new("use a plain column that a trigger sets, and fill old rows in batches:")
            .sql(format!("ALTER TABLE {sql_table} ADD COLUMN {name} {type_text}"))
            .sql(batch(context, table, &format!("{name} = {value}"), &format!("{name} IS NULL")))
            .without_steps(STORED),
    )
}

fn of_domain(context: &RuleContext<'_>, table: &RelationName, column: &ColumnDef) -> Option<Advice> {
    let range = column.type_name.as_ref()?.range;
    let domain = one_line(context, range)?;
    let (sql_table, name) = (sql_name(context, table), identifier(&column.name.text));
    Some(
        Advice::new(format!(
            "use the base type of `{domain}` for the column, add the domain's condition to `{}` as a CHECK ... NOT \
             VALID, and run VALIDATE CONSTRAINT in a later transaction",
            table.name
        ))
        .then(format!(
            "(a later ALTER TABLE {sql_table} ALTER COLUMN {name} TYPE {domain} would rewrite the table, too)"
        ))
        .without_steps("a column of a different type with a CHECK would be a different schema"),
    )
}

/// The column's type and collation, without its constraints.
fn type_text(context: &RuleContext<'_>, column: &ColumnDef) -> Option<String> {
    let type_name = column.type_name.as_ref()?;
    let end = column.constraints.iter().map(|constraint| constraint.range.start).min();
    // COLLATE may stand behind constraints.
    if column.collation.as_ref().is_some_and(|collation| end.is_some_and(|end| end < collation.range().start)) {
        return None;
    }
    let text = TextRange::new(type_name.range.start, column.range.end);
    match end {
        Some(start) => without(context, text, TextRange::new(start, column.range.end)),
        None => one_line(context, text),
    }
}

/// NOT NULL and PRIMARY KEY or UNIQUE, once the rows have values.
fn then_constraints(
    context: &RuleContext<'_>,
    table: &RelationName,
    column: &ColumnDef,
    advice: Advice,
    implied_not_null: bool,
) -> Advice {
    let key = column.constraints.iter().find(|one| is_key(one));
    let primary = key.is_some_and(|key| matches!(key.kind, ConstraintKind::PrimaryKey(_)));
    let not_null = column.constraints.iter().any(|one| matches!(one.kind, ConstraintKind::NotNull { .. }));
    let columns: [SmolStr; 1] = [column.name.text.clone()];
    let mut advice = advice;
    if primary {
        advice = advice.all(not_null::steps_for_key(context, table, &columns));
    } else if implied_not_null || not_null {
        advice = advice.all(not_null::steps(context, table, &columns));
    }
    if let Some(key) = key {
        let (label, part) = if primary { ("pkey", None) } else { ("key", Some(column.name.text.as_str())) };
        let chosen = || context.before.choose_relation_name(&table.name, part, label, &table.schema, true);
        let index = key.name.as_ref().map_or_else(chosen, |name| name.text.clone());
        advice = advice.all(key::of_column(context, table, &column.name, key, &index).into_iter().flatten());
    }
    if has_more(column) {
        advice = advice.then(
            "then add the other constraints of the column as table constraints with NOT VALID, and validate them in a \
             later transaction",
        );
    }
    advice
}

fn is_key(constraint: &Constraint) -> bool {
    matches!(constraint.kind, ConstraintKind::PrimaryKey(_) | ConstraintKind::Unique(_))
}

/// Whether the steps would omit something: a CHECK, a foreign key, a second key, options of an identity.
fn has_more(column: &ColumnDef) -> bool {
    let is_omitted = |constraint: &Constraint| match &constraint.kind {
        ConstraintKind::Check(_) | ConstraintKind::ForeignKey(_) | ConstraintKind::Exclude(_) => true,
        ConstraintKind::Identity { options, .. } => !options.is_empty(),
        ConstraintKind::NotNull { .. } => constraint.name.is_some(),
        _ => false,
    };
    column.constraints.iter().any(is_omitted) || column.constraints.iter().filter(|one| is_key(one)).count() > 1
}

/// The integer type behind a serial one.
pub(crate) fn serial_integer(name: &str) -> Option<&'static str> {
    match name {
        "serial" | "serial4" => Some("integer"),
        "bigserial" | "serial8" => Some("bigint"),
        "smallserial" | "serial2" => Some("smallint"),
        _ => None,
    }
}
