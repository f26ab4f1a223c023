//! Values for old rows, some thousand rows in a transaction.

use super::before;
use crate::catalog::Relation;
use crate::effect::{RelationKind, RelationName};
use crate::fix::Step;
use crate::rule::RuleContext;
use crate::rules::text::{identifier, sql_name};

/// Rows of one transaction: locked for some ten milliseconds, and no replica falls behind.
const BATCH: u32 = 5000;

/// Pages of one transaction, where there is no key to go along: about as many rows.
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
        "Decide how many rows one transaction changes, and run this when there is little traffic. It commits as it goes, \
         cannot run in a transaction, and goes on where it stopped when it is run again. Run VACUUM (ANALYZE) {sql_table} \
         afterwards."
    );
    Some(Step::new(block).note(note))
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
    batch_size constant integer := {BATCH};
    done_to {table}.{key}%TYPE;
    next_to {table}.{key}%TYPE;
BEGIN
    LOOP
        SELECT batch.{key} INTO next_to
        FROM (SELECT {key} FROM {table} WHERE done_to IS NULL OR {key} > done_to ORDER BY {key} LIMIT batch_size) AS batch
        ORDER BY batch.{key} DESC LIMIT 1;
        EXIT WHEN NOT FOUND;
        UPDATE {table} SET {assignment}
        WHERE (done_to IS NULL OR {key} > done_to) AND {key} <= next_to AND {missing};
        COMMIT;
        done_to := next_to;
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
    batch_pages constant integer := {PAGES};
    page bigint;
    changed bigint;
    changed_now bigint;
BEGIN
    LOOP
        page := 0;
        changed := 0;
        WHILE page <= pg_relation_size('{literal}') / current_setting('block_size')::integer LOOP
            UPDATE {table} SET {assignment}
            WHERE ctid >= format('(%s,0)', page)::tid AND ctid < format('(%s,0)', page + batch_pages)::tid AND {missing};
            GET DIAGNOSTICS changed_now = ROW_COUNT;
            changed := changed + changed_now;
            page := page + batch_pages;
            COMMIT;
        END LOOP;
        EXIT WHEN changed = 0;
    END LOOP;
END
$backfill$"
    )
}
