//! Building and dropping indexes while the table is in use.

use super::{Advice, before, one_line, outside_transaction};
use crate::fix::Step;
use crate::rule::RuleContext;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{Oid, Relation, RelationKind};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::CreateIndex;
use pgvet_syntax::source::TextRange;

/// CREATE INDEX CONCURRENTLY.
pub(crate) fn create_concurrently(context: &RuleContext<'_>, statement: &CreateIndex) -> Advice {
    let head = TextRange::new(statement.keyword.start, statement.index_keyword.end);
    let tail = TextRange::new(statement.index_keyword.end, context.statement.range.end);
    let sentence = format!("build the index concurrently, {}:", outside_transaction(context));
    match (one_line(context, head), tail_line(context, tail)) {
        (Some(head), Some(tail)) => Advice::new(sentence).sql(format!("{head} CONCURRENTLY {tail}")).complete(context),
        _ => Advice::new(
            "build the index with CREATE INDEX CONCURRENTLY, outside of functions, DO blocks and transactions",
        ),
    }
    .then("a build that fails leaves an invalid index: drop it before the next attempt")
}

/// The tokens behind a position, which need not begin at one.
fn tail_line(context: &RuleContext<'_>, tail: TextRange) -> Option<String> {
    let first = context.statement.tokens.iter().find(|token| token.range.start >= tail.start)?;
    one_line(context, TextRange::new(first.range.start, tail.end))
}

/// The index on the parent alone, those of the partitions concurrently, then attached.
///
/// Source: PostgreSQL 18 documentation, "Table Partitioning", "Partition Maintenance".
pub(crate) fn create_by_partition(
    context: &RuleContext<'_>,
    statement: &CreateIndex,
    parent: &RelationName,
    partition: &RelationName,
    partitions: usize,
) -> Advice {
    let advice = Advice::new(format!(
        "create the index ON ONLY `{}`, build an index concurrently on each partition ({}), and attach these indexes:",
        parent.name,
        outside_transaction(context)
    ));
    let unique = if statement.unique { "UNIQUE " } else { "" };
    let keys = tail_line(context, TextRange::new(statement.table.range().end, context.statement.range.end));
    let path = path_to(context, parent.oid, partition.oid);
    let named: Option<Vec<(String, RelationName)>> = path
        .iter()
        .map(|table| {
            let relation = context.after.get_relation(*table)?;
            Some((sql_name(context, &relation_name(relation, parent)), index_made_on(context, *table)?))
        })
        .collect();
    let (Some(keys), Some(named)) = (keys, named) else {
        return advice.then("CREATE INDEX ... ON ONLY, CREATE INDEX CONCURRENTLY, ALTER INDEX ... ATTACH PARTITION");
    };
    let mut statements = Vec::new();
    for (at, (table, index)) in named.iter().enumerate() {
        let (concurrently, only) = if at + 1 == named.len() { ("CONCURRENTLY ", "") } else { ("", "ONLY ") };
        let index = identifier(&index.name);
        statements.push(format!("CREATE {unique}INDEX {concurrently}{index} ON {only}{table} {keys}"));
    }
    for pair in named.windows(2).rev() {
        if let [(_, upper), (_, lower)] = pair {
            let (upper, lower) = (sql_name(context, upper), sql_name(context, lower));
            statements.push(format!("ALTER INDEX {upper} ATTACH PARTITION {lower}"));
        }
    }
    let advice = advice.all(statements);
    let steps = by_partition(context, unique, &keys).unwrap_or_default();
    match partitions {
        0 | 1 => advice,
        2 => advice.then("do the same for the other partition"),
        _ => advice.then(format!("do the same for the other {} partitions", partitions - 1)),
    }
    .with_steps(context, steps)
}

/// The same for every partition: each index that the statement makes, those of partitioned tables first, then attached
/// from below.
fn by_partition(context: &RuleContext<'_>, unique: &str, keys: &str) -> Option<Vec<Step>> {
    let mut builds = Vec::new();
    let mut attachments = Vec::new();
    for index in &context.effects.creates {
        let table = context.after.get_relation(context.after.get_relation(index.oid)?.index()?.table)?;
        if !table.known || table.unknown_parts {
            return None;
        }
        let partitioned = table.kind == RelationKind::PartitionedTable;
        let (concurrently, only) = if partitioned { ("", "ONLY ") } else { ("CONCURRENTLY ", "") };
        let on = sql_name(context, &relation_name(table, index));
        let build =
            Step::new(format!("CREATE {unique}INDEX {concurrently}{} ON {only}{on} {keys}", identifier(&index.name)));
        builds.push((partitioned, build));
        let above = table.parents.first().and_then(|parent| index_made_on(context, *parent));
        if let Some(above) = above {
            let (upper, lower) = (sql_name(context, &above), sql_name(context, index));
            attachments.push(Step::new(format!("ALTER INDEX {upper} ATTACH PARTITION {lower}")));
        }
    }
    builds.sort_by_key(|(partitioned, _)| !partitioned);
    Some(builds.into_iter().map(|(_, build)| build).chain(attachments.into_iter().rev()).collect())
}

/// A table under its own name.
fn relation_name(table: &Relation, like: &RelationName) -> RelationName {
    RelationName { visibility: like.visibility, ..RelationName::existing(table) }
}

/// The tables from a partitioned table down to one of its partitions.
fn path_to(context: &RuleContext<'_>, parent: Oid, partition: Oid) -> Vec<Oid> {
    let mut path = vec![partition];
    while let Some(&first) = path.first() {
        let above = context.before.get_relation(first).and_then(|relation| relation.parents.first());
        match above {
            Some(above) if first != parent && !path.contains(above) => path.insert(0, *above),
            _ => break,
        }
    }
    path
}

/// The index that the statement makes on a table.
pub(crate) fn index_made_on(context: &RuleContext<'_>, table: Oid) -> Option<RelationName> {
    let on_table = |index: &&RelationName| {
        let made = context.after.get_relation(index.oid).and_then(|relation| relation.index());
        made.is_some_and(|made| made.table == table)
    };
    context.effects.creates.iter().find(on_table).cloned()
}

/// DROP INDEX CONCURRENTLY, which takes one index at a time.
pub(crate) fn drop_concurrently(context: &RuleContext<'_>, indexes: &[String], if_exists: bool) -> Advice {
    let if_exists = if if_exists { "IF EXISTS " } else { "" };
    let sentence = match indexes.len() {
        1 => format!("drop the index concurrently, {}:", outside_transaction(context)),
        _ => format!("drop the indexes concurrently, one after the other, {}:", outside_transaction(context)),
    };
    let drops = indexes.iter().map(|index| format!("DROP INDEX CONCURRENTLY {if_exists}{index}"));
    Advice::new(sentence).all(drops).complete(context)
}

/// Whether PostgreSQL refuses to drop or rebuild the index concurrently.
pub(crate) fn is_partitioned(context: &RuleContext<'_>, index: &RelationName) -> bool {
    before(context, index).is_some_and(|index| index.kind == RelationKind::PartitionedIndex)
}
