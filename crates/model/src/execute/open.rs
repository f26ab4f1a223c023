//! Finds the objects that a statement names, and locks them.

use super::{Executor, Knowledge, Run, fail};
use crate::catalog::{Birth, Oid, Relation, RelationKind, SearchPath, TEMPORARY_SCHEMA};
use crate::effect::{Failure, LockCause};
use pgvet_syntax::ast::{LockMode, ObjectName};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

impl Executor<'_> {
    /// Finds a relation by name; `None` where no statement so far has shown one.
    pub(crate) fn find(&self, name: &ObjectName) -> Option<Oid> {
        let path = self.session.settings.search_path();
        let found = self.catalog.find_relation(name, &path);
        self.note_assumed_path(name, &path, found);
        found
    }

    /// Notes where an unqualified name is found, if another `search_path` than the assumed one may find something else.
    fn note_assumed_path(&self, name: &ObjectName, path: &SearchPath, found: Option<Oid>) {
        if name.schema.is_some() || !path.is_assumed() {
            return;
        }
        let others = |schema: &SmolStr| {
            let mut named = self.catalog.relations_with_name(&name.name.text);
            named.any(|other| other.schema != *schema)
        };
        let taken = found.and_then(|oid| self.catalog.get_relation(oid)).filter(|taken| !taken.is_temporary());
        let schema = match taken {
            Some(taken) if !self.catalog.is_placed_by_path(taken) || others(&taken.schema) => &taken.schema,
            None if found.is_none() => match path.first().filter(|schema| others(schema)) {
                Some(schema) => schema,
                None => return,
            },
            Some(_) | None => return,
        };
        self.assumed_schema.replace(Some(schema.clone()));
    }

    /// Refuses a new name that a relation of the schema has. `written`: as the statement says it.
    pub(crate) fn check_name_is_free(&mut self, schema: &str, written: &ObjectName) -> Run {
        if let Some(taken) = self.catalog.relation_named(schema, &written.name.text) {
            self.note_assumed_path(written, &self.session.settings.search_path(), Some(taken));
            return self.refuse_taken_name(taken, format!("relation \"{written}\" already exists"), written.range());
        }
        Ok(())
    }

    /// Refuses a new name that a relation has.
    pub(crate) fn refuse_taken_name<T>(&mut self, taken: Oid, reason: String, range: TextRange) -> Run<T> {
        self.in_the_way = Some(taken);
        fail("42P07", reason, range)
    }

    /// Adds what a refusal assumes.
    pub(crate) fn with_assumption(&self, failure: Failure) -> Failure {
        Failure { assumed_schema: failure.assumed_schema.clone().or(self.assumed_schema.take()), ..failure }
    }

    /// Whether the `search_path` alone says in which schema a new relation of this name is.
    pub(crate) fn is_placed_by_path(&self, name: &ObjectName) -> bool {
        name.schema.is_none() && self.session.settings.search_path().is_assumed()
    }

    /// Finds a relation and locks it; with `missing_ok` (IF EXISTS) `None` when it certainly does not exist.
    /// A relation that no statement has shown is assumed to be an existing one of the `kind`, unless it was dropped.
    pub(crate) fn open_if_exists(
        &mut self,
        name: &ObjectName,
        kind: RelationKind,
        mode: LockMode,
        missing_ok: bool,
    ) -> Run<Option<Oid>> {
        if let Some(oid) = self.find(name) {
            self.lock(oid, mode, LockCause::Target, name.range());
            self.note_need(oid, missing_ok);
            if mode >= LockMode::ShareUpdateExclusive && !self.catalog.relation(oid).known {
                self.unknown(format!("`{name}` was used before any statement created it"));
            }
            return Ok(Some(oid));
        }
        self.doubt_same_name(name);
        if name.name.text.contains(pgvet_syntax::plpgsql::HOLE) {
            return fail("42P01", format!("relation \"{name}\" is not known"), name.range());
        }
        let certain =
            self.knows_all_of(name.schema_name()) || self.catalog.is_gone(name, &self.session.settings.search_path());
        if missing_ok && !certain && self.catalog.has_unseen() {
            self.unknown(format!("whether `{name}` exists is not known"));
        }
        let is_never_shown = missing_ok && self.knowledge == Knowledge::History && !self.may_be_elsewhere(name);
        let gone = certain || is_never_shown;
        match (gone, missing_ok) {
            (true, true) => Ok(None),
            (true, false) => {
                self.check_schema_of(name)?;
                fail("42P01", format!("relation \"{name}\" does not exist"), name.range())
            }
            (false, _) => {
                let oid = self.assume(name, kind);
                self.lock(oid, mode, LockCause::Target, name.range());
                self.note_need(oid, missing_ok);
                Ok(Some(oid))
            }
        }
    }

    /// Notes that a statement fails unless a relation exists that no earlier statement has created.
    fn note_need(&mut self, oid: Oid, missing_ok: bool) {
        let relation = self.catalog.relation(oid);
        let is_shown = relation.known || relation.birth.needed_in.is_some();
        if !is_shown && !missing_ok && !self.is_guarded() {
            self.catalog.relation_mut(oid).birth.needed_in = self.deployment;
        }
    }

    /// A relation that a statement names with a schema, and that no statement has shown there, may be the one that an
    /// assumed `search_path` has placed elsewhere.
    fn doubt_same_name(&mut self, name: &ObjectName) {
        if name.schema.is_none() {
            return;
        }
        let same = self.catalog.relations_with_name(&name.name.text);
        let placed: Vec<Oid> = same.filter(|relation| relation.placed_by_path).map(|relation| relation.oid).collect();
        placed.into_iter().for_each(|relation| self.catalog.doubt(relation));
    }

    /// Whether a relation of a schema that no migration creates may be one that an assumed `search_path` has placed in
    /// another: the connection may set the path.
    fn may_be_elsewhere(&self, name: &ObjectName) -> bool {
        let is_foreign = name.schema.as_ref().is_some_and(|schema| !self.catalog.has_schema(&schema.text));
        is_foreign && self.catalog.relations_with_name(&name.name.text).any(|relation| relation.placed_by_path)
    }

    /// Finds a relation and locks it, or fails.
    pub(crate) fn open(&mut self, name: &ObjectName, kind: RelationKind, mode: LockMode) -> Run<Oid> {
        match self.open_if_exists(name, kind, mode, false)? {
            Some(oid) => Ok(oid),
            None => fail("42P01", format!("relation \"{name}\" does not exist"), name.range()),
        }
    }

    /// A name that says its schema needs that schema, where everything is known. The temporary one is made when
    /// something is put into it.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/namespace.c`, `LookupExplicitNamespace`.
    pub(crate) fn check_schema_of(&self, name: &ObjectName) -> Run {
        let Some(schema) = &name.schema else { return Ok(()) };
        let unmade = schema.text == TEMPORARY_SCHEMA && !self.catalog.has_temporary_schema();
        if unmade && self.knowledge == Knowledge::Everything {
            return fail("3F000", format!("schema \"{}\" does not exist", schema.text), schema.range);
        }
        self.check_schema(schema)
    }

    /// Finds a relation that a query names: for queries a missing schema is no more than a missing relation.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_relation.c`, `parserOpenTable`.
    pub(crate) fn open_in_query(&mut self, name: &ObjectName, mode: LockMode) -> Run<Oid> {
        self.open(name, RelationKind::Table, mode).map_err(|failure| match failure.sqlstate {
            "3F000" => Failure { sqlstate: "42P01", ..failure },
            _ => failure,
        })
    }

    /// Adds a relation that was there before everything the history shows.
    pub(crate) fn assume(&mut self, name: &ObjectName, kind: RelationKind) -> Oid {
        let schema = match &name.schema {
            Some(schema) => schema.text.clone(),
            None => self.creation_schema(),
        };
        let oid = self.catalog.new_oid();
        let birth = Birth { filled: true, many: true, ..Birth::empty(None, 0) };
        let mut relation = Relation::new(oid, schema, name.name.text.clone(), kind, birth);
        relation.known = false;
        relation.placed_by_path = self.is_placed_by_path(name);
        self.catalog.add_unseen_relation(relation);
        self.unknown(format!("`{name}` was used before any statement created it"));
        oid
    }

    /// The schema in which an unqualified new object goes: the first of the search path that exists.
    pub(crate) fn creation_schema(&self) -> SmolStr {
        let path = self.session.settings.search_path();
        let exists = |schema: &&SmolStr| self.knowledge != Knowledge::Everything || self.catalog.has_schema(schema);
        path.iter().find(exists).or(path.first()).cloned().unwrap_or_else(|| SmolStr::new_static("public"))
    }

    /// The schema of a new relation.
    pub(crate) fn schema_for(&self, name: &ObjectName, temporary: bool) -> SmolStr {
        match &name.schema {
            Some(schema) => schema.text.clone(),
            None if temporary => SmolStr::new_static(TEMPORARY_SCHEMA),
            None => self.creation_schema(),
        }
    }

    /// The same, where the schema must be there.
    pub(crate) fn schema_to_fill(&self, name: &ObjectName, temporary: bool) -> Run<SmolStr> {
        if let Some(schema) = &name.schema {
            self.check_schema(schema)?;
        }
        let schema = self.schema_for(name, temporary);
        if name.schema.is_none()
            && self.knowledge == Knowledge::Everything
            && !temporary
            && !self.catalog.has_schema(&schema)
        {
            return fail("3F000", "no schema has been selected to create in", name.range());
        }
        Ok(schema)
    }

    /// All direct and indirect children, in the order in which PostgreSQL locks them (by oid, breadth first).
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/pg_inherits.c`, `find_all_inheritors`.
    pub(crate) fn descendants(&self, oid: Oid) -> Vec<Oid> {
        let mut found = Vec::new();
        let mut queue = vec![oid];
        let mut seen = FxHashSet::from_iter([oid]);
        let mut at = 0;
        while at < queue.len() {
            for child in &self.catalog.relation(queue[at]).children {
                if seen.insert(*child) {
                    queue.push(*child);
                    found.push(*child);
                }
            }
            at += 1;
        }
        found
    }

    /// Locks all descendants and returns them.
    pub(crate) fn lock_descendants(&mut self, oid: Oid, mode: LockMode, range: TextRange) -> Vec<Oid> {
        let descendants = self.descendants(oid);
        self.note_unknown_parts(oid);
        for child in &descendants {
            self.lock(*child, mode, LockCause::Child, range);
        }
        descendants
    }
}
