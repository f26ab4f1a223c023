//! Marks of a migration tool in a file that another program runs: it runs the whole file, whatever comments say. The
//! author of a migration must not hide a part of it in this way.

use super::annotations::{self, marked_for};
use super::folder::Facts;
use super::{Folders, Layout, Tool, direction, tool_by_name};
use crate::problem::{Problem, display};
use crate::project::{ProjectFile, Role};
use crate::read;
use pgvet_model::migration::Direction;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How far the marks of a file can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    /// There is no evidence against them.
    Trusted,
    /// Files beside it lack them, so that it is not sure who runs it.
    Doubted,
    /// Another tool runs it.
    Ignored,
}

/// Compares the marks of a file with its name, its folder and the files beside it.
pub(super) fn marks(layout: &Layout, path: &Path, text: &str, folders: &Folders) -> Marks {
    if !hides_something(layout) {
        return Marks::Trusted;
    }
    let Some(kind) = annotations::kind(text) else { return Marks::Trusted };
    let around = folders.around(path);
    if around.tool == Some(layout.tool) {
        return Marks::Trusted;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let other = tool_by_name(path, &name, &around).or(around.tool).or(around.rust_runner);
    let other = other.filter(|other| *other != layout.tool);
    // Each migration of these is in a folder of its own, and nobody else reads what lies beside it.
    if matches!(other, Some(Tool::Prisma | Tool::Diesel | Tool::Drizzle | Tool::Liquibase | Tool::Sqitch)) {
        return Marks::Ignored;
    }
    let is_alone = || {
        folders
            .lacks_marks(path, (kind, other.map(Tool::as_str)), || lacks_marks(path, kind, layout.tool, other, &around))
    };
    match other {
        Some(_) if is_alone() => Marks::Ignored,
        None if is_alone() => Marks::Doubted,
        _ => Marks::Trusted,
    }
}

/// Whether a part is not checked.
fn hides_something(layout: &Layout) -> bool {
    layout.tool == Tool::Liquibase || layout.sections.iter().any(|section| section.direction == Direction::Down)
}

/// Whether a migration beside the file has no marks of that kind. Some tools refuse such a file. Others read it whole:
/// where no name shows another tool, half of the files must be without.
fn lacks_marks(path: &Path, kind: &str, tool: Tool, other: Option<Tool>, around: &Facts) -> bool {
    let Some(folder) = path.parent() else { return false };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let is_migration = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_run = match other {
            Some(other) => tool_by_name(path, &name, around).or(around.tool).or(around.rust_runner) == Some(other),
            None => name.starts_with(|first: char| first.is_ascii_digit()),
        };
        let is_sql = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("sql"));
        is_sql && is_run && direction(Tool::Plain, path, &name, around) == Direction::Up
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let (mut with, mut without) = (0_usize, 0_usize);
    for beside in entries.map(|entry| entry.path()).filter(|path| is_migration(path)) {
        let Ok(text) = read::text(&beside) else { continue };
        if marked_for(&text, kind) { with += 1 } else { without += 1 }
    }
    let needs_marks = matches!(tool, Tool::Goose | Tool::SqlMigrate | Tool::Dbmate);
    match other {
        // The name of the file is all that shows a tool if no other file has one.
        Some(_) => without > 0 || with <= 1,
        None if needs_marks => without > 0,
        None => without >= with,
    }
}

/// Finds rollback migrations that nothing beside them shows to be such: no migration exists that they roll back.
#[derive(Debug, Default)]
pub(crate) struct LoneRollbacks {
    /// The first parts of the names in folders of Flyway: `V1`.
    versions: FxHashMap<PathBuf, FxHashSet<String>>,
}

impl LoneRollbacks {
    /// Whether a file is one, by its name alone.
    pub(crate) fn contain(&mut self, file: &ProjectFile) -> bool {
        let mut sections = file.layout.sections.iter();
        let is_down = !file.layout.sections.is_empty() && sections.all(|section| section.direction == Direction::Down);
        is_down && !self.has_forward(file.layout.tool, &file.path)
    }

    /// Whether the migration that a file rolls back is beside it. Without a tool, nothing says that the file is not run.
    fn has_forward(&mut self, tool: Tool, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_beside = |name: String| path.with_file_name(name).exists();
        match tool {
            // Files of yuniql that erase a database belong to no migration.
            Tool::Plain | Tool::Yuniql => false,
            Tool::Diesel => is_beside("up.sql".to_owned()),
            Tool::Postgrator => is_beside(name.replacen(".undo.", ".do.", 1)),
            Tool::Flyway => {
                let version = name.split("__").next().unwrap_or_default();
                let forward = format!("V{}", version.trim_start_matches(['U', 'B']));
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let versions = self.versions.entry(folder.to_owned()).or_insert_with_key(|folder| versions_in(folder));
                name.starts_with('B') || versions.contains(&forward)
            }
            _ if name.contains(".down.") => is_beside(name.replacen(".down.", ".up.", 1)),
            _ => true,
        }
    }
}

