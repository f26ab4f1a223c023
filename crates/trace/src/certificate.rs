//! Verification of a server's certificate, as libpq does it.

use crate::Error;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, IpAddr, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::net::IpAddr as StdIpAddr;
use std::path::Path;
use std::sync::Arc;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// The attribute of a name that holds the host of a server: `id-at-commonName`.
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

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

/// How a client encrypts a connection and verifies the server. `roots` is a file with the certificates of authorities;
/// without it, those that browsers trust are used.
pub(crate) fn client_config(verification: Verification, roots: Option<&Path>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let authorities = match verification {
        Verification::None => None,
        Verification::Authority | Verification::Name => Some(Authorities::read(roots, Arc::clone(&provider))?),
    };
    let verifier =
        LibpqVerifier { authorities, checks_name: verification == Verification::Name, provider: Arc::clone(&provider) };
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(format!("cannot prepare encrypted connections: {error}")))?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// The authorities that a client trusts.
#[derive(Debug)]
struct Authorities {
    chains: Arc<WebPkiServerVerifier>,
    /// The certificates of the file: a server that has signed its certificate itself is its own authority.
    certificates: Vec<CertificateDer<'static>>,
}

impl Authorities {
    fn read(file: Option<&Path>, provider: Arc<CryptoProvider>) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        let mut certificates = Vec::new();
        match file {
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Some(file) => {
                let cannot = |error: String| {
                    Error::new(format!("cannot read the certificates in `{}`: {error}", file.display()))
                };
                let found = CertificateDer::pem_file_iter(file).map_err(|error| cannot(error.to_string()))?;
                for certificate in found {
                    let certificate = certificate.map_err(|error| cannot(error.to_string()))?;
                    roots.add(certificate.clone()).map_err(|error| cannot(error.to_string()))?;
                    certificates.push(certificate);
                }
            }
        }
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let cannot = |error| Error::new(format!("the certificates of authorities cannot be used: {error}"));
        Ok(Self { chains: builder.build().map_err(cannot)?, certificates })
    }

    /// Verifies that an authority has signed a certificate, whatever its name.
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        // webpki refuses an authority as a server, which OpenSSL and PostgreSQL's instructions for certificates do not.
        // Source: PostgreSQL 18 documentation, 18.9.5 "Creating Certificates".
        if self.certificates.contains(end_entity) {
            let certificate = parse(end_entity)?;
            if certificate.tbs_certificate.issuer == certificate.tbs_certificate.subject {
                return verify_time(&certificate, now);
            }
        }
        match self.chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is verified last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(()),
            result => result.map(drop),
        }
    }
}

/// Verifies certificates as far as `sslmode` asks for.
#[derive(Debug)]
struct LibpqVerifier {
    /// `None`: every certificate is accepted.
    authorities: Option<Authorities>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for LibpqVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(authorities) = &self.authorities {
            authorities.verify(end_entity, intermediates, server_name, ocsp_response, now)?;
        }
        if self.checks_name {
            verify_name(&parse(end_entity)?, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
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

fn parse(certificate: &CertificateDer<'_>) -> Result<Certificate, rustls::Error> {
    Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding.into())
}

fn verify_time(certificate: &Certificate, now: UnixTime) -> Result<(), rustls::Error> {
    let validity = &certificate.tbs_certificate.validity;
    if now.as_secs() < validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now.as_secs() > validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

/// Verifies that a certificate is one for a host. The common name matters only without an alternative name of the host's
/// kind.
///
/// Source: PostgreSQL 18 documentation, 32.19.1; `pgtls_verify_peer_name_matches_certificate_guts` in
/// `src/interfaces/libpq/fe-secure-openssl.c`.
fn verify_name(certificate: &Certificate, wanted: &ServerName<'_>) -> Result<(), rustls::Error> {
    let host = wanted.to_str();
    let address = match wanted {
        ServerName::IpAddress(address) => Some(octets(*address)),
        _ => None,
    };
    let alternative = certificate.tbs_certificate.get::<SubjectAltName>().map_err(|_| CertificateError::BadEncoding)?;
    let names = alternative.map(|(_, names)| names.0).unwrap_or_default();
    let is_of_kind = |name: &GeneralName| match name {
        GeneralName::DnsName(_) => address.is_none(),
        GeneralName::IpAddress(_) => address.is_some(),
        _ => false,
    };
    let is_it = |name: &GeneralName| match name {
        GeneralName::DnsName(name) => matches_host(name.as_str(), &host),
        GeneralName::IpAddress(name) => address.as_deref() == Some(name.as_bytes()),
        _ => false,
    };
    let common_name = common_name(certificate).filter(|_| !names.iter().any(is_of_kind));
    if names.iter().any(is_it) || common_name.is_some_and(|name| matches_host(name, &host)) {
        return Ok(());
    }
    let presented = names.iter().map(|name| format!("{name:?}")).chain(common_name.map(str::to_owned)).collect();
    Err(CertificateError::NotValidForNameContext { expected: wanted.to_owned(), presented }.into())
}

fn common_name(certificate: &Certificate) -> Option<&str> {
    let mut attributes = certificate.tbs_certificate.subject.0.iter().flat_map(|set| set.0.iter());
    let found = attributes.find(|attribute| attribute.oid == COMMON_NAME)?;
    std::str::from_utf8(found.value.value()).ok()
}

fn octets(address: IpAddr) -> Vec<u8> {
    match StdIpAddr::from(address) {
        StdIpAddr::V4(address) => address.octets().to_vec(),
        StdIpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Whether a name of a certificate matches a host. `*.` at its beginning matches one label.
///
/// Source: PostgreSQL 18, `wildcard_certificate_match` in `src/interfaces/libpq/fe-secure-common.c`.
fn matches_host(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(domain) if !domain.is_empty() => {
            let rest = host.split_once('.').filter(|(label, _)| !label.is_empty());
            rest.is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(domain))
        }
        _ => name.eq_ignore_ascii_case(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_matches_one_label() {
        for (name, host, expected) in [
            ("db.example", "DB.example", true),
            ("*.example", "db.example", true),
            ("*.example", "a.db.example", false),
            ("*.example", ".example", false),
            ("*.", "db.", false),
            ("*", "db", false),
            ("d*.example", "db.example", false),
        ] {
            assert_eq!(matches_host(name, host), expected, "{name} {host}");
        }
    }
}
