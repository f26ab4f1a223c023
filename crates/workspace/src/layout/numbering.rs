//! By what the files of a folder are ordered, where their numbers alone do not tell.

use super::folder::Folders;
use super::model::Order;
use super::{Tool, detect};
use crate::config::{ConfigSource, Configs};
use crate::{order, read};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The order of the folders for which it depends on the tool: `10` comes before `2` for some.
#[derive(Debug, Default)]
pub(crate) struct Numberings(BTreeMap<PathBuf, Order>);

/// Maximum number of files of a folder that are searched for a sign of the tool.
const LOOKED_AT: usize = 8;

impl Numberings {
    pub(crate) fn of(paths: &[PathBuf]) -> Self {
        let mut sequences: BTreeMap<&Path, (Vec<String>, Vec<&PathBuf>)> = BTreeMap::new();
        for path in paths {
            let (sequence, name) = order::place(path);
            let (names, files) = sequences.entry(sequence).or_default();
            names.push(name);
            files.push(path);
        }
        let doubtful = sequences.into_iter().filter(|(_, (names, _))| order::depends_on_tool(names));
        let order = |(sequence, (_, files)): (&Path, (Vec<String>, Vec<&PathBuf>))| {
            let order = tool(&files).map(|tool| tool.model().order);
            Some((sequence.to_owned(), order.or_else(|| of_script(sequence))?))
        };
        Self(doubtful.filter_map(order).collect())
    }

    pub(crate) fn order_of(&self, path: &Path) -> Order {
        let known = if self.0.is_empty() { None } else { self.0.get(order::place(path).0) };
        known.copied().unwrap_or(Order::Number { letter: true })
    }
}

/// The order in which a script runs the files of a folder with psql: that of their names, unless it sorts numbers.
fn of_script(sequence: &Path) -> Option<Order> {
    Folders::default().psql_scripts(sequence).lists_by_name().then_some(Order::Name)
}

/// The first tool that one of the files shows.
fn tool(files: &[&PathBuf]) -> Option<Tool> {
    let (folders, configs) = (Folders::default(), Configs::new(ConfigSource::default()));
    let shown = |path: &&PathBuf| {
        let config = configs.of(path.parent()?).ok()?;
        let text = read::text(path).ok()?;
        Some(detect(path, &text, &folders, &config).tool).filter(|tool| *tool != Tool::Plain)
    };
    files.iter().take(LOOKED_AT).find_map(shown)
}
