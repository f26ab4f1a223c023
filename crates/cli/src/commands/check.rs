//! `pgvet check`.

use super::ignore::Done;
use super::watch::Watch;
use super::{baseline, fix, ignore, load_against, load_to_check};
use crate::args::{CheckArgs, Format, Output};
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::report::{
    Report, checkstyle, concise, full, github, gitlab, json, junit, markdown, sarif, sonarqube, statistics,
};
use crate::rule_names;
use crate::style::Style;
use pgvet_linter::check::Outcome;
use pgvet_workspace::config::Config;
use pgvet_workspace::{Project, create_report};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::path::Path;

pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    rule_names::check(&args.rules)?;
    let outputs = outputs(args)?;
    if args.watch {
        return watch(args, &outputs, out);
    }
    let settings = |config: &Config| args.settings(config);
    let project = if args.fix.any() {
        let mut project = load_against(&args.input, &args.against)?;
        if args.fix.diff {
            return fix::show(args, &mut project, out);
        }
        fix::make(args, &mut project)?;
        project
    } else if let Some(reason) = &args.fix.add_ignore {
        let mut project = load_against(&args.input, &args.against)?;
        if ignore::run(args, reason, &mut project, out)? == Done::Shown {
            return Ok(ExitStatus::Clean);
        }
        project
    } else {
        load_to_check(&args.input, &args.against, &args.cache, &settings)?
    };
    // The process ends with this: to free what it has read would only take time.
    let project = ManuallyDrop::new(project);
    let outcome = ManuallyDrop::new(super::check(&project, &settings));
    show(args, &project, &outcome, &outputs, out)
}

/// Checks captured migrations.
pub(super) fn run_captured(args: &CheckArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    rule_names::check(&args.rules)?;
    let outputs = outputs(args)?;
    let settings = |config: &Config| args.settings(config);
    let project = load_to_check(&args.input, &args.against, &args.cache, &settings)?;
    let outcome = super::check(&project, &settings);
    show(args, &project, &outcome, &outputs, out)
}

/// Checks again and again.
fn watch(args: &CheckArgs, outputs: &[Output], out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    if args.input.paths.iter().any(|path| path.as_os_str() == "-") {
        return Err(Failure::new("standard input cannot be watched").help("name files or folders"));
    }
    let mut watch = Watch::new()?;
    let settings = |config: &Config| args.settings(config);
    loop {
        if std::io::stdout().is_terminal() {
            // Clears the screen, as `clear` does.
            write!(out, "\x1b[H\x1b[2J")?;
        }
        match load_to_check(&args.input, &args.against, &args.cache, &settings) {
            Ok(project) => {
                // What changes from here on is seen, too.
                watch.follow(&project, &args.input.paths)?;
                let outcome = super::check(&project, &settings);
                show(args, &project, &outcome, outputs, out)?;
            }
            // A mistake in the configuration may be corrected.
            Err(failure) => failure.write(&mut io::stderr().lock())?,
        }
        out.flush()?;
        watch.wait()?;
    }
}

/// Writes what a run has found.
fn show(
    args: &CheckArgs,
    project: &Project,
    outcome: &Outcome,
    outputs: &[Output],
    out: &mut dyn Write,
) -> Result<ExitStatus, Failure> {
    let mut report = Report::new(project, outcome);
    if !args.report_suppressed {
        report = report.without_suppressed();
    }
    if let Some(baseline) = baseline::known(project, &args.baseline, &|config| args.settings(config))? {
        report = report.without_known(&baseline);
    }
    let mut report = report.with_failing(|finding| {
        let config = project.config_of(finding.file.database);
        args.fails(&config).is_some_and(|least| finding.diagnostic.severity >= least)
    });
    report = report.folded();
    report.is_quiet = args.input.loudness.quiet;
    for output in outputs {
        match &output.file {
            None => write(args, &report, output.format, Style::new(args.input.color), out)?,
            Some(path) => write_file(args, &report, output.format, path)?,
        }
    }
    if !project.problems.is_empty() {
        return Ok(ExitStatus::NotChecked);
    }
    let fails = report.findings.iter().any(|finding| finding.fails);
    Ok(if fails { ExitStatus::Findings } else { ExitStatus::Clean })
}

/// The reports to write, and where; only one of them may go to standard output.
fn outputs(args: &CheckArgs) -> Result<Vec<Output>, Failure> {
    let mut outputs = args.format.clone();
    let counts = |output: &&Output| matches!(output.format, Format::Full | Format::Concise | Format::Json);
    if args.statistics && !outputs.iter().all(|output| counts(&output)) {
        let help = "give --statistics the format full, concise or json";
        return Err(Failure::new("this format cannot show statistics").help(help));
    }
    let mut to_stdout = outputs.iter_mut().filter(|output| output.file.is_none());
    let first = to_stdout.next();
    if to_stdout.next().is_some() {
        let help = "give all but one a file, as in `--format full --format sarif=pgvet.sarif`";
        return Err(Failure::new("several formats would be written to standard output").help(help));
    }
    match (first, &args.output_file) {
        (Some(output), Some(file)) => output.file = Some(file.clone()),
        (None, Some(file)) => {
            let message = format!("nothing would be written to `{}`: each format has its own file", file.display());
            return Err(Failure::new(message));
        }
        (_, None) => {}
    }
    Ok(outputs)
}

fn write_file(args: &CheckArgs, report: &Report<'_>, format: Format, path: &Path) -> Result<(), Failure> {
    let failure = |error: io::Error| Failure::new(format!("cannot write `{}`: {error}", path.display()));
    let mut file = BufWriter::new(create_report(path).map_err(|problem| Failure::from(&problem))?);
    let written = write(args, report, format, Style::plain(), &mut file);
    written.and_then(|()| file.flush()).map_err(failure)
}

fn write(args: &CheckArgs, report: &Report<'_>, format: Format, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let kind = match format {
        Format::Full | Format::Concise | Format::Markdown => Kind::Text,
        Format::Github => Kind::Page,
        Format::Json | Format::Sarif | Format::Gitlab | Format::Sonarqube => Kind::Json,
        Format::Junit | Format::Checkstyle => Kind::Xml,
    };
    inert::through(out, kind, |out| match format {
        Format::Json if args.statistics => statistics::write_json(report, out),
        _ if args.statistics => statistics::write(report, style, out),
        _ => write_format(report, format, style, out),
    })
}

fn write_format(report: &Report<'_>, format: Format, style: Style, out: &mut dyn Write) -> io::Result<()> {
    match format {
        // Nothing was read: the messages on standard error say all there is to say.
        Format::Full | Format::Concise if report.project.files.is_empty() && !report.project.problems.is_empty() => {
            Ok(())
        }
        Format::Full => full::write(report, style, out),
        Format::Concise => concise::write(report, style, out),
        Format::Json => json::write(report, out),
        Format::Sarif => sarif::write(report, out),
        Format::Github => github::write(report, out),
        Format::Gitlab => gitlab::write(report, out),
        Format::Sonarqube => sonarqube::write(report, out),
        Format::Markdown => markdown::write(report, out),
        Format::Junit => junit::write(report, out),
        Format::Checkstyle => checkstyle::write(report, out),
    }
}
