//! UPDATE or DELETE of a whole table.

use crate::assumption::Assumption;
use crate::cause::Cause;
use crate::report::{Finding, Reporter};
use crate::rule::{RoutineContext, RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead, any_later};
use crate::rules::size::one_row::{reads_one_row, stores_total, takes_one_row};
use crate::rules::text::identifier;
use crate::settings::Settings;
use pgvet_model::catalog::Relation;
use pgvet_model::effect::{DataChange, DataChangeKind, Extent, RelationName, RowsReason};
use pgvet_model::production::TableSize;
use pgvet_model::routine::{Sql, SqlRole, Trial, grouped};
use pgvet_syntax::ast::{Ast, Expr, ExprKind, InsertSource, Part, QueryBody};
use pgvet_syntax::plpgsql::HOLE;
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::fmt::Write;
use std::sync::Arc;

declare_rule! {
    /// `UPDATE`, `DELETE` or `MERGE` of all rows, or of an unlimited number of rows, of a table that is in use.
    ///
    /// ## Why it matters
    ///
    /// Every changed row is locked until the transaction ends: other sessions may have to wait for hours before they
    /// can change one of these rows. Each update writes a new version of the row, so the table and its indexes can
    /// double in size, and the WAL and the lag of replicas grow. VACUUM cannot remove the dead rows until the
    /// transaction ends.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// UPDATE orders SET total = price * quantity;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, price bigint, quantity bigint, total bigint);
    /// -- migration:
    /// UPDATE orders SET total = price * quantity WHERE id BETWEEN 1 AND 10000 AND total IS NULL;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - statements that compare all columns of a unique index with constants, or with the result of a query whose
    ///   number of rows is limited
    /// - statements whose condition gives a numeric key a lower and an upper limit, such as `id BETWEEN 1 AND 10000`
    /// - statements that take their rows from a subquery with `LIMIT`
    /// - loops that `COMMIT` after each batch
    /// - tables that the same transaction created, tables that a constraint limits to one row, and tables that the
    ///   configuration declares small
    /// - a statement that runs while the transaction holds a lock that blocks reads or writes, which
    ///   `work-after-strong-lock` reports
    /// - a statement that changes rows in batches in a loop without `COMMIT`, which `bulk-change-in-loop` reports
    /// - statements in trigger functions
    ///
    /// pgvet treats no other WHERE clause as a limit on the number of rows, but another WHERE clause can lower the
    /// confidence. A statement in a function is reported at the definition of the function. If a migration calls the
    /// function, the call is reported instead.
    ///
    /// ## Confidence
    ///
    /// A finding assumes that the table is large. The confidence is `likely` if the statement writes all or most rows,
    /// or if no condition limits how many it writes. A condition that is true for every row limits nothing. Examples
    /// are a test for NULL in a column that was added without a default, a test for the default in a column in which
    /// all rows have this default, and a join over a foreign key with the referenced table.
    ///
    /// The confidence is only `possible`, and the finding is shown only with `--confidence possible`, if something
    /// suggests that the statement affects few rows:
    ///
    /// - a condition compares a column with a value that perhaps only a few rows have
    /// - the rows are found through a few rows of another table
    /// - the same migration deletes the rows and inserts them again with `INSERT ... VALUES` or `COPY`
    /// - a foreign key with `ON DELETE CASCADE`, `SET NULL` or `SET DEFAULT` changes the rows that refer to a deleted
    ///   row, and only a few rows are deleted
    /// - code reads the table into a single variable, which suggests that the table has one row
    ///   (`SELECT version INTO current FROM schema_version`)
    /// - all rows are set to the same aggregate over another table (`SET n = (SELECT count(*) FROM other)`), which also
    ///   suggests that the table has one row
    /// - the statement deletes only rows that repeat the values of another row in some columns, and keeps one of them
    /// - an earlier migration has run the same statement, and left no rows that its condition selects
    /// - the statement is in a function that is called regularly, and pgvet does not know how many rows match its
    ///   condition
    ///
    /// If statistics or `[tables]` in the configuration say that the table is large, the severity is `error`. If the
    /// statement also writes all rows, the confidence is `certain`.
    "unbounded-update-or-delete", Data, Warning,
    {
        sources: &["pgls/updateWithoutWhere", "dryrun/update-without-where", "bytebase/statement.where.require"],
        yields_to: &[&crate::rules::transaction::work_after_strong_lock::RULE.meta, &crate::rules::data::bulk_change_in_loop::RULE.meta],
    }
    statement = check,
    routine = check_routine,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let mut said: Vec<TextRange> = Vec::new();
    for change in context.effects.data_changes.iter().filter(|change| is_work(change)) {
        let table = &change.relation;
        if is_small(table, context.settings) || said.contains(&change.range) {
            continue;
        }
        said.push(change.range);
        let relation = context.after.get_relation(table.oid).map(|relation| &**relation);
        let (message, help) = (message(change, context.ast), help(change, context.ast, relation, false));
        let is_refilled = change.kind == DataChangeKind::Delete && is_refilled(context, table);
        let name = table.name.clone();
        let against = match () {
            () if is_refilled => Some(Assumption::LargeThoughListed { table: name }),
            () if relation.is_some_and(|table| stores_total(context.ast, table)) => {
                Some(Assumption::LargeThoughTotal { table: name })
            }
            () if relation.is_some_and(|table| table.taken_for_one_row) => {
                Some(Assumption::LargeThoughReadAsOneRow { table: name })
            }
            () => None,
        };
        let help = help_with_duplicates(context, change).unwrap_or(help);
        let cause = Cause::Work { relation: table.oid, transaction: context.transaction() };
        let mut finding = reporter.report(change.range, message).relation(table).grows().help(help).caused_by(cause);
        for read in context.effects.reads.iter().filter(|read| read.range == change.range) {
            if let RowsReason::NoIndexOnForeignKey { columns } = &read.rows.reason {
                let read = &read.relation.name;
                let message = format!(
                    "for each deleted row, PostgreSQL reads all of `{read}`: no index begins with \
                                       `{columns}`"
                );
                finding = finding.label(change.range, message);
            }
        }
        if let Some(place) = change.repeats {
            finding = finding.label_in(place.file, place.range, "an earlier migration runs the same statement");
        }
        assume(finding, change, context.settings, against).emit();
    }
}

