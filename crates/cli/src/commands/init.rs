//! `pgvet init`: looks at the repository and writes a commented `pgvet.toml`.

use crate::args::InitArgs;
use crate::detected::{self, Detected};
use crate::error::{ExitStatus, Failure};
use crate::progress::Progress;
use crate::report::plural;
use pgvet_linter::settings::Settings;
use pgvet_linter::severity::Severity;
use pgvet_workspace::config::{ConfigSource, FILE_NAME};
use pgvet_workspace::{Project, ProjectFile, Request, Tool, create_files, framework};
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &InitArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let path = Path::new(FILE_NAME);
    if !args.print && path.exists() {
        let help = "`pgvet config` shows what is in effect; `pgvet init --print` prints what would be written";
        return Err(Failure::new(format!("`{FILE_NAME}` already exists")).help(help));
    }
    let progress = Progress::new("reading");
    let request = Request { config: ConfigSource::None, ..Request::default() };
    let project = Project::load(&request, &|done, all| progress.update(done, all));
    drop(progress);
    let project = project.map_err(|error| Failure::config(error, crate::args::ColorChoice::Auto))?;
    let folders = histories(&project, detected::detect(&project));
    let text = text(&folders);
    if args.print {
        write!(out, "{text}")?;
        return Ok(ExitStatus::Clean);
    }
    create_files(&[(path.to_owned(), text)]).map_err(|problem| Failure::from(&problem))?;
    writeln!(out, "Wrote {FILE_NAME}.")?;
    for folder in &folders {
        let tool = folder.tools.first().map_or(Tool::Plain, |count| count.tool);
        let (files, run) = (plural(folder.files, "file"), folder.run);
        let run = if run < folder.files { format!(" ({})", plural(run, "up migration")) } else { String::new() };
        writeln!(out, "  {}: {}, {files}{run}", folder.folder, detected::name(tool))?;
    }
    if folders.is_empty() {
        writeln!(out, "No migrations in SQL were found below this folder.")?;
        match framework::around(Path::new(".")) {
            Some(framework) => writeln!(out, "  - {}.", framework.help())?,
            None => writeln!(
                out,
                "  - If they are in a folder with another name, name it in [migrations] paths.\n\
                 \x20 - If the migrations are programs, check the SQL that they send: `pgvet capture -- COMMAND`."
            )?,
        }
        writeln!(out, "  - A dump of the current schema, such as db/structure.sql, goes into [migrations] schema.")?;
        return Ok(ExitStatus::Clean);
    }
    writeln!(out, "`pgvet config` shows their order and transactions.")?;
    if folders.iter().any(|folder| folder.transactions_assumed) {
        writeln!(out, "No migration tool was recognized: set `transaction` in {FILE_NAME} to how the files are run.")?;
    }
    advise(&project, &folders, out)?;
    Ok(ExitStatus::Clean)
}

/// The folders of migrations, without those that only hold some SQL: beside migrations, or somewhere.
fn histories(project: &Project, mut detected: Vec<Detected>) -> Vec<Detected> {
    let numbered = numbered_folder(project);
    if let Some((whole, folder)) = detected.iter_mut().find(|one| one.folder == ".").zip(numbered.clone()) {
        whole.folder = folder;
    }
    let is_mixed = |folder: &str| folder == "." && numbered.as_deref() != Some(".");
    let folders: Vec<PathBuf> = detected.iter().map(|one| PathBuf::from(&one.folder)).collect();
    let holds_another = |one: &Detected| {
        let folder = Path::new(&one.folder);
        is_mixed(&one.folder) || folders.iter().any(|other| other != folder && other.starts_with(folder))
    };
    detected.retain(|one| one.tools.iter().any(|count| count.tool != Tool::Plain) || !holds_another(one));
    detected
}

/// The only folder with numbered files, if no tool or name says where migrations are.
fn numbered_folder(project: &Project) -> Option<String> {
    let is_numbered = |file: &&ProjectFile| file.is_run() && file.unknown_order.is_none();
    let numbered: Vec<&ProjectFile> = project.files.iter().filter(is_numbered).collect();
    let folder = numbered.first()?.path.parent()?;
    let is_only = numbered.len() > 1 && numbered.iter().all(|file| file.path.parent() == Some(folder));
    let shown = folder.strip_prefix(".").unwrap_or(folder).to_string_lossy().replace('\\', "/");
    is_only.then(|| if shown.is_empty() { ".".to_owned() } else { shown })
}

