//! `cargo xtask measure schemas`: histories run on servers, and their schemas compared in two ways: that of the model
//! with that of the server, and that of the server with what the SQL of the model makes in an empty database.

mod alone;
mod histories;
mod laboratory;

use alone::Alone;
use histories::{History, checkout, histories, projects};
use laboratory::{Laboratory, Left};
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::migration::Migration;
use pgvet_model::version::{PgVersion, VersionRange};
use pgvet_schema::{Action, Change, Comparison, NotCompared, Schema, compare, script};
use pgvet_workspace::config::parse_duration;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Majors, separated by commas.
    #[arg(long, value_name = "MAJORS", value_delimiter = ',', default_values_t = [14, 18])]
    pg_version: Vec<u8>,
    /// Only histories whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// The projects in the folders of this folder instead of the fixtures, such as checkouts of public repositories.
    #[arg(long, value_name = "DIR")]
    checkouts: Option<PathBuf>,
    /// Also list what is not compared, and the SQL of each history that differs.
    #[arg(long)]
    all: bool,
    /// End a history of a checkout after this time, such as `90s`.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "5m")]
    time_limit: Duration,
}

/// The result on one major.
pub struct Report {
    pub version: PgVersion,
    pub histories: usize,
    /// Histories whose schemas were compared.
    pub compared: usize,
    /// Histories with a statement that failed on the server and not in the model, or the other way round.
    pub skipped: Vec<String>,
    /// Histories that were compared up to a migration that PostgreSQL refuses, and its reason.
    pub shortened: Vec<String>,
    /// Objects that were compared, without parts of relations.
    pub objects: usize,
    /// Differences between the model and the server, by sort.
    pub model: BTreeMap<String, Vec<String>>,
    /// Differences between the server and what the model's SQL makes.
    pub scripts: BTreeMap<String, Vec<String>>,
    /// What the model's SQL omits, by reason.
    pub omitted: BTreeMap<String, usize>,
    /// Properties that were not compared, by reason.
    pub not_compared: BTreeMap<String, usize>,
    /// Scripts that were applied.
    pub applied: usize,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let mut text = String::new();
    for major in &arguments.pg_version {
        let version = PgVersion(*major);
        let report = match &arguments.checkouts {
            Some(folder) => measure_checkouts(version, folder, arguments)?,
            None => measure(version, &arguments.only)?,
        };
        report.write(&mut text, arguments.all);
    }
    Ok(text)
}

/// Runs the histories whose name contains a text on a server.
///
/// # Errors
/// Says what could not be read or run.
pub fn measure(version: PgVersion, only: &str) -> Result<Report, String> {
    let all: Vec<History> = histories()?.into_iter().filter(|history| history.name.contains(only)).collect();
    let runs = Laboratory::new(version, &all).run(&all)?;
    compared(version, &all, &runs, &|scripts| Laboratory::new(version, &all).apply(scripts))
}

/// Runs the histories of the projects in a folder, each on a server of its own and in limited time, and says how each
/// ended. What cannot be run is skipped with the reason.
fn measure_checkouts(version: PgVersion, folder: &Path, arguments: &Arguments) -> Result<Report, String> {
    let alone = Alone { version, limit: arguments.time_limit };
    let mut report = Report::new(version);
    for project in projects(folder)? {
        let (project, loaded) = checkout(&project);
        for history in loaded.unwrap_or_else(|why| vec![History::unreadable(&project, why)]) {
            if !history.name.contains(&arguments.only) {
                continue;
            }
            let started = Instant::now();
            let apply = |scripts: &[String]| Ok(scripts.iter().map(|script| alone.apply(script)).collect());
            let name = history.name.clone();
            let (history, left, refused) = alone.run(history);
            let mut one = compared(version, &[history], &[left], &apply)?;
            one.shortened.extend(refused.filter(|_| one.compared > 0).map(|why| format!("{name}: {why}")));
            let _ = writeln!(io::stderr(), "{version} {:.0?} {}", started.elapsed(), one.line(&name));
            report.add(one);
        }
    }
    Ok(report)
}

