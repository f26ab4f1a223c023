//! The statements of a migration around one of them, and what those that follow make of its change.

use crate::rule::RuleContext;
use crate::rules::deployment::names::{Names, may_name};
use crate::rules::text::enumerate;
use pgvet_model::catalog::{Catalog, Oid, PrivilegeKind, Relation, RelationKind, TEMPORARY_SCHEMA};
use pgvet_model::effect::{RelationName, RemovedObject, RenamedObject};
use pgvet_model::routine::{Ending, Outline, Trial, may_make};
use pgvet_syntax::ast::{
    AlterTable, AlterTableAction, Ast, ColumnDef, Drop, Expr, ExprKind, Grant, ObjectKind, ObjectName, Part,
    TableElement,
};
use pgvet_syntax::statement::Statement;
use smol_str::SmolStr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// How far to look ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Nobody sees what the transaction does before.
    Commit,
    EndOfMigration,
}

/// What the migration has run before this statement, in the file and in code.
pub(crate) fn earlier<'a>(context: &RuleContext<'a>) -> impl Iterator<Item = &'a Ast> + use<'a> {
    let start = context.outer().start;
    let before = context.earlier.iter().take_while(move |run| run.outer < start).map(|run| &*run.ast);
    let same_code = context.code.map_or(&[][..], |code| code.earlier);
    before.chain(same_code.iter().filter_map(|run| run.statement.ast()))
}

/// Those of them that give something another name or schema.
fn earlier_moves<'a>(context: &RuleContext<'a>) -> impl Iterator<Item = &'a Ast> + use<'a> {
    let start = context.outer().start;
    let all = context.earlier;
    let before = context.earlier_moves.iter().map(move |at| &all[*at]);
    let before = before.take_while(move |run| run.outer < start).map(|run| &*run.ast);
    let same_code = context.code.map_or(&[][..], |code| code.earlier);
    before.chain(same_code.iter().filter_map(|run| run.statement.ast()))
}

/// The later statements of the file, up to the end of the transaction or all of them.
struct Later<'a> {
    /// Those of the file.
    all: &'a [Statement],
    range: Range<usize>,
    outline: Rc<Outline>,
}

impl<'a> Later<'a> {
    fn of(context: &RuleContext<'a>, until: Until) -> Self {
        let all = context.migration.own_statements();
        let outline = context.endings.outline(context.file, context.migration);
        let start = context.outer().start;
        let from = all.partition_point(|statement| statement.range.start <= start);
        let range = match until {
            Until::EndOfMigration => from..all.len(),
            Until::Commit if !context.in_block() => from..from,
            Until::Commit => outline.to_commit(from, all.len()),
        };
        Self { all, range, outline }
    }

    fn statements(&self) -> &'a [Statement] {
        &self.all[self.range.clone()]
    }

    fn runs_code(&self) -> bool {
        self.outline.runs_code(&self.range)
    }

    /// Those that can give a name to something.
    fn makers(&self) -> impl Iterator<Item = &'a Statement> {
        self.outline.makers(&self.range).iter().map(|at| &self.all[*at])
    }

    fn drops(&self) -> impl Iterator<Item = &'a Statement> {
        self.outline.drops(&self.range).iter().map(|at| &self.all[*at])
    }
}

/// What the migration will run after this statement, in the file and in code.
pub(crate) fn rest(context: &RuleContext<'_>) -> Vec<Arc<Ast>> {
    rest_until(context, Until::EndOfMigration)
}

/// The same, up to the end of the transaction or all of it.
pub(crate) fn rest_until(context: &RuleContext<'_>, until: Until) -> Vec<Arc<Ast>> {
    let same_code = context.code.map_or(&[][..], |code| code.later);
    let mut rest: Vec<Arc<Ast>> = same_code.iter().filter_map(|run| run.statement.parsed.clone().ok()).collect();
    let start = context.outer().start;
    let later = Later::of(context, until);
    if let (Some(last), true) = (later.statements().last(), later.runs_code()) {
        let all = context.endings.later(context.file, start, || run_later(context));
        let is_wanted = |at: u32| start < at && at <= last.range.start;
        rest.extend(all.iter().filter(|(at, _)| is_wanted(*at)).map(|(_, ast)| Arc::clone(ast)));
    } else {
        rest.extend(later.statements().iter().filter_map(|statement| statement.parsed.clone().ok()));
    }
    rest
}

