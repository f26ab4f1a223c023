//! `\if`, `\elif`, `\else` and `\endif`.
//!
//! Source: PostgreSQL 18, `src/bin/psql/command.c`, `exec_command_if` and those after it.

/// Whether something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::statement) enum Certainty {
    Yes,
    No,
    /// It depends on what the script does not say.
    Maybe,
}

impl Certainty {
    /// Whether both hold.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Maybe,
        }
    }

    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
        }
    }
}

/// The open `\if` commands. `T` is what an inactive branch restores: the statement as it was before.
#[derive(Debug, Clone)]
pub(in crate::statement) struct Branches<T> {
    open: Vec<Branch<T>>,
}

#[derive(Debug, Clone)]
struct Branch<T> {
    /// Whether psql runs this branch, as far as the branches around it go.
    active: Certainty,
    /// Whether it has run one of the branches so far, or the whole `\if` is ignored.
    taken: Certainty,
    around: Certainty,
    is_else: bool,
    before: T,
}

impl<T> Default for Branches<T> {
    fn default() -> Self {
        Self { open: Vec::new() }
    }
}

impl<T: Clone> Branches<T> {
    /// Whether psql runs what it reads now.
    pub(in crate::statement) fn active(&self) -> Certainty {
        self.open.last().map_or(Certainty::Yes, |branch| branch.active)
    }

    pub(in crate::statement) fn begin(&mut self, condition: Certainty, before: T) {
        let around = self.active();
        let active = around.and(condition);
        self.open.push(Branch { active, taken: condition, around, is_else: false, before });
    }

    /// `\elif`, or `\else` with a condition that holds. Returns what an inactive branch restores.
    pub(in crate::statement) fn next(&mut self, condition: Certainty, is_else: bool, present: T) -> Option<T> {
        let branch = self.open.last_mut()?;
        if branch.is_else {
            return None;
        }
        let restored = (branch.active == Certainty::No).then(|| branch.before.clone());
        let applies = branch.taken.not().and(condition);
        branch.taken = match (branch.taken, condition) {
            (Certainty::Yes, _) | (_, Certainty::Yes) => Certainty::Yes,
            (Certainty::No, Certainty::No) => Certainty::No,
            _ => Certainty::Maybe,
        };
        branch.active = branch.around.and(applies);
        branch.is_else = is_else;
        branch.before = restored.clone().unwrap_or(present);
        restored
    }

    pub(in crate::statement) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// `\endif`. Returns what an inactive branch restores.
    pub(in crate::statement) fn end(&mut self) -> Option<T> {
        let branch = self.open.pop()?;
        (branch.active == Certainty::No).then_some(branch.before)
    }
}

/// The condition of `\if`: a boolean value, which may be abbreviated. psql treats anything else as false.
pub(super) fn condition(argument: Option<&str>) -> Certainty {
    match argument.map(crate::statement::reading::boolean) {
        None => Certainty::Maybe,
        Some(Some(true)) => Certainty::Yes,
        Some(_) => Certainty::No,
    }
}
