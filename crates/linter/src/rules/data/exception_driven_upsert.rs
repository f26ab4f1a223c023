//! INSERTs that are tried first, with a handler for duplicates.

use crate::assumption::{Assumption, KeyEvidence};
use crate::fix::{Applicability, Edit, Fix};
use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use crate::rules::conflict::fresh::Variables;
use crate::rules::conflict::handled::{conditions_range, handler_of, is_only_unique, raises};
use crate::rules::conflict::inserted::{Inserted, Refusal, Values};
use crate::rules::conflict::unique::{UniqueIndex, accepts_any_conflict, accepts_on_conflict, ambiguity, left_behind};
use pgvet_model::catalog::Relation;
use pgvet_model::routine::{Code, SqlRole, Step};
use pgvet_syntax::ast::{Assignment, Ast, Expr, ExprKind, Insert, InsertSource, OperatorForm, QueryBody, Update};
use pgvet_syntax::plpgsql::{Block, Handler, Statement, StatementKind};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// An `INSERT` in a block whose `EXCEPTION` handler catches the duplicate key error, and then ignores it, updates
    /// the row, or tries again.
    ///
    /// ## Why it matters
    ///
    /// Each duplicate leaves a dead row behind, and a dead entry in every index that was created before the unique
    /// index that rejects the row. Each run of the block is a subtransaction with its own transaction ID, whether or
    /// not there is a duplicate. If more than 64 subtransactions of one open transaction have written something, other
    /// sessions become slower, too. `ON CONFLICT` avoids these costs.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE counters (name text PRIMARY KEY, hits bigint);
    /// CREATE FUNCTION hit(counter text) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     INSERT INTO counters (name, hits) VALUES (counter, 1);
    /// EXCEPTION WHEN unique_violation THEN
    ///     UPDATE counters SET hits = counters.hits + 1 WHERE name = counter;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE counters (name text PRIMARY KEY, hits bigint);
    /// CREATE FUNCTION hit(counter text) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     INSERT INTO counters (name, hits) VALUES (counter, 1)
    ///     ON CONFLICT (name) DO UPDATE SET hits = counters.hits + 1;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a handler that raises its own error
    /// - tables that are known to have no unique index that could reject the row
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`, in these cases:
    ///
    /// - The table is temporary.
    /// - The `INSERT` is in a `DO` block, outside of loops.
    /// - The handler catches `OTHERS`, and the block does more than this `INSERT`.
    /// - The handler catches `OTHERS`, and only writes a message.
    ///
    /// ## Fix safety
    ///
    /// The fix is offered if the block contains only the `INSERT`, and the handler does nothing or updates just the
    /// conflicting row. The fix is unsafe if the table has triggers, because the block also catches their errors. The
    /// fix is also unsafe if the `INSERT` may insert several rows: the block inserts all of them or none, but
    /// `ON CONFLICT` inserts those without a conflict.
    "exception-driven-upsert", Data, Warning,
    { fixable: true }
    routine = check,
}

/// An INSERT in a block, and the handler for its duplicates.
struct Upsert<'a> {
    insert: &'a Insert,
    /// Where the INSERT ends.
    end: u32,
    block: &'a Block,
    handler: &'a Handler,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let Code::Plpgsql(body) = &context.routine.code else { return };
    let variables = Variables::of(context);
    let variable = |path: &[SmolStr]| variables.source(path);
    let mut said: Vec<TextRange> = Vec::new();
    let steps = context.routine.steps();
    for step in &steps {
        for sql in step.sql.iter().filter(|sql| sql.role == SqlRole::Statement) {
            let Ast::Insert(insert) = sql.ast else { continue };
            let Some((block, handler)) = handler_of(step) else { continue };
            if insert.on_conflict.is_some() || said.contains(&handler.when) || raises(&handler.statements) {
                continue;
            }
            let upsert = Upsert { insert, end: sql.range.end, block, handler };
            let table = context.relation(&insert.table.name);
            let is_known = table.is_some_and(|table| table.known);
            let inserted = table.map(|table| Inserted { insert, table, variable: &variable, earlier: &|_| Vec::new() });
            let refusals = inserted.map_or_else(Vec::new, |inserted| inserted.refusals(context.catalog));
            if is_known && refusals.is_empty() {
                continue;
            }
            said.push(handler.when);
            let is_about_any = || !is_known || !changes_once(&steps, block) || only_tells(handler);
            let found = [
                (!is_only_unique(handler) && is_about_any(), KeyEvidence::CatchesOthers),
                (table.is_some_and(Relation::is_temporary), KeyEvidence::Temporary),
                (context.function().is_none() && step.innermost_loop().is_none(), KeyEvidence::RunsOnce),
            ];
            let evidence: Vec<KeyEvidence> =
                found.into_iter().filter_map(|(holds, evidence)| holds.then_some(evidence)).collect();
            let is_body = std::ptr::eq(block, &raw const body.block);
            report(context, reporter, step, &upsert, &refusals, &evidence, is_body);
        }
    }
}

fn report(
    context: &RoutineContext<'_>,
    reporter: &mut Reporter<'_>,
    step: &Step<'_>,
    upsert: &Upsert<'_>,
    refusals: &[Refusal<'_>],
    evidence: &[KeyEvidence],
    is_body: bool,
) {
    let name = &upsert.insert.table.name;
    let table = context.relation(name);
    let indexes: Vec<UniqueIndex<'_>> = refusals.iter().map(|refusal| refusal.index.clone()).collect();
    let left = match table {
        Some(table) if !indexes.is_empty() => left_behind(table, &indexes),
        _ => format!("a dead row in `{}`", name.name.text),
    };
    let first = indexes.first().filter(|index| !index.filled_before.is_empty());
    let of = first.map_or_else(String::new, |index| format!(" on `{}`", index.name));
    let message =
        format!("every duplicate key error{of} that this handler catches leaves {left}, and consumes a transaction ID");
    let label = match indexes.first() {
        Some(index) => format!("`{}` rejects duplicates of this row", index.name),
        None => "PostgreSQL tries this INSERT first".to_owned(),
    };
    let mut finding = reporter
        .report(conditions_range(upsert.handler), message)
        .label(name.range(), label)
        .help(help(context, upsert, &indexes));
    if let Some(table) = table {
        finding = finding.relation(&context.relation_name(table));
    }
    for because in evidence {
        finding = finding.assuming(Assumption::KeyTakenThough { table: name.name.text.clone(), because: *because });
    }
    let round = match step.innermost_loop() {
        Some(_) => Some("in every iteration of the loop"),
        None => context.hotness().row_trigger().map(|_| "for every row"),
    };
    if let (Some(round), Some(section)) = (round, &upsert.block.exception) {
        let what = "with more than 64 in one transaction, visibility checks get slower in every session";
        finding = finding.label(
            section.keyword,
            format!("the block starts a subtransaction {round}, even if no row is a duplicate: {what}"),
        );
    }
    let fix = table.filter(|table| table.known).and_then(|table| fix(context, upsert, table, &indexes, is_body));
    if let Some(fix) = fix {
        finding = finding.fix(fix);
    }
    finding.runs_often(&context.hotness()).emit();
}

/// Whether a handler of any error only reports the error. Such code does not expect duplicates.
fn only_tells(handler: &Handler) -> bool {
    let tells = |statement: &Statement| matches!(statement.kind, StatementKind::Raise(_));
    !handler.statements.is_empty() && handler.statements.iter().all(tells)
}

/// Whether one statement makes all changes of the block.
fn changes_once(steps: &[Step<'_>], block: &Block) -> bool {
    let end = block.exception.as_ref().map_or(block.range.end, |section| section.keyword.start);
    let inside = TextRange::new(block.range.start, end);
    let changes = |step: &&Step<'_>| {
        inside.contains(step.range())
            && step.sql.iter().any(|sql| {
                let calls = matches!(sql.ast, Ast::Select(_)) && sql.role == SqlRole::Statement;
                calls || matches!(sql.ast, Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Call(_))
            })
    };
    steps.iter().filter(changes).count() == 1
}

fn updates(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match &statement.kind {
        StatementKind::Sql(sql) => {
            sql.text.text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("update"))
        }
        _ => false,
    })
}

fn help(context: &RoutineContext<'_>, upsert: &Upsert<'_>, indexes: &[UniqueIndex<'_>]) -> String {
    let is_variable = ambiguity(context);
    let target = match indexes {
        [only] => only.conflict_target(&is_variable),
        _ => None,
    };
    if updates(&upsert.handler.statements) {
        let target = target.unwrap_or_else(|| "(...)".to_owned());
        return format!(
            "use INSERT ... ON CONFLICT instead of the EXCEPTION block:\n    INSERT ... ON CONFLICT {target} DO UPDATE \
             SET ...;"
        );
    }
    let target = target.map_or_else(String::new, |target| format!("{target} "));
    format!(
        "use INSERT ... ON CONFLICT instead of the EXCEPTION block:\n    INSERT ... ON CONFLICT {target}DO \
            NOTHING;"
    )
}

/// The rewrite, if it means the same.
fn fix(
    context: &RoutineContext<'_>,
    upsert: &Upsert<'_>,
    table: &Relation,
    indexes: &[UniqueIndex<'_>],
    is_body: bool,
) -> Option<Fix> {
    let section = upsert.block.exception.as_ref()?;
    let [statement] = upsert.block.statements.as_slice() else { return None };
    let StatementKind::Sql(sql) = &statement.kind else { return None };
    // What was not read of a handler may do something.
    if !context.routine.is_read() {
        return None;
    }
    let is_alone = section.handlers.len() == 1 && sql.into.is_none() && upsert.insert.returning.is_empty();
    if !is_alone || !is_only_unique(upsert.handler) || !accepts_on_conflict(table) {
        return None;
    }
    let (title, clause) = if upsert.handler.statements.iter().all(|own| own.kind == StatementKind::Null) {
        if !accepts_any_conflict(table) || asks_for_count(context) {
            return None;
        }
        ("Ignore duplicates without the block", "ON CONFLICT DO NOTHING".to_owned())
    } else {
        let [index] = indexes else { return None };
        let assignments = update_of(context, upsert, table, index)?;
        let target = index.conflict_target(&ambiguity(context))?;
        ("Update the conflicting row without the block", format!("ON CONFLICT {target} DO UPDATE SET {assignments}"))
    };
    let is_same = table.triggers.is_empty() && inserts_one_row(upsert.insert);
    let applicability = if is_same { Applicability::Safe } else { Applicability::Unsafe };
    let clause = format!(" {clause}");
    let mut edits = vec![Edit { range: TextRange::new(upsert.end, upsert.end), text: clause }];
    if is_body || !upsert.block.declarations.is_empty() || upsert.block.label.is_some() {
        // The text between the INSERT and END is removed, except its semicolon.
        edits.push(Edit { range: TextRange::new(section.keyword.start, upsert.block.end.start), text: String::new() });
    } else {
        edits
            .push(Edit { range: TextRange::new(upsert.block.range.start, statement.range.start), text: String::new() });
        edits.push(Edit { range: TextRange::new(upsert.end, upsert.block.range.end), text: String::new() });
    }
    Some(Fix { title: title.to_owned(), applicability, edits })
}

/// Of several rows the block inserts all or none, and ON CONFLICT those without a conflict.
fn inserts_one_row(insert: &Insert) -> bool {
    match &insert.source {
        InsertSource::DefaultValues => true,
        InsertSource::Query(query) => matches!(&query.body, QueryBody::Values(rows) if rows.len() == 1),
    }
}

/// Whether the code asks how many rows the last statement changed. That differs if a duplicate is ignored.
fn asks_for_count(context: &RoutineContext<'_>) -> bool {
    let body = context.text(context.routine.statement).to_ascii_lowercase();
    let mut words = body.split(|character: char| !character.is_alphanumeric() && character != '_');
    words.any(|word| word == "found" || word == "row_count")
}

/// The assignments of a handler that updates exactly the row that refuses the insert.
fn update_of(
    context: &RoutineContext<'_>,
    upsert: &Upsert<'_>,
    table: &Relation,
    index: &UniqueIndex<'_>,
) -> Option<String> {
    let [Statement { kind: StatementKind::Sql(sql), .. }] = upsert.handler.statements.as_slice() else { return None };
    let Some(Ast::Update(update)) = context.routine.sql(&sql.text) else { return None };
    let is_plain = sql.into.is_none()
        && update.with.is_none()
        && update.from.is_empty()
        && update.returning.is_empty()
        && update.table.alias.is_none()
        && upsert.insert.table.alias.is_none()
        && context.relation(&update.table.name).is_some_and(|own| own.oid == table.oid);
    if !is_plain || index.index.predicate.is_some() || !finds_the_row(context, upsert, update, table, index) {
        return None;
    }
    let names_columns = |assignment: &Assignment| {
        let mut found = false;
        assignment.value.visit(&mut |part| {
            if let pgvet_syntax::ast::Part::Expr(expression) = part {
                found |= expression.as_column().is_some_and(|name| table.column(name).is_some());
                found |= matches!(expression.kind, ExprKind::Subquery { .. });
            }
        });
        found
    };
    let (first, last) = (update.assignments.first()?, update.assignments.last()?);
    let shares_source = update.assignments.windows(2).any(|pair| pair[0].value.range == pair[1].value.range);
    if shares_source || update.assignments.iter().any(names_columns) {
        return None;
    }
    let range = TextRange::new(first.column.range.start, last.value.range.end);
    Some(context.text(range).to_owned())
}

/// Whether the WHERE clause compares each column of the key with the value that was to be inserted, and does nothing
/// else.
fn finds_the_row(
    context: &RoutineContext<'_>,
    upsert: &Upsert<'_>,
    update: &Update,
    table: &Relation,
    index: &UniqueIndex<'_>,
) -> bool {
    let (Some(columns), Some(filter)) = (index.columns(), &update.filter) else { return false };
    let inserted = Inserted { insert: upsert.insert, table, variable: &|_| None, earlier: &|_| Vec::new() };
    let conditions: Vec<&Expr> = match &filter.kind {
        ExprKind::And(list) => list.iter().collect(),
        _ => vec![filter],
    };
    let text = |expression: &Expr| context.text(expression.range).split_whitespace().collect::<String>();
    let compares = |column: &SmolStr| {
        let Values::Rows(rows) = inserted.values_of(column) else { return false };
        let [value] = rows.as_slice() else { return false };
        conditions.iter().any(|condition| match &condition.kind {
            ExprKind::Operator { operator, operands, form: OperatorForm::Plain, .. } if operator == "=" => {
                let is_column = |side: &Expr| {
                    matches!(&side.kind, ExprKind::Column(path) if path.last() == Some(column)
                        && (path.len() == 1 || path.first() == Some(&table.name)))
                };
                let [left, right] = operands.as_slice() else { return false };
                let other = if is_column(left) { right } else { left };
                (is_column(left) || is_column(right)) && text(other) == text(value)
            }
            _ => false,
        })
    };
    conditions.len() == columns.len() && columns.iter().all(compares)
}
