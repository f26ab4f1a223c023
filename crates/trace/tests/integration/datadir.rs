//! Copies of data directories: complete, alone in the world, and gone afterwards.

use crate::support::{columns, query, shop, shop_with, trace};
use pgvet_trace::provider::{DataDir, DataDirOptions};
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::wait_until;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

fn data_directory(folder: &Path, user: &str) -> DataDir {
    let (database, user) = ("shop".to_owned(), user.to_owned());
    DataDir::new(DataDirOptions { folder: folder.to_owned(), database, user, binaries: None })
}

/// A copy of the files of a server stands for a snapshot of them: nothing is written meanwhile.
fn snapshot(server: &Server) -> (TempDir, PathBuf) {
    query(server, "shop", "CHECKPOINT");
    let parent = tempfile::tempdir().expect("a folder can be made");
    let snapshot = parent.path().join("snapshot");
    let copied = Command::new("cp").arg("-a").arg(server.data()).arg(&snapshot).status();
    assert!(copied.is_ok_and(|status| status.success()));
    (parent, snapshot)
}

/// Signals a thread to end, also if a test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs SQL repeatedly while work is done.
fn meanwhile<T>(server: &Server, sql: &str, pause: Duration, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ending = Ending(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                query(server, "shop", sql);
                std::thread::sleep(pause);
            }
        });
        work()
    })
}

#[test]
fn a_snapshot_is_copied_and_left_as_it_was() {
    let Some((server, _)) = shop(18) else { return };
    let (parent, snapshot) = snapshot(&server);
    let trace = trace(&mut data_directory(&snapshot, "postgres"), "ALTER TABLE orders ADD COLUMN b int").unwrap();
    assert_eq!(trace.migrations[0].statements[0].locks[0].mode.sql(), "ACCESS EXCLUSIVE");
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1, "the copy is gone");
    let error = crate::support::trace(&mut data_directory(parent.path(), "postgres"), "SELECT 1").unwrap_err();
    assert!(error.message.contains("is not a data directory"), "{error}");
    std::fs::rename(snapshot.join("pg_wal"), parent.path().join("log")).unwrap();
    std::os::unix::fs::symlink(parent.path().join("log"), snapshot.join("pg_wal")).unwrap();
    let error = crate::support::trace(&mut data_directory(&snapshot, "postgres"), "SELECT 1").unwrap_err();
    assert!(error.message.contains("write-ahead log in another folder"), "{error}");
}

#[test]
fn a_running_server_is_copied_in_backup_mode_while_it_is_used() {
    for major in [14, 18] {
        let Some((server, _)) = shop(major) else { continue };
        let sql = "INSERT INTO orders SELECT max(id) + 1 FROM orders; UPDATE orders SET id = id WHERE id % 7 = 0";
        let check = "DO $$ BEGIN IF (SELECT count(*) FROM orders) < 500 THEN RAISE 'rows are missing'; END IF; \
                     END $$; ALTER TABLE orders ADD COLUMN b uuid DEFAULT gen_random_uuid()";
        let traced =
            meanwhile(&server, sql, Duration::ZERO, || trace(&mut data_directory(&server.data(), "postgres"), check));
        let migration = &traced.unwrap().migrations[0];
        assert!(migration.failure().is_none(), "{:?}", migration.failure());
        assert_eq!(migration.statements[1].rewrites.len(), 1, "{major}");
        assert_eq!(columns(&server).as_deref(), Some("1"), "the original is as it was");
        assert_eq!(query(&server, "shop", "SELECT FROM pg_replication_slots").len(), 0, "the slot is gone");
        let error = trace(&mut data_directory(&server.data(), "stranger"), "SELECT 1").unwrap_err();
        assert!(error.message.contains("cannot take a backup from it"), "{error}");
        let beside = std::fs::read_dir(server.socket()).unwrap().flatten();
        let copies = beside.filter(|entry| entry.file_name().to_string_lossy().starts_with(".pgvet-data")).count();
        assert_eq!(copies, 0, "the copies are gone");
    }
}

#[test]
fn the_log_of_a_running_server_is_kept_while_it_is_copied() {
    for major in [14, 18] {
        let settings = [("max_wal_size", "32MB"), ("min_wal_size", "32MB"), ("wal_recycle", "off")];
        let Some(server) = shop_with(major, &settings) else { continue };
        // So much that several checkpoints come while it is copied.
        query(&server, "shop", "CREATE TABLE big AS SELECT repeat('x', 2000) FROM generate_series(1, 60000)");
        let sql = "INSERT INTO orders SELECT coalesce(max(id), 0) + 1 FROM orders; SELECT pg_switch_wal(); CHECKPOINT";
        let traced = meanwhile(&server, sql, Duration::from_millis(10), || {
            trace(&mut data_directory(&server.data(), "postgres"), "ALTER TABLE orders ADD COLUMN b int")
        });
        let trace = traced.unwrap_or_else(|error| panic!("{major}: {error}"));
        assert!(trace.migrations[0].failure().is_none());
    }
}

