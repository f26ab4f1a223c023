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
    let order: Vec<_> =
        result.pieces.iter().filter(|piece| piece.kind == PieceKind::Sql).map(|piece| piece.range).collect();
    assert!(order.windows(2).all(|pair| pair[0].end <= pair[1].start), "{text}");
}

fn kinds(text: &str) -> Vec<(PieceKind, &str)> {
    split(text).pieces.iter().map(|piece| (piece.kind, &text[piece.range.as_usize()])).collect()
}

#[test]
fn semicolons_inside_quotes_and_comments_do_not_split() {
    check(
        "SELECT ';'; SELECT \";\" FROM t; SELECT $$;$$; SELECT $a$ $$;$$ $a$;",
        &["SELECT ';'", "SELECT \";\" FROM t", "SELECT $$;$$", "SELECT $a$ $$;$$ $a$"],
    );
    check(
        "SELECT 1 /* ; /* ; */ ; */ + 1; -- ;\nSELECT E'\\';'",
        &["SELECT 1 /* ; /* ; */ ; */ + 1", "SELECT E'\\';'"],
    );
}

#[test]
fn colons_can_be_escaped() {
    check(r"SELECT 1\:\:int, a\:\:text FROM t; SELECT 2", &[r"SELECT 1\:\:int, a\:\:text FROM t", "SELECT 2"]);
    check(r"SELECT 1\:\:\:int", &[r"!SELECT 1\:\:\:int"]);
}

#[test]
fn function_bodies_hold_semicolons() {
    let atomic =
        "CREATE FUNCTION f(a int) RETURNS int BEGIN ATOMIC SELECT CASE WHEN a > 0 THEN 1 ELSE 2 END; SELECT 3; END";
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
    check(
        "INSERT INTO t VALUES (1)\n\nCREATE TABLE u (a int);\nSELECT 1;",
        &["!INSERT INTO t VALUES (1)", "CREATE TABLE u (a int)", "SELECT 1"],
    );
    check(
        "INSERT INTO t SELECT * FROM x\nINSERT INTO y VALUES (1);",
        &["!INSERT INTO t SELECT * FROM x", "INSERT INTO y VALUES (1)"],
    );
    check(
        "ALTER TABLE a ADD b int\nALTER TABLE a ADD c int\nALTER TABLE a ADD d int",
        &["!ALTER TABLE a ADD b int", "!ALTER TABLE a ADD c int", "ALTER TABLE a ADD d int"],
    );
    check(
        "INSERT INTO t VALUES (1, 2\n\nCREATE TABLE y (a int);",
        &["!INSERT INTO t VALUES (1, 2", "CREATE TABLE y (a int)"],
    );
    check("CREATE TABEL x (a int)\n\nCREATE TABLE y (a int);", &["!CREATE TABEL x (a int)", "CREATE TABLE y (a int)"]);
    // A statement that is wrong for another reason stays whole.
    check("CREATE VIEW v AZ\nSELECT 1;", &["!CREATE VIEW v AZ\nSELECT 1"]);
    let error = parse("INSERT INTO t VALUES (1)\nDROP TABLE u;")[0].parsed.clone().unwrap_err();
    assert_eq!((error.message.as_str(), error.range), ("syntax error at or near \"DROP\"", TextRange::new(25, 29)));
}

