//! What findings assume, and the evidence against it.

mod size;
mod words;

use crate::confidence::Confidence;
use crate::repository::{CodeTimeout, DialectDoubt, IdleReason};
use pgvet_model::effect::{Extent, FewRows, Met, Rows, RowsReason, UsualRows};
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::runner::KnownTransaction;
use pgvet_model::version::PgVersion;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// An assumption of a finding, or evidence against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assumption {
    /// Nothing bounds the rows of the table.
    Large { table: SmolStr },
    /// Nothing bounds them, but there is evidence for few.
    LargeThough { table: SmolStr, because: FewRows },
    /// Others use the table while the migration runs.
    InUse { table: SmolStr },
    /// Others do, although the transaction stops if the table has rows.
    InUseThoughEmpty { table: SmolStr },
    /// Deployed code writes to the table, although the transaction stops if it has rows.
    WrittenThoughEmpty { table: SmolStr },
    /// No migration shows the type of the column, which may be a narrower one of the same kind.
    OldTypeNotWidened { table: SmolStr, column: SmolStr },
    /// No index of a table that no migration shows finds the rows of a condition.
    NoIndexFinds { table: SmolStr },
    /// The same migration deletes the rows of the table and lists them again.
    LargeThoughListed { table: SmolStr },
    /// Code reads all rows of the table into one variable.
    LargeThoughReadAsOneRow { table: SmolStr },
    /// All rows get the same total of another table, which makes sense for one row.
    LargeThoughTotal { table: SmolStr },
    /// The statement affects many rows of the table, because nothing limits how many.
    ManyRows { table: SmolStr, because: RowsReason },
    /// It affects many rows, of which there is a greatest number.
    ManyRowsUpTo { table: SmolStr, rows: u64 },
    /// It does, although there is evidence for few.
    ManyRowsThough { table: SmolStr, because: RowsReason },
    /// It does each time, although a function runs more than once.
    ManyRowsEachTime { table: SmolStr },
    /// The files run in the order of their names, which nothing shows.
    OrderOfNames,
    /// The migrations drop more relations than they leave, so they may not be one history.
    OneHistory,
    /// CREATE TABLE IF NOT EXISTS has created the table, and did not find one with other columns.
    CreatedAsWritten { table: SmolStr },
    /// Code of the project speaks of creating a relation of this name.
    AbsentThoughCodeMayCreate { table: SmolStr },
    /// The code changes `search_path` itself.
    SearchPathUnchanged,
    /// A condition lets a trigger function reach a statement for a table that lacks a column.
    BranchRunsFor { table: SmolStr },
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
    /// Code that names constraints only at run time has not dropped this one.
    ConstraintKept { constraint: SmolStr },
    /// The table already has a row with the key that an INSERT gives.
    KeyTaken { table: SmolStr },
    /// It does, although there is evidence against it.
    KeyTakenThough { table: SmolStr, because: KeyEvidence },
    /// Neither role, database nor connection sets `lock_timeout`.
    LockTimeoutUnset,
    /// The session runs in another time zone than UTC.
    TimeZoneNotUtc,
    /// A session finds the deadlock before `lock_timeout` ends the wait of the migration.
    DeadlockBeforeTimeout { milliseconds: u64 },
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
    /// What a statement drops IF EXISTS is there, although no migration creates it.
    DropsUnseen { object: SmolStr },
    /// The session has a setting that no statement makes, and without which code does not run the statement.
    SettingMade { setting: SmolStr },
    /// A setting of another migration is in effect, because both run in one session.
    SameRun { setting: SmolStr },
    /// This migration and an earlier one are pending together.
    OneTransaction,
    /// Two processes run the migrations at the same time.
    SecondRun,
    /// The program that runs migrations is configured as it is by default.
    DefaultOfTool,
    /// The program that runs the migration opens a transaction for it.
    TransactionOfFile,
    /// It does, although another migration could not run in a transaction.
    TransactionOfFileThoughNotOfOthers,
    /// It does, although its code names statements that cannot run in a transaction, at this place.
    TransactionOfFileThoughSelective { place: Option<SmolStr> },
    /// It does, although it also replaces comments of the migration by names.
    TransactionOfFileThoughReplaced,
    /// It does, although the migration has no statement that can run in a transaction.
    TransactionOfFileThoughUnfit,
    /// The migration tool opens a transaction, although a script of the project runs the migration with psql.
    TransactionOfFileThoughScript { script: SmolStr },
    /// Nothing but the migrations creates a table.
    NothingElseCreates { table: SmolStr },
    /// Nothing else does, although there is evidence for it.
    NothingElseCreatesThough { table: SmolStr, because: CreatorEvidence },
    /// The database has only what the migrations create, although code of the project also runs another file.
    OnlyMigrationsThough { path: SmolStr, place: SmolStr },
    /// The files run in the order of the tool, although a script of the project runs them in another.
    OrderThoughScript { script: SmolStr },
    /// The program that runs the migration sends all of it as one string.
    SentAsString,
    /// PostgreSQL gets the text of the file, and not one that a program makes of it.
    SentUnchanged,
    /// No value of a placeholder corrects the statement.
    RefusedWithAnyValue { placeholder: SmolStr },
    /// The server has the grammar of this major.
    ServerIsAtLeast { version: PgVersion },
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
    /// Writes to a table after its rows were copied are not copied, although there is evidence for that.
    WritesNotCopied { table: SmolStr, because: CopyEvidence },
    /// Deployed code reads a table before later statements of the migration fill it.
    ReadBeforeFilled { table: SmolStr },
    /// A table that no migration creates has no policy that no migration shows.
    NoPolicyUnseen { table: SmolStr },
    /// PostgreSQL calls a function for at least one row.
    CallsForRow { function: SmolStr },
    /// It does, although a condition decides that.
    CallsForRowThough { function: SmolStr },
    /// WITH CHECK of a policy is true for users, although it depends on who they are.
    HoldsForUsers { policy: SmolStr },
    /// Conditions let a trigger insert a row when rows of a table are deleted.
    TriggerInserts { table: SmolStr },
    /// Only one role should insert rows of a table that belong to no user.
    OneRoleInserts { table: SmolStr },
    /// Roles write columns of a table for which no GRANT gives them the privilege.
    WritesOtherColumns { table: SmolStr },
    /// Another role than the owner uses a table, although there is evidence against it.
    OthersUse { table: SmolStr, although: ClosedBy },
    /// Something needs a property of an index that another index already has.
    NeededThoughGuaranteed { index: SmolStr, by: SmolStr },
    /// A value is not valid, although a foreign key of the same deployment allows only the values of another column.
    InvalidThoughReferring { column: SmolStr, table: SmolStr },
    /// Restrictive policies of the table allow the command.
    RestrictiveAllows { table: SmolStr },
    /// Something looks an object up by the name in full, or compares it.
    LooksUpFullName { name: SmolStr },
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
    /// Deployed code passes an argument that has a default.
    PassesArgument { function: SmolStr, parameter: SmolStr },
    /// Rows of a table refer to the rows of another one that a statement deletes.
    ReferTo { table: SmolStr, referenced: SmolStr },
    /// Rows of a table have values that follow each other, and PostgreSQL reads them in that order.
    NeighboursInOrder { table: SmolStr },
    /// It reads them in another order, or their values differ by the amount of an UPDATE.
    ReadInOtherOrder { table: SmolStr },
    /// Deployed code locks the rows that the migration changes, which are a part of the table.
    SameRows { table: SmolStr },
    /// Deployed code writes rows of a table that migrations list.
    WritesListedTable { table: SmolStr },
    /// Deployed code takes a lock between two locks that the migration takes right after each other.
    LocksBetween,
    /// It does while the migration waits for a third table, and only changes the catalog.
    LocksDuringWait { table: SmolStr },
    /// No other statement sets a sequence, although code of the migration runs SQL that is known only at run time, or later
    /// migrations are released with it.
    SequenceNotSet { sequence: SmolStr },
    /// Deployed code inserts rows without a key, although migrations list the rows of the table.
    InsertsWithoutKey { table: SmolStr, column: SmolStr },
    /// Deployed code inserts rows into a table, although only other tables get rows from queries of the project.
    InsertsWithoutQuery { table: SmolStr },
    /// Deployed code uses an object that the migration drops.
    UsesUntilDropped { object: SmolStr },
    /// Deployed code uses a table that has had no row-level security, although the migration enables it.
    UsedBeforeRowSecurity { table: SmolStr },
    /// Deployed code calls a function, although nothing shows a call.
    CallsFunction { function: SmolStr },
    /// Deployed code deletes rows of a table.
    DeletesRows { table: SmolStr },
    /// Sessions have prepared a query of deployed code, and keep the statement.
    KeepsPreparedStatements { query: SmolStr },
    /// Deployed code writes through a view.
    WritesView { view: SmolStr },
    /// Deployed code names a constraint, in ON CONFLICT or where it handles errors.
    NamesConstraint { constraint: SmolStr },
    /// An exception handler is there for another error.
    HandlerExpectsOther,
    /// No earlier statement of a block raises an error that a handler of the block catches.
    NothingHandledBefore,
    /// A schema exists that no migration creates.
    SchemaExists { schema: SmolStr },
    /// A unique index that is left does not replace a primary key.
    KeyNotReplaced { table: SmolStr },
    /// One of a few rows violates a constraint that nothing checks.
    RowsViolate { constraint: SmolStr },
    /// The rows that a copy of a table omits are needed, although it may omit them on purpose, or another copy has them.
    NeededThoughOmitted { table: SmolStr },
    /// The rows of a table are needed, although a statement of the migration has copied all of them.
    NeededThoughCopied { table: SmolStr },
    /// Code of an earlier release still runs, although the release is deployed for which the migration waits.
    UsedThoughReleased { release: SmolStr },
    /// Rows of a table violate what a statement demands of them.
    RowsRefuse { table: SmolStr },
    /// The table has rows of a kind that the schema lists, and that violate it.
    HasUsualRows { table: SmolStr, rows: UsualRows },
    /// They may: nothing has kept such rows out, and nothing shows that there are any.
    RowsMayRefuse { table: SmolStr },
    /// They do, although there is evidence against it.
    RowsRefuseThough { table: SmolStr, because: Met },
    /// They do, although the program that was captured reads rows of the table first, of which the private server has none.
    RowsRefuseThoughRead { table: SmolStr },
    /// There are such rows since `pgvet precheck` counted none on this day.
    RowsRefuseSince { table: SmolStr, day: SmolStr },
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
    /// A tool runs the migration, although the repository shows otherwise.
    StillRun { although: IdleReason },
    /// A file and another one both run, although one of them has the statements of the other.
    RunsAgain { other: SmolStr },
    /// A file is written for PostgreSQL, although it or a file near it speaks of another database.
    ForPostgreSql { although: DialectDoubt },
    /// A file runs on a database with rows, although it is a part of a baseline that is divided into files.
    RunsOnItsOwn,
    /// Flyway scans two folders together, although its configuration lists them apart, at this place.
    ScannedTogether { place: SmolStr },
    /// Nothing sets a timeout for the session, although code of the project does.
    NoTimeoutThough { code: CodeTimeout },
}

