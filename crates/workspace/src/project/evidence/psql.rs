//! Files that scripts of the project run with psql: in another transaction or order than their tool does.

use super::is_judged;
use crate::layout::{Folders, Sign, psql};
use crate::project::ProjectFile;
use pgvet_linter::repository::PsqlScript;
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Marks the files for which a script contradicts the tool.
pub(super) fn mark(files: &mut [ProjectFile], folders: &Folders) {
    let orders = orders(files, folders);
    for file in files.iter_mut().filter(|file| is_judged(file) && file.layout.sign != Sign::Configuration) {
        let (sequence, name) = psql::place(&file.path);
        let scripts = folders.psql_scripts(&sequence);
        let transaction = scripts.run_of(&name).filter(|_| psql::contradicts(&file.layout, &file.path, folders));
        let transaction = transaction.map(|run| run.place.clone());
        let order = orders.get(&sequence).cloned();
        if transaction.is_some() || order.is_some() {
            file.evidence.psql = Some(PsqlScript { transaction, order });
        }
    }
}

/// The places of scripts that run the files of a sequence in another order.
fn orders(files: &[ProjectFile], folders: &Folders) -> BTreeMap<PathBuf, SmolStr> {
    let mut sequences: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.role.is_migration() && file.is_run()) {
        let (sequence, name) = psql::place(&file.path);
        sequences.entry(sequence).or_default().push(name);
    }
    let other = |(sequence, names): (PathBuf, Vec<String>)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let place = folders.psql_scripts(&sequence).other_order(&names)?.place.clone();
        Some((sequence, place))
    };
    sequences.into_iter().filter_map(other).collect()
}
