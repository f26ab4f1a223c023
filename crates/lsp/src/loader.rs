//! Reads and replays the migrations before a file, on a thread of its own.

use crate::analysis::message;
use crossbeam_channel::{Receiver, Sender, unbounded};
use lsp_types::Uri;
use pgvet_linter::settings::Settings;
use pgvet_workspace::config::{Config, ConfigError};
use pgvet_workspace::{Histories, OpenFile, STACK_SIZE, Texts};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::thread;

/// A file that was opened, or whose history has changed.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) uri: Uri,
    /// Distinguishes the answer from that to an older job for the same document.
    pub(crate) number: u64,
    /// `None` for a document that is in no file.
    pub(crate) path: Option<PathBuf>,
    pub(crate) text: String,
    /// The texts of other documents.
    pub(crate) others: Vec<(PathBuf, String)>,
}

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) uri: Uri,
    pub(crate) number: u64,
    pub(crate) result: Result<Box<OpenFile>, LoadError>,
}

#[derive(Debug)]
pub(crate) enum LoadError {
    Config(Box<ConfigError>),
    /// A defect of the program, with what it said.
    Defect(String),
}

/// Loads one file after the other.
#[derive(Debug)]
pub(crate) struct Loader {
    jobs: Sender<Job>,
}

impl Loader {
    pub(crate) fn start() -> (Self, Receiver<Loaded>) {
        let (jobs, inbox) = unbounded();
        let (outbox, loaded) = unbounded();
        let work = move || run(&inbox, &outbox);
        // Without the thread nothing is ever loaded, and so nothing found; the channel then tells.
        drop(thread::Builder::new().name("loader".to_owned()).stack_size(STACK_SIZE).spawn(work));
        (Self { jobs }, loaded)
    }

    pub(crate) fn load(&self, job: Job) {
        let _ = self.jobs.send(job);
    }
}

fn run(inbox: &Receiver<Job>, outbox: &Sender<Loaded>) {
    let histories = Histories::default();
    let mut waiting = VecDeque::new();
    while let Some(job) = next(inbox, &mut waiting) {
        let Job { uri, number, path, text, others } = job;
        let mut texts: Texts = histories.texts();
        for (path, text) in others {
            texts.open(&path, text);
        }
        let load = || OpenFile::load(path.as_deref(), text, texts, &histories, &settings);
        let result = match catch_unwind(AssertUnwindSafe(load)) {
            Ok(Ok(open)) => Ok(Box::new(open)),
            Ok(Err(error)) => Err(LoadError::Config(Box::new(error))),
            Err(panic) => Err(LoadError::Defect(message(&*panic))),
        };
        if outbox.send(Loaded { uri, number, result }).is_err() {
            return;
        }
    }
}

/// The next job. A later one for the same document takes the place of an earlier one.
fn next(inbox: &Receiver<Job>, waiting: &mut VecDeque<Job>) -> Option<Job> {
    if waiting.is_empty() {
        waiting.push_back(inbox.recv().ok()?);
    }
    for job in inbox.try_iter() {
        waiting.retain(|older| older.uri != job.uri);
        waiting.push_back(job);
    }
    waiting.pop_front()
}

/// The settings of `pgvet check` without options.
fn settings(config: &Config) -> Settings {
    Settings { level: config.level(config.fails()), ..config.settings.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_job_for_a_document_takes_the_place_of_an_earlier_one() {
        let (jobs, inbox) = unbounded();
        for (number, name) in [(1, "file:///a.sql"), (2, "file:///b.sql"), (3, "file:///a.sql")] {
            let uri = name.parse().unwrap();
            jobs.send(Job { uri, number, path: None, text: String::new(), others: Vec::new() }).unwrap();
        }
        drop(jobs);
        let mut waiting = VecDeque::new();
        let numbers: Vec<u64> = std::iter::from_fn(|| next(&inbox, &mut waiting)).map(|job| job.number).collect();
        assert_eq!(numbers, [2, 3]);
    }
}
