//! Passwords that nobody has to be asked for: of the environment and of the password file.
//!
//! Source: PostgreSQL 18 documentation, 32.16; `passwordFromFile` in `src/interfaces/libpq/fe-connect.c`.

use super::connection_string::SOCKETS;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The password of `PGPASSWORD`, else of the password file.
pub(super) fn known(config: &Config) -> Option<String> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    variable("PGPASSWORD").or_else(|| in_file(variable("PGPASSFILE").as_deref(), config))
}

/// The password that a file has for an address; `~/.pgpass` unless another is named.
pub(super) fn in_file(file: Option<&str>, config: &Config) -> Option<String> {
    let file = file.map(PathBuf::from).or_else(|| env::home_dir().map(|home| home.join(".pgpass")))?;
    in_entries(&fs::read_to_string(file).ok()?, config)
}

/// The password of the first line `host:port:database:user:password` that fits; `*` fits everything.
fn in_entries(entries: &str, config: &Config) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(folder)) if !SOCKETS.iter().any(|known| folder == Path::new(known)) => {
            folder.display().to_string()
        }
        None if !config.get_hostaddrs().is_empty() => config.get_hostaddrs()[0].to_string(),
        _ => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let wanted = [&host, &port, config.get_dbname().unwrap_or_default(), config.get_user().unwrap_or_default()];
    let fits = |fields: &Vec<String>| {
        fields.len() == 5 && wanted.iter().zip(fields).all(|(wanted, field)| field == "*" || field == wanted)
    };
    entries.lines().filter(|line| !line.starts_with('#')).map(fields).find(fits)?.pop()
}

/// Fields between colons; a backslash takes the next character as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let character = match character {
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                continue;
            }
            '\\' => characters.next().unwrap_or('\\'),
            other => other,
        };
        if let Some(last) = fields.last_mut() {
            last.push(character);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;

    #[test]
    fn the_first_line_of_the_password_file_that_fits_counts() {
        let config = Config::from_str("host=db port=5433 user=app dbname=shop").unwrap();
        let entries = "# comment\ndb:5432:*:*:wrong\ndb:*:shop:app:se\\:cret\n*:*:*:*:other\n";
        assert_eq!(in_entries(entries, &config).as_deref(), Some("se:cret"));
        assert_eq!(in_entries("other:*:*:*:x", &config), None);
    }

    #[test]
    fn a_socket_is_localhost_only_in_its_usual_folder() {
        let entries = "localhost:*:*:*:usual\n/srv/sockets:*:*:*:other\n";
        let of_host = |host| in_entries(entries, &Config::from_str(&format!("host={host} user=u dbname=d")).unwrap());
        assert_eq!(of_host("/var/run/postgresql").as_deref(), Some("usual"));
        assert_eq!(of_host("/srv/sockets").as_deref(), Some("other"));
        assert_eq!(of_host("/srv"), None);
    }
}
