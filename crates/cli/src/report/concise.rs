//! One line per finding: `path:line:col: severity[rule] message`.

use super::Report;
use crate::style::Style;
use std::io::{self, Write};

pub(crate) fn write(report: &Report<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    for found in report.diagnostics {
        let place = report.place(found.file, found.range);
        let severity = style.severity(found.severity, found.severity.as_str());
        writeln!(out, "{}: {severity}[{}] {}", style.bold(&place), found.rule, found.message)?;
    }
    writeln!(out, "{}", report.summary)
}
