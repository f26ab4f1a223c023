//! The relations that the code of functions makes, whenever it runs.

use super::Routine;
use pgvet_syntax::ast::{Ast, FunctionBody, ObjectName, Persistence, QueryBody};
use pgvet_syntax::plpgsql::HOLE;
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

/// Whether a name with unknown parts may be this one.
pub(crate) fn may_be(made: &str, name: &str) -> bool {
    match made.split_once(HOLE) {
        None => made == name,
        Some((start, rest)) => {
            let end = rest.rsplit(HOLE).next().unwrap_or_default();
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_parts_of_a_name_may_be_anything() {
        assert!(may_be("orders", "orders"));
        assert!(!may_be("orders", "orders_2024"));
        assert!(may_be(&format!("orders_{HOLE}"), "orders_2024"));
        assert!(!may_be(&format!("orders_{HOLE}"), "users"));
        assert!(may_be(&format!("{HOLE}_of_{HOLE}_log"), "a_of_b_log"));
        assert!(!may_be(&format!("orders_{HOLE}_orders"), "orders_orders"));
    }
}
