//! `pgvet capture` on a server that is reached through encrypted connections.

use crate::support::capturing::{TABLE, assert_has, capture, row};
use crate::support::{Folder, transcript};
use pgvet_trace::server::testing::{binaries, tls_server};

/// A certificate that its server has signed itself, and its key. It names its host as `openssl req -x509` does: in the
/// common name, and as an authority.
///
/// Source: PostgreSQL 18 documentation, 18.9.5 "Creating Certificates".
fn self_signed(host: &str) -> (String, String) {
    let mut certificate = rcgen::CertificateParams::new(Vec::new()).unwrap();
    certificate.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    certificate.distinguished_name = rcgen::DistinguishedName::new();
    certificate.distinguished_name.push(rcgen::DnType::CommonName, host);
    let key = rcgen::KeyPair::generate().unwrap();
    (certificate.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// What psql has as a command that requires encryption.
const REQUIRING: [&str; 3] =
    ["sslmode=require", "sslmode=verify-full sslrootcert=own.crt", "sslmode=require sslnegotiation=direct"];

#[test]
fn a_client_that_requires_encryption_gets_advice() {
    let Some(version) = version_of_psql() else { return };
    if binaries(18).is_none() {
        return;
    }
    let (certificate, _) = self_signed("localhost");
    let folder = Folder::new(&[("own.crt", certificate.as_bytes())]);
    // Direct negotiation is new in libpq 17.
    let known = if version < 17 { &REQUIRING[..2] } else { &REQUIRING };
    for protection in known {
        let address = format!("host={{host}} port={{port}} user={{user}} dbname={{database}} {protection}");
        let args = ["capture", "--", "psql", "--no-psqlrc", &address, "--command", "SELECT 1"];
        let said = transcript(&folder.output(&args, b"", &[("PGPASSWORD", "unused")]));
        assert!(!said.starts_with("exit 0"), "{protection}: {said}");
        assert_has(
            &said,
            &["requires an encrypted connection, so nothing was captured", "set sslmode to disable or prefer"],
        );
    }
}

/// The major version of the psql that is installed.
fn version_of_psql() -> Option<u32> {
    let output = std::process::Command::new("psql").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().nth(2)?.split('.').next()?.parse().ok()
}

#[test]
fn the_server_is_verified_as_sslmode_says() {
    let (certificate, key) = self_signed("localhost");
    let Some((server, port)) = tls_server(18, &certificate, &key) else { return };
    server.query("postgres", "CREATE ROLE ann LOGIN PASSWORD 'geheim'").unwrap();
    server.query("postgres", "CREATE DATABASE shop OWNER ann").unwrap();
    let (other, _) = self_signed("localhost");
    let files = [("own.crt", certificate.as_bytes()), ("other.crt", other.as_bytes()), ("1.js", b"//\n")];
    let folder = Folder::new(&files);
    let home = folder.path().display().to_string();
    let run = |host: &str, protection: &str| {
        let address = format!("host={host} hostaddr=127.0.0.1 port={port} user=ann dbname=shop {protection}");
        let script = [
            "DO $$ BEGIN ASSERT (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()); END $$",
            "DROP TABLE IF EXISTS knex_migrations",
            TABLE,
            &row("1.js"),
        ];
        let options = ["--on", "url", "--database", &address, "--this-is-a-clone"];
        capture(&folder, &options, &script, &[("PGPASSWORD", "geheim"), ("HOME", &home)])
    };
    for (host, protection) in [
        ("localhost", "sslmode=prefer"),
        ("localhost", "sslmode=require"),
        ("localhost", "sslmode=require sslrootcert=own.crt"),
        ("other.example", "sslmode=verify-ca sslrootcert=own.crt"),
        ("localhost", "sslmode=verify-full sslrootcert=own.crt"),
    ] {
        assert_has(&run(host, protection), &["captured 1 migration of knex"]);
    }
    for (host, protection, expected) in [
        ("localhost", "sslmode=disable", "no encryption"),
        // libpq looks at the file for `require`, too.
        ("localhost", "sslmode=require sslrootcert=other.crt", "certificate"),
        ("localhost", "sslmode=verify-ca sslrootcert=other.crt", "certificate"),
        ("localhost", "sslmode=verify-full sslrootcert=other.crt", "certificate"),
        ("other.example", "sslmode=verify-full sslrootcert=own.crt", "not valid for name"),
        ("localhost", "sslmode=verify-full", ".postgresql/root.crt`, which does not exist"),
        ("localhost", "sslmode=verify-full sslrootcert=system", "certificate"),
        ("localhost", "sslmode=require channel_binding=require", "cannot bind a password"),
    ] {
        let said = run(host, protection);
        assert!(said.starts_with("exit 2\n"), "{host} {protection}: {said}");
        assert_has(&said, &[expected]);
    }
}
