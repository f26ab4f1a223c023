//! `pgvet capture`.

mod job;
mod note;
mod state;
mod traced;

use super::check;
use super::clone::provider;
use crate::args::CaptureArgs;
use crate::error::{ExitStatus, Failure};
use job::Job;
use pgvet_capture::{Capture, Captured, Files, Request, Saved, Sources, Started, State, cut, files};
use pgvet_schema::script;
use pgvet_workspace::captured::{self, Header, MANIFEST, Manifest};
use pgvet_workspace::{ChangedFiles, create_report};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) fn run(args: &CaptureArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    out.flush()?;
    if args.trace {
        traced::check_arguments(args)?;
    }
    let job = Job::new(args)?;
    // A revision that does not exist is said before anything runs.
    let changed = args.since.as_deref().map(|revision| ChangedFiles::since(revision, &job.project)).transpose();
    let changed = changed.map_err(|problem| Failure::from(&problem))?;
    let mut saved = state::saved(&job)?;
    note::about_saved(&job, &saved);
    let mut captured = execute(&job, &saved)?;
    let with_values = args.trace.then(|| captured.recording.clone());
    captured.recording.remove_values(&job.keeps_values());
    if let Some(file) = &args.record {
        write_recording(&captured, file)?;
    }
    if let Started::WithoutSaved(refused) = &captured.started {
        note::not_applied(&job, refused);
        saved = Saved::default();
    }
    let mut capture = cut(&captured.recording, &job.tables);
    if !saved.migrations.is_empty() || matches!(captured.started, Started::Clone(_)) {
        capture = capture.continued();
    }
    // A clone can lack migrations that are saved.
    saved.remove(&capture);
    note::about_run(&job, &captured, &capture);
    let failed = ExitStatus::of_command(captured.status);
    let has_run = failed.is_none() && captured.connections > 0;
    if capture.migrations.is_empty() && (saved.migrations.is_empty() || !has_run) {
        note::nothing(&job, &captured).write(&mut std::io::stderr().lock())?;
        return Ok(failed.unwrap_or(ExitStatus::NotChecked));
    }
    let sources = Sources::of(&job.project);
    if let Some(folder) = &job.save {
        let kept = files(&capture.complete(), &saved, &sources, captured::root_from(folder, &job.project));
        let before = Manifest::of(folder).map_or(0, |manifest| manifest.files.len());
        if failed.is_some() && before > kept.files.len() - 1 {
            note::not_saved(&job, folder);
        } else {
            captured::clear(folder).map_err(|problem| Failure::from(&problem))?;
            write_files(folder, &kept.files)?;
            note::saved(&job, folder, &kept);
        }
    }
    let judged = Judged::new(&job, &captured, &capture, &saved, &sources, changed.as_ref())?;
    let paths = paths(judged.folder.path(), judged.new.as_ref());
    let mut status = ExitStatus::Clean;
    if !paths.is_empty() {
        status = check::run_captured(&args.check(paths, job.project.clone(), judged.schema()), out)?;
    }
    if let Some(recording) = with_values {
        let nothing = Saved::default();
        let before = if judged.clone.is_some() { &nothing } else { &saved };
        let traced = traced::run(&job, &recording, before, &sources, changed.as_ref(), judged.schema(), out)?;
        status = if status == ExitStatus::Clean || traced == ExitStatus::NotChecked { traced } else { status };
    }
    Ok(failed.unwrap_or(status))
}

/// Runs the command on a private server or a clone.
fn execute(job: &Job<'_>, saved: &Saved) -> Result<Captured, Failure> {
    let mut provider = provider(&job.args.place, job.major, false)?;
    let schema = state::schema(job)?;
    let baseline = state::baseline(schema.as_ref());
    let keeps_values = job.keeps_values();
    let is_traced = job.args.trace;
    let migrations = saved.migrations();
    let request = Request {
        command: &job.command,
        folder: &job.folder,
        variables: &job.variables,
        // A trace needs all of them, and nothing else gets to see them.
        keep_values: Box::new(move |sql| is_traced || keeps_values(sql)),
        state: State { schema: &baseline, saved: &migrations },
        allow_server_changes: job.args.place.allow_server_changes,
    };
    Ok(pgvet_capture::run(provider.as_mut(), request, &mut |_| ())?)
}

