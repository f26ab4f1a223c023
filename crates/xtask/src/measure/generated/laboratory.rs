//! Runs sequences on a server, each in an empty database, and reads the catalog that it leaves.

use super::catalog::CATALOG_SQL;
use super::sequence::Sequence;
use pgvet_model::migration::Migration;
use pgvet_model::version::PgVersion;
use pgvet_syntax::statement::ParsedFile;
use pgvet_trace::provider::{Answer, CloneProvider, Lasting, Scratch, ScratchOptions, ServerInfo, ThinClone};
use pgvet_trace::{Error, MigrationTrace, Settings};
use std::collections::BTreeSet;
use std::time::Duration;

/// After so many sequences the catalogs of a database are so full of dead rows that a new one is faster.
const USES: u32 = 25;

/// A sequence may make objects in these schemas only.
const CLEAN: &str = "DO $$ DECLARE names text; BEGIN \
    SELECT string_agg(format('%I', nspname), ', ') INTO names FROM pg_namespace \
    WHERE nspname IN ('public', 'app') OR nspname ~ '^pg_temp_'; \
    EXECUTE 'DROP SCHEMA ' || names || ' CASCADE'; \
    SELECT string_agg(format('%I', pubname), ', ') INTO names FROM pg_publication; \
    IF names <> '' THEN EXECUTE 'DROP PUBLICATION ' || names; END IF; END $$; \
    CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC";

/// The result of a sequence on a server.
pub(super) struct Run {
    pub(super) trace: MigrationTrace,
    /// The catalog afterwards, one line for each object.
    pub(super) catalog: BTreeSet<String>,
}

/// A server and a database on it.
pub(super) struct Laboratory {
    server: Lasting,
    clone: Option<ThinClone>,
    uses: u32,
    catalogs: Vec<BTreeSet<String>>,
}

impl Laboratory {
    pub(super) fn new(version: PgVersion) -> Self {
        let options = ScratchOptions { major: Some(version.0), ..ScratchOptions::default() };
        Self { server: Lasting::new(Scratch::new(options)), clone: None, uses: 0, catalogs: Vec::new() }
    }

    /// Runs the sequences, each in a database of its own.
    pub(super) fn run(&mut self, sequences: &[Sequence]) -> Result<Vec<Run>, String> {
        let files: Vec<ParsedFile> = sequences.iter().map(Sequence::parse).collect();
        let migrations = (1..).zip(&files).map(|(database, file)| Migration { database, ..Migration::new(file) });
        let migrations: Vec<Migration<'_>> = migrations.collect();
        let settings = Settings {
            keep_going: true,
            effects_only: true,
            statement_timeout: Some(Duration::from_secs(20)),
            ..Settings::default()
        };
        self.catalogs.clear();
        let trace = pgvet_trace::run(&migrations, self, &settings, &mut |_| {}).map_err(|error| error.to_string())?;
        let catalogs = std::mem::take(&mut self.catalogs);
        Ok(trace.migrations.into_iter().zip(catalogs).map(|(trace, catalog)| Run { trace, catalog }).collect())
    }

    async fn fresh(&mut self) -> Result<ThinClone, Error> {
        if self.uses.is_multiple_of(USES)
            && let Some(old) = self.clone.take()
        {
            self.server.discard(old).await?;
        }
        self.uses += 1;
        if let Some(clone) = &self.clone {
            clone.query(CLEAN).await?;
            return Ok(clone.clone());
        }
        let clone = self.server.create().await?;
        Ok(self.clone.insert(clone).clone())
    }
}

impl CloneProvider for Laboratory {
    fn name(&self) -> &'static str {
        "generated"
    }

    fn prepare(&mut self) -> Answer<'_, ServerInfo> {
        self.server.prepare()
    }

    fn create(&mut self) -> Answer<'_, ThinClone> {
        Box::pin(self.fresh())
    }

    fn trouble(&mut self) -> Option<String> {
        self.server.trouble()
    }

    fn discard(&mut self, clone: ThinClone) -> Answer<'_, ()> {
        Box::pin(async move {
            let rows = clone.query(CATALOG_SQL).await?;
            let line = |row: Vec<Option<String>>| row.into_iter().next().flatten();
            self.catalogs.push(rows.into_iter().filter_map(line).collect());
            Ok(())
        })
    }

    /// The server serves the next sequences, and stops with this value.
    fn destroy(&mut self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
