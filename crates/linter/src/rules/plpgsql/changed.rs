//! Tables of whose columns the migrations do not say what code finds, because the code itself creates or changes them.

use crate::rule::RoutineContext;
use pgvet_model::routine::{Dynamic, Node, Step};
use pgvet_syntax::ast::{Ast, ObjectName, QueryBody};
use pgvet_syntax::lexer::tokenize;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

/// Whether the text of EXECUTE is known.
pub(super) fn is_whole(dynamic: &Dynamic) -> bool {
    dynamic.constant.as_ref().is_some_and(pgvet_syntax::plpgsql::ConstantSql::is_complete)
}

/// The tables that the code itself creates or changes.
#[derive(Debug, Default)]
pub(super) struct Changed {
    named: FxHashSet<SmolStr>,
    /// Code creates temporary tables or changes tables whose names only the run knows.
    any: bool,
}

impl Changed {
    pub(super) fn of(context: &RoutineContext<'_>, steps: &[Step<'_>]) -> Self {
        let mut changed = Self::default();
        match transition_tables(context) {
            Some(names) => changed.named.extend(names),
            None => changed.any = true,
        }
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

/// The names that the triggers of a function give its transition tables: `REFERENCING NEW TABLE AS fresh`. The tree of
/// CREATE TRIGGER does not keep them. `None` if the statement is not in the file.
fn transition_tables(context: &RoutineContext<'_>) -> Option<Vec<SmolStr>> {
    let mut names = Vec::new();
    for using in context.triggers().iter().filter(|using| using.trigger.transitions) {
        let (file, place) = using.trigger.defined_at;
        let migration = context.routines.migrations.get(file as usize)?;
        let known = names.len();
        let text = migration.file.text.as_str();
        let tokens = tokenize(text, TextRange::new(place.start, text.len() as u32));
        let end = tokens.iter().position(|token| token.is_keyword(text, "EXECUTE")).unwrap_or(tokens.len());
        for at in (0..end).filter(|at| tokens[*at].is_keyword(text, "TABLE")) {
            let name = tokens[at + 1..end].iter().find(|token| !token.is_keyword(text, "AS"));
            names.extend(name.map(|name| name.text(text).trim_matches('"').to_ascii_lowercase().into()));
        }
        if names.len() == known {
            return None;
        }
    }
    Some(names)
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
