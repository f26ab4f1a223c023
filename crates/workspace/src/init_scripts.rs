//! Scripts with which the Docker image of PostgreSQL fills a new database: those in `/docker-entrypoint-initdb.d`.
//!
//! psql runs them one after the other, each statement alone. Source: docker-library/postgres, `docker-entrypoint.sh`,
//! `docker_process_init_files` and `docker_process_sql`.

use crate::config::absolute;
use crate::nearby::Nearby;
use crate::roots;
use std::path::{Path, PathBuf};

/// The folder of the image that holds them.
const FOLDER: &str = "docker-entrypoint-initdb.d";

/// So far above the scripts the files that name them are searched for.
const LEVELS: usize = 8;

/// Folders around the scripts with such files.
const BELOW: [&str; 5] = ["", "docker", ".docker", "deploy", "infra"];

/// Lines between `source:` and `target:` of a volume in Compose, where each has its own.
const LINES_OF_VOLUME: usize = 3;

/// Which files of a folder are such scripts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InitScripts {
    /// Files, and the folder itself, that Dockerfiles and Compose files put there.
    sources: Vec<PathBuf>,
    /// Whether the folder has that name itself.
    is_named: bool,
}

impl InitScripts {
    /// Looks at the folder, and at what is around it up to `top`. A folder of migrations is mounted there for a server on
    /// the computer of a developer, and a tool runs it elsewhere.
    pub(crate) fn of(folder: &Path, top: Option<&Path>, nearby: &Nearby) -> Self {
        let is_named = folder.file_name().is_some_and(|name| name == FOLDER);
        let mut sources = Vec::new();
        let is_of_tool = |top: &Path| folder.strip_prefix(top).is_ok_and(roots::is_below_migrations);
        if let Some(top) = top.filter(|top| !is_named && !is_of_tool(top)) {
            let around = folder.ancestors().take_while(|above| above.starts_with(top)).take(LEVELS);
            let folders = around.flat_map(|above| BELOW.iter().map(move |below| above.join(below)));
            for file in folders.flat_map(|folder| nearby.of_containers(&folder)) {
                let Some(text) = nearby.text(&file) else { continue };
                // The context of a build may be any folder above.
                let bases = || file.ancestors().skip(1).take_while(|base| base.starts_with(top));
                let paths = sources_in(&text).into_iter().flat_map(|source| bases().map(move |base| base.join(source)));
                let paths = paths.map(|path| absolute(&path));
                sources.extend(paths.filter(|path| path == folder || path.parent() == Some(folder)));
            }
        }
        Self { sources, is_named }
    }

    pub(crate) fn hold(&self, path: &Path) -> bool {
        let is_source = || {
            let path = absolute(path);
            self.sources.iter().any(|source| *source == path || Some(source.as_path()) == path.parent())
        };
        self.is_named || (!self.sources.is_empty() && is_source())
    }
}

