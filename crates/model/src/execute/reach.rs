//! Notes what a statement reaches beyond its database.

use super::Executor;
use crate::effect::{Reach, UnknownReason};
use pgvet_syntax::ast::{
    Ast, Copy, CopyBeyond, CreateOther, DefValue, Expr, ExprKind, FunctionCall, IndirectionStep, ObjectKind,
    ObjectName, Part, ReindexTarget,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// Languages whose code can do no more than the role that runs it.
const TRUSTED: [&str; 4] = ["sql", "plpgsql", "plperl", "pltcl"];

/// Extensions of PostgreSQL that bring other languages.
const UNTRUSTED: [&str; 4] = ["plpython3u", "plpythonu", "plperlu", "pltclu"];

/// Functions that reach further than SQL does. They are refused to most roles.
///
/// Source: PostgreSQL 18 documentation, 9.28; `contrib/adminpack`, `contrib/dblink`, `contrib/pg_stat_statements`.
const FUNCTIONS: &[(&str, Reach)] = &[
    ("dblink", Reach::Connection),
    ("dblink_connect", Reach::Connection),
    ("dblink_connect_u", Reach::Connection),
    ("dblink_exec", Reach::Connection),
    ("dblink_open", Reach::Connection),
    ("dblink_send_query", Reach::Connection),
    ("lo_export", Reach::Files),
    ("lo_import", Reach::Files),
    ("pg_backup_start", Reach::Replication),
    ("pg_backup_stop", Reach::Replication),
    ("pg_cancel_backend", Reach::Sessions),
    ("pg_copy_logical_replication_slot", Reach::Replication),
    ("pg_copy_physical_replication_slot", Reach::Replication),
    ("pg_create_logical_replication_slot", Reach::Replication),
    ("pg_create_physical_replication_slot", Reach::Replication),
    ("pg_drop_replication_slot", Reach::Replication),
    ("pg_file_rename", Reach::Files),
    ("pg_file_unlink", Reach::Files),
    ("pg_file_write", Reach::Files),
    ("pg_logical_slot_get_binary_changes", Reach::Replication),
    ("pg_logical_slot_get_changes", Reach::Replication),
    ("pg_ls_dir", Reach::Files),
    ("pg_promote", Reach::Replication),
    ("pg_read_binary_file", Reach::Files),
    ("pg_read_file", Reach::Files),
    ("pg_reload_conf", Reach::Settings),
    ("pg_replication_origin_advance", Reach::Replication),
    ("pg_replication_origin_create", Reach::Replication),
    ("pg_replication_origin_drop", Reach::Replication),
    ("pg_replication_slot_advance", Reach::Replication),
    ("pg_rotate_logfile", Reach::Settings),
    ("pg_start_backup", Reach::Replication),
    ("pg_stat_reset_shared", Reach::Statistics),
    ("pg_stat_reset_slru", Reach::Statistics),
    ("pg_stat_statements_reset", Reach::Statistics),
    ("pg_stop_backup", Reach::Replication),
    ("pg_switch_wal", Reach::Replication),
    ("pg_terminate_backend", Reach::Sessions),
    ("pg_wal_replay_pause", Reach::Replication),
    ("pg_wal_replay_resume", Reach::Replication),
];

/// Catalogs that all databases of a server share. A superuser may change their rows, and a lock on one holds for all
/// databases.
///
/// Source: PostgreSQL 18, `src/backend/catalog/catalog.c`, `IsSharedRelation`.
const SHARED_CATALOGS: &[(&str, Reach)] = &[
    ("pg_auth_members", Reach::Role),
    ("pg_authid", Reach::Role),
    ("pg_database", Reach::Database),
    ("pg_db_role_setting", Reach::Settings),
    ("pg_parameter_acl", Reach::Settings),
    ("pg_replication_origin", Reach::Replication),
    ("pg_shdepend", Reach::Database),
    ("pg_shdescription", Reach::Database),
    ("pg_shseclabel", Reach::Database),
    ("pg_subscription", Reach::Replication),
    ("pg_tablespace", Reach::Tablespace),
];

impl Executor<'_> {
    /// Notes what the words of a statement show, and what it stores to run later. What other code does is noted where
    /// that runs.
    pub(super) fn note_reach(&mut self, ast: &Ast) {
        if let Ast::Copy(copy) = ast
            && let Copy { beyond: Some(CopyBeyond::Program), .. } = &**copy
        {
            self.skip_code(UnknownReason::Program, TextRange::default(), true);
        }
        match ast {
            Ast::CreateOther(other) => {
                if let CreateOther { tag: "IMPORT FOREIGN SCHEMA", name: Some(name), .. } = &**other {
                    let schema = name.name.text.clone();
                    self.skip_code(UnknownReason::ForeignSchema { schema }, TextRange::default(), true);
                }
            }
            Ast::Other(node) if node == "LoadStmt" => {
                self.skip_code(UnknownReason::Library, TextRange::default(), true);
            }
            _ => {}
        }
        if let Some(reach) = reach(ast) {
            self.effects.note_reach(reach);
        }
        for name in whole_relations(ast) {
            if self.is_system_relation(name) {
                self.note_reach_of_catalog(name);
            }
        }
        let mut stored = Vec::new();
        ast.visit_stored(&mut |part| stored.extend(call_in(part)));
        for call in stored {
            if self.called_functions(call).is_empty() {
                self.note_reach_of_call(call);
            }
        }
    }

    /// Notes what a change of the rows of a system catalog reaches.
    pub(super) fn note_reach_of_catalog(&mut self, name: &ObjectName) {
        if let Some(reach) = of_catalog(name) {
            self.effects.note_reach(reach);
        }
    }

    /// Notes what `x.f` reaches, which calls `f(x)` if `x` has no column of that name.
    ///
    /// Source: PostgreSQL 18 documentation, 4.2.6 "Function Calls".
    pub(super) fn note_reach_of_field(&mut self, expr: &Expr) {
        if let Some(reach) = field_in(expr).and_then(reach_of_function) {
            self.effects.note_reach(reach.clone());
        }
    }

    /// Notes what a call of a function of PostgreSQL or of an extension reaches.
    pub(super) fn note_reach_of_call(&mut self, call: &FunctionCall) {
        if let Some(reach) = reach_of_function(&call.name) {
            self.effects.note_reach(reach.clone());
        }
    }
}

