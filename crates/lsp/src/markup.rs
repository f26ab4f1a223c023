//! Markdown for clients that show it; for the others the same without its marks.

use lsp_types::{MarkupContent, MarkupKind};

pub(crate) fn markup(markdown: String, shows_markdown: bool) -> MarkupContent {
    if shows_markdown {
        return MarkupContent { kind: MarkupKind::Markdown, value: markdown };
    }
    MarkupContent { kind: MarkupKind::PlainText, value: plain(&markdown) }
}

/// Tables become lines, fences and bold go away. What else marks up our texts reads well as it is.
fn plain(markdown: &str) -> String {
    let mut in_code = false;
    let mut lines = Vec::new();
    for line in markdown.lines() {
        let row = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |"));
        match row {
            _ if line.starts_with("```") => in_code = !in_code,
            _ if in_code => lines.push(line.to_owned()),
            _ if line.starts_with("|-") => {}
            Some(row) => lines.push(row.replace(" | ", ", ")),
            None => lines.push(line.replace("**", "")),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_has_no_marks() {
        let markdown = "| relation | lock |\n|---|---|\n| public.t | SHARE |\n\n- **scan** public.t\n```sql\nSELECT 2 ** 3;\n```\nend";
        let plain = "relation, lock\npublic.t, SHARE\n\n- scan public.t\nSELECT 2 ** 3;\nend";
        assert_eq!(markup(markdown.to_owned(), false).value, plain);
        assert_eq!(markup(markdown.to_owned(), true).value, markdown);
    }
}
