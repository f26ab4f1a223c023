//! The version and the settings of Flyway, from files of the project around the migrations.

use crate::boundary::Boundary;
use crate::nearby::Nearby;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A version of Flyway.
pub(super) type Version = [u32; 3];

/// From this version on Flyway holds its lock in a transaction by default. Source: Flyway, release notes of 9.1.3.
pub(super) const LOCKS_IN_TRANSACTION: Version = [9, 1, 3];

/// Folders of configuration, in a folder around the migrations.
const FOLDERS: [&str; 8] =
    ["", "conf", "config", "project", "gradle", "src/main/resources", "resources", ".github/workflows"];

/// Maximum number of levels above the migrations at which their configuration is searched.
const LEVELS: usize = 8;

/// The files of code and configuration around the migrations.
pub(super) fn files<'a>(path: &Path, nearby: &'a Nearby) -> impl Iterator<Item = PathBuf> + use<'a> {
    let folder = crate::config::absolute(path);
    let boundary = Boundary::around(&folder);
    let around = folder.ancestors().skip(1).take(LEVELS).take_while(|folder| boundary.refusal(folder).is_none());
    let folders: Vec<PathBuf> = around.flat_map(|folder| FOLDERS.iter().map(move |below| folder.join(below))).collect();
    folders.into_iter().flat_map(|folder| nearby.code_and_configuration(&folder))
}

/// The texts of code and configuration around the migrations.
pub(super) fn texts<'a>(path: &Path, nearby: &'a Nearby) -> impl Iterator<Item = Arc<str>> + use<'a> {
    files(path, nearby).filter_map(|file| nearby.text(&file))
}

/// Whether a file around the migrations gives the setting this value. `name` is without the marks that differ between
/// the forms: `transactional.lock=false`, `transactional-lock: false`, `TRANSACTIONAL_LOCK=false`.
pub(super) fn is_set(path: &Path, name: &str, value: &str, nearby: &Nearby) -> bool {
    texts(path, nearby).any(|text| sets(&text, name, value))
}

fn sets(text: &str, name: &str, value: &str) -> bool {
    let is_set = |line: &str| {
        let line: String = line.chars().filter(|c| !matches!(c, '.' | '-' | '_' | ' ' | '\t' | '"' | '\'')).collect();
        let line = line.to_ascii_lowercase();
        let rest = line.find(name).map(|at| &line[at + name.len()..]);
        rest.is_some_and(|rest| rest.starts_with(['=', ':', '>', ',', '(']) && rest[1..].starts_with(value))
    };
    text.lines()
        .filter(|line| !line.trim_start().starts_with(['#', '*']) && !line.trim_start().starts_with("//"))
        .any(is_set)
}

/// Whether a file around a folder of migrations names Flyway.
pub(super) fn is_around(folder: &Path, nearby: &Nearby) -> bool {
    texts(&folder.join("V"), nearby).any(|text| text.to_ascii_lowercase().contains("flyway"))
}

/// The newest version of Flyway that files around the migrations name.
pub(super) fn version_around(path: &Path, nearby: &Nearby) -> Option<Version> {
    texts(path, nearby).filter_map(|text| newest_version(&text)).max()
}

/// So many lines after the name of the artifact its version may stand: `pom.xml` has one element on each line.
const LINES: usize = 2;

fn newest_version(text: &str) -> Option<Version> {
    let lines: Vec<String> = text.lines().map(str::to_ascii_lowercase).collect();
    let names = lines.iter().enumerate().filter(|(_, line)| line.contains("flyway"));
    let versions = names.filter_map(|(at, line)| {
        let own = line.find("flyway").and_then(|start| version(&line[start..]));
        let is_artifact = line.contains("artifactid");
        let below = lines[at + 1..].iter().take(if is_artifact { LINES } else { 0 });
        own.or_else(|| below.filter(|line| line.contains("<version>")).find_map(|line| version(line)))
    });
    versions.max()
}

/// The first version in a text, with a dot: `6.0.8`, `9.1`; and the tag of an image, which may be a major version alone.
fn version(text: &str) -> Option<Version> {
    let is_edge = |before: Option<char>| before.is_none_or(|one| !one.is_alphanumeric() && one != '.' && one != '_');
    let numbers =
        text.match_indices(|one: char| one.is_ascii_digit()).filter(|(at, _)| is_edge(text[..*at].chars().next_back()));
    numbers.into_iter().find_map(|(at, _)| {
        let length = text[at..].find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len() - at);
        let parts: Vec<Option<u32>> =
            text[at..at + length].trim_end_matches('.').split('.').map(|part| part.parse().ok()).collect();
        let is_tag = text[..at].ends_with("flyway:");
        let is_version = (2..=3).contains(&parts.len()) || (parts.len() == 1 && is_tag);
        let part = |at: usize| parts.get(at).copied().unwrap_or(Some(0));
        if is_version { Some([part(0)?, part(1)?, part(2)?]) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_in_every_form() {
        for text in [
            "flyway.postgresql.transactional.lock=false",
            "spring.flyway.postgresql.transactional-lock = false",
            "      transactional-lock: false",
            "FLYWAY_POSTGRESQL_TRANSACTIONAL_LOCK: \"false\"",
            "<flyway.postgresql.transactional.lock>false</flyway.postgresql.transactional.lock>",
            "configuration.put(\"flyway.postgresql.transactional.lock\", \"false\")",
            "extension.setTransactionalLock(false);",
        ] {
            assert!(sets(text, "transactionallock", "false"), "{text}");
        }
        assert!(!sets("# transactional.lock=false", "transactionallock", "false"));
        assert!(!sets("// setTransactionalLock(false)", "transactionallock", "false"));
        assert!(!sets("transactional.lock=true", "transactionallock", "false"));
    }

    #[test]
    fn the_version_is_found_in_every_form() {
        for (text, expected) in [
            ("FROM flyway/flyway:6.0.8", Some([6, 0, 8])),
            ("image: flyway/flyway:10-alpine", Some([10, 0, 0])),
            ("implementation 'org.flywaydb:flyway-core:9.22.3'", Some([9, 22, 3])),
            ("id \"org.flywaydb.flyway\" version \"8.5\"", Some([8, 5, 0])),
            ("<artifactId>flyway-core</artifactId>\n<version>9.1.2</version>", Some([9, 1, 2])),
            ("<flyway.version>7.15.0</flyway.version>", Some([7, 15, 0])),
            ("val flyway = \"6.0.8\"", Some([6, 0, 8])),
            ("\"org.flywaydb\" % \"flyway-core\" % \"9.1.3\"", Some([9, 1, 3])),
            ("flyway:6.0.8\nflyway:9.4.0", Some([9, 4, 0])),
            ("<artifactId>flyway-core</artifactId>\n</dependency>", None),
            ("flyway: db/V1.2__a.sql", None),
            ("postgres:14.2\nflyway", None),
        ] {
            assert_eq!(newest_version(text), expected, "{text}");
        }
    }
}
