//! The places where a statement can become smaller, and the replacements to try there.

mod together;

pub(crate) use together::{remove, remove_value};

use crate::grammar::{self, Shrink};
use crate::tree::{Message, Parts, Path, Tree, Value};
use std::collections::VecDeque;

/// A place in a tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slot {
    pub(crate) path: Path,
    pub(crate) kind: SlotKind,
}

/// What can be done at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotKind {
    /// Something simpler of the same role can stand there.
    Replace(Role),
    /// The default, which is not written, can stand there.
    Default(Shrink),
    /// Elements of the list can be removed, except for so many.
    Elements(usize),
    /// Several fields of the node change together.
    Together,
}

/// What a value is to the node around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Statement,
    Expression,
    Query,
    Source,
    Type,
}

/// The places of a statement, the outermost first, so that large parts go before small ones.
pub(crate) fn slots(tree: &Tree) -> Vec<Slot> {
    let mut slots = vec![Slot { path: Vec::new(), kind: SlotKind::Replace(Role::Statement) }];
    let mut queue = VecDeque::from([(Vec::new(), &tree.statement)]);
    while let Some((path, value)) = queue.pop_front() {
        if let Some(node) = value.message() {
            slots.push(Slot { path: path.clone(), kind: SlotKind::Together });
            for (index, (field, value)) in node.fields.iter().enumerate() {
                let path = step(&path, index);
                of_field(node, field, &path, value, &mut slots);
                queue.push_back((path, value));
            }
        } else if let Value::List(list) = value {
            queue.extend(list.iter().enumerate().map(|(index, element)| (step(&path, index), element)));
        }
    }
    slots
}

/// The places where an expression stands.
pub(crate) fn expressions(tree: &Tree) -> impl Iterator<Item = Path> {
    let is_expression =
        |path: &Path| tree.statement.at(path).and_then(Value::message).is_some_and(grammar::is_expression);
    of_kind(tree, Role::Expression).filter(is_expression)
}

/// The places where a query stands.
pub(crate) fn queries(tree: &Tree) -> impl Iterator<Item = Path> {
    of_kind(tree, Role::Query)
}

/// The places where a source of a query stands.
pub(crate) fn sources(tree: &Tree) -> impl Iterator<Item = Path> {
    of_kind(tree, Role::Source)
}

fn of_kind(tree: &Tree, role: Role) -> impl Iterator<Item = Path> {
    slots(tree).into_iter().filter(move |slot| slot.kind == SlotKind::Replace(role)).map(|slot| slot.path)
}

fn step(path: &[usize], index: usize) -> Path {
    path.iter().copied().chain([index]).collect()
}

fn of_field(node: &Message, field: &str, path: &[usize], value: &Value, slots: &mut Vec<Slot>) {
    let shrink = grammar::shrink(node, field);
    let mut add = |path: Path, kind| slots.push(Slot { path, kind });
    match shrink {
        Shrink::Keep => {}
        Shrink::Clear | Shrink::Number(_) | Shrink::Text(_) | Shrink::Qualifier => {
            add(path.to_vec(), SlotKind::Default(shrink));
        }
        Shrink::OptionalExpression => {
            add(path.to_vec(), SlotKind::Default(Shrink::Clear));
            add(path.to_vec(), SlotKind::Replace(Role::Expression));
        }
        Shrink::Expression => add(path.to_vec(), SlotKind::Replace(Role::Expression)),
        Shrink::Query => add(path.to_vec(), SlotKind::Replace(Role::Query)),
        Shrink::Source => add(path.to_vec(), SlotKind::Replace(Role::Source)),
        Shrink::Type => add(path.to_vec(), SlotKind::Replace(Role::Type)),
        Shrink::Elements(least) | Shrink::Expressions(least) | Shrink::Sources(least) => {
            add(path.to_vec(), SlotKind::Elements(least));
        }
    }
    let elements = match value {
        Value::List(list) => list.as_slice(),
        _ => &[],
    };
    let role = match shrink {
        Shrink::Expressions(_) => Some(Role::Expression),
        Shrink::Sources(_) => Some(Role::Source),
        _ => None,
    };
    for (index, element) in elements.iter().enumerate() {
        slots.extend(role.map(|role| Slot { path: step(path, index), kind: SlotKind::Replace(role) }));
        of_inner_list(grammar::inner_list(node, field), &step(path, index), element, slots);
    }
    of_inner_list(grammar::inner_list(node, field), path, value, slots);
}

