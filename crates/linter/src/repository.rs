//! What the repository shows about how single migrations run: evidence against findings about them.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// What the repository shows about a migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositoryEvidence {
    /// Why nothing may run it.
    pub idle: Option<IdleReason>,
    /// The timeout that the program sets before it runs the migration.
    pub timeout: Option<CodeTimeout>,
    /// The tables that the file and others create, which build the schema from nothing in one run.
    pub built_with: Option<Arc<BTreeSet<SmolStr>>>,
    /// An earlier file that has all of its statements, or all of whose statements it has.
    pub repeated: Option<Repeated>,
    /// Why it may be written for another database.
    pub dialect: Option<DialectDoubt>,
    /// A script of the project that runs it with psql.
    pub psql: Option<PsqlScript>,
    /// Present if the run has every migration of the database from the first one on.
    pub history: Option<WholeHistory>,
    /// SQL that other code of the project runs in the same database.
    pub schema: Option<Arc<SchemaScript>>,
    /// Whether neither its name nor a tool shows that it is a migration.
    pub script: bool,
    /// Where the program that runs it names statements that cannot run in a transaction.
    pub mentions_concurrently: Option<SmolStr>,
}

impl RepositoryEvidence {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Where scripts run a migration with psql, and so in another way than its tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PsqlScript {
    /// The path and line of a command that commits each statement, although the tool opens a transaction.
    pub transaction: Option<SmolStr>,
    /// The path and line of a command that runs the migrations in another order.
    pub order: Option<SmolStr>,
}

/// A history that begins with an empty database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WholeHistory {
    /// Tables that other SQL files of the project create, with the first such file.
    pub elsewhere: Arc<BTreeMap<SmolStr, SmolStr>>,
    /// Tables in which migration tools record what has run.
    pub of_tools: Arc<[SmolStr]>,
    /// The path and line of code with which a framework creates tables.
    pub creator: Option<SmolStr>,
}

/// A file such as `schema.sql` that creates tables, and that a script or program of the project runs beside the migrations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaScript {
    /// The file.
    pub path: SmolStr,
    /// The path and line that runs it.
    pub place: SmolStr,
    /// All names in it.
    pub names: BTreeSet<SmolStr>,
}

/// A file that may have done what a migration does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    pub path: SmolStr,
    /// Whether it also drops or renames objects, or leaves them out that other files create.
    pub removes: bool,
}

/// A sign that a migration is written for another database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialectDoubt {
    /// Its name, such as `SQLite`.
    pub database: SmolStr,
    /// The file that speaks of it; `None` if it is the migration itself.
    pub place: Option<SmolStr>,
}

/// Why nothing may run a migration any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleReason {
    /// A folder is called so, and nothing names it as one of migrations.
    Folder { name: SmolStr },
    /// A migration of another history drops the table in which the tool records what has run.
    Replaced { table: SmolStr, by: SmolStr },
    /// The tool does not run files of its name, or its own list does not name it.
    Unlisted,
    /// A tool runs the migrations of the project from this folder, and nothing shows what runs the file.
    OutsideTool { tool: SmolStr, folder: SmolStr },
    /// Only one place lists the folder of the file for Flyway, and others list other folders.
    OtherLocation { listed: SmolStr, others: SmolStr },
}

impl fmt::Display for IdleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { name } => write!(f, "a folder above it is called `{name}`"),
            Self::Replaced { table, by } => {
                write!(f, "`{by}` drops `{table}`, in which the tool records what has run")
            }
            Self::Unlisted => f.write_str("the migration tool ignores its name or does not list it"),
            Self::OutsideTool { tool, folder } => {
                write!(f, "{tool} runs the migrations in `{folder}`, and nothing shows what runs other files")
            }
            Self::OtherLocation { listed, others } => {
                write!(f, "only `{listed}` lists its folder for Flyway, and `{others}` does not")
            }
        }
    }
}

/// A timeout in the code that runs migrations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeTimeout {
    /// `lock_timeout` or `statement_timeout`.
    pub setting: SmolStr,
    /// The path and line: `scripts/migrate.ts:41`.
    pub place: SmolStr,
}
