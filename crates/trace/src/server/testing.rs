//! Servers for tests, which must not go without one silently.

use super::{Binaries, Server};

/// The majors that tests run on.
pub const MAJORS: [u8; 5] = [14, 15, 16, 17, 18];

/// A server of that major for a test; `None`, with a loud message, where none is installed. In CI that is a failure.
///
/// # Panics
/// Where `CI` is set and the server is missing, or where it does not start.
pub fn server(major: u8) -> Option<Server> {
    let start = |binaries| Server::start(&binaries).unwrap_or_else(|error| panic!("PostgreSQL {major}: {error}"));
    binaries(major).map(start)
}

/// The programs of that major for a test, under the same rules.
///
/// # Panics
/// Where `CI` is set and they are missing.
#[expect(clippy::print_stderr, reason = "a test that does not run must say so")]
pub fn binaries(major: u8) -> Option<Binaries> {
    match Binaries::find(Some(major)) {
        Ok(binaries) => Some(binaries),
        Err(error) if std::env::var_os("CI").is_some_and(|ci| !ci.is_empty()) => panic!("{error}"),
        Err(error) => {
            eprintln!("NOT TESTED on PostgreSQL {major}: {error}\n  help: .ci/install-postgresql installs it");
            None
        }
    }
}
