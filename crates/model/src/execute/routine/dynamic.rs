//! EXECUTE: SQL whose text is known before it runs, wholly or but for some names.

use super::Code;
use super::code::SqlCode;
use super::rows::Row;
use super::value::Value;
use crate::catalog::{Constraint, ConstraintKind, Oid, Relation};
use crate::effect::{Failure, UnknownReason};
use crate::execute::executed::{CodeKind, InFile};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{AlterTableAction, Ast, Name, ObjectName, Persistence};
use pgvet_syntax::plpgsql::{HOLE, SqlText};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::is_template;
use smol_str::SmolStr;
use std::collections::HashSet;
use std::sync::Arc;

/// First words of statements that leave definitions as they are.
const DATA_COMMANDS: &[&str] = &[
    "analyze", "comment", "copy", "delete", "grant", "insert", "lock", "refresh", "reindex", "revoke", "select", "set",
    "truncate", "update", "vacuum", "with",
];

/// First words of statements that change neither data nor definitions, unless a function that it calls does.
const READING_COMMANDS: &[&str] =
    &["close", "declare", "explain", "fetch", "move", "reset", "select", "set", "show", "table", "values"];

impl Executor<'_> {
    /// Runs a text; one that `yields_rows` to the code is a query.
    pub(super) fn dynamic(&mut self, expression: &SqlText, yields_rows: bool, code: &Code) -> Run {
        let value = code.expression(expression).and_then(|parsed| self.value(&parsed));
        let place = match &value {
            Some(Value::Text(text)) => literal(expression, text),
            _ => None,
        };
        let shown = place.map_or(InFile::At(expression.range), InFile::Shifted);
        self.run_text(value, expression.range, shown, yields_rows)
    }

    /// The number of rows that a query counts, whose text is known.
    pub(super) fn row_of_text(&self, expression: &SqlText, code: &Code) -> Option<Row> {
        let text = self.value(&*code.expression(expression)?)?;
        let read = SqlCode::read(text.as_text()?)?;
        match read.statements.as_slice() {
            [(_, statement)] => match &**statement {
                Ast::Select(query) => self.counts(query),
                _ => None,
            },
            _ => None,
        }
    }

    /// Runs a text that stands, or is called, at `range`, and is shown there or where it stands as it is.
    pub(in crate::execute) fn run_text(
        &mut self,
        text: Option<Value>,
        range: TextRange,
        shown: InFile,
        yields_rows: bool,
    ) -> Run {
        let Some(Value::Text(text)) = text else {
            self.skip_code(UnknownReason::DynamicSql, range, true);
            if !yields_rows {
                self.catalog.doubt_everything();
            }
            return Ok(());
        };
        let has_holes = text.contains(HOLE);
        // A hole where only a number can stand: `RESTART WITH` takes no name.
        let with_number = || if has_holes { SqlCode::read(&text.replace(HOLE, "1")) } else { None };
        let code = match SqlCode::read(&text).or_else(with_number) {
            Some(code) => code,
            None if has_holes || is_template(&text) => {
                self.skip_code(UnknownReason::DynamicSql, range, may_change(&text));
                self.doubt_named(&text, true);
                return Ok(());
            }
            None => return fail("42601", "syntax error in dynamic SQL", range),
        };
        // Variables of the code are not visible in the text that it executes.
        let variables = std::mem::take(&mut self.variables);
        let (catalog, session) = (self.catalog.clone(), self.session.clone());
        if has_holes {
            self.make_room(&code.statements);
        }
        let result = self.deeper(range, |executor| {
            executor.shown(&code.text, shown, CodeKind::Text, |executor| executor.run_all(&code.statements))
        });
        if !yields_rows {
            code.statements.iter().for_each(|(_, statement)| self.note_missing_functions(statement));
        }
        self.variables = variables;
        if !has_holes {
            return result;
        }
        let reason = if result.is_ok() { UnknownReason::DynamicNames } else { UnknownReason::DynamicTarget };
        self.skip_code(reason, range, may_change(&text));
        if result.is_err() {
            self.forget_refused();
            self.catalog = catalog;
            self.session = session;
        }
        self.doubt_named(&text, result.is_err());
        code.statements.iter().for_each(|(_, statement)| self.doubt_constraints(statement));
        self.mark_unknown_parts();
        Ok(())
    }

    /// EXECUTE of a prepared statement, whose parameters are not known.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/prepare.c`, `ExecuteQuery`.
    pub(in crate::execute) fn execute_prepared(&mut self, name: &Name) -> Run {
        let Some(prepared) = self.session.prepared.get(&name.text).cloned() else {
            // The session may have prepared it before the migration.
            self.skip_code(UnknownReason::PreparedStatement { name: name.text.clone() }, name.range, true);
            return Ok(());
        };
        let variables = std::mem::take(&mut self.variables);
        let result = self.deeper(name.range, |executor| {
            let shown = InFile::At(name.range);
            match SqlCode::read(&prepared.text) {
                Some(code) => {
                    executor.shown(&code.text, shown, CodeKind::Text, |executor| executor.run_all(&code.statements))
                }
                None => executor
                    .shown(&Arc::from(""), shown, CodeKind::Text, |executor| executor.statement(&prepared.statement)),
            }
        });
        self.note_missing_functions(&prepared.statement);
        self.variables = variables;
        result
    }

    /// After statements of which a part is not known: the tables that the text names may have other parts than these.
    /// Where the statements could not be followed and name none, they may have changed anything.
    fn doubt_named(&mut self, text: &str, lost: bool) {
        let words: HashSet<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).collect();
        let named = words.into_iter().flat_map(|word| self.catalog.relations_with_name(word));
        let named: Vec<Oid> = named.filter(|relation| relation.kind.is_table()).map(|relation| relation.oid).collect();
        let defines = !DATA_COMMANDS.contains(&command(text).as_str());
        if lost && defines && named.is_empty() {
            self.catalog.doubt_everything();
        }
        for oid in named {
            if defines {
                self.catalog.doubt(oid);
            }
            self.catalog.relation_mut(oid).unknown_parts |= lost;
            if lost && defines {
                self.doubt_constraints_of(oid, HOLE);
            }
        }
    }

    /// After a statement with names that are not known: the constraints that it may have dropped or changed.
    fn doubt_constraints(&mut self, statement: &Ast) {
        let Ast::AlterTable(alter) = statement else { return };
        for command in &alter.commands {
            let name = match &command.action {
                AlterTableAction::DropConstraint { name, .. } => name,
                AlterTableAction::AlterConstraint(change) => &change.name,
                _ => continue,
            };
            if !name.text.contains(HOLE) && !has_hole(&alter.name) {
                continue;
            }
            for oid in self.tables_that_may_be(&alter.name) {
                self.doubt_constraints_of(oid, &name.text);
            }
        }
    }

    /// The tables that a name with unknown parts may mean, and those that inherit from them.
    fn tables_that_may_be(&self, name: &ObjectName) -> Vec<Oid> {
        let named: Vec<Oid> = if has_hole(name) {
            let is_meant =
                |relation: &&Arc<Relation>| relation.kind.is_table() && may_be(&name.name.text, &relation.name);
            self.catalog.relations().filter(is_meant).map(|relation| relation.oid).collect()
        } else {
            self.catalog.find_relation(name, &self.session.settings.search_path()).into_iter().collect()
        };
        let below: Vec<Oid> = named.iter().flat_map(|oid| self.descendants(*oid)).collect();
        named.into_iter().chain(below).collect()
    }

    /// Notes the constraints of a table that a name with unknown parts may mean.
    fn doubt_constraints_of(&mut self, table: Oid, name: &str) {
        let is_meant = |constraint: &Constraint| {
            let is_listed = !matches!(constraint.kind, ConstraintKind::NotNull { .. });
            is_listed && !constraint.may_be_gone && may_be(name, &constraint.name)
        };
        if self.catalog.relation(table).constraints.iter().any(|constraint| is_meant(constraint)) {
            let constraints = &mut self.catalog.relation_mut(table).constraints;
            constraints.update_where(is_meant, |constraint| constraint.may_be_gone = true);
            self.catalog.doubt(table);
        }
    }

    /// Whether PostgreSQL might accept what the catalog refuses, because unknown code has changed an object of the
    /// statement: the relations that it has locked so far, and the one whose name it needs.
    pub(in crate::execute) fn is_doubtful(&self, failure: &Failure) -> bool {
        let mut about = self.effects.locks.iter().map(|lock| lock.relation.oid).chain(self.in_the_way).peekable();
        let in_doubt = if about.peek().is_none() {
            self.catalog.doubts_everything()
        } else {
            about.any(|relation| self.catalog.is_doubtful(relation))
        };
        in_doubt && depends_on_catalog(failure)
    }

    /// A table that run time names is another one each time: an older one under the same placeholder makes way.
    fn make_room(&mut self, statements: &[(SqlText, Arc<Ast>)]) {
        for (_, statement) in statements {
            let Ast::CreateTable(create) = &**statement else { continue };
            let name = &create.name.name.text;
            let schema = self.schema_for(&create.name, create.persistence == Persistence::Temporary);
            if !name.contains(HOLE) {
                continue;
            }
            if let Some(older) = self.catalog.relation_named(&schema, name) {
                let mut names = (1..u32::MAX).map(|at| SmolStr::from(format!("{name}_{at}")));
                let free = names.find(|free| self.catalog.relation_named(&schema, free).is_none());
                if let Some(free) = free {
                    if let Some(row_type) = self.catalog.type_named(&schema, name) {
                        self.catalog.rename_type(row_type, schema.clone(), free.clone());
                    }
                    self.catalog.rename_relation(older, schema, free);
                }
            }
        }
    }

    /// Notes on the relations whose names run time makes that they stand for any number of others, and on the
    /// relations that they belong to that not all of their parts are known.
    fn mark_unknown_parts(&mut self) {
        let open: Vec<Oid> = self.catalog.open_relations().map(|relation| relation.oid).collect();
        for oid in open {
            let relation = self.catalog.relation_mut(oid);
            relation.known = false;
            let table = relation.index().map(|index| index.table);
            let owners: Vec<Oid> = relation.parents.iter().copied().chain(table).collect();
            for owner in owners {
                if self.catalog.get_relation(owner).is_some() {
                    self.catalog.relation_mut(owner).unknown_parts = true;
                }
            }
        }
    }
}

