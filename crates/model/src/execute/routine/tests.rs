//! Tests of code that statements run.

use crate::catalog::Catalog;
use crate::effect::{Effects, Limit, UnknownReason};
use crate::execute::testing::{check, check_failure, effects_on, locks_of, summary};
use crate::routine::Trial;
use crate::version::PgVersion;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::ast::from_pg::parse_sql;

const PARTITIONED: &str = "CREATE TABLE task(id int, day date) PARTITION BY RANGE (day);
    CREATE FUNCTION make_day(parent text, day date) RETURNS int LANGUAGE plpgsql AS $$
    DECLARE day_text varchar; part varchar;
    BEGIN
        SELECT to_char(day, 'YYYYMMDD') INTO day_text;
        SELECT lower(format('%s_%s', parent, day_text)) INTO part;
        IF EXISTS (SELECT 1 FROM pg_tables WHERE tablename = part) THEN RETURN 0; END IF;
        EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING INDEXES)', part, parent);
        EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (''%s'') TO (''%s'')', parent, part, day_text, day_text);
        RETURN 1;
    END $$;";

/// Runs the body of a DO block.
fn run(history: &str, body: &str) -> Vec<String> {
    let effects = effects_on(17, history, &format!("DO $do$ {body} $do$"));
    assert!(effects.unknown.is_empty(), "{body}: {:?}", effects.unknown);
    summary(&effects)
}

#[test]
fn partitions_that_run_time_names_make_later_statements_uncertain() {
    let effects = effects_on(17, PARTITIONED, "SELECT make_day('task', now()::date)");
    assert!(locks_of(&effects).contains(&"task ShareUpdateExclusive".to_owned()), "{:?}", locks_of(&effects));
    let history = format!("{PARTITIONED} SELECT make_day('task', now()::date);");
    let again = effects_on(17, &history, "SELECT make_day('task', now()::date + 1)");
    assert!(locks_of(&again).contains(&"task ShareUpdateExclusive".to_owned()), "{:?}", locks_of(&again));
    for (sql, uncertain) in [
        ("ALTER TABLE task ADD COLUMN x int", true),
        ("DROP TABLE task", true),
        ("CREATE INDEX i ON task (id)", true),
        ("CREATE TABLE other(id int)", false),
    ] {
        let effects = effects_on(17, &history, sql);
        assert_eq!(effects.fails, None, "{sql}");
        assert_eq!(!effects.unknown.is_empty(), uncertain, "{sql}: {:?}", effects.unknown);
    }
}

#[test]
fn known_arguments_make_known_tables() {
    let history = "CREATE TABLE h(id int) PARTITION BY HASH (id);
        CREATE FUNCTION make(parent text, n int DEFAULT 2) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE part text;
        BEGIN
            FOR i IN 0..n - 1 LOOP
                part := parent || '_' || i;
                IF to_regclass(part) IS NULL THEN
                    EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s)', part, parent, n, i);
                END IF;
            END LOOP;
        END $$;";
    let made = ["create public.h_0", "create public.h_1", "lock public.h AccessExclusive"];
    for sql in ["SELECT make('h')", "SELECT make(parent => 'h', n => 2)", "DO $$ BEGIN PERFORM make('h', 2); END $$"] {
        let effects = effects_on(17, history, sql);
        assert!(effects.unknown.is_empty(), "{sql}: {:?}", effects.unknown);
        assert_eq!(summary(&effects), made, "{sql}");
    }
}

