//! How sure a finding is, and what it assumes.

use pgvet_model::effect::{Extent, FewRows, Met, Rows, RowsReason};
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::runner::KnownTransaction;
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

/// An assumption of a finding, or evidence against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assumption {
    /// Nothing bounds the rows of the table.
    Large { table: SmolStr },
    /// Others use the table while the migration runs.
    InUse { table: SmolStr },
    /// Nothing bounds them, but something speaks for few.
    LargeThough { table: SmolStr, because: FewRows },
    /// No index of a table that no migration shows finds the rows of a condition.
    NoIndexFinds { table: SmolStr },
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
    /// Writes to a table after its rows were copied are not copied, although something speaks for that.
    WritesNotCopied { table: SmolStr, because: CopyEvidence },
    /// Deployed code reads a table before later statements of the migration fill it.
    ReadBeforeFilled { table: SmolStr },
    /// A table that no migration creates has no policy that no migration shows.
    NoPolicyUnseen { table: SmolStr },
    /// A partitioned table has partitions that no migration shows.
    HasPartitions { table: SmolStr },
    /// Deployed code uses a table through policies that go, and not through those that are left.
    UsedThroughPolicy { table: SmolStr },
    /// Deployed code runs as a role, and has a privilege from no other GRANT.
    UsesPrivilege { role: SmolStr },
    /// Deployed code runs commands for which a new rule does something else.
    UsesRule { table: SmolStr },
    /// Deployed code gives a column values, although it has a default.
    GivesValue { table: SmolStr, column: SmolStr },
    /// Deployed code calls a function with the name of a parameter.
    CalledByName { function: SmolStr, parameter: SmolStr },
    /// Deployed code writes through a view.
    WritesView { view: SmolStr },
    /// Deployed code names a constraint, in ON CONFLICT or where it handles errors.
    NamesConstraint { constraint: SmolStr },
    /// A handler of exceptions is there for another error.
    HandlerExpectsOther,
    /// A schema exists that no migration creates.
    SchemaExists { schema: SmolStr },
    /// A unique index that is left does not replace a primary key.
    KeyNotReplaced { table: SmolStr },
    /// One of a few rows violates a constraint that nothing checks.
    RowsViolate { constraint: SmolStr },
    /// The rows of a table are needed, although a statement of the migration has copied all of them.
    NeededThoughCopied { table: SmolStr },
    /// Rows of a table violate what a statement demands of them.
    RowsRefuse { table: SmolStr },
    /// They may: nothing has kept such rows out, and nothing shows that there are any.
    RowsMayRefuse { table: SmolStr },
    /// They do, although something speaks against that.
    RowsRefuseThough { table: SmolStr, because: Met },
    /// Writes of deployed code violate a new constraint of the table.
    WritesViolate { table: SmolStr },
    /// A new object is meant to take the place of one that is dropped.
    TakesThePlace { old: SmolStr, new: SmolStr },
    /// A database has applied the migrations of the base revision.
    BaseIsApplied,
    /// A database has applied what is committed, which may be only on this branch.
    CommitIsApplied,
    /// The result depends on the order of the migrations.
    OrderMatters,
    /// No other migration of the change does what the removed ones did.
    NotReplaced,
    /// The migration tool compares checksums of files.
    ChecksumsCompared,
    /// The migration tool identifies migrations by their whole names.
    NamesCompared,
}

/// What speaks for writes to a table that are not lost after its rows were copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyEvidence {
    /// A trigger of the table mentions the copy.
    Trigger,
    /// A last copy of some rows ran under a lock.
    LaterCopy,
    /// Code may write to both tables since an earlier deployment.
    EarlierDeployment,
    /// The copy does not get the name of the table.
    MovedElsewhere,
    /// Migrations write the rows of the table.
    Listed,
}