fn versions_in(folder: &Path) -> FxHashSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    entries.filter_map(|name| Some(name.to_string_lossy().split_once("__")?.0.to_owned())).collect()
}

/// Names the files of which a part is not checked because of marks that are doubted.
pub(crate) fn note(files: &[ProjectFile]) -> Option<Problem> {
    let mut doubted = files.iter().filter(|file| file.role == Role::Reported && file.layout.has_doubted_marks);
    let first = doubted.next()?;
    let message = match doubted.count() {
        0 => {
            "was checked only in part: unlike other files here, it has comments that divide it into sections".to_owned()
        }
        others => {
            let files = if others == 1 { "1 other file".to_owned() } else { format!("{others} other files") };
            format!(
                "and {files} were checked only in part: unlike other files here, they have comments that divide them into \
                 sections"
            )
        }
    };
    let help = "set `tool` under [migrations] in pgvet.toml to the tool that runs them; `plain` checks whole files";
    Some(Problem { path: display(&first.path), message, help: Some(help.to_owned()) })
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::layout::{Folders, detect};
    use pgvet_model::migration::Direction;
    use std::fs;

    #[test]
    fn a_folder_of_flyway_is_listed_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("V1__a.sql"), "").unwrap();
        let mut lone = super::LoneRollbacks::default();
        let mut has_forward = |name: &str| lone.has_forward(super::Tool::Flyway, &folder.path().join(name));
        assert!(has_forward("U1__b.sql"));
        fs::remove_file(folder.path().join("V1__a.sql")).unwrap();
        assert_eq!((has_forward("U1__b.sql"), has_forward("U11__b.sql")), (true, false));
    }

    const MARKS: [(&str, &str); 8] = [
        ("-- +goose Up\n", "-- +goose Down\n"),
        ("-- +migrate Up\n", "-- +migrate Down\n"),
        ("-- migrate:up\n", "-- migrate:down\n"),
        ("-- Up Migration\n", "-- Down Migration\n"),
        ("-- !Ups\n", "-- !Downs\n"),
        ("-- :up\n", "-- :down\n"),
        ("", "-- //@UNDO\n"),
        ("", "---- create above / drop below ----\n"),
    ];

    /// The statements that are checked as a step forward, and whether a note says that others are not.
    fn checked(files: &[(&str, String)], path: &str) -> (String, bool) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let path = folder.path().join(path);
        let text = fs::read_to_string(&path).unwrap();
        let layout = detect(&path, &text, &Folders::default(), &Config::default());
        let forward = layout.sections.iter().filter(|section| section.direction == Direction::Up);
        let texts: Vec<&str> =
            forward.map(|section| section.range.map_or(text.as_str(), |range| &text[range.as_usize()])).collect();
        (texts.concat(), layout.has_doubted_marks)
    }

    #[test]
    fn marks_of_another_tool_hide_nothing() {
        let plain = || "CREATE TABLE x (a int);\n".to_owned();
        for (up, down) in MARKS {
            let marked = format!("{up}SELECT 1;\n{down}DROP TABLE x;\n");
            for (first, second) in [
                ("db/V1__a.sql", "db/V2__b.sql"),
                ("db/1_a.up.sql", "db/2_b.up.sql"),
                ("supabase/migrations/1_a.sql", "supabase/migrations/2_b.sql"),
                ("prisma/migrations/1_a/migration.sql", "prisma/migrations/2_b/migration.sql"),
            ] {
                let (forward, _) = checked(&[(first, plain()), (second, marked.clone())], second);
                assert!(forward.contains("DROP TABLE x"), "{second}, {down}");
            }
            let (forward, is_doubted) =
                checked(&[("db/1_a.sql", plain()), ("db/2_b.sql", marked.clone())], "db/2_b.sql");
            assert!(is_doubted && !forward.contains("DROP TABLE x"), "{down}");
        }
    }

    #[test]
    fn marks_that_all_files_have_are_those_of_the_tool() {
        for (up, down) in MARKS {
            let marked = || format!("{up}SELECT 1;\n{down}DROP TABLE x;\n");
            let (first, second) = ("db/1_a.sql", "db/2_b.sql");
            let files = [(first, marked()), (second, marked()), ("db/schema.sql", "SELECT 1;".to_owned())];
            let (forward, is_doubted) = checked(&files, second);
            assert!(!is_doubted && !forward.contains("DROP TABLE x"), "{down}");
        }
    }
}
