//! INSERTs at the top level of a migration.

use super::insert_may_violate_unique::{advise, copy_message, do_nothing, is_copy, is_plain_table};
use super::inserted::{Inserted, Refusal, ValueSource};
use crate::ast::{Ast, Do, Expr, ExprKind, Insert, ObjectName, Part, Query, QueryBody, Transaction};
use crate::catalog::{Column, Oid, Relation};
use crate::check::TransactionMode;
use crate::diagnostic::Severity;
use crate::effect::RelationName;
use crate::report::Reporter;
use crate::rule::MigrationContext;
use crate::rules::text::enumerate;
use crate::session::SearchPath;
use crate::source::TextRange;
use crate::statement::Statement;
use smol_str::SmolStr;

/// Goes through the statements of a migration in order.
struct Loads<'a> {
    context: &'a MigrationContext<'a>,
    path: SearchPath,
    /// Tables that were emptied: what was there is there no more.
    emptied: Vec<Oid>,
    /// Tables that the migration has made, and those into which its statements and DO blocks have put rows.
    made: Vec<&'a SmolStr>,
    filled: Vec<SmolStr>,
    /// The INSERTs so far, without those with ON CONFLICT.
    inserts: Vec<&'a Insert>,
    /// Numbers where a sequence would give one.
    numbered: Problem,
    /// Keys that are written out.
    constant: Problem,
}

/// INSERTs that have the same problem; it is said once.
#[derive(Default)]
struct Problem {
    first: Option<(TextRange, RelationName)>,
    tables: Vec<SmolStr>,
    /// The statements.
    all: Vec<TextRange>,
}

pub(super) fn check_migration(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let mut loads = Loads {
        context,
        path: context.session.settings.search_path(),
        emptied: Vec::new(),
        made: Vec::new(),
        filled: Vec::new(),
        inserts: Vec::new(),
        numbered: Problem::default(),
        constant: Problem::default(),
    };
    for statement in context.migration.statements() {
        loads.statement(statement, reporter);
    }
    if !sets_sequence(context) {
        loads.numbered.report_numbers(reporter);
    }
    let last = context.migration.statements().last().map(|statement| statement.range);
    let is_last = loads.constant.all.last().copied() == last;
    if context.migration.transaction == TransactionMode::Autocommit && !has_begin(context) && !is_last {
        loads.constant.report_constants(reporter);
    }
}

impl<'a> Loads<'a> {
    fn find(&self, name: &ObjectName) -> Option<Oid> {
        self.context.before.find_relation(name, &self.path)
    }

    fn statement(&mut self, statement: &'a Statement, reporter: &mut Reporter<'_>) {
        match statement.ast() {
            Some(Ast::CreateTable(create)) => self.made.push(&create.name.name.text),
            Some(Ast::CreateTableAs(create)) => self.made.push(&create.into.name.name.text),
            Some(Ast::Select(query)) => self.made.extend(made_by(query)),
            Some(Ast::Truncate(truncate)) => {
                let found: Vec<Oid> = truncate.tables.iter().filter_map(|(table, _)| self.find(table)).collect();
                self.emptied.extend(found);
            }
            Some(Ast::Delete(delete)) => self.emptied.extend(self.find(&delete.table.name)),
            Some(Ast::Do(block)) => self.block(statement, block),
            Some(Ast::Insert(insert)) if insert.on_conflict.is_none() => {
                self.insert(statement, insert, reporter);
                self.inserts.push(insert);
            }
            _ => {}
        }
    }

    fn block(&mut self, statement: &Statement, block: &Do) {
        let routines = self.context.routines();
        let Some(routine) = routines.block(self.context.file, statement.range, block, self.path.clone()) else {
            return;
        };
        for sql in routine.steps().iter().flat_map(|step| &step.sql) {
            if let Ast::Insert(insert) = sql.ast {
                self.filled.push(insert.table.name.name.text.clone());
            }
        }
    }

