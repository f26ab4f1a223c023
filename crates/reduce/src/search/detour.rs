//! Steps that make a statement larger at first, so that other statements are no longer needed: a column is replaced by
//! NULL of its type, or by a constant that a row may have there.

use super::{End, Search};
use crate::edits::{self, inside};
use crate::tree::{Message, Path, Tree, Value};
use std::collections::BTreeMap;

/// How many constants of other statements are tried for a column.
const MOST_CONSTANTS: usize = 6;

impl Search<'_> {
    /// Tries a detour for each statement, and returns whether one has led to something smaller.
    pub(super) fn detours(&mut self) -> Result<bool, End> {
        let ids: Vec<usize> = self.document.statements().map(|statement| statement.id).collect();
        if ids.len() < 2 {
            return Ok(false);
        }
        for id in ids.into_iter().rev() {
            let Some(tree) = self.tree(id) else { continue };
            for detour in self.detours_of(id, &tree) {
                if let Some(sql) = detour.deparse()
                    && self.detour(id, &sql)?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Follows a detour as far as it leads, and comes back if that is not smaller.
    fn detour(&mut self, id: usize, sql: &str) -> Result<bool, End> {
        let (document, progress) = (self.document.clone(), self.progress);
        if !self.accepts(document.with_sql(id, sql))? {
            return Ok(false);
        }
        let followed = self.statement(id).and_then(|()| self.statements());
        let is_smaller = self.progress.size.tokens < progress.size.tokens;
        if !is_smaller {
            self.document = document;
            self.progress = super::Progress { tries: self.progress.tries, ..progress };
        }
        followed.map(|()| is_smaller)
    }

    /// A statement with other values in place of all of its columns, and of each of them.
    fn detours_of(&self, id: usize, tree: &Tree) -> Vec<Tree> {
        let others = || self.document.statements().filter(|statement| statement.id != id);
        let others: Vec<Tree> = others().filter_map(|statement| Tree::parse(&statement.sql)).collect();
        let types = types(&others);
        let constants = constants(&others);
        let columns: Vec<(Path, Value)> = edits::expressions(tree)
            .filter_map(|path| {
                let of_type = types.get(column(tree.statement.at(&path)?.message()?)?)?;
                Some((path, self.parts.null_of(of_type)))
            })
            .collect();
        let mut found = vec![with(tree, &columns)];
        for (path, null) in &columns {
            found.push(with(tree, &[(path.clone(), null.clone())]));
            found.extend(constants.iter().map(|constant| with(tree, &[(path.clone(), constant.clone())])));
        }
        found.retain(|changed| changed != tree);
        found
    }
}

/// A tree with other values at some places, none of which is inside of another.
fn with(tree: &Tree, values: &[(Path, Value)]) -> Tree {
    let mut changed = tree.clone();
    for (path, value) in values {
        if let Some(place) = changed.statement.at_mut(path) {
            *place = value.clone();
        }
    }
    changed
}

/// The name of a column.
fn column(expression: &Message) -> Option<&str> {
    if expression.name != "ColumnRef" {
        return None;
    }
    match expression.list("fields").last()?.message()?.get("sval")? {
        Value::Text(name) => Some(name),
        _ => None,
    }
}

/// The types of columns that statements create, by their names.
fn types(statements: &[Tree]) -> BTreeMap<String, Value> {
    let mut types = BTreeMap::new();
    for statement in statements {
        inside(&statement.statement, &mut |value| {
            let Some(definition) = value.message().filter(|node| node.name == "ColumnDef") else { return };
            if let (Some(Value::Text(name)), Some(of_type)) = (definition.get("colname"), definition.get("type_name")) {
                types.insert(name.clone(), of_type.clone());
            }
        });
    }
    types
}

/// Different constants of INSERT.
fn constants(statements: &[Tree]) -> Vec<Value> {
    let mut constants = Vec::new();
    let is_insert = |tree: &&Tree| tree.statement.message().is_some_and(|node| node.name == "InsertStmt");
    for insert in statements.iter().filter(is_insert) {
        inside(&insert.statement, &mut |value| {
            let is_constant = value.message().is_some_and(|node| node.name == "AConst");
            if is_constant && constants.len() < MOST_CONSTANTS && !constants.contains(value) {
                constants.push(value.clone());
            }
        });
    }
    constants
}