/// Whether the migration will run a statement after this one, in the file or in code, that passes a test. Begins with
/// the last of them: what undoes or completes many statements often comes at the end.
pub(crate) fn any_later(context: &RuleContext<'_>, test: impl Fn(&Ast) -> bool) -> bool {
    let same_code = context.code.map_or(&[][..], |code| code.later);
    if same_code.iter().any(|run| run.statement.ast().is_some_and(&test)) {
        return true;
    }
    let start = context.outer().start;
    let later = Later::of(context, Until::EndOfMigration);
    if !later.runs_code() {
        return later.statements().iter().rev().any(|statement| statement.ast().is_some_and(&test));
    }
    let all = context.endings.later(context.file, start, || run_later(context));
    all[all.partition_point(|(at, _)| *at <= start)..].iter().rev().any(|(_, ast)| test(ast))
}

/// Whether a statement that the migration will run after this one, in the file or in code, drops something of the sort.
pub(crate) fn drops_later(context: &RuleContext<'_>, is_meant: impl Fn(&Drop) -> bool) -> bool {
    let drops = |ast: &Ast| matches!(ast, Ast::Drop(drop) if is_meant(drop));
    let mut same_code = context.code.map_or(&[][..], |code| code.later).iter();
    if same_code.any(|run| run.statement.ast().is_some_and(drops)) {
        return true;
    }
    let later = Later::of(context, Until::EndOfMigration);
    if !later.runs_code() {
        return later.drops().any(|statement| statement.ast().is_some_and(drops));
    }
    let start = context.outer().start;
    let all = context.endings.later_drops(context.file, start, || run_later(context));
    all[all.partition_point(|(at, _)| *at <= start)..].iter().any(|(_, ast)| drops(ast))
}

/// Later statements and those that their code runs, with the beginning of the statement of the file.
fn run_later(context: &RuleContext<'_>) -> Vec<(u32, Arc<Ast>)> {
    let version = context.settings.versions.to;
    let mut trial = Trial::new(context.end(), &context.session.settings.search_path(), version);
    let mut found = Vec::new();
    for statement in context.later() {
        let Ok(ast) = &statement.parsed else { continue };
        let start = statement.range.start;
        found.extend(trial.run_code(ast).into_iter().map(|inner| (start, inner)));
        found.push((start, Arc::clone(ast)));
    }
    found
}

/// The catalog when the transaction, or the migration, has ended, where a later statement speaks of `name`; else it is as it
/// is.
pub(crate) fn ahead(context: &RuleContext<'_>, name: &str, until: Until) -> Catalog {
    run_ahead(context, until, |text| may_name(text, name))
}

/// The same for many names at once.
pub(crate) fn ahead_of(context: &RuleContext<'_>, names: &Names<'_>, until: Until) -> Catalog {
    run_ahead(context, until, |text| names.any_in(text))
}

/// [`ahead`] where it only matters whether something has the name then: nothing is run where nothing can get it.
pub(crate) fn ahead_of_maker(context: &RuleContext<'_>, name: &str, until: Until) -> Catalog {
    let makes = |statement: &Statement| {
        statement.ast().is_some_and(|ast| may_give(ast, name, in_file(context, statement)) || calls_code(context, ast))
    };
    let runs_on = context.code.is_some_and(|code| !code.later.is_empty());
    if runs_on || Later::of(context, until).makers().any(makes) {
        ahead(context, name, until)
    } else {
        context.after.clone()
    }
}

/// Whether the statement can give the name to a relation or a column. `text` is its text.
fn may_give(ast: &Ast, name: &str, text: &str) -> bool {
    match ast {
        Ast::AlterTable(alter) => adds(alter, name),
        Ast::CreateTable(create) => {
            let names = |element: &TableElement| match element {
                TableElement::Column(column) => column.name.text == name,
                TableElement::Like { .. } => may_name(text, name),
                TableElement::Constraint(_) => false,
            };
            let inherits = !create.inherits.is_empty() || create.partition_of.is_some() || create.of_type.is_some();
            create.name.name.text == name || create.elements.iter().any(names) || (inherits && may_name(text, name))
        }
        Ast::Rename(rename) => rename.new_name.text == name,
        Ast::SetSchema(moved) => moved.object.name.text == name,
        _ => may_make(ast) && may_name(text, name),
    }
}

