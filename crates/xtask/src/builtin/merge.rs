//! The same query on every server, merged into rows with the majors that have them.

use super::Row;
use super::oids::OidMap;
use super::server::Server;
use super::write::{Column, Table};
use std::collections::BTreeMap;

/// A row, and the oldest and newest server that has it.
pub(crate) struct Merged {
    pub(crate) row: Row,
    /// The majors that lack it on the older and on the newer side; `None` when the oldest and newest server have it.
    pub(crate) since: Option<u8>,
    pub(crate) until: Option<u8>,
}

pub(crate) fn read(servers: &[Server], oids: &OidMap, table: &Table) -> Result<Vec<Merged>, String> {
    let majors = servers.iter().map(Server::major);
    let (Some(oldest), Some(newest)) = (majors.clone().min(), majors.max()) else {
        return Err("no server given".to_owned());
    };
    let mut merged: BTreeMap<Row, (Row, Vec<u8>)> = BTreeMap::new();
    for server in servers {
        for mut row in server.query("postgres", table.sql)? {
            if row.len() != table.columns.len() {
                return Err(format!("{} columns instead of {} for {}", row.len(), table.columns.len(), table.name));
            }
            for (text, column) in row.iter_mut().zip(table.columns) {
                if matches!(column, Column::Oid | Column::Oids) {
                    *text = oids.stable(server.major(), text);
                }
            }
            let key = table.key.iter().map(|column| sort_text(&row[*column], table.columns[*column])).collect();
            let (newest_row, majors) = merged.entry(key).or_insert_with(|| (row.clone(), Vec::new()));
            // Where a column outside the key differs, the newest server is right.
            *newest_row = row;
            majors.push(server.major());
        }
    }
    Ok(merged
        .into_values()
        .map(|(row, majors)| Merged {
            row,
            since: majors.first().copied().filter(|major| *major != oldest),
            until: majors.last().copied().filter(|major| *major != newest),
        })
        .collect())
}

/// Oids sort as numbers.
fn sort_text(value: &str, column: Column) -> String {
    if column == Column::Oid { format!("{value:0>10}") } else { value.to_owned() }
}
