//! Lock truth: `fixtures/locks`, and how the model is compared with it.

use super::outcome::{Difference, Outcome, bare_name, lock_mode, mentions, referenced_names, with_partitions};
use super::{fixtures, read};
use pgvet_model::migration::Migration;
use pgvet_model::predict::effects;
use pgvet_model::production::Functions;
use pgvet_model::version::PgVersion;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// One statement and what it needs to run.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    pub id: String,
    pub category: String,
    pub setup: Vec<String>,
    #[serde(default)]
    pub session: Session,
    pub sql: String,
    #[serde(default)]
    pub notes: String,
    pub outside_tx: bool,
}

/// One text or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Session {
    One(String),
    Several(Vec<String>),
}

impl Default for Session {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Session {
    pub fn statements(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        }
    }
}

/// The result of one major in one case.
#[derive(Debug, Clone, Deserialize)]
pub struct Measured {
    pub locks: BTreeMap<String, String>,
    pub rewrites: BTreeSet<String>,
    pub scans: BTreeSet<String>,
    #[serde(default)]
    pub index_rewrites: BTreeSet<String>,
    #[serde(default)]
    pub indexes_built: BTreeSet<String>,
    /// Every mode on a relation, where that is more than the strongest.
    #[serde(default)]
    pub all_modes: BTreeMap<String, BTreeSet<String>>,
    pub error: Option<String>,
}

/// Cases, and what one major did in each.
pub type Truth = BTreeMap<String, Measured>;

/// How a case went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It cannot be compared: the setup fails on that major, or the error depends on rows.
    Skipped,
    /// The model did not return the statement.
    Missing,
    Agrees,
    Differs(Vec<Difference>),
}

/// Reads all cases.
///
/// # Errors
/// The file that is missing or broken.
pub fn cases() -> Result<Vec<Case>, String> {
    let text = read(&fixtures("locks").join("cases.jsonl"))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("cases.jsonl: {error}"))).collect()
}

/// Reads what one major did.
///
/// # Errors
/// The file that is missing or broken.
pub fn truth(version: PgVersion) -> Result<Truth, String> {
    let name = format!("truth-{version}.json");
    serde_json::from_str(&read(&fixtures("locks").join(&name))?).map_err(|error| format!("{name}: {error}"))
}

/// A case of `more-*.jsonl`, which carries what each major did.
#[derive(Debug, Clone, Deserialize)]
pub struct MeasuredCase {
    #[serde(flatten)]
    pub case: Case,
    /// By major; a major on which it was not measured is absent.
    pub truth: BTreeMap<u8, Measured>,
}

/// Reads the cases of every `more-*.jsonl`, in the order of the files.
///
/// # Errors
/// The file that is missing or broken.
pub fn more_cases() -> Result<Vec<MeasuredCase>, String> {
    let folder = fixtures("locks");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("more-") && path.extension().is_some_and(|extension| extension == "jsonl")
    });
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        for line in read(&path)?.lines() {
            cases.push(serde_json::from_str(line).map_err(|error| format!("{}: {error}", path.display()))?);
        }
    }
    Ok(cases)
}

/// A case as the engine takes it: the setup as existing schema, and the file whose last statement is meant.
pub struct Run {
    setup: ParsedFile,
    file: ParsedFile,
    /// Where the statement begins in the file.
    pub start: u32,
}

impl Run {
    pub fn new(case: &Case) -> Self {
        let mut text: String = case.session.statements().iter().map(|statement| terminated(statement)).collect();
        if !case.outside_tx {
            text.push_str("BEGIN;\n");
        }
        let start = text.len() as u32;
        text.push_str(&case.sql);
        let setup = case.setup.iter().map(|statement| terminated(statement)).collect();
        Self { setup: parsed("setup.sql", setup), file: parsed("case.sql", text), start }
    }

    pub fn migrations(&self) -> [Migration<'_>; 2] {
        let migration = |file, baseline: bool| Migration {
            direction: pgvet_model::migration::Direction::Up,
            report: !baseline,
            baseline,
            ..Migration::new(file)
        };
        [migration(&self.setup, true), migration(&self.file, false)]
    }
}

fn terminated(statement: &str) -> String {
    format!("{};\n", statement.trim_end().trim_end_matches(';'))
}

fn parsed(path: &str, text: String) -> ParsedFile {
    parse_file(SourceFile::new(path.to_owned(), text))
}

