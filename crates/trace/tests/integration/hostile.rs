//! Migrations that want more than a database: the environment, the network, time, sessions of others.

use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use pgvet_trace::provider::{CloneProvider, Config, Scratch, ScratchOptions, Template, Url};
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::{self, beside_open_transaction};
use pgvet_trace::{Address, Error, Limits, Settings, Trace, run};
use std::io::Write;
use std::time::{Duration, Instant};

fn scratch(major: u8) -> Option<Scratch> {
    testing::binaries(major)?;
    Some(Scratch::new(ScratchOptions { major: Some(major), ..ScratchOptions::default() }))
}

fn traced(provider: &mut dyn CloneProvider, sql: &str, settings: &Settings) -> (Result<Trace, Error>, Vec<String>) {
    let file = parse_file(SourceFile::new("m.sql".to_owned(), sql.to_owned()));
    let migration = Migration { database: 1, ..Migration::new(&file) };
    let mut announced = Vec::new();
    let trace = run(&[migration], provider, settings, &mut |event| {
        if let pgvet_trace::Event::Announcement { text } = event {
            announced.push(text.to_owned());
        }
    });
    (trace, announced)
}

/// A server with a database that has a table.
fn shop(major: u8) -> Option<(Server, Config)> {
    let server = testing::server(major)?;
    server.query("postgres", "CREATE DATABASE shop").expect("it answers");
    server.query("shop", "CREATE TABLE orders (id int PRIMARY KEY)").expect("it answers");
    let config = server.config("shop");
    Some((server, config))
}

/// Fails unless the output of a shell command on the server is as expected.
fn on_server(command: &str, condition: &str) -> String {
    format!(
        "CREATE TABLE said (line text); COPY said FROM PROGRAM '{command}'; \
         DO $$ BEGIN IF NOT ({condition}) THEN RAISE '%', (SELECT string_agg(line, ', ') FROM said); END IF; END $$"
    )
}

#[test]
fn a_server_knows_nothing_of_our_environment() {
    let Some(mut provider) = scratch(18) else { return };
    // Cargo sets it for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let names = "SELECT count(*) = 0 FROM said WHERE line !~ \
                 ''^(PATH|LC_|TZ|HOME|PWD|SHLVL|_|OLDPWD|PG|LD_LIBRARY_PATH|LANG)''";
    let sql = on_server("env | grep =", &format!("({})", names.replace("''", "'")));
    let (trace, _) = traced(&mut provider, &sql, &Settings::default());
    let trace = trace.unwrap();
    assert!(trace.migrations[0].failure().is_none(), "{:?}", trace.migrations[0].failure());
}

#[test]
#[cfg(target_os = "linux")]
fn no_program_reads_our_environment() {
    let Some(mut provider) = scratch(18) else { return };
    let environment = format!("/proc/{}/environ", std::process::id());
    let read = format!("tr \"\\0\" \"\\n\" < {environment} 2> /dev/null | grep -c ^CARGO_MANIFEST_DIR=; true");
    let (trace, _) = traced(&mut provider, &on_server(&read, "(SELECT line = '0' FROM said)"), &Settings::default());
    let trace = trace.unwrap();
    assert!(trace.migrations[0].failure().is_none(), "{:?}", trace.migrations[0].failure());
}

/// SQL may run programs as the user of the server, who may not read what pgvet may read.
#[test]
#[cfg(target_os = "linux")]
fn the_log_of_a_server_cannot_be_replaced() {
    let Some(mut provider) = scratch(18) else { return };
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    secret.write_all(b"for pgvet alone").unwrap();
    let replace = format!("cd ..; rm -f log; ln -s {} log", secret.path().display());
    let end = "kill -QUIT $(head -1 data/postmaster.pid); sleep 0.2; kill -QUIT 1; sleep 10";
    let sql = format!("CREATE TABLE said (line text); COPY said FROM PROGRAM '{replace}; {end}';");
    let said = match traced(&mut provider, &sql, &Settings::default()).0 {
        Ok(trace) => format!("{:?}", trace.migrations[0].failure()),
        Err(error) => error.to_string(),
    };
    assert!(said.contains("its log says: ") && !said.contains("for pgvet alone"), "{said}");
}

#[test]
fn a_server_has_no_network_where_the_system_lets_it_have_its_own() {
    [14, 18].into_iter().for_each(has_no_network);
}

