//! The model says what real migration tools did, or `tool.toml` says why not.

use xtask::measure::tools::{Declaration, Difference, compare, difference, recorded_changes};

#[test]
fn the_model_says_what_was_recorded() {
    let mut wrong = Vec::new();
    let mut runs = 0;
    for tool in Declaration::all().unwrap() {
        if !tool.folder().join("observed.txt").is_file() {
            if tool.unrecorded.is_none() {
                wrong.push(format!("{}: nothing is recorded", tool.name));
            }
            continue;
        }
        let compared = compare(&tool).unwrap();
        runs += compared.len();
        for one in &compared {
            let (case, version) = (&one.recorded.case, &one.recorded.version);
            if !one.differences.is_empty() && !tool.differences.contains_key(case) {
                wrong.push(format!("{} {version} {case}: {:#?}", tool.name, one.differences));
            }
        }
        for case in tool.differences.keys() {
            let differs =
                |one: &&xtask::measure::tools::Compared| one.recorded.case == *case && !one.differences.is_empty();
            if !compared.iter().any(|one| differs(&one)) {
                wrong.push(format!("{} {case}: is explained and does not differ", tool.name));
            }
        }
    }
    assert!(runs > 200, "only {runs} runs are recorded");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn reactions_to_changes_are_those_that_were_recorded() {
    let mut wrong = Vec::new();
    let mut runs = 0;
    for tool in Declaration::all().unwrap() {
        for recorded in recorded_changes(&tool).unwrap() {
            runs += 1;
            if let Some(Difference { recorded: seen, predicted, .. }) = difference(&tool, &recorded) {
                wrong.push(format!("{} {}: {seen} / pgvet: {predicted}", tool.name, recorded.case));
            }
        }
    }
    assert!(runs > 30, "only {runs} runs are recorded");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