/// Compares the model's answer for a case with what the major did.
pub fn compare(case: &Case, measured: &Measured, version: PgVersion) -> Verdict {
    if measured.error.as_deref().is_some_and(|error| error.starts_with("setup:") || error.starts_with("23")) {
        return Verdict::Skipped;
    }
    let run = Run::new(case);
    let files = effects(&run.migrations(), version, &Functions::default());
    let statement = files.iter().flatten().find(|statement| statement.statement.start >= run.start);
    let Some(statement) = statement else { return Verdict::Missing };

    let setup = case.setup.concat();
    let referenced: BTreeSet<String> = referenced_names(&setup).union(&referenced_names(&case.sql)).cloned().collect();
    let referenced = with_partitions(&setup, referenced);
    let other_side = |name: &str| referenced.contains(bare_name(name)) && !mentions(&case.sql, name);
    let mut server = measured.outcome();
    let mut model = Outcome::predicted(&statement.effects);
    model.builds.clear();
    server.keep_forced_scans(other_side);
    model.keep_forced_scans(other_side);
    let differences = server.differences(&model, |name| looks_like_index(bare_name(name), &setup));
    if differences.is_empty() { Verdict::Agrees } else { Verdict::Differs(differences) }
}

impl Measured {
    pub(super) fn outcome(&self) -> Outcome {
        let names = |names: &BTreeSet<String>| names.iter().map(|name| qualified(name)).collect();
        Outcome {
            locks: self.locks.iter().filter_map(|(name, mode)| Some((qualified(name), lock_mode(mode)?))).collect(),
            indexes: self.index_rewrites.union(&self.indexes_built).map(|name| qualified(name)).collect(),
            rewrites: names(&self.rewrites),
            scans: names(&self.scans),
            builds: BTreeSet::new(),
            fails: self.error.clone(),
        }
    }

    /// Tables that are rewritten or read in full under a lock that blocks writes.
    pub fn endangered(&self) -> BTreeSet<&str> {
        use pgvet_syntax::ast::LockMode;
        let blocked = |name: &&String| {
            let mode = self.locks.get(name.as_str()).and_then(|mode| lock_mode(mode));
            mode.is_some_and(|mode| mode >= LockMode::Share)
        };
        self.rewrites.union(&self.scans).filter(blocked).map(String::as_str).collect()
    }
}

/// Bare names in the truth are in schema public.
fn qualified(name: &str) -> String {
    if name.contains('.') { name.to_owned() } else { format!("public.{name}") }
}

/// The truth does not say what kind a relation has: use the name that the server or the setup gave it.
fn looks_like_index(name: &str, setup: &str) -> bool {
    let by_suffix = ["_pkey", "_key", "_idx", "_excl"].iter().any(|suffix| name.ends_with(suffix));
    let words: Vec<&str> =
        setup.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty()).collect();
    by_suffix || words.windows(2).any(|pair| pair[0].eq_ignore_ascii_case("index") && pair[1] == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::MAJORS;

    #[test]
    fn every_major_has_every_case() {
        let cases = cases().unwrap();
        assert_eq!(cases.len(), 424);
        for version in MAJORS {
            let truth = truth(version).unwrap();
            assert!(cases.iter().all(|case| truth.contains_key(&case.id)), "{version}");
            let modes = truth.values().flat_map(|measured| measured.locks.values());
            assert!(modes.into_iter().all(|mode| lock_mode(mode).is_some()), "{version}");
        }
    }

    #[test]
    fn the_statement_is_found_behind_its_session() {
        let cases = cases().unwrap();
        for case in &cases {
            let run = Run::new(case);
            let text = &run.file.source.text;
            assert_eq!(&text[run.start as usize..], case.sql);
            assert_eq!(text[..run.start as usize].ends_with("BEGIN;\n"), !case.outside_tx);
        }
    }

    #[test]
    fn danger_is_long_work_under_a_lock_that_blocks_writes() {
        let measured = |mode: &str| Measured {
            all_modes: BTreeMap::new(),
            locks: BTreeMap::from([("t".to_owned(), mode.to_owned())]),
            rewrites: BTreeSet::new(),
            scans: BTreeSet::from(["t".to_owned()]),
            index_rewrites: BTreeSet::new(),
            indexes_built: BTreeSet::new(),
            error: None,
        };
        assert_eq!(measured("ShareLock").endangered().len(), 1);
        assert_eq!(measured("ShareUpdateExclusiveLock").endangered().len(), 0);
    }

    #[test]
    fn indexes_are_recognized_by_name() {
        assert!(looks_like_index("i_a", "CREATE UNIQUE INDEX i_a ON t(a)"));
        assert!(looks_like_index("t_pkey", ""));
        assert!(!looks_like_index("t", "CREATE INDEX i_a ON t(a)"));
    }
}
