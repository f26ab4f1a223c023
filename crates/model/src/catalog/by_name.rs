//! The objects of schemas by name.

use super::{HashMap, QualifiedName};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// A persistent map from names in schemas. A change copies the nodes on its path, each with 32 entries, so entries are
/// kept small: the names are beside them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "V: Clone + Serialize", deserialize = "V: Clone + Deserialize<'de>"))]
pub(super) struct ByName<V>(HashMap<Arc<QualifiedName>, V>);

impl<V: Clone> ByName<V> {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    pub(super) fn get(&self, schema: &str, name: &str) -> Option<&V> {
        self.0.get(&key(schema, name))
    }

    pub(super) fn get_mut(&mut self, schema: &str, name: &str) -> Option<&mut V> {
        self.0.get_mut(&key(schema, name))
    }

    pub(super) fn contains(&self, schema: &str, name: &str) -> bool {
        self.get(schema, name).is_some()
    }

    pub(super) fn insert(&mut self, schema: &SmolStr, name: &SmolStr, value: V) {
        self.0.insert(Arc::new((schema.clone(), name.clone())), value);
    }

    pub(super) fn remove(&mut self, schema: &str, name: &str) {
        self.0.remove(&key(schema, name));
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&QualifiedName) -> bool) {
        self.0.retain(|key, _| keep(key));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn key(schema: &str, name: &str) -> QualifiedName {
    (SmolStr::new(schema), SmolStr::new(name))
}
