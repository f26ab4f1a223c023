//! ATTACH PARTITION that reads tables or builds indexes.

use crate::fix::Step;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::locking::partition_bound::{self, Proof};
use crate::rules::text::{enumerate, identifier, sql_name};
use pgvet_model::catalog::Relation;
use pgvet_model::effect::{IndexBuild, IndexBuildCause, RelationName, ScanCause};
use pgvet_syntax::ast::{AlterTableAction, Ast, IndexElement, ObjectName, PartitionBound};

declare_rule! {
    /// `ATTACH PARTITION` that has to read a table or build its indexes while nobody can use the table.
    ///
    /// ## Why it matters
    ///
    /// The attached table and the DEFAULT partition are locked in ACCESS EXCLUSIVE mode. While they are locked,
    /// PostgreSQL:
    ///
    /// - reads the whole table, unless a valid CHECK constraint implies the partition bound,
    /// - reads the whole DEFAULT partition, unless a valid CHECK constraint excludes the rows of the new partition,
    /// - builds every index of the parent that the table lacks,
    /// - checks the foreign keys of the parent.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE events ATTACH PARTITION events_2025 FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE events_2025
    ///     ADD CONSTRAINT bound CHECK (at IS NOT NULL AND at >= '2025-01-01' AND at < '2026-01-01') NOT VALID;
    /// ALTER TABLE events_2025 VALIDATE CONSTRAINT bound;
    /// ```
    ///
    /// Build all indexes of the parent on the table as well. Attach the table in a later migration.
    ///
    /// ## When it is not reported
    ///
    /// - a table that the same transaction created, or that the same migration created and left empty
    /// - a table to which earlier migrations added every index of the parent and a valid CHECK constraint that implies
    ///   the partition bound
    "attach-partition-scans", Locking, Warning,
    {
        sources: &["pgls/avoidAttachingPartition", "pg-migration-lint/PGM005"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::AlterTable(statement) = context.ast else { return };
    let attach = statement.commands.iter().find_map(|command| match &command.action {
        AlterTableAction::AttachPartition { partition, bound: Some(bound) } => Some((command, partition, bound)),
        _ => None,
    });
    let Some((command, partition, bound)) = attach.filter(|_| context.effects.fails.is_none()) else { return };
    let parent = context.effects.locks.iter().find(|lock| lock.range == statement.name.range());
    let Some(parent) = parent.and_then(|lock| context.after.get_relation(lock.relation.oid)) else { return };
    let work = Work::new(context);
    if work.relations.is_empty() {
        return;
    }
    let names = enumerate(work.relations.iter().map(|relation| relation.name.as_str()));
    let message = format!(
        "{names} cannot be read or written until the transaction ends: this statement {}",
        work.in_words().join(", and ")
    );
    let help = work.help(context, parent, partition, bound);
    let steps = work.steps(context, parent, partition, bound).filter(|_| statement.commands.len() == 1);
    let mut finding = reporter.report(command.keyword, message).help(help).steps(steps.unwrap_or_default());
    for relation in &work.relations {
        finding = finding.relation(relation);
    }
    finding.emit();
}

/// What attaching does to tables in use.
struct Work<'a> {
    bound: Option<&'a RelationName>,
    default: Option<&'a RelationName>,
    builds: Vec<&'a IndexBuild>,
    foreign_key: bool,
    /// The tables whose rows are read to check the bound of a partition.
    scanned: Vec<&'a str>,
    /// What else happens, for the message.
    parts: Vec<String>,
    /// The tables that cannot be used meanwhile.
    relations: Vec<RelationName>,
}

impl<'a> Work<'a> {
    fn new(context: &RuleContext<'a>) -> Self {
        let mut work = Self {
            bound: None,
            default: None,
            builds: Vec::new(),
            foreign_key: false,
            scanned: Vec::new(),
            parts: Vec::new(),
            relations: Vec::new(),
        };
        for scan in context.effects.scans.iter().filter(|scan| scan.relation.visibility.is_exposed()) {
            let name = scan.relation.name.as_str();
            let part = format!("checks a foreign key of `{name}`");
            match &scan.cause {
                ScanCause::PartitionBound => work.bound = work.bound.or(Some(&scan.relation)),
                ScanCause::DefaultPartition => work.default = work.default.or(Some(&scan.relation)),
                ScanCause::ForeignKey { .. } => work.foreign_key = true,
                _ => continue,
            }
            match &scan.cause {
                ScanCause::ForeignKey { .. } if !work.parts.contains(&part) => work.parts.push(part),
                ScanCause::PartitionBound | ScanCause::DefaultPartition if !work.scanned.contains(&name) => {
                    work.scanned.push(name);
                }
                _ => {}
            }
            work.add(&scan.relation);
        }
        let builds = context.effects.index_builds.iter();
        work.builds = builds
            .filter(|build| build.cause == IndexBuildCause::Partition && build.table.visibility.is_exposed())
            .collect();
        if let Some(first) = work.builds.first() {
            let table = &first.table;
            work.parts.push(match work.builds.len() {
                1 => format!("builds an index on `{}`", table.name),
                more => format!("builds {more} indexes on `{}`", table.name),
            });
            work.add(table);
        }
        work
    }

    /// What the statement does, for the message.
    fn in_words(&self) -> Vec<String> {
        let read = enumerate(self.scanned.iter().copied());
        let scan = format!("reads all rows of {read} to check the partition bound");
        let scan = (!self.scanned.is_empty()).then_some(scan);
        scan.into_iter().chain(self.parts.iter().cloned()).collect()
    }

    fn add(&mut self, relation: &RelationName) {
        if !self.relations.iter().any(|other| other.oid == relation.oid) {
            self.relations.push(relation.clone());
        }
    }

    fn help(
        &self,
        context: &RuleContext<'_>,
        parent: &Relation,
        partition: &ObjectName,
        bound: &PartitionBound,
    ) -> String {
        let mut lines = Vec::new();
        if self.bound.is_some() {
            lines.push(bound_help(context, parent, partition, bound));
        }
        if let Some(default) = self.default {
            let default = sql_name(context, default);
            lines.push(partition_bound::default_scan_help(context, parent, bound, &default, partition));
        }
        if !self.builds.is_empty() {
            let statements = self.builds.iter().filter_map(|build| build_index(context, build)).flatten();
            let sql = statements.fold(String::new(), |sql, statement| sql + "\n    " + &statement + ";");
            let colon = if sql.is_empty() { "" } else { ":" };
            lines.push(format!(
                "first build the parent's indexes concurrently on the partition, outside a \
                                transaction{colon}{sql}"
            ));
        }
        if self.foreign_key {
            lines.push(
                "first add the parent's foreign keys to the partition as NOT VALID, and validate them".to_owned(),
            );
        }
        lines.join("\n")
    }

    /// What makes attaching a matter of a moment, then attaching; the proofs go when the bound says the same.
    fn steps(
        &self,
        context: &RuleContext<'_>,
        parent: &Relation,
        partition: &ObjectName,
        bound: &PartitionBound,
    ) -> Option<Vec<Step>> {
        if self.foreign_key {
            return None;
        }
        let mut proofs = Vec::new();
        if self.bound.is_some() {
            proofs.push(Proof::of_bound(context, parent, partition, bound)?);
        }
        if let Some(default) = self.default {
            proofs.push(Proof::of_default(context, parent, &sql_name(context, default), partition, bound)?);
        }
        let mut sql: Vec<String> = proofs.iter().flat_map(Proof::statements).collect();
        for build in &self.builds {
            sql.extend(build_index(context, build)?);
        }
        sql.push(context.text(context.statement.range).to_owned());
        sql.extend(proofs.iter().map(Proof::drop));
        Some(sql.into_iter().map(Step::new).collect())
    }
}

fn bound_help(context: &RuleContext<'_>, parent: &Relation, partition: &ObjectName, bound: &PartitionBound) -> String {
    let table = &partition.name.text;
    match Proof::of_bound(context, parent, partition, bound) {
        Some(proof) => {
            format!(
                "to avoid the scan of `{table}`, first add a CHECK constraint that implies the partition bound, and \
                 validate it in another transaction:{}",
                proof.lines()
            )
        }
        None => format!(
            "to avoid the scan of `{table}`, first add a CHECK constraint as NOT VALID that implies the partition \
             bound and contains IS NOT NULL for the key, and validate it in another transaction"
        ),
    }
}

/// The statements that build the index on the table first; PostgreSQL takes over an index of the same definition.
fn build_index(context: &RuleContext<'_>, build: &IndexBuild) -> Option<Vec<String>> {
    let index = context.after.get_relation(build.index.oid)?.index()?;
    let columns: Vec<String> = index.plain_columns()?.iter().map(|column| identifier(column)).collect();
    let plain =
        index.predicate.is_none() && index.including.is_empty() && !index.exclusion && !index.nulls_not_distinct;
    let is_plain = |element: &IndexElement| {
        !element.descending
            && element.operator_class.is_none()
            && element.collation.is_none()
            && element.nulls_first.is_none()
    };
    if !plain || !index.elements.iter().all(is_plain) {
        return None;
    }
    let (name, table) = (identifier(&build.index.name), sql_name(context, &build.table));
    let unique = if index.unique { "UNIQUE " } else { "" };
    let method = if index.method == "btree" { String::new() } else { format!(" USING {}", identifier(&index.method)) };
    let columns = columns.join(", ");
    let mut statements = vec![format!("CREATE {unique}INDEX CONCURRENTLY {name} ON {table}{method} ({columns})")];
    let constraints = &context.after.get_relation(build.table.oid)?.constraints;
    if constraints.iter().any(|constraint| constraint.index() == Some(build.index.oid)) {
        let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
        statements.push(format!("ALTER TABLE {table} ADD CONSTRAINT {name} {kind} USING INDEX {name}"));
    }
    Some(statements)
}
