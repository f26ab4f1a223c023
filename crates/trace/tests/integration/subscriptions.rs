//! A traced migration reaches no publisher.

use crate::support::{columns, query, shop, shop_with, trace};
use pgvet_trace::provider::{CloneProvider, Scratch, ScratchOptions, Template};
use pgvet_trace::server::Server;
use pgvet_trace::{Address, MigrationTrace};

/// A publisher, and how a subscription names it.
fn publisher(major: u8) -> Option<(Server, String)> {
    let server = shop_with(major, &[("wal_level", "logical"), ("log_connections", "on")])?;
    query(&server, "shop", "CREATE PUBLICATION p FOR TABLE orders");
    query(&server, "shop", "SELECT pg_create_logical_replication_slot('s', 'pgoutput')");
    let connection = format!("host={} user=postgres dbname=shop", server.socket().display());
    Some((server, connection))
}

/// Nobody has connected as a subscriber does, and the slot is still there.
#[track_caller]
fn assert_unreached(publisher: &Server) {
    let log = std::fs::read_to_string(publisher.log()).expect("there is a log");
    assert!(log.contains("connection authorized"), "connections are in the log: {log}");
    assert!(!log.contains("replication connection"), "{log}");
    let slots = query(publisher, "shop", "SELECT slot_name FROM pg_replication_slots");
    assert_eq!(slots, [[Some("s".to_owned())]]);
}

fn scratch(major: u8) -> Scratch {
    Scratch::new(ScratchOptions { major: Some(major), ..ScratchOptions::default() })
}

fn traced(provider: &mut dyn CloneProvider, sql: &str) -> MigrationTrace {
    trace(provider, sql).unwrap_or_else(|error| panic!("{sql}: {error}")).migrations.remove(0)
}

#[test]
fn what_would_connect_is_not_run_and_the_rest_is_traced() {
    for major in [14, 18] {
        let Some((publisher, connection)) = publisher(major) else { continue };
        let Some((subscriber, config)) = shop(major) else { continue };
        let sql = format!(
            "CREATE TABLE first (a int); CREATE SUBSCRIPTION t CONNECTION '{connection}' PUBLICATION p; \
             CREATE SUBSCRIPTION s CONNECTION '{connection}' PUBLICATION p WITH (connect = false); \
             ALTER SUBSCRIPTION s ENABLE; ALTER SUBSCRIPTION s REFRESH PUBLICATION; \
             ALTER SUBSCRIPTION s SET PUBLICATION p; DROP SUBSCRIPTION s; CREATE TABLE last (a int)"
        );
        let template = Template::new(Address::try_from(config).unwrap());
        let providers: [Box<dyn CloneProvider>; 2] = [Box::new(scratch(major)), Box::new(template)];
        for mut provider in providers {
            let trace = traced(&mut *provider, &sql);
            assert!(trace.failure().is_none(), "{major}: {:?}", trace.failure());
            let run: Vec<&str> = trace.statements.iter().filter_map(|it| it.sql.get(..21)).collect();
            assert_eq!(run, ["CREATE TABLE first (a", "CREATE SUBSCRIPTION s", "CREATE TABLE last (a "], "{major}");
            let [create, notes @ ..] = &trace.notes[..] else { panic!("{:?}", trace.notes) };
            let why = "was not run, because it would connect to its publisher";
            assert_eq!(*create, format!("CREATE SUBSCRIPTION t {why}: with connect = false it is traced"));
            assert!(notes.len() == 4 && notes.iter().all(|note| note.contains(why)), "{notes:?}");
            assert_unreached(&publisher);
        }
        assert_eq!(query(&subscriber, "shop", "SELECT FROM pg_subscription").len(), 0, "the clone is gone");
        assert_eq!(columns(&subscriber).as_deref(), Some("1"));
    }
}

#[test]
fn a_subscription_without_a_slot_is_dropped() {
    let Some((subscriber, config)) = shop(18) else { return };
    let sql = "CREATE SUBSCRIPTION s CONNECTION 'host=/nonexistent' PUBLICATION p WITH (connect = false); \
               ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s; DROP SUBSCRIPTION IF EXISTS none";
    let trace = traced(&mut Template::new(Address::try_from(config).unwrap()), sql);
    assert!(trace.failure().is_none() && trace.notes.is_empty(), "{:?} {:?}", trace.failure(), trace.notes);
    assert_eq!(trace.statements.len(), 4);
    drop(subscriber);
}

#[test]
fn code_reaches_no_publisher_either() {
    for major in [14, 18] {
        let Some((publisher, connection)) = publisher(major) else { continue };
        let Some((_subscriber, config)) = shop(major) else { continue };
        let create = format!(
            "CREATE SUBSCRIPTION t CONNECTION ''{connection}'' PUBLICATION p WITH (create_slot = false, slot_name = s)"
        );
        let block = format!("DO $$ BEGIN EXECUTE '{create}'; END $$");
        let trace = traced(&mut scratch(major), &block);
        let said = trace.failure().map(|(_, failure)| failure.message.clone()).unwrap_or_default();
        assert!(said.contains("a server of pgvet connects nowhere"), "{major}: {said}");
        let trace = traced(&mut Template::new(Address::try_from(config).unwrap()), &block);
        assert!(trace.notes[0].starts_with("a DO block with subscriptions was not run"), "{:?}", trace.notes);
        assert!(trace.statements.is_empty());
        assert_unreached(&publisher);
    }
}
