//! Extensions that let SQL reach files, programs or other servers.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use pgvet_model::effect::ChangedObject;

declare_rule! {
    /// A new extension that lets SQL access the files, the programs or the network of the server.
    ///
    /// ## Why it matters
    ///
    /// A role that may use one of the reported extensions can read and write files, run programs or open connections as
    /// the operating-system user of the server. A vulnerability of the application then becomes a vulnerability of the
    /// server. PostgreSQL does not mark these extensions as trusted. Trusted extensions are those that any user with
    /// CREATE on the database may safely install.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE EXTENSION plpython3u;
    /// ```
    ///
    /// Use instead:
    ///
    /// Use a trusted extension, or do the work outside the database.
    ///
    /// ```sql,clean
    /// CREATE EXTENSION pg_trgm;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - extensions that earlier migrations created
    /// - all extensions except `plpython3u` and the other untrusted languages, `dblink`, `postgres_fdw`, `file_fdw`,
    ///   `adminpack`, `http` and `pg_net`
    ///
    /// ## Other linters
    ///
    /// `MigrationPilot` and diesel-guard report every `CREATE EXTENSION`.
    "untrusted-extension", Security, Warning,
    { recommended: false, sources: &["migrationpilot/MP078", "diesel-guard/create_extension", "splinter/extension_in_public"] }
    statement = check,
}

/// What each lets SQL do.
///
/// Source: PostgreSQL 14 to 18, `contrib/*/*.control` and `src/pl/*/*.control` without `trusted = true`, those that
/// reach out of the database (`adminpack` is gone from 17, `plpython2u` and `plpythonu` from 15). The others, whose
/// control files are without `trusted`, too: <https://github.com/pramsey/pgsql-http>,
/// <https://github.com/supabase/pg_net>, <https://github.com/petere/plsh>.
const UNTRUSTED: &[(&str, &str)] = &[
    ("adminpack", "write and delete files of the server"),
    ("dblink", "open connections to other servers"),
    ("file_fdw", "read files and run programs on the server"),
    ("http", "send requests to any address"),
    ("pg_net", "send requests to any address"),
    ("plperlu", "run any code as the operating-system user of the server"),
    ("plpython2u", "run any code as the operating-system user of the server"),
    ("plpython3u", "run any code as the operating-system user of the server"),
    ("plpythonu", "run any code as the operating-system user of the server"),
    ("plsh", "run any program as the operating-system user of the server"),
    ("pltclu", "run any code as the operating-system user of the server"),
    ("postgres_fdw", "open connections to other servers"),
];

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    for change in context.effects.changes.iter().filter(|_| context.effects.fails.is_none()) {
        let ChangedObject::Extension { name } = &change.object else { continue };
        let Some((name, power)) = UNTRUSTED.iter().find(|(known, _)| known == name) else { continue };
        let message = format!("`{name}` lets SQL statements {power}");
        // PostgreSQL refuses GRANT USAGE on an untrusted language.
        let help = if name.starts_with("pl") {
            "run this code in the application instead; or let a superuser create the functions in this language, and \
             revoke EXECUTE on them from PUBLIC"
        } else {
            "do this work in the application. Or write SECURITY DEFINER functions for it that belong to a NOLOGIN \
             role, and give only this role the privileges to use the extension"
        };
        reporter.report(change.range, message).help(help).emit();
    }
}
