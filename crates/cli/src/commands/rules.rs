//! `pgvet rules`.

use crate::args::{ListFormat, RulesArgs};
use crate::error::{ExitStatus, Failure};
use crate::report::rule_url;
use pgvet_linter::meta::{Category, RuleMeta, Status};
use pgvet_linter::rules;
use pgvet_linter::severity::Severity;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// A rule as programs see it.
#[derive(Debug, Serialize)]
struct JsonRule {
    name: &'static str,
    category: Category,
    severity: Severity,
    status: Status,
    preset: &'static str,
    fixable: bool,
    summary: String,
    sources: &'static [&'static str],
    url: String,
}

impl From<&'static RuleMeta> for JsonRule {
    fn from(rule: &'static RuleMeta) -> Self {
        Self {
            name: rule.name,
            category: rule.category,
            severity: rule.severity,
            status: rule.status,
            preset: preset(rule),
            fixable: rule.fixable,
            summary: rule.summary(),
            sources: rule.sources,
            url: rule_url(rule.name),
        }
    }
}

/// A rule with its page in markdown, for programs.
pub(super) fn with_page(rule: &'static RuleMeta) -> Value {
    let mut value = serde_json::to_value(JsonRule::from(rule)).unwrap_or_default();
    value["page"] = rule.page().into();
    value
}

/// Returns the preset that runs the rule.
pub(super) fn preset(rule: &RuleMeta) -> &'static str {
    match rule {
        RuleMeta { category: Category::Engine, .. } => "always",
        RuleMeta { recommended: true, .. } => "recommended",
        _ => "strict",
    }
}

pub(crate) fn run(args: &RulesArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let rules: Vec<JsonRule> = rules::all().iter().map(|rule| JsonRule::from(&rule.meta)).collect();
    match args.format {
        ListFormat::Json => {
            let document = serde_json::json!({ "schema_version": 1, "rules": rules });
            writeln!(out, "{document:#}")?;
        }
        ListFormat::Table => write_table(&rules, out)?,
    }
    Ok(ExitStatus::Clean)
}

fn write_table(rules: &[JsonRule], out: &mut dyn Write) -> io::Result<()> {
    let width = rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0).max("rule".len());
    writeln!(out, "{:width$}  {:13}  {:8}  {:11}  fix", "rule", "category", "severity", "preset")?;
    for rule in rules {
        let category = format!("{:?}", rule.category).to_lowercase();
        let fix = if rule.fixable { "yes" } else { "" };
        let line =
            format!("{:width$}  {category:13}  {:8}  {:11}  {fix}", rule.name, rule.severity.as_str(), rule.preset);
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(
        out,
        "\n`pgvet explain NAME` explains a rule, `pgvet explain CATEGORY` says what each rule of a category reports."
    )
}
