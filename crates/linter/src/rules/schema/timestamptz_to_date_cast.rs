//! Days that depend on the session's time zone, in indexes and partition keys.

use crate::ast::{Expr, ExprKind, FunctionBody};
use crate::builtin::type_by_oid;
use crate::catalog::{Catalog, Function, Relation, Volatility};
use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::declare_rule;
use crate::source::TextRange;

declare_rule! {
    /// An index or partition key uses a function that is declared `IMMUTABLE` and makes a day of a `timestamptz`.
    ///
    /// ## Why it matters
    ///
    /// Which day a moment belongs to depends on the `TimeZone` of the session, which is why PostgreSQL refuses the cast itself in an
    /// index. A function around it that claims to be `IMMUTABLE` only hides that: each session writes entries for its own day, and
    /// queries of others do not find them.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY, placed_at timestamptz);
    /// CREATE FUNCTION day(moment timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS 'SELECT moment::date';
    /// CREATE INDEX orders_day ON orders (day(placed_at));
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint PRIMARY KEY, placed_at timestamptz);
    /// CREATE INDEX orders_day ON orders (((placed_at AT TIME ZONE 'UTC')::date));
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// Where the function names a time zone (`AT TIME ZONE`, `timezone()`, `SET timezone`), takes no `timestamptz`, or the index is
    /// gone after the last migration. What PostgreSQL refuses is `statement-will-fail`.
    ///
    /// ## Other linters
    ///
    /// None of the known ones looks into the function.
    "timestamptz-to-date-cast", Schema, Warning,
    { recommended: false }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let (keys, range, table): (Vec<&Expr>, TextRange, Option<&Relation>) = match context.declared {
        Declared::Index(create) => {
            let range = create.name.as_ref().map_or(create.keyword, |name| name.range);
            let table = context.relation.index().and_then(|index| context.catalog.get_relation(index.table));
            let keys = create.elements.iter().map(|element| &element.key).chain(&create.predicate);
            (keys.collect(), range, table.map(|table| &**table))
        }
        Declared::Table(create) => match &create.partition_by {
            Some(by) => (by.keys.iter().collect(), create.name.range(), Some(context.relation)),
            None => return,
        },
        _ => return,
    };
    let function = keys.into_iter().find_map(|key| hiding(context.catalog, key));
    let (Some(function), Some(table)) = (function, table) else { return };
    let message = format!(
        "{} gives another day in every time zone, although it is IMMUTABLE: sessions do not find each other's rows",
        function.display_name()
    );
    let mut finding = reporter.report(range, message).relation(&context.relation_name(table));
    if let Some(at) = &function.defined_at {
        finding = finding.label_in(at.file, at.name, "the function");
    }
    drop(finding.help("name the time zone: (column AT TIME ZONE 'UTC')::date is immutable by itself"));
}

/// A function of the project in the expression that hides the dependency.
fn hiding<'c>(catalog: &'c Catalog, key: &Expr) -> Option<&'c Function> {
    let mut found = None;
    key.walk(&mut |part| {
        if let ExprKind::Call(call) = &part.kind {
            let own = catalog.functions().find(|function| function.name == call.name && hides(function));
            found = found.or(own.map(|function| &**function));
        }
    });
    found
}

fn hides(function: &Function) -> bool {
    let takes_moment =
        function.input_types().any(|sql_type| type_by_oid(sql_type.oid.0).is_some_and(|row| row.name == "timestamptz"));
    let FunctionBody::Source { text, .. } = &*function.body else { return false };
    let text = text.to_ascii_lowercase();
    let makes_day = ["::date", "as date", "date_trunc", "to_char", "date("].iter().any(|word| text.contains(word));
    let names_zone = text.contains("time zone") || text.contains("timezone");
    let sets_zone = function.settings.iter().any(|(name, _)| name == "timezone");
    function.volatility == Volatility::Immutable && takes_moment && makes_day && !names_zone && !sets_zone
}
