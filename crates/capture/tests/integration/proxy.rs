//! The proxy before a real server. The command is this test program itself: see [`client`].

use futures_util::SinkExt;
use pgvet_capture::{Captured, Outcome, Request, SessionSettings, State, Tables, cut};
use pgvet_trace::provider::{Scratch, ScratchOptions};
use pgvet_trace::server::testing::binaries;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

const PART: &str = "PGVET_TEST_PART";

async fn connect(parameters: &str) -> Client {
    let [host, port] = ["PGHOST", "PGPORT"].map(|name| std::env::var(name).unwrap());
    let address = format!("host={host} port={port} user=somebody dbname=somewhere password=x {parameters}");
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[expect(clippy::exit, reason = "the connection must not be closed in order")]
fn leave() -> ! {
    std::process::exit(0);
}

/// Plays the part that the environment names, for the other tests.
#[test]
#[ignore = "a program for the other tests"]
fn client() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match std::env::var(PART).unwrap().as_str() {
            "cancel" => {
                let client = connect("").await;
                let token = client.cancel_token();
                let cancel = async {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    token.cancel_query(NoTls).await.unwrap();
                };
                let (slept, ()) = tokio::join!(client.batch_execute("SELECT pg_sleep(60)"), cancel);
                assert_eq!(slept.unwrap_err().code().unwrap().code(), "57014");
            }
            "several" => {
                let clients = [connect("").await, connect("options='-c lock_timeout=7s'").await];
                for round in 0..50 {
                    let sql = format!("SELECT {round}");
                    let (one, other) = tokio::join!(clients[0].simple_query(&sql), clients[1].query_one(&sql, &[]));
                    one.unwrap();
                    assert_eq!(other.unwrap().get::<_, i32>(0), round);
                }
                let timeout = clients[1].query_one("SHOW lock_timeout", &[]).await.unwrap();
                assert_eq!(timeout.get::<_, &str>(0), "7s");
            }
            "large" => {
                let client = connect("").await;
                let row = client.query_one("SELECT repeat('x', 20000000)", &[]).await.unwrap();
                assert_eq!(row.get::<_, &str>(0).len(), 20_000_000);
                let sql = format!("SELECT length('{}')", "y".repeat(20_000_000));
                let rows = client.simple_query(&sql).await.unwrap();
                assert!(rows.len() > 1);
            }
            "aborted" => {
                let client = connect("").await;
                client.batch_execute("CREATE TABLE knex_migrations (name text, batch int)").await.unwrap();
                for sql in ["BEGIN", "SET lock_timeout = '5s'", "CREATE TABLE a (id int)"] {
                    client.batch_execute(sql).await.unwrap();
                }
                client.batch_execute("ALTER TABLE a DROP COLUMN no").await.unwrap_err();
                client.batch_execute("COMMIT").await.unwrap();
                let asked = "SELECT current_setting('lock_timeout'), to_regclass('a') IS NULL";
                let row = client.query_one(asked, &[]).await.unwrap();
                assert_eq!((row.get(0), row.get(1)), ("0", true));
                client.batch_execute("CREATE TABLE b (id int)").await.unwrap();
                client.batch_execute("INSERT INTO knex_migrations (name, batch) VALUES ('1.js', 1)").await.unwrap();
            }
            "copy" => {
                let client = connect("").await;
                client.batch_execute("CREATE TABLE t (a int)").await.unwrap();
                let sink = client.copy_in::<_, bytes::Bytes>("COPY t FROM STDIN").await.unwrap();
                let mut sink = std::pin::pin!(sink);
                sink.send(bytes::Bytes::from_static(b"1\n2\n")).await.unwrap();
                assert_eq!(sink.finish().await.unwrap(), 2);
                client.batch_execute("ALTER TABLE t ADD b int").await.unwrap();
            }
            "encrypted" => {
                let port = std::env::var("PGPORT").unwrap();
                let mut client = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
                client.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
                let mut answer = [0];
                client.read_exact(&mut answer).unwrap();
                assert_eq!(&answer, b"N");
            }
            "open" => {
                // Ends without a word to the server.
                let client = connect("").await;
                client.batch_execute("BEGIN; CREATE TABLE t (a int)").await.unwrap();
                leave();
            }
            other => panic!("there is no part {other}"),
        }
    });
}

