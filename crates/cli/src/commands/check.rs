//! `pgvet check`.

use super::load;
use crate::args::{CheckArgs, Format};
use crate::error::{ExitStatus, Failure};
use crate::report::{Report, concise, full, json};
use crate::rule_names;
use crate::style::Style;
use std::io::Write;

pub(crate) fn run(args: &CheckArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    for name in args.only.iter().chain(&args.ignore) {
        rule_names::find(name)?;
    }
    let settings = args.settings();
    let project = load(&args.input)?;
    let migrations = project.migrations();
    let diagnostics = project.check(&settings);
    let report = Report::new(&project, &migrations, &diagnostics);
    let style = Style::new(args.input.color);
    match args.format {
        // Nothing was read: the messages on standard error say all there is to say.
        Format::Full | Format::Concise if project.files.is_empty() => {}
        Format::Full => full::write(&report, style, out)?,
        Format::Concise => concise::write(&report, style, out)?,
        Format::Json => json::write(&report, out)?,
    }
    if !project.problems.is_empty() {
        return Ok(ExitStatus::NotChecked);
    }
    let fails = |severity| diagnostics.iter().any(|diagnostic| diagnostic.severity >= severity);
    Ok(if args.fail_on.severity().is_some_and(fails) { ExitStatus::Findings } else { ExitStatus::Clean })
}