#[test]
fn loops_over_constants_run_once_per_value() {
    for body in [
        "DECLARE x text; BEGIN FOREACH x IN ARRAY ARRAY['a', 'b'] LOOP EXECUTE 'CREATE TABLE ' || x || '()'; END LOOP; END",
        "DECLARE x text; BEGIN FOR x IN SELECT unnest('{a,b}'::text[]) LOOP EXECUTE format('CREATE TABLE %I()', x); END LOOP; END",
        "DECLARE r record; BEGIN FOR r IN VALUES ('a'), ('b') LOOP EXECUTE format('CREATE TABLE %I()', r.column1); END LOOP; END",
        "DECLARE r record; BEGIN FOR r IN SELECT * FROM (VALUES ('a', 1), ('b', 2)) AS v(n, i) LOOP
            EXECUTE format('CREATE TABLE %I()', r.n); END LOOP; END",
        "BEGIN FOR i IN 1..3 LOOP EXIT WHEN i > 2; EXECUTE 'CREATE TABLE ' || chr_of(i) || '()'; END LOOP; END",
    ] {
        if body.contains("chr_of") {
            let body = body.replace("chr_of(i)", "CASE WHEN i = 1 THEN 'a' ELSE 'b' END");
            assert_eq!(run("", &body), ["create public.a", "create public.b"], "{body}");
        } else {
            assert_eq!(run("", body), ["create public.a", "create public.b"], "{body}");
        }
    }
}

#[test]
fn a_table_that_run_time_names_leaves_nothing_but_doubt() {
    let body = "DECLARE r record; BEGIN FOR r IN SELECT name FROM t LOOP
        EXECUTE format('ALTER TABLE %I ADD COLUMN x int', r.name); END LOOP; END";
    let effects = effects_on(17, "CREATE TABLE t(name text)", &format!("DO $$ {body} $$"));
    assert_eq!(summary(&effects), ["lock public.t AccessShare", "scan public.t"]);
    assert_eq!(reasons(&effects), [UnknownReason::DynamicTarget]);
}

fn reasons(effects: &Effects) -> Vec<UnknownReason> {
    effects.unknown.iter().map(|unknown| unknown.reason.clone()).collect()
}

#[test]
fn a_loop_over_a_system_catalog_runs_for_the_tables_of_the_history() {
    let history = "CREATE TABLE a(id int); CREATE TABLE b(id int, gone int); CREATE SCHEMA s; CREATE TABLE s.c(id int);
        CREATE VIEW v AS SELECT 1 AS id;";
    let both = ["lock public.a AccessExclusive", "lock public.b AccessExclusive"];
    for (query, locks) in [
        ("SELECT tablename AS t FROM pg_tables WHERE schemaname = 'public'", &both[..]),
        ("SELECT format('%I', c.tablename) AS t FROM pg_catalog.pg_tables c WHERE c.tablename IN ('a', 'b')", &both),
        (
            "SELECT table_name AS t FROM information_schema.tables WHERE table_schema = 'public'
            AND table_type = 'BASE TABLE' AND table_name NOT LIKE 'b%' ORDER BY 1",
            &both[..1],
        ),
        ("SELECT DISTINCT table_name AS t FROM information_schema.columns WHERE column_name = 'gone'", &both[1..]),
        ("SELECT tablename AS t FROM pg_tables WHERE schemaname ~ 'x'", &[]),
    ] {
        let body = format!("FOR r IN {query} LOOP EXECUTE 'ALTER TABLE ' || r.t || ' ADD COLUMN x int'; END LOOP;");
        let effects = effects_on(17, history, &format!("DO $$ DECLARE r record; BEGIN {body} END $$"));
        assert_eq!(summary(&effects), locks, "{query}");
        // Tables that no migration shows may be there as well.
        assert_eq!(reasons(&effects), [UnknownReason::DynamicTarget], "{query}");
    }
}

#[test]
fn loops_over_many_constants_are_run_to_a_limit() {
    let tables = |count: usize| (0..count).map(|at| format!("CREATE TABLE t{at}()")).collect::<Vec<_>>().join(";");
    let names = |count: usize| (0..count).map(|at| format!("'t{at}'")).collect::<Vec<_>>().join(", ");
    let values = |count: usize| (0..count).map(|at| format!("('t{at}')")).collect::<Vec<_>>().join(", ");
    let alter = "EXECUTE format('ALTER TABLE %I ADD COLUMN x int', t)";
    for (head, count, limit) in [
        (format!("FOREACH t IN ARRAY ARRAY[{}]", names(65)), 65, None),
        (format!("FOR t IN VALUES {}", values(65)), 65, None),
        (format!("FOR t IN SELECT unnest(ARRAY[{}])", names(65)), 65, None),
        (format!("FOREACH t IN ARRAY ARRAY[{}]", names(1001)), 0, Some(Limit::Rounds(1000))),
    ] {
        let sql = format!("DO $$ DECLARE t text; BEGIN {head} LOOP {alter}; END LOOP; END $$");
        let effects = effects_on(17, &tables(66), &sql);
        assert_eq!(effects.locks.len(), count, "{sql}");
        let limits = reasons(&effects).into_iter().filter(|reason| matches!(reason, UnknownReason::Limit(_)));
        assert_eq!(limits.collect::<Vec<_>>(), limit.map(UnknownReason::Limit).into_iter().collect::<Vec<_>>());
    }
    let sql = "DO $$ BEGIN FOR i IN 1..100000 LOOP INSERT INTO t0 DEFAULT VALUES; END LOOP; END $$";
    assert_eq!(reasons(&effects_on(17, &tables(1), sql)), []);
}

