//! PostgreSQL would certainly refuse the statement here.

use crate::ast::{Ast, QueryBody};
use crate::diagnostic::{Diagnostic, Label};
use crate::effect::Failure;
use crate::report::Reporter;
use crate::rule::{RuleContext, RunContext, declare_rule};
use crate::rules::merged::{MAX_FINDINGS, in_each_migration, of_one_cause};
use std::collections::{BTreeMap, BTreeSet};

declare_rule! {
    /// A statement that PostgreSQL would refuse at this point of the history.
    ///
    /// ## Why it matters
    ///
    /// The migration stops here, and what ran before it may stay half done.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// ALTER TABLE orders DROP COLUMN note;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// ALTER TABLE orders DROP COLUMN IF EXISTS note;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// When the object may exist although no migration shows it, when only the data decide, and when only a version
    /// refuses it that is older than the newest and was not configured with `pg-version`.
    /// That no operator or cast exists for some types is said until a migration makes casts, operators, aggregates or
    /// types of its own, or installs an extension whose objects pgvet does not know.
    /// Parameters that a tool puts in before PostgreSQL sees the statement, `@name` and `sqlc.arg(name)`, are no columns.
    /// Statements that PostgreSQL refuses in a transaction block are `concurrently-in-transaction`, and new enum labels
    /// `enum-value-used-in-same-transaction`.
    ///
    /// What statements of several files are refused for is said once, and where one migration has more than three such
    /// statements, they are one finding. Migrations that have run cannot fail: where five files or more have such
    /// statements, they do not run one after another in the order in which pgvet takes them, for example because some
    /// repeat what others do, or are for another database. They are one finding then, and the help says what to do.
    ///
    /// Of several scripts without numbers nobody knows which runs first, nor what migrations in a programming language do
    /// that stand among those in SQL: what rests on another file is not said then. A table or column that a statement lacks
    /// is taken to be there by the migrations after it, for whoever has run them has it.
    "statement-will-fail", Engine, Error,
    {}
    statement = check,
    run = merge,
}

/// Where so many files fail, their order is wrong, and not what they say.
const MANY_FILES: usize = 5;

/// SQLSTATEs that rules of the category transaction explain better.
const EXPLAINED_ELSEWHERE: &[&str] = &["25001", "55P04"];

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(failure) = &context.effects.fails else { return };
    if EXPLAINED_ELSEWHERE.contains(&failure.sqlstate) || is_wrong_guess(context, failure) {
        return;
    }
    let range = if failure.range.is_empty() { context.statement.range } else { failure.range };
    let mut finding = reporter.report(range, format!("PostgreSQL refuses this: {}", failure.reason));
    if let Some(help) = help(failure) {
        finding = finding.help(help);
    }
    finding.emit();
}

fn merge(context: &RunContext<'_>, found: &mut Vec<Diagnostic>) {
    let databases: BTreeSet<u32> = found.iter().map(|finding| database(context, finding)).collect();
    for own in databases {
        let (mut of_it, others): (Vec<_>, _) =
            std::mem::take(found).into_iter().partition(|finding| database(context, finding) == own);
        *found = others;
        if files(&of_it) < MANY_FILES {
            for_one_reason(&mut of_it);
        }
        in_each_migration(&mut of_it, MAX_FINDINGS, MAX_FINDINGS, |more| {
            format!("refuses {more} more statements of this migration")
        });
        found.extend(in_one(of_it));
    }
}

/// What is missing for statements of several files is one problem.
fn for_one_reason(found: &mut Vec<Diagnostic>) {
    let mut files: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for finding in found.iter() {
        files.entry(finding.message.clone()).or_default().insert(finding.file);
    }
    let (mut spread, others): (Vec<_>, _) =
        std::mem::take(found).into_iter().partition(|finding| files[&finding.message].len() > 1);
    of_one_cause(
        &mut spread,
        |finding| finding.message.clone(),
        |more| match more {
            1 => "one more statement for the same reason".to_owned(),
            _ => format!("{more} more statements for the same reason"),
        },
    );
    *found = others;
    found.append(&mut spread);
}

fn files(found: &[Diagnostic]) -> usize {
    found.iter().map(|finding| finding.file).collect::<BTreeSet<u32>>().len()
}

fn database(context: &RunContext<'_>, finding: &Diagnostic) -> u32 {
    context.migrations[finding.file as usize].database
}

/// Many files of one database that fail are one problem: they do not run as they are taken to.
fn in_one(found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let files = files(&found);
    let mut all = found.into_iter();
    if files < MANY_FILES {
        return all.collect();
    }
    let Some(mut first) = all.next() else { return Vec::new() };
    first.message = format!("{}, and statements of {} more files", first.message, files - 1);
    let help = first.help.take().map(|help| format!("{help}\n")).unwrap_or_default();
    first.help = Some(format!(
        "{help}{files} files have statements that fail here: they are no history that runs in this order. `pgvet config` \
         shows the order; leave files that repeat others or are not run out with `exclude`, and name each database in `paths`"
    ));
    let shown = all.filter(|other| other.file != first.file).take(MAX_FINDINGS);
    first.labels.extend(shown.map(|other| Label { file: other.file, range: other.range, message: other.message }));
    vec![first]
}

/// Is the name taken only because an earlier statement used it before any had made it? That statement may have failed,
/// or have run in another order or database.
fn is_wrong_guess(context: &RuleContext<'_>, failure: &Failure) -> bool {
    let name = match context.ast {
        Ast::CreateTable(create) => &create.name,
        Ast::CreateTableAs(create) => &create.into.name,
        Ast::Select(query) => {
            let QueryBody::Select(select) = &query.body else { return false };
            let Some(into) = &select.into else { return false };
            &into.name
        }
        _ => return false,
    };
    let schemas = context.session.settings.schemas_of(name);
    let taken = schemas.iter().find_map(|schema| {
        let oid = context.before.relation_named(schema, &name.name.text)?;
        context.before.get_relation(oid)
    });
    failure.sqlstate == "42P07" && taken.is_some_and(|relation| !relation.known && relation.birth.deployment.is_none())
}

/// The next step, where the kind of refusal tells.
///
/// Source: PostgreSQL 18 documentation, appendix A, error codes.
fn help(failure: &Failure) -> Option<&'static str> {
    match failure.sqlstate {
        "42883" if failure.reason.starts_with("operator") => {
            Some("cast one side to the type of the other: value::type")
        }
        "42P01" | "42703" | "42704" | "42883" | "3F000" => {
            Some("if it exists, give `pgvet` the migration or the schema dump that creates it, before this one")
        }
        "42P07" | "42701" | "42710" | "42723" | "42P06" => {
            Some("an earlier migration has made it: drop or rename one of the two")
        }
        "2BP01" => Some("drop what depends on it first; CASCADE would drop that too"),
        "25P01" => Some("write BEGIN before it and COMMIT after it"),
        _ => None,
    }
}
