//! Tools whose files look like any others: the configuration or the manifest of the project names them.

use super::Tool;
use crate::nearby::Nearby;
use crate::read;
use std::path::Path;

/// So many folders above the migrations belong to their project, where no repository ends before.
pub(super) const LEVELS: usize = 8;

/// Returns the tool that a file of the project names as the one that runs the migrations in a folder.
pub(super) fn tool(migrations: &Path, nearby: &Nearby) -> Option<Tool> {
    let folder = migrations.file_name()?.to_str()?;
    if is_in(migrations, nearby, 2, "tern.conf", |_| true) {
        return Some(Tool::Tern);
    }
    let environments = migrations.with_file_name("environments");
    if folder == "scripts" && environments.join("development.properties").exists() {
        return Some(Tool::Mybatis);
    }
    if is_of_hasura(migrations) {
        return Some(Tool::Hasura);
    }
    let has_migratus = |text: &str| text.contains("migratus/migratus") || text.contains("[migratus ");
    if ["project.clj", "deps.edn"].into_iter().any(|name| is_in(migrations, nearby, LEVELS, name, has_migratus)) {
        return Some(Tool::Migratus);
    }
    if is_in(migrations, nearby, LEVELS, "yoyo.ini", |text| text.contains(folder)) {
        return Some(Tool::Yoyo);
    }
    let is_migrations = folder.to_ascii_lowercase().contains("migrat");
    let depends = |(name, _): &(&str, Tool)| {
        is_in(migrations, nearby, LEVELS, "package.json", |text| text.contains(&format!("\"{name}\"")))
    };
    PACKAGES.into_iter().filter(|_| is_migrations).find(depends).map(|(_, tool)| tool)
}

/// Whether a folder is a migration of Hasura: in `migrations` of its project, or in the folder of a database there.
/// `config.yaml` names the folder of the metadata, and `hasura metadata export` writes `version.yaml` into it. Source:
/// Hasura documentation, "Hasura CLI Configuration Reference" and "Metadata Format Reference".
fn is_of_hasura(migration: &Path) -> bool {
    let mut all = migration.ancestors().skip(1).take(2);
    let Some(project) = all.find(|folder| folder.ends_with("migrations")).and_then(Path::parent) else { return false };
    let names_metadata = |text: String| text.lines().any(|line| line.starts_with("metadata_directory:"));
    project.join("metadata/version.yaml").is_file()
        || read::text(&project.join("config.yaml")).is_ok_and(names_metadata)
}

/// Packages of npm that run migrations in SQL.
const PACKAGES: [(&str, Tool); 2] =
    [("postgres-migrations", Tool::PostgresMigrations), ("node-pg-migrate", Tool::NodePgMigrate)];

/// Whether the nearest file of a name, in the folder or above it, says something.
fn is_in(folder: &Path, nearby: &Nearby, levels: usize, name: &str, says: impl Fn(&str) -> bool) -> bool {
    let mut within = true;
    let around = folder.ancestors().take(levels).take_while(|above| {
        let is_inside = within;
        within = !above.join(".git").exists();
        is_inside
    });
    let mut texts = around.into_iter().filter_map(|above| nearby.text(&above.join(name)));
    texts.next().is_some_and(|text| says(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_of_the_project_name_the_tool() {
        for (migrations, file, text, expected) in [
            ("db/migrations", "db/migrations/tern.conf", "[database]", Some(Tool::Tern)),
            ("migrations", "tern.conf", "", Some(Tool::Tern)),
            ("a/b/migrations", "tern.conf", "", None),
            ("scripts", "environments/development.properties", "", Some(Tool::Mybatis)),
            ("sql", "environments/development.properties", "", None),
            ("migrations/default/1_a", "config.yaml", "version: 3\nmetadata_directory: metadata\n", Some(Tool::Hasura)),
            ("migrations/1_a", "metadata/version.yaml", "version: 3\n", Some(Tool::Hasura)),
            ("migrations/1_a", "config.yaml", "version: 3\n", None),
            ("resources/migrations", "project.clj", ":dependencies [[migratus \"1.6.5\"]]", Some(Tool::Migratus)),
            (
                "resources/migrations",
                "deps.edn",
                "{:deps {migratus/migratus {:mvn/version \"1\"}}}",
                Some(Tool::Migratus),
            ),
            ("resources/migrations", "deps.edn", "{:deps {ragtime/ragtime {:mvn/version \"1\"}}}", None),
            ("db/changes", "yoyo.ini", "[DEFAULT]\nsources = ./db/changes\n", Some(Tool::Yoyo)),
            ("db/other", "yoyo.ini", "[DEFAULT]\nsources = ./db/changes\n", None),
            (
                "src/migrations",
                "package.json",
                r#"{"dependencies": {"postgres-migrations": "5"}}"#,
                Some(Tool::PostgresMigrations),
            ),
            ("src/queries", "package.json", r#"{"dependencies": {"postgres-migrations": "5"}}"#, None),
            (
                "src/migrations",
                "package.json",
                r#"{"devDependencies": {"node-pg-migrate": "9"}}"#,
                Some(Tool::NodePgMigrate),
            ),
            ("src/migrations", "package.json", r#"{"dependencies": {"pg": "8"}}"#, None),
        ] {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join(".git")).unwrap();
            fs::create_dir_all(root.path().join(migrations)).unwrap();
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            assert_eq!(tool(&root.path().join(migrations), &Nearby::default()), expected, "{migrations} {file}");
        }
    }

    #[test]
    fn nothing_outside_of_the_repository_counts() {
        let root = tempfile::tempdir().unwrap();
        let migrations = root.path().join("inner/migrations");
        fs::create_dir_all(&migrations).unwrap();
        fs::write(root.path().join("package.json"), r#"{"dependencies": {"postgres-migrations": "5"}}"#).unwrap();
        assert_eq!(tool(&migrations, &Nearby::default()), Some(Tool::PostgresMigrations));
        fs::create_dir(root.path().join("inner/.git")).unwrap();
        assert_eq!(tool(&migrations, &Nearby::default()), None);
    }
}
