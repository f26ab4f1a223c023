//! Captured migrations beside the same SQL in plain files: the findings must be the same, each at its source.

use crate::support::{for_each_sample, recording};
use pgvet_capture::{Capture, Saved, Sources, Tables, cut, cut_without_folding, files};
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::statement::parse;
use pgvet_workspace::captured::{self, Header, MANIFEST};
use pgvet_workspace::{Project, Request, create_files};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A finding: the source of its migration, the statement, the severity and rule, and the message.
type Finding = (String, String, String, String);

/// The rule that asks how often a program sent a statement, which plain files do not say.
const ONLY_CAPTURED: &str = "warning[statement-per-row]";

#[test]
fn captured_migrations_have_the_findings_of_the_same_sql_in_plain_files() {
    for_each_sample(|sample| {
        let recording = recording(sample);
        let tables = Tables::with(None);
        let mut captured = of_capture(sample, &cut(&recording, &tables));
        captured.retain(|(_, _, rule, _)| rule != ONLY_CAPTURED);
        let plain = of_plain_files(sample, &cut_without_folding(&recording, &tables));
        assert_eq!(captured, plain, "{}", sample.display());
        assert!(plain.len() > 1, "{}: {plain:?}", sample.display());
    });
}

/// The findings of a capture, as `pgvet capture` judges it.
fn of_capture(sample: &Path, capture: &Capture) -> BTreeSet<Finding> {
    let project = sample.join("project");
    let written = files(capture, &Saved::default(), &Sources::of(&project), project.clone());
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &written.files);
    let source_of = |named: &str, _: &str| Path::new(named).strip_prefix(&project).unwrap().display().to_string();
    findings(vec![folder.path().to_owned()], source_of)
}

/// The findings of a folder with a file for each migration, in which nothing says that it was captured. Those without a
/// source in the project are replayed, as in a capture.
fn of_plain_files(sample: &Path, capture: &Capture) -> BTreeSet<Finding> {
    let project = sample.join("project");
    let written = files(capture, &Saved::default(), &Sources::of(&project), project).files;
    let migrations: Vec<&String> = written.iter().filter(|(name, _)| name != MANIFEST).map(|(_, text)| text).collect();
    let name = |number: usize| format!("{number:04}.sql");
    let plain: Vec<(String, String)> =
        migrations.iter().enumerate().map(|(number, text)| (name(number), plain(text))).collect();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &plain);
    let config = "[migrations]\ntransaction = \"autocommit\"\n".to_owned();
    write(folder.path(), &[("pgvet.toml".to_owned(), config)]);
    let source = |number: usize| Header::of(migrations[number]).source.map(|(source, _)| source);
    let reported = (0..migrations.len()).filter(|number| source(*number).is_some());
    let paths = reported.map(|number| folder.path().join(name(number))).collect();
    findings(paths, |_, path| {
        let number = Path::new(path).file_stem().unwrap().to_str().unwrap().parse().unwrap();
        source(number).unwrap()
    })
}

/// The statements of a captured migration, in the transactions in which they ran, without its comments.
fn plain(text: &str) -> String {
    let statements = parse(text).into_iter().map(|statement| format!("{};\n", &text[statement.range.as_usize()]));
    let statements: String = statements.collect();
    match captured::transaction(text) {
        TransactionMode::Transaction => format!("BEGIN;\n{statements}COMMIT;\n"),
        _ => statements,
    }
}

fn write(folder: &Path, files: &[(String, String)]) {
    let files: Vec<(PathBuf, String)> = files.iter().map(|(name, text)| (folder.join(name), text.clone())).collect();
    create_files(&files).unwrap();
}

/// Checks files and folders. `source_of` returns the source of a migration, by the path that is named for it and that of
/// its file.
fn findings(paths: Vec<PathBuf>, source_of: impl Fn(&str, &str) -> String) -> BTreeSet<Finding> {
    let project = Project::load(&Request { paths, ..Request::default() }, &|_, _| ()).unwrap();
    assert!(project.problems.is_empty(), "{:?}", project.problems);
    let outcome = project.check(&|config| config.settings.clone(), &|_, _| ());
    let files = project.files_of_migrations();
    let finding = |found: &pgvet_linter::diagnostic::Diagnostic| {
        let file = files[found.file as usize];
        // In a capture, the end of a transaction is not part of the file.
        let text = Some(&file.shown().text[found.statement.as_usize()]).filter(|text| *text != "COMMIT");
        let rule = format!("{}[{}]", found.severity.as_str(), found.rule);
        (
            source_of(file.named(), &file.path.to_string_lossy()),
            text.unwrap_or_default().to_owned(),
            rule,
            found.message.clone(),
        )
    };
    outcome.found.iter().map(finding).collect()
}