/// A list that is itself a node: a row of VALUES, the right side of IN.
fn of_inner_list(shrink: Shrink, path: &[usize], value: &Value, slots: &mut Vec<Slot>) {
    let (Shrink::Expressions(least), Value::Node(_, node)) = (shrink, value) else { return };
    let Some(("items", Value::List(items))) = node.fields.first() else { return };
    let items_path = step(path, 0);
    slots.push(Slot { path: items_path.clone(), kind: SlotKind::Elements(least) });
    let of_item = |index| Slot { path: step(&items_path, index), kind: SlotKind::Replace(Role::Expression) };
    slots.extend((0..items.len()).map(of_item));
}

/// What can stand at a place instead of its value, the simplest first.
pub(crate) fn replacements(tree: &Tree, slot: &Slot, parts: &Parts) -> Vec<Value> {
    let Some(value) = tree.statement.at(&slot.path) else { return Vec::new() };
    match slot.kind {
        SlotKind::Elements(_) => Vec::new(),
        SlotKind::Together => value.message().map(|node| together::together(value, node)).unwrap_or_default(),
        SlotKind::Default(shrink) => default(value, shrink).filter(|default| default != value).into_iter().collect(),
        SlotKind::Replace(Role::Type) => vec![parts.int.clone()],
        SlotKind::Replace(Role::Expression) => {
            let mut found = of_role(value, Role::Expression, parts);
            if !found.is_empty() {
                found.extend(compared_with_query(value, parts));
                found.extend(without_test(value));
                found.extend(typed_nulls(tree, parts));
                found.extend(parts.constants.iter().filter(|constant| *constant != value).cloned());
            }
            found
        }
        SlotKind::Replace(Role::Statement) => {
            of_role(value, Role::Statement, parts).into_iter().chain(queries_for_parts(value, parts)).collect()
        }
        SlotKind::Replace(role) => of_role(value, role, parts),
    }
}

fn default(value: &Value, shrink: Shrink) -> Option<Value> {
    match (shrink, value) {
        (Shrink::Number(number), Value::Number(_)) => Some(Value::Number(number)),
        (Shrink::Text(text), Value::Text(present)) if !present.is_empty() => Some(Value::Text(text.to_owned())),
        (Shrink::Qualifier, Value::List(list)) if list.len() > 1 => Some(Value::List(list[list.len() - 1..].to_vec())),
        (Shrink::Clear, Value::Number(_)) => Some(Value::Number(0)),
        (Shrink::Clear, Value::Text(_)) => Some(Value::Text(String::new())),
        (Shrink::Clear, Value::List(_)) => Some(Value::List(Vec::new())),
        (Shrink::Clear, Value::Message(_) | Value::Node(..)) => Some(Value::Absent),
        _ => None,
    }
}

fn of_role(value: &Value, role: Role, parts: &Parts) -> Vec<Value> {
    let Some(present) = value.message() else { return Vec::new() };
    let mut found = match role {
        Role::Expression if grammar::is_expression(present) || is_expression_like(present) => vec![parts.null.clone()],
        Role::Expression => return Vec::new(),
        _ => Vec::new(),
    };
    let fits = |node: &Message| match role {
        Role::Statement => grammar::is_query(node),
        Role::Expression => grammar::is_expression(node),
        Role::Query => node.name == "SelectStmt",
        Role::Source => grammar::is_source(node),
        Role::Type => false,
    };
    let is_of_fixed_kind = matches!(value, Value::Message(_));
    let wrapped = |kind: u32, node: &Message| {
        if is_of_fixed_kind { Value::Message(node.clone()) } else { Value::Node(kind, node.clone()) }
    };
    inside(value, &mut |inner| match inner {
        Value::Node(kind, node) if fits(node) => found.push(wrapped(*kind, node)),
        // The sides of UNION.
        Value::Message(node) if fits(node) && node.name == "SelectStmt" && is_used(node) => {
            found.push(wrapped(parts.select, node));
        }
        _ => {}
    });
    found
}

