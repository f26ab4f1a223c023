use super::*;
use crate::wire::Messages;

/// Both sides of one connection.
struct Played {
    log: Log,
    session: SessionLog,
}

impl Played {
    fn new() -> Self {
        let mut log = Log::new(Box::new(|sql| sql.contains("migrations")));
        let session = log.session(vec![("client_encoding".to_owned(), "UTF8".to_owned())]);
        Self { log, session }
    }

    fn client(&mut self, messages: &[Vec<u8>]) -> &mut Self {
        let mut reader = Messages::new(is_wanted_from_client);
        reader.read(&messages.concat(), &mut |message| self.session.sent(&mut self.log, message));
        self
    }

    fn server(&mut self, messages: &[Vec<u8>]) -> &mut Self {
        let mut reader = Messages::new(is_wanted_from_server);
        reader.read(&messages.concat(), &mut |message| self.session.answered(&mut self.log, message));
        self
    }

    /// Statement, transaction, and the code of an error.
    fn seen(&self) -> Vec<(&str, Option<u32>, Option<&str>)> {
        let statements = self.log.recording.statements.iter();
        statements.map(|one| (&*one.sql, one.transaction, one.error().map(|error| &*error.code))).collect()
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &[sql.as_bytes(), b"\0"].concat())
}

fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"].concat())
}

fn bind(name: &str, values: &[Option<&str>]) -> Vec<u8> {
    let mut body = [b"\0", name.as_bytes(), b"\0\0\0"].concat();
    body.extend((values.len() as u16).to_be_bytes());
    for value in values {
        body.extend(value.map_or(-1, |value| i32::try_from(value.len()).unwrap()).to_be_bytes());
        body.extend(value.unwrap_or_default().as_bytes());
    }
    body.extend([0, 0]);
    message(b'B', &body)
}

fn execute() -> Vec<u8> {
    message(b'E', b"\0\0\0\0\0")
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', &[tag.as_bytes(), b"\0"].concat())
}

fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

fn error(code: &str) -> Vec<u8> {
    message(b'E', &[b"SERROR\0VERROR\0C", code.as_bytes(), b"\0Mno\0\0"].concat())
}

fn empty(tag: u8) -> Vec<u8> {
    message(tag, b"")
}

#[test]
fn simple_queries_have_the_transaction_that_they_ran_in() {
    let mut played = Played::new();
    for (sql, answers) in [
        ("SELECT 1", vec![complete("SELECT 1"), ready(b'I')]),
        ("BEGIN", vec![complete("BEGIN"), ready(b'T')]),
        ("CREATE TABLE t (a int)", vec![complete("CREATE TABLE"), ready(b'T')]),
        ("COMMIT", vec![complete("COMMIT"), ready(b'I')]),
        ("BEGIN", vec![complete("BEGIN"), ready(b'T')]),
        ("SELECT x", vec![error("42703"), ready(b'E')]),
        ("ROLLBACK", vec![complete("ROLLBACK"), ready(b'I')]),
        ("VACUUM", vec![complete("VACUUM"), ready(b'I')]),
    ] {
        played.client(&[query(sql)]).server(&answers);
    }
    assert_eq!(
        played.seen(),
        [
            ("SELECT 1", None, None),
            ("BEGIN", Some(1), None),
            ("CREATE TABLE t (a int)", Some(1), None),
            ("COMMIT", Some(1), None),
            ("BEGIN", Some(2), None),
            ("SELECT x", Some(2), Some("42703")),
            ("ROLLBACK", Some(2), None),
            ("VACUUM", None, None),
        ]
    );
}

#[test]
fn a_text_with_several_statements_is_one_record() {
    let mut played = Played::new();
    played.client(&[query("SELECT 1; SELECT x; SELECT 2")]);
    played.server(&[complete("SELECT 1"), error("42703"), ready(b'I')]);
    let statement = &played.log.recording.statements[0];
    assert_eq!((statement.completed, statement.error().map(|error| &*error.code)), (1, Some("42703")));
}

