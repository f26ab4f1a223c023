//! Private servers start, answer, and leave nothing behind.

use pgvet_trace::server::testing::{MAJORS, beside_open_transaction, server, wait_until};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

#[test]
fn every_major_starts_answers_and_goes_away() {
    for major in MAJORS {
        let Some(server) = server(major) else { continue };
        let rows = server.query("postgres", "SELECT current_setting('server_version_num')::int / 10000, NULL").unwrap();
        assert_eq!(rows, [[Some(major.to_string()), None]]);
        let folder = server.socket().parent().unwrap().to_owned();
        assert!(folder.join("owner.pid").exists());
        drop(server);
        assert!(!folder.exists(), "{} was left behind", folder.display());
    }
}

#[test]
fn what_the_server_refuses_is_an_error_with_its_state() {
    let Some(server) = server(15) else { return };
    let error = server.query("postgres", "SELECT * FROM missing").unwrap_err();
    assert_eq!(error.message, "relation \"missing\" does not exist (SQLSTATE 42P01)");
}

#[test]
fn an_open_transaction_ends_with_the_work_beside_it_also_where_that_fails() {
    let Some(server) = server(18) else { return };
    server.query("postgres", "CREATE TABLE t (a int)").unwrap();
    let locks = || server.query("postgres", "SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock'").unwrap().len();
    let started = Instant::now();
    let work = || beside_open_transaction(&server, "postgres", "LOCK TABLE t", || assert_eq!(locks(), 0, "it is open"));
    let panicked = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    assert!(panicked.downcast_ref::<String>().is_some_and(|said| said.contains("it is open")));
    wait_until(|| locks() == 0);
    assert!(started.elapsed().as_secs() < 60, "nobody waited until it had slept enough");
}
