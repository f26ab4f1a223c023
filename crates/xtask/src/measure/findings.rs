//! `cargo xtask measure findings`: what is reported on real migrations, with a sample to be judged by a person.

use super::history_truth::{Database, File, Histories};
use super::random::Random;
use super::{MAJORS, share};
use pgvet_linter::check::check;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::settings::Settings;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::version::VersionRange;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    histories: Histories,
    /// Only findings of this rule.
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Print this many findings, drawn at random, with the lines around them.
    #[arg(long, value_name = "N", default_value_t = 0)]
    sample: usize,
    /// The same seed draws the same findings.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Also run the opt-in rules.
    #[arg(long)]
    strict: bool,
}

struct Finding<'a> {
    database: &'a Database,
    file: &'a File,
    diagnostic: Diagnostic,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let databases = arguments.histories.databases(false)?;
    let settings = Settings {
        versions: VersionRange { from: MAJORS[0], to: MAJORS[MAJORS.len() - 1] },
        strict: arguments.strict,
        ..Settings::default()
    };
    let mut findings: Vec<Finding<'_>> =
        databases.par_iter().flat_map_iter(|database| findings_in(database, &settings)).collect();
    findings.retain(|finding| arguments.rule.as_ref().is_none_or(|rule| finding.diagnostic.rule == rule));

    let mut text = summary(&databases, &findings);
    let mut random = Random::new(arguments.seed);
    for number in 1..=arguments.sample.min(findings.len()) {
        let finding = findings.swap_remove(random.below(findings.len()));
        let _ = write!(text, "\n{number}. {}", in_context(&finding));
    }
    Ok(text)
}

fn findings_in<'a>(database: &'a Database, settings: &Settings) -> Vec<Finding<'a>> {
    let migrations: Vec<Migration<'_>> = database.files.iter().map(|file| as_its_tool_runs(database, file)).collect();
    let with_file = |diagnostic: Diagnostic| {
        let file = database.files.get(diagnostic.file as usize)?;
        Some(Finding { database, file, diagnostic })
    };
    check(&migrations, settings).into_iter().filter_map(with_file).collect()
}

/// Repositories whose tool sends a file as one string: what follows a COMMIT in it is one transaction again.
const ONE_STRING: [&str; 2] = ["civitai/civitai", "goharbor/harbor"];

/// The truth was measured with psql, which sends statements one by one.
fn as_its_tool_runs<'a>(database: &Database, file: &'a File) -> Migration<'a> {
    let migration = file.migration();
    if migration.transaction == TransactionMode::Autocommit && ONE_STRING.contains(&database.repo.as_str()) {
        return Migration { transaction: TransactionMode::SingleString, ..migration };
    }
    migration
}

fn summary(databases: &[Database], findings: &[Finding<'_>]) -> String {
    let mut text = String::new();
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for database in databases {
        *files.entry(&database.repo).or_default() += database.files.len();
    }
    let mut with_finding: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut rules: BTreeMap<(&str, &str), (usize, BTreeSet<&str>)> = BTreeMap::new();
    for Finding { database, file, diagnostic } in findings {
        with_finding.entry(&database.repo).or_default().insert(&file.parsed.source.path);
        let (count, repos) = rules.entry((diagnostic.severity.as_str(), diagnostic.rule)).or_default();
        *count += 1;
        repos.insert(&database.repo);
    }
    for (repo, files) in &files {
        let reported = with_finding.get(repo).map_or(0, BTreeSet::len);
        let count = findings.iter().filter(|finding| finding.database.repo == *repo).count();
        let _ = writeln!(text, "{repo:30} {count:6} findings in {} files", share(reported, *files));
    }
    let (all, reported) = (files.values().sum(), with_finding.values().map(BTreeSet::len).sum());
    let _ = writeln!(text, "{:30} {:6} findings in {} files\n", "all", findings.len(), share(reported, all));
    let mut rules: Vec<_> = rules.into_iter().collect();
    rules.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for ((severity, rule), (count, repos)) in rules {
        let _ = writeln!(text, "{count:6} {severity:8} {rule} ({} repositories)", repos.len());
    }
    text
}

/// The finding as a person would judge it: message, help, and the statement with its place.
fn in_context(finding: &Finding<'_>) -> String {
    const LINES: u32 = 3;
    let Finding { database, file, diagnostic } = finding;
    let source = &file.parsed.source;
    let at = source.position(diagnostic.range.start);
    let (rule, severity) = (diagnostic.rule, diagnostic.severity.as_str());
    let mut text = format!("{} {}:{}:{}\n", database.repo, source.path, at.line, at.column);
    let _ = writeln!(text, "   {severity}[{rule}] {}", diagnostic.message);
    for line in diagnostic.help.iter().flat_map(|help| help.lines()) {
        let _ = writeln!(text, "   help: {line}");
    }
    for (line, content) in (1..).zip(source.text.lines()) {
        if line + LINES >= at.line && line <= at.line + LINES {
            let mark = if line == at.line { '>' } else { ' ' };
            let content: String = content.chars().take(160).collect();
            let _ = writeln!(text, "   {mark} {line:4} | {content}");
        }
    }
    text
}
