//! INSERTs that a unique index is likely to refuse.

use super::fresh::Variables;
use super::guard::guard_of;
use super::handled::handler_of;
use super::inserted::{Inserted, Refusal, ValueSource, Values};
use super::unique::{UniqueIndex, accepts_any_conflict, left_behind, unique_indexes};
use crate::ast::{Ast, Insert, InsertSource, Part, Query, QueryBody};
use crate::catalog::{Catalog, Oid, Relation};
use crate::diagnostic::Severity;
use crate::effect::{RelationKind, RelationName, Visibility};
use crate::fix::{Applicability, Edit, Fix};
use crate::report::{Finding, Reporter};
use crate::routine::{RoutineContext, SqlRole};
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::text::{enumerate, join};
use crate::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A plain `INSERT` of a row that a unique index is likely to refuse.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL writes the row, and an entry into every index that is older than the one that refuses it, before it
    /// finds the duplicate. Each failed `INSERT` leaves all of that behind as bloat, uses up a transaction id and writes
    /// WAL for nothing. In a migration it is worse: where the row is there already, the deployment stops.
    /// `ON CONFLICT` looks first and leaves nothing behind.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, active boolean);
    /// CREATE TABLE settings (user_id bigint PRIMARY KEY, theme text);
    /// -- migration:
    /// INSERT INTO settings (user_id, theme) SELECT id, 'light' FROM users;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, active boolean);
    /// CREATE TABLE settings (user_id bigint PRIMARY KEY, theme text);
    /// -- migration:
    /// INSERT INTO settings (user_id, theme) SELECT id, 'light' FROM users ON CONFLICT (user_id) DO NOTHING;
    /// ```
    ///
    /// ## When it is reported
    ///
    /// - A migration copies rows into a table that was there before, with keys that other code may have inserted.
    /// - A migration gives a number to a column that has a sequence: the sequence has given that number to another row,
    ///   or will do so later.
    /// - A function that runs often inserts a key that its caller gives; as a note where nothing says that it runs often.
    /// - A migration that is no transaction inserts constant keys: as a note, for it cannot be run again.
    ///
    /// ## When it is not reported
    ///
    /// With `ON CONFLICT`; where the key comes from a sequence or `gen_random_uuid()`; where the statement asks for the row
    /// first; for tables of the same migration, tables that it has emptied, and tables without a unique index.
    /// Where a handler expects the failure, `exception-driven-upsert` says it; where an `IF` asks first,
    /// `select-then-insert` does.
    ///
    /// ## Fix safety
    ///
    /// `ON CONFLICT DO NOTHING` keeps the row that is there and says nothing. Whether that is meant is for you to judge.
    "insert-may-violate-unique", Data, Warning,
    { fixable: true }
    routine = check_routine,
    migration = check_migration,
}

/// ON CONFLICT for a statement that these indexes may refuse; `None` where PostgreSQL accepts none, or none is known.
fn do_nothing(table: &Relation, refusals: &[Refusal<'_>], is_variable: &dyn Fn(&SmolStr) -> bool) -> Option<String> {
    match refusals {
        [only] => {
            let target = only.index.conflict_target(is_variable)?;
            Some(format!("ON CONFLICT {target} DO NOTHING"))
        }
        _ => accepts_any_conflict(table).then(|| "ON CONFLICT DO NOTHING".to_owned()),
    }
}

fn names<'a>(refusals: &'a [Refusal<'_>]) -> String {
    let quoted: Vec<String> = refusals.iter().map(|refusal| format!("`{}`", refusal.index.name)).collect();
    join(&quoted).replace(" and ", " or ")
}

fn indexes<'a>(refusals: &[Refusal<'a>]) -> Vec<UniqueIndex<'a>> {
    refusals.iter().map(|refusal| refusal.index.clone()).collect()
}

/// Adds help and fix.
fn advise<'r, 'f>(finding: Finding<'r, 'f>, insert: &Insert, end: u32, clause: Option<String>) -> Finding<'r, 'f> {
    let Some(clause) = clause else {
        return finding.help("ask for the row in the statement itself: INSERT ... SELECT ... WHERE NOT EXISTS (...)");
    };
    let finding = finding.help(format!("if the row may be there already:\n    INSERT ... {clause};"));
    if !insert.returning.is_empty() || insert.with.is_some() {
        return finding;
    }
    let edit = Edit { range: TextRange::new(end, end), text: format!(" {clause}") };
    let title = "Keep the row that is there".to_owned();
    finding.fix(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] })
}

fn is_plain_table(table: &Relation) -> bool {
    matches!(table.kind, RelationKind::Table | RelationKind::PartitionedTable) && !table.is_temporary() && table.known
}

