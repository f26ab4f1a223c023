//! Effects of migrations beyond their database, which a shared server or another one keeps after the trace.

use crate::Error;
use crate::foreign::ForeignTables;
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::{Reach, RelationName};
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::predict::{self, StatementEffects};
use pgvet_model::production::Functions;
use pgvet_model::version::PgVersion;

/// Number of statements that the refusal names.
const MAX_NAMED: usize = 5;

/// Refuses migrations that change or use more of a shared server than a database, as far as their text tells.
pub(crate) fn refuse(migrations: &[Migration<'_>], major: u8) -> Result<(), Error> {
    let reached = |statement: &StatementEffects| {
        let (reaches, defined) = (&statement.effects.reaches, &statement.defined_reaches);
        (reaches.clone(), defined.clone())
    };
    refuse_those(&beyond(migrations, major, reached))
}

/// Refuses migrations that change rows of foreign tables, as far as their text tells.
pub(crate) fn refuse_foreign(migrations: &[Migration<'_>], major: u8, foreign: &ForeignTables) -> Result<(), Error> {
    let is_foreign = |table: &RelationName| table.kind == RelationKind::ForeignTable || foreign.contains(table);
    let reached = |statement: &StatementEffects| {
        let changed = statement.effects.data_changes.iter().map(|change| &change.relation);
        let is_reached = changed.chain(&statement.effects.truncates).any(is_foreign);
        (if is_reached { vec![Reach::Connection] } else { Vec::new() }, Vec::new())
    };
    refuse_those(&beyond(migrations, major, reached))
}

fn refuse_those(statements: &[Beyond]) -> Result<(), Error> {
    if statements.is_empty() {
        return Ok(());
    }
    let mut named: Vec<String> = statements.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    if let Some(more) = statements.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        named.push(format!("{more} more"));
    }
    Err(Error::new(format!("the trace would change more of this server than one database: {}", named.join("; "))).help(
        "trace on a private server (--on scratch, --on datadir), or allow it with --allow-server-changes if nothing else \
         depends on this server",
    ))
}

/// A statement, what it reaches, and what the functions would reach that it defines.
struct Beyond {
    place: String,
    reaches: Vec<Reach>,
    defined: Vec<Reach>,
}

impl std::fmt::Display for Beyond {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reaches = self.reaches.iter().map(ToString::to_string);
        let defined = self.defined.iter().map(|reach| format!("defines code that {reach}"));
        write!(f, "{} {}", self.place, reaches.chain(defined).collect::<Vec<_>>().join(" and "))
    }
}

/// The statements that reach something, themselves or in code that they define.
fn beyond(
    migrations: &[Migration<'_>],
    major: u8,
    reached: impl Fn(&StatementEffects) -> (Vec<Reach>, Vec<Reach>),
) -> Vec<Beyond> {
    let predicted = predict::effects(migrations, PgVersion(major), &Functions::default());
    let forward = migrations.iter().zip(predicted).filter(|(migration, _)| migration.direction == Direction::Up);
    let statements =
        forward.flat_map(|(migration, statements)| statements.into_iter().map(move |one| (migration, one)));
    let beyond = |(migration, statement): (&Migration<'_>, StatementEffects)| {
        let (reaches, defined) = reached(&statement);
        let position = migration.file.position(statement.statement.start);
        let place = format!("{}:{}:{}", migration.file.path, position.line, position.column);
        let is_beyond = !reaches.is_empty() || !defined.is_empty();
        is_beyond.then_some(Beyond { place, reaches, defined })
    };
    statements.filter_map(beyond).collect()
}
