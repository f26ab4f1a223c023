//! Frameworks whose migrations are programs, or that change databases without any: how their SQL can be checked.

mod command;

use crate::config::absolute;
use crate::read;
use crate::roots::Repositories;
use std::fs;
use std::path::{Path, PathBuf};

/// A project whose changes of the schema are not SQL files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub framework: Framework,
    /// The folder of the project.
    folder: PathBuf,
}

/// A framework whose migrations are not SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Framework {
    Django,
    Alembic,
    FlaskMigrate,
    Rails,
    TypeOrm,
    Knex,
    Sequelize,
    EfCore,
    Ecto,
    Laravel,
    /// Without migrations: `prisma db push` changes the database.
    PrismaPush,
    /// Without migrations: `drizzle-kit push` changes the database.
    DrizzlePush,
}

/// How many levels below a folder projects are searched for: `services/shop/manage.py`.
const LEVELS: usize = 3;

/// Most folders that are examined.
const FOLDERS: usize = 500;

/// Returns the framework of the project in, below or around a folder.
pub fn around(folder: &Path) -> Option<Found> {
    let folder = absolute(folder);
    let top = Repositories::default().around(&folder).map(Path::to_owned);
    let above = || {
        let around = folder.ancestors().skip(1);
        let mut inside = around.take_while(|above| top.as_ref().is_some_and(|top| above.starts_with(top)));
        inside.find_map(found_in)
    };
    find_below(&folder, LEVELS, FOLDERS, found_in).or_else(above)
}

/// Looks into the folder itself, and then into those below it down to a level, the outermost first; into `most` at most.
fn find_below<T>(folder: &Path, levels: usize, most: usize, look: impl Fn(&Path) -> Option<T>) -> Option<T> {
    let mut level = vec![folder.to_owned()];
    let mut looked_at = 0;
    for _ in 0..=levels {
        let mut next = Vec::new();
        for folder in level {
            looked_at += 1;
            if looked_at > most {
                return None;
            }
            if let Some(found) = look(&folder) {
                return Some(found);
            }
            next.extend(folders_in(&folder));
        }
        level = next;
    }
    None
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let is_own = |name: &str| !name.starts_with('.') && !matches!(name, "node_modules" | "vendor" | "target");
    let own = folders.filter(|entry| is_own(&entry.file_name().to_string_lossy()));
    let mut own: Vec<PathBuf> = own.map(|entry| entry.path()).collect();
    own.sort();
    own
}

fn found_in(folder: &Path) -> Option<Found> {
    if is_of_flask_migrate(folder) {
        return Some(Found { framework: Framework::FlaskMigrate, folder: project_of_flask(folder).to_owned() });
    }
    of_folder(folder).map(|framework| Found { framework, folder: folder.to_owned() })
}

/// Whether Flask-Migrate has made the folder. Its template gets its connection from the application, so that Alembic alone
/// cannot run it.
fn is_of_flask_migrate(folder: &Path) -> bool {
    folder.join("alembic.ini").exists() && mentions(folder, "env.py", "current_app")
}

/// The folder in which `flask` is run: the nearest one above the migrations that names what the project needs.
fn project_of_flask(migrations: &Path) -> &Path {
    const SIGNS: [&str; 7] =
        [".flaskenv", "app.py", "wsgi.py", "pyproject.toml", "requirements.txt", "setup.py", "Pipfile"];
    let has_sign = |folder: &&Path| SIGNS.iter().any(|name| folder.join(name).exists());
    let mut above = migrations.ancestors().skip(1).take(LEVELS);
    above.find(has_sign).or_else(|| migrations.parent()).unwrap_or(migrations)
}

fn mentions(folder: &Path, name: &str, word: &str) -> bool {
    let is_same = |text: String| text.replace("\": ", "\":").contains(&word.replace("\": ", "\":"));
    read::text(&folder.join(name)).is_ok_and(is_same)
}

/// Returns the framework whose project lies directly in a folder.
fn of_folder(folder: &Path) -> Option<Framework> {
    let has = |name: &str| folder.join(name).exists();
    let mentions = |name: &str, word: &str| mentions(folder, name, word);
    let depends = |package: &str| mentions("package.json", &format!("\"{package}\""));
    if is_of_flask_migrate(&folder.join("migrations")) {
        // Older projects of Flask have a `manage.py`, too.
        Some(Framework::FlaskMigrate)
    } else if has("manage.py") {
        Some(Framework::Django)
    } else if has("alembic.ini") || mentions("pyproject.toml", "[tool.alembic]") {
        Some(Framework::Alembic)
    } else if has("db/migrate") && (has("bin/rails") || has("Gemfile") || has("config/application.rb")) {
        Some(Framework::Rails)
    } else if has("artisan") {
        Some(Framework::Laravel)
    } else if mentions("mix.exs", ":ecto_sql") {
        Some(Framework::Ecto)
    } else if depends("typeorm") {
        Some(Framework::TypeOrm)
    } else if command::has_knexfile(folder) || depends("knex") {
        Some(Framework::Knex)
    } else if has(".sequelizerc") || depends("sequelize") {
        Some(Framework::Sequelize)
    } else if has_ef_core(folder) {
        Some(Framework::EfCore)
    } else if ["schema.prisma", "prisma/schema.prisma"].iter().any(|name| mentions(name, "\"postgresql\"")) {
        Some(Framework::PrismaPush)
    } else if ["ts", "js", "mjs"].iter().any(|end| mentions(&format!("drizzle.config.{end}"), "postgresql")) {
        Some(Framework::DrizzlePush)
    } else {
        None
    }
}

