//! What to do instead, as SQL that PostgreSQL accepts for this object and all versions that are configured.
//!
//! A recipe never uses what PostgreSQL refuses: CONCURRENTLY and USING INDEX on partitioned tables, CONCURRENTLY on
//! indexes of constraints, NOT VALID foreign keys of partitioned tables before 18. The tests run every recipe.
//!
//! Advice that says all there is to do has [`Step`]s as well, which can take the place of the statement.

pub(crate) mod backfill;
pub(crate) mod column;
pub(crate) mod constraint;
pub(crate) mod index;
pub(crate) mod key;
pub(crate) mod not_null;
mod obstacle;
pub(crate) mod offer;
pub(crate) mod refusing_trigger;
mod replace;

#[cfg(test)]
mod tests;

use crate::fix::Step;
use crate::rule::RuleContext;
use crate::rules::statement::altered::Altered;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::Relation;
use pgvet_model::effect::RelationName;
use pgvet_model::migration::TransactionMode;
use pgvet_model::runner::AfterCommit;
use pgvet_syntax::ast::{AlterTable, AlterTableAction, AlterTableCommand, Ast};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::fmt::Display;
use std::sync::Arc;

/// A next step: sentences, and SQL on lines of its own.
#[derive(Debug, Clone)]
pub(crate) struct Advice {
    text: String,
    /// The SQL of the text.
    sql: Vec<String>,
    steps: Vec<Step>,
    /// Why there are no steps.
    obstacle: Option<String>,
}

impl Advice {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { text: sentence.into(), sql: Vec::new(), steps: Vec::new(), obstacle: None }
    }

    /// A statement on a line of its own.
    pub(crate) fn sql(mut self, statement: impl Display) -> Self {
        let statement = statement.to_string();
        self.text = format!("{}\n    {statement};", self.text);
        self.sql.push(statement);
        self
    }

    /// Its SQL is all there is to do, if the statement has only the command that it is about.
    pub(crate) fn complete(self, context: &RuleContext<'_>) -> Self {
        let steps = self.sql.iter().map(Step::new).collect();
        self.with_steps(context, steps)
    }

    /// These steps are all there is to do, if the statement has only the command that it is about.
    pub(crate) fn with_steps(mut self, context: &RuleContext<'_>, steps: Vec<Step>) -> Self {
        let replaceable = match context.ast {
            Ast::AlterTable(statement) => can_be_replaced(context, statement),
            _ => true,
        };
        if replaceable {
            self.steps = steps;
        }
        if let (Some(unseen), Some(first)) = (unseen_target(context), self.steps.first_mut()) {
            let note = format!("No migration shows {unseen}: these steps are correct if it is an ordinary table.");
            first.note.get_or_insert(note);
        }
        self
    }

    /// There are no steps, for this reason.
    pub(crate) fn without_steps(self, obstacle: impl Into<String>) -> Self {
        Self { obstacle: Some(obstacle.into()), ..self }
    }

    /// Its SQL is all there is to do, for both commands of the statement.
    pub(crate) fn complete_pair(mut self) -> Self {
        self.steps = self.sql.iter().map(Step::new).collect();
        self
    }

    pub(crate) fn all(self, statements: impl IntoIterator<Item = String>) -> Self {
        statements.into_iter().fold(self, Self::sql)
    }

    /// Statements that must commit together. BEGIN and COMMIT are shown where nothing else opens the transaction.
    pub(crate) fn together(self, context: &RuleContext<'_>, statements: impl IntoIterator<Item = String>) -> Self {
        let statements: Vec<String> = statements.into_iter().collect();
        let shown = together(context, &statements);
        let has_begin = shown.len() > statements.len();
        let mut advice = if has_begin { self } else { self.then("in one transaction:") };
        for statement in shown {
            advice.text = format!("{}\n    {statement};", advice.text);
        }
        // Steps run outside a transaction.
        advice.sql.push("BEGIN".to_owned());
        advice.sql.extend(statements);
        advice.sql.push("COMMIT".to_owned());
        advice
    }

    /// Another sentence.
    pub(crate) fn then(mut self, sentence: impl Display) -> Self {
        self.text = format!("{}\n{sentence}", self.text);
        self
    }
}

impl From<Advice> for String {
    fn from(advice: Advice) -> Self {
        advice.text
    }
}

/// Whether it has one command, and nothing that the steps would omit.
fn can_be_replaced(context: &RuleContext<'_>, statement: &AlterTable) -> bool {
    let relation = Altered::of(context).and_then(|altered| before(context, altered.table));
    let known = relation.is_some_and(|relation| relation.known);
    let has_children = relation.is_none_or(|relation| !relation.children.is_empty());
    let guarded =
        |command: &AlterTableCommand| matches!(command.action, AlterTableAction::AddColumn { if_not_exists: true, .. });
    statement.commands.len() == 1
        && !statement.commands.iter().any(guarded)
        && (known || !statement.if_exists)
        && !(statement.only && has_children)
}

/// The table that the statement alters or indexes.
fn target<'c>(context: &RuleContext<'c>) -> Option<&'c RelationName> {
    let range = match context.ast {
        Ast::AlterTable(statement) => statement.name.range(),
        Ast::CreateIndex(statement) => statement.table.range(),
        _ => return None,
    };
    Some(&context.effects.locks.iter().find(|lock| lock.range == range)?.relation)
}

