//! Effects for reading: each statement with its locks and work.

use super::effects::{EffectsReport, FileEffects};
use super::excerpt;
use crate::inert;
use crate::style::Style;
use pgvet_model::effect::Effects;
use pgvet_model::migration::TransactionState;
use pgvet_model::predict::StatementEffects;
use pgvet_syntax::ast::LockMode;
use std::io::{self, Write};

pub(crate) fn write(report: &EffectsReport<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Effects on PostgreSQL {}", report.version)?;
    for file in &report.files {
        writeln!(out, "\n{}", style.bold(&inert::line(&file.file.path)))?;
        if file.statements.is_empty() {
            writeln!(out, "  no statements")?;
        }
        for statement in &file.statements {
            write_statement(file, statement, style, out)?;
        }
    }
    Ok(())
}

fn write_statement(
    file: &FileEffects<'_>,
    statement: &StatementEffects,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let line = file.file.position(statement.statement.start).line;
    let text = file.file.text.get(statement.statement.as_usize()).unwrap_or_default();
    let transaction = match statement.transaction {
        TransactionState::None => String::new(),
        TransactionState::Explicit => style.dim("  (in the transaction of the file)"),
        TransactionState::Implicit => style.dim("  (in an implicit transaction)"),
    };
    writeln!(out, "  {line:>4}  {}{transaction}", excerpt(text))?;
    let effects = &statement.effects;
    let locks: Vec<(String, LockMode)> = locks(effects).collect();
    let width = locks.iter().map(|(relation, _)| relation.chars().count()).max().unwrap_or(0);
    for (relation, mode) in locks {
        writeln!(out, "        lock    {relation:width$}  {:22}{}", mode.sql(), blocked(mode, style))?;
    }
    for (verb, names) in effects.work() {
        writeln!(out, "        {verb:7} {}", inert::line(&names.join(", ")))?;
    }
    if let Some(failure) = &effects.fails {
        writeln!(out, "        {}   {} ({})", style.red("fails"), inert::line(&failure.reason), failure.sqlstate)?;
    }
    for reason in effects.unknown_reasons() {
        writeln!(out, "        {} {}", style.yellow("unknown"), inert::line(&reason.to_string()))?;
    }
    Ok(())
}

/// The strongest lock on each relation, whose name may hold line breaks.
fn locks(effects: &Effects) -> impl Iterator<Item = (String, LockMode)> {
    let locks = effects.strongest_locks().into_iter();
    locks.map(|(relation, mode)| (inert::line(&relation.to_string()).into_owned(), mode))
}

fn blocked(mode: LockMode, style: Style) -> String {
    let Some(what) = mode.stops() else { return String::new() };
    let text = format!("blocks {what}");
    format!("  {}", if mode.blocks_reads() { style.red(&text) } else { style.yellow(&text) })
}

/// One line per statement: `path:line:col: what it does`.
pub(crate) fn write_concise(report: &EffectsReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    for file in &report.files {
        for statement in &file.statements {
            let start = file.file.position(statement.statement.start);
            let effects = &statement.effects;
            let mut parts: Vec<String> =
                locks(effects).map(|(relation, mode)| format!("lock {relation} {}", mode.sql())).collect();
            parts.extend(effects.work().map(|(verb, names)| format!("{verb} {}", inert::line(&names.join(", ")))));
            parts.extend(effects.fails.as_ref().map(|failure| format!("fails {}", failure.sqlstate)));
            parts.extend((!effects.unknown.is_empty()).then(|| "unknown".to_owned()));
            let parts = if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") };
            writeln!(out, "{}:{}:{}: {parts}", inert::line(&file.file.path), start.line, start.column)?;
        }
    }
    Ok(())
}
