//! Runs histories and scripts on a server, each in an empty database, and reads the schema that it leaves.

use super::histories::History;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::predict::effects;
use pgvet_model::production::Functions;
use pgvet_model::version::PgVersion;
use pgvet_schema::Schema;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::lexer::quote_identifier;
use pgvet_trace::provider::{Answer, CloneProvider, Scratch, ScratchOptions, ServerInfo, ThinClone};
use pgvet_trace::{Event, MigrationTrace, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// After so many histories the catalogs of a database are so full of dead rows that a new one is faster.
const USES: u32 = 25;

/// Makes a database empty again, unless a history did something beyond schemas.
const CLEAN: &str = "DO $$ DECLARE names text; BEGIN \
    SELECT string_agg(format('%I', evtname), ', ') INTO names FROM pg_event_trigger; \
    IF names <> '' THEN EXECUTE 'DROP EVENT TRIGGER ' || names; END IF; \
    SELECT string_agg(format('%I', pubname), ', ') INTO names FROM pg_publication; \
    IF names <> '' THEN EXECUTE 'DROP PUBLICATION ' || names; END IF; \
    SELECT string_agg(format('%I', extname), ', ') INTO names FROM pg_extension WHERE extname <> 'plpgsql'; \
    IF names <> '' THEN EXECUTE 'DROP EXTENSION ' || names || ' CASCADE'; END IF; \
    SELECT string_agg(format('%I', nspname), ', ') INTO names FROM pg_namespace \
    WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND nspname !~ '^pg_toast'; \
    EXECUTE 'DROP SCHEMA ' || names || ' CASCADE'; DELETE FROM pg_default_acl; END $$; \
    CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC";

/// What a history or a script has left; an error says why it cannot be compared.
pub(super) type Left = Result<Schema, String>;

/// A server whose databases are read before they are dropped.
pub(super) struct Laboratory {
    version: PgVersion,
    scratch: Scratch,
    /// What runs in a new database before anything else.
    scripts: Vec<String>,
    left: Vec<Left>,
    clone: Option<ThinClone>,
    uses: u32,
}

impl Laboratory {
    /// The server has the roles that the histories name.
    pub(super) fn new(version: PgVersion, histories: &[History]) -> Self {
        let roles: BTreeSet<String> = histories.iter().flat_map(roles).collect();
        let setup = roles.iter().map(|role| format!("CREATE ROLE {}", quote_identifier(role))).collect();
        let options = ScratchOptions { major: Some(version.0), setup, ..ScratchOptions::default() };
        let scratch = Scratch::new(options);
        Self { version, scratch, scripts: Vec::new(), left: Vec::new(), clone: None, uses: 0 }
    }

    /// Runs histories, each in a database of its own. What a failure in a transaction leaves is not compared.
    pub(super) fn run(mut self, histories: &[History]) -> Result<Vec<Left>, String> {
        let all: Vec<Vec<Migration<'_>>> =
            (1..).zip(histories).map(|(number, history)| history.migrations(number)).collect();
        let migrations: Vec<Migration<'_>> = all.iter().flatten().copied().collect();
        let version = self.version;
        let traces = self.trace(&migrations)?;
        let mut failures: BTreeMap<u32, BTreeSet<(String, u32)>> = BTreeMap::new();
        for trace in &traces {
            let Migration { database, file, .. } = &migrations[trace.migration];
            let failed = trace.statements.iter().filter(|statement| statement.failure.is_some());
            let failed = failed.map(|statement| (file.text.clone(), statement.range.start));
            failures.entry(*database).or_default().extend(failed);
        }
        let mut left = self.left.into_iter();
        let mut runs = Vec::new();
        for ((number, own), history) in (1..).zip(&all).zip(histories) {
            // A history without migrations has no database.
            let Some(schema) = (if own.is_empty() { None } else { left.next() }) else {
                runs.push(Err(history.unusable().to_owned()));
                continue;
            };
            let predicted = predicted_failures(own, version);
            let failed = failures.remove(&number).unwrap_or_default();
            let is_in_block = own.iter().any(|one| one.transaction != TransactionMode::Autocommit);
            runs.push(if failed != predicted {
                Err(format!("{} statements fail in the model, {} on the server", predicted.len(), failed.len()))
            } else if is_in_block && !predicted.is_empty() {
                Err("a statement fails in a transaction".to_owned())
            } else {
                schema
            });
        }
        Ok(runs)
    }

    /// Runs scripts, each in a database of its own.
    pub(super) fn apply(mut self, scripts: &[String]) -> Result<Vec<Left>, String> {
        let nothing = pgvet_syntax::statement::parse_file(pgvet_syntax::source::SourceFile::new(
            "nothing.sql".to_owned(),
            "SELECT 1".to_owned(),
        ));
        let migrations: Vec<Migration<'_>> =
            (1..).zip(scripts).map(|(database, _)| Migration { database, ..Migration::new(&nothing) }).collect();
        self.scripts = scripts.iter().rev().cloned().collect();
        self.trace(&migrations)?;
        Ok(self.left)
    }

    fn trace(&mut self, migrations: &[Migration<'_>]) -> Result<Vec<MigrationTrace>, String> {
        let settings = Settings {
            keep_going: true,
            effects_only: true,
            statement_timeout: Some(Duration::from_secs(20)),
            ..Settings::default()
        };
        let mut last = String::new();
        let mut tell = |event: Event<'_>| {
            if let Event::Statement { path, sql, .. } = event {
                last = format!("{path}: {sql}");
            }
        };
        let trace = pgvet_trace::run(migrations, self, &settings, &mut tell);
        Ok(trace.map_err(|error| format!("{error}, after {last}"))?.migrations)
    }
}

/// The statements that fail in the model, each by the text of its file and its first byte.
pub(super) fn predicted_failures(own: &[Migration<'_>], version: PgVersion) -> BTreeSet<(String, u32)> {
    let mut predicted = BTreeSet::new();
    for (migration, effects) in own.iter().zip(effects(own, version, &Functions::default())) {
        let failing = migration.statements().zip(effects).filter(|(_, one)| one.effects.fails.is_some());
        let failing = failing.map(|(statement, _)| statement);
        let unread = migration.statements().filter(|statement| statement.parsed.is_err());
        predicted.extend(failing.chain(unread).map(|one| (migration.file.text.clone(), one.range.start)));
    }
    predicted
}

/// The roles that statements name.
fn roles(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for migration in history.migrations(1) {
        for statement in migration.statements() {
            match statement.ast() {
                Some(Ast::Grant(grant)) => found.extend(grant.grantees.iter().cloned()),
                Some(Ast::AlterDefaultPrivileges(alter)) => found.extend(alter.grant.grantees.iter().cloned()),
                Some(Ast::CreatePolicy(create)) => found.extend(create.roles.iter().cloned()),
                Some(Ast::AlterPolicy(alter)) => found.extend(alter.roles.iter().cloned()),
                _ => {}
            }
        }
    }
    let is_special = |role: &str| {
        role.is_empty() || role.starts_with("pg_") || matches!(role, "public" | "postgres") || role.contains("current")
    };
    found.into_iter().filter(|role| !is_special(role)).map(|role| role.to_string()).collect()
}

impl CloneProvider for Laboratory {
    fn name(&self) -> &'static str {
        "schemas"
    }

    fn prepare(&mut self) -> Answer<'_, ServerInfo> {
        self.scratch.prepare()
    }

    fn create(&mut self) -> Answer<'_, ThinClone> {
        Box::pin(async move {
            self.uses += 1;
            if let Some(old) = self.clone.take() {
                if !self.uses.is_multiple_of(USES) && old.query(CLEAN).await.is_ok() {
                    return Ok(self.clone.insert(old).clone());
                }
                self.scratch.discard(old).await?;
            }
            let clone = self.scratch.create().await?;
            Ok(self.clone.insert(clone).clone())
        })
    }

    fn trouble(&mut self) -> Option<String> {
        self.scratch.trouble()
    }

    fn discard(&mut self, clone: ThinClone) -> Answer<'_, ()> {
        Box::pin(async move {
            let applied = match self.scripts.pop() {
                Some(script) => clone.query(&script).await.map(drop),
                None => Ok(()),
            };
            self.left.push(match applied {
                Ok(()) => clone.schema().await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            });
            Ok(())
        })
    }

    fn destroy(&mut self) -> Answer<'_, ()> {
        self.scratch.destroy()
    }
}