/// What is checked: a folder with migrations, and the schema before them.
struct Judged {
    folder: TempDir,
    /// Its files that are new since a revision.
    new: Option<BTreeSet<String>>,
    /// A folder with the schema of the clone.
    clone: Option<TempDir>,
    schema: Option<PathBuf>,
}

impl Judged {
    fn new(
        job: &Job<'_>,
        captured: &Captured,
        capture: &Capture,
        saved: &Saved,
        sources: &Sources,
        changed: Option<&ChangedFiles>,
    ) -> Result<Self, Failure> {
        // What a clone has applied is in its schema.
        let nothing = Saved::default();
        let (before, clone) = match &captured.started {
            Started::Clone(schema) => (&nothing, Some(schema)),
            Started::AsAsked | Started::WithoutSaved(_) => (saved, None),
        };
        let all = files(capture, before, sources, job.project.clone());
        note::about_sources(job, sources, &all);
        let new = changed.map(|changed| new_ones(&all, changed, job));
        let folder = temporary(&all.files)?;
        let clone = clone.map(|schema| temporary(&[("schema.sql".to_owned(), script(schema).text)])).transpose()?;
        Ok(Self { folder, new, clone, schema: job.schema.clone() })
    }

    fn schema(&self) -> Option<PathBuf> {
        self.clone.as_ref().map(|folder| folder.path().join("schema.sql")).or_else(|| self.schema.clone())
    }
}

/// What is reported of a folder with captured migrations: all of it, or its new ones.
fn paths(folder: &Path, new: Option<&BTreeSet<String>>) -> Vec<PathBuf> {
    new.map_or_else(|| vec![folder.to_owned()], |new| new.iter().map(|name| folder.join(name)).collect())
}

/// A folder with files that need not outlive a crash, so nothing waits for the disk.
fn temporary(files: &[(String, String)]) -> Result<TempDir, Failure> {
    let folder = tempfile::Builder::new().prefix("pgvet-capture-").tempdir();
    let written = folder.and_then(|folder| {
        files.iter().try_for_each(|(name, text)| fs::write(folder.path().join(name), text))?;
        Ok(folder)
    });
    written.map_err(|error| Failure::new(format!("cannot write to a temporary folder: {error}")))
}

/// The migrations whose sources have changed since a revision.
fn new_ones(files: &Files, changed: &ChangedFiles, job: &Job<'_>) -> BTreeSet<String> {
    let is_new = |text: &str| {
        let header = Header::of(text);
        let source = header.source.map(|(source, _)| job.project.join(source));
        // One that did not run to its end is new, wherever it comes from.
        source.map_or(header.name.is_empty(), |source| changed.contains(&source))
    };
    let migrations = files.files.iter().filter(|(name, _)| name != MANIFEST);
    let new: BTreeSet<String> = migrations.filter(|(_, text)| is_new(text)).map(|(name, _)| name.clone()).collect();
    note::about_new(job, &new);
    new
}

fn write_recording(captured: &Captured, path: &Path) -> Result<(), Failure> {
    let mut file = create_report(path).map_err(|problem| Failure::from(&problem))?;
    let written = file.write_all(captured.recording.to_lines().as_bytes());
    written.map_err(|error| Failure::new(format!("cannot write `{}`: {error}", path.display())))
}

fn write_files(folder: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    let files: Vec<(PathBuf, String)> = files.iter().map(|(name, text)| (folder.join(name), text.clone())).collect();
    pgvet_workspace::create_files(&files).map_err(|problem| Failure::from(&problem))
}
