//! The effects of a statement, as a table, and the description of a rule that a suppression names.

use crate::analysis::Analysis;
use crate::document::Document;
use crate::markup::markup;
use lsp_types::{Hover, HoverContents};
use pgvet_linter::rules;
use pgvet_linter::settings::Settings;
use pgvet_model::effect::RelationName;
use pgvet_syntax::source::TextRange;
use pgvet_workspace::{OpenStatement, inert, markup as escape};
use std::borrow::Cow;
use std::fmt::Write as _;

pub(crate) fn at(analysis: Option<&Analysis>, document: &Document, offset: u32, shows_markdown: bool) -> Option<Hover> {
    let hover = |range, text| Hover {
        contents: HoverContents::Markup(markup(text, shows_markdown)),
        range: Some(document.range(range)),
    };
    if let Some((range, text)) = rule_page(document, offset) {
        return Some(hover(range, text));
    }
    let analysis = analysis?;
    let statement = analysis.statement_at(offset)?;
    Some(hover(statement.range, effects(&statement, analysis.open().settings(), shows_markdown)))
}

/// The page of the rule that a suppression names at this place.
fn rule_page(document: &Document, offset: u32) -> Option<(TextRange, String)> {
    let line = document.line(offset);
    let text = document.slice(line);
    let list = text.find("pgvet:")? + text[text.find("pgvet:")?..].find('[')? + 1;
    let at = offset.checked_sub(line.start)? as usize;
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let start = text.get(..at)?.trim_end_matches(is_part).len();
    let end = text.len() - text[at..].trim_start_matches(is_part).len();
    if start < list {
        return None;
    }
    let rule = &rules::find(&text[start..end])?.meta;
    let range = TextRange::new(line.start + start as u32, line.start + end as u32);
    let page = rule.page().replace("```sql,reported", "```sql").replace("```sql,clean", "```sql");
    Some((
        range,
        format!("**{}** ({})\n\n{page}\n\n[{}]({})", rule.name, rule.severity.as_str(), rule.name, rule.url()),
    ))
}

/// A text with names of the migrations, in which nothing is markup or acts on its reader.
fn shown(text: &str, shows_markdown: bool) -> Cow<'_, str> {
    if shows_markdown { Cow::Owned(escape::cell(text)) } else { inert::line(text) }
}

/// The effects of a statement in markdown, or for clients that do not show it.
fn effects(statement: &OpenStatement<'_>, settings: &Settings, shows_markdown: bool) -> String {
    let shown = |text: &str| shown(text, shows_markdown).into_owned();
    let effects = statement.run.effects;
    let mut text = String::new();
    let locks = effects.strongest_locks();
    let rows = |relation: &RelationName| settings.table(&relation.schema, &relation.name).rows;
    let has_rows = locks.iter().any(|(relation, _)| rows(relation).is_some());
    if !locks.is_empty() {
        text.push_str(if has_rows {
            "| relation | lock | blocks | rows |\n|---|---|---|--:|\n"
        } else {
            "| relation | lock | blocks |\n|---|---|---|\n"
        });
        for (relation, mode) in &locks {
            let _ = write!(
                text,
                "| {} | {} | {} |",
                shown(&relation.to_string()),
                mode.sql(),
                mode.stops().unwrap_or_default()
            );
            if has_rows {
                let rows = rows(relation).map(|rows| rows.to_string()).unwrap_or_default();
                let _ = write!(text, " {rows} |");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    for (verb, names) in effects.work() {
        let _ = writeln!(text, "- **{verb}** {}", shown(&names.join(", ")));
    }
    if let Some(failure) = &effects.fails {
        let _ = writeln!(text, "- **fails** {} ({})", shown(&failure.reason), failure.sqlstate);
    }
    for reason in effects.unknown_reasons() {
        let _ = writeln!(text, "- **unknown** {}", shown(&reason.to_string()));
    }
    if text.is_empty() {
        text.push_str("Locks no existing object.\n");
    }
    // The run stands for this version, too: `pgvet effects` says the same.
    let _ = write!(text, "\nPredicted for PostgreSQL {}", settings.versions.to);
    text
}
