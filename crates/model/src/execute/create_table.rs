//! CREATE TABLE and CREATE FOREIGN TABLE.

mod columns;
mod constraints;
mod inherit;
mod like;

use super::{Executor, Knowledge, Run, fail};
use crate::catalog::{
    Column, Constraint, Counting, Oid, PartitionKey, Relation, RelationDetail, RelationKind, Sequence, SqlType,
    TEMPORARY_SCHEMA, TypeKind,
};
use crate::effect::LockCause;
use crate::execute::column_rules::MAX_KEYS;
use pgvet_syntax::ast::{
    Constraint as ConstraintSyntax, ConstraintKind as ConstraintSyntaxKind, CreateTable, DefElem, DefValue, Expr,
    LikeOptions, Literal, LockMode, Name, ObjectName, PartitionStrategy, Persistence, TableElement,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

/// A table while its parts are being collected.
#[derive(Debug)]
struct NewTable {
    schema: SmolStr,
    name: SmolStr,
    /// False when a parent or a table of LIKE is not known.
    known: bool,
    columns: Vec<Column>,
    /// Defaults about which the parents do not agree, as long as the column has no other.
    disputed: Vec<(SmolStr, Arc<Expr>)>,
    /// Constraints that come with their names from parents and LIKE.
    given: Vec<Constraint>,
    /// Constraints that the statement says, each with its column if it belongs to one.
    own: Vec<(Option<Name>, ConstraintSyntax)>,
    sequences: Vec<NewSequence>,
    likes: Vec<(Oid, LikeOptions)>,
}

/// The sequence of a serial or identity column.
#[derive(Debug)]
struct NewSequence {
    name: SmolStr,
    column: SmolStr,
    identity: bool,
    sql_type: SqlType,
    counting: Counting,
}

impl NewTable {
    fn column(&mut self, name: &str) -> Option<&mut Column> {
        self.columns.iter_mut().find(|column| column.name == name)
    }
}

impl Executor<'_> {
    /// CREATE TABLE.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_utilcmd.c`, `transformCreateStmt`, and
    /// `src/backend/commands/tablecmds.c`, `DefineRelation`.
    pub(super) fn create_table(&mut self, statement: &CreateTable) -> Run {
        let name = &statement.name;
        let schema = self.schema_of_new_relation(name, statement.persistence)?;
        if let Some(existing) =
            self.catalog.relation_named(&schema, &name.name.text).filter(|_| statement.if_not_exists)
        {
            if !self.catalog.relation(existing).known {
                self.catalog.relation_mut(existing).birth.made_if_missing_in = self.deployment;
            }
            return Ok(());
        }
        self.check_table_syntax(statement)?;
        let created = self.effects.creates.len();
        let mut table = NewTable {
            schema,
            name: statement.name.name.text.clone(),
            known: true,
            columns: Vec::new(),
            given: Vec::new(),
            own: Vec::new(),
            sequences: Vec::new(),
            likes: Vec::new(),
            disputed: Vec::new(),
        };
        if statement.on_commit_drop && table.schema != TEMPORARY_SCHEMA {
            return fail("42P16", "ON COMMIT can only be used on temporary tables", statement.name.range());
        }
        let parents = self.open_parents(statement)?;
        self.collect_inherited(&mut table, &parents, statement)?;
        if let Some(of_type) = &statement.of_type {
            self.collect_typed(&mut table, of_type)?;
        }
        for element in &statement.elements {
            match element {
                TableElement::Column(column) => self.collect_column(&mut table, column)?,
                TableElement::Constraint(constraint) => table.own.push((None, constraint.clone())),
                TableElement::Like { table: source, including } => self.collect_like(&mut table, source, *including)?,
            }
        }
        inherit::check_disputed_defaults(&mut table, statement.name.range())?;
        // The name is examined last.
        self.check_new_relation(name, statement.persistence, false)?;
        let oid = self.store_table(&mut table, statement, &parents);
        self.catalog.relation_mut(oid).birth.if_not_exists = statement.if_not_exists;
        self.check_partition_columns(oid, statement.name.range())?;
        self.store_sequences(oid, &table);
        if let (Some(parent), Some((_, bound))) = (parents.first(), &statement.partition_of) {
            self.store_partition(*parent, oid, bound, statement.name.range())?;
        }
        self.store_constraints(oid, &table)?;
        self.copy_likes(oid, &table, statement.name.range())?;
        self.count_catalog_rows(created);
        Ok(())
    }

    /// Syntax that older majors do not have, and contradictions that need no catalog.
    fn check_table_syntax(&self, statement: &CreateTable) -> Run {
        for element in &statement.elements {
            match element {
                TableElement::Column(column) => {
                    for constraint in &column.constraints {
                        self.check_generated_syntax(constraint)?;
                        let is_not_null = matches!(constraint.kind, ConstraintSyntaxKind::NotNull { .. });
                        if is_not_null && constraint.no_inherit && !self.target.at_least(18) {
                            return fail("42601", "syntax error at or near \"NO\"", constraint.keyword);
                        }
                        if !is_not_null {
                            self.check_constraint_syntax(constraint, constraint.keyword)?;
                        }
                    }
                }
                TableElement::Constraint(constraint) => {
                    let is_not_null = matches!(constraint.kind, ConstraintSyntaxKind::NotNull { .. });
                    if is_not_null && !self.target.at_least(18) {
                        return fail("42601", "syntax error at or near \"NOT\"", constraint.keyword);
                    }
                    self.check_constraint_syntax(constraint, constraint.keyword)?;
                }
                TableElement::Like { .. } => {}
            }
        }
        check_no_inherit(statement)?;
        let Some(by) = &statement.partition_by else { return Ok(()) };
        if by.strategy == PartitionStrategy::List && by.keys.len() > 1 {
            let reason = "cannot use \"list\" partition strategy with more than one column";
            return fail("42P17", reason, statement.name.range());
        }
        // Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `DefineRelation`.
        if by.keys.len() > MAX_KEYS {
            let reason = format!("cannot partition using more than {MAX_KEYS} columns");
            return fail("54011", reason, statement.name.range());
        }
        if !statement.options.is_empty() {
            let sqlstate = if self.target.at_least(16) { "42809" } else { "22023" };
            let reason = "cannot specify storage parameters for a partitioned table";
            return fail(sqlstate, reason, statement.name.range());
        }
        Ok(())
    }

    fn check_partition_columns(&self, oid: Oid, range: TextRange) -> Run {
        let relation = self.catalog.relation(oid);
        let Some(by) = &relation.partition_by else { return Ok(()) };
        for column in by.keys.iter().filter_map(pgvet_syntax::ast::Expr::as_column) {
            if relation.known && relation.column(column).is_none() {
                let reason = format!("column \"{column}\" named in partition key does not exist");
                return fail("42703", reason, range);
            }
            let method = if by.strategy == PartitionStrategy::Hash { "hash" } else { "btree" };
            let sql_type = relation.column(column).map_or(SqlType::UNKNOWN, |found| found.sql_type);
            let base = self.with_analyzer(|analyzer| analyzer.base_type(sql_type));
            let has_class = self.with_analyzer(|analyzer| analyzer.default_operator_class(method, base).is_some());
            if base.oid.is_builtin() && !has_class {
                let reason = format!("column \"{column}\" has no default operator class for \"{method}\"");
                return fail("42704", reason, range);
            }
        }
        Ok(())
    }

    fn schema_of_new_relation(&self, name: &ObjectName, persistence: Persistence) -> Run<SmolStr> {
        let temporary = persistence == Persistence::Temporary;
        let schema = self.schema_for(name, temporary);
        let missing = schema != TEMPORARY_SCHEMA && !self.catalog.has_schema(&schema);
        if missing && self.knowledge == Knowledge::Everything {
            return fail("3F000", format!("schema \"{schema}\" does not exist"), name.range());
        }
        if let Some(schema) = name.schema.as_ref().filter(|schema| temporary && !schema.text.starts_with("pg_temp")) {
            return fail("42P16", "cannot create temporary relation in non-temporary schema", schema.range);
        }
        Ok(schema)
    }

    /// Checks that a relation of this name may be created. Returns its schema, or `None` if IF NOT EXISTS makes it a
    /// no-op.
    pub(super) fn check_new_relation(
        &mut self,
        name: &ObjectName,
        persistence: Persistence,
        if_not_exists: bool,
    ) -> Run<Option<SmolStr>> {
        let schema = self.schema_of_new_relation(name, persistence)?;
        if if_not_exists && self.catalog.relation_named(&schema, &name.name.text).is_some() {
            return Ok(None);
        }
        self.check_name_is_free(&schema, name)?;
        self.check_no_type(&schema, name)?;
        Ok(Some(schema))
    }

    /// A relation cannot have the name of a type, not even a relation that has no row type.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/heap.c`, `heap_create_with_catalog`.
    pub(super) fn check_no_type(&self, schema: &str, name: &ObjectName) -> Run {
        match self.catalog.type_in_the_way(schema, &name.name.text) {
            Some(_) => fail("42710", format!("type \"{name}\" already exists"), name.range()),
            None => Ok(()),
        }
    }

    /// Adds a relation with a row type to the catalog.
    pub(super) fn store_relation(&mut self, relation: Relation) -> Oid {
        let (oid, schema, name) = (relation.oid, relation.schema.clone(), relation.name.clone());
        self.catalog.add_relation(relation);
        self.catalog.add_type(&schema, &name, TypeKind::Composite { relation: oid }, self.transaction);
        self.created(oid);
        oid
    }

    fn store_table(&mut self, table: &mut NewTable, statement: &CreateTable, parents: &[Oid]) -> Oid {
        let oid = self.catalog.new_oid();
        let kind = match (statement.foreign, &statement.partition_by) {
            (true, _) => RelationKind::ForeignTable,
            (false, Some(_)) => RelationKind::PartitionedTable,
            (false, None) => RelationKind::Table,
        };
        let birth = self.birth(false);
        let mut relation = Relation::new(oid, table.schema.clone(), table.name.clone(), kind, birth);
        relation.known = table.known;
        relation.placed_by_path = self.is_placed_by_path(&statement.name);
        relation.persistence = statement.persistence;
        relation.columns = std::mem::take(&mut table.columns);
        relation.partition_by = statement
            .partition_by
            .as_ref()
            .map(|by| PartitionKey { strategy: by.strategy, keys: Arc::new(by.keys.clone()) });
        relation.tablespace.clone_from(&statement.tablespace);
        relation.access_method.clone_from(&statement.access_method);
        relation.options = statement.options.iter().map(option_as_text).collect();
        if statement.on_commit_drop {
            relation.options.push(("on_commit".into(), "drop".into()));
        }
        relation.of_type = statement.of_type.as_ref().map(|name| self.resolve_type(name).oid);
        relation.parents = parents.to_vec();
        self.store_relation(relation);
        for parent in parents {
            self.catalog.add_child(*parent, oid);
        }
        oid
    }

    /// Before 15 no sequence is unlogged.
    pub(super) fn sequence_persistence(&self, table: Oid) -> Persistence {
        match self.catalog.relation(table).persistence {
            Persistence::Unlogged if !self.target.at_least(15) => Persistence::Permanent,
            persistence => persistence,
        }
    }

    fn store_sequences(&mut self, table: Oid, new: &NewTable) {
        let persistence = self.sequence_persistence(table);
        for sequence in &new.sequences {
            let oid = self.catalog.new_oid();
            let birth = self.birth(true);
            let mut relation =
                Relation::new(oid, new.schema.clone(), sequence.name.clone(), RelationKind::Sequence, birth);
            relation.persistence = persistence;
            relation.detail = RelationDetail::Sequence(Sequence {
                owned_by: Some((table, sequence.column.clone())),
                identity: sequence.identity,
                sql_type: sequence.sql_type,
                counting: sequence.counting.clone(),
            });
            self.catalog.add_relation(relation);
            self.created(oid);
            self.catalog.relation_mut(table).owned_sequences.push(oid);
        }
    }

    /// Opens the tables of INHERITS, or the parent of PARTITION OF.
    ///
    /// A partition locks its parent `AccessExclusive`, because the parent's list of partitions must not change under a query.
    fn open_parents(&mut self, statement: &CreateTable) -> Run<Vec<Oid>> {
        if let Some((parent, _)) = &statement.partition_of {
            let oid = self.open(parent, RelationKind::PartitionedTable, LockMode::AccessExclusive)?;
            let known = self.catalog.relation(oid);
            if known.known && known.is_temporary() != (statement.persistence == Persistence::Temporary) {
                let reason = "a temporary and a permanent relation cannot be parent and partition";
                return fail("42809", reason, parent.range());
            }
            self.check_is_partitioned(oid, parent.range())?;
            return Ok(vec![oid]);
        }
        let mut parents = Vec::new();
        for name in &statement.inherits {
            let oid = self.open(name, RelationKind::Table, LockMode::ShareUpdateExclusive)?;
            if parents.contains(&oid) {
                let reason = format!("relation \"{name}\" would be inherited from more than once");
                return fail("42P07", reason, name.range());
            }
            parents.push(oid);
        }
        for (name, oid) in statement.inherits.iter().zip(&parents) {
            let parent = self.catalog.relation(*oid);
            match parent.kind {
                RelationKind::Table | RelationKind::ForeignTable => {}
                RelationKind::PartitionedTable => {
                    return fail("42809", format!("cannot inherit from partitioned table \"{name}\""), name.range());
                }
                _ => {
                    let reason = format!("inherited relation \"{name}\" is not a table or foreign table");
                    return fail("42809", reason, name.range());
                }
            }
            if parent.is_partition() {
                return fail("42809", format!("cannot inherit from partition \"{name}\""), name.range());
            }
            if parent.is_temporary() && statement.persistence != Persistence::Temporary {
                return fail("42809", format!("cannot inherit from temporary relation \"{name}\""), name.range());
            }
        }
        Ok(parents)
    }

    pub(super) fn check_is_partitioned(&self, oid: Oid, range: TextRange) -> Run {
        let relation = self.catalog.relation(oid);
        match relation.kind {
            RelationKind::PartitionedTable => Ok(()),
            // An assumed table was given its kind by the first statement that used it.
            RelationKind::Table if !relation.known => Ok(()),
            _ => fail("42P17", format!("\"{}\" is not partitioned", relation.name), range),
        }
    }

    /// The columns of OF type.
    fn collect_typed(&mut self, table: &mut NewTable, type_name: &pgvet_syntax::ast::TypeName) -> Run {
        let oid = self.require_type(type_name)?.oid;
        let kind = self.catalog.get_type(oid).map(|definition| &definition.kind);
        let Some(TypeKind::Composite { relation }) = kind else {
            table.known = false;
            return Ok(());
        };
        let relation = *relation;
        self.lock(relation, LockMode::AccessShare, LockCause::Target, type_name.range);
        let columns = self.catalog.relation(relation).columns.clone();
        table.columns.extend(columns.into_iter().map(|column| Column { is_local: true, ..column }));
        Ok(())
    }
}