#[test]
fn psql_commands_are_no_sql() {
    check(
        "\\set x 'a;b'\nSELECT 1;\n\\connect db\n\\if :x\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\n",
        // Not a boolean: false.
        &["SELECT 1", "SELECT 3"],
    );
    check("\\if :unknown\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\n", &["SELECT 2", "SELECT 3"]);
    check(
        "SELECT 1 \\gset\nSELECT 2 \\gexec\nSELECT 3\\; SELECT 4;",
        &["SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4"],
    );
    check("CREATE TABLE t (\n\\if :x\n a int\n\\endif\n);", &["CREATE TABLE t (\n\\if :x\n a int\n\\endif\n)"]);
    assert_eq!(kinds("\\i a.sql \r\nSELECT 1")[0], (PieceKind::MetaCommand, "\\i a.sql"));
    // psql knows no such command, and drops the rest of the line.
    check("SELECT 1 \\ 2;", &["SELECT 1"]);
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
fn statements_on_the_line_of_a_copy_come_before_its_data() {
    let text = "COPY t FROM stdin; COPY u FROM stdin; COMMIT -- done\n1;\n\\.\n2\n\\.\nSELECT 1;";
    check(text, &["COPY t FROM stdin", "COPY u FROM stdin", "COMMIT", "SELECT 1"]);
    let data: Vec<_> = kinds(text).into_iter().filter(|(kind, _)| *kind == PieceKind::CopyData).collect();
    assert_eq!(data, [(PieceKind::CopyData, "1;\n\\."), (PieceKind::CopyData, "2\n\\.")]);
    assert_eq!(split(text).comments.len(), 1);
    let commented = split("COPY t FROM stdin; -- why\n-- 1\n\\.\n");
    assert_eq!((commented.comments.len(), commented.pieces[0].comments.len()), (1, 1));
}

#[test]
fn standard_conforming_strings_is_followed() {
    check(
        "SET standard_conforming_strings = off;\nSELECT 'a\\';b';\nSET standard_conforming_strings TO on; SELECT '\\';",
        &[
            "SET standard_conforming_strings = off",
            "SELECT 'a\\';b'",
            "SET standard_conforming_strings TO on",
            "SELECT '\\'",
        ],
    );
}

#[test]
fn placeholders_are_filled_when_the_text_is_no_sql() {
    check(
        "ALTER TABLE {{ index .Options \"Namespace\" }}.users ADD a int;\nSELECT 1;",
        &["ALTER TABLE {{ index .Options \"Namespace\" }}.users ADD a int", "SELECT 1"],
    );
    for text in [
        "CREATE TABLE ${schema}.t (a int)",
        "CREATE TABLE {{.prefix}}blocks (a int)",
        "CREATE INDEX idx_${x}_a ON :schema.t (a)",
        "CREATE TABLE :\"s\".t (a text DEFAULT :'value')",
        "COMMENT ON TABLE t IS ${comment}",
        "ALTER TABLE t ADD COLUMN a int DEFAULT :n, ADD b text",
        "CREATE TABLE t (id $%AUTO_INCREMENT_PRIMARY_KEY%$)",
        "GRANT SELECT ON t TO $db_user_prefix$_auth",
        "CREATE TABLE @extschema@.t (a int)",
        "CREATE FUNCTION f() RETURNS @extschema:cube@.cube LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE /* TEMPLATE: schema */t (a int)",
        "GRANT ALL ON DATABASE $1 TO $2",
        "SELECT * FROM t WHERE a = $1 AND b = :b",
        "SET a.b = {{ value }}",
        "ALTER ROLE x PASSWORD {{ .Password }}",
        "ALTER TABLE \"{{ index .Options \"Namespace\" }}\".\"users\" ADD a int",
        "CREATE TABLE t{% if x %} (a int) {% else %}(b int){% endif %}",
        "SELECT 1 {# a comment; not SQL #}",
        "CREATE INDEX i ON /* SCHEMA */.\"users\" (a)",
        "UPDATE /* S */.t SET a = (SELECT b FROM /* S */.u)",
    ] {
        let refused = text.contains("{% else");
        let expected = if refused { format!("!{text}") } else { text.to_owned() };
        check(&format!("{text};\nSELECT 1"), &[&expected, "SELECT 1"]);
    }
    check("GRANT a ON b TO $p$_x; GRANT a ON b TO $p$_y;", &["GRANT a ON b TO $p$_x", "GRANT a ON b TO $p$_y"]);
}

#[test]
fn a_comment_stands_for_a_name_only_before_a_dot_where_one_is_needed() {
    for text in [
        "SELECT a /* b */.c d e",
        "CREATE TABLE t (a int, /* b */)",
        "DROP TABLE /* old, see 4 */.t",
        "DROP TABLE /* s */ .t",
    ] {
        assert!(parse(text)[0].parsed.is_err(), "{text}");
    }
    let statement = &parse("DROP TABLE /* NAME */.t")[0];
    assert_eq!(statement.placeholders[0].kind, PlaceholderKind::Comment);
    assert_eq!(statement.placeholders[0].text, "/* NAME */");
    assert!(parse("SELECT x /* s */.t FROM x")[0].placeholders.is_empty(), "it is SQL as it is");
}

#[test]
fn a_placeholder_that_can_be_no_value_is_omitted() {
    let kinds = |text: &str| -> Vec<PlaceholderKind> {
        let statement = &parse(text)[0];
        assert!(statement.parsed.is_ok(), "{text}");
        statement.placeholders.iter().map(|placeholder| placeholder.kind).collect()
    };
    assert_eq!(kinds("${guard} ALTER TABLE t ADD a int;"), [PlaceholderKind::Omitted]);
    assert_eq!(
        kinds("${guard} ALTER TABLE ${schema}.t ADD a int;"),
        [PlaceholderKind::Omitted, PlaceholderKind::Template]
    );
    assert_eq!(kinds("ALTER TABLE ${table} ADD a int;"), [PlaceholderKind::Template]);
    let refused = &parse("${guard} ALTER TABLE t ADDD a int b;")[0];
    assert!(refused.parsed.is_err());
    assert!(refused.placeholders.iter().all(|placeholder| placeholder.kind == PlaceholderKind::Template));
}

#[test]
fn placeholders_leave_a_stable_name() {
    let text = "CREATE TABLE {{ .Ns }}.a${x}b (c int DEFAULT ${y})";
    let statement = &parse(text)[0];
    let shown: Vec<_> = statement.placeholders.iter().map(|placeholder| placeholder.text.as_str()).collect();
    assert_eq!(shown, ["{{ .Ns }}", "${x}", "${y}"]);
    assert_eq!(statement.tokens[2].text(text), "a${x}b");
    assert_eq!(fill_text("a${x}b"), "a__x_b");
    assert!(parse("SELECT '{{ x }}', a[:n], b::int")[0].placeholders.is_empty());
}

#[test]
fn an_error_beside_placeholders_is_postgresqls() {
    let error = parse("SELECT a[1:n] FORM FROM t WHERE x = $1 LIMT 1")[0].parsed.clone().unwrap_err();
    assert_eq!(error.message, "syntax error at or near \"LIMT\"");
}

#[test]
fn template_tags_between_statements_are_pieces() {
    let text = "{{if .postgres}}\nCREATE TABLE a (b int);\n{{else}}\nCREATE TABLE c (d int);\n{{end}}\n";
    check(text, &["CREATE TABLE a (b int)", "CREATE TABLE c (d int)"]);
    assert_eq!(kinds(text)[0], (PieceKind::TemplateTag, "{{if .postgres}}"));
}

#[test]
fn mysql_delimiters_are_omitted() {
    let text = "DELIMITER //\nSELECT 1//\nSELECT 2;\nDELIMITER ;\nSELECT 3;";
    check(text, &["SELECT 1", "SELECT 2", "SELECT 3"]);
}

#[test]
fn bare_plpgsql_block_is_a_do() {
    let block = "begin\n  update t set a = case when b then 1 end;\n  if x then\n    raise 'no';\n  end if;\n  begin null; end;\n  for i in 1..2 loop null; end loop;\nend";
    for end in ["", ";", "\n", ";\n-- done"] {
        let text = format!("-- taskcluster\n{block}{end}");
        check(&text, &[block]);
        let parsed = parse(&text);
        let Some(Ast::Do(body)) = parsed[0].ast() else { panic!("no DO: {text}") };
        assert_eq!(body.language, "plpgsql");
    }
    check("DECLARE x int; BEGIN x := 1; END;", &["DECLARE x int; BEGIN x := 1; END"]);
    check("BEGIN;\nSELECT 1;\nEND;", &["BEGIN", "SELECT 1", "END"]);
    check(
        "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE; COMMIT",
        &["BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE", "COMMIT"],
    );
    check("BEGIN\n\nCREATE TABLE a (b int);\nCOMMIT;", &["!BEGIN", "CREATE TABLE a (b int)", "COMMIT"]);
    check("DECLARE c CURSOR FOR SELECT 1; CLOSE c;", &["DECLARE c CURSOR FOR SELECT 1", "CLOSE c"]);
}

#[test]
fn annotations_of_migration_tools_end_a_statement() {
    check(
        "-- +goose Up\n-- +goose StatementBegin\nCREATE TABLE a (b int)\n-- +goose StatementEnd\n\n-- +goose Down\nDROP TABLE a\n",
        &["CREATE TABLE a (b int)", "DROP TABLE a"],
    );
    // PostgreSQL gets the block as one string and splits it itself.
    let block = "-- +goose StatementBegin\nCREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$; SELECT 2\n-- +goose StatementEnd";
    check(block, &["CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$", "SELECT 2"]);
    let joined = "CREATE FUNCTION f() RETURNS int AS\n-- +goose StatementBegin\n$$ SELECT 1; $$ LANGUAGE sql";
    check(joined, &[joined]);
    for (up, down) in [
        ("-- --- !Ups", "-- --- !Downs"),
        ("-- !Ups", "-- !Downs"),
        ("-- :up", "-- :down"),
        ("-- // a", "-- //@UNDO"),
        ("-- // a", "-- // @UNDO"),
        ("-- a", "---- create above / drop below ----"),
    ] {
        check(&format!("{up}\nSELECT 1\n{down}\nSELECT 2"), &["SELECT 1", "SELECT 2"]);
    }
    check("-- +migrate Up\nSELECT 1\n-- +migrate Down\nSELECT 2;", &["SELECT 1", "SELECT 2"]);
    check("-- migrate:up\nSELECT (1\n-- migrate:down transaction:false\nSELECT 2;", &["!SELECT (1", "SELECT 2"]);
    check(
        "SELECT 1\n--> statement-breakpoint\nSELECT 2;--> statement-breakpoint\nSELECT 3",
        &["SELECT 1", "SELECT 2", "SELECT 3"],
    );
    check("SELECT 1\n\n--bun:split\n\nSELECT 2\r\n--bun:split\r\nSELECT 3", &["SELECT 1", "SELECT 2", "SELECT 3"]);
    check("SELECT 1\n--;;\nSELECT 2\r\n  --;; more\r\nSELECT 3;", &["SELECT 1", "SELECT 2", "SELECT 3"]);
    for other in [" --bun:split", "-- bun:split", "--bun:splits", "-- ;;", "+ 1 --;;"] {
        let text = format!("SELECT 1\n{other}\n+ 2");
        check(&text, &[&text]);
    }
}

#[test]
fn comments_belong_to_the_statement_behind_or_before_on_the_line() {
    let text = "-- a\n/* b */ SELECT 1 -- c\n + 2; -- d\n-- e\n\nSELECT 3; /* f */ SELECT 4 -- g\n-- h\n";
    let shown: Vec<Vec<_>> = parse(text)
        .iter()
        .map(|statement| statement.comments.iter().map(|range| &text[range.as_usize()]).collect())
        .collect();
    assert_eq!(shown, [vec!["-- a", "/* b */", "-- c", "-- d"], vec!["-- e"], vec!["/* f */", "-- g"]]);
    assert_eq!(split(text).comments.len(), 8);
}

#[test]
fn bytes_and_line_ends_of_every_kind() {
    check("\u{feff}SELECT 1;\r\nSELECT 'ä';\rSELECT 2 -- x\r+ 1", &["SELECT 1", "SELECT 'ä'", "SELECT 2 -- x\r+ 1"]);
    check("SELECT 1\0; SELECT 2", &["!SELECT 1\0", "SELECT 2"]);
    check("", &[]);
    check(" ;; -- nothing\n", &[]);
}

#[test]
fn what_has_no_end_is_one_error() {
    for (text, message, at) in [
        ("SELECT 1; SELECT 'abc; SELECT 2;\nDROP TABLE x;\n", "unterminated quoted string at or near \"'abc", 17),
        ("SELECT $f$ a; SELECT 2;", "unterminated dollar-quoted string at or near \"$f$ a", 7),
        ("SELECT \"a; SELECT 2", "unterminated quoted identifier at or near \"\"a", 7),
        ("SELECT 1; /* a; SELECT 2", "unterminated /* comment at or near \"/* a", 10),
    ] {
        let statements = parse(text);
        let error = statements.last().unwrap().parsed.clone().unwrap_err();
        assert!(error.message.starts_with(message), "{error:?}");
        assert_eq!(error.range.start, at, "{text}");
        assert_eq!(statements.iter().filter(|statement| statement.parsed.is_err()).count(), 1);
    }
}

/// Runs on a thread with the stack that callers must provide.
fn on_parse_stack(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn_scoped(scope, test).unwrap().join().unwrap();
    });
}

