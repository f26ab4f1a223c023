use super::*;
use std::fs;
use std::process::Command;

struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").arg("-C").arg(self.0.path()).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "x"]);
    }

    fn changed(&self, selection: &ChangeSelection) -> Vec<String> {
        let changes = changes(selection, &BTreeSet::from([self.0.path().to_owned()])).unwrap();
        let root = identity(self.0.path());
        changes.files.keys().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
    }
}

#[test]
fn each_selection_sees_its_changes() {
    let repository = Repository::new();
    repository.write("1.sql", "SELECT 1; -- the first\n");
    assert_eq!(repository.changed(&ChangeSelection::Uncommitted), ["1.sql"]);
    repository.commit();
    repository.git(&["checkout", "-q", "-b", "work"]);
    repository.write("2 é.sql", "SELECT 2;\n");
    repository.git(&["mv", "1.sql", "0.sql"]);
    repository.commit();
    repository.write("3.sql", "SELECT 3;\n");
    repository.git(&["add", "3.sql"]);
    repository.write("4.sql", "SELECT 4;\n");
    assert_eq!(repository.changed(&ChangeSelection::Staged), ["3.sql"]);
    assert_eq!(repository.changed(&ChangeSelection::Uncommitted), ["3.sql", "4.sql"]);
    let since = ChangeSelection::Since("main".to_owned());
    // Another version is a migration that its tool has not run.
    assert_eq!(repository.changed(&since), ["0.sql", "2 é.sql", "3.sql", "4.sql"]);
}

#[test]
fn what_others_did_on_the_base_does_not_count() {
    let repository = Repository::new();
    repository.write("1.sql", "SELECT 1;");
    repository.commit();
    repository.git(&["checkout", "-q", "-b", "work"]);
    repository.write("3.sql", "SELECT 3;");
    repository.commit();
    repository.git(&["checkout", "-q", "main"]);
    repository.write("1.sql", "SELECT 10;");
    repository.commit();
    repository.git(&["checkout", "-q", "work"]);
    assert_eq!(repository.changed(&ChangeSelection::Since("main".to_owned())), ["3.sql"]);
}

#[test]
fn an_unknown_revision_and_a_shallow_clone_are_reported() {
    let repository = Repository::new();
    repository.write("1.sql", "SELECT 1;");
    repository.commit();
    repository.write("1.sql", "SELECT 2;");
    repository.commit();
    let error = |folder: &Path, revision: &str| {
        changes(&ChangeSelection::Since(revision.to_owned()), &BTreeSet::from([folder.to_owned()])).unwrap_err()
    };
    let unknown = error(repository.0.path(), "nothing");
    assert!(unknown.message.contains("has no revision `nothing`"), "{unknown:?}");
    let clone = tempfile::tempdir().unwrap();
    let url = format!("file://{}", repository.0.path().display());
    let target = clone.path().join("c").display().to_string();
    repository.git(&["clone", "-q", "--depth", "1", &url, &target]);
    let shallow = error(&clone.path().join("c"), "HEAD~1");
    assert!(shallow.help.unwrap().contains("shallow clone"));
    let outside = changes(&ChangeSelection::Staged, &BTreeSet::from([clone.path().to_owned()])).unwrap_err();
    assert!(outside.message.contains("is in no git repository"), "{outside:?}");
}

#[test]
fn renames_have_two_names() {
    let entry = |status: &str| format!(":100644 100644 1 2 {status}");
    let fields = [
        &entry("A"),
        "a",
        &entry("R100"),
        "b",
        "c",
        &entry("R090"),
        "d",
        "e",
        &entry("M"),
        "f",
        &entry("D"),
        "g",
        &entry("R100"),
        "V5__h.sql",
        "V15__h.sql",
        &entry("R100"),
        "V6__i.sql",
        "V6__j.sql",
        &entry("C100"),
        "x/1.sql",
        "y/1.sql",
    ];
    let fields = fields.map(OsString::from);
    let changed = changed_names(&fields).into_iter().filter(|named| !named.keeps_text);
    let names = changed.map(|named| (named.name.into_string().unwrap(), named.change));
    let (added, modified) = (Some(Change::Added), Some(Change::Modified));
    let expected = [
        ("a", added),
        ("e", modified),
        ("f", modified),
        ("g", None),
        ("V5__h.sql", None),
        ("V15__h.sql", added),
        ("y/1.sql", added),
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected.map(|(name, change)| (name.to_owned(), change)));
}

