//! Small repositories, and what they show.

use crate::config::ConfigSource;
use crate::project::{Project, Request};
use pgvet_model::incident::IncidentKind;
use std::fs;
use std::path::Path;

/// The evidence about each file of a repository: its path, why it may not run, and the place of a timeout.
fn evidence(files: &[(&str, &str)], config: Option<&str>) -> (Vec<String>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(".git/HEAD", "");
    files.iter().for_each(|(path, text)| write(path, text));
    config.into_iter().for_each(|text| write("pgvet.toml", text));
    let request =
        Request { paths: vec![folder.path().to_owned()], config: ConfigSource::Nearest, ..Request::default() };
    let project = Project::load(&request, &|_, _| {}).unwrap();
    let shown = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string();
    let with = project.files.iter().filter(|file| file.evidence.idle.is_some() || file.evidence.timeout.is_some());
    let lines = with.map(|file| {
        let idle = file.evidence.idle.as_ref().map(ToString::to_string).unwrap_or_default();
        let place = file.evidence.timeout.as_ref().map(|timeout| timeout.place.as_str()).unwrap_or_default();
        let idle = idle.replace(&format!("{}/", folder.path().display()), "");
        format!("{}: {idle}{place}", shown(&file.path))
    });
    (lines.collect(), project.notes.len())
}

#[test]
fn a_folder_of_old_migrations_is_doubted() {
    let files = [("db/old/1_a.sql", "CREATE TABLE a (b int);"), ("db/migrations/1_a.sql", "CREATE TABLE c (d int);")];
    let expected = vec!["db/old/1_a.sql: a folder above it is called `old`".to_owned()];
    assert_eq!(evidence(&files, None), (expected, 1));
    let included = "[migrations]\ninclude = [\"db/old/**\"]\n";
    assert_eq!(evidence(&files, Some(included)), (vec![], 0));
    assert_eq!(evidence(&files, Some("[migrations]\npaths = [\"db/old\"]\n")), (vec![], 0));
}

#[test]
fn a_copy_beside_the_folder_of_migrations_is_doubted() {
    let copy = ("db/migrations-original/1_a.sql", "CREATE TABLE a (b int);");
    let expected = vec![format!("{}: a folder above it is called `migrations-original`", copy.0)];
    assert_eq!(evidence(&[copy, ("db/migrations/1_a.sql", "CREATE TABLE c (d int);")], None), (expected, 1));
    assert_eq!(evidence(&[copy], None), (vec![], 0), "nothing else has the name");
}

#[test]
fn what_names_the_folder_beats_its_name() {
    let old = ("db/old/1_a.sql", "CREATE TABLE a (b int);");
    for (path, text) in [("dbconfig.yml", "dir: db/old"), ("db/run.sh", "for f in \"old\"/*.sql; do psql -f $f; done")]
    {
        assert_eq!(evidence(&[old, (path, text)], None), (vec![], 0), "{path}");
    }
    let service = [("legacy/go.mod", "module legacy"), ("legacy/migrations/1_a.sql", "CREATE TABLE a (b int);")];
    assert_eq!(evidence(&service, None), (vec![], 0), "a service of that name");
}

#[test]
fn a_list_of_what_is_excluded_names_no_folder_that_runs() {
    let old = ("archive/1_a.sql", "CREATE TABLE a (b int);");
    let of = |text| evidence(&[old, ("tsconfig.json", text)], None).0;
    assert_eq!(
        of("{ \"exclude\": [\"node_modules\", \"archive\"] }"),
        ["archive/1_a.sql: a folder above it is called `archive`"]
    );
    assert_eq!(of("{ \"migrations\": [\"archive\"] }"), [] as [&str; 0]);
}

