//! Schemas that hosting platforms own.

/// Their objects are in no migration, and a dump of the schemas of a project lacks them. Source: Supabase documentation,
/// "Database", on schemas that are locked, and `supabase db dump`, which excludes them.
const OF_PLATFORM: [&str; 14] = [
    "auth",
    "cron",
    "extensions",
    "graphql",
    "graphql_public",
    "net",
    "pgbouncer",
    "pgmq",
    "pgsodium",
    "realtime",
    "storage",
    "supabase_functions",
    "supabase_migrations",
    "vault",
];

/// Whether a platform may own a schema of this name, if the catalog has none.
pub(crate) fn is_of_platform(schema: &str) -> bool {
    OF_PLATFORM.contains(&schema)
}
