//! The files that `--since`, `--staged` and `--changed` check, in real repositories.

use crate::support::Folder;
use crate::support::repository;
use crate::support::repository::{commit, git, write};
use std::fs;

const TABLE: &[u8] = b"CREATE TABLE orders (id bigint PRIMARY KEY, note text);\n";
const BAD: &[u8] = b"SET lock_timeout = '2s';\nCREATE INDEX i ON orders (note);\n";
const GOOD: &[u8] = b"SET lock_timeout = '2s';\nCREATE INDEX CONCURRENTLY i ON orders (note);\n";

fn repository(files: &[(&str, &[u8])]) -> Folder {
    let folder = Folder::new(files);
    repository::init(&folder);
    folder
}

fn concise(folder: &Folder, args: &[&str]) -> String {
    folder.run(&[&["check", "--format", "concise"], args].concat())
}

#[test]
fn a_file_that_was_moved_or_copied_into_the_migrations_is_checked() {
    let folder = repository(&[("m/V1__a.sql", TABLE), ("drafts/a.txt", BAD), ("drafts/b.sql", BAD)]);
    git(&folder, &["mv", "drafts/a.txt", "m/V2__b.sql"]);
    assert!(concise(&folder, &["--staged", "m"]).contains("m/V2__b.sql:2:1: error"));
    git(&folder, &["reset", "-q", "--hard"]);
    write(&folder, "m/V3__c.sql", BAD);
    git(&folder, &["add", "-A"]);
    assert!(concise(&folder, &["--staged", "m"]).contains("m/V3__c.sql:2:1: error"));
}

#[test]
fn a_migration_that_got_another_version_is_checked() {
    let folder = repository(&[("m/V1__a.sql", TABLE), ("m/V5__b.sql", BAD), ("m/V6__c.sql", b"SELECT 1;\n")]);
    git(&folder, &["mv", "m/V5__b.sql", "m/V15__b.sql"]);
    commit(&folder);
    let said = concise(&folder, &["--since", "HEAD~1", "m"]);
    assert!(
        said.contains("m/V15__b.sql:2:1: error") && said.contains("m/V5__b.sql:1:1: error[applied-migration-removed]"),
        "{said}"
    );
    git(&folder, &["checkout", "-q", "-b", "work", "HEAD~1"]);
    git(&folder, &["mv", "m/V5__b.sql", "m/V15__b.sql"]);
    git(&folder, &["commit", "-q", "-m", "another"]);
    git(&folder, &["mv", "m/V15__b.sql", "m/V15__a_better_name.sql"]);
    // Only another name, and perhaps of a file that is only on this branch.
    let said = concise(&folder, &["--staged", "m"]);
    assert!(said.starts_with("exit 0") && said.contains("1 finding hidden by confidence"), "{said}");
}

#[test]
fn staged_files_have_the_text_that_is_staged() {
    let psql: &[u8] = b"[migrations]\ntransaction = \"autocommit\"\n";
    let folder = repository(&[("m/1_a.sql", TABLE), ("pgvet.toml", psql)]);
    write(&folder, "m/2_b.sql", BAD);
    git(&folder, &["add", "-A"]);
    write(&folder, "m/2_b.sql", GOOD);
    let said = concise(&folder, &["--staged", "m"]);
    assert!(said.starts_with("exit 1") && said.contains("m/2_b.sql:2:1: error"), "{said}");
    // Whatever is fixed would not be what is committed.
    assert!(concise(&folder, &["--staged", "m", "--unsafe-fixes"]).starts_with("exit 2"));
    git(&folder, &["add", "-A"]);
    write(&folder, "m/2_b.sql", BAD);
    // What is not part of the commit is no history of it, either.
    write(&folder, "m/1_z.sql", b"DROP TABLE orders;\n");
    let said = concise(&folder, &["--staged", "m"]);
    assert!(
        said.starts_with("exit 0") && said.contains("of 1 file; 1 earlier migration replayed, not reported"),
        "{said}"
    );
    fs::remove_file(folder.path().join("m/2_b.sql")).unwrap();
    let said = concise(&folder, &["--staged", "m"]);
    assert!(
        said.starts_with("exit 0") && said.contains("of 1 file; 1 earlier migration replayed, not reported"),
        "{said}"
    );
}

