//! CREATE TABLE ... PARTITION OF a table in use.

use crate::ast::{Ast, CreateTable};
use crate::effect::{LockMode, ScanCause};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::partition_bound;
use crate::rules::text::sql_name;
use crate::source::TextRange;

declare_rule! {
    /// `CREATE TABLE ... PARTITION OF` a table that is in use.
    ///
    /// ## Why it matters
    ///
    /// The parent is locked ACCESS EXCLUSIVE until the transaction ends: nobody can read or write any of its partitions,
    /// and the lock waits for every query that runs, while all later ones queue behind it. A DEFAULT partition is read
    /// in full under that lock, to see whether it holds rows of the new partition.
    ///
    /// `ATTACH PARTITION` needs SHARE UPDATE EXCLUSIVE only, which stops neither reads nor writes (PostgreSQL 12 and
    /// later).
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
    /// An identity column is excluded because PostgreSQL 17 and later give the partition that of its parent.
    ///
    /// ## When it is not reported
    ///
    /// For a parent that the same transaction created, or the same migration while it is empty.
    "partition-of-locks-parent", Locking, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::CreateTable(statement) = context.ast else { return };
    let Some((parent, bound)) = &statement.partition_of else { return };
    let lock = context.effects.locks.iter().find(|lock| {
        lock.mode == LockMode::AccessExclusive && lock.range == parent.range() && lock.relation.visibility.is_exposed()
    });
    let Some(lock) = lock.filter(|_| context.effects.fails.is_none()) else { return };
    let Some(relation) = context.after.get_relation(lock.relation.oid) else { return };
    let scan = context.effects.scans.iter().find(|scan| scan.cause == ScanCause::DefaultPartition);
    let name = &lock.relation.name;
    let message = match scan {
        Some(scan) => format!(
            "making this partition blocks every read and write of `{name}` while all of its DEFAULT partition `{}` is read",
            scan.relation.name
        ),
        None => format!("making this partition blocks every read and write of `{name}` until the transaction ends"),
    };
    let mut help = help(context, statement, parent.range());
    if let Some(scan) = scan {
        help.push('\n');
        let default = sql_name(context, &scan.relation);
        help += &partition_bound::default_scan_help(context, relation, bound, &default, &statement.name);
    }
    drop(reporter.report(parent.range(), message).relation(&lock.relation).help(help));
}

fn help(context: &RuleContext<'_>, statement: &CreateTable, parent_range: TextRange) -> String {
    if !context.target.at_least(12) {
        return "before PostgreSQL 12 ATTACH PARTITION locks the parent as strongly: set a short lock_timeout and try \
                again when it strikes"
            .to_owned();
    }
    let (table, parent_name) = (context.text(statement.name.range()), context.text(parent_range));
    // The words from FOR VALUES or DEFAULT on stand after the parent's name.
    let bound = bound_text(context, parent_range);
    let advice = "create it as a table of its own and attach it, which stops neither reads nor writes of the parent";
    if statement.partition_by.is_some() || statement.foreign || bound.is_empty() {
        return advice.to_owned();
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
