//! EXECUTE: SQL whose text is known before it runs, wholly or but for some names.

use super::value::Value;
use super::{Frame, Shown};
use crate::ast::from_pg::parse_sql;
use crate::catalog::Oid;
use crate::execute::{Executor, Run, fail};
use crate::plpgsql::{HOLE, SqlText};

const NOT_KNOWN: &str = "dynamic SQL whose text only run time knows";

impl Executor<'_> {
    pub(super) fn dynamic(&mut self, expression: &SqlText, frame: &mut Frame) -> Run {
        let value = frame.parser.expression(expression).ok().and_then(|parsed| self.value(&parsed));
        let Some(Value::Text(text)) = value else {
            self.unknown(NOT_KNOWN);
            return Ok(());
        };
        let has_holes = text.contains(HOLE);
        let statements = match parse_sql(&text) {
            Ok(statements) => statements,
            Err(_) if has_holes => {
                self.unknown(NOT_KNOWN);
                return Ok(());
            }
            Err(_) => return fail("42601", "syntax error in dynamic SQL", expression.range),
        };
        // Variables of the code are not visible in the text that it executes.
        let variables = std::mem::take(&mut self.variables);
        let (catalog, session) = (self.catalog.clone(), self.session.clone());
        let result = self.deeper("EXECUTE", |executor| {
            executor.shown(&Shown::At(expression.range), |executor| executor.run_all(&statements))
        });
        self.variables = variables;
        if !has_holes {
            return result;
        }
        self.unknown(NOT_KNOWN);
        if result.is_err() {
            self.catalog = catalog;
            self.session = session;
        }
        self.mark_unknown_parts();
        Ok(())
    }

    /// Notes on the relations whose names run time makes that they stand for any number of others, and on the
    /// relations that they belong to that not all of their parts are known.
    fn mark_unknown_parts(&mut self) {
        let is_open = |name: &str| name.contains(HOLE);
        let open: Vec<Oid> = (self.catalog.relations().filter(|relation| is_open(&relation.name)))
            .map(|relation| relation.oid)
            .collect();
        for oid in open {
            let relation = self.catalog.relation_mut(oid);
            relation.known = false;
            let table = relation.index().map(|index| index.table);
            let owners: Vec<Oid> = relation.parents.iter().copied().chain(table).collect();
            for owner in owners {
                if self.catalog.get_relation(owner).is_some() {
                    self.catalog.relation_mut(owner).unknown_parts = true;
                }
            }
        }
    }
}
