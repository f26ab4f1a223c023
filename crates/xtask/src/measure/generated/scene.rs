//! Values for the slots of a template: names of the schema as the statements so far have left it.

use super::template::Fill;
use super::types::{self, Family};
use crate::measure::random::Random;
use pgvet_model::catalog::{Catalog, Column, ConstraintKind, Oid, Relation, RelationKind, SqlType};
use pgvet_syntax::lexer::quote_identifier;
use smol_str::SmolStr;

/// Names that look alike, need quotes, fill 63 bytes, or are longer and cut.
const TABLES: &[&str] = &[
    "t1",
    "t2",
    "t3",
    "t4",
    "t5",
    "t6",
    "t7",
    "t8",
    "orders",
    "items",
    "\"Orders\"",
    "\"order\"",
    "\"a b\"",
    "ORDERS2",
    "\"tä\"",
    "app.t1",
    "app.t2",
    "app.orders",
    "a_table_with_a_name_that_is_so_long_that_names_made_of_it_are_cut",
    "a_table_with_a_name_that_is_so_long_that_names_made_of_it_are_cuT",
];
const COLUMNS: &[&str] = &[
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "id",
    "k",
    "\"Name\"",
    "\"a b\"",
    "NAME",
    "\"user\"",
    "\"é\"",
    "a_column_with_a_name_of_fifty_bytes_to_be_shortened",
    "price",
    "created_at",
];
const OTHERS: &[&str] = &[
    "x1",
    "x2",
    "x3",
    "x4",
    "x5",
    "x6",
    "x7",
    "x8",
    "\"X1\"",
    "\"x y\"",
    "t1_pkey",
    "t1_a_key",
    "t2_a_idx",
    "t3_pkey",
    "t1_a_seq",
    "t1_id_seq",
    "t2_check",
    "t1_a_check",
    "t1_a_not_null",
    "orders_pkey",
    "a_name_for_something_else_that_has_just_63_bytes_when_it_is_cut_off_here",
];

/// The argument of the function that [`super::statements`] makes.
const INT4: Oid = Oid(23);

/// The schema, and what the template has spoken of so far.
pub(super) struct Scene<'a> {
    pub(super) random: &'a mut Random,
    pub(super) catalog: &'a Catalog,
    pub(super) major: u8,
    /// The relation that `{column}` and similar placeholders belong to.
    pub(super) subject: Option<Oid>,
    pub(super) other: Option<Oid>,
    /// The last column or type, so that values fit.
    pub(super) family: Family,
    pub(super) column: Option<(SmolStr, SqlType)>,
}

/// A name with its schema, which `public` needs not.
pub(super) fn qualified(schema: &str, name: &str) -> String {
    match schema {
        "public" => quote_identifier(name),
        schema => format!("{}.{}", quote_identifier(schema), quote_identifier(name)),
    }
}

impl<'a> Scene<'a> {
    pub(super) fn new(random: &'a mut Random, catalog: &'a Catalog, major: u8) -> Self {
        Self { random, catalog, major, subject: None, other: None, family: Family::Other, column: None }
    }

