//! Faults around the program: it is killed, disks are full, it runs twice, and names of files are strange.
//! `.ci/faults` runs more rounds of each.

#![cfg(target_os = "linux")]
use crate::support::{Folder, transcript};
use fastrand::Rng;
use pgvet_trace::server::testing;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A migration that an unsafe fix changes.
const FIXABLE: &str = "ALTER TABLE t ADD COLUMN b int;\n";

/// Rounds of a test without `PGVET_FAULTS`.
fn rounds(few: u64) -> u64 {
    std::env::var("PGVET_FAULTS").ok().and_then(|count| count.parse().ok()).unwrap_or(few)
}

/// A folder for sockets, whose paths must be short.
fn temporary() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("pgvet-faults-").tempdir_in("/tmp").unwrap()
}

fn program(folder: &Folder, temporary: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgvet"));
    command.args(args).current_dir(folder.path()).env("TMPDIR", temporary);
    command.env("PGVET_CACHE_DIR", folder.path().join(".cache")).env("PGVET_POSTGRESQL", postgresql());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same folder wherever the program runs.
fn postgresql() -> std::path::PathBuf {
    let named = std::env::var_os("PGVET_POSTGRESQL").unwrap_or_default();
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(named)
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Whether a process has the text in its command line.
fn is_running(text: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    processes.filter_map(|file| fs::read(file).ok()).any(|line| String::from_utf8_lossy(&line).contains(text))
}

#[test]
fn a_trace_that_is_killed_at_any_moment_can_be_cleaned_up() {
    if testing::binaries(18).is_none() {
        return;
    }
    let folder = Folder::new(&[("m/1.sql", b"CREATE TABLE t (a int); SELECT pg_sleep(60);\n")]);
    let mut random = Rng::with_seed(1);
    for round in 0..rounds(4) {
        let temporary = temporary();
        let mut child = program(&folder, temporary.path(), &["trace", "m", "--pg-version", "18"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.u64(0..2500)));
        child.kill().unwrap();
        child.wait().unwrap();
        let shown = temporary.path().display().to_string();
        let cleaned = |_: u32| {
            let output = program(&folder, temporary.path(), &["trace", "--clean"]).output().unwrap();
            assert!(output.status.success(), "round {round}: {}", transcript(&output));
            names(temporary.path()).iter().all(|name| !name.starts_with("pgvet-server-")) && !is_running(&shown)
        };
        // A server that had just been started, or `initdb`, ends a moment after its parent.
        let is_clean = (0..50).any(|attempt| {
            std::thread::sleep(Duration::from_millis(if attempt == 0 { 0 } else { 100 }));
            cleaned(attempt)
        });
        assert!(is_clean, "round {round}: {:?} is left", names(temporary.path()));
    }
}

#[test]
fn a_file_is_fixed_whole_or_not_at_all_when_the_program_is_killed() {
    let before = FIXABLE.repeat(50);
    let after = {
        let folder = Folder::new(&[("1.sql", before.as_bytes())]);
        folder.run(&["check", "1.sql", "--fix", "--unsafe-fixes", "--no-cache"]);
        fs::read_to_string(folder.path().join("1.sql")).unwrap()
    };
    assert!(after.starts_with("SET lock_timeout"), "{after}");
    let mut random = Rng::with_seed(2);
    for round in 0..rounds(10) {
        let folder = Folder::new(&[("1.sql", before.as_bytes())]);
        let args = ["check", "1.sql", "--fix", "--unsafe-fixes"];
        let mut child = program(&folder, Path::new("/tmp"), &args).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.u64(0..200)));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = fs::read_to_string(folder.path().join("1.sql")).unwrap();
        assert!(now == before || now == after, "round {round}: {now}");
        // What the run left in the cache does no harm.
        let said = folder.run(&["check", "1.sql", "--fail-on", "never"]);
        assert!(said.starts_with("exit 0\n"), "round {round}: {said}");
    }
}