/// Queries for each expression of a statement that is in no other expression: without a source, and with what the
/// statement reads or changes.
fn queries_for_parts(statement: &Value, parts: &Parts) -> Vec<Value> {
    let Some(node) = statement.message() else { return Vec::new() };
    let relation = node.get("relation").and_then(Value::message).filter(|relation| relation.name == "RangeVar");
    let source = relation.filter(|relation| is_used(relation)).and_then(|relation| parts.source(relation));
    let sources: Vec<Value> = source.into_iter().chain(node.list("from_clause").iter().cloned()).collect();
    let mut found = Vec::new();
    let mut queue: VecDeque<&Value> = children(statement).collect();
    while let Some(value) = queue.pop_front() {
        if !value.message().is_some_and(grammar::is_expression) {
            queue.extend(children(value));
            continue;
        }
        found.push(parts.query_for(value, Vec::new()));
        if !sources.is_empty() {
            found.push(parts.query_for(value, sources.clone()));
        }
    }
    found
}

/// `a IN (SELECT b FROM t)` as `a = b`.
fn compared_with_query(value: &Value, parts: &Parts) -> Option<Value> {
    let link = value.message().filter(|node| node.name == "SubLink")?;
    let test = link.get("testexpr").filter(|test| !test.is_empty())?;
    let target = link.get("subselect")?.message()?.list("target_list").first()?.message()?.get("val")?;
    Some(parts.equality_of(test.clone(), target.clone()))
}

/// `EXPR_SUBLINK` in the numbers of Protocol Buffers.
const SCALAR: i64 = 5;

/// `a IN (SELECT b FROM t)` as `(SELECT b FROM t)`.
fn without_test(value: &Value) -> Option<Value> {
    let link = value.message().filter(|node| node.name == "SubLink")?;
    link.get("testexpr").filter(|test| !test.is_empty())?;
    let mut scalar = value.clone();
    let node = scalar.message_mut()?;
    node.set("sub_link_type", Value::Number(SCALAR));
    node.set("testexpr", Value::Absent);
    node.set("oper_name", Value::List(Vec::new()));
    Some(scalar)
}

/// How many types of a statement are tried.
const MOST_TYPES: usize = 4;

/// NULL in the types that the statement names: an error that is about types often needs no value.
fn typed_nulls(tree: &Tree, parts: &Parts) -> Vec<Value> {
    let mut types: Vec<&Value> = Vec::new();
    inside(&tree.statement, &mut |value| {
        let is_type = matches!(value, Value::Message(node) if node.name == "TypeName" && is_used(node));
        if is_type && types.len() < MOST_TYPES && !types.contains(&value) {
            types.push(value);
        }
    });
    types.into_iter().map(|of_type| parts.null_of(of_type)).collect()
}

/// What only some lists of expressions have: `name => value`, DEFAULT.
fn is_expression_like(node: &Message) -> bool {
    matches!(node.name, "NamedArgExpr" | "SetToDefault")
}

/// Whether a node has anything.
fn is_used(node: &Message) -> bool {
    node.fields.iter().any(|(_, value)| !value.is_empty())
}

/// Visits everything inside of a value, level by level.
pub(crate) fn inside<'v>(value: &'v Value, visit: &mut impl FnMut(&'v Value)) {
    let mut queue: VecDeque<&Value> = children(value).collect();
    while let Some(value) = queue.pop_front() {
        visit(value);
        queue.extend(children(value));
    }
}

