//! Which folders of migrations configuration or code lists together as locations of Flyway. Profiles list other folders.

use super::flyway_project;
use crate::config::absolute;
use crate::nearby::{Nearby, has_path};
use crate::order;
use crate::problem::display;
use crate::roots::Repositories;
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders that are listed together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct List {
    folders: BTreeSet<String>,
    /// The path and line: `application-dev.yml:6`.
    place: SmolStr,
    /// The profile of Spring, Micronaut or Quarkus for which they are listed.
    profile: Option<String>,
}

/// The folders beside each other that hold migrations of Flyway, and the lists that name them.
#[derive(Debug, Default)]
pub(crate) struct Locations {
    /// The names of the folders in each folder.
    folders: BTreeMap<PathBuf, BTreeSet<String>>,
    lists: FxHashMap<(PathBuf, bool), Arc<[List]>>,
    repositories: Repositories,
}

/// Words for deployments that are not production.
const DEVELOPMENT: [&str; 12] =
    ["dev", "develop", "development", "local", "test", "tests", "testing", "demo", "sandbox", "staging", "qa", "uat"];

/// Words for production.
const PRODUCTION: [&str; 4] = ["prod", "production", "prd", "live"];

fn has_word(name: &str, words: &[&str]) -> bool {
    name.split(['-', '_', '.']).any(|part| words.iter().any(|word| part.eq_ignore_ascii_case(word)))
}

impl Locations {
    /// `paths`: the migrations of Flyway.
    pub(crate) fn of<'p>(paths: impl Iterator<Item = &'p Path>) -> Self {
        let mut folders: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
        for (base, name) in paths.filter_map(place) {
            folders.entry(base).or_default().insert(name);
        }
        Self { folders, ..Self::default() }
    }

    /// Returns the place that lists the folder of one of two migrations, if the folders are listed, but never together.
    pub(crate) fn apart(&mut self, one: &Path, other: &Path, nearby: &Nearby) -> Option<SmolStr> {
        let ((base, one), (other_base, other)) = (place(one)?, place(other)?);
        if base != other_base || one == other {
            return None;
        }
        let lists = self.lists(&base, true, nearby);
        let with = |name: &str| lists.iter().find(|list| list.folders.contains(name));
        let (first, _) = (with(&one)?, with(&other)?);
        let has_both = |list: &List| list.folders.contains(&one) && list.folders.contains(&other);
        (!lists.iter().any(has_both)).then(|| first.place.clone())
    }

    /// Returns the place that lists the folder of a migration, and one that lists others, if production does not run it:
    /// it is listed only for another profile, or its name is that of another deployment.
    pub(crate) fn only(&mut self, path: &Path, nearby: &Nearby) -> Option<(SmolStr, SmolStr)> {
        let (base, name) = place(path)?;
        let beside = self.folders.get(&base).filter(|beside| beside.len() > 1)?;
        let in_code = beside.iter().any(|name| has_word(name, &DEVELOPMENT) || has_word(name, &PRODUCTION));
        let lists = self.lists(&base, in_code, nearby);
        let (with, without): (Vec<&List>, Vec<&List>) = lists.iter().partition(|list| list.folders.contains(&name));
        let other = without.iter().find(|list| list.is_of_production()).or(without.first())?;
        let is_elsewhere = |list: &&List| !list.profile.as_deref().is_some_and(|name| has_word(name, &PRODUCTION));
        let is_of_profile = with.iter().all(|list| list.profile.is_some()) && other.is_of_production();
        let is_other = with.iter().all(is_elsewhere) && (is_of_profile || has_word(&name, &DEVELOPMENT));
        with.first().filter(|_| is_other).map(|list| (list.place.clone(), other.place.clone()))
    }

    /// The lists that name folders in `base`, in configuration and, if that is wanted, in all code of the program.
    fn lists(&mut self, base: &Path, in_code: bool, nearby: &Nearby) -> Arc<[List]> {
        let key = (base.to_owned(), in_code);
        if let Some(known) = self.lists.get(&key) {
            return Arc::clone(known);
        }
        let names = self.folders.get(base).cloned().unwrap_or_default();
        let top = self.repositories.top(base).unwrap_or_default();
        let mut files: BTreeSet<PathBuf> = flyway_project::files(&base.join("V"), nearby).collect();
        if in_code {
            files.extend(sources(base, nearby));
        }
        let of_file = |path: &PathBuf| {
            let text = nearby.text(path)?;
            let shown = display(path.strip_prefix(&top).unwrap_or(path));
            let profile = profile_of_file(path);
            let lists = lists(&text, base, &names).into_iter();
            Some(lists.map(move |(folders, line, own)| {
                let place = format_smolstr!("{shown}:{line}");
                List { folders, place, profile: own.or_else(|| profile.clone()) }
            }))
        };
        let found: Arc<[List]> = files.iter().filter_map(of_file).flatten().collect::<Vec<_>>().into();
        self.lists.insert(key, Arc::clone(&found));
        found
    }
}

