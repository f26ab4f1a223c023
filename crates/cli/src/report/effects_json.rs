//! Effects for programs. The names of fields are stable within a `schema_version`.

use super::JsonRange;
use super::effects::EffectsReport;
use pgvet_model::effect::{Effects, names};
use pgvet_model::migration::TransactionState;
use pgvet_model::predict::StatementEffects;
use pgvet_model::routine::Bound;
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::SourceFile;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

#[derive(Debug, Serialize)]
struct Document<'a> {
    schema_version: u32,
    pg_version: PgVersion,
    files: Vec<JsonFile<'a>>,
}

#[derive(Debug, Serialize)]
struct JsonFile<'a> {
    path: &'a str,
    statements: Vec<JsonStatement<'a>>,
}

#[derive(Debug, Serialize)]
struct JsonStatement<'a> {
    range: JsonRange,
    transaction: &'static str,
    effects: JsonEffects<'a>,
}

#[derive(Debug, Serialize)]
struct JsonEffects<'a> {
    locks: Vec<JsonLock>,
    rewrites: Vec<String>,
    scans: Vec<String>,
    index_builds: Vec<String>,
    creates: Vec<String>,
    drops: Vec<String>,
    fails: Option<JsonFailure<'a>>,
    unknown: Vec<String>,
    catalog_rows: BTreeMap<&'static str, u64>,
    /// `null` where nothing limits them.
    subtransactions: Option<u64>,
}

#[derive(Debug, Serialize)]
struct JsonLock {
    relation: String,
    kind: &'static str,
    mode: LockMode,
}

#[derive(Debug, Serialize)]
struct JsonFailure<'a> {
    sqlstate: &'static str,
    reason: &'a str,
}

pub(crate) fn write(report: &EffectsReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    let files = report.files.iter().map(|file| JsonFile {
        path: &file.file.path,
        statements: file.statements.iter().map(|effects| statement(file.file, effects)).collect(),
    });
    let document = Document { schema_version: 1, pg_version: report.version, files: files.collect() };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

fn statement<'a>(file: &SourceFile, statement: &'a StatementEffects) -> JsonStatement<'a> {
    JsonStatement {
        range: JsonRange::new(file, statement.statement),
        transaction: match statement.transaction {
            TransactionState::None => "none",
            TransactionState::Explicit => "explicit",
            TransactionState::Implicit => "implicit",
        },
        effects: effects(&statement.effects, statement.subtransactions),
    }
}

fn effects(effects: &Effects, subtransactions: Bound) -> JsonEffects<'_> {
    let lock = |(relation, mode): (&pgvet_model::effect::RelationName, LockMode)| JsonLock {
        relation: relation.to_string(),
        kind: relation.kind.noun(),
        mode,
    };
    JsonEffects {
        locks: effects.strongest_locks().into_iter().map(lock).collect(),
        rewrites: names(effects.rewrites.iter().map(|rewrite| &rewrite.relation)),
        scans: names(effects.scans.iter().map(|scan| &scan.relation)),
        index_builds: names(effects.index_builds.iter().map(|build| &build.index)),
        creates: names(effects.creates.iter()),
        drops: names(effects.drops.iter()),
        fails: effects
            .fails
            .as_ref()
            .map(|failure| JsonFailure { sqlstate: failure.sqlstate, reason: &failure.reason }),
        unknown: effects.unknown_reasons().into_iter().map(ToString::to_string).collect(),
        catalog_rows: effects.catalog_rows.by_catalog().collect(),
        subtransactions: match subtransactions {
            Bound::AtMost(number) => Some(number),
            Bound::Unbounded => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::effects::tests::{lock, relation};
    use super::*;

    #[test]
    fn the_shape_is_the_documented_one() {
        let effects_of_one = Effects {
            locks: std::iter::once(lock(relation(1, "t"), LockMode::AccessExclusive)).collect(),
            drops: vec![relation(1, "t")],
            ..Effects::default()
        };
        let expected = serde_json::json!({
            "locks": [{ "relation": "public.t", "kind": "table", "mode": "AccessExclusive" }],
            "rewrites": [], "scans": [], "index_builds": [], "creates": [], "drops": ["public.t"],
            "fails": null, "unknown": [], "catalog_rows": {}, "subtransactions": 0
        });
        assert_eq!(serde_json::to_value(effects(&effects_of_one, Bound::ZERO)).unwrap(), expected);
    }
}
