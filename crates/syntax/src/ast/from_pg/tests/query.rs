use super::super::{parse_expression, parse_sql};
use super::{at, convert};
use crate::ast::{Ast, Expr, ExprKind, FromItem, Query, QueryBody, Select};
use crate::source::TextRange;
use crate::statement::PARSE_STACK_BYTES;

fn query(sql: &str) -> (String, Query) {
    match convert(sql) {
        (source, Ast::Select(query)) => (source, *query),
        (_, other) => panic!("{sql}: {other:?}"),
    }
}

fn select(query: &Query) -> &Select {
    match &query.body {
        QueryBody::Select(select) => select,
        other => panic!("{other:?}"),
    }
}

#[test]
fn expressions_reach_from_first_to_last_token() {
    for text in [
        "-1",
        "a.b",
        "s.f(a, b => 2)",
        "count(*) FILTER (WHERE x) OVER (PARTITION BY y)",
        "CAST(a AS numeric(10, 2))",
        "a::timestamp with time zone",
        "a IS NOT NULL",
        "a IN (1, 2)",
        "a NOT IN (SELECT 1)",
        "CASE WHEN a THEN (b) ELSE (c) END",
        "ARRAY[1, 2]",
        "(SELECT max(x) FROM t)",
        "EXISTS (SELECT 1)",
        "a = ANY (b)",
        "coalesce(a, (b))",
        "a AND b OR NOT c",
        "x COLLATE \"C\"",
        "a BETWEEN 1 AND 2",
        "now() AT TIME ZONE 'UTC'",
        "extract(year FROM a)",
        "nullif(a, b)",
        "current_timestamp",
        "a[1]",
        "(a + b) * 2",
        "a * (b + (c))",
        "((a))::int",
        "(a OR b) AND (c OR (d))",
        "NOT (a OR b)",
        "- (a)",
        "((a)) IS NULL",
        "(a > b) IS TRUE",
        "(a || b) COLLATE \"C\"",
        "((a).b).c",
        "((a)[1])[2]",
        "(a) = ANY (SELECT 1)",
        "(a) IN (1, (2))",
        "a BETWEEN (1) AND ((2))",
        "(SELECT 1) + (SELECT 2)",
        "CASE (a) WHEN (1) THEN (b) ELSE ((c)) END",
    ] {
        let source = format!("x := {text} ;");
        let range = TextRange::new(5, 5 + text.len() as u32);
        let expression = parse_expression(&source, range).unwrap();
        assert_eq!(at(&source, expression.range), text);
    }
}

#[test]
fn values_are_written_with_their_brackets() {
    let (source, Ast::Update(update)) = convert("UPDATE t SET a = (b + 1), c = ((d)) || 'x', e = (f(g))") else {
        panic!()
    };
    let values: Vec<&str> = update.assignments.iter().map(|assignment| at(&source, assignment.value.range)).collect();
    assert_eq!(values, ["(b + 1)", "((d)) || 'x'", "(f(g))"]);
}

#[test]
fn every_subquery_has_its_own_range() {
    let (source, query) =
        query("WITH c AS (SELECT 0) SELECT * FROM a JOIN (SELECT 1) x ON true, LATERAL ((SELECT 2) UNION SELECT 3) y");
    let crate::ast::QueryStatement::Select(cte) = &query.with.as_ref().unwrap().ctes[0].statement else { panic!() };
    assert_eq!(at(&source, cte.range), "SELECT 0");
    let from = &select(&query).from;
    let FromItem::Join { right, .. } = &from[0] else { panic!() };
    let FromItem::Subquery { query: first, .. } = &**right else { panic!() };
    assert_eq!(at(&source, first.range), "SELECT 1");
    let FromItem::Subquery { query: second, .. } = &from[1] else { panic!() };
    assert_eq!(at(&source, second.range), "(SELECT 2) UNION SELECT 3");
    let QueryBody::SetOperation { left, right, .. } = &second.body else { panic!() };
    assert_eq!((at(&source, left.range), at(&source, right.range)), ("SELECT 2", "SELECT 3"));
}

#[test]
fn in_list_is_one_operator() {
    let expression: Expr = parse_expression("a NOT IN (1, 2)", TextRange::new(0, 15)).unwrap();
    let ExprKind::Operator { operator, operands, .. } = expression.kind else { panic!() };
    assert_eq!((operator.as_str(), operands.len()), ("<>", 3));
}

#[test]
fn multi_assignment_is_one_entry_per_column() {
    let (source, Ast::Update(update)) = convert("UPDATE t SET (a, b) = (SELECT 1, 2) FROM (SELECT 3) x WHERE true")
    else {
        panic!()
    };
    assert_eq!(update.assignments.len(), 2);
    assert_eq!(at(&source, update.assignments[1].column.range), "b");
    let FromItem::Subquery { query, .. } = &update.from[0] else { panic!() };
    assert_eq!(at(&source, query.range), "SELECT 3");
}

#[test]
fn a_syntax_error_points_at_its_token() {
    let error = parse_sql("SELECT 'é'; SELECT 1 FORM t").unwrap_err();
    assert_eq!(error.message, "syntax error at or near \"t\"");
    assert_eq!(at("SELECT 'é'; SELECT 1 FORM t", error.range), "t");
}

/// In a thread with the stack that the engine's threads have.
fn with_large_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn(test).unwrap().join().unwrap();
}

/// A query that is too deep is an error; any other must convert and drop.
#[test]
fn deep_nesting_does_not_overflow() {
    with_large_stack(|| {
        for terms in [4_900, 20_000] {
            let chain = format!("SELECT {}", vec!["'x'"; terms].join(" || "));
            let unions = vec!["SELECT 1"; terms].join(" UNION ");
            let calls = format!("SELECT {}1{}", "f(".repeat(terms), ")".repeat(terms));
            let brackets = format!("SELECT {}1{}", "(".repeat(terms), ")".repeat(terms));
            for sql in [chain, unions, calls, brackets] {
                assert_eq!(parse_sql(&sql).is_ok(), terms == 4_900, "{}", &sql[..40]);
            }
            let flat = vec!["SELECT 1"; terms].join(" UNION ALL ");
            assert!(parse_sql(&flat).is_ok());
        }
    });
}
