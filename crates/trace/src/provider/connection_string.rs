//! How to reach a server: from a connection string, a service, the environment and the password file, as libpq does.
//!
//! Passwords never come from the connection string: other users see the arguments of a process.

use super::service::Service;
use crate::Error;
use crate::address::{Address, Verification, roots_file};
use std::env;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Reads `postgres://user@host:port/database` or `host=... dbname=...`. What it leaves open comes from the service that
/// it names, then from variables such as `PGHOST`, then from the password file.
pub fn parse_address(text: &str) -> Result<Address, Error> {
    let environment = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let (text, service) = take(text, "service");
    let service = match service.or_else(|| environment("PGSERVICE")) {
        Some(name) => Service::find(&name)?,
        None => Service::default(),
    };
    let variable = |name: &str| service.get(name).or_else(|| environment(name));
    let (text, verification) = ssl_mode(&text, variable("PGSSLMODE"), roots_file(&variable).is_some())?;
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
        let file = variable("PGPASSFILE").map(PathBuf::from);
        let file = file.or_else(|| env::home_dir().map(|home| home.join(".pgpass")));
        let entries = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        if let Some(password) = password(&entries, &config) {
            config.password(password);
        }
    }
    Address::new(config, verification, roots_file(&variable).as_deref())
}

/// Where the value of a key is in a connection string of either form.
fn place(text: &str, key: &str) -> Option<Range<usize>> {
    let ends_word = |before: &str| before.is_empty() || before.ends_with(['?', '&', ' ']);
    let (at, found) = text
        .match_indices(key)
        .find(|(at, found)| ends_word(&text[..*at]) && text[at + found.len()..].starts_with('='))?;
    let start = at + found.len() + 1;
    let length = text[start..].find(['&', ' ']).unwrap_or(text.len() - start);
    Some(start..start + length)
}

/// Takes a key out of a connection string that the driver does not know.
fn take(text: &str, key: &str) -> (String, Option<String>) {
    let Some(value) = place(text, key) else { return (text.to_owned(), None) };
    let name = text[value.clone()].trim_matches('\'').to_owned();
    let before = &text[..value.start - key.len() - 1];
    let after = text[value.end..].trim_start_matches(['&', ' ']);
    let rest = format!("{before}{after}");
    (rest.trim_end_matches(['?', '&', ' ']).to_owned(), Some(name))
}

/// Makes `sslmode` of a connection string one that the driver knows, for it knows less modes than libpq: the string,
/// and how far to verify the server.
fn ssl_mode(text: &str, otherwise: Option<String>, has_roots: bool) -> Result<(String, Verification), Error> {
    const KEY: &str = "sslmode";
    let place = place(text, KEY);
    let mode = place.clone().map(|place| text[place].to_owned()).or(otherwise);
    let (known, verification) = match mode.as_deref() {
        None | Some("prefer" | "allow") => ("prefer", Verification::None),
        Some("disable") => ("disable", Verification::None),
        // With certificates of authorities at hand, libpq looks at them for `require`, too.
        Some("require") if has_roots => ("require", Verification::Authority),
        Some("require") => ("require", Verification::None),
        Some("verify-ca") => ("require", Verification::Authority),
        Some("verify-full") => ("require", Verification::Name),
        Some(other) => return Err(Error::new(format!("`{other}` is no sslmode of PostgreSQL"))),
    };
    let text = match place {
        Some(place) => format!("{}{known}{}", &text[..place.start], &text[place.end..]),
        None if text.contains("://") && text.contains('?') => format!("{text}&{KEY}={known}"),
        None if text.contains("://") => format!("{text}?{KEY}={known}"),
        None => format!("{text} {KEY}={known}"),
    };
    Ok((text, verification))
}

/// Fills what the string leaves open from variables such as `PGHOST`.
fn complete(config: &mut Config, variable: &dyn Fn(&str) -> Option<String>) {
    let address = variable("PGHOSTADDR").and_then(|address| address.parse().ok());
    if config.get_hosts().is_empty() {
        match variable("PGHOST") {
            Some(host) => config.host(host),
            None if address.is_none() => config.host("/var/run/postgresql"),
            None => config,
        };
        if let Some(address) = address.filter(|_| config.get_hostaddrs().is_empty()) {
            config.hostaddr(address);
        }
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
    if let Some(options) = variable("PGOPTIONS").filter(|_| config.get_options().is_none()) {
        config.options(options);
    }
    if let Some(seconds) = variable("PGCONNECT_TIMEOUT").and_then(|seconds| seconds.parse().ok())
        && config.get_connect_timeout().is_none()
    {
        config.connect_timeout(Duration::from_secs(seconds));
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
        let mode = |text: &str, variable: Option<&str>| ssl_mode(text, variable.map(str::to_owned), false).unwrap();
        let full = ("postgres://h/d?sslmode=require&x=1".to_owned(), Verification::Name);
        assert_eq!(mode("postgres://h/d?sslmode=verify-full&x=1", Some("disable")), full);
        assert_eq!(mode("host=h", Some("verify-ca")), ("host=h sslmode=require".to_owned(), Verification::Authority));
        assert_eq!(mode("postgres://h/d", None), ("postgres://h/d?sslmode=prefer".to_owned(), Verification::None));
        assert_eq!(ssl_mode("host=h sslmode=require", None, true).unwrap().1, Verification::Authority);
        assert!(ssl_mode("host=h sslmode=maybe", None, false).unwrap_err().message.contains("`maybe`"));
    }

    #[test]
    fn the_service_is_taken_out_of_either_form() {
        let taken = |text: &str| take(text, "service");
        let app = || Some("app".to_owned());
        assert_eq!(taken("service=app"), (String::new(), app()));
        assert_eq!(taken("host=h service='app' dbname=d"), ("host=h dbname=d".to_owned(), app()));
        assert_eq!(taken("postgres:///d?service=app"), ("postgres:///d".to_owned(), app()));
        assert_eq!(taken("postgres:///d?service=app&x=1"), ("postgres:///d?x=1".to_owned(), app()));
        assert_eq!(taken("host=h my_service=app").1, None);
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
