//! The schema of a database, in PostgreSQL's own words, as the migrations so far have made it.
//!
//! A [`Catalog`] is a persistent value: cloning costs a few reference counts, so a transaction's savepoints, a rule's
//! view of "before" and a second run for another major version are all plain clones.

mod bounds;
mod by_name;
mod constant;
mod constraint;
mod copied;
mod doubt;
mod earlier_change;
mod extension;
mod function;
mod index;
mod listed_key;
mod lookup;
mod memo;
mod mentions;
mod named;
mod named_privilege;
mod names;
mod one_row;
mod platform;
mod policy_facts;
mod privilege;
mod publication;
mod relation;
mod relation_kind;
mod relation_names;
mod role;
pub mod search_path;
mod sequence_use;
mod statistics;
mod types;
mod views;

pub use bounds::{Bounds, Point};
pub use constant::Constant;
pub use constraint::*;
pub use copied::{Copied, Omitted};
pub use earlier_change::EarlierChange;
pub use function::*;
pub use index::*;
pub use mentions::Mention;
pub use named::{Named, Part};
pub use named_privilege::{NamedKind, NamedObject};
pub use names::*;
pub(crate) use platform::is_of_platform;
pub use privilege::*;
pub use relation::*;
pub use relation_kind::RelationKind;
pub use search_path::SearchPath;
pub use search_path::{names_in_path, search_path, search_path_value};
pub use sequence_use::SEQUENCE_FUNCTIONS;
pub use statistics::*;
pub use types::*;

use by_name::ByName;
use doubt::Doubts;
use extension::Extensions;
use imbl::{OrdMap, OrdSet};
use memo::{Generation, Memo};
use mentions::Mentions;
use policy_facts::PolicyFacts;
use role::Memberships;
use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// Names and oids come from files that their owner checks, so a fast hash does.
type HashMap<K, V> = imbl::GenericHashMap<K, V, FxBuildHasher, imbl::shared_ptr::DefaultSharedPtr>;

/// The identity of a relation, type or function. Built-in types have PostgreSQL's own; ours start at [`Oid::FIRST_USER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Oid(pub u32);

impl Oid {
    /// PostgreSQL's `InvalidOid`: unknown or absent.
    pub const INVALID: Self = Self(0);
    /// PostgreSQL's `FirstNormalObjectId`.
    pub const FIRST_USER: Self = Self(16384);

    pub fn is_valid(self) -> bool {
        self != Self::INVALID
    }

    pub fn is_builtin(self) -> bool {
        self.is_valid() && self < Self::FIRST_USER
    }
}

/// A qualified name: schema and name.
pub type QualifiedName = (SmolStr, SmolStr);

/// The schema that stands for the session's temporary schema.
pub const TEMPORARY_SCHEMA: &str = "pg_temp";

/// The schema of one database.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Catalog {
    next_oid: u32,
    schemas: OrdMap<SmolStr, ()>,
    relations: HashMap<Oid, Arc<Relation>>,
    relation_names: ByName<Oid>,
    /// The relations, types and functions of the session.
    temporary: OrdSet<Oid>,
    /// The session has put something into its temporary schema, which makes it.
    has_temporary_schema: bool,
    /// Relations under names that are partly known only at run time.
    open_names: OrdSet<Oid>,
    mentions: Mentions,
    /// How many constraints of a schema have a name: PostgreSQL avoids those when it makes one up.
    constraint_names: ByName<u32>,
    /// Relations that have, or had, rules that name other relations.
    ruled: OrdMap<Oid, ()>,
    /// The views, without materialized ones.
    views: OrdSet<Oid>,
    types: HashMap<Oid, Arc<TypeDef>>,
    type_names: ByName<Oid>,
    functions: HashMap<Oid, Arc<Function>>,
    function_names: ByName<Vec<Oid>>,
    publications: OrdMap<SmolStr, Arc<Publication>>,
    /// The first statement of each digest that changed rows of a table.
    earlier_changes: HashMap<Oid, OrdMap<u64, EarlierChange>>,
    extensions: Extensions,
    /// Extended statistics.
    statistics: OrdMap<QualifiedName, ExtendedStatistics>,
    /// Privileges that GRANT gave on relations and functions.
    privileges: HashMap<Oid, Named<Privilege>>,
    default_privileges: Named<DefaultPrivilege>,
    /// Functions on which PUBLIC lost EXECUTE, which it has by default.
    closed_functions: OrdSet<Oid>,
    /// Whether new functions are made without EXECUTE for PUBLIC.
    closes_functions: bool,
    /// Privileges on other objects, if they differ from those that PostgreSQL gives by default.
    named_privileges: OrdMap<NamedObject, Arc<Vec<Privilege>>>,
    memberships: Memberships,
    /// Relations that have, or had, row-level security.
    row_secured: OrdMap<Oid, ()>,
    policy_facts: PolicyFacts,
    /// Functions and the roles to which a GRANT that names them gives EXECUTE.
    granted_by_name: OrdSet<(Oid, SmolStr)>,
    /// The roles to which GRANT names a function of triggers, with its schema.
    granted_on_triggers: OrdSet<(SmolStr, SmolStr)>,
    /// Names of relations that a statement dropped, renamed or moved away: using one is certainly an error.
    gone: ByName<()>,
    /// A relation was used that no statement had created: there may be more of that kind.
    has_unseen: bool,
    doubts: Doubts,
    /// The state of all indexes and types.
    #[serde(skip)]
    generation: Generation,
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

