//! Migrations that are released together, so that nothing uses what the first makes before the second runs.

use crate::catalog::Relation;
use crate::check::Migration;

/// Has a migration made the table that is released together with this one, and left it empty?
pub(super) fn is_left_empty(table: &Relation, file: u32, migrations: &[Migration<'_>]) -> bool {
    let Some(made_in) = table.birth.migration.and_then(|number| number.checked_sub(1)) else { return false };
    let path = |file: u32| migrations.get(file as usize).map(|migration| migration.file.path.as_str());
    let together = || path(made_in).zip(path(file)).is_some_and(|(one, other)| are_released_together(one, other));
    made_in != file && !table.birth.filled && together()
}

/// Are two migrations of the same day, or of the same version? Their paths say it: `20241002204701_payments` and
/// `20241002212355_payments_again`, or `delta/33/devices.sql` and `delta/33/more_devices.sql`.
fn are_released_together(one: &str, other: &str) -> bool {
    let same_day = day(one).is_some_and(|of_one| day(other) == Some(of_one));
    same_day || version_folder(one).is_some_and(|of_one| version_folder(other) == Some(of_one))
}

/// The day at the beginning of the file's name, or of its folder's: year, month and day, `20241002` or `2024-10-02`.
fn day(path: &str) -> Option<String> {
    path.rsplit(['/', '\\']).take(2).find_map(|name| {
        let digits: String = name
            .chars()
            .take_while(|character| character.is_ascii_digit() || matches!(character, '-' | '_'))
            .filter(char::is_ascii_digit)
            .take(8)
            .collect();
        let number = |from: usize, to: usize| digits.get(from..to).and_then(|part| part.parse::<u32>().ok());
        let is_date = (1970..2100).contains(&number(0, 4)?)
            && (1..=12).contains(&number(4, 6)?)
            && (1..=31).contains(&number(6, 8)?);
        is_date.then_some(digits)
    })
}

/// The path up to a folder that has the number of a version as its name: `33`, `v1.2`. A year is none.
fn version_folder(path: &str) -> Option<&str> {
    let folder = &path[..path.rfind(['/', '\\'])?];
    let name = folder.rsplit(['/', '\\']).next()?;
    let number = name.strip_prefix(['v', 'V']).unwrap_or(name);
    let is_version = number.starts_with(|first: char| first.is_ascii_digit())
        && number.chars().all(|character| character.is_ascii_digit() || character == '.');
    let is_year = number.parse::<u32>().is_ok_and(|year| (1970..2100).contains(&year));
    (is_version && !is_year).then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::are_released_together;

    #[test]
    fn days_and_versions() {
        let together = [
            ("a/20241002204701_pay/migration.sql", "a/20241002212355_pay/migration.sql"),
            ("m/2023-07-26-000217_one/up.sql", "m/2023-07-26-100217_two/up.sql"),
            ("sql/20140318-series.sql", "sql/20140318-more.sql"),
            ("delta/33/devices.sql", "delta/33/more.sql"),
            ("db/v1.2/a.sql", "db/v1.2/b.sql"),
        ];
        for (one, other) in together {
            assert!(are_released_together(one, other), "{one} {other}");
        }
        let apart = [
            ("a/20241002204701_pay/migration.sql", "a/20241004212355_pay/migration.sql"),
            ("delta/33/devices.sql", "delta/34/more.sql"),
            ("migrations/001_a.sql", "migrations/002_b.sql"),
            ("migrations/2024/001.sql", "migrations/2024/002.sql"),
            ("20249902000000_a.sql", "20249902000001_b.sql"),
            ("é.sql", "é.sql"),
        ];
        for (one, other) in apart {
            assert!(!are_released_together(one, other), "{one} {other}");
        }
    }
}
