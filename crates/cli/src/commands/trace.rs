//! `pgvet trace`.

use super::calibrate::Calibration;
use super::clone::{address, dblab, provider};
use super::{baseline, load};
use crate::args::FailOn;
use crate::bookkeeping;
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::progress::Spinner;
use crate::report::trace::TraceReport;
use crate::report::{Report, trace_html, trace_json, trace_markdown, trace_table};
use crate::style::Style;
use crate::trace_args::{On, TraceArgs, TraceFormat};
use pgvet_linter::check::Outcome;
use pgvet_linter::settings::Settings;
use pgvet_model::catalog::{Catalog, RelationKind};
use pgvet_model::effect::Effects;
use pgvet_model::migration::Migration;
use pgvet_model::predict::{self, StatementEffects};
use pgvet_model::production::TableSettings;
use pgvet_model::version::{PgVersion, VersionRange};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement;
use pgvet_trace::provider::Template;
use pgvet_trace::{Event, Limits, Observations, Trace, Workload, server};
use pgvet_workspace::config::Config;
use pgvet_workspace::{Project, Role, create_report, sql_to_run};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;

pub(crate) fn run(args: &TraceArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    if args.clean {
        return clean(args, out);
    }
    let mut project = load(&args.input)?;
    if !project.problems.is_empty() {
        return Ok(ExitStatus::NotChecked);
    }
    let workload = workload(args)?;
    let known = workload.iter().flat_map(Workload::transactions);
    Arc::make_mut(&mut project.application).transactions.extend(known);
    let migrations = project.migrations();
    let model = args.input.settings(&project.config_of(1));
    if args.crash || args.twice {
        return super::crash::run(args, &project, &model, out);
    }
    let calibration = args.calibrate.as_ref().map(|file| Calibration::open(file, &project)).transpose()?;
    let settings = pgvet_trace::Settings { workload, ..trace_settings(args, &project, &migrations, &model) };
    let trace = measure(args, &model, &migrations, settings)?;
    let predicted = predicted(args, &project, &migrations, &settings_for(trace.major, model));
    let outcome = judge(args, &project, &trace);
    let run = trace.migrations.iter().map(|migration| migration.migration).collect();
    let mut findings = Report::new(&project, &outcome).without_suppressed().of_migrations(&run);
    if let Some(baseline) = baseline::known(&project, &args.baseline, &|config| args.input.settings(config))? {
        findings = findings.without_known(&baseline);
    }
    let report = TraceReport::new(&trace, &predicted, &args.max_held, &args.production_rows, findings);
    let style = Style::new(args.input.color);
    match args.format {
        TraceFormat::Full => inert::through(out, Kind::Text, |out| trace_table::write(&report, style, out))?,
        TraceFormat::Json => inert::through(out, Kind::Json, |out| trace_json::write(&report, out))?,
        TraceFormat::Markdown => inert::through(out, Kind::Text, |out| trace_markdown::write(&report, out))?,
    }
    if let Some(file) = &args.report {
        let cannot = |error| Failure::new(format!("cannot write `{}`: {error}", file.display()));
        let mut written = create_report(file).map_err(|problem| Failure::from(&problem))?;
        let page = trace_html::page(&report);
        inert::through(&mut written, Kind::Page, |out| out.write_all(page.as_bytes())).map_err(cannot)?;
    }
    if let Some(calibration) = calibration {
        calibration.write(&pgvet_trace::calibrate(&trace, &migrations))?;
    }
    Ok(status(args, &report))
}

