//! `pgvet rewrite` for each migration tool: the files have its form, and `check` is content with them.

use crate::support::Folder;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const TABLES: &str = "CREATE TABLE customers (id bigint PRIMARY KEY);\n\
    CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint, total integer);\n";
const CHANGE: &str = "ALTER TABLE orders ADD CONSTRAINT fk FOREIGN KEY (customer_id) REFERENCES customers;\n\
    CREATE INDEX orders_total ON orders (total);\n\
    ALTER TABLE orders ADD COLUMN token uuid DEFAULT gen_random_uuid();\n";

/// A tool: the paths of two migrations, the text before and after their SQL, and other files.
struct Form {
    name: &'static str,
    paths: [&'static str; 2],
    before: &'static str,
    after: &'static str,
    others: &'static [(&'static str, &'static str)],
}

const FORMS: &[Form] = &[
    Form {
        name: "plain",
        paths: ["migrations/1_a.sql", "migrations/2_b.sql"],
        before: "",
        after: "",
        others: &[("pgvet.toml", "[migrations]\ntransaction = \"autocommit\"\n")],
    },
    Form {
        name: "goose",
        paths: ["migrations/001_a.sql", "migrations/002_b.sql"],
        before: "-- +goose Up\n",
        after: "-- +goose Down\nDROP TABLE IF EXISTS nothing;\n",
        others: &[],
    },
    Form {
        name: "sql-migrate",
        paths: ["migrations/1_a.sql", "migrations/2_b.sql"],
        before: "-- +migrate Up\n",
        after: "-- +migrate Down\n",
        others: &[],
    },
    Form {
        name: "dbmate",
        paths: ["migrations/20240101_a.sql", "migrations/20240102_b.sql"],
        before: "-- migrate:up\n",
        after: "-- migrate:down\nDROP INDEX orders_total;\n",
        others: &[],
    },
    Form {
        name: "flyway",
        paths: ["migrations/V1__a.sql", "migrations/V2__b.sql"],
        before: "",
        after: "",
        others: &[("flyway.conf", "flyway.postgresql.transactional.lock=false\n")],
    },
    Form {
        name: "golang-migrate",
        paths: ["migrations/000001_a.up.sql", "migrations/000002_b.up.sql"],
        before: "",
        after: "",
        others: &[("migrations/000002_b.down.sql", "DROP INDEX orders_total;\n")],
    },
    Form {
        name: "pop",
        paths: ["migrations/1_a.postgres.up.sql", "migrations/2_b.postgres.up.sql"],
        before: "",
        after: "",
        others: &[("go.mod", "require (\n\tgithub.com/gobuffalo/pop/v6 v6\n\tgithub.com/ory/x v1\n)\n")],
    },
    Form {
        name: "sqlx",
        paths: ["migrations/1_a.sql", "migrations/2_b.sql"],
        before: "",
        after: "",
        others: &[("Cargo.toml", "[dependencies]\nsqlx = \"0.8\"\n")],
    },
    Form {
        name: "diesel",
        paths: ["migrations/2024-01-01-000001_a/up.sql", "migrations/2024-01-01-000002_b/up.sql"],
        before: "",
        after: "",
        others: &[("migrations/2024-01-01-000002_b/down.sql", "DROP INDEX orders_total;\n")],
    },
    Form {
        name: "prisma",
        paths: ["migrations/20240101000000_a/migration.sql", "migrations/20240102000000_b/migration.sql"],
        before: "",
        after: "",
        others: &[],
    },
    Form {
        name: "atlas",
        paths: ["migrations/20240101000000_a.sql", "migrations/20240102000000_b.sql"],
        before: "",
        after: "",
        others: &[("migrations/atlas.sum", "h1:x\n")],
    },
    Form {
        name: "sqitch",
        paths: ["deploy/a.sql", "deploy/b.sql"],
        before: "-- Deploy shop:x to pg\n",
        after: "",
        others: &[(
            "sqitch.plan",
            "%syntax-version=1.0.0\n%project=shop\n\na 2024-01-01T00:00:00Z A <a@b.c> # a\nb [a] 2024-01-02T00:00:00Z A <a@b.c> # b\n",
        )],
    },
];

fn folder(form: &Form) -> Folder {
    let texts = [TABLES, CHANGE].map(|sql| format!("{}{sql}{}", form.before, form.after));
    let mut files: Vec<(&str, &[u8])> =
        std::iter::zip(form.paths, &texts).map(|(path, text)| (path, text.as_bytes())).collect();
    files.extend(form.others.iter().map(|(path, text)| (*path, text.as_bytes())));
    Folder::new(&files)
}

fn files(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_files_have_the_form_of_the_tool_and_no_finding() {
    for form in FORMS {
        let folder = folder(form);
        let said = folder.run(&["rewrite", form.paths[1], "--in-place"]);
        assert!(said.starts_with("exit 0"), "{}: {said}", form.name);
        let mut listing = String::new();
        for (path, text) in files(folder.path()).into_iter().filter(|(path, _)| *path != form.paths[0]) {
            writeln!(listing, "==> {path}\n{text}").unwrap();
        }
        insta::assert_snapshot!(form.name, listing);
        let checked =
            folder.run(&["check", "--start-after", form.paths[0], "--fail-on", "warning", "--format", "concise"]);
        assert!(checked.starts_with("exit 0"), "{}: {checked}\n{listing}", form.name);
        let again = folder.run(&["rewrite", form.paths[1], "--in-place"]);
        assert!(
            again.contains("is a later migration") || again.contains("Nothing to rewrite"),
            "{}: {again}",
            form.name
        );
    }
}

#[test]
fn changesets_are_rewritten_in_their_file() {
    let text = format!(
        "--liquibase formatted sql\n\n--changeset ann:1\n{TABLES}\n--changeset ann:2 context:prod\n{CHANGE}--rollback DROP INDEX orders_total;\n\n--changeset ann:3\nSELECT 1;\n"
    );
    let folder = Folder::new(&[("db/changelog.sql", text.as_bytes())]);
    let said = folder.run(&["rewrite", "db/changelog.sql", "--in-place"]);
    assert!(said.starts_with("exit 0"), "{said}");
    insta::assert_snapshot!(fs::read_to_string(folder.path().join("db/changelog.sql")).unwrap());
    let checked = folder.run(&["check", "db", "--fail-on", "warning"]);
    assert!(checked.starts_with("exit 0"), "{checked}");
}

#[test]
fn a_folder_of_its_own_or_the_output_leave_the_original_alone() {
    let folder = folder(&FORMS[1]);
    let said = folder.run(&["rewrite", "migrations/002_b.sql", "--out", "new"]);
    assert!(said.contains("files to new"), "{said}");
    assert!(folder.path().join("new/003_validate_fk.sql").exists());
    assert!(folder.run(&["rewrite", "migrations/002_b.sql", "--out", "new"]).contains("already exists"));
    assert!(folder.run(&["rewrite", "migrations/002_b.sql"]).contains("-- ==> migrations/003_validate_fk.sql\n"));
    assert!(fs::read_to_string(folder.path().join("migrations/002_b.sql")).unwrap().contains(CHANGE));
}

#[test]
fn what_a_tool_cannot_run_is_refused_before_anything_is_written() {
    let cargo = ("Cargo.toml", "[dependencies]\nrefinery = \"0.8\"\n");
    for (path, other, part) in [
        ("migrations/V2__b.sql", cargo, "runs in a transaction of refinery"),
        ("supabase/migrations/2_b.sql", ("x", ""), "in which `fill` of the plan cannot run"),
        (
            "migrations/0001_b.sql",
            ("migrations/meta/_journal.json", r#"{"entries":[{"idx":0,"tag":"0000_a"},{"idx":1,"tag":"0001_b"}]}"#),
            "runs in a transaction of drizzle",
        ),
    ] {
        let text = format!("{TABLES}\n");
        let first = path.replace("2_", "1_").replace("0001_", "0000_").replace("V2", "V1").replace("_b", "_a");
        let files = [(first.as_str(), text.as_bytes()), (path, CHANGE.as_bytes()), (other.0, other.1.as_bytes())];
        let folder = Folder::new(&files);
        let before = files_of(&folder);
        let said = folder.run(&["rewrite", path, "--in-place", "--history", &first]);
        assert!(said.starts_with("exit 2") && said.contains(part), "{path}: {said}");
        assert_eq!(files_of(&folder), before);
        assert!(folder.run(&["rewrite", path, "--history", &first]).contains("(outside a transaction)"));
    }
}

#[test]
fn a_tool_without_a_name_may_open_a_transaction() {
    let config = ("pgvet.toml", &b"[migrations]\ntransaction = \"transaction\"\n"[..]);
    let key = b"ALTER TABLE orders ADD CONSTRAINT fk FOREIGN KEY (customer_id) REFERENCES customers;";
    let index = b"CREATE INDEX orders_total ON orders (total);";
    let with = |sql: &'static [u8]| {
        Folder::new(&[config, ("migrations/1_a.sql", TABLES.as_bytes()), ("migrations/2_b.sql", sql)])
    };
    let folder = with(key);
    let said = folder.run(&["rewrite", "migrations/2_b.sql", "--in-place"]);
    assert!(said.starts_with("exit 0"), "{said}");
    let written = files_of(&folder);
    assert!(written.len() == 4 && written.iter().all(|(_, text)| !text.contains("BEGIN;")), "{written:?}");
    let said = with(index).run(&["rewrite", "migrations/2_b.sql", "--in-place"]);
    assert!(said.contains("runs in a transaction of the configured tool, in which `build_orders_total`"), "{said}");
}

fn files_of(folder: &Folder) -> Vec<(String, String)> {
    files(folder.path())
}

#[test]
fn what_cannot_be_rewritten_says_why() {
    for (text, part) in [
        ("CREATE TABLE a (id int);", "Nothing to rewrite"),
        ("\\set x 1\nCREATE INDEX ON orders (total);", "is not a statement of PostgreSQL"),
        ("CREATE INDEX ON ON orders;", "it does not parse"),
        ("CREATE INDEX i ON orders (missing);", "PostgreSQL would refuse it"),
    ] {
        let folder = Folder::new(&[("migrations/1_a.sql", TABLES.as_bytes()), ("migrations/2_b.sql", text.as_bytes())]);
        let said = folder.run(&["rewrite", "migrations/2_b.sql"]);
        assert!(said.contains(part), "{text}: {said}");
    }
    let folder = Folder::new(&[
        ("migrations/1_a.sql", TABLES.as_bytes()),
        ("migrations/9_b.sql", CHANGE.as_bytes()),
        ("migrations/10_c.sql", b"SELECT 1;"),
    ]);
    assert!(folder.run(&["rewrite", "migrations/9_b.sql", "--in-place"]).contains("is a later migration"));
    assert!(folder.run(&["rewrite", "migrations"]).contains("takes one file"));
}

#[test]
fn line_breaks_are_those_of_the_file() {
    let form = &FORMS[0];
    let text = format!("{}-- why\n{CHANGE}{}", form.before, form.after).replace('\n', "\r\n");
    let folder = folder(form);
    fs::write(folder.path().join(form.paths[1]), text).unwrap();
    folder.run(&["rewrite", form.paths[1], "--out", "new"]);
    let written = files(&folder.path().join("new"));
    assert!(written.len() > 1, "{written:?}");
    for (name, text) in written {
        let bare = text.replace("\r\n", "");
        assert!(!bare.contains(['\n', '\r']), "{name}: {text:?}");
    }
}