#[test]
fn a_deleted_migration_is_reported() {
    let folder = repository(&[("m/1_a.sql", TABLE), ("m/2_b.sql", BAD), ("m/3_c.sql", BAD), ("notes.sql", b"")]);
    git(&folder, &["rm", "-q", "m/2_b.sql", "notes.sql"]);
    insta::assert_snapshot!(concise(&folder, &["--since", "HEAD", "m"]), @r"
    exit 0
    --- stdout
    m/2_b.sql:1:1: warning[applied-migration-removed] this applied migration was deleted: new databases never get its changes, and some migration tools refuse to run on those that have applied it
    1 warning in 1 of 1 file
    ");
    // Nothing shows any more which tool ran them.
    write(&folder, "other/1_d.sql", TABLE);
    git(&folder, &["rm", "-q", "-r", "m"]);
    let said = concise(&folder, &["--since", "HEAD", "."]);
    assert!(said.contains("note: `m/1_a.sql` and 2 other migrations were deleted or moved"), "{said}");
}

#[test]
fn tracked_files_that_git_ignores_are_checked() {
    let folder = repository(&[("m/1_a.sql", TABLE), ("m/local/3_c.sql", BAD), (".gitignore", b"2_*\nlocal/\n")]);
    write(&folder, "m/2_b.sql", BAD);
    assert!(concise(&folder, &["m"]).contains("in 1 file\n"));
    git(&folder, &["add", "-f", "m/2_b.sql"]);
    for args in [["m"].as_slice(), &["--staged", "m"], &["--since", "HEAD", "m"], &["--changed", "m"]] {
        assert!(concise(&folder, args).contains("m/2_b.sql:2:1: error"), "{args:?}");
    }
    git(&folder, &["add", "-f", "m/local/3_c.sql"]);
    assert!(concise(&folder, &["--staged", "m"]).contains("m/local/3_c.sql:"));
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_not_utf_8_and_submodules_are_checked() {
    use std::os::unix::ffi::OsStrExt;
    let inner = repository(&[("1_a.sql", TABLE)]);
    let folder = repository(&[("m/1_a.sql", TABLE)]);
    fs::write(folder.path().join("m").join(std::ffi::OsStr::from_bytes(b"2_\xff.sql")), BAD).unwrap();
    git(&folder, &["add", "-A"]);
    for change in ["--staged", "--changed"] {
        assert!(concise(&folder, &[change, "m"]).contains(":2:1: error"), "{change}");
    }
    commit(&folder);
    let from = inner.path().display().to_string();
    git(&folder, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "sub"]);
    assert!(concise(&folder, &["--staged", "."]).contains("No problems found in 1 file"));
    commit(&folder);
    write(&folder, "sub/2_b.sql", BAD);
    for args in [["--changed", "."].as_slice(), &["--since", "HEAD", "."]] {
        assert!(concise(&folder, args).contains("sub/2_b.sql:2:1: error"), "{args:?}");
    }
}

/// A tool may follow a link, and a file that is not checked out is a migration all the same.
#[test]
#[cfg(unix)]
fn files_that_a_walk_does_not_reach_are_counted_in_the_summary() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("3_c.sql"), BAD).unwrap();
    let new =
        || repository(&[("m/1_a.sql", TABLE), ("m/old/0_z.sql", TABLE), ("other/2_b.sql", BAD), ("other/x.md", b"")]);
    for (target, said) in [
        ("../other", "1 in symbolically linked folders"),
        ("..", "1 in symbolically linked folders"),
        (outside.path().to_str().unwrap(), "1 in symbolically linked folders"),
        ("old", ""),
        ("/nonexistent", ""),
    ] {
        let folder = new();
        symlink(target, folder.path().join("m/more")).unwrap();
        let found = concise(&folder, &["m"]);
        assert!(found.contains(said) && found.contains("symbolically linked") != said.is_empty(), "{target}: {found}");
        assert!(!found.contains("3_c.sql"), "nothing outside is read: {found}");
    }
    let folder = new();
    git(&folder, &["update-index", "--skip-worktree", "m/1_a.sql"]);
    assert!(!concise(&folder, &["m"]).contains("not checked out"));
    fs::remove_file(folder.path().join("m/1_a.sql")).unwrap();
    let found = concise(&folder, &["m"]);
    assert!(found.contains("1 not checked out"), "{found}");
}

