//! Prepared statements whose result type a migration changes.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::names::may_name;
use crate::rules::deployment::other_statements::is_relation_named_here;
use crate::rules::deployment::queries::is_for_next_release;
use pgvet_model::application::{Application, CachingDriver, KnownStatement, KnownWords, QueryLibrary};
use pgvet_model::catalog::{Catalog, Relation, SqlType};
use pgvet_model::effect::{RelationName, Visibility};
use pgvet_model::routine::{AllWords, Trial};
use pgvet_syntax::ast::{AlterTableAction, Ast};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A migration that changes the columns that a known query of the application returns. In sessions that have
    /// already prepared the query, the query then fails with "cached plan must not change result type".
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL remembers which columns a prepared statement returns. If the number, names or types of these columns
    /// differ when the statement is run again, the statement fails (SQLSTATE 0A000). After `ADD COLUMN` or
    /// `DROP COLUMN`, `SELECT *` and `RETURNING *` return a different number of columns. If the type of a column
    /// changes, the result type of every query that returns the column changes as well.
    ///
    /// Many drivers keep prepared statements for each connection unless they are configured not to:
    ///
    /// | driver | default | after the error | source |
    /// |---|---|---|---|
    /// | sqlx (Rust) | keeps 100 | each connection fails until it is closed | 0.9, `sqlx-postgres/src/options/mod.rs` |
    /// | pgx (Go) | keeps 512 | the next run works | 5.12, `conn.go`, `rows.go` |
    /// | pgjdbc (Java) | from the 5th run on | tries again if `autosave` is `conservative` or `always` | 42.7, `PGProperty.java` |
    /// | asyncpg (Python) | keeps 100 | tries again outside a transaction | 0.32, `connection.py` |
    /// | psycopg 3 (Python) | from the 6th run on | fails until a ROLLBACK clears the cache | 3.3, `_preparing.py` |
    /// | postgres.js | keeps all | tries again | 3.4, `connection.js` |
    /// | Postgrex with Ecto (Elixir) | keeps all | the next run works | `ecto_sql` 3.14, `postgres/connection.ex` |
    /// | Rails (Ruby) | keeps 1000 | tries again outside a transaction | 8.1, `postgresql/database_statements.rb` |
    ///
    /// A second try helps only outside a transaction: inside one, PostgreSQL refuses all statements after the one that
    /// failed.
    ///
    /// These drivers keep prepared statements only if the program asks for it:
    ///
    /// | driver | how the program asks for it | source |
    /// |---|---|---|
    /// | lib/pq (Go) | `Prepare` | 1.12, `conn.go` |
    /// | psycopg 2 (Python) | `PREPARE` | 2.9: writes values into the text of the query |
    /// | Django | `prepare_threshold` in `OPTIONS`, with psycopg 3 | 5.2, `postgresql/base.py` |
    /// | node-postgres | `name` of a query | pg 8.23, `query.js` |
    /// | tokio-postgres (Rust) | `prepare` | 0.7, `client.rs` |
    /// | Npgsql (.NET) | `Prepare`, or `Max Auto Prepare`, which is 0 by default | 10, `NpgsqlConnectionStringBuilder.cs` |
    ///
    /// ## Example
    ///
    /// The project has the query `SELECT * FROM users WHERE id = $1` in `.sqlx/query-*.json`:
    ///
    /// ```sql,reported
    /// -- set: query sqlx SELECT * FROM users WHERE id = $1
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text);
    /// -- migration:
    /// ALTER TABLE users ADD COLUMN nickname text;
    /// ```
    ///
    /// Use instead:
    ///
    /// Deploy code that names the columns it needs, and then add the column. To change the type of a column, add a new
    /// column with the new type.
    ///
    /// ```sql,clean
    /// -- set: query sqlx SELECT id, name FROM users WHERE id = $1
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text);
    /// -- migration:
    /// ALTER TABLE users ADD COLUMN nickname text;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - projects whose queries pgvet does not know: it reads only `.sqlx/query-*.json` and the query files of sqlc,
    ///   `PgTyped`, yesql, aiosql and HugSQL
    /// - queries of sqlc with `*`: sqlc replaces the `*` with the column names when it generates code
    /// - a column that the query does not return
    /// - a table that an earlier statement of the migration renamed: no session has prepared a query with the new name
    ///
    /// ## Confidence
    ///
    /// If a project has query files but uses none of the drivers in the first table, the confidence is `possible`, and
    /// the finding is shown only with `--confidence possible`.
    ///
    /// ## Incidents
    ///
    /// - [control-layer #1758](https://github.com/doublewordai/control-layer/pull/1758): after a column was added, an
    ///   API request for a list returned HTTP 500, even after a restart, because `PgBouncer` kept the prepared
    ///   statements
    /// - [devlake #4867](https://github.com/apache/devlake/issues/4867): each call that added or deleted a column while
    ///   the program was running failed with this error
    ///
    /// ## Other linters
    ///
    /// No other known linter compares migrations with queries of the application.
    "cached-plan-result-changes", Compatibility, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let application = &context.settings.application;
    if application.transactions.is_empty() || context.effects.fails.is_some() {
        return;
    }
    let reshaped = reshaped(context);
    if reshaped.is_empty() {
        return;
    }
    let (path, version) = (context.session.settings.search_path(), context.target.version());
    let trials = [context.before, context.after].map(|catalog| Trial::of_code(catalog, &path, version));
    let queries = may_return(context.before, application, &reshaped);
    for (table, range) in reshaped {
        let named = queries.iter().filter(|(query, _)| may_name(&query.sql, &table.name));
        let mut changed: Vec<(&KnownStatement, Option<QueryLibrary>, Difference)> = named
            .filter_map(|(query, library)| Some((*query, *library, difference(context, query, *library, &trials)?)))
            .collect();
        // The surest evidence stands for the others.
        changed.sort_by_key(|(_, library, _)| *library != Some(QueryLibrary::Sqlx));
        let Some((query, library, _)) = changed.first() else { continue };
        let others = match changed.len() - 1 {
            0 => String::new(),
            1 => " and 1 other query".to_owned(),
            others => format!(" and {others} other queries"),
        };
        let (fail, them, returned) = if others.is_empty() {
            ("fails", "the query", "the query returns")
        } else {
            ("fail", "these queries", "the queries return")
        };
        let message = format!(
            "the query at `{}`{others} {fail} with \"cached plan must not change result type\" in sessions that have \
             already prepared {them}: this statement changes the columns of `{}` that {returned}",
            query.place, table.name
        );
        let finding = reporter.report(range, message).relation(&RelationName::existing(table));
        let driver = driver(*library, &application.drivers);
        let finding = match &driver {
            Some(_) => finding,
            None => finding.assuming(Assumption::KeepsPreparedStatements { query: query.place.clone() }),
        };
        let only_types = changed.iter().all(|(.., difference)| *difference == Difference::Types);
        finding.help(help(driver.as_ref(), only_types)).emit();
    }
}

