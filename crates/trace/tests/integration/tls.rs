//! Encrypted connections, against a server with a certificate of an authority that only this test knows.

use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use pgvet_trace::provider::{Config, Url};
use pgvet_trace::server::{Server, testing};
use pgvet_trace::{Address, Error, Settings, Verification, run};
use std::path::Path;
use tokio_postgres::config::SslMode;

/// A server with a certificate that an authority has signed, its port, and the certificate of the authority.
fn server() -> Option<(Server, u16, String)> {
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap().pem();
    let (server, port) = testing::tls_server(15, &certificate, &key.serialize_pem())?;
    server.query("postgres", "ALTER ROLE postgres PASSWORD 'secret'").unwrap();
    Some((server, port, root))
}

fn traced(host: &str, port: u16, mode: SslMode, verification: Verification, roots: Option<&Path>) -> Result<(), Error> {
    let mut config = Config::new();
    config.host(host).hostaddr([127, 0, 0, 1].into()).port(port).user("postgres");
    config.password("secret").dbname("postgres").ssl_mode(mode);
    let file = parse_file(SourceFile::new("m.sql".to_owned(), "SELECT 1".to_owned()));
    let migration = Migration { database: 1, ..Migration::new(&file) };
    let mut provider = Url::new(Address::new(config, verification, roots)?);
    run(&[migration], &mut provider, &Settings::default(), &mut |_| {}).map(drop)
}

#[test]
fn servers_are_verified_as_far_as_asked() {
    let Some((_server, port, root)) = server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("root.crt");
    std::fs::write(&file, root).unwrap();
    let roots = Some(file.as_path());
    let (none, authority, name) = (Verification::None, Verification::Authority, Verification::Name);
    traced("localhost", port, SslMode::Prefer, none, None).unwrap();
    traced("localhost", port, SslMode::Require, name, roots).unwrap();
    traced("other.example", port, SslMode::Require, authority, roots).unwrap();
    let refused = |host, verification, roots| traced(host, port, SslMode::Require, verification, roots).unwrap_err();
    assert!(refused("other.example", name, roots).message.contains("certificate"), "a wrong name");
    assert!(refused("localhost", authority, None).message.contains("certificate"), "an unknown authority");
    let plain = traced("localhost", port, SslMode::Disable, none, None).unwrap_err();
    assert!(plain.message.contains("no encryption"), "{plain}");
}
