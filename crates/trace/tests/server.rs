//! Private servers start, answer, and leave nothing behind.

use pgvet_trace::server::testing::{MAJORS, server};

#[test]
fn every_major_starts_answers_and_goes_away() {
    for major in MAJORS {
        let Some(server) = server(major) else { continue };
        let rows = server.query("postgres", "SELECT current_setting('server_version_num')::int / 10000, NULL").unwrap();
        assert_eq!(rows, [[Some(major.to_string()), None]]);
        let folder = server.socket().to_owned();
        assert!(folder.join("owner.pid").exists());
        drop(server);
        assert!(!folder.exists(), "{} was left behind", folder.display());
    }
}

#[test]
fn what_the_server_refuses_is_an_error_with_its_state() {
    let Some(server) = server(15) else { return };
    let error = server.query("postgres", "SELECT * FROM missing").unwrap_err();
    assert_eq!(error.message, "relation \"missing\" does not exist (SQLSTATE 42P01)");
}