/// Says how to deal with findings in migrations that have run already.
fn advise(project: &Project, folders: &[Detected], out: &mut dyn Write) -> Result<(), Failure> {
    let outcome = super::check(project, &|_| Settings::default());
    let files = project.files_of_migrations();
    let is_in_history = |file: u32| {
        let path = Path::new(&files[file as usize].shown().path);
        folders.iter().any(|folder| folder.folder == "." || path.starts_with(&folder.folder))
    };
    let errors = outcome.found.iter().filter(|found| found.severity == Severity::Error);
    let errors = errors.filter(|found| is_in_history(found.file)).count();
    if errors == 0 {
        writeln!(out, "\nNo errors in the existing migrations. Next, run `pgvet check`, also in CI.")?;
        return Ok(());
    }
    let start_after = if folders.iter().all(|folder| folder.newest.is_some()) {
        format!("\x20 - set start-after to the newest migration in {FILE_NAME} (the file has a line for it), or\n")
    } else {
        String::new()
    };
    writeln!(
        out,
        "\nThe existing migrations have {}, but have already run. To report only new findings:\n\
         {start_after}\x20 - run `pgvet baseline`, which records them as known, or\n\
         \x20 - check only what a branch changes: `pgvet check --since origin/main`.",
        plural(errors, "error")
    )?;
    Ok(())
}

fn text(folders: &[Detected]) -> String {
    let mut text = "# Configuration of pgvet. Every key is optional; paths are relative to this file.\n\n\
        # The PostgreSQL versions that run these migrations: 16, or \"14-18\" for several.\n\
        # pg-version = 16\n\n\
        # \"strict\" also runs the opt-in rules; `pgvet rules` lists all.\n\
        # preset = \"recommended\"\n\n\
        # Lowest severity at which `pgvet check` fails: error, warning, info or never.\n\
        # fail-on = \"error\"\n\n\
        # Set this when the tool, the role or the database sets lock_timeout for migrations.\n\
        # lock-timeout = \"runner\"\n\n"
        .to_owned();
    text.push_str("[migrations]\n");
    write_folders(folders, &mut text);
    text.push_str(
        "# Files that are not migrations.\n\
         # exclude = [\"seeds/**\"]\n\n\
         # [rules]\n\
         # not-rerunnable = \"off\"\n\n\
         # Facts about tables that migrations cannot show: how large they are, and how much they are used.\n\
         # [tables]\n\
         # orders = { rows = 50_000_000 }\n\
         # \"public.settings\" = { rows = 200 }\n\n\
         # [functions]\n\
         # \"public.place_order\" = { calls-per-hour = 40_000 }\n\n\
         # [[overrides]]\n\
         # paths = [\"legacy/**\"]\n\
         # rules = { missing-lock-timeout = \"off\" }\n",
    );
    text
}

fn write_folders(folders: &[Detected], text: &mut String) {
    let paths: Vec<String> = folders.iter().map(|folder| format!("{:?}", folder.folder)).collect();
    let line = match paths.as_slice() {
        [] => "# paths = [\"db/migrations\"]\n".to_owned(),
        [only] => format!("paths = [{only}]\n"),
        many => format!("# Each folder is the history of one database.\npaths = [\n    {},\n]\n", many.join(",\n    ")),
    };
    text.push_str(&line);
    for folder in folders {
        let Some(count) = folder.tools.first() else { continue };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "# {}: {}, {}; {}.",
            folder.folder,
            detected::name(count.tool),
            detected::sign(count.sign),
            folder.transactions.describe()
        );
    }
    if let Some([only]) = folders.first_chunk::<1>().filter(|_| folders.len() == 1) {
        let tool = only.tools.first().map_or(Tool::Plain, |count| count.tool);
        let _ = writeln!(text, "# tool = \"{}\"", tool.as_str());
    }
    text.push_str(if folders.iter().any(|folder| folder.transactions_assumed) {
        "# No tool was recognized. Set how the files are run: \"transaction\" (each in a transaction of the program that runs\n\
         # it), \"autocommit\" (statement by statement, as by psql) or \"single-string\" (each sent as one string).\n\
         # transaction = \"transaction\"\n"
    } else {
        "# \"transaction\", \"autocommit\" or \"single-string\", if the tool does not run files in its usual way.\n\
         # transaction = \"transaction\"\n"
    });
    let newest: Vec<&str> = folders.iter().filter_map(|folder| folder.newest.as_deref()).collect();
    let start_after = match newest.as_slice() {
        [] => "\"0041_add_users.sql\"".to_owned(),
        [only] => format!("{:?}", name_of_migration(only)),
        many => format!("{many:?}"),
    };
    let which = if newest.is_empty() { "this migration" } else { "the newest existing migration" };
    let _ = writeln!(text, "# Report only migrations after {which}.\n# start-after = {start_after}");
}

/// The name by which a migration is known: of its folder, if the file is called the same everywhere.
fn name_of_migration(path: &str) -> String {
    let path = Path::new(path);
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let folder = path.parent().filter(|_| path.ends_with("up.sql") || path.ends_with("migration.sql"));
    folder.and_then(name).or_else(|| name(path)).unwrap_or_default()
}