#[test]
fn files_outside_of_the_folder_of_the_tool_are_doubted() {
    let tool = [("supabase/config.toml", ""), ("supabase/migrations/1_a.sql", "CREATE TABLE a (b int);")];
    let below = ("supabase/migrations/fixes/2_b.sql", "ALTER TABLE a ADD c int;");
    let other = ("database/updates/1_c.sql", "ALTER TABLE a ADD d int;");
    let of = |more: &[(&str, &str)]| evidence(&[&tool, more].concat(), None);
    let said = |path: &str| {
        format!(
            "{path}: Supabase runs the migrations in `supabase/migrations`, and nothing shows what runs other files"
        )
    };
    assert_eq!(of(&[below, other]), (vec![said(other.0), said(below.0)], 1));
    for (path, text) in [
        ("scripts/apply.sh", "psql -f database/updates/1_c.sql"),
        ("package.json", "{ \"scripts\": { \"update\": \"node run.js database/updates\" } }"),
        (
            "src/run.ts",
            "for (const file of readdirSync('database/updates')) if (file.endsWith('.sql')) query(readFile(file))",
        ),
        ("README.md", "    psql app -f database/updates/1_c.sql\n"),
        ("database/README.md", "Paste `updates/1_c.sql` into the editor.\n"),
        (".github/workflows/deploy.yml", "run: psql -f database/updates/1_c.sql"),
    ] {
        assert_eq!(of(&[other, (path, text)]).0, [] as [String; 0], "{path}");
    }
    // A second program of the repository.
    let service = [("service/go.mod", "module x"), ("service/sql/1_c.sql", "ALTER TABLE a ADD d int;")];
    assert_eq!(of(&service).0, [] as [String; 0]);
    let second = [("b/supabase/config.toml", ""), ("b/supabase/migrations/1_a.sql", "ALTER TABLE a ADD d int;")];
    assert_eq!(of(&second).0, [] as [String; 0], "the tool runs both");
    assert_eq!(evidence(&[tool[1], other], None).0, [] as [String; 0], "no configuration shows the tool");
    let included = "[migrations]\ninclude = [\"database/**\"]\n";
    assert_eq!(evidence(&[&tool[..], &[other]].concat(), Some(included)).0, [] as [String; 0]);
}

#[test]
fn folders_of_every_tool_are_recognized() {
    let prisma = [
        ("prisma/migrations/migration_lock.toml", "provider = \"postgresql\"\n"),
        ("prisma/migrations/1_a/migration.sql", "CREATE TABLE a (b int);"),
    ];
    let drizzle = [
        ("drizzle/meta/_journal.json", "{\"entries\": [{\"idx\": 0, \"when\": 1, \"tag\": \"0000_a\"}]}"),
        ("drizzle/0000_a.sql", "CREATE TABLE a (b int);"),
    ];
    let flyway = [("flyway.conf", "flyway.locations=sql"), ("sql/V1__a.sql", "CREATE TABLE a (b int);")];
    let sqlx = [("Cargo.toml", "[dependencies]\nsqlx = \"0.8\"\n"), ("migrations/1_a.sql", "CREATE TABLE a (b int);")];
    let go = "module x\nrequire github.com/golang-migrate/migrate/v4 v4.18.0\n";
    let golang = [("go.mod", go), ("migrations/1_a.up.sql", "CREATE TABLE a (b int);")];
    let sqitch = [
        ("sqitch.plan", "%project=x\na 2024-01-01T00:00:00Z x <x@x> # x\n"),
        ("deploy/a.sql", "CREATE TABLE a (b int);"),
    ];
    let other = ("fixes/1_c.sql", "ALTER TABLE a ADD d int;");
    for (tool, files) in [
        ("Prisma", &prisma),
        ("Drizzle", &drizzle),
        ("Flyway", &flyway),
        ("sqlx", &sqlx),
        ("golang-migrate", &golang),
        ("Sqitch", &sqitch),
    ] {
        let found = evidence(&[&files[..], &[other]].concat(), None).0;
        assert!(found.len() == 1 && found[0].starts_with(&format!("fixes/1_c.sql: {tool} runs")), "{tool}: {found:?}");
    }
}

