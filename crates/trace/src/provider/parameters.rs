//! Connection parameters by libpq's names, as connection strings and variables of the environment give them.
//!
//! Source: PostgreSQL 18, `PQconninfoOptions`, `conninfo_parse`, `conninfo_storeval`, `conninfo_add_defaults` and
//! `conninfo_uri_parse_options` in `src/interfaces/libpq/fe-connect.c`.
//!
//! The driver's own parser knows neither services, password files nor the `verify` modes, and does not give back what it
//! read.

use crate::Error;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The value of each parameter that is given.
#[derive(Debug, Default)]
pub(super) struct Parameters(BTreeMap<&'static str, String>);

/// The treatment of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The driver takes it, under this name.
    Driver(&'static str),
    /// It is asked for with [`Parameters::get`].
    Ours,
    /// It changes nothing here.
    Ignored,
    /// It promises something that nobody would keep, but for these values.
    Refused { except: &'static [&'static str] },
}

use Meaning::{Driver, Ignored, Ours, Refused};

const REFUSED: Meaning = Refused { except: &[] };

/// Every parameter of libpq with its variable, where it has one.
const KNOWN: [(&str, &str, Meaning); 50] = [
    ("application_name", "PGAPPNAME", Ignored),
    ("channel_binding", "PGCHANNELBINDING", Driver("channel_binding")),
    ("client_encoding", "PGCLIENTENCODING", Ignored),
    ("connect_timeout", "PGCONNECT_TIMEOUT", Driver("connect_timeout")),
    ("dbname", "PGDATABASE", Driver("dbname")),
    ("fallback_application_name", "", Ignored),
    ("gssdelegation", "PGGSSDELEGATION", Ignored),
    ("gssencmode", "PGGSSENCMODE", Refused { except: &["disable", "prefer"] }),
    ("gsslib", "PGGSSLIB", Ignored),
    ("host", "PGHOST", Driver("host")),
    ("hostaddr", "PGHOSTADDR", Driver("hostaddr")),
    ("keepalives", "", Driver("keepalives")),
    ("keepalives_count", "", Driver("keepalives_retries")),
    ("keepalives_idle", "", Driver("keepalives_idle")),
    ("keepalives_interval", "", Driver("keepalives_interval")),
    ("krbsrvname", "PGKRBSRVNAME", Ignored),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS", Driver("load_balance_hosts")),
    ("max_protocol_version", "PGMAXPROTOCOLVERSION", Ignored),
    ("min_protocol_version", "PGMINPROTOCOLVERSION", Refused { except: &["3.0"] }),
    ("oauth_client_id", "", Ignored),
    ("oauth_client_secret", "", Ignored),
    ("oauth_issuer", "", Ignored),
    ("oauth_scope", "", Ignored),
    ("options", "PGOPTIONS", Driver("options")),
    ("passfile", "PGPASSFILE", Ours),
    ("password", "PGPASSWORD", Ours),
    ("port", "PGPORT", Driver("port")),
    ("replication", "", Refused { except: &["false", "off", "no", "0"] }),
    ("require_auth", "PGREQUIREAUTH", REFUSED),
    ("requirepeer", "PGREQUIREPEER", REFUSED),
    ("scram_client_key", "", REFUSED),
    ("scram_server_key", "", REFUSED),
    ("service", "PGSERVICE", Ours),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Refused { except: &["TLSv1.3"] }),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Refused { except: &["TLSv1", "TLSv1.1", "TLSv1.2"] }),
    ("sslcert", "PGSSLCERT", REFUSED),
    ("sslcertmode", "PGSSLCERTMODE", Refused { except: &["disable", "allow"] }),
    ("sslcompression", "PGSSLCOMPRESSION", Ignored),
    ("sslcrl", "PGSSLCRL", REFUSED),
    ("sslcrldir", "PGSSLCRLDIR", REFUSED),
    ("sslkey", "PGSSLKEY", REFUSED),
    ("sslkeylogfile", "", Ignored),
    ("sslmode", "PGSSLMODE", Ours),
    ("sslnegotiation", "PGSSLNEGOTIATION", Refused { except: &["postgres"] }),
    ("sslpassword", "", REFUSED),
    ("sslrootcert", "PGSSLROOTCERT", Ours),
    ("sslsni", "PGSSLSNI", Ignored),
    ("target_session_attrs", "PGTARGETSESSIONATTRS", Driver("target_session_attrs")),
    ("tcp_user_timeout", "", Ours),
    ("user", "PGUSER", Driver("user")),
];