fn has_ef_core(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut projects = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "csproj"));
    projects.any(|project| read::text(&project).is_ok_and(|text| text.contains("EntityFrameworkCore")))
}

impl Framework {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Django => "Django",
            Self::Alembic => "Alembic",
            Self::FlaskMigrate => "Flask-Migrate",
            Self::Rails => "Rails",
            Self::TypeOrm => "TypeORM",
            Self::Knex => "Knex",
            Self::Sequelize => "Sequelize",
            Self::EfCore => "EF Core",
            Self::Ecto => "Ecto",
            Self::Laravel => "Laravel",
            Self::PrismaPush => "Prisma",
            Self::DrizzlePush => "Drizzle",
        }
    }

    /// Whether its projects have migrations, which are programs.
    pub(crate) fn has_programs(self) -> bool {
        !matches!(self, Self::PrismaPush | Self::DrizzlePush)
    }

    /// How the command finds the private server, as the end of a sentence.
    fn note(self) -> &'static str {
        match self {
            Self::Sequelize | Self::EfCore | Self::Laravel => "pgvet replaces the words in braces",
            Self::Rails => "Rails reads DATABASE_URL",
            _ => {
                "the project must take its connection from DATABASE_URL, or from PGHOST and PGPORT; set others with --env"
            }
        }
    }
}

impl Found {
    /// Returns what the project is and why its changes are not checked, as a sentence without an end.
    pub(crate) fn describe(&self) -> String {
        let name = self.framework.name();
        let article = if name.starts_with(['A', 'E']) { "an" } else { "a" };
        let why = match self.framework {
            Framework::PrismaPush => {
                "without migrations: `prisma db push` changes the database and leaves no SQL to check"
            }
            Framework::DrizzlePush => {
                "without migrations: `drizzle-kit push` changes the database and leaves no SQL to check"
            }
            _ => "whose migrations are not SQL files",
        };
        let separator = if self.framework.has_programs() { "," } else { "" };
        format!("{article} {name} project{separator} {why}")
    }

    /// Returns what to do, as an imperative.
    pub(crate) fn advice(&self) -> String {
        let command = self.command();
        if self.framework.has_programs() {
            let note = self.framework.note();
            format!(
                "run the migrations on a temporary PostgreSQL server and check the captured SQL: `{command}` ({note})"
            )
        } else {
            format!("`{command}` writes the change as a migration in SQL, which pgvet can check")
        }
    }

    /// Returns the next step for a project without migrations in SQL.
    pub fn help(&self) -> String {
        format!("this is {}; {}", self.describe(), self.advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frameworks_are_recognized_by_the_files_of_their_projects() {
        for (file, text, framework) in [
            ("shop/manage.py", "", Some(Framework::Django)),
            ("alembic.ini", "", Some(Framework::Alembic)),
            ("api/package.json", r#"{"dependencies": {"typeorm": "0.3"}}"#, Some(Framework::TypeOrm)),
            ("package.json", r#"{"dependencies": {"knex": "3"}}"#, Some(Framework::Knex)),
            ("package.json", r#"{"dependencies": {"sequelize": "6"}}"#, Some(Framework::Sequelize)),
            ("package.json", r#"{"dependencies": {"express": "4"}}"#, None),
            (
                "src/Shop/Shop.csproj",
                "<PackageReference Include=\"Npgsql.EntityFrameworkCore.PostgreSQL\" />",
                Some(Framework::EfCore),
            ),
            ("mix.exs", "{:ecto_sql, \"~> 3.12\"}", Some(Framework::Ecto)),
            ("artisan", "", Some(Framework::Laravel)),
            ("web/prisma/schema.prisma", "provider = \"postgresql\"", Some(Framework::PrismaPush)),
            ("web/prisma/schema.prisma", "provider = \"sqlite\"", None),
            ("drizzle.config.ts", "dialect: 'postgresql'", Some(Framework::DrizzlePush)),
            ("node_modules/knex/knexfile.js", "", None),
            ("a/b/c/d/manage.py", "", None),
        ] {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            assert_eq!(around(root.path()).map(|found| found.framework), framework, "{file}");
        }
    }

    #[test]
    fn folders_of_flask_migrate_belong_to_the_project_above_them() {
        for (migrations, sign, from) in [
            ("migrations", "app.py", "."),
            ("migrations", "manage.py", "."),
            ("migrations", "app.py", "migrations/versions"),
            ("shop/db/schema", "requirements.txt", "shop/db/schema"),
        ] {
            let root = tempfile::tempdir().unwrap();
            let folder = root.path().join(migrations);
            fs::create_dir_all(root.path().join(".git")).unwrap();
            fs::create_dir_all(folder.join("versions")).unwrap();
            fs::write(folder.join("alembic.ini"), "").unwrap();
            fs::write(folder.join("env.py"), "from flask import current_app").unwrap();
            fs::write(root.path().join(sign), "").unwrap();
            let found = around(&root.path().join(from)).unwrap();
            let expected = (Framework::FlaskMigrate, root.path().to_owned());
            assert_eq!((found.framework, found.folder), expected, "{migrations} {from}");
        }
    }

    #[test]
    fn a_folder_of_a_project_is_part_of_it() {
        let root = tempfile::tempdir().unwrap();
        for folder in [".git", "db/migrate", "db/views"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("Gemfile"), "").unwrap();
        let found = around(&root.path().join("db/views")).unwrap();
        assert_eq!((found.framework, found.folder), (Framework::Rails, root.path().to_owned()));
    }
}
