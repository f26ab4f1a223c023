//! The commands that show the SQL of projects whose migrations are programs, or that have none.

use super::{Found, Framework, find_below, mentions};
use crate::config::absolute;
use crate::problem::display;
use crate::read;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of levels below a project at which its configuration is searched.
const LEVELS: usize = 4;

/// Maximum number of folders that are examined for it.
const FOLDERS: usize = 200;

const KNEXFILES: [&str; 4] = ["knexfile.js", "knexfile.ts", "knexfile.cjs", "knexfile.mjs"];

impl Found {
    /// Returns the command that captures what its migrations send, or that writes them as SQL if the project has none.
    ///
    /// Sources: Django 5.2, `migrate`; Alembic 1.16, "Multiple Heads"; Flask-Migrate 4, "Command Reference"; Rails 8.0,
    /// "Configuring a Database"; `TypeORM` 0.3, "Using CLI"; Knex 3.1, "Migration CLI"; sequelize-cli 6.6,
    /// `src/helpers/config-helper.js`; EF Core 9, `dotnet ef database update`; `ecto_sql` 3.12, `mix ecto.migrate`;
    /// Laravel 12, "Configuration Using URLs"; Prisma 6, `prisma migrate dev`; drizzle-kit 0.31, `generate`.
    pub fn command(&self) -> String {
        let folder = &self.folder;
        let captured = |command: &str| format!("pgvet capture -- {command}");
        let command = match self.framework {
            Framework::Django => captured("python manage.py migrate"),
            Framework::Alembic => captured("alembic upgrade heads"),
            Framework::FlaskMigrate => captured(&format!("flask db upgrade{} heads", directory_of_flask(folder))),
            Framework::Rails => captured(&format!("{} db:migrate", rails(folder))),
            Framework::TypeOrm => captured(&typeorm(folder)),
            Framework::Knex => captured(&knex(folder)),
            Framework::Sequelize => captured("npx sequelize-cli db:migrate --url {url}"),
            Framework::EfCore => captured(
                "dotnet ef database update --connection \
                 'Host={host};Port={port};Username={user};Password={password};Database={database}'",
            ),
            Framework::Ecto => captured("mix ecto.migrate"),
            Framework::Laravel => {
                "pgvet capture --env DB_CONNECTION=pgsql --env DB_URL={url} -- php artisan migrate".to_owned()
            }
            Framework::PrismaPush => "npx prisma migrate dev --create-only".to_owned(),
            Framework::DrizzlePush => "npx drizzle-kit generate".to_owned(),
        };
        match from_current(folder) {
            Some(relative) => format!("cd {} && {command}", quoted(&relative)),
            None => command,
        }
    }
}

/// The program that runs tasks of a project with a `Gemfile`. Without an application of Rails, it is Rake.
fn rails(folder: &Path) -> &'static str {
    if folder.join("bin/rails").exists() {
        "bin/rails"
    } else if folder.join("config/application.rb").exists() {
        "bundle exec rails"
    } else {
        "bundle exec rake"
    }
}

/// The option that names the folder of the migrations, unless it is `migrations`.
fn directory_of_flask(folder: &Path) -> String {
    let is_there = |path: &Path| {
        let is_file = path.file_name().is_some_and(|name| name == "alembic.ini");
        is_file && path.parent().is_some_and(super::is_of_flask_migrate)
    };
    let found = file_below(folder, is_there);
    let migrations = found.as_deref().and_then(Path::parent).filter(|own| **own != folder.join("migrations"));
    migrations.map(|own| format!(" --directory {}", below(folder, own))).unwrap_or_default()
}

/// A data source in TypeScript needs the command for its kind of modules.
fn typeorm(folder: &Path) -> String {
    let is_source = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let is_code = matches!(extension, "ts" | "mts" | "cts" | "js" | "mjs" | "cjs");
        is_code && read::text(path).is_ok_and(|text| text.contains("new DataSource("))
    };
    let Some(source) = file_below(folder, is_source) else {
        return "npx typeorm migration:run -d DATA-SOURCE".to_owned();
    };
    let is_typescript = source.extension().is_some_and(|extension| extension.to_string_lossy().ends_with("ts"));
    let program = match (is_typescript, mentions(folder, "package.json", "\"type\": \"module\"")) {
        (false, _) => "typeorm",
        (true, false) => "typeorm-ts-node-commonjs",
        (true, true) => "typeorm-ts-node-esm",
    };
    format!("npx {program} migration:run -d {}", below(folder, &source))
}

