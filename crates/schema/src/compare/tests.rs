use super::{Action, Comparison, compare};
use crate::object::{Name, Schema};
use crate::testing::{database, schema};

/// A line for each change, then one for each property that is not compared.
fn said(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for change in &comparison.changes {
        let mark = match change.action {
            Action::Removed => '-',
            Action::Added => '+',
            Action::Changed => '~',
        };
        let properties = change.properties.iter();
        let properties: Vec<String> =
            properties.map(|one| format!(" {}: {} -> {}", one.name, one.before(), one.after())).collect();
        lines.push(format!("{mark} {} {}{}", change.kind.noun(), change.name(), properties.join(",")));
    }
    let skipped = comparison.not_compared.iter();
    lines.extend(skipped.map(|one| format!("? {} {} {}: {}", one.kind.noun(), one.object, one.property, one.why)));
    lines
}

#[test]
fn each_difference_is_reported_once() {
    for (before, after, expected) in [
        ("CREATE TABLE t (a int, b text)", "CREATE TABLE t (a int, b text)", [].as_slice()),
        ("CREATE TABLE t (a int)", "CREATE TABLE t (a bigint)", &["~ column public.t.a type: integer -> bigint"]),
        ("CREATE TABLE t (a int)", "CREATE TABLE t (a int NOT NULL)", &["~ column public.t.a NOT NULL: no -> yes"]),
        ("CREATE TABLE t (a int)", "CREATE TABLE t (a int DEFAULT 1)", &["~ column public.t.a default: nothing -> 1"]),
        // The parts of a relation are not listed with it.
        ("CREATE TABLE t (a int PRIMARY KEY)", "", &["- table public.t"]),
        ("CREATE TABLE t (a int)", "CREATE TABLE t (a int, b int)", &["+ column public.t.b"]),
        // Columns that are added or removed do not change the order of the others.
        ("CREATE TABLE t (a int, b int)", "CREATE TABLE t (b int)", &["- column public.t.a"]),
        (
            "CREATE TABLE t (a int, b int)",
            "CREATE TABLE t (b int, a int)",
            &["~ table public.t column order: a, b -> b, a"],
        ),
        (
            "CREATE TABLE t (a int); CREATE INDEX i ON t (a)",
            "CREATE TABLE t (a int); CREATE UNIQUE INDEX i ON t (a) WHERE a > 0",
            &["~ index public.t.i condition: nothing -> a > 0, unique: no -> yes"],
        ),
        // One name, another kind.
        (
            "CREATE TABLE t (a int)",
            "CREATE VIEW t AS SELECT 1 AS a",
            &[
                "~ view public.t kind: table -> view, query: nothing -> SELECT 1 AS a, columns: nothing -> a integer",
                "- column public.t.a",
            ],
        ),
        (
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 2'",
            &["~ function public.f() SECURITY DEFINER: no -> yes, body: SELECT 1 -> SELECT 2"],
        ),
        // Another signature is another function.
        (
            "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE FUNCTION f(text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
            &["- function public.f(integer)", "+ function public.f(text)"],
        ),
        (
            "CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE c (a int CONSTRAINT k REFERENCES p)",
            "CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE c (a int CONSTRAINT k REFERENCES p ON DELETE CASCADE)",
            &["~ constraint public.c.k ON DELETE: NO ACTION -> CASCADE"],
        ),
        (
            "CREATE TABLE t (a int); CREATE POLICY p ON t USING (a > 1)",
            "CREATE TABLE t (a int); CREATE POLICY p ON t USING (a > 2)",
            &["~ policy public.t.p USING: a > 1 -> a > 2"],
        ),
        (
            "CREATE TABLE p (a int, b daterange, PRIMARY KEY (a, b WITHOUT OVERLAPS));",
            "CREATE TABLE p (a int, b daterange, PRIMARY KEY (a, b));",
            &["~ constraint public.p.p_pkey WITHOUT OVERLAPS: yes -> no"],
        ),
        ("CREATE TYPE e AS ENUM ('a')", "CREATE TYPE e AS ENUM ('a', 'b')", &["~ enum public.e labels: a -> a, b"]),
        (
            "CREATE SEQUENCE s",
            "CREATE SCHEMA app; CREATE SEQUENCE app.s",
            &["+ schema app", "+ sequence app.s", "- sequence public.s"],
        ),
    ] {
        assert_eq!(said(&compare(&schema(before), &schema(after))), expected, "{before} / {after}");
    }
}

