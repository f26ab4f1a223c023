//! Catalog rows as text for messages.

use pgvet_model::effect::CatalogRows;
use pgvet_model::routine::grouped;
use pgvet_model::version::VersionRange;

/// Rows of `pg_attribute` on a page of 8 kB.
const ATTRIBUTES_PER_PAGE: u64 = 23;
const PAGE: u64 = 8192;

/// `98 rows in the system catalogs, 62 of pg_attribute, 9 of pg_class, 27 of pg_attrdef`.
pub(super) fn shown(rows: CatalogRows, versions: VersionRange) -> String {
    let most = [("pg_attribute", rows.attribute), ("pg_class", rows.class), ("pg_attrdef", rows.default)];
    let named: Vec<String> =
        most.iter().filter(|(_, rows)| *rows > 0).map(|(name, rows)| format!("{} of {name}", grouped(*rows))).collect();
    let newest = if versions.from == versions.to { String::new() } else { format!(" (PostgreSQL {})", versions.to) };
    format!("{} rows in the system catalogs, {}{newest}", grouped(rows.total()), named.join(", "))
}

/// The growth of the catalogs at a number of calls per hour.
pub(super) fn per_hour(rows: CatalogRows, calls: u64) -> String {
    let all = rows.total().saturating_mul(calls);
    let pages = rows.attribute.saturating_mul(calls).div_ceil(ATTRIBUTES_PER_PAGE);
    #[expect(clippy::cast_precision_loss, reason = "two digits after the point are shown")]
    let megabytes = pages.saturating_mul(PAGE) as f64 / f64::from(1024 * 1024);
    format!(
        "; at {} calls per hour that is {} rows, and pg_attribute alone grows by {} pages ({megabytes:.2} MB)",
        grouped(calls),
        grouped(all),
        grouped(pages)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_traffic() {
        let rows = CatalogRows { attribute: 173, ..CatalogRows::default() };
        for (calls, expected) in [
            (1, "8 pages (0.06 MB)"),
            (1_000, "7,522 pages (58.77 MB)"),
            (3_000, "22,566 pages (176.30 MB)"),
            (60_000, "451,305 pages (3525.82 MB)"),
            (100_000, "752,174 pages (5876.36 MB)"),
        ] {
            assert!(per_hour(rows, calls).ends_with(expected), "{}", per_hour(rows, calls));
        }
    }
}
