use super::*;
use std::fs;

/// A folder of migrations that is named so.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let migrations = root.path().join("migrations");
    fs::create_dir(&migrations).unwrap();
    for (name, text) in files {
        fs::write(migrations.join(name), text).unwrap();
    }
    root
}

fn open(root: &tempfile::TempDir, name: &str, text: &str, histories: &Histories) -> OpenFile {
    let path = root.path().join("migrations").join(name);
    let settings = |config: &Config| config.settings.clone();
    OpenFile::load(Some(&path), text.to_owned(), histories.texts(), histories, &settings).unwrap()
}

fn rules(file: &mut OpenFile) -> Vec<&'static str> {
    file.check().found.iter().map(|found| found.rule).collect()
}

#[test]
fn the_text_counts_and_not_the_file() {
    let root =
        folder(&[("1.sql", "CREATE TABLE a (v varchar(9));"), ("2.sql", "nonsense"), ("3.sql", "DROP TABLE a;")]);
    let mut file = open(&root, "2.sql", "ALTER TABLE a ALTER v TYPE text;", &Histories::default());
    assert_eq!(file.project().history_files(), 1);
    assert_eq!(rules(&mut file), ["missing-lock-timeout"]);
    file.edit("CREATE INDEX i ON a (v);".to_owned());
    assert_eq!(rules(&mut file), ["index-without-concurrently", "missing-lock-timeout"]);
    let statements: Vec<_> = file.statements().map(|statement| statement.range).collect();
    assert_eq!(statements, [TextRange::new(0, 23)]);
}

#[test]
fn histories_are_shared_as_far_as_they_are_the_same() {
    let names: Vec<String> = (0..150).map(|number| format!("{number:04}.sql")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "SELECT 1;")).collect();
    let root = folder(&files);
    let histories = Histories::default();
    open(&root, "0100.sql", "SELECT 2;", &histories);
    open(&root, "0149.sql", "SELECT 2;", &histories);
    let states = || histories.replayed.lock().unwrap().iter().map(|known| known.states.len()).collect::<Vec<_>>();
    // The longer one continues the shorter one: 64, 100, 149.
    assert_eq!(states(), [3]);
    fs::write(root.path().join("migrations/0070.sql"), "CREATE TABLE a (v varchar(9));").unwrap();
    let mut file = open(&root, "0149.sql", "ALTER TABLE a ALTER v TYPE text;", &histories);
    assert_eq!(rules(&mut file), ["missing-lock-timeout"]);
    // From 64 on it is another one.
    assert_eq!(states(), [3, 3]);
}

#[test]
fn a_text_in_another_editor_is_history() {
    let root = folder(&[("1.sql", "SELECT 1;"), ("2.sql", "")]);
    let histories = Histories::default();
    let mut texts = histories.texts();
    texts.open(&root.path().join("migrations/1.sql"), "CREATE TABLE a (v varchar(9));".to_owned());
    let path = root.path().join("migrations/2.sql");
    let text = "ALTER TABLE a ALTER v TYPE text;".to_owned();
    let settings = |config: &Config| config.settings.clone();
    let mut file = OpenFile::load(Some(&path), text, texts, &histories, &settings).unwrap();
    assert_eq!(rules(&mut file), ["missing-lock-timeout"]);
}

#[test]
fn known_findings_are_held_back() {
    let root = folder(&[("1.sql", "CREATE TABLE a (v varchar(9));")]);
    fs::write(root.path().join("pgvet.toml"), "").unwrap();
    let text = "SET lock_timeout = '1s'; CREATE INDEX i ON a (v);";
    let mut file = open(&root, "2.sql", text, &Histories::default());
    let outcome = file.check();
    assert_eq!(outcome.found.len(), 1);
    let fingerprint = fingerprints(&[(file.file().unwrap(), &outcome.found[0])]).remove(0);
    let known = KnownFinding { fingerprint, rule: String::new(), path: String::new(), message: String::new() };
    fs::write(root.path().join("pgvet-baseline.json"), KnownFinding::text_of(vec![known])).unwrap();
    let mut file = open(&root, "2.sql", text, &Histories::default());
    assert_eq!(rules(&mut file), Vec::<&str>::new());
    file.edit("CREATE INDEX j ON a (v);".to_owned());
    assert_eq!(rules(&mut file).len(), 2);
    fs::write(root.path().join("pgvet-baseline.json"), "{}").unwrap();
    let file = open(&root, "2.sql", text, &Histories::default());
    assert!(file.project().problems[0].message.starts_with("is not a baseline"));
}

#[test]
fn a_fix_may_leave_the_transaction_of_the_tool() {
    let text = "-- +goose Up\nCREATE INDEX i ON a (v);\n";
    let root = folder(&[("1_a.sql", "-- +goose Up\nCREATE TABLE a (v int);\n"), ("2_b.sql", text)]);
    let mut file = open(&root, "2_b.sql", text, &Histories::default());
    let found = file.check().found;
    let index = found.iter().find(|found| found.rule == "index-without-concurrently").unwrap();
    let edits: Vec<&str> = index.fixes[0].edits.iter().map(|edit| edit.text.as_str()).collect();
    assert!(edits.contains(&"-- +goose NO TRANSACTION\n"), "{edits:?}");
}
