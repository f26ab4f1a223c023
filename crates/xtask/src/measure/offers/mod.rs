//! `cargo xtask measure offers`: whether the fixes and rewrites that findings on real migrations offer do what they
//! say.
//!
//! [`project`] is a copy of a project's migrations, [`offer`] puts in place what a finding offers and checks it again,
//! and [`site`] has servers with the history, on which the original and the result are run.

mod offer;
mod project;
mod site;

use super::history_truth::Histories;
use super::random::Random;
use super::share;
use offer::{Changed, Offer, Way};
use pgvet_model::version::{PgVersion, VersionRange};
use pgvet_trace::server::Server;
use project::Copied;
use site::Site;
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    histories: Histories,
    /// Only findings of this rule.
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Try this many offers, drawn at random.
    #[arg(long, value_name = "N", default_value_t = 100)]
    sample: usize,
    /// The same seed draws the same offers.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Majors, separated by commas. What is offered must work on all of them.
    #[arg(long, value_name = "MAJORS", value_delimiter = ',', default_values_t = [14, 18])]
    pg_version: Vec<u8>,
    /// Show each offer with its result.
    #[arg(long)]
    all: bool,
}

/// One more is drawn for each so many, because some originals run on none of the majors.
const SPARE: usize = 5;

/// The outcome of an offer.
enum Outcome {
    /// On these majors; on the others the original does not run.
    Works(Vec<u8>),
    /// `pgvet rewrite` makes no plan, and says why.
    Refused(String),
    /// The original runs nowhere, for this reason.
    NoOriginal(String),
    Broken(String),
}

struct Tried {
    /// When it was drawn.
    number: usize,
    /// The finding, for people.
    shown: String,
    rule: &'static str,
    way: Way,
    outcome: Outcome,
    /// The applied change, as text.
    result: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let majors = || arguments.pg_version.iter().copied();
    let (Some(least), Some(most)) = (majors().min(), majors().max()) else {
        return Err("name a major with --pg-version".to_owned());
    };
    let versions = VersionRange { from: PgVersion(least), to: PgVersion(most) };
    let mut projects = Vec::new();
    for database in arguments.histories.databases(false)? {
        projects.push(Copied::new(&arguments.histories.checkouts, &database, versions)?);
    }
    let servers = majors().map(site::start).collect::<Result<Vec<Server>, String>>()?;
    let mut offers: Vec<(usize, Offer)> = Vec::new();
    let mut of_what_does_not_run = 0;
    for (at, project) in projects.iter().enumerate() {
        let mut newest = Site::new(&servers[servers.len() - 1], project)?;
        newest.replay_to(project.project.migrations().len(), project)?;
        let wanted = |offer: &Offer| arguments.rule.as_ref().is_none_or(|rule| offer.found.rule == rule);
        let (run, not_run): (Vec<Offer>, Vec<Offer>) =
            project.offers().into_iter().filter(wanted).partition(|offer| newest.ran[offer.found.file as usize]);
        offers.extend(run.into_iter().map(|offer| (at, offer)));
        of_what_does_not_run += not_run.len();
    }
    let all = (offers.len(), of_what_does_not_run);
    let mut drawn: Vec<(usize, usize, Offer)> = Vec::new();
    let mut random = Random::new(arguments.seed);
    while drawn.len() < arguments.sample + arguments.sample / SPARE && !offers.is_empty() {
        let (project, offer) = offers.swap_remove(random.below(offers.len()));
        drawn.push((drawn.len(), project, offer));
    }
    drawn.sort_by_key(|(_, project, offer)| (*project, offer.found.file));
    let mut tried = Vec::new();
    for (at, project) in projects.iter().enumerate() {
        let own = drawn.iter().filter(|(_, of, _)| *of == at);
        let own: Vec<(usize, &Offer)> = own.map(|(number, _, offer)| (*number, offer)).collect();
        if !own.is_empty() {
            try_all(project, &own, &servers, &mut tried)?;
        }
    }
    tried.sort_by_key(|tried: &Tried| tried.number);
    Ok(report(&tried, arguments, all))
}

