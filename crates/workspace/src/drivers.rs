//! The databases that manifests, configuration and code around migrations speak of.

use crate::dialect::Dialect;
use aho_corasick::AhoCorasick;
use std::path::Path;
use std::sync::LazyLock;

/// What speaks of PostgreSQL, or of what may connect to it. Any mention is a reason for doubt.
const POSTGRESQL: [&str; 22] = [
    "postgres",
    "psycopg",
    "asyncpg",
    "pg8000",
    "jackc/pg",
    "lib/pq",
    "go-pg",
    "npgsql",
    "postgrex",
    "\"pg\"",
    "'pg'",
    "\"pg-",
    "pgx",
    "pgsql",
    "pgvector",
    "prisma",
    "supabase",
    "cockroach",
    "timescale",
    "yugabyte",
    "redshift",
    "neondatabase",
];

/// Drivers, addresses and settings that are for one other database.
const OTHERS: [(&str, Dialect); 45] = [
    ("com.h2database", Dialect::H2),
    ("jdbc:h2:", Dialect::H2),
    ("better-sqlite3", Dialect::Sqlite),
    ("\"sqlite3\"", Dialect::Sqlite),
    ("'sqlite3'", Dialect::Sqlite),
    ("\"sqlite\"", Dialect::Sqlite),
    ("'sqlite'", Dialect::Sqlite),
    ("bun:sqlite", Dialect::Sqlite),
    ("node:sqlite", Dialect::Sqlite),
    ("expo-sqlite", Dialect::Sqlite),
    ("@libsql/client", Dialect::Sqlite),
    ("import sqlite3", Dialect::Sqlite),
    ("from sqlite3 import", Dialect::Sqlite),
    ("aiosqlite", Dialect::Sqlite),
    ("sqlite://", Dialect::Sqlite),
    ("sqlite3://", Dialect::Sqlite),
    ("jdbc:sqlite:", Dialect::Sqlite),
    ("sqlite-jdbc", Dialect::Sqlite),
    ("mattn/go-sqlite3", Dialect::Sqlite),
    ("ncruces/go-sqlite3", Dialect::Sqlite),
    ("modernc.org/sqlite", Dialect::Sqlite),
    ("glebarez/sqlite", Dialect::Sqlite),
    ("glebarez/go-sqlite", Dialect::Sqlite),
    ("gorm.io/driver/sqlite", Dialect::Sqlite),
    ("zombiezen.com/go/sqlite", Dialect::Sqlite),
    ("rusqlite", Dialect::Sqlite),
    ("exqlite", Dialect::Sqlite),
    ("ecto_sqlite3", Dialect::Sqlite),
    ("microsoft.data.sqlite", Dialect::Sqlite),
    ("entityframeworkcore.sqlite", Dialect::Sqlite),
    ("\"mysql\"", Dialect::MySql),
    ("\"mysql2\"", Dialect::MySql),
    ("'mysql2'", Dialect::MySql),
    ("mysql://", Dialect::MySql),
    ("mysql+", Dialect::MySql),
    ("jdbc:mysql:", Dialect::MySql),
    ("jdbc:mariadb:", Dialect::MySql),
    ("mysql-connector", Dialect::MySql),
    ("go-sql-driver/mysql", Dialect::MySql),
    ("gorm.io/driver/mysql", Dialect::MySql),
    ("pymysql", Dialect::MySql),
    ("aiomysql", Dialect::MySql),
    ("mysqlclient", Dialect::MySql),
    ("image: mysql:", Dialect::MySql),
    ("image: mariadb:", Dialect::MySql),
];

/// Names of manifests.
const MANIFESTS: [&str; 11] = [
    "go.mod",
    "package.json",
    "requirements.txt",
    "pyproject.toml",
    "Pipfile",
    "Gemfile",
    "mix.exs",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Cargo.toml",
];

/// The databases that texts speak of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mentions {
    pub(crate) postgresql: bool,
    pub(crate) other: Option<Dialect>,
}

