//! The eight table-level lock modes.

use serde::Serialize;

/// A table-level lock mode, weakest first.
///
/// Source: PostgreSQL 18, `src/backend/storage/lmgr/lock.c`, `LockConflicts`; documentation, 13.3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum LockMode {
    AccessShare = 1,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

impl LockMode {
    pub const ALL: [Self; 8] = [
        Self::AccessShare,
        Self::RowShare,
        Self::RowExclusive,
        Self::ShareUpdateExclusive,
        Self::Share,
        Self::ShareRowExclusive,
        Self::Exclusive,
        Self::AccessExclusive,
    ];

    /// Whether a session that wants `self` must wait for one that holds `other`.
    pub fn conflicts_with(self, other: Self) -> bool {
        let (weak, strong) = if self <= other { (self, other) } else { (other, self) };
        match weak {
            Self::AccessShare => strong == Self::AccessExclusive,
            Self::RowShare => strong >= Self::Exclusive,
            Self::RowExclusive => strong >= Self::Share,
            Self::ShareUpdateExclusive => strong >= Self::ShareUpdateExclusive,
            Self::Share => strong != Self::Share,
            Self::ShareRowExclusive | Self::Exclusive | Self::AccessExclusive => true,
        }
    }

    /// Whether it blocks INSERT, UPDATE and DELETE.
    pub fn blocks_writes(self) -> bool {
        self.conflicts_with(Self::RowExclusive)
    }

    /// Whether it blocks SELECT.
    pub fn blocks_reads(self) -> bool {
        self.conflicts_with(Self::AccessShare)
    }

    /// The work with rows that it blocks; `None` if it blocks none.
    pub fn stops(self) -> Option<&'static str> {
        match (self.blocks_reads(), self.blocks_writes()) {
            (true, _) => Some("reads and writes"),
            (false, true) => Some("writes"),
            (false, false) => None,
        }
    }

    /// The name in SQL: `ACCESS EXCLUSIVE`.
    pub fn sql(self) -> &'static str {
        match self {
            Self::AccessShare => "ACCESS SHARE",
            Self::RowShare => "ROW SHARE",
            Self::RowExclusive => "ROW EXCLUSIVE",
            Self::ShareUpdateExclusive => "SHARE UPDATE EXCLUSIVE",
            Self::Share => "SHARE",
            Self::ShareRowExclusive => "SHARE ROW EXCLUSIVE",
            Self::Exclusive => "EXCLUSIVE",
            Self::AccessExclusive => "ACCESS EXCLUSIVE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode::{self, *};

    #[test]
    fn conflicts_are_those_of_the_documentation() {
        let conflicting: [(LockMode, &[LockMode]); 8] = [
            (AccessShare, &[AccessExclusive]),
            (RowShare, &[Exclusive, AccessExclusive]),
            (RowExclusive, &[Share, ShareRowExclusive, Exclusive, AccessExclusive]),
            (ShareUpdateExclusive, &[ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive]),
            (Share, &[RowExclusive, ShareUpdateExclusive, ShareRowExclusive, Exclusive, AccessExclusive]),
            (
                ShareRowExclusive,
                &[RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive],
            ),
            (
                Exclusive,
                &[RowShare, RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive],
            ),
            (AccessExclusive, &LockMode::ALL),
        ];
        for (mode, expected) in conflicting {
            let actual: Vec<_> = LockMode::ALL.into_iter().filter(|other| mode.conflicts_with(*other)).collect();
            assert_eq!(actual, expected, "{mode:?}");
        }
    }
}