/// The queries that may return columns of one of the tables: they name it, or a function or view.
fn may_return<'a>(
    catalog: &Catalog,
    application: &'a Application,
    tables: &[(&Relation, TextRange)],
) -> Vec<(&'a KnownStatement, Option<QueryLibrary>)> {
    let functions = catalog.functions().map(|function| function.name.as_str());
    let names = functions.chain(catalog.views().map(|view| view.name.as_str()));
    let words: AllWords = names.chain(tables.iter().map(|(table, _)| table.name.as_str())).collect();
    let is_led = |words_of_query: &KnownWords| words_of_query.leading().iter().any(|word| words.has(word));
    let transactions = application.led_by_one_of(words.iter());
    let queries = transactions.flat_map(|one| one.with_words().map(move |(query, words)| (query, words, one.library)));
    queries.filter(|(_, words, _)| is_led(words)).map(|(query, _, library)| (query, library)).collect()
}

/// The existing tables whose columns the statement changes, and where.
fn reshaped<'c>(context: &RuleContext<'c>) -> Vec<(&'c Relation, TextRange)> {
    let mut found: Vec<(&Relation, TextRange)> = Vec::new();
    for lock in &context.effects.locks {
        if lock.relation.visibility != Visibility::Existing || found.iter().any(|(one, _)| one.oid == lock.relation.oid)
        {
            continue;
        }
        let before = context.before.get_relation(lock.relation.oid).filter(|relation| relation.known);
        let (Some(before), Some(after)) = (before, context.after.get_relation(lock.relation.oid)) else { continue };
        if shape(before) != shape(after) && !is_relation_named_here(context, &lock.relation) {
            found.push((before, place(context, lock.range)));
        }
    }
    found
}

