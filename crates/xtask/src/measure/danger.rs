//! `cargo xtask measure danger`: of the statements of lock truth that rewrite or scan an existing table under a lock
//! that blocks writes, how many are reported, and how many reports are about others.

use super::lock_truth::{Case, Measured, Run, cases, truth};
use super::{MAJORS, settings_for, share, squawk};
use pgvet_linter::check::check;
use pgvet_linter::rule::Rule;
use pgvet_linter::rules::locking;
use pgvet_linter::severity::Severity;
use pgvet_model::version::PgVersion;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Rules that claim a rewrite or scan under a lock that blocks writes. Other rules of the category are about locks that
/// are brief by themselves.
static LONG_LOCK_RULES: &[&Rule] = &[
    &locking::attach_partition_scans::RULE,
    &locking::column_default_rewrites_table::RULE,
    &locking::constraint_builds_index::RULE,
    &locking::constraint_scans_table::RULE,
    &locking::domain_constraint_scans_tables::RULE,
    &locking::foreign_key_without_not_valid::RULE,
    &locking::index_without_concurrently::RULE,
    &locking::refresh_blocks_readers::RULE,
    &locking::reindex_without_concurrently::RULE,
    &locking::set_not_null_scans_table::RULE,
    &locking::table_rewrite::RULE,
    &locking::type_change_rewrites_table::RULE,
    &locking::validate_with_stronger_subcommand::RULE,
];

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only this major.
    #[arg(long, value_name = "MAJOR")]
    pg_version: Option<u8>,
    /// Run squawk beside it.
    #[arg(long, value_name = "PATH")]
    squawk: Option<PathBuf>,
}

/// The rules that reported a case, by its id.
type Reports = BTreeMap<String, BTreeSet<String>>;

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let cases = cases()?;
    let mut text = String::new();
    for version in MAJORS {
        if arguments.pg_version.is_some_and(|wanted| wanted != version.0) {
            continue;
        }
        let truth = truth(version)?;
        let valid = |case: &&Case| truth.get(&case.id).is_some_and(|measured| measured.error.is_none());
        let ran: Vec<(&Case, &Measured)> = cases.iter().filter(valid).map(|case| (case, &truth[&case.id])).collect();
        let score = Score::of(&ran, &pgvet(&ran, version));
        let _ = writeln!(text, "PostgreSQL {version}, pgvet:  {score}{}", score.details());
        if let Some(squawk) = &arguments.squawk {
            let score = Score::of(&ran, &with_squawk(squawk, &ran, version)?);
            let _ = writeln!(text, "PostgreSQL {version}, squawk: {score}");
        }
    }
    Ok(text)
}

fn pgvet(ran: &[(&Case, &Measured)], version: PgVersion) -> Reports {
    let settings = settings_for(version);
    let report = |(case, _): &(&Case, &Measured)| {
        let run = Run::new(case);
        let findings = check(&run.migrations(), &settings).into_iter();
        let about = findings.filter(|finding| {
            finding.severity >= Severity::Warning
                && finding.statement.start >= run.start
                && LONG_LOCK_RULES.iter().any(|rule| finding.is_of(&rule.meta))
        });
        (case.id.clone(), about.map(|finding| finding.rule.to_owned()).collect())
    };
    ran.par_iter().map(report).collect()
}

/// squawk reads one file at a time and would take the tables of the setup for new ones: it gets the statement alone.
fn with_squawk(squawk: &Path, ran: &[(&Case, &Measured)], version: PgVersion) -> Result<Reports, String> {
    let folder = std::env::temp_dir().join(format!("pgvet-danger-{}", std::process::id()));
    let result = write_and_run(squawk, &folder, ran, version);
    std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    result
}

fn write_and_run(
    squawk: &Path,
    folder: &Path,
    ran: &[(&Case, &Measured)],
    version: PgVersion,
) -> Result<Reports, String> {
    let broken = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(broken)?;
    let mut files = Vec::new();
    for (case, _) in ran {
        let file = folder.join(format!("{}.sql", case.id));
        std::fs::write(&file, format!("{};\n", case.sql)).map_err(broken)?;
        files.push(file);
    }
    let mut reports = Reports::new();
    for finding in squawk::run(squawk, version, &files)?.into_iter().filter(squawk::Finding::is_about_locks) {
        let id = finding.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        reports.entry(id).or_default().insert(finding.rule);
    }
    Ok(reports)
}

/// Ids of cases by how they were judged.
#[derive(Default)]
struct Score<'a> {
    found: Vec<&'a str>,
    missed: Vec<&'a str>,
    /// Reported, but harmless, with the rules.
    falsely: Vec<(&'a str, BTreeSet<String>)>,
}

impl<'a> Score<'a> {
    fn of(ran: &[(&'a Case, &Measured)], reports: &Reports) -> Self {
        let mut score = Self::default();
        for (case, measured) in ran {
            let rules = reports.get(&case.id).cloned().unwrap_or_default();
            match (measured.endangered().is_empty(), rules.is_empty()) {
                (false, false) => score.found.push(&case.id),
                (false, true) => score.missed.push(&case.id),
                (true, false) => score.falsely.push((&case.id, rules)),
                (true, true) => {}
            }
        }
        score
    }

    fn details(&self) -> String {
        let missed = self.missed.iter().map(|id| format!("\n  missed: {id}"));
        let falsely = self.falsely.iter().map(|(id, rules)| format!("\n  false:  {id} {rules:?}"));
        missed.chain(falsely).collect()
    }
}

impl std::fmt::Display for Score<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dangerous = self.found.len() + self.missed.len();
        let reported = self.found.len() + self.falsely.len();
        write!(f, "dangerous statements found {}", share(self.found.len(), dangerous))?;
        write!(f, "; reported statements that are harmless {}", share(self.falsely.len(), reported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_on_a_harmless_statement_is_false() {
        let cases = cases().unwrap();
        let truth = truth(PgVersion(17)).unwrap();
        let ids = ["add_col_default_null", "add_col_default_udf_default_volatility"];
        let ran: Vec<_> = cases.iter().filter(|c| ids.contains(&c.id.as_str())).map(|c| (c, &truth[&c.id])).collect();
        let rules = BTreeSet::from(["table-rewrite".to_owned()]);
        let score = Score::of(&ran, &Reports::from([(ids[0].to_owned(), rules)]));
        assert_eq!(score.missed, [ids[1]]);
        assert_eq!(score.falsely.len(), 1);
        assert!(score.found.is_empty());
    }
}