impl List {
    /// Whether production may use it.
    fn is_of_production(&self) -> bool {
        self.profile.as_deref().is_none_or(|profile| has_word(profile, &PRODUCTION))
    }
}

/// The folder that holds folders of migrations, and the name of the one that holds the migration.
fn place(path: &Path) -> Option<(PathBuf, String)> {
    let path = absolute(path);
    let location = order::sequence(&path);
    let below = path.parent()?.strip_prefix(&location).ok()?;
    let (base, name) = match below.components().next() {
        Some(first) => (location.as_path(), first.as_os_str()),
        None => (location.parent()?, location.file_name()?),
    };
    Some((base.to_owned(), name.to_str()?.to_owned()))
}

/// The profile for which a file configures: `application-dev.yml`.
fn profile_of_file(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?;
    Some(stem.strip_prefix("application-")?.to_owned())
}

/// Maximum number of files of sources that are read for one folder.
const SOURCES: usize = 1000;

/// The code and configuration of the program that has the folder in its resources.
fn sources(base: &Path, nearby: &Nearby) -> Vec<PathBuf> {
    let Some(main) = base.ancestors().find(|above| above.ends_with("src/main")) else { return Vec::new() };
    let mut found = Vec::new();
    let mut folders = vec![main.to_owned()];
    let mut visited = 0;
    while let Some(folder) = folders.pop().filter(|_| found.len() < SOURCES && visited < SOURCES) {
        visited += 1;
        found.extend(nearby.code_and_configuration(&folder));
        let entries = fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
        folders.extend(entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|one| one.path()));
    }
    found.truncate(SOURCES);
    found
}

/// What separates branches of code, or their values, in a line.
const BRANCHES: [&str; 6] = ["else", "->", "=>", " : ", "case ", "? "];

/// The folders of `base` that lines of a text list together, with the first line and the profile of that part.
fn lists(text: &str, base: &Path, names: &BTreeSet<String>) -> Vec<(BTreeSet<String>, usize, Option<String>)> {
    let Some(base_name) = base.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    if !text.contains(base_name) {
        return Vec::new();
    }
    let above = base.parent().and_then(Path::file_name).map(|above| format!("{}/{base_name}", above.to_string_lossy()));
    let is_comment = |line: &str| ["//", "*", "#", "<!--"].iter().any(|mark| line.starts_with(mark));
    let named = |part: &str| -> BTreeSet<String> {
        if !part.contains(base_name) {
            return BTreeSet::new();
        }
        if above.as_ref().is_some_and(|above| names_alone(part, above)) || names_alone_in_quotes(part, base_name) {
            return names.clone();
        }
        let is_named = |name: &&String| has_path(part, &format!("{base_name}/{name}"));
        names.iter().filter(is_named).cloned().collect()
    };
    let mut found: Vec<(BTreeSet<String>, usize, Option<String>)> = Vec::new();
    let (mut is_open, mut profile) = (false, None);
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line == "---" {
            profile = None;
        }
        profile = profile_of_line(line).or(profile);
        if line.is_empty() || is_comment(line) {
            continue;
        }
        is_open &= !line.to_ascii_lowercase().contains("locations");
        for (at, part) in parts(line).into_iter().enumerate() {
            let folders = named(part);
            is_open &= at == 0 && !folders.is_empty();
            match found.last_mut().filter(|_| is_open) {
                Some((known, ..)) => known.extend(folders),
                None if !folders.is_empty() => {
                    is_open = true;
                    found.push((folders, number, profile_of_key(line).or_else(|| profile.clone())));
                }
                None => {}
            }
        }
    }
    found
}

