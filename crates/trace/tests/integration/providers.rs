//! Providers that work on a server of the user's, tried on a private one.

use crate::support::{columns, query, shop, trace};
use pgvet_trace::Address;
use pgvet_trace::provider::{Config, Scratch, ScratchOptions, Template, Url};
use pgvet_trace::server::testing::{self, beside_open_transaction, wait_until};
use pgvet_trace::server::{Options, Server};

fn address(config: &Config) -> Address {
    Address::try_from(config.clone()).expect("encryption can be prepared")
}

fn databases(server: &Server) -> Vec<Option<String>> {
    let rows = query(server, "postgres", "SELECT datname FROM pg_database WHERE NOT datistemplate ORDER BY 1");
    rows.into_iter().flatten().collect()
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
    let subscribe = "CREATE SUBSCRIPTION s CONNECTION 'host=/nonexistent' PUBLICATION p WITH (connect = false)";
    query(&server, "pgvet_clone_1_1", subscribe);
    assert_eq!(Template::new(address(&config)).remove_leftovers_now().unwrap(), ["pgvet_clone_1_1"]);
    assert_eq!(databases(&server).len(), 2);
}

#[test]
fn a_copy_with_a_prepared_transaction_goes_away() {
    let Some(binaries) = testing::binaries(18) else { return };
    let settings = vec![("max_prepared_transactions".to_owned(), "2".to_owned())];
    let server = Server::start_with(&binaries, &Options { settings, ..Options::default() }).unwrap();
    query(&server, "postgres", "CREATE DATABASE shop");
    let mut template = Template::new(address(&server.config("shop")));
    let prepared = "BEGIN; CREATE TABLE a (a int); PREPARE TRANSACTION 'it''s'";
    trace(&mut template, prepared).unwrap();
    assert_eq!(databases(&server).len(), 2);
    query(&server, "postgres", "CREATE DATABASE pgvet_clone_1_1");
    query(&server, "pgvet_clone_1_1", prepared);
    // The session ends a moment after its client.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'pgvet_clone_1_1'";
    let asked = std::time::Instant::now();
    while server.query("postgres", sessions).unwrap() != [[Some("0".to_owned())]] {
        assert!(asked.elapsed().as_secs() < 30, "the session does not end");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(template.remove_leftovers_now().unwrap(), ["pgvet_clone_1_1"]);
    assert_eq!(databases(&server).len(), 2);
}

#[test]
fn databases_that_only_look_like_clones_stay() {
    let Some((server, config)) = shop(18) else { return };
    server.query("postgres", "CREATE ROLE other").unwrap();
    for name in ["\"pgvet_clone_Foo\"", "pgvet_clone_foo", "\"pgvet_clone_1;SELECT 1\"", "pgvet_clone_1_1_1"] {
        query(&server, "postgres", &format!("CREATE DATABASE {name}"));
    }
    query(&server, "postgres", "CREATE DATABASE pgvet_clone_1_2 OWNER other");
    let before = databases(&server).len();
    assert_eq!(Template::new(address(&config)).remove_leftovers_now().unwrap(), [""; 0]);
    assert_eq!(databases(&server).len(), before);
}

#[test]
fn a_template_in_use_is_refused_with_the_reason() {
    let Some((server, config)) = shop(18) else { return };
    beside_open_transaction(&server, "shop", "SELECT FROM orders", || {
        let error = trace(&mut Template::new(address(&config)), "SELECT 1").unwrap_err();
        assert!(error.message.contains("is being accessed by other users"), "{error}");
        let error = trace(&mut Url::new(address(&config)), "SELECT 1").unwrap_err();
        assert!(error.message.contains("another session uses the database"), "{error}");
    });
}

#[test]
fn a_private_server_receives_nothing() {
    if testing::binaries(18).is_none() {
        return;
    }
    let check = "DO $$ BEGIN IF EXISTS (SELECT FROM pg_stat_activity WHERE backend_type ~ '^logical replication') \
                 OR current_setting('max_logical_replication_workers') <> '0' THEN RAISE 'it subscribes'; END IF; END $$";
    let mut provider = Scratch::new(ScratchOptions { major: Some(18), ..ScratchOptions::default() });
    let trace = trace(&mut provider, check).unwrap();
    assert!(trace.migrations[0].failure().is_none(), "{:?}", trace.migrations[0].failure());
}

#[test]
fn a_given_database_is_used_as_it_is() {
    let Some((server, config)) = shop(15) else { return };
    let trace = std::thread::scope(|scope| {
        // A session that is about to end is waited for.
        scope.spawn(|| query(&server, "shop", "SELECT pg_catalog.pg_sleep(0.4)"));
        let sessions = "SELECT FROM pg_stat_activity WHERE query LIKE '%pg_sleep(0.4)' AND state = 'active'";
        wait_until(|| !query(&server, "postgres", sessions).is_empty());
        trace(&mut Url::new(address(&config)), "ALTER TABLE orders ADD COLUMN b int").unwrap()
    });
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