pub(crate) fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::List(list) => Box::new(list.iter()),
        Value::Message(node) | Value::Node(_, node) => Box::new(node.fields.iter().map(|(_, value)| value)),
        _ => Box::new(std::iter::empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::statement::{PARSE_STACK_BYTES, split};
    use std::collections::BTreeMap;
    use std::path::Path as FilePath;

    /// How many statements of a kind are taken apart.
    const MOST: usize = 25;

    /// The trees that one step can lead to.
    fn changed(tree: &Tree, parts: &Parts) -> Vec<Tree> {
        let mut found = Vec::new();
        for slot in slots(tree) {
            let mut values = replacements(tree, &slot, parts);
            if let (SlotKind::Elements(least), Some(Value::List(list))) = (slot.kind, tree.statement.at(&slot.path)) {
                values.push(Value::List(list[..least.min(list.len())].to_vec()));
                values.extend((0..list.len()).filter(|_| list.len() > least).map(|at| {
                    let mut rest = list.clone();
                    rest.remove(at);
                    Value::List(rest)
                }));
            }
            for value in values {
                let mut changed = tree.clone();
                *changed.statement.at_mut(&slot.path).expect("the place exists") = value;
                found.push(changed);
            }
        }
        found
    }

    fn texts(folder: &FilePath, found: &mut Vec<String>) {
        let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for entry in entries {
            if entry.is_dir() {
                texts(&entry, found);
            } else if entry.extension().is_some_and(|extension| extension == "sql") {
                found.extend(std::fs::read_to_string(entry));
            }
        }
    }

    /// The deparser ends the process for a tree that no text has, so this test is the proof of the tables in `grammar`.
    #[test]
    fn every_step_leads_to_a_tree_that_can_be_written() {
        let run = || {
            let fixtures = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
            let mut all = Vec::new();
            texts(&fixtures, &mut all);
            let own = include_str!("edits/statements.sql");
            let unread = split(own).pieces.into_iter().map(|piece| &own[piece.range.as_usize()]);
            let unread: Vec<&str> = unread.filter(|sql| Tree::parse(sql).is_none()).collect();
            assert!(unread.is_empty(), "{unread:#?}");
            all.push(own.to_owned());
            let parts = Parts::new();
            let mut of_kind: BTreeMap<&str, usize> = BTreeMap::new();
            let (mut written, mut refused) = (0, 0);
            // The statements that are there for this test come first.
            for text in all.iter().rev() {
                for piece in split(text).pieces.iter().filter(|piece| piece.kind.is_statement()) {
                    let Some(tree) = Tree::parse(&text[piece.range.as_usize()]) else { continue };
                    let count = of_kind.entry(tree.statement.message().map_or("", |node| node.name)).or_default();
                    *count += 1;
                    if *count > MOST {
                        continue;
                    }
                    for changed in changed(&tree, &parts) {
                        if changed.deparse().is_some_and(|sql| Tree::parse(&sql).is_some()) {
                            written += 1;
                        } else {
                            refused += 1;
                        }
                    }
                }
            }
            assert!(of_kind.len() > 50 && written > 4000, "{of_kind:?}, {written}");
            assert!(refused * 10 < written, "{refused} of {written} steps lead to no statement");
        };
        std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn(run).unwrap().join().unwrap();
    }

    #[test]
    fn a_part_can_replace_the_whole() {
        let tree = Tree::parse("SELECT f(a + 1) FROM (SELECT b FROM t) s UNION SELECT 2").unwrap();
        let texts: Vec<String> = changed(&tree, &Parts::new()).iter().filter_map(Tree::deparse).collect();
        for expected in [
            "SELECT 2",
            "SELECT f(a + 1) FROM (SELECT b FROM t) s",
            "SELECT b FROM t",
            "SELECT NULL FROM (SELECT b FROM t) s UNION SELECT 2",
            "SELECT a FROM (SELECT b FROM t) s UNION SELECT 2",
            "SELECT f(a) FROM (SELECT b FROM t) s UNION SELECT 2",
            "SELECT f() FROM (SELECT b FROM t) s UNION SELECT 2",
            "SELECT f(a + 1) FROM t UNION SELECT 2",
        ] {
            assert!(texts.iter().any(|text| text.replace(" AS ", " ") == expected), "{expected}: {texts:#?}");
        }
    }

    #[test]
    fn a_column_goes_with_its_values() {
        let tree = Tree::parse("INSERT INTO t (a, b) VALUES (1, 2), (3, 4)").unwrap();
        let texts: Vec<String> = changed(&tree, &Parts::new()).iter().filter_map(Tree::deparse).collect();
        assert!(texts.iter().any(|text| text == "INSERT INTO t (a) VALUES (1), (3)"), "{texts:#?}");
    }

    #[test]
    fn a_list_and_a_conflict_become_simpler() {
        for (sql, expected) in [
            ("SELECT a IN (SELECT b FROM t)", "SELECT a = b"),
            ("SELECT a < ALL (SELECT b FROM t)", "SELECT (SELECT b FROM t)"),
            (
                "INSERT INTO t SELECT ON CONFLICT (a) DO UPDATE SET b = 1 WHERE c",
                "INSERT INTO t SELECT ON CONFLICT (a) DO NOTHING",
            ),
        ] {
            let tree = Tree::parse(sql).unwrap();
            let texts: Vec<String> = changed(&tree, &Parts::new()).iter().filter_map(Tree::deparse).collect();
            assert!(texts.iter().any(|text| text == expected), "{sql}: {texts:#?}");
        }
    }
}