/// What a Dockerfile or a Compose file puts into the folder: `COPY a.sql b.sql /docker-entrypoint-initdb.d/`,
/// `- ./sql:/docker-entrypoint-initdb.d:ro`, or `source: ./sql` and `target: /docker-entrypoint-initdb.d`.
///
/// A Dockerfile of an image with such scripts may put others elsewhere, for a shell script among them to run.
fn sources_in(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut sources = Vec::new();
    let begins_with =
        |line: &str, word: &str| line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let is_of_postgres = lines.iter().any(|line| begins_with(line, "FROM ") && line.contains("postgres"));
    if is_of_postgres && text.contains(FOLDER) {
        let copies = lines.iter().filter(|line| begins_with(line, "COPY ") || begins_with(line, "ADD "));
        sources.extend(
            copies
                .flat_map(|line| words(line))
                .filter(|word| Path::new(word).extension().is_some_and(|kind| kind == "sql")),
        );
    }
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(FOLDER) && !line.starts_with('#')) {
        if line.trim_start_matches("- ").starts_with("target:") {
            let first = at.saturating_sub(LINES_OF_VOLUME);
            let volume = lines[first..].iter().take(2 * LINES_OF_VOLUME + 1);
            sources.extend(
                volume.filter_map(|line| line.trim_start_matches("- ").strip_prefix("source:")).flat_map(words),
            );
        } else {
            sources.extend(words(line).filter(|word| !word.contains(FOLDER)));
        }
    }
    sources.into_iter().map(|source| source.trim_end_matches("*.sql").trim_end_matches('*')).collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_edge = |one: char| one.is_whitespace() || matches!(one, '"' | '\'' | ',' | ':' | '=' | '[' | ']');
    line.split(is_edge).filter(|word| !word.is_empty() && !word.starts_with("--"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn holds(script: &str, file: &str, text: &str) -> bool {
        let root = tempfile::tempdir().unwrap();
        let top = absolute(root.path());
        for (path, text) in [(script, "SELECT 1;"), (file, text)] {
            fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
            fs::write(top.join(path), text).unwrap();
        }
        let script = top.join(script);
        InitScripts::of(script.parent().unwrap(), Some(&top), &Nearby::default()).hold(&script)
    }

    #[test]
    fn files_that_the_image_gets_are_scripts() {
        for (script, file, text) in [
            ("docker-entrypoint-initdb.d/1_a.sql", "README.md", ""),
            ("db/init/1_a.sql", "db/Dockerfile", "COPY init/ /docker-entrypoint-initdb.d/"),
            (
                "db/init/1_a.sql",
                "db/Dockerfile.dev",
                "COPY --chown=a db/init/1_a.sql /docker-entrypoint-initdb.d/1.sql",
            ),
            ("db/init/1_a.sql", "docker/Dockerfile", "ADD [\"db/init/*.sql\", \"/docker-entrypoint-initdb.d/\"]"),
            (
                "db/2_b.sql",
                "db/Dockerfile",
                "FROM postgres:17\nCOPY run.sh /docker-entrypoint-initdb.d\nCOPY 2_b.sql /more\n",
            ),
            ("sql/1_a.sql", "docker-compose.yml", "  - ./sql:/docker-entrypoint-initdb.d:ro"),
            ("sql/1_a.sql", "docker/compose.yaml", "  - \"../sql/1_a.sql:/docker-entrypoint-initdb.d/1.sql\""),
            ("sql/1_a.sql", "compose.yml", "- type: bind\n  source: ./sql\n  target: /docker-entrypoint-initdb.d\n"),
        ] {
            assert!(holds(script, file, text), "{text}");
        }
    }

    #[test]
    fn other_files_are_not() {
        for (script, file, text) in [
            ("sql/1_a.sql", "docker-compose.yml", "  - ./other:/docker-entrypoint-initdb.d"),
            ("sql/1_a.sql", "docker-compose.yml", "  - ./sql/2_b.sql:/docker-entrypoint-initdb.d/2_b.sql"),
            ("sql/1_a.sql", "docker-compose.yml", "  # - ./sql:/docker-entrypoint-initdb.d"),
            ("sql/1_a.sql", "docker-compose.yml", "  - ./sql:/sql"),
            ("sql/later/1_a.sql", "docker-compose.yml", "  - ./sql:/docker-entrypoint-initdb.d"),
            ("db/migrations/1_a.sql", "docker-compose.yml", "  - ./db/migrations:/docker-entrypoint-initdb.d"),
            ("sql/1_a.sql", "sql/Dockerfile", "FROM app\nCOPY a.sh /docker-entrypoint-initdb.d\nCOPY 1_a.sql /sql\n"),
            ("sql/1_a.sql", "notes.txt", "  - ./sql:/docker-entrypoint-initdb.d"),
        ] {
            assert!(!holds(script, file, text), "{text}");
        }
    }
}
