//! What version control shows about migrations that databases have applied, and what the migration tool does about it.

/// Something that has happened to a migration, or to its place among the others, since databases have applied some of
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Incident {
    pub kind: IncidentKind,
    /// What the tool does when it runs on a database that has applied the migrations of the base revision.
    pub consequence: Consequence,
    /// The name of the tool in messages; `None` if no tool is known.
    pub tool: Option<&'static str>,
    /// Which migrations are treated as applied.
    pub applied: Applied,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IncidentKind {
    /// The text of an applied migration has changed.
    Edited {
        /// Whether more than comments, white space, the case of words and guards such as IF EXISTS have changed in what
        /// runs.
        changes_sql: bool,
    },
    /// The file of an applied migration has another name.
    Renamed {
        to: String,
        /// Whether the version is another one, so that the tool sees another migration.
        changes_version: bool,
    },
    /// The file of an applied migration is gone, and so are those of this number of others.
    Removed {
        others: usize,
        /// Whether other migrations were added or edited at the same time, which may do what this one did.
        may_be_replaced: bool,
    },
    /// The migration is new, and comes before this one, which is applied.
    OutOfOrder { newest: String, by: OrderedBy },
    /// The list of the tool, which has this name, does not name the new migration.
    NotListed { list: &'static str },
    /// The hash in the list of Atlas is that of another text.
    HashDiffers {
        of: HashOf,
        /// Whether the hashes match with other line endings.
        only_line_endings: bool,
    },
    /// Another migration has the same version.
    SameVersion {
        version: String,
        other: String,
        /// Whether one of the two has the name of a script that takes the other back.
        is_rollback: bool,
        /// The place that lists the folder of one of the two for Flyway, if none lists both.
        apart: Option<String>,
    },
}

/// The hash in the list of Atlas that does not match.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HashOf {
    /// That of this migration.
    This,
    /// That of the migration with this name.
    Other(String),
    /// That of all entries together.
    All,
}

/// What decides about the order of migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderedBy {
    /// The names of the files.
    Name,
    /// The times in the journal of Drizzle.
    Journal,
}

/// What the tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Consequence {
    /// It ends with an error before it runs anything.
    Refuses {
        /// What it says.
        saying: &'static str,
        /// How to make it run once nevertheless, as the end of "or".
        unless: Option<&'static str>,
    },
    /// It takes no notice.
    Ignores,
    /// It never runs the migration, and reports no error.
    Skips,
    /// It runs the migration, as one that is new.
    Runs,
    /// Nothing is known.
    Unknown,
}

/// Which migrations are treated as applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Applied {
    /// Those that the base revision has.
    InBase,
    /// Those that are committed, although perhaps only on this branch.
    Committed,
    /// None need be: the harm is the same on every database.
    Any,
}
