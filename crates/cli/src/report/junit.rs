//! Test results as most CI servers read them: each file is a suite, each finding a test, which fails if the
//! finding makes the run fail.
//!
//! Source: <https://github.com/windyroad/JUnit-Schema/blob/master/JUnit.xsd>.

use super::xml::escape;
use super::{Finding, Report};
use pgvet_workspace::Role;
use std::io::{self, Write};

pub(crate) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let reported: Vec<_> = report.project.files.iter().filter(|file| file.role == Role::Reported).collect();
    let of_file = |path: &str| report.findings.iter().filter(|found| found.path == path).collect::<Vec<_>>();
    let clean = reported.iter().filter(|file| of_file(file.named()).is_empty()).count();
    let problems = report.project.problems.len();
    let failures = report.findings.iter().filter(|finding| finding.fails).count();
    let tests = report.findings.len() + clean + problems;
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(out, r#"<testsuites name="pgvet" tests="{tests}" failures="{failures}" errors="{problems}">"#)?;
    for path in reported.iter().map(|file| file.named()) {
        suite(path, &of_file(path), out)?;
    }
    for problem in &report.project.problems {
        let path = escape(&problem.path);
        writeln!(out, r#"  <testsuite name="{path}" package="pgvet" tests="1" failures="0" errors="1">"#)?;
        writeln!(out, r#"    <testcase name="read" classname="{path}">"#)?;
        writeln!(out, r#"      <error message="{}"/>"#, escape(&problem.message))?;
        writeln!(out, "    </testcase>\n  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn suite(path: &str, findings: &[&Finding<'_>], out: &mut dyn Write) -> io::Result<()> {
    let (path, tests) = (escape(&super::relative_path(path)), findings.len().max(1));
    let failures = findings.iter().filter(|finding| finding.fails).count();
    writeln!(out, r#"  <testsuite name="{path}" package="pgvet" tests="{tests}" failures="{failures}" errors="0">"#)?;
    if findings.is_empty() {
        writeln!(out, r#"    <testcase name="pgvet" classname="{path}"/>"#)?;
    }
    for finding in findings {
        let found = finding.diagnostic;
        writeln!(
            out,
            r#"    <testcase name="{}" classname="{path}" line="{}">"#,
            escape(found.rule),
            finding.start.line
        )?;
        let place = format!("{path}:{}:{}", finding.start.line, finding.start.column);
        let (severity, text) = (found.severity.as_str(), escape(&finding.message_with_help()));
        if finding.fails {
            let message = escape(&finding.message());
            writeln!(out, r#"      <failure type="{severity}" message="{message}">{place}: {text}</failure>"#)?;
        } else {
            // A test that passes has no message, only output.
            writeln!(out, "      <system-out>{place}: {severity}: {text}</system-out>")?;
        }
        writeln!(out, "    </testcase>")?;
    }
    writeln!(out, "  </testsuite>")
}
