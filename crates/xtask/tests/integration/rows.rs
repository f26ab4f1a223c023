//! How many rows statements read and write, as `fixtures/rows/statements.sql` says, and counted on real servers.

use pgvet_trace::server::Server;
use pgvet_trace::server::testing::{MAJORS, server};
use std::collections::BTreeMap;

const STATEMENTS: &str = include_str!("../../../../fixtures/rows/statements.sql");

/// As many rows as the tables hold.
const ALL: i64 = 1000;

/// Rows at the ends of indexes that the planner looks at, for each plan that it makes.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/selfuncs.c`, `get_actual_variable_range`.
const PROBES: i64 = 2;

/// One statement, what comes before it, and what is said about it.
struct Case<'a> {
    setup: String,
    statement: &'a str,
    /// `(what, table, extent)`: read, lock, or the kind of a change.
    verdicts: Vec<(&'a str, &'a str, &'a str)>,
}

impl<'a> Case<'a> {
    /// `None` for what is not run on this major.
    fn parse(text: &'a str, major: u8) -> Option<Self> {
        let from = text.lines().find_map(|line| line.strip_prefix("-- from: "));
        if text.contains("-- not run: ") || from.is_some_and(|from| from.parse::<u8>().unwrap() > major) {
            return None;
        }
        let lines = text.lines().filter(|line| !line.starts_with("--"));
        let mut statements: Vec<&str> = lines.collect();
        let statement = statements.pop().unwrap();
        let verdict = |line: &'a str| {
            let (head, rest) = line.strip_prefix("--> ")?.split_once(": ")?;
            let mut words = head.split(' ');
            Some((words.next()?, words.next()?, rest.split_once(": ")?.0))
        };
        let verdicts = text.lines().filter_map(verdict).collect();
        Some(Self { setup: statements.join("\n"), statement, verdicts })
    }

    /// The sum of the bounds for a table, if all verdicts of the kind have one.
    fn bound(&self, is_kind: impl Fn(&str) -> bool, table: &str) -> Option<i64> {
        let extents = self.verdicts.iter().filter(|(what, of, _)| is_kind(what) && *of == table).map(|found| found.2);
        extents.map(|extent| extent.strip_prefix("at most ")?.split(' ').next()?.parse::<i64>().ok()).sum()
    }

    /// Whether something is said about a table.
    fn speaks_of(&self, table: &str) -> bool {
        self.verdicts.iter().any(|(_, of, _)| *of == table)
    }

    fn extent(&self, is_kind: impl Fn(&str) -> bool, table: &str) -> Option<&'a str> {
        self.verdicts.iter().find(|(what, of, _)| is_kind(what) && *of == table).map(|found| found.2)
    }
}

fn is_change(what: &str) -> bool {
    matches!(what, "Insert" | "Update" | "Delete")
}

/// `(read, written)` for each table, and how many rows the statement returned.
fn counted(server: &Server, case: &Case<'_>) -> (BTreeMap<String, (i64, i64)>, i64) {
    let counts = "SELECT relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) AS read_before,
        n_tup_ins + n_tup_upd + n_tup_del AS written_before FROM pg_stat_xact_user_tables";
    let sql = format!(
        "BEGIN; SET LOCAL random_page_cost = 1.1; {}; CREATE TEMP TABLE counted_before AS {counts};
         {}; SELECT 'counted', now_there.relname, read - coalesce(b.read_before, 0), written - coalesce(b.written_before, 0)
         FROM ({counts}) now_there(relname, read, written)
         LEFT JOIN counted_before b(name, read_before, written_before) ON b.name = now_there.relname;",
        case.setup,
        case.statement.trim_end_matches(';')
    );
    let rows = server.query("rows", &sql).unwrap_or_else(|error| panic!("{error}: {}", case.statement));
    let number = |value: &Option<String>| value.as_ref().unwrap().parse::<i64>().unwrap();
    let is_count = |row: &&Vec<Option<String>>| row.first().is_some_and(|first| first.as_deref() == Some("counted"));
    let tables = rows.iter().filter(is_count).map(|row| (row[1].clone().unwrap(), (number(&row[2]), number(&row[3]))));
    let tables: BTreeMap<_, _> = tables.collect();
    let returned = i64::try_from(rows.len() - tables.len()).unwrap();
    (tables, returned)
}

fn problems(server: &Server, case: &Case<'_>) -> Vec<String> {
    let (tables, returned) = counted(server, case);
    let mut problems = Vec::new();
    let mut say = |what: String| problems.push(format!("{}\n    {what}", case.statement));
    for (table, (read, written)) in tables.iter().filter(|(table, _)| case.speaks_of(table)) {
        if let Some(most) = case.bound(|what| what == "read", table).filter(|most| *read > most + PROBES) {
            say(format!("reads {read} rows of {table}, which were to be {most} at most"));
        }
        let extent = case.extent(is_change, table);
        match case.bound(is_change, table) {
            Some(most) if written > &most => say(format!("writes {written} rows of {table}, not {most} at most")),
            None if extent == Some("all rows") && *written < ALL => say(format!("writes {written} rows of {table}")),
            None if extent == Some("most rows") && *written <= ALL / 2 => {
                say(format!("writes {written} rows of {table}"));
            }
            _ => {}
        }
    }
    for (what, table, _) in case.verdicts.iter().filter(|(what, ..)| *what == "lock") {
        if let Some(most) = case.bound(|kind| kind == *what, table).filter(|most| returned > *most) {
            say(format!("locks {returned} rows of {table}, not {most} at most"));
        }
    }
    problems
}

#[test]
fn no_bound_is_exceeded() {
    let (head, cases) = STATEMENTS.split_once("\n-- cases\n").unwrap();
    let (_, schema) = head.split_once("\n-- schema\n").unwrap();
    for major in MAJORS {
        let Some(server) = server(major) else { continue };
        server.query("postgres", "CREATE DATABASE rows").unwrap();
        server.query("rows", schema).unwrap();
        let cases: Vec<Case<'_>> = cases.split("\n\n").filter_map(|text| Case::parse(text, major)).collect();
        assert!(cases.len() >= 60, "only {} cases on {major}", cases.len());
        let found: Vec<String> = cases.iter().flat_map(|case| problems(&server, case)).collect();
        assert!(found.is_empty(), "PostgreSQL {major}\n{}", found.join("\n"));
    }
}
