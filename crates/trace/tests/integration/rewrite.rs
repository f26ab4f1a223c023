//! Plans on real servers: they end in the schema of the migration that they replace.

use pgvet_linter::rewrite::{Plan, rewrite};
use pgvet_linter::settings::Settings;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::version::VersionRange;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::{not_tested, not_tested_anywhere, server};
use std::process::Command;

const HISTORY: &str = include_str!("../../../../fixtures/rewrite/history.sql");
const ROWS: &str = include_str!("../../../../fixtures/rewrite/rows.sql");

/// Migrations with a recipe.
fn recipes() -> impl Iterator<Item = &'static str> {
    include_str!("../../../../fixtures/rewrite/recipes.sql").lines().filter(|line| !line.starts_with("--"))
}

fn plan(text: &str, major: u8) -> Plan {
    let texts = [HISTORY, text];
    let files: Vec<ParsedFile> =
        texts.iter().map(|text| parse_file(SourceFile::new("m.sql".to_owned(), (*text).to_owned()))).collect();
    let migration = |at: usize| Migration {
        transaction: TransactionMode::Transaction,
        report: at == 1,
        ..Migration::new(&files[at])
    };
    let versions =
        VersionRange { from: pgvet_model::version::PgVersion(major), to: pgvet_model::version::PgVersion(major) };
    let settings = Settings { versions, versions_configured: true, ..Settings::default() };
    rewrite(&[migration(0), migration(1)], &settings).unwrap_or_else(|refusal| panic!("{major}: {text}: {refusal:?}"))
}

