//! How long locks may be held: `access-exclusive=500ms`.

use super::duration::parse_duration;
use super::file::LockModeSetting;
use pgvet_syntax::ast::LockMode;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest that a lock of at least this strength may be held on a relation that others can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub mode: LockMode,
    pub held: Duration,
}

impl Limit {
    /// Reads `access-exclusive=500ms`.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let help = "expected MODE=DURATION, such as access-exclusive=500ms or share=5s";
        let (mode, held) = text.split_once('=').ok_or_else(|| format!("`{text}` is not a limit: {help}"))?;
        let mode = LockModeSetting::named(mode.trim()).ok_or_else(|| format!("`{text}` names no lock mode: {help}"))?;
        Ok(Self { mode, held: parse_duration(held.trim())? })
    }
}

/// The limits of a database: of all relations, and of single tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldLimits {
    general: BTreeMap<LockMode, Duration>,
    /// By `schema.name`, or `name` for any schema.
    tables: BTreeMap<String, BTreeMap<LockMode, Duration>>,
}

impl HeldLimits {
    /// Sets a limit for all relations.
    pub fn set(&mut self, limit: Limit) {
        self.general.insert(limit.mode, limit.held);
    }

    /// Sets a limit for one table.
    pub fn set_for(&mut self, table: &str, limit: Limit) {
        self.tables.entry(table.to_owned()).or_default().insert(limit.mode, limit.held);
    }

    /// The limit for a lock on a table or its parts: that of the strongest mode that it reaches; of the table itself, if
    /// there is one.
    pub fn of(&self, schema: &str, table: &str, mode: LockMode) -> Option<Limit> {
        let reached = |limits: &BTreeMap<LockMode, Duration>| {
            limits.range(..=mode).next_back().map(|(mode, held)| Limit { mode: *mode, held: *held })
        };
        let named = [format!("{schema}.{table}"), table.to_owned()];
        let own = named.iter().filter_map(|name| self.tables.get(name)).find_map(reached);
        own.or_else(|| reached(&self.general))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_or_refused_with_help() {
        let limit = Limit { mode: LockMode::AccessExclusive, held: Duration::from_millis(500) };
        assert_eq!(Limit::parse("access-exclusive=500ms"), Ok(limit));
        assert_eq!(Limit::parse("share=1.5s").map(|limit| limit.held), Ok(Duration::from_millis(1500)));
        for mode in LockMode::ALL {
            for name in [mode.sql().to_owned(), mode.sql().to_lowercase().replace(' ', "-")] {
                assert_eq!(Limit::parse(&format!("{name}=1s")).map(|limit| limit.mode), Ok(mode), "{name}");
            }
        }
        for wrong in ["share", "shared=1s", "share=1", "share=x", "share=1d"] {
            assert!(Limit::parse(wrong).unwrap_err().contains("such as"), "{wrong}");
        }
    }

    #[test]
    fn the_limit_of_the_table_and_of_the_strongest_mode_counts() {
        let mut limits = HeldLimits::default();
        let limit = |text| Limit::parse(text).unwrap();
        limits.set(limit("share=1s"));
        limits.set(limit("access-exclusive=500ms"));
        limits.set_for("orders", limit("share=5s"));
        limits.set_for("audit.orders", limit("access-exclusive=1min"));
        for (schema, table, mode, expected) in [
            ("public", "users", LockMode::RowExclusive, None),
            ("public", "users", LockMode::Exclusive, Some("share=1s")),
            ("public", "users", LockMode::AccessExclusive, Some("access-exclusive=500ms")),
            ("public", "orders", LockMode::AccessExclusive, Some("share=5s")),
            ("audit", "orders", LockMode::AccessExclusive, Some("access-exclusive=1min")),
            ("audit", "orders", LockMode::Share, Some("share=5s")),
        ] {
            assert_eq!(limits.of(schema, table, mode), expected.map(limit), "{schema}.{table} {mode:?}");
        }
    }
}
