//! The objects of schemas by name.

use super::{HashMap, QualifiedName};
use imbl::OrdSet;
use serde::{Deserialize, Serialize};
use smol_str::{SmolStr, format_smolstr};
use std::sync::Arc;

/// A persistent map from names in schemas. A change copies the nodes on its path, each with 32 entries, so entries are
/// kept small: the names are beside them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "V: Clone + Serialize", deserialize = "V: Clone + Deserialize<'de>"))]
pub(super) struct ByName<V> {
    entries: HashMap<Arc<QualifiedName>, V>,
    /// Up to which number all names are taken that are one of these and a number: code that makes up a name need not try
    /// them all.
    taken_up_to: HashMap<Arc<QualifiedName>, u32>,
    /// The names outside of `public`, each with its schema behind it: one name is found in all schemas at once.
    elsewhere: OrdSet<(SmolStr, SmolStr)>,
}

/// The schema that most objects are in, which needs no entry in `elsewhere`.
const USUAL_SCHEMA: &str = "public";

impl<V: Clone> ByName<V> {
    pub(super) fn new() -> Self {
        Self { entries: HashMap::new(), taken_up_to: HashMap::new(), elsewhere: OrdSet::new() }
    }

    pub(super) fn get(&self, schema: &str, name: &str) -> Option<&V> {
        self.entries.get(&key(schema, name))
    }

    pub(super) fn get_mut(&mut self, schema: &str, name: &str) -> Option<&mut V> {
        self.entries.get_mut(&key(schema, name))
    }

    pub(super) fn contains(&self, schema: &str, name: &str) -> bool {
        self.get(schema, name).is_some()
    }

    /// The entries of that name in all schemas, in the order of the schemas' names.
    pub(super) fn in_all_schemas<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a V> {
        let from = |schema: &str| (SmolStr::new(name), SmolStr::new(schema));
        let before = self.elsewhere.range(from("")..from(USUAL_SCHEMA));
        let after = self.elsewhere.range(from(USUAL_SCHEMA)..).take_while(move |(other, _)| other == name);
        let schema = |(_, schema): &'a (SmolStr, SmolStr)| schema.as_str();
        let schemas = before.map(schema).chain([USUAL_SCHEMA]).chain(after.map(schema));
        schemas.filter_map(move |schema| self.get(schema, name))
    }

    pub(super) fn insert(&mut self, schema: &SmolStr, name: &SmolStr, value: V) {
        let known = self.entries.insert(Arc::new((schema.clone(), name.clone())), value);
        if known.is_none() && schema != USUAL_SCHEMA {
            self.elsewhere.insert((name.clone(), schema.clone()));
        }
        if let Some((base, number)) = numbered(name)
            && number == self.taken_up_to(schema, base) + 1
        {
            let mut last = number;
            while self.contains(schema, &format_smolstr!("{base}{}", last + 1)) {
                last += 1;
            }
            self.taken_up_to.insert(Arc::new(key(schema, base)), last);
        }
    }

    pub(super) fn remove(&mut self, schema: &str, name: &str) {
        self.entries.remove(&key(schema, name));
        if schema != USUAL_SCHEMA {
            self.elsewhere.remove(&(SmolStr::new(name), SmolStr::new(schema)));
        }
        if let Some((base, number)) = numbered(name)
            && number <= self.taken_up_to(schema, base)
        {
            self.taken_up_to.insert(Arc::new(key(schema, base)), number - 1);
        }
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&QualifiedName) -> bool) {
        self.entries.retain(|key, _| keep(key));
        let kept = self.elsewhere.iter().filter(|(name, schema)| self.contains(schema, name)).cloned().collect();
        self.elsewhere = kept;
        self.taken_up_to.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns a number up to which `name1`, `name2` and so on are all taken.
    pub(super) fn taken_up_to(&self, schema: &str, name: &str) -> u32 {
        self.taken_up_to.get(&key(schema, name)).copied().unwrap_or(0)
    }
}

fn key(schema: &str, name: &str) -> QualifiedName {
    (SmolStr::new(schema), SmolStr::new(name))
}

/// Splits `name12` into `name` and 12, as PostgreSQL puts names together that it makes up.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let base = name.trim_end_matches(|character: char| character.is_ascii_digit());
    let digits = &name[base.len()..];
    let number = digits.parse().ok().filter(|_| !digits.starts_with('0') && digits.len() < 9)?;
    Some((base, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_all_schemas() {
        let mut names = ByName::new();
        for schema in ["public", "b", "x", "pg_temp"] {
            for name in ["t", "tt", "s"] {
                names.insert(&schema.into(), &name.into(), format!("{schema}.{name}"));
            }
        }
        names.insert(&"b".into(), &"t".into(), "b.t again".to_owned());
        let found = |names: &ByName<String>, name: &str| names.in_all_schemas(name).cloned().collect::<Vec<_>>();
        assert_eq!(found(&names, "t"), ["b.t again", "pg_temp.t", "public.t", "x.t"]);
        names.remove("public", "t");
        names.remove("b", "t");
        assert_eq!(found(&names, "t"), ["pg_temp.t", "x.t"]);
        names.retain(|(schema, _)| schema != "pg_temp");
        assert_eq!(found(&names, "t"), ["x.t"]);
        assert!(found(&names, "u").is_empty());
    }

    #[test]
    fn numbers_are_known_up_to_the_first_gap() {
        let mut names = ByName::new();
        let schema = SmolStr::new("public");
        let insert = |names: &mut ByName<()>, name: &str| names.insert(&schema, &name.into(), ());
        let known = |names: &ByName<()>| names.taken_up_to("public", "t_idx");
        for (name, expected) in
            [("t_idx", 0), ("t_idx2", 0), ("t_idx3", 0), ("t_idx01", 0), ("t_idx1", 3), ("t_idx5", 3), ("t_idx4", 5)]
        {
            insert(&mut names, name);
            assert_eq!(known(&names), expected, "{name}");
        }
        names.remove("public", "t_idx");
        assert_eq!(known(&names), 5);
        names.remove("public", "t_idx2");
        assert_eq!(known(&names), 1);
        insert(&mut names, "t_idx2");
        assert_eq!(known(&names), 5);
        assert_eq!(names.taken_up_to("other", "t_idx"), 0);
    }
}
