//! Statistics, extensions and schemas.

use super::{Executor, Run, fail};
use crate::builtin;
use crate::catalog::{Column, RelationKind, search_path_value};
use crate::effect::{ChangeAction, ChangedObject, UnknownReason};
use crate::execute::column_rules::MAX_STATISTICS_COLUMNS;
use crate::session::SettingValue;
use pgvet_syntax::ast::{
    Ast, CreateExtension, CreateOther, CreateSchema, CreateStatistics, Expr, ExprKind, LockMode, ObjectName,
};
use smol_str::SmolStr;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/statscmds.c`, `CreateStatistics`.
    pub(super) fn create_statistics(&mut self, create: &CreateStatistics) -> Run {
        if create.name.is_none() && !self.target.at_least(16) {
            return fail("42601", "statistics need a name before PostgreSQL 16", self.place.range);
        }
        let named = create.name.as_ref().map(|name| (self.schema_for(name, false), name));
        let Some(table) = &create.table else { return Ok(()) };
        let oid = self.open(table, RelationKind::Table, LockMode::ShareUpdateExclusive)?;
        if let Some((schema, name)) = &named
            && self.catalog.statistics_named(schema, &name.name.text).is_some()
        {
            if create.if_not_exists {
                return Ok(());
            }
            return fail("42710", format!("statistics object \"{name}\" already exists"), name.range());
        }
        let relation = self.catalog.relation(oid);
        if !relation.kind.is_table() && relation.kind != RelationKind::MaterializedView && relation.known {
            return fail(
                "42809",
                format!("cannot define statistics for relation \"{}\"", relation.name),
                table.range(),
            );
        }
        for (at, element) in create.elements.iter().enumerate() {
            if at == MAX_STATISTICS_COLUMNS {
                let reason = format!("cannot have more than {MAX_STATISTICS_COLUMNS} columns in statistics");
                return fail("54011", reason, element.range);
            }
            if let ExprKind::Column(path) = &element.kind
                && let Some(column) = path.last().filter(|column| relation.known && relation.column(column).is_none())
            {
                return fail("42703", format!("column \"{column}\" does not exist"), element.range);
            }
            if element.as_column().is_none() {
                self.check_names(oid, element)?;
            }
            let is_virtual = |name: &SmolStr| relation.column(name).is_some_and(Column::is_virtual);
            if self.columns_of(oid, element).iter().any(is_virtual) {
                let reason = "statistics creation on virtual generated columns is not supported";
                return fail("0A000", reason, element.range);
            }
            self.check_can_be_sorted(oid, element)?;
        }
        if let [element] = &create.elements[..]
            && matches!(element.kind, ExprKind::Column(_))
        {
            return fail("42P17", "extended statistics require at least 2 columns", element.range);
        }
        let (schema, name) = match named {
            Some((schema, name)) => (schema, name.name.text.clone()),
            None => self.statistics_name(oid, create),
        };
        // In the order of the table.
        let mut columns: Vec<SmolStr> = relation.columns.iter().map(|column| column.name.clone()).collect();
        let used: Vec<SmolStr> = create.elements.iter().flat_map(|element| self.columns_of(oid, element)).collect();
        columns.retain(|column| used.contains(column));
        self.catalog.add_statistics((schema, name), oid, columns);
        Ok(())
    }

    /// Statistics need an order. Types that are not PostgreSQL's own are assumed to have one.
    fn check_can_be_sorted(&self, table: crate::catalog::Oid, element: &Expr) -> Run {
        let sql_type = self.analyze(element, Some(table)).sql_type;
        let base = self.with_analyzer(|analyzer| analyzer.base_type(sql_type));
        let ordered = self.with_analyzer(|analyzer| analyzer.default_operator_class("btree", base).is_some());
        if base.oid.is_builtin() && !ordered {
            return fail("0A000", "its type has no default btree operator class", element.range);
        }
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/statscmds.c`, `ChooseExtendedStatisticName`.
    fn statistics_name(&self, table: crate::catalog::Oid, create: &CreateStatistics) -> (SmolStr, SmolStr) {
        let relation = self.catalog.relation(table);
        let part = |kind: &ExprKind| match kind {
            ExprKind::Column(path) => path.last().cloned().unwrap_or_default(),
            _ => SmolStr::new_static("expr"),
        };
        let parts: Vec<SmolStr> = create.elements.iter().map(|element| part(&element.kind)).collect();
        let name = self.catalog.choose_statistics_name(&relation.name, &parts, &relation.schema);
        (relation.schema.clone(), name)
    }

    /// Source: PostgreSQL 18, `src/backend/commands/extension.c`, `CreateExtension`.
    pub(super) fn create_extension(&mut self, create: &CreateExtension) -> Run {
        if self.catalog.extension(&create.name.text).is_some() {
            if create.if_not_exists {
                return Ok(());
            }
            let reason = format!("extension \"{}\" already exists", create.name.text);
            return fail("42710", reason, create.name.range);
        }
        let schema = create.schema.clone().unwrap_or_else(|| self.creation_schema());
        self.catalog.add_extension(create.name.text.clone(), schema, create.schema.is_some());
        let object = ChangedObject::Extension { name: create.name.text.clone() };
        self.change_object(object, ChangeAction::Create, create.name.range);
        if !builtin::is_of_postgresql(&create.name.text) {
            let reason = UnknownReason::ExtensionScript { extension: create.name.text.clone() };
            self.skip_code(reason, create.name.range, true);
        }
        Ok(())
    }

    /// Commands that the model knows by tag: it knows which of them refuse a transaction block.
    ///
    /// Source: PostgreSQL 18, `src/backend/tcop/utility.c`, calls of `PreventInTransactionBlock`.
    pub(super) fn create_other(&mut self, create: &CreateOther) -> Run {
        let refuses = matches!(
            create.tag,
            "CREATE DATABASE" | "DROP DATABASE" | "CREATE TABLESPACE" | "DROP TABLESPACE" | "ALTER SYSTEM"
        );
        let off =
            |name: &str| create.options.iter().any(|option| option.name == name && option.as_bool() == Some(false));
        let makes_slot = create.tag == "CREATE SUBSCRIPTION" && !off("create_slot") && !off("connect");
        if matches!(create.tag, "CREATE AGGREGATE" | "CREATE OPERATOR" | "CREATE CAST" | "CREATE LANGUAGE") {
            self.catalog.note_more_code();
        }
        if let ("CREATE EVENT TRIGGER", Some(name)) = (create.tag, &create.name) {
            let reason = UnknownReason::EventTrigger { trigger: name.name.text.clone() };
            self.skip_code(reason, name.range(), true);
        }
        if refuses || makes_slot {
            let range = create.name.as_ref().map_or(self.place.range, ObjectName::range);
            self.prevent_in_block(create.tag, range)?;
        }
        Ok(())
    }

    /// Creates the schema and then its elements, with the schema first in the search path.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/schemacmds.c`, `CreateSchemaCommand`;
    /// `src/backend/parser/parse_utilcmd.c`, `transformCreateSchemaStmtElements`.
    pub(super) fn create_schema(&mut self, create: &CreateSchema) -> Run {
        let name = match (&create.name, &create.authorization) {
            (Some(name), _) => name.text.clone(),
            (None, Some(role)) => role.clone(),
            (None, None) => return Ok(()),
        };
        let range = create.name.as_ref().map_or(self.place.range, |name| name.range);
        if self.catalog.has_schema(&name) {
            // A baseline may create `public`, which every database has.
            if create.if_not_exists || name == "public" {
                return Ok(());
            }
            return fail("42P06", format!("schema \"{name}\" already exists"), range);
        }
        self.catalog.add_schema(name.clone());
        if create.elements.is_empty() {
            return Ok(());
        }
        let settings = self.session.settings.clone();
        let path: Vec<SmolStr> = std::iter::once(&name).chain(settings.search_path().iter()).cloned().collect();
        let value = SettingValue { value: search_path_value(&path), place: self.place };
        self.session.settings.set(SmolStr::new_static("search_path"), value);
        let mut elements: Vec<&Ast> = create.elements.iter().collect();
        elements.sort_by_key(|element| element_order(element));
        let outcome = elements.into_iter().try_for_each(|element| self.statement(element));
        self.session.settings = settings;
        outcome
    }
}

/// PostgreSQL makes the elements of CREATE SCHEMA kind by kind.
fn element_order(element: &Ast) -> u8 {
    match element {
        Ast::CreateSequence(_) => 0,
        Ast::CreateTable(_) => 1,
        Ast::CreateView(_) => 2,
        Ast::CreateIndex(_) => 3,
        Ast::CreateTrigger(_) => 4,
        _ => 5,
    }
}
