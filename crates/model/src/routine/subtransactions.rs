//! How many subtransactions code begins in one transaction, counted along its control flow.
//!
//! Only those that write count: a subtransaction without an XID takes no place in the cache of 64 that each session has
//! (`PGPROC_MAX_CACHED_SUBXIDS`, PostgreSQL 18 `src/include/storage/proc.h`), and hurts nobody.

mod iterations;
mod objects;
mod writes;

use super::evaluation::{Evaluated, evaluate};
use super::{Bound, Code, Routine, Routines, Sql};
use crate::catalog::{Oid, SearchPath};
use pgvet_syntax::ast::{Ast, ObjectName, TriggerEvents};
use pgvet_syntax::plpgsql::texts;
use pgvet_syntax::plpgsql::{Block, Loop, LoopKind, Statement, StatementKind};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;

/// Number of subtransactions of a transaction that are cached. One more, and every snapshot on the server has to look
/// further.
pub const CACHED: u64 = 64;

/// Maximum depth to which functions that call others are followed.
const MAX_DEPTH: usize = 8;

/// Subtransactions of a transaction, and where they come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subtransactions {
    /// The most that one transaction begins.
    pub most: Bound,
    pub sources: Vec<Source>,
}

/// A place that begins subtransactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The keyword EXCEPTION, or the name in a call.
    pub range: TextRange,
    /// How many it begins in one transaction, with all loops around it.
    pub bound: Bound,
    /// The function that is called, if it is not this code itself.
    pub callee: Option<Oid>,
    /// A trigger calls it.
    pub by_trigger: bool,
    /// The first words of the loop that makes them many.
    pub in_loop: Option<TextRange>,
    /// Whether the unbounded loops go from object to object of the database: tables, functions, policies and so on.
    pub of_objects: bool,
}

impl Subtransactions {
    /// Whether they are unbounded only because of the objects of the database.
    fn of_objects(&self) -> bool {
        let mut unbounded = self.sources.iter().filter(|source| source.bound == Bound::Unbounded).peekable();
        unbounded.peek().is_some() && unbounded.all(|source| source.of_objects)
    }
}

impl Routines<'_> {
    /// The subtransactions of a routine that runs in one transaction, or up to each COMMIT in it.
    pub fn subtransactions(&self, routine: &Routine) -> Subtransactions {
        Counter::new(self, routine.oid().into_iter().collect()).routine(routine)
    }

    /// The most subtransactions of one call of a function.
    pub fn subtransactions_of_call(&self, function: Oid) -> Bound {
        self.of_call(function).most
    }

    /// Whether one call of the function that a source names begins as many.
    pub fn is_many_in_callee(&self, source: &Source) -> bool {
        let called = source.callee.map(|oid| self.of_call(oid));
        called.is_some_and(|called| called.most == Bound::Unbounded && called.of_objects() == source.of_objects)
    }

    fn of_call(&self, function: Oid) -> Subtransactions {
        self.function(function).map(|routine| self.subtransactions(&routine)).unwrap_or_default()
    }

    /// The subtransactions that a statement of a migration begins by calling functions.
    pub fn subtransactions_of(&self, ast: &Ast, search_path: &SearchPath) -> Subtransactions {
        let tally = Counter::new(self, Vec::new()).ast(ast, false, search_path, &|range| range);
        Subtransactions { most: tally.most(), sources: tally.sources }
    }
}

/// Tests whether a trigger fires for a kind of change.
type Fires = fn(TriggerEvents) -> bool;

/// The subtransactions that a piece of code adds, with its COMMITs.
#[derive(Debug, Clone, Default)]
struct Tally {
    /// Up to the first COMMIT, or all.
    head: Bound,
    /// Since the last COMMIT, or all.
    tail: Bound,
    /// The most between two COMMITs.
    inner: Bound,
    commits: bool,
    sources: Vec<Source>,
}

impl Tally {
    fn of(source: Source) -> Self {
        Self { head: source.bound, tail: source.bound, sources: vec![source], ..Self::default() }
    }

    fn commit() -> Self {
        Self { commits: true, ..Self::default() }
    }

    fn most(&self) -> Bound {
        self.head.max(self.tail).max(self.inner)
    }

    fn then(mut self, next: Self) -> Self {
        let between = self.tail + next.head;
        self.inner = self.inner.max(next.inner);
        (self.head, self.tail) = match (self.commits, next.commits) {
            (false, false) => (between, between),
            (false, true) => (between, next.tail),
            (true, false) => (self.head, between),
            (true, true) => {
                self.inner = self.inner.max(between);
                (self.head, next.tail)
            }
        };
        self.commits |= next.commits;
        self.sources.extend(next.sources);
        self
    }

