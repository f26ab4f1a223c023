//! The DBLab provider against a fake of its HTTP API that hands out real databases.

use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use pgvet_trace::provider::{CloneProvider, Dblab, DblabOptions};
use pgvet_trace::server::{Server, testing};
use pgvet_trace::{Error, Settings, Trace, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Failures of clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    Fatal,
    Vanishes,
}

/// The engine: clones by id, with how often each was asked for.
struct Engine {
    trouble: Trouble,
    clones: Mutex<BTreeMap<String, (Server, usize)>>,
    requests: Mutex<Vec<String>>,
}

const TOKEN: &str = "right";

impl Engine {
    /// Starts it, and returns its address.
    fn start(trouble: Trouble) -> (Arc<Self>, String) {
        let engine = Arc::new(Self { trouble, clones: Mutex::default(), requests: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = Arc::clone(&engine);
        std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| serving.serve(stream)));
        (engine, url)
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        reader.read_line(&mut first).unwrap();
        let (mut length, mut token) = (0, String::new());
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "verification-token" => value.clone_into(&mut token),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        self.requests.lock().unwrap().push(format!("{method} {path}"));
        let (status, answer) = if token == TOKEN {
            self.answer(method, path, &serde_json::from_slice(&body).unwrap_or_default())
        } else {
            (401, json!({ "code": "UNAUTHORIZED", "message": "Check your verification token." }))
        };
        let answer = answer.to_string();
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", answer.len());
        reader.into_inner().write_all((head + &answer).as_bytes()).unwrap();
    }

    fn answer(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let id = path.strip_prefix("/clone/").unwrap_or_default();
        let missing = (404, json!({ "code": "NOT_FOUND", "message": "clone not found" }));
        let mut clones = self.clones.lock().unwrap();
        match (method, path) {
            ("POST", "/clone") => {
                let server = testing::server(18).unwrap();
                let user = body["db"]["username"].as_str().unwrap();
                server.query("postgres", &format!("CREATE ROLE {user} SUPERUSER LOGIN; ")).unwrap();
                server.query("postgres", "CREATE DATABASE shop").unwrap();
                server.query("shop", "CREATE TABLE orders (id int PRIMARY KEY)").unwrap();
                let id = body["id"].as_str().unwrap().to_owned();
                clones.insert(id.clone(), (server, 0));
                (201, json!({ "id": id, "status": { "code": "CREATING" } }))
            }
            ("GET", "/status") => {
                let clones: Vec<Value> = clones.keys().map(|id| json!({ "id": id })).collect();
                (200, json!({ "cloning": { "clones": clones } }))
            }
            ("GET", _) if self.trouble == Trouble::Vanishes => missing,
            ("GET", _) => clones.get_mut(id).map_or(missing, |(server, asked)| {
                *asked += 1;
                (200, shown(id, server, *asked, self.trouble))
            }),
            ("DELETE", _) if clones.remove(id).is_some() => (200, Value::Null),
            _ => missing,
        }
    }
}

/// A clone as the API shows it: while it is made it has no address.
fn shown(id: &str, server: &Server, asked: usize, trouble: Trouble) -> Value {
    let code = match (asked, trouble) {
        (1, _) => "CREATING",
        (_, Trouble::Fatal) => "FATAL",
        _ => "OK",
    };
    let ready = code == "OK";
    let host = if ready { server.socket().display().to_string() } else { String::new() };
    json!({
        "id": id,
        "status": { "code": code, "message": "disk is full" },
        "snapshot": { "dataStateAt": "2026-11-20 04:00:00 UTC" },
        "db": { "host": host, "port": if ready { "5432" } else { "" }, "username": "pgvet", "dbName": "shop" },
    })
}

fn provider(url: &str, token: &str) -> Dblab {
    Dblab::new(DblabOptions {
        url: url.to_owned(),
        token: token.to_owned(),
        database: "shop".to_owned(),
        branch: None,
        snapshot: None,
    })
}

