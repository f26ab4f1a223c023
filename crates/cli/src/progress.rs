//! A progress bar for runs that take their time.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Shorter runs show nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shown on standard error once the run has taken a while, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The current activity, for example `reading`.
    activity: &'static str,
    started: Instant,
    bar: OnceLock<Option<ProgressBar>>,
}

impl Progress {
    pub(crate) fn new(activity: &'static str) -> Self {
        Self { activity, started: Instant::now(), bar: OnceLock::new() }
    }

    pub(crate) fn update(&self, done: usize, all: usize) {
        if self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_init(|| std::io::stderr().is_terminal().then(|| new_bar(self.activity, all)));
        if let Some(bar) = bar {
            bar.set_position(done as u64);
        }
    }
}

fn new_bar(activity: &'static str, all: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} files");
    let bar = ProgressBar::new(all as u64).with_message(activity);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(Some(bar)) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

/// One line on standard error that says what is being done, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Spinner {
    bar: ProgressBar,
}

impl Spinner {
    pub(crate) fn new() -> Self {
        let bar = if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }

    /// Whether it is visible to somebody.
    pub(crate) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Something else is being done now, and its time begins.
    pub(crate) fn begin(&self, message: &str) {
        self.bar.reset_elapsed();
        self.say(message);
    }

    /// The same goes on.
    pub(crate) fn say(&self, message: &str) {
        self.bar.set_message(message.to_owned());
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
