//! What the model says about a tool, as sentences for the page of the tool in `docs/tools`.

use super::{Order, Tool, model::Model, transaction};
use pgvet_model::migration::TransactionMode;
use pgvet_model::runner::{AfterCommit, RunLock, Runner, SessionScope};

impl Tool {
    /// Returns what pgvet assumes about the tool: aspects with a sentence for each.
    pub fn description(self) -> Vec<(&'static str, String)> {
        let Model { order, runner, .. } = self.model();
        let mode = transaction::usual(self);
        let mut lines = vec![
            ("order", self.list().unwrap_or(order.describe()).to_owned()),
            (
                "transaction",
                self.own_transactions().unwrap_or(describe_transaction(mode, runner.one_transaction)).to_owned(),
            ),
            ("CONCURRENTLY", self.outside().to_owned()),
            ("session", describe_session(runner.session).to_owned()),
        ];
        if mode == TransactionMode::Transaction {
            lines.push(("COMMIT in a file", describe_commit(runner).to_owned()));
        }
        if let Some(lock) = describe_lock(runner.restart.lock) {
            lines.push(("two runs at once", lock.to_owned()));
        }
        lines
    }

    /// Where the tool finds the order of its files, if their names alone do not decide it.
    const fn list(self) -> Option<&'static str> {
        match self {
            Self::Sqitch => Some("by the order of the changes in `sqitch.plan`"),
            Self::Liquibase => Some("by the order of the changesets in the changelog"),
            Self::Drizzle => Some("by the entries in `meta/_journal.json`; Drizzle 1.0 sorts the names of its folders"),
            Self::Yuniql => Some("by the folders of the versions, such as `v1.01`, and by name in each of them"),
            Self::Grate => Some("by folders such as `up` and `views`, and by name in each of them"),
            Self::Captured => Some("by the order in which the statements were sent"),
            _ => None,
        }
    }

    /// How transactions begin and end, if that depends on more than the file.
    const fn own_transactions(self) -> Option<&'static str> {
        match self {
            Self::Supabase => Some(
                "one implicit transaction for each file. A file with BEGIN, COMMIT or ROLLBACK runs statement by statement",
            ),
            _ => None,
        }
    }

    /// How a statement is run that refuses a transaction block, as [`transaction::mode`] and [`transaction::opt_out`] know.
    const fn outside(self) -> &'static str {
        match self {
            Self::Plain | Self::Sqitch => "runs, because the file runs without a transaction unless it has a BEGIN",
            Self::Grate => "runs, unless grate is called with `--transaction`",
            Self::Dbup => "runs, unless the program calls `WithTransaction` or `WithTransactionPerScript`",
            Self::Flyway => {
                "needs a file of its own, which Flyway then runs without a transaction, and \
                 `flyway.postgresql.transactional.lock=false`, because the build waits for Flyway's own lock otherwise"
            }
            Self::Liquibase => "needs a changeset of its own with `runInTransaction:false`",
            Self::Goose => "needs the line `-- +goose NO TRANSACTION`",
            Self::SqlMigrate => "needs the line `-- +migrate Up notransaction`",
            Self::Dbmate => "needs a file of its own with the line `-- migrate:up transaction:false`",
            Self::GolangMigrate | Self::Prisma | Self::Postgrator => "needs a file of its own",
            Self::Pop => {
                "cannot run with soda; the pop of ory/x runs a file of its own whose name contains `.autocommit.`"
            }
            Self::Sqlx => "needs a file of its own that begins with `-- no-transaction` (sqlx 0.8 and later)",
            Self::Refinery => "cannot run in a migration",
            Self::Diesel => "needs a migration of its own with `run_in_transaction = false` in its `metadata.toml`",
            Self::Hasura => "cannot run in a migration",
            Self::Drizzle => "runs only after a COMMIT, between two `--> statement-breakpoint` lines",
            Self::Atlas => "needs `-- atlas:txmode none` at the start of the file, before an empty line",
            Self::Supabase => "runs outside the transaction of the file, with version 2.110 of the CLI or a later one",
            Self::NodePgMigrate => "cannot run in a file; a migration in JavaScript calls `pgm.noTransaction()`",
            Self::GraphileMigrate => "needs a file of its own whose first line is `--! no-transaction`",
            Self::Tern => "needs the line `---- tern: disable-tx ----`",
            Self::Yoyo => "needs the line `-- transactional: false`",
            Self::PostgresMigrations => "needs a file of its own with `-- postgres-migrations disable-transaction`",
            Self::Mybatis => "needs `auto_commit=true` in the file of the environment",
            Self::Migratus => {
                "needs `-- :disable-transaction` in the first line. Each part between `--;;` lines then has a session of its own"
            }
            Self::Yuniql => "cannot run in a migration",
            Self::Evolve => "needs a file of its own with `-- evolve-tx-off` in the first line",
            Self::Captured => "runs as it was seen",
        }
    }
}

impl Order {
    const fn describe(self) -> &'static str {
        match self {
            Self::Number { letter: false } => "by the number with which the name begins",
            Self::Number { letter: true } => "by the number with which the name begins, possibly after a `v`",
            Self::Name => "by the whole name as text: `10_a.sql` before `2_a.sql`",
            Self::VersionText => "by the version with which the name begins, as text: `10_a.sql` before `2_a.sql`",
            Self::List => "by a list or by folders, and not by the names of the files alone",
        }
    }
}

const fn describe_transaction(mode: TransactionMode, is_one: bool) -> &'static str {
    match (mode, is_one) {
        (TransactionMode::Transaction, true) => "one for all pending files",
        (TransactionMode::Transaction, false) => "one for each file",
        (TransactionMode::SingleString, _) => {
            "none, but each file is sent as one string, which PostgreSQL runs in one implicit transaction"
        }
        (TransactionMode::Autocommit, _) => "none",
    }
}

const fn describe_session(session: SessionScope) -> &'static str {
    match session {
        SessionScope::Migration => "settings of one file are not in effect in the next",
        SessionScope::Run => "settings of one file are in effect in the next",
        SessionScope::RunWithoutSearchPath => "settings of one file are in effect in the next, except `search_path`",
    }
}

const fn describe_commit(runner: Runner) -> &'static str {
    match (runner.misses_its_transaction, runner.after_commit) {
        (true, _) => "ends the transaction, and the run then fails at its own COMMIT",
        (false, AfterCommit::Alone) => "ends the transaction: each later statement runs alone",
        (false, AfterCommit::Together) => "ends the transaction: later statements run in a new transaction",
    }
}

const fn describe_lock(lock: RunLock) -> Option<&'static str> {
    match lock {
        RunLock::Unknown => None,
        RunLock::None => Some("nothing prevents them"),
        RunLock::UniqueRecord => Some("both run, and the unique key of the tool's table refuses the second record"),
        RunLock::Waits { .. } => Some("the second one waits in `pg_advisory_lock`"),
        RunLock::Polls => Some("the second one asks for a lock again and again"),
        RunLock::Refuses => Some("the second one ends at once"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_switch_the_transaction_off_are_those_that_fixes_write() {
        for tool in Tool::all() {
            if let Some(edit) = transaction::opt_out(tool, "", None) {
                let comment = edit.text.trim();
                assert!(tool.outside().contains(comment), "{}: {comment}", tool.as_str());
            }
        }
    }
}