    fn any_relation(&mut self, wanted: impl Fn(&Relation) -> bool) -> Option<&'a Relation> {
        let found = self.catalog.relations_where(wanted);
        self.random.one_of(&found).map(|relation| &***relation)
    }

    pub(super) fn subject(&self) -> Option<&'a Relation> {
        self.catalog.get_relation(self.subject?).map(|relation| &**relation)
    }

    fn name(&mut self, relation: &Relation) -> String {
        match &*relation.schema {
            "public" if self.random.percent(10) => format!("public.{}", quote_identifier(&relation.name)),
            "pg_temp" if self.random.percent(80) => quote_identifier(&relation.name),
            schema => qualified(schema, &relation.name),
        }
    }

    fn relation(&mut self, wanted: impl Fn(&Relation) -> bool) -> Option<String> {
        let found = self.any_relation(wanted)?;
        self.subject = Some(found.oid);
        Some(self.name(found))
    }

    fn other(&mut self, wanted: impl Fn(&Relation) -> bool) -> Option<String> {
        let subject = self.subject;
        let found = self.any_relation(|relation| Some(relation.oid) != subject && wanted(relation))?;
        self.other = Some(found.oid);
        Some(self.name(found))
    }

    fn column_where(&mut self, wanted: impl Fn(&Column, Family) -> bool) -> Option<String> {
        let relation = self.subject()?;
        let catalog = self.catalog;
        let columns: Vec<&Column> =
            relation.columns.iter().filter(|column| wanted(column, types::family(catalog, column.sql_type))).collect();
        let column = *self.random.one_of(&columns)?;
        self.family = types::family(catalog, column.sql_type);
        self.column = Some((column.name.clone(), column.sql_type));
        Some(quote_identifier(&column.name))
    }

    fn constraint_where(&mut self, wanted: impl Fn(&ConstraintKind) -> bool) -> Option<String> {
        let relation = self.subject()?;
        // Before 18 a NOT NULL is no constraint.
        let exists = |kind: &ConstraintKind| self.major >= 18 || !matches!(kind, ConstraintKind::NotNull { .. });
        let constraints: Vec<_> =
            relation.constraints.iter().filter(|one| wanted(&one.kind) && exists(&one.kind)).collect();
        self.random.one_of(&constraints).map(|one| quote_identifier(&one.name))
    }

    fn one(&mut self, names: &[&str]) -> Option<String> {
        self.random.one_of(names).map(|name| (*name).to_owned())
    }

    /// Several columns, all different.
    fn columns(&mut self, most: usize) -> Option<String> {
        let count = 1 + self.random.below(most);
        let mut names: Vec<String> = (0..count).filter_map(|_| self.column_where(|_, _| true)).collect();
        names.sort();
        names.dedup();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// `(column) REFERENCES table (column)`, mostly of the same type.
    fn reference(&mut self) -> Option<String> {
        let column = self.column_where(|_, family| family == Family::Integer)?;
        let sql_type = self.column.clone()?.1;
        let target = |relation: &Relation| {
            let keys = relation.constraints.iter().filter(|one| one.index().is_some() && one.columns().len() == 1);
            let mut keys = keys.filter_map(|one| relation.column(&one.columns()[0]));
            keys.find(|key| key.sql_type == sql_type).map(|key| key.name.clone())
        };
        let found = self.any_relation(|relation| target(relation).is_some())?;
        self.other = Some(found.oid);
        let key = quote_identifier(&target(found)?);
        let key = if self.random.percent(50) { format!(" ({key})") } else { String::new() };
        Some(format!("({column}) REFERENCES {}{key}", self.name(found)))
    }

    /// A type, and whatever may be after it.
    fn typed(&mut self) -> String {
        let sql = types::any(self.random, self.catalog);
        self.family = types::family_of_sql(self.catalog, &sql);
        sql
    }

    fn value(&mut self) -> String {
        let number = self.random.below(20);
        types::constant(self.family, number)
    }

    fn partition(&mut self) -> Option<String> {
        let partition = self.any_relation(Relation::is_partition)?;
        let parent = self.catalog.get_relation(*partition.parents.first()?)?;
        self.subject = Some(parent.oid);
        let (parent, partition) = (self.name(parent), self.name(partition));
        Some(format!("{parent} DETACH PARTITION {partition}"))
    }

    /// The name of something that the subject has.
    fn named(&mut self, names: impl Fn(&Relation) -> Vec<&SmolStr>) -> Option<String> {
        let names = names(self.subject()?);
        self.random.one_of(&names).map(|name| quote_identifier(name))
    }

    /// `name ON relation`
    fn named_on(&mut self, names: impl Fn(&Relation) -> Vec<&SmolStr>) -> Option<String> {
        let relation = self.relation(|relation| !names(relation).is_empty())?;
        let name = self.named(names)?;
        Some(format!("{name} ON {relation}"))
    }
}

fn is_table(relation: &Relation) -> bool {
    matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable)
}

fn has_columns(relation: &Relation) -> bool {
    is_table(relation) || matches!(relation.kind, RelationKind::View | RelationKind::MaterializedView)
}

fn is_plain(relation: &Relation) -> bool {
    relation.kind == RelationKind::Table && !relation.is_partition()
}

impl Fill for Scene<'_> {
    fn random(&mut self) -> &mut Random {
        self.random
    }

    fn slot(&mut self, name: &str) -> Option<String> {
        self.relation_slot(name)
            .or_else(|| self.column_slot(name))
            .or_else(|| self.part_slot(name))
            .or_else(|| self.new_slot(name))
    }
}

