//! Rows that a statement adds to PostgreSQL's own catalogs. What is created and dropped again and again leaves as many
//! dead rows there.

use std::ops::{Add, AddAssign, Mul};

/// Rows inserted into each catalog by CREATE TABLE, CREATE TABLE AS and CREATE INDEX.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatalogRows {
    pub class: u64,
    pub attribute: u64,
    pub default: u64,
    pub type_: u64,
    pub index: u64,
    pub constraint: u64,
    pub sequence: u64,
    pub trigger: u64,
    pub depend: u64,
    pub inherits: u64,
}

impl CatalogRows {
    /// The catalogs that get rows, by name.
    pub fn by_catalog(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.all().into_iter().filter(|(_, rows)| *rows > 0)
    }

    /// Every catalog, by name.
    pub fn all(&self) -> [(&'static str, u64); 10] {
        [
            ("pg_attribute", self.attribute),
            ("pg_depend", self.depend),
            ("pg_attrdef", self.default),
            ("pg_class", self.class),
            ("pg_constraint", self.constraint),
            ("pg_index", self.index),
            ("pg_inherits", self.inherits),
            ("pg_sequence", self.sequence),
            ("pg_trigger", self.trigger),
            ("pg_type", self.type_),
        ]
    }

    pub fn total(&self) -> u64 {
        self.all().iter().map(|(_, rows)| rows).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }
}

impl Add for CatalogRows {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            class: self.class + other.class,
            attribute: self.attribute + other.attribute,
            default: self.default + other.default,
            type_: self.type_ + other.type_,
            index: self.index + other.index,
            constraint: self.constraint + other.constraint,
            sequence: self.sequence + other.sequence,
            trigger: self.trigger + other.trigger,
            depend: self.depend + other.depend,
            inherits: self.inherits + other.inherits,
        }
    }
}

impl AddAssign for CatalogRows {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for CatalogRows {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        let by = |rows: u64| rows.saturating_mul(times);
        Self {
            class: by(self.class),
            attribute: by(self.attribute),
            default: by(self.default),
            type_: by(self.type_),
            index: by(self.index),
            constraint: by(self.constraint),
            sequence: by(self.sequence),
            trigger: by(self.trigger),
            depend: by(self.depend),
            inherits: by(self.inherits),
        }
    }
}
