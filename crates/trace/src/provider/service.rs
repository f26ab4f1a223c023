//! Services: connection parameters under a name, in `pg_service.conf`.
//!
//! Source: PostgreSQL 18 documentation, 32.17; `parseServiceFile` in `src/interfaces/libpq/fe-connect.c`.

use super::connection_string::Environment;
use super::parameters::Parameters;
use crate::Error;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

const FILE: &str = "pg_service.conf";

/// Where packages expect the system's file, unless `PGSYSCONFDIR` names a folder.
const SYSTEM: [&str; 3] = ["/etc/postgresql-common", "/etc/sysconfig/pgsql", "/etc"];

/// The service of that name: in the user's file, else in that of the system.
pub(super) fn find(name: &str, environment: Environment<'_>) -> Result<Parameters, Error> {
    for file in files(environment)?.into_iter().filter(|file| file.exists()) {
        let cannot = |error: std::io::Error| Error::new(format!("cannot read `{}`: {error}", file.display()));
        let text = fs::read_to_string(&file).map_err(cannot)?;
        if let Some(service) = in_file(&text, name, &file)? {
            return Ok(service);
        }
    }
    Err(Error::new(format!("there is no service `{name}`"))
        .help("services are in ~/.pg_service.conf, or in the file that PGSERVICEFILE names"))
}

/// Where services are searched for, in that order.
fn files(environment: Environment<'_>) -> Result<Vec<PathBuf>, Error> {
    let named = environment("PGSERVICEFILE").map(PathBuf::from);
    if let Some(file) = named.as_ref().filter(|file| !file.exists()) {
        let shown = file.display();
        return Err(Error::new(format!("there is no service file `{shown}`, which PGSERVICEFILE names")));
    }
    let own = named.or_else(|| env::home_dir().map(|home| home.join(".pg_service.conf")));
    let system = match environment("PGSYSCONFDIR") {
        Some(folder) => vec![PathBuf::from(folder)],
        None => SYSTEM.map(PathBuf::from).into(),
    };
    Ok(own.into_iter().chain(system.into_iter().map(|folder| folder.join(FILE))).collect())
}

fn in_file(text: &str, name: &str, file: &Path) -> Result<Option<Parameters>, Error> {
    let mut found: Option<Parameters> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            found = (section.trim_end_matches(']') == name).then(Parameters::default);
            continue;
        }
        let Some(service) = &mut found else { continue };
        let wrong = |what: &str| Error::new(format!("`{}`, line {}: {what}", file.display(), number + 1));
        let (parameter, value) = line.split_once('=').ok_or_else(|| wrong("expected name=value"))?;
        if parameter.trim() == "service" {
            return Err(wrong("a service cannot name another service"));
        }
        service.set(parameter.trim(), value.trim()).map_err(|error| wrong(&error.message))?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# ours\n[test]\nhost=other\n\n[app]\nhost = db.example\nport=6543\n# more\nuser=ann\n[last]\nnonsense\n";

    fn service(name: &str) -> Result<Option<Parameters>, Error> {
        in_file(TEXT, name, Path::new(FILE))
    }

    #[test]
    fn a_service_is_its_own_section_and_no_other() {
        let app = service("app").unwrap().unwrap();
        let values = ["host", "port", "user", "dbname"].map(|name| app.get(name));
        assert_eq!(values, [Some("db.example"), Some("6543"), Some("ann"), None]);
        assert!(service("missing").unwrap().is_none());
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        let message = |text: &str| in_file(text, "a", Path::new("f")).err().unwrap().message;
        assert_eq!(message("[a]\nnonsense\n"), "`f`, line 2: expected name=value");
        assert_eq!(message("[a]\nservice=b\n"), "`f`, line 2: a service cannot name another service");
        assert_eq!(message("[a]\nhost=h\nhots=b\n"), "`f`, line 3: there is no connection parameter `hots`");
    }

    #[test]
    fn the_folder_of_the_environment_takes_the_place_of_those_of_the_system() {
        let of_system = |variables: &'static [(&str, &str)]| {
            let environment =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            let files = files(&environment).unwrap();
            files.into_iter().filter(|file| file.ends_with(FILE)).collect::<Vec<_>>()
        };
        assert_eq!(of_system(&[("PGSYSCONFDIR", "/srv")]), [Path::new("/srv/pg_service.conf")]);
        assert_eq!(of_system(&[]).len(), SYSTEM.len());
    }
}
