//! One migration on copies of the database: undisturbed, ended at a point and run again, ended and recovered.

use super::build::{Ending, end_during};
use super::judge::{Left, Outcome, Volatile, verdict};
use super::point::{Moment, Point, points};
use super::recovery::{Recovery, Remains, Resume};
use super::{Crash, Expected, SessionEnd, Trials, Verdict};
use crate::connection::Connection;
use crate::provider::{CloneProvider, Scratch, ThinClone};
use crate::replay::{RefusedStatement, Replay, Stop};
use crate::roles::Roles;
use crate::script::{Script, Step, StepKind};
use crate::state::State;
use crate::{Error, Event};
use pgvet_model::migration::Migration;
use pgvet_model::runner::Retry;
use pgvet_syntax::ast::Ast;

/// Maximum number of points of a migration at which its session is ended.
const MOST_POINTS: usize = 100;

pub(super) struct Trier<'a> {
    pub(super) migration: &'a Migration<'a>,
    pub(super) script: &'a Script<'a>,
    /// The database before the migration.
    pub(super) start: &'a ThinClone,
    pub(super) replay: &'a Replay<'a>,
    pub(super) roles: &'a Roles,
    pub(super) scratch: &'a mut Scratch,
}

/// A session of the server that is in no transaction of the copy.
pub(super) async fn quiet(copy: &ThinClone) -> Result<Connection, Error> {
    Connection::open(&copy.observer, "question").await
}

