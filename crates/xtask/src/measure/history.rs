//! `cargo xtask measure history`

use super::history_truth::{Database, Histories, Judged, Verdict, replay};
use super::share;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    histories: Histories,
    /// How many examples to show of each kind of mismatch.
    #[arg(long, value_name = "N", default_value_t = 2)]
    show: usize,
    /// Only mismatches whose kind contains this text, such as `AlterTableStmt SetNotNull`.
    #[arg(long, value_name = "TEXT")]
    kind: Option<String>,
    /// Also list mismatches of statements whose objects the history does not show.
    #[arg(long)]
    unknown: bool,
    /// Skip statements that failed on the server, instead of replaying them as the model sees them.
    #[arg(long)]
    without_failed: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let databases = arguments.histories.databases(arguments.without_failed)?;
    let judged: Vec<(&Database, Vec<Judged<'_>>)> =
        databases.par_iter().map(|database| (database, replay(database))).collect();

    let mut text = mismatches(&judged, arguments);
    let mut by_repo: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut all = Tally::default();
    for (database, judged) in &judged {
        for one in judged {
            by_repo.entry(&database.repo).or_default().count(one);
            all.count(one);
        }
    }
    for (repo, tally) in &by_repo {
        let _ = writeln!(text, "{repo:30} {tally}");
    }
    let _ = writeln!(text, "{:30} {all}", "all");
    Ok(text)
}

/// Statements by judgement.
#[derive(Default)]
struct Tally {
    known: usize,
    known_exact: usize,
    unknown: usize,
    unknown_exact: usize,
    missing: usize,
}

impl Tally {
    fn count(&mut self, judged: &Judged<'_>) {
        let exact = usize::from(matches!(judged.verdict, Verdict::Agrees));
        if judged.unknown.is_empty() {
            self.known += 1;
            self.known_exact += exact;
        } else {
            self.unknown += 1;
            self.unknown_exact += exact;
        }
        self.missing += usize::from(matches!(judged.verdict, Verdict::Missing));
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (exact, compared) = (self.known_exact + self.unknown_exact, self.known + self.unknown);
        write!(f, "{} exact; objects known: {}", share(exact, compared), share(self.known_exact, self.known))?;
        write!(f, "; unknown: {}; not found: {}", share(self.unknown_exact, self.unknown), self.missing)
    }
}

/// Mismatches by kind of statement and by what differs, the most frequent last, next to the totals.
fn mismatches(judged: &[(&Database, Vec<Judged<'_>>)], arguments: &Arguments) -> String {
    let mut groups: BTreeMap<String, Vec<(&Database, &Judged<'_>)>> = BTreeMap::new();
    for (database, judged) in judged {
        for one in judged.iter().filter(|one| arguments.unknown || one.unknown.is_empty()) {
            let what = match &one.verdict {
                Verdict::Agrees => continue,
                Verdict::Missing => "not found",
                Verdict::Differs(differences) => differences[0].what,
            };
            let group = format!("{}: {what}", one.measured.label());
            if arguments.kind.as_ref().is_none_or(|kind| group.contains(kind)) {
                groups.entry(group).or_default().push((database, one));
            }
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, members)| members.len());
    let mut text = String::new();
    for (group, members) in groups {
        let _ = writeln!(text, "{group}: {}", members.len());
        for (database, one) in members.iter().take(arguments.show) {
            let _ = write!(text, "{}", example(database, one));
        }
        text.push('\n');
    }
    text
}

fn example(database: &Database, judged: &Judged<'_>) -> String {
    let source = &judged.file.parsed.source;
    let line = source.position(judged.measured.start).line;
    let mut text = format!("  {}: {}:{line}\n", database.repo, source.path);
    let sql: Vec<&str> = judged.file.text_of(judged.measured).split_whitespace().collect();
    let sql: String = sql.join(" ").chars().take(300).collect();
    let _ = writeln!(text, "    {sql}");
    if let Verdict::Differs(differences) = &judged.verdict {
        for difference in differences.iter().take(12) {
            let _ = writeln!(text, "      {difference}");
        }
    }
    for reason in &judged.unknown {
        let _ = writeln!(text, "      unknown: {reason}");
    }
    text
}
