//! How long work takes that grows with a table, as `pgvet trace --calibrate` measured it.

use crate::production::TableSettings;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How fast a server works, as far as that was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Throughput {
    /// Bytes of a table that SET NOT NULL or a check reads in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_bytes_per_second: Option<u64>,
    /// Rows that get into an index of a million rows in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_build_rows_per_second: Option<u64>,
    /// Rows whose reference to a table of a million rows a foreign key checks in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_key_rows_per_second: Option<u64>,
    /// Bytes of a table and its indexes that are rewritten in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite_bytes_per_second: Option<u64>,
}

/// Work whose time grows with the size of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Scan,
    IndexBuild,
    ForeignKey,
    Rewrite,
}

/// How large a table is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub rows: u64,
    /// Without indexes.
    pub bytes: u64,
    pub index_bytes: u64,
    /// Rows of the table that a foreign key refers to.
    pub referenced_rows: u64,
}

impl Size {
    /// The known size of a table; `None` if rows or bytes are unknown. A table that it refers to is assumed to be as
    /// large as itself unless more is known.
    pub fn of(table: &TableSettings, referenced_rows: Option<u64>) -> Option<Self> {
        let (rows, bytes) = (table.rows?, table.bytes?);
        let index_bytes = table.index_bytes.unwrap_or(0);
        Some(Self { rows, bytes, index_bytes, referenced_rows: referenced_rows.unwrap_or(rows) })
    }
}

/// The size of an index that the speed of index builds is given for, and of a table that is referred to.
const MILLION: f64 = 1_000_000.0;

/// A foreign key is checked by a hash join. Up to so many referenced rows, the hash table is in the cache of a
/// processor, and a row takes the same time however many there are.
const CACHED_ROWS: f64 = 25_000.0;
/// With more than about so many, the hash table is split into batches of `maintenance_work_mem` (64 MB), which
/// `RI_Initial_Check` in `ri_triggers.c` lets it have. In between, time grows about as the root of the rows: on
/// PostgreSQL 18, 2 million rows took 0.20 s for 10,000 referenced rows, 0.35 s for 100,000, 1.3 s for 1 million and
/// 2.1 s for 3 million.
const HASHED_ROWS: f64 = 2_500_000.0;

impl Work {
    /// How much of it there is with a table of that size, in what its throughput counts.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn amount(self, size: Size) -> f64 {
        let rows = size.rows as f64;
        match self {
            Self::Scan => size.bytes as f64,
            // Sorting n rows takes time in proportion to n log n.
            Self::IndexBuild => rows * rows.max(2.0).log2() / MILLION.log2(),
            Self::ForeignKey => {
                let referenced = (size.referenced_rows as f64).clamp(CACHED_ROWS, HASHED_ROWS);
                rows * (referenced / MILLION).sqrt()
            }
            Self::Rewrite => size.bytes as f64 + size.index_bytes as f64,
        }
    }

    /// Bytes of a table that go through it in a second where nobody has measured: a server with local disks, one
    /// process, tables that are not in memory.
    fn assumed(self) -> u64 {
        match self {
            Self::Scan | Self::ForeignKey => 400_000_000,
            Self::IndexBuild => 60_000_000,
            Self::Rewrite => 80_000_000,
        }
    }
}

impl Throughput {
    /// The measured rate of that kind of work.
    fn measured(&mut self, work: Work) -> &mut Option<u64> {
        match work {
            Work::Scan => &mut self.scan_bytes_per_second,
            Work::IndexBuild => &mut self.index_build_rows_per_second,
            Work::ForeignKey => &mut self.foreign_key_rows_per_second,
            Work::Rewrite => &mut self.rewrite_bytes_per_second,
        }
    }

    /// About how long the work takes with a table of that size.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn time(mut self, work: Work, size: Size) -> Duration {
        let (amount, speed) = match *self.measured(work) {
            Some(speed) => (work.amount(size), speed),
            None => (size.bytes as f64, work.assumed()),
        };
        Duration::try_from_secs_f64(amount / speed.max(1) as f64).unwrap_or(Duration::MAX)
    }

    /// Replaces known rates by measured ones of the same kind.
    pub fn replace(&mut self, measures: &[(Work, Size, Duration)]) {
        for work in [Work::Scan, Work::IndexBuild, Work::ForeignKey, Work::Rewrite] {
            let (mut amount, mut seconds) = (0.0, 0.0);
            for (_, size, time) in measures.iter().filter(|(other, ..)| *other == work) {
                amount += work.amount(*size);
                seconds += time.as_secs_f64();
            }
            if amount > 0.0 && seconds > 0.0 {
                *self.measured(work) = Some(rounded(amount / seconds));
            }
        }
    }
}