#[test]
fn a_file_that_comes_from_another_folder_is_new() {
    let repository = Repository::new();
    repository.write("drafts/later.txt", "DROP TABLE t;\n");
    repository.commit();
    fs::create_dir(repository.0.path().join("migrations")).unwrap();
    repository.git(&["mv", "drafts/later.txt", "migrations/2.sql"]);
    assert_eq!(repository.changed(&ChangeSelection::Staged), ["migrations/2.sql"]);
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_not_utf_8_are_found() {
    use std::os::unix::ffi::OsStrExt;
    let repository = Repository::new();
    let path = repository.0.path().join(std::ffi::OsStr::from_bytes(b"2_\xff.sql"));
    fs::write(&path, "SELECT 1;").unwrap();
    let found = changes(&ChangeSelection::Uncommitted, &BTreeSet::from([repository.0.path().to_owned()])).unwrap();
    assert_eq!(found.of(&identity(&path)), Some(Change::Added));
}

#[test]
fn what_is_in_a_submodule_changes_with_its_commit() {
    let (repository, inner) = (Repository::new(), Repository::new());
    inner.write("1.sql", "SELECT 1;");
    inner.commit();
    let from = inner.0.path().display().to_string();
    repository.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "sub"]);
    let found = changes(&ChangeSelection::Staged, &BTreeSet::from([repository.0.path().to_owned()])).unwrap();
    assert_eq!(found.of(&identity(&repository.0.path().join("sub/1.sql"))), Some(Change::Modified));
}

#[test]
fn what_is_not_committed_in_a_submodule_has_changed() {
    let (repository, inner) = (Repository::new(), Repository::new());
    inner.write("1.sql", "SELECT 1;");
    inner.commit();
    let from = inner.0.path().display().to_string();
    repository.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "sub"]);
    repository.commit();
    repository.write("sub/1.sql", "SELECT 2;");
    repository.write("sub/2.sql", "SELECT 3;");
    assert_eq!(repository.changed(&ChangeSelection::Uncommitted), ["sub/1.sql", "sub/2.sql"]);
    assert_eq!(repository.changed(&ChangeSelection::Since("HEAD".to_owned())), ["sub/1.sql", "sub/2.sql"]);
}

#[test]
fn deleted_and_moved_files_are_gone() {
    let repository = Repository::new();
    for (name, text) in [("m/1.sql", "SELECT 1; -- one\n"), ("m/2.sql", "SELECT 2; -- two\n"), ("m/a.txt", "a")] {
        repository.write(name, text);
    }
    repository.commit();
    repository.git(&["rm", "-q", "m/1.sql", "m/a.txt"]);
    fs::create_dir(repository.0.path().join("old")).unwrap();
    repository.git(&["mv", "m/2.sql", "old/2.sql"]);
    let found = changes(&ChangeSelection::Staged, &BTreeSet::from([repository.0.path().to_owned()])).unwrap();
    let expected = ["m/1.sql", "m/2.sql"].map(|name| identity(&repository.0.path().join(name)));
    assert_eq!(found.deleted().collect::<Vec<_>>(), expected);
}

#[test]
fn the_index_has_its_own_texts() {
    let repository = Repository::new();
    repository.write("1.sql", "SELECT 1;");
    repository.write("2.sql", "SELECT 2;");
    repository.git(&["add", "-A"]);
    repository.write("1.sql", "SELECT 'not staged';");
    repository.write("3.sql", "SELECT 3;");
    let found = changes(&ChangeSelection::Staged, &BTreeSet::from([repository.0.path().to_owned()])).unwrap();
    let at = |name: &str| identity(&repository.0.path().join(name));
    assert_eq!(found.staged_texts(), BTreeMap::from([(at("1.sql"), b"SELECT 1;".to_vec())]));
    assert!(found.is_unknown_to_index(&at("3.sql")) && !found.is_unknown_to_index(&at("2.sql")));
}

