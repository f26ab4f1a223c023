//! Names that PostgreSQL cuts.

use crate::ast::{AlterTableAction, Ast, ColumnDef, Name, TableElement};
use crate::diagnostic::Severity;
use crate::lexer::TokenKind;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::source::TextRange;

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
    /// CREATE TABLE orders_that_were_placed_by_customers_in_the_first_quarter_of_the_year (id bigint PRIMARY KEY);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders_first_quarter (id bigint PRIMARY KEY);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// In statements that define nothing, for PostgreSQL cuts the name there in the same way. Names of indexes and constraints,
    /// which no query uses, are a note only.
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
        let mut finding = reporter.report(token.range, message);
        if is_index_or_constraint(context, token.range) {
            finding = finding.severity(Severity::Info);
        }
        drop(finding.help("choose a name of at most 63 bytes"));
    }
}

/// Names that no query uses.
fn is_index_or_constraint(context: &RuleContext<'_>, range: TextRange) -> bool {
    let is_name = |name: &Option<Name>| name.as_ref().is_some_and(|name| name.range.contains(range));
    let of_column = |column: &ColumnDef| column.constraints.iter().any(|constraint| is_name(&constraint.name));
    match context.ast {
        Ast::CreateIndex(create) => is_name(&create.name),
        Ast::AlterTable(alter) => alter.commands.iter().any(|command| match &command.action {
            AlterTableAction::AddConstraint(constraint) => is_name(&constraint.name),
            AlterTableAction::AddColumn { column, .. } => of_column(column),
            _ => false,
        }),
        Ast::CreateTable(create) => create.elements.iter().any(|element| match element {
            TableElement::Constraint(constraint) => is_name(&constraint.name),
            TableElement::Column(column) => of_column(column),
            TableElement::Like { .. } => false,
        }),
        _ => false,
    }
}

/// A name that ALTER TABLE only mentions.
fn is_dropped(context: &RuleContext<'_>, range: TextRange) -> bool {
    use AlterTableAction::{DropColumn, DropConstraint, ValidateConstraint};
    match context.ast {
        Ast::AlterTable(alter) => alter.commands.iter().any(|command| {
            matches!(command.action, DropColumn { .. } | DropConstraint { .. } | ValidateConstraint { .. })
                && command.range.contains(range)
        }),
        Ast::Rename(rename) => !rename.new_name.range.contains(range),
        _ => false,
    }
}
