//! The effects of a statement, reduced to those that can be compared between a server and the model.

use pgvet_model::effect::{Effects, RelationName};
use pgvet_syntax::ast::LockMode;
use std::collections::{BTreeMap, BTreeSet};

/// The comparable part of what a statement did, on either side. Names are `schema.name`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The strongest lock on each relation that existed before.
    pub locks: BTreeMap<String, LockMode>,
    /// Those of `locks` that are known to be indexes.
    pub indexes: BTreeSet<String>,
    /// Tables and materialized views with new storage.
    pub rewrites: BTreeSet<String>,
    /// Existing tables that were read in full.
    pub scans: BTreeSet<String>,
    /// Indexes built on existing tables.
    pub builds: BTreeSet<String>,
    /// SQLSTATE.
    pub fails: Option<String>,
}

/// One thing in which the server and the model differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `lock`, `index lock`, `rewrite`, `scan`, `build` or `error`.
    pub what: &'static str,
    pub relation: String,
    pub measured: String,
    pub predicted: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, relation, measured, predicted } = self;
        let space = if relation.is_empty() { "" } else { " " };
        write!(f, "{what}{space}{relation}: server {measured}, model {predicted}")
    }
}

/// Reads a lock mode as the server's `pg_locks` writes it.
pub fn lock_mode(text: &str) -> Option<LockMode> {
    let name = text.strip_suffix("Lock")?;
    LockMode::ALL.into_iter().find(|mode| format!("{mode:?}") == name)
}

impl Outcome {
    /// Returns the model's prediction, without objects that the statement itself creates.
    pub fn predicted(effects: &Effects) -> Self {
        let existed = |relation: &RelationName| !effects.creates.iter().any(|created| created.oid == relation.oid);
        let mut outcome =
            Self { fails: effects.fails.as_ref().map(|failure| failure.sqlstate.to_owned()), ..Self::default() };
        for lock in effects.locks.iter().filter(|lock| existed(&lock.relation)) {
            outcome.lock(lock.relation.to_string(), lock.mode);
            if lock.relation.kind.is_index() {
                outcome.indexes.insert(lock.relation.to_string());
            }
        }
        for scan in effects.scans.iter().filter(|scan| existed(&scan.relation)) {
            outcome.scans.insert(scan.relation.to_string());
        }
        let rewritten = effects.rewrites.iter().map(|rewrite| &rewrite.relation).filter(|relation| existed(relation));
        outcome.rewrites = rewritten.filter(|relation| has_rows(relation)).map(ToString::to_string).collect();
        let builds = effects.index_builds.iter().filter(|build| existed(&build.table));
        outcome.builds = builds.map(|build| build.index.to_string()).collect();
        outcome
    }

    fn lock(&mut self, relation: String, mode: LockMode) {
        let strongest = self.locks.entry(relation).or_insert(mode);
        *strongest = mode.max(*strongest);
    }

    /// The same with every name changed by `rename`.
    #[must_use]
    pub fn renamed(&self, rename: impl Fn(&str) -> String) -> Self {
        let names = |set: &BTreeSet<String>| set.iter().map(|name| rename(name)).collect();
        Self {
            locks: self.locks.iter().map(|(name, mode)| (rename(name), *mode)).collect(),
            indexes: names(&self.indexes),
            rewrites: names(&self.rewrites),
            scans: names(&self.scans),
            builds: names(&self.builds),
            fails: self.fails.clone(),
        }
    }

    /// Drops the scans whose presence is the planner's choice: under a lock that only queries take, and of tables that
    /// stand on the other side of a foreign key.
    pub fn keep_forced_scans(&mut self, other_side: impl Fn(&str) -> bool) {
        let locks = &self.locks;
        let forced = |name: &str| locks.get(name).is_some_and(|mode| *mode >= LockMode::ShareUpdateExclusive);
        self.scans.retain(|name| forced(name) && !other_side(name));
    }

    /// Compares a measurement with a prediction. `is_index` tells the kind of what only the server locked.
    pub fn differences(&self, predicted: &Self, is_index: impl Fn(&str) -> bool) -> Vec<Difference> {
        if self.fails != predicted.fails {
            let text = |sqlstate: &Option<String>| sqlstate.clone().unwrap_or_else(|| "none".to_owned());
            let (measured, predicted) = (text(&self.fails), text(&predicted.fails));
            return vec![Difference { what: "error", relation: String::new(), measured, predicted }];
        }
        if self.fails.is_some() {
            return Vec::new();
        }
        let is_index = |name: &str| {
            predicted.indexes.contains(name)
                || self.indexes.contains(name)
                || (!predicted.locks.contains_key(name) && is_index(name))
        };
        let mut differences = lock_differences(&self.locks, &predicted.locks, is_index);
        for (what, measured, predicted) in [
            ("rewrite", &self.rewrites, &predicted.rewrites),
            ("scan", &self.scans, &predicted.scans),
            ("build", &self.builds, &predicted.builds),
        ] {
            differences.extend(measured.symmetric_difference(predicted).map(|relation| {
                let (server, model) = if measured.contains(relation) { ("yes", "no") } else { ("no", "yes") };
                Difference {
                    what,
                    relation: relation.clone(),
                    measured: server.to_owned(),
                    predicted: model.to_owned(),
                }
            }));
        }
        differences
    }
}

fn has_rows(relation: &RelationName) -> bool {
    use pgvet_model::catalog::RelationKind;
    relation.kind.is_table() || relation.kind == RelationKind::MaterializedView
}