/// The same, where it is not known what kind of table it is.
fn unseen_target(context: &RuleContext<'_>) -> Option<SmolStr> {
    let target = target(context)?;
    before(context, target).is_none_or(|relation| !relation.known).then(|| target.name.clone())
}

/// Whether this is true for every configured version. Advice must work for all of them.
pub(crate) fn everywhere_at_least(context: &RuleContext<'_>, major: u8) -> bool {
    context.settings.versions.from.0 >= major
}

/// Statements that must commit together, with BEGIN and COMMIT unless the migration tool opens the transaction, or one is
/// open.
pub(crate) fn together(context: &RuleContext<'_>, statements: &[String]) -> Vec<String> {
    let is_open = context.in_block() || context.migration.transaction == TransactionMode::Transaction;
    let (begin, commit) = if is_open { (None, None) } else { (Some("BEGIN".to_owned()), Some("COMMIT".to_owned())) };
    begin.into_iter().chain(statements.iter().cloned()).chain(commit).collect()
}

/// Where a statement can run that PostgreSQL refuses in a transaction block, and how the migration tool leaves its own.
pub(crate) fn outside_transaction(context: &RuleContext<'_>) -> String {
    if context.code.is_some() && !context.in_block() {
        return "in a statement of its own, outside of functions, DO blocks and transactions".to_owned();
    }
    let Some(block) = &context.session.block else { return "outside a transaction".to_owned() };
    // What follows a COMMIT in the string is in a transaction, too.
    let is_sent_together = match context.migration.transaction {
        TransactionMode::SingleString => true,
        TransactionMode::Transaction => context.migration.runner.after_commit == AfterCommit::Together,
        TransactionMode::Autocommit => false,
    };
    if block.explicit && context.code.is_none() && !is_sent_together {
        // What the transaction has changed in the table, such as a new column, is not there before it.
        let is_changed = target(context).is_some_and(|target| block.locks.blocks_writes(target.oid));
        return if is_changed { "after COMMIT" } else { "before BEGIN or after COMMIT" }.to_owned();
    }
    let opt_out = context.settings.opt_outs.get(&context.file).map(|edit| edit.text.trim());
    match (context.migration.transaction, opt_out.filter(|text| !text.is_empty())) {
        (TransactionMode::Transaction, Some(opt_out)) => {
            format!("in a migration of its own that runs outside a transaction (`{opt_out}`)")
        }
        (TransactionMode::SingleString, _) => {
            "in a migration of its own, because statements that are sent together run in one transaction".to_owned()
        }
        _ => "in a migration of its own that runs outside a transaction".to_owned(),
    }
}

/// A view under the name that a table had, with the access rules of the table; `None` where it would evade row-level
/// security. The new name of the table is `moved`.
///
/// Source: PostgreSQL 15 release notes: before, a view reads tables with the privileges of its owner.
pub(crate) fn view_in_place(
    context: &RuleContext<'_>,
    table: &RelationName,
    columns: &str,
    moved: &str,
) -> Option<Vec<String>> {
    let is_secured = before(context, table).is_some_and(|relation| relation.row_security);
    if is_secured && !everywhere_at_least(context, 15) {
        return None;
    }
    let name = sql_name(context, table);
    let option = if is_secured { " WITH (security_invoker = true)" } else { "" };
    let mut statements = vec![format!("CREATE VIEW {name}{option} AS SELECT {columns} FROM {moved}")];
    let mut granted: Vec<(&SmolStr, Vec<String>)> = Vec::new();
    for privilege in context.before.privileges(table.oid) {
        let word = privilege.privilege.to_ascii_uppercase();
        let text = match &privilege.column {
            Some(column) => format!("{word} ({})", identifier(column)),
            None => word,
        };
        match granted.iter_mut().find(|(grantee, _)| *grantee == &privilege.grantee) {
            Some((_, words)) => words.push(text),
            None => granted.push((&privilege.grantee, vec![text])),
        }
    }
    statements.extend(granted.into_iter().map(|(grantee, words)| {
        let grantee = if grantee == "public" { "PUBLIC".to_owned() } else { identifier(grantee) };
        format!("GRANT {} ON {name} TO {grantee}", words.join(", "))
    }));
    Some(statements)
}

/// The relation before the statement.
pub(crate) fn before<'c>(context: &RuleContext<'c>, relation: &RelationName) -> Option<&'c Arc<Relation>> {
    context.before.get_relation(relation.oid)
}

/// SQL of the file on one line, without comments; `None` where it stands in a body or a string.
pub(crate) fn one_line(context: &RuleContext<'_>, range: TextRange) -> Option<String> {
    without(context, range, TextRange::default())
}

/// The same, without a part of it.
pub(crate) fn without(context: &RuleContext<'_>, range: TextRange, part: TextRange) -> Option<String> {
    let tokens = context.statement.tokens.iter().filter(|token| range.contains(token.range));
    let mut line = String::new();
    let mut end = None;
    for token in tokens {
        if !part.is_empty() && part.contains(token.range) {
            continue;
        }
        if end.is_some_and(|end| end != token.range.start) {
            line.push(' ');
        }
        line.push_str(context.text(token.range));
        end = Some(token.range.end);
    }
    let whole = context.statement.tokens.iter().any(|token| token.range.start == range.start);
    (whole && !line.is_empty()).then_some(line)
}

/// Identifiers as SQL, separated by commas.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<String> = names.iter().map(|name| crate::rules::text::identifier(name.as_ref())).collect();
    names.join(", ")
}
