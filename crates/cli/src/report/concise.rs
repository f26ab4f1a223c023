//! One line per finding: `path:line:col: severity[rule] message`.

use super::{Finding, Report};
use crate::inert;
use crate::style::Style;
use std::io::{self, Write};

pub(crate) fn write(report: &Report<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    for finding in report.findings.iter().flat_map(Finding::with_repeats).chain(&report.suppressed) {
        let found = finding.diagnostic;
        let place = report.place(found.file, found.range);
        let severity = style.severity(found.severity, found.severity.as_str());
        let suppressed = if finding.reason.is_some() { " (suppressed)" } else { "" };
        writeln!(
            out,
            "{}: {severity}[{}] {}{suppressed}",
            style.bold(&place),
            found.rule,
            inert::line(&found.message)
        )?;
    }
    if report.is_quiet {
        return Ok(());
    }
    super::full::write_fixed(report, out)?;
    writeln!(out, "{}", report.summary)?;
    report.remedies().iter().try_for_each(|line| writeln!(out, "{line}"))
}
