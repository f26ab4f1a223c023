//! What deployed code is known to run: queries of the project, each with its place.

use crate::routine::AllWords;
use pgvet_syntax::ast::{Ast, ExprKind, Literal, ObjectName, Part};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The known part of the application.
#[derive(Debug, Clone, Default)]
pub struct Application {
    pub transactions: Vec<KnownTransaction>,
    /// Drivers of the project that keep prepared statements unless they are configured not to.
    pub drivers: Vec<CachingDriver>,
    /// The positions of the transactions that have a word, and of those where it can lead to a relation.
    by_word: OnceLock<Positions>,
    by_leading_word: OnceLock<Positions>,
}

/// The positions of transactions by word, in their order.
type Positions = FxHashMap<SmolStr, Vec<usize>>;

/// Statements that the application runs in one transaction.
#[derive(Debug, Clone)]
pub struct KnownTransaction {
    pub statements: Vec<KnownStatement>,
    /// The library that the statements are written for; `None` for a file that names no library.
    pub library: Option<QueryLibrary>,
    words: OnceLock<Vec<KnownWords>>,
}

/// The words of a statement.
#[derive(Debug, Clone)]
pub struct KnownWords {
    pub all: AllWords,
    /// Those that can lead to a relation: names of relations, functions and types, and words of strings. `None` if all can.
    leading: Option<AllWords>,
}

impl KnownWords {
    fn of(statement: &KnownStatement) -> Self {
        Self { all: AllWords::from_iter([&*statement.sql]), leading: leading_words(&statement.ast) }
    }

    /// The words that can lead to a relation, and not only to a column.
    pub fn leading(&self) -> &AllWords {
        self.leading.as_ref().unwrap_or(&self.all)
    }
}

fn leading_words(ast: &Ast) -> Option<AllWords> {
    if !matches!(ast, Ast::Select(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Merge(_)) {
        return None;
    }
    let mut texts: Vec<&str> = Vec::new();
    ast.visit(&mut |part| match part {
        Part::Read(relation) => texts.push(&relation.name.name.text),
        Part::Insert(insert) => texts.push(&insert.table.name.name.text),
        Part::Update(update) => texts.push(&update.table.name.name.text),
        Part::Delete(delete) => texts.push(&delete.table.name.name.text),
        Part::Merge(merge) => texts.push(&merge.table.name.name.text),
        Part::Expr(expr) => match &expr.kind {
            ExprKind::Call(call) => texts.push(&call.name),
            ExprKind::Cast { target, .. } => texts.push(&target.name),
            // Code that is called can make a statement of it.
            ExprKind::Literal(Literal::String(text)) => texts.push(text),
            _ => {}
        },
        Part::Query(_) => {}
    });
    Some(texts.into_iter().collect())
}

impl Application {
    pub fn new(transactions: Vec<KnownTransaction>) -> Self {
        Self { transactions, ..Self::default() }
    }

    /// The transactions that have one of the words, in their order. Nothing may be added to them afterwards.
    pub fn with_one_of<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> impl Iterator<Item = &KnownTransaction> {
        self.at(self.by_word.get_or_init(|| self.index(|words| &words.all)), words)
    }

    /// Those that have one where it can lead to a relation.
    pub fn led_by_one_of<'w>(
        &self,
        words: impl IntoIterator<Item = &'w str>,
    ) -> impl Iterator<Item = &KnownTransaction> {
        self.at(self.by_leading_word.get_or_init(|| self.index(KnownWords::leading)), words)
    }

    fn at<'w>(
        &self,
        positions: &Positions,
        words: impl IntoIterator<Item = &'w str>,
    ) -> impl Iterator<Item = &KnownTransaction> {
        let mut found: Vec<usize> =
            words.into_iter().filter_map(|word| positions.get(word)).flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|at| &self.transactions[at])
    }

    fn index(&self, words: impl Fn(&KnownWords) -> &AllWords) -> Positions {
        let mut found = Positions::default();
        for (at, transaction) in self.transactions.iter().enumerate() {
            for word in transaction.with_words().flat_map(|(_, of_statement)| words(of_statement).iter()) {
                let positions = found.entry(word.into()).or_default();
                if positions.last() != Some(&at) {
                    positions.push(at);
                }
            }
        }
        found
    }

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

    /// The statements with the words of their texts. Nothing may be added to the statements afterwards.
    pub fn with_words(&self) -> impl Iterator<Item = (&KnownStatement, &KnownWords)> {
        let words = || self.statements.iter().map(KnownWords::of).collect();
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
    fn columns_do_not_lead_to_relations() {
        let words = |sql: &str| {
            let ast = Arc::new(parse_sql(sql).unwrap().remove(0));
            KnownWords::of(&KnownStatement { place: "q.sql".into(), sql: sql.into(), ast })
        };
        let query =
            words("SELECT site FROM \"My Visits\" AS v WHERE F('Logs') AND site IN (SELECT x::row_of FROM Sites)");
        for word in ["my", "visits", "f", "logs", "sites", "row_of"] {
            assert!(query.leading().may_name(word), "{word}");
        }
        for word in ["site", "v", "x", "from"] {
            assert!(!query.leading().may_name(word) && query.all.may_name(word), "{word}");
        }
        assert!(words("TRUNCATE visits").leading().may_name("visits"));
    }

    #[test]
    fn inserts_of_queries_are_found_by_schema_and_name() {
        let sql = "WITH new AS (INSERT INTO app.users (name) VALUES ('a') RETURNING id) SELECT * FROM roles, new";
        let ast = Arc::new(parse_sql(sql).unwrap().remove(0));
        let statement = KnownStatement { place: "q.sql".into(), sql: sql.into(), ast };
        let transactions = vec![KnownTransaction::new(vec![statement], None)];
        let application = Application::new(transactions);
        assert!(application.inserts_into("app", "users") && application.inserts());
        assert!(!Application::default().inserts());
        assert!(!application.inserts_into("public", "users") && !application.inserts_into("public", "roles"));
        assert_eq!(application.with_one_of(["users", "roles"]).count(), 1);
        assert_eq!(application.with_one_of(["orders"]).count(), 0);
        assert_eq!(application.led_by_one_of(["users"]).count(), 1);
        assert_eq!(application.led_by_one_of(["name"]).count(), 0);
    }
}
