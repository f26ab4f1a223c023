//! How the program that runs migrations continues after a COMMIT, and from one migration to the next.

use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};

/// Properties of the program that runs a migration, besides [`TransactionMode`](crate::migration::TransactionMode).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Runner {
    pub after_commit: AfterCommit,
    pub session: SessionScope,
    /// Whether one transaction holds all migrations that a run finds pending.
    pub one_transaction: bool,
    /// Whether it refuses a file that holds a statement which cannot run in a transaction, and another that can.
    pub keeps_apart: bool,
    /// Whether the run fails at its own COMMIT where a migration has ended its transaction.
    pub misses_its_transaction: bool,
    /// How it handles a migration that has stopped half way, outside a transaction.
    pub retry: Retry,
    /// What it records, and what follows if its session ends or a second one starts.
    pub restart: Restart,
    /// Whether each run runs the migration again, before those that are pending.
    pub every_run: bool,
    /// Whether each of [`Migration::strings`](crate::migration::Migration::strings) has a session of its own.
    pub session_per_string: bool,
    /// The line between two statements of a migration, of a program that refuses several statements without one.
    pub separator: Option<&'static str>,
    /// Whether it cuts a file into statements and sends each alone, so that a setting is in effect for the next statement.
    /// The statements in one of [`Migration::strings`](crate::migration::Migration::strings) are sent together nevertheless.
    pub sends_statements: bool,
    /// Whether the program is known; otherwise a file is treated as one for psql.
    pub is_known: bool,
    /// What shows that it opens the transaction of the migration.
    pub known_transaction: KnownTransaction,
}

/// How a program handles a migration of which a part has been applied and a later statement has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retry {
    /// Runs it again from its first statement.
    #[default]
    Again,
    /// Continues with the statement that failed.
    Continues,
    /// Refuses to run until this step is done, and then runs the migration from its first statement.
    After(&'static str),
}

/// What a program records about migrations, and what follows if its session ends or a second one starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restart {
    pub recording: Recording,
    pub lock: RunLock,
    /// What a person does after a run that was killed, before the program runs the migration again.
    pub after_kill: Option<&'static str>,
    /// What records a migration as applied that somebody has run by hand: a command or SQL, in which `{version}`, `{name}`
    /// and `{file}` are those of the migration.
    pub mark_applied: Option<&'static str>,
}

impl Restart {
    /// The step that records the migration of this file as applied, as an imperative.
    pub fn record(&self, path: &str) -> String {
        match self.mark_applied {
            Some(step) => format!("record the migration as applied: {}", of_file(step, path)),
            None => "record the migration as applied in the table of the migration tool".to_owned(),
        }
    }
}

/// A step with the version and the name of a migration. A migration in a folder of its own has the name of the folder.
fn of_file(step: &str, path: &str) -> String {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or(path);
    let is_of_folder = matches!(file, "up.sql" | "migration.sql");
    let base = if is_of_folder { parts.next().unwrap_or(file) } else { file };
    let name = base.strip_suffix(".sql").unwrap_or(base);
    let name = name.strip_suffix(".up").unwrap_or(name);
    let digits = name.trim_start_matches(['V', 'v']);
    let version: String = digits.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '.').collect();
    step.replace("{version}", version.trim_end_matches('.')).replace("{name}", name).replace("{file}", file)
}

/// When a program records that a migration has been applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recording {
    /// Nothing shows when.
    #[default]
    Unknown,
    /// In the transaction that it opens around the migration. Without one, after the last statement.
    InTransaction,
    /// In a transaction of its own, after the last statement.
    Afterwards,
}

/// How a program keeps a second run of itself away from its migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunLock {
    /// Nothing shows how.
    #[default]
    Unknown,
    /// Not at all.
    None,
    /// By the unique key of its records: the second record of a migration is refused.
    UniqueRecord,
    /// The second run waits in `pg_advisory_lock`, a statement that keeps a snapshot while it waits. `by_its_session`:
    /// whether the session that runs the migrations holds the lock.
    Waits { by_its_session: bool },
    /// The second run asks again and again, in transactions of their own.
    Polls,
    /// The second run gives up at once.
    Refuses,
}

/// What shows that a program opens the transaction of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KnownTransaction {
    /// The program, the configuration or the file itself.
    #[default]
    Known,
    /// Words in code of the project, which can mean something else.
    Recognized,
    /// Nothing, but most programs do.
    Assumed,
    /// Nothing, and another migration could not run in one.
    Doubtful,
    /// Code of the project that opens one, but names statements that cannot run in one: it may send a migration with
    /// such statements in another way.
    Selective,
    /// The tool that the file is written for, but comments in place of names show that another program sends the file.
    Replaced,
    /// Nothing, and the migration has no statement that could run in one.
    Unlikely,
}

/// How a program continues after a COMMIT, or a ROLLBACK, that ends the transaction which the program opened around a
/// migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AfterCommit {
    /// Each statement runs alone.
    #[default]
    Alone,
    /// Later statements are in another transaction: they were sent in the same string, or the driver begins one.
    Together,
}

/// For how long a session lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum SessionScope {
    /// Each migration has its own, or all settings are reset before it.
    #[default]
    Migration,
    /// All migrations of a run share it.
    Run,
    /// They do, but `search_path` and the role are reset before each.
    RunWithoutSearchPath,
}

/// A statement that the program does not run although PostgreSQL would: it refuses a migration before it sends it, or
/// never ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// The text that it refuses.
    pub range: TextRange,
    /// One sentence without period.
    pub message: String,
    pub help: String,
    /// Whether a setting that pgvet does not see may change it.
    pub by_default: bool,
    /// The program, if only marks in the file name it: other programs read them, too.
    pub unproven: Option<&'static str>,
}

/// The behaviour of a program in place of running a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// It ends with an error.
    Fails,
    /// It runs the others and does not mention this one.
    Skips,
    /// It waits for itself.
    NeverEnds,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_name_the_migration() {
        let step = "force {version}, {name}, {file}";
        assert_eq!(of_file(step, "m/0012_add.up.sql"), "force 0012, 0012_add, 0012_add.up.sql");
        assert_eq!(of_file(step, "m/20240101_x/migration.sql"), "force 20240101, 20240101_x, migration.sql");
        assert_eq!(of_file(step, "V1.2__a.sql"), "force 1.2, V1.2__a, V1.2__a.sql");
    }
}
