//! Repositories that try to run something.

use super::*;
use crate::read::MAX_SQL;
use std::os::unix::fs::PermissionsExt;

/// A repository whose configuration runs a program that leaves a file.
struct Hostile {
    repository: Repository,
    ran: PathBuf,
    program: String,
    _elsewhere: tempfile::TempDir,
}

impl Hostile {
    fn new() -> Self {
        let elsewhere = tempfile::tempdir().unwrap();
        let (ran, program) = (elsewhere.path().join("ran"), elsewhere.path().join("program"));
        fs::write(&program, format!("#!/bin/sh\necho ran >> '{}'\ncat\n", ran.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let repository = Repository::new();
        repository.write("1.sql", "SELECT 1;\n");
        repository.commit();
        repository.write("1.sql", "SELECT 2;\n");
        Self { repository, ran, program: program.display().to_string(), _elsewhere: elsewhere }
    }

    /// Asks for changes in every way. What is found does not matter, nor whether git refuses.
    fn look(&self, folder: &str) {
        let folders = BTreeSet::from([self.repository.0.path().join(folder)]);
        let since = ChangeSelection::Since("HEAD".to_owned());
        for selection in [ChangeSelection::Uncommitted, ChangeSelection::Staged, since] {
            drop(changes(&selection, &folders));
        }
    }

    fn assert_nothing_ran(&self, what: &str) {
        assert!(!self.ran.exists(), "{what}");
    }
}

#[test]
fn no_setting_of_a_repository_runs_a_program() {
    for (key, attributes) in [
        ("core.fsmonitor", ""),
        ("diff.external", ""),
        ("core.pager", ""),
        ("diff.x.textconv", "*.sql diff=x"),
        ("diff.x.command", "*.sql diff=x"),
        ("filter.x.clean", "*.sql filter=x"),
        ("filter.x.process", "*.sql filter=x"),
        ("filter.a.b=c.clean", "*.sql filter=a.b=c"),
        ("core.sshCommand", ""),
        ("core.alternateRefsCommand", ""),
        ("alias.diff", ""),
        ("hook.x.command", ""),
    ] {
        let hostile = Hostile::new();
        // A flag of the index lets pgvet write a copy of it, which a hook may be told.
        hostile.repository.git(&["update-index", "--assume-unchanged", "1.sql"]);
        hostile.repository.git(&["config", "hook.x.event", "post-index-change"]);
        let value = if key.starts_with("alias") { format!("!{}", hostile.program) } else { hostile.program.clone() };
        hostile.repository.git(&["config", key, &value]);
        hostile.repository.write(".gitattributes", attributes);
        hostile.look("");
        hostile.assert_nothing_ran(key);
    }
}

/// git takes any bytes for the name of a filter.
#[test]
fn a_filter_whose_name_is_no_utf8_does_not_run() {
    let hostile = Hostile::new();
    let config = hostile.repository.0.path().join(".git/config");
    let text = [&fs::read(&config).unwrap()[..], b"[filter \"\xff\"]\nclean = ", hostile.program.as_bytes(), b"\n"];
    fs::write(config, text.concat()).unwrap();
    fs::write(hostile.repository.0.path().join(".gitattributes"), b"*.sql filter=\xff\n").unwrap();
    hostile.look("");
    hostile.assert_nothing_ran("a filter");
    let folders = BTreeSet::from([hostile.repository.0.path().to_owned()]);
    let problem = changes(&ChangeSelection::Uncommitted, &folders).unwrap_err();
    assert!(problem.message.contains("which cannot be turned off"), "{}", problem.message);
}

/// The first line of a file that is no configuration may be a token.
#[test]
fn a_file_that_a_configuration_includes_is_not_quoted() {
    let hostile = Hostile::new();
    hostile.repository.write("elsewhere", "secret-token\nof this user\n");
    let elsewhere = hostile.repository.0.path().join("elsewhere").display().to_string();
    hostile.repository.git(&["config", "include.path", &elsewhere]);
    let folders = BTreeSet::from([hostile.repository.0.path().to_owned()]);
    let problem = changes(&ChangeSelection::Uncommitted, &folders).unwrap_err();
    assert!(problem.message.contains("bad config line 2"), "{}", problem.message);
    assert!(!problem.message.contains("secret-token"), "{}", problem.message);
}

#[test]
fn a_file_outside_to_which_a_link_of_git_leads_is_not_quoted() {
    for file in [".git/packed-refs", ".git/shallow", ".git/refs/heads/main"] {
        let hostile = Hostile::new();
        let secret = hostile.ran.with_file_name("secret");
        fs::write(&secret, "secret-token\nof this user\n").unwrap();
        let link = hostile.repository.0.path().join(file);
        drop(fs::remove_file(&link));
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let folders = BTreeSet::from([hostile.repository.0.path().to_owned()]);
        for selection in [ChangeSelection::Uncommitted, ChangeSelection::Staged, ChangeSelection::Since("HEAD".into())]
        {
            let message = changes(&selection, &folders).err().map(|problem| problem.message).unwrap_or_default();
            assert!(!message.contains("secret-token"), "{file}: {message}");
        }
    }
}

#[test]
fn no_hook_of_a_repository_runs() {
    let hostile = Hostile::new();
    for hook in ["post-index-change", "fsmonitor-watchman", "post-checkout"] {
        fs::copy(&hostile.program, hostile.repository.0.path().join(".git/hooks").join(hook)).unwrap();
    }
    hostile.look("");
    hostile.assert_nothing_ran("hooks");
}

#[test]
fn a_bare_repository_among_the_files_is_not_obeyed() {
    let hostile = Hostile::new();
    let at = |path: &str| hostile.repository.0.path().join(path);
    for (path, text) in [
        ("bare/HEAD", "ref: refs/heads/main\n".to_owned()),
        ("bare/refs/heads/.keep", String::new()),
        ("bare/objects/info/alternates", "../../.git/objects\n".to_owned()),
        ("bare/config", format!("[core]\nrepositoryformatversion=0\nworktree=.\nfsmonitor={}\n", hostile.program)),
    ] {
        hostile.repository.write(path, &text);
    }
    fs::copy(at(".git/refs/heads/main"), at("bare/refs/heads/main")).unwrap();
    fs::copy(at(".git/index"), at("bare/index")).unwrap();
    hostile.look("bare");
    hostile.assert_nothing_ran("a bare repository");
}

#[test]
fn a_submodule_does_not_bring_its_configuration() {
    let hostile = Hostile::new();
    let inner = Repository::new();
    inner.write("1.sql", "SELECT 1;");
    inner.commit();
    let from = inner.0.path().display().to_string();
    hostile.repository.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "sub"]);
    hostile.repository.commit();
    let config = hostile.repository.0.path().join(".git/modules/sub/config");
    let text =
        fs::read_to_string(&config).unwrap().replace("[core]", &format!("[core]\nfsmonitor={}", hostile.program));
    fs::write(&config, text).unwrap();
    hostile.repository.write("sub/1.sql", "SELECT 2;");
    hostile.look("");
    hostile.assert_nothing_ran("the configuration of a submodule");
}

