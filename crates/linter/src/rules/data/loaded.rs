//! INSERTs that a migration runs.

use super::insert_may_violate_unique::{advise, assume, do_nothing, is_copy, is_plain_table, names};
use crate::assumption::KeyEvidence;
use crate::cause::Cause;
use crate::report::Reporter;
use crate::rule::RuleContext;
use crate::rules::conflict::inserted::{Inserted, Refusal, ValueSource};
use crate::rules::deployment::other_statements::{earlier, rest};
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{Column, Oid, Relation, SearchPath};
use pgvet_model::effect::{DataChangeKind, RelationName, Visibility};
use pgvet_syntax::ast::{
    AlterTableAction, Ast, Expr, ExprKind, FromItem, Insert, InsertSource, ObjectName, Part, Query, QueryBody,
};
use smol_str::SmolStr;

/// An INSERT into a table that is older than the deployment.
struct Load<'a> {
    context: &'a RuleContext<'a>,
    path: SearchPath,
    insert: &'a Insert,
    table: &'a Relation,
    /// Statements that the migration ran before.
    earlier: Vec<&'a Ast>,
    is_copy: bool,
}

pub(super) fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let changes = &context.effects.data_changes;
    let into = |oid: Oid| {
        changes.iter().any(|change| {
            let is_insert = change.kind == DataChangeKind::Insert && !change.by_trigger;
            is_insert && change.relation.oid == oid && change.relation.visibility == Visibility::Existing
        })
    };
    if changes.is_empty() || context.effects.fails.is_some() {
        return;
    }
    let path = context.session.settings.search_path();
    let mut inserts: Vec<&Insert> = Vec::new();
    context.ast.visit(&mut |part| {
        if let Part::Insert(insert) = part {
            inserts.push(insert);
        }
    });
    for insert in inserts.into_iter().filter(|insert| insert.on_conflict.is_none()) {
        let Some(oid) = context.before.find_relation(&insert.table.name, &path) else { continue };
        let table = context.before.relation(oid);
        if !into(oid) || !is_plain_table(table) {
            continue;
        }
        let is_copy = is_copy(insert);
        let load = Load { context, path: path.clone(), insert, table, earlier: earlier(context).collect(), is_copy };
        if !load.is_emptied() && !load.asks_first() {
            load.check(reporter);
        }
    }
}

