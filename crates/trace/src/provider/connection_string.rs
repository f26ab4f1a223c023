//! How to reach a server: from a connection string, a service, the environment and the password file, as libpq does.
//!
//! Passwords never come from the connection string: other users see the arguments of a process.

use super::parameters::Parameters;
use super::{password, service};
use crate::Error;
use crate::address::Address;
use crate::certificate::Verification;
use std::env;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

/// Where servers have their sockets, as Debian and others build them, and as PostgreSQL itself does.
pub(super) const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Values of variables of the environment.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads `postgres://user@host:port/database` or `host=... dbname=...`. What it leaves open comes from the service that
/// it names, then from variables such as `PGHOST`, then from the password file.
pub fn parse_address(text: &str) -> Result<Address, Error> {
    address(&parameters(text, &variable)?)
}

/// The environment of the program; an empty variable says nothing.
pub(super) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn parameters(text: &str, environment: Environment<'_>) -> Result<Parameters, Error> {
    let mut parameters = Parameters::parse(text)?;
    let service = parameters.get("service").map(str::to_owned).or_else(|| environment("PGSERVICE"));
    if let Some(name) = service {
        parameters.complete(service::find(&name, environment)?);
    }
    parameters.complete(Parameters::of_environment(environment));
    let socket = || SOCKETS.into_iter().find(|folder| Path::new(folder).exists()).unwrap_or(SOCKETS[0]).to_owned();
    // The driver asks for a name where it encrypts.
    parameters.set_default("host", |given| given.get("hostaddr").map_or_else(socket, str::to_owned));
    parameters.set_default("user", |_| environment("USER").unwrap_or_else(|| "postgres".to_owned()));
    parameters.set_default("dbname", |parameters| parameters.get("user").unwrap_or_default().to_owned());
    Ok(parameters)
}

fn address(parameters: &Parameters) -> Result<Address, Error> {
    let Protection { mode, verification, roots } = Protection::new(parameters)?;
    let given = parameters.for_driver(mode == SslMode::Disable)?;
    let mut config = Config::from_str(&given).map_err(|error| Error::from_postgres(&error))?;
    config.ssl_mode(mode);
    if let Some(milliseconds) = parameters.get("tcp_user_timeout") {
        let milliseconds = milliseconds.trim().parse();
        let wrong = |_| Error::new("the connection parameter `tcp_user_timeout` is not a number of milliseconds");
        config.tcp_user_timeout(Duration::from_millis(milliseconds.map_err(wrong)?));
    }
    if let Some(password) = password::known(parameters.get("password"), parameters.get("passfile"), &config)? {
        config.password(password);
    }
    Address::new(config, verification, roots.as_deref())
}

/// The encryption that `sslmode` and `sslrootcert` request, in terms of the driver.
#[derive(Debug, PartialEq, Eq)]
struct Protection {
    mode: SslMode,
    verification: Verification,
    /// Certificates of authorities; else those that browsers trust.
    roots: Option<PathBuf>,
}

