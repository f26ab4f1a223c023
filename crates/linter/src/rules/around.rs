//! The statements of a migration around one of them, and what those that follow make of its change.

use crate::ast::{AlterTableAction, Ast, ObjectKind, Transaction};
use crate::catalog::{Catalog, Oid, Relation};
use crate::effect::{RelationName, RemovedObject, RenamedObject};
use crate::routine::Trial;
use crate::rule::RuleContext;
use crate::statement::Statement;

/// So many statements are run ahead; of more only those that speak of the name.
const MAX_AHEAD: usize = 300;

/// How far to look ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Nobody sees what the transaction does before.
    Commit,
    EndOfMigration,
}

/// The statements of the migration before this one.
pub(crate) fn earlier<'a>(context: &RuleContext<'a>) -> impl Iterator<Item = &'a Ast> + use<'a> {
    let start = context.statement.range.start;
    let before = context.migration.statements().take_while(move |statement| statement.range.start < start);
    before.filter_map(|statement| statement.parsed.as_ref().ok())
}

fn later<'a>(context: &RuleContext<'a>, until: Until) -> Vec<&'a Statement> {
    let start = context.statement.range.start;
    let after = context.migration.statements().skip_while(move |statement| statement.range.start <= start);
    let ends = |statement: &&Statement| {
        let ends = [Transaction::Prepare, Transaction::Commit { chain: false }, Transaction::Commit { chain: true }];
        matches!(&statement.parsed, Ok(Ast::Transaction(control)) if ends.contains(control))
    };
    match until {
        Until::EndOfMigration => after.collect(),
        Until::Commit if !context.session.in_transaction() => Vec::new(),
        Until::Commit => after.take_while(|statement| !ends(statement)).collect(),
    }
}

/// The later statements of the migration.
pub(crate) fn rest<'a>(context: &RuleContext<'a>) -> impl Iterator<Item = &'a Ast> + use<'a> {
    later(context, Until::EndOfMigration).into_iter().filter_map(|statement| statement.parsed.as_ref().ok())
}

/// The catalog when the transaction, or the migration, has ended, as far as statements that speak of `name` matter.
pub(crate) fn ahead(context: &RuleContext<'_>, name: &str, until: Until) -> Catalog {
    let speaks = |statement: &&Statement| speaks_of(context.text(statement.range), name);
    let mut statements = later(context, until);
    let Some(last) = statements.iter().rposition(speaks) else { return context.after.clone() };
    statements.truncate(last + 1);
    if statements.len() > MAX_AHEAD {
        statements.retain(speaks);
        statements.truncate(MAX_AHEAD);
    }
    let path = context.session.settings.search_path();
    let mut trial = Trial::new(context.after, &path, context.settings.versions.to);
    for ast in statements.iter().filter_map(|statement| statement.parsed.as_ref().ok()) {
        trial.run(ast);
    }
    trial.catalog().clone()
}

/// May the text name this? Names are in lower case where they are not quoted.
pub(crate) fn speaks_of(text: &str, name: &str) -> bool {
    text.contains(name) || (text.bytes().any(|b| b.is_ascii_uppercase()) && text.to_ascii_lowercase().contains(name))
}

/// Does an earlier statement of the migration make the column, or give it this name?
pub(crate) fn is_column_made_here(context: &RuleContext<'_>, table: &str, column: &str) -> bool {
    earlier(context).any(|ast| {
        match ast {
        Ast::AlterTable(alter) if alter.name.name.text == table => alter.commands.iter().any(|command| {
            matches!(&command.action, AlterTableAction::AddColumn { column: added, .. } if added.name.text == column)
        }),
        Ast::Rename(rename) if rename.kind == ObjectKind::Column => {
            rename.object.name.text == table && rename.new_name.text == column
        }
        _ => false,
    }
    })
}

/// Does an earlier statement of the migration take the name away from another column of the table?
pub(crate) fn is_column_name_freed(context: &RuleContext<'_>, table: &str, column: &str) -> bool {
    earlier(context).any(|ast| {
        match ast {
        Ast::AlterTable(alter) if alter.name.name.text == table => alter.commands.iter().any(|command| {
            matches!(&command.action, AlterTableAction::DropColumn { column: dropped, .. } if dropped.text == column)
        }),
        Ast::Rename(rename) if rename.kind == ObjectKind::Column => {
            let old = rename.sub_name.as_ref();
            rename.object.name.text == table && old.is_some_and(|old| old.text == column)
        }
        _ => false,
    }
    })
}

/// Does an earlier statement of the migration take the name away from another relation?
pub(crate) fn is_relation_name_freed(context: &RuleContext<'_>, name: &str) -> bool {
    // Code of a DO block does all of it in one statement.
    let effects = context.effects;
    let dropped =
        effects.removals.iter().any(|it| matches!(&it.object, RemovedObject::Relation(gone) if gone.name == name));
    let renamed = effects
        .renames
        .iter()
        .any(|it| matches!(&it.object, RenamedObject::Relation { before, name: new, .. } if before.name == name && new != name));
    dropped
        || renamed
        || earlier(context).any(|ast| match ast {
            Ast::Drop(drop) => drop.objects.iter().any(|object| object.on.is_none() && object.name.name.text == name),
            Ast::Rename(rename) => rename.sub_name.is_none() && rename.object.name.text == name,
            _ => false,
        })
}

/// What has the name of a relation that is gone.
#[derive(Debug)]
pub(crate) enum Successor {
    Nothing,
    /// All of its columns are there.
    Compatible(Oid),
    /// It lacks this column.
    Lacks(String),
}

/// What `catalog` has under the old name of a relation.
pub(crate) fn successor(catalog: &Catalog, old: &Relation, name: &RelationName) -> Successor {
    let Some(oid) = catalog.relation_named(&name.schema, &name.name) else { return Successor::Nothing };
    let new = catalog.relation(oid);
    if !new.known || !old.known {
        return Successor::Compatible(oid);
    }
    match old.columns.iter().find(|column| new.column(&column.name).is_none()) {
        Some(missing) => Successor::Lacks(missing.name.to_string()),
        None => Successor::Compatible(oid),
    }
}
