//! Encrypted connections, against a server with a certificate of an authority that only this test knows.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use pgvet_trace::provider::{Config, Url};
use pgvet_trace::server::{Options, Server, testing};
use pgvet_trace::{Address, Error, Settings, Verification, run};
use std::net::TcpListener;
use std::path::Path;
use tokio_postgres::config::SslMode;

/// A server that takes encrypted connections, and only those, at the port.
fn server() -> Option<(Server, u16, String)> {
    let binaries = testing::binaries(15)?;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = vec![("listen_addresses".to_owned(), "127.0.0.1".to_owned())];
    let server = Server::start_with(&binaries, &Options { settings, port: Some(port), ..Options::default() }).unwrap();
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap().pem();
    for (name, text) in
        [("server.key", key.serialize_pem()), ("server.crt", certificate), ("pg_hba.conf", HBA.to_owned())]
    {
        let copy = format!("COPY (SELECT string_to_table('{text}', E'\\n')) TO PROGRAM 'umask 077; cat > {name}'");
        server.query("postgres", &copy).unwrap();
    }
    server.query("postgres", "ALTER SYSTEM SET ssl = on").unwrap();
    server.query("postgres", "SELECT pg_reload_conf()").unwrap();
    testing::wait_until(|| server.query("postgres", "SHOW ssl").unwrap()[0][0].as_deref() == Some("on"));
    Some((server, port, root))
}

const HBA: &str = "local all all trust\nhostssl all all 127.0.0.1/32 trust";

fn traced(host: &str, port: u16, mode: SslMode, verification: Verification, roots: Option<&Path>) -> Result<(), Error> {
    let mut config = Config::new();
    config.host(host).hostaddr([127, 0, 0, 1].into()).port(port).user("postgres").dbname("postgres").ssl_mode(mode);
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
