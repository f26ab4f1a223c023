//! How to reach a server: from a connection string, the environment and the password file, as libpq does.
//!
//! Passwords never come from the connection string: other users see the arguments of a process.

use crate::Error;
use crate::address::{Address, Verification, roots_file};
use std::env;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Reads `postgres://user@host:port/database` or `host=... dbname=...`.
pub fn parse_address(text: &str) -> Result<Address, Error> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let (text, verification) = ssl_mode(text, variable("PGSSLMODE"))?;
    let help = "expected postgres://USER@HOST:PORT/DATABASE or host=HOST dbname=DATABASE";
    // The text itself may hold a password, so it is not repeated.
    let mut config = Config::from_str(&text)
        .map_err(|error| Error::new(format!("the connection string is not understood: {error}")).help(help))?;
    if config.get_password().is_some() {
        return Err(Error::new("the connection string holds a password, which other users of this machine can see")
            .help("leave it out, and set PGPASSWORD or write it into ~/.pgpass"));
    }
    complete(&mut config, &variable);
    if config.get_password().is_none() {
        let file = env::var_os("PGPASSFILE").map(PathBuf::from);
        let file = file.or_else(|| env::home_dir().map(|home| home.join(".pgpass")));
        let entries = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        if let Some(password) = password(&entries, &config) {
            config.password(password);
        }
    }
    Address::new(config, verification, roots_file().as_deref())
}

/// Takes `sslmode` out of a connection string, for the driver knows less modes than libpq: the string with one that it
/// knows, and how far to verify the server.
fn ssl_mode(text: &str, from_environment: Option<String>) -> Result<(String, Verification), Error> {
    const KEY: &str = "sslmode=";
    let place = text.find(KEY).map(|at| {
        let start = at + KEY.len();
        let length = text[start..].find(['&', ' ']).unwrap_or(text.len() - start);
        start..start + length
    });
    let mode = place.clone().map(|place| text[place].to_owned()).or(from_environment);
    let (known, verification) = match mode.as_deref() {
        None | Some("prefer" | "allow") => ("prefer", Verification::None),
        Some("disable") => ("disable", Verification::None),
        // With certificates of authorities at hand, libpq looks at them for `require`, too.
        Some("require") if roots_file().is_some() => ("require", Verification::Authority),
        Some("require") => ("require", Verification::None),
        Some("verify-ca") => ("require", Verification::Authority),
        Some("verify-full") => ("require", Verification::Name),
        Some(other) => return Err(Error::new(format!("`{other}` is no sslmode of PostgreSQL"))),
    };
    let text = match place {
        Some(place) => format!("{}{known}{}", &text[..place.start], &text[place.end..]),
        None if text.contains("://") && text.contains('?') => format!("{text}&{KEY}{known}"),
        None if text.contains("://") => format!("{text}?{KEY}{known}"),
        None => format!("{text} {KEY}{known}"),
    };
    Ok((text, verification))
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
    fn modes_of_libpq_become_those_of_the_driver() {
        let mode = |text: &str, variable: Option<&str>| ssl_mode(text, variable.map(str::to_owned)).unwrap();
        let full = ("postgres://h/d?sslmode=require&x=1".to_owned(), Verification::Name);
        assert_eq!(mode("postgres://h/d?sslmode=verify-full&x=1", Some("disable")), full);
        assert_eq!(mode("host=h", Some("verify-ca")), ("host=h sslmode=require".to_owned(), Verification::Authority));
        assert_eq!(mode("postgres://h/d", None), ("postgres://h/d?sslmode=prefer".to_owned(), Verification::None));
        assert!(ssl_mode("host=h sslmode=maybe", None).unwrap_err().message.contains("`maybe`"));
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
