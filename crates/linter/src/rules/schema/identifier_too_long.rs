//! Names that PostgreSQL cuts.

use crate::ast::Ast;
use crate::lexer::TokenKind;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};

declare_rule! {
    /// A name in a definition is longer than 63 bytes, and PostgreSQL cuts it.
    ///
    /// ## Why it matters
    ///
    /// The object gets another name than the one that is written, with a notice that nobody reads. Two names that begin alike
    /// become one, so that the second definition fails or, with `IF NOT EXISTS`, is silently skipped; tools that look for the
    /// full name in the catalog do not find it.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// CREATE INDEX orders_that_were_placed_by_customers_in_the_first_quarter_of_the_year_idx ON orders (id);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// CREATE INDEX orders_first_quarter_idx ON orders (id);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// In statements that define nothing, for PostgreSQL cuts the name there in the same way.
    ///
    /// ## Other linters
    ///
    /// squawk reports the same.
    "identifier-too-long", Schema, Warning,
    { sources: &["squawk/identifier-too-long", "pg-migration-lint/PGM509"] }
    statement = check,
}

/// PostgreSQL's NAMEDATALEN - 1.
const MAX_BYTES: usize = 63;

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let is_definition = matches!(
        context.ast,
        Ast::CreateTable(_)
            | Ast::AlterTable(_)
            | Ast::CreateIndex(_)
            | Ast::CreateView(_)
            | Ast::CreateTableAs(_)
            | Ast::CreateSequence(_)
            | Ast::CreateType(_)
            | Ast::CreateDomain(_)
            | Ast::CreateFunction(_)
            | Ast::CreateTrigger(_)
            | Ast::CreatePolicy(_)
            | Ast::CreateSchema(_)
            | Ast::Rename(_)
    );
    if !is_definition || context.effects.fails.is_some() {
        return;
    }
    let mut said: Vec<&str> = Vec::new();
    for token in &context.statement.tokens {
        let name = match token.kind {
            TokenKind::Word => context.text(token.range),
            TokenKind::QuotedIdentifier => context.text(token.range).trim_matches('"'),
            _ => continue,
        };
        if name.len() <= MAX_BYTES || said.contains(&name) || is_dropped(context, token.range) {
            continue;
        }
        said.push(name);
        let mut end = MAX_BYTES;
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let message = format!("this name has {} bytes, and PostgreSQL cuts it to `{}`", name.len(), &name[..end]);
        drop(reporter.report(token.range, message).help("choose a name of at most 63 bytes"));
    }
}

/// A name that ALTER TABLE only mentions.
fn is_dropped(context: &RuleContext<'_>, range: crate::source::TextRange) -> bool {
    use crate::ast::AlterTableAction::{DropColumn, DropConstraint, ValidateConstraint};
    match context.ast {
        Ast::AlterTable(alter) => alter.commands.iter().any(|command| {
            matches!(command.action, DropColumn { .. } | DropConstraint { .. } | ValidateConstraint { .. })
                && command.range.contains(range)
        }),
        Ast::Rename(rename) => !rename.new_name.range.contains(range),
        _ => false,
    }
}