/// Knex finds its configuration only in the current folder.
fn knex(folder: &Path) -> String {
    let is_knexfile = |path: &Path| path.file_name().is_some_and(|name| KNEXFILES.iter().any(|known| name == *known));
    let knexfile = file_below(folder, is_knexfile).filter(|path| path.parent() != Some(folder));
    let option = knexfile.map(|path| format!(" --knexfile {}", below(folder, &path))).unwrap_or_default();
    format!("npx knex migrate:latest{option}")
}

pub(super) fn has_knexfile(folder: &Path) -> bool {
    KNEXFILES.iter().any(|name| folder.join(name).exists())
}

fn below(folder: &Path, path: &Path) -> String {
    quoted(&display(path.strip_prefix(folder).unwrap_or(path)))
}

/// The first file in or below a folder that is wanted, the outermost first.
fn file_below(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    find_below(folder, LEVELS, FOLDERS, |folder| {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let files = entries.map(|entry| entry.path()).filter(|path| path.is_file() && is_wanted(path));
        files.min()
    })
}

/// The path from the current folder, if it is another one.
fn from_current(folder: &Path) -> Option<String> {
    let current = absolute(Path::new(""));
    if let Ok(below) = folder.strip_prefix(&current) {
        return (!below.as_os_str().is_empty()).then(|| display(below));
    }
    match current.strip_prefix(folder) {
        Ok(inside) => Some(vec![".."; inside.components().count()].join("/")),
        Err(_) => Some(display(folder)),
    }
}

/// The text as one word for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |one: char| one.is_alphanumeric() || matches!(one, '/' | '.' | '_' | '-');
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::super::around;
    use super::*;

    fn command(files: &[(&str, &str)]) -> String {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let command = around(root.path()).unwrap().command();
        command.replace(&display(root.path()), "ROOT")
    }

    #[test]
    fn commands_name_the_files_of_the_project() {
        let typeorm = ("package.json", r#"{"dependencies": {"typeorm": "0.3"}}"#);
        let module = ("package.json", "{\"type\": \"module\", \"dependencies\": {\"typeorm\": \"0.3\"}}");
        let source = "export const source = new DataSource({})";
        let knex = ("package.json", r#"{"dependencies": {"knex": "3"}}"#);
        let gemfile = [("Gemfile", ""), ("db/migrate/1_a.rb", "")];
        for (files, expected) in [
            (
                &[typeorm, ("src/db/source.ts", source)][..],
                "npx typeorm-ts-node-commonjs migration:run -d src/db/source.ts",
            ),
            (&[module, ("data source.ts", source)], "npx typeorm-ts-node-esm migration:run -d 'data source.ts'"),
            (&[typeorm, ("src/source.js", source)], "npx typeorm migration:run -d src/source.js"),
            (&[typeorm], "npx typeorm migration:run -d DATA-SOURCE"),
            (&[knex, ("knexfile.ts", "")], "npx knex migrate:latest"),
            (&[knex, ("src/db/knexfile.ts", "")], "npx knex migrate:latest --knexfile src/db/knexfile.ts"),
            (&gemfile, "bundle exec rake db:migrate"),
            (&[gemfile[0], gemfile[1], ("config/application.rb", "")], "bundle exec rails db:migrate"),
            (&[gemfile[0], gemfile[1], ("bin/rails", "")], "bin/rails db:migrate"),
            (
                &[("migrations/alembic.ini", ""), ("migrations/env.py", "from flask import current_app")],
                "flask db upgrade heads",
            ),
            (
                &[("db/schema/alembic.ini", ""), ("db/schema/env.py", "import current_app"), ("app.py", "")],
                "flask db upgrade --directory db/schema heads",
            ),
            (&[("alembic.ini", "")], "alembic upgrade heads"),
        ] {
            assert_eq!(command(files), format!("cd ROOT && pgvet capture -- {expected}"));
        }
        assert_eq!(
            command(&[("backend/manage.py", "")]),
            "cd ROOT/backend && pgvet capture -- python manage.py migrate"
        );
        assert_eq!(
            command(&[("prisma/schema.prisma", "provider = \"postgresql\"")]),
            "cd ROOT && npx prisma migrate dev --create-only"
        );
    }
}