/// Runs scripts, each in an empty database, and returns what each leaves.
type Apply<'a> = dyn Fn(&[String]) -> Result<Vec<Left>, String> + 'a;

/// Compares what histories have left with the model, and with what `apply` says that the model's SQL makes.
fn compared(version: PgVersion, all: &[History], runs: &[Left], apply: &Apply<'_>) -> Result<Report, String> {
    let mut report = Report { histories: all.len(), ..Report::new(version) };
    let mut scripts = Vec::new();
    for (history, run) in all.iter().zip(runs) {
        let observed = match run {
            Ok(observed) => observed,
            Err(why) => {
                report.skipped.push(format!("{}: {why}", history.name));
                continue;
            }
        };
        let model = schema_of(history, version);
        if model.relations.iter().any(|relation| !relation.created_by_migrations) {
            report.skipped.push(format!("{}: no statement creates some of its tables", history.name));
            continue;
        }
        if model.gaps.iter().any(|gap| gap.contains("known only at run time")) {
            report.skipped.push(format!("{}: it runs code that is known only at run time", history.name));
            continue;
        }
        report.compared += 1;
        report.objects += observed.relations.len() + observed.functions.len() + observed.enums.len();
        report.objects += observed.domains.len() + observed.sequences.len() + observed.publications.len();
        let comparison = compare(&model, observed);
        note(&mut report.model, &history.name, &comparison.changes);
        for not_compared in &comparison.not_compared {
            *report.not_compared.entry(reason(not_compared)).or_default() += 1;
        }
        scripts.push((history, script(&model), observed));
    }
    for (_, script, _) in &scripts {
        for omitted in &script.omitted {
            let why = omitted.rsplit_once(": ").map_or(omitted.as_str(), |(_, why)| why);
            *report.omitted.entry(why.to_owned()).or_default() += 1;
        }
    }
    let texts: Vec<String> = scripts.iter().map(|(_, script, _)| script.text.clone()).collect();
    for ((history, script, observed), made) in scripts.iter().zip(apply(&texts)?) {
        match made {
            Ok(made) => {
                report.applied += 1;
                let comparison = without_omitted(compare(observed, &made), &script.omitted);
                note(&mut report.scripts, &history.name, &comparison.changes);
            }
            Err(why) => {
                report.scripts.entry("the SQL fails".to_owned()).or_default().push(format!("{}: {why}", history.name));
            }
        }
    }
    Ok(report)
}

/// What a script says that it omits is no difference.
fn without_omitted(mut comparison: Comparison, omitted: &[String]) -> Comparison {
    let is_omitted = |names: &str| {
        names.split(", ").all(|name| omitted.iter().any(|omitted| omitted.starts_with(&format!("statistics {name}:"))))
    };
    for change in &mut comparison.changes {
        change.properties.retain(|property| property.name != "statistics" || !is_omitted(property.before()));
    }
    comparison.changes.retain(|change| change.action != Action::Changed || !change.properties.is_empty());
    comparison.changes.retain(|change| {
        let name = change.name();
        !omitted.iter().any(|omitted| {
            omitted.contains(&format!(" {name}:"))
                || omitted.contains(&format!(" {}:", change.object))
                || omitted.contains(&format!(" {name}("))
                || name.contains('(') && omitted.contains(&format!(" {}:", name.split('(').next().unwrap_or_default()))
        })
    });
    comparison
}

fn reason(not_compared: &NotCompared) -> String {
    let why = if not_compared.why.ends_with("may mean the same") { "two spellings" } else { &not_compared.why };
    format!("{} {}: {why}", not_compared.kind.noun(), not_compared.property)
}

