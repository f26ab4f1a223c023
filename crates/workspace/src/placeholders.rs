//! Values of placeholders put into a text, and the mapping of places in the result to places in the file.

use crate::layout::play_escapes;
use pgvet_syntax::lexer::{TokenKind, tokenize};
use pgvet_syntax::source::TextRange;
use std::collections::BTreeMap;

/// Where values were put.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Substitution {
    /// In order: the range of a value in the new text, and that of its placeholder in the file.
    values: Vec<(TextRange, TextRange)>,
}

impl Substitution {
    /// Returns the range of the file for a range of the new text. A part of a value maps to the whole placeholder.
    pub(crate) fn original(&self, range: TextRange) -> TextRange {
        let start = self.map(range.start, |placeholder| placeholder.start);
        let end = if range.is_empty() { start } else { self.map(range.end, |placeholder| placeholder.end) };
        TextRange::new(start, end.max(start))
    }

    /// Whether a range of the new text holds a part of a value.
    pub(crate) fn holds_value(&self, range: TextRange) -> bool {
        self.values.iter().any(|(value, _)| value.start < range.end && range.start < value.end)
    }

    fn map(&self, offset: u32, inside: impl Fn(TextRange) -> u32) -> u32 {
        let after = self.values.partition_point(|(value, _)| value.start <= offset);
        let Some((value, placeholder)) = after.checked_sub(1).map(|at| self.values[at]) else { return offset };
        if offset == value.start && !value.is_empty() {
            placeholder.start
        } else if offset < value.end {
            inside(placeholder)
        } else {
            placeholder.end + (offset - value.end)
        }
    }
}

/// Replaces the placeholders whose values are known: `${name}`, `{{ name }}`, `{{ .name }}`, `:name`, `:'name'` and
/// `:"name"`; a name that is not a word, such as `$%SCHEMA%$`, is replaced as it is. So is what Play writes in its own way.
/// `None` where there are none.
pub(crate) fn substitute(text: &str, values: &BTreeMap<String, String>) -> Option<(String, Substitution)> {
    let escapes = play_escapes(text).into_iter();
    let mut found: Vec<(TextRange, String)> = escapes.map(|(range, value)| (range, value.to_owned())).collect();
    for (name, value) in values {
        if name.is_empty() {
            continue;
        }
        templates(text, name, value, &mut found);
        if is_word(name) {
            variables(text, name, value, &mut found);
        }
    }
    if found.is_empty() {
        return None;
    }
    found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut replaced = String::with_capacity(text.len());
    let mut substitution = Substitution::default();
    let mut end = 0;
    for (range, value) in found {
        // Of two that overlap, the longer one that begins first counts.
        if range.start < end {
            continue;
        }
        replaced.push_str(&text[end as usize..range.start as usize]);
        let start = replaced.len() as u32;
        replaced.push_str(&value);
        substitution.values.push((TextRange::new(start, replaced.len() as u32), range));
        end = range.end;
    }
    replaced.push_str(&text[end as usize..]);
    Some((replaced, substitution))
}

fn is_word(name: &str) -> bool {
    name.chars().all(|character| character.is_alphanumeric() || character == '_')
}

fn templates(text: &str, name: &str, value: &str, found: &mut Vec<(TextRange, String)>) {
    let mut add = |start: usize, length: usize| {
        found.push((TextRange::new(start as u32, (start + length) as u32), value.to_owned()));
    };
    let in_braces = format!("${{{name}}}");
    for (start, shown) in text.match_indices(&in_braces) {
        add(start, shown.len());
    }
    for (start, _) in text.match_indices("{{") {
        let Some(length) = text[start..].find("}}") else { break };
        let inner = text[start + 2..start + length].trim_matches(['-', ' ', '\t']);
        if inner.strip_prefix('.').unwrap_or(inner) == name {
            add(start, length + 2);
        }
    }
    if !is_word(name) {
        for (start, shown) in text.match_indices(name) {
            add(start, shown.len());
        }
    }
}