#[test]
fn conditions_are_compared_with_catalog_rows_to_a_limit() {
    let tables = (0..400).map(|at| format!("CREATE TABLE t{at}();")).collect::<Vec<_>>().concat();
    let inner = "FOR t IN SELECT tablename FROM pg_tables WHERE tablename = 't1' LOOP \
                 EXECUTE format('ALTER TABLE %I ADD COLUMN x int', t); END LOOP;";
    let sql = |rounds: usize| {
        format!(
            "DO $$ DECLARE t text; n text; BEGIN FOREACH n IN ARRAY ARRAY[{}] LOOP {inner} END LOOP; END $$",
            (0..rounds).map(|at| format!("'{at}'")).collect::<Vec<_>>().join(", ")
        )
    };
    let limit = UnknownReason::Limit(Limit::CatalogRows(100_000));
    assert!(!reasons(&effects_on(17, &tables, &sql(2))).contains(&limit));
    let many = (0..6).map(|_| sql(60).replacen("DO $$ DECLARE t text; n text; BEGIN", "", 1).replace("END $$", ""));
    let many = format!("DO $$ DECLARE t text; n text; BEGIN {} END $$", many.collect::<String>());
    assert!(reasons(&effects_on(17, &tables, &many)).contains(&limit));
}

#[test]
fn a_function_that_calls_itself_is_no_gap() {
    let history = "CREATE TABLE t(id int, parent int);
        CREATE FUNCTION walk(node int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
            DELETE FROM t WHERE id = node; PERFORM walk(parent) FROM t WHERE id = node; END $$;";
    let effects = effects_on(17, history, "SELECT walk(id) FROM t");
    assert_eq!((locks_of(&effects), reasons(&effects)), (vec!["t RowExclusive".to_owned()], vec![]));
}

#[test]
fn a_hole_may_be_a_number() {
    let body = "EXECUTE format('ALTER SEQUENCE s RESTART WITH %s', (SELECT max(id) FROM t))";
    let effects = effects_on(17, "CREATE SEQUENCE s; CREATE TABLE t(id int);", &format!("DO $$ BEGIN {body}; END $$"));
    assert!(locks_of(&effects).contains(&"s ShareRowExclusive".to_owned()), "{:?}", locks_of(&effects));
    assert_eq!(reasons(&effects), [UnknownReason::DynamicNames]);
}

#[test]
fn a_prepared_statement_runs_where_it_is_executed() {
    let delete = "PREPARE p(int) AS DELETE FROM t WHERE id = $1;";
    let effects = effects_on(17, "CREATE TABLE t(id int)", &format!("{delete} EXECUTE p(1)"));
    assert_eq!((locks_of(&effects), effects.data_changes.len()), (vec!["t RowExclusive".to_owned()], 1));
    assert_eq!(reasons(&effects), []);
    let unprepared = UnknownReason::PreparedStatement { name: "p".into() };
    for sql in [
        "EXECUTE p(1)",
        "PREPARE q AS SELECT 1; EXECUTE p",
        &format!("{delete} DISCARD ALL; EXECUTE p(1)"),
        &format!("{delete} DEALLOCATE p; EXECUTE p(1)"),
        &format!("{delete} DEALLOCATE PREPARE ALL; EXECUTE p(1)"),
    ] {
        let effects = effects_on(17, "CREATE TABLE t(id int)", sql);
        assert_eq!(reasons(&effects), std::slice::from_ref(&unprepared), "{sql}");
    }
}

#[test]
fn a_statement_that_cannot_be_followed_leaves_doubt_about_the_tables_it_names() {
    let history = "CREATE TABLE p(id int) PARTITION BY LIST (id);
        DO $$ DECLARE r record; BEGIN FOR r IN SELECT relname, bound FROM pg_class LOOP
            EXECUTE format('CREATE TABLE %I PARTITION OF p %s', r.relname, r.bound); END LOOP; END $$;";
    assert!(!effects_on(17, history, "ALTER TABLE p ADD COLUMN x int").unknown.is_empty());
    assert!(effects_on(17, history, "CREATE TABLE q(id int)").unknown.is_empty());
}

#[test]
fn a_text_that_is_not_known_leaves_nothing_certain_about_what_it_names() {
    let history = "CREATE TABLE t(id int PRIMARY KEY); CREATE TABLE u(id int PRIMARY KEY);";
    let run = |execute: &str| {
        format!(
            "{history} DO $$ DECLARE s text; BEGIN
                IF (SELECT count(*) FROM pg_roles) > 5 THEN s := 'a'; ELSE s := 'b'; END IF;
                SELECT rolname INTO s FROM pg_roles; IF s IS NOT NULL THEN EXECUTE {execute}; END IF;
            END $$;"
        )
    };
    let policy = run("s || ' CREATE POLICY p ON t USING (true)'");
    check_failure(&policy, "DROP POLICY p ON t", "");
    check_failure(&policy, "DROP POLICY p ON u", "42704");
    let key = run("'ALTER TABLE t DROP CONSTRAINT ' || s");
    check_failure(&key, "ALTER TABLE t ADD PRIMARY KEY (id)", "");
    check_failure(&key, "DO 'BEGIN ALTER TABLE t ADD PRIMARY KEY (id); DROP TABLE t; DROP TABLE t; END'", "");
    check_failure(&key, "ALTER TABLE u ADD PRIMARY KEY (id)", "42P16");
    for anything in ["s", "s || s", "'ALTER TABLE ' || s || ' DROP CONSTRAINT ' || s"] {
        check_failure(&run(anything), "ALTER TABLE t ADD PRIMARY KEY (id)", "");
        check_failure(&run(anything), "CREATE TABLE t (id int)", "");
        let later = format!("{} CREATE TABLE v (id int PRIMARY KEY);", run(anything));
        check_failure(&later, "ALTER TABLE v ADD PRIMARY KEY (id)", "42P16");
        check_failure(&later, "CREATE TABLE v (id int)", "42P07");
    }
    for data in ["'UPDATE t SET id = ' || s", "'INSERT INTO ' || s || ' SELECT 1'", "s INTO s"] {
        check_failure(&run(data), "ALTER TABLE t ADD PRIMARY KEY (id)", "42P16");
    }
}

#[test]
fn conditions_are_decided_by_the_catalog() {
    let history = "CREATE TYPE mood AS ENUM ('ok');
        CREATE TABLE t(id int PRIMARY KEY, a text NOT NULL, m mood, CONSTRAINT c CHECK (id > 0));
        CREATE TABLE \"Big\"(id int PRIMARY KEY);
        CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';";
    for (condition, holds) in [
        ("EXISTS (SELECT 1 FROM pg_constraint WHERE conname = 'c' AND conrelid = 't'::regclass)", true),
        (
            "EXISTS (SELECT FROM information_schema.columns WHERE table_name = 't' AND column_name = 'a' AND data_type = 'text')",
            true,
        ),
        (
            "EXISTS (SELECT FROM information_schema.columns WHERE table_name = 't' AND column_name = 'a' AND is_nullable = 'YES')",
            false,
        ),
        (
            "EXISTS (SELECT FROM information_schema.columns WHERE table_name = 't' AND column_name = 'm' AND udt_name = 'mood')",
            true,
        ),
        ("(SELECT count(*) FROM pg_class WHERE relname = 'missing') = 0", true),
        ("(SELECT count(*) FROM pg_class WHERE relname = 't') > 0", true),
        ("EXISTS (SELECT FROM pg_tables WHERE tablename = 'Big')", true),
        ("EXISTS (SELECT FROM pg_tables WHERE tablename = 'big')", false),
        ("EXISTS (SELECT FROM pg_matviews WHERE matviewname = 't')", false),
        ("EXISTS (SELECT FROM pg_class WHERE relname = 't' AND relkind = 'v')", false),
        ("EXISTS (SELECT FROM pg_indexes WHERE tablename = 't' AND indexname = 't_pkey')", true),
        ("EXISTS (SELECT FROM pg_constraint WHERE contype = 'p' AND conrelid = '\"Big\"'::regclass)", true),
        ("EXISTS (SELECT FROM pg_constraint WHERE contype = 'p' AND conrelid = 'public.T'::regclass)", true),
        ("to_regtype('mood') IS NULL", false),
        ("to_regproc('f') IS NOT NULL", true),
        ("to_regclass('public.t') IS NULL", false),
        ("current_setting('server_version_num')::int >= 150000", true),
        ("current_setting('server_version_num')::int < 170000", false),
        (
            "NOT EXISTS (SELECT 1 FROM pg_enum e JOIN pg_type y ON y.oid = e.enumtypid WHERE typname = 'mood' AND enumlabel = 'bad')",
            true,
        ),
    ] {
        let body = format!("BEGIN IF {condition} THEN CREATE TABLE yes(); ELSE CREATE TABLE no(); END IF; END");
        let expected = if holds { "create public.yes" } else { "create public.no" };
        assert_eq!(run(history, &body), [expected], "{condition}");
    }
}

#[test]
fn variables_carry_answers() {
    for body in [
        "DECLARE v boolean; BEGIN SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'x') INTO v; IF NOT v THEN CREATE TABLE x(); END IF; END",
        "BEGIN PERFORM 1 FROM pg_class WHERE relname = 'x'; IF NOT FOUND THEN CREATE TABLE x(); END IF; END",
        "DECLARE n int; BEGIN SELECT count(*) INTO n FROM pg_class WHERE relname = 'x'; IF n = 0 THEN CREATE TABLE x(); END IF; END",
        "DECLARE o oid; BEGIN SELECT oid INTO o FROM pg_class WHERE relname = 'x'; IF o IS NULL THEN CREATE TABLE x(); END IF; END",
        "DECLARE q text := 'CREATE '; BEGIN q := q || 'TABLE x()'; EXECUTE q; END",
    ] {
        assert_eq!(run("", body), ["create public.x"], "{body}");
    }
}

#[test]
fn a_variable_is_forgotten_where_code_may_have_changed_it() {
    let body = "DECLARE t text := 'a'; BEGIN IF random() > 0.5 THEN t := 'b'; END IF; EXECUTE 'CREATE TABLE ' || t || '()'; END";
    let effects = effects_on(17, "", &format!("DO $$ {body} $$"));
    assert!(!effects.unknown.is_empty());
    assert!(!summary(&effects).contains(&"create public.a".to_owned()));
}

#[test]
fn a_refusal_behind_a_possible_return_is_not_certain() {
    let body = "BEGIN IF random() > 0.5 THEN RETURN; END IF; RAISE EXCEPTION 'no'; END";
    check("", &format!("DO $$ {body} $$"), &[]);
    check("", "DO $$ BEGIN RAISE EXCEPTION 'no'; END $$", &["fails P0001"]);
}

#[test]
fn templates_stand_for_the_schema_of_the_migration() {
    let body = r#"BEGIN IF EXISTS (SELECT FROM information_schema.columns
        WHERE table_schema = '{{ index .Options "Namespace" }}' AND table_name = 't' AND column_name = 'a')
        THEN ALTER TABLE {{ index .Options "Namespace" }}.t DROP COLUMN a; END IF; END"#;
    assert_eq!(run("CREATE TABLE t(id int, a int)", body), ["lock public.t AccessExclusive"]);
}

