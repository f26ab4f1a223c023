//! `pgvet check --fix`: fixes made round after round, until no finding offers one.

use super::baseline;
use crate::args::CheckArgs;
use crate::error::{ExitStatus, Failure};
use crate::inert;
use crate::report::{Finding, Report, plural};
use crate::style::Style;
use pgvet_linter::fix::{Fix, apply};
use pgvet_linter::refusal::{is_refusal, with_refusals};
use pgvet_linter::rules;
use pgvet_workspace::config::Config;
use pgvet_workspace::{Change, Project, write_changes};
use similar::TextDiff;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// A fix may make room for the next one, but not for ever.
const ROUNDS: usize = 20;

/// The result of the rounds.
struct Fixed {
    changes: Vec<Change>,
    /// How many fixes were made.
    made: usize,
    /// Files in which a fix would have made PostgreSQL refuse something; they are as they were before it.
    spoiled: BTreeSet<String>,
}

/// Changes the files, and the project with them.
pub(super) fn make(args: &CheckArgs, project: &mut Project) -> Result<(), Failure> {
    if args.input.paths.iter().any(|path| path.as_os_str() == "-") {
        let help = "see what would change with `--diff`";
        return Err(Failure::new("standard input cannot be changed").help(help));
    }
    let fixed = fix(args, project)?;
    write_changes(&fixed.changes).map_err(|problem| Failure::from(&problem))?;
    let mut stderr = io::stderr().lock();
    fixed.tell_spoiled(&mut stderr)?;
    if fixed.made > 0 {
        writeln!(stderr, "Made {} in {}", plural_fixes(fixed.made), plural(fixed.changes.len(), "file"))?;
    }
    Ok(())
}

/// Shows what [`make`] would change.
pub(super) fn show(args: &CheckArgs, project: &mut Project, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let fixed = fix(args, project)?;
    let style = Style::new(args.input.color);
    inert::through_if_seen(out, |out| fixed.changes.iter().try_for_each(|change| write_change(change, style, out)))?;
    fixed.tell_spoiled(&mut io::stderr().lock())?;
    if !project.problems.is_empty() {
        return Ok(ExitStatus::NotChecked);
    }
    Ok(if fixed.changes.is_empty() { ExitStatus::Clean } else { ExitStatus::Findings })
}

pub(super) fn write_change(change: &Change, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let path = inert::line(&change.path.display().to_string()).into_owned();
    let diff = TextDiff::from_lines(&change.before, &change.after);
    let unified = diff.unified_diff().header(&path, &path).to_string();
    unified.split_inclusive('\n').try_for_each(|line| write_line(line, style, out))
}

fn write_line(line: &str, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let colour = match line.as_bytes().first() {
        Some(b'+') => "32",
        Some(b'-') => "31",
        Some(b'@') => "36",
        _ => "",
    };
    if !style.color || colour.is_empty() {
        return out.write_all(line.as_bytes());
    }
    let text = line.trim_end_matches(['\r', '\n']);
    let mark = inert::mark();
    write!(out, "{mark}\x1b[{colour}m{text}{mark}\x1b[0m{}", &line[text.len()..])
}

impl Fixed {
    fn tell_spoiled(&self, out: &mut dyn Write) -> io::Result<()> {
        inert::through(out, inert::Kind::Text, |out| {
            self.spoiled.iter().map(|path| inert::line(path)).try_for_each(|path| {
                writeln!(out, "warning: `{path}` keeps a finding: PostgreSQL would refuse the migration after its fix")
            })
        })
    }
}

fn plural_fixes(count: usize) -> String {
    if count == 1 { "1 fix".to_owned() } else { format!("{count} fixes") }
}