fn run_ahead(context: &RuleContext<'_>, until: Until, speaks: impl Fn(&str) -> bool) -> Catalog {
    let later = Later::of(context, until);
    let statements = later.statements();
    let may_matter = |statement: &Statement| {
        speaks(in_file(context, statement)) || statement.ast().is_some_and(|ast| calls_code(context, ast))
    };
    let spoken = statements.iter().any(may_matter);
    let Some(last) = statements.last().filter(|_| spoken) else {
        return context.end().clone();
    };
    let version = context.settings.versions.to;
    let ending = Ending { file: context.file, last: last.range.start, version };
    context.endings.get(ending, || {
        let mut trial = Trial::new(context.end(), &context.session.settings.search_path(), version);
        for ast in statements.iter().filter_map(|statement| statement.ast()) {
            trial.run(ast);
        }
        trial.catalog().clone()
    })
}

/// The catalog when the migration has ended, for what is in it already: nothing is run where what follows only adds.
pub(crate) fn ahead_of_removal(context: &RuleContext<'_>, name: &str) -> Catalog {
    let later = Later::of(context, Until::EndOfMigration);
    if context.code.is_none() && later.outline.only_adds(&later.range) {
        return context.end().clone();
    }
    ahead(context, name, Until::EndOfMigration)
}

/// The texts of the later statements of the migration.
pub(crate) fn later_texts<'a>(context: &RuleContext<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let context = *context;
    context.later().map(move |statement| in_file(&context, statement))
}

/// Whether the statement calls a function of the project, whose code is elsewhere.
fn calls_code(context: &RuleContext<'_>, ast: &Ast) -> bool {
    let path = context.session.settings.search_path();
    let mut found = matches!(ast, Ast::Call(_));
    if matches!(ast, Ast::Select(_)) {
        ast.visit(&mut |part| {
            if let Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part {
                found = found || !context.end().functions_called(call, &path).is_empty();
            }
        });
    }
    found
}

fn in_file<'a>(context: &RuleContext<'a>, statement: &Statement) -> &'a str {
    context.migration.file.text.get(statement.range.as_usize()).unwrap_or_default()
}

/// Whether GRANT or REVOKE is about the table, or all tables of its schema.
pub(crate) fn is_about(context: &RuleContext<'_>, grant: &Grant, table: &RelationName) -> bool {
    if PrivilegeKind::of(grant.kind) != Some(PrivilegeKind::Table) {
        return false;
    }
    if grant.all_in_schema {
        return grant.objects.iter().any(|schema| schema.name.text == table.schema);
    }
    grant.objects.iter().any(|name| means(context, name, table))
}

/// Whether a name in another statement of the migration means this relation, under its name here.
pub(crate) fn means(context: &RuleContext<'_>, name: &ObjectName, relation: &RelationName) -> bool {
    is_named(context, name, &relation.schema, &relation.name)
}

/// The same for a schema and a name.
pub(crate) fn is_named(context: &RuleContext<'_>, written: &ObjectName, schema: &str, name: &str) -> bool {
    if written.name.text != name {
        return false;
    }
    if let Some(written) = &written.schema {
        return written.text == schema;
    }
    let path = context.session.settings.search_path();
    match context.before.find_relation(written, &path) {
        Some(found) if context.before.relation_named(schema, name).is_some() => {
            context.before.relation(found).schema == schema
        }
        _ => schema == TEMPORARY_SCHEMA || path.iter().any(|known| known == schema),
    }
}

/// Whether ALTER TABLE adds a column of this name.
pub(crate) fn adds(alter: &AlterTable, column: &str) -> bool {
    added(alter, column).is_some()
}

/// The column of this name that ALTER TABLE adds.
pub(crate) fn added<'a>(alter: &'a AlterTable, column: &str) -> Option<&'a ColumnDef> {
    alter.commands.iter().find_map(|command| match &command.action {
        AlterTableAction::AddColumn { column: added, .. } if added.name.text == column => Some(added),
        _ => None,
    })
}

/// Whether an earlier statement of the migration makes the column, or gives it this name.
pub(crate) fn is_column_made_here(context: &RuleContext<'_>, table: &RelationName, column: &str) -> bool {
    earlier(context).any(|ast| match ast {
        Ast::AlterTable(alter) => adds(alter, column) && means(context, &alter.name, table),
        Ast::Rename(rename) if rename.kind == ObjectKind::Column => {
            rename.new_name.text == column && means(context, &rename.object, table)
        }
        _ => false,
    })
}