#[test]
fn a_block_puts_as_many_rows_into_a_table_as_it_says() {
    let many = |code: &str| {
        let mut trial = Trial::new(&Catalog::new(), &vec!["public".into()].into(), PgVersion(17));
        let sql = format!("CREATE TABLE t (id int); {code}");
        parse_sql(&sql).unwrap().iter().for_each(|statement| drop(trial.run(statement)));
        let catalog = trial.catalog();
        catalog.relation(catalog.relation_named("public", "t").unwrap()).birth.many
    };
    assert!(!many("INSERT INTO t VALUES (1), (2)"));
    assert!(!many("DO 'BEGIN INSERT INTO t VALUES (1), (2); END'"));
    assert!(!many("DO 'BEGIN FOR i IN 1..3 LOOP INSERT INTO t VALUES (i); END LOOP; END'"));
    assert!(many("DO 'BEGIN FOR i IN 1..1000000 LOOP INSERT INTO t VALUES (i); END LOOP; END'"));
    assert!(many("DO 'BEGIN WHILE random() > 0 LOOP INSERT INTO t VALUES (1); END LOOP; END'"));
    let function = "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS 'BEGIN INSERT INTO t VALUES (1); END'";
    assert!(many(&format!("{function}; SELECT f() FROM generate_series(1, 1000000)")));
}

