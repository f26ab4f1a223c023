use super::{at, convert};
use crate::ast::{Ast, FunctionBody, ObjectKind, Setting};

#[test]
fn bodies_have_text_and_range() {
    for (sql, expected) in [
        ("CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql STABLE AS $x$ BEGIN END $x$", " BEGIN END "),
        ("CREATE FUNCTION f() RETURNS int AS 'SELECT ''1''' LANGUAGE sql", "SELECT ''1''"),
    ] {
        let (source, Ast::CreateFunction(function)) = convert(sql) else { panic!() };
        let FunctionBody::Source { text, range } = &function.body else { panic!() };
        assert_eq!(at(&source, *range), expected);
        assert_eq!(text.as_str(), expected.replace("''", "'"));
    }
    let (source, Ast::Do(block)) = convert("DO $$ BEGIN END $$ LANGUAGE plpgsql") else { panic!() };
    let FunctionBody::Source { range, .. } = block.body else { panic!() };
    assert_eq!(at(&source, range), " BEGIN END ");
}

#[test]
fn atomic_bodies_are_converted() {
    let sql = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; INSERT INTO t VALUES (1); END";
    let (source, Ast::CreateFunction(function)) = convert(sql) else { panic!() };
    let FunctionBody::Atomic { statements, text, range } = function.body else { panic!() };
    assert_eq!((text.as_str(), at(&source, range)), ("SELECT 1; INSERT INTO t VALUES (1);", text.as_str()));
    let Ast::Insert(insert) = &statements[1] else { panic!() };
    assert_eq!(at(&source, insert.range), "INSERT INTO t VALUES (1)");
    assert!(matches!(statements[0], Ast::Select(_)));
}

#[test]
fn dropped_objects_have_ranges() {
    for (sql, kind, keyword, name, on) in [
        ("DROP TABLE IF EXISTS a, s.b CASCADE", ObjectKind::Table, "DROP TABLE", "s.b", None),
        ("DROP INDEX CONCURRENTLY s.i", ObjectKind::Index, "DROP INDEX CONCURRENTLY", "s.i", None),
        ("DROP TRIGGER g ON s.t", ObjectKind::Trigger, "DROP TRIGGER", "g", Some("s.t")),
        ("DROP FUNCTION s.f(int, text)", ObjectKind::Function, "DROP FUNCTION", "s.f", None),
        ("DROP TYPE s.y", ObjectKind::Type, "DROP TYPE", "s.y", None),
        ("DROP SCHEMA a", ObjectKind::Schema, "DROP SCHEMA", "a", None),
        ("DROP MATERIALIZED VIEW v", ObjectKind::MaterializedView, "DROP MATERIALIZED VIEW", "v", None),
    ] {
        let (source, Ast::Drop(drop)) = convert(sql) else { panic!("{sql}") };
        let object = drop.objects.last().unwrap();
        assert_eq!((drop.kind, at(&source, drop.keyword), at(&source, object.name.range())), (kind, keyword, name));
        assert_eq!(object.on.as_ref().map(|on| at(&source, on.range())), on);
    }
}

#[test]
fn renames_have_old_and_new_names() {
    for (sql, kind, object, sub_name) in [
        ("ALTER TABLE s.t RENAME TO n", ObjectKind::Table, "s.t", None),
        ("ALTER TABLE t RENAME COLUMN c TO n", ObjectKind::Column, "t", Some("c")),
        ("ALTER TABLE t RENAME c TO n", ObjectKind::Column, "t", Some("c")),
        ("ALTER TABLE t RENAME CONSTRAINT k TO n", ObjectKind::Constraint, "t", Some("k")),
        ("ALTER TRIGGER g ON t RENAME TO n", ObjectKind::Trigger, "t", Some("g")),
        ("ALTER SCHEMA s RENAME TO n", ObjectKind::Schema, "s", None),
        ("ALTER FUNCTION s.f(int) RENAME TO n", ObjectKind::Function, "s.f", None),
        ("ALTER TYPE s.y RENAME TO n", ObjectKind::Type, "s.y", None),
        ("ALTER DOMAIN d RENAME CONSTRAINT k TO n", ObjectKind::DomainConstraint, "d", Some("k")),
        ("ALTER INDEX i RENAME TO n", ObjectKind::Index, "i", None),
    ] {
        let (source, Ast::Rename(rename)) = convert(sql) else { panic!("{sql}") };
        assert_eq!((rename.kind, at(&source, rename.object.range())), (kind, object), "{sql}");
        assert_eq!(rename.sub_name.as_ref().map(|name| at(&source, name.range)), sub_name, "{sql}");
        assert_eq!(at(&source, rename.new_name.range), "n", "{sql}");
    }
}

#[test]
fn settings_are_distinguished() {
    let setting = |sql: &str| match convert(sql).1 {
        Ast::Set(set) => set.setting,
        other => panic!("{other:?}"),
    };
    let name = |setting: &Setting| match setting {
        Setting::Value { name, .. } | Setting::Default { name } => name.to_string(),
        _ => String::new(),
    };
    assert_eq!(name(&setting("SET LOCAL lock_timeout = '2s'")), "lock_timeout");
    assert_eq!(name(&setting("SET TIME ZONE 'UTC'")), "timezone");
    assert_eq!(name(&setting("SET SCHEMA 'x'")), "search_path");
    assert!(matches!(setting("SET lock_timeout TO DEFAULT"), Setting::Default { .. }));
    assert!(matches!(setting("RESET lock_timeout"), Setting::Default { .. }));
    assert_eq!(setting("RESET ALL"), Setting::ResetAll);
    assert_eq!(setting("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"), Setting::Transaction);
}

#[test]
fn trigger_has_its_parts() {
    let sql = "CREATE CONSTRAINT TRIGGER g AFTER INSERT OR UPDATE OF a, b ON s.t FROM p DEFERRABLE FOR EACH ROW WHEN \
               (NEW.a > 0) EXECUTE FUNCTION s.f('x')";
    let (source, Ast::CreateTrigger(trigger)) = convert(sql) else { panic!() };
    assert_eq!(at(&source, trigger.function.range()), "s.f");
    assert_eq!(at(&source, trigger.columns[1].range), "b");
    assert_eq!(at(&source, trigger.condition.unwrap().range), "NEW.a > 0");
    assert!(trigger.events.insert && trigger.events.update && !trigger.events.delete && trigger.for_each_row);
}
