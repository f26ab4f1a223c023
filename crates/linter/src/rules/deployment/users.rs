//! Functions of the project whose code speaks of a table or column: nothing but a search finds them, for PostgreSQL keeps
//! no dependencies of code in quotes.

use super::other_statements::rest;
use crate::report::Finding;
use crate::rule::RuleContext;
use pgvet_model::catalog::{Function, Oid};
use pgvet_model::effect::RelationName;
use pgvet_model::routine::{Routine, RoutineReader, Words};
use pgvet_syntax::ast::{Ast, FunctionBody, Insert, InsertSource, ObjectKind, ObjectName};
use pgvet_syntax::source::TextRange;
use std::sync::Arc;

/// So many are shown.
const SHOWN: usize = 4;

/// Shows the functions whose code speaks of all these names, at the first of them. For functions of triggers of the table
/// the first is enough.
pub(crate) fn label<'r, 'a>(
    finding: Finding<'r, 'a>,
    context: &RuleContext<'_>,
    names: &[&str],
    triggers: &[Oid],
) -> (Finding<'r, 'a>, usize) {
    label_where(finding, context, |function, words| {
        let wanted = if triggers.contains(&function.oid) { &names[..1] } else { names };
        words.first(wanted)
    })
}

/// The same for a table or view: a column of its name, or a relation of another schema, is not meant.
pub(crate) fn label_relation<'r, 'a>(
    finding: Finding<'r, 'a>,
    context: &RuleContext<'_>,
    relation: &RelationName,
) -> (Finding<'r, 'a>, usize) {
    label_where(finding, context, |_, words| words.first_relation(&relation.schema, &relation.name))
}

fn label_where<'r, 'a>(
    mut finding: Finding<'r, 'a>,
    context: &RuleContext<'_>,
    first: impl Fn(&Function, &Words) -> Option<TextRange>,
) -> (Finding<'r, 'a>, usize) {
    let mut found: Vec<(&Function, u32, TextRange)> = context
        .after
        .functions()
        .filter_map(|function| {
            let (file, range) = place(function, &first, context.reader)?;
            Some((&**function, file, range))
        })
        .collect();
    if found.is_empty() {
        return (finding, 0);
    }
    let rest = rest(context);
    let replaced: Vec<&ObjectName> = rest.iter().flat_map(|ast| remade(ast)).collect();
    found.retain(|(function, ..)| !is_among(function, &replaced));
    let mut found: Vec<(u32, TextRange, String)> =
        found.into_iter().map(|(function, file, range)| (file, range, function.display_name())).collect();
    found.sort_unstable();
    let count = found.len();
    for (file, range, name) in found.into_iter().take(SHOWN) {
        finding = finding.label_in(file, range, format!("{name} still uses it"));
    }
    (finding, count)
}

/// The functions that insert rows into a table without a value for the column, and that no later statement of the
/// migration replaces.
pub(crate) fn inserting_without(context: &RuleContext<'_>, table: &RelationName, column: &str) -> Vec<Arc<Function>> {
    let omits = |function: &Arc<Function>| {
        let routine = Routine::alone(function)?;
        let steps = routine.steps();
        let mut inserts = steps.iter().flat_map(|step| &step.sql).filter_map(|sql| match sql.ast {
            Ast::Insert(insert) => Some(insert),
            _ => None,
        });
        let omits = |insert: &Insert| {
            let is_listed = !insert.columns.is_empty() || matches!(insert.source, InsertSource::DefaultValues);
            is_listed
                && !insert.columns.iter().any(|given| given.text == column)
                && context.after.find_relation(&insert.table.name, &routine.search_path) == Some(table.oid)
        };
        inserts.any(|insert| omits(insert)).then(|| Arc::clone(function))
    };
    let names_table = |function: &&Arc<Function>| {
        place(function, |_, words| words.first_relation(&table.schema, &table.name), context.reader).is_some()
    };
    let mut found: Vec<Arc<Function>> = context.after.functions().filter(names_table).filter_map(omits).collect();
    if !found.is_empty() {
        let rest = rest(context);
        let replaced: Vec<&ObjectName> = rest.iter().flat_map(|ast| remade(ast)).collect();
        found.retain(|function| !is_among(function, &replaced));
    }
    found.sort_unstable_by_key(|function| function.oid);
    found
}

fn is_among(function: &Function, names: &[&ObjectName]) -> bool {
    names.iter().any(|name| {
        let has_schema = name.schema.as_ref().is_none_or(|schema| schema.text == function.schema);
        has_schema && name.name.text == function.name
    })
}

/// The functions that a statement replaces or drops.
fn remade(ast: &Ast) -> Vec<&ObjectName> {
    use ObjectKind::{Function, Procedure, Routine};
    match ast {
        Ast::CreateFunction(create) => vec![&create.name],
        Ast::Drop(drop) if matches!(drop.kind, Function | Procedure | Routine) => {
            drop.objects.iter().map(|object| &object.name).collect()
        }
        _ => Vec::new(),
    }
}

/// Where the code speaks of them first.
fn place(
    function: &Function,
    first: impl Fn(&Function, &Words) -> Option<TextRange>,
    reader: &RoutineReader,
) -> Option<(u32, TextRange)> {
    let FunctionBody::Source { text, .. } = &*function.body else { return None };
    if !matches!(function.language.as_str(), "plpgsql" | "sql") {
        return None;
    }
    let first = first(function, &reader.words(&function.body, text))?;
    let definition = function.defined_at.as_ref()?;
    let is_verbatim = (definition.body.end - definition.body.start) as usize == text.len();
    let range = if is_verbatim { first.shifted(definition.body.start) } else { definition.name };
    Some((definition.file, range))
}
