//! How `pgvet trace` reaches servers and their data, and how it lets go of them.

use crate::support::runs::{folder, private_folder, start};
use crate::support::{Folder, transcript};
use pgvet_trace::server::testing::{not_tested, server, wait_until};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_service_names_the_server_and_a_password_is_asked_for_on_a_terminal() {
    let Some(folder) = folder(&[("m/1.sql", "CREATE TABLE made (a int);\n")]) else { return };
    let Some(server) = server(18) else { return };
    server.query("postgres", "CREATE DATABASE shop").unwrap();
    server.query("postgres", "CREATE ROLE ann SUPERUSER LOGIN PASSWORD 'geheim'").unwrap();
    let service = format!("[shop]\nhost={}\nuser=ann\ndbname=shop\n", server.socket().display());
    std::fs::write(folder.path().join("services"), service).unwrap();
    let run = |service: &str, env: &[(&str, &str)]| {
        let services = folder.path().join("services").display().to_string();
        let env = [&[("PGSERVICEFILE", services.as_str())], env].concat();
        transcript(&folder.output(&["trace", "m", "--on", "template", "--database", service], b"", &env))
    };
    let said = run("service=shop", &[]);
    assert!(said.starts_with("exit 0\n") && said.contains("create  public.made"), "{said}");
    let said = run("service=shop dbname=nowhere", &[]);
    assert!(said.starts_with("exit 2\n") && said.contains("nowhere"), "the string goes before the service: {said}");
    let said = run("service=other", &[]);
    assert!(said.starts_with("exit 2\n") && said.contains("there is no service `other`"), "{said}");
    std::fs::write(server.data().join("pg_hba.conf"), "local all ann scram-sha-256\nlocal all all trust\n").unwrap();
    server.query("postgres", "SELECT pg_reload_conf()").unwrap();
    let refused = || run("service=shop", &[]).contains("password missing");
    wait_until(refused);
    let said = run("service=shop", &[("PGPASSWORD", "geheim")]);
    assert!(said.starts_with("exit 0\n"), "{said}");
    let trace = "trace m --on template --database service=shop";
    let Some(said) = on_terminal(&folder, trace, &mut |input| input.write_all(b"geheim\n").unwrap()) else { return };
    assert!(said.contains("Password for user ann: ") && said.contains("create  public.made"), "{said}");
    assert!(!said.contains("geheim"), "{said}");
    let said = on_terminal(&folder, trace, &mut |input| input.write_all(b"gehe\x03").unwrap()).unwrap();
    assert!(said.contains("interrupted by SIGINT") && !said.contains("create"), "{said}");
    let typed = b"wrong\x15gehx\x7feim\n";
    let said = on_terminal(&folder, trace, &mut |input| input.write_all(typed).unwrap()).unwrap();
    assert!(said.contains("create  public.made"), "the terminal lets the line be corrected: {said}");
    let snapshot = "snapshot service=shop --out -";
    let said = on_terminal(&folder, snapshot, &mut |input| input.write_all(b"geheim\n").unwrap()).unwrap();
    assert!(said.contains("Password for user ann: ") && said.contains("\"pg_version\": \"18."), "{said}");
    for signal in ["INT", "TERM"] {
        let pid = || std::fs::read_to_string(folder.path().join("pid")).unwrap();
        let kill = || Command::new("kill").args([&format!("-{signal}"), pid().trim()]).status().unwrap();
        let said = on_terminal(&folder, trace, &mut |_| assert!(kill().success())).unwrap();
        assert!(said.contains(&format!("interrupted by SIG{signal}")), "{said}");
        let modes: Vec<&str> = said.split_whitespace().collect();
        assert!(modes.contains(&"echo") && modes.contains(&"icanon"), "the terminal is as before: {said}");
    }
}

/// A server that accepts connections, closes them and counts them.
fn closing_server() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(connection);
        }
    });
    (port, count)
}

#[test]
fn what_goes_wrong_before_a_password_is_asked_for_is_the_error() {
    let Some(folder) = folder(&[("m/1.sql", "SELECT 1;\n")]) else { return };
    let (port, connections) = closing_server();
    std::fs::write(folder.path().join("services"), format!("[shop]\nhost=127.0.0.1\nport={port}\nuser=ann\n")).unwrap();
    let trace = "trace m --on template --database service=shop";
    let Some(said) = on_terminal(&folder, trace, &mut |_| ()) else { return };
    assert!(said.contains("cannot connect to the server") && !said.contains("Password"), "{said}");
    assert_eq!(connections.load(Ordering::SeqCst), 1, "{said}");
    let Some(server) = server(18) else { return };
    let trace = format!("trace m --on datadir --data {} --database nowhere", server.data().display());
    let said = on_terminal(&folder, &trace, &mut |_| ()).unwrap();
    assert!(said.contains("cannot take a backup from it: ") && said.contains("set PGUSER"), "{said}");
}