#[test]
fn triggers_run_without_needless_doubt() {
    let history = "CREATE TABLE log(id int); CREATE TABLE t(id int);
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'INSERT' THEN INSERT INTO log VALUES (NEW.id); END IF;
            PERFORM pg_notify('c', NEW.id::text);
            RETURN NEW;
        END $$;
        CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();";
    let effects = effects_on(17, history, "INSERT INTO t VALUES (1)");
    assert!(effects.unknown.is_empty(), "{:?}", effects.unknown);
    assert_eq!(locks_of(&effects), ["t RowExclusive", "log RowExclusive"]);
}

#[test]
fn a_text_that_doubles_again_and_again_is_not_followed_to_its_end() {
    for step in [
        "x := x || x;",
        "x := format('%1$s%1$s', x);",
        "x := concat(x, x);",
        "x := replace(x, '1', x);",
        "x := quote_literal(x);",
        "x := concat_ws(';', VARIADIC ARRAY[x, x]);",
    ] {
        let body = format!("DECLARE x text := 'SELECT 1'; BEGIN {} EXECUTE x; END", step.repeat(60));
        let effects = effects_on(17, "", &format!("DO $do$ {body} $do$"));
        assert_eq!((effects.fails, effects.unknown.len()), (None, 1), "{step}");
    }
    let body = "DECLARE a text[] := ARRAY['t']; BEGIN a := a || a; CREATE TABLE t (a int); DROP TABLE t; END";
    let doubled = body.replacen("a := a || a;", &"a := a || a;".repeat(60), 1);
    assert_eq!(run("", &doubled), run("", body));
}

