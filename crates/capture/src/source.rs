//! The files of a project that migrations come from.

use crate::cut::{Capture, Migration};
use crate::line::{Lines, SourceText};
use crate::tools::Naming;
use ignore::WalkBuilder;
use pgvet_workspace::captured::{MANIFEST, digest};
use sha2::{Digest, Sha256};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Extensions of migrations.
const EXTENSIONS: &[&str] = &[
    "py", "rb", "js", "cjs", "mjs", "ts", "cts", "mts", "go", "java", "kt", "groovy", "cs", "fs", "php", "ex", "exs",
    "rs", "scala", "clj", "sql", "xml", "yaml", "yml", "json",
];

/// Folders in which packages lie that are not the project's own.
const PACKAGES: &[&str] = &["node_modules", "site-packages", "dist-packages", "vendor", "target", "__pycache__"];

/// Maximum size of a file that can be a migration.
const MAX_BYTES: u64 = 4 << 20;

/// Maximum number of files that are looked at.
pub const MAX_FILES: usize = 100_000;

/// A file that a migration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// From the root of the project, with slashes.
    pub path: String,
    pub digest: String,
    text: SourceText,
}

impl Source {
    fn read(root: &Path, path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let shown = path.strip_prefix(root).ok()?.to_string_lossy().replace('\\', "/");
        Some(Self { path: shown, digest: digest(&text), text: SourceText::new(&text) })
    }

    /// The name of the file without its extension.
    pub(crate) fn stem(&self) -> &str {
        stem(Path::new(&self.path))
    }

    /// Finds the lines that statements come from, which are asked for in order.
    pub(crate) fn lines(&self) -> Lines<'_> {
        self.text.lines()
    }
}

/// The files of a project that can be migrations.
#[derive(Debug)]
pub struct Sources {
    root: PathBuf,
    files: Vec<PathBuf>,
    /// Whether the folder has more files than are looked at.
    pub is_cut: bool,
    /// Which file declares a revision, a class or an identifier, or has a digest.
    declared: OnceCell<HashMap<String, usize>>,
}

