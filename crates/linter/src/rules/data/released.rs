//! Migrations that are released together, so that nothing uses what the first makes before the second runs.

use crate::catalog::Relation;
use crate::check::Migration;

/// Has a migration made the table that is released together with this one, and left it empty?
pub(super) fn is_left_empty(table: &Relation, file: u32, migrations: &[Migration<'_>]) -> bool {
    let Some(made_in) = table.birth.migration.and_then(|number| number.checked_sub(1)) else { return false };
    let told = |file: u32| {
        let migration = migrations.get(file as usize)?;
        Some(migration.planned.unwrap_or(migration.file.path.as_str()))
    };
    let together = || told(made_in).zip(told(file)).is_some_and(|(one, other)| are_released_together(one, other));
    made_in != file && !table.birth.filled && together()
}

/// Are two migrations of the same day, or of the same version? A date or their paths say it: `20241002204701_payments` and
/// `20241003012355_payments_again`, or `delta/33/devices.sql` and `delta/33/more_devices.sql`.
fn are_released_together(one: &str, other: &str) -> bool {
    let in_a_day = match (Stamp::of(one), Stamp::of(other)) {
        (Some(Stamp { day, minute: Some(minute) }), Some(Stamp { day: other_day, minute: Some(other_minute) })) => {
            ((day - other_day) * MINUTES + minute - other_minute).abs() < MINUTES
        }
        (Some(one), Some(other)) => one.day == other.day,
        _ => false,
    };
    in_a_day || version_folder(one).is_some_and(|of_one| version_folder(other) == Some(of_one))
}

/// Of a day.
const MINUTES: i64 = 24 * 60;

/// When a migration was written.
struct Stamp {
    /// Counted from a fixed day.
    day: i64,
    /// Of the day, where the name tells it.
    minute: Option<i64>,
}

impl Stamp {
    /// The date at the beginning of the file's name, or of its folder's, perhaps with a time: `2024-10-02`, `20241002204701`,
    /// `2024-10-02T20:47:01Z`.
    fn of(path: &str) -> Option<Self> {
        path.rsplit(['/', '\\']).take(2).find_map(|name| {
            let digits: String = name
                .chars()
                .take_while(|character| character.is_ascii_digit() || matches!(character, '-' | '_' | 'T' | ':'))
                .filter(char::is_ascii_digit)
                .take(12)
                .collect();
            let number = |from: usize, to: usize| digits.get(from..to).and_then(|part| part.parse::<i64>().ok());
            let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
            let is_date = (1970..2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
            let time = number(8, 10).zip(number(10, 12)).filter(|(hour, minute)| *hour < 24 && *minute < 60);
            is_date.then(|| Self {
                day: day_number(year, month, day),
                minute: time.map(|(hour, minute)| hour * 60 + minute),
            })
        })
    }
}

/// The number of a day in the Gregorian calendar. The year begins with March, so that leap days stand at its end.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day
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
            ("a/20241002204701_pay/migration.sql", "a/20241003012355_pay/migration.sql"),
            ("a/20240229230000_pay.sql", "a/20240301010000_pay.sql"),
            ("a/20231231230000_pay.sql", "a/20240101010000_pay.sql"),
            ("sql/20140318-series.sql", "sql/20140318-more.sql"),
            ("delta/33/devices.sql", "delta/33/more.sql"),
            ("db/v1.2/a.sql", "db/v1.2/b.sql"),
            ("2024-10-02T20:47:01Z", "2024-10-03T20:46:01Z"),
        ];
        for (one, other) in together {
            assert!(are_released_together(one, other), "{one} {other}");
        }
        let apart = [
            ("a/20241002204701_pay/migration.sql", "a/20241004212355_pay/migration.sql"),
            ("a/20230228230000_pay.sql", "a/20230302010000_pay.sql"),
            ("sql/20140318-series.sql", "sql/20140319-more.sql"),
            ("delta/33/devices.sql", "delta/34/more.sql"),
            ("migrations/001_a.sql", "migrations/002_b.sql"),
            ("migrations/2024/001.sql", "migrations/2024/002.sql"),
            ("2024-10-02T20:47:01Z", "2024-10-03T20:47:01Z"),
            ("20249902000000_a.sql", "20249902000001_b.sql"),
            ("é.sql", "é.sql"),
        ];
        for (one, other) in apart {
            assert!(!are_released_together(one, other), "{one} {other}");
        }
    }
}
