//! One migration on a copy of the database: up, down, up again.

use super::judge::judge;
use super::{Part, Roundtrip, Run};
use crate::provider::{CloneProvider, Scratch, ThinClone};
use crate::replay::{RefusedStatement, Replay, Stop};
use crate::roles::Roles;
use crate::state::State;
use crate::tool_tables::ToolTables;
use crate::{Error, Event};

/// What was seen of one run on one copy.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) empty_tables: Vec<String>,
    pub(super) before: State,
    pub(super) up: Option<State>,
    pub(super) down: Option<State>,
    pub(super) again: Option<State>,
    pub(super) failed: Option<(Part, RefusedStatement)>,
}

impl Trial {
    /// Number of tables with rows.
    pub(super) fn filled(&self) -> usize {
        self.before.contents.values().filter(|table| table.rows > 0).count()
    }
}

pub(super) struct Trier<'a> {
    pub(super) run: &'a Run<'a>,
    /// The database with the history before the migration.
    pub(super) base: &'a ThinClone,
    pub(super) replay: &'a Replay<'a>,
    pub(super) of_tool: &'a ToolTables,
}

impl Trier<'_> {
    /// Tries the migration with generated rows. If that fails, it is tried again with what the history has inserted, so
    /// that the failure is known to be due to rows.
    pub(super) async fn judge(
        &self,
        reversal: usize,
        scratch: &mut Scratch,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Roundtrip, Error> {
        let first = self.try_on_copy(reversal, self.run.rows, scratch, tell).await?;
        if first.failed.is_none() || self.run.rows == 0 || first.filled() == 0 {
            return Ok(judge(reversal, &first, None));
        }
        let without = self.try_on_copy(reversal, 0, scratch, tell).await?;
        let failed = |trial: &Trial| trial.failed.as_ref().map(|(part, _)| *part);
        if failed(&without) >= failed(&first) && failed(&without).is_some() {
            return Ok(judge(reversal, &first, None));
        }
        Ok(judge(reversal, &without, first.failed.as_ref()))
    }

    async fn try_on_copy(
        &self,
        reversal: usize,
        rows: u64,
        scratch: &mut Scratch,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Trial, Error> {
        let roles = Roles::of(&self.base.observer).await?;
        let copy = scratch.copy(self.base).await?;
        let trial = self.up_down_up(reversal, rows, &copy, tell).await?;
        scratch.discard(copy).await?;
        roles.restore(&self.base.observer).await?;
        Ok(trial)
    }

    async fn up_down_up(
        &self,
        reversal: usize,
        rows: u64,
        copy: &ThinClone,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Trial, Error> {
        let empty_tables = match rows {
            0 => Vec::new(),
            rows => self.of_tool.fill_others(copy, rows).await?.empty,
        };
        let before = State::of(copy).await?;
        let mut trial = Trial { empty_tables, before, up: None, down: None, again: None, failed: None };
        for part in [Part::Up, Part::Down, Part::UpAgain] {
            // Each part is a run of the tool. Only the first continues the session of the history.
            let mut replay = match part {
                Part::Up => self.replay.in_copy(&copy.database),
                _ => self.replay.afresh(&copy.database),
            };
            let reversal = &self.run.reversals[reversal];
            let ran = match part {
                Part::Down => self.run.down(reversal, &mut replay, tell).await,
                _ => self.run.up(reversal, &mut replay, tell).await,
            };
            match ran {
                Ok(()) => {}
                Err(Stop::Refused(refused)) => {
                    trial.failed = Some((part, refused));
                    break;
                }
                Err(Stop::Broken(error)) => return Err(error),
            }
            drop(replay);
            let after = Some(State::of(copy).await?);
            match part {
                Part::Up => trial.up = after,
                Part::Down => trial.down = after,
                Part::UpAgain => trial.again = after,
            }
        }
        Ok(trial)
    }
}
