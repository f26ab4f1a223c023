//! `cargo xtask measure speed`: pgvet and squawk in turn over the same files, so that a busy machine slows down both.

use super::history_truth::{measured, short_name};
use super::median::median;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The release build to measure.
    #[arg(long, value_name = "PATH", default_value = "target/release/pgvet")]
    pgvet: PathBuf,
    #[arg(long, value_name = "PATH")]
    squawk: PathBuf,
    /// The folder with the checkouts that `fixtures/history/README.md` lists.
    #[arg(long, value_name = "DIR")]
    checkouts: PathBuf,
    /// Pairs of runs over all files.
    #[arg(long, value_name = "N", default_value_t = 7)]
    runs: usize,
    /// Pairs of runs on one small file.
    #[arg(long, value_name = "N", default_value_t = 200)]
    starts: usize,
}

/// The cost of one run of a program.
struct Cost {
    wall: f64,
    /// User and system time of all its threads.
    cpu: f64,
    peak_kilobytes: f64,
}

const NAMES: [&str; 2] = ["pgvet", "squawk"];

/// The output formats that are requested of each program.
const FORMATS: [(&str, [&[&str]; 2]); 2] = [
    ("text for people, as without options", [&["check", "--no-cache"], &[]]),
    ("JSON", [&["check", "--no-cache", "--format", "json"], &["--reporter", "json"]]),
];

pub(super) fn run(arguments: &Arguments) -> Result<String, String> {
    let files = up_files(&arguments.checkouts)?;
    let bytes: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum();
    let programs = [arguments.pgvet.as_path(), arguments.squawk.as_path()];
    let mut text = format!("{} files, {bytes} bytes, medians of {} runs\n", files.len(), arguments.runs);
    for (format, options) in FORMATS {
        let _ = writeln!(text, "{format}:\n{}", whole_tree(programs, options, &files, arguments.runs)?);
    }
    let [_, (_, options)] = FORMATS;
    let _ = write!(text, "one small file:\n{}", one_file(programs, options, arguments.starts)?);
    Ok(text)
}

fn whole_tree(programs: [&Path; 2], options: [&[&str]; 2], files: &[PathBuf], runs: usize) -> Result<String, String> {
    let mut costs: [Vec<Cost>; 2] = [Vec::new(), Vec::new()];
    // The first pair warms the page cache.
    for round in 0..=runs {
        for ((program, options), costs) in programs.iter().zip(options).zip(&mut costs) {
            let cost = timed(program, options, files)?;
            if round > 0 {
                costs.push(cost);
            }
        }
    }
    let mut text = String::new();
    for (name, costs) in NAMES.iter().zip(&costs) {
        let of = |field: fn(&Cost) -> f64| median(costs.iter().map(field).collect());
        let (wall, cpu, peak) = (of(|cost| cost.wall), of(|cost| cost.cpu), of(|cost| cost.peak_kilobytes) / 1024.0);
        let _ = writeln!(text, "  {name:7} wall {wall:.3} s  cpu {cpu:.2} s  peak {peak:.1} MB");
    }
    let pairs = |field: fn(&Cost) -> f64| {
        median(costs[0].iter().zip(&costs[1]).map(|(pgvet, squawk)| field(squawk) / field(pgvet)).collect())
    };
    let (wall, cpu) = (pairs(|cost| cost.wall), pairs(|cost| cost.cpu));
    let _ = write!(text, "  squawk takes {wall:.2} x the wall time, {cpu:.2} x the CPU time");
    Ok(text)
}

fn one_file(programs: [&Path; 2], options: [&[&str]; 2], runs: usize) -> Result<String, String> {
    let small = std::env::temp_dir().join(format!("pgvet-small-{}.sql", std::process::id()));
    let sql = "ALTER TABLE t ADD COLUMN c int;\nCREATE INDEX i ON t (c);\n";
    std::fs::write(&small, sql).map_err(|error| format!("{}: {error}", small.display()))?;
    let mut starts: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        for ((program, options), starts) in programs.iter().zip(options).zip(&mut starts) {
            starts.push(wall(program, options, &small)? * 1000.0);
        }
    }
    std::fs::remove_file(&small).map_err(|error| format!("{}: {error}", small.display()))?;
    let [pgvet, squawk] = starts.clone().map(median);
    let times = median(starts[0].iter().zip(&starts[1]).map(|(pgvet, squawk)| squawk / pgvet).collect());
    Ok(format!("  pgvet {pgvet:.2} ms, squawk {squawk:.2} ms: squawk takes {times:.2} x the time\n"))
}

/// The files that the histories run.
fn up_files(checkouts: &Path) -> Result<Vec<PathBuf>, String> {
    let paths =
        measured()?.into_iter().map(|statement| checkouts.join(short_name(&statement.repo)).join(statement.path));
    let files: Vec<PathBuf> = paths.collect::<BTreeSet<_>>().into_iter().collect();
    match files.iter().find(|file| !file.is_file()) {
        Some(missing) => Err(format!("{} is missing", missing.display())),
        None => Ok(files),
    }
}

/// One run under GNU time, which reads what the kernel counted for it.
fn timed(program: &Path, options: &[&str], files: &[PathBuf]) -> Result<Cost, String> {
    let mut command = Command::new("time");
    command.args(["--quiet", "--format", "%U %S %M"]).arg(program).args(options).args(files);
    let begin = Instant::now();
    let output = command.stdout(Stdio::null()).output().map_err(|error| format!("GNU time: {error}"))?;
    let wall = begin.elapsed().as_secs_f64();
    // Both programs exit with 1 when they have findings; 2 and more mean that they gave up.
    if output.status.code().is_none_or(|code| code > 1) {
        return Err(format!("{} ended with {}", program.display(), output.status));
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let numbers = errors.lines().last().unwrap_or_default().split_whitespace().map(str::parse);
    match numbers.collect::<Result<Vec<f64>, _>>().as_deref() {
        Ok([user, system, peak_kilobytes]) => Ok(Cost { wall, cpu: user + system, peak_kilobytes: *peak_kilobytes }),
        _ => Err(format!("GNU time printed: {errors}")),
    }
}

fn wall(program: &Path, options: &[&str], file: &Path) -> Result<f64, String> {
    let mut command = Command::new(program);
    command.args(options).arg(file).stdout(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    command.status().map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(begin.elapsed().as_secs_f64())
}