impl Trier<'_> {
    /// Runs the migration as nobody disturbs it, or returns why it does not run.
    pub(super) async fn undisturbed(&mut self) -> Result<Result<Expected, RefusedStatement>, Error> {
        let copy = self.scratch.copy(self.start).await?;
        let ran = self.run_on(&copy).await?;
        let state = match ran {
            Ok(()) => Ok(State::of(&copy).await?),
            Err(refused) => Err(refused),
        };
        self.discard(copy).await?;
        Ok(state)
    }

    async fn run_on(&self, copy: &ThinClone) -> Result<Result<(), RefusedStatement>, Error> {
        let mut replay = self.replay.in_copy(&copy.database);
        let ran = replay.run(self.migration).await;
        replay.end().await;
        match ran {
            Ok(()) => Ok(Ok(())),
            Err(Stop::Refused(refused)) => Ok(Err(refused)),
            Err(Stop::Broken(error)) => Err(error),
        }
    }

    /// Tries the migration.
    pub(super) async fn judge(
        &mut self,
        at: usize,
        trials: Trials,
        expected: Expected,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Crash, Error> {
        let path = &self.migration.file.path;
        let mut known = Known { expected, volatile: None };
        let mut crash = Crash::new(at, Verdict::Safe);
        if trials.crash {
            let (points, not_entered) =
                points(self.script, self.migration.file, self.migration.runner.restart.recording);
            let of = points.len().min(MOST_POINTS);
            for (number, point) in points.iter().take(of).enumerate() {
                tell(Event::SessionEnd { path, number: number + 1, of });
                let stop = self.stop(point, &mut known).await?;
                crash.stops.push(stop);
            }
            crash.tried = true;
            crash.verdict = verdict(&crash.stops);
            crash.untried = points.len() - of;
            crash.not_entered = not_entered;
        }
        if trials.twice {
            tell(Event::Twice { path });
            crash.twice = Some(self.twice(&mut known).await?);
        }
        crash.volatile = known.volatile.map(|volatile| volatile.names()).unwrap_or_default();
        Ok(crash)
    }

    /// Ends the session at a point, and runs the migration again.
    async fn stop(&mut self, point: &Point, known: &mut Known) -> Result<SessionEnd, Error> {
        let outcome = self.end_and_run_again(point, known).await?;
        let (left, recovery) = match outcome {
            Outcome::Fails { .. } | Outcome::Differs { .. } => self.recover(point, known).await?,
            Outcome::Same | Outcome::Complete | Outcome::NotEnded => (None, None),
        };
        Ok(SessionEnd { point: point.clone(), outcome, left, recovery })
    }

    async fn end_and_run_again(&mut self, point: &Point, known: &mut Known) -> Result<Outcome, Error> {
        let copy = self.scratch.copy(self.start).await?;
        let outcome = match self.end_at(point, &copy).await? {
            Ending::Complete => Outcome::Complete,
            Ending::NotWaiting => Outcome::NotEnded,
            Ending::Ended => match self.run_again(point, &copy).await? {
                Some(refused) => Outcome::Fails { refused },
                None => match self.difference(&State::of(&copy).await?, known).await? {
                    difference if difference.is_empty() => Outcome::Same,
                    difference => Outcome::Differs { difference },
                },
            },
        };
        self.discard(copy).await?;
        Ok(outcome)
    }

    /// Runs the commands up to a point, and ends the session as a killed process or a lost connection does.
    async fn end_at(&self, point: &Point, copy: &ThinClone) -> Result<Ending, Error> {
        let mut replay = self.replay.in_copy(&copy.database);
        let connection = replay.connection(self.migration.runner.session).await?;
        let conditions = self.replay.conditions();
        let during = point.moment == Moment::DuringStatement;
        let before = if during { &self.script.steps[..point.step] } else { &self.script.steps[..=point.step] };
        conditions.run(&connection, before, &mut Vec::new()).await?;
        let ending = if during {
            end_during(&connection, &self.script.steps[point.step], copy).await?
        } else {
            connection.terminate().await;
            Ending::Ended
        };
        connection.close().await;
        Ok(ending)
    }

    /// Runs the migration as the tool does the next time. Returns what is refused.
    async fn run_again(&self, point: &Point, copy: &ThinClone) -> Result<Option<RefusedStatement>, Error> {
        self.run_from(self.first_of_next_run(point), copy).await
    }

    /// The first command that the tool sends the next time.
    fn first_of_next_run(&self, point: &Point) -> usize {
        match self.migration.runner.retry {
            Retry::Again | Retry::After(_) => 0,
            Retry::Continues => self.next(point),
        }
    }

    /// The first command that was not completed for good.
    fn next(&self, point: &Point) -> usize {
        let steps = &self.script.steps;
        match point.moment {
            Moment::DuringStatement | Moment::BeforeRecord => point.step,
            Moment::AfterStatement => point.step + 1,
            Moment::BeforeCommit => {
                steps[..=point.step].iter().rposition(|step| step.kind == StepKind::Begin).unwrap_or(0)
            }
        }
    }

    /// Runs the commands from one on in a new session, with the settings that were made before it.
    async fn run_from(&self, from: usize, copy: &ThinClone) -> Result<Option<RefusedStatement>, Error> {
        let mut replay = self.replay.afresh(&copy.database);
        let connection = replay.connection(self.migration.runner.session).await?;
        let (earlier, rest) = self.script.steps.split_at(from);
        let steps = earlier.iter().filter(|step| is_setting(step)).chain(rest);
        let refused = self.replay.conditions().run(&connection, steps, &mut Vec::new()).await?;
        let refused = refused.map(|refused| RefusedStatement::new(self.migration, &refused));
        connection.close().await;
        Ok(refused)
    }

    /// How a state differs from the expected one, without what differs each time.
    pub(super) async fn difference(&mut self, state: &State, known: &mut Known) -> Result<Left, Error> {
        let difference = Left::between(&known.expected, state);
        if difference.is_empty() {
            return Ok(difference);
        }
        if known.volatile.is_none() {
            known.volatile = Some(self.volatile(&known.expected).await?);
        }
        Ok(known.volatile.as_ref().map_or(difference.clone(), |volatile| difference.without(volatile)))
    }

    /// Runs the migration once more, after sequences have advanced.
    async fn volatile(&mut self, expected: &Expected) -> Result<Volatile, Error> {
        const ADVANCE: &str = "DO $$ DECLARE s regclass; BEGIN \
             FOR s IN SELECT seqrelid::regclass FROM pg_catalog.pg_sequence LOOP \
               BEGIN PERFORM pg_catalog.nextval(s); PERFORM pg_catalog.nextval(s); EXCEPTION WHEN OTHERS THEN END; \
             END LOOP; END $$";
        let copy = self.scratch.copy(self.start).await?;
        let connection = Connection::open(&copy.database, "setup").await?;
        connection.run(ADVANCE).await?;
        connection.close().await;
        let volatile = match self.run_on(&copy).await? {
            Ok(()) => Volatile::between(expected, &State::of(&copy).await?),
            Err(_) => Volatile::default(),
        };
        self.discard(copy).await?;
        Ok(volatile)
    }

    /// What the session leaves when it ends there, and steps that lead to the expected result.
    async fn recover(&mut self, point: &Point, known: &mut Known) -> Result<(Option<Left>, Option<Recovery>), Error> {
        let copy = self.scratch.copy(self.start).await?;
        self.end_at(point, &copy).await?;
        let (before, remains) = (Remains::of(self.start).await?, Remains::of(&copy).await?);
        let left = Left::between(&State::of(self.start).await?, &State::of(&copy).await?);
        let left = Left { half_detached: remains.half_detached(&before), ..left };
        self.discard(copy).await?;
        let sql = remains.cleanup(&before);
        if point.moment == Moment::BeforeRecord {
            return Ok((Some(left), Some(Recovery { sql, resume: Resume::Record })));
        }
        if !sql.is_empty() && self.leads_there(point, &sql, self.first_of_next_run(point), known).await? {
            return Ok((Some(left), Some(Recovery { sql, resume: Resume::RunAgain })));
        }
        let completed = usize::from(point.moment == Moment::DuringStatement && remains.has_detached(&before));
        let from = self.next(point) + completed;
        let resume = self.script.steps[from.min(self.script.steps.len())..].iter().find_map(|step| step.statement);
        let resume = match resume {
            Some(statement) => Resume::RunRest {
                line: self.migration.file.position(statement.range.start).line,
                after_settings: self.script.steps[..from].iter().any(is_setting),
            },
            None => Resume::Record,
        };
        let leads = self.leads_there(point, &sql, from, known).await?;
        Ok((Some(left), leads.then_some(Recovery { sql, resume })))
    }

    /// Whether SQL and the commands from one on lead to the expected result.
    async fn leads_there(
        &mut self,
        point: &Point,
        sql: &[String],
        from: usize,
        known: &mut Known,
    ) -> Result<bool, Error> {
        let copy = self.scratch.copy(self.start).await?;
        self.end_at(point, &copy).await?;
        let connection = Connection::open(&copy.database, "recovery").await?;
        let mut runs = true;
        for sql in sql {
            runs &= connection.run(sql).await.is_ok();
        }
        connection.close().await;
        runs &= self.run_from(from, &copy).await?.is_none();
        let state = State::of(&copy).await?;
        let leads = runs && self.difference(&state, known).await?.is_empty();
        self.discard(copy).await?;
        Ok(leads)
    }

    /// Drops a copy, and what the migration has made of the roles of the server.
    pub(super) async fn discard(&mut self, copy: ThinClone) -> Result<(), Error> {
        let observer = copy.observer.clone();
        self.scratch.discard(copy).await?;
        self.roles.restore(&observer).await
    }
}

/// Whether a command makes a setting of the session.
fn is_setting(step: &Step<'_>) -> bool {
    step.kind == StepKind::Control && matches!(step.ast(), Some(Ast::Set(_)))
}

/// What an undisturbed run results in.
pub(super) struct Known {
    expected: Expected,
    /// Asked for when something differs.
    volatile: Option<Volatile>,
}
