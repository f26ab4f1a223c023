//! Defaults that count with a sequence.

use super::{Catalog, Column, Mention, Oid, Relation};
use crate::catalog::RelationKind;
use pgvet_syntax::ast::{Expr, ExprKind, string_literal};
use std::sync::Arc;

/// The functions that name a sequence in a text.
pub const SEQUENCE_FUNCTIONS: [&str; 3] = ["nextval", "currval", "setval"];

impl Relation {
    /// Whether the expression names this sequence, as `nextval('s')` does.
    pub fn is_sequence_of(&self, expr: &Expr) -> bool {
        let mut uses = false;
        expr.walk(&mut |part| {
            let ExprKind::Call(call) = &part.kind else { return };
            if !SEQUENCE_FUNCTIONS.contains(&call.name.as_str()) {
                return;
            }
            let Some(text) = call.arguments.first().and_then(|argument| string_literal(&argument.value)) else {
                return;
            };
            let parts: Vec<&str> = text.split('.').map(|part| part.trim_matches('"')).collect();
            uses |= match parts.as_slice() {
                [name] => *name == self.name,
                [schema, name] => *name == self.name && *schema == self.schema,
                _ => false,
            };
        });
        uses
    }
}

impl Catalog {
    /// A temporary sequence takes the defaults that count with it along.
    pub(super) fn drop_defaults_of_temporary_sequences(&mut self) {
        let sequences: Vec<Arc<Relation>> =
            (self.temporary_relations()).filter(|relation| relation.kind == RelationKind::Sequence).cloned().collect();
        if sequences.is_empty() {
            return;
        }
        let uses = |column: &Column| {
            let default = column.default.as_deref();
            default.is_some_and(|default| sequences.iter().any(|sequence| sequence.is_sequence_of(default)))
        };
        let mentioning = self.relations_mentioning(&SEQUENCE_FUNCTIONS.map(|name| Mention::Call(name.into())));
        let losing = mentioning.into_iter().filter(|relation| relation.columns.iter().any(uses));
        for oid in losing.map(|relation| relation.oid).collect::<Vec<Oid>>() {
            let columns = &mut self.relation_mut(oid).columns;
            columns.iter_mut().filter(|column| uses(column)).for_each(|column| column.default = None);
        }
    }
}