/// Evidence against an existing row with the key of an INSERT.
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

    /// Returns what is assumed about a transaction that the program opens, as far as it is not known.
    pub fn of_transaction(migration: &Migration<'_>) -> Option<Self> {
        match migration.runner.known_transaction {
            KnownTransaction::Known => None,
            KnownTransaction::Recognized | KnownTransaction::Assumed => Some(match migration.transaction {
                TransactionMode::SingleString => Self::SentAsString,
                _ => Self::TransactionOfFile,
            }),
            KnownTransaction::Doubtful => Some(Self::TransactionOfFileThoughNotOfOthers),
            KnownTransaction::Unlikely => Some(Self::TransactionOfFileThoughUnfit),
        }
    }

    /// Returns whether findings of the kind usually rest on this, so that reports for people need not say it.
    pub fn is_usual(&self) -> bool {
        matches!(
            self,
            Self::Large { .. }
                | Self::InUse { .. }
                | Self::ManyRows { .. }
                | Self::KeyTaken { .. }
                | Self::RowsRefuse { .. }
                | Self::MayStop
                | Self::BaseIsApplied
        )
    }

    /// Returns how sure a finding can be at most that rests on this.
    pub fn confidence(&self) -> Confidence {
        match self {
            Self::Large { .. }
            | Self::InUse { .. }
            | Self::ManyRows { .. }
            | Self::KeyTaken { .. }
            | Self::RowsRefuse { .. }
            | Self::HasPartitions { .. }
            | Self::LockTimeoutUnset
            | Self::TimeZoneNotUtc
            | Self::HiddenCodeIsHarmless
            | Self::SearchPathNotSet { .. }
            | Self::SameRun { .. }
            | Self::OneTransaction
            | Self::DefaultOfTool
            | Self::HistoryComplete
            | Self::MayStop
            | Self::BaseIsApplied
            | Self::TransactionOfFile
            | Self::SentAsString
            | Self::RunByTool { .. } => Confidence::Likely,
            Self::LargeThough { .. }
            | Self::NoIndexFinds { .. }
            | Self::LargeThoughListed { .. }
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
            | Self::EarlierRefusalCorrected
            | Self::CommitIsApplied
            | Self::TakesThePlace { .. }
            | Self::OrderMatters
            | Self::NotReplaced
            | Self::ChecksumsCompared
            | Self::NamesCompared
            | Self::WritesNotCopied { .. }
            | Self::ReadBeforeFilled { .. }
            | Self::UsedThroughPolicy { .. }
            | Self::UsesPrivilege { .. }
            | Self::UsesRule { .. }
            | Self::GivesValue { .. }
            | Self::CalledByName { .. }
            | Self::WritesView { .. }
            | Self::NamesConstraint { .. }
            | Self::HandlerExpectsOther
            | Self::SchemaExists { .. }
            | Self::KeyNotReplaced { .. }
            | Self::RowsViolate { .. }
            | Self::RowsMayRefuse { .. }
            | Self::RowsRefuseThough { .. }
            | Self::NoPolicyUnseen { .. }
            | Self::NeededThoughCopied { .. }
            | Self::WritesViolate { .. } => Confidence::Possible,
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Large { table } => write!(f, "assumes that `{table}` is large: nothing bounds its rows"),
            Self::InUse { table } => write!(f, "assumes that others use `{table}` while this runs"),
            Self::LargeThough { table, because: FewRows::NoneForNewColumn { column } } => write!(
                f,
                "assumes that `{table}` is large, although adding `{column}` as NOT NULL without a value for old rows \
                 fails if there are any"
            ),
            Self::LargeThough { table, because: FewRows::MadeIfMissing } => write!(
                f,
                "assumes that `{table}` is large, although this migration creates it unless it exists, and only an \
                 earlier use shows that it does"
            ),
            Self::LargeThough { table, because: FewRows::Listed { rows } } => write!(
                f,
                "assumes that `{table}` is large, although it looks like a lookup table: migrations insert {rows} rows"
            ),
            Self::NoIndexFinds { table } => {
                write!(f, "assumes that no index of `{table}`, which no migration shows, finds these rows")
            }
            Self::LargeThoughListed { table } => {
                write!(f, "assumes that `{table}` is large, although this migration inserts its rows again")
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
            Self::OneHistory => f.write_str(
                "assumes that the files are migrations of one database, although they drop more relations \
                            than they leave",
            ),
            Self::AbsentThoughCodeMayCreate { table } => {
                write!(f, "assumes that nothing creates `{table}`, although code of the project may")
            }
            Self::SearchPathUnchanged => {
                f.write_str("assumes that names resolve to the same objects, although the code sets search_path")
            }
            Self::SearchPathNotSet { schema } => {
                write!(f, "assumes that names without a schema mean `{schema}`: no statement sets search_path")
            }
            Self::LeftOut { table, column } => {
                write!(f, "assumes that deployed code inserts into `{table}` without `{column}`")
            }
            Self::WiderTypeMatters { table, column } => {
                write!(f, "assumes that deployed code cannot use the wider type of `{table}.{column}`")
            }
            Self::UsedOutside { object } => {
                write!(f, "assumes that deployed code uses `{object}`, although every known use is inside the database")
            }
            Self::HiddenCodeIsHarmless => {
                f.write_str("assumes that earlier code that was not analyzed changes nothing that this statement uses")
            }
            Self::NeededThoughCopied { table } => {
                write!(
                    f,
                    "assumes that the rows of `{table}` are still needed, although a statement has copied all of them"
                )
            }
            Self::NoPolicyUnseen { table } => {
                write!(f, "assumes that `{table}`, which no migration creates, has no policies already")
            }
            Self::HasPartitions { table } => {
                write!(f, "assumes that `{table}` has partitions, which no migration shows")
            }
            Self::RowsRefuse { table } => {
                write!(f, "assumes that `{table}` has rows")
            }
            Self::RowsMayRefuse { table } => {
                write!(f, "assumes that `{table}` has such rows, although only the data can tell")
            }
            Self::RowsRefuseThough { table, because } => {
                write!(f, "assumes that `{table}` has such rows, although {because}")
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
            Self::ManyObjects => f.write_str(
                "assumes that the loop has many iterations, although it goes through objects of the \
                            database",
            ),
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
                write!(f, "assumes that `{setting}` still has the value that an earlier migration of the same run set")
            }
            Self::OneTransaction => f.write_str("assumes that this migration and the earlier one are pending together"),
            Self::DefaultOfTool => f.write_str("assumes that the migration tool has its default configuration"),
            Self::TransactionOfFile => {
                f.write_str("assumes that the program that runs this file opens a transaction for it")
            }
            Self::TransactionOfFileThoughNotOfOthers => f.write_str(
                "assumes that the program that runs this file opens a transaction for it, although another migration \
                 cannot run in one",
            ),
            Self::TransactionOfFileThoughUnfit => f.write_str(
                "assumes that the program that runs this file opens a transaction for it, although no statement of \
                 the file can run in one",
            ),
            Self::SentAsString => f.write_str("assumes that the program that runs this file sends it as one string"),
            Self::RunByTool { tool } => write!(f, "assumes that {tool} itself runs this file"),
            Self::HistoryComplete => f.write_str(
                "assumes that the migrations show every change of the schema, although later ones suggest that this \
                 one has run",
            ),
            Self::EarlierRefusalCorrected => f.write_str(
                "assumes that an earlier statement, which PostgreSQL refuses, is corrected without an effect on this \
                 one",
            ),
            Self::CopyNotRun => {
                f.write_str("assumes that psql does not run the COPY, because it fails or is in a branch")
            }
            Self::TakesThePlace { old, new } => write!(f, "assumes that `{new}` is meant to replace `{old}`"),
            Self::BaseIsApplied => {
                f.write_str("assumes that a database has applied the migrations of the base revision")
            }
            Self::CommitIsApplied => f.write_str(
                "assumes that a database has applied the committed migration, although the commit may exist only on \
                 this branch",
            ),
            Self::OrderMatters => f.write_str("assumes that the result depends on the order of the migrations"),
            Self::NotReplaced => f.write_str("assumes that the other changed migrations do not do what this one did"),
            Self::ChecksumsCompared => f.write_str("assumes that the migration tool compares checksums of files"),
            Self::NamesCompared => {
                f.write_str("assumes that the migration tool identifies migrations by their whole names")
            }
            Self::MayStop => f.write_str(
                "assumes that this can fail because of a timeout, a deadlock or a lost \
                                         connection",
            ),
            Self::MayStopThoughEmpty { table } => {
                write!(f, "assumes that this can fail, although `{table}` has no rows yet")
            }
            Self::NoTransactionAround => {
                f.write_str("assumes that each statement commits on its own: nothing shows which program runs the file")
            }
            Self::WritesNotCopied { table, because } => {
                write!(
                    f,
                    "assumes that others write to `{table}` and that no copy has these writes, although \
                           {because}"
                )
            }
            Self::ReadBeforeFilled { table } => {
                write!(f, "assumes that deployed code reads `{table}` before later statements fill it")
            }
            Self::UsedThroughPolicy { table } => {
                write!(
                    f,
                    "assumes that deployed code uses `{table}` through a policy that is gone, although other \
                           policies are left"
                )
            }
            Self::UsesPrivilege { role } if role == "public" => {
                f.write_str("assumes that deployed code has the privilege only through PUBLIC")
            }
            Self::UsesPrivilege { role } => {
                write!(f, "assumes that deployed code runs as `{role}` and has the privilege from no other GRANT")
            }
            Self::UsesRule { table } => {
                write!(f, "assumes that deployed code runs commands on `{table}` to which the rule applies")
            }
            Self::GivesValue { table, column } => {
                write!(f, "assumes that deployed code gives `{column}` of `{table}` values, although it has a default")
            }
            Self::CalledByName { function, parameter } => {
                write!(f, "assumes that deployed code calls `{function}` with `{parameter}` by name")
            }
            Self::WritesView { view } => write!(f, "assumes that deployed code writes through the view `{view}`"),
            Self::NamesConstraint { constraint } => {
                write!(f, "assumes that deployed code names `{constraint}` in ON CONFLICT or where it handles errors")
            }
            Self::HandlerExpectsOther => f.write_str("assumes that the handler is there for another error"),
            Self::SchemaExists { schema } => {
                write!(f, "assumes that the schema `{schema}` exists and has objects, although no migration creates it")
            }
            Self::KeyNotReplaced { table } => {
                write!(f, "assumes that the unique index that `{table}` still has does not replace the key")
            }
            Self::RowsViolate { constraint } => {
                write!(f, "assumes that one of the few rows of this statement violates `{constraint}`")
            }
            Self::WritesViolate { table } => {
                write!(f, "assumes that deployed code writes rows to `{table}` that violate the constraint or index")
            }
        }
    }
}

impl fmt::Display for CopyEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trigger => "a trigger may copy them",
            Self::LaterCopy => "the last copy ran under a lock",
            Self::EarlierDeployment => {
                "code may write to both tables since the earlier deployment that copied the rows"
            }
            Self::MovedElsewhere => "the copy does not replace the table under its name",
            Self::Listed => "migrations write the rows of the table",
        })
    }
}

impl fmt::Display for KeyEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "migrations insert all of its rows",
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
