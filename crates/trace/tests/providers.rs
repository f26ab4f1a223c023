//! Providers that work on a server of the user's, tried on a private one.

use pgvet_linter::check::{Migration, ParsedFile, parse_file};
use pgvet_linter::source::SourceFile;
use pgvet_trace::provider::{CloneProvider, Config, DataDir, DataDirOptions, Template, Url};
use pgvet_trace::server::{Server, testing};
use pgvet_trace::{Address, Error, Settings, Trace, run};

fn parsed(text: &str) -> ParsedFile {
    parse_file(SourceFile { path: "m.sql".to_owned(), text: text.to_owned() })
}

fn trace(provider: &mut dyn CloneProvider, sql: &str) -> Result<Trace, Error> {
    let file = parsed(sql);
    let migration = Migration { database: 1, ..Migration::new(&file) };
    run(&[migration], provider, &Settings::default(), &mut |_| {})
}

fn address(config: &Config) -> Address {
    Address::try_from(config.clone()).expect("encryption can be prepared")
}

fn query(server: &Server, database: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    server.query(database, sql).expect("the server answers")
}

/// A server with a database `shop` that has a table.
fn shop(major: u8) -> Option<(Server, Config)> {
    let server = testing::server(major)?;
    query(&server, "postgres", "CREATE DATABASE shop");
    let rows = "CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders SELECT generate_series(1, 500)";
    query(&server, "shop", rows);
    let config = server.config("shop");
    Some((server, config))
}

fn databases(server: &Server) -> Vec<Option<String>> {
    let rows = query(server, "postgres", "SELECT datname FROM pg_database WHERE NOT datistemplate ORDER BY 1");
    rows.into_iter().flatten().collect()
}

fn columns(server: &Server) -> Option<String> {
    let sql = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attnum > 0";
    query(server, "shop", sql)[0][0].clone()
}

#[test]
fn a_template_is_copied_measured_and_left_as_it_was() {
    for major in [14, 18] {
        let Some((server, config)) = shop(major) else { continue };
        let trace = trace(
            &mut Template::new(address(&config)),
            "ALTER TABLE orders ADD COLUMN b uuid DEFAULT gen_random_uuid()",
        );
        let statement = &trace.unwrap().migrations[0].statements[0];
        assert_eq!(statement.rewrites.len(), 1);
        assert_eq!(statement.scans[0].rows, 1000, "the table and its index");
        assert_eq!(columns(&server).as_deref(), Some("1"));
        let kept: Vec<_> = ["postgres", "shop"].map(|name| Some(name.to_owned())).into();
        assert_eq!(databases(&server), kept);
    }
}

#[test]
fn a_copy_goes_away_after_a_refusal_and_after_a_run_that_was_killed() {
    let Some((server, config)) = shop(18) else { return };
    let failed = trace(&mut Template::new(address(&config)), "SELECT * FROM missing").unwrap();
    let (_, failure) = failed.migrations[0].failure().unwrap();
    assert_eq!((failure.sqlstate.as_str(), failure.position), ("42P01", Some(14)));
    assert_eq!(databases(&server).len(), 2);
    query(&server, "postgres", "CREATE DATABASE pgvet_clone_1_1");
    assert_eq!(Template::new(address(&config)).remove_leftovers_now().unwrap(), ["pgvet_clone_1_1"]);
    assert_eq!(databases(&server).len(), 2);
}

#[test]
fn a_template_in_use_is_refused_with_the_reason() {
    let Some((server, config)) = shop(18) else { return };
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| server.query("shop", "SELECT pg_sleep(30)"));
        while query(&server, "postgres", "SELECT 1 FROM pg_stat_activity WHERE datname = 'shop'").is_empty() {}
        let error = trace(&mut Template::new(address(&config)), "SELECT 1").unwrap_err();
        assert!(error.message.contains("is being accessed by other users"), "{error}");
        let error = trace(&mut Url::new(address(&config)), "SELECT 1").unwrap_err();
        assert!(error.message.contains("another session uses the database"), "{error}");
        query(&server, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'shop'");
        assert!(sleeping.join().unwrap().is_err());
    });
}

