//! Frameworks whose migrations are programs: how their SQL is printed, so that it can be checked.

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

/// How many levels below a folder projects are looked for: `services/shop/manage.py`.
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

    /// Returns the command that prints or captures the SQL of its migrations.
    ///
    /// Sources: Django 5.2, `sqlmigrate`; Alembic 1.16, "Generating SQL Scripts"; Rails 8.0, `DatabaseTasks.migrate`
    /// and "Active Support Instrumentation"; `TypeORM` 0.3, "Using CLI"; Knex 3.1, "Debugging"; sequelize-cli 6.6,
    /// `src/core/migrator.js`; EF Core 9, "Applying Migrations"; `ecto_sql` 3.12, `mix ecto.migrate`; Laravel 12,
    /// "Migrations".
    pub fn command(self) -> &'static str {
        match self {
            Self::Django => "python manage.py sqlmigrate APP MIGRATION | pgvet check -",
            Self::Alembic => "alembic upgrade head --sql | pgvet check -",
            Self::Rails => {
                "VERBOSE=false bin/rails runner 'ActiveSupport::Notifications.subscribe(\"sql.active_record\") { |event| \
                 puts event.payload[:sql] + \";\" unless event.payload[:name] == \"SCHEMA\" }; \
                 ActiveRecord::Tasks::DatabaseTasks.migrate' | pgvet check -"
            }
            Self::TypeOrm => "npx typeorm schema:log --dataSource src/data-source.ts",
            Self::Knex => "DEBUG=knex:query npx knex migrate:latest",
            Self::Sequelize => "npx sequelize-cli db:migrate",
            Self::EfCore => "dotnet ef migrations script --output migrations.sql && pgvet check migrations.sql",
            Self::Ecto => "mix ecto.migrate --log-migrations-sql",
            Self::Laravel => "php artisan migrate --pretend",
        }
    }

    /// A note about the command, as the end of a sentence.
    fn note(self) -> &'static str {
        match self {
            Self::Django => "names one migration",
            Self::Alembic => "prints all migrations; `BASE:HEAD` in place of `head` prints those after BASE",
            Self::Rails => "runs the pending migrations on the development database",
            Self::TypeOrm => "prints what the entities change; save the statements as a .sql file",
            Self::Knex | Self::Ecto => {
                "runs the pending migrations and prints each statement; save them as a .sql file"
            }
            Self::Sequelize => {
                "prints each statement if the configuration sets `logging: console.log`; save them as a .sql file"
            }
            Self::EfCore => "writes all migrations; `FROM` after `script` starts after that one",
            Self::Laravel => "prints the pending migrations without running them; save them as a .sql file",
        }
    }

    /// Returns the next step for a project without migrations in SQL.
    pub fn help(self) -> String {
        format!(
            "this is {} {} project, whose migrations are not SQL files; check the SQL that they run: `{}` ({})",
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
