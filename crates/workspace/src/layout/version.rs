//! Names of migrations with the versions after theirs.

use crate::order::{FlywayName, PostgratorName};
use std::path::{Path, PathBuf};

/// A path whose file, or folder, begins with a version.
pub(super) struct Numbered {
    folder: PathBuf,
    /// Before the last number of the version.
    head: String,
    /// The last number of the version, with the zeros before it; empty where there is none.
    number: String,
    /// Between the version and the name.
    separator: String,
    name: String,
    /// Behind the name of the file, or the file in the folder.
    tail: String,
}

/// Files whose folder is the migration.
const IN_FOLDER: [&str; 3] = ["up.sql", "down.sql", "migration.sql"];

impl Numbered {
    pub(super) fn parse(path: &Path) -> Self {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parent = path.parent().unwrap_or(Path::new(""));
        if let Some(PostgratorName { version, description, .. }) = PostgratorName::parse(&file) {
            return Self {
                folder: parent.to_owned(),
                head: String::new(),
                number: version.to_owned(),
                separator: ".do.".to_owned(),
                name: description.to_owned(),
                tail: ".sql".to_owned(),
            };
        }
        let (folder, stem, tail) = if IN_FOLDER.contains(&file.as_str()) {
            let name = parent.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (parent.parent().unwrap_or(Path::new("")), name, format!("/{file}"))
        } else {
            let end = file.find('.').map_or(file.len(), |at| {
                if is_flyway(&file) { file.rfind('.').unwrap_or(at) } else { dots(&file, at) }
            });
            (parent, file[..end].to_owned(), file[end..].to_owned())
        };
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let prefix = stem.len() - stem.trim_start_matches(['V', 'v']).len();
        let mut start = prefix;
        let mut end = start + digits(&stem[start..]);
        // `1.10.2`, and Flyway's `1_10_2__name`.
        while end > start {
            let next = &stem[end..];
            let dot = next.starts_with('.') || (is_flyway(&file) && next.starts_with('_') && !next.starts_with("__"));
            // Diesel's `2024-01-31-120000_name`.
            let date = end - prefix >= 4 && next.starts_with('-') && is_date(&stem[prefix..end]);
            if !(dot || date) || digits(&next[1..]) == 0 {
                break;
            }
            start = end + 1;
            end = start + digits(&stem[start..]);
        }
        let rest = &stem[end..];
        let name = rest.trim_start_matches(['_', '-']);
        Self {
            folder: folder.to_owned(),
            head: if end > start { stem[..start].to_owned() } else { String::new() },
            number: stem[start..end].to_owned(),
            separator: rest[..rest.len() - name.len()].to_owned(),
            name: if end > start { name.to_owned() } else { stem.clone() },
            tail,
        }
    }

    /// The path of the migration `by` after this one; `None` where the number would be longer than its place, or longer
    /// at all if versions are compared `as_text`.
    pub(super) fn next(&self, by: u64, title: &str, as_text: bool) -> Option<PathBuf> {
        let Self { folder, head, number, separator, name, tail } = self;
        let file = if number.is_empty() {
            // Without versions names are the order.
            format!("{name}_{}_{title}{tail}", by + 1)
        } else {
            let next = number.parse::<u64>().ok()?.checked_add(by)?.to_string();
            let padded = format!("{next:0>width$}", width = number.len());
            let fixed = as_text || number.starts_with('0') || number.len() >= 8;
            if fixed && padded.len() > number.len() {
                return None;
            }
            format!("{head}{padded}{separator}{title}{tail}")
        };
        Some(folder.join(file))
    }
}

/// `2024`, and more of a date after it.
fn is_date(version: &str) -> bool {
    version.split('-').zip([4, 2, 2]).all(|(part, length)| part.len() == length)
}

fn is_flyway(file: &str) -> bool {
    FlywayName::parse(file).is_some()
}

/// Where the suffixes of a name begin: after the dots of a version.
fn dots(file: &str, first: usize) -> usize {
    let in_version = file[..first].bytes().all(|byte| byte.is_ascii_digit() || byte == b'v');
    let after = file[first + 1..].bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    match (in_version && after, file[first + 1..].find('.')) {
        (true, Some(next)) => dots_after_version(file, first + 1 + next),
        _ => first,
    }
}

fn dots_after_version(file: &str, at: usize) -> usize {
    let after = file[at + 1..].bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    match (after, file[at + 1..].find('.')) {
        (true, Some(next)) => dots_after_version(file, at + 1 + next),
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_version_has_the_form_of_the_first() {
        for (path, expected) in [
            ("m/001_a.sql", Some("m/002_t.sql")),
            ("m/9_a.sql", Some("m/10_t.sql")),
            ("m/099_a.sql", Some("m/100_t.sql")),
            ("m/0999_a.up.sql", Some("m/1000_t.up.sql")),
            ("m/099999999999999999999_a.sql", None),
            ("m/09_a.sql", Some("m/10_t.sql")),
            ("m/99999999_a.sql", None),
            ("m/20240131235959_a.postgres.up.sql", Some("m/20240131235960_t.postgres.up.sql")),
            ("m/V1.2__a.sql", Some("m/V1.3__t.sql")),
            ("m/V1_2__a.sql", Some("m/V1_3__t.sql")),
            ("m/V3__a_b.c.sql", Some("m/V4__t.sql")),
            ("m/2024_add/up.sql", Some("m/2025_t/up.sql")),
            ("m/2024-01-31-000009_a/up.sql", Some("m/2024-01-31-000010_t/up.sql")),
            ("m/20240131_a/migration.sql", Some("m/20240132_t/migration.sql")),
            ("m/1.2.3_a.sql", Some("m/1.2.4_t.sql")),
            ("m/009.do.a.sql", Some("m/010.do.t.sql")),
            ("m/9.do.sql", Some("m/10.do.t.sql")),
            ("m/a.sql", Some("m/a_2_t.sql")),
        ] {
            let next = Numbered::parse(Path::new(path)).next(1, "t", false);
            assert_eq!(next.as_deref(), expected.map(Path::new), "{path}");
        }
        assert_eq!(Numbered::parse(Path::new("m/9_a.sql")).next(1, "t", true), None);
    }
}
