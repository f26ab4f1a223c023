//! DROP of functions, sequences and types that deployed code may use.

use super::name_reuse::{is_same_type, takes_every_value};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::deployment::phases::released;
use pgvet_model::catalog::{Catalog, Function, Mention, Oid, Relation, RelationKind, TypeDef, TypeKind};
use pgvet_model::routine::{CallSite, CallerKind, Routines};
use pgvet_syntax::ast::{Ast, Drop, DropObject, ObjectKind, ObjectName};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::cell::OnceCell;
use std::sync::Arc;

declare_rule! {
    /// Dropping a function, procedure, sequence, type or domain that an earlier deployment created.
    ///
    /// ## Why it matters
    ///
    /// Deployed code may still use the object, and so may the older code, if the deployment is rolled back. Every use
    /// of the object fails after the commit. Without `CASCADE`, PostgreSQL refuses to drop an object that a view, a
    /// default or a constraint uses. PostgreSQL does not check function bodies that are strings, and does not know the
    /// code of the application.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE FUNCTION next_number(shop bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT 1 $$;
    /// -- migration:
    /// DROP FUNCTION next_number(bigint);
    /// ```
    ///
    /// Use instead:
    ///
    /// First deploy code that no longer uses the object, then run this migration in the next release. Callers continue
    /// to work if the same migration creates the function again with the same arguments and result:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE FUNCTION next_number(shop bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT 1 $$;
    /// -- migration:
    /// BEGIN;
    /// DROP FUNCTION next_number(bigint);
    /// CREATE FUNCTION next_number(shop bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT 2 $$;
    /// COMMIT;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// pgvet compares the schema before and after the migration. It does not report:
    ///
    /// - objects that the migration itself created
    /// - objects that exist again under the same name when the migration ends: a type, a sequence, or a function that
    ///   accepts the same calls and returns the same type
    /// - objects that are dropped only because of `CASCADE`, which `drop-object-cascade` reports
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`, if all known uses of
    /// the object are inside the database and are dropped as well. This applies to:
    ///
    /// - functions that only triggers called
    /// - functions that only other functions, views, defaults or policies called
    /// - sequences that only defaults used
    /// - types, because without `CASCADE` PostgreSQL drops a type only if no column uses it
    ///
    /// The confidence is also `possible` for a function that is created again with another parameter name, because only
    /// calls such as `f(shop => 1)` need the name. If the new function only lacks a parameter that had a default, the
    /// confidence is `possible` as well, because only calls that pass this parameter fail.
    ///
    /// ## Other linters
    ///
    /// squawk, eugene, pgls and pg-migration-lint do not report these objects.
    "drop-object", Compatibility, Warning,
    { yields_to: &[&super::contract_before_release::RULE.meta] }
    migration = check,
}

/// What a DROP takes from deployed code.
enum Lost<'c> {
    Function(&'c Arc<Function>),
    /// The function accepts the same values, but this parameter has another name.
    Parameter(&'c Arc<Function>, SmolStr),
    /// A new function of that name accepts only the calls that omit this parameter, which has a default.
    Optional(&'c Arc<Function>, SmolStr),
    /// A new function of that name takes other arguments.
    Arguments(&'c Arc<Function>),
    /// Another function accepts the same values, and returns something else.
    Result(&'c Arc<Function>),
    Type(&'c TypeDef),
    Sequence(&'c Relation),
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let routines = OnceCell::new();
    let mut seen: FxHashSet<Oid> = FxHashSet::default();
    for run in context.ran {
        let Ast::Drop(drop) = &*run.ast else { continue };
        for object in &drop.objects {
            // Overloads with as many arguments are dropped by one statement each.
            if let Some(lost) = lost(context, drop, object).into_iter().find(|lost| seen.insert(lost.oid())) {
                report(context, reporter, &routines, run.in_file(object.name.range()), &lost);
            }
        }
    }
}

/// The objects with this name that existed before the migration and do not after it.
fn lost<'c>(context: &MigrationContext<'c>, drop: &Drop, object: &'c DropObject) -> Vec<Lost<'c>> {
    use ObjectKind::{Domain, Function, Procedure, Routine, Sequence, Type};
    let (before, name) = (context.before, &object.name);
    match drop.kind {
        Function | Procedure | Routine => {
            let named = before.functions_with_name(&name.name.text);
            let named = named.filter(|function| is_meant(name, &function.schema));
            let takes = |function: &&Arc<pgvet_model::catalog::Function>| {
                object.arguments.as_ref().is_none_or(|given| given.len() == function.input_types().count())
            };
            let old = named.filter(takes).filter(|function| is_older_and_dropped(context, function));
            old.filter_map(|function| loss_of_function(context, function)).collect()
        }
        Type | Domain => {
            let named = before.types_with_name(&name.name.text).filter(|found| is_meant(name, &found.schema));
            let is_gone = |found: &&Arc<TypeDef>| {
                let is_made = !matches!(found.kind, TypeKind::Assumed | TypeKind::Shell | TypeKind::Array { .. });
                is_made
                    && context.after.get_type(found.oid).is_none()
                    && context.after.type_named(&found.schema, &found.name).is_none()
            };
            named.filter(is_gone).map(|found| Lost::Type(found)).collect()
        }
        Sequence => {
            let named = before
                .relations_with_name(&name.name.text)
                .filter(|relation| relation.kind == RelationKind::Sequence && is_meant(name, &relation.schema));
            let is_gone = |relation: &&Arc<Relation>| {
                context.after.get_relation(relation.oid).is_none()
                    && context.after.relation_named(&relation.schema, &relation.name).is_none()
            };
            named.filter(is_gone).map(|relation| Lost::Sequence(relation)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the name may mean an object of that name in this schema.
fn is_meant(written: &ObjectName, schema: &str) -> bool {
    written.schema.as_ref().is_none_or(|written| written.text == schema)
}

/// Whether the function existed before the deployment, and does not any more.
fn is_older_and_dropped(context: &MigrationContext<'_>, old: &Function) -> bool {
    let defined_in = old.defined_at.as_ref().and_then(|definition| {
        let migration = context.migrations.get(definition.file as usize)?;
        migration.deployment(definition.file)
    });
    let is_new = defined_in.is_some() && defined_in == context.deployment();
    context.after.get_function(old.oid).is_none() && !is_new
}

/// What calls of a dropped function lose, if not another one accepts all of them now.
fn loss_of_function<'c>(context: &MigrationContext<'c>, old: &'c Arc<Function>) -> Option<Lost<'c>> {
    let others = context.after.functions_named(&old.schema, &old.name);
    let takers: Vec<_> = others.filter(|new| takes_calls_of((context.before, old), (context.after, new))).collect();
    let mut others = context.after.functions_named(&old.schema, &old.name);
    if takers.is_empty() && others.any(|new| accepts_calls_of((context.before, old), (context.after, new))) {
        return Some(Lost::Result(old));
    }
    let renamed = takers.iter().map(|new| renamed_parameter(old, new)).collect::<Option<Vec<_>>>();
    match renamed?.into_iter().next() {
        None => Some(loss_of_arguments(context, old)),
        Some(parameter) => Some(Lost::Parameter(old, parameter)),
    }
}

/// What is lost where no function accepts all calls, which a new function of that name may still accept in part.
fn loss_of_arguments<'c>(context: &MigrationContext<'c>, old: &'c Arc<Function>) -> Lost<'c> {
    let named = context.after.functions_named(&old.schema, &old.name);
    let new: Vec<_> = named.filter(|function| context.before.get_function(function.oid).is_none()).collect();
    let optional = old.parameters.iter().find(|parameter| parameter.mode.is_input() && parameter.has_default);
    let mut shortest = Function::clone(old);
    shortest.parameters.retain(|parameter| !parameter.mode.is_input() || !parameter.has_default);
    match optional.and_then(|parameter| parameter.name.clone()) {
        Some(name) if new.iter().any(|new| takes_calls_of((context.before, &shortest), (context.after, new))) => {
            Lost::Optional(old, name)
        }
        _ if new.is_empty() => Lost::Function(old),
        _ => Lost::Arguments(old),
    }
}

/// The first parameter that has another name in a function which accepts the same values.
fn renamed_parameter(old: &Function, new: &Function) -> Option<SmolStr> {
    let names = |function: &Function| -> Vec<Option<SmolStr>> {
        let inputs = function.parameters.iter().filter(|parameter| parameter.mode.is_input());
        inputs.map(|parameter| parameter.name.clone()).collect()
    };
    let pairs = names(old).into_iter().zip(names(new));
    pairs.filter(|(old, new)| old != new).find_map(|(old, _)| old)
}

/// Whether a new function accepts every call of the old one and returns the same type.
fn takes_calls_of(old: (&Catalog, &Function), new: (&Catalog, &Function)) -> bool {
    accepts_calls_of(old, new) && returns_the_same(old, new)
}

fn returns_the_same((before, old): (&Catalog, &Function), (after, new): (&Catalog, &Function)) -> bool {
    let mut outputs = old.parameters.iter().filter(|parameter| !parameter.mode.is_input());
    let same_outputs = outputs.all(|old| {
        let mut new = new.parameters.iter().filter(|new| !new.mode.is_input());
        new.any(|new| new.name == old.name && is_same_type((before, old.sql_type), (after, new.sql_type)))
    });
    same_outputs
        && is_same_type((before, old.returns), (after, new.returns))
        && (old.returns_set, old.procedure) == (new.returns_set, new.procedure)
}

/// Whether a new function accepts every call of the old one.
fn accepts_calls_of((before, old): (&Catalog, &Function), (after, new): (&Catalog, &Function)) -> bool {
    let inputs = |function: &Function| -> Vec<_> {
        function.parameters.iter().filter(|parameter| parameter.mode.is_input()).cloned().collect()
    };
    let (old_inputs, new_inputs) = (inputs(old), inputs(new));
    let same_inputs = old_inputs.iter().zip(&new_inputs).all(|(old, new)| {
        takes_every_value((before, old.sql_type), (after, new.sql_type)) && (new.has_default || !old.has_default)
    });
    old_inputs.len() <= new_inputs.len()
        && same_inputs
        && new_inputs[old_inputs.len()..].iter().all(|parameter| parameter.has_default)
}

impl Lost<'_> {
    fn oid(&self) -> Oid {
        match self {
            Self::Function(function)
            | Self::Parameter(function, _)
            | Self::Optional(function, _)
            | Self::Arguments(function)
            | Self::Result(function) => function.oid,
            Self::Type(definition) => definition.oid,
            Self::Sequence(relation) => relation.oid,
        }
    }

    /// What PostgreSQL calls it.
    fn kind(&self) -> &'static str {
        match self {
            Self::Function(function) | Self::Arguments(function) if function.procedure => "procedure",
            Self::Function(_) | Self::Parameter(..) | Self::Optional(..) | Self::Arguments(_) | Self::Result(_) => {
                "function"
            }
            Self::Type(definition) if matches!(definition.kind, TypeKind::Domain(_)) => "domain",
            Self::Type(_) => "type",
            Self::Sequence(_) => "sequence",
        }
    }

    fn name(&self) -> String {
        let (schema, name) = match self {
            Self::Function(function)
            | Self::Parameter(function, _)
            | Self::Optional(function, _)
            | Self::Arguments(function)
            | Self::Result(function) => {
                return function.display_name();
            }
            Self::Type(definition) => (&definition.schema, &definition.name),
            Self::Sequence(relation) => (&relation.schema, &relation.name),
        };
        if schema == "public" { name.to_string() } else { format!("{schema}.{name}") }
    }

    fn used(&self) -> &'static str {
        match self {
            Self::Function(_) | Self::Parameter(..) | Self::Optional(..) | Self::Arguments(_) | Self::Result(_) => {
                "calls it"
            }
            Self::Type(_) => "casts to it",
            Self::Sequence(_) => "gets values from it",
        }
    }
}

/// The help for a function that is created again.
const KEEP_BOTH: &str = "create the function under another name, and drop the old function when no deployed code \
                         calls it";

fn report<'c>(
    context: &MigrationContext<'c>,
    reporter: &mut Reporter<'_>,
    routines: &OnceCell<Routines<'c>>,
    range: TextRange,
    lost: &Lost<'_>,
) {
    let (kind, name) = (lost.kind(), lost.name());
    if let Lost::Parameter(_, parameter) = lost {
        let message = format!(
            "calls of {name} that pass `{parameter}` by name fail, because the new function has another name for this \
             parameter"
        );
        let assumption = Assumption::CalledByName { function: name.into(), parameter: parameter.clone() };
        let help = "keep the names of the parameters; or create the function under another name, and drop the old \
                    function when no deployed code calls it";
        return reporter.report(range, message).assuming(assumption).help(help).emit();
    }
    if let Lost::Optional(_, parameter) = lost {
        let message =
            format!("calls of {name} that pass `{parameter}` fail, because the new function has no such parameter");
        let assumption = Assumption::PassesArgument { function: name.into(), parameter: parameter.clone() };
        return reporter.report(range, message).assuming(assumption).help(KEEP_BOTH).emit();
    }
    if matches!(lost, Lost::Result(_)) {
        let message =
            format!("deployed code that calls {name} may fail, because the function now returns a different type");
        return reporter.report(range, message).help(KEEP_BOTH).emit();
    }
    let is_replaced = matches!(lost, Lost::Arguments(_));
    let message = if is_replaced {
        format!(
            "calls of {name} by deployed code fail, because the parameters of the new {kind} differ from those of the \
             dropped one"
        )
    } else {
        let shown = if matches!(kind, "function" | "procedure") { name.clone() } else { format!("`{name}`") };
        format!("dropping the {kind} {shown} breaks deployed code that still {}", lost.used())
    };
    let mut finding = reporter.report(range, message);
    let is_used_inside = match lost {
        Lost::Type(_) | Lost::Parameter(..) | Lost::Optional(..) | Lost::Result(_) => true,
        Lost::Sequence(sequence) => is_used_by_defaults(context.before, sequence),
        Lost::Function(function) | Lost::Arguments(function) => {
            let routines = routines.get_or_init(|| {
                Routines::new(context.migrations, context.before, &context.settings.functions, context.reader)
            });
            let callers = callers(routines, function);
            let remaining: Vec<_> = callers.iter().filter_map(|site| remaining(context, site)).collect();
            for (caller, site) in &remaining {
                if let Some(place) = site.place {
                    let shown = format!("{} still calls it", caller.display_name());
                    finding = finding.label_in(place.file, place.range, shown);
                }
            }
            let of_trigger = matches!(function.result_name(), Some("trigger" | "event_trigger"));
            remaining.is_empty() && (of_trigger || !callers.is_empty())
        }
    };
    if is_used_inside {
        finding = finding.assuming(Assumption::UsedOutside { object: name.into() });
    }
    let help = if is_replaced {
        KEEP_BOTH.to_owned()
    } else {
        format!("first deploy code that does not use the {kind}, then drop the {kind} in the next release")
    };
    let released = released(context.migration, context.settings);
    finding.assuming(released).help(help).emit();
}

/// What calls the function in the schema before the migration, except the function itself.
fn callers<'r>(routines: &'r Routines<'_>, function: &Function) -> Vec<&'r CallSite> {
    let is_other = |site: &&CallSite| match &site.kind {
        CallerKind::Function(caller) => caller.oid != function.oid,
        _ => true,
    };
    routines.callers_of(function.oid).iter().filter(is_other).collect()
}

/// The function that calls it and is still the same after the migration.
fn remaining<'r>(context: &MigrationContext<'_>, site: &'r CallSite) -> Option<(&'r Arc<Function>, &'r CallSite)> {
    let CallerKind::Function(caller) = &site.kind else { return None };
    let after = context.after.get_function(caller.oid)?;
    (after.body == caller.body).then_some((caller, site))
}

fn is_used_by_defaults(catalog: &Catalog, sequence: &Relation) -> bool {
    let is_owned = sequence.sequence().is_some_and(|sequence| sequence.owned_by.is_some());
    let mut relations = catalog.relations_mentioning(&[Mention::Call("nextval".into())]).into_iter();
    is_owned
        || relations.any(|relation| {
            let mut defaults = relation.columns.iter().filter_map(|column| column.default.as_deref());
            defaults.any(|default| sequence.is_sequence_of(default))
        })
}