#[test]
fn files_of_another_profile_of_flyway_are_doubted() {
    let folder = "src/main/resources/db/migration";
    let files = |lists: &str| {
        let migrations = ["common/V1__a.sql", "dev/V2__b.sql", "prod/V2__c.sql"].map(|path| format!("{folder}/{path}"));
        let code = ("src/main/kotlin/Configuration.kt", lists);
        let texts = ["CREATE TABLE a (b int);", "ALTER TABLE a ADD c int;", "ALTER TABLE a ADD d int;"];
        let all: Vec<(&str, &str)> = migrations.iter().map(String::as_str).zip(texts).chain([code]).collect();
        evidence(&all, None).0
    };
    let both = "if (isDev) {\n\"db/migration/common,db/migration/dev\"\n} else {\n\"db/migration/common,db/migration/prod\"\n}";
    let code = "src/main/kotlin/Configuration.kt";
    let said = format!("{folder}/dev/V2__b.sql: only `{code}:2` lists its folder for Flyway, and `{code}:4` does not");
    assert_eq!(files(both), [said]);
    assert_eq!(files("\"db/migration\""), [] as [&str; 0]);
}

#[test]
fn versions_in_folders_that_no_list_has_together_are_apart() {
    let apart = |list: &str| {
        let root = tempfile::tempdir().unwrap();
        let main = root.path().join("src/main");
        for (path, text) in [
            ("resources/db/migration/dev/V2__b.sql", "SELECT 1;"),
            ("resources/db/migration/prod/V2__c.sql", "SELECT 1;"),
            ("kotlin/Configuration.kt", list),
        ] {
            fs::create_dir_all(main.join(path).parent().unwrap()).unwrap();
            fs::write(main.join(path), text).unwrap();
        }
        fs::create_dir(root.path().join(".git")).unwrap();
        let request = Request { paths: vec![root.path().to_owned()], ..Request::default() };
        let project = Project::load(&request, &|_, _| {}).unwrap();
        let incidents = project.files.iter().flat_map(|file| &file.incidents);
        let apart = incidents.filter_map(|incident| match &incident.kind {
            IncidentKind::SameVersion { apart, .. } => Some(apart.is_some()),
            _ => None,
        });
        apart.collect::<Vec<_>>()
    };
    assert_eq!(apart("if (dev) \"db/migration/dev\" else \"db/migration/prod\""), [true]);
    assert_eq!(apart("\"db/migration/dev,db/migration/prod\""), [false]);
    assert_eq!(apart("\"db/migration\""), [false]);
    assert_eq!(apart(""), [false]);
}

#[test]
fn a_file_that_the_tool_omits_is_doubted() {
    let files = [
        ("Cargo.toml", "[dependencies]\nsqlx = \"0.8\"\n"),
        ("migrations/1_a.sql", "CREATE TABLE a (b int);"),
        ("migrations/t.sql", "SELEC 1;"),
    ];
    let expected = vec!["migrations/t.sql: the migration tool ignores its name or does not list it".to_owned()];
    assert_eq!(evidence(&files, None), (expected, 0));
}

#[test]
fn a_history_whose_record_another_one_drops_is_doubted() {
    let old = ("a/db/migration/V1__a.sql", "CREATE TABLE users (b int);");
    let new = |text| [old, ("b/migrations/0001_a.up.sql", text), ("b/migrations/0001_a.down.sql", "SELECT 1;")];
    let drops = "CREATE TABLE IF NOT EXISTS users (b int); DROP TABLE IF EXISTS flyway_schema_history;";
    let by = "`b/migrations/0001_a.up.sql` drops `flyway_schema_history`, in which the tool records what has run";
    assert_eq!(evidence(&new(drops), None), (vec![format!("a/db/migration/V1__a.sql: {by}")], 1));
    let of_another = "CREATE TABLE other (b int); DROP TABLE IF EXISTS flyway_schema_history;";
    assert_eq!(evidence(&new(of_another), None), (vec![], 0), "it has no table in common");
    let own = [old, ("b/db/migration/V1__b.sql", drops)];
    assert_eq!(evidence(&own, None), (vec![], 0), "Flyway itself renamed its table once");
}

