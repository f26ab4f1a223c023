//! Plans of whole migrations.

use super::{Plan, Refusal, rewrite};
use crate::settings::Settings;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::version::VersionRange;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};

const HISTORY: &str = "
    CREATE TABLE customers (id bigint PRIMARY KEY, code text);
    CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint, note text, total integer NOT NULL DEFAULT 0);
    CREATE INDEX orders_total_idx ON orders (total);";

fn plan(text: &str, transaction: TransactionMode, versions: &str) -> Result<Plan, Refusal> {
    planned([HISTORY, text], transaction, versions)
}

/// The plan after another history, without a word about `lock_timeout`.
fn plan_after(history: &str, text: &str) -> Result<Plan, Refusal> {
    planned([history, &format!("SET LOCAL lock_timeout = '2s'; {text}")], TransactionMode::Transaction, "14-18")
}

fn planned(texts: [&str; 2], transaction: TransactionMode, versions: &str) -> Result<Plan, Refusal> {
    let parse = |text: &str| parse_file(SourceFile::new(String::new(), text.to_owned()));
    let files: Vec<ParsedFile> = texts.iter().map(|text| parse(text)).collect();
    let migration = |at: usize| Migration { transaction, report: at == 1, ..Migration::new(&files[at]) };
    let versions = VersionRange::parse(versions).expect("a range");
    rewrite(&[migration(0), migration(1)], &Settings { versions, versions_configured: true, ..Settings::default() })
}

/// The files of a plan as text, `*` for those outside a transaction.
fn shown(text: &str, transaction: TransactionMode, versions: &str) -> String {
    match plan(text, transaction, versions) {
        Ok(plan) => {
            let mut shown = String::new();
            for file in &plan.files {
                let mark = if file.transaction { "" } else { " *" };
                shown += &["== ", &file.title, mark, "\n", &file.text()].concat();
            }
            for (rule, message) in &plan.unsolved {
                shown += &["unsolved: ", rule, ": ", message, "\n"].concat();
            }
            shown
        }
        Err(refusal) => format!("{refusal:?}\n"),
    }
}

#[test]
fn a_foreign_key_is_added_and_validated_apart() {
    let text = "-- why\nALTER TABLE orders ADD CONSTRAINT fk FOREIGN KEY (customer_id) REFERENCES customers (id);";
    insta::assert_snapshot!(shown(text, TransactionMode::Transaction, "14-18"));
}

#[test]
fn each_command_goes_its_own_way() {
    let text = "ALTER TABLE orders ALTER COLUMN note SET NOT NULL, ADD COLUMN seen timestamptz,
        ADD CONSTRAINT positive CHECK (total >= 0), ADD CONSTRAINT once UNIQUE (note);
        CREATE INDEX orders_note ON orders (note);";
    insta::assert_snapshot!(shown(text, TransactionMode::Transaction, "14-17"));
}

#[test]
fn a_column_changes_its_type_by_another_one() {
    let text = "ALTER TABLE orders ALTER COLUMN total TYPE bigint;";
    insta::assert_snapshot!(shown(text, TransactionMode::Transaction, "14-18"));
}

#[test]
fn values_for_old_rows_come_in_batches() {
    let text = "ALTER TABLE orders ADD COLUMN token uuid NOT NULL DEFAULT gen_random_uuid();";
    insta::assert_snapshot!(shown(text, TransactionMode::Transaction, "18"));
}

#[test]
fn files_of_psql_keep_their_statements_together() {
    let text = "SET search_path = public;\nALTER TABLE orders ALTER COLUMN note SET NOT NULL;\nSELECT 1;\n";
    insta::assert_snapshot!(shown(text, TransactionMode::Autocommit, "14-17"));
}

