//! Assumptions as sentences.

use super::size::large_although;
use super::{Assumption, ClosedBy, CopyEvidence, CreatorEvidence, KeyEvidence};
use crate::repository::IdleReason;
use pgvet_model::effect::Met;
use pgvet_model::routine::grouped;
use std::fmt;

impl fmt::Display for CreatorEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingCreated => f.write_str("no earlier migration creates a table"),
            Self::OtherTables => f.write_str("the migrations also use other tables that they do not create"),
            Self::LaterMigration => f.write_str("a later migration creates it"),
            Self::HiddenCode => f.write_str("pgvet did not analyze code that runs before"),
            Self::Extension { name } => write!(f, "pgvet does not know the objects of the extension `{name}`"),
            Self::Code { place } => write!(f, "`{place}` creates tables with a framework"),
            Self::File { path } => write!(f, "`{path}` creates a table of that name"),
            Self::Order => f.write_str("a script of the project runs the files in another order"),
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Large { table } => write!(f, "assumes that `{table}` is large: nothing limits how many rows it has"),
            Self::InUse { table } => write!(f, "assumes that other sessions use `{table}` while this runs"),
            Self::LargeThough { table, because } => large_although(f, table, because),
            Self::OldTypeNotWidened { table, column } => write!(
                f,
                "assumes that this rewrites `{table}`, although no migration shows the old type of `{column}`: if the new \
                 type is only wider, PostgreSQL just changes its catalog"
            ),
            Self::InUseThoughEmpty { table } => write!(
                f,
                "assumes that other sessions use `{table}` while this runs, although this transaction stops if the \
                 table has rows"
            ),
            Self::WrittenThoughEmpty { table } => write!(
                f,
                "assumes that deployed code writes to `{table}`, although this transaction stops if the table has rows"
            ),
            Self::NoIndexFinds { table } => {
                write!(f, "assumes that `{table}` has no index for this condition: no migration shows its indexes")
            }
            Self::LargeThoughListed { table } => {
                write!(
                    f,
                    "assumes that `{table}` is large, although this migration deletes its rows and inserts them again"
                )
            }
            Self::LargeThoughReadAsOneRow { table } => {
                write!(
                    f,
                    "assumes that `{table}` is large, although code reads it into one variable, as if it had one row"
                )
            }
            Self::LargeThoughTotal { table } => {
                write!(
                    f,
                    "assumes that `{table}` is large, although this sets every row to the same total, as if the table \
                     had one row"
                )
            }
            Self::ManyRows { table, because } => {
                write!(f, "assumes that this affects many rows of `{table}`: {because}")
            }
            Self::ManyRowsUpTo { table, rows } => {
                write!(f, "assumes that this affects many rows of `{table}`: up to {} rows", grouped(*rows))
            }
            Self::ManyRowsThough { table, because } => {
                write!(f, "assumes that this affects many rows of `{table}`, although {because}")
            }
            Self::ManyRowsEachTime { table } => {
                write!(
                    f,
                    "assumes that each call affects many rows of `{table}`, although the function runs repeatedly and \
                     may process only new rows each time"
                )
            }
            Self::OrderOfNames => f.write_str("assumes that the files run in the order of their names"),
            Self::OneHistory => f.write_str(
                "assumes that all files belong to one database, although they drop more tables and views than remain \
                 at the end",
            ),
            Self::CreatedAsWritten { table } => {
                write!(f, "assumes that `{table}` did not exist with other columns before CREATE TABLE IF NOT EXISTS")
            }
            Self::AbsentThoughCodeMayCreate { table } => {
                write!(f, "assumes that `{table}` does not exist, although code in this project may create it")
            }
            Self::SearchPathUnchanged => {
                f.write_str("assumes that names still refer to the same objects after this code sets search_path")
            }
            Self::BranchRunsFor { table } => {
                write!(
                    f,
                    "assumes that this statement runs for the trigger of `{table}`, although conditions \
                     before it may prevent that"
                )
            }
            Self::SettingMade { setting } => {
                write!(
                    f,
                    "assumes that the session sets `{setting}`, because the code runs this statement only with that \
                     setting"
                )
            }
            Self::SearchPathNotSet { schema } => {
                write!(f, "assumes that names without a schema mean `{schema}`: no statement sets search_path")
            }
            Self::LeftOut { table, column } => {
                write!(f, "assumes that deployed code inserts into `{table}` without `{column}`")
            }
            Self::WiderTypeMatters { table, column } => {
                write!(f, "assumes that deployed code cannot handle the wider type of `{table}.{column}`")
            }
            Self::UsedOutside { object } => {
                write!(f, "assumes that deployed code uses `{object}`, although every known use is inside the database")
            }
            Self::HiddenCodeIsHarmless => {
                f.write_str("assumes that earlier code that was not analyzed changes nothing that this statement uses")
            }
            Self::NeededThoughOmitted { table } => write!(
                f,
                "assumes that the rows of `{table}` that are not copied are still needed, although the copy may omit them on \
                 purpose, or another copy may have them"
            ),
            Self::ConstraintKept { constraint } => {
                write!(
                    f,
                    "assumes that the constraint `{constraint}` still exists, although code may have dropped it that \
                     names constraints only at run time"
                )
            }
            Self::NeededThoughCopied { table } => {
                write!(
                    f,
                    "assumes that the rows of `{table}` are still needed, although a statement has copied all of them"
                )
            }
            Self::UsedThoughReleased { release } => {
                write!(f, "assumes that code of an earlier release still runs, although release {release} is deployed")
            }
            Self::NoPolicyUnseen { table } => {
                write!(f, "assumes that `{table}`, which no migration creates, does not have policies yet")
            }
            Self::CallsForRow { function } => {
                write!(f, "assumes that PostgreSQL calls {function} for at least one row")
            }
            Self::CallsForRowThough { function } => write!(
                f,
                "assumes that PostgreSQL calls {function} for a row, although other conditions decide whether it does"
            ),
            Self::HoldsForUsers { policy } => write!(
                f,
                "assumes that WITH CHECK of policy `{policy}` is true for these users, although it depends on the user"
            ),
            Self::TriggerInserts { table } => write!(
                f,
                "assumes that the conditions of the trigger let it insert this row when rows of `{table}` are deleted"
            ),
            Self::OneRoleInserts { table } => write!(
                f,
                "assumes that not every user may insert rows into `{table}`, although no column can say which user a row \
                 belongs to"
            ),
            Self::WritesOtherColumns { table } => write!(
                f,
                "assumes that users can write more columns of `{table}` than those that a GRANT of the migrations names"
            ),
            Self::OthersUse { table, although: ClosedBy::NoPolicies } => write!(
                f,
                "assumes that another role than the owner uses `{table}`, although no migration grants it to a role or \
                 creates a policy for a table of its schema"
            ),
            Self::OthersUse { table, although: ClosedBy::Revoked } => write!(
                f,
                "assumes that another role than the owner uses `{table}`, although the migration revokes the privileges \
                 of other roles"
            ),
            Self::NeededThoughGuaranteed { index, by } => {
                write!(f, "assumes that something needs `{index}` as it is defined here, although `{by}` does the same")
            }
            Self::InvalidThoughReferring { column, table } => write!(
                f,
                "assumes that deployed code writes values to `{column}` that are not valid, although the migration adds a \
                 foreign key to `{table}`"
            ),
            Self::RestrictiveAllows { table } => {
                write!(f, "assumes that the restrictive policies of `{table}` allow this, too")
            }
            Self::LooksUpFullName { name } => write!(
                f,
                "assumes that something compares the full name `{name}`: PostgreSQL truncates it in the same way in all \
                 statements, and no other name of the migration is truncated to the same one"
            ),
            Self::HasPartitions { table } => {
                write!(f, "assumes that `{table}` has partitions, although no migration shows any")
            }
            Self::RowsRefuse { table } => {
                write!(f, "assumes that `{table}` has rows")
            }
            Self::HasUsualRows { table, rows } => write!(f, "assumes that `{table}` has {rows}"),
            Self::RowsMayRefuse { table } => {
                write!(
                    f,
                    "assumes that `{table}` has rows that make this fail: only the data in the table can show that"
                )
            }
            Self::RowsRefuseThough { table, because: because @ Met::Retriable } => {
                write!(f, "assumes that `{table}` has rows that make this fail; {because}")
            }
            Self::RowsRefuseThough { table, because } => {
                write!(f, "assumes that `{table}` has rows that make this fail, although {because}")
            }
            Self::RowsRefuseThoughRead { table } => {
                write!(
                    f,
                    "assumes that `{table}` has rows that make this fail, although the captured migration program \
                     reads these rows first and may correct them"
                )
            }
            Self::RowsRefuseSince { table, day } => {
                write!(
                    f,
                    "assumes that `{table}` now has rows that make this fail, although `pgvet precheck` counted none \
                     on {day}"
                )
            }
            Self::KeyTaken { table } => write!(f, "assumes that `{table}` already has a row with this key"),
            Self::KeyTakenThough { table, because } => {
                write!(f, "assumes that `{table}` already has a row with this key, although {because}")
            }
            Self::LockTimeoutUnset => {
                f.write_str("assumes that neither the role, the database nor the connection sets lock_timeout")
            }
            Self::TimeZoneNotUtc => {
                f.write_str("assumes that the time zone of the session is not UTC, because no statement sets it")
            }
            Self::DeadlockBeforeTimeout { milliseconds } => write!(
                f,
                "assumes that the deadlock is detected before lock_timeout ({milliseconds} ms) expires, although the \
                 default of deadlock_timeout (1 s) is longer"
            ),
            Self::LongTransaction => f.write_str(
                "assumes that the transaction runs for a long time, although its earlier statements change only the \
                 catalog",
            ),
            Self::ManyObjects => f.write_str(
                "assumes that the loop has many iterations, although it iterates over database objects, of which there \
                 are usually few",
            ),
            Self::UnusedRows => f.write_str(
                "assumes that this block deletes most rows, although it keeps rows that are still referenced",
            ),
            Self::HoldsLargeObjects { column } => write!(
                f,
                "assumes that `{column}` refers to large objects, although an oid can refer to other system objects"
            ),
            Self::DropsUnseen { object } => write!(
                f,
                "assumes that {object}, which no migration creates, exists; if not, IF EXISTS skips the DROP and this \
                 lock"
            ),
            Self::ExistsAsUsed { table } => {
                write!(f, "assumes that `{table}` exists, because an earlier statement uses it")
            }
            Self::SameRun { setting } => {
                write!(
                    f,
                    "assumes that this migration runs in the same session as the earlier migration that set `{setting}`"
                )
            }
            Self::OneTransaction => f.write_str(
                "assumes that this migration and the earlier one are applied in the \
                                                 same run",
            ),
            Self::SecondRun => f.write_str("assumes that two processes run the migrations at the same time"),
            Self::DefaultOfTool => f.write_str("assumes that the migration tool has its default configuration"),
            Self::TransactionOfFile => {
                f.write_str("assumes that the program that runs this file opens a transaction for it")
            }
            Self::TransactionOfFileThoughNotOfOthers => f.write_str(
                "assumes that the program that runs this file opens a transaction for it, although another migration \
                 cannot run in a transaction",
            ),
            Self::TransactionOfFileThoughSelective { place } => {
                let program = place.as_ref().map_or_else(|| "that program".to_owned(), |place| format!("`{place}`"));
                write!(
                    f,
                    "assumes that the program that runs this file opens a transaction for it, although {program} \
                     mentions CONCURRENTLY and may run such files without a transaction"
                )
            }
            Self::TransactionOfFileThoughReplaced => f.write_str(
                "assumes that the migration tool runs this file in a transaction, although placeholder comments such \
                 as `/* SCHEMA */.` suggest that another program runs it",
            ),
            Self::TransactionOfFileThoughUnfit => f.write_str(
                "assumes that the program that runs this file opens a transaction for it, although no statement of the \
                 file can run in a transaction",
            ),
            Self::TransactionOfFileThoughScript { script } => write!(
                f,
                "assumes that the migration tool runs this file in one transaction, although `{script}` runs it with psql, \
                 which commits each statement"
            ),
            Self::NothingElseCreates { table } => {
                write!(f, "assumes that nothing but the migrations creates `{table}`")
            }
            Self::NothingElseCreatesThough { table, because } => {
                write!(f, "assumes that nothing but the earlier migrations creates `{table}`, although {because}")
            }
            Self::OnlyMigrationsThough { path, place } => write!(
                f,
                "assumes that the database has only what the migrations create, although `{place}` runs `{path}`"
            ),
            Self::OrderThoughScript { script } => write!(
                f,
                "assumes that the files run in the order of the migration tool, although `{script}` runs them with psql in \
                 another order"
            ),
            Self::SentAsString => f.write_str(
                "assumes that one query sends the whole file, so that PostgreSQL runs it in one transaction",
            ),
            Self::SentUnchanged => {
                f.write_str("assumes that PostgreSQL gets this file as it is, and no program changes it")
            }
            Self::RefusedWithAnyValue { placeholder } => {
                write!(f, "assumes that no value of `{placeholder}` makes the statement valid")
            }
            Self::ServerIsAtLeast { version } => {
                write!(f, "assumes that the server is PostgreSQL {version} or newer")
            }
            Self::RunByTool { tool } => write!(f, "assumes that {tool} itself runs this file"),
            Self::HistoryComplete => f.write_str(
                "assumes that the migrations contain every schema change, although later migrations suggest that this \
                 one succeeded",
            ),
            Self::EarlierRefusalCorrected => f.write_str(
                "assumes that correcting the earlier statement, which PostgreSQL refuses, does not change the result \
                 of this one",
            ),
            Self::CopyNotRun => {
                f.write_str("assumes that the COPY fails or `\\if` skips it, so that psql reads the data lines as SQL")
            }
            Self::TakesThePlace { old, new } => write!(f, "assumes that `{new}` is meant to replace `{old}`"),
            Self::BaseIsApplied => {
                f.write_str("assumes that the migrations of the base revision have been applied to a database")
            }
            Self::CommitIsApplied => f.write_str(
                "assumes that the committed migration has been applied to a database, although the commit may exist \
                 only on this branch",
            ),
            Self::OrderMatters => f.write_str("assumes that the result depends on the order of the migrations"),
            Self::NotReplaced => {
                f.write_str("assumes that no other changed migration contains the statements of the removed one")
            }
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
                    "assumes that other sessions write to `{table}` and that nothing copies these writes, although \
                     {because}"
                )
            }
            Self::ReadBeforeFilled { table } => {
                write!(f, "assumes that deployed code reads `{table}` before later statements fill it")
            }
            Self::UsedThroughPolicy { table } => {
                write!(
                    f,
                    "assumes that deployed code uses `{table}` through a policy that the migration removes, although \
                     other policies remain"
                )
            }
            Self::UsesPrivilege { role } if role == "public" => {
                f.write_str("assumes that deployed code has the privilege only through PUBLIC")
            }
            Self::UsesPrivilege { role } => {
                write!(
                    f,
                    "assumes that deployed code runs as `{role}` and that no other GRANT gives that role the \
                           privilege"
                )
            }
            Self::UsesRule { table } => {
                write!(f, "assumes that deployed code runs commands on `{table}` to which the rule applies")
            }
            Self::GivesValue { table, column } => {
                write!(f, "assumes that deployed code sets `{column}` of `{table}`, although the column has a default")
            }
            Self::PassesArgument { function, parameter } => {
                write!(f, "assumes that deployed code passes `{parameter}`, which has a default, to `{function}`")
            }
            Self::CalledByName { function, parameter } => {
                write!(f, "assumes that deployed code passes `{parameter}` to `{function}` by name")
            }
            Self::ReferTo { table, referenced } => {
                write!(f, "assumes that rows of `{table}` refer to the deleted rows of `{referenced}`")
            }
            Self::NeighboursInOrder { table } => write!(
                f,
                "assumes that `{table}` contains consecutive values, and that PostgreSQL updates the rows in ascending \
                 order"
            ),
            Self::ReadInOtherOrder { table } => write!(
                f,
                "assumes that PostgreSQL updates the rows of `{table}` in an order in which their values collide"
            ),
            Self::SameRows { table } => {
                write!(
                    f,
                    "assumes that deployed code locks the same rows of `{table}` that the migration changes, \
                     although the migration changes only some of the rows"
                )
            }
            Self::WritesListedTable { table } => {
                write!(f, "assumes that deployed code writes to `{table}`, although migrations insert its rows")
            }
            Self::LocksBetween => f.write_str(
                "assumes that deployed code takes its lock in the short time between two consecutive locks of the \
                 migration",
            ),
            Self::LocksDuringWait { table } => write!(
                f,
                "assumes that deployed code takes its lock while the migration waits for `{table}`, although the \
                 migration only changes the catalog in between"
            ),
            Self::InsertsWithoutQuery { table } => write!(
                f,
                "assumes that deployed code inserts rows into `{table}`, although the queries of the project insert \
                 only into other tables"
            ),
            Self::SequenceNotSet { sequence } => write!(
                f,
                "assumes that nothing else sets the sequence `{sequence}`, although code of this migration runs SQL that is \
                 known only at run time, or later migrations are released with it"
            ),
            Self::InsertsWithoutKey { table, column } => write!(
                f,
                "assumes that deployed code inserts rows into `{table}` without a value for `{column}`, although migrations \
                 list the rows of the table"
            ),
            Self::UsesUntilDropped { object } => {
                write!(f, "assumes that deployed code still uses {object}, which the migration drops")
            }
            Self::UsedBeforeRowSecurity { table } => write!(
                f,
                "assumes that other sessions use `{table}`, although it has no row-level security before this migration"
            ),
            Self::CallsFunction { function } => {
                write!(f, "assumes that deployed code calls {function}, although nothing in the project shows a call")
            }
            Self::DeletesRows { table } => {
                write!(f, "assumes that deployed code deletes rows of `{table}`")
            }
            Self::KeepsPreparedStatements { query } => {
                write!(f, "assumes that the driver keeps a prepared statement for the query at `{query}`")
            }
            Self::WritesView { view } => write!(f, "assumes that deployed code writes through the view `{view}`"),
            Self::NamesConstraint { constraint } => {
                write!(f, "assumes that deployed code names `{constraint}` in ON CONFLICT or in its error handling")
            }
            Self::NothingHandledBefore => f.write_str(
                "assumes that no earlier statement of the block raises an error that an exception handler catches",
            ),
            Self::HandlerExpectsOther => f.write_str("assumes that the handler is meant for another error"),
            Self::SchemaExists { schema } => {
                write!(f, "assumes that the schema `{schema}` exists and has objects, although no migration creates it")
            }
            Self::KeyNotReplaced { table } => {
                write!(f, "assumes that no remaining unique index of `{table}` is meant to replace the primary key")
            }
            Self::RowsViolate { constraint } => {
                write!(f, "assumes that one of the few rows of this statement violates `{constraint}`")
            }
            Self::WritesViolate { table } => {
                write!(f, "assumes that deployed code writes rows to `{table}` that violate the constraint or index")
            }
            Self::ScannedTogether { place } => {
                write!(f, "assumes that Flyway scans both folders together, although `{place}` lists only one of them")
            }
            Self::StillRun {
                although:
                    although @ (IdleReason::Unlisted | IdleReason::OutsideTool { .. } | IdleReason::OtherLocation { .. }),
            } => {
                write!(f, "assumes that something runs this file, although {although}")
            }
            Self::StillRun { although } => write!(f, "assumes that a tool still runs this file, although {although}"),
            Self::RunsAgain { other } => {
                write!(
                    f,
                    "assumes that this file and `{other}` both run on the same database, although one contains the \
                     other's statements"
                )
            }
            Self::ForPostgreSql { although } => {
                let database = &although.database;
                match &although.place {
                    Some(place) => {
                        write!(f, "assumes that this file is for PostgreSQL, although `{place}` speaks of {database}")
                    }
                    None => {
                        write!(f, "assumes that this file is for PostgreSQL, although it has the syntax of {database}")
                    }
                }
            }
            Self::RunsOnItsOwn => f.write_str(
                "assumes that this file runs on a database with rows, although it seems to be part of a multi-file \
                 initial schema",
            ),
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
            Self::LaterCopy => "the last copy ran under a lock that blocks writes",
            Self::EarlierDeployment => {
                "code may have written to both tables since the earlier deployment that copied the rows"
            }
            Self::MovedElsewhere => "the copy is not renamed to the table's name, so it may not replace the table",
            Self::Listed => "all known rows of the table come from migrations",
        })
    }
}

impl fmt::Display for KeyEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "migrations insert all rows of the table",
            Self::NoGeneratedKey => {
                "no default or identity generates its key, so deployed code may never insert into it"
            }
            Self::RandomKeys => "other rows have random keys",
            Self::SequenceSet => "the migration sets a sequence, possibly the one that generates the key",
            Self::RowsDeleted => "the migration has deleted rows of the table",
            Self::NewSource => "the rows are copied from a table that this migration created or filled",
            Self::ReadsItself => "the statement also reads the table into which it inserts",
            Self::MayBeGenerated => "each run may use a new key",
            Self::Variable => "the key comes from a variable",
            Self::Conditional => "this runs only under a condition, or only if a handler catches an error",
            Self::KeyOfNewRow => "the trigger uses the key of the new row for which it fires",
            Self::NotKnownToRunOften => "nothing shows that the function runs often",
            Self::Caught => "a handler catches the error",
            Self::CatchesOthers => "the handler catches other errors, too",
            Self::RunsOnce => "the code runs once",
            Self::Temporary => "the table is temporary",
        })
    }
}