fn note(differences: &mut BTreeMap<String, Vec<String>>, history: &str, changes: &[Change]) {
    for change in changes {
        let (kind, action) = (change.kind.noun(), format!("{:?}", change.action).to_lowercase());
        if change.properties.is_empty() {
            let example = format!("{history}: {} {}", change.name(), change.definition);
            differences.entry(format!("{kind} {action}")).or_default().push(example);
        }
        for property in &change.properties {
            let (before, after) = (property.before(), property.after());
            let example = format!("{history}: {}: {before} -> {after}", change.name());
            differences.entry(format!("{kind}: {}", property.name)).or_default().push(example);
        }
    }
}

/// The schema that the model gives.
fn schema_of(history: &History, version: PgVersion) -> Schema {
    let migrations: Vec<Migration<'_>> = history.migrations(0);
    let mut state = Checkpoint::default();
    state.advance(&migrations, migrations.len(), VersionRange { from: version, to: version }, &());
    pgvet_schema::read(state.catalog(), version)
}

impl Report {
    fn new(version: PgVersion) -> Self {
        Self {
            version,
            histories: 0,
            compared: 0,
            skipped: Vec::new(),
            shortened: Vec::new(),
            objects: 0,
            model: BTreeMap::new(),
            scripts: BTreeMap::new(),
            omitted: BTreeMap::new(),
            not_compared: BTreeMap::new(),
            applied: 0,
        }
    }

    /// Adds what other histories have shown.
    fn add(&mut self, other: Self) {
        self.histories += other.histories;
        self.compared += other.compared;
        self.skipped.extend(other.skipped);
        self.shortened.extend(other.shortened);
        self.objects += other.objects;
        self.applied += other.applied;
        for (mine, its) in [(&mut self.model, other.model), (&mut self.scripts, other.scripts)] {
            its.into_iter().for_each(|(sort, examples)| mine.entry(sort).or_default().extend(examples));
        }
        for (mine, its) in [(&mut self.omitted, other.omitted), (&mut self.not_compared, other.not_compared)] {
            its.into_iter().for_each(|(why, count)| *mine.entry(why).or_default() += count);
        }
    }

    /// How a single history ended.
    fn line(&self, name: &str) -> String {
        if let Some(skipped) = self.skipped.first() {
            return format!("skipped {skipped}");
        }
        let count = |differences: &BTreeMap<String, Vec<String>>| differences.values().map(Vec::len).sum::<usize>();
        let (model, scripts) = (count(&self.model), count(&self.scripts));
        format!("{name}: {} objects, differences: {model} of the model, {scripts} of its SQL", self.objects)
    }

    /// What was compared, in one line.
    pub fn summary(&self) -> String {
        let Self { version, histories, compared, objects, applied, .. } = self;
        format!(
            "PostgreSQL {version}: {compared} of {histories} histories, {objects} objects, {applied} scripts applied"
        )
    }

    fn write(&self, text: &mut String, all: bool) {
        let _ = writeln!(text, "{}", self.summary());
        let lists = [("skipped", &self.skipped), ("compared up to a refused migration", &self.shortened)];
        for (title, list) in lists {
            let _ = writeln!(text, "\n{title}: {}", list.len());
            if all {
                for one in list {
                    let _ = writeln!(text, "  {one}");
                }
            }
        }
        for (title, differences) in [("model and server", &self.model), ("server and script", &self.scripts)] {
            let count: usize = differences.values().map(Vec::len).sum();
            let _ = writeln!(text, "\n{title}: {count} differences");
            for (sort, examples) in differences {
                let _ = writeln!(text, "  {} {sort}", examples.len());
                let shown = if all { examples.len() } else { 3 };
                for example in examples.iter().take(shown) {
                    let _ = writeln!(text, "      {}", example.replace('\n', " "));
                }
            }
        }
        for (title, counts) in [("omitted from SQL", &self.omitted), ("not compared", &self.not_compared)] {
            let _ = writeln!(text, "\n{title}: {}", counts.values().sum::<usize>());
            for (why, count) in counts {
                let _ = writeln!(text, "  {count} {why}");
            }
        }
    }
}
