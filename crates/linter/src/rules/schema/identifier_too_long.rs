//! Names that PostgreSQL truncates.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::severity::Severity;
use pgvet_syntax::ast::{
    AlterDomainAction, AlterTableAction, Ast, ColumnDef, Constraint, CreateTypeKind, Name, ObjectKind, Query,
    QueryBody, TableElement,
};
use pgvet_syntax::lexer::TokenKind;
use pgvet_syntax::source::TextRange;
use std::fmt::Write as _;

declare_rule! {
    /// A definition with a name of more than 63 bytes, which PostgreSQL truncates.
    ///
    /// ## Why it matters
    ///
    /// The object gets a shorter name than the one in the statement, and PostgreSQL only raises a notice, which is
    /// easily missed. Two names whose first 63 bytes are equal become one: the second definition fails or, with
    /// `IF NOT EXISTS`, is skipped with only a notice. Tools that look for the full name in the catalog do not find it.
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
    /// - a name that refers to an existing object: PostgreSQL truncates it in the same way
    ///
    /// For names of indexes, constraints, statistics, policies, triggers and rules, which queries hardly ever use, the
    /// severity is `info`.
    ///
    /// ## Confidence
    ///
    /// For these names, the confidence is `possible`, and the finding is shown only with `--confidence possible`: `CREATE`,
    /// `ALTER` and `DROP` all truncate the name in the same way. The confidence remains `likely` in the following cases:
    ///
    /// - The migration has another name that PostgreSQL truncates to the same one.
    /// - The migration contains the full name as a string, for example to look it up in the catalog.
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
    if context.effects.fails.is_some() {
        return;
    }
    let mut defined: Option<Defined<'_>> = None;
    for token in &context.statement.tokens {
        let name = match token.kind {
            TokenKind::Word => context.text(token.range),
            TokenKind::QuotedIdentifier => context.text(token.range).trim_matches('"'),
            _ => continue,
        };
        if name.len() <= MAX_BYTES {
            continue;
        }
        let cut = cut(name);
        let Some(use_of_name) = defined.get_or_insert_with(|| Defined::by(context.ast)).at(token.range, cut) else {
            continue;
        };
        let mut message = format!("this name has {} bytes, and PostgreSQL truncates it to `{cut}`", name.len());
        let found = find_elsewhere(context, name, cut);
        if let Some(Elsewhere::OtherName(other)) = found {
            let _ = write!(message, ", as it does with `{other}`");
        }
        let mut finding = reporter.report(token.range, message);
        if use_of_name == Use::Internal {
            finding = finding.severity(Severity::Info);
            if found.is_none() {
                finding = finding.assuming(Assumption::LooksUpFullName { name: name.into() });
            }
        }
        finding.help("choose a name of at most 63 bytes").emit();
    }
}

/// A place where it matters that a name is truncated.
enum Elsewhere<'a> {
    /// Another name that becomes the same one.
    OtherName(&'a str),
    /// The name in full, as a string.
    Text,
}

/// Finds such a place in the migration.
fn find_elsewhere<'a>(context: &RuleContext<'a>, name: &str, cut: &str) -> Option<Elsewhere<'a>> {
    let text = context.migration.file.text.as_str();
    text.match_indices(cut).find_map(|(start, _)| {
        let (before, from) = text.split_at(start);
        let is_part = |part: char| part.is_alphanumeric() || part == '_' || part == '$';
        let end = match before.chars().next_back() {
            Some(quote @ ('"' | '\'')) => from.find(quote)?,
            Some(part) if is_part(part) => return None,
            _ => from.find(|part| !is_part(part)).unwrap_or(from.len()),
        };
        let found = &from[..end];
        if found.len() > MAX_BYTES && found != name {
            return Some(Elsewhere::OtherName(found));
        }
        (found == name && before.ends_with('\'')).then_some(Elsewhere::Text)
    })
}

fn cut(name: &str) -> &str {
    let mut end = MAX_BYTES;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// The users of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Queries,
    /// Only migrations: indexes, constraints, policies and others.
    Internal,
}

/// Whether only migrations use the names of such objects.
fn is_internal(kind: ObjectKind) -> bool {
    use ObjectKind::{Constraint, DomainConstraint, Index, Policy, Rule, Statistics, Trigger};
    matches!(kind, Constraint | DomainConstraint | Index | Policy | Rule | Statistics | Trigger)
}

