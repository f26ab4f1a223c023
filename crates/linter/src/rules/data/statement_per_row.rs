//! Programs that send a statement for each row.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use pgvet_model::effect::RelationName;
use pgvet_model::production::TableSize;
use pgvet_syntax::ast::{Ast, Part};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;

/// From so many executions of one statement on, a program has sent it in a loop.
const LOOP: u64 = 10;

declare_rule! {
    /// A migration in a programming language that sends the same statement for each row, as seen by `pgvet capture`.
    ///
    /// ## Why it matters
    ///
    /// Each statement is a round trip between the program and the server. A loop over a table with a million rows sends
    /// a million statements, which takes many minutes even if each takes a millisecond. If the loop runs in one
    /// transaction, all changed rows stay locked until it commits. Tables that the transaction altered before the loop
    /// stay locked as well.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- captured
    /// -- history:
    /// CREATE TABLE accounts (id bigint PRIMARY KEY, email text);
    /// -- migration: transaction
    /// -- sent 250 times, with these or other values
    /// UPDATE accounts SET email = lower(email) WHERE id = 1;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- captured
    /// -- history:
    /// CREATE TABLE accounts (id bigint PRIMARY KEY, email text);
    /// -- migration: transaction
    /// UPDATE accounts SET email = lower(email) WHERE id BETWEEN 1 AND 1000;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a statement that was sent fewer than 10 times
    /// - UPDATE and DELETE that do not find their row by a primary key or a unique index. The program probably goes
    ///   through a fixed list of values, such as renamed time zones.
    /// - INSERT, unless the migration first reads rows of an existing table: the program probably inserts a fixed list
    ///   of rows. A query that only tests whether a row exists is not treated as reading rows.
    /// - a SELECT in a loop that also changes rows: one of the changing statements is reported instead
    /// - tables that the same transaction created, and tables that the configuration declares small
    ///
    /// By default, `pgvet capture` runs the migration on a private server, whose tables are empty. A loop over the rows
    /// of these tables sends no statements, so pgvet cannot report it. To find the loop, run the migration on a clone
    /// with rows: `pgvet capture --on template`.
    "statement-per-row", Data, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let times = context.migration.times_sent(context.statement.range.start);
    if times < LOOP || context.code.is_some() || was_reported(context, times) {
        return;
    }
    let Some((table, range, verb)) = repeated(context) else { return };
    let size = context.settings.table(&table.schema, &table.name).size();
    if size == TableSize::Small || !table.visibility.is_exposed() {
        return;
    }
    let locks = match verb {
        Verb::Update | Verb::Delete if context.in_block() => ", and all these rows stay locked until it commits",
        _ => "",
    };
    let message = format!(
        "the migration sends this {} `{}` {times} times with different values, probably in a loop over rows{locks}",
        verb.sql(),
        table.name
    );
    let finding = reporter.report(range, message).relation(table).help(verb.help());
    finding.assuming(Assumption::Large { table: table.name.clone() }).emit();
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Insert,
    Update,
    Delete,
    Select,
}

impl Verb {
    fn of(ast: &Ast) -> Option<Self> {
        match ast {
            Ast::Insert(_) => Some(Self::Insert),
            Ast::Update(_) => Some(Self::Update),
            Ast::Delete(_) => Some(Self::Delete),
            Ast::Select(_) => Some(Self::Select),
            _ => None,
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Self::Insert => "INSERT into",
            Self::Update => "UPDATE on",
            Self::Delete => "DELETE from",
            Self::Select => "query on",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Insert => {
                "insert the rows with INSERT ... SELECT, or insert many rows with one statement: use bulk_create in \
                 Django, insert_all in Rails"
            }
            Self::Update => {
                "change the rows in batches, each with one UPDATE in its own transaction. Select a batch with `WHERE \
                 id = ANY (...)`, or with a range of keys if every row in the range changes. In Django, call \
                 bulk_update once for each batch"
            }
            Self::Delete => {
                "delete all these rows with one `DELETE ... WHERE id = ANY (...)`; if there are many rows, delete them \
                 in batches, each in its own transaction"
            }
            Self::Select => {
                "read the rows with one query, such as a join or IN (...): use select_related in Django, includes in \
                 Rails"
            }
        }
    }
}

/// The table that the statement is about, if it goes through the rows of a table.
fn repeated<'a>(context: &RuleContext<'a>) -> Option<(&'a RelationName, TextRange, Verb)> {
    let verb = Verb::of(context.ast)?;
    if verb == Verb::Select {
        let read = context.effects.reads.first()?;
        return (!changes_in_loop(context)).then_some((&read.relation, read.range, verb));
    }
    let change = context.effects.data_changes.iter().find(|change| !change.by_trigger)?;
    let is_per_row = match verb {
        Verb::Insert => reads_rows_once(context),
        // A list of values in the program changes the rows of each value at once.
        _ => change.rows.bound() == Some(1),
    };
    is_per_row.then_some((&change.relation, change.range, verb))
}

/// Whether a statement before this one reads rows and was not part of the loop, as a loop over its result does.
fn reads_rows_once(context: &RuleContext<'_>) -> bool {
    let reads = |statement: &Statement| statement.ast().is_some_and(reads_relation);
    let mut before = context.migration.statements_before(context.statement.range.start);
    before.any(|statement| reads(statement) && context.migration.times_sent(statement.range.start) < LOOP)
}

fn reads_relation(ast: &Ast) -> bool {
    let mut found = false;
    if matches!(ast, Ast::Select(_)) {
        ast.visit(&mut |part| found |= matches!(part, Part::Read(_)));
    }
    found
}

/// Whether another statement of the migration changes rows and was sent as often.
fn changes_in_loop(context: &RuleContext<'_>) -> bool {
    let changes = |statement: &&Statement| {
        let verb = statement.ast().and_then(Verb::of);
        verb.is_some_and(|verb| verb != Verb::Select) && context.migration.times_sent(statement.range.start) >= LOOP
    };
    context.migration.statements().any(|statement| changes(&statement))
}

/// Whether an earlier statement of the same loop was reported: one that changes rows and was sent as often.
fn was_reported(context: &RuleContext<'_>, times: u64) -> bool {
    let tells = |statement: &Statement| {
        matches!(statement.ast().and_then(Verb::of), Some(Verb::Update | Verb::Delete))
            && context.migration.times_sent(statement.range.start) == times
    };
    context.migration.statements_before(context.statement.range.start).any(tells)
}