/// What a statement would reach by itself, with all that it calls by name.
pub(crate) fn of_statement(ast: &Ast) -> Vec<Reach> {
    let mut found: Vec<Reach> = reach(ast).into_iter().collect();
    found.extend(whole_relations(ast).into_iter().filter_map(of_catalog));
    let mut visit = |part: Part<'_>| {
        found.extend(call_in(part).and_then(|call| reach_of_function(&call.name).cloned()));
        if let Part::Expr(expr) = part {
            found.extend(field_in(expr).and_then(reach_of_function).cloned());
        }
        found.extend(changed_in(part).and_then(of_catalog));
    };
    ast.visit(&mut visit);
    ast.visit_stored(&mut visit);
    found
}

fn call_in(part: Part<'_>) -> Option<&FunctionCall> {
    match part {
        Part::Expr(Expr { kind: ExprKind::Call(call), .. }) => Some(call),
        _ => None,
    }
}

/// The last name of `x.f`.
fn field_in(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Column(path) if path.len() > 1 => path.last().map(SmolStr::as_str),
        ExprKind::Indirection { steps, .. } => steps.iter().rev().find_map(|step| match step {
            IndirectionStep::Field(name) => Some(name.as_str()),
            _ => None,
        }),
        _ => None,
    }
}

/// The relations that a statement empties, rewrites or locks as a whole.
fn whole_relations(ast: &Ast) -> Vec<&ObjectName> {
    match ast {
        Ast::Truncate(truncate) => truncate.tables.iter().map(|(name, _)| name).collect(),
        Ast::LockTable(lock) => lock.tables.iter().map(|(name, _)| name).collect(),
        Ast::Vacuum(vacuum) if vacuum.full => vacuum.tables.iter().collect(),
        Ast::AlterTable(alter) => vec![&alter.name],
        Ast::Reindex(reindex) => match &reindex.target {
            ReindexTarget::Table(name) => vec![name],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn changed_in(part: Part<'_>) -> Option<&ObjectName> {
    match part {
        Part::Insert(insert) => Some(&insert.table.name),
        Part::Update(update) => Some(&update.table.name),
        Part::Delete(delete) => Some(&delete.table.name),
        Part::Merge(merge) => Some(&merge.table.name),
        _ => None,
    }
}

/// What a call of a function of PostgreSQL or of an extension reaches.
pub fn reach_of_function(name: &str) -> Option<&'static Reach> {
    FUNCTIONS.iter().find(|(known, _)| name == *known).map(|(_, reach)| reach)
}

fn of_catalog(name: &ObjectName) -> Option<Reach> {
    if name.schema.as_ref().is_some_and(|schema| schema.text != "pg_catalog") {
        return None;
    }
    SHARED_CATALOGS.iter().find(|(catalog, _)| name.name.text == *catalog).map(|(_, reach)| reach.clone())
}

fn reach(ast: &Ast) -> Option<Reach> {
    match ast {
        Ast::Other(node) => of_node(node),
        Ast::CreateOther(other) => of_tag(other),
        Ast::Copy(copy) => Some(match copy.beyond? {
            CopyBeyond::Program => Reach::Program,
            CopyBeyond::File => Reach::Files,
        }),
        Ast::CreateFunction(create) => of_language(&create.language),
        Ast::Do(block) => of_language(&block.language),
        Ast::CreateExtension(create) if UNTRUSTED.contains(&create.name.text.as_str()) => {
            of_language(&create.name.text)
        }
        // Without names, the shared catalogs are among them.
        Ast::Vacuum(vacuum) if vacuum.full && vacuum.tables.is_empty() => Some(Reach::Database),
        Ast::Reindex(reindex) if reindex.target == ReindexTarget::System => Some(Reach::Database),
        Ast::ReassignOwned(_) | Ast::DropOwned(_) | Ast::GrantRole(_) | Ast::CreateRole(_) => Some(Reach::Role),
        Ast::Drop(drop) => of_kind(drop.kind),
        Ast::Rename(rename) => of_kind(rename.kind),
        Ast::ChangeOwner(change) => of_kind(change.kind),
        Ast::Comment(comment) => of_kind(comment.kind),
        Ast::Grant(grant) => of_kind(grant.kind),
        _ => None,
    }
}

/// Statements that the model does not know, by their nodes in PostgreSQL.
fn of_node(node: &str) -> Option<Reach> {
    Some(match node {
        "AlterRoleStmt" | "AlterRoleSetStmt" | "DropRoleStmt" => Reach::Role,
        "AlterDatabaseSetStmt" => Reach::Settings,
        "AlterDatabaseRefreshCollStmt" => Reach::Database,
        "AlterTableSpaceOptionsStmt" => Reach::Tablespace,
        "AlterForeignServerStmt" | "AlterUserMappingStmt" => Reach::Connection,
        "LoadStmt" => Reach::Code(SmolStr::new_static("a library")),
        _ => return None,
    })
}

fn of_tag(other: &CreateOther) -> Option<Reach> {
    match other.tag {
        "ALTER SYSTEM" => Some(Reach::Settings),
        "CREATE TABLESPACE" | "DROP TABLESPACE" => Some(Reach::Tablespace),
        "CREATE DATABASE" | "DROP DATABASE" | "ALTER DATABASE" => Some(Reach::Database),
        "CREATE SERVER" | "CREATE USER MAPPING" | "IMPORT FOREIGN SCHEMA" => Some(Reach::Connection),
        "CREATE LANGUAGE" => other.name.as_ref().and_then(|name| of_language(&name.name.text)),
        "SECURITY LABEL ON ROLE" => Some(Reach::Role),
        "SECURITY LABEL ON DATABASE" => Some(Reach::Database),
        "SECURITY LABEL ON TABLESPACE" => Some(Reach::Tablespace),
        // The functions of an operator, an aggregate or a type.
        _ => other.options.iter().find_map(|option| match &option.value {
            DefValue::Names(names) => reach_of_function(names.last()?).cloned(),
            DefValue::Type(name) => reach_of_function(&name.name).cloned(),
            _ => None,
        }),
    }
}

fn of_kind(kind: ObjectKind) -> Option<Reach> {
    match kind {
        ObjectKind::Role => Some(Reach::Role),
        ObjectKind::Database => Some(Reach::Database),
        ObjectKind::Tablespace => Some(Reach::Tablespace),
        ObjectKind::Parameter => Some(Reach::Settings),
        _ => None,
    }
}

fn of_language(language: &str) -> Option<Reach> {
    (!TRUSTED.contains(&language)).then(|| Reach::Code(SmolStr::new(language)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::Database;
    use crate::version::PgVersion;
    use pgvet_syntax::source::SourceFile;
    use pgvet_syntax::statement::parse_file;

    fn reached(sql: &str) -> Vec<Reach> {
        let file = parse_file(SourceFile::new("m.sql".to_owned(), sql.to_owned()));
        Database::new(PgVersion(18)).run(&file).into_iter().flat_map(|effects| effects.reaches).collect()
    }

    #[test]
    fn what_a_copy_of_a_database_does_not_contain_is_noted() {
        for (sql, reach) in [
            ("CREATE ROLE a", Reach::Role),
            ("ALTER ROLE a SUPERUSER", Reach::Role),
            ("ALTER ROLE a SET work_mem = '1GB'", Reach::Role),
            ("GRANT a TO b", Reach::Role),
            ("DROP ROLE a", Reach::Role),
            ("ALTER ROLE a RENAME TO b", Reach::Role),
            ("REASSIGN OWNED BY a TO b", Reach::Role),
            ("ALTER SYSTEM SET work_mem = '1GB'", Reach::Settings),
            ("ALTER DATABASE a SET work_mem = '1GB'", Reach::Settings),
            ("SELECT pg_reload_conf()", Reach::Settings),
            ("CREATE TABLESPACE a LOCATION '/a'", Reach::Tablespace),
            ("DROP DATABASE a", Reach::Database),
            ("GRANT CONNECT ON DATABASE a TO b", Reach::Database),
            ("ALTER DATABASE a OWNER TO b", Reach::Database),
            ("COPY (SELECT 1) TO PROGRAM 'cat'", Reach::Program),
            ("COPY (SELECT 1) TO '/a'", Reach::Files),
            ("SELECT pg_read_file('/etc/passwd')", Reach::Files),
            ("CREATE EXTENSION plpython3u", Reach::Code("plpython3u".into())),
            ("DO LANGUAGE plpython3u 'pass'", Reach::Code("plpython3u".into())),
            ("CREATE FUNCTION f() RETURNS int LANGUAGE plperlu AS ''", Reach::Code("plperlu".into())),
            ("LOAD 'a'", Reach::Code("a library".into())),
            ("SELECT pg_terminate_backend(1)", Reach::Sessions),
            ("SELECT pg_drop_replication_slot('a')", Reach::Replication),
            ("IMPORT FOREIGN SCHEMA a FROM SERVER b INTO c", Reach::Connection),
            ("DELETE FROM pg_database", Reach::Database),
            ("UPDATE pg_catalog.pg_authid SET rolsuper = true", Reach::Role),
            ("INSERT INTO pg_auth_members VALUES (1, 2, 3)", Reach::Role),
            ("WITH gone AS (DELETE FROM pg_tablespace RETURNING 1) SELECT * FROM gone", Reach::Tablespace),
            ("MERGE INTO pg_authid a USING b ON true WHEN MATCHED THEN DELETE", Reach::Role),
            ("SET allow_system_table_mods = on; TRUNCATE pg_authid", Reach::Role),
            ("BEGIN; LOCK TABLE pg_database", Reach::Database),
            ("VACUUM FULL pg_tablespace", Reach::Tablespace),
            ("VACUUM FULL", Reach::Database),
            ("REINDEX TABLE pg_catalog.pg_authid", Reach::Role),
            ("REINDEX SYSTEM a", Reach::Database),
            ("SELECT x.pg_ls_dir FROM text('/') x", Reach::Files),
            ("SELECT ('/etc/passwd'::text).pg_read_file", Reach::Files),
            ("DO $$ BEGIN RAISE NOTICE '%', ('x'::text).pg_read_file; END $$", Reach::Files),
            ("CREATE VIEW v AS SELECT x.lo_import FROM text('/') x", Reach::Files),
            ("CREATE EXTENSION dblink; SELECT dblink_exec('dbname=a', 'DROP TABLE b')", Reach::Connection),
            ("DO $$ BEGIN CREATE ROLE a; END $$", Reach::Role),
            ("DO $$ BEGIN EXECUTE 'ALTER ROLE a SUPERUSER'; END $$", Reach::Role),
            ("DO $$ BEGIN PERFORM pg_reload_conf(); END $$", Reach::Settings),
            ("CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'DROP ROLE a'; SELECT f()", Reach::Role),
            ("GRANT SET ON PARAMETER work_mem TO a", Reach::Settings),
            ("REVOKE ALTER SYSTEM ON PARAMETER work_mem FROM a", Reach::Settings),
            ("SECURITY LABEL FOR b ON ROLE a IS 'x'", Reach::Role),
            ("SECURITY LABEL ON DATABASE a IS 'x'", Reach::Database),
            ("SECURITY LABEL ON TABLESPACE a IS 'x'", Reach::Tablespace),
            ("CREATE TABLE t (a bool CHECK (pg_reload_conf()))", Reach::Settings),
            ("CREATE TABLE t (a int); CREATE INDEX ON t ((pg_read_file('x')))", Reach::Files),
            ("CREATE TABLE t (a int); CREATE POLICY p ON t USING (pg_promote())", Reach::Replication),
            ("CREATE TABLE t (a int); CREATE RULE r AS ON INSERT TO t DO SELECT pg_reload_conf()", Reach::Settings),
            ("CREATE DOMAIN d AS int CHECK (pg_reload_conf())", Reach::Settings),
            ("CREATE VIEW v AS SELECT pg_read_file('x')", Reach::Files),
            ("DO $$ BEGIN CREATE VIEW v AS SELECT pg_read_file('x'); END $$", Reach::Files),
            ("CREATE OPERATOR !!! (FUNCTION = pg_ls_dir, RIGHTARG = text)", Reach::Files),
            ("CREATE AGGREGATE a (text) (SFUNC = lo_export, STYPE = int)", Reach::Files),
        ] {
            assert_eq!(reached(sql), [reach], "{sql}");
        }
    }

    #[test]
    fn what_stays_in_the_database_is_not() {
        for sql in [
            "CREATE TABLE t (a int); GRANT SELECT ON t TO a; COMMENT ON TABLE t IS 'x'; DROP TABLE t",
            "CREATE EXTENSION pgcrypto",
            "CREATE TABLE t (a int); COPY t FROM stdin;\n1\n\\.\n",
            "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN CREATE ROLE a; RETURN 1; END'",
            "SET work_mem = '1GB'; RESET work_mem",
            "CREATE TABLE t (a int); SECURITY LABEL FOR b ON COLUMN t.a IS 'x'",
            "CREATE FUNCTION pg_reload_conf() RETURNS bool RETURN true; CREATE VIEW v AS SELECT pg_reload_conf()",
            "CREATE SCHEMA a; CREATE TABLE a.pg_authid (a int); TRUNCATE a.pg_authid; VACUUM pg_authid; ANALYZE pg_authid",
            "SELECT * FROM pg_database; UPDATE pg_class SET reltuples = 1; CREATE TABLE pg_authid (a int)",
        ] {
            assert_eq!(reached(sql), [], "{sql}");
        }
    }

    #[test]
    fn a_program_is_not_analyzed() {
        let file = parse_file(SourceFile::new("m.sql".to_owned(), "COPY (SELECT 1) TO PROGRAM 'cat'".to_owned()));
        let effects = &Database::new(PgVersion(18)).run(&file)[0];
        assert_eq!(effects.unknown_reasons(), [&UnknownReason::Program]);
        assert!(effects.unknown[0].may_change);
    }
}
