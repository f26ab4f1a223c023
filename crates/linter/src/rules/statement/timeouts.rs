//! Where in a migration a `lock_timeout` was set, and why it is not in effect at a later statement.

use crate::rule::{Earlier, RuleContext};
use crate::rules::statement::locks::{blocks_only_writes_of_lookup, stops_queries};
use crate::settings::LockTimeout;
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::{Lock, RelationName};
use pgvet_model::migration::Migration;
use pgvet_model::session::HeldLock;
use pgvet_syntax::ast::{Ast, Discard, Literal, LockMode, Setting, Transaction};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;
use std::cmp::Reverse;

/// The settings that end a statement or transaction that takes too long.
pub(crate) const TIMEOUTS: [&str; 3] = ["lock_timeout", "statement_timeout", "transaction_timeout"];

/// Why a `lock_timeout` that the migration set does not act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// SET LOCAL outside a transaction block.
    NoTransaction,
    /// `SET lock_timeout = 0`.
    Zero,
    /// RESET, RESET ALL, DISCARD ALL, SET ... TO DEFAULT.
    Reset,
    /// COMMIT after SET LOCAL.
    Committed,
    /// ROLLBACK of the transaction that set it.
    RolledBack,
}

/// What the migration did to `lock_timeout` last, where that means that it is off.
pub(crate) fn lost(context: &RuleContext<'_>) -> Option<(Lost, TextRange)> {
    let end = context.outer().start;
    let is_before = |read: &TimeoutsRead| read.file == context.file && read.end <= end;
    let known = context.endings.recall().filter(is_before);
    let mut read = known.unwrap_or_else(|| TimeoutsRead::new(context.file));
    read.go_on(context.migration, end, context.earlier);
    let mut walk = read.walk;
    context.endings.remember(read);
    if let Some(code) = &context.code {
        walk.in_block = true;
        for run in code.earlier {
            let range = run.code.shown.range(run.statement.range);
            run.statement.ast().into_iter().for_each(|ast| walk.statement(ast, range));
        }
    }
    walk.lost
}

/// How far a migration was read, so that rules that ask at each of its statements read it once.
#[derive(Debug)]
struct TimeoutsRead {
    file: u32,
    /// The statements that begin before this were read.
    end: u32,
    /// How many these are.
    count: usize,
    walk: Walk,
}

impl TimeoutsRead {
    fn new(file: u32) -> Self {
        let walk = Walk { in_block: false, local: false, set_in_block: false, set: false, lost: None };
        Self { file, end: 0, count: 0, walk }
    }

    /// Reads the statements before `end`, which have run all this.
    fn go_on(&mut self, migration: &Migration<'_>, end: u32, ran: &[Earlier]) {
        let statements = migration.own_statements();
        let count = statements.partition_point(|statement| statement.range.start < end);
        for at in self.count..count {
            self.walk.go_through(migration, statements, at, ran);
        }
        (self.count, self.end) = (count, end);
    }
}

