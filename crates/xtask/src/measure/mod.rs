//! Measurements of pgvet's quality and speed. Each submodule with a `run` is one measurement.

mod capture;
mod danger;
pub mod deparse;
mod estimates;
mod findings;
pub mod generated;
mod history;
pub mod history_truth;
pub mod lock_truth;
mod locks;
mod lsp;
mod median;
mod offers;
pub mod outcome;
pub mod plans;
mod random;
pub mod reduce;
mod scaling;
pub mod schemas;
pub mod scripts;
mod slowdown;
mod speed;
mod squawk;
pub mod tools;
pub mod trace;

use clap::Subcommand;
use pgvet_linter::settings::Settings;
use pgvet_model::version::{PgVersion, VersionRange};
use std::path::{Path, PathBuf};

/// The majors that lock truth was measured on.
pub const MAJORS: [PgVersion; 5] = [PgVersion(14), PgVersion(15), PgVersion(16), PgVersion(17), PgVersion(18)];

/// `cargo xtask measure ...`
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand)]
enum Measurement {
    /// Compare the model with what single statements do on real servers.
    Locks(locks::Arguments),
    /// Compare the model with what public migration histories do on a real server.
    History(history::Arguments),
    /// Trace the same statements and compare what the observer sees with the recorded truth.
    Trace(trace::Arguments),
    /// Measure by how much the observer slows statements down.
    Slowdown(slowdown::Arguments),
    /// Run random statements on real servers and compare what they do with the model.
    Generated(generated::Arguments),
    /// Count the dangerous statements that are found, and the false findings.
    Danger(danger::Arguments),
    /// Run pgvet and squawk in turn over the same files.
    Speed(speed::Arguments),
    /// Measure with which power of the number of statements, tables, locks and so on the time of a check grows.
    Scaling(scaling::Arguments),
    /// Measure how long after a keystroke its diagnostics arrive.
    Lsp(lsp::Arguments),
    /// Count the findings of pgvet on public migration histories.
    Findings(findings::Arguments),
    /// Measure for how long plans block writes, and for how long the migrations that they replace.
    Plans(plans::Arguments),
    /// Compare estimated lock times with measured ones after a calibration.
    Estimates(estimates::Arguments),
    /// Check that the fixes and rewrites of findings on public migration histories do what they say.
    Offers(offers::Arguments),
    /// Check that pgvet reads scripts as psql does.
    Scripts(scripts::Arguments),
    /// Compare the schemas of the model with those of servers, and with those that its SQL makes.
    Schemas(schemas::Arguments),
    /// Check that queries that are written as SQL again parse to the same tree.
    Deparse(deparse::Arguments),
    /// Compare reduced statements with the smallest ones that a person has found.
    Reduce(reduce::Arguments),
    /// Compare the model with what real migration tools do.
    Tools(tools::Arguments),
    /// Capture the migrations of real frameworks, and compare what was recorded with the log of the server.
    Capture(capture::Arguments),
}

/// Runs one measurement and prints its report.
///
/// # Errors
/// Says what could not be read or run, in a sentence.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let report = match &arguments.measurement {
        Measurement::Locks(arguments) => locks::run(arguments),
        Measurement::History(arguments) => history::run(arguments),
        Measurement::Trace(arguments) => trace::run(arguments),
        Measurement::Slowdown(arguments) => slowdown::run(arguments),
        Measurement::Generated(arguments) => generated::run(arguments),
        Measurement::Danger(arguments) => danger::run(arguments),
        Measurement::Speed(arguments) => speed::run(arguments),
        Measurement::Scaling(arguments) => scaling::run(arguments),
        Measurement::Lsp(arguments) => lsp::run(arguments),
        Measurement::Findings(arguments) => findings::run(arguments),
        Measurement::Plans(arguments) => plans::run(arguments),
        Measurement::Estimates(arguments) => estimates::run(arguments),
        Measurement::Offers(arguments) => offers::run(arguments),
        Measurement::Scripts(arguments) => scripts::run(arguments),
        Measurement::Schemas(arguments) => schemas::run(arguments),
        Measurement::Deparse(arguments) => deparse::run(arguments),
        Measurement::Reduce(arguments) => reduce::run(arguments),
        Measurement::Tools(arguments) => tools::run(arguments),
        Measurement::Capture(arguments) => capture::run(arguments),
    }?;
    print(&report);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the one place where a measurement reports")]
fn print(report: &str) {
    println!("{}", report.trim_end());
}

/// A folder of measured truth in this repository.
fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Settings for exactly one major.
fn settings_for(version: PgVersion) -> Settings {
    Settings { versions: VersionRange { from: version, to: version }, versions_configured: true, ..Settings::default() }
}

/// `part` of `whole` for people: `12 of 34 (35.29 %)`.
fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "0 of 0".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of statements")]
    let percent = part as f64 * 100.0 / whole as f64;
    format!("{part} of {whole} ({percent:.2} %)")
}