impl Protection {
    /// Source: PostgreSQL 18 documentation, 32.1.2 and 32.19.1; `initialize_SSL` in
    /// `src/interfaces/libpq/fe-secure-openssl.c`.
    fn new(parameters: &Parameters) -> Result<Self, Error> {
        let hosts = parameters.get("host").filter(|_| parameters.get("hostaddr").is_none());
        let (given, roots) = (parameters.get("sslmode"), parameters.get("sslrootcert"));
        let system = roots == Some("system");
        let mode = given.unwrap_or(if system { "verify-full" } else { "prefer" });
        if !["disable", "allow", "prefer", "require", "verify-ca", "verify-full"].contains(&mode) {
            return Err(Error::new(format!("`{mode}` is not an sslmode of PostgreSQL")));
        }
        // Nothing is encrypted on a socket.
        let plain = Self { mode: SslMode::Disable, verification: Verification::None, roots: None };
        if hosts.is_some_and(|hosts| hosts.split(',').all(|host| host.starts_with('/'))) {
            return Ok(plain);
        }
        if system && mode != "verify-full" {
            return Err(Error::new(format!("sslmode `{mode}` is too weak for sslrootcert=system"))
                .help("public authorities issue certificates for any host, so the host name must be verified: use sslmode=verify-full"));
        }
        let file = roots.map(PathBuf::from);
        let file = file.or_else(|| env::home_dir().map(|home| home.join(".postgresql/root.crt")));
        let roots = file.clone().filter(|file| !system && file.exists());
        let verification = match mode {
            "verify-full" => Verification::Name,
            "verify-ca" => Verification::Authority,
            // With certificates of authorities at hand, libpq looks at them for `require`, too.
            "require" if roots.is_some() => Verification::Authority,
            _ => Verification::None,
        };
        if mode.starts_with("verify") && roots.is_none() && !system {
            let file = file.map_or_else(|| "~/.postgresql/root.crt".to_owned(), |file| file.display().to_string());
            return Err(Error::new(format!("sslmode `{mode}` needs `{file}`, which does not exist")).help(
                "name a file with certificates of authorities, or use sslrootcert=system for the public authorities",
            ));
        }
        let revoked = env::home_dir().map(|home| home.join(".postgresql/root.crl"));
        if verification != Verification::None
            && let Some(revoked) = revoked.filter(|file| file.exists())
        {
            let message = format!("`{}` revokes certificates, which pgvet cannot read", revoked.display());
            return Err(Error::new(message).help("connect with a user who has no such file, or with sslmode=prefer"));
        }
        let mode = match mode {
            "disable" => return Ok(plain),
            "allow" | "prefer" => SslMode::Prefer,
            _ => SslMode::Require,
        };
        Ok(Self { mode, verification, roots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::config::Host;

    /// The address of a text in an environment.
    fn in_environment(text: &str, variables: &[(&str, &str)]) -> Result<Config, Error> {
        let environment = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        parameters(text, &environment).and_then(|parameters| address(&parameters)).map(|address| address.config)
    }

    #[test]
    fn a_password_in_the_string_is_refused_and_not_repeated() {
        for text in [
            "postgres://app:secret@localhost/app",
            "postgres://app:se?cr=secret@localhost/app",
            "host=h password=secret",
            "host=h password = my secret=1",
            "postgres:///d?password=secret",
        ] {
            let error = in_environment(text, &[]).unwrap_err().to_string();
            assert!(error.contains("PGPASSWORD") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_environment_fills_what_is_left_open() {
        let variables = [("PGHOST", "db.example"), ("PGPORT", "6543"), ("PGUSER", "app"), ("PGHOSTADDR", "10.0.0.7")];
        for text in ["dbname=shop", "postgres:///shop", "postgres://db.example/shop"] {
            let config = in_environment(text, &variables).unwrap();
            assert_eq!(config.get_hosts(), [Host::Tcp("db.example".to_owned())], "{text}");
            assert_eq!(config.get_hostaddrs(), ["10.0.0.7".parse::<std::net::IpAddr>().unwrap()], "{text}");
            assert_eq!(
                (config.get_ports(), config.get_user(), config.get_dbname()),
                (&[6543][..], Some("app"), Some("shop")),
                "{text}"
            );
        }
        let config = in_environment("", &[("USER", "ann"), ("PGCONNECT_TIMEOUT", "7"), ("PGPASSWORD", "p")]).unwrap();
        assert_eq!((config.get_user(), config.get_dbname()), (Some("ann"), Some("ann")));
        assert_eq!(config.get_connect_timeout().map(std::time::Duration::as_secs), Some(7));
        assert_eq!(config.get_password(), Some(&b"p"[..]));
        let error = in_environment("host=h", &[("PGPORT", "many")]).unwrap_err();
        assert!(error.message.contains("`port`") && !error.message.contains("many"), "{error}");
    }

    #[test]
    fn the_driver_gets_what_libpq_means() {
        let config = in_environment("hostaddr=10.0.0.7 tcp_user_timeout=30000", &[("PGREQUIRESSL", "1")]).unwrap();
        assert_eq!(config.get_hosts(), [Host::Tcp("10.0.0.7".to_owned())]);
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(30)));
        assert_eq!(config.get_ssl_mode(), SslMode::Require);
        let given = in_environment("host=h requiressl=0", &[("PGREQUIRESSL", "1")]).unwrap();
        assert_eq!(given.get_ssl_mode(), SslMode::Prefer);
        assert!(in_environment("host=h", &[("PGSSLCERT", "/x")]).is_err());
        assert!(in_environment("host=/tmp", &[("PGSSLCERT", "/x")]).is_ok());
        let error = in_environment("host=h tcp_user_timeout=30s", &[]).unwrap_err();
        assert!(error.message.contains("milliseconds"), "{error}");
    }

    #[test]
    fn a_service_goes_before_the_environment_and_after_the_string() {
        let folder = tempfile::tempdir().unwrap();
        let system = folder.path().join("pg_service.conf");
        let services = "[app]\nhost=db.example\nport=6543\nconnect_timeout=9\nuser=ann\npassword=p\n";
        std::fs::write(&system, services).unwrap();
        let shown = folder.path().display().to_string();
        let variables = [("PGSYSCONFDIR", shown.as_str()), ("PGPORT", "1"), ("PGUSER", "u"), ("PGDATABASE", "shop")];
        for text in ["service=app user=bob", "postgres://bob@/?service=app", "user = bob service = 'app'"] {
            let config = in_environment(text, &variables).unwrap();
            assert_eq!((config.get_ports(), config.get_user()), (&[6543][..], Some("bob")), "{text}");
            assert_eq!(config.get_connect_timeout().map(std::time::Duration::as_secs), Some(9));
            assert_eq!((config.get_dbname(), config.get_password()), (Some("shop"), Some(&b"p"[..])));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_password_file_may_be_named_in_the_string() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("passwords");
        std::fs::write(&file, "h:*:*:*:of-file\n").unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let text = format!("host=h user=u passfile='{}'", file.display());
        assert_eq!(in_environment(&text, &[]).unwrap().get_password(), Some(&b"of-file"[..]));
    }

    #[test]
    fn servers_are_verified_as_libpq_does() {
        let protection = |text: &str| Protection::new(&Parameters::parse(text).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("root.crt");
        std::fs::write(&file, "").unwrap();
        let shown = file.display();
        let verified = |text: &str| {
            let found = protection(&format!("{text} sslrootcert={shown}")).unwrap();
            (found.mode, found.verification, found.roots.is_some())
        };
        assert_eq!(verified("host=h sslmode=verify-full"), (SslMode::Require, Verification::Name, true));
        assert_eq!(verified("host=h sslmode=verify-ca"), (SslMode::Require, Verification::Authority, true));
        assert_eq!(verified("host=h sslmode=require"), (SslMode::Require, Verification::Authority, true));
        assert_eq!(verified("host=h"), (SslMode::Prefer, Verification::None, true));
        assert_eq!(verified("host=/tmp sslmode=verify-full"), (SslMode::Disable, Verification::None, false));
        let system = protection("host=h sslrootcert=system").unwrap();
        assert_eq!((system.mode, system.verification, system.roots), (SslMode::Require, Verification::Name, None));
        for (text, expected) in [
            ("host=h sslmode=maybe", "`maybe` is not an sslmode"),
            ("host=h sslrootcert=system sslmode=require", "too weak for sslrootcert=system"),
            ("host=h sslmode=verify-ca sslrootcert=/missing", "needs `/missing`, which does not exist"),
        ] {
            let error = protection(text).unwrap_err();
            assert!(error.message.contains(expected), "{text}: {error}");
        }
    }
}