/// Returns the output of the terminal, and its final settings, if this is done when the password is requested. The
/// number of the process is in the file `pid`.
fn on_terminal(folder: &Folder, args: &str, when_asked: &mut dyn FnMut(&mut ChildStdin)) -> Option<String> {
    let command = format!("sh -c 'echo $$ >pid; exec {} {args}'; stty -a", env!("CARGO_BIN_EXE_pgvet"));
    let mut terminal = Command::new("script");
    terminal.args(["-q", "-e", "-c", &command, "/dev/null"]).current_dir(folder.path());
    terminal.env("PGSERVICEFILE", "services").stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut terminal) = terminal.spawn() else {
        not_tested("on a terminal: `script` is not installed");
        return None;
    };
    let (mut shown, mut out) = (Vec::new(), terminal.stdout.take().unwrap());
    let mut input = terminal.stdin.take().unwrap();
    let mut piece = [0; 1024];
    let mut asked = false;
    while let Ok(read @ 1..) = out.read(&mut piece) {
        shown.extend_from_slice(&piece[..read]);
        if !asked && String::from_utf8_lossy(&shown).contains("Password") {
            asked = true;
            when_asked(&mut input);
        }
    }
    terminal.wait().unwrap();
    Some(String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn a_running_server_is_copied_whatever_the_environment_names() {
    let Some(folder) = folder(&[("m/1.sql", "CREATE TABLE made (a int);\n")]) else { return };
    let Some(server) = server(18) else { return };
    let data = server.data().display().to_string();
    let args = ["trace", "m", "--on", "datadir", "--data", &data, "--database", "postgres"];
    let env = [("PGSERVICE", "missing"), ("PGHOST", "nowhere"), ("PGPORT", "1"), ("PGPASSWORD", "wrong")];
    let said = transcript(&folder.output(&args, b"", &env));
    assert!(said.starts_with("exit 0\n") && said.contains("create  public.made"), "{said}");
}

/// A `cp` that never ends, and says who it is.
const NEVER_ENDING: &str = "#!/bin/sh\necho $$ >\"$PIDS\"\nexec sleep 600\n";

#[test]
fn an_interrupted_copy_ends_and_one_of_a_killed_run_is_found() {
    let Some(folder) = folder(&[("m/1.sql", "SELECT 1;\n"), ("data/PG_VERSION", "18\n"), ("bin/cp", NEVER_ENDING)])
    else {
        return;
    };
    let temporary = private_folder();
    let path = |name: &str| folder.path().join(name);
    std::fs::set_permissions(path("bin/cp"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let programs = format!("{}:{}", path("bin").display(), std::env::var("PATH").unwrap());
    let copies = || {
        let beside = std::fs::read_dir(folder.path()).unwrap().flatten();
        beside.filter(|entry| entry.file_name().to_string_lossy().starts_with(".pgvet-data")).count()
    };
    let copier = || std::fs::read_to_string(path("pid")).ok()?.trim().parse::<u32>().ok();
    let is_copying = || copier().is_some_and(is_running);
    let run = |signal: &str| {
        let args = ["trace", "m", "--on", "datadir", "--data", "data", "--database", "postgres"];
        let pids = path("pid").display().to_string();
        let child = start(&folder, &temporary, &args, &[("PATH", &programs), ("PIDS", &pids)]);
        wait_until(|| copies() == 1 && is_copying());
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        child.wait_with_output().unwrap()
    };
    let said = transcript(&run("-TERM"));
    assert!(said.starts_with("exit 2\n") && said.contains("interrupted by SIGTERM"), "{said}");
    assert!(!is_copying() && copies() == 0, "{said}");
    run("-KILL");
    assert!(is_copying() && copies() == 1);
    let temporary = temporary.path().display().to_string();
    let said = transcript(&folder.output(&["trace", "--clean"], b"", &[("TMPDIR", &temporary)]));
    assert!(said.starts_with("exit 0\n") && said.contains("removed the server in"), "{said}");
    assert!(!is_copying());
    assert_eq!((copies(), std::fs::read_dir(&temporary).unwrap().count()), (0, 0), "{said}");
}

/// Whether the process runs. One that has ended and was not waited for does not.
fn is_running(pid: u32) -> bool {
    let output = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().unwrap();
    let state = String::from_utf8_lossy(&output.stdout);
    !state.trim().is_empty() && !state.starts_with('Z')
}

#[test]
fn what_is_wrong_with_an_address_is_named() {
    let folder = Folder::new(&[]);
    for (address, expected) in [
        ("host=db hots=x", "there is no connection parameter `hots`"),
        ("host = db sslcrl = revoked", "`sslcrl` is given, which pgvet does not support"),
        ("postgres://db/shop?sslmode=verify-full&sslrootcert=none.crt", "needs `none.crt`, which does not exist"),
        ("postgres://ann:secret@db/shop", "contains a password"),
    ] {
        let said = folder.run(&["snapshot", address]);
        assert!(said.starts_with("exit 2\n") && said.contains(expected), "{address}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}
