use super::{at, convert};
use crate::ast::{AlterTableAction, Ast, ConstraintKind, CreateTable, TableElement};

fn alter(sql: &str) -> (String, crate::ast::AlterTable) {
    match convert(sql) {
        (source, Ast::AlterTable(alter)) => (source, alter),
        (_, other) => panic!("{sql}: {other:?}"),
    }
}

fn create(sql: &str) -> (String, CreateTable) {
    match convert(sql) {
        (source, Ast::CreateTable(create)) => (source, *create),
        (_, other) => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn commands_have_their_words() {
    for (command, keyword) in [
        ("ADD COLUMN IF NOT EXISTS a int DEFAULT 1", "ADD COLUMN"),
        ("ADD a numeric(10, 2)", "ADD"),
        ("DROP COLUMN IF EXISTS \"drop\" CASCADE", "DROP COLUMN"),
        ("ALTER COLUMN a TYPE bigint USING a::bigint", "TYPE bigint"),
        ("ALTER a SET DATA TYPE timestamp (3) with time zone", "SET DATA TYPE timestamp (3) with time zone"),
        ("ALTER a SET NOT NULL", "SET NOT NULL"),
        ("ALTER COLUMN a DROP NOT NULL", "DROP NOT NULL"),
        ("ALTER COLUMN a SET DEFAULT ARRAY[1, 2]", "SET DEFAULT"),
        ("VALIDATE CONSTRAINT c", "VALIDATE CONSTRAINT"),
        ("DROP CONSTRAINT IF EXISTS c", "DROP CONSTRAINT"),
        ("ADD CONSTRAINT c CHECK (a > 0) NOT VALID", "ADD CONSTRAINT"),
        ("SET TABLESPACE fast", "SET TABLESPACE"),
        ("SET (fillfactor = 70)", "SET"),
        ("ENABLE ROW LEVEL SECURITY", "ENABLE ROW LEVEL SECURITY"),
        ("DISABLE TRIGGER ALL", "DISABLE TRIGGER"),
        ("REPLICA IDENTITY USING INDEX i", "REPLICA IDENTITY"),
        ("OWNER TO bob", "OWNER TO"),
    ] {
        let (source, alter) = alter(&format!("ALTER TABLE ONLY s.t {command}, ALTER z DROP DEFAULT"));
        assert_eq!(alter.commands.len(), 2, "{command}");
        assert_eq!(at(&source, alter.commands[0].range), command);
        assert_eq!(at(&source, alter.commands[0].keyword), keyword);
        assert_eq!(at(&source, alter.commands[1].keyword), "DROP DEFAULT");
        assert_eq!(at(&source, alter.name.range()), "s.t");
        assert!(alter.only);
    }
}

#[test]
fn names_in_commands_stand_behind_the_keyword() {
    let (source, alter) =
        alter("ALTER TABLE t DROP COLUMN \"drop\", DROP CONSTRAINT constraint_, ALTER \"A\" SET NOT NULL");
    let names: Vec<&str> = alter
        .commands
        .iter()
        .map(|command| match &command.action {
            AlterTableAction::DropColumn { column: name, .. }
            | AlterTableAction::DropConstraint { name, .. }
            | AlterTableAction::SetNotNull { column: name } => at(&source, name.range),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["\"drop\"", "constraint_", "\"A\""]);
}

#[test]
fn column_attributes_belong_to_the_constraint_before_them() {
    let (source, table) = create(
        "CREATE TABLE t (a int CONSTRAINT f REFERENCES p (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED NOT NULL, \
         b int COLLATE \"C\" DEFAULT 1 CHECK (b > 0) NOT ENFORCED)",
    );
    let TableElement::Column(a) = &table.elements[0] else { panic!() };
    assert_eq!(a.constraints.len(), 2);
    assert!(a.constraints[0].deferrable && a.constraints[0].initially_deferred && !a.constraints[0].not_enforced);
    assert_eq!(
        at(&source, a.constraints[0].range),
        "CONSTRAINT f REFERENCES p (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED"
    );
    assert_eq!(at(&source, a.constraints[0].keyword), "REFERENCES");
    assert_eq!(at(&source, a.constraints[1].range), "NOT NULL");
    let TableElement::Column(b) = &table.elements[1] else { panic!() };
    assert_eq!(at(&source, b.constraints[0].range), "DEFAULT 1");
    assert_eq!(at(&source, b.constraints[1].range), "CHECK (b > 0) NOT ENFORCED");
    assert!(b.constraints[1].not_enforced);
}

#[test]
fn foreign_keys_have_both_sides() {
    let (source, alter) = alter(
        "ALTER TABLE a ADD CONSTRAINT k FOREIGN KEY (x, y) REFERENCES s.b (x, y) ON DELETE SET NULL (y) NOT VALID",
    );
    let AlterTableAction::AddConstraint(constraint) = &alter.commands[0].action else { panic!() };
    let ConstraintKind::ForeignKey(key) = &constraint.kind else { panic!() };
    assert!(constraint.not_valid && !constraint.not_enforced);
    assert_eq!(at(&source, constraint.keyword), "FOREIGN KEY");
    assert_eq!(at(&source, constraint.name.as_ref().unwrap().range), "k");
    assert_eq!(key.columns.len(), 2);
    assert!(key.referenced_columns[0].range.start > key.table.range().end);
    assert_eq!(key.set_columns[0].as_str(), "y");
}

#[test]
fn generated_columns_say_whether_a_kind_was_written() {
    for (clause, stored, explicit) in [("", false, false), ("STORED", true, true), ("VIRTUAL", false, true)] {
        let (_, table) = create(&format!("CREATE TABLE t (a int GENERATED ALWAYS AS (1 + 1) {clause})"));
        let TableElement::Column(column) = &table.elements[0] else { panic!() };
        let ConstraintKind::Generated { stored: s, explicit_kind, .. } = &column.constraints[0].kind else { panic!() };
        assert_eq!((*s, *explicit_kind), (stored, explicit));
    }
}

#[test]
fn types_keep_their_written_range() {
    for (written, name) in [
        ("bigserial", "bigserial"),
        ("double precision", "float8"),
        ("character varying(20)[]", "varchar"),
        ("interval day to second(3)", "interval"),
        ("pg_catalog.int4", "int4"),
        ("numeric(3, -2)", "numeric"),
    ] {
        let (source, table) = create(&format!("CREATE TABLE t (a {written} NOT NULL)"));
        let TableElement::Column(column) = &table.elements[0] else { panic!() };
        let type_name = column.type_name.as_ref().unwrap();
        assert_eq!((at(&source, type_name.range), type_name.name.as_str(), &type_name.schema), (written, name, &None));
    }
}

#[test]
fn index_has_its_keywords_and_names() {
    let (source, Ast::CreateIndex(index)) = convert(
        "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON ONLY s.t USING gin (lower(a) COLLATE \"C\" x_ops DESC \
         NULLS LAST, b) INCLUDE (c) WITH (fillfactor = 70) WHERE b > 0",
    ) else {
        panic!()
    };
    assert_eq!(at(&source, index.keyword), "CREATE UNIQUE INDEX");
    assert_eq!(at(&source, index.index_keyword), "INDEX");
    assert_eq!(at(&source, index.name.as_ref().unwrap().range), "i");
    assert_eq!(at(&source, index.elements[0].key.range), "lower(a)");
    assert_eq!(at(&source, index.elements[1].key.range), "b");
    assert_eq!(at(&source, index.including[0].range), "c");
    assert_eq!(at(&source, index.predicate.as_ref().unwrap().range), "b > 0");
    assert!(index.elements[0].descending && index.elements[0].nulls_first == Some(false));
}
