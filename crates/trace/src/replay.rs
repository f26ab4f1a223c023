//! Runs migrations as their tool would, and measures nothing.

use crate::Error;
use crate::address::Address;
use crate::connection::{Connection, text};
use crate::provider::ServerInfo;
use crate::script::{Script, Step, StepKind};
use crate::settings::Settings;
use crate::steps::{Conditions, RefusedStep};
use pgvet_model::migration::Migration;
use pgvet_model::runner::SessionScope;
use pgvet_syntax::deparse::string;

/// Migrations that run one after the other in a database.
pub(crate) struct Replay<'a> {
    database: &'a Address,
    server: &'a ServerInfo,
    settings: &'a Settings,
    session: Option<(SessionScope, Connection)>,
    /// The scope and the settings of a session that was closed although its program would go on with it.
    suspended: Option<(SessionScope, Vec<String>)>,
    /// What was not run, and why.
    pub(crate) not_run: Vec<String>,
}

/// Why a migration did not run to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    Refused(RefusedStatement),
    /// Nothing is known about the migration: the server is gone, or a placeholder has no value.
    Broken(Error),
}

/// A command that PostgreSQL refused.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RefusedStatement {
    pub path: String,
    /// Counted from 1; absent for a command that the tool adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// PostgreSQL's message, with its SQLSTATE.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the command is the BEGIN of a migration.
    #[serde(skip)]
    pub(crate) at_begin: bool,
}

impl RefusedStatement {
    /// `path:line:column`, as far as it is known.
    pub fn place(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", self.path),
            _ => self.path.clone(),
        }
    }

    pub(crate) fn new(migration: &Migration<'_>, RefusedStep { step, error, .. }: &RefusedStep<'_, '_>) -> Self {
        Self::of(migration, step, error)
    }

    /// What PostgreSQL said of a command.
    pub(crate) fn of(migration: &Migration<'_>, step: &Step<'_>, error: &tokio_postgres::Error) -> Self {
        let said = Error::from_postgres(error);
        let position = step.statement.map(|statement| migration.file.position(statement.range.start));
        Self {
            path: migration.file.path.clone(),
            line: position.as_ref().map(|position| position.line),
            column: position.as_ref().map(|position| position.column),
            message: said.message,
            hint: said.help,
            at_begin: step.kind == StepKind::Begin,
        }
    }

    /// What PostgreSQL said of a command that the tool sends on its own.
    pub(crate) fn of_tool(migration: &Migration<'_>, error: &tokio_postgres::Error) -> Self {
        let Error { message, help: hint } = Error::from_postgres(error);
        let path = migration.file.path.clone();
        Self { path, line: None, column: None, message, hint, at_begin: false }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

impl From<Stop> for Error {
    /// As a failure of the history.
    fn from(stop: Stop) -> Self {
        let refused = match stop {
            Stop::Refused(refused) => refused,
            Stop::Broken(error) => return error,
        };
        let which = if refused.at_begin { "the earlier migrations cannot begin" } else { "an earlier migration fails" };
        Self { message: format!("{which}: {}: {}", refused.place(), refused.message), help: refused.hint }
    }
}

impl<'a> Replay<'a> {
    pub(crate) fn new(database: &'a Address, server: &'a ServerInfo, settings: &'a Settings) -> Self {
        Self { database, server, settings, session: None, suspended: None, not_run: Vec::new() }
    }

    /// The same program in another database: with the settings that its session has now.
    pub(crate) fn in_copy<'b>(&self, database: &'b Address) -> Replay<'b>
    where
        'a: 'b,
    {
        Replay { suspended: self.suspended.clone(), ..self.afresh(database) }
    }

    /// Another run of the program, in a database of the same server.
    pub(crate) fn afresh<'b>(&self, database: &'b Address) -> Replay<'b>
    where
        'a: 'b,
    {
        Replay::new(database, self.server, self.settings)
    }

    /// Runs a migration up to the first command that is refused.
    pub(crate) async fn run(&mut self, migration: &Migration<'_>) -> Result<(), Stop> {
        let script = Script::new(migration, &self.settings.variables)?;
        let scope = migration.runner.session;
        let connection = self.connection(scope).await?;
        if let Some(refused) = self.conditions().run(&connection, &script.steps, &mut self.not_run).await? {
            return Err(Stop::Refused(RefusedStatement::new(migration, &refused)));
        }
        self.session = Some((scope, connection));
        Ok(())
    }

    /// How its commands are run.
    pub(crate) fn conditions(&self) -> Conditions<'a> {
        let Settings { statement_timeout: timeout, keep_going, .. } = *self.settings;
        Conditions { server: self.server, timeout, keep_going }
    }

    /// The session for the next migration.
    pub(crate) async fn connection(&mut self, scope: SessionScope) -> Result<Connection, Error> {
        let last = match (self.session.take(), self.suspended.take()) {
            (Some(session), _) => Some(session),
            (None, Some((before, settings))) => {
                let connection = Connection::open(self.database, "history").await?;
                for setting in &settings {
                    connection.run(setting).await?;
                }
                Some((before, connection))
            }
            (None, None) => None,
        };
        if let Some((before, connection)) = last
            && let Some(kept) = connection.kept(before, scope).await?
        {
            return Ok(kept);
        }
        Connection::open(self.database, "history").await
    }

    /// Ends the program.
    pub(crate) async fn end(self) {
        if let Some((_, connection)) = self.session {
            connection.close().await;
        }
    }

    /// Closes the session, so that the database can be copied. The next one gets its settings; temporary tables are lost.
    pub(crate) async fn suspend(&mut self) -> Result<(), Error> {
        let Some((scope, connection)) = self.session.take() else { return Ok(()) };
        if scope != SessionScope::Migration {
            let sql =
                "SELECT name, setting FROM pg_catalog.pg_settings WHERE source = 'session' AND context <> 'internal'";
            let rows = connection.rows(sql).await?;
            let set = |row| {
                let (name, value) = (string(&text(row, 0)), string(&text(row, 1)));
                format!("SELECT pg_catalog.set_config({name}, {value}, false)")
            };
            self.suspended = Some((scope, rows.iter().map(set).collect()));
        }
        connection.close().await;
        Ok(())
    }
}
