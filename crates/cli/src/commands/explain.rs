//! `pgvet explain`.

use super::rules;
use crate::args::{ExplainArgs, PlainFormat};
use crate::error::{ExitStatus, Failure};
use crate::rule_names::{self, Named};
use crate::style::Style;
use pgvet_linter::meta::RuleMeta;
use serde_json::{Value, json};
use std::io::{self, Write};

pub(crate) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let style = Style::new(args.color);
    match (rule_names::find(&args.name)?, args.format) {
        (Named::Rule(rule), PlainFormat::Text) => write_rule(rule, style, out)?,
        (Named::Several(title, rules), PlainFormat::Text) => write_list(&title, &rules, style, out)?,
        (Named::Rule(rule), PlainFormat::Json) => write_json(&[rule], out)?,
        (Named::Several(_, rules), PlainFormat::Json) => write_json(&rules, out)?,
    }
    Ok(ExitStatus::Clean)
}

fn write_rule(rule: &RuleMeta, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let preset = match rules::preset(rule) {
        "always" => "always on",
        "recommended" => "on by default",
        _ => "only with --strict",
    };
    let severity = style.severity(rule.severity, rule.severity.as_str());
    writeln!(out, "{} ({}, {severity}, {preset})\n", style.bold(rule.name), rule.category.as_str())?;
    write_markdown(rule.docs, style, out)?;
    if !rule.sources.is_empty() {
        writeln!(out, "\n{} {}", style.bold("Elsewhere:"), rule.sources.join(", "))?;
    }
    writeln!(out, "\n{} {}", style.bold("Page:"), rule.url())
}

/// Several rules with what each reports.
fn write_list(title: &str, rules: &[&RuleMeta], style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", style.bold(title))?;
    for rule in rules {
        let severity = style.severity(rule.severity, rule.severity.as_str());
        let strict = if rules::preset(rule) == "strict" { ", only with --strict" } else { "" };
        writeln!(out, "{} ({severity}{strict})", style.bold(rule.name))?;
        // Two columns are for the indent.
        let mut summary = Vec::new();
        write_filled(&rule.summary(), WIDTH - 2, &mut summary)?;
        for line in String::from_utf8_lossy(&summary).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "\n`pgvet explain NAME` explains one of them.")
}

fn write_json(found: &[&'static RuleMeta], out: &mut dyn Write) -> io::Result<()> {
    let rules: Vec<Value> = found.iter().map(|rule| rules::with_page(rule)).collect();
    writeln!(out, "{:#}", json!({ "schema_version": 1, "rules": rules }))
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
            write_filled(&std::mem::take(&mut paragraph), WIDTH, out)?;
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
    write_filled(&paragraph, WIDTH, out)
}

fn write_filled(text: &str, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let separator = match column {
            0 => "",
            _ if column + 1 + length > width => "\n",
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
        write_markdown(markdown, Style::plain(), &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "First line.\n\n- an item\n- another\n\nExample\n    SELECT 1;\n    # no heading\n"
        );
    }
}
