//! `pgvet trace`, as a user runs it.

use crate::support::runs::{folder, private_folder, start};
use crate::support::transcript;
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::{server, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const AUTOCOMMIT: (&str, &str) = ("pgvet.toml", "[migrations]\ntransaction = \"autocommit\"\n");

const ORDERS: (&str, &str) = (
    "m/1_orders.sql",
    "CREATE TABLE users (id serial PRIMARY KEY, email text NOT NULL UNIQUE);\n\
     CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id int NOT NULL REFERENCES users, \
     state varchar(10) NOT NULL CHECK (state IN ('new', 'paid')), rating int CHECK (rating BETWEEN 1 AND 5), \
     code char(12) UNIQUE, made timestamptz DEFAULT now());\n",
);

#[test]
fn a_limit_that_is_exceeded_makes_the_exit_status_1() {
    let Some(folder) = folder(&[ORDERS, ("m/2_index.sql", "CREATE INDEX orders_made ON orders (made);\n")]) else {
        return;
    };
    let args = ["trace", "m/2_index.sql", "--history", "m", "--pg-version", "18", "--rows", "orders=100k"];
    let said = folder.run(&[&args[..], &["--max-held", "share=1ms"]].concat());
    assert!(said.starts_with("exit 1\n"), "{said}");
    for part in
        ["public.orders  SHARE", "blocks writes", "100000 rows", "limit share=1.0 ms", "every prediction matched"]
    {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    let said = folder.run(&[&args[..], &["--max-held", "access-exclusive=1ms,share=1min"]].concat());
    assert!(said.starts_with("exit 0\n"), "{said}");
}

#[test]
fn generated_rows_satisfy_the_constraints() {
    let check = "DO $$ DECLARE made text := (SELECT ROW(count(*), count(DISTINCT user_id), count(DISTINCT code), \
                 min(rating), max(rating), max(id), count(DISTINCT state)) FROM orders); BEGIN \
                 IF made <> '(5000,1000,5000,1,5,5000,2)' THEN RAISE EXCEPTION '%', made; END IF; END $$;\n\
                 INSERT INTO orders (user_id, state) VALUES (1, 'new');";
    let Some(folder) = folder(&[ORDERS, ("m/2_check.sql", check)]) else { return };
    let said = folder.run(&["trace", "m/2_check.sql", "--history", "m", "--rows", "orders=5000"]);
    assert!(said.starts_with("exit 0\n"), "{said}");
}

#[test]
fn the_document_has_the_documented_fields() {
    let Some(folder) = folder(&[ORDERS, ("m/2_type.sql", "ALTER TABLE orders ALTER rating TYPE bigint;\n")]) else {
        return;
    };
    let document = folder.json(&["trace", "m/2_type.sql", "--history", "m", "--pg-version", "18"]);
    assert_eq!(
        (&document["schema_version"], &document["pg_version"], &document["provider"]),
        (&1.into(), &18.into(), &"scratch".into())
    );
    let migration = &document["migrations"][0];
    assert_eq!(
        (&migration["path"], &migration["outcome"], &migration["xids"]),
        (&"m/2_type.sql".into(), &"ok".into(), &1.into())
    );
    for field in ["wal_bytes", "subtransactions", "catalog_rows", "tables"] {
        assert!(!migration[field].is_null(), "{field}");
    }
    let statement = &migration["statements"][0];
    assert_eq!(statement["rewrites"], serde_json::json!(["public.orders"]));
    assert_eq!(statement["range"]["start"]["line"], 1);
    let lock = &statement["locks"][0];
    assert_eq!((&lock["relation"], &lock["mode"]), (&"public.orders".into(), &"AccessExclusive".into()));
    assert_eq!(lock["blocks"], serde_json::json!(["reads", "row-locks", "writes", "ddl"]));
    let held = |field: &str| lock[field].as_f64().unwrap();
    assert!(held("held_ms_low") <= held("held_ms") && held("held_ms") <= held("held_ms_high"));
    assert_eq!(document["model_differences"], serde_json::json!([]));
}

/// `(rule, line, evidence)` of each finding.
fn findings(document: &Value) -> Vec<(String, i64, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let finding = |found: &Value| {
        (text(&found["rule"]), found["range"]["start"]["line"].as_i64().unwrap(), text(&found["evidence"]))
    };
    document["diagnostics"].as_array().unwrap().iter().map(finding).collect()
}

const INDEXES: &str = "CREATE INDEX orders_made ON orders (made);\n\
    DO $$ BEGIN EXECUTE convert_from('\\x43524541544520494e4445582069204f4e206f72646572732028726174696e6729', 'UTF8'); END $$;\n\
    CREATE INDEX IF NOT EXISTS there_already ON orders (user_id);\n\
    -- pgvet: ignore[index-without-concurrently] it is small\n\
    CREATE INDEX orders_state ON orders (state);\n";

const THERE_ALREADY: (&str, &str) = (
    "m/2_there.sql",
    "DO $$ BEGIN EXECUTE convert_from('\\x43524541544520494e4445582074686572655f616c7265616479204f4e206f72646572732028757365725f696429', 'UTF8'); END $$;\n",
);

#[test]
fn rules_judge_what_was_seen() {
    let Some(folder) = folder(&[ORDERS, THERE_ALREADY, ("m/3_indexes.sql", INDEXES)]) else { return };
    let checked = folder.run(&[
        "check",
        "m/3_indexes.sql",
        "--history",
        "m",
        "--only",
        "index-without-concurrently",
        "--format",
        "concise",
    ]);
    let lines = |said: &str| said.lines().filter(|line| line.contains("[index-without-concurrently]")).count();
    assert_eq!(lines(&checked), 2, "the prediction knows lines 1 and 3:\n{checked}");
    let args = ["trace", "m/3_indexes.sql", "--history", "m", "--pg-version", "18", "--rows", "orders=1000"];
    let found = findings(&folder.json(&args));
    let builds: Vec<_> = found.iter().filter(|(rule, ..)| rule == "index-without-concurrently").collect();
    let expected = [1, 2].map(|line| ("index-without-concurrently".to_owned(), line, "observed".to_owned()));
    assert_eq!(builds, expected.iter().collect::<Vec<_>>(), "{found:?}");
    let said = folder.run(&args);
    assert!(said.starts_with("exit 0\n"), "{said}");
    assert!(said.contains("error   index-without-concurrently: building this index blocks all writes"), "{said}");
    assert!(said.contains("help: ") && said.contains("errors"), "{said}");
    let said =
        folder.run(&[&args[..], &["--fail-on", "error", "--format", "markdown", "--report", "out.html"]].concat());
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert!(said.contains("| `m/3_indexes.sql:2` | error [index-without-concurrently](http"), "{said}");
    let page = std::fs::read_to_string(folder.path().join("out.html")).unwrap();
    for cell in ["Rule\">index-without-concurrently</td>", "Evidence\">observed</td>"] {
        assert!(page.contains(cell), "{page}");
    }
}

/// A statement whose text only the server knows.
fn hidden(sql: &str) -> String {
    let hex: Vec<String> = sql.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("DO $$ BEGIN EXECUTE convert_from('\\x{}', 'UTF8'); END $$;\n", hex.concat())
}

#[test]
fn what_is_dropped_and_emptied_is_what_was_seen() {
    let history = ["kept", "gone", "emptied", "filled"].map(|name| format!("CREATE TABLE {name} (a int);\n"));
    let history = format!("{}{}", history.concat(), hidden("CREATE TABLE unseen (a int)"));
    let migration = [
        "DO $$ BEGIN IF (SELECT count(*) FROM kept) > 0 THEN DROP TABLE kept; TRUNCATE filled; END IF; END $$;\n",
        &hidden("DROP TABLE gone"),
        &hidden("DROP TABLE unseen"),
        &hidden("TRUNCATE emptied"),
        "-- first\nTRUNCATE filled; TRUNCATE filled;\n",
        "DROP TABLE IF EXISTS missing;\n",
    ];
    let Some(folder) = folder(&[("m/1.sql", &history), ("m/2.sql", &migration.concat())]) else { return };
    let args = ["m/2.sql", "--history", "m", "--pg-version", "18"];
    let checked = folder.run(&[&["check"], &args[..], &["--format", "concise"]].concat());
    for expected in ["m/2.sql:1:64: warning[drop-table]", "m/2.sql:1:70: warning[truncate-existing-table]"] {
        assert!(checked.contains(expected), "{expected} is missing:\n{checked}");
    }
    let document = folder.json(&[&["trace"], &args[..]].concat());
    let found = findings(&document);
    let lines = |rule: &str| -> Vec<i64> {
        let found = found.iter().filter(|(name, _, evidence)| name == rule && evidence == "observed");
        found.map(|(_, line, _)| *line).collect()
    };
    assert_eq!((lines("drop-table"), lines("truncate-existing-table")), (vec![2, 3], vec![4, 6, 6]), "{found:?}");
    let differences = document["model_differences"].as_array().unwrap();
    let told: Vec<_> = differences
        .iter()
        .filter(|one| one["what"] != "lock" && one["what"] != "scan")
        .map(|one| [&one["what"], &one["relation"], &one["observed"]].map(|value| value.as_str().unwrap()))
        .collect();
    let expected = [
        ["truncate", "public.filled", "no"],
        ["drop", "public.kept", "no"],
        ["drop", "public.gone", "yes"],
        ["drop", "public.unseen", "yes"],
        ["truncate", "public.emptied", "yes"],
    ];
    assert_eq!(told, expected, "{differences:?}");
}

#[test]
fn objects_that_only_the_server_knows_are_dropped_as_well() {
    let history = [
        "CREATE TABLE parent (a int PRIMARY KEY);\nCREATE TABLE base (a int);\n",
        &hidden("CREATE TABLE child (a int REFERENCES parent)"),
        &hidden("CREATE VIEW shown AS SELECT * FROM base"),
    ];
    let migration = ["TRUNCATE parent CASCADE;\n", &hidden("DROP TABLE base CASCADE")].concat();
    let Some(folder) = folder(&[("m/1.sql", &history.concat()), ("m/2.sql", &migration)]) else { return };
    let document = folder.json(&["trace", "m/2.sql", "--history", "m", "--pg-version", "18"]);
    let found = document["diagnostics"].as_array().unwrap();
    let messages = |rule: &str| -> Vec<&str> {
        found.iter().filter(|one| one["rule"] == rule).map(|one| one["message"].as_str().unwrap()).collect()
    };
    let emptied = messages("truncate-existing-table");
    assert!(emptied.len() == 1 && emptied[0].contains("`parent` and `child`"), "{emptied:?}");
    let dropped = messages("drop-table");
    assert!(dropped.len() == 1 && dropped[0].contains("`base`") && dropped[0].contains("`shown`"), "{dropped:?}");
}

#[test]
fn a_statement_that_was_not_run_is_judged_by_the_prediction() {
    let text = "SELECT * FROM missing;\nCREATE INDEX orders_made ON orders (made);\n";
    let Some(folder) = folder(&[ORDERS, ("m/2_index.sql", text)]) else { return };
    let found = findings(&folder.json(&["trace", "m/2_index.sql", "--pg-version", "18"]));
    assert!(found.contains(&("index-without-concurrently".to_owned(), 2, "predicted".to_owned())), "{found:?}");
}

#[test]
fn configuration_gives_limits_levels_versions_and_values() {
    let config = "pg-version = 17\n[placeholders]\nschema = \"a_long_name\"\n[rules]\n\
                  index-without-concurrently = \"warning\"\n[trace]\nmax-held.share = \"1min\"\n\
                  [tables.users]\nmax-held.share = \"0.001ms\"\n";
    let text = "CREATE SCHEMA ${schema}; CREATE INDEX one ON orders (made);\nCREATE INDEX two ON users (email);\n";
    let Some(folder) = folder(&[ORDERS, ("m/2_index.sql", text), ("pgvet.toml", config)]) else { return };
    let output = folder.output(&["trace", "m/2_index.sql", "--history", "m", "--format", "json"], b"", &[]);
    assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["pg_version"], 17);
    let exceeded = document["exceeded"].as_array().unwrap();
    assert_eq!(exceeded.iter().map(|one| &one["relation"]).collect::<Vec<_>>(), ["public.users"]);
    let warning = document["diagnostics"].as_array().unwrap().iter().find(|one| one["severity"] == "warning").unwrap();
    assert_eq!(
        (&warning["rule"], &warning["range"]["start"]["line"]),
        (&"index-without-concurrently".into(), &1.into())
    );
    let second = &document["migrations"][0]["statements"][1];
    assert_eq!(second["range"]["start"]["column"], 26, "as in the file, not as it was run: {second}");
    std::fs::write(folder.path().join("pgvet.toml"), config.replace("\"0.001ms\"", "\"soon\"")).unwrap();
    let said = folder.run(&["trace", "m/2_index.sql"]);
    assert!(said.starts_with("exit 2\n") && said.contains("`soon` is not a duration"), "{said}");
}

const WORKLOAD: &str = "SELECT count(*) FROM orders WHERE id = 5;\nBEGIN;\n\
    UPDATE orders SET made = now() WHERE id = 7;\nCOMMIT;\nSELECT rating FROM orders LIMIT 1;\n";

#[test]
fn a_workload_shows_how_long_its_statements_take_before_meanwhile_and_after() {
    let slow = "BEGIN;\nLOCK TABLE orders;\nSELECT pg_sleep(3);\nALTER TABLE orders DROP COLUMN rating;\nCOMMIT;\n";
    let Some(folder) = folder(&[ORDERS, ("m/2_slow.sql", slow), ("w.sql", WORKLOAD), ("bad.sql", "SELECT 1/0;\n")])
    else {
        return;
    };
    let args = ["trace", "m/2_slow.sql", "--history", "m", "--rows", "orders=100", "--workload"];
    let document = folder.json(&[&args[..], &["w.sql", "--clients", "3"]].concat());
    let workload = document["migrations"][0]["workload"].as_array().unwrap();
    let places: Vec<_> = workload.iter().map(|one| one["place"].as_str().unwrap()).collect();
    assert_eq!(places, ["w.sql:1", "w.sql:3", "w.sql:5"]);
    let most =
        |phase: &str, what: &str| workload.iter().map(|one| one[phase][what].as_f64().unwrap()).fold(0.0, f64::max);
    // Clients that do not wait for the lock would need no time at all. Where all wait with the last statement, its
    // column is gone afterwards.
    let refused = workload[2]["errors_max_ms"].as_f64().unwrap();
    assert!(most("during", "max_ms").max(refused) >= 1000.0 && most("before", "median_ms") < 1000.0, "{workload:?}");
    assert!(workload.iter().all(|one| one["before"]["runs"].as_u64() > Some(0)), "{workload:?}");
    assert!(workload[1]["after"]["runs"].as_u64() > Some(0), "{workload:?}");
    assert_eq!((&workload[0]["errors"], &workload[2]["after"]["runs"]), (&0.into(), &0.into()));
    assert!(workload[2]["error"].as_str().unwrap().contains("\"rating\" does not exist"), "{workload:?}");
    let said = folder.run(&[&args[..], &["bad.sql"]].concat());
    let expected = "the workload fails before the migration: bad.sql:1: division by zero";
    assert!(said.starts_with("exit 2\n") && said.contains(expected), "{said}");
    let said = folder.run(&[&args[..], &["none.sql"]].concat());
    assert!(said.starts_with("exit 2\n") && said.contains("cannot read `none.sql`"), "{said}");
}

#[test]
fn statements_of_a_workload_that_do_not_end_are_cancelled() {
    let workload = "SELECT pg_sleep(CASE WHEN to_regclass('made') IS NULL THEN 0 ELSE 600 END);\n";
    let migration = "CREATE TABLE made (a int);\nSELECT pg_sleep(0.3);\n";
    let Some(folder) = folder(&[("m/1.sql", migration), ("w.sql", workload), ("long.sql", "SELECT pg_sleep(600);\n")])
    else {
        return;
    };
    let started = Instant::now();
    let document = folder.json(&["trace", "m", "--workload", "w.sql"]);
    let error = document["migrations"][0]["workload"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("it still ran 6 s after the migration"), "{error}");
    std::fs::write(folder.path().join("own.sql"), format!("SET statement_timeout = '4s';\n{workload}")).unwrap();
    let document = folder.json(&["trace", "m", "--workload", "own.sql"]);
    let error = document["migrations"][0]["workload"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("due to statement timeout"), "it ended itself: {error}");
    let args = ["trace", "m", "--statement-timeout", "1s", "--workload"];
    let document = folder.json(&[&args[..], &["w.sql"]].concat());
    let error = &document["migrations"][0]["workload"][0]["error"];
    assert_eq!(error, "it took longer than --statement-timeout");
    let said = folder.run(&[&args[..], &["long.sql"]].concat());
    assert!(said.starts_with("exit 2\n") && said.contains("long.sql:1: it took longer than"), "{said}");
    assert!(started.elapsed() < Duration::from_secs(500), "none ran to its end");
}

#[test]
fn an_interrupted_run_leaves_no_statement_on_the_server() {
    let Some(folder) = folder(&[("m/1.sql", "RESET ALL;\nSELECT pg_sleep(600);\n")]) else { return };
    let Some(server) = server(18) else { return };
    let database = database(&server, "postgres");
    let args = ["trace", "m", "--on", "url", "--this-is-a-clone", "--database", &database];
    let temporary = private_folder();
    let child = start(&folder, &temporary, &args, &[]);
    let sleeping = "SELECT FROM pg_stat_activity WHERE query ~ 'pg_sleep\\(600' AND state = 'active' \
                    AND pid <> pg_backend_pid()";
    wait_until(|| !server.query("template1", sleeping).unwrap().is_empty());
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let said = transcript(&child.wait_with_output().unwrap());
    assert!(said.contains("interrupted by SIGTERM"), "{said}");
    wait_until(|| server.query("template1", sleeping).unwrap().is_empty());
}

#[test]
fn a_workload_is_not_treated_as_work_of_the_migration() {
    let text = "CREATE INDEX CONCURRENTLY i ON orders (made);\nALTER TABLE users ALTER email SET NOT NULL;\n\
                DROP INDEX CONCURRENTLY i;\n";
    let workload = "UPDATE orders SET made = now() WHERE rating > 3;\nSELECT count(*) FROM users;\n";
    let Some(folder) = folder(&[AUTOCOMMIT, ORDERS, ("m/2_index.sql", text), ("w.sql", workload)]) else { return };
    let args = ["trace", "m/2_index.sql", "--history", "m", "--rows", "orders=5000", "--workload", "w.sql"];
    let document = folder.json(&args);
    assert_eq!(document["model_differences"], serde_json::json!([]));
    let statements = document["migrations"][0]["statements"].as_array().unwrap();
    assert_eq!((&statements[0]["uncounted"], &statements[0]["writes"]), (&true.into(), &serde_json::json!([])));
    let said = folder.run(&args);
    assert!(said.contains("client  w.sql:1  UPDATE orders") && said.contains("during  median"), "{said}");
}

#[test]
fn times_that_grow_in_proportion_are_extrapolated_and_marked() {
    let text = "ALTER TABLE orders ALTER rating TYPE bigint;\nUPDATE orders SET rating = 1;\n";
    let config = "[tables]\norders.rows = 20_000_000\n";
    let Some(folder) = folder(&[ORDERS, ("m/2_type.sql", text), ("pgvet.toml", config)]) else { return };
    let args = ["trace", "m/2_type.sql", "--history", "m", "--rows", "orders=50k"];
    let document = folder.json(&args);
    let statements = document["migrations"][0]["statements"].as_array().unwrap();
    let found = &statements[0]["extrapolated"];
    assert_eq!((&found["production_rows"], &found["lower_bound"]), (&20_000_000.into(), &true.into()), "{found}");
    let (rows, measured) = (found["rows"].as_f64().unwrap(), statements[0]["duration_ms"].as_f64().unwrap());
    assert!((rows - 50_000.0).abs() < 500.0, "{rows}");
    let expected = measured * 20_000_000.0 / rows;
    assert!((found["duration_ms"].as_f64().unwrap() / expected - 1.0).abs() < 0.01, "{found}, {measured}");
    assert!(statements[1]["extrapolated"].is_null(), "a plan may change");
    let said = folder.run(&[&args[..], &["--production-rows", "orders=5M"]].concat());
    assert!(said.contains("at 5000000 rows of public.orders (extrapolated, not measured)"), "{said}");
}

/// The argument that names a database of a server.
fn database(server: &Server, name: &str) -> String {
    format!("host={} user=postgres dbname={name}", server.socket().display())
}

#[test]
fn the_tables_of_a_clone_tell_how_large_they_are() {
    let Some(folder) = folder(&[("m/1_index.sql", "CREATE INDEX one ON small (id);\nCREATE INDEX two ON big (id);\n")])
    else {
        return;
    };
    let Some(server) = server(18) else { return };
    server.query("postgres", "CREATE DATABASE shop").unwrap();
    let tables = "CREATE TABLE small AS SELECT generate_series(1, 500) AS id; \
                  CREATE TABLE big AS SELECT generate_series(1, 20000) AS id; ANALYZE";
    server.query("shop", tables).unwrap();
    let database = database(&server, "shop");
    let document = folder.json(&["trace", "m", "--on", "template", "--database", &database, "--pg-version", "15-17"]);
    let notes = document["notes"].as_array().unwrap();
    assert!(notes.contains(&"the server is PostgreSQL 18, but the migrations are for 15-17".into()), "{notes:?}");
    let found = findings(&document);
    let builds: Vec<i64> =
        found.iter().filter(|(rule, ..)| rule == "index-without-concurrently").map(|(_, line, _)| *line).collect();
    assert_eq!(builds, [2], "500 rows are worth a note at most: {found:?}");
}

#[test]
fn a_migration_that_fails_says_where_and_keeps_what_was_measured() {
    let bad = "CREATE TABLE a (b int);\nINSERT INTO orders (missing) VALUES (1);\nSELECT 1;\n";
    let Some(folder) = folder(&[AUTOCOMMIT, ORDERS, ("m/2_bad.sql", bad)]) else { return };
    let said = folder.run(&["trace", "m"]);
    assert!(said.starts_with("exit 2\n"), "{said}");
    for part in ["create  public.a", "of relation \"orders\" does not exist (42703) at 2:21", "1 failed (later"] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    assert!(!said.contains("SELECT 1"), "{said}");
    let said = folder.run(&["trace", "m", "--keep-going"]);
    assert!(said.starts_with("exit 2\n") && said.contains("SELECT 1"), "{said}");
}

#[test]
fn a_subscription_of_the_history_is_reported_and_not_created() {
    let subscribe = "CREATE SUBSCRIPTION s CONNECTION 'host=/nonexistent password=geheim' PUBLICATION p;\n";
    let Some(folder) = folder(&[("m/1.sql", subscribe), ("m/2.sql", "CREATE TABLE a (b int);\n")]) else { return };
    let said = folder.run(&["trace", "m/2.sql", "--history", "m"]);
    assert!(said.starts_with("exit 0\n") && said.contains("create  public.a"), "{said}");
    let why = "history, m/1.sql: CREATE SUBSCRIPTION s was not run, because it would connect to its publisher";
    assert!(said.contains(why) && !said.contains("geheim"), "{said}");
}

#[test]
fn a_difference_of_the_model_goes_before_a_failure() {
    let unseen = hidden("CREATE INDEX unseen ON orders (rating)");
    let text = "ALTER TABLE orders ALTER rating TYPE bigint;\nSELECT * FROM missing;\n";
    let Some(folder) = folder(&[ORDERS, ("m/2_unseen.sql", &unseen), ("m/3.sql", text)]) else { return };
    let args = ["trace", "m/3.sql", "--history", "m", "--format", "json"];
    let status = |more: &[&str]| folder.output(&[&args[..], more].concat(), b"", &[]).status.code();
    assert_eq!((status(&[]), status(&["--strict-model"])), (Some(2), Some(3)));
    std::fs::write(folder.path().join("m/3.sql"), "SELECT * FROM missing;\n").unwrap();
    assert_eq!(status(&["--strict-model"]), Some(2), "as predicted");
}

#[test]
fn what_cannot_be_run_is_reported_with_the_way_out() {
    let Some(folder) = folder(&[
        ORDERS,
        ("broken/1.sql", "SELECT * FROM nowhere;\n"),
        ("vars/1.sql", "CREATE TABLE ${schema}.t (a int);\n"),
        ("slow/1.sql", "SELECT pg_sleep(60);\n"),
    ]) else {
        return;
    };
    let cases: [(&[&str], &str); 8] = [
        (&["trace", "m", "--pg-bin", "."], "error: `.` has no `initdb`"),
        (&["trace", "m", "--history", "broken"], "an earlier migration fails: broken/1.sql:1:1: relation \"nowhere\""),
        (&["trace", "vars"], "help: give one: --var schema=VALUE"),
        (&["trace", "slow", "--statement-timeout", "200ms"], "took longer than --statement-timeout"),
        (&["trace", "m", "--rows", "orders=10"], "there is no table `orders` before the first traced migration"),
        (&["trace", "m", "--on", "url"], "add --this-is-a-clone"),
        (&["trace", "m", "--on", "template"], "name it: --database"),
        (
            &["trace", "m", "--on", "template", "--database", "host=/nonexistent dbname=x"],
            "cannot connect to the server",
        ),
    ];
    for (args, expected) in cases {
        let said = folder.run(args);
        assert!(said.starts_with("exit 2\n") && said.contains(expected), "{args:?}:\n{said}");
    }
}

#[test]
fn an_interruption_leaves_nothing_behind() {
    let Some(folder) = folder(&[("slow/1.sql", "SELECT pg_sleep(60);\n")]) else { return };
    let temporary = private_folder();
    for signal in ["-INT", "-TERM", "-HUP", "-QUIT"] {
        let child = start(&folder, &temporary, &["trace", "slow"], &[]);
        let entries = || std::fs::read_dir(temporary.path()).unwrap().flatten().collect::<Vec<_>>();
        let is_ready = || entries().iter().any(|entry| entry.path().join("s/data/postmaster.pid").exists());
        wait_until(is_ready);
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let said = transcript(&child.wait_with_output().unwrap());
        assert!(said.starts_with("exit 2\n"), "{said}");
        assert!(said.contains("interrupted by SIG") && said.matches("error: ").count() == 1, "{said}");
        assert!(entries().is_empty(), "{:?}", entries());
    }
}

/// The terminal sends the signal to the whole process group.
#[test]
fn an_interruption_during_initdb_is_not_a_failure_of_initdb() {
    let Some(folder) = folder(&[("m/1.sql", "SELECT 1;\n")]) else { return };
    let temporary = private_folder();
    let cache = folder.path().join("cache").display().to_string();
    let child = start(&folder, &temporary, &["trace", "m"], &[("PGVET_CACHE_DIR", &cache)]);
    let entries = || std::fs::read_dir(temporary.path()).unwrap().flatten().collect::<Vec<_>>();
    wait_until(|| entries().iter().any(|entry| entry.path().join("s/data").exists()));
    Command::new("kill").args(["-INT", "--", &format!("-{}", child.id())]).status().unwrap();
    let said = transcript(&child.wait_with_output().unwrap());
    assert!(said.starts_with("exit 2\n") && said.contains("interrupted by SIGINT"), "{said}");
    assert!(said.matches("error: ").count() == 1 && !said.contains("initdb"), "{said}");
    assert!(entries().is_empty(), "{:?}", entries());
}

#[test]
fn a_server_that_dies_is_reported_with_its_last_words() {
    let Some(folder) = folder(&[("slow/1.sql", "SELECT pg_sleep(60);\n")]) else { return };
    let temporary = private_folder();
    let child = start(&folder, &temporary, &["trace", "slow"], &[]);
    let pid = || {
        let entry = std::fs::read_dir(temporary.path()).unwrap().flatten().next()?;
        let text = std::fs::read_to_string(entry.path().join("s/data/postmaster.pid")).ok()?;
        // The server may have processes of its own, among which it has another number.
        text.contains("ready").then(|| std::fs::read_to_string(entry.path().join("server.pid")).unwrap())
    };
    wait_until(|| pid().is_some());
    Command::new("kill").args(["-QUIT", &pid().unwrap()]).status().unwrap();
    let said = transcript(&child.wait_with_output().unwrap());
    assert!(said.starts_with("exit 2\n") && said.contains("the server ended"), "{said}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

const STATISTICS: &str = r#"{"schema_version": 1, "taken_at": "2026-01-01T00:00:00Z", "pg_version": "16.4",
    "counted_seconds": 60, "tables": {"public.orders": {"rows": 5, "indexes": {"orders_pkey": 8}}},
    "autovacuum": {"autovacuum": "on"}, "throughput": {"foreign_key_rows_per_second": 1, "scan_bytes_per_second": 7},
    "missing": ["calls of functions"]}"#;

/// The throughput in the file, and whether all else is as in [`STATISTICS`].
fn throughput(path: &Path) -> (BTreeMap<String, u64>, bool) {
    let mut found: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut before: Value = serde_json::from_str(STATISTICS).unwrap();
    let throughput = found.as_object_mut().unwrap().remove("throughput").unwrap();
    before.as_object_mut().unwrap().remove("throughput");
    // What is empty may be written out.
    found.as_object_mut().unwrap().remove("transactions");
    (serde_json::from_value(throughput).unwrap(), found == before)
}

#[test]
fn a_trace_calibrates_the_statistics_that_check_reads() {
    let work = "ALTER TABLE orders ALTER rating TYPE bigint;\nCREATE INDEX ON orders (made);\n\
                ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES users;\n\
                CREATE INDEX ON orders (rating) WHERE rating > 2;\n";
    let files = [ORDERS, ("m/2_work.sql", work), ("m/pgvet.stats.json", STATISTICS)];
    let Some(folder) = folder(&files) else { return };
    let path = folder.path().join("m/pgvet.stats.json");
    let trace = |rows: &str, calibrate: &str| {
        folder.run(&["trace", calibrate, "m/2_work.sql", "--history", "m", "--pg-version", "18", "--rows", rows])
    };
    let said = trace("orders=1000", "--calibrate");
    assert!(said.starts_with("exit 0\n") && said.contains("was not calibrated: no statement"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), STATISTICS, "a small table says nothing");

    let said = trace("orders=700k,users=350k", "--calibrate");
    assert!(said.starts_with("exit 0\n") && said.contains("Calibrated "), "{said}");
    let (speeds, rest_is_kept) = throughput(&path);
    assert!(rest_is_kept, "{speeds:?}");
    let names: Vec<&str> = speeds.keys().map(String::as_str).collect();
    let [scan, index, foreign_key, rewrite] = [
        "scan_bytes_per_second",
        "index_build_rows_per_second",
        "foreign_key_rows_per_second",
        "rewrite_bytes_per_second",
    ];
    assert_eq!(names, [foreign_key, index, rewrite, scan]);
    assert_eq!(speeds[scan], 7, "no statement only read the table");
    for name in [index, foreign_key] {
        assert!((10_000..100_000_000).contains(&speeds[name]), "{speeds:?}");
    }
    assert!((1_000_000..10_000_000_000).contains(&speeds[rewrite]), "{speeds:?}");

    // Another file, by name; the one of the migrations is left alone.
    let other = STATISTICS.replace("\"scan_bytes_per_second\": 7", "\"index_build_rows_per_second\": 1");
    std::fs::write(folder.path().join("other.json"), other).unwrap();
    let before = std::fs::read(&path).unwrap();
    let said = trace("orders=700k,users=350k", "--calibrate=other.json");
    assert!(said.starts_with("exit 0\n"), "{said}");
    let (speeds, rest_is_kept) = throughput(&folder.path().join("other.json"));
    assert!(rest_is_kept && speeds[index] > 1 && !speeds.contains_key(scan), "{speeds:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn statistics_that_cannot_be_calibrated_are_reported_before_anything_runs() {
    let Some(folder) = folder(&[ORDERS, ("broken.json", "{}")]) else { return };
    let said = folder.run(&["trace", "m", "--calibrate"]);
    assert!(said.starts_with("exit 2") && said.contains("there are no statistics to calibrate"), "{said}");
    for (file, reason) in [("broken.json", "missing field"), ("nowhere.json", "No such file")] {
        let said = folder.run(&["trace", "m", &format!("--calibrate={file}")]);
        let expected = format!("error: cannot calibrate `{file}`: {reason}");
        assert!(said.starts_with("exit 2") && said.contains(&expected), "{said}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("broken.json")).unwrap(), "{}");
}