#[test]
fn the_index_is_read_in_every_version() {
    let repository = Repository::new();
    let mut names = vec!["a.sql", "a/long/name/of/a/file.sql", "a/long/name/of/another.sql", "é.sql"];
    names.iter().for_each(|name| repository.write(name, ""));
    repository.git(&["add", "-A"]);
    repository.write("z.sql", "");
    names.push("z.sql");
    // An entry with the flag of version 3.
    repository.git(&["add", "--intent-to-add", "z.sql"]);
    for version in ["3", "4"] {
        repository.git(&["update-index", "--index-version", version]);
        let entries = index::entries(repository.0.path()).unwrap();
        let mut read: Vec<PathBuf> = entries.into_iter().map(|entry| entry.name).collect();
        read.sort();
        let mut expected: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
        expected.sort();
        assert_eq!(read, expected, "{version}");
    }
    repository.commit();
    repository.git(&["worktree", "add", "-q", "--detach", "tree"]);
    assert_eq!(index::entries(&repository.0.path().join("tree")).unwrap().len(), names.len());
    assert_eq!(index::entries(Path::new("/nowhere")), Ok(Vec::new()));
    repository.write(".git/index", "no index");
    assert_eq!(index::entries(repository.0.path()).unwrap_err().1, "is an index that cannot be read");
    // The larger digests of another format of objects.
    let repository = Repository(tempfile::tempdir().unwrap());
    repository.git(&["init", "-q", "--object-format=sha256"]);
    repository.write("a/1.sql", "");
    repository.write("a/2.sql", "");
    repository.git(&["add", "-A"]);
    assert_eq!(index::entries(repository.0.path()).unwrap().len(), 2);
}

/// Its names share all but their ends, which is all that the index stores of them.
#[test]
fn a_prepared_index_takes_no_memory() {
    let repository = Repository::new();
    repository.write("1.sql", "SELECT 1;");
    repository.commit();
    fs::write(repository.0.path().join(".git/index"), index::prepared(10_000, 200_000)).unwrap();
    let problem =
        changes(&ChangeSelection::Uncommitted, &BTreeSet::from([repository.0.path().to_owned()])).unwrap_err();
    assert!(problem.message.contains("its index has names of more than 128 MiB"), "{problem:?}");
}

#[test]
fn each_repository_is_asked() {
    let (one, other) = (Repository::new(), Repository::new());
    one.write("1.sql", "SELECT 1;");
    other.write("2.sql", "SELECT 2;");
    let folders = [&one, &other].map(|repository| repository.0.path().to_owned());
    let found = changes(&ChangeSelection::Uncommitted, &BTreeSet::from(folders.clone())).unwrap();
    for (folder, name) in folders.iter().zip(["1.sql", "2.sql"]) {
        assert_eq!(found.of(&identity(&folder.join(name))), Some(Change::Added), "{name}");
    }
}

mod hostile;

/// Both flags make git say that a file on disk is as it is in the index.
#[test]
fn files_that_flags_hide_from_git_are_compared() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let repository = Repository::new();
        for name in ["1.sql", "2.sql", "3.sql"] {
            repository.write(name, "SELECT 1;");
        }
        repository.commit();
        repository.git(&["update-index", flag, "1.sql", "2.sql", "3.sql"]);
        repository.write("2.sql", "DROP TABLE orders;");
        std::fs::remove_file(repository.0.path().join("3.sql")).unwrap();
        let index = fs::read(repository.0.path().join(".git/index")).unwrap();
        for selection in [ChangeSelection::Uncommitted, ChangeSelection::Since("main".to_owned())] {
            assert_eq!(repository.changed(&selection), ["2.sql"], "{flag}");
        }
        let staged = changes(&ChangeSelection::Staged, &BTreeSet::from([repository.0.path().to_owned()])).unwrap();
        let of_second = identity(&repository.0.path().join("2.sql"));
        assert_eq!(staged.staged_texts().get(&of_second).map(Vec::as_slice), Some(&b"SELECT 1;"[..]), "{flag}");
        assert_eq!(fs::read(repository.0.path().join(".git/index")).unwrap(), index, "{flag}");
    }
}
