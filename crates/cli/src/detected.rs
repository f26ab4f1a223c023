//! Facts that were detected about the folders of migrations of a run.

use crate::inert;
use crate::report::plural;
use pgvet_model::migration::{Direction, TransactionMode};
use pgvet_workspace::{Project, ProjectFile, Role, Sign, Tool, UnknownOrder};
use serde::Serialize;
use std::collections::BTreeMap;

/// The migrations of one database.
#[derive(Debug, Serialize)]
pub(crate) struct Detected {
    pub(crate) folder: String,
    /// The tools of its files, the most frequent first.
    pub(crate) tools: Vec<ToolCount>,
    pub(crate) files: usize,
    pub(crate) reported: usize,
    /// Files of which something is run on the way forward.
    pub(crate) run: usize,
    /// The first and the last file in the order of the tool.
    pub(crate) first: Option<String>,
    pub(crate) last: Option<String>,
    /// The newest migration, after which all that come are new: not always the last file.
    pub(crate) newest: Option<String>,
    /// In how many folders they have an order of their own.
    pub(crate) sequences: usize,
    pub(crate) transactions: Transactions,
    /// Whether the transactions of some files are assumed, because nothing shows which program runs them.
    pub(crate) transactions_assumed: bool,
    /// Down migrations: files or sections.
    pub(crate) down: usize,
    /// Files whose place among the others is unknown, by the reason.
    pub(crate) unordered: Vec<Unordered>,
    /// Files that the tool does not run: its own list does not name them, or their names are none of its.
    pub(crate) unlisted: usize,
    pub(crate) unlisted_files: Vec<String>,
    /// Files with nothing for PostgreSQL.
    pub(crate) skipped: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolCount {
    pub(crate) tool: Tool,
    pub(crate) sign: Sign,
    pub(crate) files: usize,
}

/// Files whose place among the others is unknown for the same reason.
#[derive(Debug, Serialize)]
pub(crate) struct Unordered {
    pub(crate) reason: UnknownOrder,
    pub(crate) files: Vec<String>,
}

/// How many migrations run in which transaction.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Transactions {
    pub(crate) transaction: usize,
    pub(crate) single_string: usize,
    pub(crate) autocommit: usize,
}

/// One entry for each database that has files, in their order.
pub(crate) fn detect(project: &Project) -> Vec<Detected> {
    let numbered = project.databases.iter().zip(1..);
    let detected = numbered.map(|(database, number)| {
        let belongs = |file: &&ProjectFile| file.database == number && file.role.is_migration();
        let files: Vec<&ProjectFile> = project.files.iter().filter(belongs).collect();
        let folder = if database.root.as_os_str().is_empty() { "(named files)".to_owned() } else { database.shown() };
        let newest = project.newest_migration(number).map(|file| file.shown().path.clone());
        Detected { newest, sequences: project.sequences(number), ..of_files(folder, &files) }
    });
    detected.filter(|detected| detected.files > 0).collect()
}

fn of_files(folder: String, files: &[&ProjectFile]) -> Detected {
    let mut tools: BTreeMap<(Tool, Sign), usize> = BTreeMap::new();
    let mut transactions = Transactions::default();
    let mut down = 0;
    for file in files {
        *tools.entry((file.layout.tool, file.layout.sign)).or_default() += 1;
        for section in &file.layout.sections {
            match (section.direction, section.transaction) {
                (Direction::Down, _) => down += usize::from(!file.layout.unlisted),
                (Direction::Up, TransactionMode::Transaction) => transactions.transaction += 1,
                (Direction::Up, TransactionMode::SingleString) => transactions.single_string += 1,
                (Direction::Up, TransactionMode::Autocommit) => transactions.autocommit += 1,
            }
        }
    }
    let mut tools: Vec<ToolCount> =
        tools.into_iter().map(|((tool, sign), files)| ToolCount { tool, sign, files }).collect();
    tools.sort_by_key(|count| std::cmp::Reverse(count.files));
    let path = |file: &&ProjectFile| file.shown().path.clone();
    let mut run = files.iter().copied().filter(|file| file.is_run());
    let first = run.next();
    let last = run.next_back().or(first);
    let unlisted_files: Vec<String> = files.iter().filter(|file| file.layout.unlisted).map(path).collect();
    Detected {
        folder,
        tools,
        files: files.len(),
        reported: files.iter().filter(|file| file.role == Role::Reported).count(),
        run: files.iter().filter(|file| file.is_run()).count(),
        first: first.as_ref().map(path),
        last: last.as_ref().map(path),
        newest: None,
        sequences: 1,
        transactions,
        transactions_assumed: files.iter().any(|file| file.has_unknown_runner()),
        down,
        unordered: unordered(files),
        unlisted: unlisted_files.len(),
        unlisted_files,
        skipped: files.iter().filter(|file| file.layout.sections.is_empty()).count(),
    }
}

fn unordered(files: &[&ProjectFile]) -> Vec<Unordered> {
    let mut by_reason: BTreeMap<UnknownOrder, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_run()) {
        if let Some(reason) = file.unknown_order {
            by_reason.entry(reason).or_default().push(file.shown().path.clone());
        }
    }
    by_reason.into_iter().map(|(reason, files)| Unordered { reason, files }).collect()
}

impl Unordered {
    /// How many files, why their place is unknown, and the first of them.
    pub(crate) fn describe(&self) -> String {
        let why = match self.reason {
            UnknownOrder::NoVersion => "without a version in the name",
            UnknownOrder::OtherLanguages => "among migrations in a programming language",
            UnknownOrder::OtherTool => "of another tool than most files",
        };
        format!("{} {why}: {}", plural(self.files.len(), "file"), first(&self.files))
    }
}

/// The first files of a list, and how many follow.
pub(crate) fn first(files: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<_> = files.iter().take(SHOWN).map(|path| inert::line(path)).collect();
    match files.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        rest => format!("{} and {rest} more (--format json lists them)", shown.join(", ")),
    }
}

/// The sign by which a tool was recognized, as the end of the sentence "goose, ...".
pub(crate) fn sign(sign: Sign) -> &'static str {
    match sign {
        Sign::Configuration => "as configured",
        Sign::Comment => "from comments in the files",
        Sign::FileName => "from the names of the files",
        Sign::Folder => "from the folder and the files around it",
        Sign::CargoToml => "from a dependency in Cargo.toml",
        Sign::RunnerCode => "run by code of the project",
        Sign::None => "because no migration tool was recognized",
    }
}

/// The name of a tool in a sentence.
pub(crate) fn name(tool: Tool) -> &'static str {
    match tool {
        Tool::Plain => "plain SQL files",
        tool => tool.as_str(),
    }
}

impl Transactions {
    /// "each file in one transaction", or how many of which.
    pub(crate) fn describe(&self) -> String {
        let kinds = [
            (self.transaction, "in a transaction of the tool"),
            (self.single_string, "sent as one string"),
            (self.autocommit, "statement by statement"),
        ];
        let present: Vec<(usize, &str)> = kinds.into_iter().filter(|(count, _)| *count > 0).collect();
        match present.as_slice() {
            [] => "none is run".to_owned(),
            [(_, only)] => format!("each {only}"),
            many => many.iter().map(|(count, kind)| format!("{count} {kind}")).collect::<Vec<_>>().join(", "),
        }
    }
}
