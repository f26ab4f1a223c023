//! The files of a plan in the form of a migration tool: names, next versions, sections, opt-outs from transactions.

use super::version::Numbered;
use super::{Folders, Layout, Order, Section, Tool, flyway, migratus};
use crate::discovery::files_at;
use crate::identity::Identities;
use crate::problem::Problem;
use crate::project::ProjectFile;
use crate::write::Change;
use crate::{order, read, rollback_name};
use pgvet_linter::fix::with_line_breaks_of;
use pgvet_linter::rewrite::{PlannedFile, PlannedStatement};
use pgvet_model::migration::{Direction, TransactionMode};
use pgvet_model::runner::KnownTransaction;
use std::fs;
use std::path::{Path, PathBuf};

/// A plan as files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sequence {
    /// In the order of deployment; the first takes the place of the original.
    pub files: Vec<WrittenFile>,
    /// Lists of migrations that the tool keeps, with the new ones.
    pub lists: Vec<Change>,
    /// Remaining steps for a person.
    pub notes: Vec<String>,
}

/// A file of a sequence, or one that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    pub path: PathBuf,
    pub text: String,
}

/// A migration that the tool runs after this one: the files of a sequence would come after it, too.
pub fn newer(file: &ProjectFile) -> Option<PathBuf> {
    let root = order::explicit_root(file.path.parent()?).unwrap_or_else(|| order::sequence(&file.path));
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root.as_path() };
    let is_same = |other: &PathBuf| fs::canonicalize(other).ok() == fs::canonicalize(&file.path).ok();
    let files = files_at(root, &Identities::default(), &mut Vec::new());
    let at = files.iter().position(is_same)?;
    files[at + 1..].iter().find(|other| leads_on(other)).cloned()
}

fn leads_on(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !rollback_name::is_rollback_migration(path) && order::is_versioned(path) && !name.starts_with(['U', 'R'])
}

const BY_HAND: &str =
    "run without `--in-place` and `--out` to print the plan, then run its statements by hand, one at a time";

/// Says why the tool cannot run the plan, if it cannot, and what to do instead.
fn refusal(file: &ProjectFile, in_transaction: bool, planned: &[PlannedFile]) -> Option<(String, String)> {
    let tool = file.layout.tool;
    let assumed_transaction = file.layout.known_transaction != KnownTransaction::Known;
    let name = tool.as_str();
    let outside = planned.iter().filter(|file| !file.transaction);
    let refused = match tool {
        Tool::Refinery | Tool::NodePgMigrate | Tool::Drizzle | Tool::Mybatis | Tool::Yuniql => outside.clone().next(),
        Tool::Supabase => outside.clone().find(|file| file.commits()),
        // soda skips a file whose name opts out.
        Tool::Pop if has_soda(&file.path) => outside.clone().next(),
        Tool::GraphileMigrate => {
            let message = format!("is recorded by {name} with a checksum of its contents");
            let help = "run without `--in-place` and `--out` to print the plan, then apply it by hand";
            return Some((message, help.to_owned()));
        }
        _ => None,
    };
    if let Some(file) = planned.iter().find(|file| ends_early(file)).filter(|_| tool == Tool::Mybatis) {
        let message = format!(
            "cannot be divided for {name}, which ends a statement at each line that ends with `;`: `{}` of the plan has such \
             a line inside a statement",
            file.title
        );
        return Some((message, BY_HAND.to_owned()));
    }
    if let Some(file) = refused.or_else(|| outside.clone().next().filter(|_| in_transaction)) {
        let with = match (in_transaction, assumed_transaction) {
            (false, _) => format!("of {name}"),
            (true, false) => "of the configured tool".to_owned(),
            (true, true) => "of the program that runs it, as far as pgvet knows".to_owned(),
        };
        let help = if assumed_transaction {
            "if the program opens no transaction, set `transaction` under [migrations] in pgvet.toml; otherwise run these \
             statements by hand"
        } else {
            BY_HAND
        };
        let message = format!("runs in a transaction {with}, in which `{}` of the plan cannot run", file.title);
        return Some((message, help.to_owned()));
    }
    let shares_session = matches!(tool, Tool::Grate | Tool::Dbup) && !in_transaction && planned.len() > 1;
    if let Some(file) = planned.iter().find(|file| !resets(file).is_empty()).filter(|_| shares_session) {
        let message = format!(
            "cannot be divided: {name} runs all files in one session, so the timeout that `{}` of the plan sets would stay \
             in effect",
            file.title
        );
        return Some((message, BY_HAND.to_owned()));
    }
    // What the plan keeps apart would come together again.
    let is_one = planned.len() > 1 && file.layout.runner().one_transaction;
    is_one.then(|| {
        let message = format!("cannot be divided: {name} runs all pending migrations in one transaction");
        let help = match tool {
            Tool::NodePgMigrate => {
                "run without `--in-place` and `--out` to print the plan; run its files with `--no-single-transaction`, or release \
                 each of them on its own"
            }
            _ => "run without `--in-place` and `--out` to print the plan, and release each of its files on its own",
        };
        (message, help.to_owned())
    })
}

