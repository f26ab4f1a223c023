//! pgvet must read scripts as psql does, or say where it cannot be sure.

use pgvet_trace::server::testing::not_tested;
use xtask::measure::scripts::{Psql, Recorded, Verdict, compare, recorded, scripts};

/// Scripts from which pgvet reads statements that psql does not run, each with the reason.
const PHANTOM: &[(&str, &str)] = &[];

#[test]
fn what_a_server_ran_is_read_or_reported() {
    let cases = recorded().unwrap();
    let verdicts: Vec<(&Recorded, Verdict)> = cases.iter().map(|case| (case, compare(case))).collect();
    let is_expected = |(case, verdict): &&(&Recorded, Verdict)| match verdict {
        Verdict::Same | Verdict::Reported(_) => true,
        Verdict::Phantom(_) => PHANTOM.iter().any(|(name, _)| *name == case.name),
        Verdict::Hidden(_) => false,
    };
    let wrong: Vec<String> = (verdicts.iter().filter(|verdict| !is_expected(verdict)))
        .map(|(case, verdict)| format!("{}: {}: {verdict}\n{}", case.name, verdict.as_str(), case.script))
        .collect();
    assert!(wrong.is_empty(), "{} of {} scripts:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_script_is_recorded() {
    let recorded: Vec<(String, String)> =
        recorded().unwrap().into_iter().map(|case| (case.name, case.script)).collect();
    let scripts: Vec<(String, String)> = scripts().unwrap().into_iter().collect();
    assert!(scripts.len() >= 300, "only {} scripts", scripts.len());
    assert!(recorded == scripts, "run `cargo xtask measure scripts --record`");
}

#[test]
fn psql_still_does_what_was_recorded() {
    let psql = match Psql::start() {
        Ok(psql) => psql,
        Err(error) => return not_tested(&format!("against psql: {error}")),
    };
    for case in recorded().unwrap().iter().step_by(10) {
        assert_eq!(psql.run(&case.name, &case.script).unwrap(), *case);
    }
}
