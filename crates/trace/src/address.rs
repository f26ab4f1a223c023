//! How to reach a database: where it is, who asks, and what protects the connection.

use crate::Error;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
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

/// How far a server has to prove who it is: libpq's `sslmode`.
///
/// Source: PostgreSQL 18 documentation, 32.19.1, table 32.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// `prefer` and `require`: not at all.
    None,
    /// `verify-ca`: an authority that we trust knows it.
    Authority,
    /// `verify-full`: and it has the name that we asked for.
    Name,
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

fn client_config(verification: Verification, roots: Option<&Path>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let broken = |error: rustls::Error| Error::new(format!("cannot prepare encrypted connections: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(broken)?;
    let config = match verification {
        Verification::Name => builder.with_root_certificates(authorities(roots)?).with_no_client_auth(),
        Verification::Authority | Verification::None => {
            let authority = match verification {
                Verification::None => None,
                _ => Some(verifier(authorities(roots)?, Arc::clone(&provider))?),
            };
            let lenient = Arc::new(Lenient { authority, provider });
            builder.dangerous().with_custom_certificate_verifier(lenient).with_no_client_auth()
        }
    };
    Ok(config)
}

fn verifier(roots: RootCertStore, provider: Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, Error> {
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    builder.build().map_err(|error| Error::new(format!("the certificates of authorities cannot be used: {error}")))
}

fn authorities(file: Option<&Path>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let cannot = |error: String| Error::new(format!("cannot read the certificates in `{}`: {error}", file.display()));
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| cannot(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| cannot(error.to_string()))?;
        roots.add(certificate).map_err(|error| cannot(error.to_string()))?;
    }
    Ok(roots)
}

/// Ignores the name in a certificate, or, without `authority`, the whole certificate.
#[derive(Debug)]
struct Lenient {
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
