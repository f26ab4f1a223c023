//! Reads `pg_control`, which describes the server of a data directory.

use std::fs;
use std::path::Path;

/// Settings with which a server was started last, and PostgreSQL's defaults, by their position in the file: `int` of C, in the
/// order of bytes of the machine.
///
/// Source: `ControlFileData` in `src/include/catalog/pg_control.h`, the same in PostgreSQL 12 to 18 on systems of 64 bits.
const SETTINGS: [(&str, usize, i32); 4] = [
    ("max_connections", 180, 100),
    ("max_worker_processes", 184, 8),
    ("max_prepared_transactions", 192, 0),
    ("max_locks_per_transaction", 196, 64),
];

/// The place of `floatFormat`, and what it says where the places above are right.
const FLOAT_FORMAT: (usize, f64) = (208, 1_234_567.0);

/// Settings that a copy of the data needs, because they are higher than PostgreSQL's defaults: prepared transactions and
/// the locks that they hold must have room again, or the copy does not start. Empty where the file is not understood.
///
/// Source: `RecoverPreparedTransactions` in PostgreSQL 18, `src/backend/access/transam/twophase.c`.
pub(super) fn higher_settings(data: &Path) -> Vec<(String, String)> {
    let file = fs::read(data.join("global/pg_control")).unwrap_or_default();
    let (at, expected) = FLOAT_FORMAT;
    let known = bytes(&file, at).map(f64::from_ne_bytes) == Some(expected);
    let value = |at| bytes(&file, at).map(i32::from_ne_bytes).filter(|_| known);
    let higher = |(name, at, default): &(&str, usize, i32)| {
        value(*at).filter(|value| value > default).map(|value| ((*name).to_owned(), value.to_string()))
    };
    SETTINGS.iter().filter_map(higher).collect()
}

fn bytes<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::testing::{MAJORS, binaries};
    use crate::server::{Options, Server};

    #[test]
    fn settings_above_the_defaults_are_read_for_every_major() {
        let given = [
            ("max_connections", "123"),
            ("max_worker_processes", "6"),
            ("max_prepared_transactions", "7"),
            ("max_locks_per_transaction", "65"),
        ];
        for major in MAJORS {
            let Some(binaries) = binaries(major) else { continue };
            let settings = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let server = Server::start_with(&binaries, &Options { settings, ..Options::default() }).unwrap();
            let found = higher_settings(&server.data());
            let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, [given[0], given[2], given[3]], "{major}");
        }
        assert_eq!(higher_settings(Path::new("/nonexistent")), []);
    }
}
