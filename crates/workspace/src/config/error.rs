//! Errors of a configuration file, and their places.

use crate::roots::shown;
use std::ops::Range;
use std::path::Path;

/// A configuration file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    pub path: String,
    /// The file's text; empty where it could not be read.
    pub text: String,
    /// The bytes that are wrong.
    pub span: Option<Range<usize>>,
    pub message: String,
    pub help: Option<String>,
}

impl ConfigError {
    pub(super) fn new(path: &Path, message: impl Into<String>) -> Self {
        Self { path: shown(path), text: String::new(), span: None, message: message.into(), help: None }
    }

    pub(super) fn at(path: &Path, text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        Self { text: text.to_owned(), span: Some(span), ..Self::new(path, message) }
    }

    #[must_use]
    pub(super) fn help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    /// An error of the TOML parser, in the words of our users.
    pub(super) fn from_toml(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let (message, help) = rephrase(error.message());
        Self { text: text.to_owned(), span: error.span(), ..Self::new(path, message) }.help(help)
    }
}

/// serde says "unknown field `a`, expected one of `b`, `c`".
fn rephrase(message: &str) -> (String, Option<String>) {
    let known = |message: &str| message.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    for (start, noun) in [("unknown field ", "key"), ("unknown variant ", "value")] {
        let Some((wrong, expected)) = message.strip_prefix(start).and_then(|rest| rest.split_once(", ")) else {
            continue;
        };
        let names = known(expected);
        let help = did_you_mean(wrong.trim_matches('`'), names.iter().map(String::as_str))
            .unwrap_or_else(|| format!("known here: {}", quoted(&names)));
        return (format!("there is no {noun} {wrong}"), Some(help));
    }
    if message == "invalid type: map, expected a sequence" {
        let help = "write two brackets around the name, as in `[[overrides]]`";
        return ("this is one table, but the key takes a list of tables".to_owned(), Some(help.to_owned()));
    }
    (message.replace('\n', " ").trim().to_owned(), None)
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// The known name that is most like a wrong one, if one is.
pub(super) fn did_you_mean<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let wrong = wrong.to_lowercase().replace('_', "-");
    let distance = |name: &'a str| (strsim::damerau_levenshtein(&wrong, name), name);
    let most = |name: &str| 2.max(name.len() / 4);
    let length = wrong.chars().count();
    let candidates = known.filter(|name| name.chars().count().abs_diff(length) <= most(name));
    let (distance, nearest) = candidates.map(distance).min()?;
    (distance <= most(nearest)).then(|| format!("did you mean `{nearest}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_get_a_suggestion() {
        let (message, help) = rephrase("unknown field `pg_version`, expected one of `extend`, `pg-version`");
        assert_eq!(message, "there is no key `pg_version`");
        assert_eq!(help.as_deref(), Some("did you mean `pg-version`?"));
        let (message, help) = rephrase("unknown variant `loud`, expected `off` or `error`");
        assert_eq!(message, "there is no value `loud`");
        assert_eq!(help.as_deref(), Some("known here: `off`, `error`"));
    }
}
