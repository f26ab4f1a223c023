//! Runs of `pgvet capture` whose command is the test program itself: its ignored test [`client`] plays a migration tool.

use crate::support::{Folder, Transcript, transcript};
use tokio_postgres::{Config, NoTls};

/// The variable with what the client sends: one text per line, after `prepared:` as a prepared statement with [`VALUE`].
pub(crate) const SCRIPT: &str = "PGVET_TEST_SCRIPT";

/// The variable with the database that the client asks for, whatever the environment names.
pub(crate) const DATABASE: &str = "PGVET_TEST_DATABASE";

/// The variable that makes the client try another password, too.
pub(crate) const GUESS: &str = "PGVET_TEST_GUESS";

/// The value of the parameters of prepared statements.
pub(crate) const VALUE: &str = "secret";

/// The table of the tool.
pub(crate) const TABLE: &str = "CREATE TABLE knex_migrations (id serial, name text, batch int)";

/// The sources of two migrations, the second of which builds an index.
pub(crate) const FILES: [(&str, &str); 2] = [
    ("migrations/1_users.js", "exports.up = (knex) =>\n  knex.raw('CREATE TABLE users (id int, email text)');\n"),
    ("migrations/2_email.js", "exports.up = (knex) =>\n  knex.raw('CREATE INDEX users_email ON users (email)');\n"),
];

/// What is found in the second one.
pub(crate) const FINDING: &str = "migrations/2_email.js:2:1: error[index-without-concurrently]";

/// The row with which the tool records a migration.
pub(crate) fn row(name: &str) -> String {
    format!("INSERT INTO knex_migrations (name, batch) VALUES ('{name}', 1)")
}

/// Plays a migration tool, for the tests: it is run as a program of its own.
#[test]
#[ignore = "a program for the other tests"]
fn client() {
    let url = std::env::var("DATABASE_URL").unwrap();
    assert!(!url.contains("geheim"), "the password of the database is not for the command");
    let mut config: Config = url.parse().unwrap();
    if let Ok(name) = std::env::var(DATABASE) {
        config.dbname(name);
    }
    send_script(&config);
    if std::env::var_os(GUESS).is_some() {
        // Nobody else may use the clone.
        config.password("guessed");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = runtime.block_on(config.connect(NoTls)).map(drop);
        assert_eq!(refused.unwrap_err().code().unwrap().code(), "28P01");
    }
}

/// Sends the script of the environment to a database, as a migration tool does.
fn send_script(config: &Config) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let script = std::env::var(SCRIPT).unwrap();
        let (client, connection) = config.connect(NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        for line in script.lines() {
            match line.strip_prefix("prepared:") {
                Some(sql) => drop(client.execute(sql, &[&VALUE]).await.unwrap()),
                None => client.batch_execute(line).await.unwrap(),
            }
        }
        drop(client);
        connection.await.unwrap().unwrap();
    });
}

/// The program and the arguments that run the client.
pub(crate) fn command() -> Vec<String> {
    let program = std::env::current_exe().unwrap().display().to_string();
    [&program, "support::capturing::client", "--exact", "--ignored", "--nocapture"].map(str::to_owned).to_vec()
}

/// Captures what the client sends.
pub(crate) fn capture(folder: &Folder, options: &[&str], script: &[&str], env: &[(&str, &str)]) -> Transcript {
    let command = command();
    let mut args = vec!["capture", "--format", "concise"];
    args.extend(options);
    args.push("--");
    args.extend(command.iter().map(String::as_str));
    let script = script.join("\n");
    let said = transcript(&folder.output(&args, b"", &[&[(SCRIPT, script.as_str())], env].concat()));
    assert!(!said.contains("pgvet-capture-"), "a temporary folder is named: {said}");
    said
}

#[track_caller]
pub(crate) fn assert_has(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "`{part}` is missing:\n{said}");
    }
}