/// Whether a line inside a statement ends with a semicolon.
fn ends_early(file: &PlannedFile) -> bool {
    file.statements.iter().any(|statement| statement.sql.contains(";\n"))
}

/// Whether the `soda` of pop runs a file, and not the pop of ory/x.
fn has_soda(path: &Path) -> bool {
    Folders::default().around(path).go_runner == Some(Tool::Pop)
}

/// Whether the tool opens a transaction around all files or around none, as far as files tell.
fn has_no_opt_out(tool: Tool) -> bool {
    matches!(tool, Tool::Plain | Tool::Grate | Tool::Dbup)
}

/// Writes the plan of the migration that is the `section` of a file.
pub fn sequence(file: &ProjectFile, section: Option<Section>, planned: &[PlannedFile]) -> Result<Sequence, Problem> {
    let Layout { tool, sections, .. } = &file.layout;
    let in_transaction =
        has_no_opt_out(*tool) && section.is_some_and(|section| section.transaction == TransactionMode::Transaction);
    if let Some((message, help)) = refusal(file, in_transaction, planned) {
        return Err(Problem::new(&file.path, message, Some(&help)));
    }
    if *tool == Tool::Plain && section.is_some_and(|section| section.range.is_some()) {
        let help = "run without `--in-place` and `--out` to print the plan, then apply it by hand";
        return Err(Problem::new(&file.path, "has sections that pgvet cannot rewrite", Some(help)));
    }
    let text = &file.shown().text;
    let down = sections.iter().find(|section| section.direction == Direction::Down).and_then(|down| down.range);
    let form = Form {
        tool: *tool,
        sends_strings: section.is_some_and(|section| section.transaction == TransactionMode::SingleString),
        in_transaction,
        path: &file.path,
        text,
        down: down.map(|range| text[range.as_usize()].trim().to_owned()),
    };
    let mut sequence = match (tool, section.and_then(|section| section.range)) {
        (Tool::Liquibase, Some(range)) => form.changesets(range.start as usize, range.end as usize, planned),
        (Tool::Liquibase, None) => {
            let help = "run without `--in-place` and `--out` to print the plan, then apply it by hand";
            Err(Problem::new(&file.path, "is run by a changelog that is not formatted SQL", Some(help)))
        }
        (Tool::Sqitch, _) => form.changes(planned),
        _ => form.files(planned),
    }?;
    for written in &mut sequence.files {
        written.text = with_line_breaks_of(text, &written.text).into_owned();
    }
    Ok(sequence)
}

struct Form<'a> {
    tool: Tool,
    /// A tool without a comment against it opens a transaction around each file.
    in_transaction: bool,
    /// Such a tool sends each file as one string.
    sends_strings: bool,
    path: &'a Path,
    text: &'a str,
    /// The down migration of the original, if it is in the same file.
    down: Option<String>,
}