/// The program where nothing can be written to a file, as on a full disk.
fn on_full_disk(folder: &Folder, temporary: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_pgvet")]).args(args);
    command.current_dir(folder.path()).env("TMPDIR", temporary).env("PGVET_POSTGRESQL", postgresql());
    command.env("PGVET_CACHE_DIR", folder.path().join(".cache")).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_full_disk_is_an_error_and_changes_nothing() {
    let sql = FIXABLE;
    let temporary = temporary();
    for _ in 0..rounds(1) {
        let folder = Folder::new(&[("m/1.sql", sql.as_bytes())]);
        // The cache is a help only.
        let output = on_full_disk(&folder, temporary.path(), &["check", "m", "--fail-on", "never"]);
        assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
        for args in [
            &["check", "m", "--fix", "--unsafe-fixes"][..],
            &["check", "m", "--format", "json", "--output-file", "report.json"],
            &["baseline", "m"],
        ] {
            let output = on_full_disk(&folder, temporary.path(), args);
            let said = transcript(&output);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
            assert!(said.contains("File too large") && !said.contains("panicked"), "{args:?}: {said}");
            assert_eq!(fs::read_to_string(folder.path().join("m/1.sql")).unwrap(), sql, "{args:?}");
        }
        if testing::binaries(18).is_some() {
            let output = on_full_disk(&folder, temporary.path(), &["trace", "m", "--pg-version", "18"]);
            let said = transcript(&output);
            assert!(output.status.code() == Some(2) && said.contains("error: "), "{said}");
            assert_eq!(names(temporary.path()), [""; 0]);
        }
    }
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    let (has_server, temporary) = (testing::binaries(18).is_some(), temporary());
    for _ in 0..rounds(2) {
        let folder = Folder::new(&[("m/1.sql", b"CREATE TABLE t (a int);\n"), ("m/2.sql", FIXABLE.as_bytes())]);
        let together = |args: &[&str]| {
            let start = || program(&folder, temporary.path(), args).spawn().unwrap();
            let children = [start(), start(), start()];
            children.map(|child| child.wait_with_output().unwrap())
        };
        let checks = together(&["check", "m", "--fail-on", "never"]);
        let alone = program(&folder, temporary.path(), &["check", "m", "--no-cache", "--fail-on", "never"]).output();
        let alone = transcript(&alone.unwrap());
        checks.iter().for_each(|output| assert_eq!(transcript(output), alone));
        if has_server {
            for output in together(&["trace", "m", "--pg-version", "18", "--format", "json"]) {
                assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
            }
            assert_eq!(names(temporary.path()), [""; 0]);
        }
        // One of them may find that another has changed the file.
        let fixes = together(&["check", "m", "--fix", "--unsafe-fixes", "--fail-on", "never"]);
        assert!(fixes.iter().any(|output| output.status.code() == Some(0)), "{}", transcript(&fixes[0]));
        let fixed = fs::read_to_string(folder.path().join("m/2.sql")).unwrap();
        assert!(fixed.starts_with("SET lock_timeout") && fixed.matches("SET").count() == 1, "{fixed}");
    }
}

/// Names that shells, options, patterns or terminals may take for something else.
const NAMES: [&[u8]; 18] = [
    b"-x.sql",
    b"--fix.sql",
    b"--output-file=pwned.sql",
    b"@args.sql",
    b"a b.sql",
    b"new\nline.sql",
    b"tab\there.sql",
    b"\x1b[2J.sql",
    b"\xff\xfe.sql",
    b"caf\xe9.sql",
    b"$(touch pwned).sql",
    b"`touch pwned`.sql",
    b"*.sql",
    b"[a]{b}?.sql",
    b"!not.sql",
    b"back\\slash.sql",
    b"..sql",
    b"'quote\".sql",
];

#[test]
fn strange_names_of_files_are_only_names() {
    let folder = Folder::new(&[]);
    fs::create_dir(folder.path().join("m")).unwrap();
    let long = [&[b'n'; 240], &b".sql"[..]].concat();
    let mut random = Rng::with_seed(3);
    let random = (0..rounds(20)).map(|_| {
        let bytes: Vec<u8> =
            (0..random.usize(1..40)).map(|_| random.u8(1..=255)).filter(|byte| *byte != b'/').collect();
        [b"r", &bytes[..], b".sql"].concat()
    });
    let all: Vec<Vec<u8>> = NAMES.iter().map(|name| name.to_vec()).chain([long]).chain(random).collect();
    for name in &all {
        fs::write(folder.path().join("m").join(OsStr::from_bytes(name)), "CREATE TABLE t (a int);\n").unwrap();
    }
    let count = fs::read_dir(folder.path().join("m")).unwrap().count();
    for args in [
        &["check", "m"][..],
        &["check", "m", "--format", "json"],
        &["check", "m", "--format", "github"],
        &["check", "m", "--fix", "--unsafe-fixes"],
        &["effects", "m"],
        &["config", "m", "--files"],
        &["baseline", "m"],
    ] {
        let output = program(&folder, Path::new("/tmp"), args).output().unwrap();
        let said = transcript(&output);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}: {said}");
        let acts = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!said.contains(acts) && !said.contains("panicked"), "{args:?}: {said}");
    }
    let files = names(&folder.path().join("m"));
    assert_eq!(files.len(), count, "{files:?}");
    assert!(!folder.path().join("pwned").exists() && !folder.path().join("pwned.sql").exists());
    // As a shell or pre-commit hands them over.
    let mut command = program(&folder, Path::new("/tmp"), &["check", "--fail-on", "never", "--"]);
    let output =
        command.current_dir(folder.path().join("m")).args(all.iter().map(|name| OsStr::from_bytes(name))).output();
    let said = transcript(&output.unwrap());
    assert!(said.starts_with("exit 0\n") && !folder.path().join("m/pwned.sql").exists(), "{said}");
}
