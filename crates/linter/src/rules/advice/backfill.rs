//! Values for old rows, some thousand rows in a transaction.

use super::before;
use crate::fix::Step;
use crate::rule::RuleContext;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{Relation, RelationKind};
use pgvet_model::effect::RelationName;

/// Rows of one transaction: locked for some ten milliseconds, and no replica falls behind.
const BATCH: u32 = 5000;

/// Pages of one transaction, if there is no key to follow: about as many rows.
const PAGES: u32 = 64;

/// Sets `assignment` in the rows that miss it; `None` where there is no way to go through the table in parts.
pub(crate) fn step(context: &RuleContext<'_>, table: &RelationName, assignment: &str, missing: &str) -> Option<Step> {
    let relation = before(context, table).filter(|relation| relation.known)?;
    let sql_table = sql_name(context, table);
    let block = match key(relation) {
        Some(key) => along_key(&sql_table, &identifier(key), assignment, missing),
        None if relation.kind == RelationKind::Table && relation.children.is_empty() => {
            along_pages(&sql_table, assignment, missing)
        }
        None => return None,
    };
    let note = format!(
        "Decide how many rows each transaction changes, and run this when there is little traffic. It commits after \
         each batch, so it cannot run in a transaction. If it stops, run it again: it skips the rows that are done. \
         Run VACUUM (ANALYZE) {sql_table} afterwards."
    );
    let fired = if relation.triggers.is_empty() { "" } else { " Each row that it changes fires the table's triggers." };
    Some(Step::new(block).note(note + fired))
}

/// The one column of the primary key.
fn key(relation: &Relation) -> Option<&str> {
    match relation.primary_key()?.columns() {
        [column] => Some(column),
        _ => None,
    }
}

fn along_key(table: &str, key: &str, assignment: &str, missing: &str) -> String {
    format!(
        "DO $backfill$
DECLARE
    backfill_size constant integer := {BATCH};
    backfill_done_to {table}.{key}%TYPE;
    backfill_next_to {table}.{key}%TYPE;
BEGIN
    LOOP
        SELECT backfill.{key} INTO backfill_next_to
        FROM (
            SELECT {key} FROM {table} WHERE backfill_done_to IS NULL OR {key} > backfill_done_to
            ORDER BY {key} LIMIT backfill_size
        ) AS backfill
        ORDER BY backfill.{key} DESC LIMIT 1;
        EXIT WHEN NOT FOUND;
        UPDATE {table} SET {assignment}
        WHERE (backfill_done_to IS NULL OR {key} > backfill_done_to) AND {key} <= backfill_next_to AND {missing};
        COMMIT;
        backfill_done_to := backfill_next_to;
    END LOOP;
END
$backfill$"
    )
}

/// Rows that others update meanwhile may move to pages that were done, so it goes through the table until nothing is left.
fn along_pages(table: &str, assignment: &str, missing: &str) -> String {
    let literal = table.replace('\'', "''");
    format!(
        "DO $backfill$
DECLARE
    backfill_pages constant integer := {PAGES};
    backfill_page bigint;
    backfill_changed bigint;
    backfill_changed_now bigint;
BEGIN
    LOOP
        backfill_page := 0;
        backfill_changed := 0;
        WHILE backfill_page <= pg_relation_size('{literal}') / current_setting('block_size')::integer LOOP
            UPDATE {table} SET {assignment}
            WHERE ctid >= format('(%s,0)', backfill_page)::tid
                AND ctid < format('(%s,0)', backfill_page + backfill_pages)::tid AND {missing};
            GET DIAGNOSTICS backfill_changed_now = ROW_COUNT;
            backfill_changed := backfill_changed + backfill_changed_now;
            backfill_page := backfill_page + backfill_pages;
            COMMIT;
        END LOOP;
        EXIT WHEN backfill_changed = 0;
    END LOOP;
END
$backfill$"
    )
}
