//! `pgvet precheck`: the rows of production that would make migrations fail.

use super::load;
use crate::args::{PlainFormat, PrecheckArgs};
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::report::precheck::{Outcome, Precheck, PrecheckReport};
use pgvet_model::predict::StatementEffects;
use pgvet_model::version::VersionRange;
use pgvet_trace::Address;
use pgvet_trace::provider::{parse_address, with_password};
use pgvet_workspace::{Project, Role};
use std::io::Write;

pub(crate) fn run(args: &PrecheckArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let project = load(&args.input)?;
    let mut settings = args.input.settings(&project.config_of(1));
    let database = match &args.database {
        Some(database) => {
            of_one_database(&project)?;
            Some(with_password(parse_address(database)?)?)
        }
        None => None,
    };
    if let Some(database) = &database {
        // The queries are those that this server understands.
        let major = pgvet_trace::major_version(database)?;
        settings.versions = VersionRange::parse(&major.to_string()).map_err(Failure::new)?;
    }
    let mut report = report(&project, &project.effects(&settings));
    if let Some(database) = &database {
        ask(&mut report, database, args)?;
    }
    match args.format {
        PlainFormat::Json => inert::through(out, Kind::Json, |out| report.write_json(out))?,
        PlainFormat::Text if args.database.is_some() => inert::through(out, Kind::Text, |out| report.write(out))?,
        PlainFormat::Text => inert::through_if_seen(out, |out| report.write_script(out))?,
    }
    Ok(if project.problems.is_empty() { report.status() } else { ExitStatus::NotChecked })
}

/// Refuses to ask one database about the migrations of several.
fn of_one_database(project: &Project) -> Result<(), Failure> {
    let mut reported = project.files.iter().filter(|file| file.role == Role::Reported).map(|file| file.database);
    let first = reported.next();
    if reported.all(|database| Some(database) == first) {
        return Ok(());
    }
    Err(Failure::new("these are migrations of several databases, but --database names only one")
        .help("name the migrations of that database; `pgvet config` shows which belong together"))
}

/// What can fail in the reported files, in their order.
fn report(project: &Project, effects: &[Vec<StatementEffects>]) -> PrecheckReport {
    let mut report = PrecheckReport::default();
    let files = project.file_indexes();
    for (file, statements) in std::iter::zip(files, effects) {
        let file = &project.files[file];
        if file.role != Role::Reported {
            continue;
        }
        for statement in statements {
            let effects = &statement.effects;
            report.not_analyzed += usize::from(!effects.unknown.is_empty() || effects.fails.is_some());
            for demand in &effects.demands {
                report.prechecks.push(Precheck::new(file, demand, &project.config_of(file.database).settings));
            }
        }
    }
    report
}

/// Asks the database all queries that are safe to run.
fn ask(report: &mut PrecheckReport, database: &Address, args: &PrecheckArgs) -> Result<(), Failure> {
    let (asked, not_asked): (Vec<&mut Precheck>, Vec<_>) =
        report.prechecks.iter_mut().partition(|precheck| precheck.why_not_asked().is_none());
    for precheck in not_asked {
        precheck.outcome = precheck.why_not_asked().map(|reason| Outcome::NotAsked { reason });
    }
    let queries: Vec<String> = asked.iter().filter_map(|precheck| precheck.query.clone().ok()).collect();
    let answers = pgvet_trace::precheck(database, &queries, args.timeout)?;
    report.taken_at = Some(answers.taken_at);
    for (precheck, answer) in std::iter::zip(asked, answers.answers) {
        precheck.outcome = Some(answer.into());
    }
    Ok(())
}