impl fmt::Display for Throughput {
    /// `scan_bytes_per_second 400000000, rewrite_bytes_per_second 80000000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speeds = [
            ("scan_bytes_per_second", self.scan_bytes_per_second),
            ("index_build_rows_per_second", self.index_build_rows_per_second),
            ("foreign_key_rows_per_second", self.foreign_key_rows_per_second),
            ("rewrite_bytes_per_second", self.rewrite_bytes_per_second),
        ];
        let known: Vec<String> =
            speeds.iter().filter_map(|(name, speed)| speed.map(|speed| format!("{name} {speed}"))).collect();
        f.write_str(&known.join(", "))
    }
}

/// To two digits: more would say more than a measure can.
#[expect(clippy::cast_sign_loss, reason = "speeds are positive")]
fn rounded(speed: f64) -> u64 {
    let digit = 10_f64.powf((speed.log10() - 1.0).floor()).max(1.0);
    ((speed / digit).round() * digit).max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: Size =
        Size { rows: 1_000_000, bytes: 100_000_000, index_bytes: 20_000_000, referenced_rows: 1_000_000 };

    #[test]
    fn what_was_measured_estimates_its_own_time() {
        let second = Duration::from_secs(1);
        let works = [Work::Scan, Work::IndexBuild, Work::ForeignKey, Work::Rewrite];
        let mut throughput = Throughput::default();
        throughput.replace(&works.map(|work| (work, ORDERS, second)));
        let expected = Throughput {
            scan_bytes_per_second: Some(100_000_000),
            index_build_rows_per_second: Some(1_000_000),
            foreign_key_rows_per_second: Some(1_000_000),
            rewrite_bytes_per_second: Some(120_000_000),
        };
        assert_eq!(throughput, expected);
        let larger = Size { rows: 4_000_000, bytes: 500_000_000, index_bytes: 100_000_000, referenced_rows: 250_000 };
        let times = works.map(|work| throughput.time(work, larger).as_millis());
        assert_eq!(times, [5000, 4401, 2000, 5000], "n log n for an index, the root of what a foreign key refers to");
        let few =
            [10, 10_000].map(|referenced_rows| throughput.time(Work::ForeignKey, Size { referenced_rows, ..larger }));
        assert_eq!(few[0], few[1], "both are in the cache");
    }

    #[test]
    fn a_later_measure_replaces_an_earlier_one_of_the_same_work() {
        let millis = Duration::from_millis;
        let mut throughput = Throughput { scan_bytes_per_second: Some(7), ..Throughput::default() };
        throughput.replace(&[(Work::ForeignKey, ORDERS, millis(500))]);
        assert_eq!(
            (throughput.scan_bytes_per_second, throughput.foreign_key_rows_per_second),
            (Some(7), Some(2_000_000))
        );
        // Several of a kind: all rows in all of the time.
        let small = Size { rows: 200_000, ..ORDERS };
        throughput.replace(&[(Work::ForeignKey, ORDERS, millis(900)), (Work::ForeignKey, small, millis(100))]);
        assert_eq!(throughput.foreign_key_rows_per_second, Some(1_200_000));
    }

    #[test]
    fn without_a_measure_bytes_of_the_table_count() {
        let size = Size { bytes: 4_800_000_000, ..ORDERS };
        let seconds = |work| Throughput::default().time(work, size).as_secs();
        assert_eq!([Work::Scan, Work::IndexBuild, Work::ForeignKey, Work::Rewrite].map(seconds), [12, 80, 12, 60]);
    }

    #[test]
    fn a_speed_has_two_digits() {
        assert_eq!([0.3, 7.4, 99.4, 1234.0, 98_765_432.0].map(rounded), [1, 7, 99, 1200, 99_000_000]);
    }
}