/// Every way to nest, `depth` levels deep.
fn nested(depth: usize) -> Vec<String> {
    let wrap =
        |open: &str, inner: &str, close: &str| format!("SELECT {}{inner}{}", open.repeat(depth), close.repeat(depth));
    vec![
        wrap("(", "1", ")"),
        wrap("f(", "1", ")"),
        wrap("(SELECT ", "1", ")"),
        wrap("ARRAY[", "1", "]"),
        wrap("CASE WHEN a THEN ", "1", " END"),
        wrap("NOT ", "a", ""),
        wrap("- ", "1", ""),
        wrap("", "1", " || 1"),
        wrap("", "1", "::int"),
        wrap("", "1", " COLLATE c"),
        wrap("", "a", " IS NULL"),
        wrap("", "1", " UNION SELECT 1"),
        wrap("", "* FROM a", " JOIN b ON true"),
        wrap("* FROM (SELECT ", "1", ") x"),
        wrap("a AND (b OR ", "c", ")"),
    ]
}

#[test]
fn nesting_is_safe_on_the_documented_stack() {
    on_parse_stack(|| {
        for depth in [100, 660, 980, 1_950, 20_000] {
            for text in nested(depth) {
                let statements = parse(&text);
                let result = statements[0].clone().parsed;
                if depth == 20_000 {
                    assert!(result.is_err(), "{}", &text[..30]);
                } else if depth == 100 {
                    assert!(result.is_ok(), "{}: {result:?}", &text[..30]);
                }
            }
        }
    });
}

