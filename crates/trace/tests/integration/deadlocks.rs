//! Deadlocks of a migration with the application, as `inconsistent-lock-order` reports them: two sessions on real servers
//! run both in every order, and deadlock if and only if the rule says so.

use pgvet_linter::check::check;
use pgvet_linter::confidence::Confidence;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::settings::Settings;
use pgvet_model::application::{Application, KnownStatement, KnownTransaction};
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::server;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A migration in one transaction, and one transaction of the application.
struct Case {
    name: &'static str,
    schema: &'static str,
    migration: &'static [&'static str],
    application: &'static [&'static str],
    /// Whether the project shows the queries of the application.
    known: bool,
    /// `None` if the two cannot deadlock.
    reported: Option<Confidence>,
}

const ORDERS: &str = "CREATE TABLE customers (id bigint PRIMARY KEY, name text);
    CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint REFERENCES customers, total int);
    INSERT INTO customers VALUES (1, 'a'), (2, 'b'); INSERT INTO orders VALUES (1, 1, 10)";
const ACCOUNTS: &str = "CREATE TABLE accounts (id bigint PRIMARY KEY, total int);
    CREATE TABLE payments (id bigint PRIMARY KEY, account bigint, sum int);
    INSERT INTO accounts VALUES (1, 0); INSERT INTO payments VALUES (1, 1, 5)";
const PAY: &[&str] = &["UPDATE payments SET sum = 6 WHERE id = 1", "UPDATE accounts SET total = 6 WHERE id = 1"];
const COUNTED: &str = "CREATE TABLE counters (id int PRIMARY KEY, n int); CREATE TABLE items (id int);
    INSERT INTO counters VALUES (1, 0);
    CREATE FUNCTION count_item() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN UPDATE counters SET n = n + 1 WHERE id = 1; RETURN NULL; END $$;
    CREATE TRIGGER count_item AFTER INSERT ON items FOR EACH ROW EXECUTE FUNCTION count_item()";
const VIEW: &str =
    "CREATE TABLE users (id int PRIMARY KEY, name text); CREATE VIEW names AS SELECT id, name FROM users;
    INSERT INTO users VALUES (1, 'a')";
const LINES: &str = "CREATE TABLE products (id int PRIMARY KEY); CREATE TABLE baskets (id int PRIMARY KEY);
    CREATE TABLE lines (basket int REFERENCES baskets, product int REFERENCES products);
    INSERT INTO products VALUES (1); INSERT INTO baskets VALUES (1)";
