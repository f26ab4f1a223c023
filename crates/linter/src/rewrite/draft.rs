//! The plan while it is made: check, do what the findings offer, check again.

use super::divided::{left_between, needed_later};
use super::title::title;
use super::{Plan, PlannedFile, PlannedStatement, Refusal, Unsolved, parsed};
use crate::check;
use crate::diagnostic::Diagnostic;
use crate::refusal::is_refusal;
use crate::rule::Rule;
use crate::rules::{locking, transaction};
use crate::settings::Settings;
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::runner::KnownTransaction;
use pgvet_syntax::ast::{AlterTableAction, AlterTableCommand, Ast, FunctionBody, Setting, Transaction};
use pgvet_syntax::lexer::{Token, tokenize};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::{self, ParsedFile, Statement};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A plan settles after a few rounds; one that does not is not one.
const ROUNDS: usize = 40;

/// Rules whose finding is gone when the statement begins another transaction.
static SPLITTING: [&Rule; 6] = [
    &transaction::validate_in_same_transaction::RULE,
    &transaction::work_after_strong_lock::RULE,
    &transaction::mixed_ddl_and_bulk_dml::RULE,
    &transaction::many_tables_locked::RULE,
    &locking::timeout_during_concurrent_build::RULE,
    &transaction::enum_value_used_in_same_transaction::RULE,
];

pub(super) struct Draft {
    files: Vec<PlannedFile>,
    /// Whether the tool runs each statement of a file on its own.
    autocommit: bool,
    /// Whether the tool sends a file as one string, so that several statements are one transaction.
    single_string: bool,
    /// Whether nothing but an assumption says that the tool opens a transaction.
    assumed_transaction: bool,
    changed: bool,
}

/// An action on a statement.
enum Action {
    Replace(Vec<PlannedStatement>),
    /// Begin another file with it.
    Split,
    SetLockTimeout,
    /// Set timeouts only after it.
    DelayTimeouts,
    Suppress(&'static str),
}

/// By file and statement.
type Actions = BTreeMap<(usize, usize), Action>;

impl Draft {
    pub(super) fn new(original: &Migration<'_>) -> Result<Self, Refusal> {
        let text = &original.file.text;
        let section = original.section.unwrap_or(TextRange::new(0, text.len() as u32));
        let pieces = statement::split(text).pieces;
        let other = pieces.iter().find(|piece| !piece.kind.is_statement() && section.contains(piece.range));
        if let Some(piece) = other {
            let shown = text[piece.range.as_usize()].lines().next().unwrap_or_default();
            return Err(Refusal::Unsupported(format!(
                "`{shown}` is not a statement of PostgreSQL, and cannot be moved"
            )));
        }
        let mut statements = Vec::new();
        for statement in original.statements() {
            match statement.parsed.as_deref() {
                Err(error) => return Err(Refusal::Unsupported(format!("it does not parse: {}", error.message))),
                Ok(Ast::Transaction(control))
                    if !matches!(control, Transaction::Begin | Transaction::Commit { chain: false }) =>
                {
                    return Err(Refusal::Unsupported("savepoints and ROLLBACK cannot be moved".to_owned()));
                }
                Ok(ast) if ends_with_transaction(ast) => {
                    let reason =
                        "a temporary table with ON COMMIT DROP ends with its transaction, which would be divided";
                    return Err(Refusal::Unsupported(reason.to_owned()));
                }
                Ok(_) => {}
            }
            statements.push(PlannedStatement {
                comments: comments_before(text, statement),
                sql: text[statement.range.as_usize()].to_owned(),
                ..PlannedStatement::default()
            });
        }
        let autocommit = original.transaction == TransactionMode::Autocommit;
        let single_string = original.transaction == TransactionMode::SingleString;
        let transaction = match original.transaction {
            TransactionMode::Autocommit => false,
            TransactionMode::Transaction => true,
            TransactionMode::SingleString => statements.len() > 1,
        };
        let file = PlannedFile { title: String::new(), transaction, statements };
        let assumed_transaction = original.runner.known_transaction != KnownTransaction::Known;
        let mut draft = Self { files: vec![file], autocommit, single_string, assumed_transaction, changed: false };
        draft.arrange()?;
        Ok(draft)
    }