/// To run each of 64 rounds of ten loops within each other would never end.
#[test]
fn loops_within_loops_are_not_run_round_by_round_for_ever() {
    let body = |loops: usize| {
        let begin: Vec<String> = (0..loops).map(|at| format!("FOR i{at} IN 1..64 LOOP ")).collect();
        let begin = begin.concat();
        format!("BEGIN {begin} EXECUTE 'DROP TABLE IF EXISTS t' || i0; {} END", "END LOOP; ".repeat(loops))
    };
    let history: Vec<String> = (1..=64).map(|at| format!("CREATE TABLE t{at} (a int);")).collect();
    let history = history.concat();
    let drops = |loops: usize| effects_on(17, &history, &format!("DO $do$ {} $do$", body(loops))).drops.len();
    assert_eq!(drops(1), 64);
    assert!(drops(10) >= 1);
}

#[test]
fn what_follows_unknown_sql_is_not_certain_to_be_refused() {
    let history = "CREATE TABLE t(id int PRIMARY KEY, name text)";
    let after = |sql: &str| {
        let body = format!(
            "DO $do$ DECLARE drops text; BEGIN
                SELECT concat('ALTER TABLE t DROP CONSTRAINT ', conname) INTO drops FROM pg_constraint;
                IF drops IS NOT NULL THEN EXECUTE drops; END IF; {sql}; ALTER TABLE t ADD COLUMN last int;
            END $do$"
        );
        let effects = effects_on(17, history, &body);
        assert!(!effects.unknown.is_empty(), "{sql}");
        effects.fails.map(|failure| failure.sqlstate)
    };
    assert_eq!(after("ALTER TABLE t ADD PRIMARY KEY (name)"), None);
    assert_eq!(after("ALTER TABLE t DROP COLUMN missing"), None);
    assert_eq!(after("VACUUM t"), Some("25001"));
    assert_eq!(after("RAISE 'stop'"), Some("P0001"));
    assert_eq!(after("EXECUTE 'DROP TABEL t'"), Some("42601"));
    let known = "DO $do$ BEGIN ALTER TABLE t ADD PRIMARY KEY (name); END $do$";
    assert_eq!(effects_on(17, history, known).fails.map(|failure| failure.sqlstate), Some("42P16"));
}

