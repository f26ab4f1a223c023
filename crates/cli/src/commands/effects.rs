//! `pgvet effects`.

use super::load;
use crate::args::{EffectsArgs, EffectsFormat};
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::report::effects::EffectsReport;
use crate::report::{effects_json, effects_table};
use crate::style::Style;
use std::io::Write;

pub(crate) fn run(args: &EffectsArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let project = load(&args.input)?;
    let settings = args.input.settings(&project.config_of(1));
    let effects = project.effects(&settings);
    let report = EffectsReport::new(&project, &effects, settings.versions.to);
    let style = Style::new(args.input.color);
    match args.format {
        EffectsFormat::Full => inert::through(out, Kind::Text, |out| effects_table::write(&report, style, out))?,
        EffectsFormat::Concise => inert::through(out, Kind::Text, |out| effects_table::write_concise(&report, out))?,
        EffectsFormat::Json => inert::through(out, Kind::Json, |out| effects_json::write(&report, out))?,
    }
    Ok(if project.problems.is_empty() { ExitStatus::Clean } else { ExitStatus::NotChecked })
}