/// The next step for a DELETE of duplicates that a unique index of the same transaction needs: batches alone leave time
/// for new duplicates.
fn help_with_duplicates(context: &RuleContext<'_>, change: &DataChange) -> Option<String> {
    let RowsReason::Duplicates { columns } = &change.rows.reason else { return None };
    let end = ahead(context, &change.relation.name, Until::Commit);
    let table = end.get_relation(change.relation.oid)?;
    let is_needed = |index: &&Arc<Relation>| {
        let key = index.index().and_then(|index| index.plain_columns()).unwrap_or_default();
        let is_new = context.before.get_relation(index.oid).is_none();
        is_new && key.len() == columns.len() && key.iter().all(|column| columns.contains(column))
    };
    let mut indexes = table.unique_indexes.iter().filter_map(|oid| end.get_relation(*oid));
    let index = indexes.find(is_needed)?;
    Some(format!(
        "if there are many duplicates, first delete most of them in batches, each in its own transaction, and keep this \
         statement: it must delete those that appear in the meantime in the same transaction that creates `{}`",
        index.name
    ))
}

/// Whether a statement itself changes so many rows of a table in use that others have to wait for them.
fn is_work(change: &DataChange) -> bool {
    change.kind != DataChangeKind::Insert
        && !change.rows.is_few()
        && (!change.by_trigger || is_cascade(change))
        && change.relation.visibility.is_exposed()
}

/// Whether a foreign key makes the change, because rows that it refers to are deleted.
fn is_cascade(change: &DataChange) -> bool {
    change.rows.are_referring()
}

