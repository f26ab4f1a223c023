//! A tool as `fixtures/tools/NAME/tool.toml` declares it: how to install it, how a project of it looks, how to run it.

use crate::measure::{fixtures, read};
use pgvet_workspace::Tool;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A migration tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// Its folder.
    #[serde(skip)]
    pub name: String,
    /// The name that its users know.
    pub title: String,
    /// As pgvet knows it; absent if pgvet treats its files as plain scripts.
    pub tool: Option<Tool>,
    /// The versions that are run, the newest last.
    pub versions: Vec<String>,
    pub install: Install,
    pub project: Layout,
    pub run: Run,
    /// The shared cases that are run; all if absent.
    pub shared: Option<Vec<String>>,
    /// Shared cases that say nothing of this tool, with the reason.
    #[serde(default)]
    pub skip: BTreeMap<String, String>,
    /// Whether the projects of `changes` are run. pgvet says nothing of changes in files that grow, or without versions.
    #[serde(default = "yes")]
    pub changes: bool,
    /// Cases in which pgvet predicts something other than was seen, with the reason.
    #[serde(default)]
    pub differences: BTreeMap<String, String>,
    /// What the page says about how the tool was run.
    pub note: Option<String>,
    /// Why nothing is recorded.
    pub unrecorded: Option<String>,
}

/// A client of a package registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    Go,
    Npm,
    Pypi,
    Cargo,
    Maven,
    Debian,
}

/// The packages to install. `{version}` is replaced in packages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Install {
    pub registry: Registry,
    pub packages: Vec<String>,
    /// Further arguments of the client.
    #[serde(default)]
    pub options: Vec<String>,
    /// Files of the tool's folder that are put beside the packages: a program that calls a library.
    #[serde(default)]
    pub files: Vec<String>,
    /// A version that needs other packages.
    #[serde(default)]
    pub packages_of: BTreeMap<String, Vec<String>>,
}

impl Install {
    /// The packages of a version.
    pub fn packages(&self, version: &str) -> Vec<String> {
        let packages = self.packages_of.get(version).unwrap_or(&self.packages);
        packages.iter().map(|package| package.replace("{version}", version)).collect()
    }
}

/// How a project looks. `{number}` and `{name}` of a migration are replaced in paths, `{padded}` is the number with six
/// digits; in texts, so is `{sql}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The path of a migration.
    pub file: String,
    #[serde(default = "sql")]
    pub text: String,
    /// Other files of each migration.
    #[serde(default)]
    pub beside: BTreeMap<String, String>,
    /// Files of the project. `{list}` is the list of all migrations.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The entry of the list for one migration, and the text between two.
    #[serde(default)]
    pub entry: String,
    #[serde(default)]
    pub separator: String,
}

fn yes() -> bool {
    true
}

fn sql() -> String {
    "{sql}".to_owned()
}

/// How a project is run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Programs and their arguments, in the folder of the project; each is run if those before it succeed. `{install}`,
    /// `{host}`, `{port}`, `{database}` and `{url}` are replaced.
    pub commands: Vec<Vec<String>>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// After this time it never ends.
    #[serde(default = "patience")]
    pub seconds: u64,
}

fn patience() -> u64 {
    60
}

impl Declaration {
    /// Reads the declaration of one tool.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn load(name: &str) -> Result<Self, String> {
        let path = folder().join(name).join("tool.toml");
        let mut declaration: Self =
            toml::from_str(&read(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;
        name.clone_into(&mut declaration.name);
        Ok(declaration)
    }

    /// All tools, by name.
    ///
    /// # Errors
    /// Says what could not be read.
    pub fn all() -> Result<Vec<Self>, String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder()).map_err(|error| error.to_string())? {
            let entry = entry.map_err(|error| error.to_string())?;
            if entry.path().join("tool.toml").is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        names.iter().map(|name| Self::load(name)).collect()
    }

    pub fn folder(&self) -> PathBuf {
        folder().join(&self.name)
    }
}

/// Declarations, cases and what was seen.
pub fn folder() -> PathBuf {
    fixtures("tools")
}
