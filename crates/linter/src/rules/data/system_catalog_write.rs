//! Changes of PostgreSQL's own tables.

use crate::report::Reporter;
use crate::rule::{RoutineContext, RuleContext, declare_rule};
use crate::rules::deployment::other_statements::earlier;
use crate::severity::Severity;
use pgvet_model::builtin;
use pgvet_model::catalog::{Catalog, SearchPath};
use pgvet_syntax::ast::{Ast, ObjectName, Part};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `INSERT`, `UPDATE`, `DELETE` or `MERGE` on a table of `pg_catalog`.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL does not check the change, and takes none of the locks that DDL takes. The damage shows later: an
    /// index that does not match its table, a dump that cannot be restored, a crash. Only superusers may write to
    /// system catalogs, and managed services do not allow it at all.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// UPDATE pg_attribute SET atttypmod = 104 WHERE attrelid = 'users'::regclass AND attname = 'name';
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE users ALTER COLUMN name TYPE varchar(100);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - `pg_settings`, a view whose `UPDATE` is the same as `SET`
    /// - all but the first of several statements of a migration that change the same table
    ///
    /// For `pg_description` and `pg_shdescription`, the severity is `info`: they contain comments, and nothing in
    /// PostgreSQL depends on them.
    "system-catalog-write", Data, Error,
    { sources: &["bytebase/statement.disallow-system-catalog"] }
    statement = check,
    routine = check_routine,
}

/// The tables of comments.
const COMMENTS: [&str; 2] = ["pg_description", "pg_shdescription"];

const HELP: &str = "use the DDL statement for this change; if there is none, do not change the catalog";

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let path = context.session.settings.search_path();
    written(context.ast, context.before, &path, &mut |name| {
        let mut said = false;
        for ast in earlier(context) {
            written(ast, context.before, &path, &mut |other| said |= other.name.text == name.name.text);
        }
        if !said {
            report(name, name.range(), reporter);
        }
    });
}

fn check_routine(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    // What a DO block runs is reported as it runs.
    if context.routine.function.is_none() {
        return;
    }
    for step in context.routine.steps() {
        for sql in &step.sql {
            written(sql.ast, context.catalog, &context.routine.search_path, &mut |name| {
                report(name, sql.place(name.range()), reporter);
            });
        }
    }
}

fn report(name: &ObjectName, range: TextRange, reporter: &mut Reporter<'_>) {
    let message = format!("this changes PostgreSQL's system catalog `{}` directly, without any checks", name.name.text);
    let mut finding = reporter.report(range, message).help(HELP);
    if COMMENTS.contains(&name.name.text.as_str()) {
        finding = finding.severity(Severity::Info);
    }
    finding.emit();
}

/// Calls `found` for each system table that a statement changes.
fn written(ast: &Ast, catalog: &Catalog, path: &SearchPath, found: &mut dyn FnMut(&ObjectName)) {
    let is_system = |name: &ObjectName| {
        let schema = name.schema.as_ref().map_or("pg_catalog", |schema| schema.text.as_str());
        let hidden_by = name.schema.is_none() && catalog.find_relation(name, path).is_some();
        schema == "pg_catalog"
            && name.name.text != "pg_settings"
            && !hidden_by
            && builtin::system_relation(schema, &name.name.text).is_some()
    };
    ast.visit(&mut |part| {
        let name = match part {
            Part::Insert(insert) => &insert.table.name,
            Part::Update(update) => &update.table.name,
            Part::Delete(delete) => &delete.table.name,
            Part::Merge(merge) => &merge.table.name,
            _ => return,
        };
        if is_system(name) {
            found(name);
        }
    });
}
