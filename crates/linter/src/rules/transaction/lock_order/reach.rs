//! Which relations a statement of the application may lock: those that it names, and others by foreign keys, triggers,
//! views and functions.
//!
//! A first look by the words of texts, so that few statements are run on the catalog: it finds too much rather than too
//! little.

use super::cycle::{Requested, Step};
use indexmap::IndexMap;
use pgvet_model::application::KnownWords;
use pgvet_model::catalog::{Catalog, Function, Oid};
use pgvet_model::routine::{AllWords, Routines, words_of};
use pgvet_syntax::ast::{Ast, LockMode};
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, StrExt};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// Relations that the migration locks, a bit for each: the first relation has the lowest.
type Bits = u64;

/// Stands for all relations that have no bit of their own.
const OTHERS: Bits = 1 << (Bits::BITS - 1);

/// What statements of the application may lock of the relations that a migration locks.
pub(super) struct Reach<'a> {
    catalog: &'a Catalog,
    /// What a change of a table locks, without what its own foreign keys refer to.
    changed: FxHashMap<Oid, Bits>,
    /// Relations that a new row of a table refers to.
    referenced: FxHashMap<Oid, Bits>,
    /// Relations that the migration locks in more than one way: a deadlock needs no other.
    upgraded: Bits,
    /// Relations that the migration keeps readers from.
    unreadable: Bits,
    /// Relations to which a deferred foreign key refers, which COMMIT locks.
    late: Bits,
    words: FxHashMap<SmolStr, Named>,
}

/// What a name in a statement stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Named {
    /// What a query that reads it may lock.
    read: Bits,
    /// What any other statement may lock.
    changed: Bits,
    is_function: bool,
}

/// What a statement may lock.
#[derive(Debug, Clone, Copy)]
pub(super) enum Locked {
    /// By a query. All its locks are ACCESS SHARE, which waits for ACCESS EXCLUSIVE alone.
    Read(Bits),
    Changed(Bits),
}

/// Words of statements that are more than queries.
const LOCKING: [&str; 5] = ["update", "share", "insert", "delete", "merge"];

impl Locked {
    pub(super) fn is_empty(self) -> bool {
        self.all() == 0
    }

    fn all(self) -> Bits {
        match self {
            Self::Read(bits) | Self::Changed(bits) => bits,
        }
    }
}

impl<'a> Reach<'a> {
    /// `functions` are those whose code may use one of the relations that the steps lock.
    pub(super) fn new(steps: &[Step], functions: &[Arc<Function>], routines: &Routines<'a>) -> Self {
        let mut reach = Self {
            catalog: routines.catalog(),
            changed: FxHashMap::default(),
            referenced: FxHashMap::default(),
            upgraded: 0,
            unreadable: 0,
            late: 0,
            words: FxHashMap::default(),
        };
        let mut locks: IndexMap<Oid, Vec<Requested>> = IndexMap::new();
        steps.iter().for_each(|step| locks.entry(step.relation).or_default().push(step.lock));
        for (place, (relation, locks)) in locks.into_iter().enumerate() {
            reach.add_relation(relation, 1_u64.checked_shl(place as u32).unwrap_or(OTHERS), &locks);
        }
        reach.follow_parents();
        let mut own = reach.changed.clone();
        reach.read_views(&mut own);
        reach.follow_cascades();
        reach.read_functions(&own, functions, routines);
        reach
    }

    fn add_relation(&mut self, relation: Oid, bit: Bits, locks: &[Requested]) {
        if locks.len() > 1 {
            self.upgraded |= bit;
        }
        if locks.contains(&Requested::Relation(LockMode::AccessExclusive)) {
            self.unreadable |= bit;
        }
        if locks.iter().copied().any(stops_foreign_keys) {
            for table in &self.catalog.relation(relation).referenced_by {
                *self.referenced.entry(*table).or_default() |= bit;
            }
        }
        if self.catalog.foreign_keys_to(relation).iter().any(|(_, key)| key.initially_deferred) {
            self.late |= bit;
        }
        *self.changed.entry(relation).or_default() |= bit;
    }