#[test]
fn what_no_end_is_found_of_takes_linear_time() {
    on_parse_stack(|| {
        for unit in [
            "+",
            "*",
            "-+",
            "/*",
            "*/",
            "/*/",
            "'",
            "\"",
            "E'",
            "$$",
            "$a$",
            "\\",
            "{",
            "{{",
            "{#",
            "\"{{",
            "$a$_",
            "(;",
            "\\if 0 ",
            "begin a; ",
            "end x y ",
            "begin a; end x y ",
            ":'",
            "\\;",
            "{{ ' }}",
            "@",
            "<-",
            "--\n/*",
        ] {
            let tags = (0..20_000).map(|number| format!("$a{number}$_")).collect::<Vec<_>>().join(" ");
            for text in [unit.repeat(100_000 / unit.len()), format!("SELECT 1 {}", unit.repeat(50_000)), tags] {
                let start = std::time::Instant::now();
                parse(&text);
                assert!(start.elapsed().as_secs() < 5, "{unit}: {:?}", start.elapsed());
            }
        }
    });
}

fn doubted(text: &str) -> Vec<(DoubtKind, &str)> {
    split(text).doubts.iter().map(|doubt| (doubt.kind, &text[doubt.range.as_usize()])).collect()
}

#[test]
fn what_can_be_read_otherwise_is_doubted() {
    const DO: &str = "DO $$ BEGIN SET standard_conforming_strings = off; END $$;";
    let sent_together =
        |standard_conforming_strings, by_psql| DoubtKind::SentTogether { standard_conforming_strings, by_psql };
    for (text, expected) in [
        (format!("{DO} SELECT 'a'; SELECT 'b\\'; SELECT 'c\\';"), vec![(DoubtKind::Quoting, "'b\\'")]),
        (
            format!("{DO} SET standard_conforming_strings = on; SELECT 'b\\';"),
            vec![(sent_together(true, false), "'b\\'")],
        ),
        (
            "SET standard_conforming_strings = off; SELECT 'b\\';".to_owned(),
            vec![(sent_together(false, false), "'b\\';")],
        ),
        (
            "\\set a b\nSELECT set_config('standard_conforming_strings', 'off', false); SELECT 'b\\'; --'".to_owned(),
            vec![(sent_together(false, true), "'b\\'; --'")],
        ),
        (
            "\\if :x\nSET standard_conforming_strings = off;\n\\endif\nSELECT 'b\\';".to_owned(),
            vec![(DoubtKind::Quoting, "'b\\'")],
        ),
        ("SET NAMES 'SJIS'; SELECT 'a'; -- \u{e9}".to_owned(), vec![(DoubtKind::Encoding, "\u{e9}")]),
        ("SET NAMES 'LATIN1'; SELECT '\u{e9}'".to_owned(), vec![]),
        ("SELECT {# it's #} 1; SELECT '2'".to_owned(), vec![(DoubtKind::Template, "{# it's #}")]),
        ("SELECT $x$_a$x$_b; SELECT 1".to_owned(), vec![(DoubtKind::Template, "$x$")]),
        ("GRANT a ON b TO $p$_x; GRANT a ON b TO $p$_y;".to_owned(), vec![]),
        ("COPY t FROM stdin;\nDROP TABLE x;\n\\.\n".to_owned(), vec![(DoubtKind::CopyData, "DROP TABLE x;\n\\.")]),
        ("\\set v 'a; b'\nSELECT :v, :'v', :\"v\", x::v".to_owned(), vec![(DoubtKind::Variable, ":v")]),
        ("\\set v a\nSELECT :v".to_owned(), vec![]),
        // It would have 2^40 characters.
        (format!("\\set v a\n{}SELECT :v", "\\set v :v:v\n".repeat(40)), vec![(DoubtKind::Variable, ":v")]),
        ("\\if false\n\\i x\n\\endif\n\\g\n".to_owned(), vec![]),
        ("SELECT 1;\n\\g\n".to_owned(), vec![(DoubtKind::RunsAgain, "\\g")]),
        ("SELECT 'SELECT 1' \\gexec".to_owned(), vec![(DoubtKind::QueryResult, "\\gexec")]),
        (
            "\\o |cat\n\\echo `ls`\n".to_owned(),
            vec![(DoubtKind::Program, "\\o |cat"), (DoubtKind::Program, "\\echo `ls`")],
        ),
    ] {
        assert_eq!(doubted(&text), expected, "{text}");
    }
}

