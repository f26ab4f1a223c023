//! Folders whose tool is known for certain: a file of the tool, or a manifest of the project, shows it.

use super::{Folders, Sign, Tool, detect, flyway_project, folder};
use crate::config::{Config, absolute};
use crate::nearby::Nearby;
use crate::{order, read, rollback_name};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A folder from which a tool runs migrations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ToolFolder {
    /// Where it is, from the root of the file system.
    pub(crate) folder: PathBuf,
    pub(crate) tool: Tool,
}

/// Returns the folders of files whose tool is known for certain.
pub(crate) fn tool_folders<'f>(
    files: impl Iterator<Item = (&'f Path, &'f Config)>,
    folders: &Folders,
) -> BTreeSet<ToolFolder> {
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    let mut found = BTreeSet::new();
    for (path, config) in files.filter(|(path, _)| !rollback_name::is_rollback_migration(path)) {
        let folder = order::sequence(path);
        if !seen.insert(folder.clone()) {
            continue;
        }
        let layout = detect(path, &read::whole(path).unwrap_or_default(), folders, config);
        let is_run = layout.sign != Sign::None && !layout.unlisted;
        if is_run && is_certain(layout.tool, layout.sign, path, folders.nearby()) {
            let folder = folders.around(path).root().map_or(folder, Path::to_owned);
            found.insert(ToolFolder { folder: absolute(&folder), tool: layout.tool });
        }
    }
    found
}

/// Whether more than names and comments of migrations shows the tool.
fn is_certain(tool: Tool, sign: Sign, path: &Path, nearby: &Nearby) -> bool {
    let folder = absolute(&order::sequence(path));
    match tool {
        Tool::Plain | Tool::Captured => false,
        _ if matches!(sign, Sign::Configuration | Sign::CargoToml) => true,
        Tool::Supabase => folder.with_file_name("config.toml").is_file(),
        Tool::Prisma => folder.join("migration_lock.toml").is_file() || has_schema_of_prisma(&folder),
        Tool::Flyway => flyway_project::is_around(&folder, nearby),
        Tool::Goose | Tool::SqlMigrate | Tool::Dbmate | Tool::GolangMigrate | Tool::Postgrator => {
            folder::proves(tool, path, nearby)
        }
        // A list, a configuration or a manifest around them is the sign.
        _ => sign == Sign::Folder,
    }
}

fn has_schema_of_prisma(migrations: &Path) -> bool {
    migrations.with_file_name("schema.prisma").is_file() || migrations.with_file_name("schema").is_dir()
}
