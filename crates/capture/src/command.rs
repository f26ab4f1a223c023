//! The command, and how it learns where the database is.

use pgvet_trace::Error;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use tokio::process::{Child, Command};

/// The address of the database in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub database: String,
}

impl Place {
    /// The parts with the names that templates use.
    fn parts(&self) -> [(&'static str, String); 6] {
        [
            ("{url}", self.url()),
            ("{host}", self.host.clone()),
            ("{port}", self.port.to_string()),
            ("{user}", self.user.clone()),
            ("{password}", self.password.clone()),
            ("{database}", self.database.clone()),
        ]
    }

    /// The address as a URL, which most tools read.
    pub fn url(&self) -> String {
        let Self { host, port, user, password, database } = self;
        format!("postgresql://{user}:{password}@{host}:{port}/{database}?sslmode=disable")
    }

    /// The address without its password, for messages.
    pub fn shown(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// A template with its placeholders replaced.
    pub fn fill(&self, template: &str) -> String {
        let fill = |text: String, (name, value): &(&str, String)| text.replace(name, value);
        self.parts().iter().fold(template.to_owned(), fill)
    }

    /// The variables that programs of PostgreSQL and most frameworks read.
    pub fn variables(&self) -> [(&'static str, String); 7] {
        [
            ("DATABASE_URL", self.url()),
            ("PGHOST", self.host.clone()),
            ("PGPORT", self.port.to_string()),
            ("PGUSER", self.user.clone()),
            ("PGPASSWORD", self.password.clone()),
            ("PGDATABASE", self.database.clone()),
            ("PGSSLMODE", "disable".to_owned()),
        ]
    }
}

/// Variables that would lead libpq elsewhere, or make it ask for what the private server does not offer: encryption, a
/// password, a standby.
///
/// Source: PostgreSQL 18 documentation, 32.15, "Environment Variables".
const MISLEADING: [&str; 11] = [
    "PGHOSTADDR",
    "PGSERVICE",
    "PGSERVICEFILE",
    "PGPASSFILE",
    "PGREQUIREAUTH",
    "PGCHANNELBINDING",
    "PGREQUIRESSL",
    "PGSSLNEGOTIATION",
    "PGGSSENCMODE",
    "PGTARGETSESSIONATTRS",
    "PGMINPROTOCOLVERSION",
];

/// Starts the command with the address in its environment and arguments. Its input and output are ours.
pub(crate) fn start(
    command: &[OsString],
    folder: &Path,
    variables: &[(String, String)],
    place: &Place,
) -> Result<Child, Error> {
    let [program, arguments @ ..] = command else { return Err(Error::new("a command is missing")) };
    let fill = |text: &OsString| text.to_str().map_or_else(|| text.clone(), |text| place.fill(text).into());
    let mut started = Command::new(program);
    started.args(arguments.iter().map(fill)).envs(place.variables()).current_dir(folder);
    for name in MISLEADING {
        started.env_remove(name);
    }
    started.envs(variables.iter().map(|(name, template)| (name, place.fill(template))));
    started.kill_on_drop(true);
    started.spawn().map_err(|error| cannot_run(program, &error))
}

fn cannot_run(program: &OsStr, error: &std::io::Error) -> Error {
    let refused = Error::new(format!("cannot run `{}`: {error}", program.to_string_lossy()));
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            refused.help("write the command as you run it in this folder: `pgvet capture -- python manage.py migrate`")
        }
        _ => refused,
    }
}

/// The command as a person would type it, for messages.
pub fn shown(command: &[OsString]) -> String {
    let word = |word: &OsString| {
        let word = word.to_string_lossy();
        let is_plain = |one: char| one.is_ascii_alphanumeric() || "-_./:=@,+{}".contains(one);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_name_the_parts_of_the_address() {
        let place = Place {
            host: "127.0.0.1".to_owned(),
            port: 5555,
            user: "postgres".to_owned(),
            password: "pgvet".to_owned(),
            database: "pgvet_1".to_owned(),
        };
        assert_eq!(
            place.fill("postgresql+psycopg://{user}:{password}@{host}:{port}/{database}"),
            "postgresql+psycopg://postgres:pgvet@127.0.0.1:5555/pgvet_1"
        );
        assert_eq!(place.fill("{url}"), "postgresql://postgres:pgvet@127.0.0.1:5555/pgvet_1?sslmode=disable");
        assert_eq!(place.fill("{other} {"), "{other} {");
    }

    #[test]
    fn commands_are_shown_as_a_shell_reads_them() {
        let words = ["npx", "knex", "migrate:latest", "--name=it's", ""].map(OsString::from);
        assert_eq!(shown(&words), r"npx knex migrate:latest '--name=it'\''s' ''");
    }
}
