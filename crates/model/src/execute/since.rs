//! Syntax that newer majors have added: the parser is that of the newest.
//!
//! ALTER TABLE and the constraints of CREATE TABLE are checked where they run. `CREATE TRIGGER ... EXECUTE FUNCTION`,
//! which PostgreSQL 10 does not have, is the same as EXECUTE PROCEDURE in the tree and is not recognized.
//!
//! Source: PostgreSQL release notes, section "Changes" of each major.

use super::{Executor, Run, fail};
use pgvet_syntax::ast::{Ast, FunctionBody, PartitionBound, PartitionStrategy};
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    /// Refuses what the parser of the major refuses.
    pub(super) fn check_available(&self, ast: &Ast) -> Run {
        let needs = |major: u8, word: &str, range: TextRange| {
            if self.target.at_least(major) {
                return Ok(());
            }
            fail("42601", format!("syntax error at or near \"{word}\""), range)
        };
        match ast {
            Ast::CreateIndex(index) if !index.including.is_empty() => needs(11, "INCLUDE", index.including[0].range),
            Ast::Reindex(reindex) if reindex.concurrently => needs(12, "CONCURRENTLY", reindex.keyword),
            Ast::CreateFunction(create) if create.procedure => needs(11, "PROCEDURE", create.name.range()),
            Ast::CreateFunction(create) if matches!(create.body, FunctionBody::Atomic { .. }) => {
                needs(14, "BEGIN", create.name.range())
            }
            Ast::Call(call) => needs(11, "CALL", call.call.name_range),
            Ast::CreateTrigger(create) if create.or_replace => needs(14, "TRIGGER", create.name.range),
            Ast::Copy(copy) => copy.filter.as_ref().map_or(Ok(()), |filter| needs(12, "WHERE", filter.range)),
            Ast::CreateTable(create) => {
                let is_hash = |by: &pgvet_syntax::ast::PartitionBy| by.strategy == PartitionStrategy::Hash;
                if create.partition_by.as_ref().is_some_and(is_hash) && !self.target.at_least(11) {
                    let reason = "unrecognized partitioning strategy \"hash\"";
                    return fail("22023", reason, create.name.range());
                }
                let bound = create.partition_of.as_ref();
                bound.map_or(Ok(()), |(_, bound)| self.check_bound_syntax(bound, create.name.range()))
            }
            _ => Ok(()),
        }
    }

    /// DEFAULT and hash partitions.
    pub(super) fn check_bound_syntax(&self, bound: &PartitionBound, range: TextRange) -> Run {
        let word = match bound {
            PartitionBound::Default => "DEFAULT",
            PartitionBound::Hash { .. } => "WITH",
            PartitionBound::List(_) | PartitionBound::Range { .. } => return Ok(()),
        };
        if self.target.at_least(11) {
            Ok(())
        } else {
            fail("42601", format!("syntax error at or near \"{word}\""), range)
        }
    }
}
