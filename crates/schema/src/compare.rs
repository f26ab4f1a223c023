//! Two schemas compared.

use crate::alike::{Texts, Verdict};
use crate::facets::{COLUMN_ORDER, Identifier, Item, Value, items};
use crate::kind::Kind;
use crate::object::{Column, Known, Name, Schema, Source};
use crate::words;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What differs between two schemas, in a stable order, and what could not be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    pub changes: Vec<Change>,
    pub not_compared: Vec<NotCompared>,
}

/// An object that one side lacks, or that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub action: Action,
    pub kind: Kind,
    /// The object, or the relation that has it.
    #[serde(flatten)]
    pub object: Name,
    /// The column, constraint, index, trigger, policy or rule of the relation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The definition, if it is added or removed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub definition: String,
    /// What differs, if it is changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
}

/// How an object differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Removed,
    Added,
    Changed,
}

/// A property with both values; absent is nothing, such as no default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Property {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A property that is not compared, because one side does not know it or both may mean the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NotCompared {
    pub kind: Kind,
    /// The full name of the object.
    pub object: String,
    pub property: String,
    pub why: String,
}

/// Compares two schemas. What only one side knows is not compared, and listed as such.
pub fn compare(before: &Schema, after: &Schema) -> Comparison {
    let sides = Sides {
        sources: [before.source, after.source],
        before: items(before),
        after: items(after),
        of_extensions: before.extension_relations.iter().chain(&after.extension_relations).cloned().collect(),
    };
    let mut changes = BTreeMap::new();
    let mut not_compared: BTreeSet<NotCompared> = BTreeSet::new();
    sides.only_on_one_side(&mut changes, &mut not_compared);
    sides.changed(&mut changes, &mut not_compared);
    not_compared.extend(before.gaps.iter().chain(&after.gaps).map(|gap| NotCompared {
        kind: Kind::Schema,
        object: String::new(),
        property: String::new(),
        why: gap.clone(),
    }));
    Comparison { changes: changes.into_values().collect(), not_compared: not_compared.into_iter().collect() }
}

/// Why a relation is known only in part.
const NOT_CREATED: &str = "no statement that was read creates it";

/// Why a relation is not compared that one side does not read because an extension creates it.
const OF_EXTENSION: &str = "it belongs to an extension";

struct Sides {
    sources: [Source; 2],
    before: BTreeMap<Identifier, Item>,
    after: BTreeMap<Identifier, Item>,
    /// Relations that belong to extensions, as one of the sides knows.
    of_extensions: BTreeSet<Name>,
}

impl Sides {
    fn only_on_one_side(&self, changes: &mut BTreeMap<Identifier, Change>, not_compared: &mut BTreeSet<NotCompared>) {
        let [before, after] = self.sources;
        let sides =
            [(&self.before, &self.after, after, Action::Removed), (&self.after, &self.before, before, Action::Added)];
        for (here, there, other, action) in sides {
            for (identifier, item) in here.iter().filter(|(identifier, _)| !there.contains_key(identifier)) {
                let Some(whole) = identifier.whole() else {
                    if self.is_of_extension(item, &identifier.name) {
                        not_compared.insert(skipped(identifier, item, "definition", OF_EXTENSION.to_owned()));
                        continue;
                    }
                    // Files need not mention what they do not create; a database has all there is.
                    if item.is_complete || other == Source::Database {
                        changes.insert(identifier.clone(), change(identifier, item, action, Vec::new()));
                    } else {
                        not_compared.insert(skipped(identifier, item, "presence", NOT_CREATED.to_owned()));
                    }
                    continue;
                };
                match there.get(&whole) {
                    // A relation is added and removed with its parts.
                    None => {}
                    Some(other) if other.is_complete => {
                        changes.insert(identifier.clone(), change(identifier, item, action, Vec::new()));
                    }
                    Some(other) => {
                        not_compared.insert(parts_skipped(&whole, other));
                    }
                }
            }
        }
    }

    fn is_of_extension(&self, item: &Item, name: &Name) -> bool {
        matches!(item.kind.of_names(), Kind::Table | Kind::Sequence) && self.of_extensions.contains(name)
    }

    fn changed(&self, changes: &mut BTreeMap<Identifier, Change>, not_compared: &mut BTreeSet<NotCompared>) {
        for (identifier, before) in &self.before {
            let Some(after) = self.after.get(identifier) else { continue };
            if before.is_complete != after.is_complete {
                if identifier.part.is_none() {
                    not_compared.insert(parts_skipped(identifier, before));
                }
                continue;
            }
            let properties = self.properties(identifier, before, after, not_compared);
            if !properties.is_empty() {
                changes.insert(identifier.clone(), change(identifier, after, Action::Changed, properties));
            }
        }
    }