    /// A statement on a table also locks its partitions and children.
    fn follow_parents(&mut self) {
        let mut open: Vec<Oid> = self.changed.keys().copied().collect();
        while let Some(child) = open.pop() {
            let bits = self.changed[&child];
            let parents = self.catalog.get_relation(child).map_or(&[][..], |relation| &relation.parents);
            for parent in parents {
                let known = self.changed.entry(*parent).or_default();
                if *known | bits != *known {
                    *known |= bits;
                    open.push(*parent);
                }
            }
        }
    }

    /// A change of a referenced table also locks the tables that refer to it and, by ON DELETE CASCADE, those that refer
    /// to them.
    fn follow_cascades(&mut self) {
        let mut open: Vec<Oid> = self.changed.keys().copied().collect();
        while let Some(table) = open.pop() {
            let Some(relation) = self.catalog.get_relation(table) else { continue };
            let bits = self.changed[&table];
            for foreign_key in relation.constraints.iter().filter_map(|constraint| constraint.foreign_key()) {
                let known = self.changed.entry(foreign_key.referenced).or_default();
                if *known | bits != *known {
                    *known |= bits;
                    open.push(foreign_key.referenced);
                }
            }
        }
    }

    /// Adds the views to the relations that a query locks: a view is newer than those that it reads.
    fn read_views(&self, own: &mut FxHashMap<Oid, Bits>) {
        let mut views: Vec<_> = self.catalog.views().collect();
        views.sort_unstable_by_key(|view| view.oid);
        for view in views {
            let read = view.view().map_or(&[][..], |view| &view.references);
            let bits = read.iter().filter_map(|(oid, _)| own.get(oid)).fold(0, |all, bits| all | bits);
            if bits != 0 {
                *own.entry(view.oid).or_default() |= bits;
            }
        }
    }

    /// Adds what functions lock, to the statements that call them and to the tables whose triggers run them.
    fn read_functions(&mut self, own: &FxHashMap<Oid, Bits>, functions: &[Arc<Function>], routines: &Routines<'_>) {
        let texts: Vec<_> = functions.iter().map(|function| routines.all_words(function)).collect();
        loop {
            self.name(own);
            let code = |words: &Option<Rc<AllWords>>| words.as_ref().map_or(Bits::MAX, |words| self.of_code(words));
            let bits: Vec<Bits> = texts.iter().map(code).collect();
            let mut is_new = false;
            for (function, bits) in functions.iter().zip(bits) {
                is_new |= self.add_function(&function.name, bits);
                for used in routines.triggers_of(function.oid) {
                    // Rows of a partition can be written without a lock on the parent.
                    for table in used.table.children.iter().chain([&used.table.oid]) {
                        let known = self.changed.entry(*table).or_default();
                        is_new |= *known | bits != *known;
                        *known |= bits;
                    }
                }
            }
            if !is_new {
                return;
            }
            self.follow_cascades();
        }
    }

    fn add_function(&mut self, name: &str, bits: Bits) -> bool {
        let known = self.words.entry(first_word(name)).or_default();
        let before = *known;
        *known = Named { changed: known.changed | bits, is_function: true, ..before };
        *known != before
    }

    /// Gives the names of relations what they stand for. One that is not a word is found by its first word.
    fn name(&mut self, own: &FxHashMap<Oid, Bits>) {
        let mut known: Vec<Oid> =
            own.keys().chain(self.changed.keys()).chain(self.referenced.keys()).copied().collect();
        known.sort_unstable();
        known.dedup();
        let mut views: FxHashMap<Oid, Bits> = FxHashMap::default();
        for oid in known {
            let Some(relation) = self.catalog.get_relation(oid) else { continue };
            let mut changed = self.of_change(oid);
            if let Some(view) = relation.view() {
                let read =
                    view.references.iter().map(|(oid, _)| views.get(oid).copied().unwrap_or(self.of_change(*oid)));
                changed |= read.fold(0, |all, bits| all | bits);
                views.insert(oid, changed);
            }
            let read = own.get(&oid).copied().unwrap_or_default();
            let named = self.words.entry(first_word(&relation.name)).or_default();
            named.read |= read;
            named.changed |= read | changed;
        }
    }