impl Parameters {
    /// Those of a connection string in either form. A password in it is refused: others see the arguments of a process.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let uri = ["postgres://", "postgresql://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        match uri {
            Some(rest) => Self::of_uri(rest),
            None => Self::of_pairs(text),
        }
    }

    /// Those of variables such as `PGHOST`.
    pub(super) fn of_environment(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let given = KNOWN.into_iter().filter(|(_, name, _)| !name.is_empty());
        let mut given = Self(given.filter_map(|(parameter, name, _)| Some((parameter, variable(name)?))).collect());
        if variable("PGREQUIRESSL").is_some_and(|value| value.starts_with('1')) {
            given.set_default("sslmode", |_| "require".to_owned());
        }
        given
    }

    /// Returns the given value; an empty value is not given.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) -> Result<(), Error> {
        let value = value.into();
        // The way to say it before 7.4.
        if name == "requiressl" {
            return self.set("sslmode", if value.starts_with('1') { "require" } else { "prefer" });
        }
        let mut known = KNOWN.into_iter().map(|(known, ..)| known);
        let name = known.find(|known| *known == name).ok_or_else(|| unknown(name))?;
        self.0.insert(name, value);
        Ok(())
    }

    /// [`Parameters::set`] for what a connection string says.
    fn set_in_string(&mut self, name: &str, value: String) -> Result<(), Error> {
        if name == "password" {
            return Err(Error::new(
                "the connection string contains a password, which other users of this machine can see",
            )
            .help("omit it, and set PGPASSWORD or write the password into ~/.pgpass"));
        }
        self.set(name, value).map_err(|error| error.help(EXPECTED))
    }

    pub(super) fn set_default(&mut self, name: &'static str, value: impl FnOnce(&Self) -> String) {
        if self.get(name).is_none() {
            let value = value(self);
            self.0.insert(name, value);
        }
    }

    /// Adds missing parameters from others. An empty value is not missing.
    pub(super) fn complete(&mut self, others: Self) {
        for (name, value) in others.0 {
            self.0.entry(name).or_insert(value);
        }
    }

    /// Returns the parameters that the driver takes, in its syntax. Those about encryption matter if there may be some.
    pub(super) fn for_driver(&self, is_plain: bool) -> Result<String, Error> {
        let mut text = String::new();
        for (name, _, meaning) in KNOWN {
            match (self.get(name), meaning) {
                (Some(value), Driver(name)) => {
                    let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
                    // Writing to a string does not fail.
                    let _ = write!(text, "{name}='{quoted}' ");
                }
                (Some(_), Refused { .. }) if is_plain && name.starts_with("ssl") => {}
                (Some(value), Refused { except }) if !except.contains(&value) => {
                    let help = "if the server does not need it, omit it, also from PG... variables and services";
                    let message = format!("the connection parameter `{name}` is given, which pgvet does not support");
                    return Err(Error::new(message).help(help));
                }
                _ => {}
            }
        }
        Ok(text)
    }

    /// `host=db dbname = 'a b'`.
    fn of_pairs(text: &str) -> Result<Self, Error> {
        let mut parameters = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
            let name = &rest[..end];
            let value = rest[end..].trim_start().strip_prefix('=');
            let value = value.ok_or_else(|| not_understood("a parameter has no `=`"))?.trim_start();
            let (value, after) = value_of_pair(value)?;
            parameters.set_in_string(name, value)?;
            rest = after.trim_start();
        }
        Ok(parameters)
    }

    /// `user@host:port,host/database?parameter=value`.
    fn of_uri(text: &str) -> Result<Self, Error> {
        let mut parameters = Self::default();
        // Before anything else: a password may hold any of the other signs.
        let (credentials, text) = match text.find(['@', '/']) {
            Some(at) if text[at..].starts_with('@') => (&text[..at], &text[at + 1..]),
            _ => ("", text),
        };
        let (before, query) = text.split_once('?').unwrap_or((text, ""));
        let (hosts, database) = before.split_once('/').unwrap_or((before, ""));
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let hosts = hosts.split(',').map(host_and_port).collect::<Result<Vec<_>, Error>>()?;
        let (hosts, ports): (Vec<&str>, Vec<&str>) = hosts.into_iter().unzip();
        let parts = [("user", user), ("password", password), ("dbname", database)];
        for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
            parameters.set_in_string(name, decoded(value)?)?;
        }
        for (name, values) in [("host", hosts), ("port", ports)] {
            if values.iter().any(|value| !value.is_empty()) {
                parameters.set(name, decoded(&values.join(","))?)?;
            }
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| not_understood("a parameter has no `=`"))?;
            let (name, value) = (decoded(name)?, decoded(value)?);
            // What drivers for Java write.
            let pair = if (name.as_str(), value.as_str()) == ("ssl", "true") {
                ("sslmode", "require".to_owned())
            } else {
                (name.as_str(), value)
            };
            parameters.set_in_string(pair.0, pair.1)?;
        }
        Ok(parameters)
    }
}

const EXPECTED: &str = "expected postgres://USER@HOST:PORT/DATABASE or host=HOST dbname=DATABASE";

/// Reports an unknown name. One that cannot be a name may be part of a password, and is not repeated.
fn unknown(name: &str) -> Error {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_name {
        Error::new(format!("there is no connection parameter `{name}`"))
    } else {
        Error::new("there is no connection parameter of this name")
    }
}

