//! INSERTs that a migration runs.

use super::insert_may_violate_unique::{advise, assume, do_nothing, is_copy, is_plain_table, names};
use crate::assumption::KeyEvidence;
use crate::cause::Cause;
use crate::report::Reporter;
use crate::rule::RuleContext;
use crate::rules::conflict::inserted::{Inserted, Refusal, ValueSource};
use crate::rules::deployment::other_statements::any_later;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{Column, Oid, Relation, SearchPath};
use pgvet_model::effect::{DataChangeKind, RelationName, Visibility};
use pgvet_syntax::ast::{
    AlterTableAction, Ast, Expr, ExprKind, FromItem, Insert, InsertSource, ObjectName, Part, Query, QueryBody,
};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::cell::Cell;

/// An INSERT into a table that is older than the deployment.
struct Load<'a> {
    context: &'a RuleContext<'a>,
    path: SearchPath,
    insert: &'a Insert,
    table: &'a Relation,
    earlier: &'a EarlierRead,
    is_copy: bool,
}

/// What the statements that a migration has run so far do to rows and sequences. A file of thousands of INSERTs reads
/// each of them once.
#[derive(Debug)]
struct EarlierRead {
    file: u32,
    /// How many of [`RuleContext::earlier`] were read.
    count: usize,
    /// TRUNCATE and DELETE by the name of the table, as positions.
    removals: FxHashMap<SmolStr, Vec<usize>>,
    /// INSERT by the name of the table, as positions.
    inserts: FxHashMap<SmolStr, Vec<usize>>,
    /// Whether one of them sets a sequence.
    sets_sequence: bool,
    /// Whether it is known that no later statement sets a sequence.
    none_later_sets: Cell<bool>,
}

impl EarlierRead {
    /// Reads what was run since the last time.
    fn at(context: &RuleContext<'_>) -> Self {
        let start = context.outer().start;
        let count = context.earlier.partition_point(|run| run.outer < start);
        let known = context.endings.recall().filter(|read: &Self| read.file == context.file && read.count <= count);
        let mut read = known.unwrap_or_else(|| Self {
            file: context.file,
            count: 0,
            removals: FxHashMap::default(),
            inserts: FxHashMap::default(),
            sets_sequence: false,
            none_later_sets: Cell::new(false),
        });
        for at in read.count..count {
            read.note(at, &context.earlier[at].ast);
        }
        read.count = count;
        read
    }

    fn note(&mut self, at: usize, ast: &Ast) {
        match ast {
            Ast::Truncate(truncate) => {
                for (name, _) in &truncate.tables {
                    self.removals.entry(name.name.text.clone()).or_default().push(at);
                }
            }
            Ast::Delete(delete) => {
                self.removals.entry(delete.table.name.name.text.clone()).or_default().push(at);
            }
            Ast::Insert(insert) => self.inserts.entry(insert.table.name.name.text.clone()).or_default().push(at),
            _ => {}
        }
        self.sets_sequence = self.sets_sequence || sets_sequence(ast);
    }
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
    let table_of = |insert: &Insert| {
        let oid = context.before.find_relation(&insert.table.name, &path)?;
        Some(context.before.relation(oid)).filter(|table| into(oid) && is_plain_table(table))
    };
    inserts.retain(|insert| insert.on_conflict.is_none() && table_of(insert).is_some());
    if inserts.is_empty() {
        return;
    }
    let read = EarlierRead::at(context);
    for insert in inserts {
        let Some(table) = table_of(insert) else { continue };
        let is_copy = is_copy(insert);
        let load = Load { context, path: path.clone(), insert, table, earlier: &read, is_copy };
        if !load.is_emptied() && !load.asks_first() {
            load.check(reporter);
        }
    }
    context.endings.remember(read);
}

impl<'a> Load<'a> {
    fn check(&self, reporter: &mut Reporter<'_>) {
        let catalog = self.context.before;
        let earlier = |table: &str| {
            self.inserts_into(table).filter(|insert| insert.on_conflict.is_none()).collect::<Vec<&Insert>>()
        };
        let inserted = Inserted { insert: self.insert, table: self.table, variable: &|_| None, earlier: &earlier };
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
                "this INSERT sets `{table}.{number}` to a number that the column's sequence has generated or will \
                 generate, so this INSERT or a later one fails with a duplicate key error"
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
        let key = if is_one_row(self.insert) { "the same key" } else { "the same key as one of the new rows" };
        format!(
            "this fails with a duplicate key error on {} if the table already has a row with {key}",
            names(refusals)
        )
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

    /// The statements that the migration ran before, of which these positions are in the file; those of the same code
    /// are few.
    fn before(&self, positions: Option<&'a Vec<usize>>) -> impl Iterator<Item = &'a Ast> + use<'a> {
        let all = self.context.earlier;
        let same_code = self.context.code.map_or(&[][..], |code| code.earlier);
        let in_file = positions.into_iter().flatten().map(|at| &*all[*at].ast);
        in_file.chain(same_code.iter().filter_map(|run| run.statement.ast()))
    }

    /// The TRUNCATE and DELETE before it that may be of the table.
    fn removals(&self) -> impl Iterator<Item = &'a Ast> + use<'a> {
        self.before(self.earlier.removals.get(&self.table.name))
    }

    /// The INSERTs before it into tables of that name.
    fn inserts_into(&self, table: &str) -> impl Iterator<Item = &'a Insert> + use<'a> {
        self.before(self.earlier.inserts.get(table)).filter_map(as_insert)
    }

    /// Whether an earlier statement of the migration has deleted all rows.
    fn is_emptied(&self) -> bool {
        self.removals().any(|ast| match ast {
            Ast::Truncate(truncate) => truncate.tables.iter().any(|(name, _)| self.is_table(name)),
            Ast::Delete(delete) => {
                delete.filter.is_none() && delete.using.is_empty() && self.is_table(&delete.table.name)
            }
            _ => false,
        })
    }

    fn deletes_some(&self) -> bool {
        self.removals().any(|ast| matches!(ast, Ast::Delete(delete) if self.is_table(&delete.table.name)))
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
            let find = |name: &ObjectName| self.context.before.find_relation(name, &self.path);
            let relation = find(name);
            let birth = relation.map(|oid| self.context.before.relation(oid).birth);
            birth.is_some_and(|birth| birth.is_of(self.context.deployment()))
                || self.inserts_into(&name.name.text).any(|insert| find(&insert.table.name) == relation)
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
        if self.earlier.sets_sequence || self.before(None).any(sets_sequence) {
            return true;
        }
        let is_in_file = self.context.code.is_none();
        if is_in_file && self.earlier.none_later_sets.get() {
            return false;
        }
        let is_set = any_later(self.context, sets_sequence);
        // What follows a statement of the file includes what follows the later ones.
        self.earlier.none_later_sets.set(!is_set && is_in_file);
        is_set
    }
}

/// Whether a statement sets the next number of a sequence.
fn sets_sequence(ast: &Ast) -> bool {
    match ast {
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
    }
}

fn as_insert(ast: &Ast) -> Option<&Insert> {
    match ast {
        Ast::Insert(insert) => Some(insert),
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