impl Scene<'_> {
    fn relation_slot(&mut self, name: &str) -> Option<String> {
        match name {
            "table" => self.relation(is_table),
            "plain" => self.relation(is_plain),
            "partitioned" => self.relation(|relation| relation.partition_by.is_some()),
            "a_partition" => self.relation(Relation::is_partition),
            "child" => self.relation(|relation| !relation.parents.is_empty() && !relation.is_partition()),
            "view" => self.relation(|relation| relation.kind == RelationKind::View),
            "matview" => self.relation(|relation| relation.kind == RelationKind::MaterializedView),
            "index" => self.relation(|relation| relation.kind.is_index()),
            "partitioned_index" => self.relation(|relation| relation.kind == RelationKind::PartitionedIndex),
            "composite" => self.relation(|relation| relation.kind == RelationKind::CompositeType),
            "sequence" => self.relation(|relation| relation.kind == RelationKind::Sequence),
            "relation" => self.relation(|relation| relation.kind != RelationKind::CompositeType),
            "query" => self.relation(has_columns),
            "other_table" => self.other(is_table),
            "other_plain" => self.other(is_plain),
            "a_sequence" => {
                let lasting = |relation: &Relation| relation.kind == RelationKind::Sequence && !relation.is_temporary();
                let found = self.any_relation(lasting)?;
                Some(qualified(&found.schema, &found.name))
            }
            "detach" => self.partition(),
            // Chosen before it is named, for the text before the name.
            "of_table" => self.relation(is_table).map(|_| String::new()),
            "of_query" => self.relation(has_columns).map(|_| String::new()),
            "it" => {
                let subject = self.subject()?;
                Some(self.name(subject))
            }
            "this" => self.subject().map(|relation| quote_identifier(&relation.name)),
            "parent" => {
                let parent = *self.subject()?.parents.first()?;
                let parent = self.catalog.get_relation(parent)?;
                Some(self.name(parent))
            }
            _ => None,
        }
    }

    fn column_slot(&mut self, name: &str) -> Option<String> {
        match name {
            "column" => self.column_where(|_, _| true),
            "nullable" => self.column_where(|column, _| !column.not_null),
            "not_null" => self.column_where(|column, _| column.not_null),
            "defaulted" => self.column_where(|column, _| column.default.is_some()),
            "identity" => self.column_where(|column, _| column.identity.is_some()),
            "generated" => self.column_where(|column, _| column.generated.is_some()),
            "integer" => self.column_where(|_, family| family == Family::Integer),
            "text" => self.column_where(|_, family| family == Family::Text),
            "array" => self.column_where(|_, family| family == Family::Array),
            "range" => self.column_where(|_, family| family == Family::Range),
            "columns" => self.columns(3),
            "call" => {
                let is_int = |column: &Column, _| column.sql_type.oid == INT4;
                let column = self.column_where(is_int)?;
                self.catalog.functions_named("public", "f1").next().map(|_| format!("f1({column})"))
            }
            "last" => self.column.as_ref().map(|(name, _)| quote_identifier(name)),
            "change" => {
                let sql_type = self.column.as_ref()?.1;
                let to = types::change_of(self.random, self.catalog, sql_type);
                self.family = types::family_of_sql(self.catalog, &to);
                Some(to)
            }
            "expression" => {
                let column = self.column_where(|_, _| true)?;
                Some(types::expression(self.random, self.family, &column))
            }
            "condition" => {
                let column = self.column_where(|_, _| true)?;
                Some(types::condition(self.random, self.family, &column))
            }
            "reference" => self.reference(),
            "row" => self.row(),
            _ => None,
        }
    }

    fn part_slot(&mut self, name: &str) -> Option<String> {
        match name {
            "constraint" => self.constraint_where(|_| true),
            "check" => self.constraint_where(|kind| matches!(kind, ConstraintKind::Check { .. })),
            "foreign_key" => self.constraint_where(|kind| matches!(kind, ConstraintKind::ForeignKey(_))),
            "own_index" => {
                let relation = self.subject()?;
                let index = *self.random.one_of(&relation.indexes)?;
                self.catalog.get_relation(index).map(|index| quote_identifier(&index.name))
            }
            "trigger" => self.named(|relation| relation.triggers.iter().map(|trigger| &trigger.name).collect()),
            "trigger_on" => self.named_on(|relation| relation.triggers.iter().map(|trigger| &trigger.name).collect()),
            "policy_on" => self.named_on(|relation| relation.policies.iter().map(|policy| &policy.name).collect()),
            "rule_on" => self.named_on(|relation| relation.rules.iter().collect()),
            "constraint_on" => self.named_on(|relation| relation.constraints.iter().map(|one| &one.name).collect()),
            "own_type" => {
                let own = types::user_types(self.catalog);
                self.random.one_of(&own).cloned()
            }
            "own_statistics" => {
                let relation = self.any_relation(is_table)?.oid;
                let (schema, name) = self.catalog.statistics_of(relation).into_iter().next()?;
                Some(qualified(&schema, &name))
            }
            "bound" => self.bound(),
            _ => None,
        }
    }

    fn new_slot(&mut self, name: &str) -> Option<String> {
        match name {
            "new_table" => self.one(TABLES),
            "new_column" => self.one(COLUMNS),
            "new_name" => self.one(OTHERS),
            "new_type" => self.one(&["mood", "\"Mood\"", "app.mood", "positive", "short", "app.positive", "level"]),
            "publication" => self.one(&["p1", "p2"]),
            "type" => Some(self.typed()),
            "value" => Some(self.value()),
            "changing" => Some(types::changing(self.random, self.family)),
            "number" => Some(self.random.below(10).to_string()),
            "columns_of_table" => Some(self.definition()),
            "partitioning" => Some(self.partitioning()),
            _ => None,
        }
    }
}
