//! Arguments that say which rules run, and what is shown of their findings.

use super::names::{self, LevelArg};
use crate::rule_names;
use clap::{Args, ValueEnum};
use pgvet_linter::confidence::Confidence;
use pgvet_linter::settings::Settings;
use pgvet_linter::severity::Severity;
use pgvet_workspace::config::Config;

/// Heading of the options that say which rules run.
const RULES: &str = "Rules";

/// Which rules run, and what is shown of their findings.
#[derive(Debug, Clone, Args)]
pub(crate) struct RuleArgs {
    /// Lowest severity that is shown [default: warning, or the severity of --fail-on if that is lower]. NAME=SEVERITY
    /// changes the severity of a rule or category for this run (`off` turns it off). May be repeated.
    #[arg(long, value_name = "SEVERITY", value_parser = names::level(), value_delimiter = ',', hide_possible_values = true,
        help_heading = RULES)]
    pub(crate) level: Vec<LevelArg>,
    /// Lowest confidence that is shown [default: likely].
    #[arg(long, value_name = "CONFIDENCE", value_enum, help_heading = RULES)]
    pub(crate) confidence: Option<ConfidenceArg>,
    /// Run only these rules, and the enabled rules of these categories.
    #[arg(long, value_name = "RULE|CATEGORY", value_parser = names::rule_or_category(), value_delimiter = ',',
        hide_possible_values = true, help_heading = RULES)]
    pub(crate) only: Vec<String>,
    /// Do not run these rules and the rules of these categories.
    #[arg(long, value_name = "RULE|CATEGORY", value_parser = names::rule_or_category(), value_delimiter = ',',
        hide_possible_values = true, help_heading = RULES)]
    pub(crate) ignore: Vec<String>,
    /// Also run the opt-in rules.
    #[arg(long, help_heading = RULES)]
    pub(crate) strict: bool,
    /// Also check down migrations.
    #[arg(long, help_heading = RULES)]
    pub(crate) down: bool,
    /// Report suppressions that give no reason.
    #[arg(long, help_heading = RULES)]
    pub(crate) require_reasons: bool,
}

impl RuleArgs {
    /// Applies the options. Findings that make the run fail (`fails`) are shown, too, unless the user requested less.
    pub(crate) fn apply(&self, config: &Config, fails: Option<Severity>, mut settings: Settings) -> Settings {
        settings.level = config.level(fails);
        if let Some(confidence) = self.confidence {
            settings.confidence = confidence.confidence();
        }
        settings.strict |= self.strict;
        settings.lint_down |= self.down;
        settings.require_reasons |= self.require_reasons;
        for level in &self.level {
            match level {
                LevelArg::Shown(level) => settings.level = *level,
                LevelArg::Of(name, level) => set_level(&mut settings, name, *level),
            }
        }
        // A category means those of its rules that would run without this option.
        let would_run = settings.clone();
        settings.only = rule_names::expand(&self.only, |rule| would_run.severity_of(rule).is_some());
        let ignored = rule_names::expand(&self.ignore, |_| true);
        settings.ignore.extend(ignored);
        settings
    }
}

/// Gives a rule or the rules of a category a severity, or turns them off for every file.
fn set_level(settings: &mut Settings, name: &str, level: Option<Severity>) {
    match level {
        None => settings.ignore.extend(rule_names::expand(&[name.to_owned()], |_| true)),
        Some(_) => match rule_names::category(name) {
            Some(category) => {
                settings.levels.categories.insert(category, level);
                settings.levels.rules.retain(|rule, level| level.is_none() || !rule_names::is_of(rule, category));
            }
            None => {
                settings.levels.rules.insert(name.to_owned(), level);
            }
        },
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfidenceArg {
    /// Findings that follow from how PostgreSQL works and from earlier migrations
    Certain,
    /// Also findings that assume an ordinary production table or application
    Likely,
    /// Also uncertain findings: something suggests that they do not apply
    Possible,
}

impl ConfidenceArg {
    fn confidence(self) -> Confidence {
        match self {
            Self::Certain => Confidence::Certain,
            Self::Likely => Confidence::Likely,
            Self::Possible => Confidence::Possible,
        }
    }
}
