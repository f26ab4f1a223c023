//! Statements that psql runs although they are not in the file.

use crate::cause::Cause;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::DoubtKind;

declare_rule! {
    /// A psql command that runs statements or programs that pgvet does not see.
    ///
    /// ## Why it matters
    ///
    /// `\i` runs another file, `\gexec` runs the rows of a result as statements, `\!` runs a program, and a psql
    /// variable can contain any SQL. None of these statements is in the file, so pgvet neither checks them nor knows
    /// what they change in the schema.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// SELECT format('DROP TABLE %I', tablename) FROM pg_tables WHERE schemaname = 'old' \gexec
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// DROP TABLE IF EXISTS old.orders;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - Commands that change nothing in the database, such as `\echo`, `\timing` and `\set` of a plain value.
    /// - Commands in a branch of `\if` that is never run.
    /// - `:'name'` and `:"name"`, which psql quotes.
    "unchecked-psql-command", Engine, Warning,
    {}
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let migration = context.migration;
    let is_run = |range: TextRange| migration.section.is_none_or(|section| section.contains(range));
    for doubt in context.doubts {
        let Some((message, help)) = described(doubt.kind).filter(|_| is_run(doubt.range)) else { continue };
        reporter.report(doubt.range, message).help(help).caused_by(Cause::Message).emit();
    }
}

fn described(kind: DoubtKind) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        DoubtKind::IncludedFile => (
            "psql runs another file here, and pgvet does not check the statements of that file as a part of this \
             migration",
            "make the other file a migration of its own, or write its statements here",
        ),
        DoubtKind::QueryResult => (
            "psql runs each value in the query result as a statement, and pgvet checks none of these statements",
            "write the statements out, or use a DO block with EXECUTE format(...)",
        ),
        DoubtKind::Program => (
            "psql runs a program here, and pgvet does not check what the program does",
            "run the program outside the \
              migration",
        ),
        DoubtKind::RunsAgain => (
            "no new statement precedes this psql command, so psql runs the previous statement again",
            "remove this psql command, or the semicolon before the command",
        ),
        DoubtKind::UnknownCommand => (
            "psql does not know this command and skips the rest of the line",
            "correct the name of the command, or remove the backslash",
        ),
        DoubtKind::Variable => (
            "psql inserts the value of this variable as SQL, and pgvet does not check that SQL",
            "write `:'name'` for a string and `:\"name\"` for a name",
        ),
        _ => return None,
    })
}
