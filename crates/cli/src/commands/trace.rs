//! `pgvet trace`.

use super::load;
use crate::bookkeeping;
use crate::error::{ExitStatus, Failure};
use crate::progress::Spinner;
use crate::report::trace::TraceReport;
use crate::report::{trace_json, trace_table};
use crate::style::Style;
use crate::trace_args::{On, TraceArgs, TraceFormat};
use pgvet_linter::check;
use pgvet_linter::settings::Settings;
use pgvet_linter::version::{PgVersion, VersionRange};
use pgvet_trace::provider::{CloneProvider, Scratch, ScratchOptions};
use pgvet_trace::{Event, server};
use std::io::Write;

pub(crate) fn run(args: &TraceArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    if args.clean {
        return clean(out);
    }
    let project = load(&args.input)?;
    if !project.problems.is_empty() {
        return Ok(ExitStatus::NotChecked);
    }
    let migrations = project.migrations();
    let settings = pgvet_trace::Settings {
        variables: args.variables.iter().cloned().collect(),
        statement_timeout: args.statement_timeout,
        keep_going: args.keep_going,
        rows: args.rows.clone(),
        setup: bookkeeping::tables(&project, args.input.schema.is_some()),
    };
    let mut provider = provider(args);
    let spinner = Spinner::new();
    let trace = pgvet_trace::run(&migrations, provider.as_mut(), &settings, &mut |event| spinner.say(&said(event)));
    drop(spinner);
    let trace = trace?;
    let predicted = check::effects(&migrations, &settings_for(trace.major));
    let report = TraceReport::new(&project, &trace, &predicted, &args.max_held);
    let style = Style::new(args.input.color);
    match args.format {
        TraceFormat::Full => trace_table::write(&report, style, out)?,
        TraceFormat::Json => trace_json::write(&report, out)?,
    }
    Ok(status(args, &report))
}

fn status(args: &TraceArgs, report: &TraceReport<'_>) -> ExitStatus {
    if report.failed() {
        ExitStatus::NotChecked
    } else if !report.exceeded.is_empty() {
        ExitStatus::Findings
    } else if args.strict_model && report.differences.iter().any(|difference| difference.unknown.is_none()) {
        ExitStatus::ModelDiffers
    } else {
        ExitStatus::Clean
    }
}

fn provider(args: &TraceArgs) -> Box<dyn CloneProvider> {
    match args.on {
        On::Scratch => Box::new(Scratch::new(ScratchOptions {
            binaries: args.pg_bin.clone(),
            major: args.input.pg_version.map(|versions| versions.to.0),
            durable: !args.rows.is_empty(),
            setup: Vec::new(),
        })),
    }
}

/// The model of the major that was traced.
fn settings_for(major: u8) -> Settings {
    let version = PgVersion(major);
    Settings { versions: VersionRange { from: version, to: version }, versions_configured: true, ..Settings::default() }
}

fn said(event: Event<'_>) -> String {
    match event {
        Event::History { path } => format!("replaying {path}"),
        Event::Rows { table, rows } => format!("filling {table} with {rows} rows"),
        Event::Statement { path, number, sql } => {
            let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{path}: {} {}", number + 1, line.chars().take(60).collect::<String>())
        }
    }
}

fn clean(out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let removed = server::remove_leftovers();
    for folder in &removed {
        writeln!(out, "removed the server in {}", folder.display())?;
    }
    if removed.is_empty() {
        writeln!(out, "nothing to remove")?;
    }
    Ok(ExitStatus::Clean)
}
