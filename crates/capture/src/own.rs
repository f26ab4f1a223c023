//! Statements as texts that can be sent again, and among them those with which a tool notes what has run.

use crate::recording::Parameter;
use pgvet_model::builtin;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::deparse::string;
use pgvet_syntax::lexer::{TokenKind, tokenize};
use pgvet_syntax::source::TextRange;

/// Whether the state of the tool's own tables depends on a statement about them.
pub(crate) fn leaves_state(ast: &Ast) -> bool {
    matches!(
        ast,
        Ast::CreateTable(_)
            | Ast::AlterTable(_)
            | Ast::CreateIndex(_)
            | Ast::Comment(_)
            | Ast::Drop(_)
            | Ast::Truncate(_)
            | Ast::Insert(_)
            | Ast::Update(_)
            | Ast::Delete(_)
    )
}

/// Writes a statement on one line, with its values in place of its parameters. `None` if a value is not known or the
/// statement cannot be written on one line.
pub(crate) fn on_one_line(sql: &str, parameters: &[Parameter]) -> Option<String> {
    let whole = TextRange::new(0, u32::try_from(sql.len()).ok()?);
    let mut line = String::new();
    let mut end = 0;
    for token in tokenize(sql, whole) {
        if token.range.start > end && !line.is_empty() {
            line.push(' ');
        }
        end = token.range.end;
        let text = token.text(sql);
        match token.kind {
            TokenKind::Parameter => line += &value(text, parameters)?,
            TokenKind::String if text.starts_with('\'') && text.len() > 1 => {
                line += &literal(&text[1..text.len() - 1].replace("''", "'"));
            }
            _ if text.contains(is_break) => return None,
            _ => line += text,
        }
    }
    Some(line)
}

/// Writes a statement with its values in place of its parameters. `None` if a value is not known.
pub(crate) fn with_values(sql: &str, parameters: &[Parameter]) -> Option<String> {
    let whole = TextRange::new(0, u32::try_from(sql.len()).ok()?);
    let mut written = sql.to_owned();
    for token in tokenize(sql, whole).iter().rev().filter(|token| token.kind == TokenKind::Parameter) {
        let text = token.text(sql);
        let value = value(text, parameters)?;
        let sent = text.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let oid = sent.and_then(|number| parameters.get(number.checked_sub(1)?)).map_or(0, |sent| sent.oid);
        let cast = builtin::type_by_oid(oid).map_or(String::new(), |found| format!("::{}", found.name));
        written.replace_range(token.range.as_usize(), &format!("{value}{cast}"));
    }
    Some(written)
}

fn value(parameter: &str, parameters: &[Parameter]) -> Option<String> {
    let number: usize = parameter.strip_prefix('$')?.parse().ok()?;
    let sent = parameters.get(number.checked_sub(1)?)?;
    match (&sent.value, sent.length) {
        (Some(value), _) => Some(literal(value)),
        (None, None) => Some("NULL".to_owned()),
        (None, Some(_)) => None,
    }
}

/// A literal without line breaks and other control characters.
fn literal(value: &str) -> String {
    let plain = string(value);
    if !value.contains(is_break) {
        return plain;
    }
    let escape = |one: char| match one {
        '\n' => r"\n".to_owned(),
        '\r' => r"\r".to_owned(),
        '\t' => r"\t".to_owned(),
        _ if is_break(one) => format!("\\u{:04x}", u32::from(one)),
        _ => one.to_string(),
    };
    let escaped: String = plain.trim_start_matches('E').chars().map(escape).collect();
    format!("E{escaped}")
}

fn is_break(one: char) -> bool {
    one.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_written_on_one_line_with_its_values() {
        let parameter =
            |value: Option<&str>| Parameter { oid: 25, length: value.map(str::len), value: value.map(str::to_owned) };
        let sql = "INSERT INTO t (a, b, c) -- applied\n  VALUES ($1, $2,\n 'x\ny\\')";
        assert_eq!(
            on_one_line(sql, &[parameter(Some("it's\n\u{1b}so")), parameter(None)]).unwrap(),
            r"INSERT INTO t (a, b, c) VALUES (E'it''s\n\u001bso', NULL, E'x\ny\\')"
        );
        let unknown = Parameter { oid: 0, length: Some(4), value: None };
        assert_eq!(on_one_line("DELETE FROM t WHERE a = $1", &[unknown]), None);
        assert_eq!(on_one_line("DELETE FROM t WHERE a = $1", &[]), None);
        assert_eq!(on_one_line("DELETE FROM \"a\nb\"", &[]), None);
        let typed = Parameter { oid: 20, length: Some(1), value: Some("7".to_owned()) };
        assert_eq!(
            with_values("UPDATE t\n SET a = $1 WHERE b = '$1'", &[typed]).unwrap(),
            "UPDATE t\n SET a = '7'::int8 WHERE b = '$1'"
        );
    }
}
