//! The one thread on which everything is done, and the signals that end it.

use crate::Error;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs work to its end.
pub fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::task::LocalSet::new().block_on(&runtime()?, work)
}

/// The outcome of work, or an error as soon as the user interrupts it.
pub async fn unless_interrupted<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let mut interruption = Interruption::listen()?;
    tokio::select! {
        biased;
        signal = interruption.wait() => Err(Error::new(format!("interrupted by {signal}"))),
        result = work => result,
    }
}

/// A flag that becomes true when the user interrupts the program, for work that can end by itself with what it has.
pub fn interruption() -> Result<Arc<AtomicBool>, Error> {
    let runtime = runtime()?;
    let mut interruption = {
        let _guard = runtime.enter();
        Interruption::listen()?
    };
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    std::thread::spawn(move || {
        runtime.block_on(interruption.wait());
        set.store(true, Ordering::Relaxed);
    });
    Ok(flag)
}

/// Everything is done on one thread, which waits most of the time.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Error::new(format!("cannot start a runtime: {error}")))
}

/// Signals that ask the program to end.
struct Interruption {
    signals: [(&'static str, Signal); 4],
}

impl Interruption {
    fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(|error| Error::new(format!("cannot listen for signals: {error}")));
        Ok(Self {
            signals: [
                ("SIGINT", listen(SignalKind::interrupt())?),
                ("SIGTERM", listen(SignalKind::terminate())?),
                ("SIGHUP", listen(SignalKind::hangup())?),
                ("SIGQUIT", listen(SignalKind::quit())?),
            ],
        })
    }

    async fn wait(&mut self) -> &'static str {
        let [first, second, third, fourth] = &mut self.signals;
        tokio::select! {
            _ = first.1.recv() => first.0,
            _ = second.1.recv() => second.0,
            _ = third.1.recv() => third.0,
            _ = fourth.1.recv() => fourth.0,
        }
    }
}
