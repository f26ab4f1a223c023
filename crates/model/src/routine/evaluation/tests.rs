use super::*;
use crate::production::Functions;
use crate::routine::tests::with_routines;
use pgvet_syntax::ast::from_pg::parse_sql;

const SCHEMA: &str = "CREATE TABLE t (id int PRIMARY KEY, n int, u_id int);
    CREATE TABLE u (id int PRIMARY KEY, name text);
    CREATE TABLE settings (the_row bool PRIMARY KEY CHECK (the_row), n int);
    CREATE FUNCTION g(int) RETURNS SETOF int LANGUAGE sql AS 'SELECT 1';
    CREATE FUNCTION h(int) RETURNS int LANGUAGE sql AS 'SELECT 1';";

/// How often each call of `f` and each change happens: `1`, `3`, or `*` for no bound.
fn times(sql: &str) -> String {
    times_for(sql, false)
}

fn times_for(sql: &str, one_row: bool) -> String {
    let statement = &parse_sql(sql).unwrap()[0];
    let mut found = Vec::new();
    with_routines(&[SCHEMA], &Functions::default(), |routines| {
        evaluate(statement, one_row, routines.catalog, &vec!["public".into()].into(), &mut |what, times| {
            let what = match what {
                Evaluated::Call(call) if call.name.starts_with('f') => call.name.as_str(),
                Evaluated::Call(_) => return,
                Evaluated::Insert(_) => "insert",
                Evaluated::Update(_) => "update",
                Evaluated::Delete(_) => "delete",
            };
            let times = match times {
                Bound::AtMost(number) => number.to_string(),
                Bound::Unbounded => "*".to_owned(),
            };
            found.push(format!("{what} {times}"));
        });
    });
    found.join(", ")
}

#[test]
fn a_query_evaluates_its_list_and_its_conditions_for_each_row() {
    for (sql, expected) in [
        ("SELECT f(1)", "f 1"),
        ("SELECT f(n) FROM t", "f *"),
        ("SELECT n FROM t WHERE f(n)", "f *"),
        ("SELECT f(n) FROM t LIMIT 5", "f 5"),
        ("SELECT n FROM t WHERE f(n) LIMIT 5", "f *"),
        ("SELECT f(x) FROM (VALUES (1), (2)) AS v (x)", "f 2"),
        ("SELECT f(x) FROM (SELECT 1 AS x) AS v", "f 1"),
        ("SELECT f(max(n)), count(fa(n)), fb() FROM t", "f 1, fa *, fb 1"),
        ("SELECT f(max(n)) FROM t GROUP BY u_id", "f *"),
        ("SELECT f(unnest($1))", "f *"),
        ("SELECT f(unnest(ARRAY[1, 2, 3]))", "f 3"),
        ("SELECT f(1) UNION SELECT fa(n) FROM t", "f 1, fa *"),
    ] {
        assert_eq!(times(sql), expected, "{sql}");
    }
}

#[test]
fn a_function_in_from_runs_once_unless_it_depends_on_an_item_before() {
    for (sql, expected) in [
        ("SELECT * FROM f(1)", "f 1"),
        ("SELECT * FROM f(p_id)", "f 1"),
        ("SELECT * FROM g(1) JOIN f() ON true", "f 1"),
        ("SELECT * FROM t JOIN f(1) AS x ON x.id = t.id", "f 1"),
        ("SELECT * FROM t, f(t.id)", "f *"),
        ("SELECT * FROM t, f(n)", "f *"),
        ("SELECT * FROM t AS a CROSS JOIN LATERAL f(a.*)", "f *"),
        ("SELECT * FROM unnest($1) AS x, f(x)", "f *"),
        ("SELECT * FROM generate_series(1, 4) AS x, f(x)", "f 4"),
        ("SELECT * FROM h(1) AS x, f(x)", "f 1"),
        ("SELECT * FROM unseen(1) AS x, f(x)", "f *"),
        ("SELECT * FROM t, (SELECT f(1)) AS s", "f 1"),
        ("SELECT * FROM t, LATERAL (SELECT f(t.n)) AS s", "f *"),
    ] {
        assert_eq!(times(sql), expected, "{sql}");
    }
}

