//! Frameworks whose migrations are programs: how their SQL is captured, so that it can be checked.

use crate::config::absolute;
use crate::read;
use crate::roots::Repositories;
use std::fs;
use std::path::{Path, PathBuf};

/// A framework whose migrations are not SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Framework {
    Django,
    Alembic,
    Rails,
    TypeOrm,
    Knex,
    Sequelize,
    EfCore,
    Ecto,
    Laravel,
}

/// How many levels below a folder projects are searched for: `services/shop/manage.py`.
const LEVELS: usize = 3;

/// Most folders that are examined.
const FOLDERS: usize = 500;

/// Returns the framework of the project in, below or around a folder.
pub fn around(folder: &Path) -> Option<Framework> {
    let folder = absolute(folder);
    let top = Repositories::default().around(&folder).map(Path::to_owned);
    let above = || {
        let around = folder.ancestors().skip(1);
        let mut inside = around.take_while(|above| top.as_ref().is_some_and(|top| above.starts_with(top)));
        inside.find_map(of_folder)
    };
    below(&folder).or_else(above)
}

/// The folder itself, and then those below it, the outermost first.
fn below(folder: &Path) -> Option<Framework> {
    let mut level = vec![folder.to_owned()];
    let mut looked_at = 0;
    for _ in 0..=LEVELS {
        let mut next = Vec::new();
        for folder in level {
            looked_at += 1;
            if looked_at > FOLDERS {
                return None;
            }
            if let Some(framework) = of_folder(&folder) {
                return Some(framework);
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

/// Returns the framework whose project lies directly in a folder.
fn of_folder(folder: &Path) -> Option<Framework> {
    let has = |name: &str| folder.join(name).exists();
    let mentions = |name: &str, word: &str| read::text(&folder.join(name)).is_ok_and(|text| text.contains(word));
    let depends = |package: &str| mentions("package.json", &format!("\"{package}\""));
    if has("manage.py") {
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
    } else if ["knexfile.js", "knexfile.ts", "knexfile.cjs", "knexfile.mjs"].into_iter().any(has) || depends("knex") {
        Some(Framework::Knex)
    } else if has(".sequelizerc") || depends("sequelize") {
        Some(Framework::Sequelize)
    } else if has_ef_core(folder) {
        Some(Framework::EfCore)
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
            Self::Rails => "Rails",
            Self::TypeOrm => "TypeORM",
            Self::Knex => "Knex",
            Self::Sequelize => "Sequelize",
            Self::EfCore => "EF Core",
            Self::Ecto => "Ecto",
            Self::Laravel => "Laravel",
        }
    }

    /// Returns the command that captures what its migrations send.
    ///
    /// Sources: Django 5.2, `migrate`; Alembic 1.16, "Multiple Heads"; Rails 8.0, "Configuring a Database"; `TypeORM` 0.3,
    /// "Using CLI"; Knex 3.1, "Migration CLI"; sequelize-cli 6.6, `src/helpers/config-helper.js`; EF Core 9,
    /// `dotnet ef database update`; `ecto_sql` 3.12, `mix ecto.migrate`; Laravel 12, "Configuration Using URLs".
    pub fn command(self) -> &'static str {
        match self {
            Self::Django => "pgvet capture -- python manage.py migrate",
            Self::Alembic => "pgvet capture -- alembic upgrade heads",
            Self::Rails => "pgvet capture -- bin/rails db:migrate",
            Self::TypeOrm => "pgvet capture -- npx typeorm migration:run -d src/data-source.js",
            Self::Knex => "pgvet capture -- npx knex migrate:latest",
            Self::Sequelize => "pgvet capture -- npx sequelize-cli db:migrate --url {url}",
            Self::EfCore => {
                "pgvet capture -- dotnet ef database update --connection \
                 'Host={host};Port={port};Username={user};Password={password};Database={database}'"
            }
            Self::Ecto => "pgvet capture -- mix ecto.migrate",
            Self::Laravel => "pgvet capture --env DB_CONNECTION=pgsql --env DB_URL={url} -- php artisan migrate",
        }
    }

    /// How the command finds the private server, as the end of a sentence.
    fn note(self) -> &'static str {
        match self {
            Self::Sequelize | Self::EfCore | Self::Laravel => "pgvet replaces the words in braces",
            Self::Rails => "Rails reads DATABASE_URL",
            Self::Django | Self::Alembic | Self::TypeOrm | Self::Knex | Self::Ecto => {
                "the settings must read DATABASE_URL or PGHOST and PGPORT; --env sets other variables"
            }
        }
    }

    /// Returns the next step for a project without migrations in SQL.
    pub fn help(self) -> String {
        format!(
            "this is {} {} project, whose migrations are not SQL files; run them on a private server and check the SQL that \
             they send: `{}` ({})",
            if self.name().starts_with(['A', 'E']) { "an" } else { "a" },
            self.name(),
            self.command(),
            self.note()
        )
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
            ("node_modules/knex/knexfile.js", "", None),
            ("a/b/c/d/manage.py", "", None),
        ] {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            assert_eq!(around(root.path()), framework, "{file}");
        }
    }

    #[test]
    fn a_folder_of_a_project_is_part_of_it() {
        let root = tempfile::tempdir().unwrap();
        for folder in [".git", "db/migrate", "db/views"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("Gemfile"), "").unwrap();
        assert_eq!(around(&root.path().join("db/views")), Some(Framework::Rails));
    }
}
