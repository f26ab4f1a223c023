//! Which objects may use a function or a type: what a DROP would otherwise look for in the whole catalog.

use super::{Catalog, ConstraintKind, Function, HashMap, Oid, Relation, TypeDef, TypeKind};
use imbl::OrdSet;
use pgvet_syntax::ast::{Expr, ExprKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;
use std::sync::Arc;

/// Something that the definition of a relation, type or function names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Mention {
    /// A function that an expression calls, whichever of that name it is.
    Call(SmolStr),
    /// A type of a column, the function of a trigger, what a view uses, the type of a table OF it; the type under a
    /// domain or range; a type of a parameter or result.
    Object(Oid),
}

/// The objects by what they name, or once named: callers look at the object itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Mentions {
    objects: HashMap<Mention, OrdSet<Oid>>,
    /// The names of functions among them.
    called: OrdSet<SmolStr>,
    /// Objects that were added or handed out to be changed since the others were read.
    changed: OrdSet<Oid>,
    /// Nothing was read yet.
    unread: bool,
}

impl Mentions {
    pub(super) fn note_change(&mut self, object: Oid) {
        if !self.changed.contains(&object) {
            self.changed.insert(object);
        }
    }

    fn note(&mut self, object: Oid, mention: Mention) {
        if let Mention::Call(name) = &mention
            && !self.called.contains(name)
        {
            self.called.insert(name.clone());
        }
        self.objects.entry(mention).or_default().insert(object);
    }

    fn read_relation(&mut self, relation: &Relation) {
        let mut found = Vec::new();
        for_each_mention(relation, |mention| {
            if !found.contains(&mention) {
                found.push(mention);
            }
        });
        found.into_iter().for_each(|mention| self.note(relation.oid, mention));
    }

    fn read_type(&mut self, definition: &TypeDef) {
        let named = type_named_by(&definition.kind).filter(|oid| is_of_project(*oid));
        named.into_iter().for_each(|oid| self.note(definition.oid, Mention::Object(oid)));
    }

    fn read_function(&mut self, function: &Function) {
        let types = function.parameters.iter().map(|parameter| parameter.sql_type).chain([function.returns]);
        for sql_type in types.filter(|sql_type| is_of_project(sql_type.oid)) {
            self.note(function.oid, Mention::Object(sql_type.oid));
        }
    }
}

fn is_of_project(oid: Oid) -> bool {
    oid.is_valid() && !oid.is_builtin()
}

/// The type that a domain, range or multirange is made of.
pub(super) fn type_named_by(kind: &TypeKind) -> Option<Oid> {
    match kind {
        TypeKind::Domain(domain) => Some(domain.base.oid),
        TypeKind::Range { subtype } => Some(subtype.oid),
        TypeKind::Multirange { range } => Some(*range),
        _ => None,
    }
}

/// A catalog from the cache is read again when it is queried.
impl Serialize for Mentions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Mentions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer)?;
        Ok(Self { unread: true, ..Self::default() })
    }
}

impl Catalog {
    /// Reads the objects that have changed, so that [`Catalog::relations_mentioning`] and its siblings need not look at
    /// them again.
    pub fn read_mentions(&mut self) {
        let mut mentions = std::mem::take(&mut self.mentions);
        let changed = std::mem::take(&mut mentions.changed);
        if std::mem::take(&mut mentions.unread) {
            self.relations.values().for_each(|relation| mentions.read_relation(relation));
            self.types.values().for_each(|definition| mentions.read_type(definition));
            self.functions.values().for_each(|function| mentions.read_function(function));
        } else {
            for oid in &changed {
                self.relations.get(oid).into_iter().for_each(|relation| mentions.read_relation(relation));
                self.types.get(oid).into_iter().for_each(|definition| mentions.read_type(definition));
                self.functions.get(oid).into_iter().for_each(|function| mentions.read_function(function));
            }
        }
        self.mentions = mentions;
    }

    /// The same if many have changed. A statement that asks about one object need not read a large table each time that
    /// the table has changed, but it must not look at everything that a history has made either.
    pub fn read_many_mentions(&mut self) {
        const MANY: usize = 64;
        if self.mentions.unread || self.mentions.changed.len() > MANY {
            self.read_mentions();
        }
    }

    /// The relations that may name one of these, in the order of their creation: all that do, and some that do not.
    pub fn relations_mentioning(&self, sought: &[Mention]) -> Vec<&Arc<Relation>> {
        self.mentioning(sought, &self.relations)
    }

    /// The names of functions that definitions of relations may call, or have called.
    pub fn names_called_by_relations(&self) -> OrdSet<SmolStr> {
        let mut names = self.mentions.called.clone();
        let mut read = |relation: &Relation| {
            for_each_mention(relation, |mention| {
                if let Mention::Call(name) = mention {
                    names.insert(name);
                }
            });
        };
        if self.mentions.unread {
            self.relations.values().for_each(|relation| read(relation));
        } else {
            self.mentions.changed.iter().filter_map(|oid| self.relations.get(oid)).for_each(|relation| read(relation));
        }
        names
    }

