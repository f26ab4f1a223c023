//! Which version of an npm package the project around a migration has installed.

use super::project::LEVELS;
use crate::boundary::Boundary;
use crate::config::absolute;
use crate::nearby::Nearby;
use std::path::Path;

/// The major and minor number of the version of a package that the nearest lock file, or an exact version in the nearest
/// manifest, names.
pub(super) fn of(path: &Path, name: &'static str, nearby: &Nearby) -> Option<(u32, u32)> {
    let path = absolute(path);
    let boundary = Boundary::around(&path);
    let around = path.ancestors().skip(1).take(LEVELS).take_while(|folder| boundary.refusal(folder).is_none());
    let look = |folder: &Path| {
        let text = |file: &str| nearby.text(&folder.join(file));
        let json = |file: &str| serde_json::from_str::<serde_json::Value>(&text(file)?).ok();
        let of_npm =
            || number(json("package-lock.json")?["packages"][format!("node_modules/{name}")]["version"].as_str()?);
        let of_others =
            || ["pnpm-lock.yaml", "yarn.lock", "bun.lock"].iter().find_map(|file| locked(&text(file)?, name));
        let of_manifest = || {
            let manifest = json("package.json")?;
            let mut tables = ["devDependencies", "dependencies"].into_iter();
            exact(tables.find_map(|table| manifest[table][name].as_str())?)
        };
        of_npm().or_else(of_others).or_else(of_manifest)
    };
    around.into_iter().find_map(|folder| nearby.version(folder, name, || look(folder)))
}

/// `supabase@2.98.2` of pnpm and Bun, and `supabase@^2.98.0:` with `version "2.98.2"` in the next line of Yarn.
fn locked(lock: &str, name: &str) -> Option<(u32, u32)> {
    let key = format!("{name}@");
    let mut lines = lock.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let is_start =
            |at: usize| !line[..at].ends_with(|one: char| one.is_alphanumeric() || matches!(one, '-' | '/' | '_'));
        let Some((at, _)) = line.match_indices(&key).find(|(at, _)| is_start(*at)) else { continue };
        let after = &line[at + key.len()..];
        return number(after).or_else(|| number(lines.next()?.strip_prefix("version")?.trim_matches([' ', ':', '"'])));
    }
    None
}

/// The version of a requirement that allows no other minor one.
fn exact(requirement: &str) -> Option<(u32, u32)> {
    number(requirement.strip_prefix('~').unwrap_or(requirement))
}

fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    Some((parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_version_is_looked_up_once() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".git")).unwrap();
        let lock = root.path().join("pnpm-lock.yaml");
        fs::write(&lock, "supabase@2.98.2:\n").unwrap();
        let nearby = Nearby::default();
        let version = |path: &str| of(&root.path().join(path), "supabase", &nearby);
        assert_eq!(version("a/1.sql"), Some((2, 98)));
        let spent = nearby.spent();
        assert_eq!(version("b/2.sql"), Some((2, 98)));
        assert_eq!(nearby.spent(), spent);
    }

    #[test]
    fn lock_files_and_exact_requirements_name_the_version() {
        for (file, text, expected) in [
            ("package-lock.json", r#"{"packages": {"node_modules/supabase": {"version": "2.98.2"}}}"#, Some((2, 98))),
            ("pnpm-lock.yaml", "packages:\n  '@x/supabase@1.2.3':\n  supabase@2.110.0:\n", Some((2, 110))),
            ("yarn.lock", "\"supabase@^2.1.0\":\n  version \"2.98.2\"\n", Some((2, 98))),
            ("bun.lock", "\"supabase\": [\"supabase@3.1.0\", {}],\n", Some((3, 1))),
            ("package.json", r#"{"devDependencies": {"supabase": "~1.200.3"}}"#, Some((1, 200))),
            ("package.json", r#"{"devDependencies": {"supabase": "^2.98.0"}}"#, None),
            ("package.json", r#"{"devDependencies": {"other": "1.0.0"}}"#, None),
        ] {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join(".git")).unwrap();
            fs::create_dir_all(root.path().join("supabase/migrations")).unwrap();
            fs::write(root.path().join(file), text).unwrap();
            assert_eq!(
                of(&root.path().join("supabase/migrations/1_a.sql"), "supabase", &Nearby::default()),
                expected,
                "{text}"
            );
        }
    }
}