impl Catalog {
    /// A new database: the schema `public` and nothing in it.
    pub fn new() -> Self {
        Self {
            next_oid: Oid::FIRST_USER.0,
            schemas: OrdMap::unit(SmolStr::new_static("public"), ()),
            relations: HashMap::new(),
            relation_names: ByName::new(),
            temporary: OrdSet::new(),
            has_temporary_schema: false,
            open_names: OrdSet::new(),
            mentions: Mentions::default(),
            constraint_names: ByName::new(),
            ruled: OrdMap::new(),
            views: OrdSet::new(),
            types: HashMap::new(),
            type_names: ByName::new(),
            functions: HashMap::new(),
            function_names: ByName::new(),
            publications: OrdMap::new(),
            earlier_changes: HashMap::new(),
            extensions: Extensions::default(),
            statistics: OrdMap::new(),
            privileges: HashMap::new(),
            default_privileges: Named::new(),
            closed_functions: OrdSet::new(),
            closes_functions: false,
            named_privileges: OrdMap::new(),
            memberships: Memberships::default(),
            row_secured: OrdMap::new(),
            policy_facts: PolicyFacts::default(),
            granted_by_name: OrdSet::new(),
            granted_on_triggers: OrdSet::new(),
            gone: ByName::new(),
            has_unseen: false,
            doubts: Doubts::default(),
            generation: Generation::next(),
        }
    }

    pub fn new_oid(&mut self) -> Oid {
        let oid = Oid(self.next_oid);
        self.next_oid += 1;
        oid
    }

    // ---- schemas ----

    pub fn has_schema(&self, name: &str) -> bool {
        self.schemas.contains_key(name)
    }

    /// The names of the schemas, in order.
    pub fn schemas(&self) -> impl Iterator<Item = &SmolStr> {
        self.schemas.keys()
    }

    pub fn has_temporary_schema(&self) -> bool {
        self.has_temporary_schema
    }

    fn note_temporary(&mut self, oid: Oid) {
        self.temporary.insert(oid);
        self.has_temporary_schema = true;
    }

    pub fn add_schema(&mut self, name: SmolStr) {
        self.forget_schema_privileges(&name);
        self.schemas.insert(name, ());
    }

    pub fn remove_schema(&mut self, name: &str) {
        self.schemas.remove(name);
    }

    // ---- relations ----

    /// A relation that is known to exist because its oid came from this catalog.
    ///
    /// # Panics
    /// When the oid is of another catalog or the relation was dropped: an error of the model.
    pub fn relation(&self, oid: Oid) -> &Relation {
        self.relations.get(&oid).expect("an oid that this catalog gave out stands for a relation")
    }

    pub fn get_relation(&self, oid: Oid) -> Option<&Arc<Relation>> {
        self.relations.get(&oid)
    }

    /// The relation, to be changed. Name, schema and constraints change through methods of the catalog.
    ///
    /// # Panics
    /// As [`Catalog::relation`].
    pub fn relation_mut(&mut self, oid: Oid) -> &mut Relation {
        self.mentions.note_change(oid);
        let relation = self.relations.get_mut(&oid).expect("an oid that this catalog gave out stands for a relation");
        let relation = Arc::make_mut(relation);
        relation.listed_keys = Memo::default();
        if relation.kind.is_index() {
            self.generation = Generation::next();
        }
        relation
    }

