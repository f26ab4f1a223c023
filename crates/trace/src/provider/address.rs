//! How to reach a server: from a connection string, the environment and the password file, as libpq does.
//!
//! Passwords never come from the connection string: other users see the arguments of a process.

use crate::Error;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Reads `postgres://user@host:port/database` or `host=... dbname=...`.
pub fn parse_address(text: &str) -> Result<Config, Error> {
    let help = "expected postgres://USER@HOST:PORT/DATABASE or host=HOST dbname=DATABASE";
    // The text itself may hold a password, so it is not repeated.
    let mut config = Config::from_str(text)
        .map_err(|error| Error::new(format!("the connection string is not understood: {error}")).help(help))?;
    if config.get_password().is_some() {
        return Err(Error::new("the connection string holds a password, which other users of this machine can see")
            .help("leave it out, and set PGPASSWORD or write it into ~/.pgpass"));
    }
    complete(&mut config, &|name| env::var(name).ok().filter(|value| !value.is_empty()));
    if config.get_password().is_none() {
        let file = env::var_os("PGPASSFILE").map(PathBuf::from);
        let file = file.or_else(|| env::home_dir().map(|home| home.join(".pgpass")));
        let entries = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        if let Some(password) = password(&entries, &config) {
            config.password(password);
        }
    }
    Ok(config)
}

/// Fills what the string leaves open from variables such as `PGHOST`.
fn complete(config: &mut Config, variable: &dyn Fn(&str) -> Option<String>) {
    if config.get_hosts().is_empty() {
        match variable("PGHOST") {
            Some(host) => config.host(host),
            None => config.host("/var/run/postgresql"),
        };
    }
    if config.get_ports().is_empty()
        && let Some(port) = variable("PGPORT").and_then(|port| port.parse().ok())
    {
        config.port(port);
    }
    if config.get_user().is_none() {
        let user = variable("PGUSER").or_else(|| variable("USER"));
        config.user(user.unwrap_or_else(|| "postgres".to_owned()));
    }
    if config.get_dbname().is_none() {
        let database = variable("PGDATABASE").or_else(|| config.get_user().map(str::to_owned));
        config.dbname(database.unwrap_or_default());
    }
    if let Some(password) = variable("PGPASSWORD") {
        config.password(password);
    }
}

/// The password of the first line `host:port:database:user:password` that fits; `*` fits everything.
fn password(entries: &str, config: &Config) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
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

    #[test]
    fn a_password_in_the_string_is_refused_and_not_repeated() {
        let error = parse_address("postgres://app:secret@localhost/app").unwrap_err().to_string();
        assert!(error.contains("PGPASSWORD") && !error.contains("secret"), "{error}");
        let error = parse_address("host=localhost password").unwrap_err().to_string();
        assert!(error.contains("expected postgres://"), "{error}");
    }

    #[test]
    fn the_environment_fills_what_is_left_open() {
        let variable = |name: &str| match name {
            "PGHOST" => Some("db.example".to_owned()),
            "PGPORT" => Some("6543".to_owned()),
            "PGUSER" => Some("app".to_owned()),
            _ => None,
        };
        let mut config = Config::from_str("dbname=shop").unwrap();
        complete(&mut config, &variable);
        assert_eq!(config.get_hosts(), [Host::Tcp("db.example".to_owned())]);
        assert_eq!(
            (config.get_ports(), config.get_user(), config.get_dbname()),
            (&[6543][..], Some("app"), Some("shop"))
        );
    }

    #[test]
    fn the_first_line_of_the_password_file_that_fits_counts() {
        let config = Config::from_str("host=db port=5433 user=app dbname=shop").unwrap();
        let entries = "# comment\ndb:5432:*:*:wrong\ndb:*:shop:app:se\\:cret\n*:*:*:*:other\n";
        assert_eq!(password(entries, &config).as_deref(), Some("se:cret"));
        assert_eq!(password("other:*:*:*:x", &config), None);
    }
}
