//! Limits on how long locks may be held: `access-exclusive=500ms,share=5s`.

use crate::observation::{Blocked, MigrationTrace, TransactionTrace};
use pgvet_linter::effect::LockMode;
use std::time::Duration;

/// The longest that a lock of at least this strength may be held on a relation that others can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub mode: LockMode,
    pub held: Duration,
}

/// A lock that was held too long.
#[derive(Debug, Clone)]
pub struct Exceeded<'a> {
    pub limit: Limit,
    pub blocked: &'a Blocked,
}

impl Limit {
    /// Reads `access-exclusive=500ms`.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let help = "expected MODE=DURATION, such as access-exclusive=500ms or share=5s";
        let (mode, held) = text.split_once('=').ok_or_else(|| format!("`{text}` is no limit: {help}"))?;
        let wanted = mode.trim().replace(['-', '_'], " ").to_uppercase();
        let mode = LockMode::ALL.into_iter().find(|mode| mode.sql() == wanted);
        let mode = mode.ok_or_else(|| format!("`{text}` names no lock mode: {help}"))?;
        Ok(Self { mode, held: parse_duration(held.trim())? })
    }
}

/// Reads `500ms`, `5s`, `2min`.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{text}` is no duration: expected a number and ms, s, min or h, such as 500ms")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is no duration: expected a number and a unit, such as 500ms"))?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| format!("`{text}` is too long"))
}

/// What exceeded a limit: of each relation the strongest mode, and no index whose table is there. A lock is held to the
/// limit of the strongest mode that it reaches.
pub fn exceeded<'a>(trace: &'a MigrationTrace, limits: &[Limit]) -> Vec<Exceeded<'a>> {
    let in_transaction = |transaction: &'a TransactionTrace| {
        let over: Vec<Exceeded<'a>> =
            transaction.blocked.iter().filter_map(|blocked| over_limit(blocked, limits)).collect();
        let is_said = |one: &Exceeded<'a>| {
            over.iter().any(|other| {
                let stronger = other.blocked.relation == one.blocked.relation && other.blocked.mode > one.blocked.mode;
                stronger || one.blocked.relation.table == Some(other.blocked.relation.oid)
            })
        };
        over.iter().filter(|one| !is_said(one)).cloned().collect::<Vec<_>>()
    };
    trace.transactions.iter().flat_map(in_transaction).collect()
}

fn over_limit<'a>(blocked: &'a Blocked, limits: &[Limit]) -> Option<Exceeded<'a>> {
    let reached = limits.iter().filter(|limit| blocked.mode >= limit.mode);
    let limit = *reached.max_by_key(|limit| limit.mode)?;
    (blocked.held.best > limit.held).then_some(Exceeded { limit, blocked })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Held, Relation};

    #[test]
    fn limits_are_read_or_refused_with_help() {
        let limit = Limit { mode: LockMode::AccessExclusive, held: Duration::from_millis(500) };
        assert_eq!(Limit::parse("access-exclusive=500ms"), Ok(limit));
        assert_eq!(Limit::parse("share=1.5s").map(|limit| limit.held), Ok(Duration::from_millis(1500)));
        for wrong in ["share", "shared=1s", "share=1", "share=x", "share=1d"] {
            assert!(Limit::parse(wrong).unwrap_err().contains("such as"), "{wrong}");
        }
    }

    #[test]
    fn the_limit_of_the_strongest_mode_counts() {
        let blocked = |mode, milliseconds| Blocked {
            relation: Relation::default(),
            mode,
            held: Held { best: Duration::from_millis(milliseconds), ..Held::default() },
        };
        let blocked = vec![blocked(LockMode::Share, 900), blocked(LockMode::AccessExclusive, 900)];
        let transactions = vec![TransactionTrace { blocked, ..TransactionTrace::default() }];
        let trace = MigrationTrace { transactions, ..MigrationTrace::default() };
        let limits = ["share=1s", "access-exclusive=500ms"].map(|text| Limit::parse(text).unwrap());
        let over = exceeded(&trace, &limits);
        assert_eq!(over.len(), 1);
        assert_eq!(over[0].blocked.mode, LockMode::AccessExclusive);
    }
}
