//! Statements that code runs: each is recorded as if it were in the file, so that rules see the same in both.

use super::{Executor, Run};
use crate::catalog::{Catalog, Oid};
use crate::effect::{Effects, Failure, Limit, UnknownReason};
use crate::place::Place;
use crate::session::{Change, Changes, HeldLock, HeldLocks, LongWork, Session};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::lexer::{Token, tokenize};
use pgvet_syntax::plpgsql::SqlText;
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;
use smol_str::SmolStr;
use std::sync::Arc;

/// Maximum number of statements that are recorded for one statement of the file. The effects of others stay with the
/// statement that runs the code.
const MAX_EXECUTED: usize = 200;

/// A text of SQL that a statement runs: the body of a DO block or function, or what EXECUTE is given.
#[derive(Debug)]
pub struct CodeText {
    pub text: Arc<str>,
    /// Where the file shows it.
    pub shown: InFile,
    pub kind: CodeKind,
    /// The functions that are being run, the outermost first.
    pub running: Vec<Oid>,
}

/// The kinds of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeKind {
    /// The body of a DO block.
    Block,
    /// That of a function; `None` where its definition has it in other words, or is in no file.
    Function(Option<FunctionText>),
    /// A text that EXECUTE is given. Where it is in quotes, other quotes have no place in it.
    Text,
}

/// Where a function has its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionText {
    pub name: String,
    pub file: u32,
    /// Where the body begins.
    pub start: u32,
}

/// Where a file shows code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFile {
    /// The text is in the file as it is: ranges shift by this much.
    Shifted(u32),
    /// The text is elsewhere, or is escaped: all of it is shown here.
    At(TextRange),
}

impl InFile {
    /// The range in the file of a range in the text.
    pub fn range(self, range: TextRange) -> TextRange {
        match self {
            Self::Shifted(by) => range.shifted(by),
            Self::At(range) => range,
        }
    }

    /// Returns where the file shows a text at `inner` of the text that it shows here.
    fn of(self, inner: Self) -> Self {
        match (self, inner) {
            (Self::Shifted(outer), Self::Shifted(by)) => Self::Shifted(outer + by),
            (outer, Self::At(range)) => Self::At(outer.range(range)),
            (Self::At(range), Self::Shifted(_)) => Self::At(range),
        }
    }
}

/// A statement that code ran, and the state around it. Ranges are offsets in the text of the code.
#[derive(Debug)]
pub struct Executed {
    pub code: Arc<CodeText>,
    pub statement: Statement,
    /// Its own effects, without the statements that it ran in turn.
    pub effects: Effects,
    pub before: Catalog,
    pub after: Catalog,
    /// Code runs in a transaction, be it that of the statement alone.
    pub session: Session,
    /// Whether a condition or an exception handler decides if it runs, or fails.
    pub guarded: bool,
    /// A setting that no statement makes, and without which it does not run.
    pub needs_setting: Option<SmolStr>,
}

/// The record of the code that a statement runs.
#[derive(Debug, Default)]
pub struct Recorder {
    /// The text that is being run.
    text: Option<Arc<CodeText>>,
    executed: Vec<Executed>,
    /// Statements that failed and whose error an exception handler caught.
    caught: Vec<Executed>,
    /// Effects of recorded statements, with the ranges of the text that is being run.
    inside: Effects,
    locks: HeldLocks,
    changes: Changes,
    /// What recorded statements did that takes longer the larger a table is.
    work: Vec<LongWork>,
    /// Triggers belong to the statement that fires them.
    paused: bool,
    guarded: bool,
    needs_setting: Option<SmolStr>,
    /// Some statement was one too many.
    is_full: bool,
    /// Nobody looks at what it would record.
    is_off: bool,
}

/// A text that is run while the recorder is at another one.
pub(super) struct Outer {
    text: Option<Arc<CodeText>>,
    inside: Effects,
}

/// The effects of code, statement by statement.
#[derive(Debug, Default)]
pub struct CodeRun {
    /// In the order in which they ended.
    pub executed: Vec<Executed>,
    /// Statements that PostgreSQL refuses, and of whose refusal a handler makes nothing.
    pub caught: Vec<Executed>,
    /// Other effects of the statement of the file.
    pub own: Option<Effects>,
}

