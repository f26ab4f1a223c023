//! The line of a source that sends a statement.

use pgvet_syntax::lexer::{TokenKind, identifier, quote_identifier, tokenize};
use pgvet_syntax::source::TextRange;
use std::collections::{BTreeSet, HashMap};

/// The text of a source, with the names that stand in it as words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceText {
    /// The lines on which each word stands, from 1.
    words: HashMap<String, Vec<usize>>,
}

/// Finds lines for statements in their order.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    source: &'a SourceText,
    /// The line that was last found.
    last: usize,
}

impl SourceText {
    pub(crate) fn new(text: String) -> Self {
        let mut words: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, line) in text.lines().enumerate() {
            for word in words_of(line) {
                let lines = words.entry(word.to_ascii_lowercase()).or_default();
                if lines.last() != Some(&(at + 1)) {
                    lines.push(at + 1);
                }
            }
        }
        Self { words }
    }

    /// How many names of statements stand in the source.
    pub(crate) fn names_of(&self, sql: &[&str]) -> usize {
        let all: BTreeSet<String> = sql.iter().flat_map(|sql| names(sql)).collect();
        all.iter().filter(|name| self.words.contains_key(*name)).count()
    }

    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines { source: self, last: 1 }
    }
}

impl Lines<'_> {
    /// Returns the line on which most names of a statement come together or, at the same number, the next one in order.
    /// `None` if the source has none of its names.
    pub(crate) fn of(&mut self, sql: &str) -> Option<usize> {
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for name in names(sql) {
            let Some(lines) = self.source.words.get(&name) else { continue };
            // A name that stands everywhere says little.
            let weight = 1.0 / lines.len() as f64;
            for line in lines {
                // Arguments of a call often stand on lines of their own.
                *scores.entry(*line).or_default() += weight;
            }
        }
        let last = self.last;
        let order = |line: usize| if line >= last { line - last } else { usize::MAX / 2 + (last - line) };
        let best = scores.into_iter().min_by(|(one, first), (other, second)| {
            second.total_cmp(first).then_with(|| order(*one).cmp(&order(*other)))
        });
        let (line, _) = best?;
        self.last = line;
        Some(line)
    }
}

/// Words of SQL that are not reserved, and names that stand everywhere.
const COMMON: &[&str] = &[
    "add",
    "alter",
    "by",
    "cascade",
    "concurrently",
    "delete",
    "drop",
    "exists",
    "function",
    "id",
    "if",
    "index",
    "insert",
    "key",
    "name",
    "of",
    "public",
    "restrict",
    "schema",
    "set",
    "type",
    "update",
    "value",
    "values",
];

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|one: char| !(one.is_alphanumeric() || one == '_')).filter(|word| !word.is_empty())
}

/// The names and words of strings in a statement, in lower case, and their ends after an underscore: Django's table `shop_order` is `order` of
/// the app `shop` in the source.
fn names(sql: &str) -> BTreeSet<String> {
    let whole = TextRange::new(0, u32::try_from(sql.len()).unwrap_or(u32::MAX));
    let mut names = BTreeSet::new();
    for token in tokenize(sql, whole) {
        let name = match token.kind {
            TokenKind::QuotedIdentifier => identifier(token.text(sql)).to_ascii_lowercase(),
            TokenKind::Word => {
                let word = token.text(sql).to_ascii_lowercase();
                if quote_identifier(&word) != word {
                    continue;
                }
                word
            }
            TokenKind::String => {
                names.extend(words_of(token.text(sql)).map(str::to_ascii_lowercase));
                continue;
            }
            _ => continue,
        };
        if let Some((_, end)) = name.split_once('_').filter(|_| token.kind == TokenKind::QuotedIdentifier) {
            names.insert(end.to_owned());
        }
        names.insert(name);
    }
    names.retain(|name| name.len() > 1 && !COMMON.contains(&name.as_str()));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_found_where_their_names_come_together() {
        let source = SourceText::new(
            "class Migration(migrations.Migration):\n    operations = [\n        \
             migrations.AddField('order', 'note', models.TextField(null=True)),\n        \
             migrations.AddField('order', 'rank', models.IntegerField(default=0)),\n        \
             migrations.AddIndex('order', models.Index(fields=['rank'], name='order_rank_idx')),\n    ]\n"
                .to_owned(),
        );
        let mut lines = source.lines();
        assert_eq!(lines.of("ALTER TABLE \"shop_order\" ADD COLUMN \"note\" text NULL"), Some(3));
        assert_eq!(lines.of("ALTER TABLE \"shop_order\" ADD COLUMN \"rank\" integer DEFAULT 0 NOT NULL"), Some(4));
        assert_eq!(lines.of("CREATE INDEX \"order_rank_idx\" ON \"shop_order\" (\"rank\")"), Some(5));
        assert_eq!(lines.of("VACUUM"), None);
    }
}
