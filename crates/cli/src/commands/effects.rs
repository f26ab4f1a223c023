//! `pgvet effects`.

use super::load;
use crate::args::{EffectsArgs, Format};
use crate::error::{ExitStatus, Failure};
use crate::report::effects::EffectsReport;
use crate::report::{effects_json, effects_table};
use crate::style::Style;
use pgvet_linter::check;
use std::io::Write;

pub(crate) fn run(args: &EffectsArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let settings = args.input.settings();
    let project = load(&args.input)?;
    let migrations = project.migrations();
    let effects = check::effects(&migrations, &settings);
    let report = EffectsReport::new(&project, &effects, settings.versions.to);
    let style = Style::new(args.input.color);
    match args.format {
        Format::Full => effects_table::write(&report, style, out)?,
        Format::Concise => effects_table::write_concise(&report, out)?,
        Format::Json => effects_json::write(&report, out)?,
    }
    Ok(if project.problems.is_empty() { ExitStatus::Clean } else { ExitStatus::NotChecked })
}
