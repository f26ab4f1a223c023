//! What code would reach beyond its database, whatever calls it: a check, an index, a trigger of any sort, an operator.

use super::Routine;
use crate::catalog::Catalog;
use crate::effect::{ChangedObject, Effects, Reach};
use crate::execute::reach;
use std::sync::Arc;

impl Routine {
    /// Everything that its statements would reach by themselves. What the functions reach that they call is found in
    /// those.
    fn reaches(&self) -> Vec<Reach> {
        let steps = self.steps();
        let statements = steps.iter().flat_map(|step| &step.sql);
        statements.flat_map(|sql| reach::of_statement(sql.ast)).collect()
    }
}

/// What the functions would reach that a statement defines, itself or in code that it runs.
pub(crate) fn of_definitions(effects: &Effects, before: &Catalog, after: &Catalog) -> Vec<Reach> {
    let mut found = Vec::new();
    for change in &effects.changes {
        let ChangedObject::Function { oid, .. } = &change.object else { continue };
        let Some(function) = after.get_function(*oid) else { continue };
        let is_old = before.get_function(*oid).is_some_and(|known| Arc::ptr_eq(&known.body, &function.body));
        if is_old {
            continue;
        }
        for reach in Routine::alone(function).iter().flat_map(Routine::reaches) {
            if !found.contains(&reach) {
                found.push(reach);
            }
        }
    }
    found
}
