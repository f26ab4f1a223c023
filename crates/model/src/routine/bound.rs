//! A number that may have no limit.

use super::hotness::grouped;
use std::ops::{Add, Mul};

/// At most so many, or nobody knows how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    AtMost(u64),
    Unbounded,
}

impl Bound {
    pub const ZERO: Self = Self::AtMost(0);
}

impl Default for Bound {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Add for Bound {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        match (self, other) {
            (Self::AtMost(ours), Self::AtMost(theirs)) => Self::AtMost(ours.saturating_add(theirs)),
            _ => Self::Unbounded,
        }
    }
}

impl Mul for Bound {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        match (self, other) {
            (Self::AtMost(0), _) | (_, Self::AtMost(0)) => Self::ZERO,
            (Self::AtMost(ours), Self::AtMost(theirs)) => Self::AtMost(ours.saturating_mul(theirs)),
            _ => Self::Unbounded,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(number) => write!(f, "up to {}", grouped(*number)),
            Self::Unbounded => f.write_str("an unbounded number of"),
        }
    }
}
