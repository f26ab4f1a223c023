//! A case as a project of a tool: the migrations of a shared case in the form that the tool reads, or a folder of its own.

use super::declaration::{Declaration, folder};
use crate::measure::read;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A project that a tool runs.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    folder: PathBuf,
    is_shared: bool,
}

/// A version of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Installed<'a> {
    pub tool: &'a Declaration,
    pub version: &'a str,
}

/// Where the database is.
#[derive(Debug, Clone)]
pub struct Address {
    pub port: u16,
    pub database: String,
}

impl Address {
    /// For a project that is not run.
    pub fn of_nothing() -> Self {
        Self { port: 5432, database: "app".to_owned() }
    }

    /// Replaces the placeholders for parts of the address.
    pub fn fill(&self, text: &str) -> String {
        let Self { port, database } = self;
        text.replace("{url}", &format!("postgres://postgres@127.0.0.1:{port}/{database}?sslmode=disable"))
            .replace("{host}", "127.0.0.1")
            .replace("{port}", &port.to_string())
            .replace("{database}", database)
    }
}

/// The cases of a tool, by name: all shared ones that it does not skip, and its own.
///
/// # Errors
/// Says what could not be read.
pub fn cases(declaration: &Declaration) -> Result<Vec<Case>, String> {
    let shared = folders(&folder().join("cases"))?;
    let own = folders(&declaration.folder())?;
    let shared = shared.into_iter().map(|(name, folder)| Case { name, folder, is_shared: true });
    let own = own.into_iter().map(|(name, folder)| Case { name, folder, is_shared: false });
    let is_asked = |case: &Case| {
        let asked = declaration.shared.as_ref().is_none_or(|asked| asked.contains(&case.name));
        asked && !declaration.skip.contains_key(&case.name)
    };
    let mut cases: Vec<Case> = shared.filter(is_asked).chain(own).collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(cases)
}

pub(super) fn folders(parent: &Path) -> Result<BTreeMap<String, PathBuf>, String> {
    let entries = std::fs::read_dir(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_dir());
    Ok(paths.map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path)).collect())
}

impl Case {
    /// A project in the form that every tool reads.
    pub(super) fn shared(name: &str, folder: PathBuf) -> Self {
        Self { name: name.to_owned(), folder, is_shared: true }
    }

    /// The files of the project by path.
    ///
    /// # Errors
    /// Says what could not be read.
    pub fn files(&self, of: &Installed<'_>, address: &Address) -> Result<BTreeMap<String, String>, String> {
        let own = read_all(&self.folder)?;
        let layout = &of.tool.project;
        let mut files = BTreeMap::new();
        let mut list = Vec::new();
        if self.is_shared {
            let mut migrations: Vec<(&str, &str, &str)> = own
                .iter()
                .filter_map(|(path, sql)| {
                    let (number, name) = path.strip_suffix(".sql")?.split_once('_')?;
                    Some((number, name, sql.as_str()))
                })
                .collect();
            migrations.sort_by_key(|(number, ..)| number.parse::<u64>().unwrap_or_default());
            for (at, (number, name, sql)) in migrations.into_iter().enumerate() {
                let fill = |text: &str| {
                    text.replace("{number}", number)
                        .replace("{padded}", &format!("{number:0>6}"))
                        .replace("{index}", &at.to_string())
                        .replace("{name}", name)
                        .replace("{sql}", sql)
                };
                files.insert(fill(&layout.file), fill(&layout.text));
                files.extend(layout.beside.iter().map(|(path, text)| (fill(path), fill(text))));
                list.push(fill(&layout.entry));
            }
        }
        let list = list.join(&layout.separator);
        files.extend(layout.files.iter().map(|(path, text)| (path.clone(), text.replace("{list}", &list))));
        if !self.is_shared {
            files.extend(own);
        }
        files.values_mut().for_each(|text| *text = address.fill(&text.replace("{version}", of.version)));
        Ok(files)
    }

    /// Writes the project.
    ///
    /// # Errors
    /// Says what could not be read or written.
    pub fn write(&self, of: &Installed<'_>, address: &Address, root: &Path) -> Result<(), String> {
        for (path, text) in self.files(of, address)? {
            let path = root.join(path);
            let written =
                std::fs::create_dir_all(path.parent().unwrap_or(root)).and_then(|()| std::fs::write(&path, text));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }
}

fn read_all(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).map_err(|error| format!("{}: {error}", next.display()))? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                files.insert(name, read(&path)?);
            }
        }
    }
    Ok(files)
}

/// The tables and indexes that the files of a project create, each with its file. Names are unique in a project.
pub(super) fn objects(files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut objects = BTreeMap::new();
    for (path, text) in files {
        let mut words = text.split(|one: char| !(one.is_alphanumeric() || one == '_' || one == '.'));
        while let Some(word) = words.next() {
            if !word.eq_ignore_ascii_case("create") {
                continue;
            }
            let is_noise = |word: &&str| {
                ["", "UNIQUE", "TABLE", "INDEX", "CONCURRENTLY", "IF", "NOT", "EXISTS"]
                    .iter()
                    .any(|noise| noise.eq_ignore_ascii_case(word))
            };
            if let Some(name) = words.by_ref().find(|word| !is_noise(word)) {
                let name = name.rsplit('.').next().unwrap_or(name);
                objects.entry(name.to_owned()).or_insert_with(|| path.clone());
            }
        }
    }
    objects.retain(|name, _| name.starts_with("t_"));
    objects
}
