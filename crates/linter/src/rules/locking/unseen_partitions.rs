//! What a statement does to partitions that no migration shows, because programs create them.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::RuleContext;
use pgvet_model::effect::{PartitionWork, PartitionWorkKind, RewriteCause};
use pgvet_model::throughput::Work;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;

/// Reports the work that `description` describes, once per range. The description ends before the name of the table.
pub(crate) fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    description: impl Fn(&PartitionWork) -> Option<String>,
    help: &str,
) {
    let mut reported: Vec<TextRange> = Vec::new();
    for work in &context.effects.partition_work {
        let Some(description) = description(work).filter(|_| !reported.contains(&work.range)) else { continue };
        reported.push(work.range);
        let name = &work.relation.name;
        let locks = &context.effects.locks;
        let blocked = if locks.strongest(work.relation.oid).is_some_and(LockMode::blocks_reads) {
            "reads and writes of"
        } else {
            "writes to"
        };
        // These commit after each partition.
        let until = match &work.kind {
            PartitionWorkKind::Rewrite(RewriteCause::VacuumFull | RewriteCause::Cluster) => {
                "reads and writes of one partition at a time".to_owned()
            }
            _ => format!("{blocked} `{name}` until the transaction ends"),
        };
        let message = format!("{description} each partition of `{name}`, and blocks all {until}");
        let effort = match &work.kind {
            PartitionWorkKind::Rewrite(_) => Work::Rewrite,
            PartitionWorkKind::Scan(_) => Work::Scan,
            PartitionWorkKind::IndexBuild(_) => Work::IndexBuild,
        };
        let finding = reporter.report(work.range, message).relation(&work.relation).work(effort).help(help);
        finding.assuming(Assumption::HasPartitions { table: name.clone() }).emit();
    }
}
