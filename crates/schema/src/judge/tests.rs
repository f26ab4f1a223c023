use super::{Drift, Severity, judge};
use crate::compare::compare;
use crate::object::Schema;
use crate::testing::{database, relation, schema};

const TABLE: &str = "CREATE TABLE t (a int, b bigint DEFAULT 1); ";

fn drift(migrations: &Schema, database: &Schema) -> Vec<Drift> {
    judge(&compare(migrations, database), migrations, database)
}

/// Severity, sort and object of each drift.
fn said(found: &[Drift]) -> Vec<String> {
    let line = |drift: &Drift| {
        let severity = if drift.severity == Severity::Error { "error" } else { "warning" };
        format!("{severity} {} {} {}", drift.sort.word(), drift.kind.noun(), drift.object)
    };
    found.iter().map(line).collect()
}

#[test]
fn what_one_side_lacks_is_judged_by_what_it_does() {
    // The object, and its severity if the database lacks it, and if only the database has it.
    for (object, missing, unmanaged) in [
        ("CREATE INDEX i ON t (a)", "warning missing index public.t.i", "warning unmanaged index public.t.i"),
        ("CREATE UNIQUE INDEX i ON t (a)", "error missing index public.t.i", "error unmanaged index public.t.i"),
        (
            "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)",
            "error missing constraint public.t.c",
            "error unmanaged constraint public.t.c",
        ),
        ("ALTER TABLE t ADD c int", "error missing column public.t.c", "warning unmanaged column public.t.c"),
        ("ALTER TABLE t ADD c int NOT NULL", "error missing column public.t.c", "error unmanaged column public.t.c"),
        (
            "ALTER TABLE t ADD c int NOT NULL DEFAULT 1",
            "error missing column public.t.c",
            "warning unmanaged column public.t.c",
        ),
        (
            "ALTER TABLE t ADD c int GENERATED ALWAYS AS IDENTITY",
            "error missing column public.t.c",
            "warning unmanaged column public.t.c",
        ),
        ("CREATE POLICY p ON t", "error missing policy public.t.p", "error unmanaged policy public.t.p"),
        ("CREATE TABLE u (a int)", "error missing table public.u", "warning unmanaged table public.u"),
        ("CREATE SEQUENCE s", "error missing sequence public.s", "warning unmanaged sequence public.s"),
        ("CREATE PUBLICATION p FOR TABLE t", "error missing publication p", "warning unmanaged publication p"),
        (
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "error missing function public.f()",
            "warning unmanaged function public.f()",
        ),
    ] {
        let with = format!("{TABLE}{object}");
        assert_eq!(said(&drift(&schema(&with), &database(TABLE))), [missing], "{object}");
        assert_eq!(said(&drift(&schema(TABLE), &database(&with))), [unmanaged], "{object}");
    }
}

#[test]
fn what_differs_is_judged_by_property() {
    for (one, other, expected) in [
        ("ALTER TABLE t ALTER a SET NOT NULL", "", "error differs column public.t.a"),
        ("ALTER TABLE t ALTER b SET DEFAULT 2", "", "error differs column public.t.b"),
        ("GRANT SELECT ON t TO PUBLIC", "", "error access table public.t"),
        ("ALTER TABLE t ENABLE ROW LEVEL SECURITY", "", "error access table public.t"),
        ("ALTER TABLE t FORCE ROW LEVEL SECURITY", "", "error access table public.t"),
        ("CREATE POLICY p ON t USING (true)", "CREATE POLICY p ON t USING (false)", "error access policy public.t.p"),
        (
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS ''",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER AS ''",
            "error access function public.f()",
        ),
        ("ALTER TABLE t SET (fillfactor = 70)", "", "warning differs table public.t"),
        ("CREATE STATISTICS s ON a, b FROM t", "", "warning differs table public.t"),
        ("CREATE INDEX i ON t (a)", "CREATE INDEX i ON t USING hash (a)", "warning differs index public.t.i"),
        ("CREATE INDEX i ON t (a)", "CREATE INDEX i ON t (a DESC)", "warning differs index public.t.i"),
        ("CREATE INDEX i ON t (a)", "CREATE INDEX i ON t (a) INCLUDE (b)", "warning differs index public.t.i"),
        ("CREATE INDEX i ON t (a)", "CREATE UNIQUE INDEX i ON t (a)", "error differs index public.t.i"),
        ("CREATE SEQUENCE s CACHE 5", "CREATE SEQUENCE s", "warning differs sequence public.s"),
        ("CREATE SEQUENCE s OWNED BY t.a", "CREATE SEQUENCE s", "warning differs sequence public.s"),
    ] {
        let (one, other) = (format!("{TABLE}{one}"), format!("{TABLE}{other}"));
        assert_eq!(said(&drift(&schema(&one), &database(&other))), [expected], "{one} / {other}");
        assert_eq!(said(&drift(&schema(&other), &database(&one))), [expected], "{other} / {one}");
    }
    let reordered = "CREATE TABLE t (b bigint DEFAULT 1, a int)";
    assert_eq!(said(&drift(&schema(TABLE), &database(reordered))), ["warning differs table public.t"]);
}

