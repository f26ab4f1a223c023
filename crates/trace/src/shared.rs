//! Effects of migrations beyond their database, which a shared server keeps after the trace.

use crate::Error;
use pgvet_model::effect::Reach;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::predict;
use pgvet_model::production::Functions;
use pgvet_model::version::PgVersion;

/// Number of statements that the refusal names.
const MAX_NAMED: usize = 5;

/// Refuses migrations that change or use more of a shared server than a database, as far as their text tells.
pub(crate) fn refuse(migrations: &[Migration<'_>], major: u8) -> Result<(), Error> {
    let statements = beyond(migrations, major);
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

fn beyond(migrations: &[Migration<'_>], major: u8) -> Vec<Beyond> {
    let predicted = predict::effects(migrations, PgVersion(major), &Functions::default());
    let forward = migrations.iter().zip(predicted).filter(|(migration, _)| migration.direction == Direction::Up);
    let statements =
        forward.flat_map(|(migration, statements)| statements.into_iter().map(move |one| (migration, one)));
    statements
        .filter(|(_, statement)| !statement.effects.reaches.is_empty() || !statement.defined_reaches.is_empty())
        .map(|(migration, statement)| {
            let position = migration.file.position(statement.statement.start);
            let place = format!("{}:{}:{}", migration.file.path, position.line, position.column);
            Beyond { place, reaches: statement.effects.reaches, defined: statement.defined_reaches }
        })
        .collect()
}
