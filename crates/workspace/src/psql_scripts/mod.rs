//! Scripts of a project that run SQL files with psql: shell scripts, Makefiles, workflows, and programs that start psql.
//!
//! Without `--single-transaction`, psql commits each statement on its own, whatever another tool does with the file.
//! Source: PostgreSQL 18 documentation, psql, `--single-transaction`.

mod place;
mod script;
mod words;

use crate::nearby::Nearby;
use crate::problem::display;
use place::Places;
use script::Kind;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// So far above the files scripts are searched for.
const LEVELS: usize = 5;

/// Folders with scripts around the migrations.
const FOLDERS: [&str; 16] = [
    "",
    ".github/workflows",
    "bin",
    "ci",
    ".ci",
    "cmd",
    "db",
    "deploy",
    "docker",
    "hack",
    "infra",
    "lib",
    "script",
    "scripts",
    "src",
    "tools",
];

/// Most files that are read for one folder.
const FILES: usize = 300;

/// Most of them that have commands.
const SCRIPTS: usize = 50;

/// The order in which a script runs several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GlobOrder {
    Name,
    Number,
    Unknown,
}

impl GlobOrder {
    fn letter(self) -> char {
        match self {
            Self::Name => 'a',
            Self::Number => 'n',
            Self::Unknown => 'u',
        }
    }

    fn of_letter(letter: char) -> Self {
        match letter {
            'n' => Self::Number,
            'u' => Self::Unknown,
            _ => Self::Name,
        }
    }
}

/// Files of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Files {
    /// The name of one, relative to the folder.
    One(String),
    Glob {
        pattern: String,
        order: GlobOrder,
    },
    /// A file elsewhere in the checkout.
    Other(PathBuf),
}

impl Files {
    fn hold(&self, name: &str) -> bool {
        match self {
            Self::One(own) => own == name,
            Self::Glob { pattern, .. } => matches(pattern, name),
            Self::Other(_) => false,
        }
    }
}

/// A command that runs files with psql.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// The path and line: `scripts/migrate.sh:4`.
    pub(crate) place: SmolStr,
    /// Whether psql runs each file in one transaction.
    pub(crate) in_transaction: bool,
    files: Files,
}

/// The commands that run files of a folder with psql, by script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PsqlScripts {
    scripts: Vec<Vec<Run>>,
}

impl PsqlScripts {
    /// Looks at the scripts around a folder up to `top`.
    pub(crate) fn of(folder: &Path, top: &Path, nearby: &Nearby) -> Self {
        let around = folder.ancestors().take(LEVELS).take_while(|above| above.starts_with(top));
        let folders = around.flat_map(|above| FOLDERS.iter().map(move |below| above.join(below)));
        let mut files: Vec<_> = folders.flat_map(|folder| nearby.scripts(&folder)).take(FILES).collect();
        let mut seen = BTreeSet::new();
        files.retain(|file| seen.insert(file.clone()));
        let runs = |script: PathBuf| {
            let text = nearby.text(&script).filter(|text| text.contains("psql") || text.contains(".sql"))?;
            let places = Places { folder, script: &script, top, nearby };
            let shown = display(script.strip_prefix(top).unwrap_or(&script));
            let kind = kind(&script);
            let mut runs = if text.contains("psql") { script::runs(&text, kind, &shown, &places) } else { Vec::new() };
            runs.extend(script::others(&text, kind, &shown, &places));
            (!runs.is_empty()).then_some(runs)
        };
        Self { scripts: files.into_iter().filter_map(runs).take(SCRIPTS).collect() }
    }

    /// The first command that runs a file, whose name is relative to the folder.
    pub(crate) fn run_of(&self, name: &str) -> Option<&Run> {
        self.scripts.iter().flatten().find(|run| run.files.hold(name))
    }

    /// The first command that runs any file of the folder.
    pub(crate) fn first(&self) -> Option<&Run> {
        self.scripts.iter().flatten().find(|run| !matches!(run.files, Files::Other(_)))
    }

    /// Whether all of the folder is run in the order of names, and nothing runs it in another order.
    pub(crate) fn lists_by_name(&self) -> bool {
        let mut orders = self.scripts.iter().flatten().filter_map(|run| match &run.files {
            Files::Glob { order, .. } => Some(*order),
            _ => None,
        });
        orders.next() == Some(GlobOrder::Name) && orders.all(|order| order == GlobOrder::Name)
    }

    /// Files elsewhere that scripts run, each with the place of its command.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&Path, &SmolStr)> {
        self.scripts.iter().flatten().filter_map(|run| match &run.files {
            Files::Other(path) => Some((path.as_path(), &run.place)),
            _ => None,
        })
    }

    /// The command of a script that does not run these files in this order.
    pub(crate) fn other_order(&self, names: &[&str]) -> Option<&Run> {
        self.scripts.iter().find_map(|runs| other_order(runs, names))
    }
}

/// Whether a path has the form of a pattern of a shell.
fn matches(pattern: &str, path: &str) -> bool {
    let (patterns, parts) = (pattern.split('/'), path.split('/'));
    patterns.clone().count() == parts.clone().count()
        && patterns.zip(parts).all(|(pattern, part)| matches_part(pattern.as_bytes(), part.as_bytes()))
}

/// The same for names without a slash. A set of letters stands for any of them.
fn matches_part(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // The last star, and where the name goes on after what it stands for.
    let mut star = None;
    while place < name.len() {
        let length = match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
                continue;
            }
            Some(b'[') => pattern[at..].iter().position(|byte| *byte == b']').map(|end| end + 1),
            Some(own) => (*own == b'?' || *own == name[place]).then_some(1),
            None => None,
        };
        match (length, &mut star) {
            (Some(length), _) => (at, place) = (at + length, place + 1),
            (None, Some((from, skipped))) => {
                *skipped += 1;
                (at, place) = (*from + 1, *skipped);
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// The first command that runs a file out of the order of `names`, or in an order that is not known.
fn other_order<'r>(runs: &'r [Run], names: &[&str]) -> Option<&'r Run> {
    let mut ranks: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        let mut own: Vec<&str> =
            names.iter().copied().filter(|name| run.files.hold(name) && !ranks.contains_key(name)).collect();
        match &run.files {
            Files::Glob { order: GlobOrder::Unknown, .. } if own.len() > 1 => return Some(run),
            Files::Glob { order: GlobOrder::Name, .. } => own.sort_unstable(),
            _ => {}
        }
        for name in own {
            let rank = ranks.len();
            ranks.insert(name, (rank, at));
        }
    }
    let ranked: Vec<(usize, usize)> = names.iter().filter_map(|name| ranks.get(name).copied()).collect();
    let earlier = ranked.windows(2).find(|two| two[1].0 < two[0].0)?;
    runs.get(earlier[1].1)
}

fn kind(script: &Path) -> Kind {
    match script.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "json" => Kind::Json,
        "sh" | "bash" | "yml" | "yaml" | "toml" | "mk" | "" => Kind::Shell,
        _ if is_named_as_script(script) => Kind::Shell,
        language => Kind::Code { sorted: matches!(language, "go" | "js" | "mjs" | "cjs" | "ts" | "mts" | "cts") },
    }
}

/// `Makefile.dev`, `Dockerfile.test`.
fn is_named_as_script(script: &Path) -> bool {
    let name = script.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    ["makefile", "dockerfile", "justfile"].iter().any(|known| name.starts_with(known))
}

#[cfg(test)]
mod tests;
