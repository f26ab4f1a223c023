//! Values of placeholders put into a text, and the mapping of places in the result to places in the file.

use pgvet_syntax::lexer::{TokenKind, tokenize};
use pgvet_syntax::source::TextRange;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Where values were put.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Substitution {
    /// In order: the range of a value in the new text, and that of its placeholder in the file.
    values: Vec<(TextRange, TextRange)>,
}

impl Substitution {
    /// A text of `length` bytes in place of one of `original` bytes.
    pub(crate) fn of_all(length: usize, original: usize) -> Self {
        Self { values: vec![(TextRange::new(0, length as u32), TextRange::new(0, original as u32))] }
    }

    /// Returns the range of the file for a range of the new text. A part of a value maps to the whole placeholder.
    pub(crate) fn original(&self, range: TextRange) -> TextRange {
        let start = self.map(range.start, |placeholder| placeholder.start);
        let end = if range.is_empty() { start } else { self.map(range.end, |placeholder| placeholder.end) };
        TextRange::new(start, end.max(start))
    }

    /// Whether a range of the new text holds a part of a value.
    pub(crate) fn holds_value(&self, range: TextRange) -> bool {
        let before = self.values.partition_point(|(value, _)| value.end <= range.start);
        self.values[before..].first().is_some_and(|(value, _)| value.start < range.end)
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

/// Most bytes of blanks and dots in the braces of a placeholder.
const MAX_BLANKS: usize = 256;

/// Replaces the placeholders whose values are known: `${name}`, `{{ name }}`, `{{ .name }}`, `:name`, `:'name'` and
/// `:"name"`; a name that is not a word, such as `$%SCHEMA%$`, is replaced as it is. So is what the tool sends
/// `otherwise`. `None` where there are none.
///
/// # Errors
/// The text would have more than `limit` bytes: values may be long, and are repeated as often as a file likes.
pub(crate) fn substitute(
    text: &str,
    otherwise: Vec<(TextRange, &'static str)>,
    values: &BTreeMap<String, String>,
    limit: usize,
) -> Result<Option<(String, Substitution)>, TooLarge> {
    let mut found: Vec<(TextRange, Cow<'_, str>)> =
        otherwise.into_iter().map(|(range, value)| (range, value.into())).collect();
    templates(text, values, &mut found);
    variables(text, values, &mut found);
    if found.is_empty() {
        return Ok(None);
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
        if replaced.len() + value.len() > limit {
            return Err(TooLarge);
        }
        replaced.push_str(&value);
        substitution.values.push((TextRange::new(start, replaced.len() as u32), range));
        end = range.end;
    }
    replaced.push_str(&text[end as usize..]);
    if replaced.len() > limit { Err(TooLarge) } else { Ok(Some((replaced, substitution))) }
}

/// A text that is too large with the values of its placeholders.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|character| character.is_alphanumeric() || character == '_')
}

/// What is found costs no more for many names than for one, because a checkout chooses how many there are.
fn templates<'v>(text: &str, values: &'v BTreeMap<String, String>, found: &mut Vec<(TextRange, Cow<'v, str>)>) {
    let longest = values.keys().map(String::len).max().unwrap_or_default();
    let mut add = |start: usize, length: usize, value: &'v str| {
        found.push((TextRange::new(start as u32, (start + length) as u32), value.into()));
    };
    for (opening, closing) in [("${", "}"), ("{{", "}}")] {
        for (start, _) in text.match_indices(opening) {
            let from = start + opening.len();
            let Some(length) = end_of(&text.as_bytes()[from..], closing, longest + MAX_BLANKS) else { continue };
            let mut inner = &text[from..from + length];
            if opening == "{{" {
                inner = inner.trim_matches(['-', ' ', '\t']);
                inner = inner.strip_prefix('.').unwrap_or(inner);
            }
            if let Some(value) = values.get(inner).filter(|_| !inner.is_empty()) {
                add(start, opening.len() + length + closing.len(), value);
            }
        }
    }
    for (name, value) in values.iter().filter(|(name, _)| !name.is_empty() && !is_word(name)) {
        text.match_indices(name).for_each(|(start, shown)| add(start, shown.len(), value));
    }
}

/// Where the braces are closed, which begin at the start of the text; `None` if that is further away than any name is long.
fn end_of(text: &[u8], closing: &str, longest: usize) -> Option<usize> {
    let near = &text[..text.len().min(longest + closing.len())];
    near.windows(closing.len()).position(|bytes| bytes == closing.as_bytes())
}

/// psql's variables, which strings and comments do not hold.
fn variables<'v>(text: &str, values: &'v BTreeMap<String, String>, found: &mut Vec<(TextRange, Cow<'v, str>)>) {
    let may_follow = |colon: usize| {
        text[colon + 1..].starts_with(|next: char| next.is_alphanumeric() || matches!(next, '_' | '\'' | '"'))
    };
    if !values.keys().any(|name| is_word(name)) || !text.match_indices(':').any(|(colon, _)| may_follow(colon)) {
        return;
    }
    let value = |name: &str| values.get(name).filter(|_| is_word(name));
    let quoted = |shown: &str, quote: char| value(shown.strip_prefix(quote)?.strip_suffix(quote)?);
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    for (at, pair) in tokens.windows(2).enumerate() {
        let [colon, word] = pair else { continue };
        let is_cast = at > 0 && tokens[at - 1].range.end == colon.range.start && tokens[at - 1].is_punctuation(b':');
        if !colon.is_punctuation(b':') || colon.range.end != word.range.start || is_cast {
            continue;
        }
        let shown = word.text(text);
        let replacement = match word.kind {
            TokenKind::Word => value(shown).map(|value| Cow::from(value.as_str())),
            TokenKind::String => quoted(shown, '\'').map(|value| format!("'{}'", value.replace('\'', "''")).into()),
            TokenKind::QuotedIdentifier => {
                quoted(shown, '"').map(|value| format!("\"{}\"", value.replace('"', "\"\"")).into())
            }
            _ => None,
        };
        found.extend(replacement.map(|replacement| (colon.range.cover(word.range), replacement)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::layout::{Folders, sent_otherwise};
    use std::path::Path;

    fn values() -> BTreeMap<String, String> {
        let pairs = [("schema", "app"), ("tenant_prefix", "t_"), ("$%DB%$", "main"), ("flyway:user", "ann's")];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    const LIMIT: usize = 1 << 20;

    fn replaced(text: &str) -> Option<String> {
        substitute(text, Vec::new(), &values(), LIMIT).unwrap().map(|(text, _)| text)
    }

    #[test]
    fn what_play_writes_in_its_own_way_is_replaced() {
        let text = "# --- !Ups\nDO $$ BEGIN PERFORM 1;; END $$;\n# --- !Downs\n";
        let otherwise = sent_otherwise(Path::new("1.sql"), text, &Folders::default(), &Config::default());
        let (replaced, substitution) = substitute(text, otherwise, &BTreeMap::new(), LIMIT).unwrap().unwrap();
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
        let (new, substitution) = substitute(text, Vec::new(), &values(), LIMIT).unwrap().unwrap();
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

    #[test]
    fn a_text_that_its_values_make_too_large_is_refused() {
        let long = BTreeMap::from([("a".to_owned(), "x".repeat(600_000))]);
        assert!(substitute("${a}", Vec::new(), &long, LIMIT).is_ok_and(|replaced| replaced.is_some()));
        assert_eq!(substitute("${a} :a", Vec::new(), &long, LIMIT), Err(TooLarge));
    }

    #[test]
    fn neither_many_names_nor_open_braces_take_long() {
        let many = (0..1000).map(|at| (format!("name_{at}"), at.to_string())).collect();
        let used: Vec<String> = (0..1000).map(|at| format!("${{name_{at}}} :name_{at} ")).collect();
        let used = used.concat().repeat(100);
        let open = ["{{", "${", ":'"].map(|opening| opening.repeat(500_000) + "}}").concat();
        let started = std::time::Instant::now();
        let (replaced, _) = substitute(&used, Vec::new(), &many, 1 << 24).unwrap().unwrap();
        assert!(replaced.starts_with("0 0 1 1 ") && replaced.ends_with("999 999 "));
        assert_eq!(substitute(&open, Vec::new(), &many, 1 << 24), Ok(None));
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }
}
