//! Names of rules, categories and formats as arguments: shells complete them, and mistakes get an answer of our own.

use super::{Format, Output};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use pgvet_linter::meta::Category;
use pgvet_linter::rules;
use pgvet_linter::severity::Severity;
use std::ffi::OsStr;

/// Parses any text, and offers names to shells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offered<T> {
    parse: fn(&str) -> Result<T, String>,
    names: fn() -> Vec<PossibleValue>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Offered<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let text = value.to_str().ok_or_else(|| Error::new(ErrorKind::InvalidUtf8).with_cmd(command))?;
        (self.parse)(text).map_err(|message| {
            let name = argument.map(ToString::to_string).unwrap_or_default();
            Error::raw(
                ErrorKind::ValueValidation,
                format!("invalid value '{text}' for '{name}': {message}\n\nFor more information, try '--help'.\n"),
            )
            .with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter()))
    }
}

/// A rule or a category.
pub(crate) fn rule_or_category() -> Offered<String> {
    Offered { parse: |text| Ok(text.to_owned()), names: || [category_names(), rule_names()].concat() }
}

/// `--format`.
pub(crate) fn output() -> Offered<Output> {
    Offered { parse: Output::parse, names: || Format::names().map(PossibleValue::new).collect() }
}

/// `--level`.
pub(crate) fn level() -> Offered<LevelArg> {
    let names = || ["info", "warning", "error"].into_iter().map(PossibleValue::new).collect();
    Offered { parse: LevelArg::parse, names }
}

fn rule_names() -> Vec<PossibleValue> {
    rules::all().iter().map(|rule| PossibleValue::new(rule.meta.name).help(rule.meta.summary())).collect()
}

fn category_names() -> Vec<PossibleValue> {
    categories().into_iter().map(|category| PossibleValue::new(category.as_str()).help("a category")).collect()
}

/// Every category that has rules, in the order of the rules.
pub(crate) fn categories() -> Vec<Category> {
    let mut all: Vec<Category> = rules::all().iter().map(|rule| rule.meta.category).collect();
    all.dedup();
    all
}

/// The value of `--level`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LevelArg {
    /// The lowest severity that is shown.
    Shown(Severity),
    /// The severity of a rule or a category; `None` turns it off.
    Of(String, Option<Severity>),
}

impl LevelArg {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let severity = |text: &str| match text {
            "info" => Ok(Severity::Info),
            "warning" => Ok(Severity::Warning),
            "error" => Ok(Severity::Error),
            other => Err(format!("`{other}` is not a severity; severities are info, warning and error")),
        };
        match text.split_once('=') {
            None => severity(text).map(Self::Shown),
            Some((name, "off")) => Ok(Self::Of(name.to_owned(), None)),
            Some((name, level)) => {
                let level = severity(level).map_err(|message| format!("{message}, or off"))?;
                Ok(Self::Of(name.to_owned(), Some(level)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_that_of_the_report_or_of_a_rule() {
        assert_eq!(LevelArg::parse("info"), Ok(LevelArg::Shown(Severity::Info)));
        assert_eq!(LevelArg::parse("a-rule=error"), Ok(LevelArg::Of("a-rule".to_owned(), Some(Severity::Error))));
        assert_eq!(LevelArg::parse("locking=off"), Ok(LevelArg::Of("locking".to_owned(), None)));
        assert!(LevelArg::parse("off").is_err());
        assert!(LevelArg::parse("locking=never").is_err_and(|message| message.ends_with("or off")));
    }
}
