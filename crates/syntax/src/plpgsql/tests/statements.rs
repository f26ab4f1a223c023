//! Each kind of statement, with its ranges.

use super::read_text;
use crate::plpgsql::*;
use crate::source::TextRange;

/// The only statement of a body, and how to see what a range covers.
fn only(statement: &str) -> (StatementKind, String) {
    let text = format!("DECLARE x int; BEGIN\n  {statement};\nEND");
    let mut body = read_text(&text);
    assert_eq!(body.errors, [], "{statement}");
    assert_eq!(body.block.statements.len(), 1, "{statement}");
    let read = body.block.statements.remove(0);
    assert_eq!(&text[read.range.as_usize()], statement);
    (read.kind, text)
}

/// Reads one statement, expects the kind, and compares parts of it with what the file has there.
macro_rules! assert_parts {
    ($statement:expr, $pattern:pat => [$($range:expr => $expected:expr),* $(,)?]) => {{
        let (kind, _text) = only($statement);
        let $pattern = &kind else { panic!("{}: {kind:#?}", $statement) };
        $(assert_eq!(&_text[TextRange::as_usize($range)], $expected, "{}", $statement);)*
    }};
}

#[test]
fn assignments() {
    assert_parts!("x := 1 + 2", StatementKind::Assign(assign) => [assign.target.range => "x", assign.value.range => "1 + 2"]);
    assert_parts!("r.\"F\"[1].g = (SELECT 1)", StatementKind::Assign(assign) => [
        assign.target.range => "r.\"F\"[1].g",
        assign.value.range => "(SELECT 1)",
    ]);
    let (StatementKind::Assign(assign), _) = only("R.\"F\" := 1") else { panic!() };
    assert_eq!(assign.target.names, ["r", "F"]);
}

#[test]
fn branches() {
    assert_parts!("IF a THEN NULL; ELSIF b THEN x := 1; ELSE NULL; END IF", StatementKind::If(conditional) => [
        conditional.branches[0].keyword => "IF",
        conditional.branches[0].condition.range => "a",
        conditional.branches[1].keyword => "ELSIF",
        conditional.branches[1].statements[0].range => "x := 1",
        conditional.otherwise.as_ref().unwrap().keyword => "ELSE",
    ]);
    assert_parts!("CASE x WHEN 1, 2 THEN NULL; ELSE NULL; END CASE", StatementKind::Case(case) => [
        case.operand.as_ref().unwrap().range => "x",
        case.branches[0].keyword => "WHEN",
        case.branches[0].condition.range => "1, 2",
    ]);
}

fn loop_of(statement: &str) -> (Loop, String) {
    match only(statement) {
        (StatementKind::Loop(found), text) => (*found, text),
        other => panic!("{other:#?}"),
    }
}

#[test]
fn loops() {
    let (found, text) = loop_of("<<l>> FOR i IN REVERSE 9..x+1 BY 2 LOOP EXIT l WHEN i = 1; END LOOP l");
    assert_eq!(found.label.as_ref().unwrap().text, "l");
    assert_eq!(&text[found.keyword.as_usize()], "LOOP");
    let LoopKind::Integer { variable, reverse: true, from, to, by: Some(by) } = &found.kind else {
        panic!("{found:#?}")
    };
    let parts = [variable.range, from.range, to.range, by.range].map(|range| &text[range.as_usize()]);
    assert_eq!(parts, ["i", "9", "x+1", "2"]);
    assert_eq!(found.constant_iterations(), None);

    let (found, text) = loop_of("FOR a, b IN SELECT 1, 2 LOOP NULL; END LOOP");
    let LoopKind::Query { targets, query } = &found.kind else { panic!("{found:#?}") };
    assert_eq!((targets.len(), &text[query.range.as_usize()]), (2, "SELECT 1, 2"));

    let (found, text) = loop_of("FOR a IN EXECUTE 'SELECT ' || b USING c, d LOOP NULL; END LOOP");
    let LoopKind::Dynamic { query, .. } = &found.kind else { panic!("{found:#?}") };
    let parts = [query.keyword, query.expression.range, query.using[1].range].map(|range| &text[range.as_usize()]);
    assert_eq!(parts, ["EXECUTE", "'SELECT ' || b", "d"]);

    let (found, text) = loop_of("FOR a IN c(1, k := 2) LOOP NULL; END LOOP");
    let LoopKind::Cursor { cursor, arguments: Some(arguments), .. } = &found.kind else { panic!("{found:#?}") };
    assert_eq!([cursor.range, arguments.range].map(|range| &text[range.as_usize()]), ["c", "1, k := 2"]);

    let (found, _) = loop_of("FOR a IN VALUES (1) LOOP NULL; END LOOP");
    assert!(matches!(found.kind, LoopKind::Query { .. }));
    let (found, _) = loop_of("FOREACH a SLICE 2 IN ARRAY x LOOP NULL; END LOOP");
    assert!(matches!(found.kind, LoopKind::Foreach { slice: 2, .. }));
    assert!(matches!(loop_of("WHILE x < 1 LOOP NULL; END LOOP").0.kind, LoopKind::While(_)));
    assert!(matches!(loop_of("LOOP EXIT; END LOOP").0.kind, LoopKind::Endless));
}

