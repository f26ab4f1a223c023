//! `pgvet precheck`: the rows of production that would make migrations fail.

use super::load;
use crate::args::{PlainFormat, PrecheckArgs};
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::report::precheck::{Outcome, Precheck, PrecheckReport};
use pgvet_model::predict::StatementEffects;
use pgvet_trace::provider::{parse_address, with_password};
use pgvet_workspace::{Project, Role};
use std::io::Write;

pub(crate) fn run(args: &PrecheckArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let project = load(&args.input)?;
    let settings = args.input.settings(&project.config_of(1));
    let mut report = report(&project, &project.effects(&settings));
    if let Some(database) = &args.database {
        of_one_database(&project)?;
        ask(&mut report.prechecks, database, args)?;
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
    Err(Failure::new("the migrations are those of several databases, and --database names one")
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
                let start = file.shown().position(file.on_disk(demand.range).start);
                report.prechecks.push(Precheck::new(&file.shown().path, (start.line, start.column), demand));
            }
        }
    }
    report
}

/// Asks the database all queries that are safe to run.
fn ask(prechecks: &mut [Precheck], database: &str, args: &PrecheckArgs) -> Result<(), Failure> {
    let (asked, not_asked): (Vec<&mut Precheck>, Vec<_>) =
        prechecks.iter_mut().partition(|precheck| precheck.why_not_asked().is_none());
    for precheck in not_asked {
        precheck.outcome = precheck.why_not_asked().map(|reason| Outcome::NotAsked { reason });
    }
    let queries: Vec<String> = asked.iter().filter_map(|precheck| precheck.query.clone().ok()).collect();
    if queries.is_empty() {
        return Ok(());
    }
    let answers = pgvet_trace::precheck(&with_password(parse_address(database)?)?, &queries, args.timeout)?;
    for (precheck, answer) in std::iter::zip(asked, answers) {
        precheck.outcome = Some(answer.into());
    }
    Ok(())
}
