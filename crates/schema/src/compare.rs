//! Two schemas compared.

use crate::alike::{Texts, Verdict};
use crate::facets::{Identifier, Item, Value, items};
use crate::object::{Name, Schema, Source};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What differs between two schemas, in a stable order, and what could not be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    pub changes: Vec<Change>,
    pub not_compared: Vec<NotCompared>,
}

/// An object that one side lacks, or that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub action: Action,
    /// `table`, `column`, `index` and so on.
    pub kind: String,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Removed,
    Added,
    Changed,
}

/// A property with both values; absent is nothing, such as no default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    pub kind: String,
    /// The full name of the object.
    pub object: String,
    pub property: String,
    pub why: String,
}

/// Compares two schemas. What only one side knows is not compared, and said.
pub fn compare(before: &Schema, after: &Schema) -> Comparison {
    let sides = Sides { sources: [before.source, after.source], before: items(before), after: items(after) };
    let mut found = sides.added_and_removed();
    let mut comparison = Comparison::default();
    found.extend(sides.changed(&mut comparison.not_compared));
    // An object of another kind is removed before it is added.
    found.sort_by(|(one, first), (other, second)| (one, first.action).cmp(&(other, second.action)));
    comparison.changes = found.into_iter().map(|(_, change)| change).collect();
    for gap in before.gaps.iter().chain(&after.gaps).collect::<BTreeSet<&String>>() {
        let nothing = String::new;
        comparison.not_compared.push(NotCompared {
            kind: "schema".to_owned(),
            object: nothing(),
            property: nothing(),
            why: gap.clone(),
        });
    }
    comparison.not_compared.sort();
    comparison.not_compared.dedup();
    comparison
}

struct Sides {
    sources: [Source; 2],
    before: BTreeMap<Identifier, Item>,
    after: BTreeMap<Identifier, Item>,
}

/// The relation that an object is a part of.
fn whole(identifier: &Identifier) -> Option<Identifier> {
    identifier.part.as_ref().map(|_| Identifier { part: None, ..identifier.clone() })
}

impl Sides {
    fn added_and_removed(&self) -> Vec<(Identifier, Change)> {
        let mut found = Vec::new();
        let sides = [(&self.before, &self.after, Action::Removed), (&self.after, &self.before, Action::Added)];
        for (here, there, action) in sides {
            for (identifier, item) in here {
                if there.contains_key(identifier) {
                    continue;
                }
                // A relation is added and removed with its parts.
                let whole = whole(identifier);
                if whole.as_ref().is_some_and(|whole| !there.contains_key(whole)) {
                    continue;
                }
                // Of a relation that no statement creates, only some parts are known.
                let is_partly_known = whole.and_then(|whole| there.get(&whole)).is_some_and(|other| !other.is_complete);
                if is_partly_known {
                    continue;
                }
                found.push((identifier.clone(), change(identifier, item, action, Vec::new())));
            }
        }
        found
    }

    fn changed(&self, not_compared: &mut Vec<NotCompared>) -> Vec<(Identifier, Change)> {
        let mut found = Vec::new();
        for (identifier, before) in &self.before {
            let Some(after) = self.after.get(identifier) else { continue };
            if before.is_complete != after.is_complete {
                if identifier.part.is_none() {
                    not_compared.push(NotCompared {
                        kind: before.kind.to_owned(),
                        object: full_name(identifier),
                        property: "its parts".to_owned(),
                        why: "no statement that was read creates it".to_owned(),
                    });
                }
                continue;
            }
            let properties = self.properties(identifier, before, after, not_compared);
            if !properties.is_empty() {
                found.push((identifier.clone(), change(identifier, after, Action::Changed, properties)));
            }
        }
        found
    }

    fn properties(
        &self,
        identifier: &Identifier,
        before: &Item,
        after: &Item,
        not_compared: &mut Vec<NotCompared>,
    ) -> Vec<Property> {
        let mut found = Vec::new();
        let names: Vec<&'static str> =
            before.properties.iter().chain(&after.properties).map(|(name, _)| *name).collect();
        let mut seen: Vec<&'static str> = Vec::new();
        for name in names {
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let value = |item: &Item| {
                let own = item.properties.iter().find(|(own, _)| *own == name);
                own.map_or(Value::None, |(_, value)| value.clone())
            };
            let (ours, theirs) = (value(before), value(after));
            match self.verdict(&ours, &theirs) {
                Ok(Verdict::Same) => {}
                Ok(Verdict::Different) if name == "column order" && !is_permutation(&ours, &theirs) => {}
                Ok(Verdict::Different) => {
                    found.push(Property { name: name.to_owned(), before: shown(&ours), after: shown(&theirs) });
                }
                Ok(Verdict::Unsure) => {
                    let text = |value: &Value| shown(value).unwrap_or_else(|| "nothing".to_owned());
                    not_compared.push(NotCompared {
                        kind: before.kind.to_owned(),
                        object: full_name(identifier),
                        property: name.to_owned(),
                        why: format!("`{}` and `{}` may mean the same", text(&ours), text(&theirs)),
                    });
                }
                Err(why) => not_compared.push(NotCompared {
                    kind: before.kind.to_owned(),
                    object: full_name(identifier),
                    property: name.to_owned(),
                    why: format!("not known: {why}"),
                }),
            }
        }
        found
    }

    /// An error is what one side does not know.
    fn verdict(&self, before: &Value, after: &Value) -> Result<Verdict, String> {
        match (before, after) {
            (Value::Unknown(why), _) | (_, Value::Unknown(why)) => Err(why.clone()),
            (Value::Code(form, before), Value::Code(_, after)) => {
                Ok(Texts { form: *form, sources: self.sources, written: [before, after] }.compare())
            }
            (before, after) => Ok(if before == after { Verdict::Same } else { Verdict::Different }),
        }
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
        Value::Text(text) | Value::Code(_, text) => Some(text.clone()),
        Value::Unknown(why) => Some(format!("({why})")),
    }
}

fn full_name(identifier: &Identifier) -> String {
    match &identifier.part {
        Some((_, part)) => format!("{}.{part}", identifier.name),
        None => identifier.name.to_string(),
    }
}

fn change(identifier: &Identifier, item: &Item, action: Action, properties: Vec<Property>) -> Change {
    Change {
        action,
        kind: item.kind.to_owned(),
        object: identifier.name.clone(),
        part: identifier.part.as_ref().map(|(_, name)| name.clone()),
        definition: if action == Action::Changed { String::new() } else { item.summary.clone() },
        properties,
    }
}

impl Change {
    /// The full name of the object.
    pub fn name(&self) -> String {
        match &self.part {
            Some(part) => format!("{}.{part}", self.object),
            None => self.object.to_string(),
        }
    }
}
