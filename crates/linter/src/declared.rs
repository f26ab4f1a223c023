//! What reported migrations declare, judged when all migrations have run: a table without a primary key is fine where a
//! later migration adds one.

use crate::ast::{
    AlterTable, AlterTableAction, Ast, ColumnDef, Constraint, CreateIndex, CreateTable, ObjectName, TableElement,
    TypeName,
};
use crate::catalog::{Catalog, Oid, Relation};
use crate::check::Migration;
use crate::effect::{RelationName, Visibility};
use crate::session::Session;
use crate::settings::Settings;
use crate::source::TextRange;
use rustc_hash::FxHashMap;

/// A part of a statement that declares something of a relation that is still there.
#[derive(Debug, Clone, Copy)]
pub enum Declared<'a> {
    /// CREATE TABLE.
    Table(&'a CreateTable),
    /// A column of CREATE TABLE or ADD COLUMN, which still has this name.
    Column(&'a ColumnDef),
    /// ALTER COLUMN ... TYPE: the column and its new type.
    Type { column: &'a str, type_name: &'a TypeName },
    /// A constraint, and the column that it stands at.
    Constraint { constraint: &'a Constraint, column: Option<&'a str> },
    /// CREATE INDEX.
    Index(&'a CreateIndex),
    /// ALTER TABLE ... SET UNLOGGED.
    Unlogged(TextRange),
}

/// All that a rule may look at where something is declared.
#[derive(Debug)]
pub struct DeclarationContext<'a> {
    /// Index of the migration in the run.
    pub file: u32,
    pub migration: &'a Migration<'a>,
    pub declared: Declared<'a>,
    /// The table, or the index, as the last migration leaves it.
    pub relation: &'a Relation,
    /// The catalog when all migrations of the database have run.
    pub catalog: &'a Catalog,
    pub settings: &'a Settings,
}

impl DeclarationContext<'_> {
    /// The text of a range of the file.
    pub fn text(&self, range: TextRange) -> &str {
        self.migration.file.source.text.get(range.as_usize()).unwrap_or_default()
    }

    /// The relation for [`crate::report::Finding::relation`].
    pub fn relation_name(&self, relation: &Relation) -> RelationName {
        RelationName {
            oid: relation.oid,
            schema: relation.schema.clone(),
            name: relation.name.clone(),
            kind: relation.kind,
            visibility: Visibility::Existing,
        }
    }
}

/// Which relation the statements of reported migrations made or altered.
#[derive(Debug, Default)]
pub(crate) struct Subjects {
    /// By file and start of the statement.
    found: FxHashMap<(u32, u32), Oid>,
}

impl Subjects {
    /// Notes the relation of a statement that declares something.
    pub(crate) fn note(&mut self, file: u32, statement: TextRange, ast: &Ast, after: &Catalog, session: &Session) {
        let name = match ast {
            Ast::CreateTable(create) => &create.name,
            Ast::AlterTable(alter) => &alter.name,
            Ast::CreateIndex(create) => match create.name.clone() {
                Some(name) => {
                    let schema = schema_of(&create.table, after, session);
                    return self.insert(
                        file,
                        statement,
                        schema.and_then(|schema| after.relation_named(&schema, &name.text)),
                    );
                }
                None => return,
            },
            _ => return,
        };
        self.insert(file, statement, after.find_relation(name, &session.settings.search_path()));
    }

    fn insert(&mut self, file: u32, statement: TextRange, oid: Option<Oid>) {
        if let Some(oid) = oid {
            self.found.insert((file, statement.start), oid);
        }
    }

    /// The relation of a statement, if it is still there.
    fn relation<'c>(&self, file: u32, statement: TextRange, catalog: &'c Catalog) -> Option<&'c Relation> {
        let oid = self.found.get(&(file, statement.start))?;
        catalog.get_relation(*oid).map(|relation| &**relation)
    }

    /// Calls `visit` for everything that a migration declares and that is still there, with the range of its statement.
    pub(crate) fn visit<'a>(
        &self,
        file: u32,
        migration: &'a Migration<'a>,
        catalog: &'a Catalog,
        settings: &'a Settings,
        visit: &mut dyn FnMut(&DeclarationContext<'a>, TextRange),
    ) {
        for statement in migration.statements() {
            let Ok(ast) = &statement.parsed else { continue };
            let Some(relation) = self.relation(file, statement.range, catalog) else { continue };
            for declared in declarations(ast) {
                if is_there(declared, relation) {
                    let context = DeclarationContext { file, migration, declared, relation, catalog, settings };
                    visit(&context, statement.range);
                }
            }
        }
    }
}

/// An index is in the schema of its table.
fn schema_of(table: &ObjectName, catalog: &Catalog, session: &Session) -> Option<smol_str::SmolStr> {
    let table = catalog.find_relation(table, &session.settings.search_path())?;
    Some(catalog.relation(table).schema.clone())
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
