//! Definitions of functions, judged with the schema that their deployment leaves: code that a later deployment replaces,
//! or for which it makes what is missing, fails until then.

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::rule::{RoutineContext, Rule, Until};
use crate::rules;
use pgvet_model::catalog::{Catalog, Function, Oid};
use pgvet_model::checkpoint::Database;
use pgvet_model::effect::ChangedObject;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::place::Place;
use pgvet_model::replay::StatementVisit;
use pgvet_model::routine::Routines;
use pgvet_syntax::ast::FunctionBody;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use std::sync::Arc;

/// The rules about code that fails when it runs.
static ABOUT_FAILURES: [&Rule; 1] = [&rules::plpgsql::unknown_column_or_table::RULE];

/// Whether a finding is about code that fails when it runs.
pub(super) fn is_about_failure(found: &Diagnostic) -> bool {
    ABOUT_FAILURES.iter().any(|rule| found.is_of(&rule.meta))
}

/// The functions that reported migrations define, by database.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// Those of the current deployment.
    open: FxHashMap<u32, Vec<Oid>>,
    left: FxHashMap<u32, Vec<Left>>,
}

/// What a deployment leaves that is not the last one.
#[derive(Debug)]
struct Left {
    catalog: Catalog,
    functions: Vec<Arc<Function>>,
}

impl Definitions {
    /// Notes the functions that a statement defines.
    pub(super) fn note(&mut self, visit: &StatementVisit<'_>) {
        for change in &visit.effects.changes {
            if let ChangedObject::Function { oid, .. } = change.object {
                self.open.entry(visit.migration.database).or_default().push(oid);
            }
        }
    }

    /// Keeps the schema at the end of a deployment that defines functions.
    pub(super) fn leave(
        &mut self,
        migrations: &[Migration<'_>],
        file: u32,
        migration: &Migration<'_>,
        catalog: &Catalog,
    ) {
        let later = migrations.iter().enumerate().skip(file as usize + 1);
        let is_next = |other: &Migration<'_>| other.database == migration.database && other.direction == Direction::Up;
        let next = later.map(|(at, other)| (at as u32, other)).find(|(_, other)| is_next(other));
        let deployment = migration.deployment(file);
        let is_last_of_deployment = next.is_none_or(|(at, next)| next.deployment(at) != deployment);
        if migration.direction != Direction::Up || !is_last_of_deployment {
            return;
        }
        let mut defined = self.open.remove(&migration.database).unwrap_or_default();
        if next.is_none() {
            return;
        }
        defined.sort_unstable();
        defined.dedup();
        let is_own = |function: &&Arc<Function>| {
            let file = function.defined_at.as_ref().map(|definition| definition.file);
            file.is_some_and(|at| migrations.get(at as usize).is_some_and(|own| own.deployment(at) == deployment))
        };
        let functions: Vec<_> =
            defined.into_iter().filter_map(|oid| catalog.get_function(oid)).filter(is_own).cloned().collect();
        if !functions.is_empty() {
            self.left.entry(migration.database).or_default().push(Left { catalog: catalog.clone(), functions });
        }
    }
}

/// Where the definitions of functions are, in the order of the migrations.
fn places(left: &[Left]) -> FxHashMap<Oid, Vec<Place>> {
    let mut places: FxHashMap<Oid, Vec<Place>> = FxHashMap::default();
    for function in left.iter().flat_map(|left| &left.functions) {
        places.entry(function.oid).or_default().extend(place(function));
    }
    places
}

fn place(function: &Function) -> Option<Place> {
    let definition = function.defined_at.as_ref()?;
    Some(Place { file: definition.file, range: definition.name })
}

fn text(function: &Function) -> Option<&SmolStr> {
    match &*function.body {
        FunctionBody::Source { text, .. } => Some(text),
        _ => None,
    }
}

impl Checker<'_> {
    /// Judges the definitions that are not at fault at the end, where `failing` fail. A text is judged once.
    pub(super) fn definitions(&mut self, database: u32, end: &Database, failing: FxHashSet<Oid>) {
        let left = self.definitions.left.remove(&database).unwrap_or_default();
        let places = places(&left);
        let at_end = failing.into_iter().filter_map(|oid| Some((oid, text(end.catalog.get_function(oid)?)?.clone())));
        let mut judged: FxHashSet<(Oid, SmolStr)> = at_end.collect();
        for Left { catalog, functions } in &left {
            let oids = functions.iter().map(|function| function.oid).collect();
            let routines =
                Routines::of_functions(self.migrations, catalog, &self.settings.functions, self.reader, oids);
            for function in functions {
                let key = text(function).map(|text| (function.oid, text.clone()));
                let Some(key) = key.filter(|key| !judged.contains(key)) else { continue };
                let until = until(function, places.get(&function.oid), end.catalog.get_function(function.oid));
                let at = self.found.len();
                self.definition(&routines, function, until, end.called.contains(&function.oid));
                if self.found.len() > at {
                    judged.insert(key);
                }
            }
        }
    }

    fn definition(&mut self, routines: &Routines<'_>, function: &Function, until: Until, called_by_migration: bool) {
        let Some(routine) = routines.function(function.oid) else { return };
        let file = routine.file;
        let context = RoutineContext {
            file,
            source: self.migrations[file as usize].file,
            migration: None,
            session: None,
            routine,
            catalog: routines.catalog(),
            after: routines.catalog(),
            settings: self.settings,
            routines,
            called_by_migration,
            until: Some(until),
        };
        self.judge(&context, &ABOUT_FAILURES);
    }
}

/// What ends the time of a definition, given the places of all definitions in order, and the function at the end.
fn until(function: &Function, places: Option<&Vec<Place>>, end: Option<&Arc<Function>>) -> Until {
    let Some(end) = end else { return Until::Dropped };
    let own = place(function);
    let mut after = places.into_iter().flatten().copied().skip_while(|place| Some(*place) != own).skip(1);
    match after.next().or_else(|| place(end)).filter(|place| Some(*place) != own) {
        Some(place) => Until::Replaced(place),
        None => Until::SchemaChanged,
    }
}
