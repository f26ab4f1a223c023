//! Assumptions as sentences.

use super::{Assumption, CopyEvidence, KeyEvidence};
use pgvet_model::effect::FewRows;
use std::fmt;

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Large { table } => write!(f, "assumes that `{table}` is large: nothing limits how many rows it has"),
            Self::InUse { table } => write!(f, "assumes that others use `{table}` while this runs"),
            Self::LargeThough { table, because: FewRows::NoneForNewColumn { column } } => write!(
                f,
                "assumes that `{table}` is large, although adding `{column}` as NOT NULL without a value for old rows \
                 fails if there are any"
            ),
            Self::LargeThough { table, because: FewRows::ListedKeys { keys } } => write!(
                f,
                "assumes that `{table}` is large, although a unique index allows at most {keys} rows: constraints or types \
                 list the values of its columns"
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
                write!(f, "assumes that `{table}` is large, although all its rows are set to the same aggregate")
            }
            Self::ManyRows { table, because } => {
                write!(f, "assumes that this affects many rows of `{table}`: {because}")
            }
            Self::ManyRowsThough { table, because } => {
                write!(f, "assumes that this affects many rows of `{table}`, although {because}")
            }
            Self::ManyRowsEachTime { table } => {
                write!(
                    f,
                    "assumes that each call affects many rows of `{table}`, although the function runs repeatedly"
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
            Self::BranchRunsFor { table } => {
                write!(f, "assumes that the conditions before it let the trigger of `{table}` reach this")
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
                write!(f, "assumes that `{table}` has such rows, which only its data can show")
            }
            Self::RowsRefuseThough { table, because } => {
                write!(f, "assumes that `{table}` has such rows, although {because}")
            }
            Self::RowsRefuseThoughRead { table } => {
                write!(f, "assumes that `{table}` has such rows, although the program reads its rows and may change them")
            }
            Self::RowsRefuseSince { table, day } => {
                write!(f, "assumes that `{table}` has such rows now, although `pgvet precheck` counted none on {day}")
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
            Self::TransactionOfFileThoughReplaced => f.write_str(
                "assumes that this file runs in a transaction, as the migration tool runs it, although comments in place \
                 of names show that another program does",
            ),
            Self::TransactionOfFileThoughUnfit => f.write_str(
                "assumes that the program that runs this file opens a transaction for it, although no statement of \
                 the file can run in one",
            ),
            Self::SentAsString => f.write_str("assumes that the program that runs this file sends it as one string"),
            Self::SentUnchanged => f.write_str("assumes that PostgreSQL gets this file as it is, and no program changes it"),
            Self::RefusedWithAnyValue { placeholder } => {
                write!(f, "assumes that no value of `{placeholder}` makes the statement valid")
            }
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
                    "assumes that others write to `{table}` and that nothing copies these writes, although \
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
            Self::PassesArgument { function, parameter } => {
                write!(f, "assumes that deployed code passes `{parameter}`, which has a default, to `{function}`")
            }
            Self::CalledByName { function, parameter } => {
                write!(f, "assumes that deployed code calls `{function}` with `{parameter}` by name")
            }
            Self::DeletesRows { table } => {
                write!(f, "assumes that deployed code deletes rows of `{table}`")
            }
            Self::KeepsPreparedStatements { query } => {
                write!(f, "assumes that the driver keeps a prepared statement for the query at `{query}`")
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
                write!(f, "assumes that the remaining unique index of `{table}` does not replace the key")
            }
            Self::RowsViolate { constraint } => {
                write!(f, "assumes that one of the few rows of this statement violates `{constraint}`")
            }
            Self::WritesViolate { table } => {
                write!(f, "assumes that deployed code writes rows to `{table}` that violate the constraint or index")
            }
            Self::StillRun { although } => write!(f, "assumes that a tool still runs this file, although {although}"),
            Self::NoTimeoutThough { code } => {
                write!(
                    f,
                    "assumes that no timeout is set for the session, although `{}` sets {}",
                    code.place, code.setting
                )
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
            Self::Variable => "the key comes from a variable",
            Self::Conditional => "this runs only under a condition, or only if a handler catches an error",
            Self::KeyOfNewRow => "the key is that of the new row for which the trigger fires",
            Self::NotKnownToRunOften => "nothing shows that the function runs often",
            Self::Caught => "a handler catches the error",
            Self::CatchesOthers => "the handler catches other errors, too",
            Self::RunsOnce => "the code runs once",
            Self::Temporary => "it is temporary",
        })
    }
}
