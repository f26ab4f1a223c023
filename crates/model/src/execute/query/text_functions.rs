//! Functions of PostgreSQL and of extensions that run SQL which they are given as text.

use crate::effect::UnknownReason;
use crate::execute::executed::InFile;
use crate::execute::routine::{Value, may_change};
use crate::execute::{Executor, Run};
use pgvet_syntax::ast::FunctionCall;

/// Where and when such a function runs its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// In the statement that calls it, as a query: PostgreSQL refuses data changes, except those of functions.
    ///
    /// Source: PostgreSQL 18, `src/backend/utils/adt/xml.c`, `query_to_xml_internal`: `SPI_execute(query, true, 0)`;
    /// `src/backend/utils/adt/tsvector_op.c`, `ts_stat_sql`;
    /// `src/backend/utils/adt/tsquery_rewrite.c`, `tsquery_rewrite_query`; `contrib/tablefunc/tablefunc.c`, `crosstab`.
    Query,
    /// In the statement that calls it.
    Here,
    /// On another connection, perhaps of another server.
    Elsewhere,
    /// When a schedule says so.
    Later,
}

/// A function by name, and the argument that is the text: its position, or `None` for the last one in quotes.
pub(super) type TextFunction = (&'static str, Option<usize>, Runs);

/// Functions that are found whatever schema their extension is in.
const ANYWHERE: &[TextFunction] = &[
    ("query_to_xml", Some(0), Runs::Query),
    ("query_to_xmlschema", Some(0), Runs::Query),
    ("query_to_xml_and_xmlschema", Some(0), Runs::Query),
    ("ts_stat", Some(0), Runs::Query),
    ("ts_rewrite", Some(1), Runs::Query),
    ("crosstab", Some(0), Runs::Query),
    ("replicate_ddl_command", Some(0), Runs::Here),
    ("dblink", None, Runs::Elsewhere),
    ("dblink_exec", None, Runs::Elsewhere),
    ("dblink_open", None, Runs::Elsewhere),
    ("dblink_send_query", None, Runs::Elsewhere),
    ("run_command_on_all_nodes", Some(0), Runs::Elsewhere),
    ("run_command_on_coordinator", Some(0), Runs::Elsewhere),
    ("run_command_on_placements", Some(1), Runs::Elsewhere),
    ("run_command_on_shards", Some(1), Runs::Elsewhere),
    ("run_command_on_workers", Some(0), Runs::Elsewhere),
];

/// Functions of the schema `cron`, whose names say too little.
const CRON: &[TextFunction] = &[
    ("alter_job", None, Runs::Later),
    ("schedule", None, Runs::Later),
    ("schedule_in_database", Some(2), Runs::Later),
];

/// The function that a call means, if it is such a function.
pub(super) fn text_function(call: &FunctionCall) -> Option<TextFunction> {
    let is_cron = call.schema.as_ref().is_some_and(|schema| schema == "cron");
    let functions = if is_cron { CRON } else { ANYWHERE };
    // With three arguments it runs nothing.
    let runs_text = call.name != "ts_rewrite" || call.arguments.len() == 2;
    functions.iter().find(|(name, ..)| call.name == *name && runs_text).copied()
}

/// `f()` or `schema.f()`, as in the call.
pub(super) fn called_name(call: &FunctionCall) -> String {
    let name = &call.name;
    call.schema.as_ref().map_or_else(|| format!("{name}()"), |schema| format!("{schema}.{name}()"))
}

impl Executor<'_> {
    /// Runs the text that a call gives to such a function, or notes that it is not analyzed.
    pub(super) fn run_text_function(&mut self, call: &FunctionCall) -> Run {
        let Some((_, position, runs)) = text_function(call) else { return Ok(()) };
        let mut values = call.arguments.iter().map(|argument| self.value(&argument.value));
        let text = match position {
            Some(position) => values.nth(position).flatten(),
            None => values.flatten().rfind(|value| matches!(value, Value::Text(_))),
        };
        match (&text, runs) {
            (Some(Value::Text(_)), Runs::Query | Runs::Here) => {
                return self.run_text(text, call.name_range, InFile::At(call.name_range), true);
            }
            (Some(Value::Null), _) => return Ok(()),
            _ => {}
        }
        let could_change = match (&text, runs) {
            (_, Runs::Query | Runs::Later) => false,
            (Some(Value::Text(text)), _) => may_change(text),
            _ => true,
        };
        self.skip_code(UnknownReason::TextFunction { function: called_name(call) }, call.name_range, could_change);
        Ok(())
    }
}
