//! Columns of a table that go together with their values in INSERT, which does not name them.

use super::{End, Search};
use crate::document::Document;
use crate::edits::{remove, remove_value};
use crate::tree::{Message, Tree, Value};

impl Search<'_> {
    pub(super) fn columns(&mut self) -> Result<(), End> {
        let ids: Vec<usize> = self.document.statements().map(|statement| statement.id).collect();
        for id in ids {
            let count = self.tree(id).and_then(|tree| Some(columns(create(&tree)?).count())).unwrap_or_default();
            for column in (0..count).rev() {
                if let Some(document) = self.without_column(id, column) {
                    self.accepts(document)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn tree(&self, id: usize) -> Option<Tree> {
        Tree::parse_exactly(&self.document.statement(id)?.sql)
    }

    /// The document without a column of a table, if a later INSERT does not name its columns.
    fn without_column(&self, id: usize, column: usize) -> Option<Document> {
        let mut tree = self.tree(id)?;
        let relation = name(create(&tree)?)?.to_owned();
        let at = columns(create(&tree)?).nth(column)?;
        remove(tree.statement.message_mut()?, "table_elts", at);
        let mut document = self.document.with_sql(id, &tree.deparse()?);
        let mut changed = false;
        for statement in self.document.statements() {
            let Some(mut tree) = Tree::parse_exactly(&statement.sql) else { continue };
            let Some(insert) = tree.statement.message_mut().filter(|node| node.name == "InsertStmt") else { continue };
            if insert.list("cols").is_empty() && name(insert) == Some(&relation) {
                remove_value(insert, column);
                document = document.with_sql(statement.id, &tree.deparse()?);
                changed = true;
            }
        }
        changed.then_some(document)
    }
}

pub(super) fn create(tree: &Tree) -> Option<&Message> {
    tree.statement.message().filter(|node| node.name == "CreateStmt")
}

/// The indexes of the columns among the elements of a table.
fn columns(create: &Message) -> impl Iterator<Item = usize> {
    let is_column = |element: &Value| element.message().is_some_and(|element| element.name == "ColumnDef");
    create.list("table_elts").iter().enumerate().filter(move |(_, element)| is_column(element)).map(|(at, _)| at)
}

/// The name of the table that a statement creates, changes or fills.
pub(super) fn name(statement: &Message) -> Option<&str> {
    match statement.get("relation")?.message()?.get("relname")? {
        Value::Text(name) => Some(name),
        _ => None,
    }
}