/// The assumption that there are many rows, with the evidence against it.
fn assume<'r, 'a>(
    finding: Finding<'r, 'a>,
    change: &DataChange,
    settings: &Settings,
    against: Option<Assumption>,
) -> Finding<'r, 'a> {
    let table = &change.relation;
    let is_large = settings.table(&table.schema, &table.name).size() == TableSize::Large;
    match against {
        Some(against) => finding.assuming(against),
        None if is_large && change.rows.is_whole() => finding,
        None => finding.assuming(Assumption::many(&table.name, &change.rows)),
    }
}

/// Whether the migration lists the rows that replace the deleted ones, or loads them from a file.
fn is_refilled(context: &RuleContext<'_>, table: &RelationName) -> bool {
    let path = context.session.settings.search_path();
    let fills = |ast: &Ast| {
        let target = match ast {
            Ast::Insert(insert) => match &insert.source {
                InsertSource::Query(query) if matches!(query.body, QueryBody::Values(_)) => Some(&insert.table.name),
                _ => None,
            },
            Ast::Copy(copy) if copy.from => copy.table.as_ref(),
            _ => None,
        };
        target.is_some_and(|target| context.before.find_relation(target, &path) == Some(table.oid))
    };
    any_later(context, fills)
}

/// Whether configuration or statistics say that the table has few rows.
fn is_small(table: &RelationName, settings: &Settings) -> bool {
    settings.table(&table.schema, &table.name).size() == TableSize::Small
}

/// What the statement does, and to how many rows.
fn message(change: &DataChange, ast: &Ast) -> String {
    let verb = match change.kind {
        _ if matches!(ast, Ast::Merge(_)) => "changes",
        DataChangeKind::Delete => "deletes",
        _ => "updates",
    };
    let table = &change.relation.name;
    if let RowsReason::Cascade { table: deleted, .. } = &change.rows.reason {
        return format!(
            "this also {verb} the rows of `{table}` that refer to the deleted rows of `{deleted}`, in one transaction \
             that keeps all these rows locked until it commits"
        );
    }
    match change.rows.extent {
        Extent::All => format!(
            "this {verb} every row of `{table}` in one transaction and keeps all of them locked until it commits"
        ),
        Extent::Most => {
            format!("this {verb} most rows of `{table}` in one transaction and keeps them locked until it commits")
        }
        Extent::UnknownPart => {
            format!(
                "this {verb} an unknown number of rows of `{table}` in one transaction and keeps them locked until it commits"
            )
        }
        Extent::AtMost(rows) => {
            format!(
                "this {verb} up to {} rows of `{table}` in one transaction and keeps them locked until it \
                 commits",
                grouped(rows)
            )
        }
    }
}

