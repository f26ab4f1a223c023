//! PRIMARY KEY, UNIQUE and EXCLUDE over an index that was built concurrently.

use super::index::index_made_on;
use super::{Advice, before, everywhere_at_least, list, not_null, one_line, outside_transaction, without};
use crate::fix::Step;
use crate::rule::RuleContext;
use crate::rules::deployment::other_statements::earlier;
use crate::rules::statement::altered::{Altered, WrittenConstraint};
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::{IndexBuild, RelationName};
use pgvet_syntax::ast::{AlterTableAction, Ast, Constraint, ConstraintKind, IndexConstraint, Name, ObjectKind};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

const USING_INDEX: &str = "build a unique index concurrently, then add the constraint with USING INDEX";

const NO_ONLINE_WAY: &str = "PostgreSQL cannot build this index without blocking writes: set a short lock_timeout and \
                             run the statement when there is little traffic, or create a new table with the constraint \
                             and copy the rows into it";

/// The same where no command of ALTER TABLE shows the constraint. PostgreSQL takes an index for a constraint only where it is
/// a unique B-tree.
pub(crate) fn in_words(context: &RuleContext<'_>, builds: &[&IndexBuild]) -> &'static str {
    let is_other = |build: &&IndexBuild| {
        let index = context.after.get_relation(build.index.oid).and_then(|relation| relation.index());
        index.is_some_and(|index| !index.unique || index.method != "btree")
    };
    if builds.iter().any(is_other) { NO_ONLINE_WAY } else { USING_INDEX }
}

/// How to add the constraint of these index builds, which are on the table or on its partitions.
pub(crate) fn advice(
    context: &RuleContext<'_>,
    altered: Altered<'_>,
    written: WrittenConstraint<'_>,
    builds: &[&IndexBuild],
) -> Advice {
    let columns: Vec<SmolStr> = match (written.column, &written.constraint.kind) {
        (Some(column), _) => vec![column.name.text.clone()],
        (None, ConstraintKind::PrimaryKey(key) | ConstraintKind::Unique(key)) => {
            key.columns.iter().map(|column| column.text.clone()).collect()
        }
        _ => Vec::new(),
    };
    let steps = Steps::new(context, written.constraint, columns).filter(|steps| !steps.key.without_overlaps);
    let Some(steps) = steps else { return Advice::new(NO_ONLINE_WAY) };
    let mut first = Vec::new();
    if let Some(column) = written.column {
        let table = sql_name(context, altered.table);
        if let Some(definition) = without(context, column.range, written.constraint.range) {
            first.push(format!("ALTER TABLE {table} ADD COLUMN {definition}"));
        }
    }
    if altered.table.kind == RelationKind::PartitionedTable {
        return steps.by_partition(altered.table, first, builds);
    }
    let index = written.constraint.name.as_ref().map(|name| name.text.clone());
    let Some(index) = index.or_else(|| builds.first().map(|build| build.index.name.clone())) else {
        return Advice::new(USING_INDEX);
    };
    let attributes = attributes(written.constraint);
    let sentence = format!(
        "first build a unique index concurrently, {}, then add the constraint with USING INDEX:",
        outside_transaction(context)
    );
    let word = steps.word;
    if word == "PRIMARY KEY" {
        first.extend(not_null::steps_for_key(context, altered.table, &steps.columns));
    }
    let advice = Advice::new(sentence).all(first).all(steps.with_index(altered.table, &index, attributes));
    // Before 12 nothing avoids that a primary key over nullable columns reads the table.
    let advice = if word == "UNIQUE" || everywhere_at_least(context, 12) { advice.complete(context) } else { advice };
    if word == "PRIMARY KEY" && before(context, altered.table).is_none_or(|table| !table.known) {
        return advice.then(
            "the steps that set NOT NULL are needed only if the columns can be null, and no migration \
                            shows whether they can",
        );
    }
    advice
}

/// The index of a key of one column, and the constraint over it.
pub(super) fn of_column(
    context: &RuleContext<'_>,
    table: &RelationName,
    column: &Name,
    constraint: &Constraint,
    index: &str,
) -> Option<[String; 2]> {
    let steps = Steps::new(context, constraint, vec![column.text.clone()])?;
    Some(steps.with_index(table, index, attributes(constraint)))
}

/// DEFERRABLE and similar options.
fn attributes(constraint: &Constraint) -> &'static str {
    match (constraint.deferrable, constraint.initially_deferred) {
        (true, true) => " DEFERRABLE INITIALLY DEFERRED",
        (true, false) => " DEFERRABLE",
        _ => "",
    }
}