#[test]
fn psql_runs_what_follows_a_command() {
    check("\\timing on \\\\ SELECT 1; \\echo 'a \\\\ b' \\\\ SELECT 2;", &["SELECT 1", "SELECT 2"]);
    check("SELECT 1 \\echo hi\n+ 2;", &["SELECT 1 \\echo hi\n+ 2"]);
    check("SELECT (1 \\r\nSELECT 2;\n\\q\nSELECT 3;", &["SELECT 2"]);
    check("SELECT 1\\; SELECT '\\'; SELECT 2;", &["SELECT 1", "SELECT '\\'", "SELECT 2"]);
    check("\\if 0\nSELECT 1;\nSELECT (2\n\\else\nSELECT 3\n\\endif\n;SELECT 4;", &["SELECT 3", "SELECT 4"]);
}

#[test]
fn psql_forgets_at_the_end_of_a_line_that_a_string_began_with_e() {
    check("SELECT E'a'\n'b\\'; DROP TABLE x; --'", &["!SELECT E'a'\n'b\\'", "DROP TABLE x"]);
    check("SELECT E'a'\n'b\\n'; SELECT 2;", &["SELECT E'a'\n'b\\n'", "SELECT 2"]);
}

#[test]
fn copy_has_data_only_where_it_reads_them() {
    check("COPY (SELECT a FROM stdin) TO STDOUT;\nSELECT 1;", &["COPY (SELECT a FROM stdin) TO STDOUT", "SELECT 1"]);
    check("COPY t TO stdout;\nSELECT 1;", &["COPY t TO stdout", "SELECT 1"]);
    check(
        "COPY \"from\".t (a) FROM STDOUT (FORMAT csv);\n1;\n\\.\nSELECT 1;",
        &["COPY \"from\".t (a) FROM STDOUT (FORMAT csv)", "SELECT 1"],
    );
    check("\\if no\nCOPY t FROM stdin;\n\\endif\nSELECT 1;", &["SELECT 1"]);
}

