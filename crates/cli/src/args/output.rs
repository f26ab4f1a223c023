//! `--format FORMAT[=FILE]`.

use std::path::PathBuf;

/// How findings are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For reading.
    Full,
    /// One line each.
    Concise,
    /// For programs.
    Json,
    /// Code scanning of GitHub and others.
    Sarif,
    /// Annotations of a GitHub Actions run.
    Github,
    /// A code quality report of GitLab.
    Gitlab,
    /// Generic issues of `SonarQube`.
    Sonarqube,
    /// A summary for a comment or job page.
    Markdown,
    /// Test results: each file is a test.
    Junit,
    Checkstyle,
}

impl Format {
    const NAMES: [(&'static str, Self); 10] = [
        ("full", Self::Full),
        ("concise", Self::Concise),
        ("json", Self::Json),
        ("sarif", Self::Sarif),
        ("github", Self::Github),
        ("gitlab", Self::Gitlab),
        ("sonarqube", Self::Sonarqube),
        ("markdown", Self::Markdown),
        ("junit", Self::Junit),
        ("checkstyle", Self::Checkstyle),
    ];

    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }
}

/// A format, and the file it is written to; `None` is standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) file: Option<PathBuf>,
}

impl Output {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, file) = match text.split_once('=') {
            Some((_, "")) => return Err("a file name is missing after `=`".to_owned()),
            Some((name, file)) => (name, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let Some((_, format)) = Format::NAMES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = Format::names().collect();
            return Err(format!("there is no format `{name}`; formats are {}", known.join(", ")));
        };
        Ok(Self { format: *format, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_may_have_a_file() {
        let full = Output { format: Format::Full, file: None };
        assert_eq!(Output::parse("full"), Ok(full));
        let sarif = Output { format: Format::Sarif, file: Some(PathBuf::from("a=b.sarif")) };
        assert_eq!(Output::parse("sarif=a=b.sarif"), Ok(sarif));
        assert!(Output::parse("sarif=").is_err());
        assert!(Output::parse("pdf").is_err());
    }
}
