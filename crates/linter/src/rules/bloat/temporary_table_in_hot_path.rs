//! Temporary tables that code creates again and again.

use super::catalog_rows::{per_hour, shown, total};
use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use crate::severity::Severity;
use pgvet_model::effect::CatalogRows;
use pgvet_model::routine::{Creation, Step, grouped};
use pgvet_syntax::ast::Persistence;
use pgvet_syntax::plpgsql::Context;
use pgvet_syntax::source::TextRange;
use std::fmt::Write as _;

declare_rule! {
    /// A function, a procedure or a loop that creates a temporary table.
    ///
    /// ## Why it matters
    ///
    /// A temporary table has rows in the system catalogs like any other table. Creating the table writes a catalog row
    /// for the table and for each column, default, index and dependency. Dropping the table leaves all of these rows
    /// dead. If that happens often, `pg_attribute` and `pg_class` can grow by gigabytes an hour, and planning a query
    /// reads both. While autovacuum truncates these catalogs, sessions that have to read them wait. The message gives
    /// the number of catalog rows for each call. If a call rate is configured, it also gives the growth per hour.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION best_offers(customer bigint) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     CREATE TEMPORARY TABLE candidates (id bigint PRIMARY KEY, price numeric) ON COMMIT DROP;
    ///     INSERT INTO candidates SELECT id, price FROM offers WHERE customer_id = customer;
    ///     RETURN QUERY SELECT id FROM candidates ORDER BY price LIMIT 10;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE FUNCTION best_offers(customer bigint) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     RETURN QUERY
    ///     WITH candidates AS (SELECT id, price FROM offers WHERE customer_id = customer)
    ///     SELECT id FROM candidates ORDER BY price LIMIT 10;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a temporary table that a migration creates once, even in a DO block
    /// - functions that no longer exist after the last migration
    ///
    /// The severity is `error` if a trigger, a loop, a policy or a configured call rate shows that the function runs
    /// often. All temporary tables of a function are reported together: the message gives the sum of their catalog
    /// rows, and the lines below it list each table.
    "temporary-table-in-hot-path", Bloat, Warning,
    {}
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let mut groups = groups(context);
    // The first of those that say the worst is the finding.
    let is_hot = context.hotness().is_hot();
    groups.sort_by_key(|group| is_hot && group.often == Often::Session);
    let Some((first, others)) = groups.split_first() else { return };
    let mut finding = reporter.report(first.creations[0].range, first.message(context)).help(HELP);
    let rest = others.iter().map(|group| (group.creations[0].range, group.message(context)));
    for (range, message) in first.tables(context).into_iter().chain(rest) {
        finding = finding.label(range, message);
    }
    if is_hot && first.often != Often::Session {
        finding = finding.severity(Severity::Error);
    }
    finding.runs_often(&context.hotness()).emit();
}

const HELP: &str = "use a CTE, a subquery or an array instead; or one permanent UNLOGGED table with a column that \
                    identifies the session";

/// When code creates a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Often {
    Call,
    /// Every round of the loop with this range.
    Round(TextRange),
    /// IF NOT EXISTS creates it once in each session, unless something drops it.
    Session,
}

/// Temporary tables that are created equally often, so that their catalog rows can be added up.
struct Group {
    often: Often,
    creations: Vec<Creation>,
}

/// The temporary tables that run often enough to matter.
fn groups(context: &RoutineContext<'_>) -> Vec<Group> {
    let steps = context.routine.steps();
    let mut groups: Vec<Group> = Vec::new();
    for creation in context.creations().into_iter().filter(|creation| creation.persistence == Persistence::Temporary) {
        let Context { loops, iterations, .. } = creation.context;
        let in_loop = loops > 0 && iterations.is_none_or(|rounds| rounds > 1);
        let often = match creation.if_not_exists && !creation.dropped {
            _ if context.function().is_none() && !in_loop => continue,
            true => Often::Session,
            false if in_loop => Often::Round(innermost_loop(&steps, creation.range).unwrap_or(creation.range)),
            false => Often::Call,
        };
        match groups.iter_mut().find(|group| group.often == often) {
            Some(group) => group.creations.push(creation),
            None => groups.push(Group { often, creations: vec![creation] }),
        }
    }
    groups
}

/// The innermost loop around a place; none if the text of EXECUTE is elsewhere.
fn innermost_loop(steps: &[Step<'_>], place: TextRange) -> Option<TextRange> {
    let step = steps.iter().rev().find(|step| step.range().contains(place))?;
    step.innermost_loop().map(|(statement, _)| statement.range)
}

impl Group {
    /// `every call of f() creates the temporary table `a`: 31 rows ...`
    fn message(&self, context: &RoutineContext<'_>) -> String {
        let name = context.name();
        let when = match self.often {
            Often::Session => format!("the first call of {name} in each session"),
            Often::Round(_) => "every iteration of the loop".to_owned(),
            Often::Call => format!("every call of {name}"),
        };
        let (what, most, leave) = match self.creations.as_slice() {
            [only] => (format!("the temporary table `{}`", only.name.name.text), "", "leaves"),
            many if many.iter().any(|creation| creation.context.branches > 0) => {
                (format!("up to {} temporary tables", many.len()), "at most ", "leave")
            }
            many => (format!("{} temporary tables", many.len()), "", "leave"),
        };
        let mut message = format!("{when} creates {what}");
        if let Some(rows) = self.rows() {
            let versions = context.settings.versions;
            let rounds = self.creations[0].context.iterations.unwrap_or(1).max(1);
            let calls = context.hotness().calls_per_hour.filter(|_| self.often != Often::Session);
            let dead = match calls {
                Some(calls) => {
                    let each = match self.often {
                        Often::Round(_) if rounds == 1 => format!(" of {name} per hour, with one iteration each"),
                        Often::Round(_) => format!(" of {name} per hour, with {} iterations each", grouped(rounds)),
                        _ => " per hour".to_owned(),
                    };
                    total(rows, "dead ", versions) + &per_hour(rows * rounds, calls, &each)
                }
                None => shown(rows, "dead ", versions),
            };
            let _ = write!(message, ", which {leave} {most}{dead}");
        } else {
            let _ = write!(message, ", which {leave} dead rows in the system catalogs");
        }
        message
    }

    /// The catalog rows of all of them together; `None` where those of one are not known.
    fn rows(&self) -> Option<CatalogRows> {
        self.creations.iter().try_fold(CatalogRows::default(), |sum, creation| Some(sum + creation.rows?))
    }

    /// What each table has of that, where there are several.
    fn tables(&self, context: &RoutineContext<'_>) -> Vec<(TextRange, String)> {
        let table = |creation: &Creation| {
            let rows = creation.rows.map(|rows| format!(": {}", shown(rows, "dead ", context.settings.versions)));
            (creation.range, format!("`{}`{}", creation.name.name.text, rows.unwrap_or_default()))
        };
        let is_alone = self.creations.len() == 1;
        self.creations.iter().filter(|_| !is_alone).map(table).collect()
    }
}
