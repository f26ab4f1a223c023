//! `pgvet config`: what was detected, and from what.

use super::{load, load_every_file};
use crate::args::{ConfigArgs, PlainFormat};
use crate::detected::{self, Detected};
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::report::{plural, relative_path};
use crate::sql_files;
use pgvet_linter::settings::Settings;
use pgvet_linter::severity::Severity;
use pgvet_workspace::config::Config;
use pgvet_workspace::{Project, skipped_by_reason};
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn run(args: &ConfigArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let project = if args.files { load_every_file(&args.input)? } else { load(&args.input)? };
    let config = project.config_of(1);
    let settings = args.input.settings(&config);
    match args.format {
        PlainFormat::Text if args.files => {
            inert::through(out, Kind::Text, |out| sql_files::write(&sql_files::of(&project), out))?;
        }
        PlainFormat::Text => inert::through(out, Kind::Text, |out| write_text(&project, &config, &settings, out))?,
        PlainFormat::Json => {
            inert::through(out, Kind::Json, |out| write_json(args, &project, &config, &settings, out))?;
        }
    }
    Ok(if project.problems.is_empty() { ExitStatus::Clean } else { ExitStatus::NotChecked })
}

fn files(config: &Config) -> Vec<String> {
    config.files.iter().map(|file| relative_path(&file.to_string_lossy())).collect()
}

fn write_text(project: &Project, config: &Config, settings: &Settings, out: &mut dyn Write) -> io::Result<()> {
    match files(config).as_slice() {
        [] => writeln!(out, "configuration: defaults; there is no pgvet.toml in or above the migrations")?,
        [file] => writeln!(out, "configuration: {file}")?,
        [file, bases @ ..] => writeln!(out, "configuration: {file}, which extends {}", bases.join(", "))?,
    }
    let versions = settings.versions;
    let range = if versions.from == versions.to {
        versions.from.to_string()
    } else {
        format!("{}-{}", versions.from, versions.to)
    };
    let origin = if settings.versions_configured { "" } else { " (the default)" };
    writeln!(out, "PostgreSQL:    {range}{origin}")?;
    writeln!(out, "rules:         {}", rules(settings))?;
    for (name, count) in [
        ("tables", settings.tables.len()),
        ("functions", settings.functions.len()),
        ("placeholders", config.placeholders.len()),
    ] {
        if count > 0 {
            writeln!(out, "{:15}{count} configured", format!("{name}:"))?;
        }
    }
    let paths: Vec<&Path> = project.files.iter().map(|file| file.path.as_path()).collect();
    for unmatched in config.unmatched_overrides(&paths) {
        writeln!(out, "overrides:     `{unmatched}` matches none of the files")?;
    }
    if !project.skipped.is_empty() {
        let reasons = skipped_by_reason(&project.skipped);
        writeln!(out, "skipped:       {} ({reasons}); --files lists them", plural(project.skipped.len(), "file"))?;
    }
    for detected in detected::detect(project) {
        writeln!(out)?;
        write_folder(&detected, out)?;
    }
    Ok(())
}

fn rules(settings: &Settings) -> String {
    let mut text = if settings.strict { "strict" } else { "recommended" }.to_owned();
    let name = |level: Option<Severity>| level.map_or("off", Severity::as_str);
    let rules = settings.levels.rules.iter().map(|(rule, level)| format!("{rule} = {}", name(*level)));
    let categories =
        settings.levels.categories.iter().map(|(category, level)| format!("{} = {}", category.as_str(), name(*level)));
    let mut changed: Vec<String> = rules.chain(categories).collect();
    changed.sort();
    if !changed.is_empty() {
        text = format!("{text}, with {}", changed.join(", "));
    }
    text
}

fn write_folder(detected: &Detected, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", detected.folder)?;
    for (at, count) in detected.tools.iter().enumerate() {
        let label = if at == 0 { "tool:" } else { "" };
        let of = if detected.tools.len() > 1 { format!(" ({})", plural(count.files, "file")) } else { String::new() };
        writeln!(out, "  {label:13}{}, {}{of}", detected::name(count.tool), detected::sign(count.sign))?;
    }
    let replayed = detected.files - detected.reported;
    let replayed =
        if replayed > 0 { format!(", {replayed} of them read only to know the schema") } else { String::new() };
    writeln!(out, "  {:13}{}{replayed}", "files:", plural(detected.files, "file"))?;
    if let (Some(first), Some(last)) = (&detected.first, &detected.last) {
        writeln!(out, "  {:13}{first} is the first, {last} the last", "order:")?;
    }
    if detected.sequences > 1 {
        writeln!(
            out,
            "  {:13}{} folders, one after the other; if they belong to different databases, list them in [migrations] paths",
            "", detected.sequences
        )?;
    }
    for (at, unordered) in detected.unordered.iter().enumerate() {
        let label = if at == 0 { "no order:" } else { "" };
        writeln!(out, "  {label:13}{}", unordered.describe())?;
    }
    writeln!(out, "  {:13}{}", "transaction:", detected.transactions.describe())?;
    if detected.transactions_assumed {
        let ask = "assumed, because no tool was recognized; if wrong, set `transaction` under [migrations]";
        writeln!(out, "  {:13}{ask}", "")?;
    }
    if detected.down > 0 {
        writeln!(out, "  {:13}{} parsed, and checked only with --down", "down:", plural(detected.down, "migration"))?;
    }
    if detected.unlisted > 0 {
        writeln!(
            out,
            "  {:13}{} that the tool does not run, checked only with --down: {}",
            "not run:",
            plural(detected.unlisted, "file"),
            detected::first(&detected.unlisted_files)
        )?;
    }
    if detected.skipped > 0 {
        writeln!(out, "  {:13}{} with nothing for PostgreSQL", "empty:", plural(detected.skipped, "file"))?;
    }
    Ok(())
}

fn write_json(
    args: &ConfigArgs,
    project: &Project,
    config: &Config,
    settings: &Settings,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut document = json!({
        "schema_version": 1,
        "files": files(config),
        "pg_version": { "from": settings.versions.from, "to": settings.versions.to, "configured": settings.versions_configured },
        "strict": settings.strict,
        "migrations": detected::detect(project),
    });
    if args.files {
        document["sql_files"] = json!(sql_files::of(project));
    }
    writeln!(out, "{document:#}")
}