fn trace(provider: &mut dyn CloneProvider, repeat: usize) -> Result<Trace, Error> {
    let text = "ALTER TABLE orders ADD COLUMN b int".to_owned();
    let file = parse_file(SourceFile::new("m.sql".to_owned(), text));
    let migration = Migration { database: 1, ..Migration::new(&file) };
    run(&[migration], provider, &Settings { repeat, ..Settings::default() }, &mut |_| {})
}

#[test]
fn a_clone_is_made_awaited_used_and_deleted() {
    if testing::binaries(18).is_none() {
        return;
    }
    let (engine, url) = Engine::start(Trouble::None);
    let trace = trace(&mut provider(&url, TOKEN), 2).unwrap();
    let statement = &trace.migrations[0].statements[0];
    assert_eq!(statement.locks[0].mode.sql(), "ACCESS EXCLUSIVE");
    assert_eq!(statement.spread.map(|spread| spread.runs), Some(2));
    assert_eq!(trace.notes, ["the data is from 2026-11-20 04:00:00 UTC"]);
    assert!(engine.clones.lock().unwrap().is_empty());
    let posts = engine.requests.lock().unwrap().iter().filter(|request| *request == "POST /clone").count();
    assert_eq!(posts, 2, "a clone for each run");
}

#[test]
fn a_clone_that_fails_or_vanishes_is_reported_and_deleted() {
    if testing::binaries(18).is_none() {
        return;
    }
    for (trouble, expected) in [(Trouble::Fatal, "failed: FATAL disk is full"), (Trouble::Vanishes, "vanished")] {
        let (engine, url) = Engine::start(trouble);
        let error = trace(&mut provider(&url, TOKEN), 1).unwrap_err();
        assert!(error.message.contains(expected), "{error}");
        assert!(engine.clones.lock().unwrap().is_empty(), "{trouble:?}");
    }
}

#[test]
fn a_wrong_token_and_an_engine_that_is_not_there_are_reported() {
    let (_, url) = Engine::start(Trouble::None);
    let error = trace(&mut provider(&url, "expired"), 1).unwrap_err().to_string();
    assert!(
        error.contains("refuses the token") && error.contains("DBLAB_TOKEN") && !error.contains("expired"),
        "{error}"
    );
    let error = trace(&mut provider("http://127.0.0.1:1", TOKEN), 1).unwrap_err();
    assert!(error.message.starts_with("cannot reach DBLab at http://127.0.0.1:1"), "{error}");
}

#[test]
fn a_token_follows_no_redirect() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let target = elsewhere.local_addr().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                line.clear();
            }
            let answer = format!(
                "HTTP/1.1 307 X\r\nLocation: http://{target}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            // The client may be gone.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    trace(&mut provider(&url, TOKEN), 1).unwrap_err();
    provider(&url, TOKEN).remove_leftovers_now().unwrap_err();
    assert!(elsewhere.accept().is_err());
}

#[test]
fn clones_of_runs_that_died_are_found_and_deleted() {
    if testing::binaries(18).is_none() {
        return;
    }
    let (engine, url) = Engine::start(Trouble::None);
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let host = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let host: String = host.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
    let (left, living) = (format!("pgvet-{host}-{}-1", dead.id()), format!("pgvet-{host}-{}-1", std::process::id()));
    let elsewhere = format!("pgvet-x{host}-{}-1", dead.id());
    for id in [&left, &living, &elsewhere, &"somebody-else".to_owned()] {
        engine.answer("POST", "/clone", &json!({ "id": id, "db": { "username": "pgvet" } }));
    }
    assert_eq!(provider(&url, TOKEN).remove_leftovers_now().unwrap(), [left]);
    // The engine's thread lives as long as the test does, and would keep the servers.
    assert_eq!(std::mem::take(&mut *engine.clones.lock().unwrap()).len(), 3);
}
