//! Runs SQL for the tests of the executor.

use crate::check::{Direction, Migration, ParsedFile, TransactionMode, effects, parse_file};
use crate::effect::Effects;
use crate::settings::Settings;
use crate::source::SourceFile;
use crate::version::{PgVersion, VersionRange};

/// What the last statement of `sql` does on a major version, after the statements of `history` ran.
pub(crate) fn effects_of(version: u8, history: &str, sql: &str) -> Effects {
    let file = |text: &str| parse_file(SourceFile { path: "test.sql".into(), text: text.into() });
    let (history, sql) = (file(history), file(sql));
    let migration = |file, report| Migration {
        file,
        section: None,
        direction: Direction::Up,
        transaction: TransactionMode::Autocommit,
        report,
        baseline: false,
    };
    let versions = VersionRange { from: PgVersion(version), to: PgVersion(version) };
    let settings = Settings { versions, ..Settings::default() };
    let migrations: [Migration<'_>; 2] = [migration(&history as &ParsedFile, false), migration(&sql, true)];
    let mut all = effects(&migrations, &settings).pop().expect("two migrations went in");
    all.pop().expect("the SQL has a statement that parses").effects
}

/// One line per effect: `lock public.t Share`, `scan public.t`, `build public.i`, `create ...`, `drop ...`, `fails ...`.
pub(crate) fn summary(effects: &Effects) -> Vec<String> {
    let mut lines = Vec::new();
    for lock in &effects.locks {
        let stronger = effects.locks.iter().any(|other| other.relation == lock.relation && other.mode > lock.mode);
        if !stronger {
            lines.push(format!("lock {} {:?}", lock.relation, lock.mode));
        }
    }
    lines.extend(effects.scans.iter().map(|scan| format!("scan {}", scan.relation)));
    lines.extend(effects.index_builds.iter().map(|build| format!("build {}", build.index)));
    lines.extend(effects.creates.iter().map(|name| format!("create {name}")));
    lines.extend(effects.drops.iter().map(|name| format!("drop {name}")));
    lines.extend(effects.fails.iter().map(|failure| format!("fails {}", failure.sqlstate)));
    lines.sort();
    lines.dedup();
    lines
}

/// Asserts the [`summary`] of the last statement of `sql` on PostgreSQL 17.
#[track_caller]
pub(crate) fn check(history: &str, sql: &str, expected: &[&str]) {
    assert_eq!(summary(&effects_of(17, history, sql)), expected, "{sql}");
}
