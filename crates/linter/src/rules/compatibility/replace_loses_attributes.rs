//! CREATE OR REPLACE, and DROP with CREATE, that silently reset what they do not repeat.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead};
use crate::rules::text::{enumerate, join, sql_name};
use pgvet_model::builtin::Volatility;
use pgvet_model::catalog::{Catalog, Function, Oid};
use pgvet_model::effect::{ChangedObject, RelationName, RemovalReason, RemovedObject, Visibility};
use pgvet_syntax::ast::{Ast, CreateView, ObjectKind, ObjectName};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::collections::BTreeSet;
use std::sync::Arc;

declare_rule! {
    /// A replaced function or view that loses attributes, options or privileges of the old one.
    ///
    /// ## Why it matters
    ///
    /// `CREATE OR REPLACE` keeps the owner, the privileges and the comment, but resets attributes that the statement
    /// does not repeat. A function that loses `SECURITY DEFINER` fails with "permission denied" for each role that
    /// lacks the privileges of its owner. A function that loses `SET search_path` may find other tables. A view that
    /// loses `security_invoker` shows rows that policies should hide. `DROP` followed by `CREATE` loses the privileges.
    ///
    /// If the new definition of a function has one more parameter, `CREATE OR REPLACE` creates a second function and
    /// keeps the old one. If the new parameter has a default, every call that matches both functions fails as
    /// ambiguous.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE FUNCTION balance() RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = app AS 'SELECT 1';
    /// -- migration:
    /// CREATE OR REPLACE FUNCTION balance() RETURNS int LANGUAGE sql SET search_path = app AS 'SELECT 2';
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE FUNCTION balance() RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = app AS 'SELECT 1';
    /// -- migration:
    /// CREATE OR REPLACE FUNCTION balance() RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = app AS 'SELECT 2';
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a statement that states the new value explicitly (`SECURITY INVOKER`, `VOLATILE`)
    /// - a migration that sets the attribute again, grants the privileges again, or drops the old function
    ///
    /// pgvet knows only the privileges that migrations grant.
    ///
    /// ## Other linters
    ///
    /// squawk, eugene, pgls, `strong_migrations` and pg-migration-lint do not compare the new definition with the
    /// previous one.
    "replace-loses-attributes", Compatibility, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for change in &context.effects.changes {
        if let ChangedObject::Function { oid, stated } = &change.object
            && let Some(new) = context.after.get_function(*oid)
        {
            function(context, reporter, (change.range, stated), new);
        }
    }
    match context.ast {
        Ast::CreateView(create) if create.or_replace => view(context, reporter, create),
        Ast::Drop(_) => privileges(context, reporter),
        _ => {}
    }
}

fn function(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    (range, stated): (TextRange, &[SmolStr]),
    new: &Function,
) {
    let Some(old) = context.before.get_function(new.oid) else {
        return ambiguous(context, reporter, range, new);
    };
    if lost(stated, old, new).is_empty() {
        return;
    }
    let end = ahead(context, &new.name, Until::EndOfMigration);
    let lost = lost(stated, old, end.get_function(new.oid).map_or(new, |last| last));
    if lost.is_empty() {
        return;
    }
    let message = format!(
        "{} loses {}: CREATE OR REPLACE resets the attributes that it does not \
                           repeat",
        new.display_name(),
        join(&lost)
    );
    let mut finding = reporter.report(range, message);
    if let Some(at) = &old.defined_at {
        finding = finding.label_in(at.file, at.name, "the definition that it replaces");
    }
    finding.help(format!("repeat {} in this statement. {}", join(&lost), on_purpose(&lost))).emit();
}

/// How to give up attributes on purpose.
fn on_purpose(lost: &[String]) -> String {
    let opposite = |attribute: &str| match attribute {
        "SECURITY DEFINER" => Some("SECURITY INVOKER"),
        "IMMUTABLE" | "STABLE" => Some("VOLATILE"),
        "STRICT" => Some("CALLED ON NULL INPUT"),
        _ => None,
    };
    let written: Vec<String> = lost.iter().filter_map(|one| opposite(one)).map(str::to_owned).collect();
    let reset = "repeat its SET clause here and run ALTER FUNCTION ... RESET afterwards";
    let them = if lost.len() == 1 { "it" } else { "them" };
    match (written.is_empty(), written.len() == lost.len()) {
        (_, true) => format!("If you want to remove {them}, write {} instead", join(&written)),
        (true, _) => format!("If you want to remove a setting, {reset}"),
        _ => format!(
            "If you want to remove the attributes, write {} instead. If you want to remove a setting, {reset}",
            join(&written)
        ),
    }
}

/// Attributes that the old function has, the last one does not have, and the statement does not mention.
fn lost(stated: &[SmolStr], old: &Function, last: &Function) -> Vec<String> {
    let says = |option: &str| stated.iter().any(|written| written == option);
    let mut lost = Vec::new();
    if old.security_definer && !last.security_definer && !says("security") {
        lost.push("SECURITY DEFINER".to_owned());
    }
    for (name, value) in &old.settings {
        if !last.settings.iter().any(|(kept, _)| kept == name) {
            lost.push(format!("SET {name} = {value}"));
        }
    }
    let is_relaxed = last.volatility == Volatility::Volatile && old.volatility != Volatility::Volatile;
    if is_relaxed && !says("volatility") {
        lost.push(if old.volatility == Volatility::Immutable { "IMMUTABLE" } else { "STABLE" }.to_owned());
    }
    if old.strict && !last.strict && !says("strict") {
        lost.push("STRICT".to_owned());
    }
    lost
}