struct Steps<'s, 'a> {
    context: &'s RuleContext<'a>,
    word: &'static str,
    key: &'s IndexConstraint,
    columns: Vec<SmolStr>,
}

impl<'s, 'a> Steps<'s, 'a> {
    /// `None` where the constraint is no key.
    fn new(context: &'s RuleContext<'a>, constraint: &'s Constraint, columns: Vec<SmolStr>) -> Option<Self> {
        let (word, key) = match &constraint.kind {
            ConstraintKind::PrimaryKey(key) => ("PRIMARY KEY", key),
            ConstraintKind::Unique(key) => ("UNIQUE", key),
            _ => return None,
        };
        Some(Self { context, word, key, columns })
    }

    /// What follows the name of the table in CREATE INDEX: `(a, b) INCLUDE (c) NULLS NOT DISTINCT WITH (...)`.
    fn of_index(&self) -> String {
        let tablespace = self.tablespace().map_or_else(String::new, |name| format!(" TABLESPACE {name}"));
        format!("{}{}{}{tablespace}", self.columns(), self.distinct(), self.parameters())
    }

    /// What follows ADD CONSTRAINT and the name: `UNIQUE NULLS NOT DISTINCT (a, b) INCLUDE (c) WITH (...)`.
    fn of_constraint(&self) -> String {
        let tablespace = self.tablespace().map_or_else(String::new, |name| format!(" USING INDEX TABLESPACE {name}"));
        format!("{}{} {}{}{tablespace}", self.word, self.distinct(), self.columns(), self.parameters())
    }

