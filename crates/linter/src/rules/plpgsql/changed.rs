//! Tables of whose columns the migrations do not say what code finds, because the code itself creates or changes them.

use crate::rule::RoutineContext;
use pgvet_model::routine::{Dynamic, Node, Step};
use pgvet_syntax::ast::{Ast, ObjectName, Persistence, QueryBody};
use pgvet_syntax::lexer::tokenize;
use pgvet_syntax::plpgsql::HOLE;
use pgvet_syntax::source::TextRange;
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
            if let Some((name, makes_any)) = changed_table(sql.ast) {
                changed.any |= makes_any && name.contains(HOLE);
                changed.named.insert(name.clone());
            }
        }
        let dynamic = steps.iter().filter_map(|step| match step.node {
            Node::Statement(statement) => context.routine.dynamic(&statement.kind.dynamic_query()?.expression),
            _ => None,
        });
        for query in dynamic.filter(|query| query.statements.is_empty()) {
            changed.any |= query.constant.as_ref().is_some_and(|constant| begins_change(&constant.text));
        }
        changed
    }

    /// Whether a name may mean another table, or one with other columns, when the code runs.
    pub(super) fn may_be(&self, name: &ObjectName) -> bool {
        self.any || self.named.contains(&name.name.text)
    }
}

/// The table that a statement of the code creates or changes, and whether it may be one that others have created: ALTER
/// TABLE changes that one, and a temporary table hides it.
fn changed_table(ast: &Ast) -> Option<(&SmolStr, bool)> {
    let is_temporary = |persistence: Persistence| persistence == Persistence::Temporary;
    match ast {
        Ast::CreateTable(create) => Some((&create.name.name.text, is_temporary(create.persistence))),
        Ast::CreateTableAs(create) => Some((&create.into.name.name.text, is_temporary(create.into.persistence))),
        Ast::AlterTable(alter) => Some((&alter.name.name.text, true)),
        Ast::Select(query) => match &query.body {
            QueryBody::Select(select) => {
                let into = select.into.as_ref()?;
                Some((&into.name.name.text, is_temporary(into.persistence)))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a text that cannot be parsed, because too much of it is known only at run time, begins with ALTER TABLE or with
/// CREATE of a temporary table.
fn begins_change(text: &str) -> bool {
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    let begins = |at: usize, words: &[&str]| {
        tokens.get(at).is_some_and(|token| words.iter().any(|word| token.is_keyword(text, word)))
    };
    let temporary = ["TEMP", "TEMPORARY"];
    begins(0, &["ALTER"]) && begins(1, &["TABLE"])
        || begins(0, &["CREATE"]) && (begins(1, &temporary) || begins(1, &["LOCAL", "GLOBAL"]) && begins(2, &temporary))
}
