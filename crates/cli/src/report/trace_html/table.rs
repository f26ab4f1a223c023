//! Tables of the page: each column sorts, and an empty one is not shown.

use super::Escaped;
use std::fmt::{self, Display, Write};

#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    titles: [&'static str; N],
    rows: Vec<Row<N>>,
}

#[derive(Debug)]
struct Row<const N: usize> {
    /// Where links lead.
    id: String,
    class: &'static str,
    cells: [Cell; N],
}

#[derive(Debug, Default)]
pub(super) struct Cell {
    html: String,
    /// The sort key, in place of its text.
    key: Option<u128>,
    class: &'static str,
}

impl Cell {
    pub(super) fn text(text: impl Display) -> Self {
        Self { html: Escaped(text).to_string(), ..Self::default() }
    }

    /// A measure, at the right.
    pub(super) fn number(key: u128, text: impl Display) -> Self {
        Self { key: Some(key), class: "number", ..Self::text(text) }
    }

    pub(super) fn code(sql: &str) -> Self {
        Self { html: format!("<code>{}</code>", Escaped(sql)), ..Self::default() }
    }

    /// A sentence with names in backticks.
    pub(super) fn prose(text: &str) -> Self {
        Self { html: named(text), ..Self::default() }
    }

    /// The help of a finding: sentences, and SQL in indented lines.
    pub(super) fn help(help: &str) -> Self {
        let line = |line: &str| match line.strip_prefix("    ") {
            Some(sql) => format!("<code>{}</code>", Escaped(sql)),
            None => format!("<div>{}</div>", named(line)),
        };
        Self { html: help.lines().map(line).collect(), ..Self::default() }
    }

    pub(super) fn sorted_by(self, key: u128) -> Self {
        Self { key: Some(key), ..self }
    }

    /// A link to a place of the page.
    pub(super) fn to(self, id: &str) -> Self {
        Self { html: format!("<a href=\"#{}\">{}</a>", Escaped(id), self.html), ..self }
    }
}

/// Formats text in backticks as code; a single backtick stays.
fn named(text: &str) -> String {
    let pieces: Vec<&str> = text.split('`').collect();
    let piece = |(at, piece): (usize, &&str)| match (at % 2 == 1, at + 1 == pieces.len()) {
        (true, false) => format!("<code class=\"inline\">{}</code>", Escaped(piece)),
        (true, true) => format!("`{}", Escaped(piece)),
        (false, _) => Escaped(piece).to_string(),
    };
    pieces.iter().enumerate().map(piece).collect()
}

impl<const N: usize> Table<N> {
    pub(super) fn new(titles: [&'static str; N]) -> Self {
        Self { titles, rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: [Cell; N]) {
        self.place(String::new(), "", cells);
    }

    pub(super) fn place(&mut self, id: String, class: &'static str, cells: [Cell; N]) {
        self.rows.push(Row { id, class, cells });
    }

    /// Nothing where there are no rows.
    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let says = |column: &usize| self.rows.iter().any(|row| !row.cells[*column].html.is_empty());
        let columns: Vec<usize> = (0..N).filter(says).collect();
        if columns.is_empty() {
            return Ok(());
        }
        out.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
        for column in &columns {
            let class = Attribute("class", self.rows[0].cells[*column].class);
            write!(out, "<th{class}><button>{}</button></th>", self.titles[*column])?;
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            write!(out, "<tr{}{}>", Attribute("id", &row.id), Attribute("class", row.class))?;
            for column in &columns {
                let cell = &row.cells[*column];
                let key = cell.key.map(|key| key.to_string()).unwrap_or_default();
                let (class, key) = (Attribute("class", cell.class), Attribute("data-key", &key));
                write!(out, "<td data-title=\"{}\"{class}{key}>{}</td>", self.titles[*column], cell.html)?;
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        Ok(())
    }
}

/// Nothing where it has no value.
struct Attribute<'a>(&'static str, &'a str);

impl Display for Attribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name, value) = self;
        if value.is_empty() { Ok(()) } else { write!(f, " {name}=\"{}\"", Escaped(value)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_column_is_omitted() {
        let mut table = Table::new(["Line", "Nothing", "Time"]);
        table.place("m0-3".to_owned(), "", [Cell::text("<3>").to("m1"), Cell::text(""), Cell::number(12, "0.0 ms")]);
        table.row([Cell::default(), Cell::default(), Cell::default()]);
        let mut out = String::new();
        table.write(&mut out).unwrap();
        let first = "<tr id=\"m0-3\"><td data-title=\"Line\"><a href=\"#m1\">&lt;3&gt;</a></td>\
                     <td data-title=\"Time\" class=\"number\" data-key=\"12\">0.0 ms</td></tr>";
        assert!(out.contains(first) && !out.contains("Nothing"), "{out}");
    }

    #[test]
    fn sql_of_a_help_is_separated_from_its_sentences() {
        let help = Cell::help("first:\n    DROP TABLE a;\nthen wait");
        assert_eq!(help.html, "<div>first:</div><code>DROP TABLE a;</code><div>then wait</div>");
    }

    #[test]
    fn names_in_backticks_are_code() {
        let one = "drops <code class=\"inline\">a&lt;b</code>: it`s gone";
        assert_eq!(Cell::prose("drops `a<b`: it`s gone").html, one);
    }
}
