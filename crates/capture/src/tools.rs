//! The tables in which migration tools note what has run.

use crate::settings::is_own_setting;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::statement::{Statement, parse};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// A migration tool, as its own table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationTable {
    /// The name of the tool, in messages and in what is saved.
    pub tool: SmolStr,
    /// The table, in any schema. Tools have settings for the schema, hardly ever for the name.
    pub table: SmolStr,
    /// The columns that name a migration, joined by dots or as [`Naming::separator`] says: the row must give all of them.
    pub columns: Vec<SmolStr>,
    /// Columns that the row must also give, to tell two tools with the same table apart.
    pub also: Vec<SmolStr>,
    pub naming: Naming,
    pub row: Row,
}

/// How the name in the table leads to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// `app.0001_initial`: `app/migrations/0001_initial.py`.
    Django,
    /// A revision: the file that holds `revision = "..."`.
    Revision,
    /// The name of the file, with or without its extension, that of the folder of a `migration.sql`, or the number that
    /// it begins with.
    File,
    /// The name of the file, or of a Java class with its package.
    Script,
    /// The number or text that the name of the file begins with.
    Version,
    /// The name of a class in the file, possibly after a namespace.
    Class,
    /// An identifier that the file declares: `ID: "..."`. One file can declare several.
    Identifier,
    /// The path of the file, identifier and author of a change in it. One file can have several.
    Changeset,
    /// The SHA-256 of the file, which has SQL.
    Digest,
}

impl MigrationTable {
    /// The column that says whether the migration succeeded, of a tool that notes failed ones, too.
    pub(crate) fn success(&self) -> Option<SmolStr> {
        (self.tool == "flyway").then(|| "success".into())
    }
}

impl Naming {
    /// The separator of the columns of a name.
    pub(crate) fn separator(self) -> &'static str {
        // As Liquibase itself shows them.
        if self == Self::Changeset { "::" } else { "." }
    }

    /// Whether one file can have several migrations.
    pub(crate) fn shares_files(self) -> bool {
        matches!(self, Self::Identifier | Self::Changeset)
    }
}

/// When the row enters the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// After the migration: the statements before it belong to it.
    After,
    /// Before it, or both: the statements after it belong to it until the next row.
    Before,
}

/// Tool, table, columns, further columns, naming, row.
type Entry = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], Naming, Row);

