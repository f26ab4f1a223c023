//! Phases of a change that takes several releases: which migrations wait for a release, and which columns a trigger
//! fills from others while both exist.

use crate::assumption::Assumption;
use crate::phase::{Marker, Phase, marker};
use crate::rule::MigrationContext;
use crate::rules::deployment::names::may_name;
use crate::settings::Settings;
use pgvet_model::catalog::Relation;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::routine::{Code, Node, Routine, Routines};
use pgvet_syntax::ast::{Ast, Firing, TriggerTiming};
use pgvet_syntax::lexer::{TokenKind, identifier, tokenize};
use pgvet_syntax::plpgsql::{StatementKind, Target};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// Why a migration that a comment calls `contract` runs too early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TooEarly {
    /// The release that it waits for is not deployed.
    Unreleased { release: SmolStr },
    /// Releases are configured, and it names none.
    NoRelease,
    /// This migration of the same deployment expands or fills the same table.
    Together { file: u32, marker: TextRange, phase: Phase, table: SmolStr },
}

/// Returns why a migration runs too early, and where the comment is that calls it `contract`. `None` if the release that
/// it waits for is deployed, or if nothing says what is deployed.
pub(crate) fn too_early(context: &MigrationContext<'_>) -> Option<(TooEarly, TextRange)> {
    let (after, range) = contract(context.migration)?;
    let releases = &context.settings.releases;
    let deployed = after.as_ref().and_then(|release| releases.has(release));
    let why = match (deployed, after) {
        (Some(true), _) => return None,
        (Some(false), Some(release)) => TooEarly::Unreleased { release },
        _ => match together(context) {
            Some(together) => together,
            None if releases.deployed.is_empty() => return None,
            None => TooEarly::NoRelease,
        },
    };
    Some((why, range))
}

/// The release for which a migration waits, if a comment calls it `contract`, and where that comment is.
fn contract(migration: &Migration<'_>) -> Option<(Option<SmolStr>, TextRange)> {
    let (Marker { phase, after }, range) = marker(migration)?;
    (phase == Phase::Contract).then_some((after, range))
}

/// The last migration before this one that is released with it, and that expands or fills a table which this one changes.
fn together(context: &MigrationContext<'_>) -> Option<TooEarly> {
    let deployment = context.deployment()?;
    let tables: Vec<&SmolStr> = context.ran.iter().flat_map(|run| changed_tables(&run.ast)).collect();
    let is_with_it = |(at, other): &(usize, &Migration<'_>)| {
        let is_up = other.direction == Direction::Up && other.database == context.migration.database;
        is_up && other.deployment(*at as u32) == Some(deployment)
    };
    let mut earlier = context.migrations.iter().enumerate().take(context.file as usize).rev().filter(is_with_it);
    earlier.find_map(|(at, other)| {
        let (Marker { phase, .. }, range) = marker(other).filter(|(marker, _)| marker.phase != Phase::Contract)?;
        let text = other.section.map_or(other.file.text.as_str(), |section| &other.file.text[section.as_usize()]);
        let table = tables.iter().find(|table| may_name(text, table))?;
        Some(TooEarly::Together { file: at as u32, marker: range, phase, table: (*table).clone() })
    })
}

/// The names of the tables that a statement alters, renames or drops.
fn changed_tables(ast: &Ast) -> Vec<&SmolStr> {
    match ast {
        Ast::AlterTable(alter) => vec![&alter.name.name.text],
        Ast::Rename(rename) => vec![&rename.object.name.text],
        Ast::Drop(drop) => {
            drop.objects.iter().map(|object| &object.on.as_ref().unwrap_or(&object.name).name.text).collect()
        }
        _ => Vec::new(),
    }
}

/// What a finding about deployed code assumes, if the migration waits for a release that is deployed.
pub(crate) fn released(migration: &Migration<'_>, settings: &Settings) -> Option<Assumption> {
    if settings.releases.deployed.is_empty() {
        return None;
    }
    let release = contract(migration)?.0?;
    settings.releases.has(&release)?.then_some(Assumption::UsedThoughReleased { release })
}

/// A column that a trigger of the table computes from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fed {
    pub(crate) column: SmolStr,
    pub(crate) sources: Vec<SmolStr>,
    pub(crate) trigger: SmolStr,
    /// The file and place of the trigger.
    pub(crate) defined_at: (u32, TextRange),
}

/// The columns of a table that its triggers fill from other columns of the row, before it is written.
pub(crate) fn fed_columns(routines: &Routines<'_>, table: &Relation) -> Vec<Fed> {
    let fills = table.triggers.iter().filter(|trigger| {
        trigger.timing == TriggerTiming::Before
            && trigger.for_each_row
            && matches!(trigger.firing, Firing::Enable | Firing::EnableAlways)
    });
    let fed = fills.flat_map(|trigger| {
        let routine = routines.function(trigger.function);
        let assigned = routine.map_or_else(Vec::new, |routine| {
            let text = routines.migrations.get(routine.file as usize).map_or("", |migration| &migration.file.text);
            assigned(&routine, text, table)
        });
        assigned.into_iter().map(|(column, sources)| Fed {
            column,
            sources,
            trigger: trigger.name.clone(),
            defined_at: trigger.defined_at,
        })
    });
    fed.collect()
}

/// What the code of a trigger assigns to columns of the new row, with the columns that the values name.
fn assigned(routine: &Routine, text: &str, table: &Relation) -> Vec<(SmolStr, Vec<SmolStr>)> {
    let Code::Plpgsql(_) = &routine.code else { return Vec::new() };
    let mut found = Vec::new();
    for step in routine.steps() {
        let Node::Statement(statement) = step.node else { continue };
        let (targets, value) = match &statement.kind {
            StatementKind::Assign(assign) => (std::slice::from_ref(&assign.target), assign.value.range),
            StatementKind::Sql(sql) => match &sql.into {
                Some(into) => (into.targets.as_slice(), sql.text.range),
                None => continue,
            },
            _ => continue,
        };
        let columns: Vec<&SmolStr> = targets.iter().filter_map(|target| new_column(target, table)).collect();
        let sources = named_columns(text, value, table, &columns);
        found.extend(columns.into_iter().map(|column| (column.clone(), sources.clone())));
    }
    found.retain(|(_, sources)| !sources.is_empty());
    found
}

/// `NEW.column`.
fn new_column<'t>(target: &Target, table: &'t Relation) -> Option<&'t SmolStr> {
    match target.names.as_slice() {
        [row, column] if row == "new" => table.column(column).map(|column| &column.name),
        _ => None,
    }
}

/// The columns of a table, besides those that are assigned, whose names are in a part of a text.
fn named_columns(text: &str, range: TextRange, table: &Relation, assigned: &[&SmolStr]) -> Vec<SmolStr> {
    let mut columns: Vec<SmolStr> = Vec::new();
    for token in tokenize(text, range) {
        let written = &text[token.range.as_usize()];
        let name = match token.kind {
            TokenKind::Word | TokenKind::QuotedIdentifier => SmolStr::new(identifier(written)),
            _ => continue,
        };
        let is_source = table.column(&name).is_some() && !assigned.contains(&&name);
        if is_source && !columns.contains(&name) {
            columns.push(name);
        }
    }
    columns
}