/// In every migration but the first.
const NO_DOWN: &str = "-- Rolling back the first migration of the sequence undoes all of it.";

impl Form<'_> {
    /// A file, or a folder, for each migration.
    fn files(&self, planned: &[PlannedFile]) -> Result<Sequence, Problem> {
        let numbered = Numbered::parse(self.path);
        let as_text = matches!(self.tool.model().order, Order::Name | Order::VersionText);
        let mut sequence = Sequence::default();
        for (at, file) in planned.iter().enumerate() {
            let mut path = match at {
                0 => self.path.to_owned(),
                _ => numbered.next(at as u64, &file.title, as_text).ok_or_else(|| {
                    Problem::new(
                        self.path,
                        "has no free version number after its own",
                        Some("write the files to a separate folder with `--out`"),
                    )
                })?,
            };
            if self.tool == Tool::Pop && !file.transaction {
                path = autocommit_name(&path);
            }
            sequence.files.push(WrittenFile { path: path.clone(), text: self.file_text(file, at == 0) });
            sequence.files.extend(self.companions(&path, file, at == 0));
        }
        if self.tool == Tool::Atlas {
            sequence.notes.push("run `atlas migrate hash`, so that atlas.sum knows the new files".to_owned());
        }
        let builds = |written: &WrittenFile| flyway::waits_for_itself(&written.path, &written.text);
        if self.tool == Tool::Flyway && sequence.files.iter().any(builds) {
            sequence
                .notes
                .push(format!("{}: otherwise CREATE INDEX CONCURRENTLY never ends", flyway::LOCK_WITHOUT_TRANSACTION));
        }
        Ok(sequence)
    }

    fn file_text(&self, file: &PlannedFile, first: bool) -> String {
        let body = match self.tool {
            Tool::Goose => marked(file, "-- +goose StatementBegin", "-- +goose StatementEnd"),
            Tool::SqlMigrate => marked(file, "-- +migrate StatementBegin", "-- +migrate StatementEnd"),
            Tool::Migratus => divided(file),
            _ => file.text(),
        };
        let opt_out = |text: &'static str| if file.transaction { "" } else { text };
        let down = match (&self.down, first) {
            (Some(down), true) => down.clone(),
            _ => NO_DOWN.to_owned(),
        };
        match self.tool {
            Tool::Goose => {
                let header = opt_out("-- +goose NO TRANSACTION\n");
                format!("{header}-- +goose Up\n{body}\n-- +goose Down\n{down}\n")
            }
            Tool::SqlMigrate => {
                let without = opt_out(" notransaction");
                format!("-- +migrate Up{without}\n{body}\n-- +migrate Down\n{down}\n")
            }
            Tool::Dbmate => {
                let without = opt_out(" transaction:false");
                format!("-- migrate:up{without}\n{body}\n-- migrate:down\n{down}\n")
            }
            Tool::NodePgMigrate => format!("-- Up Migration\n{body}\n-- Down Migration\n{down}\n"),
            Tool::Sqlx => format!("{}{body}", opt_out("-- no-transaction\n")),
            Tool::Atlas => format!("{}{body}", opt_out("-- atlas:txmode none\n\n")),
            Tool::Tern => {
                format!(
                    "{}{body}\n---- create above / drop below ----\n{down}\n",
                    opt_out("---- tern: disable-tx ----\n")
                )
            }
            Tool::Yoyo => format!("{}{body}", opt_out("-- transactional: false\n")),
            Tool::PostgresMigrations => format!("{}{body}", opt_out("-- postgres-migrations disable-transaction\n")),
            Tool::Mybatis => format!("{body}\n-- //@UNDO\n{down}\n"),
            Tool::Evolve => format!("{}{body}", opt_out("-- evolve-tx-off\n")),
            Tool::Migratus => format!("{}{body}", opt_out("-- :disable-transaction\n")),
            // Each statement runs on its own.
            tool if has_no_opt_out(tool) && file.transaction && !self.in_transaction && !self.sends_strings => {
                format!("BEGIN;\n{body}COMMIT;\n")
            }
            Tool::Grate | Tool::Dbup if !self.in_transaction => body + &resets(file),
            _ => body,
        }
    }

    /// The files beside a migration: its rollback migration, and the opt-out of tools that keep it there.
    fn companions(&self, path: &Path, file: &PlannedFile, first: bool) -> Vec<WrittenFile> {
        let mut companions = Vec::new();
        let mut add = |path: PathBuf, text: &str| companions.push(WrittenFile { path, text: text.to_owned() });
        let no_down = format!("{NO_DOWN}\n");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !first && name == "up.sql" {
            add(path.with_file_name("down.sql"), &no_down);
        } else if let Some(stem) = name.strip_suffix(".up.sql").filter(|_| !first) {
            add(path.with_file_name(format!("{stem}.down.sql")), &no_down);
        }
        match self.tool {
            Tool::Diesel if !file.transaction => {
                add(path.with_file_name("metadata.toml"), "run_in_transaction = false\n");
            }
            // Flyway knows that CONCURRENTLY cannot run in a transaction, and does not know that of COMMIT in DO.
            Tool::Flyway if !file.transaction && file.commits() => {
                add(path.with_file_name(format!("{name}.conf")), "executeInTransaction=false\n");
            }
            _ => {}
        }
        companions
    }

    /// More changesets in the same file.
    fn changesets(&self, start: usize, end: usize, planned: &[PlannedFile]) -> Result<Sequence, Problem> {
        let before = &self.text[..start];
        let header = before.trim_end_matches(['\r', '\n']).rsplit('\n').next().unwrap_or_default().trim();
        let mut words = header.trim_start_matches('-').split_whitespace();
        let (Some(_), Some(id)) = (words.next(), words.next()) else {
            return Err(Problem::new(self.path, "has a changeset without a name", None));
        };
        let kept: Vec<&str> = words.filter(|word| !has_name(word, &["runInTransaction", "splitStatements"])).collect();
        let rollback = rollback_lines(&self.text[start..end]);
        let mut text = before[..before.trim_end_matches(['\r', '\n']).len() - header.len()].to_owned();
        for (at, file) in planned.iter().enumerate() {
            let mut header = format!("--changeset {id}");
            if at > 0 {
                header = format!("{header}-{}", at + 1);
            }
            kept.iter().for_each(|word| header = format!("{header} {word}"));
            if !file.transaction {
                header.push_str(" runInTransaction:false");
            }
            if file.statements.iter().any(|statement| statement.sql.contains(';')) {
                header.push_str(" splitStatements:false");
            }
            let rollback = match at {
                0 => rollback.clone(),
                // What the author gave no rollback, Liquibase refuses to roll back, and rightly so.
                _ if rollback.is_empty() => String::new(),
                _ => "--rollback empty\n".to_owned(),
            };
            text = format!("{text}{header}\n{}{rollback}\n", file.text());
        }
        text.push_str(self.text[end..].trim_start_matches(['\r', '\n']));
        let file = WrittenFile { path: self.path.to_owned(), text: text.trim_end().to_owned() + "\n" };
        Ok(Sequence { files: vec![file], ..Sequence::default() })
    }

    /// Changes of Sqitch, which its plan names.
    fn changes(&self, planned: &[PlannedFile]) -> Result<Sequence, Problem> {
        let deploy = self.path.ancestors().find(|folder| folder.ends_with("deploy"));
        let root = deploy.and_then(Path::parent).unwrap_or(Path::new(""));
        let name =
            deploy.and_then(|deploy| self.path.strip_prefix(deploy).ok()).unwrap_or(self.path).with_extension("");
        let name = name.to_string_lossy().replace('\\', "/");
        let plan_path = root.join("sqitch.plan");
        let plan = read::text(&plan_path).map_err(|error| Problem::io(&plan_path, &error))?;
        let is_ours = |line: &&str| line.split_whitespace().next() == Some(name.as_str());
        let Some(line) = plan.lines().rfind(is_ours) else {
            return Err(Problem::new(self.path, "is not in sqitch.plan", None));
        };
        let stamp = line[name.len()..].trim_start();
        let stamp = if stamp.starts_with('[') { stamp.split_once(']').map_or("", |(_, rest)| rest) } else { stamp };
        let stamp = stamp.split('#').next().unwrap_or_default().trim();
        let project = plan.lines().find_map(|line| line.strip_prefix("%project=")).unwrap_or("project").trim();
        let mut sequence = Sequence::default();
        let mut new_plan = plan.trim_end().to_owned() + "\n";
        let mut previous = name.clone();
        for (at, file) in planned.iter().enumerate() {
            let change = if at == 0 { name.clone() } else { format!("{name}_{}_{}", at + 1, file.title) };
            let body = if file.transaction { format!("BEGIN;\n\n{}\nCOMMIT;\n", file.text()) } else { file.text() };
            let text = format!("-- Deploy {project}:{change} to pg\n\n{body}");
            sequence.files.push(WrittenFile { path: root.join("deploy").join(format!("{change}.sql")), text });
            if at > 0 {
                let text = format!("-- Revert {project}:{change} from pg\n\n{NO_DOWN}\n");
                sequence.files.push(WrittenFile { path: root.join("revert").join(format!("{change}.sql")), text });
                new_plan = format!("{new_plan}{change} [{previous}] {stamp} # {}\n", file.title.replace('_', " "));
            }
            previous = change;
        }
        sequence.lists.push(Change { path: plan_path, before: plan, after: new_plan });
        Ok(sequence)
    }
}