impl Sources {
    /// Lists the files below a folder, except what git ignores, what packages bring along, and earlier captures.
    pub fn of(root: &Path) -> Self {
        let is_own = |entry: &ignore::DirEntry| {
            let name = entry.file_name().to_string_lossy();
            let has = |name: &str| entry.path().join(name).exists();
            !(entry.file_type().is_some_and(|kind| kind.is_dir()) && PACKAGES.contains(&&*name))
                && !(entry.depth() > 0 && (has("pyvenv.cfg") || has(MANIFEST)))
        };
        let walk = WalkBuilder::new(root).require_git(false).filter_entry(is_own).sort_by_file_path(Path::cmp).build();
        let is_source = |path: &Path| {
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            EXTENSIONS.contains(&extension)
                && fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES)
        };
        let mut files = walk.filter_map(Result::ok).map(ignore::DirEntry::into_path).filter(|path| is_source(path));
        let found = files.by_ref().take(MAX_FILES).collect();
        Self { root: root.to_owned(), files: found, is_cut: files.next().is_some(), declared: OnceCell::new() }
    }

    /// Finds the file of a migration. Where several fit, it is the one whose path is the shortest.
    pub fn find(&self, migration: &Migration) -> Option<Source> {
        let name = migration.name.as_str();
        let found = match migration.naming? {
            Naming::Django => self.django(name),
            Naming::Revision => self.declaring(name),
            Naming::File => {
                self.named(|path| is_named(path, name)).or_else(|| self.named(|path| has_version(path, name)))
            }
            Naming::Script => {
                let class = name.rsplit('.').next().unwrap_or(name);
                self.named(|path| is_named(path, name)).or_else(|| self.named(|path| stem(path) == class))
            }
            Naming::Version => self.named(|path| has_version(path, name)),
            Naming::Class => {
                let class = name.rsplit('\\').next().unwrap_or(name);
                self.named(|path| stem(path) == class).or_else(|| self.declaring(class))
            }
            Naming::Identifier | Naming::Digest => self.declaring(name),
            Naming::Changeset => {
                let file = name.split("::").next().unwrap_or_default();
                let file = Path::new(file.trim_start_matches("classpath:"));
                let holds = |path: &Path| path.components().count() > 1 && file.ends_with(path);
                self.named(|path| path.ends_with(file)).or_else(|| self.named(|path| holds(self.own(path))))
            }
        }?;
        Source::read(&self.root, found)
    }

    /// The likely file of a migration that did not come to its row: one beside the others of the tool that none of them
    /// comes from, with most of the names that were sent. It is the first of those that are equally likely. If one file
    /// can have several migrations and no other file is likely, it can be one that others come from.
    pub(crate) fn unfinished(&self, capture: &Capture, migration: &Migration) -> Option<Source> {
        let known: Vec<Source> = capture.migrations.iter().filter_map(|migration| self.find(migration)).collect();
        let paths: BTreeSet<PathBuf> = known.iter().map(|source| self.root.join(&source.path)).collect();
        let folders: BTreeSet<&Path> = paths.iter().filter_map(|path| folder_of(path)).collect();
        let is_beside =
            |path: &&PathBuf| !is_rollback(path) && folder_of(path).is_some_and(|folder| folders.contains(folder));
        let (known, new): (Vec<&PathBuf>, Vec<&PathBuf>) =
            self.files.iter().filter(is_beside).partition(|path| paths.contains(*path));
        let shares_files = capture.migrations.iter().filter_map(|one| one.naming).any(Naming::shares_files);
        self.likeliest(&new, migration).or_else(|| self.likeliest(&known, migration).filter(|_| shares_files))
    }

    /// The first file with most of the names that a migration sent.
    fn likeliest(&self, candidates: &[&PathBuf], migration: &Migration) -> Option<Source> {
        let sql: Vec<&str> = migration.work.iter().map(|work| work.sql.as_str()).collect();
        let scored = candidates.iter().filter_map(|path| {
            let source = Source::read(&self.root, path)?;
            let score = source.text.names_of(&sql);
            (score > 0).then_some((score, source))
        });
        scored.reduce(|best, other| if other.0 > best.0 { other } else { best }).map(|(_, source)| source)
    }

    fn named(&self, fits: impl Fn(&Path) -> bool) -> Option<&Path> {
        self.files.iter().map(PathBuf::as_path).filter(|path| fits(path)).min_by_key(|path| rank(path))
    }

    /// The path of a file from the root of the project.
    fn own<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    /// The file that declares a revision, a class or an identifier, or has a digest. All files are read once for all migrations.
    fn declaring(&self, name: &str) -> Option<&Path> {
        let declared = self.declared.get_or_init(|| {
            let mut declared: HashMap<String, usize> = HashMap::new();
            for (at, path) in self.files.iter().enumerate() {
                let Ok(text) = fs::read_to_string(path) else { continue };
                let names = revisions(&text).chain(classes(&text)).chain(identifiers(&text)).map(str::to_owned);
                let digest = path.extension().is_some_and(|extension| extension == "sql").then(|| sha256(&text));
                for name in names.chain(digest) {
                    let known = declared.entry(name).or_insert(at);
                    if rank(path) < rank(&self.files[*known]) {
                        *known = at;
                    }
                }
            }
            declared
        });
        declared.get(name).map(|at| self.files[*at].as_path())
    }

    /// `app.0001_initial`: the folder of migrations is that of the app, unless a setting names another.
    fn django(&self, name: &str) -> Option<&Path> {
        let (app, name) = name.split_once('.')?;
        let is_it = |path: &Path| stem(path) == name && path.extension().is_some_and(|extension| extension == "py");
        let of_app = |path: &Path| {
            let mut folders = path.ancestors().skip(1).filter_map(|folder| folder.file_name());
            folders.next().is_some_and(|folder| folder == "migrations")
                && folders.next().is_some_and(|folder| folder == app)
        };
        let in_module = |path: &Path| path.components().any(|part| part.as_os_str() == app);
        self.named(|path| is_it(path) && of_app(path)).or_else(|| self.named(|path| is_it(path) && in_module(path)))
    }
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// Orders files that fit equally well: the one whose path is the shortest is first.
fn rank(path: &Path) -> (usize, usize) {
    (path.components().count(), path.as_os_str().len())
}

/// Whether each migration has a folder of its own, in which all files are called the same.
fn has_own_folder(path: &Path) -> bool {
    matches!(stem(path), "up" | "migration")
}

/// The folder of the migrations that a file belongs to.
fn folder_of(path: &Path) -> Option<&Path> {
    let folder = path.parent()?;
    if has_own_folder(path) { folder.parent() } else { Some(folder) }
}

/// The name that a tool gives a file.
fn own_name(path: &Path) -> &str {
    let folder = path.parent().and_then(Path::file_name).and_then(|folder| folder.to_str());
    folder.filter(|_| has_own_folder(path)).unwrap_or_else(|| stem(path))
}

/// Whether the name of a file says that it takes a migration back.
fn is_rollback(path: &Path) -> bool {
    let stem = stem(path);
    stem == "down" || [".down", ".undo"].iter().any(|end| stem.ends_with(end))
}

/// The name of a file, with or without its extension; some tools keep the path.
fn is_named(path: &Path, name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    file == name || own_name(path) == name || without_extension(name).is_some_and(|name| stem(path) == name)
}

/// A name that was noted with the extension of what it was compiled to.
fn without_extension(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    EXTENSIONS.contains(&extension).then_some(stem)
}

/// `20240102_note.rb` for `20240102`, `00005_note.go` for `5`, `2024-01-02-000000_note/up.sql` for `20240102000000`,
/// `V7__note.rs` and `U7__note.rs` for `7`.
fn has_version(path: &Path, version: &str) -> bool {
    let first = own_name(path).split('_').next().unwrap_or_default();
    let digits: String = first.trim_start_matches(['V', 'U']).chars().filter(|one| *one != '-').collect();
    !digits.is_empty()
        && digits.chars().all(|one| one.is_ascii_digit())
        && digits.trim_start_matches('0') == version.trim_start_matches('0')
}

