//! Columns and tables that are dropped while similar ones are added, as tools generate it that compare two schemas.

use crate::assumption::Assumption;
use crate::report::{Finding, Reporter};
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead, earlier};
use crate::rules::deployment::{dropped_column, dropped_relation};
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{Column, Oid, Relation};
use pgvet_model::effect::{RelationName, RemovedObject};
use pgvet_syntax::ast::{Ast, Expr, ExprKind, Part};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

declare_rule! {
    /// A dropped column or table that was probably meant to be renamed: the same deployment adds a column of the same
    /// type, or a table with the same columns.
    ///
    /// ## Why it matters
    ///
    /// In production, all values of the column are lost, although tests pass. Tools that compare two schemas cannot see
    /// that a column was renamed. They generate `DROP COLUMN` and `ADD COLUMN` instead of a rename.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text);
    /// -- migration:
    /// ALTER TABLE users DROP COLUMN name, ADD COLUMN full_name text;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text);
    /// -- migration:
    /// ALTER TABLE users RENAME COLUMN name TO full_name;
    /// ```
    ///
    /// A rename keeps the values. It still breaks deployed code: see `rename-column`.
    ///
    /// ## When it is not reported
    ///
    /// - a new column or table that the migration fills, or an old column whose values the migration copies elsewhere
    /// - a new column that is a generated or identity column
    /// - several new or several dropped columns that match equally well
    /// - tables and columns that the same migration created
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible`, because the new column or table may be meant for something else, and the finding
    /// is shown only with `--confidence possible`.
    ///
    /// ## Incidents
    ///
    /// - [supabase/cli #3920](https://github.com/supabase/cli/pull/3920): a generated migration dropped a column and
    ///   added a new one instead of renaming it, which "caused a major system failure"
    /// - [supabase/cli #1721](https://github.com/supabase/cli/issues/1721): a generated migration dropped and created a
    ///   table instead of renaming it
    "looks-like-rename", Data, Error,
    { needs_commit: true }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let written = dropped_relation::Written::of(context);
    for removal in &context.effects.removals {
        match &removal.object {
            RemovedObject::Column { .. } => {
                if let Some((table, column)) = dropped_column::lost(context, removal) {
                    check_column(context, reporter, dropped_column::place(context, removal.range), table, column);
                }
            }
            RemovedObject::Relation(_) => {
                if let Some((table, dropped_relation::Loss::Gone)) = dropped_relation::lost(context, removal) {
                    check_table(context, reporter, written.place(context, removal.range, table), table);
                }
            }
            _ => {}
        }
    }
}

/// Whether names say that one thing takes the place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    None,
    Words,
}

fn check_column(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    range: TextRange,
    table: &RelationName,
    column: &str,
) {
    let Some(before) = context.before.get_relation(table.oid) else { return };
    let Some(old) = before.column(column).filter(|_| !is_read(context, column)) else { return };
    let end = ahead(context, &table.name, Until::EndOfMigration);
    let Some(after) = end.get_relation(table.oid) else { return };
    let added: Vec<&Column> = after.columns.iter().filter(|new| is_unfilled_addition(context, before, new)).collect();
    let gone: Vec<&Column> = before.columns.iter().filter(|old| after.column(&old.name).is_none()).collect();
    let fitting = added.iter().filter(|new| has_same_type(old, new));
    let Some((new, _)) = only_best(fitting.map(|new| (*new, likeness(column, &new.name)))) else { return };
    let rivals = gone.iter().filter(|other| has_same_type(other, new));
    let meant = only_best(rivals.map(|other| (*other, likeness(&other.name, &new.name))));
    if meant.is_none_or(|(meant, _)| meant.name != old.name) {
        return;
    }
    let message = format!(
        "dropping `{column}` of `{}` loses its values, and nothing copies them to the new column `{}` of the same type",
        table.name, new.name
    );
    let rename = format!(
        "ALTER TABLE {} RENAME COLUMN {} TO {}",
        sql_name(context, table),
        identifier(column),
        identifier(&new.name)
    );
    let help = format!("if this is meant as a rename, run `{rename}` instead of dropping and adding the column");
    let finding = reporter.report(range, message).relation(table).help(help);
    assuming(finding, column, &new.name).emit();
}

fn check_table(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, range: TextRange, table: &RelationName) {
    let Some(old) = context.before.get_relation(table.oid).filter(|old| old.known && !old.columns.is_empty()) else {
        return;
    };
    // A statement that creates a table with the same columns names all of them.
    let Some(longest) = old.columns.iter().map(|column| &column.name).max_by_key(|name| name.len()) else { return };
    let end = ahead(context, longest, Until::EndOfMigration);
    let is_successor = |new: &&Arc<Relation>| {
        let is_new = context.before.get_relation(new.oid).is_none() || new.birth.deployment == context.deployment();
        let is_empty = new.kind == old.kind && new.known && !new.birth.filled;
        is_new && is_empty && new.schema == old.schema && has_same_columns(old, new)
    };
    let new = end.relations().filter(is_successor).map(|new| (new, likeness(&old.name, &new.name)));
    let Some((new, _)) = only_best(new) else { return };
    let message = format!(
        "dropping table `{}` deletes its rows, and nothing copies them to the new table `{}`, which has the same columns",
        table.name, new.name
    );
    let rename = format!("ALTER TABLE {} RENAME TO {}", sql_name(context, table), identifier(&new.name));
    let help = format!("if this is meant as a rename, run `{rename}` instead of dropping and creating the table");
    let finding = reporter.report(range, message).relation(table).help(help);
    assuming(finding, &old.name, &new.name).emit();
}

fn assuming<'r, 'a>(finding: Finding<'r, 'a>, old: &str, new: &str) -> Finding<'r, 'a> {
    finding.assuming(Assumption::TakesThePlace { old: SmolStr::new(old), new: SmolStr::new(new) })
}

/// Whether an earlier statement of the migration writes rows and reads a column of this name, so that it may keep the
/// values elsewhere.
fn is_read(context: &RuleContext<'_>, column: &str) -> bool {
    let writes = |ast: &&Ast| matches!(ast, Ast::Update(_) | Ast::Insert(_) | Ast::Merge(_) | Ast::CreateTableAs(_));
    earlier(context).filter(writes).any(|ast| {
        let mut is_read = false;
        ast.visit(&mut |part| {
            if let Part::Expr(Expr { kind: ExprKind::Column(path), .. }) = part {
                is_read |= path.last().is_some_and(|name| name == column);
            }
        });
        is_read
    })
}

/// Whether the deployment adds the column, with the same value in all old rows.
fn is_unfilled_addition(context: &RuleContext<'_>, before: &Relation, new: &Column) -> bool {
    let is_new =
        before.column(&new.name).is_none_or(|known| known.added_in.is_some() && known.added_in == context.deployment());
    is_new && new.held.is_some() && new.generated.is_none() && new.identity.is_none()
}

/// Whether two columns have one type, whatever its length is.
fn has_same_type(one: &Column, other: &Column) -> bool {
    one.sql_type.oid == other.sql_type.oid && one.sql_type.oid != Oid::INVALID
}

fn has_same_columns(old: &Relation, new: &Relation) -> bool {
    let has = |column: &Column| new.column(&column.name).is_some_and(|other| has_same_type(column, other));
    old.columns.len() == new.columns.len() && old.columns.iter().all(has)
}

/// The one with the best likeness, if no other has the same.
fn only_best<T>(candidates: impl Iterator<Item = (T, Likeness)>) -> Option<(T, Likeness)> {
    let mut best: Vec<(T, Likeness)> = Vec::new();
    for candidate in candidates {
        if best.first().is_some_and(|known| known.1 < candidate.1) {
            best.clear();
        }
        if best.first().is_none_or(|known| known.1 == candidate.1) {
            best.push(candidate);
        }
    }
    if best.len() == 1 { best.pop() } else { None }
}

/// Compares two names: whether one has all words of the other, or they are the same but for case and underscores.
fn likeness(old: &str, new: &str) -> Likeness {
    let (old, new) = (words(old), words(new));
    let holds_all = |all: &[String], some: &[String]| some.iter().all(|word| all.contains(word));
    let is_like = !old.is_empty()
        && !new.is_empty()
        && (holds_all(&old, &new) || holds_all(&new, &old) || old.concat() == new.concat());
    if is_like { Likeness::Words } else { Likeness::None }
}

/// `full_name`, `fullName` and `full_names` are `full` and `name`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        let begins = character.is_uppercase() && was_lower;
        if !character.is_alphanumeric() || begins {
            words.push(String::new());
        }
        if character.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(character.to_lowercase()));
        }
        was_lower = character.is_lowercase() || character.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    // A table is often renamed to its plural.
    let singular = |word: String| word.strip_suffix('s').map_or_else(|| word.clone(), str::to_owned);
    words.into_iter().map(singular).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_thing_share_their_words() {
        for (old, new, is_like) in [
            ("name", "full_name", true),
            ("fullName", "full_name", true),
            ("fullname", "full_name", true),
            ("email_address", "email", true),
            ("order_line", "order_lines", true),
            ("customer_id", "client_id", false),
            ("note", "description", false),
        ] {
            assert_eq!(likeness(old, new) == Likeness::Words, is_like, "{old} {new}");
        }
    }
}
