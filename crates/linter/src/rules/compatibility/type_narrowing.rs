//! Type changes after which a column holds less.

use super::retyped::retyped;
use crate::builtin::type_by_oid;
use crate::catalog::SqlType;
use crate::execute::ask_about_types;
use crate::expression::precision_and_scale;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::around::is_column_made_here;

declare_rule! {
    /// A column of an existing table gets a type that cannot hold all values of the old one.
    ///
    /// ## Why it matters
    ///
    /// The migration fails on the first value that does not fit, or silently changes it: fractions are rounded, and the time of day
    /// and the time zone are dropped. `USING` can say what becomes of old values, but the code that is running goes on to write
    /// such values, and its statements fail from the commit on.
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
    /// release code that writes no such values, and a check that shows the old ones before anything is changed.
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
    /// For tables and columns that the same migration made, and where a type is not known. That the change rewrites the table is
    /// `type-change-rewrites-table`; what a new enum leaves out is `enum-value-renamed-or-removed`.
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report every type change; pgvet tells apart what it costs and what it may lose.
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
            "`{}` of `{}` loses {} from {from} to {to}: {}",
            change.column,
            change.table.name,
            loss.what(),
            loss.consequence(change.using, change.updated)
        );
        let help = if change.updated {
            "release code that writes no such values before the type changes"
        } else {
            "look for such values first, and release code that writes none before the type changes"
        };
        reporter.report(change.range, message).relation(change.table).help(help).emit();
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
    fn what(self) -> &'static str {
        match self {
            Self::Range => "the larger numbers",
            Self::Length => "the longer values",
            Self::Fraction => "digits behind the point",
            Self::Scale => "the last digits",
            Self::TimeZone => "the time zone",
            Self::TimeOfDay => "the time of day",
            Self::OtherText => "all other text",
        }
    }

    /// What becomes of old values, unless USING says so, and of those that running code writes.
    fn consequence(self, using: bool, updated: bool) -> &'static str {
        match (self, using) {
            (Self::Range | Self::Length | Self::OtherText, false) if updated => {
                "running code fails on new ones that do not fit, and the migration on those that it has not changed before"
            }
            (Self::Range | Self::Length | Self::OtherText, false) => {
                "the migration fails on old values that do not fit, and running code on new ones"
            }
            (Self::Range | Self::Length | Self::OtherText, true) => {
                "USING decides about old values, and running code fails on new ones that do not fit"
            }
            (Self::Fraction | Self::Scale, false) => {
                "rounded without an error, in old values and in those of running code"
            }
            (Self::Fraction | Self::Scale, true) => {
                "USING decides about old values, and those of running code are rounded without an error"
            }
            (Self::TimeOfDay, false) => "lost without an error, in old values and in those of running code",
            (Self::TimeOfDay, true) => {
                "USING decides about old values, and those of running code lose it without an error"
            }
            (Self::TimeZone, false) => {
                "old values are taken in the session's time zone, and running code goes on to write moments in others"
            }
            (Self::TimeZone, true) => {
                "USING decides about old values, and running code goes on to write moments in the time zones of its sessions"
            }
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

/// Digits before the point that do not fit are an error, those behind it are rounded.
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