    pub(super) fn improve(
        &mut self,
        history: &[Migration<'_>],
        original: &Migration<'_>,
        settings: &Settings,
    ) -> Result<Plan, Refusal> {
        let mut before = Checkpoint::default();
        before.advance(history, history.len(), settings.versions, &());
        let alone = [Migration { report: true, ..*original }];
        let found_originally = check_from(&before, history, &alone, settings);
        for _ in 0..ROUNDS {
            let files: Vec<ParsedFile> = self.files.iter().map(parsed).collect();
            let found = check_from(&before, history, &self.migrations(&files, original), settings);
            if let Some(failure) = found.iter().find(|found| is_refusal(found)) {
                return Err(Refusal::Fails(failure.message.clone()));
            }
            let (actions, unsolved) = self.actions(&files, found);
            if actions.is_empty() && !self.changed {
                let obstacle = unsolved.into_iter().find_map(|found| found.obstacle);
                return Err(obstacle.map_or(Refusal::NothingToDo, Refusal::Unsupported));
            }
            if actions.is_empty() {
                let reason = needed_later(&self.files).or_else(|| left_between(&found_originally, &unsolved));
                return match reason {
                    Some(reason) => Err(Refusal::Unsupported(reason)),
                    None => Ok(self.plan(&files, unsolved)),
                };
            }
            self.act(actions);
            self.arrange()?;
        }
        Err(Refusal::Unsupported("no better sequence of migrations was found".to_owned()))
    }

    fn plan(&self, files: &[ParsedFile], unsolved: Vec<Diagnostic>) -> Plan {
        let titled = |(file, parsed): (&PlannedFile, &ParsedFile)| PlannedFile { title: title(parsed), ..file.clone() };
        Plan {
            files: std::iter::zip(&self.files, files).map(titled).collect(),
            unsolved: unsolved.into_iter().map(unsolved_with_obstacle).collect(),
        }
    }

    /// The present files in place of the original.
    fn migrations<'f>(&self, files: &'f [ParsedFile], original: &Migration<'f>) -> Vec<Migration<'f>> {
        let migration = |(file, planned): (&'f ParsedFile, &PlannedFile)| {
            let transaction =
                if planned.transaction { TransactionMode::Transaction } else { TransactionMode::Autocommit };
            Migration { section: None, transaction, report: true, ..original.of(file) }
        };
        std::iter::zip(files, &self.files).map(migration).collect()
    }

    /// Returns the actions by file and statement, and the findings for which there is none.
    fn actions(&self, files: &[ParsedFile], found: Vec<Diagnostic>) -> (Actions, Vec<Diagnostic>) {
        let mut actions = BTreeMap::new();
        let mut unsolved = Vec::new();
        for diagnostic in found {
            let file = diagnostic.file as usize;
            let statements = &files[file].statements;
            let at = statements.iter().position(|statement| statement.range == diagnostic.statement);
            match at.and_then(|at| Some((at, self.action(&diagnostic, &files[file], file, at)?))) {
                // One thing at a time; the others are found again.
                Some((at, action)) => drop(actions.entry((file, at)).or_insert(action)),
                None => unsolved.push(diagnostic),
            }
        }
        (actions, unsolved)
    }

    fn action(&self, found: &Diagnostic, parsed: &ParsedFile, file: usize, at: usize) -> Option<Action> {
        let planned = &self.files[file].statements[at];
        if !found.steps.is_empty() {
            let step = |step: &crate::fix::Step| PlannedStatement {
                phase: step.phase,
                note: step.note.clone(),
                accepted: step.accepted.clone(),
                ..PlannedStatement::new(step.sql.clone())
            };
            return Some(Action::Replace(found.steps.iter().map(step).collect()));
        }
        if found.is_of(&locking::missing_lock_timeout::RULE.meta) {
            return Some(Action::SetLockTimeout);
        }
        let settings_only =
            parsed.statements[..at].iter().all(|statement| matches!(statement.ast(), Some(Ast::Set(_))));
        if SPLITTING.iter().any(|rule| found.is_of(&rule.meta)) && !settings_only {
            return Some(Action::Split);
        }
        if found.is_of(&locking::timeout_during_concurrent_build::RULE.meta)
            && self.files[file].statements[..at].iter().any(sets_timeout)
        {
            return Some(Action::DelayTimeouts);
        }
        if let Some(commands) = commands(&parsed.source.text, &parsed.statements[at]) {
            return Some(Action::Replace(commands));
        }
        let is_meant = planned.accepted.is_some() && !planned.suppressed.contains(&found.rule);
        is_meant.then_some(Action::Suppress(found.rule))
    }

    fn act(&mut self, actions: Actions) {
        for ((file, at), action) in actions.into_iter().rev() {
            let statements = &mut self.files[file].statements;
            match action {
                Action::Replace(mut steps) => {
                    if let (Some(first), Some(old)) = (steps.first_mut(), statements.get(at)) {
                        first.comments.clone_from(&old.comments);
                    }
                    statements.splice(at..=at, steps);
                    self.changed = true;
                }
                Action::Split => {
                    self.split(file, at);
                    self.changed = true;
                }
                Action::SetLockTimeout => {
                    // Statements before it, outside a transaction, may have to be able to wait. With it, a string has
                    // several statements.
                    let in_transaction = self.files[file].transaction || self.single_string;
                    let local = if in_transaction && !self.assumed_transaction { "LOCAL " } else { "" };
                    let place = if in_transaction { 0 } else { at };
                    let set = PlannedStatement::new(format!("SET {local}lock_timeout = '2s'"));
                    self.files[file].statements.insert(place, set);
                    self.changed = true;
                }
                Action::DelayTimeouts => {
                    let (delayed, kept): (Vec<_>, Vec<_>) = statements.drain(..at).partition(sets_timeout);
                    let at = kept.len();
                    statements.splice(..0, kept);
                    let rest = statements.split_off(at + 1);
                    statements.extend(delayed.into_iter().chain(rest));
                    self.changed = true;
                }
                Action::Suppress(rule) => statements[at].suppressed.push(rule),
            }
        }
    }

    /// Moves the statements from `at` on to a file of their own, which has the settings of the first.
    fn split(&mut self, file: usize, at: usize) {
        let rest = self.files[file].statements.split_off(at);
        let transaction = self.files[file].transaction;
        let waits = rest.first().is_some_and(|first| matches!(Kind::of(first), Kind::Outside));
        let mut statements = settings(&self.files[file].statements, |name| !waits || !name.ends_with("_timeout"));
        statements.extend(rest);
        self.files.insert(file + 1, PlannedFile { title: String::new(), transaction, statements });
    }

    /// Puts what cannot share a transaction, or waits for a person, into files of its own.
    fn arrange(&mut self) -> Result<(), Refusal> {
        let mut arranged = Vec::new();
        for mut file in std::mem::take(&mut self.files) {
            if self.single_string {
                file.transaction = file.statements.len() > 1;
            }
            self.arrange_file(file, &mut arranged)?;
        }
        arranged.retain(|file| !is_only_settings(&file.statements));
        if self.single_string {
            arranged.iter_mut().for_each(|file| file.transaction = file.statements.len() > 1);
        }
        self.files = arranged;
        Ok(())
    }

    fn arrange_file(&self, file: PlannedFile, arranged: &mut Vec<PlannedFile>) -> Result<(), Refusal> {
        let usual = file.transaction;
        let new = |transaction, statements| PlannedFile { title: String::new(), transaction, statements };
        let mut current = new(usual, Vec::new());
        let mut seen: Vec<PlannedStatement> = Vec::new();
        for statement in file.statements {
            let kind = Kind::of(&statement);
            match kind {
                // In the tool's transaction, which they divide, what was local stays for its parts.
                Kind::Begin | Kind::Commit if !usual => {
                    seen.retain(|statement| !is_local(statement));
                    let begins = matches!(kind, Kind::Begin);
                    arranged.push(std::mem::replace(&mut current, new(begins, carried(&seen, true))));
                }
                Kind::Begin => {
                    arranged.push(std::mem::replace(&mut current, new(true, carried(&seen, true))));
                }
                Kind::Commit => {
                    arranged.push(std::mem::replace(&mut current, new(usual, carried(&seen, true))));
                }
                Kind::Outside if !(self.autocommit && !current.transaction && statement.note.is_none()) => {
                    let mut statements = carried(&seen, false);
                    if !statements.is_empty() && !self.autocommit || statements.iter().any(is_local) {
                        let message =
                            "a setting would be lost for statements that cannot run in a transaction".to_owned();
                        return Err(Refusal::Unsupported(message));
                    }
                    statements.push(statement);
                    arranged.push(std::mem::replace(&mut current, new(usual, carried(&seen, true))));
                    arranged.push(new(false, statements));
                }
                // VALIDATE reads for a long time, and any lock beside it is held as long.
                Kind::Validate if current.transaction => {
                    if !is_only_settings(&current.statements) {
                        arranged.push(std::mem::replace(&mut current, new(true, carried(&seen, true))));
                    }
                    current.statements.push(statement);
                    arranged.push(std::mem::replace(&mut current, new(true, carried(&seen, true))));
                }
                Kind::Outside | Kind::Inside | Kind::Validate => {
                    if statement.note.is_some() && !is_only_settings(&current.statements) {
                        let transaction = current.transaction;
                        arranged.push(std::mem::replace(&mut current, new(transaction, carried(&seen, true))));
                    }
                    current.statements.push(statement.clone());
                    seen.push(statement);
                }
            }
        }
        arranged.push(current);
        Ok(())
    }
}

/// Returns the rule, and its message with the reason why a recipe cannot be used.
fn unsolved_with_obstacle(found: Diagnostic) -> Unsolved {
    let message = match found.obstacle {
        Some(obstacle) => format!("{} ({obstacle})", found.message),
        None => found.message,
    };
    (found.rule, message)
}

/// Returns the findings in migrations after a history that has been replayed.
fn check_from(
    before: &Checkpoint,
    history: &[Migration<'_>],
    new: &[Migration<'_>],
    settings: &Settings,
) -> Vec<Diagnostic> {
    let mut migrations: Vec<Migration<'_>> =
        history.iter().map(|migration| Migration { report: false, ..*migration }).collect();
    migrations.extend(new);
    let mut found = check::run_from(before.clone(), &migrations, settings, &()).found;
    for diagnostic in &mut found {
        diagnostic.file -= history.len() as u32;
    }
    found
}

/// The settings that what follows needs; a timeout would stop what waits outside a transaction.
fn carried(seen: &[PlannedStatement], transaction: bool) -> Vec<PlannedStatement> {
    settings(seen, |name| transaction || !name.ends_with("_timeout"))
}

/// Where a statement can run.
#[derive(Clone, Copy)]
enum Kind {
    Begin,
    Commit,
    /// Only outside a transaction.
    Outside,
    /// VALIDATE CONSTRAINT and nothing else.
    Validate,
    Inside,
}

impl Kind {
    fn of(statement: &PlannedStatement) -> Self {
        match first_ast(&statement.sql).as_ref() {
            Some(Ast::Transaction(Transaction::Begin)) => Self::Begin,
            Some(Ast::Transaction(Transaction::Commit { .. })) => Self::Commit,
            Some(ast) if runs_outside(ast) || commits(&statement.sql) => Self::Outside,
            Some(Ast::AlterTable(alter)) => match alter.commands.as_slice() {
                [command] if matches!(command.action, AlterTableAction::ValidateConstraint { .. }) => Self::Validate,
                _ => Self::Inside,
            },
            _ => Self::Inside,
        }
    }
}

fn ends_with_transaction(ast: &Ast) -> bool {
    match ast {
        Ast::CreateTable(create) => create.on_commit_drop,
        Ast::CreateTableAs(create) => create.into.on_commit_drop,
        _ => false,
    }
}

pub(super) fn first_ast(sql: &str) -> Option<Ast> {
    statement::parse(sql).into_iter().next()?.parsed.ok().and_then(Arc::into_inner)
}

/// Whether PostgreSQL refuses it in a transaction block.
fn runs_outside(ast: &Ast) -> bool {
    match ast {
        Ast::Vacuum(vacuum) => vacuum.vacuum,
        Ast::RefreshMaterializedView(_) => false,
        ast => ast.is_concurrent(),
    }
}

/// Whether it is code that ends transactions.
pub(super) fn commits(sql: &str) -> bool {
    let Some(Ast::Do(block)) = first_ast(sql) else { return false };
    let FunctionBody::Source { text, .. } = &block.body else { return false };
    let is_end = |token: &Token| token.is_keyword(text, "COMMIT") || token.is_keyword(text, "ROLLBACK");
    tokenize(text, TextRange::new(0, text.len() as u32)).iter().any(is_end)
}

/// The settings that act after the statements, of those whose name is wanted: of equal names the last.
fn settings(statements: &[PlannedStatement], wanted: impl Fn(&str) -> bool) -> Vec<PlannedStatement> {
    let mut kept: Vec<PlannedStatement> = Vec::new();
    let mut named: Vec<(SmolStr, bool)> = Vec::new();
    for statement in statements.iter().rev() {
        let Some(Ast::Set(set)) = first_ast(&statement.sql) else { continue };
        let name = match set.setting {
            Setting::Value { name, .. } | Setting::Default { name } => name,
            Setting::ResetAll => SmolStr::new_static("all"),
            Setting::Transaction => SmolStr::new_static("transaction"),
        };
        let key = (name, set.local);
        if wanted(&key.0) && !named.contains(&key) {
            kept.push(PlannedStatement::new(statement.sql.clone()));
            named.push(key);
        }
    }
    kept.reverse();
    kept
}

/// Whether it sets a timeout for the session.
fn sets_timeout(statement: &PlannedStatement) -> bool {
    let Some(Ast::Set(set)) = first_ast(&statement.sql) else { return false };
    matches!(set.setting, Setting::Value { name, .. } if name.ends_with("_timeout"))
}

/// Whether it ends with its transaction.
fn is_local(statement: &PlannedStatement) -> bool {
    matches!(first_ast(&statement.sql), Some(Ast::Set(set)) if set.local || set.setting == Setting::Transaction)
}

fn is_only_settings(statements: &[PlannedStatement]) -> bool {
    statements.iter().all(|statement| matches!(first_ast(&statement.sql), Some(Ast::Set(_))))
}

/// The commands of ALTER TABLE as statements, where there are several.
fn commands(text: &str, statement: &Statement) -> Option<Vec<PlannedStatement>> {
    let Some(Ast::AlterTable(alter)) = statement.ast() else { return None };
    let [first, _, ..] = alter.commands.as_slice() else { return None };
    if replaces_column(&alter.commands) {
        return None;
    }
    let head = &text[statement.range.start as usize..first.range.start as usize];
    let alone = |command: &AlterTableCommand| {
        PlannedStatement::new(format!("{head}{}", text[command.range.as_usize()].trim_end()))
    };
    Some(alter.commands.iter().map(alone).collect())
}

/// Whether a column is dropped and added again. Between the two nobody could use it.
fn replaces_column(commands: &[AlterTableCommand]) -> bool {
    let dropped = |name: &str| {
        let mut commands = commands.iter();
        commands.any(
            |command| matches!(&command.action, AlterTableAction::DropColumn { column, .. } if column.text == name),
        )
    };
    commands.iter().any(
        |command| matches!(&command.action, AlterTableAction::AddColumn { column, .. } if dropped(&column.name.text)),
    )
}

/// The comments before a statement, each on lines of its own.
fn comments_before(text: &str, statement: &Statement) -> String {
    let before = statement.comments.iter().filter(|comment| comment.end <= statement.range.start);
    let lines = before.filter_map(|comment| text.get(comment.as_usize()));
    lines.filter(|line| !is_of_tool(line, text)).fold(String::new(), |all, line| all + line.trim_end() + "\n")
}

/// Whether the comment controls the migration tool, which has its own way to write it.
fn is_of_tool(comment: &str, text: &str) -> bool {
    let words = comment.trim_start_matches('-').trim_start().to_ascii_lowercase();
    let signs =
        ["+goose", "+migrate", "migrate:", "changeset", "liquibase", "atlas:", "no-transaction", "! ", "up migration"];
    let is_sqitch = words.starts_with("deploy ") && words.contains(" to pg");
    let is_liquibase = || text.trim_start_matches('-').trim_start().starts_with("liquibase formatted sql");
    signs.iter().any(|sign| words.starts_with(sign)) || is_sqitch || words.starts_with("rollback") && is_liquibase()
}