const TABLES: &[Entry] = &[
    // Run: `fixtures/capture` has what these versions sent.
    // Django 5.2.19, `django/db/migrations/recorder.py`.
    ("django", "django_migrations", &["app", "name"], &[], Naming::Django, Row::After),
    // Alembic 1.20.1, `alembic/runtime/migration.py`: one row for each head, changed by UPDATE.
    ("alembic", "alembic_version", &["version_num"], &[], Naming::Revision, Row::After),
    // knex 3.3.0, `lib/migrations/migrate/Migrator.js`.
    ("knex", "knex_migrations", &["name"], &["batch"], Naming::File, Row::After),
    // TypeORM 1.1.1, `migration/MigrationExecutor.js`.
    ("typeorm", "migrations", &["name"], &["timestamp"], Naming::Class, Row::After),
    // sequelize-cli 6.6.5, umzug `SequelizeStorage`.
    ("sequelize", "SequelizeMeta", &["name"], &[], Naming::File, Row::After),
    // yoyo 9.0.0, `yoyo/backends/base.py`, `mark_one`.
    ("yoyo", "_yoyo_migration", &["migration_id"], &[], Naming::File, Row::After),
    // goose 3, `internal/dialects/postgres.go`.
    ("goose", "goose_db_version", &["version_id"], &[], Naming::Version, Row::After),
    // bun 1.3.0, `migrate/migrator.go`, `Migrate`: before, unless the program asks for `WithMarkAppliedOnSuccess`.
    ("bun", "bun_migrations", &["name"], &["group_id"], Naming::Version, Row::Before),
    // Laravel 8.83, `Illuminate/Database/Migrations/DatabaseMigrationRepository.php`, `log`.
    ("laravel", "migrations", &["migration"], &["batch"], Naming::File, Row::After),
    // Flyway 13.12.0, `schemahistory/JdbcTableSchemaHistory.java` and `api/migration/JavaMigration.java`.
    ("flyway", "flyway_schema_history", &["script"], &[], Naming::Script, Row::After),
    // Liquibase 4.29.2, `sqlgenerator/core/MarkChangeSetRanGenerator.java`. Only all three columns are unique.
    ("liquibase", "databasechangelog", &["filename", "id", "author"], &[], Naming::Changeset, Row::After),
    // diesel_migrations 2.3.2, `src/migration_harness.rs`, `run_migration`.
    ("diesel", "__diesel_schema_migrations", &["version"], &[], Naming::Version, Row::After),
    // SeaORM 2.0.4, `sea-orm-migration/src/migrator/exec.rs`, `exec_up_with`: the name is that of the file.
    ("sea-orm", "seaql_migrations", &["version"], &[], Naming::File, Row::After),
    // MikroORM 6.6.16, `packages/migrations/src/MigrationStorage.ts`, `logMigration`.
    ("mikro-orm", "mikro_orm_migrations", &["name"], &[], Naming::File, Row::After),
    // drizzle-orm 0.45.4, `pg-core/dialect.js`, `migrate`.
    ("drizzle", "__drizzle_migrations", &["hash"], &[], Naming::Digest, Row::After),
    // node-pg-migrate 9.0.0, `migration.ts`, `_getMarkAsRun`.
    ("node-pg-migrate", "pgmigrations", &["name"], &["run_on"], Naming::File, Row::After),
    // gormigrate 2.1.7, `gormigrate.go`, `runMigration`: the name of the table and column can be configured.
    ("gormigrate", "migrations", &["id"], &[], Naming::Identifier, Row::After),
    // golang-migrate 4.20.1, `migrate.go`, `runMigrations`: dirty before, clean after.
    ("golang-migrate", "schema_migrations", &["version"], &["dirty"], Naming::Version, Row::Before),
    //
    // Not run: read in the source of the tool.
    // EF Core 9, `Migrations/HistoryRepository.cs`, `GetInsertScript`.
    ("ef-core", "__EFMigrationsHistory", &["MigrationId"], &[], Naming::File, Row::After),
    // sql-migrate 1.8.1, `migrate.go`, `MigrationRecord`.
    ("sql-migrate", "gorp_migrations", &["id"], &[], Naming::File, Row::After),
    // refinery 0.10.0, `refinery-core/src/traits/mod.rs`, `insert_migration_query`.
    ("refinery", "refinery_schema_history", &["version"], &["checksum"], Naming::Version, Row::After),
    // sqlx 0.9.0, `sqlx-postgres/src/migrate.rs`, `execute_migration`.
    ("sqlx", "_sqlx_migrations", &["version"], &[], Naming::Version, Row::After),
    // tern 2.3.4, `migrate/migrate.go`, `MigrateTo`: one row, changed by UPDATE.
    ("tern", "schema_version", &["version"], &[], Naming::Version, Row::After),
    // ecto_sql 3, `lib/ecto/migration/schema_migration.ex`, `up`.
    ("ecto", "schema_migrations", &["version"], &["inserted_at"], Naming::Version, Row::After),
    // Doctrine Migrations 3, `src/Metadata/Storage/TableMetadataStorage.php`, `complete`.
    ("doctrine", "doctrine_migration_versions", &["version"], &[], Naming::Class, Row::After),
    // Phinx 0, `src/Phinx/Migration/Manager/Environment.php`, `executeMigration`.
    ("phinx", "phinxlog", &["version"], &["migration_name"], Naming::Version, Row::After),
    // Prisma 6, `schema-engine/commands/src/commands/apply_migrations.rs`: an INSERT when the migration starts, and
    // UPDATEs without its name when it ends or fails.
    ("prisma", "_prisma_migrations", &["migration_name"], &[], Naming::File, Row::Before),
    // Atlas 0.32.1, `sql/migrate/migrate.go`, `Execute`: before, after each statement, and at the end.
    ("atlas", "atlas_schema_revisions", &["version"], &[], Naming::Version, Row::Before),
    // After the other tools with this table, whose rows give more.
    // Run, too: Rails 6.1.7, `active_record/schema_migration.rb`, `create_version`; dbmate writes the same row.
    ("rails", "schema_migrations", &["version"], &[], Naming::Version, Row::After),
];

/// Further tables of the tools, which name no migration.
const BOOKKEEPING: &[&str] = &[
    "ar_internal_metadata",
    "knex_migrations_lock",
    "typeorm_metadata",
    "databasechangeloglock",
    "bun_migration_locks",
    "yoyo_lock",
    "_yoyo_log",
    "_yoyo_version",
];

/// The schemas that tools create for their tables.
const SCHEMAS: &[(&str, &str)] = &[("drizzle", "drizzle")];

/// The tables that a run looks for: those that are known, and those that the user names.
#[derive(Debug, Clone)]
pub struct Tables {
    tables: Vec<MigrationTable>,
}

impl Tables {
    /// The known tables, after one that the user names by table and column.
    pub fn with(own: Option<(&str, &[String])>) -> Self {
        let known = TABLES.iter().map(|(tool, table, columns, also, naming, row)| MigrationTable {
            tool: (*tool).into(),
            table: (*table).into(),
            columns: columns.iter().copied().map(SmolStr::from).collect(),
            also: also.iter().copied().map(SmolStr::from).collect(),
            naming: *naming,
            row: *row,
        });
        let own = own.map(|(table, columns)| MigrationTable {
            tool: "own".into(),
            table: table.rsplit('.').next().unwrap_or(table).into(),
            columns: columns.iter().map(SmolStr::from).collect(),
            also: Vec::new(),
            naming: Naming::File,
            row: Row::After,
        });
        Self { tables: own.into_iter().chain(known).collect() }
    }

