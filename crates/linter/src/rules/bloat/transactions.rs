//! The savepoints and subtransactions of a migration, transaction by transaction.

use crate::ast::{Ast, Part, Transaction};
use crate::check::TransactionMode;
use crate::routine::Routines;
use crate::routine::subtransactions::Bound;
use crate::rule::MigrationContext;
use crate::source::TextRange;
use crate::statement::Statement;
use smol_str::SmolStr;

/// One transaction of a migration.
#[derive(Debug, Default)]
pub(super) struct TransactionSteps {
    /// Subtransactions that write, in order: savepoints and code.
    pub(super) begins: Vec<Begin>,
    /// Savepoints that are there when it commits.
    pub(super) unreleased: Vec<Savepoint>,
}

/// A statement that begins subtransactions.
#[derive(Debug)]
pub(super) struct Begin {
    pub(super) range: TextRange,
    pub(super) bound: Bound,
}

/// A savepoint that is set.
#[derive(Debug, Clone)]
pub(super) struct Savepoint {
    pub(super) name: SmolStr,
    pub(super) range: TextRange,
    wrote: bool,
}

/// The transactions of a migration that have savepoints or run code; cheap for all others.
pub(super) fn transactions(context: &MigrationContext<'_>) -> Vec<TransactionSteps> {
    let statements = &context.migration.file.statements;
    let interesting = |statement: &Statement| {
        matches!(&statement.parsed, Ok(Ast::Do(_) | Ast::Call(_) | Ast::Transaction(Transaction::Savepoint(_))))
    };
    if !statements.iter().any(interesting) {
        return Vec::new();
    }
    let mut walk = Walk {
        context,
        routines: Routines::new(context.migrations, context.after, context.settings),
        in_transaction: context.migration.transaction != TransactionMode::Autocommit,
        stack: Vec::new(),
        present: TransactionSteps::default(),
        ended: Vec::new(),
    };
    let section = context.migration.section;
    for statement in statements.iter().filter(|one| section.is_none_or(|section| section.contains(one.range))) {
        if let Ok(ast) = &statement.parsed {
            walk.statement(statement, ast);
        }
    }
    walk.commit();
    walk.ended
}

struct Walk<'c, 'a> {
    context: &'c MigrationContext<'a>,
    routines: Routines<'a>,
    in_transaction: bool,
    stack: Vec<Savepoint>,
    present: TransactionSteps,
    ended: Vec<TransactionSteps>,
}

impl Walk<'_, '_> {
    fn statement(&mut self, statement: &Statement, ast: &Ast) {
        match ast {
            Ast::Transaction(control) => self.control(control),
            _ => {
                if writes(ast) {
                    self.write();
                }
                self.code(statement, ast);
                if !self.in_transaction {
                    self.present = TransactionSteps::default();
                }
            }
        }
    }

    fn control(&mut self, control: &Transaction) {
        match control {
            Transaction::Begin => self.in_transaction = true,
            Transaction::Commit { .. } | Transaction::Prepare => self.commit(),
            Transaction::Rollback { .. } => {
                self.stack.clear();
                self.present = TransactionSteps::default();
                self.in_transaction = false;
            }
            Transaction::Savepoint(name) => {
                self.stack.push(Savepoint { name: name.text.clone(), range: name.range, wrote: false });
            }
            Transaction::Release(name) => {
                if let Some(at) = self.stack.iter().rposition(|savepoint| savepoint.name == name.text) {
                    self.stack.truncate(at);
                }
            }
            Transaction::RollbackTo(name) => self.roll_back_to(&name.text),
            Transaction::CommitPrepared | Transaction::RollbackPrepared => {}
        }
    }

    /// What was begun since the savepoint is rolled back and out of the cache; the savepoint begins anew.
    fn roll_back_to(&mut self, name: &SmolStr) {
        let Some(at) = self.stack.iter().rposition(|savepoint| savepoint.name == *name) else { return };
        self.stack.truncate(at + 1);
        let savepoint = &mut self.stack[at];
        savepoint.wrote = false;
        let since = savepoint.range.start;
        self.present.begins.retain(|begin| begin.range.start < since);
    }

    /// Gives every open savepoint an XID.
    fn write(&mut self) {
        for savepoint in self.stack.iter_mut().filter(|savepoint| !savepoint.wrote) {
            savepoint.wrote = true;
            self.present.begins.push(Begin { range: savepoint.range, bound: Bound::AtMost(1) });
        }
    }

    fn code(&mut self, statement: &Statement, ast: &Ast) {
        let path = self.context.session.settings.search_path();
        let (range, found) = match ast {
            Ast::Do(block) => match self.routines.block(self.context.file, statement.range, block, path) {
                Some(routine) => (block.keyword, self.routines.subtransactions(&routine).most),
                None => return,
            },
            ast => {
                let found = self.routines.subtransactions_of(ast, &path);
                let Some(first) = found.sources.first() else { return };
                (first.range, found.most)
            }
        };
        if found > Bound::ZERO {
            self.write();
            self.present.begins.push(Begin { range, bound: found });
        }
    }

    fn commit(&mut self) {
        self.present.unreleased = std::mem::take(&mut self.stack);
        self.ended.push(std::mem::take(&mut self.present));
        self.in_transaction = self.context.migration.transaction == TransactionMode::SingleString;
    }
}

/// May a statement of a migration write? Nearly all that are no query do.
fn writes(ast: &Ast) -> bool {
    match ast {
        Ast::Set(_) | Ast::Discard(_) | Ast::Other(_) | Ast::Do(_) | Ast::Explain(_) | Ast::Prepare(_) => false,
        Ast::Select(query) => {
            let mut writes = !query.locking.is_empty();
            query.visit(&mut |part| {
                writes |= matches!(part, Part::Insert(_) | Part::Update(_) | Part::Delete(_) | Part::Merge(_));
            });
            writes
        }
        _ => true,
    }
}
