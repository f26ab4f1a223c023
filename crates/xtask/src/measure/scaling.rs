//! `cargo xtask measure scaling`: how the time of a check grows with the number of each kind of thing.

mod shapes;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use shapes::{SHAPES, Shape};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The release build to measure.
    #[arg(long, value_name = "PATH", default_value = "target/release/pgvet")]
    pgvet: PathBuf,
    /// Only the shapes whose names contain this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Runs of each size, of which the fastest is kept.
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// Divides the number of things in each shape.
    #[arg(long, value_name = "N", default_value_t = 1)]
    divide: usize,
    /// Fails if the time of a shape grows with a higher power than this.
    #[arg(long, value_name = "EXPONENT")]
    at_most: Option<f64>,
}

/// The largest size and the fractions of it that are measured.
const FRACTIONS: [usize; 4] = [8, 4, 2, 1];

/// Seconds below which the noise of the machine is larger than what is measured.
const FLOOR: f64 = 0.02;

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let mut report = format!("{:36} {:>7} {:>8} {:>8}  exponent\n", "shape", "count", "seconds", "at 1/8");
    let mut steep = Vec::new();
    for shape in SHAPES.iter().filter(|shape| shape.name.contains(&arguments.only)) {
        let largest = shape.count / arguments.divide.max(1);
        let mut times = Vec::new();
        for fraction in FRACTIONS {
            let count = (largest / fraction).max(1);
            times.push((count, measure(&arguments.pgvet, shape, count, arguments.runs)?));
        }
        let (smallest, last) = (times[0].1, times[FRACTIONS.len() - 1].1);
        let exponent = exponent(&times);
        let shown = exponent.map_or_else(|| "too fast to tell".to_owned(), |exponent| format!("{exponent:.2}"));
        let _ = writeln!(report, "{:36} {largest:7} {last:8.3} {smallest:8.3}  {shown}", shape.name);
        if arguments.at_most.is_some_and(|most| exponent.is_some_and(|exponent| exponent > most)) {
            steep.push(shape.name);
        }
    }
    if steep.is_empty() { Ok(report) } else { Err(format!("{report}steeper than allowed: {}", steep.join(", "))) }
}

/// The slope of a line through the logarithms of sizes and times, from the first size that takes long enough.
fn exponent(times: &[(usize, f64)]) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "counts of things in a file")]
    let point = |&(size, time): &(usize, f64)| ((size as f64).ln(), time.ln());
    let points: Vec<(f64, f64)> = times.iter().filter(|(_, time)| *time >= FLOOR).map(point).collect();
    if points.len() < 2 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "four points")]
    let number = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / number;
    let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    Some(covariance / variance)
}

/// Seconds of processor time that a check of so many things takes.
fn measure(pgvet: &Path, shape: &Shape, count: usize, runs: usize) -> Result<f64, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    for (name, text) in (shape.files)(count) {
        let path = folder.path().join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let times: Vec<f64> = (0..runs.max(1)).map(|_| processor_time(pgvet, folder.path())).collect::<Result<_, _>>()?;
    Ok(times.into_iter().fold(f64::INFINITY, f64::min))
}

/// One run, as the kernel accounts for it: in microseconds, unlike GNU time, which rounds to hundredths of a second.
fn processor_time(pgvet: &Path, folder: &Path) -> Result<f64, String> {
    let program = fs::canonicalize(pgvet).map_err(|error| format!("{}: {error}", pgvet.display()))?;
    let mut command = Command::new(program);
    command.args(["check", "--no-config", "--no-cache", "--format", "json", "."]);
    command.current_dir(folder).stdout(Stdio::null());
    let before = processor_time_of_children()?;
    let output = command.output().map_err(|error| format!("{}: {error}", pgvet.display()))?;
    // Findings are status 1; 2 and more mean that the check gave up.
    if output.status.code().is_none_or(|code| code > 1) {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} ended with {}: {errors}", pgvet.display(), output.status));
    }
    Ok(processor_time_of_children()? - before)
}

/// Seconds that all ended children have taken, in user mode and in the kernel.
fn processor_time_of_children() -> Result<f64, String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| format!("getrusage: {error}"))?;
    #[expect(clippy::cast_precision_loss, reason = "microseconds of processor time")]
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_is_the_slope_of_the_logarithms() {
        let quadratic = [(100, 0.001), (200, 0.04), (400, 0.16), (800, 0.64)];
        assert!((exponent(&quadratic).unwrap_or_default() - 2.0).abs() < 1e-9);
        assert!(exponent(&[(1, 0.001), (2, 0.002), (4, 1.0)]).is_none());
    }

    #[test]
    fn shapes_have_different_names_and_grow() {
        let names: std::collections::BTreeSet<_> = SHAPES.iter().map(|shape| shape.name).collect();
        assert_eq!(names.len(), SHAPES.len());
        let size = |shape: &Shape, count| (shape.files)(count).iter().map(|(_, text)| text.len()).sum::<usize>();
        for shape in SHAPES {
            assert!(size(shape, 100) > size(shape, 10), "{}", shape.name);
        }
    }
}
