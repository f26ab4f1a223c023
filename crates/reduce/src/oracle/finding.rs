//! A rule still has a finding.

use super::Oracle;
use super::project::Candidate;
use crate::document::Document;
use pgvet_linter::settings::Settings;
use pgvet_trace::Error;
use pgvet_workspace::Project;
use pgvet_workspace::config::Config;

/// Whether a rule has a finding in the migrations, and no statement fails because of what was removed.
pub struct FindingOracle<'o> {
    candidate: Candidate,
    rule: &'static str,
    settings: &'o (dyn Fn(&Config) -> Settings + Sync),
    /// Whether the rule has a finding in the original when it runs without the others, so that most tries need only this
    /// rule; `None` before the first try.
    shows_alone: Option<bool>,
}

impl<'o> FindingOracle<'o> {
    pub fn new(project: Project, rule: &'static str, settings: &'o (dyn Fn(&Config) -> Settings + Sync)) -> Self {
        Self { candidate: Candidate::new(project), rule, settings, shows_alone: None }
    }

    fn is_found(&self, settings: &(dyn Fn(&Config) -> Settings + Sync)) -> bool {
        let found = self.candidate.project.check(settings, &|_, _| {}).found;
        found.iter().any(|finding| finding.rule == self.rule)
    }

    fn is_found_alone(&self) -> bool {
        self.is_found(&|config| Settings { only: vec![self.rule.to_owned()], ..(self.settings)(config) })
    }
}

impl Oracle for FindingOracle<'_> {
    fn holds(&mut self, document: &Document) -> Result<bool, Error> {
        self.candidate.show(document);
        match self.shows_alone {
            None => self.shows_alone = Some(self.is_found_alone()),
            Some(true) if !self.is_found_alone() => return Ok(false),
            Some(_) => {}
        }
        let settings = (self.settings)(&self.candidate.project.config_of(1));
        let effects = self.candidate.effects(document, &settings);
        // The finding of another rule may replace it.
        Ok(self.candidate.runs(&effects) && self.is_found(self.settings))
    }
}