#[test]
fn a_unique_index_finds_one_row() {
    for (sql, expected) in [
        ("SELECT f(n) FROM t WHERE id = p_id", "f 1"),
        ("SELECT f(n) FROM t WHERE id = p_id AND n > 3", "f 1"),
        ("SELECT f(n) FROM t WHERE id = p_id OR n > 3", "f *"),
        ("SELECT f(n) FROM t WHERE n = p_id", "f *"),
        ("SELECT f(n) FROM t WHERE id = n", "f *"),
        ("SELECT f(n) FROM settings", "f 1"),
        ("SELECT f(name) FROM t JOIN u ON u.id = t.u_id WHERE t.id = p_id", "f 1"),
        ("SELECT f(name) FROM u JOIN t ON t.u_id = u.id WHERE u.id = p_id", "f *"),
        ("SELECT f(name) FROM t LEFT JOIN u ON u.id = t.u_id AND t.id = p_id", "f *"),
        ("SELECT f(name) FROM t JOIN u ON u.id = t.id", "f *"),
        ("SELECT f(n) FROM t WHERE id = (SELECT max(id) FROM t)", "f 1"),
        ("SELECT f(n) FROM t WHERE id = (SELECT max(id) FROM u WHERE u.id = t.u_id)", "f *"),
    ] {
        assert_eq!(times(sql), expected, "{sql}");
    }
}

#[test]
fn a_subquery_runs_once_unless_it_uses_the_row() {
    for (sql, expected) in [
        ("SELECT (SELECT f(1)) FROM t", "f 1"),
        ("SELECT * FROM t WHERE n = (SELECT f(p_id))", "f 1"),
        ("SELECT * FROM t WHERE n = (SELECT f(n))", "f *"),
        ("SELECT * FROM t WHERE n IN (SELECT x FROM f(1) AS x)", "f 1"),
        ("SELECT * FROM t WHERE EXISTS (SELECT FROM u WHERE u.id = t.u_id AND f(u.name))", "f *"),
        ("SELECT * FROM t WHERE id = 1 AND EXISTS (SELECT FROM u WHERE u.id = t.u_id AND f(u.name))", "f 1"),
    ] {
        assert_eq!(times(sql), expected, "{sql}");
    }
}

#[test]
fn changes_happen_once_for_each_row() {
    for (sql, expected) in [
        ("INSERT INTO t VALUES (1), (2)", "insert 2"),
        ("INSERT INTO t DEFAULT VALUES RETURNING f(id)", "insert 1, f 1"),
        ("INSERT INTO t SELECT f(id) FROM u", "f *, insert *"),
        ("UPDATE t SET n = f(n)", "update *, f *"),
        ("UPDATE t SET n = f(n) WHERE n > 1", "update 1, f *"),
        ("UPDATE t SET n = f(n) WHERE id = 1", "update 1, f 1"),
        ("DELETE FROM t USING u WHERE u.id = t.u_id", "delete 1"),
        ("DELETE FROM t", "delete *"),
        ("WITH one AS (INSERT INTO t VALUES (1) RETURNING id) SELECT f(one.id) FROM one", "insert 1, f 1"),
        (
            "MERGE INTO t USING (VALUES (1), (2)) AS v (x) ON t.id = v.x WHEN MATCHED THEN UPDATE SET n = f(x)
                WHEN NOT MATCHED THEN INSERT VALUES (x)",
            "update 2, f 2, insert 2",
        ),
        ("CALL f(fa(1))", "f 1, fa 1"),
    ] {
        assert_eq!(times(sql), expected, "{sql}");
    }
}

#[test]
fn of_a_result_that_is_taken_for_one_row_no_more_is_computed() {
    for (sql, expected) in [
        ("SELECT f(n) FROM t", "f 1"),
        ("SELECT f(n) FROM t WHERE fa(n)", "fa *, f 1"),
        ("SELECT f(n) FROM t GROUP BY n", "f *"),
        ("SELECT n FROM (SELECT f(n) AS n FROM t) AS s", "f *"),
        ("SELECT f(n) FROM t LIMIT 5", "f 1"),
    ] {
        assert_eq!(times_for(sql, true), expected, "{sql}");
    }
}
