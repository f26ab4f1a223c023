//! The schema that migrations have made, for `pgvet schema`.

use super::plural;
use crate::inert;
use pgvet_schema::{Relation, Schema, lines, mermaid, script};
use serde::Serialize;
use std::io::{self, Write};

/// The schemas of the databases of a run.
#[derive(Debug, Serialize)]
pub(crate) struct SchemaReport {
    schema_version: u32,
    databases: Vec<DatabaseSchema>,
}

/// The schema of one database.
#[derive(Debug, Serialize)]
pub(crate) struct DatabaseSchema {
    pub(crate) folder: String,
    /// The last migration that was replayed.
    pub(crate) as_of: Option<String>,
    #[serde(flatten)]
    pub(crate) schema: Schema,
}

impl SchemaReport {
    pub(crate) fn new(databases: Vec<DatabaseSchema>) -> Self {
        Self { schema_version: 2, databases }
    }

    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// SQL that makes each schema in an empty database.
    pub(crate) fn write_sql(&self, out: &mut dyn Write) -> io::Result<()> {
        self.each(out, "--", |database, out| write!(out, "{}", script(&database.schema).text))
    }

    /// A Mermaid diagram for each schema.
    pub(crate) fn write_mermaid(&self, out: &mut dyn Write) -> io::Result<()> {
        self.each(out, "%%", |database, out| write!(out, "{}", mermaid(&database.schema)))
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.each(out, "--", |database, out| {
            database.schema.relations.iter().try_for_each(|relation| write_relation(relation, out))?;
            for own in &database.schema.enums {
                let name = inert::line(&own.name.to_string()).into_owned();
                writeln!(out, "\nenum {name}: {}", inert::line(&own.labels.join(", ")))?;
            }
            let gaps = &database.schema.gaps;
            if !gaps.is_empty() {
                writeln!(out)?;
            }
            gaps.iter().try_for_each(|gap| writeln!(out, "-- incomplete: {}", inert::line(gap)))
        })
    }

    /// Each database below a line that says as of when.
    fn each(
        &self,
        out: &mut dyn Write,
        comment: &str,
        write: impl Fn(&DatabaseSchema, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        for (at, database) in self.databases.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            let as_of = match &database.as_of {
                Some(path) => format!("as of {}", inert::line(path)),
                None => "without any migration".to_owned(),
            };
            let relations = plural(database.schema.relations.len(), "relation");
            writeln!(out, "{comment} {relations} {as_of}, PostgreSQL {}", database.schema.pg_version)?;
            write(database, out)?;
        }
        Ok(())
    }
}

fn write_relation(relation: &Relation, out: &mut dyn Write) -> io::Result<()> {
    let mut title = format!("{} {}", relation.kind.noun(), relation.name);
    if !relation.parents.is_empty() {
        let parents: Vec<String> = relation.parents.iter().map(ToString::to_string).collect();
        title = format!("{title}, partition or child of {}", parents.join(", "));
    }
    if !relation.created_by_migrations {
        title = format!("{title} (not created by a migration: incomplete)");
    }
    writeln!(out, "\n{}", inert::line(&title))?;
    lines(relation).iter().try_for_each(|line| writeln!(out, "  {}", inert::line(line)))
}