fn check_routine(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let variables = Variables::of(context);
    let is_fresh = |path: &[SmolStr]| variables.is_fresh(path);
    let is_variable = |name: &SmolStr| context.routine.is_variable(std::slice::from_ref(name));
    let steps = context.routine.steps();
    for (at, step) in steps.iter().enumerate() {
        for sql in step.sql.iter().filter(|sql| sql.role == SqlRole::Statement) {
            let Ast::Insert(insert) = sql.ast else { continue };
            let Some(table) = context.relation(&insert.table.name) else { continue };
            if insert.on_conflict.is_some()
                || !is_plain_table(table)
                || handler_of(step).is_some()
                || guard_of(context, &steps, at, table.oid).is_some()
            {
                continue;
            }
            let inserted = Inserted { insert, table, is_fresh: &is_fresh };
            let refusals: Vec<_> = inserted.refusals(context.catalog).into_iter().collect();
            let refusals = match context.function() {
                Some(_) => refusals.into_iter().filter(|refusal| is_given(&inserted, refusal, &variables)).collect(),
                None => copied(context, &inserted, refusals),
            };
            if refusals.is_empty() {
                continue;
            }
            let relation = context.relation_name(table);
            let hotness = context.hotness();
            let message = match context.function() {
                Some(_) => format!(
                    "a row that {} refuses makes `{}` fail here, and leaves {}",
                    names(&refusals),
                    context.name(),
                    left_behind(table, &indexes(&refusals))
                ),
                None => copy_message(&refusals),
            };
            let severity = match context.function() {
                Some(_) if !hotness.is_hot() => Severity::Info,
                _ => Severity::Warning,
            };
            let finding = reporter.report(sql.place(insert.table.name.range()), message).relation(&relation);
            let finding = hotness.label(finding.severity(severity));
            drop(advise(finding, insert, sql.range.end, do_nothing(table, &refusals, &is_variable)));
        }
    }
}

/// Does the caller give a part of the key?
fn is_given(inserted: &Inserted<'_>, refusal: &Refusal<'_>, variables: &Variables) -> bool {
    if refusal.source != ValueSource::Given {
        return false;
    }
    let columns = refusal.index.columns().unwrap_or_default();
    columns.iter().any(|column| match inserted.values_of(column) {
        Values::Rows(rows) => rows.iter().any(|value| variables.is_given(value)),
        Values::Default | Values::Unknown => false,
    })
}

/// In a DO block: keys that are copied into a table that was there before.
fn copied<'a>(
    context: &RoutineContext<'_>,
    inserted: &Inserted<'_>,
    mut refusals: Vec<Refusal<'a>>,
) -> Vec<Refusal<'a>> {
    let is_new = inserted.table.birth.migration == Some(context.file + 1);
    if is_new
        || !is_copy(inserted.insert, &|name| context.relation(name).map(|relation| relation.oid), inserted.table.oid)
    {
        return Vec::new();
    }
    refusals.retain(|refusal| refusal.source == ValueSource::Given);
    refusals
}

/// Does an INSERT take its rows from other tables, without asking the table itself?
fn is_copy(insert: &Insert, oid: &dyn Fn(&crate::ast::ObjectName) -> Option<Oid>, table: Oid) -> bool {
    let InsertSource::Query(query) = &insert.source else { return false };
    let mut reads_itself = false;
    let mut reads = false;
    query.visit(&mut |part| {
        if let Part::Read(read) = part {
            reads = true;
            reads_itself |= oid(&read.name) == Some(table);
        }
    });
    reads && !reads_itself && reads_many(query)
}

/// A query with FROM over relations, as opposed to constants with subqueries.
fn reads_many(query: &Query) -> bool {
    match &query.body {
        QueryBody::Select(select) => !select.from.is_empty(),
        QueryBody::Values(_) => false,
        QueryBody::SetOperation { .. } => true,
    }
}

