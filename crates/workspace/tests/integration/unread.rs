//! A check that parses files when it comes to them, and forgets them, finds what a check of parsed files finds.

use pgvet_linter::settings::Settings;
use pgvet_workspace::config::Config;
use pgvet_workspace::{Project, Request};
use std::path::Path;

#[test]
fn files_that_are_parsed_on_the_way_have_the_same_findings() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let settings = |_: &Config| Settings { strict: true, ..Settings::default() };
    for folder in ["rules", "demo", "patterns", "frameworks"] {
        let request = Request { paths: vec![fixtures.join(folder)], ..Request::default() };
        let parsed = Project::load(&request, &|_, _| ()).unwrap();
        let unread = Project::load_to_check(&request, None, &settings, &|_, _| ()).unwrap();
        let [expected, found] = [parsed, unread].map(|project| project.check(&settings, &|_, _| ()));
        assert!(!expected.found.is_empty(), "{folder}");
        let differing = std::iter::zip(&expected.found, &found.found).find(|(expected, found)| expected != found);
        assert_eq!(differing, None, "{folder}");
        assert_eq!(expected.found.len(), found.found.len(), "{folder}");
        let suppressed = |outcome: &pgvet_linter::check::Outcome| outcome.suppressed.len();
        assert_eq!(suppressed(&expected), suppressed(&found), "{folder}");
    }
}
