//! How sure a finding is, and what it assumes.

use crate::effect::{Extent, Rows, RowsReason};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::fmt;

/// How sure it is that the harm happens; how bad it is if it does is its severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// There is evidence against an assumption of the finding, or it needs an unusual situation.
    Possible,
    /// Needs an assumption that holds for an ordinary production table or application.
    #[default]
    Likely,
    /// Follows from PostgreSQL and from facts of the history.
    Certain,
}

impl Confidence {
    /// Returns the word that options, configuration and reports use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

/// What a finding assumes, or what speaks against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assumption {
    /// Nothing bounds the rows of the table.
    Large { table: SmolStr },
    /// Others use the table while the migration runs.
    InUse { table: SmolStr },
    /// The same migration deletes the rows of the table and lists them again.
    LargeThoughListed { table: SmolStr },
    /// Code reads all rows of the table into one variable.
    LargeThoughReadAsOneRow { table: SmolStr },
    /// All rows get the same total of another table, which makes sense for one row.
    LargeThoughTotal { table: SmolStr },
    /// The statement concerns many rows of the table, because nothing bounds them.
    ManyRows { table: SmolStr, because: RowsReason },
    /// It does, although something speaks for few.
    ManyRowsThough { table: SmolStr, because: RowsReason },
    /// It does each time, although a function runs more than once.
    ManyRowsEachTime { table: SmolStr },
    /// The files run in the order of their names, which nothing shows.
    OrderOfNames,
    /// The migrations drop more relations than they leave, so they may not be one history.
    OneHistory,
    /// Code of the project speaks of creating a relation of this name.
    AbsentThoughCodeMayCreate { table: SmolStr },
    /// The code changes `search_path` itself.
    SearchPathUnchanged,
    /// Unqualified names mean those of the schema, although nothing sets `search_path`.
    SearchPathNotSet { schema: SmolStr },
    /// Deployed code leaves a column out that it knows.
    LeftOut { table: SmolStr, column: SmolStr },
    /// Deployed code cannot use a type that takes every value of the old one.
    WiderTypeMatters { table: SmolStr, column: SmolStr },
    /// Deployed code outside of the database uses an object, too.
    UsedOutside { object: SmolStr },
    /// Code that ran before the statement, and was not analyzed, changed nothing that it uses.
    HiddenCodeIsHarmless,
    /// The table already has a row with the key that an INSERT gives.
    KeyTaken { table: SmolStr },
    /// It does, although something speaks against it.
    KeyTakenThough { table: SmolStr, because: KeyEvidence },
    /// Neither role, database nor connection sets `lock_timeout`.
    LockTimeoutUnset,
    /// The session runs in another time zone than UTC.
    TimeZoneNotUtc,
    /// The transaction takes long, although its statements change only the catalog.
    LongTransaction,
    /// A loop over objects of the database has many rounds.
    ManyObjects,
    /// Most of the rows that a block deletes are unused.
    UnusedRows,
    /// A column of type `oid` refers to large objects.
    HoldsLargeObjects { column: SmolStr },
    /// Only an earlier use shows that the relation exists.
    ExistsAsUsed { table: SmolStr },
    /// A setting of another migration is in effect, because both run in one session.
    SameRun { setting: SmolStr },
    /// This migration and an earlier one are pending together.
    OneTransaction,
    /// The program that runs migrations is configured as it is by default.
    DefaultOfTool,
    /// The program that runs the migration opens a transaction for it.
    TransactionOfFile,
    /// It does, although another migration could not run in a transaction.
    TransactionOfFileThoughNotOfOthers,
    /// It does, although the migration has no statement that can run in a transaction.
    TransactionOfFileThoughUnfit,
    /// The program that runs the migration sends all of it as one string.
    SentAsString,
    /// The tool whose marks a file has runs it.
    RunByTool { tool: SmolStr },
    /// psql does not run a COPY, and so reads its data as statements.
    CopyNotRun,
    /// Later migrations exist, so this one has run somewhere, but the migrations show every change of the schema.
    HistoryComplete,
    /// An earlier statement of the migration is refused, and its correction changes nothing for this one.
    EarlierRefusalCorrected,
    /// The statement can stop before its end: for a timeout, a deadlock, rows that refuse it, or a lost connection.
    MayStop,
    /// It can, although the table holds no rows yet.
    MayStopThoughEmpty { table: SmolStr },
    /// Nothing shows that a program opens no transaction around the file.
    NoTransactionAround,
}

/// What speaks against a row with the key that an INSERT gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyEvidence {
    /// Migrations list the rows of the table.
    Listed,
    /// The table generates no key, as tables do whose rows code inserts.
    NoGeneratedKey,
    /// Other rows have random keys.
    RandomKeys,
    /// The migration sets the sequence that numbers the rows.
    SequenceSet,
    /// Some rows were deleted before.
    RowsDeleted,
    /// The copied rows are those of a table that the migration made or filled.
    NewSource,
    /// The statement reads the table into which it inserts.
    ReadsItself,
    /// The key is that of a new row in part, or a function that is not known gives it.
    MayBeGenerated,
    /// A variable of code gives the key.
    Variable,
    /// Code decides whether the statement runs.
    Conditional,
    /// The key is that of the new row for which the trigger fires.
    KeyOfNewRow,
    /// Nothing shows that the function runs often.
    NotKnownToRunOften,
    /// A handler catches the error.
    Caught,
    /// A handler catches other errors, too.
    CatchesOthers,
    /// The code runs once.
    RunsOnce,
    /// The table is temporary.
    Temporary,
}

