//! Helpers for the tests of the executor.

use crate::effect::Effects;
use crate::migration::Migration;
use crate::predict::effects;
use crate::production::Functions;
use crate::version::PgVersion;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;

/// The effects of the last statement of `sql` after `history`, for one major.
pub(crate) fn effects_on(major: u8, history: &str, sql: &str) -> Effects {
    let parse = |path: &str, text: &str| parse_file(SourceFile::new(path.to_owned(), text.to_owned()));
    let files = [parse("1.sql", history), parse("2.sql", sql)];
    let migration = |file, report| Migration { report, ..Migration::new(file) };
    let version = PgVersion(major);
    let mut found = effects(&[migration(&files[0], false), migration(&files[1], true)], version, &Functions::default());
    found.pop().and_then(|mut statements| statements.pop()).expect("the statement was run").effects
}

/// Locks as `name Mode`, strongest per relation, without `AccessShare` on indexes.
pub(crate) fn locks_of(effects: &Effects) -> Vec<String> {
    let mut strongest: Vec<(String, pgvet_syntax::ast::LockMode)> = Vec::new();
    for lock in &effects.locks {
        let name = lock.relation.name.to_string();
        match strongest.iter_mut().find(|(other, _)| *other == name) {
            Some((_, mode)) => *mode = (*mode).max(lock.mode),
            None => strongest.push((name, lock.mode)),
        }
    }
    strongest.into_iter().map(|(name, mode)| format!("{name} {mode:?}")).collect()
}

/// The names of the locked relations, in the order in which their strongest locks are taken.
pub(crate) fn locks_in_order(history: &str, sql: &str) -> Vec<String> {
    let locks = effects_on(17, history, sql).locks;
    locks.iter().map(|lock| lock.relation.to_string()).collect()
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
    assert_eq!(summary(&effects_on(17, history, sql)), expected, "{sql}");
}

/// Runs `sql` on 17 after `history` and compares the locks alone.
#[track_caller]
pub(crate) fn check_locks(history: &str, sql: &str, expected: &[&str]) {
    let effects = effects_on(17, history, sql);
    assert_eq!(effects.fails, None, "{sql}");
    assert_eq!(locks_of(&effects), expected, "{sql}");
}

/// Runs `sql` on 17 after `history`, which PostgreSQL refuses with this SQLSTATE; an empty one means that it does not.
#[track_caller]
pub(crate) fn check_failure(history: &str, sql: &str, expected: &str) {
    let effects = effects_on(17, history, sql);
    assert_eq!(effects.fails.map_or("", |failure| failure.sqlstate), expected, "{sql}");
}