impl Mentions {
    pub(crate) fn of(text: &str) -> Self {
        static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
            let words = POSTGRESQL.iter().copied().chain(OTHERS.iter().map(|(word, _)| *word));
            AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()
        });
        let mut found = Self::default();
        for word in WORDS.iter().flat_map(|words| words.find_overlapping_iter(text)) {
            match word.pattern().as_usize().checked_sub(POSTGRESQL.len()) {
                None => found.postgresql = true,
                Some(other) => found.other = found.other.max(Some(OTHERS[other].1)),
            }
        }
        found
    }

    pub(crate) fn are_none(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self { postgresql: self.postgresql || other.postgresql, other: self.other.max(other.other) }
    }
}

/// Whether a file lists the packages that a project needs.
pub(crate) fn is_manifest(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    MANIFESTS.contains(&name) || name.ends_with(".csproj")
}

/// The databases that a manifest has drivers of. Those that only tests or other packages need are drivers of PostgreSQL
/// at most.
pub(crate) fn of_manifest(path: &Path, text: &str) -> Mentions {
    let all = Mentions::of(text);
    let needed = match path.file_name().and_then(|name| name.to_str()) {
        Some("package.json") => dependencies(text),
        Some("go.mod") => lines(text, |line| !line.contains("// indirect")),
        _ => text.to_owned(),
    };
    Mentions { other: Mentions::of(&needed).other, ..all }
}

fn lines(text: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    text.split_inclusive('\n').filter(|line| is_wanted(line)).collect()
}

/// The packages that the code of a `package.json` needs when it runs, in quotes.
fn dependencies(text: &str) -> String {
    let manifest: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let named = manifest.as_ref().and_then(|manifest| manifest.get("dependencies")?.as_object());
    let quoted: Vec<String> = named.into_iter().flatten().map(|(name, _)| format!("\"{name}\"")).collect();
    quoted.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(name: &str, text: &str) -> Option<Dialect> {
        let mentions = of_manifest(Path::new(name), text);
        mentions.other.filter(|_| !mentions.postgresql)
    }

    #[test]
    fn drivers_name_their_database() {
        assert_eq!(other("go.mod", "require github.com/mattn/go-sqlite3 v1.14.0\n"), Some(Dialect::Sqlite));
        assert_eq!(other("go.mod", "require modernc.org/sqlite v1.0.0 // indirect\n"), None);
        assert_eq!(other("go.mod", "require (\n\tmodernc.org/sqlite v1\n\tgithub.com/lib/pq v1\n)\n"), None);
        assert_eq!(other("package.json", r#"{"dependencies": {"better-sqlite3": "1"}}"#), Some(Dialect::Sqlite));
        assert_eq!(other("package.json", r#"{"dependencies": {"mysql2": "1"}}"#), Some(Dialect::MySql));
        assert_eq!(other("package.json", r#"{"devDependencies": {"better-sqlite3": "1"}}"#), None);
        assert_eq!(
            other("package.json", r#"{"dependencies": {"sqlite3": "1"}, "devDependencies": {"pg": "8"}}"#),
            None
        );
        assert_eq!(other("requirements.txt", "aiosqlite==0.20\n"), Some(Dialect::Sqlite));
        assert_eq!(other("pyproject.toml", "dependencies = [\"aiosqlite\", \"asyncpg\"]\n"), None);
        assert_eq!(other("Gemfile", "gem 'sqlite3'\n"), Some(Dialect::Sqlite));
        assert_eq!(other("pom.xml", "<artifactId>sqlite-jdbc</artifactId>"), Some(Dialect::Sqlite));
    }

    #[test]
    fn a_text_without_a_database_says_nothing() {
        assert!(Mentions::of("const page = 1; // sqlite is fine, too").are_none());
        let both = Mentions::of("postgresql://a\nmysql://b\n");
        assert!(both.postgresql && both.other == Some(Dialect::MySql));
    }
}
