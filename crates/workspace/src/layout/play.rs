//! Play's evolutions: the transaction around the statements of a file.

use crate::boundary::Boundary;
use crate::config::absolute;
use crate::nearby::Nearby;
use std::path::Path;

/// So far above the evolutions the configuration is: `conf/evolutions/default/1.sql`.
const LEVELS: usize = 5;

/// Whether configuration around the evolutions switches `autocommit` off. Source: Play 3.0 documentation, "Evolutions
/// configuration"; `DefaultEvolutionsApi`, `evolve`, which commits at the end.
pub(super) fn is_in_transaction(path: &Path, nearby: &Nearby) -> bool {
    let path = absolute(path);
    let boundary = Boundary::around(&path);
    let around = path.ancestors().skip(1).take(LEVELS).take_while(|folder| boundary.refusal(folder).is_none());
    let mut files = around.flat_map(|folder| nearby.code_and_configuration(folder));
    files.any(|file| {
        file.extension().is_some_and(|extension| extension == "conf")
            && nearby.text(&file).is_some_and(|text| switches_off(&text))
    })
}

/// Whether a text in HOCON sets `evolutions.autocommit = false`, or that of one database.
fn switches_off(text: &str) -> bool {
    // How many braces are open since those of `evolutions`.
    let mut depth: Option<usize> = None;
    for line in text.lines() {
        let line: String =
            line.split(['#', '"']).next().unwrap_or_default().split("//").next().unwrap_or_default().to_owned();
        let line: String = line.chars().filter(|one| !one.is_whitespace()).collect();
        let begins = depth.is_none() && line.contains("evolutions") && line.contains('{');
        let is_inside = depth.is_some() || line.contains("evolutions");
        if is_inside && ["autocommit=false", "autocommit:false"].iter().any(|off| line.contains(off)) {
            return true;
        }
        if begins || depth.is_some() {
            let (opened, closed) = (line.matches('{').count(), line.matches('}').count());
            depth = (depth.unwrap_or_default() + opened).checked_sub(closed).filter(|depth| *depth > 0);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_found_in_every_form() {
        for text in [
            "play.evolutions.autocommit = false",
            "play {\n    evolutions.autocommit              =   false\n}",
            "play.evolutions {\n  db.default { enabled = true }\n  autocommit: false\n}",
            "play.evolutions.db.default.autocommit=false",
        ] {
            assert!(switches_off(text), "{text}");
        }
        for text in [
            "play.evolutions.autocommit = true",
            "# play.evolutions.autocommit = false",
            "db.default.autocommit = false",
            "play.evolutions { enabled = true }\ndb { autocommit = false }",
        ] {
            assert!(!switches_off(text), "{text}");
        }
    }
}
