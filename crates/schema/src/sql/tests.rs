use super::script;
use crate::compare::compare;
use crate::object::Known;
use crate::testing::schema;

/// The statements for a schema, without the first lines, which every script has.
fn written(sql: &str) -> String {
    let script = script(&schema(sql));
    assert_eq!(script.omitted, [""; 0], "{sql}");
    let (head, rest) = script.text.split_once("SET search_path = ").unwrap_or_default();
    assert!(head.starts_with("SET check_function_bodies = off;\n"), "{head}");
    rest.split_once('\n').unwrap_or_default().1.to_owned()
}

#[test]
fn each_object_is_written_as_one_that_postgresql_accepts() {
    for (sql, expected) in [
        ("CREATE TYPE e AS ENUM ('it''s', 'b')", "CREATE TYPE public.e AS ENUM ('it''s', 'b');\n"),
        (
            "CREATE TABLE \"Odd name\" (\"select\" int NOT NULL, b text COLLATE \"C\" DEFAULT 'a\\b')",
            "CREATE TABLE public.\"Odd name\" (\n    \"select\" integer NOT NULL,\n    \
             b text COLLATE \"C\" DEFAULT E'a\\\\b'\n);\n",
        ),
        ("CREATE TABLE t ()", "CREATE TABLE public.t ();\n"),
        (
            "CREATE UNLOGGED TABLE t (a int, b int GENERATED ALWAYS AS (a + 1) STORED) WITH (fillfactor = 70)",
            "CREATE UNLOGGED TABLE public.t (\n    a integer,\n    \
             b integer GENERATED ALWAYS AS (a + 1) STORED\n) WITH (fillfactor=70);\n",
        ),
        (
            "CREATE TABLE t (a int); CREATE UNIQUE INDEX i ON t (lower(a::text) COLLATE \"C\" DESC, a) \
             INCLUDE (a) NULLS NOT DISTINCT WHERE a > 0",
            "CREATE TABLE public.t (\n    a integer\n);\nCREATE UNIQUE INDEX i ON public.t USING btree \
             ((lower(a::text)) COLLATE \"C\" DESC, a) INCLUDE (a) NULLS NOT DISTINCT WHERE a > 0;\n",
        ),
        (
            "CREATE TABLE p (a int, b int, CONSTRAINT p_key UNIQUE (a), CONSTRAINT late UNIQUE (b) DEFERRABLE);
             CREATE TABLE c (a int, CONSTRAINT k FOREIGN KEY (a) REFERENCES p (a) MATCH FULL ON DELETE CASCADE);
             ALTER TABLE c ADD CONSTRAINT positive CHECK (a > 0) NOT VALID",
            "CREATE TABLE public.c (\n    a integer\n);\n\
             ALTER TABLE public.c ADD CONSTRAINT positive CHECK (a > 0) NOT VALID;\n\
             CREATE TABLE public.p (\n    a integer,\n    b integer\n);\n\
             ALTER TABLE public.p ADD CONSTRAINT late UNIQUE (b) DEFERRABLE;\n\
             ALTER TABLE public.p ADD CONSTRAINT p_key UNIQUE (a);\n\
             ALTER TABLE public.c ADD CONSTRAINT k FOREIGN KEY (a) REFERENCES public.p (a) MATCH FULL \
             ON DELETE CASCADE ON UPDATE NO ACTION;\n",
        ),
        (
            "CREATE TABLE p (a int, b daterange, PRIMARY KEY (a, b WITHOUT OVERLAPS));
             CREATE TABLE c (a int, b daterange, CONSTRAINT k FOREIGN KEY (a, PERIOD b) REFERENCES p (a, PERIOD b))",
            "CREATE TABLE public.c (\n    a integer,\n    b daterange\n);\n\
             CREATE TABLE public.p (\n    a integer NOT NULL,\n    b daterange NOT NULL\n);\n\
             ALTER TABLE public.p ADD CONSTRAINT p_pkey PRIMARY KEY (a, b WITHOUT OVERLAPS);\n\
             ALTER TABLE public.c ADD CONSTRAINT k FOREIGN KEY (a, PERIOD b) REFERENCES public.p (a, PERIOD b) \
             ON DELETE NO ACTION ON UPDATE NO ACTION;\n",
        ),
        // A function comes after the types that it takes, and before the code that calls it.
        (
            "CREATE DOMAIN d AS int; CREATE FUNCTION f(d) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
             ALTER DOMAIN d ADD CONSTRAINT c CHECK (f(VALUE)) NOT VALID; ALTER DOMAIN d SET DEFAULT 1",
            "CREATE DOMAIN public.d AS integer;\n\
             CREATE FUNCTION public.f(public.d) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$SELECT true$$;\n\
             ALTER DOMAIN public.d SET DEFAULT 1;\n\
             ALTER DOMAIN public.d ADD CONSTRAINT c CHECK (f(value)) NOT VALID;\n",
        ),
        // A body that has the usual quotes gets others.
        (
            "CREATE FUNCTION f() RETURNS text LANGUAGE sql SET search_path = app, public AS 'SELECT $$a$$'",
            "CREATE FUNCTION public.f() RETURNS text LANGUAGE sql VOLATILE SET search_path = app, public \
             AS $body1$SELECT $$a$$$body1$;\n",
        ),
        (
            "CREATE TABLE t (a int); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END';
             CREATE CONSTRAINT TRIGGER g AFTER INSERT OR UPDATE OF a ON t DEFERRABLE FOR EACH ROW WHEN (NEW.a > 0)
             EXECUTE FUNCTION f('x')",
            "CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$BEGIN END$$;\n\
             CREATE TABLE public.t (\n    a integer\n);\n\
             CREATE CONSTRAINT TRIGGER g AFTER INSERT OR UPDATE OF a ON public.t DEFERRABLE FOR EACH ROW \
             WHEN (new.a > 0) EXECUTE FUNCTION public.f('x');\n",
        ),
        (
            "CREATE TABLE t (a int); ALTER TABLE t ENABLE ROW LEVEL SECURITY, REPLICA IDENTITY FULL;
             CREATE POLICY p ON t AS RESTRICTIVE FOR INSERT TO \"Reader\", PUBLIC WITH CHECK (a > 0);
             GRANT SELECT (a), INSERT ON t TO \"Reader\"",
            "CREATE TABLE public.t (\n    a integer\n);\nALTER TABLE public.t REPLICA IDENTITY FULL;\n\
             ALTER TABLE public.t ENABLE ROW LEVEL SECURITY;\n\
             CREATE POLICY p ON public.t AS RESTRICTIVE FOR INSERT TO \"Reader\", PUBLIC WITH CHECK (a > 0);\n\
             GRANT INSERT ON TABLE public.t TO \"Reader\";\nGRANT SELECT (a) ON TABLE public.t TO \"Reader\";\n",
        ),
        (
            "CREATE TABLE t (a int) PARTITION BY RANGE (a); CREATE TABLE one PARTITION OF t FOR VALUES FROM (1) TO (2)",
            "CREATE TABLE public.t (\n    a integer\n) PARTITION BY RANGE (a);\n\
             CREATE TABLE public.one (\n    a integer\n);\n\
             ALTER TABLE ONLY public.t ATTACH PARTITION public.one FOR VALUES FROM (1) TO (2);\n",
        ),
        // The view that another one reads comes first.
        (
            "CREATE VIEW b AS SELECT 1 AS x; CREATE VIEW a AS SELECT x FROM b",
            "CREATE VIEW public.b (x) AS\nSELECT 1 AS x;\nCREATE VIEW public.a (x) AS\nSELECT x FROM public.b;\n",
        ),
        (
            "CREATE PUBLICATION p FOR ALL TABLES WITH (publish = 'insert, delete')",
            "CREATE PUBLICATION p FOR ALL TABLES WITH (publish = 'insert, delete');\n",
        ),
    ] {
        let text = written(sql);
        assert_eq!(text, expected, "{sql}");
        let (from, again) = (schema(sql), schema(&script(&schema(sql)).text));
        assert_eq!(compare(&from, &again).changes, [], "{text}");
    }
}