    fn distinct(&self) -> &'static str {
        if self.key.nulls_not_distinct { " NULLS NOT DISTINCT" } else { "" }
    }

    fn parameters(&self) -> String {
        let with = self.key.parameters.and_then(|range| one_line(self.context, range));
        with.map_or_else(String::new, |with| format!(" {with}"))
    }

    fn tablespace(&self) -> Option<String> {
        self.key.tablespace.as_ref().map(|name| identifier(name))
    }

    /// `(a, b) INCLUDE (c)`.
    fn columns(&self) -> String {
        let columns = format!("({})", list(&self.columns));
        if self.key.including.is_empty() {
            return columns;
        }
        let included: Vec<SmolStr> = self.key.including.iter().map(|name| name.text.clone()).collect();
        format!("{columns} INCLUDE ({})", list(&included))
    }

    fn with_index(&self, table: &RelationName, index: &str, attributes: &str) -> [String; 2] {
        // A migration of its own that comes before this one still finds what this one drops.
        let is_taken = self.context.before.relation_named(&table.schema, index).is_some()
            || earlier(self.context).any(|ast| drops_index(ast, index));
        let relation = before(self.context, table).filter(|relation| relation.parents.is_empty());
        let old_key = relation.and_then(|relation| relation.primary_key());
        // A table has one primary key; its index may have the name that the new one is to get.
        let dropped = old_key.filter(|_| self.word == "PRIMARY KEY");
        let dropped = dropped.map_or_else(String::new, |key| format!("DROP CONSTRAINT {}, ", identifier(&key.name)));
        let built = if is_taken { identifier(&format!("{index}_new")) } else { identifier(index) };
        let (table, name) = (sql_name(self.context, table), identifier(index));
        [
            format!("CREATE UNIQUE INDEX CONCURRENTLY {built} ON {table} {}", self.of_index()),
            format!("ALTER TABLE {table} {dropped}ADD CONSTRAINT {name} {} USING INDEX {built}{attributes}", self.word),
        ]
    }

    /// USING INDEX is refused for the parent; its own constraint is made ON ONLY it, and valid when every partition's is
    /// attached.
    ///
    /// Source: PostgreSQL 18 documentation, "Table Partitioning", "Partition Maintenance".
    fn by_partition(&self, parent: &RelationName, first: Vec<String>, builds: &[&IndexBuild]) -> Advice {
        let direct = builds.iter().find(|build| self.is_direct(build, parent));
        let (Some(build), Some(index)) = (direct, index_made_on(self.context, parent.oid)) else {
            return Advice::new(
                "build a unique index concurrently on each partition, and add the constraint to the partition with \
                 USING INDEX. Then add the constraint to the parent with ALTER TABLE ONLY, and attach the partitions' \
                 indexes",
            );
        };
        let table = sql_name(self.context, parent);
        let constraint = identifier(&index.name);
        let mut steps = first;
        if self.word == "PRIMARY KEY" {
            steps.extend(not_null::steps_for_key(self.context, parent, &self.columns));
        }
        steps.extend(self.with_index(&build.table, &build.index.name, ""));
        steps.push(format!("ALTER TABLE ONLY {table} ADD CONSTRAINT {constraint} {}", self.of_constraint()));
        let (upper, lower) = (sql_name(self.context, &index), sql_name(self.context, &build.index));
        steps.push(format!("ALTER INDEX {upper} ATTACH PARTITION {lower}"));
        let sentence = format!(
            "build a unique index concurrently on each partition, {}, and add the constraint to the partition with \
             USING INDEX. Then add the constraint to the parent with ALTER TABLE ONLY, and attach the partitions' \
             indexes:",
            outside_transaction(self.context)
        );
        let advice = Advice::new(sentence).all(steps);
        match builds.len() {
            0 | 1 => advice.complete(self.context),
            count => {
                let advice = advice.then(format!(
                    "do the same for the index and constraint of the other partitions ({} \
                                         more)",
                    count - 1
                ));
                match self.all_partitions(parent, builds, &index) {
                    Some(steps) => advice.with_steps(self.context, steps),
                    None => advice,
                }
            }
        }
    }

    /// The same for every partition, where none of them is partitioned itself.
    fn all_partitions(&self, parent: &RelationName, builds: &[&IndexBuild], index: &RelationName) -> Option<Vec<Step>> {
        let all_known = before(self.context, parent).is_some_and(|parent| parent.known && !parent.unknown_parts);
        if !all_known || !builds.iter().all(|build| self.is_direct(build, parent)) || !self.first_is_empty() {
            return None;
        }
        let (table, name) = (sql_name(self.context, parent), identifier(&index.name));
        let mut sql = Vec::new();
        if self.word == "PRIMARY KEY" {
            sql.extend(not_null::steps_for_key(self.context, parent, &self.columns));
        }
        sql.extend(builds.iter().flat_map(|build| self.with_index(&build.table, &build.index.name, "")));
        sql.push(format!("ALTER TABLE ONLY {table} ADD CONSTRAINT {name} {}", self.of_constraint()));
        let upper = sql_name(self.context, index);
        let attach = |build: &&IndexBuild| {
            format!("ALTER INDEX {upper} ATTACH PARTITION {}", sql_name(self.context, &build.index))
        };
        sql.extend(builds.iter().map(attach));
        Some(sql.into_iter().map(Step::new).collect())
    }

    /// Whether it is built on a partition of the table itself, and not further below.
    fn is_direct(&self, build: &IndexBuild, parent: &RelationName) -> bool {
        let relation = self.context.before.get_relation(build.table.oid);
        relation.is_some_and(|relation| relation.parents.contains(&parent.oid))
    }

    /// Whether the constraint is added to existing columns.
    fn first_is_empty(&self) -> bool {
        let table = |column: &SmolStr| {
            let altered = Altered::of(self.context)?;
            let relation = before(self.context, altered.table)?;
            relation.column(column)
        };
        self.columns.iter().all(|column| table(column).is_some())
    }
}

/// The text of a constraint on one line, under a name.
pub(crate) fn named(context: &RuleContext<'_>, written: WrittenConstraint<'_>, name: &str) -> Option<String> {
    let Constraint { keyword, range, .. } = written.constraint;
    let clause = one_line(context, TextRange::new(keyword.start, range.end))?;
    Some(format!("CONSTRAINT {} {clause}", identifier(name)))
}

/// Whether the statement drops the index of that name, or the constraint that it has the name from.
fn drops_index(ast: &Ast, name: &str) -> bool {
    match ast {
        Ast::AlterTable(alter) => alter.commands.iter().any(|command| {
            matches!(&command.action, AlterTableAction::DropConstraint { name: dropped, .. } if dropped.text == name)
        }),
        Ast::Drop(drop) if drop.kind == ObjectKind::Index => {
            drop.objects.iter().any(|object| object.name.name.text == name)
        }
        _ => false,
    }
}