fn has_no_network(major: u8) {
    let Some(mut provider) = scratch(major) else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("bash -c \"exec 3<>/dev/tcp/127.0.0.1/{port}\" 2>&1 | head -n 1");
    let (trace, announced) = traced(&mut provider, &on_server(&connect, "true"), &Settings::default());
    trace.unwrap();
    let reached = listener.accept().is_ok();
    let is_said = announced.iter().any(|text| text.contains("not cut off from the network"));
    assert_eq!(reached, is_said, "what holds is said: {announced:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn no_program_outlives_a_trace_where_the_system_lets_the_server_have_its_own_processes() {
    for (major, seconds) in [(14, 86_414), (18, 86_418)] {
        let Some(mut provider) = scratch(major) else { return };
        // It leaves the process group and the session, and holds nothing of the server.
        let start = format!("setsid sleep {seconds} < /dev/null > /dev/null 2>&1 & echo started");
        let (trace, announced) = traced(&mut provider, &on_server(&start, "true"), &Settings::default());
        assert!(trace.unwrap().migrations[0].failure().is_none());
        let is_said = announced.iter().any(|text| text.contains("can outlive the trace"));
        let left = processes_with(&format!("sleep\0{seconds}\0"));
        assert_eq!(!left.is_empty(), is_said, "what holds is said: {announced:?}");
        for pid in left {
            std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
        }
    }
}

/// The numbers of the processes with this command line.
#[cfg(target_os = "linux")]
fn processes_with(command: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_it =
        |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == command);
    processes.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(is_it).collect()
}