#[test]
fn query_to_xml_runs_its_query() {
    let effects = effects_on(17, "CREATE TABLE t(id int)", "SELECT query_to_xml('SELECT * FROM t', true, true, '')");
    assert_eq!((locks_of(&effects), reasons(&effects)), (vec!["t AccessShare".to_owned()], vec![]));
}

/// The arguments that are written out decide which of several functions a call means.
#[test]
fn arrays_and_strings_choose_the_function() {
    let history = "CREATE TABLE t(id int, note text);
        CREATE FUNCTION allow(what text, name text, role text, schema text DEFAULT 'public') RETURNS void LANGUAGE plpgsql AS $$
        BEGIN EXECUTE format('GRANT %s ON %I.%I TO %I', what, schema, name, role); END $$;
        CREATE FUNCTION allow(what text, name text, role text, columns text[], schema text DEFAULT 'public') RETURNS void
        LANGUAGE plpgsql AS $$
        DECLARE one text;
        BEGIN
            FOREACH one IN ARRAY columns LOOP
                EXECUTE 'GRANT ' || quote_ident(what) || ' (' || quote_ident(one) || ') ON ' || quote_ident(schema) || '.' || quote_ident(name) || ' TO ' || quote_ident(role);
            END LOOP;
        END $$;";
    for body in [
        "BEGIN PERFORM allow('update', 't', 'reader', ARRAY['id', 'note']); END",
        "BEGIN PERFORM allow('update', 't', 'reader', 'public'); END",
    ] {
        run(history, body);
    }
}

/// A condition that is NULL is not true.
#[test]
fn a_query_without_a_row_decides_a_branch() {
    let history = "CREATE TABLE t(id int, note text); CREATE POLICY old ON t USING (true);
        CREATE FUNCTION upsert_policy(name text, what text, role text, condition text) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE command text;
        BEGIN
            IF (SELECT true FROM pg_policies WHERE policyname = name AND tablename = 't') THEN
                command := 'ALTER POLICY ' || quote_ident(name) || ' ON t TO ' || quote_ident(role);
            ELSE
                command := 'CREATE POLICY ' || quote_ident(name) || ' ON t FOR ' || what || ' TO ' || quote_ident(role);
            END IF;
            CASE
                WHEN (lower(what) = 'select' OR lower(what) = 'delete') THEN
                    EXECUTE format(command || ' USING (' || condition || ')');
                ELSE
                    RAISE EXCEPTION 'invalid';
            END CASE;
        END $$;";
    let effects = run(history, "BEGIN PERFORM upsert_policy('new', 'select', 'reader', 'true'); END");
    assert!(effects.contains(&"lock public.t AccessExclusive".to_owned()), "{effects:?}");
    run(history, "BEGIN PERFORM upsert_policy('old', 'select', 'reader', 'true'); END");
}