/// The parts of a line that belong to different branches.
fn parts(line: &str) -> Vec<&str> {
    let mut parts = vec![line];
    for branch in BRANCHES {
        parts = parts.into_iter().flat_map(|part| part.split(branch)).collect();
    }
    parts
}

/// Whether a text names a folder, and none below it.
fn names_alone(text: &str, folder: &str) -> bool {
    let is_word = |one: char| one.is_alphanumeric() || matches!(one, '_' | '-' | '.');
    text.match_indices(folder).any(|(at, _)| {
        let after = &text[at + folder.len()..];
        let is_whole = !text[..at].ends_with(is_word) && !after.starts_with(is_word);
        is_whole && !after.strip_prefix('/').is_some_and(|below| below.starts_with(|one: char| is_word(one)))
    })
}

/// The same for a name that stands alone: `"migration"`, `classpath:migration`.
fn names_alone_in_quotes(text: &str, name: &str) -> bool {
    let quotes = |one: char| matches!(one, '"' | '\'' | ':');
    text.match_indices(name).any(|(at, _)| {
        let after = &text[at + name.len()..];
        let ends = after.is_empty() || after.starts_with(['"', '\'', ',']);
        text[..at].ends_with(quotes) && (ends || after.starts_with("/\"") || after.starts_with("/'"))
    })
}

/// The profile of a part of a file in YAML: `on-profile: dev`.
fn profile_of_line(line: &str) -> Option<String> {
    let value = line.strip_prefix("on-profile:").or_else(|| line.strip_prefix("profiles:"))?;
    let value = value.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_owned())
}