impl Assumption {
    /// Whether it is about the transaction that the program opens for a migration.
    pub(crate) fn is_about_transaction(&self) -> bool {
        matches!(
            self,
            Self::TransactionOfFile
                | Self::TransactionOfFileThoughNotOfOthers
                | Self::TransactionOfFileThoughUnfit
                | Self::SentAsString
        )
    }

    /// Returns what a finding assumes about a statement that concerns these rows of a table.
    pub fn many(table: &SmolStr, rows: &Rows) -> Self {
        let (table, because) = (table.clone(), rows.reason.clone());
        match rows.extent {
            Extent::All | Extent::Most => Self::Large { table },
            Extent::AtMost(_) | Extent::UnknownPart if rows.may_be_few() => Self::ManyRowsThough { table, because },
            Extent::AtMost(_) | Extent::UnknownPart => Self::ManyRows { table, because },
        }
    }

    /// Returns whether findings of the kind usually rest on this, so that reports for people need not say it.
    pub fn is_usual(&self) -> bool {
        matches!(
            self,
            Self::Large { .. } | Self::InUse { .. } | Self::ManyRows { .. } | Self::KeyTaken { .. } | Self::MayStop
        )
    }

    /// Returns how sure a finding can be at most that rests on this.
    pub fn confidence(&self) -> Confidence {
        match self {
            Self::Large { .. }
            | Self::InUse { .. }
            | Self::ManyRows { .. }
            | Self::KeyTaken { .. }
            | Self::LockTimeoutUnset
            | Self::TimeZoneNotUtc
            | Self::HiddenCodeIsHarmless
            | Self::SearchPathNotSet { .. }
            | Self::SameRun { .. }
            | Self::OneTransaction
            | Self::DefaultOfTool
            | Self::HistoryComplete
            | Self::MayStop
            | Self::TransactionOfFile
            | Self::SentAsString
            | Self::RunByTool { .. } => Confidence::Likely,
            Self::LargeThoughListed { .. }
            | Self::LargeThoughReadAsOneRow { .. }
            | Self::LargeThoughTotal { .. }
            | Self::ManyRowsThough { .. }
            | Self::ManyRowsEachTime { .. }
            | Self::OrderOfNames
            | Self::OneHistory
            | Self::AbsentThoughCodeMayCreate { .. }
            | Self::SearchPathUnchanged
            | Self::LeftOut { .. }
            | Self::WiderTypeMatters { .. }
            | Self::UsedOutside { .. }
            | Self::KeyTakenThough { .. }
            | Self::LongTransaction
            | Self::ManyObjects
            | Self::UnusedRows
            | Self::HoldsLargeObjects { .. }
            | Self::ExistsAsUsed { .. }
            | Self::TransactionOfFileThoughNotOfOthers
            | Self::TransactionOfFileThoughUnfit
            | Self::MayStopThoughEmpty { .. }
            | Self::NoTransactionAround
            | Self::CopyNotRun
            | Self::EarlierRefusalCorrected => Confidence::Possible,
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Large { table } => write!(f, "assumes that `{table}` is large: nothing bounds its rows"),
            Self::InUse { table } => write!(f, "assumes that others use `{table}` while this runs"),
            Self::LargeThoughListed { table } => {
                write!(f, "assumes that `{table}` is large, although this migration lists its rows again")
            }
            Self::LargeThoughReadAsOneRow { table } => {
                write!(f, "assumes that `{table}` is large, although code reads all of it into one variable")
            }
            Self::LargeThoughTotal { table } => {
                write!(f, "assumes that `{table}` is large, although all its rows get the same total")
            }
            Self::ManyRows { table, because } => {
                write!(f, "assumes that this concerns many rows of `{table}`: {because}")
            }
            Self::ManyRowsThough { table, because } => {
                write!(f, "assumes that this concerns many rows of `{table}`, although {because}")
            }
            Self::ManyRowsEachTime { table } => {
                write!(
                    f,
                    "assumes that each call concerns many rows of `{table}`, although the function runs repeatedly"
                )
            }
            Self::OrderOfNames => f.write_str("assumes that the files run in the order of their names"),
            Self::OneHistory => {
                f.write_str("assumes that the files are one history, although they drop more relations than they leave")
            }
            Self::AbsentThoughCodeMayCreate { table } => {
                write!(f, "assumes that nothing creates `{table}`, although code of the project may")
            }
            Self::SearchPathUnchanged => {
                f.write_str("assumes that names mean the same, although the code sets search_path")
            }
            Self::SearchPathNotSet { schema } => {
                write!(f, "assumes that names without a schema mean `{schema}`: no statement sets search_path")
            }
            Self::LeftOut { table, column } => {
                write!(f, "assumes that deployed code inserts into `{table}` without `{column}`")
            }
            Self::WiderTypeMatters { table, column } => {
                write!(f, "assumes that deployed code cannot use the wider type of `{column}` in `{table}`")
            }
            Self::UsedOutside { object } => {
                write!(
                    f,
                    "assumes that deployed code uses `{object}`, although every known use is inside of the database"
                )
            }
            Self::HiddenCodeIsHarmless => {
                f.write_str("assumes that code before it that was not analyzed changes nothing that it uses")
            }
            Self::KeyTaken { table } => write!(f, "assumes that `{table}` already has a row with this key"),
            Self::KeyTakenThough { table, because } => {
                write!(f, "assumes that `{table}` already has a row with this key, although {because}")
            }
            Self::LockTimeoutUnset => {
                f.write_str("assumes that neither role, database nor connection sets lock_timeout")
            }
            Self::TimeZoneNotUtc => {
                f.write_str("assumes that the time zone of the session is not UTC, because no statement sets it")
            }
            Self::LongTransaction => f.write_str(
                "assumes that the transaction takes long, although its statements so far change only the catalog",
            ),
            Self::ManyObjects => {
                f.write_str("assumes that the loop has many rounds, although it goes through objects of the database")
            }
            Self::UnusedRows => {
                f.write_str("assumes that most of the rows are unused, although the block keeps those that are used")
            }
            Self::HoldsLargeObjects { column } => write!(
                f,
                "assumes that `{column}` refers to large objects, although an oid can refer to other system objects"
            ),
            Self::ExistsAsUsed { table } => {
                write!(f, "assumes that `{table}` exists, because an earlier statement uses it")
            }
            Self::SameRun { setting } => {
                write!(f, "assumes that `{setting}` is still as an earlier migration of the same run has set it")
            }
            Self::OneTransaction => f.write_str("assumes that this migration and the earlier one are pending together"),
            Self::DefaultOfTool => f.write_str("assumes that the migration tool is configured as it is by default"),
            Self::TransactionOfFile => {
                f.write_str("assumes that the program that runs this file opens a transaction for it")
            }
            Self::TransactionOfFileThoughNotOfOthers => f.write_str(
                "assumes that the program that runs this file opens a transaction for it, although another migration cannot \
                 run in one",
            ),
            Self::TransactionOfFileThoughUnfit => f.write_str(
                "assumes that the program that runs this file opens a transaction for it, although no statement of the file \
                 can run in one",
            ),
            Self::SentAsString => f.write_str("assumes that the program that runs this file sends it as one string"),
            Self::RunByTool { tool } => write!(f, "assumes that {tool} itself runs this file"),
            Self::HistoryComplete => f.write_str(
                "assumes that the migrations show every change of the schema, although later ones suggest that this one \
                 has run",
            ),
            Self::EarlierRefusalCorrected => f.write_str(
                "assumes that an earlier statement, which PostgreSQL refuses, is corrected without an effect on this one",
            ),
            Self::CopyNotRun => {
                f.write_str("assumes that psql does not run the COPY, because it fails or is in a branch")
            }
            Self::MayStop => f.write_str("assumes that this can stop: a timeout, a deadlock or a lost connection"),
            Self::MayStopThoughEmpty { table } => {
                write!(f, "assumes that this can stop, although `{table}` holds no rows yet")
            }
            Self::NoTransactionAround => f.write_str(
                "assumes that each statement commits on its own: nothing shows which program runs the file",
            ),
        }
    }
}