/// A storage parameter as the catalog keeps it.
pub(super) fn option_as_text(option: &DefElem) -> (SmolStr, SmolStr) {
    let literal = |literal: &Literal| match literal {
        Literal::Integer(number) => number.to_string().into(),
        Literal::Numeric(text) | Literal::String(text) | Literal::BitString(text) => text.clone(),
        Literal::Boolean(value) => value.to_string().into(),
        Literal::Null => "null".into(),
    };
    let value = match &option.value {
        DefValue::None => "true".into(),
        DefValue::Literal(value) => literal(value),
        DefValue::Names(names) => names.join(".").into(),
        DefValue::Type(name) => name.name.clone(),
        DefValue::List(values) => values.iter().map(literal).collect::<Vec<_>>().join(",").into(),
        DefValue::Other => SmolStr::default(),
    };
    (option.name.to_lowercase().into(), value)
}

/// A NOT NULL that children do not inherit is nothing for a partitioned table, nor for a key.
///
/// Source: PostgreSQL 18, `src/backend/parser/parse_utilcmd.c`, `transformColumnDefinition` and
/// `transformIndexConstraint`.
fn check_no_inherit(statement: &CreateTable) -> Run {
    let mut kept: Vec<(&SmolStr, TextRange)> = Vec::new();
    let mut keys: Vec<&SmolStr> = Vec::new();
    let columns = statement.elements.iter().flat_map(|element| match element {
        TableElement::Column(column) => column.constraints.iter().map(|one| (Some(&column.name), one)).collect(),
        TableElement::Constraint(constraint) => vec![(None, constraint)],
        TableElement::Like { .. } => Vec::new(),
    });
    for (own, constraint) in columns {
        match &constraint.kind {
            ConstraintSyntaxKind::NotNull { column } if constraint.no_inherit => {
                kept.extend(column.as_ref().or(own).map(|name| (&name.text, constraint.range)));
            }
            ConstraintSyntaxKind::PrimaryKey(key) => {
                keys.extend(key.columns.iter().chain(own).map(|name| &name.text));
            }
            _ => {}
        }
    }
    if let Some((_, range)) = kept.first().filter(|_| statement.partition_by.is_some()) {
        return fail("0A000", "not-null constraints on partitioned tables cannot be NO INHERIT", *range);
    }
    match kept.iter().find(|(name, _)| keys.contains(name)) {
        Some((name, range)) => {
            fail("42601", format!("conflicting NO INHERIT declaration for column \"{name}\""), *range)
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::{check, effects_on, summary};

    #[test]
    fn parts_get_the_names_of_postgresql() {
        let sql = "CREATE TABLE t (id serial PRIMARY KEY, a int UNIQUE, n int GENERATED ALWAYS AS IDENTITY,
            EXCLUDE USING gist (a WITH =), UNIQUE (a, n))";
        let expected = [
            "build public.t_a_excl",
            "build public.t_a_key",
            "build public.t_a_n_key",
            "build public.t_pkey",
            "create public.t",
            "create public.t_a_excl",
            "create public.t_a_key",
            "create public.t_a_n_key",
            "create public.t_id_seq",
            "create public.t_n_seq",
            "create public.t_pkey",
        ];
        check("", sql, &expected);
    }

    #[test]
    fn checks_are_named_after_their_only_column() {
        let history = "CREATE TABLE t (a int CHECK (a > 0), b int, CHECK (a < b), CHECK (b > 1), CHECK (b < 9));";
        for name in ["t_a_check", "t_check", "t_b_check", "t_b_check1"] {
            let sql = format!("ALTER TABLE t DROP CONSTRAINT {name}");
            check(history, &sql, &["lock public.t AccessExclusive"]);
        }
    }

    #[test]
    fn if_not_exists_does_nothing() {
        check("CREATE TABLE t (a int);", "CREATE TABLE IF NOT EXISTS t (a int REFERENCES r)", &[]);
        check("CREATE TABLE t (a int);", "CREATE TABLE t (a int)", &["fails 42P07"]);
    }

    #[test]
    fn like_takes_names_of_its_own() {
        let history = "CREATE TABLE s (id int PRIMARY KEY, a int); CREATE INDEX i ON s (a);";
        let expected = [
            "build public.t_a_idx",
            "build public.t_pkey",
            "create public.t",
            "create public.t_a_idx",
            "create public.t_pkey",
            "lock public.s AccessShare",
        ];
        check(history, "CREATE TABLE t (LIKE s INCLUDING ALL)", &expected);
    }

    #[test]
    fn children_merge_the_columns_of_their_parents() {
        let history = "CREATE TABLE a (id int); CREATE TABLE b (id int, x text);";
        let expected = ["create public.c", "lock public.a ShareUpdateExclusive", "lock public.b ShareUpdateExclusive"];
        check(history, "CREATE TABLE c (id int) INHERITS (a, b)", &expected);
        let effects = effects_on(17, history, "CREATE TABLE c (id text) INHERITS (a)");
        assert!(summary(&effects).contains(&"fails 42804".to_owned()));
    }

    #[test]
    fn what_postgresql_refuses() {
        check("", "CREATE TABLE t (a int, a int)", &["fails 42701"]);
        let effects = effects_on(17, "", "CREATE TABLE t (a int PRIMARY KEY, b int, PRIMARY KEY (b))");
        assert!(summary(&effects).contains(&"fails 42P16".to_owned()));
    }
}
