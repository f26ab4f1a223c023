//! The output of the last statement of migrations: its rows, or the plan of its query.

use crate::connection::Connection;
use crate::provider::ServerInfo;
use crate::script::Step;
use crate::send::send;
use crate::steps::RefusedStep;
use crate::{Error, publisher};
use std::time::Duration;
use tokio_postgres::SimpleQueryMessage;

/// What is asked of the last statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Whether it runs.
    Runs,
    /// Its rows.
    Rows,
    /// The plan that EXPLAIN shows.
    Plan,
}

/// The answer to a question about a statement that succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// It was not asked for, or the statement returns no rows.
    None,
    /// The number of columns, and the values of each row as text, in the order of the server.
    Rows { columns: usize, rows: Vec<Vec<Option<String>>> },
    /// The nodes of a plan as EXPLAIN names them, such as `Seq Scan on orders`.
    Plan(Vec<String>),
}

impl Question {
    /// Runs a statement, or explains it, and reads the answer.
    pub(crate) async fn ask<'s, 'm>(
        self,
        step: &'s Step<'m>,
        connection: &Connection,
        server: &ServerInfo,
        timeout: Duration,
        not_run: &mut impl Extend<String>,
    ) -> Result<Result<Output, RefusedStep<'s, 'm>>, Error> {
        if let Some(reason) = publisher::refusal(step, connection, server).await? {
            not_run.extend([reason]);
            return Ok(Ok(Output::None));
        }
        let sql = match self {
            Self::Plan => format!("EXPLAIN (COSTS OFF) {}", step.sql),
            Self::Runs | Self::Rows => step.sql.clone(),
        };
        let sent = send(connection, &sql, step.copy_data, Some(timeout)).await;
        Ok(match sent.result {
            Ok(messages) => Ok(self.answer(messages)),
            Err(error) => Err(RefusedStep { step, error, timed_out: sent.timed_out }),
        })
    }

    fn answer(self, messages: Vec<SimpleQueryMessage>) -> Output {
        let mut columns = None;
        let mut rows = Vec::new();
        for message in messages {
            match message {
                SimpleQueryMessage::RowDescription(description) => columns = Some(description.len()),
                SimpleQueryMessage::Row(row) => {
                    rows.push((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect::<Vec<_>>());
                }
                _ => {}
            }
        }
        match (self, columns) {
            (Self::Rows, Some(columns)) => Output::Rows { columns, rows },
            (Self::Plan, Some(_)) => {
                let lines = rows.iter().filter_map(|row| row.first()?.as_deref());
                Output::Plan(lines.enumerate().filter_map(|(at, line)| node(at, line)).collect())
            }
            _ => Output::None,
        }
    }
}

/// The node that a line of a plan names: the first one, and those behind an arrow. The others describe a node.
fn node(at: usize, line: &str) -> Option<String> {
    match line.trim_start().strip_prefix("->") {
        Some(node) => Some(node.trim().to_owned()),
        None => (at == 0).then(|| line.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_its_nodes() {
        let plan = "Hash Join\n  Hash Cond: (o.id = c.id)\n  ->  Seq Scan on orders o\n        Filter: (total > 1)\n  ->  Hash";
        let nodes: Vec<String> = plan.lines().enumerate().filter_map(|(at, line)| node(at, line)).collect();
        assert_eq!(nodes, ["Hash Join", "Seq Scan on orders o", "Hash"]);
    }
}
