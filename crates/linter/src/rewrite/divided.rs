//! Guarantees of a migration that its parts, run one after the other, do not have.

use super::PlannedFile;
use super::draft::first_ast;
use crate::diagnostic::Diagnostic;
use crate::rule::Rule;
use crate::rules::{data, security};
use pgvet_syntax::ast::{Ast, Persistence, QueryBody};
use pgvet_syntax::lexer::{identifier, tokenize};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// Why the plan must not be made: something lives as long as the session or the transaction, and would be needed later.
pub(super) fn needed_later(files: &[PlannedFile]) -> Option<String> {
    for (at, file) in files.iter().enumerate() {
        let temporary = file.statements.iter().filter_map(|statement| temporary_relation(&first_ast(&statement.sql)?));
        for name in temporary {
            if files[at + 1..].iter().any(|later| names(later, &name)) {
                return Some(format!(
                    "the temporary table `{name}` ends with its session, and would be needed in a later migration"
                ));
            }
        }
    }
    None
}

/// Rules about states that must not last between two migrations if the original does not leave them.
static LEFT: [&Rule; 2] = [&data::trigger_left_disabled::RULE, &security::row_level_security_disabled::RULE];

/// Why the plan must not be made: between its migrations something would be switched off that the original switches on
/// again before anybody sees it.
pub(super) fn left_between(original: &[Diagnostic], planned: &[Diagnostic]) -> Option<String> {
    let is_new = |found: &&Diagnostic| {
        LEFT.iter().any(|rule| found.is_of(&rule.meta)) && original.iter().all(|known| known.rule != found.rule)
    };
    planned.iter().find(is_new).map(|found| format!("between the migrations of the plan, {}", found.message))
}

fn temporary_relation(ast: &Ast) -> Option<SmolStr> {
    let (name, persistence) = match ast {
        Ast::CreateTable(create) => (&create.name, create.persistence),
        Ast::CreateTableAs(create) => (&create.into.name, create.into.persistence),
        Ast::Select(query) => {
            let QueryBody::Select(select) = &query.body else { return None };
            let into = select.into.as_ref()?;
            (&into.name, into.persistence)
        }
        Ast::CreateView(create) => (&create.name, create.persistence),
        Ast::CreateSequence(create) => (&create.name, create.persistence),
        _ => return None,
    };
    (persistence == Persistence::Temporary).then(|| name.name.text.clone())
}

/// Whether the name occurs anywhere in the file, in code too.
fn names(file: &PlannedFile, name: &SmolStr) -> bool {
    file.statements.iter().any(|statement| {
        let sql = &statement.sql;
        let mut tokens = tokenize(sql, TextRange::new(0, sql.len() as u32)).into_iter();
        tokens.any(|token| {
            let text = token.text(sql);
            identifier(text) == *name || text.starts_with(['\'', '$']) && text.contains(name.as_str())
        })
    })
}
