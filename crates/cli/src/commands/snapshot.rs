//! `pgvet snapshot`.

use crate::args::SnapshotArgs;
use crate::error::{ExitStatus, Failure};
use crate::inert;
use crate::report::plural;
use pgvet_model::statistics::Statistics;
use pgvet_model::throughput::Throughput;
use pgvet_trace::provider::{parse_address, with_password};
use pgvet_workspace::{create_report, named_text};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn run(args: &SnapshotArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let throughput = measured(&args.out)?;
    let mut statistics = pgvet_trace::snapshot(&with_password(parse_address(&args.database)?)?, args.min_window)?;
    statistics.throughput = throughput;
    let text = text(&statistics)?;
    if args.out == Path::new("-") {
        out.write_all(text.as_bytes())?;
    } else {
        let failure = |error: io::Error| Failure::new(format!("cannot write `{}`: {error}", args.out.display()));
        let mut file = create_report(&args.out).map_err(|problem| Failure::from(&problem))?;
        file.write_all(text.as_bytes()).map_err(failure)?;
        tell(&statistics, &args.out)?;
    }
    Ok(ExitStatus::Clean)
}

/// The text of a file with statistics.
pub(super) fn text(statistics: &Statistics) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(statistics)
        .map_err(|error| Failure::new(format!("the statistics cannot be written: {error}")))?;
    Ok(text + "\n")
}

/// The measured throughput in the file that will be replaced.
fn measured(path: &Path) -> Result<Option<Throughput>, Failure> {
    let lost = |error: &dyn Display| {
        let message = format!("cannot read `{}`, so its measured throughput would be lost: {error}", path.display());
        Failure::new(message).help("correct or delete the file, or write to another file with --out")
    };
    match named_text(path) {
        Ok(text) => Ok(Statistics::parse(&text).map_err(|error| lost(&error))?.throughput),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(lost(&error)),
    }
}

fn tell(statistics: &Statistics, path: &Path) -> io::Result<()> {
    let (tables, functions) = (statistics.tables.len(), statistics.functions.len());
    let (tables, functions) = (plural(tables, "table"), plural(functions, "function"));
    let version = &statistics.pg_version;
    inert::through(&mut io::stderr().lock(), inert::Kind::Text, |out| {
        writeln!(out, "Wrote {}: {tables}, {functions}, PostgreSQL {}", path.display(), inert::line(version))
    })?;
    statistics.missing.iter().try_for_each(|missing| inert::say("note", &format!("omitted: {missing}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_stays_and_what_cannot_be_read_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pgvet.stats.json");
        assert!(matches!(measured(&path), Ok(None)));
        let throughput = Some(Throughput { rewrite_bytes_per_second: Some(5), ..Throughput::default() });
        let statistics = Statistics { schema_version: 1, throughput, ..Statistics::default() };
        let text = serde_json::to_string(&statistics).expect("it is plain data");
        std::fs::write(&path, &text).expect("a file");
        assert!(measured(&path).is_ok_and(|found| found == throughput));
        std::fs::write(&path, text.replacen('{', "{\"notes\": 1, ", 1)).expect("a file");
        let failure = measured(&path).err().map(|failure| format!("{failure:?}")).unwrap_or_default();
        assert!(failure.contains("would be lost"), "{failure}");
        assert!(!cfg!(unix) || measured(Path::new("/dev/zero")).is_err(), "a device has no end");
    }
}