#[test]
fn a_timeout_in_the_program_is_evidence() {
    let migration = ("db/migrations/1_a.sql", "ALTER TABLE a ADD b int;");
    let code = "readFile('db/migrations/' + name + '.sql')\nclient.query(\"SET lock_timeout = '2s'\")\n";
    let files = [migration, ("db/scripts/migrate.ts", code)];
    assert_eq!(evidence(&files, None).0, ["db/migrations/1_a.sql: db/scripts/migrate.ts:2"]);
    let of_something_else = code.replace("migrations", "reports");
    assert_eq!(evidence(&[migration, ("db/scripts/report.ts", &of_something_else)], None).0, [] as [&str; 0]);
}

#[test]
fn a_program_deep_in_the_project_sets_the_timeout() {
    let migration = ("migrations/1_a.up.sql", "ALTER TABLE a ADD b int;");
    let code = "// Runs the migrations.\nfilepath.Glob(dir + \"/*.up.sql\")\nos.ReadFile(file)\ndb.Exec(\"SET lock_timeout = '10s'\")\n";
    let files = |code: &'static str| [migration, ("internal/postgres/db.go", code)];
    assert_eq!(evidence(&files(code), None).0, ["migrations/1_a.up.sql: internal/postgres/db.go:4"]);
    let of_requests = "package postgres\ndb.Exec(\"SET lock_timeout = '10s'\")\n";
    assert_eq!(evidence(&files(of_requests), None).0, [] as [&str; 0]);
}

#[test]
fn a_timeout_of_a_role_is_evidence_in_later_migrations() {
    let files = [
        ("m/1_a.sql", "ALTER TABLE a ADD b int;\nALTER ROLE app SET lock_timeout = '2s';\n"),
        ("m/2_b.sql", "ALTER TABLE a ADD c int;"),
        ("m/3_c.sql", "ALTER ROLE app RESET lock_timeout;"),
        ("m/4_d.sql", "ALTER TABLE a ADD d int;"),
    ];
    let (lines, _) = evidence(&files, None);
    assert!(lines.len() == 2 && lines[0].starts_with("m/2_b.sql: ") && lines[0].ends_with("m/1_a.sql:2"), "{lines:?}");
    assert!(lines[1].starts_with("m/3_c.sql: "), "{lines:?}");
}

#[test]
fn a_down_section_takes_no_timeout_of_a_role_away() {
    let sections =
        "-- +goose Up\nALTER ROLE app SET lock_timeout = '2s';\n-- +goose Down\nALTER ROLE app RESET lock_timeout;\n";
    let next = "-- +goose Up\nALTER TABLE a ADD c int;\n-- +goose Down\nSELECT 1;\n";
    let (lines, _) = evidence(&[("m/00001_a.sql", sections), ("m/00002_b.sql", next)], None);
    assert!(lines.len() == 1 && lines[0].ends_with("m/00001_a.sql:2"), "{lines:?}");
    let separate = [
        ("m/000001_a.up.sql", "ALTER ROLE app SET lock_timeout = '2s';"),
        ("m/000001_a.down.sql", "ALTER ROLE app RESET lock_timeout;"),
        ("m/000002_b.up.sql", "ALTER TABLE a ADD c int;"),
    ];
    let (lines, _) = evidence(&separate, None);
    assert!(lines.len() == 1 && lines[0].ends_with("m/000001_a.up.sql:1"), "{lines:?}");
}