/// The text itself may hold a password, so it is not repeated.
fn not_understood(what: &str) -> Error {
    Error::new(format!("the connection string is not understood: {what}")).help(EXPECTED)
}

/// The value that a text begins with, and the rest of the text. A backslash takes the next character as it is.
fn value_of_pair(text: &str) -> Result<(String, &str), Error> {
    let quoted = text.strip_prefix('\'');
    let text = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted.is_some() => return Ok((value, &text[at + 1..])),
            space if quoted.is_none() && space.is_whitespace() => return Ok((value, &text[at..])),
            other => value.push(other),
        }
    }
    if quoted.is_some() { Err(not_understood("a quote is not closed")) } else { Ok((value, "")) }
}

/// `host:port`, `host` or `[::1]:port`.
fn host_and_port(text: &str) -> Result<(&str, &str), Error> {
    let Some(address) = text.strip_prefix('[') else { return Ok(text.split_once(':').unwrap_or((text, ""))) };
    let (address, rest) = address.split_once(']').ok_or_else(|| not_understood("a `[` is not closed"))?;
    match rest.strip_prefix(':') {
        Some(port) => Ok((address, port)),
        None if rest.is_empty() => Ok((address, "")),
        None => Err(not_understood("after `]`, a port is expected")),
    }
}

fn decoded(text: &str) -> Result<String, Error> {
    let is_encoded = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_encoded) {
        return Err(not_understood("two hexadecimal digits are expected after each `%`"));
    }
    let text = percent_decode_str(text).decode_utf8().map_err(|_| not_understood("it is not UTF-8"))?;
    if text.contains('\0') { Err(not_understood("it has `%00`")) } else { Ok(text.into_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(&'static str, String)> {
        Parameters::parse(text).unwrap().0.into_iter().collect()
    }

    fn given(pairs: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
        pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
    }

    #[test]
    fn pairs_are_read_as_libpq_does() {
        let expected = given(&[("dbname", "a b"), ("host", "db"), ("user", "o'neil")]);
        for text in [
            "host=db dbname='a b' user=o\\'neil",
            " host = db  dbname= 'a b'\tuser ='o\\'neil' ",
            "user=o\\'neil host=db dbname=a\\ b",
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
        assert_eq!(parsed("dbname='shop'host=db"), given(&[("dbname", "shop"), ("host", "db")]));
        assert_eq!(parsed("options='-c lock_timeout=1s'"), given(&[("options", "-c lock_timeout=1s")]));
        assert_eq!(parsed("host='' port=1"), given(&[("host", ""), ("port", "1")]));
    }

    #[test]
    fn addresses_are_read_as_libpq_does() {
        for (text, expected) in [
            ("postgres://", &[][..]),
            ("postgresql://db", &[("host", "db")]),
            ("postgres://ann@db:6543/shop", &[("dbname", "shop"), ("host", "db"), ("port", "6543"), ("user", "ann")]),
            ("postgres:///shop?host=/tmp&port=1", &[("dbname", "shop"), ("host", "/tmp"), ("port", "1")]),
            ("postgres://%2Ftmp/a%20b", &[("dbname", "a b"), ("host", "/tmp")]),
            ("postgres://[::1]:5/d", &[("dbname", "d"), ("host", "::1"), ("port", "5")]),
            ("postgres://a:1,b/d", &[("dbname", "d"), ("host", "a,b"), ("port", "1,")]),
            ("postgres://h/?user=a@b&ssl=true", &[("host", "h"), ("sslmode", "require"), ("user", "a@b")]),
        ] {
            assert_eq!(parsed(text), given(expected), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_but_no_value_is() {
        for (text, expected) in [
            ("host=db sslmod=require", "there is no connection parameter `sslmod`"),
            ("postgres://db/d?passwd=secret", "there is no connection parameter `passwd`"),
            ("postgresq://ann:secret@db/shop?sslmode=require", "no connection parameter of this name"),
            ("postgresql+psycopg://ann:secret@db/shop?a=b", "no connection parameter of this name"),
            ("postgres://h%zz/secret", "two hexadecimal digits"),
            ("host=localhost secret", "a parameter has no `=`"),
            ("host='secret", "a quote is not closed"),
            ("postgres://[::1/secret", "a `[` is not closed"),
            ("postgres://h/d?secret", "a parameter has no `=`"),
        ] {
            let error = Parameters::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("expected postgres://"), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn what_would_not_be_kept_is_refused() {
        let error = Parameters::parse("host=h sslcrl=/x").unwrap().for_driver(false).unwrap_err();
        assert!(error.message.contains("`sslcrl`"), "{error}");
        let text = Parameters::parse("host=h gssencmode=prefer keepalives_count=3 application_name=x").unwrap();
        assert_eq!(text.for_driver(false).unwrap(), "host='h' keepalives_retries='3' ");
        assert!(Parameters::parse("gssencmode=require").unwrap().for_driver(true).is_err());
        // On a socket nothing is encrypted.
        assert!(Parameters::parse("host=/tmp sslcert=/x").unwrap().for_driver(true).is_ok());
    }
}
