//! What was found out about a relation, for as long as nothing changes that it follows from.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The state of the objects of a catalog that answers about its relations follow from. Each change makes a new one, so
/// that catalogs with the same generation have the same objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Generation(u64);

impl Generation {
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for Generation {
    fn default() -> Self {
        Self::next()
    }
}

/// An answer, and the generation for which it holds. A copy knows nothing: it is made to be changed.
#[derive(Debug)]
pub(super) struct Memo<T>(Mutex<Option<(Generation, T)>>);

impl<T: Copy> Memo<T> {
    pub(super) fn get(&self, generation: Generation, find_out: impl FnOnce() -> T) -> T {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some((of, answer)) if of == generation => answer,
            _ => known.insert((generation, find_out())).1,
        }
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Clone for Memo<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_for_its_generation() {
        let (memo, first, second) = (Memo::default(), Generation::next(), Generation::next());
        assert_eq!(memo.get(first, || 1), 1);
        assert_eq!(memo.get(first, || 2), 1);
        assert_eq!(memo.get(second, || 3), 3);
        assert_eq!(memo.clone().get(second, || 4), 4);
    }
}
