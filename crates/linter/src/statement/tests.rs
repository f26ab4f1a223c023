//! Each test is a thing that real migration files do.

use super::*;

/// The text of each statement, with `!` before those that have a syntax error.
fn check(text: &str, expected: &[&str]) {
    let statements = parse(text);
    let found: Vec<_> = statements
        .iter()
        .map(|statement| {
            let mark = if statement.parsed.is_err() { "!" } else { "" };
            format!("{mark}{}", &text[statement.range.as_usize()])
        })
        .collect();
    assert_eq!(found, expected, "{text}\n{statements:#?}");
    loses_nothing(text);
}

/// Outside of pieces and comments there are only white space and semicolons.
fn loses_nothing(text: &str) {
    let result = split(text);
    let mut bytes = text.as_bytes().to_vec();
    let comments = result.comments.iter();
    for range in result.pieces.iter().map(|piece| &piece.range).chain(comments) {
        bytes[range.as_usize()].fill(b' ');
    }
    let rest = String::from_utf8(bytes).unwrap();
    assert_eq!(rest.trim_matches(|c: char| c.is_whitespace() || matches!(c, ';' | '\u{feff}' | '/')), "", "{text}");
    let order: Vec<_> = result.pieces.iter().filter(|piece| piece.kind == PieceKind::Sql).map(|piece| piece.range).collect();
    assert!(order.windows(2).all(|pair| pair[0].end <= pair[1].start), "{text}");
}

fn kinds(text: &str) -> Vec<(PieceKind, &str)> {
    split(text).pieces.iter().map(|piece| (piece.kind, &text[piece.range.as_usize()])).collect()
}

#[test]
fn semicolons_inside_quotes_and_comments_do_not_split() {
    check("SELECT ';'; SELECT \";\" FROM t; SELECT $$;$$; SELECT $a$ $$;$$ $a$;", &[
        "SELECT ';'",
        "SELECT \";\" FROM t",
        "SELECT $$;$$",
        "SELECT $a$ $$;$$ $a$",
    ]);
    check("SELECT 1 /* ; /* ; */ ; */ + 1; -- ;\nSELECT E'\\';'", &["SELECT 1 /* ; /* ; */ ; */ + 1", "SELECT E'\\';'"]);
}

#[test]
fn function_bodies_hold_semicolons() {
    let atomic = "CREATE FUNCTION f(a int) RETURNS int BEGIN ATOMIC SELECT CASE WHEN a > 0 THEN 1 ELSE 2 END; SELECT 3; END";
    check(&format!("{atomic};\nSELECT 1;"), &[atomic, "SELECT 1"]);
    let procedure = "CREATE OR REPLACE PROCEDURE p() BEGIN ATOMIC INSERT INTO t VALUES (1); END";
    check(&format!("{procedure}; SELECT 2"), &[procedure, "SELECT 2"]);
}

#[test]
fn rules_and_schemas_are_one_statement() {
    let rule = "CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO a VALUES (1); DELETE FROM b)";
    check(&format!("{rule};SELECT 1"), &[rule, "SELECT 1"]);
    let schema = "CREATE SCHEMA s\n  CREATE TABLE t (a int)\n  CREATE VIEW v AS SELECT a FROM t";
    check(&format!("{schema};"), &[schema]);
}

#[test]
fn missing_parenthesis_breaks_one_statement() {
    check("CREATE TABLE t (a int; CREATE TABLE u(b int);", &["!CREATE TABLE t (a int", "CREATE TABLE u(b int)"]);
    check("CREATE TABLE t (a int;\n\nselect 1;", &["!CREATE TABLE t (a int", "select 1"]);
    check("CREATE TABLE t (a int)); SELECT 1", &["!CREATE TABLE t (a int))", "SELECT 1"]);
}

#[test]
fn missing_semicolon_breaks_the_first_statement_only() {
    check("INSERT INTO t VALUES (1)\n\nCREATE TABLE u (a int);\nSELECT 1;", &[
        "!INSERT INTO t VALUES (1)",
        "CREATE TABLE u (a int)",
        "SELECT 1",
    ]);
    check("INSERT INTO t SELECT * FROM x\nINSERT INTO y VALUES (1);", &[
        "!INSERT INTO t SELECT * FROM x",
        "INSERT INTO y VALUES (1)",
    ]);
    check("ALTER TABLE a ADD b int\nALTER TABLE a ADD c int\nALTER TABLE a ADD d int", &[
        "!ALTER TABLE a ADD b int",
        "!ALTER TABLE a ADD c int",
        "ALTER TABLE a ADD d int",
    ]);
    check("INSERT INTO t VALUES (1, 2\n\nCREATE TABLE y (a int);", &["!INSERT INTO t VALUES (1, 2", "CREATE TABLE y (a int)"]);
    check("CREATE TABEL x (a int)\n\nCREATE TABLE y (a int);", &["!CREATE TABEL x (a int)", "CREATE TABLE y (a int)"]);
    // A statement that is wrong for another reason stays whole.
    check("CREATE VIEW v AZ\nSELECT 1;", &["!CREATE VIEW v AZ\nSELECT 1"]);
    let error = parse("INSERT INTO t VALUES (1)\nDROP TABLE u;")[0].parsed.clone().unwrap_err();
    assert_eq!((error.message.as_str(), error.range), ("syntax error at or near \"DROP\"", TextRange::new(25, 29)));
}

#[test]
fn psql_commands_are_no_sql() {
    check("\\set x 'a;b'\nSELECT 1;\n\\connect db\n\\if :x\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\n", &[
        "SELECT 1", "SELECT 2", "SELECT 3",
    ]);
    check("SELECT 1 \\gset\nSELECT 2 \\gexec\nSELECT 3\\; SELECT 4;", &["SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4"]);
    check("CREATE TABLE t (\n\\if :x\n a int\n\\endif\n);", &["CREATE TABLE t (\n\\if :x\n a int\n\\endif\n)"]);
    assert_eq!(kinds("\\i a.sql \r\nSELECT 1")[0], (PieceKind::MetaCommand, "\\i a.sql"));
    check("SELECT 1 \\ 2;", &["!SELECT 1 \\ 2"]);
}

#[test]
fn copy_data_is_no_sql() {
    let text = "COPY t (a, b) FROM stdin;\n1\t'x;\n2\ty\n\\.\n\nSELECT 1;";
    check(text, &["COPY t (a, b) FROM stdin", "SELECT 1"]);
    assert_eq!(kinds(text)[1], (PieceKind::CopyData, "1\t'x;\n2\ty\n\\."));
    let open = split("COPY t FROM STDIN;\n1\n2\n");
    assert_eq!((open.problems.len(), open.pieces.len()), (1, 2));
    assert!(split("COPY t FROM STDIN;\n").problems.is_empty());
    check("\\copy t from stdin\n1;\n\\.\nSELECT 1", &["SELECT 1"]);
}

#[test]
fn standard_conforming_strings_is_followed() {
    check("SET standard_conforming_strings = off;\nSELECT 'a\\';b';\nSET standard_conforming_strings TO on; SELECT '\\';", &[
        "SET standard_conforming_strings = off",
        "SELECT 'a\\';b'",
        "SET standard_conforming_strings TO on",
        "SELECT '\\'",
    ]);
}
