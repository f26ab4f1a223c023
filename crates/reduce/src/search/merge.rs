//! Columns and constraints that ALTER TABLE adds to a table that an earlier statement creates: CREATE TABLE can have them.

use super::columns::{create, name};
use super::{End, Search};
use crate::document::Document;
use crate::tree::{Message, Tree, Value};
use std::collections::BTreeSet;

impl Search<'_> {
    pub(super) fn merges(&mut self) -> Result<(), End> {
        let ids: Vec<usize> = self.document.statements().map(|statement| statement.id).collect();
        for id in ids {
            if let Some(document) = self.merged(id) {
                self.accepts(document)?;
            }
        }
        Ok(())
    }

    /// The document with the additions of a statement in the CREATE TABLE before it.
    fn merged(&self, id: usize) -> Option<Document> {
        let alter = self.tree(id)?;
        let alter = alter.statement.message().filter(|node| node.name == "AlterTableStmt")?;
        let added = alter.list("cmds").iter().map(|command| added(command.message()?)).collect::<Option<Vec<_>>>()?;
        let before = self.document.statements().take_while(|statement| statement.id != id);
        let is_of_table = |tree: &Tree| create(tree).is_some_and(|create| name(create) == name(alter));
        let trees = before.filter_map(|statement| Some((statement.id, Tree::parse_exactly(&statement.sql)?)));
        let (table, mut tree) = trees.filter(|(_, tree)| is_of_table(tree)).last()?;
        let create = tree.statement.message_mut()?;
        let elements = create.list("table_elts").iter().cloned().chain(added).collect();
        create.set("table_elts", Value::List(elements));
        let kept: BTreeSet<usize> =
            self.document.statements().map(|statement| statement.id).filter(|one| *one != id).collect();
        Some(self.document.with_sql(table, &tree.deparse()?).with_statements(&kept))
    }
}

/// The column or the constraint that a command adds.
fn added(command: &Message) -> Option<Value> {
    let names_one = command.get("name").is_some_and(|name| !name.is_empty());
    let definition = command.get("def").filter(|_| !names_one)?;
    let is_element = matches!(definition.message()?.name, "ColumnDef" | "Constraint");
    is_element.then(|| definition.clone())
}