#[test]
fn prepared_statements_are_recorded_each_time_that_they_run() {
    let mut played = Played::new();
    played.client(&[parse("s", "INSERT INTO t VALUES ($1)"), message(b'D', b"Ss\0"), sync()]);
    played.server(&[empty(b'1'), message(b't', &[0, 1, 0, 0, 0, 23]), empty(b'n'), ready(b'I')]);
    for value in [Some("7"), None] {
        played.client(&[bind("s", &[value]), execute(), sync()]);
        played.server(&[empty(b'2'), complete("INSERT 0 1"), ready(b'I')]);
    }
    let statements = &played.log.recording.statements;
    let parameters: Vec<_> = statements.iter().map(|statement| statement.parameters.clone()).collect();
    let expected = |length| vec![Parameter { oid: 23, length, value: None }];
    assert_eq!(parameters, [expected(Some(1)), expected(None)]);
    assert!(statements.iter().all(|statement| statement.outcome == Outcome::Done && statement.transaction.is_none()));
}

#[test]
fn values_are_kept_for_the_table_of_the_tool_alone() {
    let mut played = Played::new();
    for sql in ["INSERT INTO migrations VALUES ($1)", "INSERT INTO users VALUES ($1)"] {
        played.client(&[parse("", sql), bind("", &[Some("x")]), execute(), sync()]);
        played.server(&[empty(b'1'), empty(b'2'), complete("INSERT 0 1"), ready(b'I')]);
    }
    let values: Vec<_> = played.log.recording.statements.iter().map(|one| one.parameters[0].value.as_deref()).collect();
    assert_eq!(values, [Some("x"), None]);
}

#[test]
fn an_error_skips_the_rest_of_its_batch() {
    let mut played = Played::new();
    let run = |sql| [parse("", sql), bind("", &[]), execute()].concat();
    played.client(&[run("SELECT 1"), run("SELECT x"), run("SELECT 2"), sync(), run("SELECT 3"), sync()]);
    played.server(&[empty(b'1'), empty(b'2'), complete("SELECT 1"), error("42703"), ready(b'I')]);
    played.server(&[empty(b'1'), empty(b'2'), complete("SELECT 1"), ready(b'I')]);
    assert_eq!(
        played.seen(),
        [
            ("SELECT 1", Some(1), None),
            ("SELECT x", Some(1), Some("42703")),
            ("SELECT 2", Some(1), None),
            ("SELECT 3", None, None)
        ]
    );
    let statements = &played.log.recording.statements;
    assert!(statements[1].error().unwrap().when_prepared);
    assert_eq!((&statements[2].outcome, &statements[3].outcome), (&Outcome::Skipped, &Outcome::Done));
}

#[test]
fn a_statement_that_cannot_be_prepared_is_recorded() {
    let mut played = Played::new();
    played.client(&[parse("", "SELECT x"), message(b'D', b"S\0"), sync()]);
    played.server(&[error("42703"), ready(b'I')]);
    assert_eq!(played.seen(), [("SELECT x", None, Some("42703"))]);
}

#[test]
fn a_pipeline_without_begin_is_one_transaction() {
    let mut played = Played::new();
    let run = |sql| [parse("", sql), bind("", &[]), execute()].concat();
    let answers = || [empty(b'1'), empty(b'2'), complete("UPDATE 1")].concat();
    played.client(&[run("UPDATE a"), run("UPDATE b"), sync(), run("UPDATE c"), sync()]);
    played.server(&[answers(), answers(), ready(b'I'), answers(), ready(b'I')]);
    assert_eq!(played.seen(), [("UPDATE a", Some(1), None), ("UPDATE b", Some(1), None), ("UPDATE c", None, None)]);
}

#[test]
fn further_rows_of_a_portal_are_no_statement() {
    let mut played = Played::new();
    played.client(&[parse("", "SELECT 1"), bind("", &[]), execute(), sync()]);
    played.server(&[empty(b'1'), empty(b'2'), empty(b's'), ready(b'T')]);
    played.client(&[execute(), sync()]).server(&[complete("SELECT 1"), ready(b'T')]);
    assert_eq!(played.seen().len(), 1);
}