    fn insert(&mut self, statement: &Statement, insert: &'a Insert, reporter: &mut Reporter<'_>) {
        let name = &insert.table.name.name.text;
        let Some(oid) = self.find(&insert.table.name) else { return };
        let table = self.context.before.relation(oid);
        let is_kept = self.context.after.get_relation(oid).is_some() && !self.emptied.contains(&oid);
        if !is_plain_table(table) || !is_kept || self.made.contains(&name) {
            return;
        }
        let is_copy = is_copy(insert, &|name| self.find(name), oid);
        // Those that are written out fail together when they are run again.
        let earlier = if is_copy { self.inserts.as_slice() } else { &[] };
        let inserted = Inserted { insert, table, is_fresh: &|_| false, earlier };
        let mut refusals = inserted.refusals(self.context.before);
        let range = insert.table.name.range();
        if is_copy {
            refusals.retain(|refusal| refusal.source == ValueSource::Given);
            // Rows that the migration itself has made are new, and so are the first rows of a table.
            let is_new = reads_any(insert, |name| self.made.contains(&name))
                || reads_any(insert, |name| self.filled.contains(name))
                || table.birth.is_of(self.context.deployment());
            if !refusals.is_empty() && !is_new {
                let finding = reporter.report(range, copy_message(&refusals)).relation(&RelationName::existing(table));
                let clause = do_nothing(table, &refusals, &|_| false);
                advise(finding, insert, statement.range.end, clause, &refusals).emit();
            }
        } else if refusals.iter().any(|refusal| numbers_by_hand(table, refusal)) {
            self.numbered.add(statement.range, range, RelationName::existing(table));
        } else if refusals.iter().any(|refusal| refusal.source == ValueSource::Constant) {
            self.constant.add(statement.range, range, RelationName::existing(table));
        }
        self.filled.push(name.clone());
    }
}

impl Problem {
    fn add(&mut self, statement: TextRange, range: TextRange, table: RelationName) {
        self.all.push(statement);
        if !self.tables.contains(&table.name) {
            self.tables.push(table.name.clone());
        }
        self.first.get_or_insert((range, table));
    }

    fn report_numbers(&self, reporter: &mut Reporter<'_>) {
        let Some((range, relation)) = &self.first else { return };
        let tables = enumerate(self.tables.iter().map(SmolStr::as_str));
        let message =
            format!("this gives a number that the sequence of {tables} has given to another row, or will give later");
        let help = "leave the column out, so that the sequence gives the number; or set the sequence behind it:\n    \
                    SELECT setval(pg_get_serial_sequence('...', '...'), (SELECT max(...) FROM ...));";
        reporter.report(*range, message).relation(relation).severity(Severity::Info).help(help).emit();
    }

    fn report_constants(&self, reporter: &mut Reporter<'_>) {
        let Some((range, relation)) = &self.first else { return };
        let which = match self.all.len() {
            1 => "this INSERT fails".to_owned(),
            2 => "this and one more INSERT fail".to_owned(),
            all => format!("this and {} more INSERTs fail", all - 1),
        };
        let message = format!("{which} when the migration is run again after a later statement failed");
        let help = "write ON CONFLICT DO NOTHING, or run the file in a transaction";
        reporter.report(*range, message).relation(relation).severity(Severity::Info).help(help).emit();
    }
}

/// The table that SELECT INTO makes.
fn made_by(query: &Query) -> Option<&SmolStr> {
    match &query.body {
        QueryBody::Select(select) => select.into.as_ref().map(|into| &into.name.name.text),
        _ => None,
    }
}

/// Does an INSERT read one of some tables?
fn reads_any(insert: &Insert, is_one: impl Fn(&SmolStr) -> bool) -> bool {
    let mut found = false;
    insert.visit(&mut |part| {
        if let Part::Read(read) = part {
            found |= is_one(&read.name.name.text);
        }
    });
    found
}

/// Is the key one column that has a sequence, and a number that is written out?
fn numbers_by_hand(table: &Relation, refusal: &Refusal<'_>) -> bool {
    let columns = refusal.index.columns();
    let has_sequence = |column: &Column| {
        column.identity.is_some() || column.default.as_deref().is_some_and(|default| calls(default, "nextval"))
    };
    refusal.source == ValueSource::Constant
        && matches!(columns.as_deref(), Some([only]) if table.column(only).is_some_and(has_sequence))
}

fn calls(expression: &Expr, name: &str) -> bool {
    let mut found = false;
    expression.walk(&mut |part| found |= matches!(&part.kind, ExprKind::Call(call) if call.name == name));
    found
}

/// Does the migration set a sequence to where it has to go on?
fn sets_sequence(context: &MigrationContext<'_>) -> bool {
    let sets = |ast: &Ast| {
        let mut found = matches!(ast, Ast::AlterSequence(_));
        ast.visit(&mut |part| {
            if let Part::Expr(expression) = part {
                found |= calls(expression, "setval");
            }
        });
        found
    };
    statements(context).any(sets)
}

fn has_begin(context: &MigrationContext<'_>) -> bool {
    statements(context).any(|ast| matches!(ast, Ast::Transaction(Transaction::Begin)))
}

fn statements<'a>(context: &MigrationContext<'a>) -> impl Iterator<Item = &'a Ast> + use<'a> {
    context.migration.statements().filter_map(Statement::ast)
}
