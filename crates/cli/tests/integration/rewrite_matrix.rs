//! `pgvet rewrite` of every recipe for every migration tool: `check` finds nothing in what it writes, or it says why the
//! tool cannot run the plan and writes nothing.

use crate::support::Folder;
use std::fs;
use std::thread;

const HISTORY: &str = include_str!("../../../../fixtures/rewrite/history.sql");
const RECIPES: &str = include_str!("../../../../fixtures/rewrite/recipes.sql");

/// A tool: the paths of two migrations, the text before and after their SQL, and another file.
struct Form {
    name: &'static str,
    paths: [&'static str; 2],
    before: [&'static str; 2],
    after: &'static str,
    other: (&'static str, &'static str),
    /// The line between two statements.
    between: Option<&'static str>,
    /// What it says of a plan that the tool cannot run; `None`: it can run each.
    refuses: Option<&'static str>,
}

const NOTHING: (&str, &str) = ("readme.txt", "");

const fn form(name: &'static str, paths: [&'static str; 2]) -> Form {
    Form { name, paths, before: ["", ""], after: "", other: NOTHING, between: None, refuses: None }
}

const FLAT: [&str; 2] = ["migrations/1_a.sql", "migrations/2_b.sql"];

const FORMS: &[Form] = &[
    Form { other: ("pgvet.toml", "[migrations]\ntransaction = \"autocommit\"\n"), ..form("plain", FLAT) },
    Form { refuses: Some("of the program that runs it, as far as pgvet knows"), ..form("unknown", FLAT) },
    Form { other: ("pgvet.toml", "[migrations]\ntransaction = \"single-string\"\n"), ..form("plain strings", FLAT) },
    Form { before: ["-- +goose Up\n"; 2], after: "-- +goose Down\n", ..form("goose", FLAT) },
    Form { before: ["-- +migrate Up\n"; 2], after: "-- +migrate Down\n", ..form("sql-migrate", FLAT) },
    Form {
        before: ["-- migrate:up\n"; 2],
        after: "-- migrate:down\n",
        ..form("dbmate", ["migrations/20240101_a.sql", "migrations/20240102_b.sql"])
    },
    Form {
        other: ("flyway.conf", "flyway.postgresql.transactional.lock=false\n"),
        ..form("flyway", ["migrations/V1__a.sql", "migrations/V2__b.sql"])
    },
    Form {
        before: ["--liquibase formatted sql\n\n--changeset a:1\n", "--liquibase formatted sql\n\n--changeset a:2\n"],
        other: (
            "db/changelog/db.changelog-master.yaml",
            "databaseChangeLog:\n  - include: {file: db/changelog/1.sql}\n  - include: {file: db/changelog/2.sql}\n",
        ),
        ..form("liquibase", ["db/changelog/1.sql", "db/changelog/2.sql"])
    },
    Form {
        other: ("migrations/000002_b.down.sql", "SELECT 1;\n"),
        ..form("golang-migrate", ["migrations/000001_a.up.sql", "migrations/000002_b.up.sql"])
    },
    Form {
        other: ("go.mod", "require github.com/gobuffalo/pop/v6 v6\n"),
        refuses: Some("runs in a transaction of pop"),
        ..form("pop", ["migrations/1_a.postgres.up.sql", "migrations/2_b.postgres.up.sql"])
    },
    Form { other: ("Cargo.toml", "[dependencies]\nsqlx = \"0.8\"\n"), ..form("sqlx", FLAT) },
    Form {
        other: ("Cargo.toml", "[dependencies]\nrefinery = \"0.8\"\n"),
        refuses: Some("runs in a transaction of refinery"),
        ..form("refinery", ["migrations/V1__a.sql", "migrations/V2__b.sql"])
    },
    Form {
        other: ("migrations/2024-01-01-000002_b/down.sql", "SELECT 1;\n"),
        ..form("diesel", ["migrations/2024-01-01-000001_a/up.sql", "migrations/2024-01-01-000002_b/up.sql"])
    },
    form("prisma", ["migrations/20240101000000_a/migration.sql", "migrations/20240102000000_b/migration.sql"]),
    Form {
        other: ("drizzle/meta/_journal.json", r#"{"entries":[{"idx":0,"tag":"0000_a"},{"idx":1,"tag":"0001_b"}]}"#),
        refuses: Some("drizzle"),
        ..form("drizzle", ["drizzle/0000_a.sql", "drizzle/0001_b.sql"])
    },
    Form {
        other: ("migrations/atlas.sum", "h1:x\n"),
        ..form("atlas", ["migrations/20240101000000_a.sql", "migrations/20240102000000_b.sql"])
    },
    Form {
        refuses: Some("runs in a transaction of supabase"),
        ..form("supabase", ["supabase/migrations/20240101000000_a.sql", "supabase/migrations/20240102000000_b.sql"])
    },
    Form {
        before: ["-- Up Migration\n"; 2],
        after: "-- Down Migration\n",
        refuses: Some("node-pg-migrate"),
        ..form("node-pg-migrate", ["migrations/1704067200000_a.sql", "migrations/1704067300000_b.sql"])
    },
    Form {
        refuses: Some("is recorded by graphile-migrate"),
        ..form("graphile-migrate", ["migrations/committed/000001.sql", "migrations/current.sql"])
    },
    Form {
        other: ("migrations/tern.conf", "[database]\n"),
        ..form("tern", ["migrations/001_a.sql", "migrations/002_b.sql"])
    },
    Form {
        other: ("yoyo.ini", "[DEFAULT]\nsources = ./migrations\n"),
        ..form("yoyo", ["migrations/0001.a.sql", "migrations/0002.b.sql"])
    },
    Form {
        other: ("package.json", r#"{"dependencies": {"postgres-migrations": "5.3.0"}}"#),
        ..form("postgres-migrations", FLAT)
    },
    Form {
        after: "-- //@UNDO\n",
        refuses: Some("mybatis"),
        ..form("mybatis", ["scripts/20240101120000_a.sql", "scripts/20240102120000_b.sql"])
    },
    Form {
        other: ("project.clj", "(defproject app \"1\" :dependencies [[migratus \"1.6.5\"]])\n"),
        between: Some("--;;"),
        ..form("migratus", ["migrations/20240101120000-a.up.sql", "migrations/20240102120000-b.up.sql"])
    },
    Form {
        other: ("db/_post/readme.md", ""),
        refuses: Some("yuniql"),
        ..form("yuniql", ["db/v0.00/a.sql", "db/v1.00/b.sql"])
    },
    Form {
        other: ("sprocs/readme.md", ""),
        refuses: Some("runs all files in one session"),
        ..form("grate", ["up/0001_a.sql", "up/0002_b.sql"])
    },
    Form {
        other: ("App.csproj", "<PackageReference Include=\"Evolve\" />\n"),
        ..form("evolve", ["migrations/V1__a.sql", "migrations/V2__b.sql"])
    },
    Form {
        other: (
            "App.csproj",
            "<PackageReference Include=\"dbup-postgresql\" />\n<EmbeddedResource Include=\"Scripts\\*.sql\" />\n",
        ),
        refuses: Some("runs all files in one session"),
        ..form("dbup", ["Scripts/0001_a.sql", "Scripts/0002_b.sql"])
    },
    form("postgrator", ["migrations/1.do.a.sql", "migrations/2.do.b.sql"]),
    Form {
        before: ["-- Deploy shop:a to pg\n", "-- Deploy shop:b to pg\n"],
        other: (
            "sqitch.plan",
            "%syntax-version=1.0.0\n%project=shop\n\na 2024-01-01T00:00:00Z A <a@b.c> # a\nb [a] 2024-01-02T00:00:00Z A <a@b.c> # b\n",
        ),
        ..form("sqitch", ["deploy/a.sql", "deploy/b.sql"])
    },
];

/// What is wrong with the plan of a recipe, if anything is, and whether it was written.
fn try_recipe(form: &Form, recipe: &str) -> Result<bool, String> {
    let divided = |sql: &str| match form.between {
        Some(line) => sql.replace("; ", ";\n").trim_end().replace(";\n", &format!(";\n{line}\n")) + "\n",
        None => sql.to_owned(),
    };
    let history = format!("{}{}{}", form.before[0], divided(&format!("CREATE ROLE reader;\n{HISTORY}")), form.after);
    let change = format!("{}{}\n{}", form.before[1], divided(recipe), form.after);
    let files = [
        (form.paths[0], history.as_bytes()),
        (form.paths[1], change.as_bytes()),
        (form.other.0, form.other.1.as_bytes()),
    ];
    let folder = Folder::new(&files);
    let said = folder.run(&["rewrite", form.paths[1], "--in-place"]);
    if said.starts_with("exit 2") {
        let is_explained = form.refuses.is_some_and(|reason| said.contains(reason));
        let is_same = fs::read_to_string(folder.path().join(form.paths[1])).unwrap() == change;
        return if is_explained && is_same { Ok(false) } else { Err(said) };
    }
    if !said.starts_with("exit 0") || said.contains("Nothing to rewrite") {
        return Err(said);
    }
    let arguments = ["--start-after", form.paths[0], "--fail-on", "warning", "--format", "concise", "--no-cache"];
    let checked = folder.run(&[&["check"][..], &arguments].concat());
    if checked.starts_with("exit 0") { Ok(true) } else { Err(checked) }
}

#[test]
fn check_finds_nothing_in_any_plan_for_any_tool() {
    let recipes: Vec<&str> = RECIPES.lines().filter(|line| !line.starts_with("--")).collect();
    let try_form = |form: &Form| {
        let tried = recipes.iter().map(|recipe| (recipe, try_recipe(form, recipe)));
        let mut written = 0;
        let mut wrong = Vec::new();
        for (recipe, result) in tried {
            match result {
                Ok(is_written) => written += usize::from(is_written),
                Err(said) => wrong.push(format!("{}: {recipe}\n{said}", form.name)),
            }
        }
        if form.refuses.is_none() && wrong.is_empty() {
            assert_eq!(written, recipes.len(), "{}", form.name);
        }
        wrong
    };
    let halves = FORMS.chunks(FORMS.len().div_ceil(4));
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> =
            halves.map(|forms| scope.spawn(move || forms.iter().flat_map(try_form).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), FORMS.len() * recipes.len(), wrong.join("\n"));
}
