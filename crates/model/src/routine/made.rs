//! The relations that the code of functions makes, whenever it runs.

use super::Routine;
use crate::execute::may_be;
use pgvet_syntax::ast::{Ast, FunctionBody, ObjectName, Persistence, QueryBody};
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::rc::Rc;

/// The objects that some functions create.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Names, with [`HOLE`] for the parts known only at run time.
    names: Vec<(SmolStr, Persistence)>,
    /// The words in code, constants included, that runs SQL known only at run time.
    hidden: FxHashSet<SmolStr>,
}

impl Made {
    pub(super) fn by(routines: impl Iterator<Item = Rc<Routine>>) -> Self {
        let mut made = Self::default();
        for routine in routines {
            for step in routine.steps() {
                let named = step.sql.iter().filter_map(|sql| created(sql.ast));
                made.names.extend(named.map(|(name, persistence)| (name.name.text.clone(), persistence)));
            }
            if let (Some(function), false) = (&routine.function, routine.unread_dynamic().is_empty()) {
                made.hidden.extend(words(&function.body));
            }
        }
        made
    }

    /// Whether one of the functions may make a relation of that name, and of a kind that is asked for.
    pub(super) fn makes(&self, name: &str, is_wanted: impl Fn(Persistence) -> bool) -> bool {
        let is_made = |(made, persistence): &(SmolStr, Persistence)| is_wanted(*persistence) && may_be(made, name);
        self.names.iter().any(is_made) || self.hidden.contains(name)
    }
}

/// The relation that a statement creates, or that gets a new name from it.
fn created(ast: &Ast) -> Option<(&ObjectName, Persistence)> {
    match ast {
        Ast::CreateTable(create) => Some((&create.name, create.persistence)),
        Ast::CreateTableAs(create) => Some((&create.into.name, create.into.persistence)),
        Ast::CreateView(create) => Some((&create.name, Persistence::Permanent)),
        Ast::Select(query) => {
            let QueryBody::Select(select) = &query.body else { return None };
            let into = select.into.as_ref()?;
            Some((&into.name, into.persistence))
        }
        _ => None,
    }
}

/// The words of the code and of its constants.
fn words(body: &FunctionBody) -> Vec<SmolStr> {
    let FunctionBody::Source { text, .. } = body else { return Vec::new() };
    text.split(|c: char| !c.is_alphanumeric() && c != '_').map(|word| word.to_lowercase().into()).collect()
}
