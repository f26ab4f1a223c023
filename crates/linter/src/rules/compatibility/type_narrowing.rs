//! Type changes after which a column can hold fewer values.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead, is_column_made_here};
use crate::rules::deployment::retyped::{Retyped, retyped};
use pgvet_model::builtin::type_by_oid;
use pgvet_model::catalog::SqlType;
use pgvet_model::effect::{FewRows, Using};
use pgvet_model::execute::ask_about_types;
use pgvet_model::expression::precision_and_scale;

declare_rule! {
    /// Changing the type of a column of an existing table to a type that cannot hold all values of the old type.
    ///
    /// ## Why it matters
    ///
    /// The migration fails at the first value that does not fit, or silently changes the values. For example, numbers
    /// are rounded, the time of day is cut off, or points in time become local times without a time zone. Rounding can
    /// also fail: 99.99 does not fit into `numeric(3,1)`, because it is rounded to 100.0. `USING` can convert existing
    /// values, and `USING left(name, 100)` or `USING name::varchar(100)` cuts those that are too long without an error. However, deployed code continues to write values of the old type, and its statements fail after the
    /// commit if a value does not fit.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, name varchar(200));
    /// -- migration:
    /// ALTER TABLE users ALTER COLUMN name TYPE varchar(100);
    /// ```
    ///
    /// Use instead:
    ///
    /// First deploy code that writes only values that the new type can hold. Then add a CHECK constraint that rejects
    /// all other new values. Correct the existing values, and change the type in a later migration. This example adds
    /// the constraint:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, name varchar(200));
    /// -- migration:
    /// ALTER TABLE users ADD CONSTRAINT users_name_check CHECK (char_length(name) <= 100) NOT VALID;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - tables and columns that the same migration created
    /// - changes from or to a type that pgvet does not know
    /// - the rewrite that the change causes, which `type-change-rewrites-table` reports
    /// - labels that a new enum lacks, which `enum-value-renamed-or-removed` reports
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible` if the values are texts, and the same migration adds a foreign key from the column to a
    /// column of the new type: values of other forms would refer to no row.
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report every type change. pgvet distinguishes between changes that cost time and changes that
    /// lose values.
    "type-narrowing", Compatibility, Warning,
    { sources: &["squawk/changing-column-type", "pgls/changingColumnType", "migrationpilot/MP044"] }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    for change in retyped(context) {
        let Some(loss) = loss(change.from, change.to) else { continue };
        if is_column_made_here(context, change.table, change.column) {
            continue;
        }
        let path = context.session.settings.search_path();
        let (from, to) = ask_about_types(context.before, path, context.target, |types| {
            (types.format_type(change.from), types.format_type(change.to))
        });
        let message = format!(
            "changing `{}.{}` from {from} to {to} {}",
            change.table.name,
            change.column,
            loss.consequence(Old::of(&change, loss), &to)
        );
        let help = loss.help(Old::of(&change, loss));
        let refers = loss == Loss::OtherText;
        let referring = refers.then(|| refers_from_now_on(context, &change)).flatten();
        let is_empty = change.table.few == Some(FewRows::FoundEmpty);
        let unwritten = is_empty.then(|| Assumption::WrittenThoughEmpty { table: change.table.name.clone() });
        let finding = reporter.report(change.range, message).relation(change.table).help(help);
        finding.assuming(referring).assuming(unwritten).emit();
    }
}

/// The evidence that all old values are valid: a foreign key that the migration adds allows only the values of another
/// column, which has the new type.
fn refers_from_now_on(context: &RuleContext<'_>, change: &Retyped<'_>) -> Option<Assumption> {
    let before = context.before.get_relation(change.table.oid)?;
    let end = ahead(context, &change.table.name, Until::EndOfMigration);
    let keys =
        end.get_relation(change.table.oid)?.constraints.iter().filter(|constraint| {
            constraint.valid && constraint.enforced && before.constraint(&constraint.name).is_none()
        });
    let key = keys.filter_map(|constraint| constraint.foreign_key()).find(|key| key.columns.contains(change.column))?;
    let table = end.get_relation(key.referenced)?.name.clone();
    Some(Assumption::InvalidThoughReferring { column: change.column.clone(), table })
}

/// What the migration does with old values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Old {
    /// Nothing but the conversion.
    Converted,
    /// An UPDATE before.
    Updated,
    /// USING computes them.
    Computed,
    /// USING cuts those that are too long.
    Cut,
}

impl Old {
    fn of(change: &Retyped<'_>, loss: Loss) -> Self {
        match change.using {
            _ if change.cuts && loss == Loss::Length => Self::Cut,
            Using::Cast | Using::Computed => Self::Computed,
            Using::Absent if change.updated => Self::Updated,
            Using::Absent => Self::Converted,
        }
    }
}

/// What the new type cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    Range,
    Length,
    Fraction,
    Scale,
    TimeZone,
    TimeOfDay,
    OtherText,
}

impl Loss {
    /// What a value loses by the conversion, or why a value does not fit.
    fn what(self, to: &str) -> String {
        match self {
            Self::Range => "out of range".to_owned(),
            Self::Length => "too long".to_owned(),
            Self::OtherText => format!("not a valid {to}"),
            Self::Fraction => "digits after the decimal point".to_owned(),
            Self::Scale => "digits beyond the new scale".to_owned(),
            Self::TimeZone => "local times".to_owned(),
            Self::TimeOfDay => "the time of day".to_owned(),
        }
    }

    /// What happens to existing values, unless USING says so, and to those that deployed code writes.
    fn consequence(self, old: Old, to: &str) -> String {
        let what = self.what(to);
        let using = matches!(old, Old::Computed | Old::Cut);
        match (self, using) {
            (Self::Length, true) if old == Old::Cut => format!(
                "cuts existing values that are {what} without an error, and makes deployed code fail if it writes a value \
                 that is {what}"
            ),
            (Self::Range | Self::Length | Self::OtherText, false) => {
                let value = if old == Old::Updated {
                    "the migration's UPDATE has left a value that"
                } else {
                    "an existing value"
                };
                format!("fails if {value} is {what}, and makes deployed code fail if it writes a value that is {what}")
            }
            (Self::Range | Self::Length | Self::OtherText, true) => {
                format!(
                    "makes deployed code fail if it writes a value that is {what}: USING converts only existing values"
                )
            }
            (Self::Fraction | Self::Scale, false) => {
                format!(
                    "drops {what}: existing and new values are rounded, and rejected if the rounded value is out \
                         of range"
                )
            }
            (Self::Fraction | Self::Scale, true) => {
                format!(
                    "drops {what}: USING converts existing values, but new values are rounded, and rejected if the \
                     rounded value is out of range"
                )
            }
            (Self::TimeOfDay, false) => format!("drops {what}: existing and new values lose it without an error"),
            (Self::TimeOfDay, true) => {
                format!("drops {what}: USING converts existing values, but new values lose it without an error")
            }
            (Self::TimeZone, false) => format!(
                "stores {what}: the same moment becomes a different value if the session that converts or writes it \
                 has another TimeZone"
            ),
            (Self::TimeZone, true) => format!(
                "stores {what}: USING converts existing values, but the same moment becomes a different new value if \
                 the session that writes it has another TimeZone"
            ),
        }
    }

    /// The next step.
    fn help(self, old: Old) -> &'static str {
        match self {
            Self::Length if old == Old::Cut => {
                "first deploy code that writes only values that fit the new type, then find the values that USING would \
                 cut and correct them, then run this migration"
            }
            Self::Range | Self::Length | Self::OtherText if old != Old::Converted => {
                "first deploy code that writes only values that fit the new type, then run this migration"
            }
            Self::Range | Self::Length | Self::OtherText => {
                "first deploy code that writes only values that fit the new type, then correct the existing values, then \
                 run this migration"
            }
            Self::Fraction | Self::Scale => "keep the type, or first deploy code that no longer writes these digits",
            Self::TimeZone => {
                "keep the type, or first make sure that this migration and all deployed code use the same time zone"
            }
            Self::TimeOfDay => "keep the type, or first deploy code that no longer needs the time of day",
        }
    }
}

pub(super) fn loss(from: SqlType, to: SqlType) -> Option<Loss> {
    let name = |sql_type: SqlType| type_by_oid(sql_type.oid.0).map(|row| row.name);
    let (old, new) = (name(from)?, name(to)?);
    let integer = |name: &str| ["int2", "int4", "int8"].iter().position(|known| *known == name);
    let is_text = |name: &str| matches!(name, "text" | "varchar" | "bpchar");
    match (old, new) {
        _ if integer(old).is_some() && integer(new).is_some() => (integer(new) < integer(old)).then_some(Loss::Range),
        ("numeric" | "float4" | "float8", _) if integer(new).is_some() => Some(Loss::Fraction),
        ("float8", "float4") => Some(Loss::Range),
        ("numeric", "numeric") => numeric_loss(from.typmod, to.typmod),
        ("timestamptz", "timestamp") => Some(Loss::TimeZone),
        ("timestamptz" | "timestamp", "date") => Some(Loss::TimeOfDay),
        _ if is_text(old) && is_text(new) => length_loss(from.typmod, to.typmod),
        _ if is_text(old)
            && (integer(new).is_some()
                || matches!(new, "uuid" | "date" | "timestamptz" | "timestamp" | "bool" | "numeric" | "inet")) =>
        {
            Some(Loss::OtherText)
        }
        _ => None,
    }
}

/// A modifier of -1 is no limit.
fn length_loss(from: i32, to: i32) -> Option<Loss> {
    (to >= 0 && (from < 0 || to < from)).then_some(Loss::Length)
}

/// Digits before the decimal point that do not fit are an error; those after it are rounded.
fn numeric_loss(from: i32, to: i32) -> Option<Loss> {
    let parts = |typmod: i32| (typmod >= 0).then(|| precision_and_scale(typmod));
    match (parts(from), parts(to)) {
        (_, None) => None,
        (None, Some(_)) => Some(Loss::Range),
        (Some((precision, scale)), Some((new_precision, new_scale))) => {
            if new_precision - new_scale < precision - scale {
                Some(Loss::Range)
            } else {
                (new_scale < scale).then_some(Loss::Scale)
            }
        }
    }
}