/// `1_a.postgres.up.sql` -> `1_a.postgres.autocommit.up.sql`.
fn autocommit_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_suffix(".up.sql") {
        Some(stem) if !stem.split('.').any(|part| part == "autocommit") => {
            path.with_file_name(format!("{stem}.autocommit.up.sql"))
        }
        _ => path.to_owned(),
    }
}

fn has_name(word: &str, names: &[&str]) -> bool {
    word.split_once(':').is_some_and(|(name, _)| names.iter().any(|other| name.eq_ignore_ascii_case(other)))
}

/// The comments of a changeset that say how it is undone.
fn rollback_lines(changeset: &str) -> String {
    let is_rollback = |line: &&str| line.trim_start().trim_start_matches('-').trim_start().starts_with("rollback");
    changeset.lines().filter(is_rollback).fold(String::new(), |all, line| all + line + "\n")
}

/// Resets the timeouts that a file sets for the session, in which later files run.
fn resets(file: &PlannedFile) -> String {
    let is_set = |name: &&str| file.statements.iter().any(|one| one.sql.starts_with(&format!("SET {name} ")));
    let names = ["lock_timeout", "statement_timeout"].into_iter().filter(is_set);
    names.fold(String::new(), |text, name| text + "RESET " + name + ";\n")
}

/// The statements between lines that divide a file for Migratus.
fn divided(file: &PlannedFile) -> String {
    let alone =
        |statement: &PlannedStatement| PlannedFile { statements: vec![statement.clone()], ..file.clone() }.text();
    // A statement comes with the comments before it. Inside one, such a line would have divided the original.
    let is_kept = |line: &&str| !line.contains(migratus::SEPARATOR);
    let without_lines = |text: String| text.split_inclusive('\n').filter(is_kept).collect::<String>();
    let texts: Vec<String> = file.statements.iter().map(alone).map(without_lines).collect();
    texts.join(&format!("{}\n", migratus::SEPARATOR))
}

/// Statements with a semicolon inside are marked as one.
fn marked(file: &PlannedFile, begin: &str, end: &str) -> String {
    let mut text = String::new();
    for statement in &file.statements {
        let alone = PlannedFile { statements: vec![PlannedStatement::clone(statement)], ..file.clone() }.text();
        if statement.sql.contains(';') {
            text = format!("{text}{begin}\n{alone}{end}\n");
        } else {
            text.push_str(&alone);
        }
    }
    text
}