#[test]
fn files_named_after_kinds_of_objects_are_parts_of_one_baseline() {
    let parts = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let request = Request { paths: vec![folder.path().to_owned()], ..Request::default() };
        let project = Project::load(&request, &|_, _| {}).unwrap();
        project.files.iter().map(|file| file.evidence.built_with.is_some()).collect::<Vec<_>>()
    };
    let (table, index) = ("CREATE TABLE a (b int);", "CREATE INDEX ON a (b);");
    assert_eq!(parts(&[("m/001_tables.sql", table), ("m/002_indexes.sql", index)]), [true, true]);
    assert_eq!(parts(&[("db/tables/a.sql", table), ("db/indexes/a.sql", index)]), [true, true]);
    let all = ("db/all.sql", "\\i db/users.sql\n\\ir './more.sql'\n");
    assert_eq!(parts(&[all, ("db/more.sql", index), ("db/users.sql", table)]), [true, true, true]);
    assert_eq!(parts(&[("db/more.sql", index), ("db/users.sql", table)]), [false, false], "nothing includes them");
    let later = [("m/001_tables.sql", table), ("m/002_more.sql", ""), ("m/003_indexes.sql", index)];
    assert_eq!(parts(&later), [false, false, false], "a migration comes between them");
    assert_eq!(parts(&[("m/001_schema.sql", table), ("m/002_indexes.sql", index)]), [false, false]);
    assert_eq!(parts(&[("m/001_tables.sql", table), ("m/002_policies.sql", index)]), [false, false]);
}

#[test]
fn a_file_that_repeats_others_is_doubted() {
    let repeated = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(path, text)| fs::write(folder.path().join(path), text).unwrap());
        let request = Request { paths: vec![folder.path().to_owned()], ..Request::default() };
        let project = Project::load(&request, &|_, _| {}).unwrap();
        project.files.iter().map(|file| file.evidence.repeated.is_some()).collect::<Vec<_>>()
    };
    let (first, second) = ("CREATE TABLE a (b int);\nALTER TABLE a ADD c int;\n", "ALTER TABLE a ADD d int;\n");
    let all = format!("BEGIN;\n-- 1\n{first}{second}COMMIT;\n");
    assert_eq!(repeated(&[("1.sql", first), ("2.sql", second), ("3.sql", &all)]), [false, false, true]);
    assert_eq!(repeated(&[("1.sql", first), ("2.sql", second), ("3.sql", second)]), [false, false, false]);
    // What a pasted schema creates may have got more columns since.
    let schema = "CREATE TABLE a (b int, c int);\nCREATE TABLE b (c int);\nCREATE TABLE c (d int);\n";
    let (a, b) = ("CREATE TABLE a (b int);\n", "CREATE TABLE b (c int);\n");
    let numbered = |schema| [("0.sql", schema), ("1.sql", a), ("2.sql", b), ("3.sql", "ALTER TABLE a ADD c int;\n")];
    assert_eq!(repeated(&numbered(schema)), [false, true, true, true]);
    let last = [("1.sql", a), ("2.sql", b), ("3.sql", "ALTER TABLE a ADD c int;\n"), ("4.sql", schema)];
    assert_eq!(repeated(&last), [false, false, false, true], "only the schema runs after the others");
    assert_eq!(repeated(&numbered("CREATE TABLE a (b int, c int);\nCREATE TABLE c (d int);\n")), [false; 4]);
    let dropped = "DROP TABLE a;\nDROP TABLE b;\nCREATE TABLE a (b text);\nCREATE TABLE b (c text);\n";
    assert_eq!(repeated(&numbered(dropped)), [false; 4]);
}