fn capture(part: &str) -> Option<Captured> {
    let programs = binaries(18)?;
    let options = ScratchOptions { binaries: Some(programs.folder), ..ScratchOptions::default() };
    let program = std::env::current_exe().unwrap().into_os_string();
    let words = ["proxy::client", "--exact", "--ignored", "--nocapture"].map(OsString::from);
    let command: Vec<OsString> = std::iter::once(program).chain(words).collect();
    let request = Request {
        command: &command,
        folder: Path::new("."),
        variables: &[(PART.to_owned(), part.to_owned())],
        keep_values: Box::new(|_| false),
        state: State::default(),
        allow_server_changes: false,
    };
    let captured = pgvet_capture::run(&mut Scratch::new(options), request, &mut |_| ()).unwrap();
    assert!(captured.status.success(), "{part}: {}", captured.status);
    Some(captured)
}

#[test]
fn a_cancel_request_reaches_the_server() {
    let Some(captured) = capture("cancel") else { return };
    let codes: Vec<_> = captured.recording.statements.iter().filter_map(|statement| statement.error()).collect();
    assert_eq!(codes.iter().map(|error| error.code.as_str()).collect::<Vec<_>>(), ["57014"]);
    assert!(captured.took < Duration::from_secs(30));
}

#[test]
fn several_connections_are_kept_apart() {
    let Some(captured) = capture("several") else { return };
    assert_eq!((captured.connections, captured.left_open), (2, 0));
    let of_session = |number| captured.recording.statements.iter().filter(move |one| one.session == number).count();
    assert_eq!((of_session(1), of_session(2)), (50, 51));
    assert!(captured.recording.statements.iter().all(|one| one.outcome == Outcome::Done));
    let options = captured.recording.sessions[1].parameters.iter().find(|(name, _)| name == "options").unwrap();
    assert_eq!(options.1, "-c lock_timeout=7s");
}

#[test]
fn long_messages_pass_and_are_cut_in_the_record_alone() {
    let Some(captured) = capture("large") else { return };
    let longest = captured.recording.statements.iter().map(|one| one.sql.len()).max().unwrap();
    assert_eq!(longest, 16 << 20);
    let cut: Vec<u64> = captured.recording.statements.iter().map(|one| one.cut_from).filter(|cut| *cut > 0).collect();
    assert_eq!(cut.len(), 1);
    assert!(cut[0] > 20_000_000);
}

#[test]
fn a_commit_after_an_error_leaves_nothing() {
    let Some(captured) = capture("aborted") else { return };
    let capture = cut(&captured.recording, &Tables::with(None));
    let [work] = &*capture.migrations[0].work else { panic!("{:?}", capture.migrations) };
    assert_eq!((work.sql.as_str(), &*work.settings), ("CREATE TABLE b (id int)", &SessionSettings::default()));
    assert_eq!(capture.counts.attempts, 2);
}

#[test]
fn a_copy_of_prepared_statements_does_not_shift_answers() {
    let Some(captured) = capture("copy") else { return };
    let seen: Vec<_> = captured.recording.statements.iter().map(|one| (&*one.sql, one.copied, &one.outcome)).collect();
    let [_, copy, alter] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(copy, ("COPY t FROM STDIN", 4, &Outcome::Done));
    assert_eq!(alter, ("ALTER TABLE t ADD b int", 0, &Outcome::Done));
}

#[test]
fn a_client_that_requires_encryption_is_counted() {
    let Some(captured) = capture("encrypted") else { return };
    assert_eq!((captured.connections, captured.refused_by_command), (1, 1));
    assert!(captured.recording.sessions.is_empty());
}

#[test]
fn a_client_that_ends_without_a_word_leaves_no_connection() {
    let Some(captured) = capture("open") else { return };
    assert_eq!((captured.connections, captured.left_open), (1, 0));
    assert_eq!(captured.recording.statements.len(), 1);
}
