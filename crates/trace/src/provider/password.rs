//! Passwords that nobody has to be asked for.
//!
//! Source: PostgreSQL 18 documentation, 32.16; `passwordFromFile` in `src/interfaces/libpq/fe-connect.c`.

use super::connection_string::SOCKETS;
use crate::Error;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The password that is given, or else that of a password file: `~/.pgpass` unless another is named.
pub(super) fn known(given: Option<&str>, file: Option<&str>, config: &Config) -> Result<Option<String>, Error> {
    if let Some(given) = given {
        return Ok(Some(given.to_owned()));
    }
    let file = file.map(PathBuf::from).or_else(|| env::home_dir().map(|home| home.join(".pgpass")));
    let Some((file, entries)) = file.and_then(|file| fs::read_to_string(&file).ok().map(|entries| (file, entries)))
    else {
        return Ok(None);
    };
    let found = in_entries(&entries, config);
    if found.is_some() && others_may_read(&file) {
        let message = format!("the password file `{}` is open to other users", file.display());
        return Err(Error::new(message).help("remove their permissions: chmod 600"));
    }
    Ok(found)
}

/// libpq leaves such a file alone, and says so.
#[cfg(unix)]
fn others_may_read(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn others_may_read(_: &Path) -> bool {
    false
}

/// The password of the first line `host:port:database:user:password` that fits; `*` fits everything.
fn in_entries(entries: &str, config: &Config) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(folder)) if !SOCKETS.iter().any(|known| folder == Path::new(known)) => {
            folder.display().to_string()
        }
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

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_refused_and_what_is_given_goes_before() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("passwords");
        fs::write(&file, "h:*:*:*:of-file\n").unwrap();
        let shown = file.display().to_string();
        let config = Config::from_str("host=h user=u dbname=d").unwrap();
        let with_mode = |mode| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            known(None, Some(&shown), &config)
        };
        assert_eq!(with_mode(0o600).unwrap().as_deref(), Some("of-file"));
        assert!(with_mode(0o640).is_err_and(|error| error.message.contains("open to other users")));
        assert_eq!(known(Some("given"), Some(&shown), &config).unwrap().as_deref(), Some("given"));
        let other = Config::from_str("host=other user=u dbname=d").unwrap();
        assert_eq!(known(None, Some(&shown), &other).unwrap(), None);
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
