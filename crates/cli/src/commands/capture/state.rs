//! The state from which a command starts: a dump, and the migrations of an earlier capture.

use super::job::Job;
use crate::error::Failure;
use crate::inert;
use crate::report::relative_path;
use crate::trace_args::On;
use pgvet_capture::Saved;
use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use pgvet_workspace::sql_to_run;
use std::path::Path;

/// The migrations that need not run again.
pub(super) fn saved(job: &Job<'_>) -> Result<Saved, Failure> {
    let folder = job.save.as_deref().filter(|_| !job.args.from_beginning);
    let saved = folder.and_then(|folder| Saved::read(folder, &job.project)).unwrap_or_default();
    match &saved.ends {
        Some(why) if job.args.place.on != On::Scratch => {
            let said = format!("the saved capture is out of date: {why}");
            Err(Failure::new(inert::line(&said)).help(
                "the clone may have applied these migrations, and would not run them again: first capture them without --on",
            ))
        }
        _ => Ok(saved),
    }
}

/// Reads the dump. A clone needs none.
pub(super) fn schema(job: &Job<'_>) -> Result<Option<ParsedFile>, Failure> {
    let path = job.schema.as_deref().filter(|_| job.args.place.on == On::Scratch);
    path.map(read).transpose()
}

fn read(path: &Path) -> Result<ParsedFile, Failure> {
    let shown = relative_path(&path.to_string_lossy());
    let text =
        sql_to_run(path).map_err(|error| Failure::new(format!("cannot read the schema in `{shown}`: {error}")))?;
    Ok(parse_file(SourceFile::new(shown, text)))
}

/// The dump as what psql would run.
pub(super) fn baseline(schema: Option<&ParsedFile>) -> Vec<Migration<'_>> {
    let migration = |file| Migration { report: false, baseline: true, ..Migration::new(file) };
    schema.map(migration).into_iter().collect()
}
