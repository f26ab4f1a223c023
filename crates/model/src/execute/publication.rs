//! CREATE PUBLICATION and ALTER PUBLICATION.

use super::{Executor, Knowledge, Run, fail};
use crate::catalog::{Oid, Publication, RelationKind};
use crate::effect::{ChangeAction, ChangedObject, DataChangeKind, LockCause};
use pgvet_syntax::ast::{
    AlterPublication, CreatePublication, DefElem, DefValue, Literal, LockMode, PublicationAction, PublicationObject,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// A table of a publication with its column list.
type PublishedTable = (Oid, Vec<SmolStr>);

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/publicationcmds.c`, `CreatePublication`.
    pub(super) fn create_publication(&mut self, create: &CreatePublication) -> Run {
        let name = create.name.text.clone();
        if self.catalog.publication(&name).is_some() {
            return fail("42710", format!("publication \"{name}\" already exists"), create.name.range);
        }
        let (tables, schemas) = self.publication_objects(&create.objects)?;
        let all_tables = create.all_tables;
        let mut publication = Publication {
            name,
            all_tables,
            schemas,
            tables: tables.into_iter().collect(),
            updates: true,
            deletes: true,
        };
        set_options(&mut publication, &create.options);
        self.catalog.set_publication(publication);
        let object = ChangedObject::Publication { name: create.name.text.clone() };
        self.change_object(object, ChangeAction::Create, create.name.range);
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/publicationcmds.c`, `AlterPublicationTables`.
    pub(super) fn alter_publication(&mut self, alter: &AlterPublication) -> Run {
        let name = &alter.name;
        if self.catalog.publication(&name.text).is_none() && self.knowledge == Knowledge::Everything {
            return fail("42704", format!("publication \"{}\" does not exist", name.text), name.range);
        }
        let (tables, schemas) = self.publication_objects(&alter.objects)?;
        let Some(mut publication) = self.catalog.publication(&name.text).map(|known| (**known).clone()) else {
            return Ok(());
        };
        if publication.all_tables && !alter.objects.is_empty() {
            let reason = format!("publication \"{}\" is defined as FOR ALL TABLES", name.text);
            return fail("55000", reason, name.range);
        }
        let action = match alter.action {
            PublicationAction::Add | PublicationAction::Set => ChangeAction::Alter,
            PublicationAction::Drop => ChangeAction::Drop,
        };
        self.change_object(ChangedObject::Publication { name: name.text.clone() }, action, name.range);
        let member = |oid: Oid| publication.tables.contains_key(&oid);
        match alter.action {
            PublicationAction::Add => {
                if let Some((oid, _)) = tables.iter().find(|(oid, _)| member(*oid)) {
                    let table = &self.catalog.relation(*oid).name;
                    let reason = format!("relation \"{table}\" is already member of publication \"{}\"", name.text);
                    return fail("42710", reason, name.range);
                }
                publication.tables.extend(tables);
                publication.schemas.extend(schemas);
            }
            PublicationAction::Drop => {
                if let Some((oid, _)) = tables.iter().find(|(oid, _)| !member(*oid) && self.was_shown(*oid)) {
                    let table = &self.catalog.relation(*oid).name;
                    let reason = format!("relation \"{table}\" is not part of the publication");
                    return fail("42704", reason, name.range);
                }
                tables.iter().for_each(|(oid, _)| drop(publication.tables.remove(oid)));
                publication.schemas.retain(|schema| !schemas.contains(schema));
            }
            PublicationAction::Set if alter.objects.is_empty() => set_options(&mut publication, &alter.options),
            PublicationAction::Set => {
                for (oid, _) in &publication.tables {
                    let stays = tables.iter().any(|(kept, _)| kept == oid);
                    if !stays && self.catalog.get_relation(*oid).is_some() {
                        self.lock(*oid, LockMode::ShareUpdateExclusive, LockCause::Dependent, name.range);
                    }
                }
                publication.tables = tables.into_iter().collect();
                publication.schemas = schemas;
            }
        }
        self.catalog.set_publication(publication);
        Ok(())
    }

    /// Rows of a published table are changed only if subscribers can tell them apart.
    ///
    /// Source: PostgreSQL 18, `src/backend/executor/execReplication.c`, `CheckCmdReplicaIdentity`.
    pub(super) fn check_replica_identity(&self, table: Oid, kind: DataChangeKind, range: TextRange) -> Run {
        let relation = self.catalog.relation(table);
        let (what, publishes): (_, fn(&Publication) -> bool) = match kind {
            DataChangeKind::Insert => return Ok(()),
            DataChangeKind::Update => ("update", |publication| publication.updates),
            DataChangeKind::Delete => ("delete from", |publication| publication.deletes),
        };
        if !self.catalog.lacks_replica_identity(relation)
            || !self.catalog.publications_of(relation).any(|publication| publishes(publication))
        {
            return Ok(());
        }
        let reason = format!(
            "cannot {what} table \"{}\" because it does not have a replica identity and is published",
            relation.name
        );
        fail("55000", reason, range)
    }

    fn was_shown(&self, oid: Oid) -> bool {
        self.catalog.relation(oid).known
    }

    /// Locks the tables and returns them and the schemas.
    fn publication_objects(&mut self, objects: &[PublicationObject]) -> Run<(Vec<PublishedTable>, Vec<SmolStr>)> {
        let (mut tables, mut schemas) = (Vec::new(), Vec::new());
        for object in objects {
            match object {
                PublicationObject::Table { table, only, columns, filter } => {
                    if (filter.is_some() || !columns.is_empty()) && !self.target.at_least(15) {
                        return fail("42601", "row filters and column lists need PostgreSQL 15", table.range());
                    }
                    let oid = self.open(table, RelationKind::Table, LockMode::ShareUpdateExclusive)?;
                    let relation = self.catalog.relation(oid);
                    if !relation.kind.is_table() && relation.known {
                        return fail(
                            "22023",
                            format!("cannot add relation \"{}\" to publication", relation.name),
                            table.range(),
                        );
                    }
                    if let Some(column) = columns.iter().find(|column| relation.column(&column.text).is_none())
                        && relation.known
                    {
                        let reason =
                            format!("column \"{}\" of relation \"{}\" does not exist", column.text, relation.name);
                        return fail("42703", reason, column.range);
                    }
                    let columns: Vec<SmolStr> = columns.iter().map(|column| column.text.clone()).collect();
                    let listed = |oid: Oid, tables: &[PublishedTable]| tables.iter().any(|(other, _)| *other == oid);
                    if !listed(oid, &tables) {
                        tables.push((oid, columns.clone()));
                    }
                    // The partitions of a partitioned table are published without being listed.
                    if !only && self.catalog.relation(oid).kind != RelationKind::PartitionedTable {
                        for child in self.lock_descendants(oid, LockMode::ShareUpdateExclusive, table.range()) {
                            if !listed(child, &tables) {
                                tables.push((child, columns.clone()));
                            }
                        }
                    }
                }
                PublicationObject::Schema(schema) => {
                    if !self.target.at_least(15) {
                        let range = schema.as_ref().map(|schema| schema.range).unwrap_or_default();
                        return fail("42601", "TABLES IN SCHEMA needs PostgreSQL 15", range);
                    }
                    schemas.push(schema.as_ref().map_or_else(|| self.creation_schema(), |schema| schema.text.clone()));
                }
            }
        }
        Ok((tables, schemas))
    }
}

/// Source: PostgreSQL 18, `src/backend/commands/publicationcmds.c`, `parse_publication_options`.
fn set_options(publication: &mut Publication, options: &[DefElem]) {
    for option in options.iter().filter(|option| option.name == "publish") {
        let text = match &option.value {
            DefValue::Literal(Literal::String(text)) => text.clone(),
            DefValue::Names(names) => names.join(",").into(),
            _ => continue,
        };
        let publishes = |action: &str| text.split(',').any(|word| word.trim().eq_ignore_ascii_case(action));
        (publication.updates, publication.deletes) = (publishes("update"), publishes("delete"));
    }
}
