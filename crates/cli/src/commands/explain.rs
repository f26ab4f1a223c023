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

/// Markdown as a terminal can show it: headings in bold, code indented, the rest as it is written.
fn write_markdown(markdown: &str, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut in_code = false;
    for line in markdown.trim().lines() {
        // Doc comments keep the blank after their slashes.
        let line = line.strip_prefix(' ').unwrap_or(line);
        if line.starts_with("```") {
            in_code = !in_code;
        } else if in_code {
            writeln!(out, "    {line}")?;
        } else if let Some(heading) = line.strip_prefix('#') {
            writeln!(out, "{}", style.bold(heading.trim_start_matches('#').trim()))?;
        } else {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_reads_well_without_a_renderer() {
        let mut out = Vec::new();
        let markdown = "First.\n\n## Example\n```sql,reported\nSELECT 1;\n# no heading\n```\n";
        write_markdown(markdown, Style { color: false }, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "First.\n\nExample\n    SELECT 1;\n    # no heading\n");
    }
}