/// The first command of an ALTER TABLE that changes a column, or the range of the lock.
fn place(context: &RuleContext<'_>, otherwise: TextRange) -> TextRange {
    let Ast::AlterTable(alter) = context.ast else { return otherwise };
    let changes = alter.commands.iter().find(|command| {
        matches!(
            command.action,
            AlterTableAction::AddColumn { .. }
                | AlterTableAction::DropColumn { .. }
                | AlterTableAction::AlterColumnType { .. }
        )
    });
    changes.map_or(otherwise, |command| command.range)
}

fn shape(relation: &Relation) -> Vec<(&SmolStr, SqlType)> {
    relation.columns.iter().map(|column| (&column.name, column.sql_type)).collect()
}

/// How the columns that a query returns change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    /// Their number or names.
    Columns,
    /// Only their types.
    Types,
}

/// How the columns that the query returns differ after the statement, as PostgreSQL compares them.
///
/// Source: PostgreSQL 18, `src/backend/utils/cache/plancache.c`, `RevalidateCachedQuery`;
/// `src/backend/access/common/tupdesc.c`, `equalRowTypes`.
fn difference(
    context: &RuleContext<'_>,
    query: &KnownStatement,
    library: Option<QueryLibrary>,
    [before, after]: &[Trial; 2],
) -> Option<Difference> {
    let (before, after) = (before.result_columns(&query.ast)?, after.result_columns(&query.ast)?);
    let has_same_names = before.iter().map(|(name, _)| name).eq(after.iter().map(|(name, _)| name));
    let difference = if has_same_names { Difference::Types } else { Difference::Columns };
    // sqlc writes the names of the columns that the table had: if one is gone, the code fails for that reason.
    let is_expanded = library == Some(QueryLibrary::Sqlc) && difference == Difference::Columns;
    let are_known = before.iter().chain(&after).all(|(_, sql_type)| sql_type.is_known());
    let is_changed = before != after && (are_known || before.len() != after.len());
    (is_changed && !is_expanded && !is_for_next_release(context, query)).then_some(difference)
}

/// The driver that keeps the query.
fn driver(library: Option<QueryLibrary>, known: &[CachingDriver]) -> Option<CachingDriver> {
    let of_library = library == Some(QueryLibrary::Sqlx);
    let sqlx = known.iter().find(|driver| driver.name == "sqlx");
    if of_library {
        let named = || CachingDriver { name: "sqlx", manifest: SmolStr::new_static("Cargo.toml") };
        return Some(sqlx.cloned().unwrap_or_else(named));
    }
    known.first().cloned()
}

fn help(driver: Option<&CachingDriver>, only_types: bool) -> String {
    let keeps = driver.map_or(String::new(), |driver| {
        format!(" ({}, which `{}` requires, keeps prepared statements by default)", driver.name, driver.manifest)
    });
    let first = if only_types {
        "add a new column with the new type and deploy code that uses it"
    } else {
        "first deploy code that names the columns it needs"
    };
    format!("{first}, or close all connections after the migration{keeps}")
}
