//! The little markdown that reports and editors need, in which a name or a statement does nothing.

use crate::inert;
use std::borrow::Cow;

/// Text on one line, whose names are in backticks: outside of them nothing is markup, a link or a mention.
pub fn prose(text: &str) -> String {
    prose_with(text, code)
}

/// The same in a cell of a table.
pub fn cell(text: &str) -> String {
    prose_with(text, code_cell)
}

fn prose_with(text: &str, code: fn(&str) -> String) -> String {
    let text = inert::line(text);
    let parts: Vec<&str> = text.split('`').collect();
    let mut shown = String::with_capacity(text.len() + 16);
    for (at, part) in parts.iter().enumerate() {
        // A backtick that nothing closes is one.
        if at % 2 == 0 {
            push_escaped(&mut shown, part);
        } else if at + 1 < parts.len() {
            shown.push_str(&code(part));
        } else {
            shown.push_str("&#96;");
            push_escaped(&mut shown, part);
        }
    }
    shown
}

fn push_escaped(shown: &mut String, text: &str) {
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_within_word =
            before.is_ascii_alphanumeric() && characters.peek().is_some_and(char::is_ascii_alphanumeric);
        before = character;
        match character {
            // Within a word it marks nothing: `lock_timeout`.
            '_' if is_within_word => shown.push('_'),
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            // An entity would still be a mention, a reference or a link.
            '@' => shown.push_str("`@`"),
            '#' => shown.push_str("`#`"),
            '\\' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '$' => {
                shown.push('\\');
                shown.push(character);
            }
            other => shown.push(other),
        }
        if shown.ends_with("://") {
            shown.truncate(shown.len() - 3);
            shown.push_str("&#58;//");
        } else if shown.len() >= 4 && shown.as_bytes()[shown.len() - 4..].eq_ignore_ascii_case(b"www.") {
            shown.pop();
            shown.push_str("&#46;");
        }
    }
}

/// A name or statement on one line, as code.
pub fn code(text: &str) -> String {
    let text = inert::line(text);
    if text.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    let blank = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// The same in a cell of a table, which a pipe would end, within code, too.
pub fn code_cell(text: &str) -> String {
    // A backslash before the pipe would take the one that is added for its own.
    let pipe = if text.contains("\\|") { "\u{2502}" } else { "\\|" };
    code(text).replace('|', pipe)
}

/// Code on lines of its own, which nothing in it can end.
pub fn block<'a>(language: &str, lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<Cow<'_, str>> = lines.map(inert::line).collect();
    let run = lines.iter().map(|line| longest_run(line)).max().unwrap_or(0);
    let fence = "`".repeat(3.max(run + 1));
    format!("{fence}{language}\n{}\n{fence}\n", lines.join("\n"))
}

fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

/// Text in HTML.
pub fn html(text: &str) -> String {
    let text = inert::line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_code_and_nothing_else_is_markup() {
        assert_eq!(prose("drops `a_b` in lock_timeout"), "drops `a_b` in lock_timeout");
        assert_eq!(prose("`a`<img>`b`"), "`a`&lt;img&gt;`b`");
        assert_eq!(prose("`a @x [y](z)"), "&#96;a `@`x \\[y\\](z)");
        assert_eq!(prose("https://x www.y #1"), "https&#58;//x www&#46;y `#`1");
        assert_eq!(code("a``b`"), "``` a``b` ```");
        assert_eq!(code("a\n|b"), "`a\\u{a}|b`");
        assert_eq!(code_cell("a||b"), "`a\\|\\|b`");
        assert_eq!(code_cell("a\\|b"), "`a\\\u{2502}b`");
        assert_eq!(block("sql", ["a", "````"].into_iter()), "`````sql\na\n````\n`````\n");
        assert_eq!(html("<a>&\"\n"), "&lt;a&gt;&amp;&quot;\\u{a}");
    }
}
