//! The decisions of code that lead to an effect: of the branches of an IF or CASE, one runs.

use std::sync::Arc;

/// The outcome of one decision of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Identifies the IF or CASE within the code of a transaction.
    pub number: u32,
    /// The branches that may have run, a bit for each. The highest bit stands for none of them.
    pub taken: u64,
}

/// Number of the branches of a decision that have a bit of their own.
const DISTINCT: usize = 62;

impl Decision {
    /// The branch at this position runs.
    pub fn branch(number: u32, position: usize) -> Self {
        Self { number, taken: 1 << position.min(DISTINCT) }
    }

    /// Another branch than these runs, or none.
    pub fn other_than(number: u32, branches: &[usize]) -> Self {
        let distinct = branches.iter().filter(|position| **position < DISTINCT);
        Self { number, taken: !distinct.fold(0, |all, position| all | 1 << position) }
    }
}

/// The decisions that lead to an effect. Without any it always happens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branches(Option<Arc<[Decision]>>);

impl Branches {
    pub fn new(decisions: &[Decision]) -> Self {
        Self((!decisions.is_empty()).then(|| decisions.into()))
    }

    pub fn is_always(&self) -> bool {
        self.0.is_none()
    }

    fn decisions(&self) -> &[Decision] {
        self.0.as_deref().unwrap_or_default()
    }

    /// These decisions, and those of code that runs there.
    #[must_use]
    pub fn and(&self, inner: &Self) -> Self {
        match (&self.0, &inner.0) {
            (None, _) => inner.clone(),
            (_, None) => self.clone(),
            (Some(outer), Some(inner)) => Self(Some(outer.iter().chain(&**inner).copied().collect())),
        }
    }

    /// Whether no run of the code reaches both.
    pub fn excludes(&self, other: &Self) -> bool {
        let is_excluded = |own: &Decision| {
            let mut same = other.decisions().iter().filter(|other| other.number == own.number);
            same.any(|other| other.taken & own.taken == 0)
        };
        self.decisions().iter().any(is_excluded)
    }

    /// Whether each run that reaches `later` has reached these, too.
    pub fn precede(&self, later: &Self) -> bool {
        let is_implied = |own: &Decision| {
            let mut same = later.decisions().iter().filter(|later| later.number == own.number);
            same.any(|later| later.taken & !own.taken == 0)
        };
        self.decisions().iter().all(is_implied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branches(decisions: &[Decision]) -> Branches {
        Branches::new(decisions)
    }

    #[test]
    fn branches_exclude_each_other() {
        let [first, second] = [0, 1].map(|position| branches(&[Decision::branch(7, position)]));
        assert!(first.excludes(&second) && !first.excludes(&first));
        assert!(!first.excludes(&branches(&[Decision::branch(8, 1)])) && !first.excludes(&Branches::default()));
    }

    #[test]
    fn what_follows_a_return_excludes_its_branch_alone() {
        let rest = branches(&[Decision::other_than(7, &[1])]);
        assert!(rest.excludes(&branches(&[Decision::branch(7, 1)])));
        assert!(!rest.excludes(&branches(&[Decision::branch(7, 0)])));
        // Far branches share a bit, and are treated as one that does not return.
        let far = branches(&[Decision::other_than(7, &[100])]);
        assert!(!far.excludes(&branches(&[Decision::branch(7, 99)])));
    }

    #[test]
    fn a_guarded_step_does_not_precede_what_always_runs() {
        let always = Branches::default();
        let guarded = branches(&[Decision::branch(7, 0)]);
        assert!(always.precede(&guarded) && !guarded.precede(&always));
        assert!(guarded.precede(&guarded.and(&branches(&[Decision::branch(8, 0)]))));
    }
}
