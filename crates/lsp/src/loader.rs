//! Reads and replays the migrations before a file, on a thread of its own.

use crate::analysis::message;
use crossbeam_channel::{Receiver, Sender, unbounded};
use lsp_types::Uri;
use pgvet_linter::diagnostic::Severity;
use pgvet_linter::settings::Settings;
use pgvet_workspace::config::{Config, ConfigError, FailOn};
use pgvet_workspace::{Histories, OpenFile, STACK_SIZE, Texts};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

/// A file that was opened, or whose history has changed.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) uri: Uri,
    /// Tells the answer from that to an older job for the same document.
    pub(crate) number: u64,
    /// `None` for a document that is in no file.
    pub(crate) path: Option<PathBuf>,
    pub(crate) text: String,
    /// What other documents hold.
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
    let histories = Arc::new(Histories::default());
    for job in inbox {
        // A later job for the same document knows better.
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

/// The settings of `pgvet check` without options.
fn settings(config: &Config) -> Settings {
    let mut settings = config.settings.clone();
    if !config.level_configured {
        settings.level = match config.fail_on {
            Some(FailOn::Info) => Severity::Info,
            _ => Severity::Warning,
        };
    }
    settings
}
