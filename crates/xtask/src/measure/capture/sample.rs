//! A sample: a project of a framework, and how its migrations are run.

use crate::measure::tools::{Install, install};
use crate::measure::{fixtures, read};
use pgvet_capture::Place;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A project with its framework.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sample {
    /// Its folder.
    #[serde(skip)]
    pub(super) name: String,
    install: Install,
    /// Commands that build the project, in its folder.
    #[serde(default)]
    prepare: Vec<Vec<String>>,
    /// The command that runs the migrations; `{install}` is the folder of the packages.
    command: Vec<String>,
    /// Variables of its environment, as `--env` takes them.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// Variables with which the client accepts encrypted connections only, each set of which is tried in a run of its own.
    #[serde(default)]
    pub(super) encrypted: Vec<BTreeMap<String, String>>,
    /// Whether the last migration fails, as it should.
    pub(super) fails: bool,
}

impl Sample {
    pub(super) fn all() -> Result<Vec<Self>, String> {
        let folder = fixtures("capture");
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().join("sample.toml").is_file())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names.into_iter().map(|name| Self::read(&folder.join(&name), name)).collect()
    }

    /// The sample with a name.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        Self::read(&fixtures("capture").join(name), name.to_owned())
    }

    fn read(folder: &Path, name: String) -> Result<Self, String> {
        let text = read(&folder.join("sample.toml"))?;
        let sample: Self = toml::from_str(&text).map_err(|error| format!("{name}/sample.toml: {error}"))?;
        Ok(Self { name, ..sample })
    }

    pub(super) fn folder(&self) -> PathBuf {
        fixtures("capture").join(&self.name)
    }

    /// Installs its packages.
    pub(super) fn install(&self) -> Result<PathBuf, String> {
        let place = Path::new("capture").join(&self.name);
        install::install_at(&place, &self.name, &self.install, &self.folder(), "")
    }

    /// Copies the project below a folder, beside its packages, and builds it.
    pub(super) fn project(&self, folder: &Path, installed: &Path) -> Result<PathBuf, String> {
        let project = folder.join("project");
        copy(&self.folder().join("project"), &project).map_err(|error| format!("{}: {error}", self.name))?;
        let modules = installed.join("node_modules");
        if modules.is_dir() {
            symlink(&modules, project.join("node_modules")).map_err(|error| error.to_string())?;
        }
        for words in &self.prepare {
            let words: Vec<String> = words.iter().map(|word| fill(word, installed)).collect();
            let (program, arguments) = words.split_first().ok_or("a command is empty")?;
            let mut command = Command::new(program);
            command.args(arguments).current_dir(&project).env("GOFLAGS", "-mod=mod").env("CGO_ENABLED", "0");
            let output = command.output().map_err(|error| format!("{program}: {error}"))?;
            if !output.status.success() {
                return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        Ok(project)
    }

    /// The command as `pgvet capture` gets it, with the folder that it runs in.
    pub(super) fn command(&self, project: &Path, installed: &Path) -> (Vec<OsString>, Vec<(String, String)>) {
        let own = self.command.iter().map(|word| OsString::from(fill(word, installed)));
        // Its output would be among the report.
        let quiet = "cd \"$1\" && shift && exec \"$@\" >/dev/null 2>&1";
        let wrapped = ["sh", "-c", quiet, "sh"].map(OsString::from);
        let command = wrapped.into_iter().chain([project.as_os_str().to_owned()]).chain(own).collect();
        let mut variables: Vec<(String, String)> = self.environment.clone().into_iter().collect();
        variables.push(("PATH".to_owned(), search_path(installed)));
        (command, variables)
    }

    /// Runs the command without a proxy.
    pub(super) fn run_alone(&self, project: &Path, installed: &Path, place: &Place) -> Result<Duration, String> {
        let (command, variables) = self.command(project, installed);
        let mut run = Command::new(&command[0]);
        run.args(command[1..].iter().map(|word| place.fill(&word.to_string_lossy()))).stdin(Stdio::null());
        run.envs(place.variables()).envs(variables.iter().map(|(name, template)| (name, place.fill(template))));
        let started = Instant::now();
        let status = run.status().map_err(|error| format!("{}: {error}", self.name))?;
        if status.success() == self.fails {
            return Err(format!("the command ended with {status} without a proxy"));
        }
        Ok(started.elapsed())
    }
}

fn fill(text: &str, installed: &Path) -> String {
    text.replace("{install}", &installed.to_string_lossy())
}

/// The search path with the programs of installed packages.
pub(super) fn search_path(installed: &Path) -> String {
    let own = [installed.join("bin"), installed.join("node_modules/.bin")].map(|path| path.display().to_string());
    format!("{}:{}", own.join(":"), std::env::var("PATH").unwrap_or_default())
}

pub(super) fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
