//! `cargo xtask measure locks`

use super::lock_truth::{Case, Run, Truth, Verdict, cases, compare, truth};
use super::{MAJORS, share};
use pgvet_model::predict::effects;
use pgvet_model::production::Functions;
use pgvet_model::version::PgVersion;
use rayon::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only this major.
    #[arg(long, value_name = "MAJOR")]
    pg_version: Option<u8>,
    /// Only this category of cases.
    #[arg(long)]
    category: Option<String>,
    /// Show one case with its SQL, what the servers did and what the model says.
    #[arg(long, value_name = "ID")]
    case: Option<String>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

struct Judged<'a> {
    case: &'a Case,
    version: PgVersion,
    verdict: Verdict,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let mut cases = cases()?;
    if let Some(category) = &arguments.category {
        cases.retain(|case| case.category == *category);
    }
    if let Some(id) = &arguments.case {
        cases.retain(|case| case.id == *id);
    }
    if cases.is_empty() {
        return Err("no such case".to_owned());
    }
    let majors = MAJORS.into_iter().filter(|version| arguments.pg_version.is_none_or(|wanted| wanted == version.0));
    let truths: Vec<(PgVersion, Truth)> =
        majors.map(|version| Ok((version, truth(version)?))).collect::<Result<_, String>>()?;

    let pairs: Vec<_> = truths.iter().flat_map(|truth| cases.iter().map(move |case| (truth, case))).collect();
    let judged: Vec<Judged<'_>> = pairs
        .par_iter()
        .map(|&((version, truth), case)| {
            let verdict = truth.get(&case.id).map_or(Verdict::Skipped, |measured| compare(case, measured, *version));
            Judged { case, version: *version, verdict }
        })
        .collect();

    if arguments.json {
        return Ok(as_json(&judged));
    }
    if arguments.case.is_some() {
        return Ok(one_case(&cases[0], &truths, &judged));
    }
    Ok(report(&judged))
}

fn report(judged: &[Judged<'_>]) -> String {
    let mut text = String::new();
    let mut by_case: BTreeMap<(&str, &str), BTreeMap<String, Vec<PgVersion>>> = BTreeMap::new();
    for Judged { case, version, verdict } in judged {
        let lines = match verdict {
            Verdict::Skipped | Verdict::Agrees => continue,
            Verdict::Missing => vec!["the model does not return the statement".to_owned()],
            Verdict::Differs(differences) => differences.iter().map(ToString::to_string).collect(),
        };
        let case = by_case.entry((&case.category, &case.id)).or_default();
        for line in lines {
            case.entry(line).or_default().push(*version);
        }
    }
    let mut last_category = "";
    for ((category, id), lines) in &by_case {
        if *category != last_category {
            let _ = writeln!(text, "{category}");
            last_category = category;
        }
        let _ = writeln!(text, "  {id}");
        for (line, versions) in lines {
            let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "    {line}  [{}]", versions.join(" "));
        }
    }
    let _ = writeln!(text, "{}", totals(judged));
    text
}

fn totals(judged: &[Judged<'_>]) -> String {
    let mut lines = Vec::new();
    for version in MAJORS {
        let of_version = || judged.iter().filter(|judged| judged.version == version);
        let compared = of_version().filter(|judged| judged.verdict != Verdict::Skipped).count();
        let agree = of_version().filter(|judged| judged.verdict == Verdict::Agrees).count();
        let skipped = of_version().count() - compared;
        if compared > 0 {
            lines.push(format!("PostgreSQL {version}: {} agree, {skipped} skipped", share(agree, compared)));
        }
    }
    lines.join("\n")
}

fn as_json(judged: &[Judged<'_>]) -> String {
    let count = |wanted: &Verdict| judged.iter().filter(|judged| judged.verdict == *wanted).count();
    let mismatches: Vec<_> = judged
        .iter()
        .filter_map(|Judged { case, version, verdict }| match verdict {
            Verdict::Differs(differences) => {
                let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
                Some(json!({"id": case.id, "category": case.category, "pg_version": version.0, "differences": lines}))
            }
            _ => None,
        })
        .collect();
    let summary = json!({
        "agree": count(&Verdict::Agrees),
        "skipped": count(&Verdict::Skipped),
        "missing": count(&Verdict::Missing),
        "differ": mismatches.len(),
        "mismatches": mismatches,
    });
    format!("{summary:#}")
}

fn one_case(case: &Case, truths: &[(PgVersion, Truth)], judged: &[Judged<'_>]) -> String {
    let mut text = format!("{} ({})\n", case.id, case.category);
    if !case.notes.is_empty() {
        let _ = writeln!(text, "{}", case.notes);
    }
    for statement in &case.setup {
        let _ = writeln!(text, "setup:   {statement}");
    }
    for statement in case.session.statements() {
        let _ = writeln!(text, "session: {statement}");
    }
    let place = if case.outside_tx { "outside a transaction" } else { "in a transaction" };
    let _ = writeln!(text, "sql:     {}  ({place})", case.sql);
    let run = Run::new(case);
    for ((version, truth), Judged { verdict, .. }) in truths.iter().zip(judged) {
        let _ = writeln!(text, "\nPostgreSQL {version}: {verdict:?}");
        if let Some(measured) = truth.get(&case.id) {
            let _ = writeln!(text, "server: {measured:?}");
        }
        let files = effects(&run.migrations(), *version, &Functions::default());
        let statement = files.iter().flatten().find(|statement| statement.statement.start >= run.start);
        let _ = writeln!(text, "model:  {:?}", statement.map(|statement| &statement.effects));
    }
    text
}