#[test]
fn triggers_differ_in_the_schema_of_their_function_and_in_deferral() {
    let base = "CREATE SCHEMA app; CREATE TABLE t (a int);
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE FUNCTION app.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';";
    let trigger = |function: &str, deferral: &str| {
        let own = format!(
            "CREATE CONSTRAINT TRIGGER g AFTER INSERT ON t {deferral} FOR EACH ROW EXECUTE FUNCTION {function}()"
        );
        schema(&format!("{base} {own}"))
    };
    let plain = trigger("f", "");
    assert_eq!(said(&compare(&plain, &trigger("public.f", ""))), [""; 0]);
    assert_eq!(said(&compare(&plain, &trigger("app.f", ""))), ["~ trigger public.t.g function: public.f -> app.f"]);
    assert_eq!(
        said(&compare(&plain, &trigger("f", "DEFERRABLE INITIALLY DEFERRED"))),
        ["~ trigger public.t.g deferrable: no -> yes, initially deferred: no -> yes"]
    );
}

#[test]
fn what_is_not_known_is_listed() {
    let gap = "? schema  : statements use objects that no statement creates";
    let partly = "ALTER TABLE t ADD COLUMN b int;";
    // A table that migrations only alter may have been there before as well.
    let none = "";
    assert_eq!(
        said(&compare(&schema(none), &schema(partly))),
        [gap, "? table public.t presence: no statement that was read creates it"]
    );
    // A database that does not have it lacks it.
    assert_eq!(said(&compare(&schema(partly), &database(none))), ["- table public.t", gap]);
    // More of it on one side says nothing about the other side.
    let more = "ALTER TABLE t ADD COLUMN b int; ALTER TABLE t ADD COLUMN c int;";
    let parts = "? table public.t columns and other parts: no statement that was read creates it";
    assert_eq!(said(&compare(&schema(partly), &schema(more))), [gap, parts]);
    assert_eq!(said(&compare(&schema(partly), &database("CREATE TABLE t (a int, b int)"))), [gap, parts]);
    // Two spellings by two origins.
    let (one, other) =
        ("CREATE TABLE t (a interval DEFAULT '1 hour')", "CREATE TABLE t (a interval DEFAULT '01:00:00'::interval)");
    assert_eq!(
        said(&compare(&schema(one), &database(other))),
        ["? column public.t.a default: `'1 hour'` and `'01:00:00'::interval` may mean the same"]
    );
    // What is not kept.
    let excluding = "CREATE TABLE t (a int, CONSTRAINT x EXCLUDE USING btree (a WITH =))";
    assert_eq!(
        said(&compare(&schema(excluding), &schema(excluding))),
        ["? constraint public.t.x condition: not known: the operators of an exclusion constraint"]
    );
}

#[test]
fn publications_are_counted_as_omitted_if_only_some_namespaces_are_compared() {
    let narrowed = |sql: &str| crate::narrow::in_schemas(schema(sql), &["public".to_owned()]);
    let all = "CREATE SCHEMA app; CREATE TABLE app.t (a int); CREATE TABLE t (a int); CREATE PUBLICATION p FOR TABLE t";
    assert_eq!(
        said(&compare(&narrowed(all), &narrowed("CREATE TABLE t (a int)"))),
        [
            "? schema  : column lists and row filters of publications are not read",
            "? schema  : publications are omitted, because they are in no schema",
        ]
    );
}

#[test]
fn columns_of_a_view_are_compared_as_far_as_their_types_are_known() {
    let unknown = "CREATE VIEW v AS SELECT f() AS a, 1 AS b";
    let known =
        |columns: &str| said(&compare(&schema(unknown), &schema(&format!("CREATE VIEW v AS SELECT {columns}"))));
    let types = |lines: &[String]| lines.iter().filter(|line| line.contains("columns: ")).count();
    let same = known("2 AS a, 1 AS b");
    assert!(same.iter().any(|line| line.starts_with("? view public.v columns: not known")), "{same:?}");
    for other in ["2 AS c, 1 AS b", "2 AS a", "2 AS a, 'x' AS b"] {
        let lines = known(other);
        assert!(types(&lines) == 1 && !lines.iter().any(|line| line.starts_with('?')), "{other}: {lines:?}");
    }
}

#[test]
fn an_expression_may_name_its_table_as_it_was_called() {
    let renamed = |policy: &str, sql: &str| {
        let before = format!("CREATE TABLE s (a int); CREATE TABLE t (a int CHECK (t.a > 0)); {policy}");
        said(&compare(&schema(&format!("{before}; ALTER TABLE t RENAME TO u")), &schema(sql)))
    };
    let own = "CREATE TABLE s (a int); CREATE TABLE u (a int CONSTRAINT t_a_check CHECK (a > 0)); \
               CREATE POLICY p ON u USING";
    assert_eq!(renamed("CREATE POLICY p ON t USING (t.a = 1)", &format!("{own} (a = 1)")), [""; 0]);
    let query = "EXISTS (SELECT 1 FROM s WHERE s.a = t.a)";
    let lines = renamed(&format!("CREATE POLICY p ON t USING ({query})"), &format!("{own} (EXISTS (SELECT 1 FROM s))"));
    let why = "an expression that names a renamed or dropped relation";
    assert_eq!(lines, [format!("? policy public.u.p USING: not known: {why}")]);
}