/// Tries offers of one project, in the order of its migrations.
fn try_all(
    project: &Copied,
    offers: &[(usize, &Offer)],
    servers: &[Server],
    tried: &mut Vec<Tried>,
) -> Result<(), String> {
    let sites = servers.iter().map(|server| Site::new(server, project));
    let mut sites = sites.collect::<Result<Vec<Site<'_>>, String>>()?;
    for (number, offer) in offers {
        let (mut runs_on, mut refused) = (Vec::new(), String::new());
        for site in &mut sites {
            site.replay_to(offer.found.file as usize, project)?;
            match site.run(&project.original(offer))? {
                None => runs_on.push(site),
                Some(failure) => refused = failure,
            }
        }
        let (outcome, result) = if runs_on.is_empty() {
            (Outcome::NoOriginal(refused), String::new())
        } else {
            let changed = project.change(offer)?;
            (judge(&changed, runs_on)?, changed.text())
        };
        let (shown, rule) = (project.shown(&offer.found), offer.found.rule);
        tried.push(Tried { number: *number, shown, rule, way: offer.way, outcome, result });
    }
    Ok(())
}

fn judge(changed: &Changed, sites: Vec<&mut Site<'_>>) -> Result<Outcome, String> {
    let files = match changed {
        Changed::Refused(reason) => return Ok(Outcome::Refused(reason.clone())),
        Changed::Files(files) => files,
    };
    if let Some(problem) = &files.problem {
        return Ok(Outcome::Broken(problem.clone()));
    }
    let mut works_on = Vec::new();
    for site in sites {
        if let Some(failure) = site.run(&files.migrations())? {
            return Ok(Outcome::Broken(format!("PostgreSQL {} refuses it: {failure}", site.major())));
        }
        works_on.push(site.major());
    }
    Ok(Outcome::Works(works_on))
}

fn report(tried: &[Tried], arguments: &Arguments, all: (usize, usize)) -> String {
    let is_offered = |tried: &&Tried| matches!(tried.outcome, Outcome::Works(_) | Outcome::Broken(_));
    let counted: Vec<&Tried> = tried.iter().filter(is_offered).take(arguments.sample).collect();
    let last = counted.last().map_or(0, |last| last.number + 1);
    let count = |wanted: fn(&Outcome) -> bool| {
        tried.iter().filter(|tried| tried.number < last && wanted(&tried.outcome)).count()
    };
    let works = count(|outcome| matches!(outcome, Outcome::Works(_)));
    let mut text = format!(
        "{} offers, and {} about migrations that do not run; {last} drawn, seed {}\n",
        all.0, all.1, arguments.seed
    );
    let _ = writeln!(text, "{} work", share(works, counted.len()));
    for major in &arguments.pg_version {
        let on = counted.iter().filter(|tried| matches!(&tried.outcome, Outcome::Works(on) if on.contains(major)));
        let _ = writeln!(text, "  {} of them on PostgreSQL {major}", on.count());
    }
    let _ = writeln!(text, "{} plans are refused with a reason", count(|one| matches!(one, Outcome::Refused(_))));
    let _ = writeln!(text, "{} originals run on no server", count(|one| matches!(one, Outcome::NoOriginal(_))));
    let mut rules: BTreeMap<(&str, Way), [usize; 2]> = BTreeMap::new();
    for tried in &counted {
        let [works, all] = rules.entry((tried.rule, tried.way)).or_default();
        *works += usize::from(matches!(tried.outcome, Outcome::Works(_)));
        *all += 1;
    }
    for ((rule, way), [works, all]) in rules {
        let _ = writeln!(text, "{works:4} of {all:3} {way}: {rule}");
    }
    for tried in tried.iter().filter(|tried| tried.number < last) {
        let Tried { number, shown, rule, way, outcome, result } = tried;
        let said = match outcome {
            Outcome::Broken(problem) => problem.clone(),
            Outcome::Refused(reason) => format!("refused: {reason}"),
            Outcome::NoOriginal(reason) => format!("the original does not run: {reason}"),
            Outcome::Works(_) if arguments.all => "works".to_owned(),
            Outcome::Works(_) => continue,
        };
        let _ = writeln!(text, "\n{number}. {way} of {rule}: {shown}\n{}", said.trim_end());
        let shows_result = arguments.all || matches!(outcome, Outcome::Broken(_));
        for line in result.lines().filter(|_| shows_result) {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}