/// Comments are broken into lines.
fn one_line(text: &str) -> String {
    text.replace("\n--", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs a plan as a tool would; each text is one query.
fn run(server: &Server, database: &str, plan: &Plan) -> Result<(), String> {
    for file in &plan.files {
        let text = file.text();
        let text = if file.transaction { format!("BEGIN;\n{text}COMMIT;") } else { text };
        server.query(database, &text).map_err(|error| format!("{error}\n{text}"))?;
    }
    Ok(())
}

/// What `pg_dump --schema-only` would say, in no order: a column that takes the place of another comes last.
const SCHEMA: &str = "
    SELECT format('column %s.%s %s %s %s %s %s', attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull,
        attidentity::text || attgenerated::text, pg_get_expr(adbin, adrelid), attstorage)
    FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p')
    UNION ALL SELECT format('constraint %s %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT format('index %s %s %s', pg_get_indexdef(indexrelid), indisvalid, (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = indexrelid))
    FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT format('sequence %s %s %s', s.seqrelid::regclass, s.seqtypid::regtype, d.refobjid::regclass::text || '.' || a.attname::text)
    FROM pg_sequence s LEFT JOIN pg_depend d ON d.objid = s.seqrelid AND d.deptype IN ('a', 'i') AND d.refobjsubid > 0
    LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    UNION ALL SELECT format('trigger %s', pg_get_triggerdef(oid)) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT format('function %s', oid::regprocedure) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT format('relation %s %s %s %s %s', oid::regclass, relkind, relreplident, reloptions,
        (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(relacl) a))
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT format('replica identity %s', indexrelid::regclass) FROM pg_index WHERE indisreplident
    UNION ALL SELECT format('lossy: column %s.%s %s %s %s', attrelid::regclass, attname, coalesce(attstattarget, -1),
        attoptions, (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(attacl) a))
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p')
    UNION ALL SELECT format('lossy: comment on %s: %s', pg_describe_object(classoid, objoid, objsubid), description)
    FROM pg_description WHERE objoid >= 16384
    ORDER BY 1";

/// Text in a plan that replaces a column and loses some of its properties.
const SAYS_WHAT_IS_LOST: &str = "These steps do not copy";

fn is_lossy(line: &str) -> bool {
    let column = line.contains("ALTER COLUMN") && (line.contains("SET STATISTICS") || line.contains("SET (n_distinct"));
    column || ["lossy: ", "COMMENT ON COLUMN", "COMMENT ON INDEX", "GRANT "].iter().any(|start| line.starts_with(start))
}

fn schema(server: &Server, database: &str) -> Vec<String> {
    let rows = server.query(database, SCHEMA).unwrap_or_else(|error| panic!("{error:?}"));
    rows.into_iter().flatten().flatten().collect()
}

/// A `pg_dump` that knows servers of that major; `None`, with a loud message, where none is installed. CI has one for the
/// older ones.
fn pg_dump(major: u8) -> Option<&'static str> {
    let version = Command::new("pg_dump").arg("--version").output().ok();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let known = version.split_whitespace().nth(2).and_then(|version| version.split('.').next()?.parse::<u8>().ok());
    if known.is_some_and(|known| known >= major) {
        return Some("pg_dump");
    }
    let what = format!("with pg_dump on PostgreSQL {major}: it is missing or older");
    if major > 14 {
        not_tested_anywhere(&what);
    } else {
        not_tested(&what);
    }
    None
}

/// The lines of `pg_dump --schema-only`, in no order.
fn dump(pg_dump: &str, server: &Server, database: &str) -> Vec<String> {
    let output = Command::new(pg_dump)
        .args(["--schema-only", "--host"])
        .arg(server.socket())
        .args(["--username", "postgres", database])
        .output()
        .expect("pg_dump starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_sql = |line: &&str| !line.is_empty() && !line.starts_with("--") && !line.starts_with('\\');
    let mut lines: Vec<String> =
        text.lines().filter(is_sql).map(|line| line.trim_end_matches(',').to_owned()).collect();
    assert!(lines.iter().any(|line| line.starts_with("CREATE TABLE")), "{text}");
    lines.sort();
    lines
}

#[test]
fn a_plan_ends_in_the_schema_of_its_original_on_14() {
    compare(14);
}

#[test]
fn a_plan_ends_in_the_schema_of_its_original_on_18() {
    compare(18);
}

fn compare(major: u8) {
    let Some(server) = server(major) else { return };
    let query = |database: &str, sql: &str| {
        server.query(database, sql).unwrap_or_else(|error| panic!("{major}: {error:?}\n{sql}"))
    };
    let pg_dump = pg_dump(major);
    query("postgres", "CREATE ROLE reader");
    query("postgres", "CREATE DATABASE filled");
    query("filled", HISTORY);
    query("filled", &format!("SET pgvet.rows = 12000;\n{ROWS}"));
    let mut problems = Vec::new();
    for (at, text) in recipes().enumerate() {
        let plan = plan(text, major);
        if !plan.unsolved.is_empty() {
            problems.push(format!("{major}: {text}\n  unsolved: {:?}", plan.unsolved));
        }
        let (original, planned) = (format!("original_{at}"), format!("planned_{at}"));
        query("postgres", &format!("CREATE DATABASE {original} TEMPLATE filled"));
        query("postgres", &format!("CREATE DATABASE {planned} TEMPLATE filled"));
        query(&original, text);
        if let Err(refused) = run(&server, &planned, &plan) {
            problems.push(format!("{major}: {text}\n  the plan is refused: {refused}"));
        }
        let loses = plan.files.iter().any(|file| one_line(&file.text()).contains(SAYS_WHAT_IS_LOST));
        let kept = |mut lines: Vec<String>| {
            lines.retain(|line| !loses || !is_lossy(line));
            lines
        };
        let (before, after) = (kept(schema(&server, &original)), kept(schema(&server, &planned)));
        let only = |one: &[String], other: &[String]| -> Vec<String> {
            one.iter().filter(|line| !other.contains(line)).cloned().collect()
        };
        if before != after {
            problems.push(format!(
                "{major}: {text}\n  only the original: {:#?}\n  only the plan: {:#?}",
                only(&before, &after),
                only(&after, &before)
            ));
        } else if let Some(pg_dump) = pg_dump {
            let dump = |database: &str| kept(dump(pg_dump, &server, database));
            let (before, after) = (dump(&original), dump(&planned));
            if before != after {
                problems.push(format!("{major}: {text}: pg_dump sees a difference: {:#?}", only(&after, &before)));
            }
        }
        query("postgres", &format!("DROP DATABASE {original}"));
        query("postgres", &format!("DROP DATABASE {planned}"));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