    /// The tables of one tool: those of others can be tables of the application.
    #[must_use]
    pub fn of_tool(mut self, tool: &str) -> Self {
        self.tables.retain(|known| known.tool == tool);
        self
    }

    /// Whether the table belongs to a tool.
    pub fn is_own(&self, table: &str) -> bool {
        BOOKKEEPING.contains(&table) || self.tables.iter().any(|known| known.table == table)
    }

    /// Whether a table with these columns is one in which a tool records what has run, or one that it keeps beside it.
    pub fn is_own_table(&self, table: &str, has: impl Fn(&str) -> bool) -> bool {
        BOOKKEEPING.contains(&table) || self.of_row(table, has).is_some()
    }

    /// The schemas that tools create for their tables.
    pub fn own_schemas() -> Vec<&'static str> {
        SCHEMAS.iter().map(|(_, schema)| *schema).collect()
    }

    /// Whether a tool creates the schema for its table.
    pub(crate) fn is_own_schema(&self, schema: &str) -> bool {
        let is_known = |tool: &str| self.tables.iter().any(|known| known.tool == tool);
        SCHEMAS.iter().any(|(tool, own)| *own == schema && is_known(tool))
    }

    /// Whether the values of a statement must be kept: those that name migrations, and settings of PostgreSQL.
    pub fn needs_values(&self, sql: &str) -> bool {
        let needs = |ast: &Ast| match ast {
            Ast::Insert(insert) => self.is_own(&insert.table.name.name.text),
            Ast::Update(update) => self.is_own(&update.table.name.name.text),
            _ => is_own_setting(ast),
        };
        // Most texts need no parser to tell.
        let mentions = |word: &str| sql.contains(word);
        (mentions("set_config") || self.tables.iter().any(|known| mentions(&known.table)))
            && parse(sql).iter().filter_map(Statement::ast).any(needs)
    }

    /// The tool of a row that is written to a table and gives these columns.
    pub fn of_row(&self, table: &str, gives: impl Fn(&str) -> bool) -> Option<&MigrationTable> {
        let fits = |known: &&MigrationTable| {
            known.table == table && known.columns.iter().chain(&known.also).all(|column| gives(column))
        };
        self.tables.iter().find(fits)
    }

    /// The same for a table whose row is changed, which gives only what has changed.
    pub fn of_change(&self, table: &str, gives: impl Fn(&str) -> bool) -> Option<&MigrationTable> {
        let fits = |known: &&MigrationTable| known.table == table && known.columns.iter().all(|column| gives(column));
        self.tables.iter().find(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(table: &str, columns: &[&str]) -> Option<String> {
        let tables = Tables::with(None);
        tables.of_row(table, |column| columns.contains(&column)).map(|found| found.tool.to_string())
    }

    #[test]
    fn columns_distinguish_tools_that_share_a_table() {
        for (table, columns, expected) in [
            ("migrations", &["timestamp", "name"][..], Some("typeorm")),
            ("migrations", &["migration", "batch"], Some("laravel")),
            ("schema_migrations", &["version"], Some("rails")),
            ("schema_migrations", &["version", "dirty"], Some("golang-migrate")),
            ("schema_migrations", &["version", "inserted_at"], Some("ecto")),
            ("migrations", &["a"], None),
            ("users", &["name"], None),
        ] {
            assert_eq!(tool(table, columns).as_deref(), expected, "{table} {columns:?}");
        }
    }

    #[test]
    fn values_are_kept_of_rows_that_name_migrations_and_of_settings() {
        let tables = Tables::with(None);
        assert!(tables.needs_values("INSERT INTO public.schema_migrations (version) VALUES ($1)"));
        assert!(tables.needs_values("update schema_version set version=$1"));
        assert!(tables.needs_values("SELECT set_config('search_path', $1, false)"));
        for sql in [
            "INSERT INTO data_migrations (token) VALUES ($1)",
            "INSERT INTO jobs (kind, token) VALUES ('migrations', $1)",
            "SELECT version FROM schema_migrations WHERE version = $1",
            "SELECT set_config('app.token', $1, false)",
        ] {
            assert!(!tables.needs_values(sql), "{sql}");
        }
    }

    #[test]
    fn a_table_of_the_user_precedes_the_known_ones() {
        let columns = ["version".to_owned()];
        let tables = Tables::with(Some(("ops.schema_migrations", &columns)));
        assert_eq!(tables.of_row("schema_migrations", |column| column == "version").unwrap().tool, "own");
        assert!(tables.is_own("knex_migrations_lock") && !tables.is_own("users"));
    }
}
