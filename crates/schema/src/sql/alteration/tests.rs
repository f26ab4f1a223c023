use super::{alteration, difference};
use crate::compare;
use crate::object::Schema;
use crate::testing::{database, relation, schema};

const BEFORE: &str = "CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE users (id int PRIMARY KEY, email varchar(80) NOT NULL, mood mood DEFAULT 'ok', gone int);
CREATE INDEX users_email ON users (email);
CREATE VIEW active AS SELECT id, email FROM users;
CREATE TABLE orders (id int PRIMARY KEY, user_id int REFERENCES users);
CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE SCHEMA old; CREATE TABLE old.t (id int);
GRANT SELECT ON users TO reader;
";

const AFTER: &str = "CREATE TYPE mood AS ENUM ('bad', 'sad', 'ok', 'fine');
CREATE TABLE users (id int PRIMARY KEY, email text, mood mood DEFAULT 'sad', made timestamptz NOT NULL DEFAULT now());
CREATE UNIQUE INDEX users_email ON users (email) WHERE email <> '';
ALTER TABLE users ADD CONSTRAINT short CHECK (id > 0) NOT VALID, ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON users USING (id = 1);
CREATE VIEW active AS SELECT id FROM users;
CREATE TABLE orders (id int PRIMARY KEY, user_id int);
CREATE SCHEMA app; CREATE TABLE app.leftover (id int REFERENCES users);
CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 2';
CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION g();
GRANT UPDATE ON users TO writer;
";

/// What is left of the difference after three rounds.
fn left(before: &str, after: &Schema) -> Vec<String> {
    let mut sql = before.to_owned();
    for _ in 0..3 {
        sql += &alteration(&schema(&sql), after);
    }
    let changes = compare(&schema(&sql), after).changes;
    changes.iter().map(|change| format!("{:?} {} {:?}", change.kind, change.name(), change.properties)).collect()
}

#[test]
fn a_schema_becomes_another_one() {
    let nothing: [String; 0] = [];
    assert_eq!(left(BEFORE, &database(AFTER)), nothing);
    assert_eq!(left(AFTER, &database(BEFORE)).len(), 1, "a label of an enum cannot be removed");
    assert_eq!(alteration(&schema(AFTER), &database(AFTER)), "");
}

#[test]
fn an_invalid_index_becomes_one() {
    let mut after = database(BEFORE);
    relation(&mut after, "users").indexes[0].valid = false;
    let nothing: [String; 0] = [];
    assert_eq!(left(BEFORE, &after), nothing);
}

#[test]
fn what_no_migration_creates_is_known_afterwards() {
    let before = "ALTER TABLE users ADD COLUMN name text;";
    let after = database("CREATE TABLE users (id int, name text); CREATE INDEX by_name ON users (name)");
    let nothing: [String; 0] = [];
    assert_eq!(left(before, &after), nothing);
    let sql = format!("{before}\n{}", alteration(&schema(before), &after));
    assert!(schema(&sql).relations[0].created_by_migrations, "{sql}");
}

#[test]
fn values_get_their_new_type_by_the_casts_of_postgresql() {
    let types = "CREATE TYPE mood AS ENUM ('1'); CREATE TYPE other AS ENUM ('1'); CREATE DOMAIN short AS varchar(9);";
    let table = |sql_type: &str| format!("{types} CREATE TABLE t (a {sql_type})");
    for (from, to, expected) in [
        ("int", "bigint", "TYPE bigint;"),
        ("varchar(80)", "varchar(20)", "TYPE character varying(20);"),
        ("int", "text", "TYPE text;"),
        ("int[]", "text[]", "TYPE text[];"),
        ("mood", "text", "TYPE text;"),
        ("short", "text", "TYPE text;"),
        ("text", "int", "TYPE integer USING a::integer;"),
        ("text", "mood", "TYPE public.mood USING a::public.mood;"),
        ("text[]", "mood[]", "TYPE public.mood[] USING a::public.mood[];"),
        ("json", "jsonb", "TYPE jsonb;"),
        ("mood", "other", "TYPE public.other USING a::text::public.other;"),
        ("boolean", "date", "TYPE date USING a::text::date;"),
    ] {
        let sql = difference(&schema(&table(from)), &schema(&table(to)));
        assert!(sql.contains(&format!("ALTER COLUMN a {expected}")), "{from} -> {to}: {sql}");
    }
}

#[test]
fn a_default_is_replaced_if_its_type_is_not_cast() {
    let sql = |column: &str| schema(&format!("CREATE TABLE t (a {column})"));
    let written = difference(&sql("text DEFAULT '1'::text"), &sql("int DEFAULT 1"));
    let lines = ["DROP DEFAULT;", "TYPE integer USING a::integer;", "SET DEFAULT 1;"];
    let expected = lines.map(|end| format!("ALTER TABLE public.t ALTER COLUMN a {end}\n")).concat();
    assert!(written.ends_with(&expected), "{written}");
}

#[test]
fn what_is_not_written_is_a_comment() {
    let before =
        schema("CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a + 1) STORED); INSERT INTO seen VALUES (1)");
    let after = schema("CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a + 2) STORED)");
    let written = difference(&before, &after);
    assert!(!written.contains("DROP TABLE"), "{written}");
    assert!(written.contains("-- omitted: column public.t.b: no statement for its "), "{written}");
    assert!(written.contains("-- not compared: "), "{written}");
}