/// The names that a statement defines.
#[derive(Debug, Default)]
struct Defined<'a> {
    names: Vec<(TextRange, Use)>,
    /// Output columns of a view, whose places are not known.
    aliases: Vec<&'a str>,
}

impl<'a> Defined<'a> {
    fn by(ast: &'a Ast) -> Self {
        let mut found = Self::default();
        match ast {
            Ast::CreateTable(create) => {
                found.name(&create.name.name);
                for element in &create.elements {
                    match element {
                        TableElement::Column(column) => found.column(column),
                        TableElement::Constraint(constraint) => found.constraint(constraint),
                        TableElement::Like { .. } => {}
                    }
                }
            }
            Ast::AlterTable(alter) => {
                for command in &alter.commands {
                    match &command.action {
                        AlterTableAction::AddColumn { column, .. } => found.column(column),
                        AlterTableAction::AddConstraint(constraint) => found.constraint(constraint),
                        _ => {}
                    }
                }
            }
            Ast::CreateIndex(create) => found.internal(create.name.as_ref()),
            Ast::CreateStatistics(create) => found.internal(create.name.as_ref().map(|name| &name.name)),
            Ast::CreateView(create) => {
                found.name(&create.name.name);
                found.all(&create.columns);
                found.outputs(&create.query);
            }
            Ast::CreateTableAs(create) => {
                found.name(&create.into.name.name);
                found.all(&create.into.columns);
                create.query.iter().for_each(|query| found.outputs(query));
            }
            Ast::CreateSequence(create) => found.name(&create.name.name),
            Ast::CreateType(create) => {
                found.name(&create.name.name);
                if let CreateTypeKind::Composite(columns) = &create.kind {
                    columns.iter().for_each(|column| found.column(column));
                }
            }
            Ast::CreateDomain(create) => {
                found.name(&create.name.name);
                create.constraints.iter().for_each(|constraint| found.constraint(constraint));
            }
            Ast::AlterDomain(alter) => {
                if let AlterDomainAction::AddConstraint(constraint) = &alter.action {
                    found.constraint(constraint);
                }
            }
            Ast::CreateFunction(create) => {
                found.name(&create.name.name);
                create.parameters.iter().filter_map(|parameter| parameter.name.as_ref()).for_each(|it| found.name(it));
            }
            Ast::CreateTrigger(create) => found.internal(Some(&create.name)),
            Ast::CreateRule(create) => found.internal(Some(&create.name)),
            Ast::CreatePolicy(create) => found.internal(Some(&create.name)),
            Ast::CreatePublication(create) => found.name(&create.name),
            Ast::CreateSchema(create) => create.name.iter().for_each(|name| found.name(name)),
            Ast::Rename(rename) if is_internal(rename.kind) => found.internal(Some(&rename.new_name)),
            Ast::Rename(rename) => found.name(&rename.new_name),
            _ => {}
        }
        found
    }

    fn name(&mut self, name: &Name) {
        self.names.push((name.range, Use::Queries));
    }

    fn all(&mut self, names: &[Name]) {
        names.iter().for_each(|name| self.name(name));
    }

    fn internal(&mut self, name: Option<&Name>) {
        self.names.extend(name.map(|name| (name.range, Use::Internal)));
    }

    fn column(&mut self, column: &ColumnDef) {
        self.name(&column.name);
        column.constraints.iter().for_each(|constraint| self.constraint(constraint));
    }

    fn constraint(&mut self, constraint: &Constraint) {
        self.internal(constraint.name.as_ref());
    }

    fn outputs(&mut self, query: &'a Query) {
        if let QueryBody::Select(select) = &query.body {
            self.aliases.extend(select.targets.iter().filter_map(|target| target.alias.as_deref()));
        }
    }

    /// How the truncated name at this place is used, if it is defined there.
    fn at(&self, range: TextRange, cut: &str) -> Option<Use> {
        let given = self.names.iter().find(|(place, _)| place.contains(range)).map(|(_, used)| *used);
        given.or_else(|| self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(cut)).then_some(Use::Queries))
    }
}