/// Each of these has a migration that no part of the summary counted, although some tool runs it.
#[test]
fn a_migration_that_is_not_checked_is_counted_in_the_summary() {
    for (path, text, said) in [
        ("m/.2_b.sql", "DROP TABLE orders;", "1 in hidden folders"),
        ("m/.more/V2__b.sql", "DROP TABLE orders;", "1 in hidden folders"),
        ("m/2_b.up.pgsql", "DROP TABLE orders;", "1 with an extension other than .sql"),
        ("m/down.sql", "DROP TABLE orders;", "1 file treated as a rollback migration because of its name"),
        ("m/2_b.rollback.sql", "DROP TABLE orders;", "1 file treated as a rollback migration because of its name"),
        ("m/U2__b.sql", "DROP TABLE orders;", "1 file treated as a rollback migration because of its name"),
        ("m/mysql/2_b.sql", "DROP TABLE orders;", "1 for another database system"),
        ("m/node_modules/2_b.sql", "DROP TABLE orders;", "1 in dependencies or build output"),
        ("m/testdata/2_b.sql", "DROP TABLE orders;", "1 for tests"),
        ("m/2_b.sql", "-- migrate:up\nSELECT 1;\n-- migrate:down\nDROP TABLE orders;", "was checked only in part"),
    ] {
        let folder = repository(&[("m/1_a.sql", TABLE)]);
        write(&folder, path, text.as_bytes());
        git(&folder, &["add", "-f", "."]);
        git(&folder, &["commit", "-q", "-m", "x"]);
        for args in [&["m"][..], &["m", "--since", "HEAD~1"]] {
            let found = concise(&folder, args);
            assert!(found.contains(said), "{path} {args:?}: {found}");
        }
    }
}

/// Each of these hid its last statement once.
#[test]
fn a_migration_cannot_hide_its_rest() {
    for (path, text) in [
        ("migrations/2_b.sql", "-- name: X :exec\nDROP TABLE orders;\n"),
        ("migrations/2_b.sql", "-- migrate:down\nDROP TABLE orders;\n"),
        ("migrations/test/2_b.sql", "DROP TABLE orders;\n"),
        ("migrations/vendor/2_b.sql", "DROP TABLE orders;\n"),
        ("migrations/2_b.up.sql", "-- +goose Up\n-- +goose Down\nDROP TABLE orders;\n"),
        ("migrations/2_b.sql", "COPY (SELECT note FROM stdin) TO STDOUT; DROP TABLE orders;\n"),
        ("migrations/2_b.sql", "\\timing on \\\\ DROP TABLE orders;\n"),
        ("migrations/2_b.sql", "SELECT 1 AS \"{{\"; DROP TABLE orders; SELECT 1 AS \"}}\";\n"),
        (
            "migrations/2_b.sql",
            "ALTER DATABASE d SET client_encoding = gbk;\n\\c\nSELECT E'€\\'; DROP TABLE orders; --';\n",
        ),
        ("migrations/2_b.sql", "COPY (SELECT 1) TO PROGRAM 'psql -c \"DROP TABLE orders\"';\n"),
        ("migrations/2_b.sql", "DROP OWNED BY CURRENT_USER;\n"),
        ("migrations/2_b.sql", "SELECT ts_rewrite('a'::tsquery, 'DELETE FROM orders RETURNING 1, 2');\n"),
    ] {
        let folder = repository(&[("migrations/1_a.sql", TABLE)]);
        write(&folder, path, text.as_bytes());
        let found = concise(&folder, &["migrations", "--level", "info"]);
        assert!(found.starts_with("exit 1\n") || found.contains("warning["), "{path} {text}: {found}");
        assert!(found.contains(&format!("{path}:")), "{path} {text}: {found}");
    }
}

/// What psql runs beside the statements that are seen, and what they run that is not SQL of the file.
#[test]
fn what_runs_unseen_is_reported() {
    for text in [
        "\\i other.sql",
        "\\ir other.sql",
        "\\include other.sql",
        "\\include_relative other.sql",
        "\\! psql -c 'DROP TABLE orders'",
        "\\copy orders FROM PROGRAM 'psql -c \"DROP TABLE orders\"'",
        "\\o |psql\nSELECT 'DROP TABLE orders';",
        "SELECT 'DROP TABLE orders' \\g |psql",
        "SELECT 'DROP TABLE orders' \\gexec",
        "SELECT 'DROP TABLE orders;' AS v \\gset\n:v",
        "\\set v '; DROP TABLE orders; --'\nSELECT 1 :v;",
        "COPY orders (missing) FROM stdin;\nDROP TABLE orders;\n\\.\n",
        "SELECT E'a'\n'b\\'; DROP TABLE orders; --';",
        "SELECT $x$.'$x$a; DROP TABLE orders; --';",
        "SET LOCAL standard_conforming_strings = off;\nSELECT 'a\\'; DROP TABLE orders; --';",
        "SET client_encoding = 'BIG5';\nSELECT E'€\\'; DROP TABLE orders; --';",
        "\\encoding GBK\nSELECT E'€\\'; DROP TABLE orders; --';",
        "DO LANGUAGE plperl $$ spi_exec_query('DROP TABLE orders'); $$;",
        "SELECT query_to_xml('DELETE FROM orders RETURNING 1', true, true, '');",
        "SELECT dblink_exec('dbname=d', 'DROP TABLE orders');",
        "SELECT cron.schedule('now', '* * * * *', 'DELETE FROM orders');",
    ] {
        let folder = repository(&[("migrations/1_a.sql", TABLE)]);
        write(&folder, "migrations/2_b.sql", text.as_bytes());
        let found = concise(&folder, &["migrations", "--level", "info", "--confidence", "possible"]);
        let findings: Vec<&str> = found.lines().filter(|line| line.starts_with("migrations/2_b.sql:")).collect();
        let is_about_it = |line: &&str| !line.contains("[missing-lock-timeout]");
        assert!(findings.iter().any(is_about_it), "{text}: {found}");
    }
}

