//! Servers for tests, which must not go without one silently, and waiting for what they do.

use super::{Binaries, Options, Server};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// The majors that tests run on.
pub const MAJORS: [u8; 5] = [14, 15, 16, 17, 18];

/// Timeout for an expected event.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of that major for a test; `None`, with a loud message, where none is installed. In CI that is a failure.
///
/// # Panics
/// Where `CI` is set and the server is missing, or where it does not start.
pub fn server(major: u8) -> Option<Server> {
    let start = |binaries| Server::start(&binaries).unwrap_or_else(|error| panic!("PostgreSQL {major}: {error}"));
    binaries(major).map(start)
}

/// A server that also listens on a port of this machine, for encrypted connections of users with a password alone.
///
/// # Panics
/// Where `CI` is set and the server is missing, or where it does not start.
pub fn tls_server(major: u8, certificate: &str, key: &str) -> Option<(Server, u16)> {
    let binaries = binaries(major)?;
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("a port is free").port();
    let settings = vec![("listen_addresses".to_owned(), "127.0.0.1".to_owned())];
    let options = Options { settings, port: Some(port), ..Options::default() };
    let server = Server::start_with(&binaries, &options).unwrap_or_else(|error| panic!("PostgreSQL {major}: {error}"));
    let run = |sql: &str| server.query("postgres", sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let hba = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256";
    // The files must belong to the user of the server.
    for (name, text) in [("server.key", key), ("server.crt", certificate), ("pg_hba.conf", hba)] {
        run(&format!("COPY (SELECT string_to_table('{text}', E'\\n')) TO PROGRAM 'umask 077; cat > {name}'"));
    }
    run("ALTER SYSTEM SET ssl = on");
    run("SELECT pg_reload_conf()");
    wait_until(|| run("SHOW ssl")[0][0].as_deref() == Some("on"));
    Some((server, port))
}

/// The programs of that major for a test, under the same rules.
///
/// # Panics
/// Where `CI` is set and they are missing.
pub fn binaries(major: u8) -> Option<Binaries> {
    let missing = |error| {
        not_tested(&format!("on PostgreSQL {major}: {error}\n  help: .ci/install-postgresql installs it"));
    };
    Binaries::find(Some(major)).map_err(missing).ok()
}

/// Prints why a test was skipped, if it cannot run.
///
/// # Panics
/// Where `CI` is set: there everything that a test needs is installed.
pub fn not_tested(what: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    assert!(!in_ci, "NOT TESTED {what}");
    not_tested_anywhere(what);
}

/// The same for what CI cannot run either.
#[expect(clippy::print_stderr, reason = "a test that does not run must say so")]
pub fn not_tested_anywhere(what: &str) {
    eprintln!("NOT TESTED {what}");
}

/// Returns as soon as the condition holds.
///
/// # Panics
/// Where it does not within a minute.
#[track_caller]
pub fn wait_until(mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Does work while another session has run SQL, in a transaction that stays open. That session ends with the work, also
/// where this panics.
pub fn beside_open_transaction<T>(server: &Server, database: &str, sql: &str, work: impl FnOnce() -> T) -> T {
    let sql = format!("BEGIN; {sql}; SELECT pg_sleep(600)");
    std::thread::scope(|scope| {
        let _end = SleeperEnd(server);
        scope.spawn(|| server.query(database, &sql));
        wait_until(|| server.query("template1", &format!("SELECT {SLEEPERS}")).is_ok_and(|rows| !rows.is_empty()));
        work()
    })
}

/// Sessions of [`beside_open_transaction`] that have run their SQL.
const SLEEPERS: &str = "FROM pg_stat_activity WHERE wait_event = 'PgSleep'";

/// Ends those sessions, and so the threads that wait for them.
struct SleeperEnd<'a>(&'a Server);

impl Drop for SleeperEnd<'_> {
    fn drop(&mut self) {
        // A server that is gone has ended them.
        let _ = self.0.query("template1", &format!("SELECT pg_terminate_backend(pid) {SLEEPERS}"));
    }
}
