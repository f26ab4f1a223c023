//! What PostgreSQL refuses before it creates an index.

use super::{Executor, IndexDefinition, Run, fail};
use crate::catalog::{Column, Oid, Relation, RelationKind};
use crate::execute::Knowledge;
use crate::execute::column_rules::MAX_KEYS;
use pgvet_syntax::ast::IndexElement;
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

impl Executor<'_> {
    /// A key needs an operator class of the access method. Types and methods of extensions are assumed to have one.
    fn check_operator_class(&self, table: Oid, definition: &IndexDefinition, element: &IndexElement) -> Run {
        let method = &definition.method;
        let relation = self.catalog.relation(table);
        let (sql_type, what) = match element.key.as_column() {
            Some(column) => match relation.column(column) {
                Some(column) => (column.sql_type, format!("column \"{}\"", column.name)),
                None => return Ok(()),
            },
            None => (self.analyze(&element.key, Some(table)).sql_type, "expression".to_owned()),
        };
        if element.collation.is_some() {
            self.check_collation(sql_type, definition.range)?;
        }
        if let Some(class) = &element.operator_class {
            return self.check_class_takes(method, class, sql_type, definition.range);
        }
        let base = self.with_analyzer(|analyzer| analyzer.base_type(sql_type));
        if definition.exclusion && base != sql_type && self.is_enum(base.oid) {
            return fail(
                "42883",
                format!("{what} is of a domain over an enum, which has no operators"),
                definition.range,
            );
        }
        // btree_gist and btree_gin may have been installed by hand.
        let certain = match method.as_str() {
            "btree" | "hash" | "brin" | "spgist" => true,
            _ => self.knowledge == Knowledge::Everything && self.catalog.extensions().next().is_none(),
        } && base.oid.is_builtin();
        let has_class = || self.with_analyzer(|analyzer| analyzer.default_operator_class(method, base).is_some());
        if certain && !has_class() {
            let reason = format!("{what} has no default operator class for \"{method}\"");
            return fail("42704", reason, definition.range);
        }
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `ResolveOpClass`.
    fn check_class_takes(&self, method: &str, class: &str, sql_type: crate::catalog::SqlType, range: TextRange) -> Run {
        let base = self.with_analyzer(|analyzer| analyzer.base_type(sql_type)).oid;
        let classes = || crate::builtin::operator_classes(method).iter().filter(|known| known.name == class);
        let is_enum = self.is_enum(base);
        let takes = |known: &crate::builtin::OperatorClass| {
            let as_enum = is_enum && matches!(known.input, crate::builtin::oid::ANYENUM | crate::builtin::oid::ANY);
            as_enum || !is_enum && crate::builtin::is_binary_coercible(base.0, known.input)
        };
        if (base.is_builtin() || is_enum) && classes().next().is_some() && !classes().any(takes) {
            let name = self.with_analyzer(|analyzer| analyzer.format_type(sql_type));
            return fail("42804", format!("operator class \"{class}\" does not accept data type {name}"), range);
        }
        Ok(())
    }

    /// Refuses what PostgreSQL refuses before it creates the index.
    pub(in crate::execute) fn check_index(&self, table: Oid, definition: &IndexDefinition) -> Run {
        let relation = self.catalog.relation(table);
        let range = definition.range;
        // Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `DefineIndex`.
        if definition.elements.len() + definition.including.len() > MAX_KEYS {
            return fail("54011", format!("cannot use more than {MAX_KEYS} columns in an index"), range);
        }
        match relation.kind {
            RelationKind::Table | RelationKind::MaterializedView => {}
            // PostgreSQL 10, `indexcmds.c`, `DefineIndex`; `parse_utilcmd.c`, `transformTableConstraint`.
            RelationKind::PartitionedTable if !self.target.at_least(11) => {
                let reason = format!("cannot create index on partitioned table \"{}\"", relation.name);
                return fail(if definition.constraint { "0A000" } else { "42809" }, reason, range);
            }
            RelationKind::PartitionedTable if definition.concurrently => {
                let reason = format!("cannot create index on partitioned table \"{}\" concurrently", relation.name);
                return fail("0A000", reason, range);
            }
            RelationKind::PartitionedTable if definition.exclusion && !self.target.at_least(17) => {
                let reason = format!("cannot create exclusion constraints on partitioned table \"{}\"", relation.name);
                return fail("0A000", reason, range);
            }
            RelationKind::PartitionedTable => {}
            _ => return fail("42809", format!("cannot create index on relation \"{}\"", relation.name), range),
        }
        if definition.unique
            && !definition.constraint
            && matches!(definition.method.as_str(), "hash" | "gist" | "gin" | "brin" | "spgist")
        {
            let reason = format!("access method \"{}\" does not support unique indexes", definition.method);
            return fail("0A000", reason, range);
        }
        if definition.method == "hash" && definition.elements.len() > 1 {
            return fail("0A000", "access method \"hash\" does not support multicolumn indexes", range);
        }
        if matches!(definition.method.as_str(), "hash" | "gin" | "brin") && !definition.including.is_empty() {
            let reason = format!("access method \"{}\" does not support included columns", definition.method);
            return fail("0A000", reason, range);
        }
        let keys = definition.elements.iter().filter_map(|element| element.key.as_column());
        for column in keys.chain(&definition.including) {
            if relation.known && relation.column(column).is_none() {
                if is_system_column(column) {
                    return fail("0A000", "index creation on system columns is not supported", range);
                }
                return fail("42703", format!("column \"{column}\" does not exist"), range);
            }
        }
        let expressions = definition.elements.iter().map(|element| &element.key);
        for key in expressions.filter(|key| key.as_column().is_none()).chain(&definition.predicate) {
            self.check_names(table, key)?;
            self.check_immutable(table, key, "functions in an index", range)?;
        }
        definition.elements.iter().try_for_each(|element| self.check_operator_class(table, definition, element))?;
        check_partition_key(relation, definition)?;
        self.check_no_virtual_column(table, definition)
    }

    /// Refuses virtual generated columns, which cannot be in an index.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `DefineIndex`.
    fn check_no_virtual_column(&self, table: Oid, definition: &IndexDefinition) -> Run {
        let relation = self.catalog.relation(table);
        let keys = definition.elements.iter().map(|element| &element.key).chain(&definition.predicate);
        let used = keys.flat_map(|key| self.columns_of(table, key)).chain(definition.including.iter().cloned());
        let is_virtual = |name: &SmolStr| relation.column(name).is_some_and(Column::is_virtual);
        match used.into_iter().find(is_virtual) {
            Some(_) => fail("0A000", "indexes on virtual generated columns are not supported", definition.range),
            None => Ok(()),
        }
    }
}

/// A unique index of a partitioned table must include its partition key, for uniqueness is checked in each partition.
fn check_partition_key(relation: &Relation, definition: &IndexDefinition) -> Run {
    let Some(partition_key) = &relation.partition_by else { return Ok(()) };
    if !(definition.unique || definition.exclusion) {
        return Ok(());
    }
    for key in partition_key.keys.iter() {
        // Rows must be equal in the sense of the partition key.
        let same_collation = |element: &IndexElement, column: &SmolStr| {
            let own = relation.column(column).and_then(|column| column.collation.as_ref());
            element.collation.is_none() || element.collation.as_ref() == own
        };
        let included = key.as_column().is_some_and(|column| {
            let mut elements = definition.elements.iter();
            elements.any(|element| element.key.as_column() == Some(column) && same_collation(element, column))
        });
        if !included {
            let reason = "unique constraint on partitioned table must include all partitioning columns";
            return fail("0A000", reason, definition.range);
        }
    }
    Ok(())
}

fn is_system_column(name: &str) -> bool {
    matches!(name, "tableoid" | "ctid" | "xmin" | "xmax" | "cmin" | "cmax")
}
