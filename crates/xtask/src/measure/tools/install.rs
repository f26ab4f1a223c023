//! Installs a tool from its package registry, through the registry's own client, into a folder of its own.

use super::declaration::{Declaration, Install, Registry};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the file that lists what is installed beside it.
const MARK: &str = ".installed";

/// The folder of an installed version.
///
/// # Errors
/// Returns the message of the client.
pub(super) fn install(declaration: &Declaration, version: &str) -> Result<PathBuf, String> {
    let title = format!("{} {version}", declaration.title);
    install_at(
        &Path::new(&declaration.name).join(version),
        &title,
        &declaration.install,
        &declaration.folder(),
        version,
    )
}

/// Installs packages into a folder below `target/tools`; `own` is the folder with the files that belong to them.
///
/// # Errors
/// Returns the message of the client.
pub(in crate::measure) fn install_at(
    place: &Path,
    title: &str,
    install: &Install,
    own: &Path,
    version: &str,
) -> Result<PathBuf, String> {
    let base = std::path::absolute(Path::new("target/tools")).map_err(|error| error.to_string())?;
    let folder = base.join(place);
    let wanted = format!("{:?}", (install.packages(version), &install.options));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for file in &install.files {
        let copied = std::fs::copy(own.join(file), folder.join(file));
        copied.map_err(|error| format!("{title}: {file}: {error}"))?;
    }
    if std::fs::read_to_string(folder.join(MARK)).is_ok_and(|known| known == wanted) {
        return Ok(folder);
    }
    for mut command in commands(install, version, &folder, &base)? {
        command.current_dir(&folder);
        let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            let lines: Vec<&str> = said.lines().collect();
            let end = lines[lines.len().saturating_sub(15)..].join("\n");
            return Err(format!("{title} cannot be installed: {command:?}\n{end}"));
        }
    }
    std::fs::write(folder.join(MARK), wanted).map_err(|error| error.to_string())?;
    Ok(folder)
}

fn commands(install: &Install, version: &str, folder: &Path, base: &Path) -> Result<Vec<Command>, String> {
    let packages = install.packages(version);
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).map_err(|error| error.to_string());
    let command = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    };
    Ok(match install.registry {
        // The project names them itself.
        _ if packages.is_empty() => Vec::new(),
        Registry::Go if install.files.is_empty() => {
            let mut go = command("go", &["install"]);
            go.args(&install.options).args(&packages).env("GOBIN", folder.join("bin")).env("CGO_ENABLED", "0");
            vec![go]
        }
        Registry::Go => {
            write("go.mod", "module driver\n")?;
            let mut get = command("go", &["get"]);
            get.args(&packages);
            let mut commands = vec![get, command("go", &["build", "-o", "bin/driver", "."])];
            commands.iter_mut().for_each(|command| {
                command.env("GOFLAGS", "-mod=mod");
            });
            commands
        }
        Registry::Npm => {
            write("package.json", "{\"private\": true}\n")?;
            let mut npm = command("npm", &["install", "--no-audit", "--no-fund"]);
            npm.args(&install.options).args(&packages);
            vec![npm]
        }
        Registry::Pypi => {
            let mut pip = command("bin/pip", &["install", "--quiet"]);
            pip.args(&install.options).args(&packages);
            vec![command("python3", &["-m", "venv", "."]), pip]
        }
        Registry::Cargo => {
            let mut cargo = command("cargo", &["install", "--debug", "--locked", "--root", "."]);
            cargo.args(&install.options).args(&packages);
            cargo.env("CARGO_TARGET_DIR", base.join(".build")).env("CARGO_PROFILE_DEV_DEBUG", "0");
            vec![cargo]
        }
        Registry::Maven => {
            write("pom.xml", &pom(&packages))?;
            vec![command("mvn", &["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"])]
        }
        Registry::Debian => {
            let mut apt = command("apt-get", &["install", "-y", "--no-install-recommends"]);
            apt.args(&packages);
            vec![apt]
        }
    })
}

/// A project that depends on packages, each `group:name:version`.
fn pom(packages: &[String]) -> String {
    let mut dependencies = String::new();
    for package in packages {
        let mut parts = package.split(':');
        let mut part = || parts.next().unwrap_or_default();
        let _ = writeln!(
            dependencies,
            "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>",
            part(),
            part(),
            part()
        );
    }
    format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>driver</groupId><artifactId>driver</artifactId>\
         <version>1</version><dependencies>\n{dependencies}</dependencies></project>\n"
    )
}