    /// One of both runs.
    fn or(self, other: Self) -> Self {
        let commits = self.commits || other.commits;
        let (head, tail) = (self.head.max(other.head), self.tail.max(other.tail));
        let inner = self.inner.max(other.inner);
        let sources = if other.most() > self.most() { other.sources } else { self.sources };
        Self { head, tail, inner, commits, sources }
    }

    fn times(self, turns: Turns) -> Self {
        let rounds = turns.rounds;
        let multiplied = |sources: Vec<Source>, by: Bound| {
            let multiply = |source: Source| Source {
                bound: source.bound * by,
                in_loop: if by > Bound::AtMost(1) { source.in_loop.or(Some(turns.words)) } else { source.in_loop },
                of_objects: match (source.bound, by) {
                    (Bound::AtMost(_), Bound::Unbounded) => turns.of_objects,
                    (Bound::Unbounded, Bound::Unbounded) => turns.of_objects && source.of_objects,
                    _ => source.of_objects,
                },
                ..source
            };
            sources.into_iter().map(multiply).collect()
        };
        if self.commits {
            let rounds = Bound::AtMost(turns.every.unwrap_or(1)).min(rounds);
            let inner = self.inner.max((self.tail + self.head) * rounds).max(self.most() * rounds);
            return Self { inner, sources: multiplied(self.sources, rounds), ..self };
        }
        let bound = self.head * rounds;
        Self { head: bound, tail: bound, sources: multiplied(self.sources, rounds), ..self }
    }
}

/// How a loop runs.
#[derive(Clone, Copy)]
struct Turns {
    rounds: Bound,
    /// It goes from object to object of the database.
    of_objects: bool,
    /// With a COMMIT after so many rounds.
    every: Option<u64>,
    words: TextRange,
}

struct Counter<'r, 'a> {
    routines: &'r Routines<'a>,
    /// Functions being counted: recursion ends there.
    open: Vec<Oid>,
    /// The subtransactions that one call of a function begins, and whether only for objects of the database.
    counted: FxHashMap<Oid, (Bound, bool)>,
    /// Whether a function may write.
    writing: FxHashMap<Oid, bool>,
}

impl<'r, 'a> Counter<'r, 'a> {
    fn new(routines: &'r Routines<'a>, open: Vec<Oid>) -> Self {
        Self { routines, open, counted: FxHashMap::default(), writing: FxHashMap::default() }
    }

    fn routine(&mut self, routine: &Routine) -> Subtransactions {
        let tally = match &routine.code {
            Code::Plpgsql(body) => self.block(routine, &body.block),
            Code::Sql(_) => self.sql(routine, routine.steps().into_iter().flat_map(|step| step.sql)),
        };
        let counts = |source: &Source| source.bound > Bound::ZERO;
        let most = tally.most();
        Subtransactions { most, sources: tally.sources.into_iter().filter(counts).collect() }
    }

    fn block(&mut self, routine: &Routine, block: &Block) -> Tally {
        let declared = self.sql(routine, routine.parsed(texts::of_declarations(block)));
        let inside = self.statements(routine, &block.statements);
        let Some(section) = &block.exception else { return declared.then(inside) };
        let mut own = inside;
        if self.may_write(routine, &block.statements) {
            let one = Source {
                range: section.keyword,
                bound: Bound::AtMost(1),
                callee: None,
                by_trigger: false,
                in_loop: None,
                of_objects: false,
            };
            own = Tally::of(one).then(own);
        }
        // A handler runs when the subtransaction was rolled back, and its place in the cache is free again.
        let handlers = section.handlers.iter().map(|handler| self.statements(routine, &handler.statements));
        let handled = handlers.reduce(Tally::or).unwrap_or_default();
        declared.then(own.or(handled))
    }

    fn statements(&mut self, routine: &Routine, statements: &[Statement]) -> Tally {
        statements.iter().fold(Tally::default(), |tally, statement| {
            let next = self.statement(routine, statement);
            tally.then(next)
        })
    }

    fn statement(&mut self, routine: &Routine, statement: &Statement) -> Tally {
        let own = self.sql(routine, routine.sql_of(statement));
        match &statement.kind {
            StatementKind::Block(block) => self.block(routine, block),
            StatementKind::Commit(_) | StatementKind::Rollback(_) => Tally::commit(),
            StatementKind::If(conditional) => {
                let branches = conditional.branches.iter().map(|branch| branch.statements.as_slice());
                let otherwise = conditional.otherwise.iter().map(|otherwise| otherwise.statements.as_slice());
                own.then(self.one_of(routine, branches.chain(otherwise)))
            }
            StatementKind::Case(case) => {
                let branches = case.branches.iter().map(|branch| branch.statements.as_slice());
                let otherwise = case.otherwise.iter().map(|otherwise| otherwise.statements.as_slice());
                own.then(self.one_of(routine, branches.chain(otherwise)))
            }
            StatementKind::Loop(a_loop) => self.a_loop(routine, statement, a_loop, own),
            _ => own,
        }
    }

