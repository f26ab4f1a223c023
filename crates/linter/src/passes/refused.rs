//! Statements that never run, because PostgreSQL refuses an earlier statement of their transaction.

use crate::assumption::Assumption;
use crate::confidence::Confidence;
use crate::diagnostic::{Diagnostic, Label};
use crate::meta::Category;
use crate::refusal::is_refusal;
use crate::rules;
use pgvet_model::replay::StatementVisit;
use pgvet_syntax::ast::{Ast, Transaction};
use rustc_hash::FxHashMap;

/// The transaction blocks in which PostgreSQL refuses a statement.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    file: u32,
    number: u32,
    /// Where the refused statement begins.
    from: u32,
    /// Where statements run again, after the block or a ROLLBACK TO.
    until: Option<u32>,
}

impl Refused {
    /// Notes a statement of a reported migration, of which there is a visit for each version.
    pub(crate) fn note(&mut self, visit: &StatementVisit<'_>) {
        let (file, start) = (visit.file, visit.statement.range.start);
        let number = visit.session.block.as_ref().map(|block| block.number);
        if let Some(open) = self.blocks.last_mut().filter(|block| block.file == file && block.until.is_none()) {
            let recovers = matches!(visit.ast, Ast::Transaction(Transaction::RollbackTo(_)));
            if Some(open.number) == number && !recovers {
                return;
            }
            open.until = Some(start);
        }
        if let (Some(number), Some(_)) = (number, &visit.effects.fails) {
            self.blocks.push(Block { file, number, from: start, until: None });
        }
    }

    /// Findings about later statements are only possible if it is certain that PostgreSQL refuses an earlier one. The
    /// finding of the refusal counts them.
    pub(crate) fn doubt_later(&self, found: &mut [Diagnostic]) {
        let mut of_files: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        if !self.blocks.is_empty() {
            found.iter().enumerate().for_each(|(at, found)| of_files.entry(found.file).or_default().push(at));
        }
        for block in &self.blocks {
            let Some(of_file) = of_files.get(&block.file) else { continue };
            let is_the_refusal = |at: &&usize| {
                let found = &found[**at];
                found.statement.start == block.from && found.confidence == Confidence::Certain && is_refusal(found)
            };
            let Some(&at) = of_file.iter().find(is_the_refusal) else { continue };
            let versions = found[at].pg_versions.clone();
            let is_later = |found: &Diagnostic| {
                let start = place_of(found);
                start > block.from
                    && block.until.is_none_or(|until| start < until)
                    && found.pg_versions.iter().all(|version| versions.contains(version))
                    && !is_of_engine(found)
            };
            let mut count = 0;
            for &later in of_file {
                let later = &mut found[later];
                if !is_later(later) {
                    continue;
                }
                if !later.assumptions.contains(&Assumption::EarlierRefusalCorrected) {
                    later.assume(Assumption::EarlierRefusalCorrected);
                }
                count += 1;
            }
            let findings = match count {
                0 => continue,
                1 => "a finding about them is".to_owned(),
                count => format!("{count} findings about them are"),
            };
            let message = format!("later statements of this transaction do not run: {findings} only possible");
            let (file, range) = (found[at].file, found[at].range);
            found[at].labels.push(Label { file, range, message });
        }
    }
}

/// Where the statement begins. A finding about a whole transaction has none, and is at one of its statements.
fn place_of(found: &Diagnostic) -> u32 {
    if found.statement.is_empty() { found.range.start } else { found.statement.start }
}

fn is_of_engine(found: &Diagnostic) -> bool {
    rules::find(found.rule).is_some_and(|rule| rule.meta.category == Category::Engine)
}
