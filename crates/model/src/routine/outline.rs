//! Where a migration has statements of some kinds: rules ask the same of what follows each of tens of thousands of
//! statements.

use crate::migration::Migration;
use pgvet_syntax::ast::{AlterTableAction, Ast, Transaction};
use std::ops::Range;

/// The statements of a migration by what rules look for; positions in [`Migration::own_statements`].
#[derive(Debug, Default)]
pub struct Outline {
    /// Those that end a transaction and keep what it did.
    commits: Vec<usize>,
    /// Those that can give a name to a relation or a column, and those that can run code.
    makers: Vec<usize>,
    drops: Vec<usize>,
    /// Those that can run code.
    calls: Vec<usize>,
    /// Those that wait for other transactions, with CONCURRENTLY.
    concurrent: Vec<usize>,
    /// Those that may do more than add to what is there.
    others: Vec<usize>,
}

impl Outline {
    pub fn of(migration: &Migration<'_>) -> Self {
        let mut outline = Self::default();
        for (at, statement) in migration.own_statements().iter().enumerate() {
            let Some(ast) = statement.ast() else { continue };
            let kinds = [
                (ends(ast), &mut outline.commits),
                (may_make(ast), &mut outline.makers),
                (matches!(ast, Ast::Drop(_)), &mut outline.drops),
                (may_run_code(ast), &mut outline.calls),
                (ast.is_concurrent(), &mut outline.concurrent),
                (!only_adds(ast), &mut outline.others),
            ];
            kinds.into_iter().filter(|(is_one, _)| *is_one).for_each(|(_, places)| places.push(at));
        }
        outline
    }

    /// From a position to the end of the transaction there.
    pub fn to_commit(&self, from: usize, end: usize) -> Range<usize> {
        let commit = self.commits[self.commits.partition_point(|at| *at < from)..].first();
        from..commit.copied().unwrap_or(end)
    }

    pub fn makers(&self, range: &Range<usize>) -> &[usize] {
        within(&self.makers, range)
    }

    pub fn drops(&self, range: &Range<usize>) -> &[usize] {
        within(&self.drops, range)
    }

    /// Whether the statements leave everything that is there as it is, and only add to it.
    pub fn only_adds(&self, range: &Range<usize>) -> bool {
        within(&self.others, range).is_empty()
    }

    pub fn has_concurrent(&self) -> bool {
        !self.concurrent.is_empty()
    }

    pub fn runs_code(&self, range: &Range<usize>) -> bool {
        !within(&self.calls, range).is_empty()
    }
}

fn within<'o>(places: &'o [usize], range: &Range<usize>) -> &'o [usize] {
    let [start, end] = [range.start, range.end].map(|limit| places.partition_point(|at| *at < limit));
    &places[start..end.max(start)]
}

fn ends(ast: &Ast) -> bool {
    matches!(ast, Ast::Transaction(Transaction::Prepare | Transaction::Commit { .. }))
}

fn may_run_code(ast: &Ast) -> bool {
    matches!(ast, Ast::Do(_) | Ast::Call(_) | Ast::Select(_))
}

fn only_adds(ast: &Ast) -> bool {
    use AlterTableAction as A;
    match ast {
        Ast::CreateTable(_) | Ast::CreateIndex(_) => true,
        Ast::AlterTable(alter) => {
            alter.commands.iter().all(|command| matches!(command.action, A::AddColumn { .. } | A::AddConstraint { .. }))
        }
        _ => false,
    }
}

/// Returns whether the statement can give a name to a relation or a column, itself or by code.
pub fn may_make(ast: &Ast) -> bool {
    match ast {
        Ast::AlterTable(alter) => {
            alter.commands.iter().any(|command| matches!(command.action, AlterTableAction::AddColumn { .. }))
        }
        Ast::CreateTable(_)
        | Ast::Rename(_)
        | Ast::SetSchema(_)
        | Ast::CreateTableAs(_)
        | Ast::CreateView(_)
        | Ast::CreateSchema(_)
        | Ast::CreateExtension(_)
        | Ast::CreateOther(_)
        | Ast::Explain(_)
        | Ast::Execute(_) => true,
        _ => may_run_code(ast),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::source::SourceFile;
    use pgvet_syntax::statement::parse_file;

    #[test]
    fn kinds_are_found_where_they_stand() {
        let text = "BEGIN; DROP TABLE a; ALTER TABLE b ADD COLUMN c int; COMMIT; ALTER TABLE b DROP c; SELECT f(); DROP TABLE b";
        let file = parse_file(SourceFile::new("m.sql".into(), text.into()));
        let outline = Outline::of(&Migration::new(&file));
        assert_eq!((outline.to_commit(1, 7), outline.to_commit(4, 7)), (1..3, 4..7));
        assert_eq!((outline.makers(&(0..5)), outline.makers(&(3..7))), (&[2][..], &[5][..]));
        assert_eq!((outline.drops(&(2..7)), outline.drops(&(2..6))), (&[6][..], &[][..]));
        assert!(!outline.has_concurrent());
        assert!(outline.only_adds(&(2..3)) && !outline.only_adds(&(1..3)));
        assert!(outline.runs_code(&(5..6)) && !outline.runs_code(&(0..5)) && !outline.runs_code(&(6..7)));
    }
}