#[test]
fn what_is_invalid_is_one_drift_whatever_the_migrations_leave() {
    let valid = format!("{TABLE}CREATE INDEX i ON t (a); ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)");
    let valid = schema(&valid);
    let mut invalid = Schema { source: crate::Source::Database, ..valid.clone() };
    let table = relation(&mut invalid, "t");
    table.indexes[0].valid = false;
    table.constraints[0].valid = false;
    let expected = ["error invalid-index index public.t.i", "error not-validated constraint public.t.c"];
    let found = drift(&valid, &invalid);
    assert_eq!(said(&found), expected);
    assert_eq!(
        found[0].message,
        "index public.t.i is invalid: its build failed or has not finished, and no query uses it"
    );
    // A baseline knows it by the same key.
    let left_so = Schema { source: crate::Source::Files, ..invalid.clone() };
    assert_eq!(drift(&left_so, &invalid), found);
    // If only the migrations leave them so, the database is better than expected.
    let better = drift(&left_so, &Schema { source: crate::Source::Database, ..valid });
    assert_eq!(said(&better), ["warning differs constraint public.t.c", "warning differs index public.t.i"]);
    // Rows of a constraint that is not enforced are not expected to satisfy it.
    relation(&mut invalid, "t").constraints[0].enforced = false;
    assert!(!said(&drift(&left_so, &invalid)).iter().any(|line| line.contains("not-validated")));
}

#[test]
fn an_index_on_a_partitioned_table_and_a_domain_are_invalid_for_other_reasons() {
    let sql = "CREATE TABLE t (a int) PARTITION BY LIST (a); CREATE INDEX i ON t (a);
        CREATE DOMAIN d AS int CONSTRAINT positive CHECK (VALUE > 0)";
    let migrations = schema(sql);
    let mut observed = database(sql);
    relation(&mut observed, "t").indexes[0].valid = false;
    observed.domains[0].checks[0].valid = false;
    let messages: Vec<String> = drift(&migrations, &observed).into_iter().map(|drift| drift.message).collect();
    assert_eq!(
        messages,
        [
            "index public.t.i is invalid: some partitions have no index attached to it",
            "domain public.d has NOT VALID constraints (positive): existing rows may violate them",
        ]
    );
}

#[test]
fn a_key_lasts_until_the_value_changes() {
    let keys = |sql: &str| -> Vec<String> {
        drift(&schema(TABLE), &database(&format!("{TABLE}{sql}"))).into_iter().map(|drift| drift.key).collect()
    };
    let to = |value: &str| keys(&format!("ALTER TABLE t ALTER b SET DEFAULT {value}"));
    assert_eq!(to("2"), to("2"));
    assert_ne!(to("2"), to("3"));
    assert_ne!(keys("CREATE INDEX i ON t (a)"), keys("CREATE INDEX i ON t (b)"));
}