impl Recorder {
    /// Records for a migration that is reported, and nothing for the history.
    pub(crate) fn new(is_reported: bool) -> Self {
        Self { is_off: !is_reported, ..Self::default() }
    }

    /// Whether the text of a body is being run.
    pub(super) fn is_in_code(&self) -> bool {
        self.text.is_some()
    }

    /// Begins with a text.
    pub(super) fn enter(&mut self, text: &Arc<str>, shown: InFile, kind: CodeKind, running: Vec<Oid>) -> Outer {
        let outer = self.text.as_ref().map_or(InFile::Shifted(0), |text| text.shown);
        let code = CodeText { text: Arc::clone(text), shown: outer.of(shown), kind, running };
        Outer { text: self.text.replace(Arc::new(code)), inside: std::mem::take(&mut self.inside) }
    }

    /// Goes back to the outer text, where `place` is what ranges of the inner one are.
    pub(super) fn leave(&mut self, outer: Outer, place: impl Fn(TextRange) -> TextRange) {
        let mut inside = std::mem::replace(&mut self.inside, outer.inside);
        inside.move_ranges(place);
        self.inside.absorb(inside);
        self.text = outer.text;
    }

    /// Ends the statement of the file.
    pub(crate) fn finish(self, effects: &Effects) -> CodeRun {
        let is_inside = self.executed.iter().any(|run| run.effects.fails.is_some());
        let fails = effects.fails.clone().filter(|_| !is_inside);
        let is_recorded = !self.executed.is_empty() || !self.caught.is_empty();
        let own = is_recorded.then(|| Effects { fails, ..effects.without(&self.inside) });
        CodeRun { executed: self.executed, caught: self.caught, own }
    }

    fn is_known(&self, code: &Arc<CodeText>, ast: &Arc<Ast>) -> bool {
        let same = |known: &Executed| {
            Arc::ptr_eq(&known.code.text, &code.text)
                && known.code.shown == code.shown
                && known.statement.parsed.as_ref().is_ok_and(|known| Arc::ptr_eq(known, ast))
        };
        self.executed.iter().any(same)
    }
}