    pub fn relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.relations.values()
    }

    pub fn relation_count(&self) -> usize {
        self.relations.len()
    }

    /// Relations in the order of their creation.
    pub fn relations_in_order(&self) -> Vec<&Arc<Relation>> {
        self.relations_where(|_| true)
    }

    /// The relations that were created since the catalog was as in `before`, in the order of their creation.
    pub fn relations_since(&self, before: &Catalog) -> impl Iterator<Item = &Arc<Relation>> {
        (before.next_oid..self.next_oid).filter_map(|oid| self.relations.get(&Oid(oid)))
    }

    /// The relations that satisfy a condition, in the order of their creation.
    pub fn relations_where(&self, condition: impl Fn(&Relation) -> bool) -> Vec<&Arc<Relation>> {
        let mut found: Vec<_> = self.relations.values().filter(|relation| condition(relation)).collect();
        found.sort_unstable_by_key(|relation| relation.oid);
        found
    }

    /// The relations whose rules name other relations.
    pub fn ruled_relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.ruled.keys().filter_map(|oid| self.relations.get(oid))
    }

    /// Says that the rule `name` of a relation names other ones.
    pub fn set_rule_references(&mut self, ruled: Oid, name: &SmolStr, named: impl IntoIterator<Item = Oid>) {
        let relation = self.relation_mut(ruled);
        relation.rule_references.retain(|(rule, _)| rule != name);
        relation.rule_references.extend(named.into_iter().map(|oid| (name.clone(), oid)));
        if !relation.rule_references.is_empty() {
            self.ruled.insert(ruled, ());
        }
    }

    /// The temporary relations of the session, in the order of their creation.
    pub fn temporary_relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.temporary.iter().filter_map(|oid| self.relations.get(oid))
    }

    /// Adds a relation under its own oid (see [`Catalog::new_oid`]).
    pub fn add_relation(&mut self, relation: Relation) {
        let (schema, name) = (&relation.schema, &relation.name);
        if schema == TEMPORARY_SCHEMA {
            self.note_temporary(relation.oid);
        }
        self.give_name(schema, name, relation.oid);
        relation.constraint_names().for_each(|name| self.note_constraint_name(schema, name));
        self.mentions.note_change(relation.oid);
        if relation.kind.is_index() {
            self.generation = Generation::next();
        }
        if relation.kind == RelationKind::View {
            self.views.insert(relation.oid);
        }
        self.relations.insert(relation.oid, Arc::new(relation));
    }

    /// Adds a relation that was there before everything the history shows.
    pub fn add_unseen_relation(&mut self, relation: Relation) {
        self.has_unseen = true;
        self.add_relation(relation);
    }

    /// Adds a relation of which only the name is known, unless a relation has it: one that a refused statement was to
    /// create. Once that is corrected, later statements meet a new relation.
    pub fn add_refused_relation(
        &mut self,
        schema: SmolStr,
        name: SmolStr,
        kind: RelationKind,
        birth: Birth,
    ) -> Option<Oid> {
        if self.relation_named(&schema, &name).is_some() {
            return None;
        }
        let oid = self.new_oid();
        let mut relation = Relation::new(oid, schema, name, kind, birth);
        relation.known = false;
        self.add_unseen_relation(relation);
        Some(oid)
    }

    /// Whether the history lacks relations that it uses.
    pub fn has_unseen(&self) -> bool {
        self.has_unseen
    }

    /// Removes a relation and its name; what depends on it is the caller's business.
    pub fn remove_relation(&mut self, oid: Oid) {
        let Some(relation) = self.relations.remove(&oid) else { return };
        if relation.kind.is_index() {
            self.generation = Generation::next();
        }
        self.temporary.remove(&oid);
        self.views.remove(&oid);
        self.privileges.remove(&oid);
        let (schema, name) = (&relation.schema, &relation.name);
        if self.relation_names.get(schema, name) == Some(&oid) {
            self.relation_names.remove(schema, name);
            self.gone.insert(schema, name, ());
        }
        relation.constraint_names().for_each(|name| self.forget_constraint_name(&relation.schema, name));
    }

    /// Removes a column of a relation; what depends on it is the caller's business.
    pub fn remove_column(&mut self, table: Oid, column: &str) {
        let relation = self.relation_mut(table);
        relation.columns.retain(|other| other.name != column);
        if !relation.known && !relation.gone_columns.iter().any(|gone| gone == column) {
            relation.gone_columns.push(column.into());
        }
        self.forget_column_privileges(table, column);
    }

    /// The end of a session.
    pub fn remove_temporary_objects(&mut self) {
        self.has_temporary_schema = false;
        self.drop_defaults_of_temporary_sequences();
        let gone: Vec<Oid> = self.temporary.iter().copied().collect();
        if gone.is_empty() {
            return;
        }
        for oid in &gone {
            self.unlink(*oid);
            self.remove_relation(*oid);
            self.remove_type(*oid);
            self.remove_function(*oid);
        }
        let ruled: Vec<Oid> = self.ruled_relations().map(|relation| relation.oid).collect();
        for oid in ruled {
            let relation = self.relation_mut(oid);
            let lost =
                |rule: &SmolStr| relation.rule_references.iter().any(|(of, named)| of == rule && gone.contains(named));
            relation.rules.retain(|rule| !lost(rule));
        }
        self.gone.retain(|(schema, _)| schema != TEMPORARY_SCHEMA);
    }

    /// Removes a relation from the lists of those that stay: parents, referenced tables, tables under a view.
    fn unlink(&mut self, oid: Oid) {
        let Some(relation) = self.relations.get(&oid) else { return };
        let mut linked = relation.parents.clone();
        linked.extend(relation.constraints.iter().filter_map(|one| one.foreign_key()).map(|key| key.referenced));
        linked.extend(relation.view().iter().flat_map(|view| &view.references).map(|(read, _)| *read));
        for other in linked {
            if self.relations.contains_key(&other) {
                self.remove_child(other, oid);
                let other = self.relation_mut(other);
                other.referenced_by.retain(|table| *table != oid);
                other.viewed_by.retain(|view| *view != oid);
            }
        }
    }

    pub(super) fn note_constraint_name(&mut self, schema: &SmolStr, name: &SmolStr) {
        let count = self.constraint_names.get(schema, name).map_or(1, |count| count + 1);
        self.constraint_names.insert(schema, name, count);
    }

    pub(super) fn forget_constraint_name(&mut self, schema: &SmolStr, name: &SmolStr) {
        match self.constraint_names.get_mut(schema, name) {
            Some(count) if *count > 1 => *count -= 1,
            _ => self.constraint_names.remove(schema, name),
        }
    }

    // ---- constraints and triggers ----

    /// Whether a constraint of a relation or domain has this name, in any schema.
    pub fn has_constraint_named(&self, name: &str) -> bool {
        self.constraint_names.in_all_schemas(name).next().is_some()
    }

    /// Adds a trigger; that none has its name is the caller's business.
    pub fn add_trigger(&mut self, table: Oid, trigger: Trigger) {
        let schema = self.relation(table).schema.clone();
        trigger.constraint.iter().for_each(|name| self.note_constraint_name(&schema, name));
        self.relation_mut(table).triggers.push(trigger);
    }

    pub fn remove_trigger(&mut self, table: Oid, name: &SmolStr) {
        let relation = self.relation_mut(table);
        let schema = relation.schema.clone();
        if let Some(constraint) = relation.triggers.remove(name).and_then(|gone| gone.constraint.clone()) {
            self.forget_constraint_name(&schema, &constraint);
        }
    }

    /// The sequence that a column owns.
    pub fn sequence_of(&self, table: &Relation, column: &str) -> Option<&Relation> {
        let owned = table.owned_sequences.iter().filter_map(|oid| self.relations.get(oid));
        owned.map(|sequence| &**sequence).find(|sequence| {
            let owner = sequence.sequence().and_then(|sequence| sequence.owned_by.as_ref());
            owner.is_some_and(|(_, owner)| owner == column)
        })
    }

    // ---- types ----

    pub fn get_type(&self, oid: Oid) -> Option<&Arc<TypeDef>> {
        self.types.get(&oid)
    }

    pub fn type_mut(&mut self, oid: Oid) -> Option<&mut TypeDef> {
        self.mentions.note_change(oid);
        self.generation = Generation::next();
        self.types.get_mut(&oid).map(Arc::make_mut)
    }

    pub fn types(&self) -> impl Iterator<Item = &Arc<TypeDef>> {
        self.types.values()
    }

    /// The types of that name in any schema.
    pub fn types_with_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<TypeDef>> {
        self.type_names.in_all_schemas(name).filter_map(|oid| self.types.get(oid))
    }

    pub fn type_named(&self, schema: &str, name: &str) -> Option<Oid> {
        self.type_names.get(schema, name).copied()
    }

    /// Adds a type and the type of its arrays, and returns its oid.
    pub fn add_type(&mut self, schema: &SmolStr, name: &SmolStr, kind: TypeKind, transaction: u32) -> Oid {
        let (oid, array) = self.make_room_for_type(schema, name).unwrap_or_else(|| (self.new_oid(), self.new_oid()));
        let array_name = match self.types.get(&array) {
            Some(known) => known.name.clone(),
            None => self.free_array_type_name(schema, name),
        };
        let insert = |catalog: &mut Self, oid, name: SmolStr, array, kind| {
            catalog.type_names.insert(schema, &name, oid);
            if schema == TEMPORARY_SCHEMA {
                catalog.note_temporary(oid);
            }
            let modifiers = catalog.types.get(&oid).map(|known| known.modifiers.clone()).unwrap_or_default();
            let definition = TypeDef { oid, schema: schema.clone(), name, array, kind, transaction, modifiers };
            catalog.types.insert(oid, Arc::new(definition));
            catalog.generation = Generation::next();
        };
        self.note_domain_constraints(schema, &kind);
        if mentions::type_named_by(&kind).is_some() {
            self.mentions.note_change(oid);
        }
        insert(self, oid, name.clone(), array, kind);
        insert(self, array, array_name, Oid::INVALID, TypeKind::Array { element: oid });
        oid
    }

    /// Removes a type and the type of its arrays.
    pub fn remove_type(&mut self, oid: Oid) {
        let Some(definition) = self.types.remove(&oid) else { return };
        self.generation = Generation::next();
        self.temporary.remove(&oid);
        self.type_names.remove(&definition.schema, &definition.name);
        self.forget_domain_constraints(&definition.schema, &definition.kind);
        if definition.array.is_valid() {
            self.remove_type(definition.array);
        }
    }

    pub fn rename_type(&mut self, oid: Oid, schema: SmolStr, name: SmolStr) {
        let Some(definition) = self.types.get(&oid).cloned() else { return };
        if let Some((mentioned, _)) = self.make_room_for_type(&schema, &name) {
            self.remove_type(mentioned);
        }
        self.type_names.remove(&definition.schema, &definition.name);
        self.type_names.insert(&schema, &name, oid);
        self.forget_domain_constraints(&definition.schema, &definition.kind);
        self.note_domain_constraints(&schema, &definition.kind);
        if let Some(definition) = self.type_mut(oid) {
            definition.schema = schema.clone();
            definition.name = name.clone();
        }
        if definition.array.is_valid() {
            let array_name = self.free_array_type_name(&schema, &name);
            self.rename_type(definition.array, schema, array_name);
        }
    }

    // ---- functions ----

    pub fn get_function(&self, oid: Oid) -> Option<&Arc<Function>> {
        self.functions.get(&oid)
    }

    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.values()
    }

    /// All functions of that name, in the order of their creation.
    pub fn functions_named(&self, schema: &str, name: &str) -> impl Iterator<Item = &Arc<Function>> {
        let oids = self.function_names.get(schema, name);
        oids.into_iter().flatten().filter_map(|oid| self.functions.get(oid))
    }

    /// The functions of that name in any schema.
    pub fn functions_with_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<Function>> {
        let oids = self.function_names.in_all_schemas(name);
        oids.flatten().filter_map(|oid| self.functions.get(oid))
    }

    /// Adds a function under its own oid, or replaces the one that has it.
    pub fn add_function(&mut self, function: Function) {
        if function.schema == TEMPORARY_SCHEMA {
            self.note_temporary(function.oid);
        }
        match self.function_names.get_mut(&function.schema, &function.name) {
            Some(oids) if oids.contains(&function.oid) => {}
            Some(oids) => oids.push(function.oid),
            None => self.function_names.insert(&function.schema, &function.name, vec![function.oid]),
        }
        self.mentions.note_change(function.oid);
        self.functions.insert(function.oid, Arc::new(function));
    }

    pub fn remove_function(&mut self, oid: Oid) -> Option<Arc<Function>> {
        let function = self.functions.remove(&oid)?;
        self.temporary.remove(&oid);
        if let Some(oids) = self.function_names.get_mut(&function.schema, &function.name) {
            oids.retain(|other| *other != oid);
        }
        Some(function)
    }
}
