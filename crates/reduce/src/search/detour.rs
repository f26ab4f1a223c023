//! Steps that make a statement larger at first, so that other statements are no longer needed: a column is replaced by
//! NULL of its type or by a constant that a row may have there, an expression by a value that the error names, a table by
//! another one, a query by two rows, and INSERT by a query for the value.

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
        found.extend(self.with_shown_values(tree));
        found.extend(self.with_rows(tree));
        found.extend(self.with_other_tables(tree, &others));
        found.extend(self.values_alone(tree, &types));
        found.retain(|changed| changed != tree);
        found
    }

    /// The statement with a value that the original shows in place of each of its expressions, which compute it.
    fn with_shown_values(&self, tree: &Tree) -> Vec<Tree> {
        let values: Vec<Value> = self.oracle.shown_values().iter().map(|value| self.parts.text(value)).collect();
        let of_path = |path: Path| values.iter().map(move |value| with(tree, &[(path.clone(), value.clone())]));
        edits::expressions(tree).flat_map(of_path).collect()
    }

    /// The statement with two rows in place of each of its inner queries.
    fn with_rows(&self, tree: &Tree) -> Vec<Tree> {
        let rows = |path: Path| {
            let value = match tree.statement.at(&path)? {
                Value::Node(kind, _) => Value::Node(*kind, self.parts.rows.clone()),
                Value::Message(_) => Value::Message(self.parts.rows.clone()),
                _ => return None,
            };
            Some(with(tree, &[(path, value)]))
        };
        edits::queries(tree).filter_map(rows).collect()
    }

    /// A statement that reads a table that others create in place of another one, also under the name of that: it may
    /// read both.
    fn with_other_tables(&self, tree: &Tree, others: &[Tree]) -> Vec<Tree> {
        let created = |tree: &Tree| {
            let create = tree.statement.message().filter(|node| node.name == "CreateStmt")?;
            create.get("relation")?.message()?.get("relname").cloned()
        };
        let tables: Vec<Value> = others.iter().filter_map(created).collect();
        let mut found = Vec::new();
        for path in edits::sources(tree) {
            let Some(source) = tree.statement.at(&path) else { continue };
            let name = source.message().filter(|node| node.name == "RangeVar").and_then(|node| node.get("relname"));
            let Some(Value::Text(name)) = name else { continue };
            for table in tables.iter().filter(|table| **table != Value::Text(name.clone())) {
                let mut changed = source.clone();
                let Some(node) = changed.message_mut() else { continue };
                node.set("relname", table.clone());
                let has_alias = node.get("alias").is_some_and(|alias| !alias.is_empty());
                found.push(with(tree, &[(path.clone(), changed.clone())]));
                if let Some(node) = changed.message_mut().filter(|_| !has_alias) {
                    node.set("alias", self.parts.alias(name));
                    found.push(with(tree, &[(path.clone(), changed)]));
                }
            }
        }
        found
    }

    /// A query for each constant of INSERT, in the types of columns.
    fn values_alone(&self, tree: &Tree, types: &BTreeMap<String, Value>) -> Vec<Tree> {
        let constants = constants(std::slice::from_ref(tree));
        let of_type = |constant: &Value| {
            let cast = |of_type| self.parts.query_for(&self.parts.cast_of(constant.clone(), of_type), Vec::new());
            types.values().map(cast).map(|statement| Tree { statement }).collect::<Vec<_>>()
        };
        constants.iter().flat_map(of_type).collect()
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