#[test]
fn an_option_that_is_not_stored_is_no_difference() {
    let with = "CREATE TABLE t (a int) WITH (oids = false, fillfactor = 70)";
    assert_eq!(said(&compare(&schema(with), &schema("CREATE TABLE t (a int) WITH (fillfactor = 70)"))), [""; 0]);
}

/// The schema of a database in which these relations belong to extensions.
fn with_extension_relations(sql: &str, relations: &[(&str, &str)]) -> Schema {
    let name = |(schema, name): &(&str, &str)| Name { schema: (*schema).to_owned(), name: (*name).to_owned() };
    let mut schema = database(sql);
    schema.gaps.clear();
    schema.extension_relations = relations.iter().map(name).collect();
    schema
}

const EXTENSIONS: &str =
    "CREATE SCHEMA cron; CREATE EXTENSION pg_cron; CREATE EXTENSION postgis; CREATE EXTENSION vector;";
const EXTENSIONS_NOT_KNOWN: &str = "? schema  : extension pg_cron, postgis, vector: the objects that it creates are not known, so they are not compared";

#[test]
fn relations_of_extensions_are_not_missing() {
    let own = "CREATE TABLE t (a int PRIMARY KEY, e vector(3));";
    let uses = format!(
        "{EXTENSIONS}{own} ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES spatial_ref_sys (srid);
         UPDATE cron.job SET command = '';"
    );
    let has = format!("{EXTENSIONS}{own} ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES spatial_ref_sys (srid);");
    let mut has =
        with_extension_relations(&has, &[("cron", "job"), ("cron", "jobid_seq"), ("public", "spatial_ref_sys")]);
    has.relations.retain(|relation| relation.created_by_migrations);
    let compared = said(&compare(&schema(&uses), &has));
    assert_eq!(
        compared,
        [
            EXTENSIONS_NOT_KNOWN,
            "? table cron.job definition: it belongs to an extension",
            "? table public.spatial_ref_sys definition: it belongs to an extension",
        ]
    );
    // A database without the extension lacks them.
    let lacks = with_extension_relations("", &[]);
    let compared = said(&compare(&schema("ALTER TABLE spatial_ref_sys ADD COLUMN note text"), &lacks));
    assert!(compared.contains(&"- table public.spatial_ref_sys".to_owned()), "{compared:?}");
    // Which relations the extensions of PostgreSQL have is known.
    let view = "CREATE EXTENSION pg_stat_statements; CREATE VIEW v AS SELECT 1 AS a; ";
    let compared =
        said(&compare(&schema(&format!("{view} ALTER VIEW pg_stat_statements OWNER TO reader;")), &database(view)));
    let own: Vec<&String> = compared.iter().filter(|line| line.contains("pg_stat_statements")).collect();
    assert_eq!(own, ["? view public.pg_stat_statements definition: it belongs to an extension"]);
}

#[test]
fn an_extension_that_no_statement_places_may_be_anywhere() {
    let placed = |schema: &str| format!("CREATE SCHEMA other; CREATE EXTENSION vector WITH SCHEMA {schema}");
    let why = "? extension vector schema: not known: no statement names it, and the extension may choose it";
    let free = schema("CREATE SCHEMA other; CREATE EXTENSION vector");
    let changes = |one: &Schema, other: &Schema| {
        let lines = said(&compare(one, other));
        lines.into_iter().filter(|line| !line.contains("the objects that it creates")).collect::<Vec<String>>()
    };
    assert_eq!(changes(&free, &schema(&placed("public"))), [] as [&str; 0]);
    assert_eq!(changes(&free, &schema(&placed("other"))), [why]);
    assert_eq!(
        changes(&schema(&placed("public")), &schema(&placed("other"))),
        ["~ extension vector schema: public -> other"]
    );
    // PostgreSQL's own extensions leave the choice to the statement.
    let compared = said(&compare(
        &schema("CREATE SCHEMA other; CREATE EXTENSION hstore"),
        &schema("CREATE SCHEMA other; CREATE EXTENSION hstore SCHEMA other"),
    ));
    assert_eq!(compared, ["~ extension hstore schema: public -> other"]);
}

#[test]
fn a_type_of_an_extension_is_found_in_its_schema() {
    let table = |path: &str, named: &str| {
        format!(
            "CREATE SCHEMA app; CREATE SCHEMA extensions; CREATE EXTENSION vector WITH SCHEMA extensions; {path}
             CREATE TABLE app.t (a {named}(3))"
        )
    };
    let qualified = schema(&table("", "extensions.vector"));
    for path in ["", "SET search_path = app, extensions;"] {
        let compared = compare(&schema(&table(path, "vector")), &qualified);
        assert_eq!(compared.changes, [], "{path}");
    }
    // A path without the schema of the extension does not find its type.
    let compared = compare(&schema(&table("SET search_path = app;", "vector")), &qualified);
    assert_eq!(compared.changes.len(), 1);
}