#[test]
fn what_is_not_known_is_omitted_and_said() {
    for (sql, omitted) in [
        ("CREATE TABLE t (a unseen)", ["type public.unseen: no statement that was read creates it"].as_slice()),
        (
            "CREATE TABLE t (a int, CONSTRAINT x EXCLUDE USING btree (a WITH =))",
            &["constraint public.t.x: the operators of an exclusion constraint"],
        ),
        ("CREATE TABLE t (a int); CREATE RULE r AS ON INSERT TO t DO NOTHING", &["rule public.t.r: what a rule does"]),
        (
            "CREATE TABLE t (a int); CREATE PUBLICATION p FOR TABLE t WHERE (a > 1)",
            &["column lists and row filters of publications are not read"],
        ),
        (
            "CREATE EXTENSION vector; CREATE EXTENSION pg_cron; CREATE EXTENSION hstore; CREATE TABLE t (a vector(3), h hstore)",
            &["extension pg_cron, vector: the objects that it creates are not known, so they are not compared"],
        ),
        (
            "CREATE TYPE r AS RANGE (subtype = int4)",
            &["aggregates, operators and casts are not read", "type public.r: ranges and base types are not read"],
        ),
        (
            "CREATE TABLE t (a int); CREATE VIEW v AS SELECT * FROM t; ALTER TABLE t ADD b int; \
             CREATE VIEW w AS SELECT a FROM v; CREATE FUNCTION f() RETURNS SETOF w LANGUAGE sql AS ''",
            &[
                "function public.f: it needs the view public.w, which is omitted",
                "view public.v: `*` in a view whose tables have other columns now",
                "view public.w: it needs the view public.v, which is omitted",
            ],
        ),
        (
            "CREATE TABLE t (a xml DEFAULT xmlelement(name x))",
            &["default of column public.t.a: an XML or JSON constructor, or a rare form of expression"],
        ),
    ] {
        let script = script(&schema(sql));
        assert_eq!(script.omitted, omitted, "{sql}");
        for one in omitted {
            assert!(script.text.ends_with('\n') && script.text.contains(&format!("-- omitted: {one}\n")), "{sql}");
        }
    }
    // A type of which not even the name is known.
    let not_known = |what: &str| Known::unknown(what);
    let mut own = schema("CREATE DOMAIN d AS int DEFAULT 1; CREATE FUNCTION f() RETURNS int LANGUAGE sql AS ''");
    own.domains[0].base = not_known("its type");
    own.functions[0].returns = not_known("its result");
    let script = script(&own);
    assert_eq!(script.omitted, ["domain public.d: its type", "function public.f: its result"]);
    assert!(!script.text.contains("DOMAIN") && !script.text.contains("FUNCTION"), "{}", script.text);
}

