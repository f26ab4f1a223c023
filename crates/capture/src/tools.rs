//! The tables in which migration tools note what has run.
//!
//! Source: where nothing else is said, the source of the tool in the version that fixtures/capture or fixtures/tools names.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// A migration tool, as its own table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationTable {
    /// The name of the tool, in messages and in what is saved.
    pub tool: SmolStr,
    /// The table, in any schema. Tools have settings for the schema, hardly ever for the name.
    pub table: SmolStr,
    /// The columns that name a migration, joined by dots: the row must give all of them.
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
    /// The name of the file, with or without its extension.
    File,
    /// The number or text that the name of the file begins with.
    Version,
    /// The name of a class in the file, possibly after a namespace.
    Class,
    /// Nothing that is in a file.
    None,
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
    // Django 5.2, `django/db/migrations/recorder.py`.
    ("django", "django_migrations", &["app", "name"], &[], Naming::Django, Row::After),
    // Alembic 1.16, `alembic/runtime/migration.py`: one row for each head, changed by UPDATE.
    ("alembic", "alembic_version", &["version_num"], &[], Naming::Revision, Row::After),
    // knex 3.1, `lib/migrations/migrate/Migrator.js`.
    ("knex", "knex_migrations", &["name"], &["batch"], Naming::File, Row::After),
    // TypeORM 0.3, `src/migration/MigrationExecutor.ts`.
    ("typeorm", "migrations", &["name"], &["timestamp"], Naming::Class, Row::After),
    // Laravel 12, `DatabaseMigrationRepository::log`.
    ("laravel", "migrations", &["migration"], &["batch"], Naming::File, Row::After),
    // sequelize-cli 6.6, umzug `SequelizeStorage`.
    ("sequelize", "SequelizeMeta", &["name"], &[], Naming::File, Row::After),
    // EF Core 9, `HistoryRepository`.
    ("ef-core", "__EFMigrationsHistory", &["MigrationId"], &[], Naming::File, Row::After),
    ("flyway", "flyway_schema_history", &["script"], &[], Naming::File, Row::After),
    ("liquibase", "databasechangelog", &["filename", "id"], &[], Naming::None, Row::After),
    ("goose", "goose_db_version", &["version_id"], &[], Naming::Version, Row::After),
    ("sql-migrate", "gorp_migrations", &["id"], &[], Naming::File, Row::After),
    // refinery 0.10, `refinery-core/src/traits/mod.rs`.
    ("refinery", "refinery_schema_history", &["version"], &["checksum"], Naming::Version, Row::After),
    ("diesel", "__diesel_schema_migrations", &["version"], &[], Naming::Version, Row::After),
    ("sqlx", "_sqlx_migrations", &["version"], &[], Naming::Version, Row::After),
    ("sea-orm", "seaql_migrations", &["version"], &[], Naming::File, Row::After),
    // MikroORM 6, `MigrationStorage`.
    ("mikro-orm", "mikro_orm_migrations", &["name"], &[], Naming::File, Row::After),
    ("drizzle", "__drizzle_migrations", &["hash"], &[], Naming::None, Row::After),
    // Prisma, `schema-engine`: the row is inserted when the migration starts and updated when it ends.
    ("prisma", "_prisma_migrations", &["migration_name"], &[], Naming::File, Row::Before),
    // bun 1.2, `migrate/migrator.go`: marked as applied before it runs, unless told otherwise.
    ("bun", "bun_migrations", &["name"], &["group_id"], Naming::Version, Row::Before),
    // Atlas, `sql/migrate/migrate.go`: the revision is written before, during and after.
    ("atlas", "atlas_schema_revisions", &["version"], &[], Naming::Version, Row::Before),
    ("tern", "schema_version", &["version"], &[], Naming::Version, Row::After),
    // golang-migrate writes the row twice: dirty before, clean after.
    ("golang-migrate", "schema_migrations", &["version"], &["dirty"], Naming::Version, Row::After),
    // ecto_sql 3.12, `Ecto.Migration.SchemaMigration`.
    ("ecto", "schema_migrations", &["version"], &["inserted_at"], Naming::Version, Row::After),
    // Rails 8.0, `ActiveRecord::SchemaMigration`; also dbmate.
    ("rails", "schema_migrations", &["version"], &[], Naming::Version, Row::After),
    // Doctrine Migrations 3.9, `TableMetadataStorage`.
    ("doctrine", "doctrine_migration_versions", &["version"], &[], Naming::Class, Row::After),
    ("phinx", "phinxlog", &["version"], &["migration_name"], Naming::Version, Row::After),
    // yoyo 9.0, `yoyo/backends/base.py`, `mark_one`.
    ("yoyo", "_yoyo_migration", &["migration_id"], &[], Naming::File, Row::After),
    ("node-pg-migrate", "pgmigrations", &["name"], &["run_on"], Naming::File, Row::After),
    // gormigrate 2.1: the name of the table and column can be configured.
    ("gormigrate", "migrations", &["id"], &[], Naming::None, Row::After),
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

    /// Whether a statement may be about the table of a tool, so that its values name migrations.
    pub fn is_mentioned(&self, sql: &str) -> bool {
        self.tables.iter().any(|known| sql.contains(known.table.as_str()))
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
    fn a_table_of_the_user_precedes_the_known_ones() {
        let columns = ["version".to_owned()];
        let tables = Tables::with(Some(("ops.schema_migrations", &columns)));
        assert_eq!(tables.of_row("schema_migrations", |column| column == "version").unwrap().tool, "own");
        assert!(tables.is_own("knex_migrations_lock") && !tables.is_own("users"));
    }
}
