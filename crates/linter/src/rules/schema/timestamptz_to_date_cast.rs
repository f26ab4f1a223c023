//! Days that depend on the session's time zone, in indexes and partition keys.

use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::declare_rule;
use pgvet_model::builtin::{Volatility, type_by_oid};
use pgvet_model::catalog::{Function, Relation};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::{Expr, ExprKind, FunctionBody};
use pgvet_syntax::lexer::{Token, TokenKind, tokenize};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// An index or partition key uses an `IMMUTABLE` function that converts a `timestamptz` to a date.
    ///
    /// ## Why it matters
    ///
    /// Queries miss rows if they run with another `TimeZone` than the session that wrote the index entries. The date of
    /// a moment depends on the `TimeZone` of the session. PostgreSQL therefore refuses a direct cast from `timestamptz`
    /// to `date` in an index. A function that contains the cast and is declared `IMMUTABLE` only hides this problem.
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
    /// - a function that names a time zone (`AT TIME ZONE`, `timezone()`, `date_trunc` with a third argument,
    ///   `SET timezone`)
    /// - a function that truncates to minutes or a smaller unit, or has no `timestamptz` argument
    /// - an index that a later migration drops
    /// - expressions that PostgreSQL refuses, which `statement-will-fail` reports
    ///
    /// ## Other linters
    ///
    /// No other known linter checks what the function does.
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
    let function = keys.into_iter().find_map(|key| hiding(context, key));
    let (Some(function), Some(table)) = (function, table) else { return };
    let use_of = match context.declared {
        Declared::Index(_) => "use this index on",
        _ => "use the partition key",
    };
    let message = format!(
        "queries that {use_of} {} can miss rows written with another TimeZone: the function is \
         declared IMMUTABLE, but its result depends on the session's TimeZone",
        function.display_name()
    );
    let mut finding = reporter.report(range, message).relation(&RelationName::existing(table));
    if let Some(at) = &function.defined_at {
        finding = finding.label_in(at.file, at.name, "the function");
    }
    finding.help("name the time zone in the function: (column AT TIME ZONE 'UTC')::date is immutable").emit();
}

/// A function of the project in the expression that hides the dependency.
fn hiding<'c>(context: &DeclarationContext<'c>, key: &Expr) -> Option<&'c Function> {
    let mut found = None;
    key.walk(&mut |part| {
        if let (ExprKind::Call(call), None) = (&part.kind, found) {
            let called = context.catalog.functions_called(call, context.search_path);
            let called = called.into_iter().filter_map(|oid| context.catalog.get_function(oid));
            found = called.map(|function| &**function).find(|function| hides(function));
        }
    });
    found
}

fn hides(function: &Function) -> bool {
    let takes_moment =
        function.input_types().any(|sql_type| type_by_oid(sql_type.oid.0).is_some_and(|row| row.name == "timestamptz"));
    let FunctionBody::Source { text, .. } = &*function.body else { return false };
    let sets_zone = function.settings.iter().any(|(name, _)| name == "timezone");
    function.volatility == Volatility::Immutable && takes_moment && !sets_zone && makes_day(text)
}

/// Whether the code converts a moment to a day without naming a time zone.
fn makes_day(text: &str) -> bool {
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    let word = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_keyword(text, word));
    let mark = |at: usize, mark: u8| tokens.get(at).is_some_and(|token| token.is_punctuation(mark));
    let names_zone = |at: usize| (word(at, "TIME") && word(at + 1, "ZONE")) || word(at, "TIMEZONE");
    let makes_day = |at: usize| {
        let is_cast = tokens[at].kind == TokenKind::Compound && tokens[at].text(text) == "::" && word(at + 1, "DATE");
        let is_call = mark(at + 1, b'(') && (word(at, "DATE") || word(at, "TO_CHAR"));
        let is_truncated = mark(at + 1, b'(') && word(at, "DATE_TRUNC") && depends_on_zone(text, &tokens[at + 2..]);
        is_cast || is_call || is_truncated || (word(at, "AS") && word(at + 1, "DATE") && mark(at + 2, b')'))
    };
    !(0..tokens.len()).any(names_zone) && (0..tokens.len()).any(makes_day)
}

/// The arguments of `date_trunc`: a third one is a time zone, and minutes are the same in every one.
fn depends_on_zone(text: &str, arguments: &[Token]) -> bool {
    const SAME_EVERYWHERE: [&str; 4] = ["microsecond", "millisecond", "second", "minute"];
    let is_fine = arguments.first().filter(|field| field.kind == TokenKind::String).is_some_and(|field| {
        let field = field.text(text).trim_matches('\'').to_ascii_lowercase();
        SAME_EVERYWHERE.iter().any(|known| field.strip_suffix('s').unwrap_or(&field) == *known)
    });
    let (mut depth, mut commas) = (0_u32, 0);
    for token in arguments {
        match token.kind {
            TokenKind::Punctuation(b'(' | b'[') => depth += 1,
            TokenKind::Punctuation(b')') if depth == 0 => break,
            TokenKind::Punctuation(b')' | b']') => depth = depth.saturating_sub(1),
            TokenKind::Punctuation(b',') if depth == 0 => commas += 1,
            _ => {}
        }
    }
    !is_fine && commas < 2
}