#[test]
fn objects_that_are_missing_are_fetched_from_nowhere() {
    let hostile = Hostile::new();
    hostile.repository.git(&["config", "core.repositoryFormatVersion", "1"]);
    hostile.repository.git(&["config", "extensions.partialClone", "origin"]);
    hostile.repository.git(&["config", "remote.origin.url", &format!("ext::{}", hostile.program)]);
    hostile.repository.git(&["config", "remote.origin.uploadpack", &hostile.program]);
    hostile.repository.git(&["config", "remote.origin.promisor", "true"]);
    hostile.repository.git(&["config", "protocol.ext.allow", "always"]);
    let objects = hostile.repository.0.path().join(".git/objects");
    for folder in fs::read_dir(&objects).unwrap().flatten() {
        if folder.file_name().len() == 2 {
            fs::remove_dir_all(folder.path()).unwrap();
        }
    }
    hostile.look("");
    hostile.assert_nothing_ran("a partial clone");
}

#[test]
fn pipes_and_devices_are_not_waited_for() {
    for (path, device) in [
        (".git/config", false),
        (".git/HEAD", false),
        (".git/info/attributes", false),
        (".git/info/attributes", true),
        (".git/info/exclude", false),
        (".git/objects/info/alternates", false),
        (".git/packed-refs", true),
        (".git/refs/heads/x/y", false),
        (".git/objects/pack/multi-pack-index", false),
        (".git/objects/info/commit-graphs/commit-graph-chain", false),
        (".git/objects/00/11223344556677889900112233445566778899", false),
    ] {
        let hostile = Hostile::new();
        let file = hostile.repository.0.path().join(path);
        drop(fs::remove_file(&file));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        if device {
            std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        } else {
            assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        }
        let begun = std::time::Instant::now();
        let folders = BTreeSet::from([hostile.repository.0.path().to_owned()]);
        let problem = changes(&ChangeSelection::Uncommitted, &folders).unwrap_err();
        assert!(problem.message.contains("is not a regular file"), "{path}: {}", problem.message);
        assert!(begun.elapsed().as_secs() < 60, "{path}");
    }
}

