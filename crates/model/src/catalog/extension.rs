//! Installed extensions.

use super::Catalog;
use crate::builtin::{self, Extension};
use imbl::OrdMap;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// The extensions of a database.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Extensions {
    installed: OrdMap<SmolStr, Installed>,
    /// Those whose objects are known.
    #[serde(with = "known_extensions")]
    known: Arc<[&'static Extension]>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Installed {
    schema: SmolStr,
    /// Whether a statement names the schema. The control file of the extension may otherwise name another one than the
    /// first of the search path.
    is_schema_named: bool,
}

impl Extensions {
    fn put(&mut self, name: SmolStr, installed: Installed) {
        self.installed.insert(name, installed);
        self.find_known();
    }

    fn find_known(&mut self) {
        self.known = self.installed.keys().filter_map(|name| builtin::extension(name)).collect();
    }
}

impl Catalog {
    /// The schema that an extension was created in.
    pub fn extension(&self, name: &str) -> Option<&SmolStr> {
        self.extensions.installed.get(name).map(|installed| &installed.schema)
    }

    pub fn extensions(&self) -> impl Iterator<Item = (&SmolStr, &SmolStr)> {
        self.extensions.installed.iter().map(|(name, installed)| (name, &installed.schema))
    }

    /// Whether an extension is known to be in its schema, because a statement names it or because the control file of the
    /// extension does not name another one.
    pub fn is_extension_schema_certain(&self, name: &str) -> bool {
        let named = self.extensions.installed.get(name).is_some_and(|installed| installed.is_schema_named);
        named || builtin::is_created_in_search_path(name)
    }

    /// The installed extensions whose objects are not known, each with its schema.
    pub fn unknown_extensions(&self) -> impl Iterator<Item = (&SmolStr, &SmolStr)> {
        self.extensions().filter(|(name, _)| !builtin::is_of_postgresql(name))
    }

    /// Adds an extension, in the schema that a statement names or else in the one in which it creates objects.
    pub fn add_extension(&mut self, name: SmolStr, schema: SmolStr, is_schema_named: bool) {
        self.extensions.put(name, Installed { schema, is_schema_named });
    }

    /// The installed extensions whose objects are known, by name.
    pub fn known_extensions(&self) -> &[&'static Extension] {
        &self.extensions.known
    }

    /// Whether the objects of all installed extensions are known.
    pub(super) fn knows_all_extensions(&self) -> bool {
        self.extensions.known.len() == self.extensions.installed.len()
    }

    pub fn remove_extension(&mut self, name: &str) {
        self.extensions.installed.remove(name);
        self.extensions.find_known();
    }
}

/// Extensions are written by their names.
mod known_extensions {
    use crate::builtin::{self, Extension};
    use serde::{Deserialize, Deserializer, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<S: Serializer>(known: &[&'static Extension], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(known.iter().map(|extension| extension.name))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<[&'static Extension]>, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        Ok(names.iter().filter_map(|name| builtin::extension(name)).collect())
    }
}
