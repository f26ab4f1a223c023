//! `pgvet rewrite`: a sequence of safe migrations in place of one that would block.

use super::load;
use crate::args::{PlainFormat, RewriteArgs};
use crate::error::{ExitStatus, Failure};
use crate::inert;
use crate::report::{plural, relative_path};
use pgvet_linter::rewrite::{Plan, Refusal, rewrite};
use pgvet_model::migration::{Direction, Migration};
use pgvet_workspace::{
    Change, Problem, Project, Role, Section, Sequence, WrittenFile, create_files, newer, sequence, write_changes,
};
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &RewriteArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let mut project = load(&args.input)?;
    if let Some(problem) = project.problems.first() {
        return Err(Failure::new(format!("`{}` was not rewritten: {}", problem.path, problem.message)));
    }
    let index = the_file(&project)?;
    let original = project.files[index].shown().text.clone();
    if args.in_place
        && let Some(newer) = newer(&project.files[index])
    {
        let message = format!("`{}` is a later migration, and would run before the new files", newer.display());
        let help = "write the files to a separate folder with `--out`, and number them yourself";
        return Err(Failure::new(message).help(help));
    }
    let mut unsolved = Vec::new();
    let mut last: Option<Sequence> = None;
    // From the last section to the first, so that the places of those before stay.
    for section in up_sections(&project, index).into_iter().rev() {
        let plan = match plan(args, &project, index, section) {
            Ok(plan) => plan,
            Err(Refusal::NothingToDo) => continue,
            Err(Refusal::Unsupported(reason)) => return Err(refused(&project, index, &reason)),
            Err(Refusal::Fails(reason)) => {
                return Err(refused(&project, index, &format!("PostgreSQL would refuse it: {reason}")));
            }
        };
        match sequence(&project.files[index], Some(section), &plan.files) {
            Ok(sequence) => {
                if let Some(first) = sequence.files.first() {
                    project.replace_text(index, first.text.clone());
                }
                last = Some(sequence);
            }
            Err(problem) if args.in_place || args.out.is_some() => return Err(Failure::from(&problem)),
            Err(problem) if args.format == PlainFormat::Json => {
                let files = plan.files.iter().map(|file| (PathBuf::from(&file.title), file.text()));
                write_json(&files.collect::<Vec<_>>(), &plan.unsolved, &[problem.message], out)?;
                return Ok(ExitStatus::Findings);
            }
            Err(problem) => {
                inert::through_if_seen(out, |out| show_plan(&plan, out))?;
                Failure::from(&problem).write_note(&mut io::stderr().lock())?;
                return Ok(ExitStatus::Findings);
            }
        }
        unsolved.extend(plan.unsolved);
    }
    let Some(sequence) = last else {
        if args.format == PlainFormat::Json {
            write_json(&[], &[], &[], out)?;
        }
        writeln!(io::stderr().lock(), "Nothing to rewrite: no finding has a rewrite")?;
        return Ok(ExitStatus::Clean);
    };
    if args.format == PlainFormat::Json {
        let files = sequence.files.iter().map(|file| (file.path.clone(), file.text.clone()));
        write_json(&files.collect::<Vec<_>>(), &unsolved, &sequence.notes, out)?;
        return Ok(if unsolved.is_empty() { ExitStatus::Clean } else { ExitStatus::Findings });
    }
    deliver(args, &project.files[index].path.clone(), &original, &sequence, out)?;
    for (rule, message) in &unsolved {
        inert::say("warning", &format!("no rewrite for a remaining finding: [{rule}] {message}"))?;
    }
    sequence.notes.iter().try_for_each(|note| inert::say("note", note))?;
    Ok(if unsolved.is_empty() { ExitStatus::Clean } else { ExitStatus::Findings })
}

/// The index of the one file that is to be rewritten.
fn the_file(project: &Project) -> Result<usize, Failure> {
    let mut reported = project.files.iter().enumerate().filter(|(_, file)| file.role == Role::Reported);
    let (Some((index, file)), None) = (reported.next(), reported.next()) else {
        return Err(Failure::new("rewrite takes one file").help("name the migration that is to be rewritten"));
    };
    if file.has_values() {
        let reason =
            "the new files would contain the configured values of its placeholders instead of the placeholders";
        return Err(refused(project, index, reason));
    }
    if file.encoding.is_some() {
        return Err(refused(project, index, "it is not UTF-8"));
    }
    Ok(index)
}

