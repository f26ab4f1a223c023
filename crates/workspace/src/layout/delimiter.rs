//! What ends a statement in the changesets of Liquibase.
//!
//! A `;` does, and `/` or `GO` alone on a line. A changeset with `endDelimiter` has its own text in place of them; what
//! is between two of these is sent as one string. Source: Liquibase 4.29.2, `StringUtil.isDelimiter`, and runs of it.

use super::annotations::{comment, kind, lines};
use pgvet_syntax::source::TextRange;

/// Replaces a delimiter, so that the ends of strings are still known afterwards.
pub(super) const END: &str = ";/* endDelimiter */";

/// Delimiters other than `;`, and the SQL that replaces each.
pub(super) fn delimiters(text: &str) -> Vec<(TextRange, &'static str)> {
    if kind(text) != Some("liquibase") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut delimiter = Some(Delimiter::Default);
    for (start, line) in lines(text) {
        if let Some(attributes) = comment(line).and_then(changeset) {
            delimiter = Delimiter::of(attributes);
        } else if let Some(delimiter) = delimiter {
            let places = delimiter.places(line).into_iter();
            found.extend(places.map(|range| (range.shifted(start), delimiter.sql())));
        }
    }
    found
}

/// Whether a changeset with these attributes has a delimiter of its own.
pub(super) fn has_own(comment: &str) -> bool {
    changeset(comment).is_some_and(|attributes| matches!(Delimiter::of(attributes), Some(Delimiter::Own(_))))
}

/// The attributes of a comment that begins a changeset.
fn changeset(comment: &str) -> Option<&str> {
    let (first, attributes) = comment.split_once(char::is_whitespace)?;
    first.eq_ignore_ascii_case("changeset").then_some(attributes)
}

#[derive(Debug, Clone, Copy)]
enum Delimiter<'a> {
    Default,
    Own(&'a str),
}

impl<'a> Delimiter<'a> {
    /// `None` if the changeset is not split, or at a regular expression.
    fn of(attributes: &'a str) -> Option<Self> {
        let value = |name: &str| {
            let attributes = attributes.split_whitespace().filter_map(|attribute| attribute.split_once(':'));
            attributes.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        if value("splitStatements").is_some_and(|value| value.eq_ignore_ascii_case("false")) {
            return None;
        }
        match value("endDelimiter") {
            None | Some(";") => Some(Self::Default),
            Some(own) if own.contains(['\\', '[', '(', '|', '*', '+', '?', '.', '^', '-']) => None,
            Some(own) => Some(Self::Own(own)),
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Self::Default => ";",
            Self::Own(_) => END,
        }
    }

    /// Returns the places in a line. `/` and words only count if they are alone on it.
    fn places(self, line: &str) -> Vec<TextRange> {
        let at = |start: usize, length: usize| TextRange::new(start as u32, (start + length) as u32);
        let whole = line.trim_end();
        let is_whole = |delimiter: &str| whole.eq_ignore_ascii_case(delimiter);
        match self {
            Self::Own(own) if own != "/" && !own.starts_with(char::is_alphanumeric) => {
                line.match_indices(own).map(|(start, _)| at(start, own.len())).collect()
            }
            Self::Own(own) if is_whole(own) => vec![at(0, whole.len())],
            Self::Default if is_whole("/") || is_whole("go") => vec![at(0, whole.len())],
            Self::Own(_) | Self::Default => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(changeset: &str) -> String {
        let text = format!("--liquibase formatted sql\n--changeset a:1{changeset}");
        let mut replaced = text.clone();
        for (range, sql) in delimiters(&text).into_iter().rev() {
            replaced.replace_range(range.as_usize(), sql);
        }
        replaced.split_once('\n').and_then(|(_, rest)| rest.split_once('\n')).unwrap().1.replace(END, "|")
    }

    #[test]
    fn statements_end_at_the_delimiter_of_the_changeset() {
        for (changeset, expected) in [
            ("\na;\nb\n/\nc 4/2\nGO\n", "a;\nb\n;\nc 4/2\n;\n"),
            (" endDelimiter:/\na;\nb 4/2;\n/\nc /\n", "a;\nb 4/2;\n|\nc /\n"),
            (" endDelimiter:GO\na\ngo\nb\nGO\n/\n", "a\n|\nb\n|\n/\n"),
            (" endDelimiter:#\na#\nb; c#\n", "a|\nb; c|\n"),
            (" endDelimiter:;;\na;;\nb; c;;", "a|\nb; c|"),
            (" splitStatements:false endDelimiter:/\na\n/\n", "a\n/\n"),
            (" endDelimiter:\\nGO\na\nGO\n", "a\nGO\n"),
        ] {
            assert_eq!(replaced(changeset), expected, "{changeset}");
        }
        assert_eq!(delimiters("-- +goose Up\na\n/\n"), []);
    }

    #[test]
    fn each_changeset_has_its_own() {
        assert_eq!(replaced(" endDelimiter:/\na\n/\n--changeset a:2 endDelimiter:#\nb#\n/\n"), {
            "a\n|\n--changeset a:2 endDelimiter:#\nb|\n/\n"
        });
    }
}