#[test]
fn copied_data_are_counted_and_not_kept() {
    let mut played = Played::new();
    played.client(&[query("COPY t FROM STDIN")]).server(&[message(b'G', &[0, 0, 1, 0, 0])]);
    played.client(&[message(b'd', b"secret\n"), message(b'd', b"more\n"), empty(b'c')]);
    played.server(&[complete("COPY 2"), ready(b'I')]);
    let statement = &played.log.recording.statements[0];
    assert_eq!((statement.copied, &statement.outcome), (12, &Outcome::Done));
    assert!(!played.log.recording.to_lines().contains("secret"));
}

#[test]
fn a_server_that_reads_data_ignores_sync() {
    let mut played = Played::new();
    played.client(&[parse("", "COPY t FROM STDIN"), bind("", &[]), execute(), sync()]);
    played.server(&[empty(b'1'), empty(b'2'), message(b'G', &[0, 0, 1, 0, 0])]);
    played.client(&[message(b'd', b"1\n"), sync(), empty(b'c'), sync()]);
    played.server(&[complete("COPY 1"), ready(b'I')]);
    played.client(&[query("SELECT 1")]).server(&[complete("SELECT 1"), ready(b'I')]);
    let outcomes: Vec<_> = played.log.recording.statements.iter().map(|one| (&*one.sql, &one.outcome)).collect();
    assert_eq!(outcomes, [("COPY t FROM STDIN", &Outcome::Done), ("SELECT 1", &Outcome::Done)]);
    assert!(played.session.requests.is_empty());
}

#[test]
fn statements_that_are_described_together_have_their_own_types() {
    let mut played = Played::new();
    let describe = |name: &str| message(b'D', &[b"S", name.as_bytes(), b"\0"].concat());
    let prepare = |name: &str| [parse(name, "INSERT INTO t VALUES ($1)"), describe(name)].concat();
    played.client(&[prepare("a"), prepare("b"), sync()]);
    let answers = |oid| [empty(b'1'), message(b't', &[0, 1, 0, 0, 0, oid]), empty(b'n')].concat();
    played.server(&[answers(23), answers(25), ready(b'I')]);
    played.client(&[bind("a", &[None]), execute(), bind("b", &[None]), execute(), sync()]);
    let oids = played.log.recording.statements.iter().map(|one| one.parameters[0].oid);
    assert_eq!(oids.collect::<Vec<_>>(), [23, 25]);
}

#[test]
fn passwords_are_not_recorded() {
    for (sql, expected) in [
        ("CREATE ROLE app PASSWORD 'hunter2'", "CREATE ROLE app PASSWORD '***'"),
        ("UPDATE users SET password = old_password", "UPDATE users SET password = old_password"),
        ("SELECT dblink_connect('host=h password=hunter2')", "SELECT dblink_connect('host=h password=***')"),
    ] {
        let mut played = Played::new();
        played.client(&[query(sql)]).server(&[complete("CREATE ROLE"), ready(b'I')]);
        played.log.recording.mask();
        assert_eq!(played.seen()[0].0, expected);
    }
}

#[test]
fn nonsense_does_not_panic() {
    let mut played = Played::new();
    for tag in 0..=255 {
        for body in [&b""[..], b"\0", b"S", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"a\0b\0\xff\xff\0\0\x7f\xff\xff\xff"]
        {
            played.client(&[message(tag, body)]).server(&[message(tag, body)]);
        }
    }
}

#[test]
fn what_sql_has_prepared_and_the_protocol_runs_is_recorded() {
    let mut played = Played::new();
    played.client(&[query("PREPARE p AS DELETE FROM orders")]).server(&[complete("PREPARE"), ready(b'I')]);
    let bind = message(b'B', b"\0p\0\0\0\0\0\0\0");
    played.client(&[bind, execute(), sync()]).server(&[empty(b'2'), complete("DELETE 7"), ready(b'I')]);
    let seen: Vec<&str> = played.seen().into_iter().map(|(sql, ..)| sql).collect();
    assert_eq!(seen, ["PREPARE p AS DELETE FROM orders", "EXECUTE p"]);
}