    fn one_of<'s>(&mut self, routine: &Routine, branches: impl Iterator<Item = &'s [Statement]>) -> Tally {
        let tallies = branches.map(|branch| self.statements(routine, branch));
        tallies.reduce(Tally::or).unwrap_or_default()
    }

    fn a_loop(&mut self, routine: &Routine, statement: &Statement, a_loop: &Loop, head: Tally) -> Tally {
        let body = self.statements(routine, &a_loop.statements);
        let rounds = iterations::of(routine, a_loop, self.routines.catalog);
        let is_unbounded = rounds == Bound::Unbounded && body.most() > Bound::ZERO;
        let turns = Turns {
            rounds,
            of_objects: is_unbounded && self.routines.goes_through_objects(routine, a_loop),
            every: iterations::commit_interval(&a_loop.statements),
            words: statement.keyword.cover(a_loop.keyword),
        };
        let conditions_run_again = matches!(a_loop.kind, LoopKind::While(_));
        if conditions_run_again {
            return head.then(body).times(turns);
        }
        head.then(body.times(turns))
    }

    fn sql<'s>(&mut self, routine: &Routine, all: impl IntoIterator<Item = Sql<'s>>) -> Tally {
        all.into_iter().fold(Tally::default(), |tally, sql| {
            let next = self.ast(sql.ast, sql.one_row, &routine.search_path, &|range| sql.place(range));
            tally.then(next)
        })
    }

    /// A statement of SQL: the functions that it calls, and the row triggers that it fires.
    fn ast(
        &mut self,
        ast: &Ast,
        one_row: bool,
        search_path: &SearchPath,
        place: &dyn Fn(TextRange) -> TextRange,
    ) -> Tally {
        let mut calls: Vec<(Oid, TextRange, Bound, bool)> = Vec::new();
        let mut fired: Vec<(&ObjectName, Fires, Bound)> = Vec::new();
        let catalog = self.routines.catalog;
        evaluate(ast, one_row, catalog, search_path, &mut |what, times| match what {
            Evaluated::Call(call) => {
                let called = catalog.functions_called(call, search_path);
                calls.extend(called.into_iter().map(|oid| (oid, place(call.name_range), times, false)));
            }
            Evaluated::Insert(table) => fired.push((table, |events| events.insert, times)),
            Evaluated::Update(table) => fired.push((table, |events| events.update, times)),
            Evaluated::Delete(table) => fired.push((table, |events| events.delete, times)),
        });
        for (table, fires, rows) in fired {
            let Some(oid) = self.routines.catalog.find_relation(table, search_path) else { continue };
            let triggers = &self.routines.catalog.relation(oid).triggers;
            let enabled = triggers.iter().filter(|trigger| trigger.firing != pgvet_syntax::ast::Firing::Disable);
            for trigger in enabled.filter(|trigger| fires(trigger.events)) {
                let times = if trigger.for_each_row { rows } else { Bound::AtMost(1) };
                calls.push((trigger.function, place(table.range()), times, true));
            }
        }
        let mut tally = Tally::default();
        for (oid, range, rows, by_trigger) in calls {
            let (once, of_objects) = self.called(oid);
            let bound = once * rows;
            if bound > Bound::ZERO {
                let of_objects = of_objects && rows != Bound::Unbounded;
                let source = Source { range, bound, callee: Some(oid), by_trigger, in_loop: None, of_objects };
                tally = tally.then(Tally::of(source));
            }
        }
        tally
    }

    /// The subtransactions of one call, and whether they are without bound because of objects of the database only.
    fn called(&mut self, oid: Oid) -> (Bound, bool) {
        if let Some(known) = self.counted.get(&oid) {
            return *known;
        }
        if self.open.contains(&oid) || self.open.len() >= MAX_DEPTH {
            return (Bound::ZERO, false);
        }
        let Some(routine) = self.routines.function(oid) else { return (Bound::ZERO, false) };
        self.open.push(oid);
        let of_call = self.routine(&routine);
        let found = (of_call.most, of_call.of_objects());
        self.open.pop();
        self.counted.insert(oid, found);
        found
    }
}

#[cfg(test)]
mod tests;
