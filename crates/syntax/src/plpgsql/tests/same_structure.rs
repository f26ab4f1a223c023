//! The reader against PostgreSQL's own, through `pg_query::parse_plpgsql`.

use super::read_text;
use crate::plpgsql::{
    Block, ConditionKind, Context, Fetch, Handler, LoopKind, Statement, StatementKind, Visitor, walk,
};
use serde_json::Value;

/// Statements with the number of loops, branches and handlers around them, sorted: the JSON does not keep the order.
type Structure = Vec<(Around, String)>;

type Around = [u32; 3];

#[derive(Default)]
struct Ours {
    found: Structure,
}

fn around(context: Context) -> Around {
    [context.loops, context.branches, context.handlers]
}

fn name(statement: &Statement) -> Option<&'static str> {
    Some(match &statement.kind {
        StatementKind::Null => return None,
        StatementKind::Block(_) => "block",
        StatementKind::Assign(_) => "assign",
        StatementKind::If(_) => "if",
        StatementKind::Case(_) => "case",
        StatementKind::Loop(around) => match around.kind {
            LoopKind::Endless => "loop",
            LoopKind::While(_) => "while",
            LoopKind::Integer { .. } => "fori",
            LoopKind::Query { .. } => "fors",
            LoopKind::Dynamic { .. } => "dynfors",
            LoopKind::Cursor { .. } => "forc",
            LoopKind::Foreach { .. } => "foreach_a",
        },
        StatementKind::Exit(_) | StatementKind::Continue(_) => "exit",
        StatementKind::Return(_) => "return",
        StatementKind::ReturnNext(_) => "return_next",
        StatementKind::ReturnQuery(_) => "return_query",
        StatementKind::Raise(_) => "raise",
        StatementKind::Assert(_) => "assert",
        StatementKind::Execute(_) => "dynexecute",
        StatementKind::Perform(_) => "perform",
        StatementKind::GetDiagnostics(_) => "getdiag",
        StatementKind::Open(_) => "open",
        StatementKind::Fetch(Fetch { .. }) | StatementKind::Move(_) => "fetch",
        StatementKind::Close(_) => "close",
        StatementKind::Call(_) => "call",
        StatementKind::Commit(_) => "commit",
        StatementKind::Rollback(_) => "rollback",
        StatementKind::Sql(_) => "execsql",
    })
}

impl Visitor for Ours {
    fn block(&mut self, block: &Block, context: Context) {
        if block.exception.is_some() {
            self.found.push((around(context), "exceptions".to_owned()));
        }
    }

    fn handler(&mut self, handler: &Handler, _block: &Block, context: Context) {
        for condition in &handler.conditions {
            let name = match &condition.kind {
                ConditionKind::Name(name) => name.as_str(),
                ConditionKind::SqlState(state) => state.as_str(),
                ConditionKind::Others => "others",
            };
            self.found.push((around(context), format!("when {name}")));
        }
    }

    fn statement(&mut self, statement: &Statement, context: Context) {
        let Some(name) = name(statement) else { return };
        let text = match &statement.kind {
            StatementKind::Sql(sql) => sql.text.text.trim(),
            StatementKind::Perform(sql) | StatementKind::Call(sql) => sql.text.trim(),
            _ => "",
        };
        self.found.push((around(context), format!("{name} {text}").trim().to_owned()));
    }
}

fn ours(text: &str) -> Structure {
    let body = read_text(text);
    assert_eq!(body.errors, [], "{text}");
    let mut visitor = Ours::default();
    walk(&body.block, &mut visitor);
    visitor.found.sort();
    visitor.found
}

fn theirs(value: &Value, around: Around, found: &mut Structure) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| theirs(value, around, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let inside = statement(key, value, around, found);
                theirs(value, inside, found);
            }
        }
        _ => {}
    }
}

/// Notes what the node is, and gives what is around its children.
fn statement(key: &str, value: &Value, around: Around, found: &mut Structure) -> Around {
    let [loops, branches, handlers] = around;
    match key {
        "PLpgSQL_exception_block" => found.push((around, "exceptions".to_owned())),
        "PLpgSQL_exception" => return [loops, branches, handlers + 1],
        "PLpgSQL_condition" => {
            let name = value["condname"].as_str().expect("a condition has a name");
            found.push((around, format!("when {name}")));
        }
        _ => {}
    }
    let Some(name) = key.strip_prefix("PLpgSQL_stmt_") else { return around };
    // PostgreSQL adds a RETURN, and a block around one with EXCEPTION; neither has a line.
    if !(matches!(name, "return" | "block") && value.get("lineno").is_none()) {
        let sql = ["sqlstmt", "expr"].iter().find_map(|field| value[field]["PLpgSQL_expr"]["query"].as_str());
        let text = sql.filter(|_| matches!(name, "execsql" | "perform" | "call")).unwrap_or("");
        found.push((around, format!("{name} {}", text.trim()).trim().to_owned()));
    }
    match name {
        "if" | "case" => [loops, branches + 1, handlers],
        "loop" | "while" | "fori" | "fors" | "dynfors" | "forc" | "foreach_a" => [loops + 1, branches, handlers],
        _ => around,
    }
}

fn header(body: &str) -> &'static str {
    if body.contains("RETURN NEXT") || body.contains("RETURN QUERY") {
        "CREATE FUNCTION f(a int, b text) RETURNS SETOF int LANGUAGE plpgsql AS"
    } else if body.contains("RETURN a") {
        "CREATE FUNCTION f(a int, b text) RETURNS int LANGUAGE plpgsql AS"
    } else {
        "CREATE FUNCTION f(a int, b text) RETURNS void LANGUAGE plpgsql AS"
    }
}

#[test]
fn structure_is_the_same_as_postgresqls() {
    let bodies: Vec<_> = include_str!("bodies.sql").split("\n----\n").collect();
    assert!(bodies.len() >= 40);
    let mut refused = Vec::new();
    for body in bodies {
        let mut ours = ours(body);
        match pg_query::parse_plpgsql(&format!("{} $body$\n{body}\n$body$", header(body))) {
            Ok(json) => {
                let mut found = Vec::new();
                theirs(&json, [0; 3], &mut found);
                found.sort();
                // Ours has no statement for the outermost block.
                let block = found.iter().position(|(_, name)| name == "block").expect("an outermost block");
                found.remove(block);
                ours.sort();
                assert_eq!(ours, found, "{body}\n{json:#}");
            }
            Err(error) => refused.push((body, error.to_string())),
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}
