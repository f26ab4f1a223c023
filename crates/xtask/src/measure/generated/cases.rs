//! `fixtures/generated`: what was once predicted wrongly, as sequences.

use super::judge::{Finding, judge};
use super::laboratory::Laboratory;
use super::sequence::Sequence;
use crate::measure::{fixtures, read};
use pgvet_model::version::PgVersion;

/// Cases with their names. A statement ends with its line.
fn cases() -> Result<Vec<(String, Sequence)>, String> {
    let text = read(&fixtures("generated").join("cases.sql"))?;
    let case = |part: &str| {
        let (name, sql) = part.split_once('\n').unwrap_or((part, ""));
        let statements = sql.lines().filter_map(|line| line.trim_end().strip_suffix(';'));
        (name.to_owned(), Sequence { statements: statements.map(str::to_owned).collect() })
    };
    Ok(text.split("-- case: ").skip(1).map(case).collect())
}

/// Runs every case on one major: how many there are, and a line for each difference that nothing explains.
///
/// # Errors
/// A fixture or a server that is missing or breaks.
pub fn check_cases(version: PgVersion) -> Result<(usize, Vec<String>), String> {
    let (names, sequences): (Vec<String>, Vec<Sequence>) = cases()?.into_iter().unzip();
    let runs = Laboratory::new(version).run(&sequences)?;
    let mut differences = Vec::new();
    for ((name, sequence), run) in names.iter().zip(&sequences).zip(&runs) {
        let verdict = judge(sequence, run, version);
        let place = |at: Option<usize>| at.and_then(|at| sequence.statements.get(at)).map_or("", String::as_str);
        let line = |Finding { what, statement, relation, predicted, observed, .. }: &Finding| {
            format!(
                "{version} {name}: {what} {relation}: predicted {predicted}, observed {observed} {}",
                place(*statement)
            )
        };
        if let Some(at) = verdict.depends_on_rows {
            differences.push(format!("{version} {name}: rows refuse {}", place(Some(at))));
        }
        differences.extend(verdict.findings.iter().filter(|finding| finding.explained.is_none()).map(line));
    }
    Ok((sequences.len(), differences))
}