fn lock_differences(
    measured: &BTreeMap<String, LockMode>,
    predicted: &BTreeMap<String, LockMode>,
    is_index: impl Fn(&str) -> bool,
) -> Vec<Difference> {
    let names: BTreeSet<&String> = measured.keys().chain(predicted.keys()).collect();
    let text = |mode: Option<LockMode>| mode.map_or_else(|| "none".to_owned(), |mode| format!("{mode:?}"));
    let compare = |name: &String| {
        let index = is_index(name);
        let threshold = if index { LockMode::Share } else { LockMode::ShareUpdateExclusive };
        let scored = |locks: &BTreeMap<String, LockMode>| locks.get(name).copied().filter(|mode| *mode >= threshold);
        let (server, model) = (scored(measured), scored(predicted));
        (server != model).then(|| Difference {
            what: if index { "index lock" } else { "lock" },
            relation: name.clone(),
            measured: text(server),
            predicted: text(model),
        })
    };
    names.into_iter().filter_map(compare).collect()
}

/// The names that follow REFERENCES in a text, without schema and quotes.
pub fn referenced_names(text: &str) -> BTreeSet<String> {
    let words = words(text);
    let mut names = BTreeSet::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| word.eq_ignore_ascii_case("references")) {
        if let Some(end) = name_end(&words, at + 1) {
            names.insert(words[end].to_owned());
        }
    }
    names
}

/// The names, and those of the partitions that the text gives to tables of these names.
pub fn with_partitions(text: &str, names: BTreeSet<String>) -> BTreeSet<String> {
    let words = words(text);
    let mut all = names;
    for at in 1..words.len().saturating_sub(2) {
        let partition_of = words[at].eq_ignore_ascii_case("partition") && words[at + 1].eq_ignore_ascii_case("of");
        if partition_of && name_end(&words, at + 2).is_some_and(|end| all.contains(words[end])) {
            all.insert(words[at - 1].to_owned());
        }
    }
    all
}

/// Whether the text names the relation other than after REFERENCES.
pub fn mentions(text: &str, relation: &str) -> bool {
    let bare = bare_name(relation);
    let words = words(text);
    let mut at = 0;
    while at < words.len() {
        if words[at].eq_ignore_ascii_case("references") {
            at = name_end(&words, at + 1).map_or(at + 1, |end| end + 1);
        } else if words[at].eq_ignore_ascii_case(bare) {
            return true;
        } else {
            at += 1;
        }
    }
    false
}

/// The name without its schema.
pub fn bare_name(relation: &str) -> &str {
    relation.rsplit('.').next().unwrap_or(relation)
}

/// Words and dots; quotes are dropped, which is enough to find names.
fn words(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, after) = rest.split_at(length);
        if is_word(first) || first == '.' {
            words.push(word);
        }
        rest = after;
    }
    words
}

/// The place of the last part of the possibly qualified name that begins at `start`.
fn name_end(words: &[&str], start: usize) -> Option<usize> {
    let mut end = start;
    while words.get(end + 1) == Some(&".") && end + 2 < words.len() {
        end += 2;
    }
    (end < words.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(locks: &[(&str, LockMode)], scans: &[&str]) -> Outcome {
        Outcome {
            locks: locks.iter().map(|(name, mode)| ((*name).to_owned(), *mode)).collect(),
            scans: scans.iter().map(|name| (*name).to_owned()).collect(),
            ..Outcome::default()
        }
    }

    #[test]
    fn weak_locks_are_not_compared_and_strong_ones_are() {
        let server = outcome(&[("public.t", LockMode::AccessShare), ("public.u", LockMode::Share)], &[]);
        assert_eq!(server.differences(&outcome(&[("public.u", LockMode::Share)], &[]), |_| false), []);
        let differences = server.differences(&outcome(&[("public.u", LockMode::Exclusive)], &[]), |_| false);
        assert_eq!(differences[0].to_string(), "lock public.u: server Share, model Exclusive");
        let differences = server.differences(&Outcome::default(), |_| false);
        assert_eq!(differences[0].to_string(), "lock public.u: server Share, model none");
    }

    #[test]
    fn indexes_have_a_higher_threshold() {
        let server = outcome(&[("public.i", LockMode::ShareUpdateExclusive)], &[]);
        assert_eq!(server.differences(&Outcome::default(), |_| true), []);
        assert_eq!(server.differences(&Outcome::default(), |_| false).len(), 1);
    }

    #[test]
    fn only_the_state_of_a_refusal_is_compared() {
        let refused = |state: &str| Outcome { fails: Some(state.to_owned()), ..outcome(&[], &["public.t"]) };
        assert_eq!(refused("25001").differences(&refused("25001"), |_| false), []);
        let differences = refused("25001").differences(&Outcome::default(), |_| false);
        assert_eq!(differences[0].to_string(), "error: server 25001, model none");
    }

    #[test]
    fn scans_of_queries_and_of_the_other_side_are_dropped() {
        let mut outcome = outcome(
            &[("p.t", LockMode::AccessExclusive), ("p.q", LockMode::AccessShare), ("p.r", LockMode::Share)],
            &["p.t", "p.q", "p.r"],
        );
        outcome.keep_forced_scans(|name| name == "p.r");
        assert_eq!(outcome.scans.into_iter().collect::<Vec<_>>(), ["p.t"]);
    }

    #[test]
    fn the_referenced_side_is_found_in_the_text() {
        let text = r#"ALTER TABLE a ADD FOREIGN KEY (x) REFERENCES "app"."b" (id), ADD y int REFERENCES c"#;
        assert_eq!(referenced_names(text).into_iter().collect::<Vec<_>>(), ["b", "c"]);
        assert!(mentions(text, "public.a"));
        assert!(!mentions(text, "app.b"));
        assert!(!mentions("ALTER TABLE a ADD z int REFERENCES", "references"));
    }
}
