//! Declarations of reported migrations, judged when all migrations have run: a table without a primary key is fine
//! where a later migration adds one.

use pgvet_model::catalog::{Catalog, Oid, Relation, SearchPath};
use pgvet_model::effect::{Effects, Lock, LockCause};
use pgvet_model::execute::CodeText;
use pgvet_model::replay::StatementVisit;
use pgvet_model::session::Session;
use pgvet_syntax::ast::{
    AlterTable, AlterTableAction, Ast, ColumnDef, Constraint, CreateIndex, CreateTable, TableElement, TypeName,
};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::sync::Arc;

/// A part of a statement that declares something of a relation that is still there.
#[derive(Debug, Clone, Copy)]
pub enum Declared<'a> {
    /// CREATE TABLE.
    Table(&'a CreateTable),
    /// A column of CREATE TABLE or ADD COLUMN, which still has this name.
    Column(&'a ColumnDef),
    /// ALTER COLUMN ... TYPE: the column and its new type.
    Type { column: &'a str, type_name: &'a TypeName },
    /// A constraint, and the column to which it is attached.
    Constraint { constraint: &'a Constraint, column: Option<&'a str> },
    /// CREATE INDEX.
    Index(&'a CreateIndex),
    /// ALTER TABLE ... SET UNLOGGED.
    Unlogged(TextRange),
}

/// All that a rule may look at where something is declared.
#[derive(Debug)]
pub struct DeclarationContext<'a> {
    pub declared: Declared<'a>,
    /// The table, or the index, as the last migration leaves it.
    pub relation: &'a Relation,
    /// The catalog when all migrations of the database have run.
    pub catalog: &'a Catalog,
    /// The schemas in which the statement looked names up.
    pub search_path: &'a SearchPath,
}

/// The subject of a declaration.
#[derive(Debug)]
struct Subject {
    /// The statement: the others of its file are gone by then.
    ast: Arc<Ast>,
    /// The statement of the file.
    range: TextRange,
    /// The code that runs it, whose ranges the statement has.
    code: Option<Arc<CodeText>>,
    /// The table or index that it made or altered.
    oid: Oid,
    search_path: SearchPath,
    /// Columns that ADD COLUMN IF NOT EXISTS found: others have declared them.
    found: Vec<SmolStr>,
}

impl Subject {
    fn of(
        statement: &Statement,
        effects: &Effects,
        before: &Catalog,
        session: &Session,
        range: TextRange,
    ) -> Option<Self> {
        let ast = statement.parsed.as_ref().ok()?;
        let mut created = effects.creates.iter();
        let relation = match &**ast {
            // What IF NOT EXISTS finds was declared elsewhere.
            Ast::CreateTable(_) => created.find(|relation| relation.kind.is_table()),
            Ast::CreateIndex(_) => created.find(|relation| relation.kind.is_index()),
            Ast::AlterTable(alter) => {
                let named = |lock: &&Lock| lock.range == alter.name.range() && lock.cause == LockCause::Target;
                effects.locks.iter().find(named).map(|lock| &lock.relation)
            }
            _ => None,
        };
        let oid = relation?.oid;
        let search_path = session.settings.search_path();
        let found = before.get_relation(oid).map_or_else(Vec::new, |table| columns_found(ast, table));
        Some(Self { ast: Arc::clone(ast), range, code: None, oid, search_path, found })
    }
}

/// The relations that the statements of reported migrations created or altered.
#[derive(Debug, Default)]
pub(crate) struct Subjects {
    /// By file, in order.
    known: FxHashMap<u32, Vec<Subject>>,
}

impl Subjects {
    /// Notes the relations of a statement that declares something, and of those that its code runs. Of several visits for
    /// different versions the last one counts.
    pub(crate) fn note(&mut self, visit: &StatementVisit<'_>) {
        let subjects = self.known.entry(visit.file).or_default();
        let range = visit.statement.range;
        while subjects.last().is_some_and(|last| last.range == range) {
            subjects.pop();
        }
        let own = Subject::of(visit.statement, visit.effects, visit.before, visit.session, range);
        subjects.extend(own);
        for run in &visit.code.executed {
            let subject = Subject::of(&run.statement, &run.effects, &run.before, &run.session, range);
            subjects.extend(subject.map(|subject| Subject { code: Some(Arc::clone(&run.code)), ..subject }));
        }
    }

    /// Calls `visit` for everything that a migration declares and that is still there, with the range of its statement.
    pub(crate) fn visit(
        &self,
        file: u32,
        catalog: &Catalog,
        visit: &mut dyn FnMut(&DeclarationContext<'_>, TextRange, Option<&CodeText>),
    ) {
        for subject in self.known.get(&file).into_iter().flatten() {
            let Some(relation) = catalog.get_relation(subject.oid) else { continue };
            for declared in declarations(&subject.ast) {
                if is_there(declared, relation) && !subject.found.iter().any(|found| is_about(declared, found)) {
                    let search_path = &subject.search_path;
                    let context = DeclarationContext { declared, relation, catalog, search_path };
                    visit(&context, subject.range, subject.code.as_deref());
                }
            }
        }
    }
}

/// The columns that ADD COLUMN IF NOT EXISTS does not add.
fn columns_found(ast: &Ast, table: &Relation) -> Vec<SmolStr> {
    let Ast::AlterTable(alter) = ast else { return Vec::new() };
    let added = alter.commands.iter().filter_map(|command| match &command.action {
        AlterTableAction::AddColumn { column, if_not_exists: true } => Some(&column.name.text),
        _ => None,
    });
    added.filter(|column| table.column(column).is_some()).cloned().collect()
}

/// Whether it declares the column, or a constraint at it.
fn is_about(declared: Declared<'_>, column: &str) -> bool {
    match declared {
        Declared::Column(declared) => declared.name.text == column,
        Declared::Constraint { column: Some(at), .. } => at == column,
        _ => false,
    }
}

fn is_there(declared: Declared<'_>, relation: &Relation) -> bool {
    match declared {
        Declared::Column(column) => relation.column(&column.name.text).is_some(),
        Declared::Type { column, .. } | Declared::Constraint { column: Some(column), .. } => {
            relation.column(column).is_some()
        }
        _ => true,
    }
}

fn declarations(ast: &Ast) -> Vec<Declared<'_>> {
    match ast {
        Ast::CreateTable(create) => {
            let mut found = vec![Declared::Table(create)];
            for element in &create.elements {
                match element {
                    TableElement::Column(column) => of_column(column, &mut found),
                    TableElement::Constraint(constraint) => {
                        found.push(Declared::Constraint { constraint, column: None });
                    }
                    TableElement::Like { .. } => {}
                }
            }
            found
        }
        Ast::AlterTable(alter) => of_alter_table(alter),
        Ast::CreateIndex(create) => vec![Declared::Index(create)],
        _ => Vec::new(),
    }
}

fn of_column<'a>(column: &'a ColumnDef, found: &mut Vec<Declared<'a>>) {
    found.push(Declared::Column(column));
    let name = Some(column.name.as_str());
    found.extend(column.constraints.iter().map(|constraint| Declared::Constraint { constraint, column: name }));
}

fn of_alter_table(alter: &AlterTable) -> Vec<Declared<'_>> {
    let mut found = Vec::new();
    for command in &alter.commands {
        match &command.action {
            AlterTableAction::AddColumn { column, .. } => of_column(column, &mut found),
            AlterTableAction::AlterColumnType { column, type_name, .. } => {
                found.push(Declared::Type { column: column.as_str(), type_name });
            }
            AlterTableAction::AddConstraint(constraint) => {
                found.push(Declared::Constraint { constraint, column: None });
            }
            AlterTableAction::SetUnlogged => found.push(Declared::Unlogged(command.keyword)),
            _ => {}
        }
    }
    found
}
