use super::*;
use crate::production::Functions;
use crate::routine::tests::{named, with_routines};

const TABLES: &str = "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE TABLE u (id int);
    CREATE FUNCTION one() RETURNS void LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO t VALUES (1, 1); EXCEPTION WHEN unique_violation THEN NULL; END $$;
    CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM one(); RETURN new; END $$;
    CREATE TRIGGER tr BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION on_row();";

fn most(body: &str) -> Bound {
    let text = format!("{TABLES} CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ {body} $$;");
    let mut found = Bound::ZERO;
    with_routines(&[&text], &Functions::default(), |routines| {
        let routine = routines.function(named(routines, "p")).unwrap();
        found = routines.subtransactions(&routine).most;
    });
    found
}

/// A block with EXCEPTION around a statement.
fn caught(statement: &str) -> String {
    format!("BEGIN {statement}; EXCEPTION WHEN OTHERS THEN NULL; END;")
}

#[test]
fn constant_loops_multiply_and_others_have_no_bound() {
    let write = caught("UPDATE t SET n = 1 WHERE id = 1");
    for (body, expected) in [
        (format!("BEGIN {write} {write} END"), Bound::AtMost(2)),
        (format!("BEGIN FOR i IN 1..10 LOOP FOR j IN 1..10 LOOP {write} END LOOP; END LOOP; END"), Bound::AtMost(100)),
        (format!("BEGIN FOR r IN SELECT * FROM t LOOP {write} END LOOP; END"), Bound::Unbounded),
        (format!("BEGIN FOR r IN SELECT * FROM t LIMIT 20 LOOP {write} END LOOP; END"), Bound::AtMost(20)),
        (
            format!("BEGIN FOR r IN SELECT generate_series FROM generate_series(1, 30) LOOP {write} END LOOP; END"),
            Bound::AtMost(30),
        ),
        (
            format!("DECLARE x text; BEGIN FOREACH x IN ARRAY ARRAY['a', f(1, 2), 'c'] LOOP {write} END LOOP; END"),
            Bound::AtMost(3),
        ),
        (format!("BEGIN WHILE true LOOP {write} END LOOP; END"), Bound::Unbounded),
        (format!("BEGIN {} END", caught(&write)), Bound::AtMost(2)),
    ] {
        assert_eq!(most(&body), expected, "{body}");
    }
}

#[test]
fn blocks_that_cannot_write_do_not_count() {
    for statement in [
        "PERFORM count(*) FROM t",
        "x := 1",
        "RAISE NOTICE 'a'",
        "PERFORM 1 / 0",
        "EXECUTE 'SELECT 1'",
        "x := unseen(1)",
        "SELECT unseen(1) INTO x",
        "IF unseen(1) THEN RETURN; END IF",
        "PERFORM lower(unseen(1))",
        "EXECUTE text INTO x",
    ] {
        assert_eq!(most(&format!("DECLARE x int; BEGIN {} END", caught(statement))), Bound::ZERO, "{statement}");
    }
    for statement in
        ["PERFORM FROM t FOR UPDATE", "PERFORM nextval('s')", "EXECUTE text", "CREATE TABLE x ()", "PERFORM unseen(1)"]
    {
        assert_eq!(
            most(&format!("DECLARE text text; BEGIN {} END", caught(statement))),
            Bound::AtMost(1),
            "{statement}"
        );
    }
}

#[test]
fn branches_take_the_maximum_and_handlers_run_after_the_rollback() {
    let write = caught("DELETE FROM t WHERE id = 1");
    assert_eq!(most(&format!("BEGIN IF a THEN {write} {write} ELSE {write} END IF; {write} END")), Bound::AtMost(3));
    assert_eq!(
        most(&format!("BEGIN UPDATE t SET n = 1; EXCEPTION WHEN OTHERS THEN {write} {write} {write} END")),
        Bound::AtMost(3)
    );
}

#[test]
fn a_loop_that_goes_on_only_after_a_failure_adds_one() {
    let retry = "BEGIN LOOP BEGIN INSERT INTO t VALUES (1, 1); RETURN; EXCEPTION WHEN unique_violation THEN NULL; END; END LOOP; END";
    assert_eq!(most(retry), Bound::AtMost(1));
    let write = "UPDATE t SET n = 1 WHERE id = 1;";
    let caught = |statements: &str| format!("BEGIN {statements} EXCEPTION WHEN OTHERS THEN tries := tries + 1; END;");
    let looped = |head: &str, tail: &str, statements: &str| {
        let body = caught(statements);
        most(&format!("DECLARE done bool := false; tries int := 0; BEGIN {head} LOOP {body} {tail} END LOOP; END"))
    };
    let done = format!("{write} done := TRUE;");
    assert_eq!(looped("WHILE NOT done AND tries < 5", "", &done), Bound::AtMost(1));
    assert_eq!(looped("", "EXIT WHEN done;", &done), Bound::AtMost(1));
    assert_eq!(looped("WHILE NOT done AND tries < 5", "", write), Bound::Unbounded);
    assert_eq!(looped("WHILE tries < 5", "", &done), Bound::Unbounded);
}

#[test]
fn commit_resets_the_count() {
    let write = caught("UPDATE t SET n = 1 WHERE id = 1");
    let batch = |every: &str| format!("BEGIN FOR r IN SELECT * FROM t LOOP {write} {every} END LOOP; END");
    assert_eq!(most(&batch("COMMIT;")), Bound::AtMost(1));
    assert_eq!(most(&batch("IF r.id % 500 = 0 THEN COMMIT; END IF;")), Bound::AtMost(500));
    assert_eq!(most(&format!("BEGIN {write} {write} COMMIT; {write} END")), Bound::AtMost(2));
}

#[test]
fn calls_and_row_triggers_are_followed() {
    assert_eq!(most("BEGIN PERFORM one(); PERFORM one(); END"), Bound::AtMost(2));
    assert_eq!(most("BEGIN PERFORM one() FROM t; END"), Bound::Unbounded);
    assert_eq!(most("BEGIN PERFORM one() FROM t WHERE id = 1; END"), Bound::AtMost(1));
    assert_eq!(most("BEGIN PERFORM * FROM t JOIN one() ON true; END"), Bound::AtMost(1));
    assert_eq!(most("BEGIN FOR r IN SELECT * FROM t WHERE id = 1 LOOP PERFORM one(); END LOOP; END"), Bound::AtMost(1));
    assert_eq!(most("BEGIN FOR i IN 1..5 LOOP CALL p(); PERFORM one(); END LOOP; END"), Bound::AtMost(5));
    assert_eq!(most("BEGIN INSERT INTO u VALUES (1), (2), (3); END"), Bound::AtMost(3));
    assert_eq!(most("BEGIN INSERT INTO u SELECT id FROM t; END"), Bound::Unbounded);
}
