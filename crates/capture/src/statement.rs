//! What a statement is to a capture: work of a migration, a row of the tool's own table, or the tool's own business.

use crate::question::is_question;
use crate::recording::Parameter;
use crate::settings::{self, is_of_client, session_setting};
use crate::tools::{MigrationTable, Naming, Tables};
use crate::value::constant;
use pgvet_syntax::ast::{
    Assignment, Ast, Discard, Expr, Insert, InsertSource, ObjectName, Part, QueryBody, Setting, Transaction,
};
use smol_str::SmolStr;

/// The part that a statement plays.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Role {
    /// Names of migrations enter the table of a tool.
    Rows(Vec<Row>),
    /// It concerns the tool's own tables alone.
    Bookkeeping,
    /// It asks for what the server or its catalogs say, and changes nothing.
    Question,
    Transaction(Transaction),
    /// A setting for the rest of the session, in SQL; `None`: its default.
    Setting {
        name: SmolStr,
        sql: Option<String>,
    },
    /// All settings get their defaults.
    ResetAll,
    /// A setting of the client, which no migration depends on.
    ClientSetting,
    /// The migration itself.
    Work,
}

/// A migration that the tool has noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) tool: SmolStr,
    pub(crate) name: String,
    pub(crate) naming: Naming,
    pub(crate) order: crate::tools::Row,
}

/// Returns the role of a statement. `text` is its text, `parameters` what was sent with it.
pub(crate) fn role(ast: &Ast, text: &str, parameters: &[Parameter], tables: &Tables) -> Role {
    match ast {
        Ast::Transaction(transaction) => Role::Transaction(transaction.clone()),
        Ast::Set(set) => match &set.setting {
            Setting::Transaction => Role::ClientSetting,
            Setting::ResetAll => Role::ResetAll,
            Setting::Value { name, .. } | Setting::Default { name } if is_of_client(name) => Role::ClientSetting,
            // It belongs to the transaction that it stands in.
            _ if set.local => Role::Work,
            Setting::Value { name, .. } => Role::Setting { name: name.clone(), sql: Some(text.to_owned()) },
            Setting::Default { name } => Role::Setting { name: name.clone(), sql: None },
        },
        Ast::Discard(Discard::All) => Role::ResetAll,
        Ast::Discard(_) | Ast::Deallocate(_) => Role::ClientSetting,
        _ if changes_others(ast, tables) => Role::Work,
        Ast::Insert(insert) if tables.is_own(&insert.table.name.name.text) => rows(insert, parameters, tables),
        Ast::Update(update) if tables.is_own(&update.table.name.name.text) => {
            changed_row(&update.table.name.name.text, &update.assignments, parameters, tables)
        }
        _ if concerns_only_own(ast, tables) => Role::Bookkeeping,
        Ast::Select(query) => match session_setting(query, parameters) {
            Some((name, _)) if is_of_client(&name) => Role::ClientSetting,
            Some((name, Some(value))) => {
                let sql = settings::statement(&name, &value);
                Role::Setting { name, sql: Some(sql) }
            }
            _ if is_question(ast, tables) => Role::Question,
            _ => Role::Work,
        },
        Ast::Other(node) if &**node == "VariableShowStmt" => Role::Question,
        _ => Role::Work,
    }
}

/// The rows that an INSERT writes to the table of a tool.
fn rows(insert: &Insert, parameters: &[Parameter], tables: &Tables) -> Role {
    let gives = |column: &str| insert.columns.iter().any(|own| own.text == column);
    let Some(table) = tables.of_row(&insert.table.name.name.text, gives) else { return Role::Bookkeeping };
    let InsertSource::Query(query) = &insert.source else { return Role::Bookkeeping };
    let row = |values: &[&Expr]| {
        let value = |column: &SmolStr| {
            let at = insert.columns.iter().position(|own| own.text == *column)?;
            constant(values.get(at)?, parameters)
        };
        named(table, value)
    };
    let found: Vec<Row> = match &query.body {
        QueryBody::Values(rows) => rows.iter().filter_map(|values| row(&values.iter().collect::<Vec<_>>())).collect(),
        QueryBody::Select(select) => {
            row(&select.targets.iter().map(|target| &target.value).collect::<Vec<_>>()).into_iter().collect()
        }
        QueryBody::SetOperation { .. } => Vec::new(),
    };
    if found.is_empty() { Role::Bookkeeping } else { Role::Rows(found) }
}

/// The row that an UPDATE leaves, as Alembic has one for each head.
fn changed_row(name: &str, assignments: &[Assignment], parameters: &[Parameter], tables: &Tables) -> Role {
    let assignment = |column: &str| assignments.iter().find(|assignment| assignment.column.text == column);
    let table = tables.of_change(name, |column| assignment(column).is_some());
    let row = table.and_then(|table| named(table, |column| constant(&assignment(column)?.value, parameters)));
    row.map_or(Role::Bookkeeping, |row| Role::Rows(vec![row]))
}

fn named(table: &MigrationTable, value: impl Fn(&SmolStr) -> Option<String>) -> Option<Row> {
    let parts: Option<Vec<String>> = table.columns.iter().map(&value).collect();
    let name = parts?.join(table.naming.separator());
    // goose and tern note that their table exists, Atlas an identifier of it, and golang-migrate that nothing has run.
    let is_mark = table.naming == Naming::Version && (name == "0" || name.starts_with(['.', '-']));
    let has_failed = table.success().and_then(|column| value(&column)).is_some_and(|value| is_false(&value));
    let is_migration = !name.is_empty() && !is_mark && !has_failed;
    is_migration.then(|| Row { tool: table.tool.clone(), name, naming: table.naming, order: table.row })
}

/// Whether a boolean reads as false, in SQL or as a parameter.
fn is_false(value: &str) -> bool {
    ["f", "false", "0"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether a statement changes rows of a table that is not the tool's, be it in its WITH clause.
fn changes_others(ast: &Ast, tables: &Tables) -> bool {
    let is_other = |name: &ObjectName| !tables.is_own(&name.name.text);
    let mut found = false;
    ast.visit(&mut |part| {
        found |= match part {
            Part::Insert(insert) => is_other(&insert.table.name),
            Part::Update(update) => is_other(&update.table.name),
            Part::Delete(delete) => is_other(&delete.table.name),
            Part::Merge(merge) => is_other(&merge.table.name),
            _ => false,
        }
    });
    found
}

/// Whether all relations that a statement names are tables of the tool.
fn concerns_only_own(ast: &Ast, tables: &Tables) -> bool {
    let is_own = |name: &ObjectName| tables.is_own(&name.name.text);
    let all = |names: &[(ObjectName, bool)]| names.iter().all(|(name, _)| is_own(name));
    match ast {
        Ast::CreateTable(create) => is_own(&create.name),
        Ast::CreateSchema(create) => create.name.as_ref().is_some_and(|name| tables.is_own_schema(&name.text)),
        Ast::AlterTable(alter) => is_own(&alter.name),
        Ast::CreateIndex(create) => is_own(&create.table),
        Ast::Truncate(truncate) => all(&truncate.tables),
        Ast::LockTable(lock) => all(&lock.tables),
        Ast::Comment(comment) => is_own(&comment.object),
        Ast::Drop(drop) => drop.objects.iter().all(|object| is_own(object.on.as_ref().unwrap_or(&object.name))),
        Ast::Delete(delete) => is_own(&delete.table.name),
        Ast::Copy(copy) => copy.table.as_ref().is_some_and(is_own),
        _ => false,
    }
}
