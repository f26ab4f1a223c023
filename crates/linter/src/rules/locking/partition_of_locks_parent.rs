//! CREATE TABLE ... PARTITION OF a table in use.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::locking::partition_bound::{self, default_partition};
use crate::rules::text::sql_name;
use pgvet_model::catalog::{Oid, RelationKind};
use pgvet_model::effect::{Lock, RelationName, Scan, ScanCause};
use pgvet_syntax::ast::{Ast, CreateTable, LockMode};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `CREATE TABLE ... PARTITION OF` a table that is in use.
    ///
    /// ## Why it matters
    ///
    /// The parent is locked in ACCESS EXCLUSIVE mode until the transaction ends: nobody can read or write through the
    /// parent. The statement waits for every open transaction that has used the parent, and all later queries on it
    /// queue behind it. If there is a DEFAULT partition, PostgreSQL reads it in full under that lock, to find rows that
    /// belong to the new partition.
    ///
    /// `ATTACH PARTITION` only needs SHARE UPDATE EXCLUSIVE on the parent, which blocks neither reads nor writes
    /// (PostgreSQL 12 and later). `ATTACH PARTITION` still takes ACCESS EXCLUSIVE on a DEFAULT partition, and reads
    /// that partition unless a valid CHECK constraint excludes the rows of the new partition.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE events_2026 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE events_2026 (LIKE events INCLUDING ALL EXCLUDING IDENTITY);
    /// ALTER TABLE events ATTACH PARTITION events_2026 FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
    /// ```
    ///
    /// The example needs `EXCLUDING IDENTITY` because PostgreSQL 17 and later give the partition the identity columns
    /// of its parent when it is attached.
    ///
    /// ## When it is not reported
    ///
    /// - a parent that the same transaction created, or that the same migration created and left empty
    "partition-of-locks-parent", Locking, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for lock in &context.effects.locks {
        let strong = lock.mode == LockMode::AccessExclusive && lock.relation.visibility.is_exposed();
        if strong && gets_new_partition(context, lock.relation.oid) {
            report(context, lock, reporter);
        }
    }
}

/// Whether the statement creates a table that is a partition of `parent` from the start.
fn gets_new_partition(context: &RuleContext<'_>, parent: Oid) -> bool {
    let is_child = |created: &RelationName| {
        let relation = context.after.get_relation(created.oid);
        created.kind.is_table() && relation.is_some_and(|relation| relation.parents.contains(&parent))
    };
    context.after.get_relation(parent).is_some_and(|parent| parent.kind == RelationKind::PartitionedTable)
        && context.effects.creates.iter().any(is_child)
}

fn report(context: &RuleContext<'_>, lock: &Lock, reporter: &mut Reporter<'_>) {
    let scan = context.effects.scans.iter().find(|scan| scan.cause == ScanCause::DefaultPartition);
    let name = &lock.relation.name;
    let message = match scan {
        Some(scan) => format!(
            "creating this partition reads all of the DEFAULT partition `{}`, and blocks all reads and writes of \
             `{name}` until the transaction ends",
            scan.relation.name
        ),
        None => format!("creating this partition blocks all reads and writes of `{name}` until the transaction ends"),
    };
    let help = match context.ast {
        Ast::CreateTable(statement) => {
            let default = scan.and_then(|scan| default_help(context, statement, lock, scan)).unwrap_or_default();
            help(context, statement, lock) + &default
        }
        _ => advice(context, lock.relation.oid),
    };
    reporter.report(lock.range, message).relation(&lock.relation).help(help).emit();
}

fn default_help(context: &RuleContext<'_>, statement: &CreateTable, lock: &Lock, scan: &Scan) -> Option<String> {
    let (_, bound) = statement.partition_of.as_ref()?;
    let parent = context.after.get_relation(lock.relation.oid)?;
    let default = sql_name(context, &scan.relation);
    Some(format!("\n{}", partition_bound::default_scan_help(context, parent, bound, &default, &statement.name)))
}

/// Attaching also locks the DEFAULT partition. Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`,
/// `ATExecAttachPartition`.
fn advice(context: &RuleContext<'_>, parent: Oid) -> String {
    let advice =
        "create the partition as a separate table and attach it, which blocks neither reads nor writes of the parent";
    match default_partition(context, parent) {
        Some(default) => format!(
            "create the partition as a separate table and attach it, which takes only SHARE UPDATE EXCLUSIVE on the \
             parent, but still ACCESS EXCLUSIVE on the DEFAULT partition `{}`",
            default.name
        ),
        None => advice.to_owned(),
    }
}

fn help(context: &RuleContext<'_>, statement: &CreateTable, lock: &Lock) -> String {
    let parent_range = lock.range;
    if !context.target.at_least(12) {
        return "set a short lock_timeout, and retry if it expires. Creating a separate table and attaching it avoids \
                the lock only from PostgreSQL 12 on"
            .to_owned();
    }
    let (table, parent_name) = (context.text(statement.name.range()), context.text(parent_range));
    // The words from FOR VALUES or DEFAULT on stand after the parent's name.
    let bound = bound_text(context, parent_range);
    let advice = advice(context, lock.relation.oid);
    if statement.partition_by.is_some() || statement.foreign || bound.is_empty() {
        return advice;
    }
    format!(
        "{advice}:\n    CREATE TABLE {table} (LIKE {parent_name} INCLUDING ALL EXCLUDING IDENTITY);\n    \
         ALTER TABLE {parent_name} ATTACH PARTITION {table} {bound};"
    )
}

/// `FOR VALUES ...` or `DEFAULT` as written, without what follows the bound.
fn bound_text(context: &RuleContext<'_>, parent: TextRange) -> String {
    let tokens = context.statement.tokens.iter().filter(|token| token.range.start >= parent.end);
    let text = |range: TextRange| context.text(range);
    let mut covered = TextRange::default();
    let mut depth = 0_u32;
    let mut inside_values = false;
    for token in tokens {
        let word = text(token.range).to_ascii_uppercase();
        match word.as_str() {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            "FOR" | "VALUES" | "FROM" | "TO" | "IN" => inside_values = true,
            "WITH" if inside_values && text(covered).to_ascii_uppercase().ends_with("VALUES") => {}
            "DEFAULT" => {}
            _ => break,
        }
        // A list of columns stands between the parent and its bound.
        if inside_values || word == "DEFAULT" {
            covered = covered.cover(token.range);
        }
    }
    text(covered).to_owned()
}
