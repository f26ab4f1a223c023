//! What the repository shows about how single migrations run: evidence against findings about them.

use crate::assumption::Assumption;
use crate::diagnostic::Diagnostic;
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::fmt;

/// What the repository shows about a migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositoryEvidence {
    /// Why nothing may run it.
    pub idle: Option<IdleReason>,
    /// The timeout that the program sets before it runs the migration.
    pub timeout: Option<CodeTimeout>,
}

impl RepositoryEvidence {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Why nothing may run a migration any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleReason {
    /// A folder is called so, and nothing names it as one of migrations.
    Folder { name: SmolStr },
    /// A migration of another history drops the table in which the tool records what has run.
    Replaced { table: SmolStr, by: SmolStr },
}

impl fmt::Display for IdleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { name } => write!(f, "a folder above it is called `{name}`"),
            Self::Replaced { table, by } => {
                write!(f, "`{by}` drops `{table}`, in which the tool records what has run")
            }
        }
    }
}

/// A timeout in the code that runs migrations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeTimeout {
    /// `lock_timeout` or `statement_timeout`.
    pub setting: SmolStr,
    /// The path and line: `scripts/migrate.ts:41`.
    pub place: SmolStr,
}

/// Lowers the confidence of findings against which the repository has evidence.
pub(crate) fn weigh(found: &mut [Diagnostic], settings: &Settings) {
    if settings.repository.is_empty() {
        return;
    }
    for diagnostic in found {
        let Some(evidence) = settings.repository.get(&diagnostic.file) else { continue };
        if let Some(although) = evidence.idle.clone() {
            diagnostic.assume(Assumption::StillRun { although });
        }
        let unset = diagnostic.assumptions.iter().position(|one| *one == Assumption::LockTimeoutUnset);
        if let (Some(at), Some(code)) = (unset, evidence.timeout.clone()) {
            diagnostic.assumptions.remove(at);
            diagnostic.assume(Assumption::NoTimeoutThough { code });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confidence::Confidence;

    /// The confidence of the findings of a migration about which the repository shows this.
    fn confidences(text: &str, evidence: RepositoryEvidence) -> Vec<(&'static str, Confidence)> {
        let file = pgvet_syntax::statement::parse_file(pgvet_syntax::source::SourceFile::new("1.sql".into(), text.into()));
        let repository = std::iter::once((0, evidence)).collect();
        let settings = Settings { repository, confidence: Confidence::Possible, ..Settings::default() };
        let found = crate::check::check(&[pgvet_model::migration::Migration::new(&file)], &settings);
        found.iter().map(|found| (found.rule, found.confidence)).collect()
    }

    #[test]
    fn a_migration_that_may_not_run_has_possible_findings_only() {
        let idle = || Some(IdleReason::Folder { name: "old".into() });
        let text = "ALTER TABLE t DROP COLUMN a;\nSELEC 1;\n";
        let found = confidences(text, RepositoryEvidence { idle: idle(), timeout: None });
        assert!(found.iter().all(|(_, confidence)| *confidence == Confidence::Possible), "{found:?}");
        let sure = confidences(text, RepositoryEvidence::default());
        assert_eq!(sure.len(), found.len());
        assert!(sure.contains(&("syntax-error", Confidence::Certain)), "{sure:?}");
    }

    #[test]
    fn a_timeout_of_the_program_counts_for_waits_alone() {
        let timeout = || CodeTimeout { setting: "lock_timeout".into(), place: "migrate.ts:4".into() };
        let found = confidences(
            "ALTER TABLE t DROP COLUMN a;\n",
            RepositoryEvidence { idle: None, timeout: Some(timeout()) },
        );
        assert!(found.contains(&("missing-lock-timeout", Confidence::Possible)), "{found:?}");
        assert!(found.contains(&("drop-column", Confidence::Likely)), "{found:?}");
    }
}