/// `revision = "ab12"` and `revision: str = 'ab12'`.
fn revisions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let name = name.split(':').next().unwrap_or_default().trim();
        let value = value.split('#').next().unwrap_or_default().trim();
        let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        quoted.filter(|_| name == "revision")
    })
}

/// `ID: "202604010900"`.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let value = line.trim_start().strip_prefix("ID:")?.trim_start();
        let quote = value.chars().next().filter(|first| matches!(first, '"' | '`'))?;
        value[1..].split_once(quote).map(|(name, _)| name)
    })
}

fn sha256(text: &str) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(text) {
        write!(digits, "{byte:02x}").expect("a String takes every text");
    }
    digits
}

/// `class AddNote1700000000000` and `name = 'AddNote1700000000000'`.
fn classes(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |one: char| one.is_alphanumeric() || one == '_';
    let is_gap = |gap: &str| gap.chars().all(|one| matches!(one, '\'' | '"' | ' ' | '='));
    let (mut rest, mut before) = (text, "");
    std::iter::from_fn(move || {
        loop {
            let (gap, from_word) = rest.split_at(rest.find(is_part)?);
            let end = from_word.find(|one| !is_part(one)).unwrap_or(from_word.len());
            let (word, after) = from_word.split_at(end);
            let is_declared = matches!(before, "class" | "name") && is_gap(gap);
            (rest, before) = (after, word);
            if is_declared {
                return Some(word);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(files: &[(&str, &str)], name: &str, naming: Naming) -> Option<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let migration = Migration { name: name.to_owned(), naming: Some(naming), ..Migration::default() };
        Sources::of(root.path()).find(&migration).map(|source| source.path)
    }

    #[test]
    fn names_in_tables_lead_to_files() {
        for (path, text, name, naming) in [
            ("shop/migrations/0002_note.py", "", "shop.0002_note", Naming::Django),
            ("migrations/shop/0002_note.py", "", "shop.0002_note", Naming::Django),
            ("alembic/versions/x_note.py", "down_revision = 'a'\nrevision: str = \"ab12\"\n", "ab12", Naming::Revision),
            ("migrations/2_note.js", "", "2_note.js", Naming::File),
            ("src/migrations/2_note.ts", "", "2_note.js", Naming::File),
            ("Migrations/20240102_Note.cs", "", "20240102_Note", Naming::File),
            ("db/migrate/20240102030405_note.rb", "", "20240102030405", Naming::Version),
            ("migrations/00005_note.go", "", "5", Naming::Version),
            ("migrations/2024-01-02-000000_note/up.sql", "", "20240102000000", Naming::Version),
            ("migrations/20240102_note.go", "", "20240102", Naming::File),
            ("prisma/migrations/20240102_note/migration.sql", "", "20240102_note", Naming::File),
            ("src/main/java/db/migration/V2__Note.java", "", "db.migration.V2__Note", Naming::Script),
            ("sql/V2__note.sql", "", "V2__note.sql", Naming::Script),
            ("migrations/U7__note.rs", "", "7", Naming::Version),
            ("migrations/00000000000000_setup/up.sql", "", "00000000000000", Naming::Version),
            ("src/Version20240102.php", "", r"DoctrineMigrations\Version20240102", Naming::Class),
            ("src/note.ts", "export class Note1700000000000 implements", "Note1700000000000", Naming::Class),
            ("src/note.js", "name = 'Note1700000000000'", "Note1700000000000", Naming::Class),
            ("migrations/note.go", "\t{\n\t\tID: \"2024-01-02-note\",\n", "2024-01-02-note", Naming::Identifier),
            ("src/main/resources/db/note.xml", "", "db/note.xml::1::ada", Naming::Changeset),
            ("db/note.xml", "", "classpath:db/note.xml::1::ada", Naming::Changeset),
            ("db/note.xml", "", "src/main/resources/db/note.xml::1::ada", Naming::Changeset),
            (
                "drizzle/0000_note.sql",
                "SELECT 1;\n",
                "b4e0497804e46e0a0b0b8c31975b062152d551bac49c3c2e80932567b4085dcd",
                Naming::Digest,
            ),
        ] {
            assert_eq!(find(&[(path, text)], name, naming).as_deref(), Some(path), "{name}");
        }
    }

    #[test]
    fn packages_and_other_files_are_no_sources() {
        for (path, text, name, naming) in [
            (".venv/pyvenv.cfg", "", "auth.0001_initial", Naming::Django),
            ("captured/pgvet-capture.json", "", "pgvet-capture.json", Naming::File),
            ("node_modules/x/migrations/2_note.js", "", "2_note.js", Naming::File),
            ("alembic/versions/x.py", "down_revision = 'ab12'", "ab12", Naming::Revision),
            ("src/note.ts", "new Note1700000000000()", "Note1700000000000", Naming::Class),
            ("other/migrations/0002_note.py", "", "shop.0002_note", Naming::Django),
            ("note.xml", "", "other/note.xml::1::ada", Naming::Changeset),
            ("migrations/note.go", "ID: \"2\"", "1", Naming::Identifier),
        ] {
            assert_eq!(find(&[(path, text)], name, naming), None, "{path}");
        }
    }
}