fn data_directory(folder: &std::path::Path, user: &str) -> DataDir {
    let (database, user) = ("shop".to_owned(), user.to_owned());
    DataDir::new(DataDirOptions { folder: folder.to_owned(), database, user, binaries: None })
}

#[test]
fn a_snapshot_of_a_data_directory_is_copied_and_left_as_it_was() {
    let Some((server, _)) = shop(18) else { return };
    query(&server, "shop", "CHECKPOINT");
    // A copy of the files stands for a snapshot of them: nothing is written meanwhile.
    let parent = tempfile::tempdir().unwrap();
    let snapshot = parent.path().join("snapshot");
    let copied = std::process::Command::new("cp").arg("-a").arg(server.data()).arg(&snapshot).status().unwrap();
    assert!(copied.success());
    let trace = trace(&mut data_directory(&snapshot, "postgres"), "ALTER TABLE orders ADD COLUMN b int").unwrap();
    assert_eq!(trace.migrations[0].statements[0].locks[0].mode.sql(), "ACCESS EXCLUSIVE");
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1, "the copy is gone");
    let error = self::trace(&mut data_directory(parent.path(), "postgres"), "SELECT 1").unwrap_err();
    assert!(error.message.contains("is no data directory"), "{error}");
    std::fs::rename(snapshot.join("pg_wal"), parent.path().join("log")).unwrap();
    std::os::unix::fs::symlink(parent.path().join("log"), snapshot.join("pg_wal")).unwrap();
    let error = self::trace(&mut data_directory(&snapshot, "postgres"), "SELECT 1").unwrap_err();
    assert!(error.message.contains("write-ahead log in another folder"), "{error}");
}

#[test]
fn a_running_server_is_copied_in_backup_mode_while_it_is_used() {
    for major in [14, 18] {
        let Some((server, _)) = shop(major) else { continue };
        let done = std::sync::atomic::AtomicBool::new(false);
        let sql = "INSERT INTO orders SELECT max(id) + 1 FROM orders; UPDATE orders SET id = id WHERE id % 7 = 0";
        let traced = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    query(&server, "shop", sql);
                }
            });
            let check = "DO $$ BEGIN IF (SELECT count(*) FROM orders) < 500 THEN RAISE 'rows are missing'; END IF; \
                         END $$; ALTER TABLE orders ADD COLUMN b uuid DEFAULT gen_random_uuid()";
            let traced = trace(&mut data_directory(&server.data(), "postgres"), check);
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            traced
        });
        let migration = &traced.unwrap().migrations[0];
        assert!(migration.failure().is_none(), "{:?}", migration.failure());
        assert_eq!(migration.statements[1].rewrites.len(), 1, "{major}");
        assert_eq!(columns(&server).as_deref(), Some("1"), "the original is as it was");
        let error = trace(&mut data_directory(&server.data(), "stranger"), "SELECT 1").unwrap_err();
        assert!(error.message.contains("cannot be asked for a backup"), "{error}");
        let beside = std::fs::read_dir(server.socket()).unwrap().flatten();
        let copies = beside.filter(|entry| entry.file_name().to_string_lossy().starts_with(".pgvet-data")).count();
        assert_eq!(copies, 0, "the copies are gone");
    }
}

#[test]
fn a_given_database_is_used_as_it_is() {
    let Some((server, config)) = shop(15) else { return };
    let trace = trace(&mut Url::new(address(&config)), "ALTER TABLE orders ADD COLUMN b int").unwrap();
    assert_eq!(trace.migrations[0].statements[0].locks[0].mode.sql(), "ACCESS EXCLUSIVE");
    assert_eq!(columns(&server).as_deref(), Some("2"));
}

#[test]
fn a_server_that_cannot_be_reached_is_named_without_a_password() {
    let mut config = Config::new();
    config.host("127.0.0.1").port(1).user("app").password("secret").dbname("shop");
    let error = trace(&mut Url::new(address(&config)), "SELECT 1").unwrap_err().to_string();
    assert!(error.starts_with("cannot connect to the server"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}