#[test]
fn every_expression_of_a_statement_calls_its_functions() {
    let history = "CREATE TABLE t (id int); CREATE TABLE u (a int[]);
        CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN DROP TABLE IF EXISTS t; RETURN 1; END';";
    for body in [
        "DECLARE x int := f(); BEGIN END",
        "DECLARE x int; BEGIN x := f(); END",
        "BEGIN RAISE NOTICE '%', f(); END",
        "BEGIN RAISE NOTICE USING MESSAGE = f(); END",
        "BEGIN ASSERT f() = 1; END",
        "BEGIN ASSERT true, f(); END",
        "BEGIN WHILE f() > 1 LOOP END LOOP; END",
        "BEGIN FOR i IN 1..f() LOOP END LOOP; END",
        "BEGIN FOR i IN 1..9 BY f() LOOP END LOOP; END",
        "DECLARE x int; BEGIN FOREACH x IN ARRAY ARRAY[f()] LOOP END LOOP; END",
        "BEGIN LOOP EXIT WHEN f() = 1; END LOOP; END",
        "BEGIN CASE f() WHEN 1 THEN NULL; END CASE; END",
        "BEGIN CASE 1 WHEN 1, f() THEN NULL; END CASE; END",
        "BEGIN EXECUTE 'SELECT $1' USING f(); END",
        "DECLARE c CURSOR FOR SELECT f(); BEGIN FOR r IN c LOOP END LOOP; END",
        "DECLARE c CURSOR (n int) FOR SELECT f() + n; BEGIN OPEN c (1); END",
        "DECLARE c CURSOR (n int) FOR SELECT n; BEGIN OPEN c (f()); END",
        "BEGIN UPDATE u SET a[f()] = 1; END",
    ] {
        let effects = effects_on(17, history, &format!("DO $$ {body} $$"));
        assert_eq!(effects.drops.len(), 1, "{body}");
    }
    let unused = "DO $$ DECLARE c CURSOR FOR SELECT f(); BEGIN END $$";
    assert!(effects_on(17, history, unused).drops.is_empty());
}

#[test]
fn a_trigger_function_runs_for_its_own_operation() {
    let history =
        "CREATE TABLE t(id int, n int); CREATE TABLE a(id int); CREATE TABLE b(id int); CREATE TABLE c(id int);
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF TG_OP = 'INSERT' AND TG_TABLE_NAME = 't' THEN DELETE FROM a; RETURN NEW; END IF;
            IF TG_OP IN ('UPDATE', 'DELETE') AND TG_WHEN = 'AFTER' THEN DELETE FROM b; END IF;
            IF TG_LEVEL = 'STATEMENT' THEN DELETE FROM c; END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER f AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();";
    for (sql, locked) in [
        ("INSERT INTO t VALUES (1)", ["t RowExclusive", "a RowExclusive"]),
        ("UPDATE t SET n = 1", ["t RowExclusive", "b RowExclusive"]),
    ] {
        assert_eq!(locks_of(&effects_on(17, history, sql)), locked, "{sql}");
    }
}

#[test]
fn only_new_values_of_keys_are_checked_and_lock_for_update() {
    let history = "CREATE TABLE p(id int PRIMARY KEY, k int UNIQUE, n int); CREATE TABLE c(id int REFERENCES p);
        CREATE UNIQUE INDEX part ON p (n) WHERE n > 0;";
    for (sql, is_checked, changes_key) in [
        ("UPDATE p SET id = 2", true, true),
        ("UPDATE p SET id = id", false, false),
        ("UPDATE p AS q SET id = q.id, n = 1", false, false),
        ("UPDATE p SET id = c.id FROM c", true, true),
        ("UPDATE p SET k = 3", false, true),
        ("INSERT INTO p VALUES (1) ON CONFLICT (id) DO UPDATE SET id = excluded.id, n = 1", false, false),
        ("INSERT INTO p VALUES (1) ON CONFLICT ON CONSTRAINT p_pkey DO UPDATE SET id = excluded.id", false, false),
        ("INSERT INTO p VALUES (1) ON CONFLICT (k) DO UPDATE SET id = excluded.id", true, true),
    ] {
        let effects = effects_on(17, history, sql);
        let is_read = effects.locks.iter().any(|lock| lock.relation.name == "c" && lock.mode == LockMode::RowShare);
        assert_eq!(is_read, is_checked, "{sql}");
        assert_eq!(effects.data_changes.iter().any(|change| change.changes_key), changes_key, "{sql}");
    }
}