#[test]
fn a_limit_of_time_cannot_be_caught() {
    let Some(mut provider) = scratch(18) else { return };
    let endless =
        "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$";
    let begun = Instant::now();
    let settings = Settings { statement_timeout: Some(Duration::from_millis(200)), ..Settings::default() };
    let (trace, _) = traced(&mut provider, endless, &settings);
    assert!(trace.is_err() || trace.unwrap().migrations[0].failure().is_some());
    let limits = Limits { time: Some(Duration::from_secs(3)), ..Limits::default() };
    let (trace, _) = traced(&mut scratch(18).unwrap(), endless, &Settings { limits, ..Settings::default() });
    assert!(trace.unwrap_err().message.contains("its time limit"));
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn sessions_that_a_role_may_not_look_into_are_counted() {
    let Some((server, config)) = shop(18) else { return };
    let role =
        "CREATE ROLE migrator LOGIN; ALTER TABLE orders OWNER TO migrator; GRANT ALL ON SCHEMA public TO migrator";
    server.query("shop", role).unwrap();
    let mut config = config.clone();
    config.user("migrator");
    let address = Address::try_from(config).unwrap();
    beside_open_transaction(&server, "shop", "SELECT FROM orders", || {
        let (trace, _) = traced(&mut Url::new(address.clone()), "DROP TABLE orders", &Settings::default());
        assert!(trace.unwrap_err().message.contains("another session uses the database"));
    });
    let (trace, announced) =
        traced(&mut Url::new(address), "ALTER TABLE orders ADD COLUMN b int", &Settings::default());
    assert!(trace.unwrap().migrations[0].failure().is_none());
    assert_eq!(announced, [""; 0]);
}

#[test]
fn a_session_that_calls_itself_pgvet_is_counted() {
    let Some((server, config)) = shop(18) else { return };
    let address = Address::try_from(config).unwrap();
    beside_open_transaction(&server, "shop", "SET application_name = 'pgvet:provider'", || {
        let (trace, _) = traced(&mut Url::new(address), "DROP TABLE orders", &Settings::default());
        assert!(trace.unwrap_err().message.contains("another session uses the database"));
    });
}

#[test]
fn what_a_superuser_can_do_beyond_the_database_is_announced() {
    let Some((_server, config)) = shop(18) else { return };
    let address = Address::try_from(config).unwrap();
    let (_, announced) = traced(&mut Url::new(address), "SELECT 1", &Settings::default());
    assert!(announced.len() == 1 && announced[0].contains("can change more than one database"), "{announced:?}");
}

#[test]
fn what_a_shared_server_would_keep_is_refused_unless_it_is_allowed() {
    let Some((server, config)) = shop(18) else { return };
    let address = Address::try_from(config).unwrap();
    let kept = || server.query("postgres", "SELECT FROM pg_roles WHERE rolname LIKE 'evil%'").unwrap().len();
    for sql in [
        "CREATE ROLE evil1 SUPERUSER",
        "DO $$ BEGIN EXECUTE 'CREATE ROLE evil2'; END $$",
        "ALTER SYSTEM SET work_mem = '1GB'",
        "COPY (SELECT 1) TO PROGRAM 'cat'",
        "COPY (SELECT 1) TO '/tmp/evil'",
        "CREATE DATABASE evil",
        "SELECT 1; GRANT pg_read_all_data TO postgres",
        "GRANT ALTER SYSTEM ON PARAMETER work_mem TO postgres",
        "CREATE TABLE t (a text CHECK (pg_read_file('PG_VERSION') <> a))",
        "CREATE FUNCTION f() RETURNS bool LANGUAGE plpgsql AS 'BEGIN CREATE ROLE evil1; RETURN true; END'; \
         CREATE TABLE t (a int CHECK (f())); INSERT INTO t VALUES (1)",
        "DO $$ BEGIN EXECUTE 'CREATE FUNCTION f() RETURNS event_trigger LANGUAGE plpgsql AS ''BEGIN CREATE ROLE evil2; \
         END'''; CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION f(); END $$",
    ] {
        let mut providers: [Box<dyn CloneProvider>; 2] =
            [Box::new(Url::new(address.clone())), Box::new(Template::new(address.clone()))];
        for provider in &mut providers {
            let (trace, _) = traced(provider.as_mut(), sql, &Settings::default());
            let error = trace.expect_err(sql);
            assert!(error.message.contains("more of this server than one database: m.sql:1:"), "{}", error.message);
            assert!(error.help.unwrap().contains("--allow-server-changes"));
        }
    }
    assert_eq!(kept(), 0);
    let allowed = Settings { allow_server_changes: true, ..Settings::default() };
    let (trace, announced) = traced(&mut Url::new(address), "CREATE ROLE evil3", &allowed);
    assert!(trace.unwrap().migrations[0].failure().is_none());
    assert!(kept() == 1 && announced.len() == 1, "{announced:?}");
    // Nobody else uses a private server.
    let (trace, _) = traced(&mut scratch(18).unwrap(), "CREATE ROLE evil4", &Settings::default());
    assert!(trace.unwrap().migrations[0].failure().is_none());
}

#[test]
fn a_role_that_can_get_more_rights_is_announced() {
    let Some((server, config)) = shop(18) else { return };
    let roles = "CREATE ROLE dba SUPERUSER; CREATE ROLE team; GRANT dba TO team; CREATE ROLE shared; \
        CREATE ROLE passes_on LOGIN; GRANT shared TO passes_on WITH ADMIN OPTION; \
        CREATE ROLE becomes LOGIN NOINHERIT; GRANT team TO becomes; \
        CREATE ROLE sets LOGIN; GRANT ALTER SYSTEM ON PARAMETER work_mem TO sets; \
        CREATE ROLE plain LOGIN; GRANT shared TO plain";
    server.query("shop", roles).unwrap();
    for (role, count) in [("passes_on", 1), ("becomes", 1), ("sets", 1), ("plain", 0)] {
        let mut config = config.clone();
        config.user(role);
        let mut provider = Url::new(Address::try_from(config).unwrap());
        let (_, announced) = traced(&mut provider, "SELECT 1", &Settings::default());
        let expected = announced.iter().all(|note| note.contains("can change more than one database"));
        assert!(announced.len() == count && expected, "{role}: {announced:?}");
    }
}

/// The rows of foreign tables are those of another server, which no copy of a database has.
#[test]
fn rows_of_another_server_are_not_changed() {
    let Some((server, config)) = shop(18) else { return };
    server.query("postgres", "CREATE TABLE elsewhere (id int)").unwrap();
    let loopback = format!("host '{}', port '{}', dbname 'postgres'", server.socket().display(), config.get_ports()[0]);
    let foreign = format!(
        "CREATE EXTENSION postgres_fdw; CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({loopback}); \
         CREATE USER MAPPING FOR PUBLIC SERVER s OPTIONS (user 'postgres'); \
         CREATE FOREIGN TABLE elsewhere (id int) SERVER s"
    );
    server.query("shop", &foreign).unwrap();
    let made =
        "CREATE FOREIGN TABLE made (id int) SERVER s OPTIONS (table_name 'elsewhere'); INSERT INTO made VALUES (1)";
    let traced = |sql: &str, allow_server_changes: bool| {
        let settings = Settings { allow_server_changes, ..Settings::default() };
        traced(&mut Template::new(Address::try_from(config.clone()).unwrap()), sql, &settings)
    };
    let count = || server.query("postgres", "SELECT count(*) FROM elsewhere").unwrap()[0][0].clone();
    for sql in ["INSERT INTO elsewhere VALUES (1)", "TRUNCATE elsewhere", made] {
        let (trace, announced) = traced(sql, false);
        let refused = trace.unwrap_err().message;
        assert!(refused.contains("would change more of this server than one database"), "{sql}: {refused}");
        assert!(
            announced.iter().any(|note| note.starts_with("`public.elsewhere` is a foreign table")),
            "{announced:?}"
        );
    }
    assert_eq!(count().as_deref(), Some("0"));
    traced("INSERT INTO orders VALUES (1)", false).0.unwrap();
    traced("INSERT INTO elsewhere VALUES (1)", true).0.unwrap();
    assert_eq!(count().as_deref(), Some("1"));
}

#[test]
fn passwords_are_not_reported() {
    let Some(mut provider) = scratch(18) else { return };
    let (trace, _) = traced(&mut provider, "CREATE ROLE a PASSWORD 'hunter2'", &Settings::default());
    assert_eq!(trace.unwrap().migrations[0].statements[0].sql, "CREATE ROLE a PASSWORD '***'");
}