fn copy_message(refusals: &[Refusal<'_>]) -> String {
    format!("this fails where a row with the same key is there already: {} refuses it", names(refusals))
}

/// INSERTs of a migration that have the same problem.
#[derive(Default)]
struct Problem {
    first: Option<(TextRange, RelationName)>,
    tables: Vec<SmolStr>,
    statements: usize,
}

impl Problem {
    fn add(&mut self, range: TextRange, table: RelationName) {
        self.statements += 1;
        if !self.tables.contains(&table.name) {
            self.tables.push(table.name.clone());
        }
        self.first.get_or_insert((range, table));
    }
}

fn check_migration(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let path = context.session.settings.search_path();
    let find = |name: &crate::ast::ObjectName| context.before.find_relation(name, &path);
    let is_still_there = |oid: &Oid| context.after.get_relation(*oid).is_some();
    let mut emptied: Vec<Oid> = Vec::new();
    let (mut numbered, mut constant) = (Problem::default(), Problem::default());
    let mut last_insert = None;
    let last = context.migration.statements().last().map(|statement| statement.range);
    for statement in context.migration.statements() {
        let Ok(ast) = &statement.parsed else { continue };
        match ast {
            Ast::Truncate(truncate) => emptied.extend(truncate.tables.iter().filter_map(|(table, _)| find(table))),
            Ast::Delete(delete) => emptied.extend(find(&delete.table.name)),
            Ast::Insert(insert) if insert.on_conflict.is_none() => {
                let Some(oid) = find(&insert.table.name).filter(is_still_there) else { continue };
                let table = context.before.relation(oid);
                if !is_plain_table(table) || emptied.contains(&oid) {
                    continue;
                }
                let inserted = Inserted { insert, table, is_fresh: &|_| false };
                let refusals = inserted.refusals(context.before);
                let range = insert.table.name.range();
                let relation = relation_name(table);
                if is_copy(insert, &find, oid) {
                    let refusals: Vec<_> =
                        refusals.into_iter().filter(|refusal| refusal.source == ValueSource::Given).collect();
                    if !refusals.is_empty() {
                        let finding = reporter.report(range, copy_message(&refusals)).relation(&relation);
                        let clause = do_nothing(table, &refusals, &|_| false);
                        drop(advise(finding, insert, statement.range.end, clause));
                    }
                } else if takes_from_sequence(context.before, &inserted, &refusals) {
                    numbered.add(range, relation);
                } else if refusals.iter().any(|refusal| refusal.source == ValueSource::Constant) {
                    last_insert = Some(statement.range);
                    constant.add(range, relation);
                }
            }
            _ => {}
        }
    }
    if !sets_sequence(context) {
        report_numbered(numbered, reporter);
    }
    if context.migration.transaction == crate::check::TransactionMode::Autocommit
        && !has_begin(context)
        && last_insert != last
    {
        report_constant(constant, reporter);
    }
}

fn relation_name(table: &Relation) -> RelationName {
    RelationName {
        oid: table.oid,
        schema: table.schema.clone(),
        name: table.name.clone(),
        kind: table.kind,
        visibility: Visibility::Existing,
    }
}

/// Does the statement give a number where a sequence would?
fn takes_from_sequence(catalog: &Catalog, inserted: &Inserted<'_>, refusals: &[Refusal<'_>]) -> bool {
    let has_sequence = |column: &SmolStr| {
        inserted.table.column(column).is_some_and(|column| {
            column.identity.is_some()
                || column.default.as_ref().is_some_and(|default| {
                    let mut found = false;
                    default.walk(&mut |part| {
                        found |= matches!(&part.kind, crate::ast::ExprKind::Call(call) if call.name == "nextval");
                    });
                    found
                })
        })
    };
    refusals.iter().any(|refusal| {
        refusal.source == ValueSource::Constant
            && unique_indexes(catalog, inserted.table)
                .iter()
                .filter(|index| index.name == refusal.index.name)
                .filter_map(UniqueIndex::columns)
                .any(|columns| matches!(columns.as_slice(), [only] if has_sequence(only)))
    })
}

/// Does the migration set a sequence to where it has to go on?
fn sets_sequence(context: &MigrationContext<'_>) -> bool {
    context.migration.statements().filter_map(|statement| statement.parsed.as_ref().ok()).any(|ast| {
        let mut found = matches!(ast, Ast::AlterSequence(_));
        ast.visit(&mut |part| {
            if let Part::Expr(expression) = part
                && let crate::ast::ExprKind::Call(call) = &expression.kind
            {
                found |= call.name == "setval";
            }
        });
        found
    })
}

fn has_begin(context: &MigrationContext<'_>) -> bool {
    let begins = |ast: &&Ast| matches!(ast, Ast::Transaction(crate::ast::Transaction::Begin));
    context.migration.statements().filter_map(|statement| statement.parsed.as_ref().ok()).any(|ast| begins(&ast))
}

fn report_numbered(problem: Problem, reporter: &mut Reporter<'_>) {
    let Some((range, relation)) = &problem.first else { return };
    let message = format!(
        "this gives a number that the sequence of {} has given to another row, or will give later",
        enumerate(problem.tables.iter().map(SmolStr::as_str))
    );
    let help = "leave the column out, so that the sequence gives the number; or set the sequence behind it:\n    \
                SELECT setval(pg_get_serial_sequence('...', '...'), (SELECT max(...) FROM ...));";
    drop(reporter.report(*range, message).relation(relation).help(help));
}

fn report_constant(problem: Problem, reporter: &mut Reporter<'_>) {
    let Some((range, relation)) = &problem.first else { return };
    let which = match problem.statements {
        1 => "this INSERT fails".to_owned(),
        more => format!("this and {} more INSERTs fail", more - 1),
    };
    let message = format!("{which} when the migration is run again after a later statement failed");
    let help = "write ON CONFLICT DO NOTHING, or run the file in a transaction";
    drop(reporter.report(*range, message).relation(relation).severity(Severity::Info).help(help));
}