/// Makes fixes in the project; nothing is written.
fn fix(args: &CheckArgs, project: &mut Project) -> Result<Fixed, Failure> {
    let mut rounds = Rounds { args, originals: BTreeMap::new(), made: BTreeMap::new(), spoiled: BTreeSet::new() };
    let mut failures = BTreeMap::new();
    for round in 0..=ROUNDS {
        let mut chosen = rounds.look(project)?;
        if round > 0 {
            rounds.undo_spoiled(project, &failures, &mut chosen);
        }
        if chosen.fixes.is_empty() || round == ROUNDS {
            break;
        }
        failures = chosen.failures;
        rounds.make(project, chosen.fixes);
    }
    let changes = rounds.originals.into_iter().filter_map(|(index, before)| {
        let file = project.files.get(index)?;
        let after = file.shown().text.clone();
        (after != before).then(|| Change { path: file.path.clone(), before, after })
    });
    Ok(Fixed { changes: changes.collect(), made: rounds.made.into_values().sum(), spoiled: rounds.spoiled })
}

struct Rounds<'a> {
    args: &'a CheckArgs,
    /// The texts that were read, by the index of the file.
    originals: BTreeMap<usize, String>,
    made: BTreeMap<usize, usize>,
    spoiled: BTreeSet<String>,
}

/// The fixes chosen in a round, by the index of the file.
struct Chosen {
    fixes: BTreeMap<usize, Vec<Fix>>,
    /// How many statements PostgreSQL refuses.
    failures: BTreeMap<usize, usize>,
}

impl Rounds<'_> {
    fn look(&self, project: &Project) -> Result<Chosen, Failure> {
        let args = self.args;
        // A fix of one rule may break what the user did not ask about.
        let outcome = super::check(project, &|config| with_refusals(args.settings(config)));
        let mut report = Report::new(project, &outcome);
        if let Some(baseline) = baseline::known(project, &args.baseline, &|config| args.settings(config))? {
            report = report.without_known(&baseline);
        }
        let indexes = project.file_indexes();
        let mut chosen = Chosen { fixes: BTreeMap::new(), failures: BTreeMap::new() };
        for finding in &report.findings {
            let index = indexes[finding.diagnostic.file as usize];
            if is_refusal(finding.diagnostic) {
                *chosen.failures.entry(index).or_default() += 1;
            }
            for fix in self.asked_for(finding) {
                chosen.fixes.entry(index).or_default().push(fix.clone());
            }
        }
        Ok(chosen)
    }

    /// The fixes of a finding that were asked for.
    fn asked_for<'f>(&self, finding: &'f Finding<'_>) -> Vec<&'f Fix> {
        let least = self.args.fix.applicability();
        // What was added to look for refusals was not asked for.
        let asked = self.args.settings(&Config::default());
        let is_asked =
            || rules::find(finding.diagnostic.rule).is_some_and(|rule| asked.severity_of(&rule.meta).is_some());
        if is_refusal(finding.diagnostic) && !is_asked() {
            return Vec::new();
        }
        if finding.file.encoding.is_some() || self.spoiled.contains(finding.path) {
            return Vec::new();
        }
        finding.diagnostic.fixes.iter().filter(|fix| fix.applicability >= least).collect()
    }

    fn make(&mut self, project: &mut Project, fixes: BTreeMap<usize, Vec<Fix>>) {
        for (index, fixes) in fixes {
            let text = project.files[index].shown().text.clone();
            let applied = apply(&text, &fixes);
            *self.made.entry(index).or_default() += applied.made.len();
            self.originals.entry(index).or_insert(text);
            project.replace_text(index, applied.text);
        }
    }

    /// A file in which more fails than before gets its text back, and is left alone.
    fn undo_spoiled(&mut self, project: &mut Project, before: &BTreeMap<usize, usize>, chosen: &mut Chosen) {
        for (index, failures) in &chosen.failures {
            let Some(original) = self.originals.get(index) else { continue };
            if before.get(index).unwrap_or(&0) < failures {
                self.spoiled.insert(project.files[*index].shown().path.clone());
                project.replace_text(*index, original.clone());
                self.made.remove(index);
                chosen.fixes.remove(index);
            }
        }
    }
}