/// psql's variables, which strings and comments do not hold.
fn variables(text: &str, name: &str, value: &str, found: &mut Vec<(TextRange, String)>) {
    if !text.contains(&format!(":{name}"))
        && !text.contains(&format!(":'{name}'"))
        && !text.contains(&format!(":\"{name}\""))
    {
        return;
    }
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    for (at, pair) in tokens.windows(2).enumerate() {
        let [colon, word] = pair else { continue };
        let is_cast = at > 0 && tokens[at - 1].range.end == colon.range.start && tokens[at - 1].is_punctuation(b':');
        if !colon.is_punctuation(b':') || colon.range.end != word.range.start || is_cast {
            continue;
        }
        let shown = word.text(text);
        let replacement = match word.kind {
            TokenKind::Word if shown == name => value.to_owned(),
            TokenKind::String if shown.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) == Some(name) => {
                format!("'{}'", value.replace('\'', "''"))
            }
            TokenKind::QuotedIdentifier if shown.trim_matches('"') == name => {
                format!("\"{}\"", value.replace('"', "\"\""))
            }
            _ => continue,
        };
        found.push((colon.range.cover(word.range), replacement));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> BTreeMap<String, String> {
        let pairs = [("schema", "app"), ("tenant_prefix", "t_"), ("$%DB%$", "main"), ("flyway:user", "ann's")];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn replaced(text: &str) -> Option<String> {
        substitute(text, &values()).map(|(text, _)| text)
    }

    #[test]
    fn what_play_writes_in_its_own_way_is_replaced() {
        let text = "# --- !Ups\nDO $$ BEGIN PERFORM 1;; END $$;\n# --- !Downs\n";
        let (replaced, substitution) = substitute(text, &BTreeMap::new()).unwrap();
        assert_eq!(replaced, "-- --- !Ups\nDO $$ BEGIN PERFORM 1; END $$;\n-- --- !Downs\n");
        let at = |text: &str, part: &str| text.find(part).unwrap() as u32;
        let end = TextRange::new(at(&replaced, "END"), at(&replaced, " $$;"));
        assert_eq!(substitution.original(end), TextRange::new(at(text, "END"), at(text, " $$;")));
    }

    #[test]
    fn every_form_of_placeholder_is_replaced() {
        for (text, expected) in [
            ("ALTER TABLE ${schema}.users", "ALTER TABLE app.users"),
            ("ALTER TABLE {{ .schema }}.a, {{schema}}.b", "ALTER TABLE app.a, app.b"),
            ("DROP TABLE ${tenant_prefix}users", "DROP TABLE t_users"),
            (
                "SET search_path = :schema, :\"schema\"; SELECT :'schema', 1::schema",
                "SET search_path = app, \"app\"; SELECT 'app', 1::schema",
            ),
            ("GRANT x TO $%DB%$; -- ${flyway:user}", "GRANT x TO main; -- ann's"),
        ] {
            assert_eq!(replaced(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["SELECT ':schema', a[1:schema2]", "${other} {{ range .schema }}", "schema"] {
            assert_eq!(replaced(text), None, "{text}");
        }
    }

    #[test]
    fn places_are_mapped_to_the_file() {
        let text = "DROP ${schema}.users, ${tenant_prefix}x;";
        let (new, substitution) = substitute(text, &values()).unwrap();
        assert_eq!(new, "DROP app.users, t_x;");
        for part in ["DROP", "users", "x;"] {
            let start = new.find(part).unwrap() as u32;
            let range = substitution.original(TextRange::new(start, start + part.len() as u32));
            assert_eq!(&text[range.as_usize()], part);
        }
        for (part, original) in
            [("app.users", "${schema}.users"), ("pp", "${schema}"), ("t_x", "${tenant_prefix}x"), ("app", "${schema}")]
        {
            let start = new.find(part).unwrap() as u32;
            let range = substitution.original(TextRange::new(start, start + part.len() as u32));
            // A range that begins within a value begins with its placeholder.
            assert_eq!(&text[range.as_usize()], original, "{part}");
        }
    }
}
