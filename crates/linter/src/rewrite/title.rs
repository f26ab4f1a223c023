//! Titles of migrations, in words of a file name.

use pgvet_syntax::ast::{AlterTableAction, Ast};
use pgvet_syntax::statement::{ParsedFile, Statement};

/// Longer names are cut.
const LENGTH: usize = 48;

/// From its first statement that says more than a setting.
pub(super) fn title(file: &ParsedFile) -> String {
    let statements = file.statements.iter().filter_map(Statement::ast);
    let mut telling = statements.filter(|ast| !matches!(ast, Ast::Set(_)));
    word(&telling.next().map_or_else(|| "step".to_owned(), of))
}

fn of(ast: &Ast) -> String {
    match ast {
        Ast::CreateIndex(index) => match &index.name {
            Some(name) => format!("build {}", name.text),
            None => format!("build index of {}", index.table.name.text),
        },
        Ast::AlterTable(alter) => {
            let table = &alter.name.name.text;
            match alter.commands.first().map(|command| &command.action) {
                Some(AlterTableAction::ValidateConstraint { name }) => format!("validate {}", name.text),
                Some(AlterTableAction::AddConstraint(constraint)) => match &constraint.name {
                    Some(name) => format!("add {}", name.text),
                    None => format!("add constraint of {table}"),
                },
                Some(AlterTableAction::AddColumn { column, .. }) => format!("add {table} {}", column.name.text),
                Some(AlterTableAction::DropColumn { column, .. }) => format!("drop {table} {}", column.text),
                Some(AlterTableAction::SetNotNull { column }) => format!("{table} {} not null", column.text),
                _ => format!("alter {table}"),
            }
        }
        Ast::Do(_) => "fill".to_owned(),
        Ast::Drop(drop) => match drop.objects.first() {
            Some(object) if drop.kind == pgvet_syntax::ast::ObjectKind::Trigger => {
                format!("swap {}", object.name.name.text)
            }
            Some(object) => format!("drop {}", object.name.name.text),
            None => "drop".to_owned(),
        },
        Ast::CreateTable(table) => format!("create {}", table.name.name.text),
        Ast::Reindex(_) => "rebuild index".to_owned(),
        _ => "step".to_owned(),
    }
}

/// Letters, digits and `_` only.
fn word(text: &str) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '_' };
    text.chars().map(plain).take(LENGTH).collect::<String>().trim_end_matches('_').to_owned()
}
