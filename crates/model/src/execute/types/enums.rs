//! ALTER TYPE ... ADD VALUE | RENAME VALUE, and the use of labels that are too new.

use crate::catalog::{Column, EnumLabel, Mention, Oid, SqlType, TypeKind};
use crate::effect::{ChangeAction, ChangedObject};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{AlterEnum, Assignment, Expr, ExprKind, Insert, Literal, Query, QueryBody, TypeName};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/catalog/pg_enum.c`, `AddEnumLabel` and `RenameEnumLabel`.
    pub(crate) fn alter_enum(&mut self, alter: &AlterEnum) -> Run {
        let range = alter.name.range();
        let (transaction, in_block) = (self.transaction, self.in_block);
        let before_12 = alter.renamed.is_none() && !self.target.at_least(12);
        let found = self.named_type(&alter.name);
        let created_here = found
            .and_then(|oid| self.catalog.get_type(oid))
            .is_some_and(|definition| definition.transaction == transaction);
        // PostgreSQL 17 sees that a type of the same transaction is not in use yet. 12 to 16 do not (`pg_enum.c`,
        // `EnumTypeUncommitted`); 11 runs ADD VALUE in a transaction only for such a type.
        let not_in_use = created_here && (before_12 || self.target.at_least(17));
        if before_12 && in_block && !created_here {
            return fail(
                "25001",
                "before PostgreSQL 12, ALTER TYPE ... ADD VALUE cannot run inside a transaction block",
                range,
            );
        }
        if found.is_none() {
            self.missing_type(&alter.name)?;
        }
        let action = if alter.renamed.is_some() { ChangeAction::Alter } else { ChangeAction::Create };
        let Some(definition) = found.and_then(|oid| self.catalog.type_mut(oid)) else {
            self.change_label(alter, found, action);
            return Ok(());
        };
        let name = definition.name.clone();
        let TypeKind::Enum { labels } = &mut definition.kind else {
            if matches!(definition.kind, TypeKind::Assumed) {
                self.change_label(alter, found, action);
                return Ok(());
            }
            return fail("42809", format!("\"{name}\" is not an enum"), range);
        };
        if let Some(old) = &alter.renamed {
            if !labels.contains(old) {
                return fail("22023", format!("\"{old}\" is not an existing enum label"), range);
            }
            if labels.contains(&alter.value) {
                return fail("42710", format!("enum label \"{}\" already exists", alter.value), range);
            }
            labels.rename(old, alter.value.clone());
            if let Some(oid) = found {
                self.rename_label_in_defaults(oid, old, &alter.value);
            }
            self.change_label(alter, found, action);
            return Ok(());
        }
        if labels.contains(&alter.value) {
            if alter.if_not_exists {
                return Ok(());
            }
            return fail("42710", format!("enum label \"{}\" already exists", alter.value), range);
        }
        let added_in = (in_block && !not_in_use).then_some(transaction);
        let label = EnumLabel { label: alter.value.clone(), added_in };
        match &alter.neighbour {
            None => labels.push(label),
            Some((neighbour, _)) if !labels.contains(neighbour) => {
                return fail("22023", format!("\"{neighbour}\" is not an existing enum label"), range);
            }
            Some((neighbour, after)) => labels.insert_beside(neighbour, *after, label),
        }
        self.change_label(alter, found, action);
        Ok(())
    }

    /// A default keeps the label, whatever it is called.
    fn rename_label_in_defaults(&mut self, of_type: Oid, old: &SmolStr, new: &SmolStr) {
        let has_default = |column: &Column| column.sql_type.oid == of_type && column.default.is_some();
        self.catalog.read_mentions();
        let mentioning = self.catalog.relations_mentioning(&[Mention::Object(of_type)]).into_iter();
        let tables = mentioning.filter(|relation| relation.columns.iter().any(has_default));
        let tables: Vec<Oid> = tables.map(|relation| relation.oid).collect();
        for table in tables {
            for column in self.catalog.relation_mut(table).columns.iter_mut().filter(|column| has_default(column)) {
                if let Some(default) = &mut column.default {
                    rename_label(Arc::make_mut(default), old, new);
                }
            }
        }
    }

    fn change_label(&mut self, alter: &AlterEnum, of_type: Option<Oid>, action: ChangeAction) {
        let (type_name, label, was) = (alter.name.name.text.clone(), alter.value.clone(), alter.renamed.clone());
        let object = ChangedObject::EnumLabel { of_type, type_name, label, was };
        self.change_object(object, action, alter.name.range());
    }

    /// Refuses a text that is no label of the type, and a label that the same transaction added to it.
    ///
    /// Source: PostgreSQL 18, `src/backend/utils/adt/enum.c`, `enum_in` and `check_safe_enum_use`.
    pub(crate) fn check_enum_label(&self, enum_type: Oid, text: &str, range: TextRange) -> Run {
        let Some(definition) = self.catalog.get_type(enum_type) else { return Ok(()) };
        let labels = match &definition.kind {
            TypeKind::Enum { labels } => labels,
            TypeKind::Array { element } => return self.check_enum_array(*element, text, range),
            TypeKind::Domain(domain) => return self.check_enum_label(domain.base.oid, text, range),
            _ => return Ok(()),
        };
        let Some(label) = labels.get(text) else {
            return fail("22P02", format!("invalid input value for enum {}: \"{text}\"", definition.name), range);
        };
        if label.added_in == Some(self.transaction) && self.in_block {
            return fail(
                "55P04",
                format!("unsafe use of new value \"{text}\" of enum type {}", definition.name),
                range,
            );
        }
        Ok(())
    }

    /// The labels of an array without quotes, nested arrays or bounds, which need more than a comma between them.
    fn check_enum_array(&self, element: Oid, text: &str, range: TextRange) -> Run {
        let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let Some(inner) = inner.filter(|inner| !inner.contains(['{', '}', '"', '\\'])) else { return Ok(()) };
        let labels = inner.split(',').map(str::trim);
        let is_label = |part: &&str| !part.is_empty() && !part.eq_ignore_ascii_case("null");
        labels.filter(is_label).try_for_each(|part| self.check_enum_label(element, part, range))
    }

    /// `'label'::type`.
    pub(crate) fn check_enum_cast(&mut self, operand: &Expr, target: &TypeName) -> Run {
        if !matches!(operand.kind, ExprKind::Literal(Literal::String(_))) {
            return Ok(());
        }
        let sql_type = self.resolve_type(target);
        self.check_enum_literal(sql_type, operand)
    }

    /// All `'label'::type` of an expression that no query contains.
    pub(crate) fn check_enum_casts(&self, expression: &Expr) -> Run {
        let mut casts = Vec::new();
        expression.walk(&mut |part| {
            if let ExprKind::Cast { operand, target } = &part.kind {
                casts.push((&**operand, target));
            }
        });
        casts.into_iter().try_for_each(|(operand, target)| {
            let sql_type = self.with_analyzer(|analyzer| analyzer.resolve_type(target));
            self.check_enum_literal(sql_type, operand)
        })
    }

    /// `SET column = 'label'`.
    pub(crate) fn check_enum_assignment(&self, table: Oid, assignment: &Assignment) -> Run {
        self.check_enum_value(table, &assignment.column.text, &assignment.value)
    }

    /// The constants of INSERT ... VALUES and of a plain SELECT list.
    pub(crate) fn check_enum_row_literals(&self, table: Oid, insert: &Insert, query: &Query) -> Run {
        let columns: Vec<SmolStr> = if insert.columns.is_empty() {
            self.catalog.relation(table).columns.iter().map(|column| column.name.clone()).collect()
        } else {
            insert.columns.iter().map(|column| column.text.clone()).collect()
        };
        let check = |value: &Expr, column: &SmolStr| self.check_enum_value(table, column, value);
        match &query.body {
            QueryBody::Values(rows) => rows
                .iter()
                .try_for_each(|row| row.iter().zip(&columns).try_for_each(|(value, column)| check(value, column))),
            QueryBody::Select(select) => {
                let mut pairs = select.targets.iter().zip(&columns);
                pairs.try_for_each(|(target, column)| check(&target.value, column))
            }
            QueryBody::SetOperation { .. } => Ok(()),
        }
    }

    fn check_enum_value(&self, table: Oid, column: &str, value: &Expr) -> Run {
        let column = self.catalog.relation(table).column(column);
        column.map_or(Ok(()), |column| self.check_enum_literal(column.sql_type, value))
    }

    /// A literal that becomes a value of this type. What a cast makes of one is judged where the cast is.
    pub(crate) fn check_enum_literal(&self, sql_type: SqlType, value: &Expr) -> Run {
        match &value.kind {
            ExprKind::Literal(Literal::String(text)) => self.check_enum_label(sql_type.oid, text, value.range),
            _ => Ok(()),
        }
    }
}

/// `'label'`, with or without a cast.
fn rename_label(expr: &mut Expr, old: &SmolStr, new: &SmolStr) {
    match &mut expr.kind {
        ExprKind::Literal(Literal::String(label)) if label == old => *label = new.clone(),
        ExprKind::Cast { operand, .. } => rename_label(operand, old, new),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::check_failure;

    /// As servers of 14 and 18 answer.
    #[test]
    fn texts_that_are_no_label_are_refused() {
        let history = "CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
            CREATE DOMAIN state AS mood;
            CREATE TABLE t (id int, m mood, s state, all_of mood[]);";
        for (sql, expected) in [
            ("CREATE TABLE u (m mood DEFAULT 'glad')", "22P02"),
            ("CREATE TABLE u (m mood DEFAULT 'it''s ok')", ""),
            ("CREATE TABLE u (m mood DEFAULT 'Sad')", "22P02"),
            ("CREATE TABLE u (m mood DEFAULT NULL)", ""),
            ("ALTER TABLE t ADD COLUMN n mood DEFAULT 'glad'", "22P02"),
            ("ALTER TABLE t ALTER COLUMN m SET DEFAULT 'glad'", "22P02"),
            ("ALTER TABLE t ALTER COLUMN m SET DEFAULT 'sad'::mood", ""),
            ("SELECT 'glad'::mood", "22P02"),
            ("INSERT INTO t VALUES (1, 'sad'), (2, 'glad')", "22P02"),
            ("INSERT INTO t (id, s) VALUES (1, 'glad')", "22P02"),
            ("INSERT INTO t (id, s) SELECT 1, 'sad'", ""),
            ("INSERT INTO t (id, m) SELECT 1, 'glad'", "22P02"),
            ("INSERT INTO t (id, all_of) VALUES (1, '{sad, NULL}')", ""),
            ("INSERT INTO t (id, all_of) VALUES (1, '{sad,glad}')", "22P02"),
            ("INSERT INTO t (id, all_of) VALUES (1, '{\"it''s ok\"}')", ""),
            ("INSERT INTO t (id, all_of) VALUES (1, '{}')", ""),
            ("UPDATE t SET m = 'glad' WHERE false", "22P02"),
            ("UPDATE t SET m = lower('SAD')::mood", ""),
            ("SELECT 'glad'::text", ""),
            ("ALTER TABLE t ALTER COLUMN m SET DEFAULT 'glad'::mood", "22P02"),
            ("CREATE TABLE u (m mood DEFAULT ('glad'::mood))", "22P02"),
            ("ALTER TABLE t ADD CHECK (m <> 'glad')", "22P02"),
            ("ALTER TABLE t ADD CHECK (m IN ('sad', 'glad'))", "22P02"),
            ("ALTER TABLE t ADD CHECK (m IN ('sad', 'it''s ok'))", ""),
            ("CREATE INDEX ON t (id) WHERE m = 'glad'", "22P02"),
            ("SELECT 1 FROM t WHERE m = 'glad'", "22P02"),
            ("SELECT 1 FROM t WHERE m BETWEEN 'glad' AND 'sad'", "22P02"),
            ("SELECT 1 FROM t WHERE m IS DISTINCT FROM 'glad'", "22P02"),
            ("SELECT 1 FROM t WHERE m = ANY ('{sad}')", ""),
            ("SELECT 1 FROM t WHERE m::text = 'glad'", ""),
            ("SELECT m || 'glad' FROM t", ""),
            ("SELECT CASE m WHEN 'glad' THEN 1 END FROM t", "22P02"),
            ("UPDATE t SET id = 1 WHERE m = 'glad'", "22P02"),
            ("DELETE FROM t WHERE 'glad' = m", "22P02"),
            ("CREATE VIEW v AS SELECT 1 AS x FROM t WHERE m = 'glad'", "22P02"),
        ] {
            check_failure(history, sql, expected);
        }
    }
}