/// What scripts say about each reported file of a repository, and whether its history is whole.
fn of_scripts(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::create_dir_all(folder.path().join(".git")).unwrap();
    let request =
        Request { paths: vec![folder.path().to_owned()], config: ConfigSource::Nearest, ..Request::default() };
    let project = Project::load(&request, &|_, _| {}).unwrap();
    let line = |file: &crate::project::ProjectFile| {
        let mut line = file.path.file_name().unwrap().to_string_lossy().into_owned();
        let psql = file.evidence.psql.as_ref();
        let add = |line: &mut String, word: &str, place: &str| line.extend([" ", word, " ", place]);
        if let Some(place) = psql.and_then(|psql| psql.transaction.as_ref()) {
            add(&mut line, "transaction", place);
        }
        if let Some(place) = psql.and_then(|psql| psql.order.as_ref()) {
            add(&mut line, "order", place);
        }
        if let Some(schema) = &file.evidence.schema {
            add(&mut line, "schema", &schema.place);
        }
        if let Some(history) = &file.evidence.history {
            let tables: Vec<&str> = history.elsewhere.keys().map(smol_str::SmolStr::as_str).collect();
            add(&mut line, "whole", &tables.join(","));
            history.creator.iter().for_each(|place| add(&mut line, "creator", place));
        }
        line
    };
    project.files.iter().map(line).collect()
}

const MANIFEST: (&str, &str) = ("Cargo.toml", "[dependencies]\nsqlx = \"0.8\"\n");
const FIRST: (&str, &str) = ("migrations/1_a.sql", "CREATE TABLE a (b int);");
const SECOND: (&str, &str) = ("migrations/2_b.sql", "CREATE TABLE c (d int);");

#[test]
fn a_script_contradicts_the_tool() {
    let with = |script: &str| of_scripts(&[MANIFEST, FIRST, SECOND, ("scripts/migrate.sh", script)]);
    let by_name = "for f in migrations/*.sql; do\n  psql -f \"$f\"\ndone\n";
    let place = "transaction scripts/migrate.sh:2 whole ";
    assert_eq!(with(by_name), [format!("1_a.sql {place}"), format!("2_b.sql {place}")]);
    assert_eq!(with(&by_name.replace("psql", "psql -1")), ["1_a.sql whole ", "2_b.sql whole "]);
    let second_first = "psql -1 -f migrations/2_b.sql\npsql -1 -f migrations/1_a.sql\n";
    let place = "order scripts/migrate.sh:1 whole ";
    assert_eq!(with(second_first), [format!("1_a.sql {place}"), format!("2_b.sql {place}")]);
    let configured = ("pgvet.toml", "[migrations]\ntool = \"sqlx\"\n");
    let files = [MANIFEST, FIRST, SECOND, configured, ("scripts/migrate.sh", by_name)];
    assert_eq!(of_scripts(&files), ["1_a.sql whole ", "2_b.sql whole "]);
}

#[test]
fn a_file_that_code_runs_beside_the_migrations_is_known() {
    let code = ("main.go", "//go:embed schema.sql\nvar schema string\nfunc f() { db.Exec(schema) }\n");
    let schema = |text| of_scripts(&[MANIFEST, FIRST, code, ("schema.sql", text)]);
    assert_eq!(schema("CREATE TABLE old (b int);"), ["1_a.sql schema main.go:1 whole old"]);
    assert_eq!(schema("SELECT 1;"), ["1_a.sql whole "]);
}

#[test]
fn a_framework_that_creates_tables_is_known() {
    let code = ("cmd/main.go", "package main\n\tdb.AutoMigrate(&User{})\n");
    assert_eq!(of_scripts(&[MANIFEST, FIRST, code]), ["1_a.sql whole  creator cmd/main.go:2"]);
}

#[test]
fn a_history_is_whole_from_its_first_number_on() {
    assert_eq!(of_scripts(&[MANIFEST, SECOND]), ["2_b.sql"]);
    let dated = ("migrations/20240131120000_a.sql", "CREATE TABLE a (b int);");
    assert_eq!(of_scripts(&[MANIFEST, dated]), ["20240131120000_a.sql whole "]);
}
