//! The schema that migrations have made, for `pgvet schema`.

mod read;

use super::plural;
use crate::inert;
use pgvet_model::catalog::Catalog;
use pgvet_model::version::{PgVersion, Target};
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
    folder: String,
    /// The last migration that was replayed.
    as_of: Option<String>,
    pg_version: PgVersion,
    relations: Vec<Relation>,
    enums: Vec<Enum>,
}

/// A table, a view or a sequence.
#[derive(Debug, Serialize)]
struct Relation {
    schema: String,
    name: String,
    kind: &'static str,
    /// Whether a migration creates it; otherwise only what later migrations show is known.
    created_by_migrations: bool,
    columns: Vec<Column>,
    constraints: Vec<Constraint>,
    indexes: Vec<Index>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    partition_of: Vec<String>,
    row_level_security: bool,
}

#[derive(Debug, Serialize)]
struct Column {
    name: String,
    r#type: String,
    not_null: bool,
    /// The default, or `(expression)` if it is not a constant or a simple call.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    generated: bool,
}

#[derive(Debug, Serialize)]
struct Constraint {
    name: String,
    kind: &'static str,
    columns: Vec<String>,
    /// Whether all rows have been checked.
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<Reference>,
}

#[derive(Debug, Serialize)]
struct Reference {
    relation: String,
    columns: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Index {
    name: String,
    unique: bool,
    valid: bool,
    method: String,
    /// `(expression)` stands for a key that is not a column.
    keys: Vec<String>,
    partial: bool,
}

#[derive(Debug, Serialize)]
struct Enum {
    schema: String,
    name: String,
    labels: Vec<String>,
}

impl DatabaseSchema {
    pub(crate) fn new(
        folder: String,
        as_of: Option<String>,
        pg_version: PgVersion,
        catalog: &Catalog,
        target: &Target,
    ) -> Self {
        let (relations, enums) = read::read(catalog, target);
        Self { folder, as_of, pg_version, relations, enums }
    }
}

impl SchemaReport {
    /// `wanted` are names of tables; empty: all.
    pub(crate) fn new(mut databases: Vec<DatabaseSchema>, wanted: &[String]) -> Self {
        let is_wanted = |relation: &Relation| {
            let qualified = format!("{}.{}", relation.schema, relation.name);
            wanted.iter().any(|name| *name == relation.name || *name == qualified)
        };
        if !wanted.is_empty() {
            databases.iter_mut().for_each(|database| database.relations.retain(is_wanted));
        }
        Self { schema_version: 1, databases }
    }

    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (at, database) in self.databases.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            let as_of = match &database.as_of {
                Some(path) => format!("as of {}", inert::line(path)),
                None => "without any migration".to_owned(),
            };
            let relations = plural(database.relations.len(), "relation");
            writeln!(out, "-- {relations} {as_of}, PostgreSQL {}", database.pg_version)?;
            for relation in &database.relations {
                relation.write(out)?;
            }
            for own in &database.enums {
                let name = inert::line(&format!("{}.{}", own.schema, own.name)).into_owned();
                writeln!(out, "\nenum {name}: {}", inert::line(&own.labels.join(", ")))?;
            }
        }
        Ok(())
    }
}

impl Relation {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut title = format!("{} {}.{}", self.kind, self.schema, self.name);
        if !self.partition_of.is_empty() {
            title = format!("{title}, partition or child of {}", self.partition_of.join(", "));
        }
        if !self.created_by_migrations {
            title = format!("{title} (not created by a migration: incomplete)");
        }
        writeln!(out, "\n{}", inert::line(&title))?;
        self.lines().iter().try_for_each(|line| writeln!(out, "  {}", inert::line(line)))
    }

    /// A line for each part.
    fn lines(&self) -> Vec<String> {
        let width = self.columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0);
        // The index of a constraint has its name.
        let is_own = |index: &&Index| !self.constraints.iter().any(|constraint| constraint.name == index.name);
        let columns = self.columns.iter().map(|column| column.line(width));
        let constraints = self.constraints.iter().map(Constraint::line);
        let indexes = self.indexes.iter().filter(is_own).map(Index::line);
        let triggers = self.triggers.iter().map(|trigger| format!("trigger {trigger}"));
        let security = self.row_level_security.then(|| "row-level security".to_owned());
        columns.chain(constraints).chain(indexes).chain(triggers).chain(security).collect()
    }
}

impl Column {
    fn line(&self, width: usize) -> String {
        let mut parts = vec![format!("{:width$}  {}", self.name, self.r#type)];
        parts.extend(self.not_null.then(|| "not null".to_owned()));
        parts.extend(self.identity.map(|identity| format!("generated {identity} as identity")));
        let word = if self.generated { "generated as" } else { "default" };
        parts.extend(self.default.as_ref().map(|default| format!("{word} {default}")));
        parts.join(" ")
    }
}

impl Constraint {
    fn line(&self) -> String {
        let mut parts = vec![format!("{} {} ({})", self.kind, self.name, self.columns.join(", "))];
        let reference = |to: &Reference| format!("references {} ({})", to.relation, to.columns.join(", "));
        parts.extend(self.references.as_ref().map(reference));
        parts.extend((!self.valid).then(|| "not valid".to_owned()));
        parts.join(" ")
    }
}

impl Index {
    fn line(&self) -> String {
        let unique = if self.unique { "unique " } else { "" };
        let mut parts = vec![format!("{unique}index {} using {} ({})", self.name, self.method, self.keys.join(", "))];
        parts.extend(self.partial.then(|| "where ...".to_owned()));
        parts.extend((!self.valid).then(|| "invalid".to_owned()));
        parts.join(" ")
    }
}