impl Walk {
    fn go_through(&mut self, migration: &Migration<'_>, statements: &[Statement], at: usize, ran: &[Earlier]) {
        let (walk, statement) = (self, &statements[at]);
        let sent = migration.sent(statements, at);
        walk.in_block |= sent.opens;
        let first = ran.partition_point(|run| run.outer < statement.range.start);
        let here = ran[first..].iter().take_while(|run| run.outer == statement.range.start);
        let in_code = here.filter(|run| run.code.is_some());
        walk.code(in_code, statement.range);
        if let Some(ast) = statement.ast() {
            walk.statement(ast, statement.range);
        }
        if sent.closes {
            walk.end(walk.local, Lost::Committed, statement.range);
            walk.in_block = false;
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Walk {
    in_block: bool,
    /// The value that is in effect was set with SET LOCAL.
    local: bool,
    /// It was set in the transaction that is open.
    set_in_block: bool,
    set: bool,
    lost: Option<(Lost, TextRange)>,
}

impl Walk {
    /// Code runs in a transaction, be it that of its statement alone.
    fn code<'r>(&mut self, ran: impl Iterator<Item = &'r Earlier>, statement: TextRange) {
        let mut ran = ran.peekable();
        if ran.peek().is_none() {
            return;
        }
        let in_block = std::mem::replace(&mut self.in_block, true);
        ran.for_each(|run| self.statement(&run.ast, run.range));
        if !in_block {
            self.end(self.local, Lost::Committed, statement);
        }
        self.in_block = in_block;
    }

    fn statement(&mut self, ast: &Ast, range: TextRange) {
        match ast {
            Ast::Set(set) => match &set.setting {
                Setting::Value { name, values } if name == "lock_timeout" => {
                    self.value(is_zero(values), set.local, range);
                }
                Setting::Default { name } if name == "lock_timeout" => self.reset(range),
                Setting::ResetAll => self.reset(range),
                _ => {}
            },
            Ast::Discard(Discard::All) => self.reset(range),
            Ast::Transaction(Transaction::Begin) => self.in_block = true,
            Ast::Transaction(Transaction::Commit { chain }) => {
                self.end(self.local, Lost::Committed, range);
                self.in_block = *chain;
            }
            Ast::Transaction(Transaction::Rollback { chain }) => {
                self.end(self.set_in_block, Lost::RolledBack, range);
                self.in_block = *chain;
            }
            _ => {}
        }
    }

    fn value(&mut self, zero: bool, local: bool, range: TextRange) {
        if local && !self.in_block {
            if !zero && !self.set {
                self.lost = Some((Lost::NoTransaction, range));
            }
            return;
        }
        self.set = !zero;
        self.local = local;
        self.set_in_block = self.in_block;
        self.lost = zero.then_some((Lost::Zero, range));
    }

    fn reset(&mut self, range: TextRange) {
        if self.set {
            self.lost = Some((Lost::Reset, range));
        }
        self.set = false;
    }

    fn end(&mut self, ends: bool, why: Lost, range: TextRange) {
        if self.set && ends {
            self.lost = Some((why, range));
            self.set = false;
        }
        self.set_in_block = false;
        self.local = false;
    }
}

fn is_zero(values: &[Literal]) -> bool {
    match values {
        [Literal::Integer(number)] => *number == 0,
        [Literal::String(text)] => {
            text.trim_start().starts_with('0') && !text.bytes().any(|byte| byte.is_ascii_digit() && byte != b'0')
        }
        _ => false,
    }
}

/// Whether a `lock_timeout` is in effect, set here or by the program that runs the migration.
pub(crate) fn lock_timeout_in_effect(context: &RuleContext<'_>) -> bool {
    let settings = &context.session.settings;
    (settings.timeout("lock_timeout").is_some() && !settings.is_doubtful("lock_timeout"))
        || (context.settings.lock_timeout == LockTimeout::Runner && settings.get("lock_timeout").is_none())
}

/// The lock for which the statement may have to wait while others queue behind it: strong enough to stop reads or
/// writes, on a table or view that others see, and not held by the transaction already. Of several it is the one that
/// blocks most, on the oldest table; that of a table of this deployment, or one that blocks only writes of a lookup table,
/// only if there is no other.
pub(crate) fn awaited_lock<'c>(context: &RuleContext<'c>) -> Option<&'c Lock> {
    awaited_lock_of(context, |_| true)
}

/// That lock among those on the relations that are meant.
pub(crate) fn awaited_lock_of<'c>(
    context: &RuleContext<'c>,
    is_meant: impl Fn(&RelationName) -> bool,
) -> Option<&'c Lock> {
    let fails = context.effects.fails.is_some();
    if fails || context.effects.waits_for_transactions {
        return None;
    }
    let held = |lock: &Lock| {
        let block = context.session.block.as_ref();
        block.is_some_and(|block| block.locks.holds(lock.relation.oid, lock.mode))
    };
    let waits = context.effects.locks.iter().filter(|lock| {
        makes_queue(lock.relation.kind, lock.mode)
            && lock.relation.visibility.is_exposed()
            && !lock.is_nowait()
            && !held(lock)
            && is_meant(&lock.relation)
    });
    waits.min_by_key(|lock| {
        let birth = context.before.get_relation(lock.relation.oid).map(|relation| &relation.birth);
        let is_new = birth.is_some_and(|birth| birth.is_of(context.deployment()));
        let is_idle = blocks_only_writes_of_lookup(context, lock.relation.oid, lock.mode);
        (is_idle, is_new, Reverse(lock.mode), birth.and_then(|birth| birth.deployment))
    })
}