/// Paths and texts.
type Files = &'static [(&'static str, &'static [u8])];

/// What follows a mark of another tool is run, whatever the mark says.
#[test]
fn marks_of_other_tools_hide_nothing_in_the_folders_of_a_tool() {
    let marks =
        ["-- +goose Up\nSELECT 1;\n-- +goose Down\n", "-- migrate:down\n", "-- +migrate Down\n", "-- name: X :exec\n"];
    let repositories: [(&str, Files); 5] = [
        ("sql/V2__b.sql", &[("sql/V1__a.sql", TABLE), ("flyway.conf", b"flyway.locations=filesystem:sql\n")]),
        (
            "prisma/migrations/20240102000000_b/migration.sql",
            &[("prisma/migrations/20240101000000_a/migration.sql", TABLE), ("prisma/schema.prisma", b"")],
        ),
        (
            "supabase/migrations/20240102000000_b.sql",
            &[("supabase/migrations/20240101000000_a.sql", TABLE), ("supabase/config.toml", b"")],
        ),
        ("m/000002_b.up.sql", &[("m/000001_a.up.sql", TABLE), ("m/000001_a.down.sql", b"DROP TABLE orders;\n")]),
        (
            "migrations/20240102_b.sql",
            &[("migrations/20240101_a.sql", TABLE), ("Cargo.toml", b"[dependencies]\nsqlx = \"0.8\"\n")],
        ),
    ];
    for (path, files) in repositories {
        for mark in marks {
            let folder = repository(files);
            write(&folder, path, format!("{mark}DROP TABLE orders;\n").as_bytes());
            let found = concise(&folder, &["."]);
            assert!(found.contains("[drop-table]") && found.contains(path), "{path} {mark}: {found}");
        }
    }
}

/// Each of these was once followed up to a bound, and silently not beyond.
#[test]
fn code_beyond_a_bound_is_reported() {
    let calling = |at: usize| {
        format!("CREATE FUNCTION f{}() RETURNS void LANGUAGE plpgsql AS 'BEGIN PERFORM f{at}(); END';\n", at + 1)
    };
    let functions = (0..12).map(calling).collect::<Vec<_>>().concat();
    let names: Vec<String> = (0..70).map(|at| format!("'t{at}'")).collect();
    let calls = (0..600).map(|at| format!("PERFORM n({at}); ")).collect::<Vec<_>>().concat();
    let first = "CREATE FUNCTION f0() RETURNS void LANGUAGE plpgsql AS 'BEGIN DROP TABLE orders; END';\n";
    let no_op = "CREATE FUNCTION n(int) RETURNS void LANGUAGE plpgsql AS 'BEGIN PERFORM $1; END';\n";
    for text in [
        format!("DO $$ BEGIN {}DROP TABLE orders;{} END $$;\n", "IF true THEN ".repeat(120), " END IF;".repeat(120)),
        format!("DO $$ BEGIN {}DROP TABLE orders;{} END $$;\n", "BEGIN ".repeat(120), " END;".repeat(120)),
        format!("{first}{functions}SELECT f12();\n"),
        format!("{first}{no_op}DO $$ BEGIN {calls}PERFORM f0(); END $$;\n"),
        format!(
            "DO $$ DECLARE x text; BEGIN FOREACH x IN ARRAY ARRAY[{}, 'orders'] LOOP \
             EXECUTE format('DROP TABLE %I', x); END LOOP; END $$;\n",
            names.join(", ")
        ),
        "PREPARE p AS DELETE FROM orders;\nEXECUTE p;\n".to_owned(),
        "DO LANGUAGE plpython3u $$ plpy.execute('DROP TABLE orders') $$;\n".to_owned(),
    ] {
        let folder = repository(&[("migrations/1_a.sql", TABLE)]);
        write(&folder, "migrations/2_b.sql", text.as_bytes());
        let found = concise(&folder, &["migrations"]);
        let is_seen =
            ["not-analyzed", "drop-table", "unbounded-update-or-delete"].iter().any(|rule| found.contains(rule));
        assert!(is_seen, "{text:.300}: {found}");
    }
}
