//! What is captured: the arguments, completed by the configuration.

use crate::args::CaptureArgs;
use crate::error::Failure;
use crate::inert;
use crate::report::relative_path;
use pgvet_capture::{Tables, shown};
use pgvet_workspace::config::{CaptureConfig, Config, Configs};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A command with everything that its capture needs.
pub(super) struct Job<'a> {
    pub(super) args: &'a CaptureArgs,
    pub(super) command: Vec<OsString>,
    /// The folder in which it runs.
    pub(super) folder: PathBuf,
    pub(super) variables: Vec<(String, String)>,
    /// The folder in which sources are searched for.
    pub(super) project: PathBuf,
    pub(super) tables: Tables,
    pub(super) save: Option<PathBuf>,
    pub(super) schema: Option<PathBuf>,
    /// The major version of a server of our own.
    pub(super) major: Option<u8>,
}

impl<'a> Job<'a> {
    /// Completes the arguments. A command that the configuration names is printed, because the user did not type it.
    pub(super) fn new(args: &'a CaptureArgs) -> Result<Self, Failure> {
        let current =
            std::env::current_dir().map_err(|error| Failure::new(format!("the current folder is gone: {error}")))?;
        let mut source = args.source.clone();
        source.nearest_to = Some(current.clone());
        let config = Configs::new(source.source()).of(&current).map_err(|error| Failure::config(error, args.color))?;
        let configured = &config.capture;
        let (command, folder) =
            if args.command.is_empty() { configured_command(configured)? } else { (args.command.clone(), current) };
        // A command that the user typed gets only what the user typed.
        let mut variables = if args.command.is_empty() { configured.env.clone() } else { BTreeMap::new() };
        variables.extend(args.variables.iter().cloned());
        let table = match &args.table {
            Some(table) => Some((table.as_str(), args.column.as_slice())),
            None => configured.table.as_ref().map(|(table, columns)| (table.as_str(), columns.as_slice())),
        };
        Ok(Self {
            args,
            command,
            project: folder.clone(),
            folder,
            variables: variables.into_iter().collect(),
            tables: Tables::with(table),
            save: args.save.clone().or_else(|| configured.save.as_deref().map(relative)),
            schema: args.schema.clone().or_else(|| config.migrations.schema.clone()),
            major: major(args, &config),
        })
    }

    /// The command as a person would type it.
    pub(super) fn shown(&self) -> String {
        inert::line(&shown(&self.command)).into_owned()
    }

    /// Decides for which statements values of parameters are recorded.
    pub(super) fn keeps_values(&self) -> impl Fn(&str) -> bool + use<> {
        let (tables, all) = (self.tables.clone(), self.args.values);
        move |sql| all || tables.needs_values(sql)
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.args.loudness.quiet
    }
}

fn configured_command(configured: &CaptureConfig) -> Result<(Vec<OsString>, PathBuf), Failure> {
    let Some(file) = configured.file.as_deref() else {
        return Err(Failure::new("there is no command to run").help(
            "write the command after `--`, as in `pgvet capture -- python manage.py migrate`, or configure it:\n    [capture]\n    \
             command = [\"python\", \"manage.py\", \"migrate\"]",
        ));
    };
    let command: Vec<OsString> = configured.command.iter().map(OsString::from).collect();
    let file_name = relative_path(&file.to_string_lossy());
    let said = format!("running `{}`, the command of {file_name}", shown(&command));
    // Also with --quiet: the user did not type it. Nobody is left to tell when standard error is closed.
    let _ = Failure::new(inert::line(&said)).write_note(&mut std::io::stderr().lock());
    Ok((command, file.parent().unwrap_or(Path::new(".")).to_owned()))
}

fn relative(path: &Path) -> PathBuf {
    PathBuf::from(relative_path(&path.to_string_lossy()))
}

fn major(args: &CaptureArgs, config: &Config) -> Option<u8> {
    let configured = config.settings.versions_configured.then_some(config.settings.versions);
    args.pg_version.or(configured).map(|versions| versions.to.0)
}
