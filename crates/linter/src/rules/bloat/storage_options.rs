//! Storage parameters and server settings that a migration leaves behind.

use crate::rule::MigrationContext;
use crate::rules::deployment::lasting::Lasting;
use pgvet_syntax::ast::{AlterTableAction, Ast, DefElem, DefValue, Literal, ObjectName, Persistence};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;
use smol_str::{SmolStr, format_smolstr};

/// A parameter that is set when the migration ends, and was set by it.
#[derive(Debug, Clone)]
pub(super) struct LeftBehind {
    /// `None` for the whole server.
    pub(super) table: Option<ObjectName>,
    /// With the prefix `toast.` for the TOAST table.
    pub(super) name: SmolStr,
    pub(super) value: SmolStr,
    pub(super) range: TextRange,
}

/// The parameters that begin with `autovacuum` and that a migration sets and neither resets nor sets again.
pub(super) fn left_behind(context: &MigrationContext<'_>) -> Vec<LeftBehind> {
    let mut walk = Walk { found: Vec::new(), text: &context.migration.file.text };
    for statement in Lasting::of(context.migration).statements {
        for run in context.ran_by(statement) {
            match &*run.ast {
                Ast::CreateOther(other) if other.tag == "ALTER SYSTEM" => walk.alter_system(statement),
                ast => walk.statement(ast, &|range| run.in_file(range)),
            }
        }
    }
    walk.found
}

struct Walk<'t> {
    found: Vec<LeftBehind>,
    text: &'t str,
}

impl Walk<'_> {
    fn statement(&mut self, ast: &Ast, place: &dyn Fn(TextRange) -> TextRange) {
        match ast {
            Ast::AlterTable(alter) => {
                for command in &alter.commands {
                    match &command.action {
                        AlterTableAction::SetOptions(options) => self.set(&alter.name, options, place),
                        AlterTableAction::ResetOptions(options) => {
                            options.iter().for_each(|option| self.forget(Some(&alter.name), &full_name(option)));
                        }
                        _ => {}
                    }
                }
            }
            Ast::CreateTable(create) if create.persistence != Persistence::Temporary => {
                self.set(&create.name, &create.options, place);
            }
            Ast::Drop(drop) => {
                let dropped = |table: &ObjectName| drop.objects.iter().any(|object| same(&object.name, table));
                self.found.retain(|left| !left.table.as_ref().is_some_and(dropped));
            }
            _ => {}
        }
    }

    fn set(&mut self, table: &ObjectName, options: &[DefElem], place: &dyn Fn(TextRange) -> TextRange) {
        for option in options {
            let name = full_name(option);
            self.forget(Some(table), &name);
            if let Some(value) = value(option).filter(|_| option.name.starts_with("autovacuum")) {
                self.found.push(LeftBehind { table: Some(table.clone()), name, value, range: place(option.range) });
            }
        }
    }

    /// `ALTER SYSTEM SET name = value`, `ALTER SYSTEM RESET name`: read from the tokens.
    fn alter_system(&mut self, statement: &Statement) {
        let words: Vec<SmolStr> =
            statement.tokens.iter().map(|token| pgvet_syntax::lexer::identifier(token.text(self.text))).collect();
        let [_, _, verb, name, rest @ ..] = words.as_slice() else { return };
        if name == "all" {
            self.found.retain(|left| left.table.is_some());
        }
        self.forget(None, name);
        if let (true, [_, value]) = (verb.eq_ignore_ascii_case("set"), rest) {
            let value = SmolStr::new(value.trim_matches('\''));
            let is_default = value.eq_ignore_ascii_case("default");
            if name.starts_with("autovacuum") && !is_default {
                let range = statement.tokens[3].range.cover(statement.tokens[5].range);
                self.found.push(LeftBehind { table: None, name: name.clone(), value, range });
            }
        }
    }

    fn forget(&mut self, table: Option<&ObjectName>, name: &str) {
        self.found.retain(|left| {
            let same_table = match (&left.table, table) {
                (Some(ours), Some(theirs)) => same(ours, theirs),
                (None, None) => true,
                _ => false,
            };
            left.name != name || !same_table
        });
    }
}

fn same(ours: &ObjectName, theirs: &ObjectName) -> bool {
    let schema = |name: &ObjectName| name.schema.as_ref().map(|schema| schema.text.clone());
    ours.name.text == theirs.name.text && schema(ours) == schema(theirs)
}

fn full_name(option: &DefElem) -> SmolStr {
    match &option.namespace {
        Some(namespace) => format_smolstr!("{namespace}.{}", option.name.to_lowercase()),
        None => option.name.to_lowercase().into(),
    }
}

fn value(option: &DefElem) -> Option<SmolStr> {
    Some(match &option.value {
        DefValue::None => "true".into(),
        DefValue::Literal(Literal::Integer(number)) => format_smolstr!("{number}"),
        DefValue::Literal(Literal::Numeric(text) | Literal::String(text)) => text.clone(),
        DefValue::Literal(Literal::Boolean(value)) => format_smolstr!("{value}"),
        DefValue::Names(names) => names.first()?.clone(),
        _ => return None,
    })
}

/// Whether PostgreSQL reads the value as `off`.
pub(super) fn is_off(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "false" | "off" | "no" | "0" | "f" | "n")
}