/// The next step. A function cannot commit between batches.
fn help(change: &DataChange, ast: &Ast, relation: Option<&Relation>, in_function: bool) -> String {
    let how =
        if in_function { "from a procedure that commits after each batch" } else { "each in its own transaction" };
    let one = if in_function && !is_conditional(ast) {
        "if this is meant for one row, add a WHERE clause; otherwise "
    } else {
        ""
    };
    let mut batch = batch(change, relation, ast);
    if is_conditional(ast) {
        let joined = match joining(ast) {
            "" => String::new(),
            clause => format!(", and {clause} ... with its {clause} clause"),
        };
        let _ = write!(batch, "\nreplace (...) with the condition of the statement{joined}");
    }
    if change.kind == DataChangeKind::Update && key_of_batches(relation).is_none() {
        batch.push_str("\nthe condition must exclude the rows that earlier batches have updated");
    }
    match change.kind {
        DataChangeKind::Delete if is_cascade(change) => format!(
            "first delete these rows of `{}` in batches, {how}: ON DELETE CASCADE deletes all of them at once",
            change.relation.name
        ),
        _ if is_cascade(change) => format!(
            "first update these rows of `{}` in batches, {how}: ON DELETE SET NULL and SET DEFAULT update all of them \
             at once",
            change.relation.name
        ),
        _ if is_part_of_with(change, ast) => format!(
            "run the whole statement in batches, {how}: limit the rows that this part of WITH changes, and let the other \
             parts use only the rows that it returns with RETURNING"
        ),
        _ if matches!(ast, Ast::Merge(_)) => format!(
            "merge the source rows in batches, {how}, and give WHEN MATCHED a condition that excludes unchanged rows"
        ),
        DataChangeKind::Update if is_upsert(ast) => {
            format!(
                "insert the source rows in batches, {how}, and give DO UPDATE a WHERE clause that excludes unchanged rows"
            )
        }
        DataChangeKind::Delete if matches!(change.rows.reason, RowsReason::Duplicates { .. }) => {
            format!("if there are many duplicates, delete them in batches with the same condition, {how}")
        }
        DataChangeKind::Delete if change.rows.extent == Extent::All => format!(
            "{one}delete in batches of a few thousand rows, {how}:\n    {batch}\n\
             if nobody uses the table at that time, TRUNCATE is faster"
        ),
        DataChangeKind::Delete => {
            format!("{one}delete in batches of a few thousand rows, {how}:\n    {batch}")
        }
        _ => format!("{one}update in batches of a few thousand rows, {how}:\n    {batch}"),
    }
}

/// Whether it is an INSERT that updates the rows that are there already.
fn is_upsert(ast: &Ast) -> bool {
    matches!(ast, Ast::Insert(insert) if insert.on_conflict.as_ref().is_some_and(|conflict| conflict.update.is_some()))
}

/// Whether a statement in WITH makes the change.
fn is_part_of_with(change: &DataChange, ast: &Ast) -> bool {
    let is_own = match ast {
        Ast::Update(update) => update.keyword == change.range,
        Ast::Delete(delete) => delete.keyword == change.range,
        _ => false,
    };
    let mut found = false;
    ast.visit(&mut |part| {
        found |= match part {
            Part::Update(update) => update.keyword == change.range,
            Part::Delete(delete) => delete.keyword == change.range,
            _ => false,
        };
    });
    found && !is_own
}

/// Whether something in the statement chooses the rows, or may do so.
fn is_conditional(ast: &Ast) -> bool {
    match ast {
        Ast::Update(update) => update.filter.is_some() || !update.from.is_empty(),
        Ast::Delete(delete) => delete.filter.is_some() || !delete.using.is_empty(),
        _ => true,
    }
}

/// The word before the tables that the statement joins to choose the rows.
fn joining(ast: &Ast) -> &'static str {
    match ast {
        Ast::Delete(delete) if !delete.using.is_empty() => "USING",
        Ast::Update(update) if !update.from.is_empty() => "FROM",
        _ => "",
    }
}

/// The primary key, if it is one column.
fn key_of_batches(relation: Option<&Relation>) -> Option<&SmolStr> {
    match relation.filter(|relation| relation.known)?.primary_key()?.columns() {
        [column] => Some(column),
        _ => None,
    }
}

/// One batch: along the primary key if it is one column, which any type with an order can be, or else by addresses.
fn batch(change: &DataChange, relation: Option<&Relation>, ast: &Ast) -> String {
    let (schema, name) = (&change.relation.schema, &change.relation.name);
    let table = match schema.as_str() {
        "public" => identifier(name),
        _ => format!("{}.{}", identifier(schema), identifier(name)),
    };
    let condition = if is_conditional(ast) { " AND (...)" } else { "" };
    let verb = match change.kind {
        DataChangeKind::Delete => format!("DELETE FROM {table}"),
        _ => format!("UPDATE {table} SET ..."),
    };
    match key_of_batches(relation) {
        Some(column) => {
            let key = identifier(column);
            match joining(ast) {
                "" => format!("{verb} WHERE {key} > ... AND {key} <= ...{condition};"),
                clause => format!("{verb} {clause} ... WHERE {table}.{key} > ... AND {table}.{key} <= ...{condition};"),
            }
        }
        _ if !joining(ast).is_empty() => format!(
            "{verb} {} ... WHERE {table}.ctid = ANY (ARRAY(SELECT {table}.ctid FROM {table}, ... WHERE (...) LIMIT \
             5000)) AND (...);",
            joining(ast)
        ),
        _ => format!("{verb} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table} WHERE (...) LIMIT 5000));"),
    }
}

