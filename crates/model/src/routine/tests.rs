//! Routines read from whole migrations.

use super::*;
use crate::catalog::{Catalog, Oid};
use crate::checkpoint::Database;
use crate::migration::Migration;
use crate::production::{FunctionSettings, Functions};
use crate::replay::{Replay, StatementVisit, Visitor};
use crate::session::Session;
use crate::version::DEFAULT_RANGE;
use pgvet_syntax::ast::{Ast, SyntaxError};
use pgvet_syntax::plpgsql::{self, StatementKind};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, Statement, parse_file};

/// Keeps the catalog at the end.
#[derive(Default)]
struct End(Option<Catalog>);

impl Visitor for End {
    fn statement(&mut self, visit: &StatementVisit<'_>) {
        assert_eq!(visit.effects.fails, None);
    }
    fn syntax_error(&mut self, _: u32, _: &Migration<'_>, _: &Statement, error: &SyntaxError) {
        panic!("{error:?}");
    }
    fn migration_end(&mut self, _: u32, _: &Migration<'_>, _: &Session, _: &Catalog, _: &Catalog) {}
    fn database_end(&mut self, _: u32, database: &Database) {
        self.0 = Some(database.catalog.clone());
    }
}

pub(super) fn with_routines(texts: &[&str], functions: &Functions, test: impl FnOnce(&Routines<'_>)) {
    let source = |text: &&str| SourceFile::new(String::new(), (*text).to_owned());
    let files: Vec<ParsedFile> = texts.iter().map(|text| parse_file(source(text))).collect();
    let migration = Migration::new;
    let migrations: Vec<Migration<'_>> = files.iter().map(migration).collect();
    let mut end = End::default();
    Replay::new(DEFAULT_RANGE).run(&migrations, &mut end);
    test(&Routines::new(&migrations, &end.0.unwrap(), functions, &RoutineReader::default()));
}

pub(super) fn named(routines: &Routines<'_>, name: &str) -> Oid {
    routines.catalog.functions_named("public", name).next().unwrap().oid
}

/// The tables that statements of a function read or change, as the file has them at the ranges of the tree.
fn tables(text: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    with_routines(&[text], &Functions::default(), |routines| {
        let routine = routines.function(named(routines, name)).unwrap();
        assert_eq!(routine.unread, []);
        assert_eq!(&text[routine.name_range.as_usize()], name);
        for step in routine.steps() {
            for sql in &step.sql {
                sql.ast.visit(&mut |part| {
                    let range = match part {
                        pgvet_syntax::ast::Part::Read(relation) => relation.name.range(),
                        pgvet_syntax::ast::Part::Insert(insert) => insert.table.name.range(),
                        pgvet_syntax::ast::Part::Update(update) => update.table.name.range(),
                        pgvet_syntax::ast::Part::Delete(delete) => delete.table.name.range(),
                        _ => return,
                    };
                    found.push(text[sql.place(range).as_usize()].to_owned());
                });
            }
        }
    });
    found
}

#[test]
fn ranges_are_those_of_the_file_however_the_body_is_quoted() {
    let body = "DECLARE n int := (SELECT count(*) FROM a); BEGIN
            IF EXISTS (SELECT FROM b) THEN INSERT INTO c VALUES ('x'); END IF;
            FOR r IN SELECT * FROM d LOOP UPDATE e SET f = r.f WHERE g = 'it''s'; END LOOP;
            EXECUTE 'DELETE FROM h';
        END";
    let tables_of =
        |quoted: &str| tables(&format!("CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS {quoted};"), "f");
    let expected = ["a", "b", "c", "d", "e", "h"];
    assert_eq!(tables_of(&format!("$body$ {body} $body$")), expected);
    assert_eq!(tables_of(&format!("' {} '", body.replace('\'', "''"))), expected);
    assert_eq!(tables_of(&format!("E' {} '", body.replace('\'', "\\'").replace('\n', "\\n"))), expected);
    let sql = "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS ";
    assert_eq!(tables(&format!("{sql}'DELETE FROM a WHERE b = ''c''; UPDATE d SET e = 1'"), "f"), ["a", "d"]);
    let atomic = "CREATE FUNCTION f() RETURNS void BEGIN ATOMIC DELETE FROM a; DELETE FROM b; END;";
    assert_eq!(tables(atomic, "f"), ["a", "b"]);
}

#[test]
fn a_function_that_a_do_block_defines_has_its_place_in_the_file() {
    let text = "DO $d$ BEGIN CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $f$ BEGIN DELETE FROM a; END $f$;
        EXECUTE 'CREATE FUNCTION g() RETURNS void LANGUAGE sql AS $g$ DELETE FROM b $g$';
        EXECUTE 'CREATE FUNCTION h() RETURNS void LANGUAGE sql AS ''DELETE FROM c'''; END $d$";
    assert_eq!(tables(text, "f"), ["a"]);
    assert_eq!(tables(text, "g"), ["b"]);
    with_routines(&[text], &Functions::default(), |routines| {
        assert_eq!(routines.defined_in(|_| true), [named(routines, "f"), named(routines, "g")]);
        // The text has escapes.
        assert!(routines.function(named(routines, "h")).is_none());
    });
}

#[test]
fn a_replaced_definition_is_not_the_one_of_the_older_file() {
    let create = "CREATE OR REPLACE FUNCTION f() RETURNS void LANGUAGE sql AS 'SELECT 1'";
    with_routines(&[create, create], &Functions::default(), |routines| {
        assert_eq!(routines.defined_in(|file| file == 0), []);
        assert_eq!(routines.defined_in(|file| file == 1).len(), 1);
    });
}

#[test]
fn steps_know_what_surrounds_them() {
    let text = "CREATE FUNCTION f(p int) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE v int; BEGIN
            FOR i IN 1..3 LOOP
                BEGIN INSERT INTO a VALUES (v);
                EXCEPTION WHEN unique_violation THEN UPDATE a SET b = p; END;
            END LOOP;
        END $$";
    with_routines(&[text], &Functions::default(), |routines| {
        let routine = routines.function(named(routines, "f")).unwrap();
        let steps = routine.steps();
        let insert = steps.iter().find(|step| matches!(step.sql[..], [Sql { ast: Ast::Insert(_), .. }])).unwrap();
        assert_eq!((insert.context.iterations, insert.context.subtransactions), (Some(3), 1));
        assert!(matches!(insert.around[..], [Around::Loop { .. }, Around::Exception { .. }]));
        let update = steps.iter().find(|step| matches!(step.sql[..], [Sql { ast: Ast::Update(_), .. }])).unwrap();
        let Around::Handler { handler, .. } = update.around[1] else { panic!("{:?}", update.around) };
        assert!(
            matches!(&handler.conditions[0].kind, plpgsql::ConditionKind::Name(name) if name == "unique_violation")
        );
        let is_loop = |kind: &StatementKind| matches!(kind, StatementKind::Loop(_));
        assert!(insert.innermost_loop().is_some_and(|(statement, _)| is_loop(&statement.kind)));
        for (path, expected) in
            [(&["v"][..], true), (&["p"], true), (&["f", "p"], true), (&["i"], true), (&["b"], false)]
        {
            let path: Vec<_> = path.iter().map(|part| (*part).into()).collect();
            assert_eq!(routine.is_variable(&path), expected, "{path:?}");
        }
    });
}

const CHAIN: &str = "CREATE TABLE t(id int);
    CREATE FUNCTION leaf() RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;
    CREATE FUNCTION inner_one() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM leaf(); PERFORM inner_one(); END $$;
    CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM inner_one(); RETURN new; END $$;
    CREATE FUNCTION looping() RETURNS void LANGUAGE plpgsql AS $$ BEGIN LOOP EXECUTE 'SELECT once()'; END LOOP; END $$;
    CREATE FUNCTION once() RETURNS void LANGUAGE sql AS 'SELECT 1';
    CREATE FUNCTION rowwise() RETURNS void LANGUAGE sql AS 'SELECT per_row() FROM t';
    CREATE FUNCTION per_row() RETURNS void LANGUAGE sql AS 'SELECT 1';
    CREATE FUNCTION cold() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM cold(); END $$;
    CREATE TRIGGER tr BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION on_row();";

fn reasons(functions: &Functions, name: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    with_routines(&[CHAIN], functions, |routines| {
        let hotness = routines.hotness_of(named(routines, name));
        let shown = |place: Option<crate::place::Place>| place.map_or("", |place| &CHAIN[place.range.as_usize()]);
        found = hotness.reasons.iter().map(|reason| (shown(reason.place).to_owned(), reason.text.clone())).collect();
    });
    found
}

#[test]
fn hotness_follows_triggers_loops_and_callers() {
    let places = |name: &str| {
        let reasons = reasons(&Functions::default(), name);
        reasons.into_iter().map(|(place, _)| place).collect::<Vec<_>>()
    };
    assert_eq!(places("on_row"), ["tr"]);
    assert_eq!(places("inner_one"), ["inner_one", "tr"]);
    assert_eq!(places("leaf"), ["leaf", "inner_one", "tr"]);
    assert_eq!(places("once"), ["LOOP"]);
    assert_eq!(places("per_row"), ["per_row"]);
    assert!(places("cold").is_empty() && places("looping").is_empty());
}

/// Two ways at each of 60 steps: to follow each way alone would never end.
#[test]
fn callers_are_followed_once_however_many_ways_there_are() {
    let step = |at: u32| {
        let (name, next) = (format!("f{}()", at + 1), format!("f{at}()"));
        format!("CREATE FUNCTION {name} RETURNS void LANGUAGE sql AS $$ SELECT {next}; SELECT {next} $$;")
    };
    let text: String = std::iter::once("CREATE FUNCTION f0() RETURNS void LANGUAGE sql AS $$ SELECT 1 $$;".to_owned())
        .chain((0..60).map(step))
        .collect();
    with_routines(&[&text], &Functions::default(), |routines| {
        assert!(!routines.hotness_of(named(routines, "f0")).is_hot());
    });
    let looping = "CREATE FUNCTION g() RETURNS void LANGUAGE plpgsql AS $$ BEGIN LOOP PERFORM f60(); END LOOP; END $$;";
    let looping = text + looping;
    with_routines(&[&looping], &Functions::default(), |routines| {
        assert!(routines.hotness_of(named(routines, "f0")).is_hot());
    });
}

#[test]
fn a_configured_rate_decides() {
    let rate = |calls_per_hour| {
        Functions::from_iter([("on_row".to_owned(), FunctionSettings { calls_per_hour: Some(calls_per_hour) })])
    };
    let first = |functions: &Functions, name| reasons(functions, name).first().map(|(_, text)| text.clone());
    let expected = "configuration says that on_row() is called 40,000 times an hour";
    assert_eq!(first(&rate(40_000), "on_row").as_deref(), Some(expected));
    assert_eq!(reasons(&rate(1), "leaf"), []);
}
