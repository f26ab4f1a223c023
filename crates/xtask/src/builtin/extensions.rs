//! The contrib extensions of one server: each is created in a database of its own and its members are read.
//!
//! Types of extensions have no fixed oid, so everything is identified by type name.

use super::server::Server;
use super::write::{CATEGORY, CONTEXT, Column, FUNCTION_KIND, METHOD, TYPE_KIND, VOLATILITY, rust, save};
use std::fmt::Write as _;
use std::path::Path;

/// A list of an extension: the field's constructor, its columns, and the query; `MEMBER(catalog)` is true for members.
struct List {
    constructor: &'static str,
    columns: &'static [Column],
    sql: &'static str,
}

use Column::{Boolean, Number, Text, Texts};

const LISTS: [List; 6] = [
    List {
        constructor: "extension_type",
        columns: &[Text, TYPE_KIND, CATEGORY, Boolean, VOLATILITY, VOLATILITY],
        sql: "SELECT typname, typtype, typcategory, typispreferred,
                     (SELECT provolatile FROM pg_proc WHERE oid = typinput),
                     (SELECT provolatile FROM pg_proc WHERE oid = typoutput)
              FROM pg_type o WHERE MEMBER(pg_type) AND typcategory <> 'A' ORDER BY 1",
    },
    List {
        constructor: "extension_function",
        columns: &[Text, Texts, Number, Boolean, Text, Boolean, VOLATILITY, Boolean, FUNCTION_KIND],
        sql: "SELECT proname,
                     array_to_string(ARRAY(SELECT typname FROM unnest(proargtypes) WITH ORDINALITY AS a(type, position)
                                           JOIN pg_type t ON t.oid = type ORDER BY position), ','),
                     pronargdefaults, provariadic <> 0, (SELECT typname FROM pg_type t WHERE t.oid = prorettype),
                     proretset, provolatile, proisstrict, prokind
              FROM pg_proc o WHERE MEMBER(pg_proc) ORDER BY 1, 2",
    },
    List {
        constructor: "extension_operator",
        columns: &[Text, Text, Text, Text, VOLATILITY, Boolean],
        sql: "SELECT oprname, coalesce((SELECT typname FROM pg_type t WHERE t.oid = oprleft), ''),
                     (SELECT typname FROM pg_type t WHERE t.oid = oprright),
                     (SELECT typname FROM pg_type t WHERE t.oid = oprresult), provolatile, proisstrict
              FROM pg_operator o JOIN pg_proc p ON p.oid = oprcode WHERE MEMBER(pg_operator) ORDER BY 1, 2, 3",
    },
    List {
        constructor: "extension_cast",
        columns: &[Text, Text, CONTEXT, METHOD, VOLATILITY],
        sql: "SELECT s.typname, t.typname, castcontext, castmethod,
                     coalesce((SELECT provolatile FROM pg_proc p WHERE p.oid = castfunc), 'i')
              FROM pg_cast o JOIN pg_type s ON s.oid = castsource JOIN pg_type t ON t.oid = casttarget
              WHERE MEMBER(pg_cast) ORDER BY 1, 2",
    },
    List {
        constructor: "extension_operator_class",
        columns: &[Text, Text, Text, Boolean, Text],
        sql: "SELECT amname, opcname, typname, opcdefault, opfname
              FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod JOIN pg_opfamily f ON f.oid = opcfamily
              JOIN pg_type t ON t.oid = opcintype WHERE MEMBER(pg_opclass) ORDER BY 1, 2",
    },
    List {
        constructor: "",
        columns: &[Text],
        sql: "SELECT relname FROM pg_class o WHERE MEMBER(pg_class) AND relkind IN ('r', 'v', 'm', 'f') ORDER BY 1",
    },
];

pub(crate) fn generate(server: &Server, directory: &Path) -> Result<(), String> {
    let names =
        server.query("postgres", "SELECT name FROM pg_available_extensions WHERE name <> 'plpgsql' ORDER BY name")?;
    let mut rows = Vec::new();
    for name in names.iter().filter_map(|row| row.first()) {
        rows.push(extension(server, name)?);
    }
    let mut text = format!("pub(crate) static EXTENSIONS: [Extension; {}] = [\n", rows.len());
    text.push_str(&rows.concat());
    text.push_str("];\n");
    save(directory, "extensions", &text)
}

fn extension(server: &Server, name: &str) -> Result<String, String> {
    let database = format!("extension_{}", name.replace('-', "_"));
    server.query("postgres", &format!("CREATE DATABASE {database}"))?;
    server.query(&database, &format!("SET client_min_messages = error; CREATE EXTENSION \"{name}\" CASCADE"))?;
    let requires = server.query(
        &database,
        &format!(
            "SELECT refe.extname FROM pg_depend d JOIN pg_extension e ON e.oid = d.objid JOIN pg_extension refe ON refe.oid = d.refobjid
             WHERE d.classid = 'pg_extension'::regclass AND d.refclassid = 'pg_extension'::regclass AND e.extname = '{name}' ORDER BY 1"
        ),
    )?;
    let mut text = format!("    extension({name:?}, &{:?},\n", requires.concat());
    for list in &LISTS {
        text.push_str("        &[\n");
        for row in server.query(&database, &member_sql(list.sql, name))? {
            let values = row
                .iter()
                .zip(list.columns)
                .map(|(value, column)| rust(value, *column))
                .collect::<Result<Vec<_>, _>>()?;
            let _ = if list.constructor.is_empty() {
                writeln!(text, "            {},", values.join(", "))
            } else {
                writeln!(text, "            {}({}),", list.constructor, values.join(", "))
            };
        }
        text.push_str("        ],\n");
    }
    text.push_str("    ),\n");
    server.query("postgres", &format!("DROP DATABASE {database}"))?;
    Ok(text)
}

/// Replaces `MEMBER(catalog)`: row `o` of that catalog belongs to the extension.
fn member_sql(sql: &str, extension: &str) -> String {
    let Some((before, rest)) = sql.split_once("MEMBER(") else { return sql.to_owned() };
    let Some((catalog, after)) = rest.split_once(')') else { return sql.to_owned() };
    format!(
        "{before}EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
                 WHERE d.classid = '{catalog}'::regclass AND d.objid = o.oid AND d.deptype = 'e'
                   AND d.refclassid = 'pg_extension'::regclass AND e.extname = '{extension}'){after}"
    )
}