#[test]
fn braces_in_quotes_are_text() {
    let text = "SELECT 1 AS \"{{\"; DROP TABLE x; SELECT 1 AS \"}}\"";
    check(text, &["SELECT 1 AS \"{{\"", "DROP TABLE x", "SELECT 1 AS \"}}\""]);
    check("SELECT {{ ; DROP TABLE x; }}", &["!SELECT {{", "DROP TABLE x", "!}}"]);
    check("SELECT 1, $x$.'$x$a; DROP TABLE x; --'", &["SELECT 1, $x$.'$x$a", "DROP TABLE x"]);
}

#[test]
fn large_files_take_linear_time() {
    for unit in [
        "INSERT INTO t VALUES (1, 'a');\n",
        "CREATE TABLE t (a int;\n",
        "BEGIN\nSELECT 1;\n",
        "{{ x }} ; $a$_ ;\n",
        "SELECT 1 /* x */ -- y\n;",
    ] {
        let text = unit.repeat(50_000);
        let start = std::time::Instant::now();
        let pieces = split(&text).pieces;
        assert!(pieces.len() >= 50_000);
        assert!(start.elapsed().as_secs() < 10, "{unit}: {:?}", start.elapsed());
    }
}

#[test]
fn texts_are_split_again_only_for_doubts() {
    let plain = "CREATE FUNCTION f() RETURNS text LANGUAGE sql AS $f$ SELECT 'é' $f$; COMMENT ON TABLE t IS 'ü';";
    assert!(!may_have_doubts(plain));
    assert_eq!(split(plain).doubts, []);
    for text in ["SET client_encoding = gbk; SELECT 'é'", "SELECT '\\'", "SELECT {{ x }}", "SELECT $a$_b$a$_c"] {
        assert!(may_have_doubts(text), "{text}");
    }
}
