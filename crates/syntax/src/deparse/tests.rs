use super::{expression, query};
use crate::ast::{Ast, Expr, QueryBody};
use crate::statement;

fn only(text: &str) -> Expr {
    let statements = statement::parse(&format!("SELECT {text}"));
    let Ok(ast) = &statements[0].parsed else { panic!("{text} is no expression") };
    let Ast::Select(query) = &**ast else { panic!("{text} is no expression") };
    let QueryBody::Select(select) = &query.body else { panic!("{text} is no expression") };
    select.targets[0].value.clone()
}

#[test]
fn what_is_written_reads_as_the_same() {
    for text in [
        "1 + 2 * 3",
        "(1 + 2) * 3",
        "NOT (a AND b) OR c",
        "a IN (1, 2)",
        "a NOT IN (1, 2)",
        "a BETWEEN 1 AND 2 AND b",
        "a NOT BETWEEN SYMMETRIC 1 AND 2",
        "a LIKE 'x%' ESCAPE '!'",
        "a NOT ILIKE '%' || $1",
        "x SIMILAR TO 'a|b'",
        "x NOT SIMILAR TO 'a|b' ESCAPE '!'",
        "x = ANY (ARRAY[1, 2])",
        "x <> ALL (y)",
        "NULLIF(a, '')",
        "a IS DISTINCT FROM b",
        "a IS NOT NULL AND b IS NOT TRUE",
        "CASE a WHEN 1 THEN 'x' ELSE 'y' END",
        "CAST(a AS numeric(10, 2))",
        "'1 hour'::interval(3)",
        "a::timestamptz(3)",
        "a::varchar(20)[]",
        "(a).b[1][2:3]",
        "(c[0]).col",
        "c[0].col",
        "(f(a)).b.c",
        "B'101' || X'1F' || b''",
        "a::character",
        "a::bpchar",
        "a::\"char\"",
        "COALESCE(a, LEAST(b, c), GREATEST(d))",
        "f(a, b => 1)",
        "f(VARIADIC a)",
        "count(DISTINCT a) FILTER (WHERE b)",
        "count(*)",
        "extract(year FROM a)",
        "a COLLATE \"C\" || 'it''s'",
        "E'a\\\\b'",
        "-1 - -2",
        "- a",
        "CURRENT_TIMESTAMP",
        "CURRENT_TIMESTAMP(3) + LOCALTIME(0)",
        "a COLLATE pg_catalog.\"C\"",
        "\"normalize\"(a, b)",
        "\"Mixed\".\"select\"",
        "ROW(1, 2) = (1, 2)",
        "a OPERATOR(pg_catalog.+) b",
        "EXISTS (SELECT 1 FROM t AS u LEFT JOIN v USING (id) WHERE u.a = v.b GROUP BY u.a HAVING count(*) > 1)",
        "a IN (SELECT b FROM ONLY t)",
        "(SELECT max(a) FROM t) > 1",
        "ARRAY(SELECT a FROM t UNION ALL (SELECT 2))",
        "ARRAY(SELECT 1 UNION ALL (SELECT 2 UNION ALL SELECT 3) UNION ALL SELECT 4 LIMIT 2)",
    ] {
        let read = only(text);
        let written = expression(&read).unwrap_or_else(|part| panic!("{text}: {part}"));
        let again = only(&written);
        assert_eq!(expression(&again).as_deref(), Ok(written.as_str()), "{text}");
        // Subqueries are never the same as others.
        assert!(written.contains("SELECT") || read.is_same(&again), "{text} -> {written}");
    }
}

#[test]
fn a_row_of_union_all_is_written_without_nesting() {
    let sides = |text: &str| expression(&only(&format!("ARRAY({text})"))).unwrap_or_default();
    let five = "(SELECT 1) UNION ALL (SELECT 2) UNION ALL (SELECT 3) UNION ALL (SELECT 4) UNION ALL (SELECT 5)";
    assert_eq!(sides(five), format!("ARRAY({five})"));
    let nested = "(SELECT 1) UNION ALL ((SELECT 2) UNION ALL (SELECT 3))";
    assert_eq!(sides(nested), format!("ARRAY({nested})"));
}

#[test]
fn what_the_tree_does_not_keep_is_refused() {
    for text in [
        "rank() OVER (ORDER BY a)",
        "array_agg(a ORDER BY b DESC)",
        "ARRAY(SELECT a FROM t ORDER BY a USING <)",
        "ARRAY(SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES)",
        "ARRAY(SELECT a FROM t NATURAL LEFT JOIN u)",
        "ARRAY(SELECT a FROM t JOIN u USING (b) AS v)",
        "ARRAY(SELECT a FROM t TABLESAMPLE system (1))",
        "ARRAY(SELECT a FROM t GROUP BY DISTINCT a)",
        "ARRAY(WITH u AS (DELETE FROM t RETURNING a) SELECT a FROM u)",
        "ARRAY(WITH RECURSIVE u AS (SELECT 1 AS a UNION ALL SELECT a FROM u) CYCLE a SET b USING c SELECT a FROM u)",
        "(SELECT a FROM xmltable('/r' PASSING x COLUMNS a int) AS a)",
        "a < ANY (SELECT b FROM t)",
        "xmlelement(name a)",
    ] {
        assert!(expression(&only(text)).is_err(), "{text}");
    }
    let statements = statement::parse("SELECT 1 INTO t");
    let Ok(Ast::Select(read)) = statements[0].parsed.as_deref() else { panic!("it is a query") };
    assert!(query(read).is_err());
}

#[test]
fn what_surrounds_a_query_is_written() {
    for text in [
        "SELECT a FROM t ORDER BY a, b DESC, c ASC NULLS LAST, d NULLS FIRST LIMIT 1 OFFSET 2 FOR UPDATE OF t SKIP LOCKED",
        "(SELECT a FROM t ORDER BY a) UNION (SELECT b FROM u) ORDER BY 1 DESC",
        "SELECT a FROM t FOR NO KEY UPDATE NOWAIT FOR KEY SHARE",
        "SELECT a FROM generate_series(1, 2) AS a, LATERAL unnest(b) WITH ORDINALITY AS c(d, e)",
        "SELECT a FROM f() AS g(a integer, b text COLLATE pg_catalog.\"C\"), f(1) AS (c numeric(3, 2)[])",
        "SELECT a FROM ROWS FROM (f() AS (a integer), s.g(1)) WITH ORDINALITY AS h",
        "SELECT a FROM ROWS FROM (f())",
        "SELECT a FROM CURRENT_DATE, CAST('now' AS date) AS d, COALESCE(1, 2) AS e",
        "WITH RECURSIVE u(a, b) AS MATERIALIZED (VALUES (1, 2)), v AS NOT MATERIALIZED (SELECT a FROM u) SELECT a FROM v",
    ] {
        let written = |text: &str| {
            let statements = statement::parse(text);
            let Ok(Ast::Select(read)) = statements[0].parsed.as_deref() else { panic!("{text} is a query") };
            query(read).unwrap_or_else(|part| panic!("{text}: {part}"))
        };
        assert_eq!(written(&written(text)), written(text));
        assert_eq!(written(text).replace("u (a", "u(a"), text);
    }
}
