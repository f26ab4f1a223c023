//! A transaction that never commits, in which the commands that consecutive runs begin with are run once.

use super::{Attempt, Outcome};
use crate::Error;
use crate::connection::{Connection, text};
use crate::provider::ThinClone;
use crate::script::Step;
use futures_util::future::try_join3;
use pgvet_syntax::ast::{Ast, Set, Setting};
use std::collections::BTreeSet;

/// What rolling back to a savepoint does not undo: the positions of sequences, and prepared statements.
const REMAINS: &str = "SELECT seqrelid::pg_catalog.text, pg_catalog.pg_sequence_last_value(seqrelid)::pg_catalog.text \
                       FROM pg_catalog.pg_sequence UNION ALL SELECT name, '' FROM pg_catalog.pg_prepared_statements";

/// An empty database, and a session with an open transaction.
///
/// Before each command there is a savepoint. A run goes back to the one before the first command that differs from those
/// of the last run.
pub(super) struct Rewindable {
    clone: ThinClone,
    connection: Connection,
    /// The commands that have succeeded, in order.
    done: Vec<Command>,
    /// What was there at the savepoint before each of the commands. After one that can end savepoints there is none.
    savepoints: Vec<Remains>,
    /// Whether something came after these commands, which has failed or has shown its output.
    is_past: bool,
}

/// A command that was sent, with its data.
struct Command {
    sql: String,
    copy_data: Option<String>,
    allows_savepoints: bool,
}

/// The sorted answer to [`REMAINS`].
type Remains = Vec<(String, String)>;

impl Rewindable {
    pub(super) async fn begin(clone: ThinClone) -> Result<Self, Error> {
        let connection = Connection::open(&clone.database, "reduce").await?;
        connection.run("BEGIN").await?;
        Ok(Self { clone, connection, done: Vec::new(), savepoints: Vec::new(), is_past: false })
    }

    /// Whether the session has ended, with the transaction.
    pub(super) fn is_closed(&self) -> bool {
        self.connection.client.is_closed()
    }

    /// Ends the session, which leaves nothing in the database.
    pub(super) async fn end(self) -> ThinClone {
        // A session that is gone holds nothing either.
        let _ = self.connection.run("ROLLBACK").await;
        self.clone
    }

    /// Runs commands as if there had been none. The last statement among them answers the question.
    pub(super) async fn run(
        &mut self,
        steps: &[&Step<'_>],
        attempt: Attempt<'_>,
        not_run: &mut BTreeSet<String>,
    ) -> Result<Outcome, Error> {
        let (before, asked) = attempt.asked(steps);
        self.rewind(before).await?;
        for step in &before[self.done.len()..] {
            self.save(step).await?;
            if let Some(stop) = attempt.conditions().run(&self.connection, [*step], not_run).await? {
                self.is_past = true;
                return Outcome::of(stop, &self.clone).await;
            }
            self.done.push(Command::of(step));
        }
        if let Some(asked) = asked {
            self.save(asked).await?;
            self.is_past = true;
        }
        attempt.ask(asked, &self.connection, &self.clone, not_run).await
    }

    /// Undoes what does not belong to the first of these commands.
    async fn rewind(&mut self, steps: &[&Step<'_>]) -> Result<(), Error> {
        let common = self.done.iter().zip(steps).take_while(|(done, step)| done.is(step)).count();
        if common == self.done.len() && !self.is_past {
            return Ok(());
        }
        if let Some(before) = self.savepoints.get(common) {
            let back = format!("ROLLBACK TO SAVEPOINT {}; {REMAINS}", name(common));
            if self.remains(&back).await? == *before {
                self.done.truncate(common);
                self.savepoints.truncate(common + 1);
                self.is_past = false;
                return Ok(());
            }
        }
        // They are sent in this order, and all before the first answer.
        let [end, forget, begin] = ["ROLLBACK", "DISCARD ALL", "BEGIN"].map(|sql| self.connection.run(sql));
        try_join3(end, forget, begin).await?;
        self.done.clear();
        self.savepoints.clear();
        self.is_past = false;
        Ok(())
    }

    /// Sets a savepoint before a command.
    async fn save(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let at = self.done.len();
        let is_possible = allows_savepoints(step) && self.done.last().is_none_or(|last| last.allows_savepoints);
        if !is_possible || self.savepoints.len() != at {
            return Ok(());
        }
        match self.remains(&format!("SAVEPOINT {}; {REMAINS}", name(at))).await {
            Ok(remains) => self.savepoints.push(remains),
            // A role that the commands have chosen may read no sequence.
            Err(_) if !self.is_closed() => self.connection.run(&format!("ROLLBACK TO SAVEPOINT {}", name(at))).await?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn remains(&self, sql: &str) -> Result<Remains, Error> {
        let rows = self.connection.rows(sql).await?;
        let mut remains: Remains = rows.iter().map(|row| (text(row, 0), text(row, 1))).collect();
        remains.sort();
        Ok(remains)
    }
}

impl Command {
    fn is(&self, step: &Step<'_>) -> bool {
        self.sql == step.sql && self.copy_data.as_deref() == step.copy_data
    }

    fn of(step: &Step<'_>) -> Self {
        Self {
            sql: step.sql.clone(),
            copy_data: step.copy_data.map(str::to_owned),
            allows_savepoints: allows_savepoints(step),
        }
    }
}

/// The savepoint before a command.
fn name(at: usize) -> String {
    format!("pgvet_{at}")
}

/// Whether a savepoint may precede a command and stays after it.
fn allows_savepoints(step: &Step<'_>) -> bool {
    let Some(ast) = step.ast() else { return true };
    !matches!(ast, Ast::Transaction(_) | Ast::Discard(_) | Ast::Set(Set { setting: Setting::Transaction, .. }))
}