    /// The types that may name one of these, as [`Catalog::relations_mentioning`].
    pub fn types_mentioning(&self, sought: &[Mention]) -> Vec<&Arc<TypeDef>> {
        self.mentioning(sought, &self.types)
    }

    /// The functions that may name one of these, as [`Catalog::relations_mentioning`].
    pub fn functions_mentioning(&self, sought: &[Mention]) -> Vec<&Arc<Function>> {
        self.mentioning(sought, &self.functions)
    }

    fn mentioning<'a, T>(&self, sought: &[Mention], objects: &'a HashMap<Oid, Arc<T>>) -> Vec<&'a Arc<T>> {
        let mut oids: Vec<Oid> = if self.mentions.unread {
            objects.keys().copied().collect()
        } else {
            let read = sought.iter().filter_map(|mention| self.mentions.objects.get(mention)).flatten();
            read.chain(&self.mentions.changed).copied().collect()
        };
        oids.sort_unstable();
        oids.dedup();
        oids.iter().filter_map(|oid| objects.get(oid)).collect()
    }
}

fn for_each_mention(relation: &Relation, mut visit: impl FnMut(Mention)) {
    relation.of_type.into_iter().for_each(|oid| visit(Mention::Object(oid)));
    for column in relation.columns.iter().filter(|column| is_of_project(column.sql_type.oid)) {
        visit(Mention::Object(column.sql_type.oid));
    }
    for trigger in &relation.triggers {
        visit(Mention::Object(trigger.function));
    }
    if let Some(view) = relation.view() {
        view.objects.iter().for_each(|oid| visit(Mention::Object(*oid)));
    }
    let mut calls = |expr: &Expr| {
        expr.walk(&mut |part| {
            if let ExprKind::Call(call) = &part.kind {
                visit(Mention::Call(call.name.clone()));
            }
        });
    };
    for column in &relation.columns {
        column.default.iter().for_each(|default| calls(default));
        column.generated.iter().for_each(|generated| calls(&generated.expression));
    }
    for constraint in &relation.constraints {
        if let ConstraintKind::Check { expression, .. } = &constraint.kind {
            calls(expression);
        }
    }
    for policy in &relation.policies {
        policy.using.iter().chain(&policy.check).for_each(|expr| calls(expr));
    }
    relation.triggers.iter().filter_map(|trigger| trigger.condition.as_deref()).for_each(&mut calls);
    if let Some(index) = relation.index() {
        index.elements.iter().map(|element| &element.key).chain(index.predicate.as_deref()).for_each(calls);
    }
}

#[cfg(test)]
mod tests {
    use super::Mention;
    use crate::catalog::Catalog;
    use crate::routine::Trial;
    use crate::version::PgVersion;
    use pgvet_syntax::ast::from_pg::parse_sql;

    fn names(catalog: &Catalog, sought: &[Mention]) -> Vec<String> {
        catalog.relations_mentioning(sought).iter().map(|relation| relation.name.to_string()).collect()
    }

    #[test]
    fn relations_are_found_before_and_after_they_are_read() {
        let sql = "CREATE TYPE mood AS ENUM ('low'); CREATE TABLE a (x mood); CREATE TABLE b (x int CHECK (f(x) > 0));
            CREATE TABLE c (x int); CREATE INDEX c_f ON c (g(f(x))); CREATE TABLE d (x int);";
        let mut trial = Trial::new(&Catalog::new(), &vec!["public".into()].into(), PgVersion(17));
        parse_sql(sql).unwrap().iter().for_each(|statement| drop(trial.run(statement)));
        let mut catalog = trial.catalog().clone();
        let call = [Mention::Call("f".into())];
        let mood = [Mention::Object(catalog.type_named("public", "mood").unwrap())];
        assert!(names(&catalog, &call).len() >= 5, "nothing was read yet");
        let called = |catalog: &Catalog| catalog.names_called_by_relations().iter().cloned().collect::<Vec<_>>();
        assert_eq!(called(&catalog), ["f", "g"]);
        catalog.read_mentions();
        assert_eq!(called(&catalog), ["f", "g"]);
        assert_eq!(
            (names(&catalog, &call), names(&catalog, &mood)),
            (vec!["b".into(), "c_f".into()], vec!["a".into()])
        );

        let kept = postcard::to_stdvec(&catalog).unwrap();
        let mut kept: Catalog = postcard::from_bytes(&kept).unwrap();
        assert!(names(&kept, &call).len() >= 5, "what was kept is read when it is asked");
        assert_eq!(called(&kept), ["f", "g"]);
        kept.read_mentions();
        assert_eq!(names(&kept, &call), ["b", "c_f"]);

        let d = catalog.relation_named("public", "d").unwrap();
        catalog.relation_mut(d).of_type = catalog.type_named("public", "mood");
        assert_eq!(names(&catalog, &mood), ["a", "d"]);
        catalog.read_mentions();
        assert_eq!(
            (names(&catalog, &call), names(&catalog, &mood)),
            (vec!["b".into(), "c_f".into()], vec!["a".into(), "d".into()])
        );
    }
}