/// Another function that matches the same call because of a parameter with a default.
fn ambiguous(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, range: TextRange, new: &Function) {
    if !new.parameters.iter().any(|parameter| parameter.has_default) {
        return;
    }
    let shared = |old: &&Arc<Function>| {
        let (ours, theirs): (Vec<_>, Vec<_>) = (new.input_types().collect(), old.input_types().collect());
        let same = ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours.oid == theirs.oid).count();
        old.oid != new.oid && (0..=same).any(|arguments| new.takes(arguments) && old.takes(arguments))
    };
    let old = context.before.functions_named(&new.schema, &new.name).find(shared);
    let stays = |old: &&Arc<Function>| ahead(context, &new.name, Until::EndOfMigration).get_function(old.oid).is_some();
    let Some(old) = old.filter(stays) else { return };
    let message = format!(
        "this does not replace the older {}, which has different parameters: calls that match both functions fail as \
         ambiguous",
        new.display_name()
    );
    let mut finding = reporter.report(range, message);
    if let Some(at) = &old.defined_at {
        finding = finding.label_in(at.file, at.name, "the other function");
    }
    finding
        .help(
            "drop the old function in the same transaction, or give the parameters of the new function no \
                  defaults",
        )
        .emit();
}

fn view(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, create: &CreateView) {
    let path = context.session.settings.search_path();
    let Some(oid) = context.before.find_relation(&create.name, &path) else { return };
    let old = context.before.relation(oid);
    if old.options.is_empty() {
        return;
    }
    let end = ahead(context, &old.name, Until::EndOfMigration);
    let Some(last) = end.get_relation(oid) else { return };
    let lost: Vec<String> = old
        .options
        .iter()
        .filter(|(name, value)| value != "false" && !last.options.iter().any(|(kept, _)| kept == name))
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    if lost.is_empty() {
        return;
    }
    let message = format!(
        "view `{}` loses {}: CREATE OR REPLACE resets the options that it does not repeat",
        old.name,
        enumerate(lost.iter().map(String::as_str))
    );
    let name = RelationName::existing(old);
    let help = format!(
        "repeat the options of the view:\n    CREATE OR REPLACE VIEW {} WITH ({}) AS ...;",
        sql_name(context, &name),
        lost.join(", ")
    );
    reporter.report(create.name.range(), message).relation(&name).help(help).emit();
}

/// An object that is dropped and created again has none of its privileges.
fn privileges(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::Drop(statement) = context.ast else { return };
    let path = context.session.settings.search_path();
    let relation = |catalog: &Catalog, name: &ObjectName| catalog.find_relation(name, &path);
    let function = |catalog: &Catalog, name: &ObjectName| function_named(catalog, name, &path);
    let (find, help): (&Find<'_>, &str) = match statement.kind {
        ObjectKind::View => (
            &relation,
            "use CREATE OR REPLACE VIEW if the existing columns stay the same; or grant the privileges again",
        ),
        ObjectKind::MaterializedView | ObjectKind::Table => (&relation, "grant the privileges again"),
        ObjectKind::Function | ObjectKind::Procedure | ObjectKind::Routine => (
            &function,
            "use CREATE OR REPLACE if the parameters and the return type stay the same; or grant the privileges again",
        ),
        _ => return,
    };
    for name in statement.objects.iter().map(|object| &object.name) {
        let Some(old) = find(context.before, name).filter(|oid| is_removed(context, *oid)) else { continue };
        let given = context.before.privileges(old);
        if given.clone().next().is_none() {
            continue;
        }
        let end = ahead(context, &name.name.text, Until::EndOfMigration);
        let Some(new) = find(&end, name).filter(|new| *new != old) else { continue };
        let kept = end.privileges(new);
        let lost = given.filter(|lost| !kept.clone().any(|kept| kept.covers(lost)));
        let roles: BTreeSet<&str> =
            lost.map(|lost| if lost.grantee == "public" { "PUBLIC" } else { lost.grantee.as_str() }).collect();
        if roles.is_empty() {
            continue;
        }
        let shown =
            context.before.get_function(old).map_or_else(|| format!("`{}`", name.name.text), |it| it.display_name());
        let message =
            format!("dropping {shown} and creating it again removes privileges that {} had on it", enumerate(roles));
        reporter.report(name.range(), message).help(format!("{help} in the same transaction")).emit();
    }
}

/// Finds an object by its name.
type Find<'f> = dyn Fn(&Catalog, &ObjectName) -> Option<Oid> + 'f;

/// The only function of that name.
fn function_named(catalog: &Catalog, name: &ObjectName, path: &[SmolStr]) -> Option<Oid> {
    let schema = name.schema.as_ref().map(|schema| &schema.text).or(path.first())?;
    let mut found = catalog.functions_named(schema, &name.name.text);
    let first = found.next()?.oid;
    found.next().is_none().then_some(first)
}

/// Whether the statement drops the object, and others could see it.
fn is_removed(context: &RuleContext<'_>, oid: Oid) -> bool {
    let is_old = context.effects.removals.iter().any(|removal| {
        removal.reason == RemovalReason::Named
            && match &removal.object {
                RemovedObject::Relation(relation) => relation.oid == oid && relation.visibility == Visibility::Existing,
                RemovedObject::Other => true,
                _ => false,
            }
    });
    let is_gone = context.after.get_relation(oid).is_none() && context.after.get_function(oid).is_none();
    is_old && is_gone
}