/// Whether an earlier statement of the transaction waited for a lock of this kind on a relation that is not gone. Few
/// sessions, if any, wait for a lock that blocks only writes of a lookup table.
pub(crate) fn waited_before(context: &RuleContext<'_>) -> bool {
    let Some(block) = &context.session.block else { return false };
    let replaced = |oid| {
        let old = block.catalog_before().get_relation(oid)?;
        context.before.relation_named(&old.schema, &old.name).and(Some(old))
    };
    let is_strong = |held: &HeldLock| {
        let relation = context.before.get_relation(held.relation).or_else(|| replaced(held.relation));
        relation.is_some_and(|relation| makes_queue(relation.kind, held.mode))
            && !held.is_nowait()
            && !blocks_only_writes_of_lookup(context, held.relation, held.mode)
    };
    block.locks.strong().any(is_strong)
}

/// Whether queries queue behind a session that waits for the lock. Nobody writes to a materialized view but REFRESH.
fn makes_queue(kind: RelationKind, mode: LockMode) -> bool {
    let blocks = if kind == RelationKind::MaterializedView { mode.blocks_reads() } else { mode.blocks_writes() };
    blocks && stops_queries(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_model::migration::TransactionMode;
    use pgvet_syntax::source::SourceFile;
    use pgvet_syntax::statement::parse_file;

    fn lost_at_end(text: &str, transaction: TransactionMode) -> Option<Lost> {
        let source = SourceFile::new("m.sql".into(), text.into());
        let file = parse_file(source);
        let migration = Migration { transaction, ..Migration::new(&file) };
        let mut read = TimeoutsRead::new(0);
        for end in [0, text.len() as u32 / 2, text.len() as u32] {
            read.go_on(&migration, end, &[]);
        }
        read.walk.lost.map(|(why, _)| why)
    }

    #[test]
    fn says_why_a_timeout_does_not_act() {
        for (text, expected) in [
            ("SELECT 1;", None),
            ("SET lock_timeout = '2s';", None),
            ("SET LOCAL lock_timeout = '2s';", Some(Lost::NoTransaction)),
            ("BEGIN; SET LOCAL lock_timeout = '2s';", None),
            ("BEGIN; SET LOCAL lock_timeout = '2s'; COMMIT;", Some(Lost::Committed)),
            ("BEGIN; SET lock_timeout = '2s'; COMMIT;", None),
            ("BEGIN; SET lock_timeout = '2s'; ROLLBACK;", Some(Lost::RolledBack)),
            ("SET lock_timeout = '2s'; BEGIN; ROLLBACK;", None),
            ("SET lock_timeout = 0;", Some(Lost::Zero)),
            ("SET lock_timeout = '0ms';", Some(Lost::Zero)),
            ("SET lock_timeout = '0.5s';", None),
            ("SET lock_timeout = '2s'; RESET lock_timeout;", Some(Lost::Reset)),
            ("SET lock_timeout = '2s'; DISCARD ALL;", Some(Lost::Reset)),
            ("RESET ALL;", None),
            ("SET lock_timeout = '2s'; RESET ALL; SET lock_timeout = '1s';", None),
        ] {
            assert_eq!(lost_at_end(text, TransactionMode::Autocommit), expected, "{text}");
        }
        let local = "SET LOCAL lock_timeout = '2s';";
        assert_eq!(lost_at_end(local, TransactionMode::Transaction), None);
    }
}
