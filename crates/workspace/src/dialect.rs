//! Which database a text is written for, by what no other one reads.

use aho_corasick::AhoCorasick;
use pgvet_syntax::lexer::{Token, TokenKind, tokenize};
use pgvet_syntax::source::TextRange;
use std::fmt;
use std::sync::LazyLock;

/// A database that is not PostgreSQL. Of several that a folder shows, the last is meant: others read some of what MySQL
/// does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    H2,
    MySql,
    SqlServer,
    Sqlite,
    ClickHouse,
}

impl Dialect {
    /// Its name in names of folders.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::H2 => "h2",
            Self::MySql => "mysql",
            Self::SqlServer => "sqlserver",
            Self::Sqlite => "sqlite",
            Self::ClickHouse => "clickhouse",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::H2 => "H2",
            Self::MySql => "MySQL",
            Self::SqlServer => "SQL Server",
            Self::Sqlite => "SQLite",
            Self::ClickHouse => "ClickHouse",
        })
    }
}

/// A text without any of these, in any case, has no mark of another database.
const NEEDLES: [&str; 16] = [
    "`",
    "engine=",
    "engine =",
    "auto_increment",
    "modify ",
    "change ",
    " after ",
    "duplicate key",
    "delimiter",
    "pragma",
    "autoincrement",
    "without rowid",
    "raise(",
    "lowcardinality(",
    "[dbo]",
    "\ngo",
];

/// Maximum number of bytes that are searched backwards for the beginning of a line comment.
const COMMENT_BYTES: usize = 200;

/// Whether the text may have a mark of another database. Most have none, and need not be split into tokens.
pub(crate) fn may_be_other(text: &str) -> bool {
    static MARKS: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(NEEDLES).ok());
    let Some(marks) = MARKS.as_ref() else { return true };
    let is_in_comment = |at: usize| {
        let before = &text.as_bytes()[at.saturating_sub(COMMENT_BYTES)..at];
        let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        line.windows(2).any(|two| two == b"--")
    };
    // Triggers run after something.
    let is_event = |at: usize| {
        let events = ["INSERT", "UPDATE", "DELETE", "TRUNCATE"];
        let is = |event: &str| {
            text.as_bytes()[at..].get(..event.len()).is_some_and(|word| word.eq_ignore_ascii_case(event.as_bytes()))
        };
        events.into_iter().any(is)
    };
    marks.find_iter(text).any(|found| !is_in_comment(found.start()) && !is_event(found.end()))
}

/// Maximum number of tokens behind `ENGINE =` that are searched for the name of an engine.
const ENGINE_TOKENS: usize = 6;

/// Engines of MySQL that its tables are made with.
const MYSQL_ENGINES: [&str; 7] = ["INNODB", "MYISAM", "MEMORY", "ARIA", "ROCKSDB", "NDB", "NDBCLUSTER"];

/// Words that only PostgreSQL, and what descends from it, knows.
const OWN_WORDS: [&str; 15] = [
    "BIGSERIAL",
    "BYTEA",
    "CITEXT",
    "CONCURRENTLY",
    "EXTENSION",
    "GEN_RANDOM_UUID",
    "ILIKE",
    "NEXTVAL",
    "PG_CATALOG",
    "PLPGSQL",
    "REGCLASS",
    "SEARCH_PATH",
    "TIMESTAMPTZ",
    "TSVECTOR",
    "VARYING",
];

/// The tokens of a text.
pub(crate) struct Tokens<'t> {
    text: &'t str,
    all: Vec<Token>,
}

