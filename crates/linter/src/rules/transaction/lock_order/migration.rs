//! The locks of a migration's transaction, in the order in which it takes them.

use super::cycle::Requested;
use super::request::{Placed, Request, RowsLocked, locked_by, locked_in_bulk, ordered};
use pgvet_model::catalog::{Catalog, Oid};
use pgvet_model::deployment::Deployment;
use pgvet_model::effect::{Effects, LockCause, Rows};
use pgvet_model::place::Place;
use pgvet_model::session::TransactionBlock;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;

/// A lock that the migration takes.
#[derive(Debug, Clone)]
pub(in super::super) struct Taken {
    pub(in super::super) placed: Placed,
    /// The statement that takes it.
    pub(in super::super) place: Place,
}

/// What one statement locks and changes.
struct Group {
    place: Place,
    requests: Vec<Request>,
    rows: Vec<RowsLocked>,
}

/// The locks of a transaction block, on relations that others use.
pub(in super::super) fn of_block(block: &TransactionBlock, deployment: Option<Deployment>) -> Vec<Taken> {
    let mut groups: Vec<Group> = Vec::new();
    for lock in block.locks.iter() {
        let Some(request) = Request::held(lock) else { continue };
        match groups.last_mut().filter(|group| group.place == lock.place) {
            Some(group) => group.requests.push(request),
            None => groups.push(Group { place: lock.place, requests: vec![request], rows: Vec::new() }),
        }
    }
    for change in block.changes.iter() {
        let Some(rows) = locked_in_bulk(change) else { continue };
        let at = position(&mut groups, change.place);
        // The transaction may have held the lock on the table before, but not those on the rows.
        let held = block.locks.of(change.relation).find_map(Request::held);
        let group = &mut groups[at];
        if !group.requests.iter().any(|request| request.is_on(change.relation)) {
            group.requests.splice(0..0, held);
        }
        group.rows.push(rows);
    }
    existing(groups, block.catalog_before(), deployment)
}

/// The position of the group of a statement, which is made where there is none.
fn position(groups: &mut Vec<Group>, place: Place) -> usize {
    if let Some(at) = groups.iter().position(|group| group.place == place) {
        return at;
    }
    let is_later = |group: &Group| group.place.file == place.file && group.place.range.start > place.range.start;
    let at = groups.iter().position(is_later).unwrap_or(groups.len());
    groups.insert(at, Group { place, requests: Vec::new(), rows: Vec::new() });
    at
}

/// The locks of a statement that is a transaction of its own.
pub(in super::super) fn of_statement(
    effects: &Effects,
    place: Place,
    before: &Catalog,
    deployment: Option<Deployment>,
) -> Vec<Taken> {
    let exposed = effects.locks.iter().filter(|lock| lock.relation.visibility.is_exposed());
    let changes = effects.data_changes.iter().filter(|change| !change.rows.is_few());
    let rows = changes.filter_map(|change| locked_by(change.relation.oid, change.kind, change.changes_key)).collect();
    let group = Group { place, requests: exposed.filter_map(Request::of).collect(), rows };
    existing(vec![group], before, deployment)
}

/// The tables of which a transaction block changes only a part of the rows.
pub(in super::super) fn partly_changed(block: &TransactionBlock) -> FxHashSet<Oid> {
    partial(block.changes.iter().map(|change| (change.relation, &change.rows)))
}

/// The tables of which a statement does.
pub(in super::super) fn partly_changed_by(effects: &Effects) -> FxHashSet<Oid> {
    partial(effects.data_changes.iter().map(|change| (change.relation.oid, &change.rows)))
}

fn partial<'a>(changes: impl Iterator<Item = (Oid, &'a Rows)>) -> FxHashSet<Oid> {
    let (whole, part): (Vec<_>, Vec<_>) = changes.partition(|(_, rows)| rows.is_whole());
    let whole: FxHashSet<Oid> = whole.into_iter().map(|(relation, _)| relation).collect();
    part.into_iter().map(|(relation, _)| relation).filter(|relation| !whole.contains(relation)).collect()
}

/// The locks on relations that an earlier deployment has made.
fn existing(groups: Vec<Group>, before: &Catalog, deployment: Option<Deployment>) -> Vec<Taken> {
    let is_existing = |oid: Oid| before.get_relation(oid).is_some_and(|relation| !relation.birth.is_of(deployment));
    let taken = groups.into_iter().flat_map(|group| {
        let steps = ordered(&group.requests, &group.rows);
        steps.into_iter().map(move |placed| Taken { placed, place: group.place })
    });
    taken.filter(|taken| is_existing(taken.placed.step.relation) && !is_row_of_reference(&taken.placed)).collect()
}

/// Whether it is the lock on a row to which a new row refers. How many of them a statement locks is not known.
fn is_row_of_reference(placed: &Placed) -> bool {
    placed.cause == LockCause::ForeignKey && matches!(placed.step.lock, Requested::Rows(_))
}

impl Taken {
    /// The relation and the mode of a lock that others can wait for a long time to get.
    pub(in super::super) fn mode(&self) -> Option<LockMode> {
        match self.placed.step.lock {
            Requested::Relation(mode) => Some(mode),
            Requested::Rows(_) => None,
        }
    }

    pub(in super::super) fn range(&self) -> TextRange {
        self.placed.range
    }
}
