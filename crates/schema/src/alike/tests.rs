use super::{Form, Texts, Verdict};
use crate::object::Source::{Database, Files};

fn verdict(form: Form, before: &str, after: &str) -> Verdict {
    Texts { form, sources: [Files, Database], written: [before, after] }.compare()
}

#[test]
fn what_postgresql_rewrites_is_the_same() {
    // The right side is what PostgreSQL 18 writes.
    for (written, stored) in [
        ("'new'", "'new'::text"),
        ("status IN ('a', 'b')", "(status = ANY (ARRAY['a'::text, 'b'::text]))"),
        (
            "status IN ('a', 'b')",
            "((status)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))",
        ),
        ("status IN ('a')", "(status = 'a'::text)"),
        ("a NOT IN (1, 2)", "(a <> ALL (ARRAY[1, 2]))"),
        ("a BETWEEN 1 AND 5", "((a >= 1) AND (a <= 5))"),
        ("name LIKE 'a%'", "(name ~~ 'a%'::text)"),
        ("lower(email)", "lower((email)::text)"),
        ("-1", "'-1'::integer"),
        ("'f'", "false"),
        ("0", "0.0"),
        ("nextval('s')", "nextval('public.s'::regclass)"),
        ("'{\"a\":1}'", "'{\"a\": 1}'::jsonb"),
        ("now() AT TIME ZONE 'utc'", "(now() AT TIME ZONE 'utc'::text)"),
        ("CASE WHEN a THEN 1 END", "CASE WHEN a THEN 1 ELSE NULL::integer END"),
        ("a > 1 AND b > 1 AND c", "((a > 1) AND (b > 1) AND c)"),
        ("f(a)", "public.f(a)"),
        ("a IS NOT DISTINCT FROM 1", "(NOT (a IS DISTINCT FROM 1))"),
    ] {
        assert_eq!(verdict(Form::Expression, written, stored), Verdict::Same, "{written} / {stored}");
    }
}

#[test]
fn what_differs_is_different() {
    for (written, stored) in [
        ("'new'", "'old'::text"),
        ("'sad'", "'ok'::public.mood"),
        ("1", "2"),
        ("status IN ('a', 'b')", "(status = ANY (ARRAY['a'::text, 'c'::text]))"),
        ("a > 1", "(a >= 1)"),
        ("now()", "CURRENT_TIMESTAMP"),
        ("lower(a)", "upper(a)"),
        ("a", "(a)::date"),
        ("GREATEST(a, b)", "LEAST(a, b)"),
        ("nextval('app.s')", "nextval('public.s'::regclass)"),
        ("app.f(a)", "public.f(a)"),
        ("'{\"a\":1}'", "'{\"a\": 2}'::jsonb"),
        ("a AND b", "(a OR b)"),
    ] {
        assert_eq!(verdict(Form::Expression, written, stored), Verdict::Different, "{written} / {stored}");
    }
}

#[test]
fn what_may_be_the_same_is_left_open_between_two_origins_only() {
    let spellings = ["'1 hour'", "'01:00:00'::interval"];
    assert_eq!(verdict(Form::Expression, spellings[0], spellings[1]), Verdict::Unsure);
    let same = |source| Texts { form: Form::Expression, sources: [source; 2], written: spellings }.compare();
    assert_eq!([same(Files), same(Database)], [Verdict::Different; 2]);
    assert_eq!(verdict(Form::Expression, "f(value)", "public.f((VALUE)::public.code)"), Verdict::Unsure);
    assert_eq!(verdict(Form::Expression, "f(value)", "public.g((VALUE)::public.code)"), Verdict::Different);
    assert_eq!(verdict(Form::Query, "SELECT * FROM t", "SELECT a FROM public.t"), Verdict::Unsure);
    assert_eq!(
        verdict(Form::Query, "SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t WHERE (b = 'x'::text);"),
        Verdict::Same
    );
}

#[test]
fn other_forms_are_parsed_as_such() {
    let range = "FOR VALUES FROM (1) TO (10)";
    assert_eq!(verdict(Form::PartitionBound, range, "FOR VALUES FROM (1) TO (11)"), Verdict::Different);
    assert_eq!(verdict(Form::PartitionBound, "FOR VALUES IN ('a')", "FOR VALUES IN ('a'::text)"), Verdict::Same);
    assert_eq!(verdict(Form::PartitionKey, "RANGE (a)", "RANGE (a, b)"), Verdict::Different);
    assert_eq!(verdict(Form::PartitionKey, "RANGE ((lower(a)))", "RANGE (lower((a)::text))"), Verdict::Same);
    assert_eq!(verdict(Form::Parameters, "a int DEFAULT 1", "a integer DEFAULT 1"), Verdict::Same);
    assert_eq!(verdict(Form::Parameters, "a int", "a integer, b text"), Verdict::Different);
}
