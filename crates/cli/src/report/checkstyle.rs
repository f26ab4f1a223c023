//! Checkstyle's XML, which many programs read.
//!
//! Source: checkstyle, `XMLLogger.java`.

use super::xml::escape;
use super::{Finding, Report};
use std::collections::BTreeMap;
use std::io::{self, Write};

pub(crate) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut files: BTreeMap<String, Vec<&Finding<'_>>> = BTreeMap::new();
    for finding in &report.findings {
        files.entry(finding.relative_path()).or_default().push(finding);
    }
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(out, r#"<checkstyle version="4.3">"#)?;
    for (path, findings) in files {
        writeln!(out, r#"  <file name="{}">"#, escape(&path))?;
        for finding in findings {
            writeln!(
                out,
                r#"    <error line="{}" column="{}" severity="{}" message="{}" source="pgvet.{}"/>"#,
                finding.start.line,
                finding.start.column,
                finding.diagnostic.severity.as_str(),
                escape(&finding.message_with_help()),
                finding.diagnostic.rule,
            )?;
        }
        writeln!(out, "  </file>")?;
    }
    writeln!(out, "</checkstyle>")
}