    fn properties(
        &self,
        identifier: &Identifier,
        before: &Item,
        after: &Item,
        not_compared: &mut BTreeSet<NotCompared>,
    ) -> Vec<Property> {
        let mut found = Vec::new();
        let mut names: Vec<&'static str> = before.properties.iter().map(|(name, _)| *name).collect();
        names.extend(
            after.properties.iter().map(|(name, _)| *name).filter(|name| !names.contains(name)).collect::<Vec<_>>(),
        );
        for name in names {
            let value = |item: &Item| {
                let own = item.properties.iter().find(|(own, _)| *own == name);
                own.map_or(Value::None, |(_, value)| value.clone())
            };
            let (ours, theirs) = (value(before), value(after));
            match self.verdict(&ours, &theirs) {
                Ok(Verdict::Same) => {}
                Ok(Verdict::Different) if name == COLUMN_ORDER && !is_permutation(&ours, &theirs) => {}
                Ok(Verdict::Different) => {
                    found.push(Property { name: name.to_owned(), before: shown(&ours), after: shown(&theirs) });
                }
                Ok(Verdict::Unsure) => {
                    let text = |value: &Value| shown(value).unwrap_or_else(|| NOTHING.to_owned());
                    let why = format!("`{}` and `{}` may mean the same", text(&ours), text(&theirs));
                    not_compared.insert(skipped(identifier, before, name, why));
                }
                Err(why) => {
                    not_compared.insert(skipped(identifier, before, name, format!("not known: {why}")));
                }
            }
        }
        found
    }

    /// An error is what one side does not know.
    fn verdict(&self, before: &Value, after: &Value) -> Result<Verdict, String> {
        match (before, after) {
            (Value::Unknown(why), _) | (_, Value::Unknown(why)) => Err(why.clone()),
            (Value::Assumed(before, why), Value::Text(after) | Value::Assumed(after, _))
            | (Value::Text(before), Value::Assumed(after, why)) => {
                if before == after {
                    Ok(Verdict::Same)
                } else {
                    Err((*why).to_owned())
                }
            }
            (Value::Code(form, before), Value::Code(_, after)) => {
                Ok(Texts { form: *form, sources: self.sources, written: [before, after] }.compare())
            }
            (Value::Function(before), Value::Function(after))
                if before.schema.is_empty() || after.schema.is_empty() =>
            {
                Ok(if before.name == after.name { Verdict::Same } else { Verdict::Different })
            }
            (Value::Columns(before), Value::Columns(after)) => columns(before, after),
            (before, after) => Ok(if before == after { Verdict::Same } else { Verdict::Different }),
        }
    }
}

/// Columns of a view are the same if all that is known of them is. An error is a type that one side does not know.
fn columns(before: &[Column], after: &[Column]) -> Result<Verdict, String> {
    let mut unknown = None;
    for (before, after) in before.iter().zip(after) {
        let types = [&before.sql_type, &after.sql_type];
        let not_known = types.into_iter().find_map(|sql_type| match sql_type {
            Known::Unknown { not_known } => Some(not_known),
            Known::Value(_) => None,
        });
        let is_same = match not_known {
            Some(_) => before.name == after.name,
            None => words::column(before) == words::column(after),
        };
        if !is_same {
            return Ok(Verdict::Different);
        }
        unknown = unknown.or(not_known);
    }
    match unknown {
        _ if before.len() != after.len() => Ok(Verdict::Different),
        Some(not_known) => Err(not_known.clone()),
        None => Ok(Verdict::Same),
    }
}

/// Whether two lists have the same columns: if columns were added or removed, that is said already.
fn is_permutation(before: &Value, after: &Value) -> bool {
    let names = |value: &Value| -> BTreeSet<String> {
        shown(value).unwrap_or_default().split(", ").map(str::to_owned).collect()
    };
    names(before) == names(after)
}

fn shown(value: &Value) -> Option<String> {
    match value {
        Value::None => None,
        Value::Text(text) | Value::Code(_, text) | Value::Assumed(text, _) => Some(text.clone()),
        Value::Function(name) => Some(name.to_string()),
        Value::Columns(columns) => Some(words::list(&columns.iter().map(words::column).collect::<Vec<String>>())),
        Value::Unknown(why) => Some(format!("({why})")),
    }
}

fn full_name(object: &Name, part: Option<&str>) -> String {
    part.map_or_else(|| object.to_string(), |part| format!("{object}.{part}"))
}

fn skipped(identifier: &Identifier, item: &Item, property: &str, why: String) -> NotCompared {
    let part = identifier.part.as_ref().map(|(_, name)| name.as_str());
    NotCompared { kind: item.kind, object: full_name(&identifier.name, part), property: property.to_owned(), why }
}

fn parts_skipped(relation: &Identifier, item: &Item) -> NotCompared {
    skipped(relation, item, "columns and other parts", NOT_CREATED.to_owned())
}

fn change(identifier: &Identifier, item: &Item, action: Action, properties: Vec<Property>) -> Change {
    Change {
        action,
        kind: item.kind,
        object: identifier.name.clone(),
        part: identifier.part.as_ref().map(|(_, name)| name.clone()),
        definition: if action == Action::Changed { String::new() } else { item.summary.clone() },
        properties,
    }
}

impl NotCompared {
    /// What is not compared, and why.
    pub fn text(&self) -> String {
        let words = [self.property.as_str(), "of", self.kind.noun(), &self.object];
        let what = if self.object.is_empty() { String::new() } else { format!("{}: ", words.join(" ")) };
        format!("{what}{}", self.why)
    }
}

impl Change {
    /// The full name of the object.
    pub fn name(&self) -> String {
        full_name(&self.object, self.part.as_deref())
    }
}

/// Shown for an absent value.
const NOTHING: &str = "nothing";

impl Property {
    /// The value before, in words.
    pub fn before(&self) -> &str {
        self.before.as_deref().unwrap_or(NOTHING)
    }

    /// The value after, in words.
    pub fn after(&self) -> &str {
        self.after.as_deref().unwrap_or(NOTHING)
    }
}

#[cfg(test)]
mod tests;
