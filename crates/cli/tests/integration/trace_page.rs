//! The page of `pgvet trace --report`, in a browser.

use crate::support::Folder;
use crate::support::runs::folder;
use pgvet_trace::server::testing::not_tested_anywhere;
use std::process::Command;

/// If the page can be opened, it must show its timeline without an error in its script.
#[test]
fn the_page_shows_its_timeline_in_a_browser() {
    let name = "a_table_whose_name_is_as_long_as_postgresql_allows_for_any_name";
    let create = format!("CREATE TABLE {name} (id int PRIMARY KEY, rating int);\n");
    let change = format!(
        "SET lock_timeout = '1s';\nALTER TABLE {name}\n  ALTER rating TYPE bigint;\nSELECT 1/0;\nDROP TABLE {name};\n"
    );
    let path = format!("m/2_{}.sql", "long_".repeat(20));
    let Some(folder) = folder(&[("m/1_table.sql", &create), (&path, &change)]) else { return };
    let said = folder.run(&["trace", &path, "--history", "m", "--report", "out.html"]);
    assert!(said.starts_with("exit 2\n"), "{said}");
    let page = std::fs::read_to_string(folder.path().join("out.html")).unwrap();
    assert!(page.contains("Line 4</a> fails: division by zero (22012)"), "{page}");
    assert!(page.contains(&format!("title=\"ACCESS EXCLUSIVE on public.{name}: held ")), "{page}");
    assert!(!page.contains("http"), "the page needs nothing else");
    assert!(!page.contains("Extrapolated"), "an empty column is omitted:\n{page}");
    let Some(shown) = in_browser(&folder) else { return };
    for fact in ["aria-sort=\"ascending\"", "data-links=\"found\"", "data-cut-off=\"\""] {
        assert!(shown.contains(fact), "{fact} is missing:\n{shown}");
    }
}

/// Script that reports where links lead, and which elements are wider than a narrow screen.
const LOOK: &str = "<script>
    document.querySelector('th button').click();
    const links = [...document.querySelectorAll('a')].map((link) => document.getElementById(link.hash.slice(1)));
    document.body.dataset.links = links.length && !links.includes(null) ? 'found' : 'broken';
    const wide = [...document.querySelectorAll('body *')].filter((part) => part.scrollWidth > document.body.clientWidth);
    document.body.dataset.cutOff = wide.map((part) => part.outerHTML).join();
</script></body>";

/// Loads the page in a browser with a narrow window.
fn in_browser(folder: &Folder) -> Option<String> {
    let page = std::fs::read_to_string(folder.path().join("out.html")).unwrap().replace("</body>", LOOK);
    std::fs::write(folder.path().join("looked_at.html"), page).unwrap();
    let url = format!("file://{}", folder.path().join("looked_at.html").display());
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=420,900", "--dump-dom", &url];
    let output = browsers.iter().find_map(|browser| Command::new(browser).args(options).output().ok());
    if output.is_none() {
        not_tested_anywhere(&format!("in a browser: none of {browsers:?} is installed"));
    }
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
}