#[test]
fn into_is_cut_out_of_sql() {
    let (StatementKind::Sql(sql), text) = only("SELECT a INTO STRICT x, r.b FROM t") else { panic!() };
    assert_eq!(sql.text.text, format!("SELECT a {} FROM t", " ".repeat("INTO STRICT x, r.b".len())));
    let into = sql.into.unwrap();
    assert!(into.strict);
    assert_eq!(&text[into.range.as_usize()], "INTO STRICT x, r.b");
    assert_eq!(&text[into.targets[1].range.as_usize()], "r.b");
    for statement in [
        "INSERT INTO t VALUES (1)",
        "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE",
        "IMPORT FOREIGN SCHEMA a FROM SERVER s INTO b",
    ] {
        let (StatementKind::Sql(sql), _) = only(statement) else { panic!("{statement}") };
        assert_eq!((sql.into, sql.text.text.as_str()), (None, statement));
    }
}

#[test]
fn dynamic_sql() {
    assert_parts!("EXECUTE format('%I', a) INTO x USING b, c", StatementKind::Execute(execute) => [
        execute.query.keyword => "EXECUTE",
        execute.query.expression.range => "format('%I', a)",
        execute.query.using[0].range => "b",
        execute.into.as_ref().unwrap().range => "INTO x",
    ]);
    assert_parts!("EXECUTE a USING b INTO x", StatementKind::Execute(execute) => [
        execute.query.using[0].range => "b",
        execute.into.as_ref().unwrap().targets[0].range => "x",
    ]);
    let (StatementKind::Execute(execute), text) = only("EXECUTE 'DROP TABLE a'") else { panic!() };
    let constant = execute.query.expression.constant(&text).unwrap();
    assert_eq!(&text[constant.to_source(TextRange::new(5, 10)).as_usize()], "TABLE");
}

#[test]
fn returns_and_errors() {
    assert_parts!("RETURN a", StatementKind::Return(Some(value)) => [value.range => "a"]);
    assert_parts!("RETURN", StatementKind::Return(None) => []);
    assert_parts!("RETURN NEXT a", StatementKind::ReturnNext(Some(value)) => [value.range => "a"]);
    assert_parts!("RETURN QUERY SELECT 1", StatementKind::ReturnQuery(QuerySource::Static(query)) => [query.range => "SELECT 1"]);
    assert_parts!("RETURN QUERY EXECUTE a", StatementKind::ReturnQuery(QuerySource::Dynamic(query)) => [query.keyword => "EXECUTE"]);
    let (StatementKind::Raise(raise), text) = only("RAISE NOTICE 'a %', x USING hint = 'h', detail := 'd'") else {
        panic!()
    };
    let RaiseMessage::Format { format, arguments } = &raise.message else { panic!("{raise:#?}") };
    assert_eq!([*format, arguments[0].range].map(|range| &text[range.as_usize()]), ["'a %'", "x"]);
    assert_eq!((raise.level, raise.options.len()), (RaiseLevel::Notice, 2));
    assert_parts!("RAISE", StatementKind::Raise(Raise { message: RaiseMessage::Rethrow, .. }) => []);
    assert_parts!("RAISE SQLSTATE '22012'", StatementKind::Raise(Raise { message: RaiseMessage::Condition(found), .. }) => [
        found.range => "SQLSTATE '22012'",
    ]);
    assert_parts!("ASSERT a > 0, 'm'", StatementKind::Assert(assert) => [assert.message.as_ref().unwrap().range => "'m'"]);
}

