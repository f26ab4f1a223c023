//! Stable oids for built-in types that have none.
//!
//! PostgreSQL gives oids from 10000 on to what `initdb` makes (row types of system relations, domains of
//! `information_schema`), so they differ between servers. They are renumbered, by name, from the same number on.

use super::server::Server;
use std::collections::{BTreeSet, HashMap};

/// `FirstGenbkiObjectId` (src/include/access/transam.h).
const FIRST_UNSTABLE: u32 = 10000;

/// For every server, from its own oid to the stable one.
pub(crate) struct OidMap(HashMap<(u8, u32), u32>);

impl OidMap {
    pub(crate) fn read(servers: &[Server]) -> Result<Self, String> {
        let mut names = BTreeSet::new();
        let mut found = Vec::new();
        for server in servers {
            let sql = format!(
                "SELECT oid, typnamespace::regnamespace, typname FROM pg_type WHERE oid BETWEEN {FIRST_UNSTABLE} AND 16383"
            );
            for row in server.query("postgres", &sql)? {
                let [oid, schema, name] = row.try_into().map_err(|_| "pg_type has other columns than asked for")?;
                let oid: u32 = oid.parse().map_err(|_| format!("{oid} is no oid"))?;
                names.insert((schema.clone(), name.clone()));
                found.push(((server.major(), oid), (schema, name)));
            }
        }
        let numbers: HashMap<_, u32> = names.into_iter().zip(FIRST_UNSTABLE..).collect();
        Ok(Self(found.into_iter().map(|(key, name)| (key, numbers[&name])).collect()))
    }

    /// Replaces every oid in a text such as `23,10012`.
    pub(crate) fn stable(&self, major: u8, text: &str) -> String {
        let stable = |oid: &str| match oid.parse::<u32>() {
            Ok(number) => self.0.get(&(major, number)).map_or_else(|| oid.to_owned(), u32::to_string),
            Err(_) => oid.to_owned(),
        };
        text.split(',').map(stable).collect::<Vec<_>>().join(",")
    }
}
