//! Catalog rows as text for messages.

use pgvet_model::effect::CatalogRows;
use pgvet_model::routine::grouped;
use pgvet_model::version::VersionRange;

/// Rows of `pg_attribute` on a page of 8 kB, as measured on PostgreSQL 18: 3,161 rows on 55 pages after `initdb`, and 58
/// to 63 per page for rows of temporary tables. Pruning reuses some of the space, so the growth is an upper bound.
const ATTRIBUTES_PER_PAGE: u64 = 57;
/// Size of a page in kB.
const PAGE: u64 = 8;

/// `98 rows in the system catalogs, 62 of them in pg_attribute`, with `kind` before `rows`.
pub(super) fn shown(rows: CatalogRows, kind: &str, versions: VersionRange) -> String {
    format!("{}, {} of them in pg_attribute", total(rows, kind, versions), grouped(rows.attribute))
}

/// `98 rows in the system catalogs (PostgreSQL 18)`.
pub(super) fn total(rows: CatalogRows, kind: &str, versions: VersionRange) -> String {
    let newest = if versions.from == versions.to { String::new() } else { format!(" (in PostgreSQL {})", versions.to) };
    format!("{} {kind}rows in the system catalogs{newest}", grouped(rows.total()))
}

/// The growth of the catalogs at a number of calls per hour; `each` is `per hour`, and says what is called if
/// that is not clear.
pub(super) fn per_hour(rows: CatalogRows, calls: u64, each: &str) -> String {
    let pages = rows.attribute.saturating_mul(calls).div_ceil(ATTRIBUTES_PER_PAGE);
    format!(
        ": at {} {}{each}, pg_attribute grows by up to {} an hour",
        grouped(calls),
        if calls == 1 { "call" } else { "calls" },
        size(pages.saturating_mul(PAGE))
    )
}

fn size(kilobytes: u64) -> String {
    if kilobytes < 1024 { format!("{kilobytes} kB") } else { format!("{} MB", grouped(kilobytes.div_ceil(1024))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_per_hour() {
        let rows = CatalogRows { attribute: 173, ..CatalogRows::default() };
        for (calls, expected) in [(1, "32 kB"), (1_000, "24 MB"), (3_000, "72 MB"), (100_000, "2,372 MB")] {
            let message = per_hour(rows, calls, " per hour");
            assert!(message.ends_with(&format!("by up to {expected} an hour")), "{message}");
        }
    }
}
