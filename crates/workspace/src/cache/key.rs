//! The digest that names an entry.

use blake3::{Hash, Hasher};
use pgvet_linter::settings::Settings;
use pgvet_model::migration::{Direction, Migration, TransactionMode};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The endings of the files.
const CHECKPOINT: &str = "checkpoint";
const OUTCOME: &str = "outcome";

/// The name of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    digest: Hash,
    kind: &'static str,
}

impl Key {
    /// The states after no migration, after the first, and so on.
    pub(super) fn checkpoints(migrations: &[Migration<'_>], texts: &[Hash], settings: &Settings) -> Vec<Self> {
        let mut hasher = Hasher::new();
        hasher.update(program().as_bytes());
        hasher.update(format!("{:?}", settings.versions).as_bytes());
        let mut keys = vec![Self { digest: hasher.finalize(), kind: CHECKPOINT }];
        for (migration, text) in migrations.iter().zip(texts) {
            add(&mut hasher, migration, text);
            keys.push(Self { digest: hasher.finalize(), kind: CHECKPOINT });
        }
        keys
    }

    /// The findings of a run whose last state would be `end`.
    pub(super) fn outcome(end: Self, migrations: &[Migration<'_>], settings: &Settings) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(end.digest.as_bytes());
        let reported: Vec<u8> = migrations.iter().map(|migration| u8::from(migration.report)).collect();
        hasher.update(&reported);
        // Maps print in the order of their slots, which for the same configuration is the same.
        hasher.update(format!("{settings:?}").as_bytes());
        Self { digest: hasher.finalize(), kind: OUTCOME }
    }

    pub(super) fn file_name(&self) -> String {
        format!("{}.{}", self.digest.to_hex(), self.kind)
    }

    /// Whether the file is named as an entry.
    pub(super) fn names(path: &Path) -> bool {
        let is_kind = path.extension().is_some_and(|kind| kind == CHECKPOINT || kind == OUTCOME);
        is_kind && path.file_stem().is_some_and(|stem| stem.len() == 2 * blake3::OUT_LEN)
    }

    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        Self { digest: blake3::hash(text.as_bytes()), kind: OUTCOME }
    }
}

fn add(hasher: &mut Hasher, migration: &Migration<'_>, text: &Hash) {
    hasher.update(text.as_bytes());
    let whole = (0, u32::MAX);
    let (start, end) = migration.section.map_or(whole, |section| (section.start, section.end));
    hasher.update(&start.to_le_bytes()).update(&end.to_le_bytes()).update(&migration.database.to_le_bytes());
    let direction = match migration.direction {
        Direction::Up => 0,
        Direction::Down => 1,
    };
    let transaction = match migration.transaction {
        TransactionMode::Autocommit => 0,
        TransactionMode::Transaction => 1,
        TransactionMode::SingleString => 2,
    };
    let flags = [migration.baseline, migration.ordered, migration.in_production, migration.captured].map(u8::from);
    hasher.update(&[direction, transaction]).update(&flags);
    hasher.update(&migration.release.map_or([0; 4], |release| (release + 1).to_le_bytes()));
    hasher.update(format!("{:?} {:?} {:?}", migration.runner, migration.refusals, migration.incidents).as_bytes());
    hasher.update(format!("{:?}", migration.first_schemas).as_bytes());
    for string in migration.strings {
        hasher.update(&string.start.to_le_bytes()).update(&string.end.to_le_bytes());
    }
}

/// The build of the program: another one may know more.
fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let metadata = std::env::current_exe().and_then(std::fs::metadata);
    let built = metadata.ok().and_then(|metadata| {
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some((metadata.len(), modified.as_nanos()))
    });
    format!("{version} {built:?}")
}
