//! What PostgreSQL's own parser of PL/pgSQL says about a body.

use crate::ast::from_pg::plpgsql_error;
use crate::lexer::quote_identifier;
use std::fmt::Write;

/// What the parser of a body needs to know about its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyResult {
    /// DO blocks and procedures have none.
    None,
    Value,
    Set,
    Trigger,
    EventTrigger,
}

/// Returns the message with which PostgreSQL refuses the syntax of a body, as CREATE FUNCTION does unless
/// `check_function_bodies` is off. Errors about names and types are not found.
///
/// Source: PostgreSQL 18, `src/pl/plpgsql/src/pl_handler.c`, `plpgsql_validator`; `pl_scanner.c`, `plpgsql_yyerror`.
pub fn refusal<'n>(body: &str, parameters: impl Iterator<Item = &'n str>, result: BodyResult) -> Option<String> {
    const TAG: &str = "$checked_body$";
    if body.contains(TAG) {
        return None;
    }
    // Types do not matter for the syntax, and only those of PostgreSQL are known.
    let mut listed = String::new();
    for (at, name) in parameters.enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(listed, "{comma}{} integer", quote_identifier(name));
    }
    let returns = match result {
        BodyResult::None => "void",
        BodyResult::Value => "integer",
        BodyResult::Set => "SETOF integer",
        BodyResult::Trigger => "trigger",
        BodyResult::EventTrigger => "event_trigger",
    };
    of_syntax(&format!("CREATE FUNCTION checked({listed}) RETURNS {returns} LANGUAGE plpgsql AS {TAG}{body}{TAG}"))
}

/// The same for the text of a DO statement; `None` for that of another one.
pub fn refusal_of_block(statement: &str) -> Option<String> {
    let is_block = statement.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("do"));
    is_block.then(|| of_syntax(statement)).flatten()
}

fn of_syntax(statement: &str) -> Option<String> {
    // Nothing but the message tells the errors apart: libpg_query passes on no SQLSTATE. Its messages are always in English.
    const STARTS: [&str; 3] = ["syntax error", "unterminated", "missing"];
    let message = plpgsql_error(statement)?;
    STARTS.iter().any(|start| message.starts_with(start)).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::{BodyResult, refusal, refusal_of_block};

    fn refused(body: &str) -> bool {
        refusal(body, ["a"].into_iter(), BodyResult::Value).is_some()
    }

    #[test]
    fn only_errors_of_syntax_are_found() {
        for body in [
            "BEGIN RETURN 1; END",
            "BEGIN a := 1; RETURN a; END",
            "BEGIN unknown := 1; RETURN 1; END",
            "DECLARE r orders%ROWTYPE; s other_type; BEGIN SELECT * INTO r FROM orders; RETURN s; END",
            "BEGIN FOR i IN 1..3 LOOP PERFORM f(i); END LOOP; RETURN 1; END",
        ] {
            assert!(!refused(body), "{body}");
        }
        for body in [
            "BEGIN IF a > 1 RETURN 1; END IF; RETURN 2; END",
            "BEGIN SELEC 1; RETURN 1; END",
            "BEGIN RETURN 1; END IF; END",
            "BEGIN RETURN 1 +; END",
        ] {
            assert!(refused(body), "{body}");
        }
        assert!(refusal_of_block("DO $$ BEGIN UPDATE t SET SET a = 1; END $$").is_some());
        assert!(refusal_of_block("DO $$ BEGIN UPDATE t SET a = 1; END $$").is_none());
    }
}