/// git follows no link there, and reads a device to its end, which it has none of.
#[test]
fn pipes_and_devices_beside_the_files_are_not_waited_for() {
    for path in [".gitattributes", ".gitmodules", "a/.gitignore", "a/b/.gitattributes"] {
        let hostile = Hostile::new();
        hostile.repository.write("a/b/2.sql", "SELECT 1;");
        hostile.repository.git(&["add", "-A"]);
        let pipe = hostile.repository.0.path().join(path);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let begun = std::time::Instant::now();
        let folders = BTreeSet::from([hostile.repository.0.path().to_owned()]);
        let problem = changes(&ChangeSelection::Uncommitted, &folders).unwrap_err();
        assert!(problem.message.contains("is not a regular file"), "{path}: {}", problem.message);
        assert!(begun.elapsed().as_secs() < 60, "{path}");
    }
}

/// Who knows the name of an object of another repository would be shown it.
#[test]
fn objects_of_other_repositories_are_not_read() {
    let other = Repository::new();
    other.write("secret.sql", "SELECT 'secret-token';");
    other.commit();
    let objects = other.0.path().join(".git/objects").canonicalize().unwrap();
    let refused = |hostile: &Hostile| {
        let folders = BTreeSet::from([hostile.repository.0.path().to_owned()]);
        let problem = changes(&ChangeSelection::Since("HEAD".to_owned()), &folders).unwrap_err();
        assert!(problem.message.contains("leads to objects outside of it"), "{}", problem.message);
    };
    for alternates in [format!("{}\n", objects.display()), format!("# a\n\n../../x/objects\n{}", objects.display())] {
        let hostile = Hostile::new();
        hostile.repository.write(".git/objects/info/alternates", &alternates);
        refused(&hostile);
        // One that is inside names another one.
        hostile.repository.write(".git/objects/info/alternates", "../../inner/objects\n");
        hostile.repository.write("inner/objects/info/alternates", &alternates);
        refused(&hostile);
        hostile.repository.write("inner/objects/info/alternates", "../../.git/objects\n");
        hostile.look("");
    }
    // A link under another name is found first or last, as the folder is read.
    for name in ["a", "info2", "z", "hooks2", "objects2"] {
        let hostile = Hostile::new();
        let git = hostile.repository.0.path().join(".git");
        hostile.repository.write(&format!(".git/{name}/alternates"), &format!("{}\n", objects.display()));
        fs::remove_dir_all(git.join("objects/info")).unwrap();
        std::os::unix::fs::symlink(format!("../{name}"), git.join("objects/info")).unwrap();
        refused(&hostile);
    }
    // The folder with objects has another name.
    let hostile = Hostile::new();
    let git = hostile.repository.0.path().join(".git");
    fs::rename(git.join("objects"), hostile.repository.0.path().join("inner")).unwrap();
    std::os::unix::fs::symlink("../inner", git.join("objects")).unwrap();
    hostile.repository.write("inner/info/alternates", &format!("{}\n", objects.display()));
    refused(&hostile);
    let hostile = Hostile::new();
    std::os::unix::fs::symlink(objects.join("pack"), hostile.repository.0.path().join(".git/objects/x")).unwrap();
    refused(&hostile);
}