/// Whether a name with unknown parts may be this one.
pub(crate) fn may_be(made: &str, name: &str) -> bool {
    match made.split_once(HOLE) {
        None => made == name,
        Some((start, rest)) => {
            let end = rest.rsplit(HOLE).next().unwrap_or_default();
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

fn has_hole(name: &ObjectName) -> bool {
    name.name.text.contains(HOLE) || name.schema.as_ref().is_some_and(|schema| schema.text.contains(HOLE))
}

/// The first word of a text.
fn command(text: &str) -> String {
    text.trim_start().split(char::is_whitespace).next().unwrap_or_default().to_ascii_lowercase()
}

/// Whether the text could change data or definitions, judging by its first word.
pub(in crate::execute) fn may_change(text: &str) -> bool {
    !READING_COMMANDS.contains(&command(text).as_str())
}

/// Where a text begins that is one constant and is in the file as it is, without escapes.
fn literal(expression: &SqlText, text: &str) -> Option<u32> {
    let written = expression.text.as_str();
    let start = written.find(text).filter(|_| !text.is_empty())?;
    let (before, after) = (written[..start].trim_start(), written[start + text.len()..].trim_end());
    let is_quote = before == "'" || before.len() >= 2 && before.starts_with('$') && before.ends_with('$');
    (is_quote && before == after).then_some(expression.range.start + start as u32)
}

/// Whether another catalog would accept the statement. Not if code raises an exception, a transaction block forbids it,
/// or its text does not parse.
fn depends_on_catalog(failure: &Failure) -> bool {
    failure.raised.is_none() && failure.sqlstate != "42601" && !failure.sqlstate.starts_with("25")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_parts_of_a_name_may_be_anything() {
        assert!(may_be("orders", "orders"));
        assert!(!may_be("orders", "orders_2024"));
        assert!(may_be(&format!("orders_{HOLE}"), "orders_2024"));
        assert!(!may_be(&format!("orders_{HOLE}"), "users"));
        assert!(may_be(&format!("{HOLE}_of_{HOLE}_log"), "a_of_b_log"));
        assert!(!may_be(&format!("orders_{HOLE}_orders"), "orders_orders"));
    }
}