/// The profile of a key of Quarkus: `%dev.quarkus.flyway.locations`.
fn profile_of_key(line: &str) -> Option<String> {
    let (profile, _) = line.trim_start_matches('"').strip_prefix('%')?.split_once('.')?;
    Some(profile.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folders that a text lists together.
    fn listed(text: &str) -> Vec<(String, Option<String>)> {
        let names = ["common", "dev", "prod"].map(str::to_owned).into();
        let found = lists(text, Path::new("/r/src/main/resources/db/migration"), &names).into_iter();
        found.map(|(folders, _, profile)| (folders.into_iter().collect::<Vec<_>>().join("+"), profile)).collect()
    }

    #[test]
    fn folders_are_listed_together_in_every_form() {
        let of = |text: &str| listed(text).into_iter().map(|(folders, _)| folders).collect::<Vec<_>>();
        let both = ["common+dev", "common+prod"];
        for text in [
            "if (isDev) {\n \"db/migration/common,db/migration/dev\"\n} else {\n \"db/migration/common,db/migration/prod\"\n}",
            "if (isDev) listOf(\"db/migration/common\", \"db/migration/dev\") else listOf(\"db/migration/common\", \"db/migration/prod\")",
            "isDev ? \"db/migration/common,db/migration/dev\" : \"db/migration/common,db/migration/prod\";",
            "when (env) {\n  \"dev\" -> \"db/migration/common,db/migration/dev\"\n  else -> \"db/migration/common,db/migration/prod\"\n}",
            "a.locations=db/migration/common,db/migration/dev\nb.locations=db/migration/common,db/migration/prod\n",
        ] {
            assert_eq!(of(text), both, "{text}");
        }
        let yaml = "locations:\n  - classpath:db/migration/common\n  - classpath:/db/migration/dev\n";
        assert_eq!(of(yaml), ["common+dev"]);
        let kotlin = ".locations(\n  \"db/migration/common\",\n  \"db/migration/prod\",\n)";
        assert_eq!(of(kotlin), ["common+prod"]);
        for whole in
            ["classpath:db/migration", "\"db/migration/\" + env", "\"classpath:migration\"", "db/migration/{vendor}"]
        {
            assert_eq!(of(whole), ["common+dev+prod"], "{whole}");
        }
        assert_eq!(of("// db/migration/dev\nthe migration of db/migrations/dev"), [] as [&str; 0]);
    }

    #[test]
    fn profiles_of_parts_are_seen() {
        let yaml = "a: classpath:db/migration/common\n---\nspring:\n  config.activate:\n    on-profile: dev\n  flyway:\n    locations: classpath:db/migration/dev\n";
        let dev = Some("dev".to_owned());
        assert_eq!(listed(yaml), [("common".to_owned(), None), ("dev".to_owned(), dev.clone())]);
        assert_eq!(listed("%dev.quarkus.flyway.locations=db/migration/dev\n"), [("dev".to_owned(), dev)]);
    }

    /// What is found about a file in a repository with these files of code and configuration.
    fn found(files: &[(&str, &str)]) -> (Option<String>, bool) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".git")).unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let at = |path: &str| root.path().join("src/main/resources/db/migration").join(path);
        let paths = [at("common/V1__a.sql"), at("dev/V2__b.sql"), at("prod/V2__c.sql")];
        let mut locations = Locations::of(paths.iter().map(PathBuf::as_path));
        let nearby = Nearby::default();
        let only = |locations: &mut Locations, path: &Path| locations.only(path, &nearby);
        assert_eq!(only(&mut locations, &paths[0]), None);
        assert_eq!(only(&mut locations, &paths[2]), None, "production may run it");
        let apart = locations.apart(&paths[1], &paths[2], &nearby).is_some();
        (only(&mut locations, &paths[1]).map(|(listed, others)| format!("{listed} {others}")), apart)
    }

    #[test]
    fn folders_of_another_profile_are_not_those_of_production() {
        let list =
            |one: &str| format!("spring.flyway.locations=classpath:db/migration/common,classpath:db/migration/{one}\n");
        let resources = "src/main/resources";
        let (main, dev) =
            (format!("{resources}/application.properties"), format!("{resources}/application-dev.properties"));
        let (of_main, of_dev) = (list("prod"), list("dev"));
        let places = |listed: &str, others: &str| Some(format!("{resources}/{listed} {resources}/{others}"));
        let expected = places("application-dev.properties:1", "application.properties:1");
        assert_eq!(found(&[(&main, &of_main), (&dev, &of_dev)]), (expected, true));
        assert_eq!(found(&[(&main, "spring.flyway.enabled=true\n")]), (None, false), "nothing lists them");
        assert_eq!(found(&[(&main, "spring.flyway.locations=classpath:db/migration\n")]), (None, false));
        let both = format!("{},classpath:db/migration/dev\n", of_main.trim_end());
        assert_eq!(found(&[(&main, &both)]), (None, false));
    }

    #[test]
    fn code_chooses_folders() {
        let code = "if (isDev) {\n    \"db/migration/common,db/migration/dev\"\n} else {\n    \"db/migration/common,db/migration/prod\"\n}\n";
        let path = "src/main/kotlin/org/shop/Configuration.kt";
        assert_eq!(found(&[(path, code)]), (Some(format!("{path}:2 {path}:4")), true));
        assert_eq!(found(&[("src/test/kotlin/Configuration.kt", code)]), (None, false), "a test");
    }
}