#[test]
fn what_versions_of_git_read_differently_names_no_other_repository() {
    let other = Repository::new();
    other.write("secret.sql", "SELECT 'secret-token';");
    other.commit();
    let objects = other.0.path().join(".git/objects").canonicalize().unwrap();
    let name = other.0.path().file_name().unwrap().to_string_lossy();
    let hostile = Hostile::new();
    let top = hostile.repository.0.path();
    fs::create_dir_all(top.join("a/b")).unwrap();
    fs::create_dir_all(top.join("a").join(&*name).join(".git/objects")).unwrap();
    std::os::unix::fs::symlink("../a/b", top.join(".git/deep")).unwrap();
    for line in [
        format!("{}\0x", objects.display()),
        // Without regard to links this is a folder beside the repository, and with regard to them one below it.
        format!("../deep/../../../{name}/.git/objects"),
        format!("../missing/../../../{name}/.git/objects"),
    ] {
        hostile.repository.write(".git/objects/info/alternates", &line);
        let folders = BTreeSet::from([top.to_owned()]);
        let problem = changes(&ChangeSelection::Uncommitted, &folders).unwrap_err();
        let said = &problem.message;
        assert!(said.contains("leads to objects outside of it") || said.contains("a NUL byte"), "{line}: {said}");
    }
}

#[test]
fn alternates_within_the_repository_are_followed() {
    let repository = Repository::new();
    repository.write("1.sql", "SELECT 1;");
    repository.commit();
    let git = repository.0.path().join(".git");
    fs::create_dir(repository.0.path().join("inner")).unwrap();
    fs::rename(git.join("objects"), repository.0.path().join("inner/objects")).unwrap();
    repository.write(".git/objects/info/alternates", "../../inner/objects\n");
    repository.write("1.sql", "SELECT 2;");
    assert!(repository.changed(&ChangeSelection::Since("HEAD".to_owned())).contains(&"1.sql".to_owned()));
}