#[test]
fn what_is_well_is_left_alone_and_what_cannot_be_moved_is_said() {
    for (text, expected) in [
        ("ALTER TABLE orders ADD COLUMN x int;", Err("SetLockTimeout")),
        ("CREATE TABLE new (id int PRIMARY KEY);", Ok(Refusal::NothingToDo)),
        ("\\set x 1\nCREATE INDEX ON orders (note);", Ok(Refusal::Unsupported(String::new()))),
        ("CREATE INDEX ON ordrs note", Ok(Refusal::Unsupported(String::new()))),
    ] {
        let refusal = plan(text, TransactionMode::Transaction, "14-18");
        match (refusal, expected) {
            (Ok(plan), Err(_)) => assert_eq!(plan.files.len(), 1, "{text}"),
            (Err(Refusal::Unsupported(_)), Ok(Refusal::Unsupported(_))) => {}
            (Err(refusal), Ok(expected)) => assert_eq!(refusal, expected, "{text}"),
            (plan, _) => panic!("{text}: {plan:?}"),
        }
    }
}

#[test]
fn settings_go_as_far_as_they_act() {
    let text = "SET work_mem = '1MB';\nSET work_mem = '2MB';\nBEGIN;\nSET LOCAL search_path = app;\nSELECT 1;\nCOMMIT;\n\
        CREATE INDEX orders_note ON orders (note);\nBEGIN;\nSELECT 2;\nCOMMIT;\n";
    insta::assert_snapshot!(shown(text, TransactionMode::Autocommit, "14-18"));
}

#[test]
fn steps_that_would_omit_a_clause_are_no_plan() {
    for (clause, is_left) in
        [("CHECK (token IS NOT NULL)", true), ("CONSTRAINT n NOT NULL", true), ("REFERENCES customers", false)]
    {
        let text = format!("ALTER TABLE orders ADD COLUMN token bigint DEFAULT nextval('s') {clause};");
        let shown = shown(&text, TransactionMode::Transaction, "14-18");
        assert_eq!(shown.contains("unsolved: column-default-rewrites-table"), is_left, "{clause}: {shown}");
        assert!(shown.contains(clause), "{clause}: {shown}");
    }
    for (text, reason) in [
        ("CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1; CREATE INDEX ON orders (note);", "ON COMMIT DROP"),
        ("BEGIN; SAVEPOINT a; CREATE INDEX ON orders (note); COMMIT;", "savepoints"),
    ] {
        let refusal = plan(text, TransactionMode::Transaction, "14-18");
        assert!(matches!(&refusal, Err(Refusal::Unsupported(said)) if said.contains(reason)), "{text}: {refusal:?}");
    }
}

#[test]
fn keys_and_names_are_kept() {
    let text = "ALTER TABLE orders ADD COLUMN token uuid CONSTRAINT tokens UNIQUE NULLS NOT DISTINCT
            WITH (fillfactor = 70) DEFERRABLE DEFAULT gen_random_uuid();
        ALTER TABLE orders ADD CONSTRAINT note UNIQUE (note) WITH (fillfactor = 70) USING INDEX TABLESPACE fast;";
    insta::assert_snapshot!(shown(text, TransactionMode::Transaction, "15-18"));
}

#[test]
fn comments_of_the_author_stay() {
    let text = "-- Rollback: drop it by hand\n-- deploy after release 7\nCREATE INDEX i ON orders (note);";
    let shown = shown(text, TransactionMode::Transaction, "14-18");
    assert!(
        shown.contains("-- Rollback: drop it by hand\n-- deploy after release 7\nCREATE INDEX CONCURRENTLY"),
        "{shown}"
    );
}

#[test]
fn code_that_only_names_commit_stays_in_its_transaction() {
    let text = "DO $$ BEGIN PERFORM 'COMMIT'; END $$;\nCREATE INDEX i ON orders (note);";
    let shown = shown(text, TransactionMode::Transaction, "14-18");
    assert!(shown.starts_with("== fill\nDO $$ BEGIN PERFORM 'COMMIT'"), "{shown}");
}

#[test]
fn what_ends_with_its_session_is_not_divided() {
    let fill = "UPDATE orders SET note = kept.note FROM kept;";
    for (text, is_refused) in [
        (format!("CREATE TEMP TABLE kept AS SELECT 1 AS note; CREATE INDEX i ON orders (note); {fill}"), true),
        (
            format!("SELECT 'x' AS note INTO TEMP \"kept\"; CREATE INDEX i ON orders (note); DO $$BEGIN {fill} END$$;"),
            true,
        ),
        ("CREATE TEMP TABLE other (a int); CREATE INDEX i ON orders (note);".to_owned(), false),
    ] {
        let refusal = plan(&text, TransactionMode::Transaction, "14-18");
        match refusal {
            Err(Refusal::Unsupported(said)) => {
                assert!(is_refused && said.contains("temporary table `kept`"), "{text}: {said}");
            }
            other => assert!(!is_refused && other.is_ok(), "{text}: {other:?}"),
        }
    }
}