#[test]
fn an_omission_stays_one_comment() {
    let mut own = schema("CREATE TABLE t (a int)");
    own.gaps.push("a name with\nDROP TABLE t;".to_owned());
    assert!(script(&own).text.ends_with("-- omitted: a name with DROP TABLE t;\n"));
}

#[test]
fn a_function_comes_before_the_view_that_has_its_name_and_calls_it() {
    let sql = "CREATE SCHEMA s; CREATE FUNCTION s.pg_stats() RETURNS SETOF pg_stats LANGUAGE sql AS 'SELECT'; \
               CREATE VIEW s.pg_stats AS SELECT 1 AS a FROM s.pg_stats()";
    let text = script(&schema(sql)).text;
    let place = |what: &str| text.find(what).unwrap_or_else(|| unreachable!("{what} is not in {text}"));
    assert!(place("CREATE FUNCTION s.pg_stats") < place("CREATE VIEW s.pg_stats"), "{text}");
}

#[test]
fn a_constant_key_of_an_index_is_an_expression() {
    let sql = "CREATE TABLE t (a int, \"true\" int); CREATE INDEX i ON t ((true), \"true\", a)";
    assert!(
        written(sql).ends_with("CREATE INDEX i ON public.t USING btree ((true), \"true\", a);\n"),
        "{}",
        written(sql)
    );
}

#[test]
fn expressions_follow_a_type_that_gets_another_name() {
    let sql = "CREATE SCHEMA s; CREATE TYPE e_new AS ENUM ('a'); CREATE TABLE t (x e_new DEFAULT 'a'::e_new, y text \
               CHECK (y::e_new = 'a')); CREATE INDEX i ON t (x) WHERE x = 'a'::public.e_new; \
               ALTER TYPE e_new RENAME TO e; ALTER TYPE e SET SCHEMA s";
    let text = script(&schema(sql)).text;
    assert!(text.contains("DEFAULT 'a'::s.e") && !text.contains("e_new") && !text.contains("public.e"), "{text}");
}

#[test]
fn a_default_keeps_its_label_when_that_is_renamed() {
    let sql = "CREATE TYPE e AS ENUM ('a', 'b'); CREATE TABLE t (x e DEFAULT 'a', y e DEFAULT 'b'::e, z text DEFAULT 'a'); \
               ALTER TYPE e RENAME VALUE 'a' TO 'c'; ALTER TYPE e RENAME VALUE 'b' TO 'd'";
    let text = written(sql);
    for part in ["x public.e DEFAULT 'c'", "y public.e DEFAULT 'd'::", "z text DEFAULT 'a'"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
