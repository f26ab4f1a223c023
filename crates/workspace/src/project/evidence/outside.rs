//! Files of which nothing shows what runs them, although a tool runs the migrations of the project from another folder.

use super::archive::MANIFESTS;
use crate::config::absolute;
use crate::layout::known_tool::ToolFolder;
use crate::layout::{Folders, Sign, Tool};
use crate::nearby::{Nearby, sql_names};
use crate::order;
use crate::problem::display;
use crate::project::ProjectFile;
use crate::roots::Repositories;
use pgvet_linter::repository::IdleReason;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Further files that make a folder a project of its own, which has tools of its own.
const OTHER_MANIFESTS: [&str; 3] = ["requirements.txt", "composer.json", "Gemfile"];

/// Maximum number of levels above files at which a name is searched.
const LEVELS: usize = 8;

/// Most files of code and configuration that are searched for a name.
const FILES: usize = 300;

/// Answers for which files another folder is that of the migration tool.
pub(super) struct Outside<'a> {
    /// The paths that the user names: what is named by itself is run.
    given: Vec<PathBuf>,
    tools: &'a BTreeSet<ToolFolder>,
    repositories: Repositories,
    /// What is known about folders of files.
    known: FxHashMap<PathBuf, Option<Arc<Beside>>>,
    /// The names of SQL files in the texts of folders, each read once.
    named: FxHashMap<PathBuf, Arc<FxHashSet<String>>>,
}

/// The folder of a tool beside a folder of which nothing shows what runs its files.
#[derive(Debug)]
struct Beside {
    tool: ToolFolder,
    /// The names of SQL files in code, configuration and pages around, for each folder above.
    named: Vec<Arc<FxHashSet<String>>>,
}

impl<'a> Outside<'a> {
    pub(super) fn new(given: &[PathBuf], tools: &'a BTreeSet<ToolFolder>) -> Self {
        let given = if given.is_empty() { vec![PathBuf::from(".")] } else { given.to_vec() };
        let given = given.iter().map(|path| absolute(path)).collect();
        Self {
            given,
            tools,
            repositories: Repositories::default(),
            known: FxHashMap::default(),
            named: FxHashMap::default(),
        }
    }

    pub(super) fn idle(&mut self, file: &ProjectFile, folders: &Folders) -> Option<IdleReason> {
        let is_recognized = file.layout.tool != Tool::Plain || file.layout.sign != Sign::None;
        let path = absolute(&file.path);
        if self.tools.is_empty() || is_recognized || self.given.contains(&path) || folders.have_runner(&file.path) {
            return None;
        }
        if file.config.folder_of(&path).is_some() {
            return None;
        }
        let folder = absolute(&order::sequence(&path));
        let found = if let Some(found) = self.known.get(&folder) {
            found.clone()
        } else {
            let found = self.tool_beside(&folder, folders);
            self.known.entry(folder).or_insert(found).clone()
        };
        let found = found?;
        let name = path.file_name()?.to_string_lossy();
        if found.named.iter().any(|names| names.contains(&*name)) {
            return None;
        }
        let ToolFolder { folder, tool } = &found.tool;
        let top = self.repositories.top(&path).unwrap_or_default();
        let shown = folder.strip_prefix(&top).map_or_else(|_| display(folder), display);
        let tool = tool.title().unwrap_or_else(|| tool.as_str());
        Some(IdleReason::OutsideTool { tool: tool.into(), folder: shown.into() })
    }

    /// The folder of a tool in the project of a folder, if no code names the latter.
    fn tool_beside(&mut self, folder: &Path, folders: &Folders) -> Option<Arc<Beside>> {
        let top = self.repositories.top(folder)?;
        let inside = || folder.ancestors().take_while(|above| above.starts_with(&top));
        let manifests = MANIFESTS.iter().chain(&OTHER_MANIFESTS);
        let is_project = |above: &&Path| manifests.clone().any(|manifest| above.join(manifest).exists());
        let project = inside().find(is_project).unwrap_or(&top);
        let given = self.given.iter().filter(|given| folder.starts_with(given));
        let given = given.max_by_key(|given| given.as_os_str().len())?;
        let is_beside = |tool: &&ToolFolder| tool.folder.starts_with(project) && tool.folder.starts_with(given);
        let tool = self.tools.iter().find(is_beside)?.clone();
        let mut named = Vec::new();
        for above in inside().take(LEVELS) {
            let relative = display(folder.strip_prefix(above).unwrap_or(folder));
            let is_named = |file: &PathBuf| folders.nearby().is_named_in(file, &relative);
            if !relative.is_empty() && files(above, folders.nearby()).iter().any(is_named) {
                return None;
            }
            named.push(self.names_in(above, folders.nearby()));
        }
        Some(Arc::new(Beside { tool, named }))
    }

    fn names_in(&mut self, above: &Path, nearby: &Nearby) -> Arc<FxHashSet<String>> {
        let names = self.named.entry(above.to_owned()).or_insert_with_key(|above| {
            let texts = files(above, nearby).into_iter().filter_map(|file| nearby.text(&file));
            let mut names = FxHashSet::default();
            texts.for_each(|text| names.extend(sql_names(&text).map(str::to_owned)));
            Arc::new(names)
        });
        Arc::clone(names)
    }
}

/// The code, configuration and pages in a folder that may run SQL files below it, or say how to.
fn files(above: &Path, nearby: &Nearby) -> Vec<PathBuf> {
    let workflows = [above.join(".github/workflows")];
    let code = nearby.code_folders(above);
    let files = code.iter().chain(&workflows).flat_map(|folder| nearby.code_and_configuration(folder));
    nearby.readme(above).chain(files.take(FILES)).collect()
}
