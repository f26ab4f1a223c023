//! Loops: over constants once per value, any other once as code that may run.

use super::rows::{Row, series};
use super::value::Value;
use super::variables::{assigned, loop_targets, target_name};
use super::{Code, Flow};
use crate::ast::Ast;
use crate::execute::{Executor, Run};
use crate::plpgsql::{Loop, LoopKind, SqlText, Target};
use smol_str::SmolStr;

/// So many rounds of one statement are run one by one: loops within loops make a lot of them.
const MAX_ROUNDS: usize = 1000;

impl Executor<'_> {
    pub(super) fn run_loop(&mut self, a_loop: &Loop, code: &Code) -> Run<Flow> {
        match &a_loop.kind {
            LoopKind::Query { query, .. } => self.body_sql(query, code)?,
            LoopKind::Dynamic { query, .. } => self.dynamic(&query.expression, true, code)?,
            _ => {}
        }
        if let Some(rows) = self.loop_rows(&a_loop.kind, code).filter(|rows| self.rounds + rows.len() <= MAX_ROUNDS) {
            self.rounds += rows.len();
            return self.run_each(a_loop, rows, code);
        }
        self.variables.forget(assigned(&a_loop.statements));
        self.variables.forget(loop_targets(&a_loop.kind).iter().map(target_name));
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

    /// The values that a loop takes in turn, where they are known.
    fn loop_rows(&self, kind: &LoopKind, code: &Code) -> Option<Vec<Row>> {
        let column = |value: Option<Value>| vec![(SmolStr::default(), value)];
        match kind {
            LoopKind::Integer { reverse, from, to, by, .. } => {
                let step = by.as_ref().map_or(Some(1), |by| self.integer(by, code)).filter(|step| *step > 0)?;
                let (from, to) = (self.integer(from, code)?, self.integer(to, code)?);
                let numbers = series(from, to, if *reverse { -step } else { step })?;
                Some(numbers.into_iter().map(|number| column(Some(Value::Text(number.to_string())))).collect())
            }
            LoopKind::Foreach { array, slice: 0, .. } => match self.value(&*code.expression(array)?)? {
                Value::List(list) if list.len() <= super::rows::MAX_ROWS => {
                    Some(list.into_iter().map(column).collect())
                }
                _ => None,
            },
            LoopKind::Query { query, .. } => match &*code.statement(query)? {
                Ast::Select(query) => self.constant_rows(query),
                _ => None,
            },
            _ => None,
        }
    }

    fn integer(&self, text: &SqlText, code: &Code) -> Option<i64> {
        self.value(&*code.expression(text)?)?.as_integer()
    }
}
