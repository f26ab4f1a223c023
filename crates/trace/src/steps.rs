//! Runs the commands of a migration up to one that is refused.

use crate::connection::Connection;
use crate::provider::ServerInfo;
use crate::script::{Step, StepKind};
use crate::send::send;
use crate::{Error, publisher};
use std::time::Duration;

/// How commands are run that nobody measures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conditions<'a> {
    pub(crate) server: &'a ServerInfo,
    /// Longer commands are cancelled.
    pub(crate) timeout: Option<Duration>,
    /// Go on after a command outside a transaction that is refused, as psql does.
    pub(crate) keep_going: bool,
}

/// A command after which no other one was run.
#[derive(Debug)]
pub(crate) struct RefusedStep<'s, 'm> {
    pub(crate) step: &'s Step<'m>,
    pub(crate) error: tokio_postgres::Error,
    /// It was cancelled because it took too long.
    pub(crate) timed_out: bool,
}

impl Conditions<'_> {
    /// Runs commands up to the first that is refused. `not_run` gets the reasons for commands that are omitted.
    pub(crate) async fn run<'s, 'm: 's>(
        self,
        connection: &Connection,
        steps: impl IntoIterator<Item = &'s Step<'m>>,
        not_run: &mut impl Extend<String>,
    ) -> Result<Option<RefusedStep<'s, 'm>>, Error> {
        for step in steps {
            if let Some(reason) = publisher::refusal(step, connection, self.server).await? {
                not_run.extend([reason]);
                continue;
            }
            let sent = send(connection, &step.sql, step.copy_data, self.timeout).await;
            let Err(error) = sent.result else { continue };
            if !(self.keep_going && step.kind == StepKind::Alone) {
                return Ok(Some(RefusedStep { step, error, timed_out: sent.timed_out }));
            }
        }
        Ok(None)
    }
}
