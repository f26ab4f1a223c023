//! The log of the server, in which every message of a tool stands and every table and index that is created.

use super::observation::{Numbers, Protocol, Step};
use pgvet_trace::server::{Binaries, Options, Server};
use std::collections::BTreeMap;
use std::net::TcpListener;

/// Begins each record; no message holds it.
pub(in crate::measure) const RECORD: char = '\u{1e}';
pub(in crate::measure) const FIELD: char = '\u{1f}';

/// Starts a server on a free port of this machine whose log can be read.
pub(in crate::measure) fn start(major: u8) -> Result<(Server, u16), String> {
    let text = |error: pgvet_trace::Error| error.to_string();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| error.to_string())?.port();
    let mut settings = settings();
    settings.push(("listen_addresses".to_owned(), "127.0.0.1".to_owned()));
    let options = Options { port: Some(port), settings, ..Options::default() };
    let server = Server::start_with(&Binaries::find(Some(major)).map_err(text)?, &options).map_err(text)?;
    Ok((server, port))
}

/// Settings with which the log can be read.
fn settings() -> Vec<(String, String)> {
    let prefix = format!("{RECORD}%c{FIELD}%d{FIELD}%e{FIELD}");
    [
        ("log_statement", "all"),
        ("log_line_prefix", &prefix),
        ("log_error_verbosity", "terse"),
        ("lc_messages", "C"),
        ("max_connections", "50"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

/// An event trigger that tells in the log what is created, in which transaction, with which settings.
pub(super) const TRIGGER: &str = "CREATE SCHEMA harness;
CREATE FUNCTION harness.seen() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE one record;
BEGIN
  FOR one IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE command_tag LIKE 'CREATE%' LOOP
    IF one.object_type IN ('table', 'index') THEN
      RAISE LOG 'harness: % % % % %', pg_current_xact_id(), (SELECT setting FROM pg_settings WHERE name = 'lock_timeout'),
        one.object_type, one.object_identity, '';
    END IF;
  END LOOP;
END $$;
CREATE EVENT TRIGGER harness ON ddl_command_end EXECUTE FUNCTION harness.seen();";

/// The part of the log about one run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) steps: Vec<Step>,
    pub(super) error: Option<String>,
    /// Everything, for people.
    pub(super) lines: Vec<String>,
}

/// The last message of a session, and whether what ran because of it was created for the project.
struct Message {
    number: String,
    protocol: Protocol,
    text: String,
}

/// Reads the part of the log that belongs to a database. `objects`: what the project creates, each with its file.
pub(super) fn read(log: &str, database: &str, objects: &BTreeMap<String, String>) -> Seen {
    let mut seen = Seen::default();
    let mut messages: BTreeMap<String, Message> = BTreeMap::new();
    let (mut sessions, mut transactions, mut numbers) = (Numbers::default(), Numbers::default(), Numbers::default());
    for (at, record) in log.split(RECORD).enumerate() {
        let mut fields = record.splitn(4, FIELD);
        let (Some(session), Some(of), Some(sqlstate), Some(text)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if of != database {
            continue;
        }
        let text = text.trim_end();
        seen.lines.push(format!("{session} {text}"));
        let sent = text.strip_prefix("LOG:  statement: ").map(|sql| (Protocol::Simple, sql));
        let executed =
            || text.strip_prefix("LOG:  execute ")?.split_once(": ").map(|(_, sql)| (Protocol::Extended, sql));
        if let Some((protocol, sql)) = sent.or_else(executed) {
            let message = Message { number: at.to_string(), protocol, text: sql.to_owned() };
            messages.insert(session.to_owned(), message);
        } else if let Some(created) = text.strip_prefix("LOG:  harness: ") {
            let mut words = created.split_whitespace();
            let mut word = || words.next().unwrap_or_default();
            let (transaction, lock_timeout, kind, identity) = (word(), word(), word(), word());
            let name = identity.rsplit('.').next().unwrap_or_default();
            if let (Some(file), Some(message)) = (objects.get(name), messages.get(session)) {
                seen.steps.push(Step {
                    file: file.clone(),
                    object: format!("{kind} {identity}"),
                    session: sessions.of(session),
                    transaction: transactions.of(transaction),
                    message: numbers.of(&message.number),
                    protocol: message.protocol,
                    lock_timeout: lock_timeout.parse().unwrap_or_default(),
                });
            }
        } else if text.starts_with("ERROR:  ") && seen.error.is_none() {
            let of_project = messages.get(session).is_some_and(|message| names_any(&message.text, objects))
                || names_any(text, objects);
            seen.error = of_project.then(|| sqlstate.to_owned());
        }
    }
    seen
}

fn names_any(text: &str, objects: &BTreeMap<String, String>) -> bool {
    let mut words = text.split(|one: char| !(one.is_alphanumeric() || one == '_'));
    words.any(|word| objects.contains_key(word))
}
