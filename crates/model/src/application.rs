//! What deployed code is known to run: queries of the project, each with its place.

use crate::routine::AllWords;
use pgvet_syntax::ast::{Ast, ObjectName, Part};
use smol_str::SmolStr;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The known part of the application.
#[derive(Debug, Clone, Default)]
pub struct Application {
    pub transactions: Vec<KnownTransaction>,
    /// Drivers of the project that keep prepared statements unless they are configured not to.
    pub drivers: Vec<CachingDriver>,
}

/// Statements that the application runs in one transaction.
#[derive(Debug, Clone)]
pub struct KnownTransaction {
    pub statements: Vec<KnownStatement>,
    /// The library that the statements are written for; `None` for a file that names no library.
    pub library: Option<QueryLibrary>,
    words: OnceLock<Vec<AllWords>>,
}

impl Application {
    /// Whether deployed code is known to insert rows into a table.
    pub fn inserts_into(&self, schema: &str, table: &str) -> bool {
        self.has_insert(|name| {
            let is_schema = name.schema.as_ref().is_none_or(|given| given.text == schema);
            is_schema && name.name.text == table
        })
    }

    /// Whether deployed code is known to insert rows into any table.
    pub fn inserts(&self) -> bool {
        self.has_insert(|_| true)
    }

    fn has_insert(&self, is_table: impl Fn(&ObjectName) -> bool) -> bool {
        let inserts = |statement: &KnownStatement| {
            let mut found = false;
            statement.ast.visit(&mut |part| {
                if let Part::Insert(insert) = part {
                    found |= is_table(&insert.table.name);
                }
            });
            found
        };
        self.transactions.iter().flat_map(|transaction| &transaction.statements).any(inserts)
    }
}

impl KnownTransaction {
    pub fn new(statements: Vec<KnownStatement>, library: Option<QueryLibrary>) -> Self {
        Self { statements, library, words: OnceLock::new() }
    }

    /// The statements with all words in their texts. Nothing may be added to the statements afterwards.
    pub fn with_words(&self) -> impl Iterator<Item = (&KnownStatement, &AllWords)> {
        let words = || self.statements.iter().map(|statement| AllWords::from_iter([&*statement.sql])).collect();
        self.statements.iter().zip(self.words.get_or_init(words))
    }
}

/// One statement of the application.
#[derive(Clone)]
pub struct KnownStatement {
    /// `path:line`, or the path alone.
    pub place: SmolStr,
    pub sql: Arc<str>,
    pub ast: Arc<Ast>,
}

/// Libraries whose queries are kept in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryLibrary {
    /// sqlx for Rust: `.sqlx/query-*.json`.
    Sqlx,
    /// sqlc, which replaces `*` by the columns that a table has when it generates code.
    Sqlc,
    /// `PgTyped`, yesql, `HugSQL` or aiosql.
    Other,
}

/// A driver that keeps prepared statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachingDriver {
    /// `sqlx`, `pgx`.
    pub name: &'static str,
    /// The manifest that requires it.
    pub manifest: SmolStr,
}

// The tree follows from the text.
impl fmt::Debug for KnownStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownStatement").field("place", &self.place).field("sql", &self.sql).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::ast::from_pg::parse_sql;

    #[test]
    fn inserts_of_queries_are_found_by_schema_and_name() {
        let sql = "WITH new AS (INSERT INTO app.users (name) VALUES ('a') RETURNING id) SELECT * FROM roles, new";
        let ast = Arc::new(parse_sql(sql).unwrap().remove(0));
        let statement = KnownStatement { place: "q.sql".into(), sql: sql.into(), ast };
        let transactions = vec![KnownTransaction::new(vec![statement], None)];
        let application = Application { transactions, drivers: Vec::new() };
        assert!(application.inserts_into("app", "users") && application.inserts());
        assert!(!Application::default().inserts());
        assert!(!application.inserts_into("public", "users") && !application.inserts_into("public", "roles"));
    }
}
