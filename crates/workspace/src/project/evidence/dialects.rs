//! Files that may be written for another database: they have its syntax, or the project speaks of it beside PostgreSQL.

use super::is_judged;
use crate::dialect::{Dialect, Tokens, may_be_other};
use crate::layout::Folders;
use crate::problem::display;
use crate::project::ProjectFile;
use pgvet_linter::repository::DialectDoubt;
use smol_str::{SmolStr, ToSmolStr};

/// Marks files of which not even one word is PostgreSQL's alone.
pub(super) fn mark(files: &mut [ProjectFile], folders: &Folders) {
    for file in files.iter_mut().filter(|file| is_judged(file)) {
        file.evidence.dialect = doubt(file, folders);
    }
}

fn doubt(file: &ProjectFile, folders: &Folders) -> Option<DialectDoubt> {
    let text = &file.parsed.source.text;
    let database = folders.around(&file.path).database;
    let is_marked = may_be_other(text);
    if !is_marked && database.other.is_none() && database.doubt.is_none() {
        return None;
    }
    let tokens = Tokens::new(text);
    if tokens.are_own() {
        return None;
    }
    let of = |dialect: Dialect, place: Option<SmolStr>| DialectDoubt { database: dialect.to_smolstr(), place };
    if let Some(dialect) = is_marked.then(|| tokens.dialect()).flatten() {
        return Some(of(dialect, None));
    }
    let (dialect, place) = database.doubt?;
    Some(of(dialect, Some(display(&place).into())))
}
