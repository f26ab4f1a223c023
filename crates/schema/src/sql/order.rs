//! Objects after those that they need.

use super::is_table;
use crate::object::{Code, Composite, Domain, Function, Name, Relation};
use std::collections::{BTreeMap, BTreeSet};

/// A type that needs others.
pub(super) enum OwnType<'a> {
    Domain(&'a Domain),
    Composite(&'a Composite),
}

/// Domains and composite types, each after those that its columns have.
pub(super) fn types<'a>(domains: &'a [Domain], composites: &'a [Composite]) -> Vec<OwnType<'a>> {
    let mut texts: BTreeMap<&Name, Vec<&str>> = BTreeMap::new();
    for domain in domains {
        texts.insert(&domain.name, domain.base.value().map(String::as_str).into_iter().collect());
    }
    for composite in composites {
        let types = composite.columns.iter().filter_map(|column| column.sql_type.value().map(String::as_str));
        texts.insert(&composite.name, types.collect());
    }
    sorted(&texts)
        .into_iter()
        .filter_map(|name| {
            let domain = domains.iter().find(|domain| domain.name == *name).map(OwnType::Domain);
            domain.or_else(|| composites.iter().find(|one| one.name == *name).map(OwnType::Composite))
        })
        .collect()
}

/// Tables, parents before their children.
pub(super) fn tables(relations: &[Relation]) -> Vec<&Relation> {
    let mut done: BTreeSet<&Name> = BTreeSet::new();
    let mut ordered: Vec<&Relation> = Vec::new();
    let mut open: Vec<&Relation> = relations.iter().filter(|relation| is_table(relation)).collect();
    let known: BTreeSet<&Name> = open.iter().map(|relation| &relation.name).collect();
    while !open.is_empty() {
        let is_ready = |relation: &&Relation| {
            relation.parents.iter().all(|parent| done.contains(parent) || !known.contains(parent))
        };
        let (ready, rest): (Vec<&Relation>, Vec<&Relation>) = open.iter().copied().partition(|one| is_ready(one));
        if ready.is_empty() {
            // A cycle, which no server allows.
            ordered.extend(rest);
            break;
        }
        done.extend(ready.iter().map(|relation| &relation.name));
        ordered.extend(ready);
        open = rest;
    }
    ordered
}

/// Views, each after those that its query names.
pub(super) fn views(relations: &[Relation]) -> Vec<&Relation> {
    let views: Vec<&Relation> = relations.iter().filter(|relation| relation.kind.is_view()).collect();
    let query = |view: &&Relation| view.query.as_ref().and_then(Code::value).cloned().unwrap_or_default();
    let texts: Vec<(&Name, String)> = views.iter().map(|view| (&view.name, query(view))).collect();
    let texts = texts.iter().map(|(name, text)| (*name, vec![text.as_str()])).collect();
    sorted(&texts).into_iter().filter_map(|name| views.iter().copied().find(|view| view.name == *name)).collect()
}

/// The views that cannot be created: those whose query is not known, and those that read one of them, with its name.
pub(super) fn missing_views(relations: &[Relation]) -> BTreeMap<&Name, Option<&Name>> {
    let mut missing: BTreeMap<&Name, Option<&Name>> = BTreeMap::new();
    for view in views(relations) {
        match view.query.as_ref().and_then(Code::value) {
            None => drop(missing.insert(&view.name, None)),
            Some(query) => {
                let read = missing.keys().copied().find(|other| mentions(query, other));
                missing.extend(read.map(|read| (&view.name, Some(read))));
            }
        }
    }
    missing
}

/// Whether the types of a function are those of rows of a relation. A view that calls the function cannot be one of
/// them: the type has the name of the view and is another one.
pub(super) fn names_relation(function: &Function, relations: &[Relation]) -> bool {
    let calls = |relation: &Relation| {
        let query = relation.query.as_ref().and_then(Code::value);
        query.is_some_and(|query| mentions(query, &function.name))
    };
    relations.iter().any(|relation| has_rows_of(function, &relation.name) && !calls(relation))
}

/// Whether a type of a function has the name of a relation.
pub(super) fn has_rows_of(function: &Function, relation: &Name) -> bool {
    let mut texts = [&function.parameters, &function.returns].into_iter().filter_map(|text| text.value());
    texts.any(|text| mentions(text, relation))
}

/// The names in an order in which each comes after those that its texts mention.
fn sorted<'a>(texts: &BTreeMap<&'a Name, Vec<&str>>) -> Vec<&'a Name> {
    let mut ordered: Vec<&Name> = Vec::new();
    let mut open: Vec<&Name> = texts.keys().copied().collect();
    while !open.is_empty() {
        let waits = |name: &Name| {
            let mut others = open.iter().filter(|other| ***other != *name);
            others.any(|other| texts[name].iter().any(|text| mentions(text, other)))
        };
        let ready: Vec<&Name> = open.iter().copied().filter(|name| !waits(name)).collect();
        if ready.is_empty() {
            ordered.append(&mut open);
            break;
        }
        open.retain(|name| !ready.contains(name));
        ordered.extend(ready);
    }
    ordered
}

/// Whether a text has the name of the object as a word of its own.
fn mentions(text: &str, name: &Name) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(name.name.as_str()).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