fn trace_settings(
    args: &TraceArgs,
    project: &Project,
    migrations: &[Migration<'_>],
    model: &Settings,
) -> pgvet_trace::Settings {
    let canaries = if args.canary { canaries(&predicted(args, project, migrations, model)) } else { BTreeMap::new() };
    pgvet_trace::Settings {
        variables: args.variables.iter().cloned().collect(),
        statement_timeout: args.statement_timeout,
        limits: Limits {
            time: Some(args.time_limit),
            disk: (args.place.on == On::Scratch).then(std::env::temp_dir),
            ..Limits::default()
        },
        keep_going: args.keep_going,
        repeat: args.repeat.into(),
        rows: args.rows.clone(),
        setup: bookkeeping::tables(project, has_schema(project)),
        canaries,
        reader: args.inject_reader,
        workload: None,
        progress: false,
        effects_only: false,
        allow_server_changes: args.place.allow_server_changes,
    }
}

/// Runs the migrations, and shows how far they have come.
fn measure(
    args: &TraceArgs,
    model: &Settings,
    migrations: &[Migration<'_>],
    mut settings: pgvet_trace::Settings,
) -> Result<Trace, Failure> {
    let newest = model.versions_configured.then_some(model.versions.to.0);
    let mut provider = provider(&args.place, newest, !args.rows.is_empty())?;
    let spinner = Spinner::new();
    settings.progress = spinner.is_shown();
    let mut trace = pgvet_trace::run(migrations, provider.as_mut(), &settings, &mut |event| match event {
        Event::Statement { progress: Some(_), .. } => spinner.say(&said(event)),
        // Nobody is left to tell when standard error is closed.
        Event::Announcement { text } => drop(inert::say("note", text)),
        _ => spinner.begin(&said(event)),
    })?;
    let versions = model.versions;
    let VersionRange { from, to } = versions;
    let shown = if from == to { from.to_string() } else { format!("{from}-{to}") };
    if model.versions_configured && !versions.iter().any(|version| version.0 == trace.major) {
        trace.notes.push(format!("the server is PostgreSQL {}, but the migrations are for {shown}", trace.major));
    }
    Ok(trace)
}

/// Runs the rules on the observed effects.
fn judge(args: &TraceArgs, project: &Project, trace: &Trace) -> Outcome {
    let settings = |config: &Config| {
        let mut settings = settings_for(trace.major, args.input.settings(config));
        if args.place.on != On::Scratch {
            know_sizes(trace, &mut settings);
        }
        settings
    };
    let observations = Observations::new(trace);
    let observe = |migration, statement, predicted: &Effects, after: &Catalog| {
        observations.effects(migration, statement, predicted, after)
    };
    project.check_observed(&settings, &observe, &|_, _| ())
}

/// Whether the run begins with a dump of a schema.
pub(super) fn has_schema(project: &Project) -> bool {
    project.files.iter().any(|file| file.role == Role::Baseline)
}

/// Returns the predictions of the model. A scratch server is empty at first, but for the tables of the tools, so the
/// model starts from that.
fn predicted(
    args: &TraceArgs,
    project: &Project,
    migrations: &[Migration<'_>],
    settings: &Settings,
) -> Vec<Vec<StatementEffects>> {
    if args.place.on != On::Scratch || has_schema(project) {
        return predict::effects(migrations, settings.versions.to, &settings.functions);
    }
    let tables = bookkeeping::tables(project, false).join(";\n");
    let empty = statement::parse_file(SourceFile::new(String::new(), tables));
    let baseline = Migration { report: false, baseline: true, ..Migration::new(&empty) };
    let all: Vec<Migration<'_>> = std::iter::once(baseline).chain(migrations.iter().copied()).collect();
    let mut predicted = predict::effects(&all, settings.versions.to, &settings.functions);
    predicted.remove(0);
    predicted
}

/// The tables that each migration is expected to close to readers or writers.
fn canaries(predicted: &[Vec<StatementEffects>]) -> BTreeMap<usize, Vec<String>> {
    let closed = |statement: &StatementEffects| {
        let locks = statement.effects.locks.iter().filter(|lock| lock.mode.blocks_writes());
        let tables = locks.filter(|lock| lock.relation.kind == RelationKind::Table);
        tables.map(|lock| lock.relation.to_string()).collect::<BTreeSet<_>>()
    };
    let of_migration = |statements: &Vec<StatementEffects>| {
        let tables: BTreeSet<String> = statements.iter().flat_map(closed).collect();
        tables.into_iter().collect()
    };
    predicted.iter().map(of_migration).enumerate().collect()
}

fn status(args: &TraceArgs, report: &TraceReport<'_>) -> ExitStatus {
    // With --strict-model a difference decides, even if a migration fails as predicted.
    if args.strict_model && report.differences.iter().any(|difference| difference.unknown.is_none()) {
        ExitStatus::ModelDiffers
    } else if report.failed() {
        ExitStatus::NotChecked
    } else if !report.exceeded.is_empty() || fails(args, report) {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    }
}

/// Whether there is a finding for which the user wants the run to fail.
fn fails(args: &TraceArgs, report: &TraceReport<'_>) -> bool {
    let least = args.fail_on.and_then(FailOn::severity);
    least.is_some_and(|least| report.findings.findings.iter().any(|finding| finding.diagnostic.severity >= least))
}

/// The settings of the project, for the major that was traced.
fn settings_for(major: u8, settings: Settings) -> Settings {
    let version = PgVersion(major);
    Settings { versions: VersionRange { from: version, to: version }, versions_configured: true, ..settings }
}

/// A clone has the tables of production: where configuration does not say how large they are, they tell it themselves.
fn know_sizes(trace: &Trace, settings: &mut Settings) {
    for (name, rows) in trace.migrations.iter().flat_map(|migration| &migration.rows) {
        let (schema, table) = name.split_once('.').unwrap_or(("public", name));
        let known = settings.table(schema, table);
        if known.rows.is_none() {
            settings.tables.insert(name.clone(), TableSettings { rows: Some(*rows), ..known });
        }
    }
}

pub(super) fn said(event: Event<'_>) -> String {
    inert::line(&doing(event)).into_owned()
}

fn doing(event: Event<'_>) -> String {
    match event {
        Event::History { path } => format!("replaying {path}"),
        Event::SessionEnd { path, number, of } => format!("{path}: ending the session, {number} of {of}"),
        Event::Twice { path } => format!("{path}: running it twice at once"),
        Event::Rows { table, rows } => format!("filling {table} with {rows} rows"),
        Event::Announcement { text } => text.to_owned(),
        Event::Workload => "running the workload alone".to_owned(),
        Event::Statement { path, number, of, sql, progress } => {
            let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
            let line: String = line.chars().take(60).collect();
            let progress = progress.map(|progress| format!(" ({progress})")).unwrap_or_default();
            format!("{path}: {} of {of} {line}{progress}", number + 1)
        }
    }
}

/// The statements for clients to run meanwhile.
fn workload(args: &TraceArgs) -> Result<Option<Workload>, Failure> {
    let Some(path) = &args.workload else { return Ok(None) };
    let shown = path.display().to_string();
    let text = sql_to_run(path).map_err(|error| Failure::new(format!("cannot read `{shown}`: {error}")))?;
    let clients = args.clients.unwrap_or(1).into();
    let variables = args.variables.iter().cloned().collect();
    Ok(Some(Workload::read(SourceFile::new(shown, text), clients, &variables)?))
}

fn clean(args: &TraceArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let server::Leftovers { removed, kept } = server::remove_leftovers();
    let mut removed: Vec<String> = removed.iter().map(|folder| format!("the server in {}", folder.display())).collect();
    if args.place.on == On::Template {
        let databases = Template::new(address(&args.place)?).remove_leftovers_now()?;
        removed.extend(databases.iter().map(|name| format!("the database {name}")));
    }
    if args.place.on == On::Dblab {
        removed.extend(dblab(&args.place)?.remove_leftovers_now()?.iter().map(|name| format!("the clone {name}")));
    }
    for what in &removed {
        writeln!(out, "removed {}", inert::line(what))?;
    }
    if let Some(help) = kept.first().and_then(|error| error.help.as_ref()) {
        let why: Vec<&str> = kept.iter().map(|error| error.message.as_str()).collect();
        return Err(Failure::new(why.join("; ")).help(help));
    }
    if removed.is_empty() {
        writeln!(out, "nothing to remove")?;
    }
    Ok(ExitStatus::Clean)
}