#[test]
fn triggers_do_not_stay_off_between_migrations() {
    let text = "ALTER TABLE orders DISABLE TRIGGER ALL; CREATE INDEX i ON orders (note); ALTER TABLE orders ENABLE TRIGGER ALL;";
    let refusal = plan(text, TransactionMode::Transaction, "14-18");
    assert!(
        matches!(&refusal, Err(Refusal::Unsupported(said)) if said.contains("all triggers on `orders`")),
        "{refusal:?}"
    );
}

#[test]
fn what_could_not_be_taken_along_is_named() {
    let more =
        "CREATE TABLE items (id int PRIMARY KEY, order_id int REFERENCES orders (id), price int CHECK (price > 0), \
            kind varchar(5));
        CREATE INDEX items_half ON items ((price / 2));
        CREATE TABLE marks (id int PRIMARY KEY, a int GENERATED ALWAYS AS IDENTITY, b text COLLATE \"C\");
        CREATE TABLE seen (a int, b int, c int); CREATE VIEW seen_v AS SELECT b FROM seen;
        CREATE TABLE halves (a int, b int, h int GENERATED ALWAYS AS (b / 2) STORED);
        CREATE TABLE parts (a int, b int) PARTITION BY LIST (b);
        CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);";
    for (change, part) in [
        ("items ALTER COLUMN order_id TYPE bigint", "foreign key `items_order_id_fkey` contains `order_id`"),
        ("orders ALTER COLUMN id TYPE integer", "foreign key `items_order_id_fkey` of `items` refers to `id`"),
        ("items ALTER COLUMN price TYPE bigint", "CHECK `items_price_check` contains `price`"),
        ("marks ALTER COLUMN a TYPE bigint", "`a` is an identity column"),
        ("marks ALTER COLUMN b TYPE integer USING 1", "`b` has a collation of its own"),
        ("seen ALTER COLUMN a TYPE bigint", "view `seen_v` of `seen` may use `a`"),
        ("halves ALTER COLUMN a TYPE bigint", "generated column `h` of `halves` may use `a`"),
        ("parts ALTER COLUMN a TYPE bigint", "not an ordinary table"),
        ("unseen ALTER COLUMN a TYPE bigint", "no migration shows"),
        (
            "seen ADD COLUMN d int GENERATED ALWAYS AS (b * 2) STORED",
            "cannot turn an existing column into a generated one",
        ),
        ("seen SET TABLESPACE fast", "tools such as pg_repack can"),
    ] {
        let text = format!("ALTER TABLE {change};");
        let refusal = plan_after(&[HISTORY, more].concat(), &text);
        assert!(matches!(&refusal, Err(Refusal::Unsupported(said)) if said.contains(part)), "{change}: {refusal:?}");
    }
}

#[test]
fn a_column_that_is_dropped_and_added_again_is_never_missing() {
    let change = "ALTER TABLE orders DROP COLUMN note, ADD COLUMN note int NOT NULL, ADD CHECK (total > 0);";
    let text = format!("CREATE INDEX i ON orders (customer_id); {change}");
    let shown = shown(&text, TransactionMode::Transaction, "14-18");
    assert!(shown.contains(change) && shown.contains("CREATE INDEX CONCURRENTLY i"), "{shown}");
}

#[test]
fn a_plan_has_steps_for_each_of_many_statements() {
    let index = |at: u32| format!("CREATE INDEX i{at} ON orders (note, total, (id + {at}));\n");
    let indexes: Vec<String> = (0..70).map(index).collect();
    let shown = shown(&indexes.concat(), TransactionMode::Transaction, "14-18");
    assert_eq!(shown.matches("CREATE INDEX CONCURRENTLY").count(), 70, "{shown}");
}