/// A function that no reported migration calls: what happens when somebody does.
fn check_routine(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let is_of_trigger = !context.triggers().is_empty();
    if context.function().is_none() || context.called_by_migration || is_of_trigger {
        return;
    }
    let steps = context.routine.steps();
    let sql = || steps.iter().flat_map(|step| &step.sql).filter(|sql| sql.role != SqlRole::Expression);
    if !sql().any(|sql| changes_rows(sql.ast)) {
        return;
    }
    let mut trial = Trial::of_code(context.catalog, &context.routine.search_path, context.settings.versions.to);
    for sql in sql() {
        let creates = matches!(sql.ast, Ast::CreateTable(_) | Ast::CreateTableAs(_));
        if !creates && !changes_rows(sql.ast) {
            continue;
        }
        for change in trial.run(sql.ast).data_changes {
            check_change(context, sql, &change, reporter);
        }
    }
}

fn check_change(context: &RoutineContext<'_>, sql: &Sql<'_>, change: &DataChange, reporter: &mut Reporter<'_>) {
    let table = &change.relation;
    if !is_work(change)
        || is_small(table, context.settings)
        || context.catalog.get_relation(table.oid).is_none() && context.routines.makes_temporary(&table.name)
    {
        return;
    }
    let message = format!("when {} is called, {}", context.name(), message(change, sql.ast));
    let relation = context.catalog.get_relation(table.oid).map(|relation| &**relation);
    let name = table.name.clone();
    let is_built = sql.dynamic.is_some() && has_built_condition(sql.ast);
    let against = match () {
        () if takes_one_row(sql) || reads_one_row(context, table) => {
            Some(Assumption::LargeThoughReadAsOneRow { table: name })
        }
        () if relation.is_some_and(|table| stores_total(sql.ast, table)) => {
            Some(Assumption::LargeThoughTotal { table: name })
        }
        () if is_built => Some(Assumption::ManyRowsThough { table: name, because: RowsReason::GivenAtRunTime }),
        () if !change.rows.is_whole() => Some(Assumption::ManyRowsEachTime { table: name }),
        () => None,
    };
    let finding =
        reporter.report(sql.place(change.range), message).relation(table).help(help(change, sql.ast, relation, true));
    assume(finding, change, context.settings, against).emit();
}

/// Whether a statement updates or deletes rows; of how many tables and rows, its effects say.
pub(super) fn changes_rows(ast: &Ast) -> bool {
    let mut found = false;
    ast.visit(&mut |part| {
        found |= match part {
            Part::Update(_) | Part::Delete(_) | Part::Merge(_) => true,
            Part::Insert(insert) => insert.on_conflict.as_ref().is_some_and(|conflict| conflict.update.is_some()),
            _ => false,
        };
    });
    found
}

/// Whether run time writes a part of the condition of an UPDATE or DELETE in the text of EXECUTE.
fn has_built_condition(ast: &Ast) -> bool {
    let is_built = |filter: &Option<Expr>| {
        let mut found = false;
        filter.iter().for_each(|filter| {
            filter.walk(&mut |part| {
                let ExprKind::Column(path) = &part.kind else { return };
                found |= path.iter().any(|name| name.contains(HOLE));
            });
        });
        found
    };
    let mut found = false;
    ast.visit(&mut |part| match part {
        Part::Update(update) => found |= is_built(&update.filter),
        Part::Delete(delete) => found |= is_built(&delete.filter),
        _ => {}
    });
    found
}
