//! Recordings of real frameworks: what is cut, written and found. `cargo xtask measure capture --record` makes them.
//!
//! `INSTA_UPDATE=always` writes `captured` and `findings.txt` again.

use crate::support::{for_each_sample, recording};
use pgvet_capture::{Capture, Recorded, Saved, Sources, Tables, cut, files};
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_syntax::statement::parse;
use pgvet_workspace::captured::{self, MANIFEST};
use pgvet_workspace::{Project, ProjectFile, Request, create_files};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn is_update() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always")
}

fn capture(sample: &Path) -> Capture {
    cut(&recording(sample), &Tables::with(None))
}

fn texts(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read_to_string(entry.path()).expect("a captured file is text"))
        })
        .collect()
}

#[test]
fn migrations_are_written_as_they_ran() {
    for_each_sample(|sample| {
        let capture = capture(sample);
        let sources = Sources::of(&sample.join("project"));
        let written = files(&capture.complete(), &Saved::default(), &sources, PathBuf::from("../project"));
        let folder = sample.join("captured");
        if is_update() {
            captured::clear(&folder).unwrap();
            let files: Vec<_> = written.files.iter().map(|(name, text)| (folder.join(name), text.clone())).collect();
            create_files(&files).unwrap();
        }
        let written: BTreeMap<String, String> = written.files.into_iter().collect();
        let expected = texts(&folder);
        assert_eq!(written.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}", sample.display());
        for (name, text) in &expected {
            assert_eq!(&written[name], text, "{}: {name}", sample.display());
        }
        assert!(expected.len() > 6, "{}: at least six migrations", sample.display());
    });
}

/// How many statements a text holds, up to the one that failed.
fn statements_of(sent: &Recorded) -> usize {
    let all = parse(&sent.sql).len().max(1);
    if sent.error().is_some() { all.min(sent.completed as usize + 1) } else { all }
}

#[test]
fn no_statement_is_lost() {
    for_each_sample(|sample| {
        let sent: usize = recording(sample).statements.iter().map(statements_of).sum();
        let capture = capture(sample);
        let work = capture.migrations.iter().flat_map(|migration| &migration.work).map(|work| work.times);
        let counts = capture.counts;
        let apart = counts.bookkeeping
            + counts.questions
            + counts.settings
            + counts.transactions
            + counts.attempts
            + counts.skipped;
        let all = work.sum::<usize>() + capture.after.len() + apart;
        assert_eq!(all, sent, "{}: {counts:?}", sample.display());
        assert!(capture.after.is_empty(), "{}: {:?}", sample.display(), capture.after);
        let unfinished = capture.migrations.last().unwrap();
        assert!(!unfinished.is_complete && unfinished.work.last().unwrap().error.is_some(), "{}", sample.display());
    });
}

#[test]
fn findings_name_the_sources() {
    for_each_sample(|sample| {
        let capture = capture(sample);
        let project = sample.join("project");
        let written = files(&capture, &Saved::default(), &Sources::of(&project), project.clone());
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = written.files.iter().map(|(name, text)| (folder.path().join(name), text.clone())).collect();
        create_files(&paths).unwrap();
        assert!(folder.path().join(MANIFEST).is_file());
        let request = Request { paths: vec![folder.path().to_owned()], ..Request::default() };
        let loaded = Project::load(&request, &|_, _| ()).unwrap();
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let outcome = loaded.check(&|config| config.settings.clone(), &|_, _| ());
        let of_migrations = loaded.files_of_migrations();
        let found: String =
            outcome.found.iter().map(|found| line(found, of_migrations[found.file as usize], &project)).collect();
        let path = sample.join("findings.txt");
        if is_update() {
            fs::write(&path, &found).unwrap();
        }
        assert_eq!(found, fs::read_to_string(&path).unwrap_or_default(), "{}", sample.display());
        assert!(found.lines().count() >= 3, "{}: {found}", sample.display());
    });
}

fn line(found: &Diagnostic, file: &ProjectFile, project: &Path) -> String {
    assert!(file.origin.as_ref().is_some_and(|origin| origin.source.is_some()), "{}", file.path.display());
    let path = Path::new(file.named()).strip_prefix(project).expect("it is a source of the project");
    let (start, _) = file.positions(found.range);
    format!("{}:{}: {}[{}] {}\n", path.display(), start.line, found.severity.as_str(), found.rule, found.message)
}
