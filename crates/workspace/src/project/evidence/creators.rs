//! Code with which frameworks and libraries create tables themselves, beside the migrations.

use crate::config::absolute;
use crate::nearby::Nearby;
use crate::problem::display;
use crate::roots::Repositories;
use smol_str::{SmolStr, format_smolstr};
use std::path::Path;

/// So far above the migrations code is searched for.
const LEVELS: usize = 5;

/// Folders of code and configuration around the migrations.
const FOLDERS: [&str; 16] = [
    "",
    "app",
    "cmd",
    "config",
    "db",
    "internal",
    "internal/db",
    "lib",
    "models",
    "scripts",
    "server",
    "src",
    "src/config",
    "src/db",
    "src/lib",
    "src/main/resources",
];

/// Most files that are read for one folder.
const FILES: usize = 300;

/// What creates tables: GORM, `SQLAlchemy`, Entity Framework, `TypeORM`, Sequelize, Prisma, Drizzle Kit and Better Auth.
const WORDS: [&str; 9] = [
    "AutoMigrate(",
    ".create_all(",
    "EnsureCreated",
    "synchronize: true",
    "sequelize.sync(",
    "prisma db push",
    "drizzle-kit push",
    "\"better-auth\"",
    "from 'better-auth'",
];

/// Returns the place of the first such code around a folder.
pub(super) fn find(folder: &Path, nearby: &Nearby) -> Option<SmolStr> {
    let folder = absolute(folder);
    let top = Repositories::default().top(&folder)?;
    let around = folder.ancestors().take(LEVELS).take_while(|above| above.starts_with(&top));
    let folders = around.flat_map(|above| FOLDERS.iter().map(move |below| above.join(below)));
    let mut files = folders.flat_map(|folder| nearby.code_and_configuration(&folder)).take(FILES);
    files.find_map(|path| {
        let text = nearby.text(&path)?;
        let (_, number) = text.lines().zip(1usize..).find(|(line, _)| creates(line))?;
        Some(format_smolstr!("{}:{number}", display(path.strip_prefix(&top).unwrap_or(&path))))
    })
}

/// Whether a line creates tables, or configures Hibernate to do so.
fn creates(line: &str) -> bool {
    let of_hibernate = || {
        (line.contains("ddl-auto") || line.contains("hbm2ddl.auto"))
            && (line.contains("update") || line.contains("create"))
    };
    let is_comment = || ["//", "#", "*"].iter().any(|mark| line.trim_start().starts_with(mark));
    (WORDS.iter().any(|word| line.contains(word)) || of_hibernate()) && !is_comment()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_creates_tables_is_recognized() {
        for line in [
            "\tdb.AutoMigrate(&User{})",
            "Base.metadata.create_all(engine)",
            "    ddl-auto: update",
            "spring.jpa.hibernate.ddl-auto=create-drop",
            "  \"push\": \"drizzle-kit push\",",
            "    \"better-auth\": \"^1.3\",",
        ] {
            assert!(creates(line), "{line}");
        }
        for line in ["spring.jpa.hibernate.ddl-auto=validate", "// db.AutoMigrate(&User{})", "synchronize: false"] {
            assert!(!creates(line), "{line}");
        }
    }
}
