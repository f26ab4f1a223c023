//! Statistics of production: sizes, traffic and calls, as `pgvet snapshot` writes them. Numbers only, no data.

use crate::production::TableSettings;
use crate::throughput::Throughput;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the file's format.
pub const SCHEMA_VERSION: u32 = 1;

/// The statistics of one database at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    pub schema_version: u32,
    /// When it was read, as the server's clock says.
    pub taken_at: String,
    /// As the server says it: `16.4`.
    pub pg_version: String,
    /// Since when the server counts writes and calls, in seconds; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_seconds: Option<u64>,
    /// By `schema.name`.
    pub tables: BTreeMap<String, TableStatistics>,
    /// By `schema.name`; only those that were called.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, FunctionStatistics>,
    #[serde(default)]
    pub transactions: TransactionStatistics,
    /// The server's settings for autovacuum.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub autovacuum: BTreeMap<String, String>,
    /// How fast the server works, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// The statistics that could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// A table, partitioned tables with all that is below them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableStatistics {
    /// Estimated; absent before the first VACUUM or ANALYZE, where the server does not count rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Without indexes, as of the last VACUUM or ANALYZE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Rows that are inserted, updated and deleted in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_per_second: Option<u64>,
    /// Bytes of each index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub indexes: BTreeMap<String, u64>,
    /// Scans of each index in the time of [`Statistics::counted_seconds`]; those that were never scanned are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub index_scans: BTreeMap<String, u64>,
    /// Whether autovacuum is disabled for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub autovacuum_off: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionStatistics {
    pub calls_per_hour: u64,
}

/// Transactions that were open when the snapshot was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransactionStatistics {
    /// For how long the oldest had been open.
    pub oldest_seconds: Option<u64>,
    /// The same for prepared ones.
    pub oldest_prepared_seconds: Option<u64>,
}

impl Statistics {
    /// Reads the file's text; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let statistics: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if statistics.schema_version != SCHEMA_VERSION {
            let found = statistics.schema_version;
            return Err(format!("it has the format {found}, and this version of pgvet reads {SCHEMA_VERSION}"));
        }
        Ok(statistics)
    }
}

/// `1.2 billion rows, 340 GB, 900 writes/s`; `None` where nothing is known.
pub fn describe(table: &TableSettings) -> Option<String> {
    let bytes = table.bytes?;
    let rows = table.rows?;
    if (rows, bytes) == (0, 0) {
        return Some("empty".to_owned());
    }
    let mut parts = vec![format!("{} rows", rounded(rows, &[(1_000_000_000, " billion"), (1_000_000, " million")]))];
    parts.push(shown_bytes(bytes));
    if let Some(writes) = table.writes_per_second.filter(|writes| *writes > 0) {
        parts.push(format!("{writes} writes/s"));
    }
    Some(format!("about {}", parts.join(", ")))
}

fn shown_bytes(bytes: u64) -> String {
    rounded(
        bytes,
        &[(1_000_000_000_000, " TB"), (1_000_000_000, " GB"), (1_000_000, " MB"), (1000, " kB"), (1, " bytes")],
    )
}

/// With two digits at least: `1.2 billion`, `340 GB`.
fn rounded(number: u64, units: &[(u64, &str)]) -> String {
    let Some((size, unit)) = units.iter().find(|(size, _)| number >= *size) else { return number.to_string() };
    let tenths = number / (size / 10).max(1);
    match (tenths, tenths % 10) {
        _ if *size == 1 => format!("{number}{unit}"),
        (..100, 1..) => format!("{}.{}{unit}", tenths / 10, tenths % 10),
        _ => format!("{}{unit}", (number + size / 2) / size),
    }
}

/// `about 40 s`, `about 12 min`, `about 3 h`.
pub fn shown_time(seconds: u64) -> String {
    match seconds {
        0 => "less than a second".to_owned(),
        1..=90 => format!("about {seconds} s"),
        91..=5400 => format!("about {} min", (seconds + 30) / 60),
        _ => format!("about {} h", (seconds + 1800) / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_as_people_say_them() {
        let table = |rows, bytes, writes_per_second| TableSettings {
            rows: Some(rows),
            bytes: Some(bytes),
            writes_per_second,
            ..TableSettings::default()
        };
        for (settings, expected) in [
            (table(1_234_000_000, 340_000_000_000, Some(900)), "about 1.2 billion rows, 340 GB, 900 writes/s"),
            (table(45_600_000, 1_049_000_000, Some(0)), "about 46 million rows, 1 GB"),
            (table(1200, 999, None), "about 1200 rows, 999 bytes"),
            (table(0, 0, Some(0)), "empty"),
        ] {
            assert_eq!(describe(&settings).as_deref(), Some(expected));
        }
        assert_eq!(describe(&TableSettings { rows: Some(5), ..TableSettings::default() }), None);
        assert_eq!(
            [0, 40, 600, 20_000].map(shown_time),
            ["less than a second", "about 40 s", "about 10 min", "about 6 h"]
        );
    }

    #[test]
    fn a_file_of_another_format_is_refused() {
        let statistics = Statistics { schema_version: 2, ..Statistics::default() };
        let text = serde_json::to_string(&statistics).expect("it is plain data");
        assert!(Statistics::parse(&text).is_err_and(|error| error.contains("format 2")));
        assert!(Statistics::parse("{}").is_err());
    }
}