impl Executor<'_> {
    /// Runs a statement of code that is at `sql` in its text.
    pub(super) fn run_in_code(&mut self, ast: &Arc<Ast>, sql: &SqlText) -> Run {
        let Some(code) = self.recorder.text.clone().filter(|_| !self.recorder.paused) else {
            return self.statement(ast);
        };
        if self.recorder.is_off {
            let result = self.check_named_in_code(ast, sql).and_then(|()| self.statement(ast));
            return result.inspect_err(|_| self.note_refused(ast));
        }
        let (before, session) = (self.catalog.clone(), self.session_in_code());
        let outer = std::mem::take(&mut self.effects);
        self.assumed_schema.take();
        let inside = std::mem::take(&mut self.recorder.inside);
        let result = self.check_named_in_code(ast, sql).and_then(|()| self.statement(ast));
        let result = result.map_err(|failure| self.with_assumption(failure)).inspect_err(|_| self.note_refused(ast));
        let done = std::mem::replace(&mut self.effects, outer);
        let inner = std::mem::replace(&mut self.recorder.inside, inside);
        if self.recorder.executed.len() < MAX_EXECUTED {
            self.note_locks(&done, &code, sql.range);
            if !self.recorder.is_known(&code, ast) {
                let effects = Effects { fails: result.clone().err(), ..done.without(&inner) };
                let after = if result.is_ok() { &self.catalog } else { &before }.clone();
                let (statement, guarded) = (statement(ast, sql), self.recorder.guarded);
                let needs_setting = self.recorder.needs_setting.clone();
                let run = Executed { code, statement, effects, before, after, session, guarded, needs_setting };
                self.recorder.executed.push(run);
            }
            self.recorder.inside.absorb(done.clone());
        } else if !self.recorder.is_full && !self.recorder.is_known(&code, ast) {
            self.recorder.is_full = true;
            self.skip_code(UnknownReason::Limit(Limit::Statements(MAX_EXECUTED)), sql.range, true);
        }
        self.effects.absorb(done);
        result
    }

    /// Where the code has no variables its statements name columns alone.
    fn check_named_in_code(&self, ast: &Ast, sql: &SqlText) -> Run {
        if !self.variables.is_empty() {
            return Ok(());
        }
        self.check_named_columns(ast).map_err(|failure| Failure { range: sql.range, ..failure })
    }

    /// A handler catches a refusal.
    pub(super) fn catch_refused(&mut self) {
        let is_refused = |run: &mut Executed| run.effects.fails.is_some();
        let refused: Vec<Executed> = self.recorder.executed.extract_if(.., is_refused).collect();
        self.recorder.caught.extend(refused);
    }

    /// A refusal is caught, or not certain: what was refused may not have run at all.
    pub(super) fn forget_refused(&mut self) {
        self.recorder.executed.retain(|run| run.effects.fails.is_none());
    }

    /// Notes that refused statements run only unless an earlier error is caught, if that is so.
    pub(super) fn doubt_unless_handled(&mut self, is_so: bool) {
        let refused = self.recorder.executed.iter_mut().filter_map(|run| run.effects.fails.as_mut());
        refused.for_each(|failure| failure.unless_handled |= is_so);
    }

    /// Assumes that refused statements may run, because unknown code has changed their objects.
    pub(super) fn doubt_refused(&mut self) {
        self.recorder.executed.iter_mut().for_each(|run| run.effects.fails = None);
    }

    /// Runs what triggers do as a part of the statement that fires them.
    pub(super) fn unrecorded(&mut self, run: impl FnOnce(&mut Self)) {
        let paused = std::mem::replace(&mut self.recorder.paused, true);
        run(self);
        self.recorder.paused = paused;
    }

    /// Runs what a condition or an exception handler guards.
    pub(super) fn guarded<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let guarded = std::mem::replace(&mut self.recorder.guarded, true);
        let result = run(self);
        self.recorder.guarded = guarded;
        result
    }

    /// Whether a condition or an exception handler decides about what runs now.
    pub(super) fn is_guarded(&self) -> bool {
        self.recorder.guarded
    }

    /// Runs what is not run without a setting, if one is given.
    pub(super) fn with_setting<T>(&mut self, setting: Option<SmolStr>, run: impl FnOnce(&mut Self) -> T) -> T {
        let Some(setting) = setting else { return run(self) };
        let outer = self.recorder.needs_setting.replace(setting);
        let result = run(self);
        self.recorder.needs_setting = outer;
        result
    }

    /// Whether an earlier statement of the transaction holds a lock on the relation that blocks writes.
    pub(super) fn blocks_writes(&self, oid: Oid) -> bool {
        let in_block = self.session.block.as_ref().is_some_and(|block| block.locks.blocks_writes(oid));
        in_block || self.recorder.locks.iter().any(|held| held.relation == oid && held.mode.blocks_writes())
    }

    /// Where the file shows a range of the statement.
    pub(super) fn in_file(&self, range: TextRange) -> TextRange {
        self.recorder.text.as_ref().map_or(range, |code| code.shown.range(range))
    }

    /// COMMIT and ROLLBACK of code, which PostgreSQL refuses in a transaction block. If it may not run, the locks may still
    /// be held.
    pub(super) fn end_transaction_in_code(&mut self) {
        self.session.end_statement();
        if !self.session.in_transaction() && !self.recorder.guarded {
            self.recorder.locks = HeldLocks::default();
            self.recorder.changes = Changes::default();
            self.recorder.work.clear();
        }
    }

    fn session_in_code(&self) -> Session {
        let mut session = self.session.clone();
        if session.block.is_none() {
            session.begin(false, self.transaction, self.place, &self.catalog);
        }
        if let Some(block) = &mut session.block {
            block.locks.append(&self.recorder.locks);
            block.changes.append(&self.recorder.changes);
            block.work.extend(self.recorder.work.iter().copied());
        }
        session
    }

    fn note_locks(&mut self, effects: &Effects, code: &CodeText, statement: TextRange) {
        let place = Place { range: code.shown.range(statement), ..self.place };
        for lock in &effects.locks {
            if !self.recorder.locks.holds(lock.relation.oid, lock.mode) {
                self.recorder.locks.push(HeldLock::new(lock, place, code.shown.range(lock.range)));
            }
        }
        self.recorder.changes.extend(effects.data_changes.iter().map(|change| Change::new(change, place)));
        let work = effects.long_work().map(|range| LongWork { place, range: code.shown.range(range) });
        self.recorder.work.extend(work);
    }
}