/// A name of a million folders, and one with as many files that a flag hides.
#[test]
fn names_and_flags_of_an_index_take_no_time() {
    let repository = Repository::new();
    repository.write("1.sql", "SELECT 1;");
    repository.commit();
    let folders = BTreeSet::from([repository.0.path().to_owned()]);
    let index = repository.0.path().join(".git/index");
    let begun = std::time::Instant::now();
    fs::write(&index, index::of_names(["a/".repeat(1_000_000) + "x.sql"], 0)).unwrap();
    changes(&ChangeSelection::Uncommitted, &folders).unwrap();
    fs::write(&index, index::of_names((0..100_000).map(|number| format!("{number:06}.sql")), 0x8000)).unwrap();
    changes(&ChangeSelection::Staged, &folders).unwrap_err();
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn staged_files_are_loaded_up_to_a_size() {
    let repository = Repository::new();
    fs::File::create(repository.0.path().join("0.sql")).unwrap().set_len(MAX_SQL).unwrap();
    fs::File::create(repository.0.path().join("1.sql")).unwrap().set_len(MAX_SQL).unwrap();
    repository.git(&["add", "-A"]);
    repository.write("0.sql", "SELECT 1;");
    let folders = BTreeSet::from([repository.0.path().to_owned()]);
    let staged = changes(&ChangeSelection::Staged, &folders).unwrap().staged_texts();
    assert_eq!(staged.values().map(Vec::len).collect::<Vec<_>>(), [MAX_SQL as usize]);
    repository.write("1.sql", "SELECT 1;");
    let problem = changes(&ChangeSelection::Staged, &folders).unwrap_err();
    assert!(problem.message.starts_with("cannot be read from the index"), "{}", problem.message);
}

/// 130 MiB of zeros, which an archive of a few kilobytes holds.
#[test]
fn large_objects_are_not_loaded() {
    let repository = Repository::new();
    repository.write("1.sql", "SELECT 1;");
    let large = fs::File::create(repository.0.path().join("2.sql")).unwrap();
    large.set_len(MAX_SQL + 1).unwrap();
    fs::File::create(repository.0.path().join("3.bin")).unwrap().set_len(MAX_SQL).unwrap();
    repository.commit();
    repository.write("1.sql", "SELECT 2;");
    repository.write("2.sql", "SELECT 2;");
    let folders = BTreeSet::from([repository.0.path().to_owned()]);
    let found = changes(&ChangeSelection::Since("HEAD".to_owned()), &folders).unwrap();
    let before = |name: &str| found.before(&identity(&repository.0.path().join(name))).map(<[u8]>::to_vec);
    assert_eq!((before("1.sql"), before("2.sql")), (Some(b"SELECT 1;".to_vec()), Some(Vec::new())));

    let revision = Revision::checkout(repository.0.path(), "HEAD").unwrap();
    let size = |name: &str| fs::metadata(revision.folder().join(name)).map(|metadata| metadata.len()).ok();
    // Who reads the file says that it is too large.
    assert_eq!([size("1.sql"), size("2.sql"), size("3.bin")], [Some(9), Some(MAX_SQL + 1), None]);
}

#[test]
fn pipes_are_found_behind_links_and_in_the_folder_that_a_file_names() {
    for is_file in [false, true] {
        let hostile = Hostile::new();
        let top = hostile.repository.0.path();
        let (git, real) = (top.join(".git"), top.join("re\nal"));
        if is_file {
            fs::rename(&git, &real).unwrap();
            fs::write(&git, "gitdir: re\nal\n").unwrap();
        } else {
            fs::rename(git.join("refs"), &real).unwrap();
            std::os::unix::fs::symlink(&real, git.join("refs")).unwrap();
        }
        let pipe = real.join(if is_file { "refs/tags/pipe" } else { "tags/pipe" });
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let problem = changes(&ChangeSelection::Uncommitted, &BTreeSet::from([top.to_owned()])).unwrap_err();
        assert!(problem.message.contains("tags/pipe` is not a regular file"), "{}", problem.message);
    }
}

#[test]
fn a_configuration_that_includes_a_pipe_is_not_waited_for() {
    let hostile = Hostile::new();
    let top = hostile.repository.0.path();
    assert!(std::process::Command::new("mkfifo").arg(top.join("pipe")).status().unwrap().success());
    let config = top.join(".git/config");
    fs::write(&config, fs::read_to_string(&config).unwrap() + "[include]\n\tpath = ../pipe\n").unwrap();
    let begun = std::time::Instant::now();
    let problem = changes(&ChangeSelection::Uncommitted, &BTreeSet::from([top.to_owned()])).unwrap_err();
    assert!(problem.message.contains("a pipe or device may be in place"), "{}", problem.message);
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn no_setting_makes_git_read_a_pipe_or_device() {
    for key in ["diff.orderFile", "core.attributesFile", "core.excludesFile"] {
        let hostile = Hostile::new();
        let pipe = hostile.repository.0.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        hostile.repository.git(&["config", key, &pipe.display().to_string()]);
        let folders = BTreeSet::from([hostile.repository.0.path().to_owned()]);
        assert!(changes(&ChangeSelection::Since("HEAD".to_owned()), &folders).is_ok(), "{key}");
    }
}

#[test]
fn nothing_is_written_into_the_repository() {
    let hostile = Hostile::new();
    let index = hostile.repository.0.path().join(".git/index");
    let before = fs::metadata(&index).unwrap().modified().unwrap();
    // The index is out of date for a file that has not changed.
    let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::write(hostile.repository.0.path().join("1.sql"), "SELECT 1;\n").unwrap();
    fs::File::open(hostile.repository.0.path().join("1.sql")).unwrap().set_modified(past).unwrap();
    hostile.look("");
    assert_eq!(fs::metadata(&index).unwrap().modified().unwrap(), before);
}

#[test]
fn no_part_of_an_index_is_written_into_the_repository() {
    let hostile = Hostile::new();
    hostile.repository.git(&["update-index", "--assume-unchanged", "1.sql"]);
    hostile.repository.git(&["config", "core.splitIndex", "true"]);
    let files = || {
        let entries = fs::read_dir(hostile.repository.0.path().join(".git")).unwrap().flatten();
        entries.map(|entry| entry.file_name()).collect::<BTreeSet<_>>()
    };
    let before = files();
    hostile.look("");
    assert_eq!(files(), before);
}

/// A checkout must not show the history of a repository beside it.
#[test]
fn a_folder_of_git_that_belongs_to_another_repository_is_not_read() {
    let other = Repository::new();
    other.write("1.sql", "SELECT 1;\n");
    other.commit();
    let folders = |repository: &Repository| BTreeSet::from([repository.0.path().to_owned()]);
    let look = |repository: &Repository| changes(&ChangeSelection::Since("HEAD".to_owned()), &folders(repository));

    let pointing = Repository::new();
    fs::remove_dir_all(pointing.0.path().join(".git")).unwrap();
    pointing.write(".git", &format!("gitdir: {}/.git\n", other.0.path().display()));
    let problem = look(&pointing).unwrap_err();
    assert!(problem.message.contains("does not name this folder as its working tree"), "{}", problem.message);

    // The user has said that it belongs there.
    other.git(&["config", "core.worktree", &pointing.0.path().display().to_string()]);
    assert!(look(&pointing).is_ok());
    other.git(&["config", "--unset", "core.worktree"]);

    let sharing = Repository::new();
    sharing.write(".git/commondir", &format!("{}/.git\n", other.0.path().display()));
    let problem = look(&sharing).unwrap_err();
    assert!(problem.message.contains("has no worktree there"), "{}", problem.message);
}

/// A name in the index must not lead through a link to files of others.
#[test]
fn names_of_an_index_lead_through_no_link() {
    let victim = Repository::new();
    victim.write("migrations/1.sql", "SELECT 1;\n");
    let repository = Repository::new();
    let top = repository.0.path();
    repository.write("db/1.sql", "SELECT 1;\n");
    repository.commit();
    std::os::unix::fs::symlink(victim.0.path(), top.join("link")).unwrap();
    let output = Command::new("git").arg("-C").arg(top).args(["rev-parse", "HEAD:db/1.sql"]).output().unwrap();
    let blob = String::from_utf8(output.stdout).unwrap();
    repository.git(&["update-index", "--add", "--cacheinfo", "100644", blob.trim(), "link/migrations/1.sql"]);
    repository.git(&["update-index", "--add", "--cacheinfo", "100644", blob.trim(), "link/.hidden/1.sql"]);
    victim.write(".hidden/1.sql", "SELECT 1;\n");
    let mut problems = Vec::new();
    let files = crate::discovery::files_at(top, &crate::identity::Identities::default(), &mut problems);
    assert_eq!((files, problems), (vec![top.join("db/1.sql")], Vec::new()));
    assert!(crate::discovery::tracked_hidden(top).is_empty());
}

/// The same folder can be reached under names with and without `objects`.
#[test]
fn packs_of_other_repositories_are_not_read_through_an_alias() {
    let other = Repository::new();
    other.write("1.sql", "SELECT 1;\n");
    other.commit();
    other.git(&["gc", "-q"]);
    let repository = Repository::new();
    let git = repository.0.path().join(".git");
    fs::create_dir(git.join("aliased")).unwrap();
    for pack in fs::read_dir(other.0.path().join(".git/objects/pack")).unwrap().flatten() {
        std::os::unix::fs::symlink(pack.path(), git.join("aliased").join(pack.file_name())).unwrap();
    }
    fs::remove_dir_all(git.join("objects/pack")).unwrap();
    std::os::unix::fs::symlink("../aliased", git.join("objects/pack")).unwrap();
    for alias in ["0", "zzz"] {
        std::os::unix::fs::symlink("aliased", git.join(alias)).unwrap();
    }
    let folders = BTreeSet::from([repository.0.path().to_owned()]);
    let look = || changes(&ChangeSelection::Uncommitted, &folders).map(drop).map_err(|problem| problem.message);
    assert!(look().unwrap_err().contains("leads to objects outside of it"));

    // The same folder of packs in one that `alternates` names.
    fs::remove_file(git.join("objects/pack")).unwrap();
    fs::create_dir(git.join("more")).unwrap();
    fs::rename(git.join("aliased"), git.join("more/pack")).unwrap();
    assert_eq!(look(), Ok(()));
    fs::create_dir_all(git.join("objects/info")).unwrap();
    fs::write(git.join("objects/info/alternates"), "../more\n").unwrap();
    assert!(look().unwrap_err().contains("leads to objects outside of it"));
}
