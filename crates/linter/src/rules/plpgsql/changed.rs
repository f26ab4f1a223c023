//! Tables of whose columns the migrations do not say what code finds, because the code itself creates or changes them.

use crate::rule::RoutineContext;
use pgvet_model::routine::{Dynamic, Node, Step};
use pgvet_syntax::ast::{Ast, ObjectName, QueryBody};
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

/// Whether the text of EXECUTE is known.
pub(super) fn is_whole(dynamic: &Dynamic) -> bool {
    dynamic.constant.as_ref().is_some_and(pgvet_syntax::plpgsql::ConstantSql::is_complete)
}

/// The tables that the code itself creates or changes, and the transition tables of its triggers.
#[derive(Debug, Default)]
pub(super) struct Changed {
    named: FxHashSet<SmolStr>,
    /// Code creates temporary tables or changes tables whose names only the run knows.
    any: bool,
}

impl Changed {
    pub(super) fn of(context: &RoutineContext<'_>, steps: &[Step<'_>]) -> Self {
        let transitions = context.triggers().iter().flat_map(|using| &using.trigger.transitions);
        let mut changed = Self { named: transitions.map(|table| table.name.clone()).collect(), any: false };
        for sql in steps.iter().flat_map(|step| &step.sql) {
            if let Some(name) = changed_table(sql.ast) {
                changed.named.insert(name.clone());
            }
        }
        let dynamic = steps.iter().filter_map(|step| match step.node {
            Node::Statement(statement) => statement.kind.dynamic_query(),
            _ => None,
        });
        for query in dynamic {
            let is_known = query.expression.constant(&context.source.text).is_some_and(|text| text.is_complete());
            changed.any |= !is_known && makes_tables(&query.expression.text);
        }
        changed
    }

    /// Whether a name may mean another table, or one with other columns, when the code runs.
    pub(super) fn may_be(&self, name: &ObjectName) -> bool {
        self.any || self.named.contains(&name.name.text)
    }
}

/// The table that a statement of the code creates or changes.
fn changed_table(ast: &Ast) -> Option<&SmolStr> {
    match ast {
        Ast::CreateTable(create) => Some(&create.name.name.text),
        Ast::CreateTableAs(create) => Some(&create.into.name.name.text),
        Ast::AlterTable(alter) => Some(&alter.name.name.text),
        Ast::Select(query) => match &query.body {
            QueryBody::Select(select) => select.into.as_ref().map(|into| &into.name.name.text),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a text that is not known as a whole may give tables other columns.
fn makes_tables(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("alter table") || text.contains("temp")
}
