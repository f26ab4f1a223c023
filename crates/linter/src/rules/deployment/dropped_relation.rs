//! Which table or view a DROP takes from deployed code, and what has its name then.

use crate::rule::RuleContext;
use crate::rules::deployment::dropped_together::is_queried;
use crate::rules::deployment::other_statements::{
    Successor, Until, ahead_of_maker, is_new_and_empty, means, successor,
};
use pgvet_model::catalog::{Catalog, Relation, RelationKind};
use pgvet_model::effect::{Evidence, RelationName, Removal, RemovalReason, RemovedObject, Visibility};
use pgvet_syntax::ast::{Ast, ObjectName};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::sync::Arc;

/// What becomes of a table that is dropped.
pub(crate) enum Loss {
    /// Nothing has its name.
    Gone,
    /// What has its name lacks columns. If it is a new table without rows, those of the table are lost as well.
    Lacks { columns: Vec<SmolStr>, emptied: bool },
    /// A new table has its name, and no rows.
    Emptied,
    /// A materialized view that a later transaction creates again.
    Missing,
}

/// The existing table or view that a removal takes from deployed code.
pub(crate) fn lost<'c>(context: &RuleContext<'c>, removal: &'c Removal) -> Option<(&'c RelationName, Loss)> {
    let RemovedObject::Relation(relation) = &removal.object else { return None };
    let is_meant = removal.reason == RemovalReason::Named && is_queried(relation.kind);
    if !is_meant || relation.visibility != Visibility::Existing {
        return None;
    }
    // IF EXISTS, also of an earlier statement, shows no relation.
    let is_shown = |before: &&Arc<Relation>| before.known || before.birth.needed_in.is_some();
    let Some(before) = context.before.get_relation(relation.oid).filter(is_shown) else {
        let is_sure = match context.ast {
            _ if context.evidence == Evidence::Observed => true,
            Ast::Drop(drop) => !drop.if_exists,
            _ => false,
        };
        return is_sure.then_some((relation, Loss::Gone));
    };
    if before.is_partition() {
        return None;
    }
    let is_table = relation.kind.is_table();
    let until = if is_table { Until::Commit } else { Until::EndOfMigration };
    let end = ahead_of_maker(context, &relation.name, until);
    // Where only a server has shown that it goes, the model still has it.
    if end.relation_named(&relation.schema, &relation.name) == Some(relation.oid) {
        return Some((relation, Loss::Gone));
    }
    let lacks = |catalog: &Catalog, new, columns| {
        let emptied = is_table && is_new_and_empty(context, catalog, new);
        Some((relation, Loss::Lacks { columns, emptied }))
    };
    match successor(&end, before, relation) {
        Successor::Nothing if is_table => {
            // Created again after the end of the transaction: the gap is short, but the rows do not come back.
            let later = ahead_of_maker(context, &relation.name, Until::EndOfMigration);
            match successor(&later, before, relation) {
                Successor::Compatible(new) if !is_new_and_empty(context, &later, new) => None,
                Successor::Compatible(_) => Some((relation, Loss::Emptied)),
                Successor::Lacks { new, columns } => lacks(&later, new, columns),
                Successor::Nothing => Some((relation, Loss::Gone)),
            }
        }
        Successor::Nothing => Some((relation, Loss::Gone)),
        Successor::Lacks { new, columns } => lacks(&end, new, columns),
        Successor::Compatible(_) if is_missing_meanwhile(context, relation) => Some((relation, Loss::Missing)),
        Successor::Compatible(new) if is_table && is_new_and_empty(context, &end, new) => {
            Some((relation, Loss::Emptied))
        }
        Successor::Compatible(_) => None,
    }
}

/// Whether a materialized view comes back only after the transaction: its query runs until then.
fn is_missing_meanwhile(context: &RuleContext<'_>, view: &RelationName) -> bool {
    view.kind == RelationKind::MaterializedView
        && ahead_of_maker(context, &view.name, Until::Commit).relation_named(&view.schema, &view.name).is_none()
}

/// The names in a DROP statement, which may be thousands.
pub(crate) struct Written<'a> {
    objects: FxHashMap<&'a str, Vec<&'a ObjectName>>,
}

impl<'a> Written<'a> {
    pub(crate) fn of(context: &RuleContext<'a>) -> Self {
        let mut objects: FxHashMap<&str, Vec<&ObjectName>> = FxHashMap::default();
        if let Ast::Drop(drop) = context.ast {
            for object in &drop.objects {
                objects.entry(object.name.name.text.as_str()).or_default().push(&object.name);
            }
        }
        Self { objects }
    }

    /// The name of a dropped relation where the statement is a DROP, or else the range of its removal.
    pub(crate) fn place(&self, context: &RuleContext<'_>, range: TextRange, relation: &RelationName) -> TextRange {
        let mut named = self.objects.get(relation.name.as_str()).into_iter().flatten();
        named.find(|name| means(context, name, relation)).map_or(range, |name| name.range())
    }
}
