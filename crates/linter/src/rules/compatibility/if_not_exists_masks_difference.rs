//! IF NOT EXISTS of something that exists and is different.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead};
use crate::rules::text::{enumerate, identifier, sql_name};
use pgvet_model::builtin::type_by_oid;
use pgvet_model::catalog::{Catalog, ConstraintKind, Relation, RelationKind, SqlType, TypeKind};
use pgvet_model::effect::RelationName;
use pgvet_model::execute::ask_about_types;
use pgvet_model::routine::Trial;
use pgvet_syntax::ast::{
    AlterTable, AlterTableAction, AlterTableCommand, Ast, CreateIndex, CreateTable, CreateType, CreateTypeKind, Name,
};
use smol_str::SmolStr;
use std::fmt::{Display, Formatter};

declare_rule! {
    /// `IF NOT EXISTS` in a statement, although an object with the same name already exists and has a different
    /// definition.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL compares names only. The statement only raises a notice, the migration is recorded as applied, and
    /// code that relies on the new definition fails later. For example, the column has a different type, the table
    /// lacks the new column, or the index is on another table. An index can also be invalid, because an earlier
    /// `CREATE INDEX CONCURRENTLY` failed.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, age text);
    /// -- migration:
    /// ALTER TABLE users ADD COLUMN IF NOT EXISTS age integer;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, age text);
    /// -- migration:
    /// ALTER TABLE users ADD COLUMN age_years integer;
    /// ```
    ///
    /// The rule also reports:
    ///
    /// - a name that already belongs to another object, if `EXCEPTION WHEN duplicate_object THEN NULL` hides the error
    /// - an existing enum that lacks labels of the new definition
    ///
    /// ## When it is not reported
    ///
    /// - an existing object that has all parts that the statement defines, and possibly more
    /// - a table, if later statements of the migration add the missing columns
    /// - a table, if later statements of the migration change its columns to the types in the new definition
    /// - an object that no migration defines completely
    ///
    /// pgvet does not compare defaults and constraints.
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible` if another index of the table has everything that the statement defines. For example,
    /// the existing index is not unique, but the primary key has the same columns.
    ///
    /// ## Other linters
    ///
    /// squawk and pgls ask for `IF NOT EXISTS` everywhere. pgvet reports `IF NOT EXISTS` if it hides a difference.
    "if-not-exists-masks-difference", Compatibility, Warning,
    { sources: &["pg-migration-lint/PGM403", "migrationpilot/MP070"] }
    statement = check,
}

/// A name that no schema has.
const PROBE: &str = "pgvet_if_not_exists";

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if let Some(failure) = &context.effects.fails {
        if context.code.as_ref().is_some_and(|code| code.caught) && ["42P07", "42710"].contains(&failure.sqlstate) {
            caught(context, reporter);
        }
        return;
    }
    match context.ast {
        Ast::CreateTable(create) if create.if_not_exists && create.partition_of.is_none() => {
            table(context, reporter, create);
        }
        Ast::AlterTable(alter) => columns(context, reporter, alter),
        Ast::CreateIndex(create) if create.if_not_exists => index(context, reporter, create),
        _ => {}
    }
}

/// A refusal because a name is taken, which an exception handler swallows.
fn caught(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    match context.ast {
        Ast::CreateTable(create) if create.partition_of.is_none() => table(context, reporter, create),
        Ast::AlterTable(alter) => constraint(context, reporter, alter),
        Ast::CreateIndex(create) => index(context, reporter, create),
        Ast::CreateType(create) => labels(context, reporter, create),
        _ => {}
    }
}

/// An enum that exists without some of the labels.
fn labels(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, create: &CreateType) {
    let CreateTypeKind::Enum(wanted) = &create.kind else { return };
    let schemas = context.session.settings.schemas_of(&create.name);
    let Some(schema) = schemas.first() else { return };
    let found = context.before.type_named(schema, &create.name.name.text).and_then(|oid| context.before.get_type(oid));
    let Some(TypeKind::Enum { labels }) = found.map(|found| &found.kind) else { return };
    let missing: Vec<&str> = wanted.iter().filter(|label| !labels.contains(*label)).map(SmolStr::as_str).collect();
    if missing.is_empty() {
        return;
    }
    let name = &create.name.name.text;
    let values = if missing.len() == 1 { "value" } else { "values" };
    let message = format!(
        "the enum `{name}` already exists without the {values} {}: this CREATE TYPE fails and adds nothing, and the \
         EXCEPTION block hides the error",
        enumerate(missing)
    );
    let help = format!(
        "add each value with ALTER TYPE (on PostgreSQL 11 and older, outside a transaction):\n    ALTER TYPE {} ADD \
         VALUE '...';",
        context.text(create.name.range())
    );
    reporter.report(create.name.range(), message).help(help).emit();
}

/// A constraint whose name another one of the table has. PostgreSQL truncates names to 63 bytes.
fn constraint(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, alter: &AlterTable) {
    let path = context.session.settings.search_path();
    let Some(oid) = context.before.find_relation(&alter.name, &path) else { return };
    let table = context.before.relation(oid);
    for command in &alter.commands {
        let AlterTableAction::AddConstraint(constraint) = &command.action else { continue };
        let Some(name) = &constraint.name else { continue };
        let Some(existing) = table.constraint(&name.text) else { continue };
        let mut probe = constraint.clone();
        probe.name = Some(Name::new(PROBE, name.range));
        let action = AlterTableAction::AddConstraint(probe);
        let command = AlterTableCommand { action, range: command.range, keyword: command.keyword };
        let catalog = tried(context, &Ast::AlterTable(AlterTable { commands: vec![command], ..alter.clone() }));
        let Some(wanted) = catalog.get_relation(oid).and_then(|table| table.constraint(PROBE)) else { continue };
        if says_the_same(&existing.kind, &wanted.kind) {
            continue;
        }
        let (truncated, help) = if name.range.end - name.range.start > LONGEST_NAME {
            (
                ", and PostgreSQL truncates the new name to the same 63 bytes",
                "give the constraint a name that differs in its first 63 bytes",
            )
        } else {
            ("", "give the constraint another name")
        };
        let message = format!(
            "this constraint is never added, and the EXCEPTION block hides the error: `{}` already has another \
             constraint named `{}`{truncated}",
            table.name, name.text
        );
        reporter.report(name.range, message).help(help).emit();
    }
}

/// What a name can have, in bytes: PostgreSQL's NAMEDATALEN - 1.
const LONGEST_NAME: u32 = 63;

fn says_the_same(one: &ConstraintKind, other: &ConstraintKind) -> bool {
    use ConstraintKind as K;
    match (one, other) {
        (K::ForeignKey(one), K::ForeignKey(other)) => {
            (one.referenced, &one.columns, &one.referenced_columns)
                == (other.referenced, &other.columns, &other.referenced_columns)
        }
        (K::PrimaryKey { columns, .. }, K::PrimaryKey { columns: other, .. })
        | (K::Unique { columns, .. }, K::Unique { columns: other, .. }) => columns == other,
        // The same expression can be written in many ways.
        (K::Check { columns, .. }, K::Check { columns: other, .. }) => columns == other,
        (K::NotNull { column }, K::NotNull { column: other }) => column == other,
        (K::Exclude { .. }, K::Exclude { .. }) => true,
        _ => false,
    }
}

/// What a statement would have made, under another name.
fn tried(context: &RuleContext<'_>, ast: &Ast) -> Catalog {
    let path = context.session.settings.search_path();
    let mut trial = Trial::new(context.before, &path, context.target.version());
    trial.run(ast);
    trial.catalog().clone()
}

fn table(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, create: &CreateTable) {
    let path = context.session.settings.search_path();
    let Some(oid) = context.before.find_relation(&create.name, &path) else { return };
    let existing = context.before.relation(oid);
    if !existing.known {
        return;
    }
    let mut probe = create.clone();
    probe.name.name = Name::new(PROBE, create.name.name.range);
    let catalog = tried(context, &Ast::CreateTable(Box::new(probe)));
    let schema = create.name.schema.as_ref().map_or(&existing.schema, |schema| &schema.text);
    let Some(wanted) = catalog.relation_named(schema, PROBE).map(|oid| catalog.relation(oid)) else { return };
    let name = &create.name.name.text;
    if !existing.kind.is_table() {
        let message = format!("`{name}` already exists and is not a table: this statement does nothing");
        reporter.report(create.name.range(), message).help("give the table another name").emit();
        return;
    }
    // Later statements of the migration may add what is missing.
    let end = ahead(context, &existing.name, Until::EndOfMigration);
    let existing = end.get_relation(oid).map_or(existing, |relation| &**relation);
    let missing: Vec<&str> = wanted
        .columns
        .iter()
        .filter(|column| existing.column(&column.name).is_none())
        .map(|column| column.name.as_str())
        .collect();
    if !missing.is_empty() {
        let message = format!(
            "`{name}` already exists without {}: this statement does nothing, and code that uses a missing column \
             fails",
            enumerate(missing.iter().copied())
        );
        let help = format!(
            "add the missing columns:\n    ALTER TABLE {} ADD COLUMN {} ...;",
            context.text(create.name.range()),
            identifier(missing[0])
        );
        reporter.report(create.name.range(), message).help(help).emit();
        return;
    }
    let differs = wanted.columns.iter().find_map(|column| {
        let existing = existing.column(&column.name)?;
        differ(&catalog, existing.sql_type, column.sql_type).then_some((column, existing.sql_type))
    });
    if let Some((column, other)) = differs {
        let (has, wants) = types(context, other, column.sql_type);
        let message = format!(
            "`{name}` already exists, and its column `{}` has type {has}, not {wants}: this statement does nothing",
            column.name
        );
        reporter
            .report(create.name.range(), message)
            .help(
                "use the existing type, or change it with ALTER COLUMN ... TYPE ... USING and an expression that \
                 converts the values",
            )
            .emit();
    }
}

/// Whether both types are known and different. A type that was dropped and created again under its name is the same.
fn differ(catalog: &Catalog, ours: SqlType, theirs: SqlType) -> bool {
    let is_assumed = |sql_type: SqlType| {
        let definition = catalog.get_type(sql_type.oid);
        definition.is_some_and(|definition| matches!(definition.kind, pgvet_model::catalog::TypeKind::Assumed))
    };
    let is_text = |sql_type: SqlType| {
        let name = type_by_oid(sql_type.oid.0).map(|row| row.name);
        matches!(name, Some("text" | "varchar")) && sql_type.typmod < 0
    };
    if is_text(ours) && is_text(theirs) {
        return false;
    }
    ours != theirs && ours.is_known() && theirs.is_known() && !is_assumed(ours) && !is_assumed(theirs)
}

fn types(context: &RuleContext<'_>, has: SqlType, wants: SqlType) -> (String, String) {
    let path = context.session.settings.search_path();
    ask_about_types(context.after, path, context.target, |types| (types.format_type(has), types.format_type(wants)))
}

fn columns(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, alter: &AlterTable) {
    let path = context.session.settings.search_path();
    let Some(oid) = context.before.find_relation(&alter.name, &path) else { return };
    let table = context.before.relation(oid);
    for command in &alter.commands {
        let AlterTableAction::AddColumn { column, if_not_exists: true } = &command.action else { continue };
        let Some(existing) = table.column(&column.name.text) else { continue };
        let mut probe = column.clone();
        probe.name = Name::new(PROBE, column.name.range);
        let action = AlterTableAction::AddColumn { column: probe, if_not_exists: true };
        let command = AlterTableCommand { action, range: command.range, keyword: command.keyword };
        let catalog = tried(context, &Ast::AlterTable(AlterTable { commands: vec![command], ..alter.clone() }));
        let Some(wanted) = catalog.get_relation(oid).and_then(|table| table.column(PROBE)) else { continue };
        if differ(&catalog, existing.sql_type, wanted.sql_type) {
            let (has, wants) = types(context, existing.sql_type, wanted.sql_type);
            let message = format!(
                "column `{}.{}` already exists with type {has}, not {wants}: this statement does nothing",
                table.name, column.name.text
            );
            let help = "give the new column another name, or change the type of the existing one with ALTER COLUMN ... \
                        TYPE";
            reporter.report(column.name.range, message).help(help).emit();
        }
    }
}

fn index(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, create: &CreateIndex) {
    let path = context.session.settings.search_path();
    let (Some(name), Some(table)) = (&create.name, context.before.find_relation(&create.table, &path)) else { return };
    let table = context.before.relation(table);
    let Some(existing) = context.before.relation_named(&table.schema, &name.text) else { return };
    let existing = context.before.relation(existing);
    let Some(difference) = difference(context, create, table, existing) else { return };
    let message = format!("`{}` already exists and {difference}: this statement does nothing", name.text);
    let help = match (difference, existing.index()) {
        // PostgreSQL refuses CONCURRENTLY for the index of a partitioned table, and any DROP for one that is attached to it.
        (Difference::Invalid, Some(index)) if existing.kind == RelationKind::Index && index.parent.is_none() => {
            format!(
                "drop it first, outside a transaction:\n    DROP INDEX CONCURRENTLY IF EXISTS {};",
                sql_name(context, &RelationName::existing(existing))
            )
        }
        _ => "give the new index another name".to_owned(),
    };
    let guaranteed = guaranteed_by(context, create, table, existing)
        .map(|other| Assumption::NeededThoughGuaranteed { index: name.text.clone(), by: other.name.clone() });
    reporter.report(name.range, message).help(help).assuming(guaranteed).emit();
}

/// Another index of the table that has everything that CREATE INDEX asks for. A unique index on the same columns in another
/// order rejects the same rows.
fn guaranteed_by<'c>(
    context: &RuleContext<'c>,
    create: &CreateIndex,
    table: &Relation,
    existing: &Relation,
) -> Option<&'c Relation> {
    let is_same_key = |other: &Relation| {
        let wanted: Option<Vec<&SmolStr>> = create.elements.iter().map(|element| element.key.as_column()).collect();
        let columns = other.index().and_then(|index| index.plain_columns());
        let pair = wanted.zip(columns).filter(|_| create.unique);
        pair.is_some_and(|(wanted, columns)| {
            wanted.len() == columns.len() && wanted.iter().all(|column| columns.contains(column))
        })
    };
    let is_enough = |other: &Relation| {
        let Some(index) = other.index() else { return false };
        let nulls = !create.nulls_not_distinct || index.nulls_not_distinct || index.primary;
        let is_whole = index.valid && index.unique >= create.unique && index.predicate.is_none() && nulls;
        is_whole && (difference(context, create, table, other).is_none() || is_same_key(other))
    };
    let others = table.indexes.iter().filter(|oid| **oid != existing.oid);
    others.filter_map(|oid| context.before.get_relation(*oid)).map(|other| &**other).find(|other| is_enough(other))
}

/// What an index has that CREATE INDEX does not ask for.
enum Difference {
    NoIndex,
    OtherTable(SmolStr),
    Invalid,
    OtherColumns,
    NotUnique,
    Partial,
    OtherRows,
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoIndex => "is not an index",
            Self::OtherTable(table) => return write!(f, "is an index on `{table}`"),
            Self::Invalid => "is invalid",
            Self::OtherColumns => "has different columns",
            Self::NotUnique => "is not unique",
            Self::Partial => "is a partial index, which covers only some of the rows",
            Self::OtherRows => "has a different WHERE clause",
        })
    }
}

fn difference(
    context: &RuleContext<'_>,
    create: &CreateIndex,
    table: &Relation,
    existing: &Relation,
) -> Option<Difference> {
    let Some(index) = existing.index() else {
        let is_shown = existing.known || existing.kind != RelationKind::Index;
        return is_shown.then_some(Difference::NoIndex);
    };
    if index.table != table.oid {
        let other = context.before.get_relation(index.table)?;
        return Some(Difference::OtherTable(other.name.clone()));
    }
    // Without an index on each partition that of a partitioned table is invalid, and nothing is wrong with it.
    if !index.valid && existing.kind == RelationKind::Index {
        return Some(Difference::Invalid);
    }
    let same_keys = index.elements.len() == create.elements.len()
        && index.elements.iter().zip(&create.elements).all(|(ours, theirs)| ours.key.is_same(&theirs.key));
    if !same_keys {
        return Some(Difference::OtherColumns);
    }
    if create.unique && !index.unique {
        return Some(Difference::NotUnique);
    }
    match (&index.predicate, &create.predicate) {
        (Some(_), None) => Some(Difference::Partial),
        (Some(ours), Some(theirs)) if !ours.is_same(theirs) => Some(Difference::OtherRows),
        _ => None,
    }
}
