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
    started: Instant,
    bar: OnceLock<Option<ProgressBar>>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), bar: OnceLock::new() }
    }

    pub(crate) fn update(&self, done: usize, all: usize) {
        if self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_init(|| std::io::stderr().is_terminal().then(|| new_bar(all)));
        if let Some(bar) = bar {
            bar.set_position(done as u64);
        }
    }
}

fn new_bar(all: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} files");
    let bar = ProgressBar::new(all as u64).with_message("reading");
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