fn statement(ast: &Arc<Ast>, sql: &SqlText) -> Statement {
    let tokens = tokenize(&sql.text, TextRange::new(0, sql.text.len() as u32));
    let place = |token: Token| Token { range: token.range.shifted(sql.range.start), ..token };
    Statement {
        range: sql.range,
        tokens: tokens.into_iter().map(place).collect(),
        comments: Vec::new(),
        parsed: Ok(Arc::clone(ast)),
        placeholders: Vec::new(),
        terminated: true,
        quoting: None,
    }
}

impl Effects {
    /// Moves every range.
    pub(super) fn move_ranges(&mut self, place: impl Fn(TextRange) -> TextRange) {
        self.locks.explain(0, |_, _, range| *range = place(*range));
        self.rewrites.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.partition_work.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.rewrites_unless_utc.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.scans.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.index_builds.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.demands.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.data_changes.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.reads.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.calls.iter_mut().for_each(|call| call.range = place(call.range));
        self.removals.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.renames.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.changes.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.move_unknown(place);
    }

    /// Adds the effects of code that the statement runs.
    pub(super) fn absorb(&mut self, inner: Self) {
        for lock in inner.locks {
            if !self.locks.holds_in(lock.relation.oid, lock.mode, &lock.branches) {
                self.locks.push(lock);
            }
        }
        for rewrite in inner.rewrites {
            if !self.rewrites.iter().any(|known| known.relation.oid == rewrite.relation.oid) {
                self.rewrites.push(rewrite);
            }
        }
        for scan in inner.scans {
            let same =
                |known: &crate::effect::Scan| known.relation.oid == scan.relation.oid && known.cause == scan.cause;
            if !self.scans.iter().any(same) {
                self.scans.push(scan);
            }
        }
        for build in inner.index_builds {
            if !self.index_builds.iter().any(|known| known.index.oid == build.index.oid) {
                self.index_builds.push(build);
            }
        }
        self.rewrites_unless_utc.extend(inner.rewrites_unless_utc);
        self.partition_work.extend(inner.partition_work);
        self.creates.extend(inner.creates);
        self.drops.extend(inner.drops);
        self.removals.extend(inner.removals);
        self.renames.extend(inner.renames);
        self.changes.extend(inner.changes);
        self.truncates.extend(inner.truncates);
        self.demands.extend(inner.demands);
        self.data_changes.extend(inner.data_changes);
        self.reads.extend(inner.reads);
        inner.unknown.into_iter().for_each(|unknown| self.note_unknown(unknown));
        self.catalog_rows += inner.catalog_rows;
        for call in inner.calls {
            if !self.calls.contains(&call) {
                self.calls.push(call);
            }
        }
        for reach in inner.reaches {
            self.note_reach(reach);
        }
        self.waits_for_transactions |= inner.waits_for_transactions;
    }

    /// The effects but those of statements that were run inside.
    fn without(&self, inside: &Self) -> Self {
        fn left<T: Clone + PartialEq>(all: &[T], inside: &[T]) -> Vec<T> {
            all.iter().filter(|effect| !inside.contains(effect)).cloned().collect()
        }
        Self {
            locks: left(&self.locks, &inside.locks).into_iter().collect(),
            rewrites: left(&self.rewrites, &inside.rewrites),
            partition_work: left(&self.partition_work, &inside.partition_work),
            rewrites_unless_utc: left(&self.rewrites_unless_utc, &inside.rewrites_unless_utc),
            scans: left(&self.scans, &inside.scans),
            index_builds: left(&self.index_builds, &inside.index_builds),
            creates: left(&self.creates, &inside.creates),
            drops: left(&self.drops, &inside.drops),
            removals: left(&self.removals, &inside.removals),
            renames: left(&self.renames, &inside.renames),
            changes: left(&self.changes, &inside.changes),
            truncates: left(&self.truncates, &inside.truncates),
            fails: None,
            demands: left(&self.demands, &inside.demands),
            unknown: self.unknown.difference(&inside.unknown).cloned().collect(),
            data_changes: left(&self.data_changes, &inside.data_changes),
            reads: left(&self.reads, &inside.reads),
            waits_for_transactions: self.waits_for_transactions && !inside.waits_for_transactions,
            catalog_rows: self.catalog_rows,
            calls: self.calls.clone(),
            reaches: left(&self.reaches, &inside.reaches),
        }
    }
}
