//! PostgreSQL's functions on text, applied to texts that may have holes.

use super::value::{MAX_TEXT, Value, part};
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::plpgsql::{HOLE, Specifier};

/// The result of a function of PostgreSQL that makes text; `None` where nothing is known.
pub(super) fn call(name: &str, arguments: Vec<Option<Value>>) -> Option<Value> {
    match (name, arguments.as_slice()) {
        ("format", _) => return format(&arguments),
        ("concat", _) => {
            return Some(Value::Text(arguments.into_iter().map(|one| part(one).unwrap_or_default()).collect()));
        }
        ("concat_ws", [Some(separator), values @ ..]) => {
            let separator = separator.as_text()?;
            let parts: Vec<String> = values.iter().cloned().filter_map(part).collect();
            return Some(Value::Text(parts.join(separator)));
        }
        ("quote_ident", [value]) => {
            return Some(part(value.clone()).map_or(Value::Null, |text| Value::Text(quote_identifier(&text))));
        }
        ("quote_literal", [value]) => {
            return Some(part(value.clone()).map_or(Value::Null, |text| Value::Text(quote_literal(&text))));
        }
        ("quote_nullable", [value]) => return Some(Value::Text(nullable(value.clone()))),
        ("string_to_array", [Some(text), Some(separator)]) => {
            let (text, separator) = (text.as_text()?, separator.as_text().filter(|separator| !separator.is_empty())?);
            return Some(Value::List(text.split(separator).map(|one| Some(Value::Text(one.to_owned()))).collect()));
        }
        _ => {}
    }
    if arguments.contains(&Some(Value::Null)) && STRICT.contains(&name) {
        return Some(Value::Null);
    }
    match (name, arguments.as_slice()) {
        ("lower", [Some(Value::Text(text))]) => Some(Value::Text(map_known(text, str::to_lowercase))),
        ("upper", [Some(Value::Text(text))]) => Some(Value::Text(map_known(text, str::to_uppercase))),
        ("btrim", [Some(text)]) => Some(Value::Text(text.as_text()?.trim_matches(' ').to_owned())),
        ("ltrim", [Some(text)]) => Some(Value::Text(text.as_text()?.trim_start_matches(' ').to_owned())),
        ("rtrim", [Some(text)]) => Some(Value::Text(text.as_text()?.trim_end_matches(' ').to_owned())),
        ("replace", [Some(text), Some(from), Some(to)]) if !from.as_text()?.is_empty() => {
            let (text, from, to) = (text.as_text()?, from.as_text()?, to.as_text()?);
            let is_long = text.matches(from).count() * to.len() > MAX_TEXT;
            Some(if is_long { Value::Something } else { Value::Text(text.replace(from, to)) })
        }
        _ if STRICT.contains(&name) && arguments.iter().all(|one| is_something(one.as_ref())) => Some(Value::Something),
        _ => None,
    }
}

/// Functions that yield NULL for a NULL argument, and only then.
const STRICT: &[&str] = &[
    "abs",
    "btrim",
    "char_length",
    "date_part",
    "date_trunc",
    "extract",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "replace",
    "round",
    "rpad",
    "rtrim",
    "split_part",
    "substr",
    "substring",
    "to_char",
    "to_date",
    "to_timestamp",
    "translate",
    "upper",
];

fn is_something(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value.is_null() == Some(false))
}

/// Applies `change` to the text between the holes.
fn map_known(text: &str, change: impl Fn(&str) -> String) -> String {
    text.split(HOLE).map(change).collect::<Vec<_>>().join(HOLE)
}

fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

fn nullable(value: Option<Value>) -> String {
    part(value).map_or_else(|| "NULL".to_owned(), |text| quote_literal(&text))
}

/// `format(template, ...)` as PostgreSQL 18 `text_format` in `src/backend/utils/adt/varlena.c` reads the template.
fn format(arguments: &[Option<Value>]) -> Option<Value> {
    let (template, values) = arguments.split_first()?;
    let mut rest = match template {
        Some(Value::Null) => return Some(Value::Null),
        template => template.as_ref()?.as_text()?,
    };
    let (mut text, mut next) = (String::new(), 0);
    while let Some(percent) = rest.find('%') {
        text.push_str(&rest[..percent]);
        let specifier = Specifier::read(&rest[percent + 1..])?;
        rest = &rest[percent + 1 + specifier.length..];
        if specifier.kind == '%' {
            text.push('%');
            continue;
        }
        next = specifier.argument.unwrap_or(next);
        let value = values.get(next)?.clone().filter(|_| !specifier.padded);
        match specifier.kind {
            'I' => text.push_str(&quote_identifier(&part(value)?)),
            'L' => text.push_str(&nullable(value)),
            _ => text.push_str(&part(value).unwrap_or_default()),
        }
        // A template may name an argument very often.
        if text.len() > MAX_TEXT {
            return Some(Value::Something);
        }
        next += 1;
    }
    text.push_str(rest);
    Some(Value::Text(text))
}

/// The elements of `{a,b}`; `None` for arrays that quote or nest.
pub(super) fn array(text: &str) -> Option<Value> {
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    if inside.contains(['{', '"', '\\']) {
        return None;
    }
    let element = |text: &str| match text.trim() {
        text if text.eq_ignore_ascii_case("null") => Some(Value::Null),
        text => Some(Value::Text(text.to_owned())),
    };
    let list = if inside.trim().is_empty() { Vec::new() } else { inside.split(',').map(element).collect() };
    Some(Value::List(list))
}
