//! Changes of a node that only work in several fields at once.

use crate::tree::{Message, Value};

/// `FRAMEOPTION_DEFAULTS` (`parsenodes.h`).
const DEFAULT_FRAME: i64 = 0x2 | 0x20 | 0x400;
/// `JOIN_INNER` in the numbers of Protocol Buffers.
const INNER: i64 = 1;
/// `SETOP_NONE`.
const NO_SET_OPERATION: i64 = 1;
/// Labels of `ConstrType`.
const PRIMARY: i64 = 7;
const UNIQUE: i64 = 8;
const FOREIGN: i64 = 10;
/// Labels of `OnConflictAction`.
const DO_NOTHING: i64 = 2;
const DO_UPDATE: i64 = 3;

/// Changes of a node that only work in several fields at once.
pub(super) fn together(value: &Value, node: &Message) -> Vec<Value> {
    let with = |change: &dyn Fn(&mut Message)| {
        let mut changed = value.clone();
        if let Some(node) = changed.message_mut() {
            change(node);
        }
        changed
    };
    match node.name {
        "WindowDef" if node.number("frame_options").is_some_and(|options| options & 1 == 1) => {
            vec![with(&|window| {
                window.set("frame_options", Value::Number(DEFAULT_FRAME));
                window.set("start_offset", Value::Absent);
                window.set("end_offset", Value::Absent);
            })]
        }
        "JoinExpr" => vec![with(&|join| {
            join.set("jointype", Value::Number(INNER));
            join.set("is_natural", Value::Number(0));
            join.set("using_clause", Value::List(Vec::new()));
            join.set("join_using_alias", Value::Absent);
            join.set("quals", Value::Absent);
        })],
        "SelectStmt" if !node.list("values_lists").is_empty() => Vec::new(),
        "SelectStmt" if node.number("op") != Some(NO_SET_OPERATION) => {
            (0..columns(node)).rev().map(|at| with(&|select| remove_target(select, at))).collect()
        }
        "CreateStmt" => {
            (0..node.list("table_elts").len()).filter_map(|at| constraint_of_column(value, node, at)).collect()
        }
        "SelectStmt" => {
            let named = |target: &Value| matches!(target.message().and_then(|target| target.get("name")), Some(name) if !name.is_empty());
            let named: Vec<usize> =
                (0..node.list("target_list").len()).filter(|at| named(&node.list("target_list")[*at])).collect();
            let unnamed = named.iter().map(|at| with(&|select| remove_name(select, *at)));
            joins_apart(value, node).into_iter().chain(unnamed).collect()
        }
        "InsertStmt" if !node.list("cols").is_empty() => {
            let without_names = with(&|insert| insert.set("cols", Value::List(Vec::new())));
            let without = (0..node.list("cols").len()).rev().map(|at| with(&|insert| remove_column(insert, at)));
            std::iter::once(without_names).chain(without).collect()
        }
        "OnConflictClause" if node.number("action") == Some(DO_UPDATE) => vec![with(&|conflict| {
            conflict.set("action", Value::Number(DO_NOTHING));
            conflict.set("target_list", Value::List(Vec::new()));
            conflict.set("where_clause", Value::Absent);
        })],
        "Constraint" => (0..node.list("pk_attrs").len().min(node.list("fk_attrs").len()))
            .filter(|_| node.list("fk_attrs").len() > 1)
            .rev()
            .map(|at| with(&|key| ["fk_attrs", "pk_attrs"].iter().for_each(|field| remove(key, field, at))))
            .collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn remove(node: &mut Message, field: &str, at: usize) {
    if let Some(Value::List(list)) = node.get_mut(field)
        && at < list.len()
    {
        list.remove(at);
    }
}

/// Takes `AS name` from a column of a query.
fn remove_name(select: &mut Message, at: usize) {
    if let Some(Value::List(targets)) = select.get_mut("target_list")
        && let Some(target) = targets.get_mut(at).and_then(Value::message_mut)
    {
        target.set("name", Value::Text(String::new()));
    }
}

/// Takes a column out of INSERT, with its values.
fn remove_column(insert: &mut Message, at: usize) {
    remove(insert, "cols", at);
    remove_value(insert, at);
}

/// Takes the values of a column out of INSERT.
pub(crate) fn remove_value(insert: &mut Message, at: usize) {
    let Some(select) = insert.get_mut("select_stmt").and_then(Value::message_mut) else { return };
    remove(select, "target_list", at);
    if let Some(Value::List(rows)) = select.get_mut("values_lists") {
        // A row without values has no text.
        for row in rows.iter_mut().filter_map(Value::message_mut).filter(|row| row.list("items").len() > 1) {
            remove(row, "items", at);
        }
    }
}

/// `FROM a JOIN b ON ...` as `FROM a, b`.
fn joins_apart(value: &Value, select: &Message) -> Vec<Value> {
    let apart = |source: &Value| match source.message() {
        Some(join) if join.name == "JoinExpr" => {
            ["larg", "rarg"].iter().filter_map(|side| join.get(side).cloned()).collect()
        }
        _ => vec![source.clone()],
    };
    let sources = select.list("from_clause");
    let flat: Vec<Value> = sources.iter().flat_map(apart).collect();
    if flat.len() == sources.len() {
        return Vec::new();
    }
    let mut changed = value.clone();
    if let Some(select) = changed.message_mut() {
        select.set("from_clause", Value::List(flat));
    }
    vec![changed]
}

/// The number of columns of the first query of a set operation.
fn columns(select: &Message) -> usize {
    match select.get("larg").and_then(Value::message) {
        Some(first) if is_set_operation(select) => columns(first),
        _ => select.list("target_list").len(),
    }
}

fn is_set_operation(select: &Message) -> bool {
    select.number("op") != Some(NO_SET_OPERATION)
}

/// Takes a column out of each query of a set operation.
fn remove_target(select: &mut Message, at: usize) {
    if !is_set_operation(select) {
        remove(select, "target_list", at);
        return;
    }
    for side in ["larg", "rarg"] {
        if let Some(query) = select.get_mut(side).and_then(Value::message_mut) {
            remove_target(query, at);
        }
    }
}

/// `CREATE TABLE t (a int, UNIQUE (a))` as `CREATE TABLE t (a int UNIQUE)`.
fn constraint_of_column(value: &Value, create: &Message, at: usize) -> Option<Value> {
    let element = create.list("table_elts").get(at)?;
    let constraint = element.message().filter(|element| element.name == "Constraint")?;
    let field = match constraint.number("contype")? {
        PRIMARY | UNIQUE => "keys",
        FOREIGN => "fk_attrs",
        _ => return None,
    };
    let [name] = constraint.list(field) else { return None };
    let name = name.message()?.get("sval")?;
    let is_column = |element: &Value| {
        element.message().is_some_and(|column| column.name == "ColumnDef" && column.get("colname") == Some(name))
    };
    let column = create.list("table_elts").iter().position(is_column)?;
    let mut of_column = element.clone();
    of_column.message_mut()?.set(field, Value::List(Vec::new()));
    let mut changed = value.clone();
    let Some(Value::List(elements)) = changed.message_mut()?.get_mut("table_elts") else { return None };
    let Some(Value::List(constraints)) = elements.get_mut(column)?.message_mut()?.get_mut("constraints") else {
        return None;
    };
    constraints.push(of_column);
    elements.remove(at);
    Some(changed)
}