fn refused(project: &Project, index: usize, reason: &str) -> Failure {
    let path = &project.files[index].shown().path;
    Failure::from(&Problem { path: path.clone(), message: format!("was not rewritten: {reason}"), help: None })
}

fn up_sections(project: &Project, index: usize) -> Vec<Section> {
    let sections = project.files[index].layout.sections.iter();
    sections.filter(|section| section.direction == Direction::Up).copied().collect()
}

/// The plan of one section of the file, with all that is run before it as history.
fn plan(args: &RewriteArgs, project: &Project, index: usize, section: Section) -> Result<Plan, Refusal> {
    let database = project.files[index].database;
    let mut migrations: Vec<Migration<'_>> = Vec::new();
    for (migration, file) in std::iter::zip(project.migrations(), project.file_indexes()) {
        if migration.database != 0 && migration.database != database {
            continue;
        }
        migrations.push(migration);
        if file == index && migration.section == section.range {
            break;
        }
    }
    rewrite(&migrations, &args.input.settings(&project.config_of(database)))
}

/// Writes the files and what is said about them, for programs.
fn write_json(
    files: &[(PathBuf, String)],
    unsolved: &[(&'static str, String)],
    notes: &[String],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let files =
        files.iter().map(|(path, text)| json!({ "path": relative_path(&path.to_string_lossy()), "text": text }));
    let unsolved = unsolved.iter().map(|(rule, message)| json!({ "rule": rule, "message": message }));
    let document = json!({
        "schema_version": 1,
        "files": files.collect::<Vec<_>>(),
        "unsolved": unsolved.collect::<Vec<_>>(),
        "notes": notes,
    });
    inert::through(out, inert::Kind::Json, |out| writeln!(out, "{document:#}").map_err(Failure::from))
}

/// Writes or prints the files.
fn deliver(
    args: &RewriteArgs,
    path: &Path,
    original: &str,
    sequence: &Sequence,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let failure = |problem: Problem| Failure::from(&problem);
    if let Some(folder) = &args.out {
        let root = root(path, &sequence.files);
        let inside = |file: &WrittenFile| {
            let relative = file.path.strip_prefix(&root).unwrap_or(&file.path);
            (folder.join(relative), file.text.clone())
        };
        let files: Vec<(PathBuf, String)> = sequence.files.iter().map(inside).collect();
        create_files(&files).map_err(failure)?;
        writeln!(io::stderr().lock(), "Wrote {} to {}", plural(files.len(), "file"), folder.display())?;
    } else if args.in_place {
        let (changed, new): (Vec<&WrittenFile>, Vec<&WrittenFile>) =
            sequence.files.iter().partition(|file| file.path == path);
        let new: Vec<(PathBuf, String)> = new.into_iter().map(|file| (file.path.clone(), file.text.clone())).collect();
        let mut changes = sequence.lists.clone();
        let change = |file: &&WrittenFile| Change {
            path: file.path.clone(),
            before: original.to_owned(),
            after: file.text.clone(),
        };
        changes.extend(changed.iter().map(change));
        create_files(&new).map_err(failure)?;
        if let Err(problem) = write_changes(&changes) {
            new.iter().for_each(|(path, _)| drop(std::fs::remove_file(path)));
            return Err(failure(problem));
        }
        let beside =
            if new.is_empty() { String::new() } else { format!(" and wrote {} beside it", plural(new.len(), "file")) };
        inert::through(&mut io::stderr().lock(), inert::Kind::Text, |out| {
            writeln!(out, "Rewrote {}{beside}", inert::line(&path.display().to_string()))
        })?;
    } else {
        inert::through_if_seen(out, |out| show_files(&sequence.files, out))?;
    }
    Ok(())
}

fn show_files(files: &[WrittenFile], out: &mut dyn Write) -> io::Result<()> {
    for (at, file) in files.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        write!(out, "-- ==> {}\n{}", inert::line(&file.path.display().to_string()), file.text)?;
    }
    Ok(())
}

/// The folder that holds all files of the sequence: that of the file, or of its folder where that is the migration.
fn root(path: &Path, files: &[WrittenFile]) -> PathBuf {
    let holds_all = |folder: &&Path| files.iter().all(|file| file.path.starts_with(folder));
    path.ancestors().skip(1).find(holds_all).unwrap_or(Path::new("")).to_owned()
}

/// The plan where the tool has no form for it.
fn show_plan(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    for file in &plan.files {
        let place = if file.transaction { "" } else { " (outside a transaction)" };
        writeln!(out, "-- ==> {}{place}\n{}", file.title, file.text())?;
    }
    Ok(())
}
