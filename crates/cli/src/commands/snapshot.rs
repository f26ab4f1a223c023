//! `pgvet snapshot`.

use crate::args::SnapshotArgs;
use crate::error::{ExitStatus, Failure};
use crate::report::plural;
use pgvet_linter::statistics::Statistics;
use pgvet_trace::provider::{parse_address, with_password};
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn run(args: &SnapshotArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let mut statistics = pgvet_trace::snapshot(&with_password(parse_address(&args.database)?)?)?;
    // What was measured by hand stays.
    let earlier = std::fs::read_to_string(&args.out).ok().and_then(|text| Statistics::parse(&text).ok());
    statistics.throughput = earlier.and_then(|earlier| earlier.throughput);
    let mut text = serde_json::to_string_pretty(&statistics)
        .map_err(|error| Failure::new(format!("the statistics cannot be written: {error}")))?;
    text.push('\n');
    if args.out == Path::new("-") {
        out.write_all(text.as_bytes())?;
    } else {
        let failure = |error: io::Error| Failure::new(format!("cannot write `{}`: {error}", args.out.display()));
        std::fs::write(&args.out, text).map_err(failure)?;
        tell(&statistics, &args.out)?;
    }
    Ok(ExitStatus::Clean)
}

fn tell(statistics: &Statistics, path: &Path) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    let (tables, functions) = (statistics.tables.len(), statistics.functions.len());
    let (tables, functions) = (plural(tables, "table"), plural(functions, "function"));
    writeln!(stderr, "Wrote {}: {tables}, {functions}, PostgreSQL {}", path.display(), statistics.pg_version)?;
    statistics.missing.iter().try_for_each(|missing| writeln!(stderr, "note: without {missing}"))
}