const PLACE: &str = "CREATE TABLE accounts (id bigint PRIMARY KEY, total int);
    CREATE TABLE payments (id bigint PRIMARY KEY, account bigint, sum int);
    INSERT INTO accounts VALUES (1, 0); INSERT INTO payments VALUES (1, 1, 5);
    CREATE FUNCTION pay(wanted bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        UPDATE payments SET sum = 6 WHERE id = wanted;
        UPDATE accounts SET total = 6 WHERE id = wanted;
    END $$";

const LOGINS: &str =
    "CREATE TABLE users (id int PRIMARY KEY); CREATE TABLE audit (id int); INSERT INTO users VALUES (1);
    CREATE TABLE logins (id int, user_id int REFERENCES users DEFERRABLE INITIALLY DEFERRED)";
/// The last statement checks foreign keys as COMMIT does.
const LOG_IN: &[&str] =
    &["INSERT INTO logins VALUES (1, 1)", "INSERT INTO audit VALUES (1)", "SET CONSTRAINTS ALL IMMEDIATE"];

const LIKELY: Option<Confidence> = Some(Confidence::Likely);
const POSSIBLE: Option<Confidence> = Some(Confidence::Possible);

const CASES: &[Case] = &[
    Case {
        name: "the referenced table first",
        schema: ORDERS,
        migration: &["ALTER TABLE customers ADD a int", "ALTER TABLE orders ADD a int"],
        application: &["INSERT INTO orders VALUES (2, 1, 20)"],
        known: false,
        reported: POSSIBLE,
    },
    Case {
        name: "the referencing table first, and an INSERT",
        schema: ORDERS,
        migration: &["ALTER TABLE orders ADD a int", "ALTER TABLE customers ADD a int"],
        application: &["INSERT INTO orders VALUES (2, 1, 20)"],
        known: false,
        // A DELETE could.
        reported: POSSIBLE,
    },
    Case {
        name: "the referencing table first, and a DELETE",
        schema: ORDERS,
        migration: &["ALTER TABLE orders ADD a int", "ALTER TABLE customers ADD a int"],
        application: &["DELETE FROM customers WHERE id = 2"],
        known: false,
        reported: POSSIBLE,
    },
    Case {
        name: "a lock that leaves the referenced table readable",
        schema: ORDERS,
        migration: &["CREATE INDEX ON customers (name)", "ALTER TABLE orders ADD a int"],
        application: &["INSERT INTO orders VALUES (2, 1, 20)"],
        known: false,
        reported: None,
    },
    Case {
        name: "ALTER, UPDATE, ALTER",
        schema: ACCOUNTS,
        migration: &[
            "ALTER TABLE accounts ADD a int",
            "UPDATE accounts SET a = total",
            "ALTER TABLE payments ADD a int",
        ],
        application: PAY,
        known: true,
        reported: LIKELY,
    },
    Case {
        name: "ALTER, UPDATE, ALTER in the order of the application",
        schema: ACCOUNTS,
        migration: &[
            "ALTER TABLE payments ADD a int",
            "ALTER TABLE accounts ADD a int",
            "UPDATE accounts SET a = total",
        ],
        application: PAY,
        known: true,
        reported: None,
    },
    Case {
        name: "the lock first",
        schema: ACCOUNTS,
        migration: &[
            "LOCK TABLE payments IN ACCESS EXCLUSIVE MODE",
            "ALTER TABLE accounts ADD a int",
            "UPDATE accounts SET a = total",
            "ALTER TABLE payments ADD a int",
        ],
        application: PAY,
        known: true,
        reported: None,
    },
    Case {
        name: "rows first",
        schema: ACCOUNTS,
        migration: &["UPDATE accounts SET total = total + 1", "ALTER TABLE payments ADD a int"],
        application: PAY,
        known: true,
        reported: LIKELY,
    },
    Case {
        name: "an upgrade",
        schema: ACCOUNTS,
        migration: &["CREATE INDEX ON accounts (total)", "ALTER TABLE accounts ADD a int"],
        application: &["SELECT total FROM accounts WHERE id = 1", "UPDATE accounts SET total = 6 WHERE id = 1"],
        known: true,
        reported: LIKELY,
    },
    Case {
        name: "an upgrade, and a write alone",
        schema: ACCOUNTS,
        migration: &["CREATE INDEX ON accounts (total)", "ALTER TABLE accounts ADD a int"],
        application: &["UPDATE accounts SET total = 6 WHERE id = 1"],
        known: true,
        reported: None,
    },
    Case {
        name: "a trigger",
        schema: COUNTED,
        migration: &["ALTER TABLE counters ADD a int", "ALTER TABLE items ADD a int"],
        application: &["INSERT INTO items VALUES (1)"],
        known: false,
        reported: POSSIBLE,
    },
    Case {
        name: "the table of the trigger first",
        schema: COUNTED,
        migration: &["ALTER TABLE items ADD a int", "ALTER TABLE counters ADD a int"],
        application: &["INSERT INTO items VALUES (1)"],
        known: false,
        reported: None,
    },
    Case {
        name: "a view after its table",
        schema: VIEW,
        migration: &["ALTER TABLE users ADD a int", "CREATE OR REPLACE VIEW names AS SELECT id, name, a FROM users"],
        application: &["SELECT * FROM names"],
        known: false,
        reported: POSSIBLE,
    },
    Case {
        name: "a view before its table",
        schema: VIEW,
        migration: &["DROP VIEW names", "ALTER TABLE users ADD a int", "CREATE VIEW names AS SELECT id, a FROM users"],
        application: &["SELECT * FROM names"],
        known: false,
        reported: None,
    },
    Case {
        name: "two tables that a third one refers to",
        schema: LINES,
        migration: &["ALTER TABLE products ADD a int", "ALTER TABLE baskets ADD a int"],
        application: &["INSERT INTO lines VALUES (1, 1)"],
        known: false,
        reported: POSSIBLE,
    },
    Case {
        name: "two tables that a third one refers to, in the order of the keys",
        schema: LINES,
        migration: &["ALTER TABLE baskets ADD a int", "ALTER TABLE products ADD a int"],
        application: &["INSERT INTO lines VALUES (1, 1)"],
        known: false,
        reported: None,
    },
    Case {
        name: "a function",
        schema: PLACE,
        migration: &["ALTER TABLE accounts ADD a int", "ALTER TABLE payments ADD a int"],
        application: &["SELECT pay(1)"],
        known: false,
        // Nothing shows that the application calls it.
        reported: POSSIBLE,
    },
    Case {
        name: "a new foreign key",
        schema: ACCOUNTS,
        migration: &["ALTER TABLE accounts ADD CONSTRAINT k FOREIGN KEY (id) REFERENCES payments NOT VALID"],
        application: PAY,
        known: true,
        reported: LIKELY,
    },
    Case {
        name: "a join",
        schema: ACCOUNTS,
        migration: &["ALTER TABLE accounts ADD a int", "ALTER TABLE payments ADD a int"],
        application: &["SELECT * FROM payments JOIN accounts ON accounts.id = account"],
        known: true,
        reported: POSSIBLE,
    },
    Case {
        name: "a join in the same order",
        schema: ACCOUNTS,
        migration: &["ALTER TABLE payments ADD a int", "ALTER TABLE accounts ADD a int"],
        application: &["SELECT * FROM payments JOIN accounts ON accounts.id = account"],
        known: true,
        reported: None,
    },
    Case {
        name: "a deferred foreign key",
        schema: LOGINS,
        migration: &["ALTER TABLE users ADD a int", "ALTER TABLE audit ADD a int"],
        application: LOG_IN,
        known: true,
        reported: LIKELY,
    },
    Case {
        name: "a deferred foreign key in the order of the application",
        schema: LOGINS,
        migration: &["ALTER TABLE audit ADD a int", "ALTER TABLE users ADD a int"],
        application: LOG_IN,
        known: true,
        reported: None,
    },
];

fn parsed(path: &str, text: String) -> ParsedFile {
    parse_file(SourceFile::new(path.to_owned(), text))
}

fn known(statements: &[&str]) -> KnownTransaction {
    let known = |(at, sql): (usize, &&str)| {
        let file = parsed("w.sql", (*sql).to_owned());
        let ast = file.statements[0].parsed.clone().unwrap();
        KnownStatement { place: format!("w.sql:{}", at + 1).into(), sql: (*sql).into(), ast }
    };
    KnownTransaction::new(statements.iter().enumerate().map(known).collect(), None)
}

fn found(case: &Case) -> Vec<Diagnostic> {
    let schema = parsed("1.sql", case.schema.to_owned());
    let migration = parsed("2.sql", case.migration.join(";\n"));
    let mut application = Application::default();
    application.transactions.extend(case.known.then(|| known(case.application)));
    let settings = Settings {
        confidence: Confidence::Possible,
        only: vec!["inconsistent-lock-order".to_owned()],
        application: application.into(),
        ..Settings::default()
    };
    let history = Migration { report: false, database: 1, ..Migration::new(&schema) };
    let migration = Migration { database: 1, transaction: TransactionMode::Transaction, ..Migration::new(&migration) };
    check(&[history, migration], &settings)
}

#[test]
fn the_rule_reports_what_can_deadlock() {
    let reported = |case: &Case| found(case).iter().map(|found| found.confidence).max();
    let wrong: Vec<_> = CASES.iter().map(|case| (case.name, case.reported, reported(case))).collect();
    let wrong: Vec<_> = wrong.into_iter().filter(|(_, expected, reported)| expected != reported).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Runs commands one by one in a transaction that it rolls back, each on a signal, and returns whether PostgreSQL has
/// cancelled one because of a deadlock.
struct Session {
    go: mpsc::UnboundedSender<()>,
    done: mpsc::UnboundedReceiver<()>,
    task: JoinHandle<bool>,
    left: usize,
}

/// How long a command may take that waits for no lock.
const SHORT: Duration = Duration::from_millis(80);

impl Session {
    async fn start(server: &Server, commands: &'static [&'static str]) -> Self {
        let (go, mut told) = mpsc::unbounded_channel();
        let (say, done) = mpsc::unbounded_channel();
        let (client, connection) = server.config("shop").connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("SET deadlock_timeout = '20ms'; BEGIN").await.unwrap();
        let task = tokio::spawn(async move {
            let mut deadlocked = false;
            for command in commands {
                if told.recv().await.is_none() {
                    break;
                }
                let result = client.batch_execute(command).await;
                let code = result.err().and_then(|error| error.code().cloned());
                let _ = say.send(());
                if let Some(code) = code {
                    assert_eq!(code, tokio_postgres::error::SqlState::T_R_DEADLOCK_DETECTED, "{command}");
                    deadlocked = true;
                    break;
                }
            }
            client.batch_execute("ROLLBACK").await.unwrap();
            deadlocked
        });
        Self { go, done, task, left: commands.len() }
    }

    /// Lets the session run so many commands, and waits until they are done, or wait for the other session.
    async fn run(&mut self, count: usize) {
        for _ in 0..count.min(self.left) {
            self.left -= 1;
            let _ = self.go.send(());
            let _ = tokio::time::timeout(SHORT, self.done.recv()).await;
        }
    }

    async fn finish(mut self) -> bool {
        while self.left > 0 {
            self.left -= 1;
            let _ = self.go.send(());
        }
        self.task.await.unwrap()
    }
}

/// Whether the sessions deadlock if the migration has run some of its commands when the application goes on.
async fn deadlock(server: &Server, case: &Case) -> bool {
    // A statement can also wait in its midst.
    for ours in 0..=case.migration.len() {
        for theirs in 0..case.application.len() {
            let mut migration = Session::start(server, case.migration).await;
            let mut application = Session::start(server, case.application).await;
            application.run(theirs).await;
            migration.run(ours).await;
            application.run(case.application.len() - theirs).await;
            let (migration, application) = tokio::join!(migration.finish(), application.finish());
            if migration || application {
                return true;
            }
        }
    }
    false
}

#[test]
fn sessions_deadlock_as_the_rule_says() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for major in [14, 18] {
        let Some(server) = server(major) else { continue };
        for case in CASES {
            server.query("postgres", "DROP DATABASE IF EXISTS shop").unwrap();
            server.query("postgres", "CREATE DATABASE shop").unwrap();
            server.query("shop", case.schema).unwrap();
            let expected = match case.reported {
                // Reported for the DELETE of the other case.
                Some(Confidence::Possible) if case.name.ends_with("an INSERT") => false,
                reported => reported.is_some(),
            };
            let deadlocked = runtime.block_on(deadlock(&server, case));
            assert_eq!(deadlocked, expected, "PostgreSQL {major}, {}", case.name);
        }
    }
}
