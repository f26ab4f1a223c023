//! Which functions name a relation or another function: an index of the words of their texts, built once.

use super::{AllWords, words_of};
use crate::catalog::{Catalog, Function, Oid};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::{SmolStr, StrExt};
use std::rc::Rc;
use std::sync::Arc;

/// A function, and the words of its text.
type Known = (Arc<Function>, Rc<AllWords>);

/// The functions that were seen so far in any catalog of a run, by the words of their texts.
#[derive(Debug, Default)]
pub(super) struct Naming {
    /// The definitions in the index. They are kept, so that no other has the same address.
    known: FxHashMap<usize, Arc<Function>>,
    by_word: FxHashMap<SmolStr, Vec<Known>>,
}

impl Naming {
    /// Adds the functions of a catalog that are not in the index yet.
    pub(super) fn add(&mut self, catalog: &Catalog, words: impl Fn(&Arc<Function>) -> Option<Rc<AllWords>>) {
        for function in catalog.functions() {
            let address = Arc::as_ptr(function).addr();
            if self.known.contains_key(&address) {
                continue;
            }
            self.known.insert(address, Arc::clone(function));
            let Some(words) = words(function) else { continue };
            for word in words.iter() {
                let naming = self.by_word.entry(SmolStr::new(word)).or_default();
                naming.push((Arc::clone(function), Rc::clone(&words)));
            }
        }
    }

    /// The functions of a catalog that may have one of the names in their texts, the oldest first.
    pub(super) fn naming<'n>(&self, catalog: &Catalog, names: impl Iterator<Item = &'n str>) -> Vec<Arc<Function>> {
        let mut seen: FxHashSet<Oid> = FxHashSet::default();
        let mut found = Vec::new();
        for name in names {
            let first = words_of(name).next().map(StrExt::to_lowercase_smolstr);
            let Some(naming) = first.and_then(|first| self.by_word.get(&first)) else { continue };
            let is_current = |function: &Arc<Function>| {
                catalog.get_function(function.oid).is_some_and(|current| Arc::ptr_eq(current, function))
            };
            let named = naming.iter().filter(|(_, words)| words.may_name(name)).map(|(function, _)| function);
            found.extend(named.filter(|function| is_current(function) && seen.insert(function.oid)).cloned());
        }
        found.sort_unstable_by_key(|function| function.oid);
        found
    }
}