impl Load<'_> {
    fn check(&self, reporter: &mut Reporter<'_>) {
        let catalog = self.context.before;
        let inserts: Vec<&Insert> = self.earlier.iter().filter_map(|ast| plain_insert(ast)).collect();
        let inserted =
            Inserted { insert: self.insert, table: self.table, variable: &|_| None, earlier: inserts.as_slice() };
        let refusals = inserted.refusals(catalog);
        if refusals.is_empty() {
            return;
        }
        let range = self.insert.table.name.range();
        let relation = RelationName::existing(self.table);
        let evidence = self.evidence(&inserted, &refusals);
        if let Some(number) = refusals.iter().find_map(|refusal| self.numbers_by_hand(refusal)) {
            let table = &self.table.name;
            let message = format!(
                "this INSERT or a later one fails with a duplicate key error: it sets `{table}.{number}` to a number \
                 that the column's sequence has generated or will generate"
            );
            let (sql_table, column) = (sql_name(self.context, &relation), identifier(&number));
            let help = format!(
                "do not set `{number}`, so that the sequence provides the number; or set the sequence afterwards:\n    \
                 SELECT setval(pg_get_serial_sequence('{}', '{}'), (SELECT max({column}) FROM {sql_table}));",
                sql_table.replace('\'', "''"),
                number.replace('\'', "''"),
            );
            let finding = reporter.report(range, message).relation(&relation).help(help).caused_by(Cause::Message);
            return assume(finding, self.table, &evidence).emit();
        }
        let finding = reporter.report(range, self.message(&refusals)).relation(&relation).caused_by(Cause::Message);
        let clause = do_nothing(self.table, &refusals, &|_| false);
        let end = matches!(self.context.ast, Ast::Insert(_)).then_some(self.context.statement.range.end);
        assume(advise(finding, self.insert, end, clause, &refusals), self.table, &evidence).emit();
    }

    fn message(&self, refusals: &[Refusal<'_>]) -> String {
        let which = if is_one_row(self.insert) { "a row with this key" } else { "one of the rows" };
        format!("this fails with a duplicate key error on {} if {which} already exists", names(refusals))
    }

    /// Evidence against a row with the same key.
    fn evidence(&self, inserted: &Inserted<'_>, refusals: &[Refusal<'_>]) -> Vec<KeyEvidence> {
        let of_constant = |refusal: &Refusal<'_>| refusal.source == ValueSource::Constant;
        let is_number = refusals.iter().any(|refusal| self.numbers_by_hand(refusal).is_some());
        let is_variable = self.context.code.is_some()
            && !self.is_copy
            && refusals.iter().all(|refusal| refusal.source == ValueSource::Given);
        let random = |refusal: &Refusal<'_>| {
            let columns = refusal.index.columns().unwrap_or_default();
            of_constant(refusal)
                && matches!(columns.as_slice(), [only] if inserted.default_source(only) == ValueSource::Generated)
        };
        let generates = inserted.generates_key(self.context.before);
        let found = [
            (self.table.birth.is_listed_before(self.context.deployment()), KeyEvidence::Listed),
            (!self.is_copy && !generates, KeyEvidence::NoGeneratedKey),
            (!is_number && refusals.iter().all(random), KeyEvidence::RandomKeys),
            (is_number && self.sets_sequence(), KeyEvidence::SequenceSet),
            (self.deletes_some(), KeyEvidence::RowsDeleted),
            (self.is_copy && self.copies_new_rows(), KeyEvidence::NewSource),
            (self.reads_itself(), KeyEvidence::ReadsItself),
            (refusals.iter().all(|refusal| refusal.source == ValueSource::MayBeGenerated), KeyEvidence::MayBeGenerated),
            (is_variable, KeyEvidence::Variable),
            (self.context.code.is_some_and(|code| code.guarded), KeyEvidence::Conditional),
        ];
        found.into_iter().filter_map(|(holds, evidence)| holds.then_some(evidence)).collect()
    }

    fn is_table(&self, name: &ObjectName) -> bool {
        self.context.before.find_relation(name, &self.path) == Some(self.table.oid)
    }

    /// Whether an earlier statement of the migration has deleted all rows.
    fn is_emptied(&self) -> bool {
        self.earlier.iter().any(|ast| match ast {
            Ast::Truncate(truncate) => truncate.tables.iter().any(|(name, _)| self.is_table(name)),
            Ast::Delete(delete) => {
                delete.filter.is_none() && delete.using.is_empty() && self.is_table(&delete.table.name)
            }
            _ => false,
        })
    }

    fn deletes_some(&self) -> bool {
        let deletes = |ast: &&Ast| matches!(ast, Ast::Delete(delete) if self.is_table(&delete.table.name));
        self.earlier.iter().any(deletes)
    }

    /// Whether the statement reads the table beside another source of its rows, to exclude existing rows.
    fn asks_first(&self) -> bool {
        let is_source = matches!(&self.insert.source, InsertSource::Query(query) if self.is_only_source(query));
        self.reads_itself() && !is_source
    }

    fn is_only_source(&self, query: &Query) -> bool {
        let QueryBody::Select(select) = &query.body else { return false };
        matches!(select.from.as_slice(), [FromItem::Relation(only)] if self.is_table(&only.name))
    }

    fn reads_itself(&self) -> bool {
        reads_any(self.insert, |name| self.is_table(name))
    }

    /// Whether the copied rows come from a table that the migration created or filled.
    fn copies_new_rows(&self) -> bool {
        let is_new = |name: &ObjectName| {
            let relation = self.context.before.find_relation(name, &self.path);
            let birth = relation.map(|oid| self.context.before.relation(oid).birth);
            birth.is_some_and(|birth| birth.is_of(self.context.deployment()))
                || self.earlier.iter().any(|ast| {
                    matches!(ast, Ast::Insert(insert) if self.context.before.find_relation(&insert.table.name, &self.path) == relation)
                })
        };
        reads_any(self.insert, is_new)
    }

    /// The column that gets a constant where a sequence gives a number, if it is the key.
    fn numbers_by_hand(&self, refusal: &Refusal<'_>) -> Option<SmolStr> {
        let columns = refusal.index.columns()?;
        let has_sequence = |column: &Column| {
            column.identity.is_some() || column.default.as_deref().is_some_and(|default| calls(default, "nextval"))
        };
        let only = match columns.as_slice() {
            [only] if refusal.source == ValueSource::Constant => only,
            _ => return None,
        };
        self.table.column(only).is_some_and(has_sequence).then(|| only.clone())
    }

    /// Whether the migration sets a sequence.
    fn sets_sequence(&self) -> bool {
        let sets = |ast: &Ast| match ast {
            Ast::AlterSequence(_) => true,
            Ast::AlterTable(alter) => {
                alter.commands.iter().any(|command| matches!(command.action, AlterTableAction::SetIdentity { .. }))
            }
            _ => {
                let mut found = false;
                ast.visit(&mut |part| {
                    if let Part::Expr(expression) = part {
                        found |= calls(expression, "setval");
                    }
                });
                found
            }
        };
        self.earlier.iter().any(|ast| sets(ast)) || rest(self.context).iter().any(|ast| sets(ast))
    }
}

/// An INSERT without ON CONFLICT.
fn plain_insert(ast: &Ast) -> Option<&Insert> {
    match ast {
        Ast::Insert(insert) if insert.on_conflict.is_none() => Some(insert),
        _ => None,
    }
}

/// Whether an INSERT inserts one row at most.
fn is_one_row(insert: &Insert) -> bool {
    match &insert.source {
        InsertSource::DefaultValues => true,
        InsertSource::Query(query) => match &query.body {
            QueryBody::Values(rows) => rows.len() == 1,
            QueryBody::Select(select) => select.from.is_empty(),
            QueryBody::SetOperation { .. } => false,
        },
    }
}

/// Whether an INSERT reads one of some tables.
fn reads_any(insert: &Insert, is_one: impl Fn(&ObjectName) -> bool) -> bool {
    let mut found = false;
    insert.visit(&mut |part| {
        if let Part::Read(read) = part {
            found = found || is_one(&read.name);
        }
    });
    found
}

fn calls(expression: &Expr, name: &str) -> bool {
    let mut found = false;
    expression.walk(&mut |part| found |= matches!(&part.kind, ExprKind::Call(call) if call.name == name));
    found
}
