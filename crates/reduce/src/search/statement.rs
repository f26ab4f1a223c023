//! One statement: its parts are removed or replaced, the outer ones first.

use super::{End, Search};
use crate::edits::{self, Slot, SlotKind};
use crate::minimize::minimize;
use crate::size::cost;
use crate::tree::{Tree, Value};

impl Search<'_> {
    /// Makes a statement as small as it can.
    pub(super) fn statement(&mut self, id: usize) -> Result<(), End> {
        let Some(mut tree) = self.document.statement(id).and_then(|statement| Tree::parse(&statement.sql)) else {
            // What this parser does not read as one statement is removed whole, or not at all.
            return Ok(());
        };
        loop {
            let accepted = self.progress.accepted;
            let mut slots = edits::slots(&tree);
            let mut at = 0;
            while let Some(slot) = slots.get(at) {
                if self.slot(id, &mut tree, slot)? {
                    // The text that was accepted may have another tree, with other places.
                    slots = edits::slots(&tree);
                } else {
                    at += 1;
                }
            }
            if self.progress.accepted == accepted {
                return Ok(());
            }
        }
    }

    /// Tries what can be done at one place. Returns whether something was accepted that may allow more there.
    fn slot(&mut self, id: usize, tree: &mut Tree, slot: &Slot) -> Result<bool, End> {
        if let SlotKind::Elements(least) = slot.kind {
            self.elements(id, tree, slot, least)?;
            return Ok(false);
        }
        for replacement in edits::replacements(tree, slot, &self.parts) {
            if self.replaced(id, tree, slot, replacement)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn elements(&mut self, id: usize, tree: &mut Tree, slot: &Slot, least: usize) -> Result<(), End> {
        let Some(Value::List(list)) = tree.statement.at(&slot.path).cloned() else { return Ok(()) };
        minimize(list.len(), least, &mut |kept| {
            let kept = kept.iter().map(|at| list[*at].clone()).collect();
            self.replaced(id, tree, slot, Value::List(kept))
        })?;
        Ok(())
    }

    /// Tries another value at a place.
    fn replaced(&mut self, id: usize, tree: &mut Tree, slot: &Slot, value: Value) -> Result<bool, End> {
        let mut changed = tree.clone();
        match changed.statement.at_mut(&slot.path) {
            Some(place) if *place != value => *place = value,
            _ => return Ok(false),
        }
        let Some(present) = self.document.statement(id) else { return Ok(false) };
        let Some(sql) = changed.deparse().filter(|sql| cost(sql) < cost(&present.sql)) else { return Ok(false) };
        // The tree of the text counts: PostgreSQL sees nothing else.
        let Some(changed) = Tree::parse(&sql) else { return Ok(false) };
        let accepted = self.accepts(self.document.with_sql(id, &sql))?;
        if accepted {
            *tree = changed;
        }
        Ok(accepted)
    }
}