impl<'t> Tokens<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, all: tokenize(text, TextRange::new(0, text.len() as u32)) }
    }

    /// The database whose marks the text has, where no comment and no string has them.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        let mut first = 0;
        let mut found = None;
        for at in 0..self.all.len() {
            if self.all[at].is_punctuation(b';') {
                first = at + 1;
            }
            found = found.max(self.mark(first, at));
        }
        found
    }

    /// Whether they include one that only PostgreSQL reads.
    pub(crate) fn are_own(&self) -> bool {
        (0..self.all.len()).any(|at| match self.all[at].kind {
            TokenKind::Compound => self.word(at) == "::",
            // MySQL's scripts like to end procedures with it.
            TokenKind::DollarString => !at.checked_sub(1).is_some_and(|before| self.is(before, "DELIMITER")),
            // SQLite has a function of that name.
            TokenKind::Word if self.is(at, "JSONB") => !self.is_punctuation(at + 1, b'('),
            TokenKind::Word => {
                OWN_WORDS.iter().any(|word| self.is(at, word))
                    || self.are(at, &["OWNER", "TO"])
                    || self.are(at, &["CREATE", "TYPE"])
                    || self.are(at, &["WITH", "TIME", "ZONE"])
            }
            _ => false,
        })
    }

    /// The database of which the token at `at` is a mark, in a statement that begins at `first`.
    fn mark(&self, first: usize, at: usize) -> Option<Dialect> {
        let token = &self.all[at];
        match token.kind {
            TokenKind::Operator if self.word(at).contains('`') => Some(Dialect::MySql),
            TokenKind::Punctuation(b'[') if self.is(at + 1, "DBO") && self.is_punctuation(at + 2, b']') => {
                Some(Dialect::SqlServer)
            }
            TokenKind::Word => {
                self.word_of_one(at).or_else(|| self.action(first, at)).or_else(|| self.line(at)).or_else(|| {
                    let is_pragma = at == first && self.is(at, "PRAGMA") && self.kind(at + 1) == Some(TokenKind::Word);
                    is_pragma.then_some(Dialect::Sqlite)
                })
            }
            _ => None,
        }
    }

    /// The dialect of which the token is a mark wherever it occurs.
    fn word_of_one(&self, at: usize) -> Option<Dialect> {
        let abandons = ["ABORT", "FAIL", "IGNORE", "ROLLBACK"].iter().any(|word| self.is(at + 2, word));
        if self.is(at, "ENGINE") && self.word(at + 1) == "=" {
            let engine = self.word(at + 2).to_ascii_uppercase();
            // A placeholder may be before it, as in `?(REPLICATED)MergeTree()`.
            let is_tree = (at + 2..at + 2 + ENGINE_TOKENS)
                .take_while(|at| !self.is_punctuation(*at, b';'))
                .any(|at| self.word(at).to_ascii_uppercase().ends_with("MERGETREE"));
            let is_clickhouse = is_tree || ["KAFKA", "DISTRIBUTED"].contains(&engine.as_str());
            let is_mysql = MYSQL_ENGINES.contains(&engine.as_str());
            return if is_clickhouse { Some(Dialect::ClickHouse) } else { is_mysql.then_some(Dialect::MySql) };
        }
        if self.is(at, "AUTO_INCREMENT") || self.are(at, &["ON", "DUPLICATE", "KEY", "UPDATE"]) {
            return Some(Dialect::MySql);
        }
        if self.is(at, "LOWCARDINALITY") && self.is_punctuation(at + 1, b'(') {
            return Some(Dialect::ClickHouse);
        }
        let is_sqlite = self.is(at, "AUTOINCREMENT")
            || self.are(at, &["WITHOUT", "ROWID"])
            || (self.is(at, "RAISE") && self.is_punctuation(at + 1, b'(') && abandons);
        is_sqlite.then_some(Dialect::Sqlite)
    }

    /// `MODIFY`, `CHANGE` and `AFTER` of ALTER TABLE.
    fn action(&self, first: usize, at: usize) -> Option<Dialect> {
        let before = |back: usize| at.checked_sub(back).filter(|at| *at >= first);
        let is_before =
            |back, words: &[&str]| before(back).is_some_and(|at| words.iter().any(|word| self.is(at, word)));
        let is_name = |at| matches!(self.kind(at), Some(TokenKind::Word | TokenKind::QuotedIdentifier));
        if !self.are(first, &["ALTER", "TABLE"]) {
            return None;
        }
        let begins = before(1).is_some_and(|at| self.is_punctuation(at, b','))
            || is_before(2, &["TABLE", "EXISTS"])
            || before(2).is_some_and(|at| self.is_punctuation(at, b'.'));
        let is_mark = if self.is(at, "MODIFY") || self.is(at, "CHANGE") {
            begins && is_name(at + 1)
        } else {
            // A column may be called so.
            let is_column = is_before(1, &["ADD", "ALTER", "COLUMN", "DROP", "EXISTS", "RENAME", "TO"]);
            let ends = |at| at == self.all.len() || self.is_punctuation(at, b',') || self.is_punctuation(at, b';');
            self.is(at, "AFTER") && !is_column && is_name(at + 1) && ends(at + 2)
        };
        is_mark.then_some(Dialect::MySql)
    }

    /// Commands of clients, which have a line of their own.
    fn line(&self, at: usize) -> Option<Dialect> {
        let is_line_between = |before: usize, after: usize| match (self.all.get(before), self.all.get(after)) {
            (Some(before), Some(after)) => {
                self.text[before.range.end as usize..after.range.start as usize].contains('\n')
            }
            _ => true,
        };
        let begins = at == 0 || is_line_between(at - 1, at);
        let ends = is_line_between(at, at + 1);
        if self.is(at, "GO") && begins && ends {
            return Some(Dialect::SqlServer);
        }
        // COPY has an option of that name.
        let is_option = matches!(self.kind(at + 1), Some(TokenKind::String)) || self.is(at + 1, "AS");
        (self.is(at, "DELIMITER") && begins && !ends && !is_option).then_some(Dialect::MySql)
    }

    fn kind(&self, at: usize) -> Option<TokenKind> {
        self.all.get(at).map(|token| token.kind)
    }

    fn word(&self, at: usize) -> &'t str {
        self.all.get(at).map_or("", |token| token.text(self.text))
    }

    fn is(&self, at: usize, keyword: &str) -> bool {
        self.all.get(at).is_some_and(|token| token.is_keyword(self.text, keyword))
    }

    fn are(&self, at: usize, keywords: &[&str]) -> bool {
        keywords.iter().zip(at..).all(|(keyword, at)| self.is(at, keyword))
    }

    fn is_punctuation(&self, at: usize, character: u8) -> bool {
        self.all.get(at).is_some_and(|token| token.is_punctuation(character))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_other_databases() {
        use Dialect::{ClickHouse, MySql, SqlServer, Sqlite};
        for (sql, expected) in [
            ("CREATE TABLE `a` (b int);", MySql),
            ("create table a (b int) engine=innodb;", MySql),
            ("CREATE TABLE a (b int AUTO_INCREMENT);", MySql),
            ("ALTER TABLE a MODIFY COLUMN b text;", MySql),
            ("SELECT 1;\nalter table a.b add c int, modify d text;", MySql),
            ("ALTER TABLE a CHANGE b c int;", MySql),
            ("alter table a add column b int after c;", MySql),
            ("ALTER TABLE a ADD b int AFTER c, ADD d int", MySql),
            ("INSERT INTO a VALUES (1) ON DUPLICATE KEY UPDATE b = 1;", MySql),
            ("DELIMITER //\nCREATE PROCEDURE a() BEGIN END //", MySql),
            ("DELIMITER $$\nCREATE PROCEDURE a() BEGIN END $$", MySql),
            ("PRAGMA foreign_keys = ON;", Sqlite),
            ("CREATE TABLE a (b INTEGER PRIMARY KEY AUTOINCREMENT);", Sqlite),
            ("CREATE TABLE a (b int PRIMARY KEY) WITHOUT ROWID;", Sqlite),
            ("CREATE TRIGGER t BEFORE UPDATE ON a BEGIN SELECT raise(abort, 'no'); END;", Sqlite),
            ("CREATE TABLE a (b UInt64) ENGINE = MergeTree() ORDER BY b;", ClickHouse),
            ("CREATE TABLE ?DB.a ?ON_CLUSTER (b UInt64)\nENGINE = ?(REPLICATED)MergeTree()", ClickHouse),
            ("ALTER TABLE a ADD COLUMN b LowCardinality(String);", ClickHouse),
            ("CREATE TABLE [dbo].[a] (b int)", SqlServer),
            ("CREATE TABLE a (b int)\nGO\nCREATE TABLE c (d int)\ngo", SqlServer),
            ("CREATE TABLE `a` (b Int64) ENGINE = ReplacingMergeTree ORDER BY b;", ClickHouse),
        ] {
            let tokens = Tokens::new(sql);
            assert_eq!(tokens.dialect(), Some(expected), "{sql}");
            assert!(!tokens.are_own(), "{sql}");
            assert!(may_be_other(sql), "{sql}");
            assert!(may_be_other(&format!("-- `a`\n{sql}")), "{sql}");
        }
    }

    #[test]
    fn what_looks_like_a_mark_and_is_none() {
        for sql in [
            "-- see `a`, AUTO_INCREMENT\n/* ENGINE=InnoDB\nGO\n*/ SELECT '`', $$ DELIMITER // $$, \"AUTO_INCREMENT\";",
            "CREATE TRIGGER t AFTER INSERT ON a EXECUTE FUNCTION f();",
            "ALTER TYPE t ADD VALUE 'a' AFTER 'b';",
            "ALTER TABLE a ADD COLUMN after int, ADD change int, DROP modify;",
            "ALTER TABLE a ADD PRIMARY KEY (id, modify);",
            "COPY a FROM STDIN WITH\nDELIMITER ',';",
            "UPDATE a SET engine = other;",
            "DO $$ BEGIN RAISE NOTICE 'a'; END $$;",
            "SELECT go FROM a;",
        ] {
            assert_eq!(Tokens::new(sql).dialect(), None, "{sql}");
        }
    }

    #[test]
    fn comments_and_triggers_are_no_reason_to_look_closer() {
        for sql in ["-- Modify \"a\" table\nSELECT 1;", "-- a `b`, ENGINE=c", "CREATE TRIGGER t AFTER insert ON a"] {
            assert!(!may_be_other(sql), "{sql}");
        }
    }

    #[test]
    fn marks_of_postgresql() {
        for sql in [
            "SELECT a::text;",
            "DO $$ BEGIN END $$;",
            "CREATE TABLE a (b jsonb);",
            "create index concurrently i on t (a);",
            "ALTER TABLE a OWNER TO b;",
            "CREATE TABLE a (b timestamp with time zone);",
        ] {
            assert!(Tokens::new(sql).are_own(), "{sql}");
        }
        for sql in ["SELECT jsonb(a) FROM b;", "CREATE TABLE a (b int);", "DELIMITER $$\nSELECT 1 $$", "SELECT '::'"] {
            assert!(!Tokens::new(sql).are_own(), "{sql}");
        }
    }
}
