//! Input that nobody means to write: the program names file, line, reason and next step, checks the rest, and never
//! crashes or hangs.

use crate::support::{Folder, Transcript, transcript};
use std::fmt::Write as _;
use std::process::Command;

/// The output of `pgvet check` for one file, in one line for each finding.
fn check(text: impl AsRef<[u8]>) -> Transcript {
    let folder = Folder::new(&[("1_a.sql", text.as_ref())]);
    folder.run(&["check", "1_a.sql", "--format", "concise", "--only", "syntax-error,statement-will-fail"])
}

/// Checks that a refused statement is a finding, and that the statement after it is still checked.
fn check_with_statement_after(text: &str) -> Transcript {
    check(format!("{text};\nDROP TABLE a, a_that_is_new;\nCREATE TABLE t (a int);\nCREATE TABLE t (a int);\n"))
}

const SECOND_TABLE: &str =
    "1_a.sql:4:14: error[statement-will-fail] PostgreSQL refuses this: relation \"t\" already exists";

/// `open` and `close` around `inner`, this often.
fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
    open.repeat(times) + inner + &close.repeat(times)
}

/// `line` for each number.
fn numbered(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn files_without_statements_are_clean() {
    for text in ["", "\n", "-- nothing\n/* at all */\n", ";;;\n", "\u{feff}"] {
        assert!(check(text).starts_with("exit 0\n"), "{text:?}");
    }
}

#[test]
fn a_binary_file_is_not_checked_and_the_others_are() {
    let folder = Folder::new(&[("1_a.sql", b"\x7fELF\0\0\xff"), ("2_b.sql", b"SELECT FROM FROM;\n")]);
    insta::assert_snapshot!(folder.run(&["check", "--format", "concise", "--fail-on", "never"]), @r#"
    exit 2
    --- stdout
    2_b.sql:1:13: error[syntax-error] syntax error at or near "FROM"
    1 error in 1 of 1 file; 1 path not checked
    --- stderr
    error: `1_a.sql` is not SQL text: byte 4 is NUL
      help: save it as UTF-8 if it is UTF-16 text; rename it if it is not SQL
    "#);
}

#[test]
fn a_binary_file_of_the_history_is_reported_as_well() {
    let folder = Folder::new(&[("old/1_a.sql", b"\0"), ("2_b.sql", b"SELECT 1;\n")]);
    insta::assert_snapshot!(folder.run(&["check", "2_b.sql", "--history", "old"]), @r"
    exit 2
    --- stdout
    No problems found in 1 file; 1 path not checked
    --- stderr
    error: `old/1_a.sql` is not SQL text: byte 0 is NUL
      help: save it as UTF-8 if it is UTF-16 text; rename it if it is not SQL
    ");
}

#[test]
fn bytes_of_no_text_are_read_as_questions() {
    let bytes: Vec<u8> = (1..=255).collect();
    let text = check(bytes);
    assert!(text.starts_with("exit 1\n") && text.contains("unsupported-encoding"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_file_without_permission_is_not_checked_and_the_others_are() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new(&[("1_a.sql", b"SELECT 1;\n"), ("2_b.sql", b"SELECT 1;\n")]);
    let path = folder.path().join("1_a.sql");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
    // The superuser may read everything, and then nothing is wrong.
    if std::fs::read(&path).is_ok() {
        assert!(folder.run(&["check"]).starts_with("exit 0\n"));
        return;
    }
    insta::assert_snapshot!(folder.run(&["check"]), @"
    exit 2
    --- stdout
    No problems found in 1 file; 1 path not checked
    --- stderr
    error: `1_a.sql` cannot be read: Permission denied (os error 13)
      help: check its permissions
    ");
}

#[test]
fn the_same_file_twice_is_checked_once() {
    let folder = Folder::new(&[("db/1_a.sql", b"CREATE TABLE t (a int);\n")]);
    insta::assert_snapshot!(folder.run(&["check", "db/1_a.sql", "db/1_a.sql", "db", "./db/1_a.sql"]), @r"
    exit 0
    --- stdout
    No problems found in 1 file
    ");
}

#[test]
fn what_is_not_closed_is_an_error_where_it_opens() {
    let before = "CREATE TABLE t (a int);\nCREATE TABLE t (a int);\n";
    for open in [
        "SELECT 'abc;\n",
        "SELECT \"abc;\n",
        "DO $$ BEGIN\n",
        "DO $tag$ $$ $$ BEGIN\n",
        "SELECT 1 /* /* */\n",
        "SELECT E'\\';\n",
    ] {
        let text = check(format!("{before}{open}DROP TABLE t;\n"));
        assert!(text.contains("1_a.sql:2:14: error[statement-will-fail]"), "{text}");
        assert!(text.contains("1_a.sql:3:") && text.contains("error[syntax-error] unterminated"), "{text}");
    }
}

#[test]
fn copy_data_without_end_runs_to_the_end_of_the_file() {
    insta::assert_snapshot!(check("CREATE TABLE t (a int);\nCOPY t FROM stdin;\n1\n'2\nDROP TABLE missing\n"), @r"
    exit 0
    --- stdout
    No problems found in 1 file
    ");
    let many = format!("COPY t FROM stdin;\n{}\\.\nSELECT FROM FROM;\n", "'1\t2\n".repeat(200_000));
    let text = check(many);
    assert!(text.contains("1_a.sql:200003:"), "{text}");
}

#[test]
fn deep_nesting_is_refused_as_postgresql_refuses_it() {
    let deep = [
        format!("SELECT {}", nested("(", "1", ")", 100_000)),
        format!("SELECT {}1", "1 + ".repeat(100_000)),
        format!("SELECT {}true", "NOT ".repeat(100_000)),
        format!("SELECT {}", nested("ARRAY[", "1", "]", 50_000)),
        format!("SELECT {}", nested("CASE WHEN true THEN ", "1", " END", 5_000)),
        format!("SELECT * FROM {}", nested("(SELECT * FROM ", "t", ") x", 5_000)),
        format!("SELECT 1 {}", "UNION SELECT 1 ".repeat(20_000)),
        nested("WITH a AS (", "SELECT 1", ") SELECT * FROM a", 2_000),
    ];
    for sql in deep {
        let text = check_with_statement_after(&sql);
        assert!(text.contains("1_a.sql:1:1: error[syntax-error] stack depth limit exceeded"), "{text}");
        assert!(text.contains(SECOND_TABLE), "{text}");
    }
}

#[test]
fn long_lists_are_no_nesting() {
    for sql in [
        format!("SELECT 1 WHERE {}true", "1 = 1 AND ".repeat(20_000)),
        format!("SELECT 1 WHERE 1 IN ({}0)", "1, ".repeat(50_000)),
        format!("VALUES {}(1, 2)", "(1, 2), ".repeat(50_000)),
        // PostgreSQL 18 runs 8000 of the first and 2500 of the second, and no 12000 and 5000.
        format!("SELECT 1 {}", "UNION ALL SELECT 1 ".repeat(8_000)),
        format!("SELECT 'a'{}", " || 'a'".repeat(2_500)),
    ] {
        let text = check_with_statement_after(&sql);
        assert!(!text.contains("stack depth") && text.contains(SECOND_TABLE), "{text}");
    }
}

#[test]
fn deep_code_is_not_known_and_what_follows_is_checked() {
    let dynamic = |times: usize| {
        (0..times).fold("SELECT 1".to_owned(), |inner, at| {
            format!("DO $a{at}$ BEGIN EXECUTE $b{at}${inner}$b{at}$; END $a{at}$")
        })
    };
    let bodies = [
        nested("IF true THEN ", "NULL;", " END IF;", 5_000),
        nested("BEGIN ", "NULL;", " END;", 5_000),
        nested("LOOP ", "NULL;", " END LOOP;", 5_000),
        format!("PERFORM {};", nested("(", "1", ")", 20_000)),
        format!("EXECUTE {}'x';", "'a' || ".repeat(10_000)),
    ];
    let blocks = bodies.map(|body| format!("DO $$ BEGIN {body} END $$"));
    for sql in blocks.into_iter().chain([dynamic(1_000)]) {
        let text = check_with_statement_after(&sql);
        assert!(text.contains(SECOND_TABLE), "{text}");
        let folder = Folder::new(&[("1_a.sql", sql.as_bytes())]);
        let effects = folder.run(&["effects", "1_a.sql"]);
        assert!(effects.starts_with("exit 0\n") && effects.contains("unknown "), "{effects}");
    }
}

#[test]
fn functions_and_triggers_that_call_each_other_end() {
    let functions = "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM g(); PERFORM g(); END $$;
        CREATE FUNCTION g() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM f(); EXECUTE 'SELECT f()'; END $$;
        SELECT f();";
    let triggers = "CREATE TABLE a (x int); CREATE TABLE b (x int);
        CREATE FUNCTION fa() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO b VALUES (1); RETURN new; END $$;
        CREATE FUNCTION fb() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO a VALUES (1); RETURN new; END $$;
        CREATE TRIGGER ta AFTER INSERT ON a FOR EACH ROW EXECUTE FUNCTION fa();
        CREATE TRIGGER tb AFTER INSERT ON b FOR EACH ROW EXECUTE FUNCTION fb();
        INSERT INTO a VALUES (1);";
    // A call with the arguments of one that is running does nothing that this does not.
    for sql in [functions, triggers] {
        let effects = Folder::new(&[("1_a.sql", sql.as_bytes())]).run(&["effects", "1_a.sql"]);
        assert!(effects.starts_with("exit 0\n") && !effects.contains("unknown"), "{effects}");
    }
}

/// Each calls the one before it many times: without a bound the work doubles with each.
#[test]
fn chains_of_functions_are_followed_to_a_bound() {
    let plpgsql = "CREATE FUNCTION f0() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;\n".to_owned()
        + &numbered(40, |at| {
            let calls = format!("PERFORM f{at}(); ").repeat(20);
            format!("CREATE FUNCTION f{}() RETURNS int LANGUAGE plpgsql AS $$ BEGIN {calls} END $$;\n", at + 1)
        })
        + "SELECT f40();";
    let sql = "CREATE FUNCTION f0() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';\n".to_owned()
        + &numbered(40, |at| {
            format!("CREATE FUNCTION f{}() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT f{at}() + f{at}()';\n", at + 1)
        })
        + "ALTER TABLE t ADD COLUMN c int DEFAULT f40();";
    for text in [plpgsql, sql] {
        let effects = Folder::new(&[("1_a.sql", text.as_bytes())]).run(&["effects", "1_a.sql"]);
        assert!(effects.starts_with("exit 0\n") && effects.contains("f40()"), "{effects}");
    }
}

#[test]
fn deep_views_and_domains_are_followed() {
    let views = "CREATE TABLE v0 (a int);\n".to_owned()
        + &numbered(500, |at| format!("CREATE VIEW v{} AS SELECT x.a FROM v{at} x, v{at} y;\n", at + 1))
        + "DROP TABLE v0;\n";
    let text = check(views);
    assert!(text.contains("1_a.sql:502:") && text.contains("other objects depend on it"), "{text}");
    let domains = "CREATE DOMAIN d0 AS int;\n".to_owned()
        + &numbered(300, |at| format!("CREATE DOMAIN d{} AS d{at};\n", at + 1))
        + "CREATE TABLE t (a d300);\nDROP DOMAIN d0;\n";
    let text = check(domains);
    assert!(text.contains("1_a.sql:303:") && text.contains("other objects depend on it"), "{text}");
}

#[test]
fn circular_inheritance_is_refused() {
    let text = check(
        "CREATE TABLE a (x int);\nCREATE TABLE b () INHERITS (a);\nALTER TABLE a INHERIT b;\nALTER TABLE a INHERIT a;
        CREATE TABLE p (x int) PARTITION BY LIST (x);\nALTER TABLE p ATTACH PARTITION p DEFAULT;\nDROP TABLE a CASCADE;\n",
    );
    insta::assert_snapshot!(text, @r"
    exit 1
    --- stdout
    1_a.sql:3:23: error[statement-will-fail] PostgreSQL refuses this: circular inheritance not allowed
    1 error in 1 of 1 file; 2 findings hidden by confidence (show with --confidence possible)
    ");
}

#[test]
fn names_are_cut_to_63_bytes_between_characters() {
    for (long, cut) in [("n".repeat(70), "n".repeat(63)), ("é".repeat(40), "é".repeat(31))] {
        let text = check(format!("CREATE TABLE {long} (a int);\nCREATE TABLE \"{cut}\" (a int);\n"));
        assert!(text.contains("1_a.sql:2:14: error") && text.contains("1 error"), "{text}");
    }
}

/// The bound is far above what a debug build needs on a busy machine, and far below what quadratic work takes.
#[test]
fn two_hundred_thousand_statements_take_bounded_time() {
    let start = std::time::Instant::now();
    let text = numbered(200_000, |at| format!("SELECT {at};\n")) + "SELECT FROM FROM;\n";
    let text = check(text);
    assert!(text.contains("1_a.sql:200001:"), "{text}");
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}

#[test]
fn many_savepoints_take_bounded_time() {
    let text = check(format!("BEGIN;\n{}SELECT FROM FROM;\nCOMMIT;\n", "SAVEPOINT a;\n".repeat(20_000)));
    assert!(text.contains("1_a.sql:20002:"), "{text}");
}

#[test]
fn a_file_of_100_megabytes_is_checked() {
    const MEGABYTES_50: usize = 50_000_000;
    let mut text = String::with_capacity(2 * MEGABYTES_50 + 1000);
    text.push_str("-- ");
    text.push_str(&"word ".repeat(MEGABYTES_50 / 5));
    text.push_str("\nCREATE TABLE t (a text);\nINSERT INTO t VALUES ('");
    text.extend(std::iter::repeat_n('y', MEGABYTES_50));
    writeln!(text, "');\nSELECT FROM FROM;").unwrap();
    let text = check(text);
    assert!(text.contains("1_a.sql:4:"), "{text}");
}

/// Each of these took minutes or gigabytes when it was read in quadratic time. The bound is loose: builds for tests are
/// slow, and other tests run beside this one.
#[test]
fn nothing_takes_quadratic_time() {
    let comments = |count: usize| "-- pgvet: ignore[drop-table]\n".repeat(count) + "SELECT 1;\n";
    let unknown = |count: usize| "-- pgvet:ignore drop-table\n".repeat(count) + "SELECT 1;\n";
    let ctes = |count: usize| {
        let chain: Vec<String> = (1..count).map(|at| format!(", c{at} AS (SELECT a FROM c{})", at - 1)).collect();
        format!("WITH c0 AS (SELECT 1 AS a){} SELECT * FROM c{};\n", chain.concat(), count - 1)
    };
    // 2^41 columns, if nothing ended it.
    let each = |at: usize| format!(", c{} AS (SELECT x.*, y.* FROM c{at} x, c{at} y)", at + 1);
    let doubled = format!("CREATE TABLE t AS WITH c0 AS (SELECT 1 AS a){} SELECT * FROM c40;\n", numbered(40, each));
    let blocks = |count: usize| {
        let open: Vec<String> = (0..count).map(|at| format!("DO $a{at}$ BEGIN ")).collect();
        let close: Vec<String> = (0..count).rev().map(|at| format!(" END $a{at}$;")).collect();
        open.concat() + "NULL;" + &close.concat()
    };
    for (what, text) in [
        ("comments", comments(30_000)),
        ("comments that suppress nothing", unknown(30_000)),
        ("names in a comment", format!("-- pgvet: ignore[{}]\nSELECT 1;\n", "drop-tabel,".repeat(20_000))),
        ("a long name in a comment", format!("-- pgvet: ignore[{}]\nSELECT 1;\n", "a".repeat(2_000_000))),
        ("columns of WITH", doubled),
        ("tables in one DROP", format!("DROP TABLE a{};\n", numbered(10_000, |at| format!(", t{at}")))),
        ("default privileges", {
            let names = |name: &str| format!("{name}{}", numbered(300, |at| format!(", {name}{at}")));
            format!("ALTER DEFAULT PRIVILEGES IN SCHEMA {} GRANT SELECT ON TABLES TO {};\n", names("s"), names("r"))
        }),
        ("WITH", ctes(10_000)),
        ("DO in DO", blocks(2_000)),
        ("statements", "SELECT 1;\n".repeat(20_000)),
        ("signs", format!("SELECT {}1;\n", "+".repeat(100_000))),
        ("signs with blanks", format!("SELECT {}1;\n", "- ".repeat(50_000))),
        ("operators", format!("SELECT 1 {}1;\n", "<".repeat(100_000))),
        ("comments that open", "/*".repeat(100_000) + "\n"),
        ("comments in operators", format!("SELECT 1 {}\n", "+/*".repeat(50_000))),
        ("tags", "$a".repeat(100_000) + "\n"),
        ("strings on lines", format!("SELECT {};\n", "'a'\n".repeat(20_000))),
        ("parts of a name", format!("SELECT a{};\n", ".a".repeat(50_000))),
        ("sections", "-- +goose Up\nSELECT '$a';\n-- +goose Down\nSELECT 1;\n".repeat(1_000)),
        ("braces", format!("{}{};\n", "{{".repeat(20_000), "}}".repeat(20_000))),
    ] {
        let folder = Folder::new(&[("1.sql", text.as_bytes())]);
        let begun = std::time::Instant::now();
        let said = folder.run(&["check", "1.sql", "--no-cache", "--format", "concise"]);
        assert!(!said.starts_with("exit 2") && !said.contains("panicked"), "{what}: {}", &said[..200]);
        assert!(begun.elapsed().as_secs() < 60, "{what}: {:?}", begun.elapsed());
    }
}

/// Lists in one statement that are multiplied with each other, and objects of which each gets one of each other.
#[test]
fn products_take_bounded_time_and_memory() {
    let names = |name: &str, count: usize| format!("{name}{}", numbered(count, |at| format!(", {name}{at}")));
    let granted = |grant: &str| format!("CREATE TABLE t (a int);\nGRANT {}{grant};\n", "SELECT, ".repeat(30_000));
    let parts = |at: usize| format!("CREATE TABLE t{at} PARTITION OF t FOR VALUES FROM ({at}) TO ({});\n", at + 1);
    let partitioned = "CREATE TABLE t (id bigint, a int) PARTITION BY RANGE (id);\n";
    let indexes = format!(
        "{partitioned}{}{}",
        numbered(100, parts),
        numbered(100, |at| format!("CREATE INDEX i{at} ON t (a);\n"))
    );
    for (what, text, found) in [
        ("privileges", granted(&format!("UPDATE ON t TO {}", names("r", 3_000))), "No problems found"),
        ("privileges beyond the limit", granted(&format!("UPDATE ON t TO {}", names("r", 60_000))), "not-analyzed"),
        ("members", format!("GRANT {} TO {};\n", names("r", 20_000), names("m", 20_000)), "not-analyzed"),
        (
            "columns of an index",
            format!("CREATE TABLE t (a int);\nCREATE INDEX i ON t (a{});\n", ", a".repeat(30_000)),
            "statement-will-fail",
        ),
        (
            "columns of a key",
            format!("CREATE TABLE t (a int, UNIQUE (a{}));\n", ", a".repeat(30_000)),
            "statement-will-fail",
        ),
        ("partitions with indexes", indexes, ""),
    ] {
        let folder = Folder::new(&[("1_a.sql", text.as_bytes())]);
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 4000000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_pgvet")]);
        command.args(["check", "1_a.sql", "--no-cache", "--format", "concise"]);
        let begun = std::time::Instant::now();
        let said = transcript(&command.current_dir(folder.path()).output().unwrap());
        assert!(said.contains(found) && !said.contains("panicked"), "{what}: {said:.500}");
        assert!(begun.elapsed().as_secs() < 60, "{what}: {:?}", begun.elapsed());
    }
}

/// Rows are tried with the constants of conditions, in up to three columns.
#[test]
fn conditions_take_bounded_time_and_memory() {
    let nested = |inner: &str, around: fn(&str) -> String| (0..30).fold(inner.to_owned(), |inner, _| around(&inner));
    let known = nested("c=3", |inner| format!("(b=2 AND (a=1 OR {inner}))"));
    let wanted = nested("c=4", |inner| format!("(a=1 OR (z IS NOT NULL AND {inner}))"));
    let list = |column: &str| format!("{column} IN (0{})", numbered(300, |at| format!(", {at}")));
    let lists = format!("{} OR {} OR {}", list("a"), list("b"), list("c"));
    let long = format!("a IN (0{})", numbered(20_000, |at| format!(", {at}")));
    let checks = [known, wanted, lists, long].map(|check| format!("ALTER TABLE q ADD CHECK ({check});\n"));
    let table = b"CREATE TABLE q (z int NOT NULL, a int, b int, c int);\n";
    let folder = Folder::new(&[("1.sql", table), ("2.sql", checks.concat().as_bytes())]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 4000000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_pgvet")]);
    let begun = std::time::Instant::now();
    let output = command.args(["check", ".", "--no-cache", "--fail-on", "never"]).current_dir(folder.path()).output();
    let said = transcript(&output.unwrap());
    assert!(said.starts_with("exit 0"), "{said:.500}");
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

/// Lists of migrations in files that name each other.
#[test]
fn lists_of_migrations_take_bounded_time() {
    let include = |file: &str| format!("<include file=\"{file}\" relativeToChangelogFile=\"true\"/>").repeat(20);
    let log = |body: String| format!("<databaseChangeLog>{body}</databaseChangeLog>\n");
    let each = |at: usize| (format!("db/{at}.xml"), log(include(&format!("{}.xml", at + 1))));
    let mut logs: Vec<(String, String)> = (0..8).map(each).collect();
    logs.push(("db/8.xml".to_owned(), log(include("a.sql"))));
    logs.push(("db/changelog.xml".to_owned(), log(include("0.xml") + &include("changelog.xml"))));
    // Everything on the machine.
    let all = log("<includeAll path=\"../../../../../../..\" relativeToChangelogFile=\"true\"/>".to_owned());
    logs.push(("db/master.xml".to_owned(), all));
    let sql = "--liquibase formatted sql\n--changeset a:1\nSELECT 1;\n".to_owned();
    logs.extend(["db/a.sql", "db/b.sql"].map(|name| (name.to_owned(), sql.clone())));
    let files: Vec<(&str, &[u8])> = logs.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    let folder = Folder::new(&files);
    // Many changelogs that include the same folder with many folders in it.
    let same = log("<includeAll path=\"m\" relativeToChangelogFile=\"true\"/>".to_owned());
    let mut logs: Vec<(String, String)> = (0..100).map(|at| (format!("db/changelog{at}.xml"), same.clone())).collect();
    logs.extend((0..200).map(|at| (format!("db/m/{at}/{at}.sql"), sql.clone())));
    let files: Vec<(&str, &[u8])> = logs.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    let shared = Folder::new(&files);
    for folder in [folder, shared] {
        std::fs::create_dir_all(folder.path().join(".git")).unwrap();
        let begun = std::time::Instant::now();
        let said = folder.run(&["check", "db", "--no-cache"]);
        assert!(said.contains("No problems found"), "{said}");
        assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    }
}

/// Patterns and chains of files in a configuration, which a checkout may bring.
#[test]
fn a_configuration_takes_bounded_time() {
    for text in [
        format!("[migrations]\nexclude = [\"{}\"]\n", "{".repeat(200_000)),
        format!("[migrations]\nexclude = [\"{}\"]\n", "{a,b}".repeat(10_000)),
        format!("[migrations]\nexclude = [\"{}\"]\n", "**/".repeat(50_000)),
        format!("[migrations]\nexclude = [{}]\n", "\"**/a*b*c*d*\", ".repeat(20_000)),
        format!("x = {}{}\n", "[".repeat(50_000), "]".repeat(50_000)),
        "extend = \"pgvet.toml\"\n".to_owned(),
    ] {
        let folder = Folder::new(&[("pgvet.toml", text.as_bytes()), ("1.sql", b"SELECT 1;\n")]);
        let begun = std::time::Instant::now();
        let said = folder.run(&["check", "--no-cache"]);
        let shown: String = text.chars().take(50).collect();
        assert!(said.contains("exit 2") && said.contains("error: "), "{shown}: {said:.500}");
        assert!(begun.elapsed().as_secs() < 60, "{shown}: {:?}", begun.elapsed());
    }
}

/// Findings far behind in a line, as generated files have them.
#[test]
fn lines_of_any_length_are_shown() {
    let text = format!("{}SELEC 1; DROP TABLE t;\n", "SELECT 1; ".repeat(10_000));
    let list = format!("[migrations]\nexclude = [{}\"{{\"]\n", "\"a\", ".repeat(900).replace('a', &"a".repeat(100)));
    for (config, status) in [("", "exit 1\n"), (list.as_str(), "exit 2\n")] {
        let folder = Folder::new(&[("1.sql", text.as_bytes()), ("pgvet.toml", config.as_bytes())]);
        let said = folder.run(&["check", "--no-cache"]);
        assert!(said.starts_with(status) && said.len() < 20_000, "{said:.500}");
        assert!(!said.contains("panicked"), "{said:.500}");
    }
}

#[test]
fn values_of_placeholders_make_no_text_of_any_size() {
    let config = format!("[placeholders]\na = \"{}\"\n", "x".repeat(1_000_000));
    let text = format!("SELECT '{}';\n", "${a}".repeat(200));
    let folder = Folder::new(&[("1.sql", text.as_bytes()), ("pgvet.toml", config.as_bytes())]);
    let said = folder.run(&["check", "--no-cache"]);
    assert!(said.contains("exit 2") && said.contains("1.sql` is larger than 128 MiB with the values"), "{said:.500}");
    let names = numbered(1_001, |at| format!("a{at} = \"x\"\n"));
    for (config, why) in [(names, "more than 1000"), (format!("{} = \"x\"", "a".repeat(300)), "more than 256 bytes")] {
        let config = format!("[placeholders]\n{config}");
        let folder = Folder::new(&[("1.sql", b"SELECT 1;\n"), ("pgvet.toml", config.as_bytes())]);
        let said = folder.run(&["check", "--no-cache"]);
        assert!(said.contains("exit 2") && said.contains(why), "{said:.500}");
    }
}

/// Most memory that the program has used, in KiB.
#[cfg(target_os = "linux")]
fn peak(folder: &Folder, args: &[&str]) -> u64 {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pgvet"));
    command.args(args).current_dir(folder.path()).stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let (status, mut peak) = (format!("/proc/{}/status", child.id()), 0);
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(peak);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_bounded() {
    let open = numbered(20_000, |at| format!("DO $a{at}$ BEGIN "));
    let close = numbered(20_000, |at| format!(" END $a{}$;", 19_999 - at));
    let deep = open + "NULL;" + &close;
    let doubled = format!("\\set a x\n{}SELECT :a;\n", "\\set a :a:a\n".repeat(40));
    let many =
        format!("\\set a x\n{}{}", "\\set a :a:a\n".repeat(19), numbered(5_000, |at| format!("\\set b{at} :a\n")));
    for (what, text, megabytes) in [
        ("30 MB", "SELECT 1;\n".repeat(3_000_000), 400),
        ("DO in DO", deep, 400),
        ("variables that double", doubled, 200),
        ("many long variables", many, 200),
    ] {
        let folder = Folder::new(&[("1.sql", text.as_bytes())]);
        let peak = peak(&folder, &["check", "1.sql", "--no-cache", "--format", "concise"]);
        // What is refused at once may end before it is looked at.
        let least = if what == "30 MB" { 1_000 } else { 0 };
        assert!((least..megabytes * 1024).contains(&peak), "{what}: {peak} KiB");
    }
}

#[test]
fn a_file_of_too_many_statements_is_an_error_at_the_rest() {
    let text = "SELECT 1;\n".repeat(250_001);
    let folder = Folder::new(&[("1.sql", text.as_bytes())]);
    let said = folder.run(&["check", "1.sql", "--no-cache", "--format", "concise"]);
    let error = "1.sql:250001:1: error[syntax-error] more than 250000 statements in one file; the rest is not read";
    assert!(said.starts_with("exit 1\n") && said.contains(error), "{said}");
}

#[cfg(unix)]
#[test]
fn devices_in_place_of_named_files_are_refused() {
    let folder = Folder::new(&[("1_a.sql", b"SELECT 1;\n")]);
    for arguments in [
        &["drift", "1_a.sql", "--database", "postgresql://localhost/nothing", "--baseline", "/dev/zero"][..],
        &["trace", "1_a.sql", "--workload", "/dev/zero"],
    ] {
        let output = folder.run(arguments);
        assert!(output.starts_with("exit 2\n") && output.contains("it is not a regular file"), "{output}");
    }
}
