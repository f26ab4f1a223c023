//! One statement: its parts are removed or replaced, the outer ones first.

use super::{End, Search};
use crate::edits::{self, Slot, SlotKind};
use crate::minimize::minimize;
use crate::size::{Cost, cost};
use crate::tree::{Tree, Value};

/// A statement that is made smaller.
struct Work {
    id: usize,
    tree: Tree,
    cost: Cost,
    /// Whether the statement is written as it is read.
    is_exact: bool,
}

impl Search<'_> {
    /// Makes a statement as small as it can.
    pub(super) fn statement(&mut self, id: usize) -> Result<(), End> {
        let work = self.document.statement(id).and_then(|statement| {
            Some(Work { id, tree: Tree::parse_exactly(&statement.sql)?, cost: cost(&statement.sql), is_exact: true })
        });
        // What this parser does not read as one statement, or what is written as another one, is removed whole, or not at
        // all.
        let Some(mut work) = work else { return Ok(()) };
        loop {
            let accepted = self.progress.accepted;
            let mut slots = edits::slots(&work.tree);
            let mut at = 0;
            while let Some(slot) = slots.get(at).filter(|_| work.is_exact) {
                if self.slot(&mut work, slot)? {
                    // The text that was accepted may have another tree, with other places.
                    slots = edits::slots(&work.tree);
                } else {
                    at += 1;
                }
            }
            if self.progress.accepted == accepted || !work.is_exact {
                return Ok(());
            }
        }
    }

    /// Tries what can be done at one place. Returns whether something was accepted that may allow more there.
    fn slot(&mut self, work: &mut Work, slot: &Slot) -> Result<bool, End> {
        if let SlotKind::Elements(least) = slot.kind {
            self.elements(work, slot, least)?;
            return Ok(false);
        }
        for replacement in edits::replacements(&work.tree, slot, &self.parts) {
            if self.replaced(work, slot, replacement)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn elements(&mut self, work: &mut Work, slot: &Slot, least: usize) -> Result<(), End> {
        let Some(Value::List(list)) = work.tree.statement.at(&slot.path).cloned() else { return Ok(()) };
        minimize(list.len(), least, &mut |kept| {
            let kept = kept.iter().map(|at| list[*at].clone()).collect();
            self.replaced(work, slot, Value::List(kept))
        })?;
        Ok(())
    }

    /// Tries another value at a place.
    fn replaced(&mut self, work: &mut Work, slot: &Slot, value: Value) -> Result<bool, End> {
        if !work.is_exact {
            return Ok(false);
        }
        let mut changed = work.tree.clone();
        match changed.statement.at_mut(&slot.path) {
            Some(place) if *place != value => *place = value,
            _ => return Ok(false),
        }
        let Some(sql) = changed.deparse() else { return Ok(false) };
        let cost = cost(&sql);
        if cost >= work.cost {
            return Ok(false);
        }
        let document = self.document.with_sql(work.id, &sql);
        if self.is_refused(&document) {
            return Ok(false);
        }
        // The tree of the text counts: PostgreSQL sees nothing else.
        let Some(tree) = Tree::parse(&sql) else { return Ok(false) };
        let accepted = self.accepts(document)?;
        if accepted {
            work.is_exact = Tree::parse_exactly(&sql).is_some();
            *work = Work { tree, cost, ..*work };
        }
        Ok(accepted)
    }
}
