//! A statement still takes a lock.

use super::Oracle;
use super::project::Candidate;
use crate::document::Document;
use pgvet_linter::settings::Settings;
use pgvet_syntax::ast::LockMode;
use pgvet_trace::Error;
use pgvet_workspace::Project;
use pgvet_workspace::config::Config;

/// A lock as users write it: `ACCESS EXCLUSIVE on t`, `SHARE on app.t`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedLock {
    pub mode: LockMode,
    /// Any schema if it is missing.
    pub schema: Option<String>,
    pub relation: String,
}

impl WantedLock {
    /// Reads a mode, `on`, and a name.
    ///
    /// # Errors
    /// Says what the text should be like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let usage = || format!("`{text}` is not a lock; write it as 'ACCESS EXCLUSIVE on t' or 'SHARE on app.t'");
        let words: Vec<&str> = text.split_whitespace().collect();
        let on = words.iter().rposition(|word| word.eq_ignore_ascii_case("on")).ok_or_else(usage)?;
        let [name] = words[on + 1..] else { return Err(usage()) };
        let mode = words[..on].join(" ").to_uppercase();
        let mode = LockMode::ALL.into_iter().find(|known| known.sql() == mode).ok_or_else(|| {
            let known = LockMode::ALL.map(LockMode::sql);
            format!("`{mode}` is not a lock mode; the modes are {}", known.join(", "))
        })?;
        let (schema, relation) = match name.split_once('.') {
            Some((schema, relation)) => (Some(schema.to_owned()), relation.to_owned()),
            None => (None, name.to_owned()),
        };
        Ok(Self { mode, schema, relation })
    }
}

impl std::fmt::Display for WantedLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let schema = self.schema.as_ref().map(|schema| format!("{schema}.")).unwrap_or_default();
        write!(f, "{} on {schema}{}", self.mode.sql(), self.relation)
    }
}

/// Whether a statement takes a lock, and no statement fails because of what was removed.
pub struct LockOracle<'o> {
    candidate: Candidate,
    lock: WantedLock,
    settings: &'o (dyn Fn(&Config) -> Settings + Sync),
}

impl<'o> LockOracle<'o> {
    pub fn new(project: Project, lock: WantedLock, settings: &'o (dyn Fn(&Config) -> Settings + Sync)) -> Self {
        Self { candidate: Candidate::new(project), lock, settings }
    }
}

impl Oracle for LockOracle<'_> {
    fn holds(&mut self, document: &Document) -> Result<bool, Error> {
        self.candidate.show(document);
        let settings = (self.settings)(&self.candidate.project.config_of(1));
        let effects = self.candidate.effects(document, &settings);
        let wanted = &self.lock;
        let takes = effects.values().flat_map(|effects| effects.effects.locks.iter()).any(|lock| {
            lock.mode == wanted.mode
                && lock.relation.name == wanted.relation.as_str()
                && wanted.schema.as_ref().is_none_or(|schema| lock.relation.schema == schema.as_str())
        });
        Ok(takes && self.candidate.runs(&effects))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_read_as_they_are_written() {
        for text in ["ACCESS EXCLUSIVE on t", "SHARE on app.t"] {
            assert_eq!(WantedLock::parse(text).map(|lock| lock.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(WantedLock::parse("access  exclusive ON t").unwrap().mode, LockMode::AccessExclusive);
        assert!(WantedLock::parse("strong on t").is_err_and(|message| message.contains("SHARE ROW EXCLUSIVE")));
        assert!(WantedLock::parse("SHARE t").is_err());
        assert!(WantedLock::parse("SHARE on").is_err());
    }
}