impl fmt::Display for KeyEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "migrations list its rows",
            Self::NoGeneratedKey => "it generates no keys, so that code may never insert into it",
            Self::RandomKeys => "other rows have random keys",
            Self::SequenceSet => "the migration sets the sequence",
            Self::RowsDeleted => "rows of it were deleted before",
            Self::NewSource => "the copied rows are those of this migration",
            Self::ReadsItself => "the statement reads the table itself",
            Self::MayBeGenerated => "the key may be new each time",
            Self::Variable => "a variable gives the key",
            Self::Conditional => "a condition or a handler decides whether this runs",
            Self::KeyOfNewRow => "the key is that of the new row for which the trigger fires",
            Self::NotKnownToRunOften => "nothing shows that the function runs often",
            Self::Caught => "a handler catches the error",
            Self::CatchesOthers => "the handler catches other errors, too",
            Self::RunsOnce => "the code runs once",
            Self::Temporary => "it is temporary",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_against_an_assumption_makes_a_finding_possible() {
        let table = SmolStr::new("orders");
        assert_eq!(Assumption::Large { table: table.clone() }.confidence(), Confidence::Likely);
        assert_eq!(Assumption::LargeThoughListed { table }.confidence(), Confidence::Possible);
        assert!(Confidence::Possible < Confidence::Likely && Confidence::Likely < Confidence::Certain);
    }
}