/// Evidence that something other than the earlier migrations creates a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CreatorEvidence {
    /// They create no table at all.
    NothingCreated,
    /// They also use other tables that they do not create.
    OtherTables,
    /// A later migration creates it.
    LaterMigration,
    /// Earlier code was not analyzed.
    HiddenCode,
    /// The objects of an extension are not known.
    Extension { name: SmolStr },
    /// Code creates tables with a framework.
    Code { place: SmolStr },
    /// Another file of the project creates a table of this name.
    File { path: SmolStr },
    /// A script runs the migrations in another order.
    Order,
}

/// Evidence for writes to a table that are not lost after its rows were copied.
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

/// Evidence that only the owner of a table, and roles that bypass row-level security, use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClosedBy {
    /// No migration has created a policy for a table of the schema, or granted the table to a role.
    NoPolicies,
    /// The migration revokes the privileges of other roles.
    Revoked,
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
                | Self::TransactionOfFileThoughSelective { .. }
                | Self::TransactionOfFileThoughReplaced
                | Self::TransactionOfFileThoughUnfit
                | Self::TransactionOfFileThoughScript { .. }
                | Self::SentAsString
        )
    }

    /// Returns what a finding assumes about a statement that affects these rows of a table.
    pub fn many(table: &SmolStr, rows: &Rows) -> Self {
        let (table, because) = (table.clone(), rows.reason.clone());
        match rows.extent {
            Extent::All | Extent::Most => Self::Large { table },
            Extent::AtMost(rows) => Self::ManyRowsUpTo { table, rows },
            Extent::UnknownPart if rows.may_be_few() => Self::ManyRowsThough { table, because },
            Extent::UnknownPart => Self::ManyRows { table, because },
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
            KnownTransaction::Selective => Some(Self::TransactionOfFileThoughSelective { place: None }),
            KnownTransaction::Replaced => Some(Self::TransactionOfFileThoughReplaced),
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
                | Self::ManyRowsUpTo { .. }
                | Self::KeyTaken { .. }
                | Self::RowsRefuse { .. }
                | Self::MayStop
                | Self::BaseIsApplied
        )
    }

    /// Returns how sure a finding can be at most that depends on this.
    pub fn confidence(&self) -> Confidence {
        match self {
            Self::Large { .. }
            | Self::InUse { .. }
            | Self::ManyRows { .. }
            | Self::ManyRowsUpTo { .. }
            | Self::KeyTaken { .. }
            | Self::RowsRefuse { .. }
            | Self::HasUsualRows { .. }
            | Self::NeighboursInOrder { .. }
            | Self::ReferTo { .. }
            | Self::HasPartitions { .. }
            | Self::CallsForRow { .. }
            | Self::LockTimeoutUnset
            | Self::TimeZoneNotUtc
            | Self::HiddenCodeIsHarmless
            | Self::CreatedAsWritten { .. }
            | Self::SearchPathNotSet { .. }
            | Self::SameRun { .. }
            | Self::OneTransaction
            | Self::DefaultOfTool
            | Self::HistoryComplete
            | Self::MayStop
            | Self::NothingElseCreates { .. }
            | Self::BaseIsApplied
            | Self::TransactionOfFile
            | Self::SentAsString
            | Self::SentUnchanged
            | Self::RunByTool { .. }
            | Self::NothingHandledBefore
            | Self::ForPostgreSql { .. }
            | Self::ServerIsAtLeast { .. }
            | Self::RefusedWithAnyValue { .. } => Confidence::Likely,
            Self::LargeThough { .. }
            | Self::OldTypeNotWidened { .. }
            | Self::InUseThoughEmpty { .. }
            | Self::WrittenThoughEmpty { .. }
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
            | Self::BranchRunsFor { .. }
            | Self::SettingMade { .. }
            | Self::LeftOut { .. }
            | Self::WiderTypeMatters { .. }
            | Self::UsedOutside { .. }
            | Self::KeyTakenThough { .. }
            | Self::ConstraintKept { .. }
            | Self::LongTransaction
            | Self::DeadlockBeforeTimeout { .. }
            | Self::ManyObjects
            | Self::UnusedRows
            | Self::HoldsLargeObjects { .. }
            | Self::ExistsAsUsed { .. }
            | Self::DropsUnseen { .. }
            | Self::TransactionOfFileThoughNotOfOthers
            | Self::TransactionOfFileThoughSelective { .. }
            | Self::TransactionOfFileThoughReplaced
            | Self::TransactionOfFileThoughUnfit
            | Self::TransactionOfFileThoughScript { .. }
            | Self::OrderThoughScript { .. }
            | Self::NothingElseCreatesThough { .. }
            | Self::OnlyMigrationsThough { .. }
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
            | Self::PassesArgument { .. }
            | Self::DeletesRows { .. }
            | Self::CallsFunction { .. }
            | Self::SameRows { .. }
            | Self::ReadInOtherOrder { .. }
            | Self::WritesListedTable { .. }
            | Self::LocksBetween
            | Self::LocksDuringWait { .. }
            | Self::InsertsWithoutQuery { .. }
            | Self::UsesUntilDropped { .. }
            | Self::UsedBeforeRowSecurity { .. }
            | Self::KeepsPreparedStatements { .. }
            | Self::WritesView { .. }
            | Self::NamesConstraint { .. }
            | Self::HandlerExpectsOther
            | Self::SchemaExists { .. }
            | Self::KeyNotReplaced { .. }
            | Self::RowsViolate { .. }
            | Self::RowsMayRefuse { .. }
            | Self::RowsRefuseThough { .. }
            | Self::RowsRefuseThoughRead { .. }
            | Self::RowsRefuseSince { .. }
            | Self::NoPolicyUnseen { .. }
            | Self::CallsForRowThough { .. }
            | Self::HoldsForUsers { .. }
            | Self::TriggerInserts { .. }
            | Self::OneRoleInserts { .. }
            | Self::WritesOtherColumns { .. }
            | Self::OthersUse { .. }
            | Self::NeededThoughGuaranteed { .. }
            | Self::InvalidThoughReferring { .. }
            | Self::RestrictiveAllows { .. }
            | Self::LooksUpFullName { .. }
            | Self::NeededThoughCopied { .. }
            | Self::NeededThoughOmitted { .. }
            | Self::UsedThoughReleased { .. }
            | Self::SecondRun
            | Self::StillRun { .. }
            | Self::RunsOnItsOwn
            | Self::RunsAgain { .. }
            | Self::ScannedTogether { .. }
            | Self::NoTimeoutThough { .. }
            | Self::SequenceNotSet { .. }
            | Self::InsertsWithoutKey { .. }
            | Self::WritesViolate { .. } => Confidence::Possible,
        }
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
