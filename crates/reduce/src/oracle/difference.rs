//! A statement still does something other than the model says.

use super::Oracle;
use super::project::Candidate;
use crate::document::Document;
use pgvet_linter::settings::Settings as ModelSettings;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::predict;
use pgvet_model::version::PgVersion;
use pgvet_trace::provider::Lasting;
use pgvet_trace::{Error, ModelDifference, Settings, compare};
use pgvet_workspace::Project;
use pgvet_workspace::config::Config;
use std::time::Duration;

/// Whether a server still does what it did in the original, and the model still says something else.
pub struct DifferenceOracle<'o> {
    candidate: Candidate,
    /// Only differences of this sort, such as `lock`.
    wanted: Option<String>,
    server: Lasting,
    statement_timeout: Duration,
    settings: &'o (dyn Fn(&Config) -> ModelSettings + Sync),
    /// The difference of the original, once it is known.
    original: Option<ModelDifference>,
}

impl<'o> DifferenceOracle<'o> {
    pub fn new(
        project: Project,
        wanted: Option<String>,
        server: Lasting,
        statement_timeout: Duration,
        settings: &'o (dyn Fn(&Config) -> ModelSettings + Sync),
    ) -> Self {
        Self { candidate: Candidate::new(project), wanted, server, statement_timeout, settings, original: None }
    }

    /// The difference that stays.
    pub fn difference(&self) -> Option<&ModelDifference> {
        self.original.as_ref()
    }

    /// What the server did other than the model says, where the model did not warn.
    fn differences(&mut self) -> Result<Vec<ModelDifference>, Error> {
        let model = (self.settings)(&self.candidate.project.config_of(1));
        let mut migrations: Vec<Migration<'_>> = self.candidate.project.migrations();
        migrations.retain(|migration| migration.direction == Direction::Up);
        migrations.iter_mut().for_each(|migration| migration.report = true);
        let settings = Settings {
            keep_going: true,
            effects_only: true,
            statement_timeout: Some(self.statement_timeout),
            ..Settings::default()
        };
        let trace = pgvet_trace::run(&migrations, &mut self.server, &settings, &mut |_| {})?;
        let predicted = predict::effects(&migrations, PgVersion(trace.major), &model.functions);
        let differences = trace.migrations.iter().flat_map(|trace| compare(trace, &predicted[trace.migration]));
        Ok(differences.filter(|difference| difference.unknown.is_none()).collect())
    }
}

impl Oracle for DifferenceOracle<'_> {
    fn holds(&mut self, document: &Document) -> Result<bool, Error> {
        self.candidate.show(document);
        let mut found = self.differences()?;
        if let Some(original) = &self.original {
            return Ok(found.iter().any(|found| is_same(found, original)));
        }
        found.retain(|found| self.wanted.as_ref().is_none_or(|wanted| found.what == wanted.as_str()));
        self.original = found.into_iter().next();
        Ok(self.original.is_some())
    }
}

/// Whether two differences are the same, wherever their statements are.
fn is_same(one: &ModelDifference, other: &ModelDifference) -> bool {
    let parts = |difference: &ModelDifference| {
        let ModelDifference { what, relation, predicted, observed, .. } = difference.clone();
        (what, relation, predicted, observed)
    };
    parts(one) == parts(other)
}
