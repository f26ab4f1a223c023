//! The savepoints and subtransactions of a migration, transaction by transaction.

use crate::rule::MigrationContext;
use pgvet_model::migration::TransactionMode;
use pgvet_model::routine::subtransactions::Source;
use pgvet_model::routine::{Bound, Routines};
use pgvet_syntax::ast::{Ast, Part, Transaction};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;
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
    /// For a statement that calls functions or fires triggers: the first of them.
    pub(super) source: Option<Source>,
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
    let has_functions = context.after.functions().next().is_some();
    let interesting = |statement: &Statement| match statement.ast() {
        Some(Ast::Do(_) | Ast::Transaction(Transaction::Savepoint(_))) => true,
        Some(Ast::Select(_) | Ast::Call(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_)) => has_functions,
        _ => false,
    };
    if !context.migration.statements().any(interesting) {
        return Vec::new();
    }
    let mut walk = Walk {
        context,
        routines: context.routines(),
        in_transaction: context.migration.transaction != TransactionMode::Autocommit,
        stack: Vec::new(),
        present: TransactionSteps::default(),
        ended: Vec::new(),
    };
    for statement in context.migration.statements() {
        if let Some(ast) = statement.ast() {
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
        if let Ast::Transaction(control) = ast {
            return self.control(control);
        }
        if writes(ast) {
            self.write();
        }
        self.code(statement, ast);
        // Each statement is a transaction of its own.
        if !self.in_transaction && !self.present.begins.is_empty() {
            self.ended.push(std::mem::take(&mut self.present));
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

    /// What was begun since the savepoint is rolled back and out of the cache; the savepoint begins again.
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
            self.present.begins.push(Begin { range: savepoint.range, bound: Bound::AtMost(1), source: None });
        }
    }

    fn code(&mut self, statement: &Statement, ast: &Ast) {
        let path = self.context.session.settings.search_path();
        let begin = match ast {
            Ast::Do(block) => match self.routines.block(self.context.file, statement.range, block, path) {
                Some(routine) => {
                    let bound = self.routines.subtransactions(&routine).most;
                    Begin { range: block.keyword, bound, source: None }
                }
                None => return,
            },
            ast => {
                let found = self.routines.subtransactions_of(ast, &path);
                let Some(first) = found.sources.into_iter().max_by_key(|source| source.bound) else { return };
                Begin { range: first.range, bound: found.most, source: Some(first) }
            }
        };
        if begin.bound > Bound::ZERO {
            self.write();
            self.present.begins.push(begin);
        }
    }

    fn commit(&mut self) {
        self.present.unreleased = std::mem::take(&mut self.stack);
        self.ended.push(std::mem::take(&mut self.present));
        let migration = self.context.migration;
        self.in_transaction = migration.transaction != TransactionMode::Autocommit && migration.begins_another();
    }
}

/// Whether a statement of a migration may write, as nearly all statements other than queries do.
fn writes(ast: &Ast) -> bool {
    match ast {
        Ast::Set(_)
        | Ast::Discard(_)
        | Ast::Deallocate(_)
        | Ast::GrantRole(_)
        | Ast::CreateRole(_)
        | Ast::Other(_)
        | Ast::Do(_)
        | Ast::Explain(_)
        | Ast::Prepare(_) => false,
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
