//! Every format of `pgvet check` on the same findings.

use crate::support::Folder;

const FIRST: &str = "CREATE TABLE orders (id bigint PRIMARY KEY, note text);\n";

/// An error with SQL in its help, one inside a body, one with a label, one in a file whose name must be escaped, a
/// warning with a fix, and one that is suppressed.
const SECOND: &str = "\
BEGIN;
SET LOCAL lock_timeout = '2s';
ALTER TABLE orders ADD COLUMN code text DEFAULT random()::text;
UPDATE orders SET note = '<&\"é%' WHERE true;
COMMIT;
-- pgvet: ignore[truncate-existing-table] it is a cache
TRUNCATE orders;
SELECT 1; -- pgvet: ignore[table-rewrite] once
";

const THIRD: &str = "SET lock_timeout = '2s';\nDO $$ BEGIN\n  CREATE INDEX i ON orders (note);\nEND $$;\nSELEC 1;\n";

fn folder() -> Folder {
    Folder::new(&[
        ("db/migrations/1_a.sql", FIRST.as_bytes()),
        ("db/migrations/2_b.sql", SECOND.as_bytes()),
        ("db/migrations/3 c,ü.sql", THIRD.as_bytes()),
    ])
}

/// The output of the format for a run that also could not read a path.
fn shown(format: &str) -> String {
    let args = ["check", "db", "missing", "--report-suppressed", "--pg-version", "14-18", "--format", format];
    let output = folder().output(&args, b"", &[]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_format_is_in_the_documentation_and_in_the_help() {
    let output = folder().output(&["check", "--format", "no-such-format"], b"", &[]);
    let refusal = String::from_utf8(output.stderr).unwrap();
    let (_, known) = refusal.lines().next().and_then(|line| line.split_once("formats are ")).unwrap();
    let names: Vec<&str> = known.split(", ").collect();
    assert!(names.len() > 5 && names.contains(&"checkstyle"), "{refusal}");
    let page = include_str!("../../../../docs/formats.md");
    let help = folder().run(&["check", "--help"]);
    let words: Vec<&str> = help.split(|character: char| !character.is_ascii_alphanumeric()).collect();
    for name in names {
        assert!(page.contains(&format!("\n| `{name}` |")), "docs/formats.md has no row for `{name}`");
        assert!(words.contains(&name), "crates/cli/src/args/check.rs: the help of --format does not name `{name}`");
    }
}

#[test]
fn formats_for_people() {
    for format in ["full", "concise", "markdown", "github"] {
        insta::assert_snapshot!(format, shown(format));
    }
}

#[test]
fn similar_findings_are_one_entry_for_people_and_all_are_there_for_programs() {
    let tables = |line: fn(usize) -> String| (1..=8).map(line).collect::<String>();
    let make = tables(|number| format!("CREATE TABLE t{number} (id bigint PRIMARY KEY);\n"));
    let drop = tables(|number| format!("DROP TABLE t{number};\n"));
    let folder = Folder::new(&[("db/1_a.sql", make.as_bytes()), ("db/2_b.sql", drop.as_bytes())]);
    let run = |format: &str| folder.run(&["check", "db", "--only", "drop-table", "--format", format]);
    for format in ["full", "markdown"] {
        let text = run(format);
        assert!(text.contains("`t1`") && text.contains("7 similar findings:"), "{text}");
        assert!(text.contains("db/2_b.sql:6:12") && text.contains("and 2 more"), "{text}");
        assert!(!text.contains("db/2_b.sql:7:12"), "{text}");
    }
    let lines = run("concise");
    assert_eq!(lines.lines().filter(|line| line.contains("[drop-table]")).count(), 8, "{lines}");
    assert!(lines.contains("8 warnings in 1 of 2 files"), "{lines}");
}

/// What follows from one cause is one finding with several locations, until a comment or the baseline takes one of them
/// away.
#[test]
fn findings_with_one_cause_are_one_with_the_places_of_all() {
    let history = "CREATE TABLE orders (id bigint PRIMARY KEY, price bigint);\n";
    let repeated = "BEGIN;
ALTER TABLE orders ADD COLUMN total bigint;
UPDATE orders SET total = price;
UPDATE orders SET total = total + 1;
-- pgvet: ignore[work-after-strong-lock] a reason
UPDATE orders SET total = total + 2;
COMMIT;
INSERT INTO orders (id) VALUES (1), ON CONFLICT DO NOTHING;
INSERT INTO orders (id) VALUES (2), ON CONFLICT DO NOTHING;
INSERT INTO orders (id) VALUES (3) FROM nothing;
";
    let folder = Folder::new(&[("db/1_a.sql", history.as_bytes()), ("db/2_b.sql", repeated.as_bytes())]);
    let rules = ["--only", "work-after-strong-lock,syntax-error"];
    let run = |more: &[&str]| {
        let output = folder.output(&[&["check", "db"], &rules[..], more].concat(), b"", &[]);
        String::from_utf8(output.stdout).unwrap()
    };
    let json = || -> serde_json::Value { serde_json::from_str(&run(&["--format", "json"])).unwrap() };
    let lines = |document: &serde_json::Value| -> Vec<(u64, Vec<u64>)> {
        let line = |found: &serde_json::Value| found["range"]["start"]["line"].as_u64().unwrap();
        let found = document["diagnostics"].as_array().unwrap();
        let repeats = |found: &serde_json::Value| found["repeats"].as_array().map(|all| all.iter().map(line).collect());
        found.iter().map(|found| (line(found), repeats(found).unwrap_or_default())).collect()
    };
    let document = json();
    assert_eq!(lines(&document), [(3, vec![4]), (8, vec![9]), (10, vec![])], "{document:#}");
    let message = document["diagnostics"][0]["message"].as_str().unwrap();
    assert!(message.ends_with(" (and 1 more place)"), "{message}");
    assert_eq!(document["summary"]["errors"], 3, "{document:#}");
    let sarif: serde_json::Value = serde_json::from_str(&run(&["--format", "sarif"])).unwrap();
    let related = sarif["runs"][0]["results"][1]["relatedLocations"].as_array().unwrap();
    assert_eq!(related[0]["physicalLocation"]["region"]["startLine"], 9, "{related:?}");
    let concise = run(&["--format", "concise"]);
    assert_eq!(concise.lines().filter(|line| line.contains(": error[")).count(), 5, "{concise}");
    // A baseline that knows one of the places leaves the other.
    folder.run(&[&["baseline", "db"], &rules[..]].concat());
    assert_eq!(lines(&json()), []);
    let path = folder.path().join("pgvet-baseline.json");
    let repeat = &document["diagnostics"][0]["repeats"][0]["fingerprint"];
    let mut known: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    known["findings"].as_array_mut().unwrap().retain(|finding| finding["fingerprint"] != *repeat);
    std::fs::write(&path, known.to_string()).unwrap();
    assert_eq!(lines(&json()), [(4, vec![])]);
}

#[test]
fn formats_for_programs() {
    for format in ["json", "sarif", "gitlab", "sonarqube"] {
        let document: serde_json::Value = serde_json::from_str(&shown(format)).unwrap();
        // The pages of rules change for reasons of their own.
        let mut document = document;
        if let Some(rules) = document.pointer_mut("/runs/0/tool/driver/rules") {
            for rule in rules.as_array_mut().unwrap() {
                let help = &mut rule["help"];
                assert!(help["markdown"].as_str().unwrap().contains("## Why it matters"), "{help}");
                *help = "(the page)".into();
            }
        }
        insta::assert_snapshot!(format, serde_json::to_string_pretty(&document).unwrap());
    }
}

#[test]
fn formats_in_xml() {
    for format in ["junit", "checkstyle"] {
        insta::assert_snapshot!(format, shown(format));
    }
}

#[test]
fn sarif_keeps_to_its_schema() {
    let mut schema: serde_json::Value = serde_json::from_str(include_str!("schemas/sarif-2.1.0.json")).unwrap();
    // The pattern of languages has a bracket too many, and we state no language.
    for owner in ["run", "toolComponent"] {
        schema["definitions"][owner]["properties"]["language"]["pattern"] = "".into();
    }
    let document: serde_json::Value = serde_json::from_str(&shown("sarif")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let results = document.pointer("/runs/0/results").unwrap().as_array().unwrap();
    assert!(results.iter().any(|result| result.get("fixes").is_some()), "no result has a fix");
    assert!(results.iter().any(|result| result.get("suppressions").is_some()), "no result is suppressed");
    assert!(results.iter().any(|result| result.get("relatedLocations").is_some()), "no result has another place");
}

#[test]
fn json_keeps_to_its_schema_and_the_schema_is_that_of_the_types() {
    let printed = folder().output(&["json-schema"], b"", &[]).stdout;
    let schema: serde_json::Value = serde_json::from_slice(&printed).unwrap();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pgvet-check.schema.json");
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(known.as_bytes() == printed, "write it again: pgvet json-schema > pgvet-check.schema.json");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let check = |document: &serde_json::Value| {
        let errors: Vec<String> =
            validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    };
    let mut document: serde_json::Value = serde_json::from_str(&shown("json")).unwrap();
    check(&document);
    let diagnostics = document["diagnostics"].as_array().unwrap();
    assert!(diagnostics.iter().any(|found| found["fixes"].as_array().is_some_and(|fixes| !fixes.is_empty())));
    assert!(diagnostics.iter().any(|found| found.get("rewrite").is_some()), "nothing has a sequence");
    assert!(document.get("suppressed").is_some() && document["problems"][0]["message"].is_string());
    // With a baseline, notes and skipped files.
    let project = Folder::new(&[
        ("db/migrations/1_a.sql", FIRST.as_bytes()),
        ("db/migrations/2_b.sql", SECOND.as_bytes()),
        ("mysql/1_a.sql", b"CREATE TABLE m (id int AUTO_INCREMENT) ENGINE=InnoDB;\n"),
        ("other/1_a.sql", b"CREATE TABLE m (id int AUTO_INCREMENT) ENGINE=InnoDB;\n"),
        ("tests/x.sql", b"SELECT 1;\n"),
    ]);
    project.run(&["baseline"]);
    std::fs::write(project.path().join("db/migrations/2_b.sql"), THIRD).unwrap();
    let output = project.output(&["check", "--format", "json"], b"", &[]);
    let adopted: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    check(&adopted);
    assert!(adopted["baseline"]["fixed"][0]["rule"].is_string() && adopted.get("not_checked").is_some(), "{adopted}");
    // The schema is not one that anything keeps to.
    document["diagnostics"][0]["severity"] = "fatal".into();
    assert!(!validator.is_valid(&document));
    document["diagnostics"][0].as_object_mut().unwrap().remove("severity");
    assert!(!validator.is_valid(&document));
}

#[test]
fn forges_get_paths_from_the_top_of_the_repository() {
    let folder = Folder::new(&[
        (".git/HEAD", b"ref: refs/heads/main\n"),
        ("src/main/db/migrations/1_a.sql", FIRST.as_bytes()),
        ("src/main/db/migrations/2_b.sql", b"DROP TABLE orders;\n"),
    ]);
    let path = "src/main/db/migrations/2_b.sql";
    for (current, named) in [(".", "src"), ("src/main", "."), ("src/main/db/migrations", "."), ("src", "main/db/../db")]
    {
        let shown = |format: &str| {
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_pgvet"))
                .args(["check", "--no-cache", "--only", "drop-table", "--format", format, named])
                .current_dir(folder.path().join(current))
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(shown("github").contains(&format!("file={path},")), "{current}: {}", shown("github"));
        let gitlab: serde_json::Value = serde_json::from_str(&shown("gitlab")).unwrap();
        assert_eq!(gitlab[0]["location"]["path"], path, "{current}");
        let sarif: serde_json::Value = serde_json::from_str(&shown("sarif")).unwrap();
        let artifact = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
        assert_eq!((&artifact["uri"], &artifact["uriBaseId"]), (&path.into(), &"%SRCROOT%".into()), "{current}");
    }
}

#[test]
fn a_test_fails_only_if_the_run_does() {
    let folder = Folder::new(&[
        ("db/migrations/1_a.sql", FIRST.as_bytes()),
        ("db/migrations/2_b.sql", b"SET lock_timeout = '1s';\nDROP TABLE orders;\n"),
    ]);
    for (fail_on, status, failures) in [("error", 0, 0), ("warning", 1, 1)] {
        let output = folder.output(&["check", "--fail-on", fail_on, "--format", "junit"], b"", &[]);
        assert_eq!(output.status.code(), Some(status));
        let text = String::from_utf8(output.stdout).unwrap();
        let document = roxmltree::Document::parse(&text).unwrap();
        let count = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
        assert_eq!(document.root_element().attribute("failures"), Some(failures.to_string().as_str()), "{text}");
        assert_eq!((count("failure"), count("system-out"), count("testcase")), (failures, 1 - failures, 2), "{text}");
    }
}

#[test]
fn gitlab_fingerprints_are_unique() {
    let issues: Vec<serde_json::Value> = serde_json::from_str(&shown("gitlab")).unwrap();
    let mut fingerprints: Vec<&str> = issues.iter().map(|issue| issue["fingerprint"].as_str().unwrap()).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), issues.len());
    assert!(issues.len() > 3);
}

#[test]
fn a_run_may_write_several_formats() {
    let folder = folder();
    let args = ["check", "db", "--format", "concise", "--format", "sarif=out.sarif", "--format", "junit=out.xml"];
    let output = folder.output(&args, b"", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("3 c,ü.sql:3:3: error[index-without-concurrently]"));
    let written = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(written("out.sarif").contains("\"2.1.0\""));
    assert!(written("out.xml").starts_with("<?xml"));
    let output = folder.output(&["check", "db", "--format", "json", "--output-file", "out.json"], b"", &[]);
    assert!(output.stdout.is_empty());
    assert!(written("out.json").starts_with("{\"schema_version\":1"));
}

#[test]
fn two_formats_cannot_share_standard_output() {
    let folder = folder();
    insta::assert_snapshot!(folder.run(&["check", "db", "--format", "full", "--format", "json"]), @r"
    exit 2
    --- stderr
    error: several formats would be written to standard output
      help: give all but one a file, as in `--format full --format sarif=pgvet.sarif`
    ");
    insta::assert_snapshot!(folder.run(&["check", "db", "--format", "json=no/such/folder"]), @r"
    exit 2
    --- stderr
    error: `no/such/folder` cannot be written: No such file or directory (os error 2)
    ");
}

#[test]
fn deadlocks_on_the_same_tables_are_one_finding() {
    let tables = "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (id int REFERENCES p); CREATE TABLE o (id int);";
    let alter = |column: &str| {
        format!(
            "BEGIN;\nALTER TABLE p ADD COLUMN {column} int;\nUPDATE o SET id = 1;\nALTER TABLE c ADD COLUMN {column} int;\n\
             COMMIT;\n"
        )
    };
    let (second, third) = (format!("{}{}", alter("a"), alter("b")), alter("d"));
    let files =
        [("db/1_a.sql", tables.as_bytes()), ("db/2_b.sql", second.as_bytes()), ("db/3_c.sql", third.as_bytes())];
    let folder = Folder::new(&files);
    let args = ["check", "db", "--only", "inconsistent-lock-order", "--format", "json"];
    let document: serde_json::Value = serde_json::from_slice(&folder.output(&args, b"", &[]).stdout).unwrap();
    let place = |found: &serde_json::Value| {
        let path = found["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        (path, found["range"]["start"]["line"].as_u64().unwrap())
    };
    let found = document["diagnostics"].as_array().unwrap();
    assert_eq!(found.iter().map(place).collect::<Vec<_>>(), [("2_b.sql".to_owned(), 4)], "{document:#}");
    let repeats: Vec<_> = found[0]["repeats"].as_array().unwrap().iter().map(place).collect();
    assert_eq!(repeats, [("2_b.sql".to_owned(), 9), ("3_c.sql".to_owned(), 4)]);
    assert!(found[0]["message"].as_str().unwrap().ends_with(" (and 2 more places)"), "{document:#}");
}

/// Each migration makes another command or table fail because of the same two policies.
#[test]
fn a_circle_of_policies_is_one_finding() {
    let tables = "CREATE TABLE t (id bigint);\nCREATE TABLE m (t bigint);\nALTER TABLE t ENABLE ROW LEVEL SECURITY;\n\
                  ALTER TABLE m ENABLE ROW LEVEL SECURITY;\n\
                  CREATE POLICY of_t ON t FOR SELECT USING (id IN (SELECT t FROM m));\n";
    let own = "CREATE TABLE o (id bigint);\nALTER TABLE o ENABLE ROW LEVEL SECURITY;\n\
               CREATE POLICY of_o ON o USING (id IN (SELECT own.id FROM o own));\n";
    let files: [(&str, &[u8]); 5] = [
        ("db/1_a.sql", tables.as_bytes()),
        ("db/2_b.sql", b"CREATE POLICY of_m ON m FOR SELECT USING (t IN (SELECT id FROM t));\n"),
        ("db/3_c.sql", b"CREATE POLICY writes ON t FOR UPDATE USING (id IN (SELECT t FROM m));\n"),
        ("db/4_d.sql", own.as_bytes()),
        ("db/5_e.sql", b"ALTER POLICY of_m ON m USING (t IN (SELECT id FROM t WHERE id > 0));\n"),
    ];
    let args = ["check", "db", "--only", "policy-recursion", "--format", "json"];
    let document: serde_json::Value =
        serde_json::from_slice(&Folder::new(&files).output(&args, b"", &[]).stdout).unwrap();
    let path = |found: &serde_json::Value| found["path"].as_str().unwrap().to_owned();
    let repeats = |found: &serde_json::Value| found["repeats"].as_array().map(|all| all.iter().map(path).collect());
    let found: Vec<(String, Option<Vec<String>>)> =
        document["diagnostics"].as_array().unwrap().iter().map(|found| (path(found), repeats(found))).collect();
    let others = vec!["db/3_c.sql".to_owned(), "db/5_e.sql".to_owned()];
    assert_eq!(found, [("db/2_b.sql".to_owned(), Some(others)), ("db/4_d.sql".to_owned(), None)], "{document:#}");
}

#[test]
fn missing_lock_timeouts_of_a_database_are_one_finding() {
    let tables = "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE q (id int PRIMARY KEY);";
    let silent = "-- pgvet: ignore[missing-lock-timeout] the table is not in use\nALTER TABLE q ADD COLUMN c int;\n";
    let files: [(&str, &[u8]); 4] = [
        ("db/1_a.sql", tables.as_bytes()),
        ("db/2_b.sql", b"ALTER TABLE p ADD COLUMN a int;\n"),
        ("db/3_c.sql", silent.as_bytes()),
        ("db/4_d.sql", b"ALTER TABLE p ADD COLUMN b int;\n"),
    ];
    let folder = Folder::new(&files);
    let run = |format: &str| {
        let args = ["check", "db", "--only", "missing-lock-timeout", "--format", format];
        String::from_utf8(folder.output(&args, b"", &[]).stdout).unwrap()
    };
    let document: serde_json::Value = serde_json::from_str(&run("json")).unwrap();
    let found = document["diagnostics"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{document:#}");
    assert!(found[0]["path"].as_str().unwrap().ends_with("2_b.sql"), "{document:#}");
    let repeats: Vec<&str> =
        found[0]["repeats"].as_array().unwrap().iter().map(|repeat| repeat["path"].as_str().unwrap()).collect();
    assert_eq!(repeats, ["db/4_d.sql"], "{document:#}");
    let concise = run("concise");
    assert_eq!(concise.lines().filter(|line| line.contains(": warning[")).count(), 2, "{concise}");
}