/// Whether an earlier statement of the migration gives a relation this name.
pub(crate) fn is_relation_named_here(context: &RuleContext<'_>, relation: &RelationName) -> bool {
    use ObjectKind::{ForeignTable, MaterializedView, Table, View};
    let is_relation = |kind| matches!(kind, Table | View | MaterializedView | ForeignTable);
    earlier_moves(context).any(|ast| match ast {
        Ast::Rename(rename) if rename.sub_name.is_none() && is_relation(rename.kind) => {
            let named = ObjectName { schema: rename.object.schema.clone(), name: rename.new_name.clone() };
            means(context, &named, relation)
        }
        Ast::SetSchema(moved) => {
            let named = ObjectName { schema: Some(moved.new_schema.clone()), name: moved.object.name.clone() };
            is_relation(moved.kind) && means(context, &named, relation)
        }
        _ => false,
    })
}

/// Whether an earlier statement of the migration takes the name away from another column of the table.
pub(crate) fn is_column_name_freed(context: &RuleContext<'_>, table: &RelationName, column: &str) -> bool {
    let drops = |alter: &AlterTable| {
        alter.commands.iter().any(|command| {
            matches!(&command.action, AlterTableAction::DropColumn { column: dropped, .. } if dropped.text == column)
        })
    };
    earlier(context).any(|ast| match ast {
        Ast::AlterTable(alter) => drops(alter) && means(context, &alter.name, table),
        Ast::Rename(rename) if rename.kind == ObjectKind::Column => {
            rename.sub_name.as_ref().is_some_and(|old| old.text == column) && means(context, &rename.object, table)
        }
        _ => false,
    })
}

/// Whether an earlier statement of the migration takes the name away from another relation.
pub(crate) fn is_relation_name_freed(context: &RuleContext<'_>, schema: &str, name: &str) -> bool {
    // Code of a DO block does all of it in one statement.
    let was_there = |gone: &RelationName| gone.schema == schema && gone.name == name;
    let effects = context.effects;
    let dropped = effects
        .removals
        .iter()
        .any(|removal| matches!(&removal.object, RemovedObject::Relation(gone) if was_there(gone)));
    let renamed = effects.renames.iter().any(|renaming| {
        let RenamedObject::Relation { before, schema: to, name: new } = &renaming.object else { return false };
        was_there(before) && !(to == schema && new == name)
    });
    let written = |written: &ObjectName| is_named(context, written, schema, name);
    dropped
        || renamed
        || earlier(context).any(|ast| match ast {
            Ast::Drop(drop) => drop.objects.iter().any(|object| object.on.is_none() && written(&object.name)),
            Ast::Rename(rename) => rename.sub_name.is_none() && written(&rename.object),
            Ast::SetSchema(moved) => written(&moved.object),
            _ => false,
        })
}

/// What has the name of a relation that is gone.
#[derive(Debug)]
pub(crate) enum Successor {
    Nothing,
    /// All of its columns are there.
    Compatible(Oid),
    /// It lacks these columns.
    Lacks {
        new: Oid,
        columns: Vec<SmolStr>,
    },
}

/// `` has no column `note`, which deployed code may use ``.
pub(crate) fn lacking(columns: &[SmolStr]) -> String {
    let lacks = if columns.len() == 1 { "has no column" } else { "lacks the columns" };
    format!("{lacks} {}, which deployed code may use", enumerate(columns.iter().map(SmolStr::as_str)))
}

/// What `catalog` has under the old name of a relation.
pub(crate) fn successor(catalog: &Catalog, old: &Relation, name: &RelationName) -> Successor {
    let Some(oid) = catalog.relation_named(&name.schema, &name.name) else { return Successor::Nothing };
    let new = catalog.relation(oid);
    if !new.known || !old.known {
        return Successor::Compatible(oid);
    }
    let missing = old.columns.iter().map(|column| &column.name).filter(|name| new.column(name).is_none());
    let columns: Vec<SmolStr> = missing.cloned().collect();
    if columns.is_empty() { Successor::Compatible(oid) } else { Successor::Lacks { new: oid, columns } }
}

/// Whether a table of this deployment holds no rows: no statement has put any into it or its partitions.
pub(crate) fn is_new_and_empty(context: &RuleContext<'_>, catalog: &Catalog, oid: Oid) -> bool {
    let mut tables = vec![oid];
    while let Some(table) = tables.pop() {
        let relation = catalog.relation(table);
        // What only the look ahead has made is newer than the statement.
        let known = context.before.get_relation(table);
        let is_new = known.is_none_or(|known| known.birth.is_of(context.deployment()));
        if !is_new || relation.birth.filled || !relation.known || !relation.kind.is_table() {
            return false;
        }
        if relation.kind == RelationKind::ForeignTable {
            return false;
        }
        tables.extend(&relation.children);
    }
    true
}
