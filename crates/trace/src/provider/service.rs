//! Services: connection parameters under a name, in `pg_service.conf`.
//!
//! Source: PostgreSQL 18 documentation, 32.17; `parseServiceFile` in `src/interfaces/libpq/fe-connect.c`.

use crate::Error;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The parameters of one service, by libpq's names.
#[derive(Default)]
pub(super) struct Service {
    parameters: BTreeMap<String, String>,
}

/// The variable that stands for a parameter, for those that are used here.
const VARIABLES: [(&str, &str); 10] = [
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGPORT", "port"),
    ("PGUSER", "user"),
    ("PGDATABASE", "dbname"),
    ("PGPASSWORD", "password"),
    ("PGPASSFILE", "passfile"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGOPTIONS", "options"),
];

/// Where packages expect the system's file, after `PGSYSCONFDIR`.
const SYSTEM: [&str; 3] = ["/etc/postgresql-common", "/etc/sysconfig/pgsql", "/etc"];

impl Service {
    /// The service of that name: in the user's file, else in that of the system.
    pub(super) fn find(name: &str) -> Result<Self, Error> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let named = variable("PGSERVICEFILE");
        if let Some(file) = named.as_ref().filter(|file| !file.exists()) {
            return Err(Error::new(format!(
                "there is no service file `{}`, which PGSERVICEFILE names",
                file.display()
            )));
        }
        let own = named.or_else(|| env::home_dir().map(|home| home.join(".pg_service.conf")));
        let system = variable("PGSYSCONFDIR").into_iter().chain(SYSTEM.map(PathBuf::from));
        let files = own.into_iter().chain(system.map(|folder| folder.join("pg_service.conf")));
        for file in files.filter(|file| file.exists()) {
            let cannot = |error: std::io::Error| Error::new(format!("cannot read `{}`: {error}", file.display()));
            let text = fs::read_to_string(&file).map_err(cannot)?;
            if let Some(service) = Self::in_file(&text, name, &file)? {
                return Ok(service);
            }
        }
        Err(Error::new(format!("there is no service `{name}`"))
            .help("services are in ~/.pg_service.conf, or in the file that PGSERVICEFILE names"))
    }

    fn in_file(text: &str, name: &str, file: &Path) -> Result<Option<Self>, Error> {
        let mut found: Option<Self> = None;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(section) = line.strip_prefix('[') {
                if found.is_some() {
                    break;
                }
                found = (section.trim_end_matches(']') == name).then(Self::default);
                continue;
            }
            let Some(service) = &mut found else { continue };
            let wrong = || Error::new(format!("`{}`, line {}: expected name=value", file.display(), number + 1));
            let (parameter, value) = line.split_once('=').ok_or_else(wrong)?;
            if parameter.trim() == "service" {
                let place = format!("`{}`, line {}", file.display(), number + 1);
                return Err(Error::new(format!("{place}: a service cannot name another service")));
            }
            service.parameters.insert(parameter.trim().to_owned(), value.trim().to_owned());
        }
        Ok(found)
    }

    /// The value that it has for a variable such as `PGHOST`.
    pub(super) fn get(&self, variable: &str) -> Option<String> {
        let (_, parameter) = VARIABLES.iter().find(|(name, _)| *name == variable)?;
        self.parameters.get(*parameter).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "# ours\n[test]\nhost=other\n\n[app]\nhost = db.example\nport=6543\n# more\nuser=ann\n[last]\nnonsense\n";

    fn service(name: &str) -> Result<Option<Service>, Error> {
        Service::in_file(FILE, name, Path::new("pg_service.conf"))
    }

    #[test]
    fn a_service_is_its_own_section_and_no_other() {
        let app = service("app").unwrap().unwrap();
        let values = ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE"].map(|name| app.get(name));
        let expected = [Some("db.example"), Some("6543"), Some("ann"), None];
        assert_eq!(values, expected.map(|value| value.map(str::to_owned)));
        assert!(service("missing").unwrap().is_none());
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        let message = service("last").err().unwrap().message;
        assert_eq!(message, "`pg_service.conf`, line 11: expected name=value");
        let nested = Service::in_file("[a]\nservice=b\n", "a", Path::new("f")).err().unwrap().message;
        assert!(nested.contains("line 2"), "{nested}");
    }
}