#[test]
fn cursors_and_the_rest() {
    assert_parts!("OPEN c NO SCROLL FOR SELECT 1", StatementKind::Open(Open { source: OpenSource::Unbound(QuerySource::Static(query)), scroll: Some(false), .. }) => [
        query.range => "SELECT 1",
    ]);
    assert_parts!("OPEN c(1)", StatementKind::Open(Open { source: OpenSource::Bound(Some(arguments)), .. }) => [arguments.range => "1"]);
    assert_parts!("FETCH RELATIVE -2 FROM c INTO x", StatementKind::Fetch(fetch) => [
        fetch.direction.unwrap() => "RELATIVE -2",
        fetch.cursor.range => "c",
        fetch.into.as_ref().unwrap().range => "INTO x",
    ]);
    assert_parts!("MOVE c", StatementKind::Move(fetch) => [fetch.cursor.range => "c"]);
    assert_parts!("CLOSE c", StatementKind::Close(cursor) => [cursor.range => "c"]);
    assert_parts!("GET STACKED DIAGNOSTICS x = MESSAGE_TEXT", StatementKind::GetDiagnostics(get) => [get.items[0].1.range => "MESSAGE_TEXT"]);
    assert_parts!("CALL p(1)", StatementKind::Call(call) => [call.range => "CALL p(1)"]);
    assert_parts!("COMMIT AND CHAIN", StatementKind::Commit(Chain(true)) => []);
    assert_parts!("ROLLBACK", StatementKind::Rollback(Chain(false)) => []);
    assert_parts!("NULL", StatementKind::Null => []);
    let (StatementKind::Perform(sql), _) = only("PERFORM f(1)") else { panic!() };
    assert_eq!(sql.text, " SELECT f(1)");
    assert_parts!("CONTINUE WHEN x", StatementKind::Continue(exit) => [exit.when.as_ref().unwrap().range => "x"]);
}

#[test]
fn declarations() {
    let text = "#variable_conflict use_column
        DECLARE
            a CONSTANT varchar(20) COLLATE \"C\" NOT NULL := 'x;y';
            b s.t.c%TYPE; c t%ROWTYPE; d ALIAS FOR $1;
            e NO SCROLL CURSOR (k int) FOR SELECT k;
            f timestamp with time zone DEFAULT now();
        BEGIN END;";
    let body = read_text(text);
    assert_eq!(body.errors, []);
    assert_eq!((body.options[0].name.as_str(), body.options[0].value.as_str()), ("variable_conflict", "use_column"));
    let names: Vec<_> = body.block.declarations.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f"]);
    let types = body.block.declarations.iter().filter_map(|found| match &found.kind {
        DeclarationKind::Variable(variable) => Some(&text[variable.data_type.range().as_usize()]),
        _ => None,
    });
    assert_eq!(types.collect::<Vec<_>>(), ["varchar(20)", "s.t.c%TYPE", "t%ROWTYPE", "timestamp with time zone"]);
    let DeclarationKind::Variable(variable) = &body.block.declarations[0].kind else { panic!() };
    assert!(variable.constant && variable.not_null);
    assert_eq!(&text[variable.collation.unwrap().as_usize()], "\"C\"");
    assert_eq!(variable.default.as_ref().unwrap().text, "'x;y'");
    let DeclarationKind::Variable(variable) = &body.block.declarations[1].kind else { panic!() };
    let type_name = variable.data_type.type_name().unwrap();
    assert_eq!((type_name.name.as_str(), type_name.percent_type.as_deref()), ("t", Some("c")));
    let DeclarationKind::Cursor(cursor) = &body.block.declarations[4].kind else { panic!() };
    assert_eq!((cursor.scroll, cursor.query.text.as_str(), cursor.arguments.len()), (Some(false), "SELECT k", 1));
}

#[test]
fn exception_sections() {
    let text = "BEGIN DELETE FROM t; EXCEPTION WHEN a OR SQLSTATE '40001' THEN NULL; WHEN OTHERS THEN RAISE; END";
    let body = read_text(text);
    let section = body.block.exception.unwrap();
    assert_eq!(&text[section.keyword.as_usize()], "EXCEPTION");
    assert_eq!(&text[body.block.end.as_usize()], "END");
    assert_eq!(section.handlers[0].conditions[1].kind, ConditionKind::SqlState("40001".into()));
    assert_eq!(&text[section.handlers[1].others().unwrap().as_usize()], "WHEN OTHERS");
    assert_eq!(&text[section.handlers[1].range.as_usize()], "WHEN OTHERS THEN RAISE;");
}

