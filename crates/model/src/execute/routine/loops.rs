//! Loops: over constants once per value, any other once as code that may run.

use super::listed::MAX_COMPARED;
use super::rows::{Row, is_long_list, series};
use super::value::Value;
use super::variables::{assigned, loop_targets, target_name};
use super::{Code, Flow};
use crate::effect::{Limit, UnknownReason};
use crate::execute::{Executor, Run};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::plpgsql::{Loop, LoopKind, SqlText, Target};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// Maximum number of rounds of one statement that are run one by one: loops within loops cause many.
const MAX_ROUNDS: usize = 1000;

/// Maximum number of rounds that are run one by one in any case.
const FEW_ROUNDS: usize = 64;

/// The values that a loop takes in turn.
enum Rounds {
    Known(Vec<Row>),
    /// These, and perhaps others that no statement shows.
    Listed(Vec<Row>),
    /// More than are found, or run one by one.
    TooMany(Limit),
    Unknown,
}

/// Loops of more rounds.
const TOO_MANY: Limit = Limit::Rounds(MAX_ROUNDS);

/// A row of one column without a name.
fn column(value: Option<Value>) -> Row {
    vec![(SmolStr::default(), value)]
}

impl Executor<'_> {
    pub(super) fn run_loop(&mut self, a_loop: &Loop, code: &Code) -> Run<Flow> {
        let depth = self.path.depth();
        let flow = self.run_rounds(a_loop, code);
        self.path.end_loop(depth);
        flow
    }

    fn run_rounds(&mut self, a_loop: &Loop, code: &Code) -> Run<Flow> {
        match &a_loop.kind {
            LoopKind::Query { query, .. } => self.body_sql(query, code)?,
            LoopKind::Dynamic { query, .. } => self.dynamic(&query.expression, true, code)?,
            LoopKind::Cursor { cursor, .. } => self.bound_cursor(cursor, code)?,
            _ => {}
        }
        match self.rounds_of(&a_loop.kind, code) {
            Rounds::Known(rows) if rows.len() <= FEW_ROUNDS && self.rounds + rows.len() <= MAX_ROUNDS => {
                self.run_each(a_loop, rows, code)
            }
            Rounds::Listed(rows) if self.rounds + rows.len() <= MAX_ROUNDS => {
                self.rounds += rows.len();
                for row in rows {
                    self.bind(loop_targets(&a_loop.kind), row);
                    self.perhaps(&a_loop.statements, code);
                }
                self.run_once(a_loop, code)
            }
            Rounds::Unknown => self.run_once(a_loop, code),
            Rounds::Known(rows) => self.run_many(a_loop, rows, TOO_MANY, code),
            Rounds::Listed(_) => self.run_many(a_loop, Vec::new(), TOO_MANY, code),
            Rounds::TooMany(limit) => self.run_many(a_loop, Vec::new(), limit, code),
        }
    }

    /// A loop of many rounds, or of too many to know them. Once is enough, unless it makes dynamic SQL.
    fn run_many(&mut self, a_loop: &Loop, rows: Vec<Row>, limit: Limit, code: &Code) -> Run<Flow> {
        let known = std::mem::take(&mut self.effects.unknown);
        let before = (self.catalog.clone(), self.session.clone(), self.variables.clone(), self.effects.clone());
        let flow = self.run_once(a_loop, code);
        let is_dynamic = self.effects.unknown.iter().any(|unknown| unknown.reason.is_dynamic());
        let fits = !rows.is_empty() && self.rounds + rows.len() <= MAX_ROUNDS;
        if is_dynamic && fits {
            (self.catalog, self.session, self.variables, self.effects) = before;
        }
        let new = std::mem::replace(&mut self.effects.unknown, known);
        if !is_dynamic {
            new.into_iter().for_each(|unknown| self.effects.note_unknown(unknown));
            return flow;
        }
        if fits {
            return self.run_each(a_loop, rows, code);
        }
        let range = new.first().map_or_else(TextRange::default, |unknown| unknown.range);
        // The limit is the reason for names that are not known.
        let by_limit = [UnknownReason::DynamicTarget, UnknownReason::DynamicNames];
        let others = new.into_iter().filter(|unknown| !by_limit.contains(&unknown.reason));
        others.for_each(|unknown| self.effects.note_unknown(unknown));
        self.skip_code(UnknownReason::Limit(limit), range, true);
        flow
    }

    /// Runs the body as code that may run, with loop variables whose values are not known.
    fn run_once(&mut self, a_loop: &Loop, code: &Code) -> Run<Flow> {
        self.variables.forget(assigned(&a_loop.statements));
        self.variables.forget(loop_targets(&a_loop.kind).iter().map(target_name));
        let repeat = self.repeat_of(a_loop, code);
        self.repeats.push(repeat);
        let flow = self.run_body_once(a_loop, code);
        self.repeats.pop();
        flow
    }

    fn run_body_once(&mut self, a_loop: &Loop, code: &Code) -> Run<Flow> {
        if matches!(a_loop.kind, LoopKind::Endless) {
            let flow = self.statements(&a_loop.statements, code)?;
            return Ok(if flow == Flow::Return { Flow::Return } else { Flow::Next });
        }
        Ok(match self.perhaps(&a_loop.statements, code) {
            Flow::Return | Flow::Perhaps => Flow::Perhaps,
            _ => Flow::Next,
        })
    }

    /// Runs the body once per row.
    fn run_each(&mut self, a_loop: &Loop, rows: Vec<Row>, code: &Code) -> Run<Flow> {
        self.rounds += rows.len();
        let targets = loop_targets(&a_loop.kind);
        let mut left = Flow::Next;
        for row in rows {
            self.bind(targets, row);
            let flow = match left {
                Flow::Perhaps => self.perhaps(&a_loop.statements, code),
                _ => self.statements(&a_loop.statements, code)?,
            };
            match flow {
                Flow::Next | Flow::Continue => {}
                Flow::Exit if left == Flow::Next => return Ok(Flow::Next),
                Flow::Return if left == Flow::Next => return Ok(Flow::Return),
                Flow::Perhaps | Flow::Exit | Flow::Return => left = Flow::Perhaps,
            }
        }
        Ok(left)
    }

    /// Assigns a row to variables, or to one record.
    pub(super) fn bind(&mut self, targets: &[Target], row: Row) {
        match targets {
            [record] => {
                let name = target_name(record);
                let only = if row.len() == 1 { row[0].1.clone() } else { None };
                self.variables.set(name.clone(), only);
                for (field, value) in row {
                    self.variables.set_field(&name, &field, value);
                }
            }
            targets => {
                let mut values = row.into_iter().map(|(_, value)| value);
                for target in targets {
                    self.variables.set(target_name(target), values.next().flatten());
                }
            }
        }
    }

    /// The values that a loop takes in turn, as far as they are known.
    fn rounds_of(&mut self, kind: &LoopKind, code: &Code) -> Rounds {
        let known = |rows: Option<Vec<Row>>| rows.map_or(Rounds::Unknown, Rounds::Known);
        match kind {
            LoopKind::Integer { reverse, from, to, by, .. } => {
                let bounds = self.integer(from, code).zip(self.integer(to, code));
                let step = by.as_ref().map_or(Some(1), |by| self.integer(by, code)).filter(|step| *step > 0);
                let (Some((from, to)), Some(step)) = (bounds, step) else { return Rounds::Unknown };
                let Some(numbers) = series(from, to, if *reverse { -step } else { step }) else {
                    return Rounds::TooMany(TOO_MANY);
                };
                let row = |number: i64| column(Some(Value::Text(number.to_string())));
                Rounds::Known(numbers.into_iter().map(row).collect())
            }
            LoopKind::Foreach { array, slice: 0, .. } => {
                match code.expression(array).and_then(|array| self.value(&array)) {
                    Some(Value::List(list)) if list.len() > MAX_ROUNDS => Rounds::TooMany(TOO_MANY),
                    Some(Value::List(list)) => Rounds::Known(list.into_iter().map(column).collect()),
                    _ => Rounds::Unknown,
                }
            }
            LoopKind::Query { query, .. } => match code.statement(query).as_deref() {
                Some(Ast::Select(query)) => match self.listed(query) {
                    Some(listed) if listed.is_whole => Rounds::Known(listed.rows),
                    Some(listed) => Rounds::Listed(listed.rows),
                    None if self.compared > MAX_COMPARED => Rounds::TooMany(Limit::CatalogRows(MAX_COMPARED)),
                    None if is_long_list(query) => Rounds::TooMany(TOO_MANY),
                    None => known(self.constant_rows(query)),
                },
                _ => Rounds::Unknown,
            },
            _ => Rounds::Unknown,
        }
    }

    pub(super) fn integer(&self, text: &SqlText, code: &Code) -> Option<i64> {
        self.value(&*code.expression(text)?)?.as_integer()
    }
}
