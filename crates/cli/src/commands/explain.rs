//! `pgvet explain`.

use crate::args::ExplainArgs;
use crate::error::{ExitStatus, Failure};
use crate::rule_names;
use crate::style::Style;
use std::io::{self, Write};

pub(crate) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let rule = rule_names::find(&args.rule)?;
    let style = Style::new(args.color);
    let preset = if rule.recommended { "on by default" } else { "only with --strict" };
    writeln!(out, "{} ({}, {preset})\n", style.bold(rule.name), style.severity(rule.severity, rule.severity.as_str()))?;
    write_markdown(rule.docs, style, out)?;
    if !rule.sources.is_empty() {
        writeln!(out, "\n{} {}", style.bold("Elsewhere:"), rule.sources.join(", "))?;
    }
    Ok(ExitStatus::Clean)
}

/// Columns of text; every terminal has as many.
const WIDTH: usize = 80;

/// Markdown as a terminal can show it: headings in bold, code indented, paragraphs filled.
fn write_markdown(markdown: &str, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut in_code = false;
    let mut paragraph = String::new();
    for line in markdown.trim().lines() {
        // Doc comments keep the blank after their slashes.
        let line = line.strip_prefix(' ').unwrap_or(line);
        let is_text = !in_code && !line.is_empty() && !line.starts_with("```") && !line.starts_with('#');
        if !is_text || line.starts_with("- ") {
            write_filled(&std::mem::take(&mut paragraph), out)?;
        }
        if line.starts_with("```") {
            in_code = !in_code;
        } else if in_code {
            writeln!(out, "    {line}")?;
        } else if let Some(heading) = line.strip_prefix('#') {
            writeln!(out, "{}", style.bold(heading.trim_start_matches('#').trim()))?;
        } else if line.is_empty() {
            writeln!(out)?;
        } else {
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    write_filled(&paragraph, out)
}

fn write_filled(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let separator = match column {
            0 => "",
            _ if column + 1 + length > WIDTH => "\n",
            _ => " ",
        };
        column = if separator == " " { column + 1 + length } else { length };
        write!(out, "{separator}{word}")?;
    }
    if column > 0 { writeln!(out) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_reads_well_without_a_renderer() {
        let mut out = Vec::new();
        let markdown =
            "First\nline.\n\n- an\n  item\n- another\n\n## Example\n```sql,reported\nSELECT 1;\n# no heading\n```\n";
        write_markdown(markdown, Style { color: false }, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "First line.\n\n- an item\n- another\n\nExample\n    SELECT 1;\n    # no heading\n"
        );
    }
}