#[test]
fn the_error_for_a_server_without_replication_slots_says_what_to_set() {
    let Some(server) = shop_with(18, &[("max_replication_slots", "0")]) else { return };
    let error = trace(&mut data_directory(&server.data(), "postgres"), "SELECT 1").unwrap_err();
    assert!(error.message.contains("cannot keep its write-ahead log"), "{error}");
    assert!(error.help.as_ref().is_some_and(|help| help.contains("raise max_replication_slots")), "{error}");
}

#[test]
fn subscriptions_of_a_copy_reach_nobody() {
    for major in [14, 18] {
        let Some(publisher) = shop_with(major, &[("wal_level", "logical")]) else { continue };
        let Some(subscriber) = shop_with(major, &[]) else { continue };
        query(&publisher, "shop", "CREATE PUBLICATION p FOR TABLE orders");
        let connection = format!("host={} user=postgres dbname=shop", publisher.socket().display());
        let subscribe = format!("CREATE SUBSCRIPTION s CONNECTION '{connection}' PUBLICATION p");
        query(&subscriber, "shop", &subscribe);
        let synchronized = "SELECT FROM pg_subscription_rel WHERE srsubstate = 'r'";
        wait_until(|| !query(&subscriber, "shop", synchronized).is_empty());
        let (_parent, snapshot) = snapshot(&subscriber);
        query(&subscriber, "shop", "ALTER SUBSCRIPTION s DISABLE");
        query(&publisher, "shop", "INSERT INTO orders VALUES (1)");
        let check = "DO $$ BEGIN IF EXISTS (SELECT FROM pg_stat_activity WHERE backend_type ~ '^logical replication') \
                     THEN RAISE 'a worker runs'; END IF; END $$; DROP SUBSCRIPTION s; \
                     DO $$ BEGIN IF EXISTS (SELECT FROM orders) THEN RAISE 'a row came'; END IF; END $$";
        let trace = trace(&mut data_directory(&snapshot, "postgres"), check).unwrap();
        assert!(trace.migrations[0].failure().is_none(), "{major}: {:?}", trace.migrations[0].failure());
        query(&subscriber, "shop", "ALTER SUBSCRIPTION s ENABLE");
        wait_until(|| !query(&subscriber, "shop", "SELECT FROM orders").is_empty());
    }
}

#[test]
fn a_copy_has_neither_settings_nor_slots_of_its_original() {
    let Some(server) = shop_with(18, &[("wal_level", "logical")]) else { return };
    query(&server, "shop", "SELECT pg_create_logical_replication_slot('s', 'pgoutput')");
    let (parent, snapshot) = snapshot(&server);
    let pid = parent.path().join("pid");
    let settings = format!("external_pid_file = '{}'\nshared_preload_libraries = 'missing'\nport = 1\n", pid.display());
    std::fs::write(snapshot.join("postgresql.auto.conf"), settings).unwrap();
    std::fs::write(snapshot.join("standby.signal"), "").unwrap();
    let check = "DO $$ BEGIN IF EXISTS (SELECT FROM pg_replication_slots) THEN RAISE 'a slot'; END IF; \
                 IF current_setting('external_pid_file') <> '' THEN RAISE 'a file of the pid'; END IF; END $$";
    let trace = trace(&mut data_directory(&snapshot, "postgres"), check).unwrap();
    assert!(trace.migrations[0].failure().is_none(), "{:?}", trace.migrations[0].failure());
    assert!(!pid.exists());
}

#[test]
fn prepared_transactions_are_there_in_the_copy_with_all_their_locks() {
    for major in [14, 18] {
        let settings = [("max_prepared_transactions", "3"), ("max_locks_per_transaction", "1000")];
        let Some(server) = shop_with(major, &settings) else { continue };
        let prepare = "BEGIN; INSERT INTO orders VALUES (1); SELECT pg_advisory_xact_lock(g) FROM \
                       generate_series(1, 50000) g; PREPARE TRANSACTION 'two'";
        query(&server, "shop", prepare);
        let check = "DO $$ BEGIN IF (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') <> 50000 \
                     OR NOT EXISTS (SELECT FROM pg_prepared_xacts WHERE gid = 'two') THEN RAISE 'it is not whole'; \
                     END IF; END $$";
        let (_parent, snapshot) = snapshot(&server);
        for folder in [snapshot, server.data()] {
            let trace = trace(&mut data_directory(&folder, "postgres"), check);
            let trace = trace.unwrap_or_else(|error| panic!("{major}: {}: {error}", folder.display()));
            assert!(trace.migrations[0].failure().is_none(), "{major}: {:?}", trace.migrations[0].failure());
        }
    }
}

#[test]
fn a_server_that_runs_on_another_folder_is_not_copied() {
    let Some((server, _)) = shop(18) else { return };
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("data");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("PG_VERSION"), "18\n").unwrap();
    let socket = server.socket().display();
    let pid = format!("4711\n{}\n1700000000\n5432\n{socket}\n\n", folder.display());
    std::fs::write(folder.join("postmaster.pid"), pid).unwrap();
    let error = trace(&mut data_directory(&folder, "postgres"), "SELECT 1").unwrap_err();
    assert!(error.message.contains(&format!("runs on `{}`, not on", server.data().display())), "{error}");
}