    fn of_change(&self, table: Oid) -> Bits {
        let found = [&self.changed, &self.referenced].map(|bits| bits.get(&table).copied().unwrap_or_default());
        found[0] | found[1]
    }

    /// Whether a change of the table may lock two of the relations, or one in two ways.
    pub(super) fn may_deadlock_from(&self, table: Oid) -> bool {
        self.may_deadlock([Locked::Changed(self.of_change(table))])
    }

    /// Whether statements may lock a relation of the migration and afterwards one that the migration locks before.
    pub(super) fn may_deadlock(&self, statements: impl IntoIterator<Item = Locked>) -> bool {
        let is_earlier = |wanted: Bits, held: Bits| wanted != 0 && wanted.trailing_zeros() < held.ilog2();
        let mut held = 0;
        let is_found = statements.into_iter().any(|locked| {
            let wanted = locked.all();
            held |= wanted;
            // In a statement of its own, every order is possible.
            let is_before = is_earlier(wanted, held);
            let is_other = held.count_ones() > 1 || matches!(locked, Locked::Changed(_));
            let is_upgraded = wanted != 0 && held & self.upgraded != 0 && is_other;
            is_before || is_upgraded || wanted & OTHERS != 0
        });
        is_found || is_earlier(held & self.late, held)
    }

    /// The names of what leads to a lock.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.words.keys().map(SmolStr::as_str)
    }

    /// What a known statement may lock.
    pub(super) fn of_query(&self, ast: &Ast, words: &KnownWords) -> Locked {
        let is_query = matches!(ast, Ast::Select(_)) && !LOCKING.iter().any(|word| words.all.has(word));
        self.of_names(is_query, words.all.iter().filter_map(|word| self.words.get(word)).copied())
    }

    /// What a statement with this text may lock.
    pub(super) fn of_text(&self, ast: &Ast, text: &str) -> Locked {
        let words: Vec<Cow<'_, str>> = words_of(text).map(in_lower_case).collect();
        let is_query = matches!(ast, Ast::Select(_)) && !words.iter().any(|word| LOCKING.contains(&&**word));
        self.of_names(is_query, words.iter().filter_map(|word| self.words.get(&**word)).copied())
    }

    fn of_names(&self, is_query: bool, names: impl Iterator<Item = Named>) -> Locked {
        let mut all = Named::default();
        for named in names {
            all.read |= named.read;
            all.changed |= named.changed;
            all.is_function |= named.is_function;
        }
        if is_query && !all.is_function {
            Locked::Read(all.read & self.unreadable)
        } else {
            Locked::Changed(all.changed)
        }
    }

    /// What code with these words may lock.
    fn of_code(&self, words: &AllWords) -> Bits {
        words.iter().filter_map(|word| self.words.get(word)).fold(0, |all, named| all | named.changed)
    }

    /// Whether a function may lock two of the relations, or one in two ways.
    pub(super) fn may_deadlock_in(&self, words: Option<&AllWords>) -> bool {
        self.may_deadlock([Locked::Changed(words.map_or(Bits::MAX, |words| self.of_code(words)))])
    }
}

/// Whether a lock on the referenced table of a foreign key makes an INSERT into the other table wait.
fn stops_foreign_keys(lock: Requested) -> bool {
    match lock {
        Requested::Relation(mode) => mode.conflicts_with(LockMode::RowShare),
        Requested::Rows(_) => true,
    }
}

/// Most words are in lower case as they are.
fn in_lower_case(word: &str) -> Cow<'_, str> {
    let is_lower = word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(word) } else { Cow::Owned(word.to_lowercase()) }
}

fn first_word(name: &str) -> SmolStr {
    words_of(name).next().unwrap_or(name).to_lowercase_smolstr()
}
