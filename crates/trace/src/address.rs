//! How to reach a database: where it is, who asks, and what protects the connection.

use crate::Error;
use crate::certificate::{Verification, client_config};
use std::path::Path;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The port of a server that names none.
const DEFAULT_PORT: u16 = 5432;

/// A database that can be connected to.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
}

impl Address {
    /// An address whose server is verified as far as that. `roots` is a file with the certificates of authorities;
    /// else those that browsers trust count.
    pub fn new(config: Config, verification: Verification, roots: Option<&Path>) -> Result<Self, Error> {
        Ok(Self { config, tls: MakeRustlsConnect::new(client_config(verification, roots)?) })
    }

    /// The hosts with their ports, or the folders of sockets.
    pub(crate) fn places(&self) -> String {
        let ports = self.config.get_ports();
        let place = |(at, host): (usize, &Host)| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(folder) => format!("{}, port {port}", folder.display()),
            }
        };
        self.config.get_hosts().iter().enumerate().map(place).collect::<Vec<String>>().join(" or ")
    }

    /// Another database of the same server.
    #[must_use]
    pub fn database(&self, name: &str) -> Self {
        let mut address = self.clone();
        address.config.dbname(name);
        address
    }

    /// The same, with a setting that sessions start with: `name=value`.
    pub(crate) fn with_setting(&self, setting: &str) -> Self {
        let mut address = self.clone();
        let given = self.config.get_options().unwrap_or_default();
        address.config.options(format!("{given} -c {setting}").trim_start());
        address
    }

    /// Encrypts a connection to a server, which is verified as the address asks for.
    ///
    /// # Errors
    /// The server does not prove who it is, or both sides have no kind of encryption in common.
    pub async fn encrypt(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + use<>, Error> {
        let failed = |why: String| Error::new(format!("cannot encrypt the connection: {why}"));
        let connect = MakeTlsConnect::<TcpStream>::make_tls_connect(&mut self.tls.clone(), host);
        connect
            .map_err(|error| failed(error.to_string()))?
            .connect(stream)
            .await
            .map_err(|error| failed(error.to_string()))
    }

    /// Where the server is, and who asks.
    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn database_name(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }
}

/// Encrypted where the server can, and not verified: libpq's default.
impl TryFrom<Config> for Address {
    type Error = Error;

    fn try_from(config: Config) -> Result<Self, Error> {
        Self::new(config, Verification::None, None)
    }
}

/// Neither the password nor keys are shown.
impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({})", self.database_name())
    }
}
