//! Statistics of real servers.

use pgvet_model::statistics::Statistics;
use pgvet_trace::provider::parse_address;
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::{beside_open_transaction, server};
use pgvet_trace::{Error, snapshot};
use std::time::{Duration, Instant};

fn take(server: &Server, user: &str, database: &str) -> Result<Statistics, Error> {
    take_after(server, user, database, Duration::ZERO)
}

fn take_after(server: &Server, user: &str, database: &str, window: Duration) -> Result<Statistics, Error> {
    let socket = server.socket().display();
    snapshot(&parse_address(&format!("host={socket} user={user} dbname={database}"))?, window)
}

#[test]
fn minutes_of_counting_say_nothing_of_hours() {
    let Some(server) = server(18) else { return };
    let query = |sql: &str| server.query("postgres", sql).unwrap_or_else(|error| panic!("{error:?}"));
    // The data directory of the server, and with it the time of its counters, may be older than the test.
    query("SELECT pg_stat_reset()");
    query("CREATE TABLE orders AS SELECT g AS id FROM generate_series(1, 1000) g");
    query("ANALYZE");
    // The server publishes its counters a little later.
    query("SELECT pg_sleep(2)");
    let writes = |window| {
        let statistics =
            take_after(&server, "postgres", "postgres", window).unwrap_or_else(|error| panic!("{error:?}"));
        let is_missing = statistics.missing.iter().any(|missing| missing.starts_with("writes of tables"));
        (statistics.tables["public.orders"].writes_per_second.is_some(), is_missing)
    };
    assert_eq!(writes(Duration::ZERO), (true, false));
    assert_eq!(writes(Duration::from_secs(3600)), (false, true));
}

#[test]
fn sizes_traffic_and_calls_are_read_without_rights() {
    for major in [14, 18] {
        let Some(server) = server(major) else { continue };
        let query = |sql: &str| server.query("postgres", sql).unwrap_or_else(|error| panic!("{major}: {error:?}"));
        query("CREATE ROLE reader LOGIN");
        query("CREATE TABLE orders (id bigint PRIMARY KEY, note text) WITH (autovacuum_enabled = false)");
        query("INSERT INTO orders SELECT g, repeat('x', 50) FROM generate_series(1, 20000) g");
        query("CREATE TABLE events (id int, at date) PARTITION BY RANGE (at)");
        query("CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')");
        query("INSERT INTO events SELECT g, '2024-05-05' FROM generate_series(1, 30000) g");
        query("CREATE TABLE few (id int, at date) PARTITION BY RANGE (at)");
        query("CREATE TABLE few_1 PARTITION OF few FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')");
        query("CREATE TABLE empty (id bigint)");
        query("ANALYZE");
        query("CREATE TABLE unknown (id bigint)");
        query("CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')");
        query("CREATE TABLE few_2 PARTITION OF few FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')");
        let statistics = take(&server, "reader", "postgres").unwrap_or_else(|error| panic!("{major}: {error:?}"));
        let orders = &statistics.tables["public.orders"];
        assert_eq!((orders.rows, orders.autovacuum_off), (Some(20000), true));
        assert!(orders.bytes > Some(1_000_000) && orders.indexes["orders_pkey"] > 100_000, "{orders:?}");
        assert_eq!(statistics.tables["public.events"].rows, Some(30000));
        assert_eq!(statistics.tables["public.few"].rows, None, "one partition may hold many");
        assert_eq!(statistics.tables["public.empty"].rows, Some(0));
        let unknown = &statistics.tables["public.unknown"];
        assert_eq!((unknown.rows, unknown.bytes), (None, None), "nothing has counted it");
        assert!(statistics.pg_version.starts_with(&major.to_string()));
        assert!(statistics.autovacuum.contains_key("autovacuum_naptime"));
        assert!(
            statistics.missing.iter().any(|missing| missing.contains("track_functions")),
            "{:?}",
            statistics.missing
        );
        let text = serde_json::to_string(&statistics).expect("it is plain data");
        assert_eq!(Statistics::parse(&text), Ok(statistics));
    }
}

#[test]
fn resets_of_other_counters_do_not_shorten_the_time_of_counting() {
    for major in [14, 18] {
        let Some(server) = server(major) else { continue };
        let query = |sql: &str| server.query("postgres", sql).unwrap_or_else(|error| panic!("{major}: {error:?}"));
        let counted = || take(&server, "postgres", "postgres").map(|statistics| statistics.counted_seconds);
        query("CREATE TABLE orders AS SELECT 1 AS id");
        query("CREATE TABLE other AS SELECT 1 AS id");
        query("ANALYZE");
        query("SELECT pg_sleep(3)");
        query("SELECT pg_stat_reset_shared('bgwriter')");
        assert!(counted().is_ok_and(|seconds| seconds >= Some(2)), "{major}: {:?}", counted());
        query("SELECT pg_stat_reset_single_table_counters('other'::regclass)");
        assert!(counted().is_ok_and(|seconds| seconds >= Some(2)), "{major}: {:?}", counted());
        let reset = Instant::now();
        query("SELECT pg_stat_reset()");
        query("SELECT pg_sleep(1)");
        let counted = counted().unwrap_or_else(|error| panic!("{major}: {error:?}"));
        assert!(counted <= Some(reset.elapsed().as_secs() + 1), "{major}: {counted:?}");
    }
}

#[test]
fn five_thousand_tables_take_little_room_and_a_locked_one_is_not_waited_for() {
    let Some(server) = server(18) else { return };
    let query = |sql: &str| server.query("postgres", sql).unwrap_or_else(|error| panic!("{error:?}"));
    for part in 0..50 {
        query(&format!(
            "DO $$ BEGIN FOR i IN 1..100 LOOP EXECUTE format('CREATE TABLE a_table_with_a_name_{part}_%s (id bigint PRIMARY KEY, a int UNIQUE)', i); END LOOP; END $$"
        ));
    }
    query("ANALYZE");
    let statistics = beside_open_transaction(&server, "postgres", "LOCK TABLE a_table_with_a_name_0_1", || {
        take(&server, "postgres", "postgres")
    });
    let statistics = statistics.unwrap_or_else(|error| panic!("{error:?}"));
    let size = serde_json::to_string_pretty(&statistics).expect("it is plain data").len();
    assert_eq!(statistics.tables.len(), 5000);
    assert!(size < 2_000_000, "{size} bytes");
}

#[test]
fn a_server_that_cannot_be_reached_is_reported() {
    let address = parse_address("host=/nonexistent user=a dbname=b").expect("it is well formed");
    let error = snapshot(&address, Duration::ZERO).expect_err("nobody listens there");
    assert!(error.message.starts_with("cannot connect to the server"), "{}", error.message);
}
