//! The model must agree with every measured case of `fixtures/locks`.

use pgvet_model::version::PgVersion;
use rayon::prelude::*;
use xtask::measure::MAJORS;
use xtask::measure::lock_truth::{Case, Truth, Verdict, cases, compare, more_cases, truth};

#[test]
fn the_model_agrees_with_real_servers() {
    let cases = cases().unwrap();
    let mut compared = 0;
    let mut mismatches = Vec::new();
    for version in MAJORS {
        let (count, differing) = judge(&cases, &truth(version).unwrap(), version);
        compared += count;
        mismatches.extend(differing);
    }
    assert!(compared > 2000, "only {compared} cases were compared");
    assert!(mismatches.is_empty(), "{} of {compared} cases differ:\n{}", mismatches.len(), mismatches.join("\n"));
}

#[test]
fn the_model_agrees_with_the_cases_that_it_once_got_wrong() {
    let mut compared = 0;
    let mut mismatches = Vec::new();
    for version in MAJORS {
        let measured = more_cases().unwrap().into_iter().filter_map(|mut more| {
            let truth = more.truth.remove(&version.0)?;
            Some((more.case, truth))
        });
        let (cases, truth): (Vec<Case>, Truth) = measured.map(|(case, truth)| (case.clone(), (case.id, truth))).unzip();
        let (count, differing) = judge(&cases, &truth, version);
        compared += count;
        mismatches.extend(differing);
    }
    assert!(compared > 200, "only {compared} cases were compared");
    assert!(mismatches.is_empty(), "{} of {compared} cases differ:\n{}", mismatches.len(), mismatches.join("\n"));
}

/// How many cases could be compared, and a line for each that differs.
fn judge(cases: &[Case], truth: &Truth, version: PgVersion) -> (usize, Vec<String>) {
    let judge = |case: &Case| (case.id.clone(), compare(case, &truth[&case.id], version));
    let verdicts: Vec<(String, Verdict)> = cases.par_iter().map(judge).collect();
    let compared = verdicts.iter().filter(|(_, verdict)| *verdict != Verdict::Skipped).count();
    let line = |(id, verdict): &(String, Verdict)| match verdict {
        Verdict::Skipped | Verdict::Agrees => None,
        Verdict::Missing => Some(format!("{version} {id}: the model does not return the statement")),
        Verdict::Differs(differences) => {
            let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
            Some(format!("{version} {id}: {}", lines.join("; ")))
        }
    };
    (compared, verdicts.iter().filter_map(line).collect())
}