#[test]
fn a_block_without_end_ends_behind_what_was_read() {
    let text = "BEGIN NULL; EXCEPTION WHEN OTHERS THEN NULL; ";
    let body = read_text(text);
    assert_eq!((body.errors.len(), body.block.end), (1, TextRange::at(body.block.range.end)));
    assert_eq!(&text[body.block.range.as_usize()], text.trim_end());
}

#[test]
fn ranges_of_escaped_bodies_are_ranges_of_the_file() {
    let file = "CREATE FUNCTION f() RETURNS void AS 'BEGIN PERFORM ''a''; DELETE FROM t WHERE b = ''c''; END' LANGUAGE plpgsql";
    let (start, end) = (file.find('\'').unwrap(), file.rfind('\'').unwrap() + 1);
    let text = BodyText::from_literal(file, TextRange::new(start as u32, end as u32));
    let body = read(&text);
    assert_eq!(body.errors, []);
    let StatementKind::Sql(sql) = &body.block.statements[1].kind else { panic!() };
    assert_eq!(sql.text.text, "DELETE FROM t WHERE b = 'c'");
    assert_eq!(&file[sql.text.range.as_usize()], "DELETE FROM t WHERE b = ''c''");
    assert!(SqlParser::new(text.source()).statement(&sql.text).is_ok());
}

#[test]
fn embedded_sql_parses_with_ranges_of_the_file() {
    let text = "BEGIN SELECT a INTO x FROM t; PERFORM f(x); SELECT FROM WHERE; x := count(*) FROM t; END";
    let body = read_text(text);
    let mut parser = SqlParser::new(text);
    let kinds = body.block.statements.iter().map(|statement| match &statement.kind {
        StatementKind::Sql(sql) => parser.statement(&sql.text).map(drop),
        StatementKind::Perform(sql) => parser.statement(sql).map(drop),
        StatementKind::Assign(assign) => parser.expression(&assign.value).map(drop),
        other => panic!("{other:#?}"),
    });
    let results: Vec<_> = kinds.collect();
    assert!(results[0].is_ok() && results[1].is_ok() && results[3].is_ok(), "{results:#?}");
    let error = results[2].as_ref().unwrap_err();
    assert_eq!(&text[error.range.start as usize..][..5], "WHERE");
}

#[test]
fn an_error_leaves_the_rest_readable() {
    for (text, errors, statements) in [
        ("BEGIN x := ; DELETE FROM t; END", 1, 1),
        ("BEGIN IF a THEN NULL; END LOOP; END IF; DELETE FROM t; END", 1, 2),
        ("BEGIN FOR i IN LOOP NULL; END LOOP; DELETE FROM t; END", 2, 1),
        ("BEGIN LOOP DELETE FROM t; END IF; END LOOP; END", 1, 1),
        ("BEGIN IF a THEN DELETE FROM t; END", 1, 1),
        ("DECLARE a; b int; BEGIN DELETE FROM t; END", 1, 1),
        ("BEGIN RAISE 1 CASE WHEN a THEN b END; DELETE FROM t; END", 1, 1),
        ("BEGIN DELETE FROM t; END; SELECT 1", 1, 1),
        ("BEGIN DELETE FROM t; END wrong", 1, 1),
        ("BEGIN ); DELETE FROM t; END", 1, 1),
        ("SELECT 1", 1, 0),
        ("", 1, 0),
    ] {
        let body = read_text(text);
        assert_eq!((body.errors.len(), body.block.statements.len()), (errors, statements), "{text}: {body:#?}");
    }
}

#[test]
fn any_cut_of_a_body_is_read_without_panic() {
    for body in include_str!("bodies.sql").split("\n----\n") {
        for (cut, _) in body.char_indices() {
            let _ = read_text(&body[..cut]);
            let _ = read_text(&body[cut..]);
        }
    }
}

#[test]
fn deep_nesting_is_an_error() {
    for (open, close) in [("BEGIN ", "END; "), ("IF a THEN ", "END IF; "), ("LOOP ", "END LOOP; ")] {
        let text = format!("BEGIN {} NULL; {} END", open.repeat(5000), close.repeat(5000));
        assert_eq!(read_text(&text).errors[0].message, "statements nested more than 100 deep are not read");
    }
}
