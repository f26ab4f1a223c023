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
}

impl<'o> FindingOracle<'o> {
    pub fn new(project: Project, rule: &'static str, settings: &'o (dyn Fn(&Config) -> Settings + Sync)) -> Self {
        Self { candidate: Candidate::new(project), rule, settings }
    }
}

impl Oracle for FindingOracle<'_> {
    fn holds(&mut self, document: &Document) -> Result<bool, Error> {
        self.candidate.show(document);
        let project = &self.candidate.project;
        let found = project.check(self.settings, &|_, _| {}).found;
        if !found.iter().any(|finding| finding.rule == self.rule) {
            return Ok(false);
        }
        let settings = (self.settings)(&project.config_of(1));
        let effects = self.candidate.effects(document, &settings);
        Ok(self.candidate.runs(&effects))
    }
}
