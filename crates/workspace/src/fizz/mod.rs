//! Migrations of pop in fizz, as the SQL that pop sends to PostgreSQL. What is not understood is an error: then nothing
//! is known about what the file does.
//!
//! Source: gobuffalo/fizz 1.14: `tables.go`, `columns.go`, `index.go`, `foreign_keys.go` and `translators/postgres.go`.

mod parse;

use parse::{Call, Value, parse};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Whether a file is in fizz.
pub(crate) fn is_fizz(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "fizz")
}

/// Returns the migrations in fizz that lie in a folder and run forward.
pub(crate) fn migrations_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let up = entries.filter(|entry| is_up(&entry.file_name().to_string_lossy()));
    let mut paths: Vec<PathBuf> = up.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Whether a file name is that of a migration in fizz that runs forward: `1_a.up.fizz`, `1_a.fizz`.
pub(crate) fn is_up(name: &str) -> bool {
    let direction = name.strip_suffix(".fizz").map(|stem| stem.rsplit('.').next().unwrap_or_default());
    name.starts_with(|first: char| first.is_ascii_digit()) && direction.is_some_and(|direction| direction != "down")
}

/// Returns the SQL of a text in fizz; `None` if a part of it is not understood.
pub(crate) fn to_sql(text: &str) -> Option<String> {
    let mut sql = String::new();
    for call in parse(text)? {
        statement(&call, &mut sql)?;
        sql.push('\n');
    }
    Some(sql)
}

fn statement(call: &Call, sql: &mut String) -> Option<()> {
    let text = |at: usize| call.arguments.get(at).and_then(Value::text);
    let table = || text(0).map(quoted);
    match call.name.as_str() {
        "sql" | "raw" => {
            let own = text(0)?.trim_end();
            write!(sql, "{own}{}", if own.ends_with(';') { "" } else { ";" }).ok()
        }
        "create_table" => create_table(call, sql),
        "drop_table" => write!(sql, "DROP TABLE {};", table()?).ok(),
        "rename_table" => write!(sql, "ALTER TABLE {} RENAME TO {};", table()?, quoted(text(1)?)).ok(),
        "add_column" => {
            let column = column(text(1)?, text(2)?, call.arguments.get(3))?;
            write!(sql, "ALTER TABLE {} ADD COLUMN {column};", table()?).ok()
        }
        "change_column" => {
            let changes = changes(text(1)?, text(2)?, call.arguments.get(3))?;
            write!(sql, "ALTER TABLE {} {changes};", table()?).ok()
        }
        "drop_column" => write!(sql, "ALTER TABLE {} DROP COLUMN {};", table()?, quoted(text(1)?)).ok(),
        "rename_column" => {
            write!(sql, "ALTER TABLE {} RENAME COLUMN {} TO {};", table()?, quoted(text(1)?), quoted(text(2)?)).ok()
        }
        "add_index" => {
            sql.push_str(&index(text(0)?, call.arguments.get(1)?, call.arguments.get(2))?);
            Some(())
        }
        // The name of the table may come first.
        "drop_index" => write!(sql, "DROP INDEX {};", quoted(call.arguments.iter().rev().find_map(Value::text)?)).ok(),
        "rename_index" => write!(sql, "ALTER INDEX {} RENAME TO {};", quoted(text(1)?), quoted(text(2)?)).ok(),
        "add_foreign_key" => {
            let (key, name) = foreign_key(text(0)?, text(1)?, call.arguments.get(2)?, call.arguments.get(3))?;
            write!(sql, "ALTER TABLE {} ADD CONSTRAINT {name} {key};", text(0)?).ok()
        }
        "drop_foreign_key" => {
            let if_exists = option(call.arguments.get(2), "if_exists").is_some_and(Value::is_true);
            let if_exists = if if_exists { "IF EXISTS " } else { "" };
            write!(sql, "ALTER TABLE {} DROP CONSTRAINT {if_exists}{};", text(0)?, text(1)?).ok()
        }
        _ => None,
    }
}

fn create_table(call: &Call, sql: &mut String) -> Option<()> {
    let name = call.arguments.first()?.text()?;
    let has_option = option(call.arguments.get(1), "timestamps").is_none_or(Value::is_true);
    let mut timestamps = has_option;
    let (mut columns, mut keys, mut indexes): (Vec<(String, String)>, Vec<String>, Vec<String>) = Default::default();
    for one in call.block.as_deref().unwrap_or_default() {
        let text = |at: usize| one.arguments.get(at).and_then(Value::text);
        match one.name.as_str() {
            "t.Column" => {
                let options = one.arguments.get(2);
                let (own, is_primary) = (text(0)?, option(options, "primary").is_some());
                let kind = match text(1)? {
                    "integer" | "INT" | "int" if is_primary => "SERIAL",
                    "bigint" | "BIGINT" if is_primary => "BIGSERIAL",
                    kind => kind,
                };
                if is_primary {
                    keys.push(format!("PRIMARY KEY({})", quoted(own)));
                }
                columns.push((own.to_owned(), column(own, kind, options)?));
            }
            "t.Timestamp" => columns.push((text(0)?.to_owned(), column(text(0)?, "timestamp", None)?)),
            "t.Timestamps" => timestamps = true,
            "t.DisableTimestamps" => timestamps = false,
            "t.ForeignKey" => keys.push(foreign_key(name, text(0)?, one.arguments.get(1)?, one.arguments.get(2))?.0),
            "t.Index" => indexes.push(index(name, one.arguments.first()?, one.arguments.get(1))?),
            "t.PrimaryKey" => {
                let names: Vec<String> = one.arguments.iter().filter_map(Value::text).map(quoted).collect();
                keys.push(format!("PRIMARY KEY({})", names.join(", ")));
            }
            _ => return None,
        }
    }
    for own in ["created_at", "updated_at"].into_iter().filter(|_| timestamps) {
        if !columns.iter().any(|(name, _)| name == own) {
            columns.push((own.to_owned(), column(own, "timestamp", None)?));
        }
    }
    let parts: Vec<String> = columns.into_iter().map(|(_, column)| column).chain(keys).collect();
    writeln!(sql, "CREATE TABLE {} ({});", quoted(name), parts.join(", ")).ok()?;
    indexes.iter().for_each(|index| sql.push_str(index));
    Some(())
}

/// A column with its type, NOT NULL and default.
fn column(name: &str, kind: &str, options: Option<&Value>) -> Option<String> {
    let is_null = option(options, "null").is_some() && option(options, "primary").is_none();
    let not_null = if is_null { "" } else { " NOT NULL" };
    let default = default(options, " DEFAULT ")?;
    Some(format!("{} {}{not_null}{default}", quoted(name), column_type(kind, options)))
}

/// The actions of ALTER TABLE for a changed column.
fn changes(name: &str, kind: &str, options: Option<&Value>) -> Option<String> {
    let own = quoted(name);
    let null = if option(options, "null").is_some() { "DROP" } else { "SET" };
    let default = default(options, &format!(", ALTER COLUMN {own} SET DEFAULT "))?;
    let kind = column_type(kind, options);
    Some(format!("ALTER COLUMN {own} TYPE {kind}, ALTER COLUMN {own} {null} NOT NULL{default}"))
}

fn column_type(kind: &str, options: Option<&Value>) -> String {
    match kind {
        "string" => match option(options, "size") {
            Some(Value::Word(size)) => format!("VARCHAR ({size})"),
            _ => "VARCHAR (255)".to_owned(),
        },
        "time" | "datetime" => "timestamp".to_owned(),
        "blob" => "bytea".to_owned(),
        kind => kind.to_owned(),
    }
}

/// The default of a column after some words, or nothing if it has none; `None` if it is not understood.
fn default(options: Option<&Value>, words: &str) -> Option<String> {
    if let Some(raw) = option(options, "default_raw") {
        return Some(format!("{words}{}", raw.text()?));
    }
    match option(options, "default") {
        None => Some(String::new()),
        Some(Value::Text(text) | Value::Word(text)) => Some(format!("{words}'{}'", text.replace('\'', "''"))),
        Some(_) => None,
    }
}

fn index(table: &str, columns: &Value, options: Option<&Value>) -> Option<String> {
    let columns = columns.texts()?;
    let name = match option(options, "name") {
        Some(name) => name.text()?.to_owned(),
        None => format!("{table}_{}_idx", columns.join("_")),
    };
    let unique = if option(options, "unique").is_some_and(Value::is_true) { "UNIQUE " } else { "" };
    Some(format!("CREATE {unique}INDEX {} ON {} ({});", quoted(&name), quoted(table), columns.join(", ")))
}

/// The definition of a foreign key, and its name.
fn foreign_key(table: &str, column: &str, references: &Value, options: Option<&Value>) -> Option<(String, String)> {
    let Value::Map(entries) = references else { return None };
    let [(referenced, columns)] = entries.as_slice() else { return None };
    let columns = columns.texts()?;
    let mut key = format!("FOREIGN KEY ({column}) REFERENCES {referenced} ({})", columns.join(", "));
    for (name, words) in [("on_update", "ON UPDATE"), ("on_delete", "ON DELETE")] {
        if let Some(action) = option(options, name) {
            write!(key, " {words} {}", action.text()?).ok()?;
        }
    }
    let name = match option(options, "name") {
        Some(name) => name.text()?.to_owned(),
        None => format!("{table}_{referenced}_{}_fk", columns.join("_")),
    };
    Some((key, name))
}

fn option<'v>(options: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    match options {
        Some(Value::Map(entries)) => entries.iter().find(|(key, _)| key == name).map(|(_, value)| value),
        _ => None,
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fizz_becomes_the_sql_that_pop_sends() {
        for (fizz, expected) in [
            (
                "create_table(\"users\") {\n\tt.Column(\"id\", \"uuid\", {primary: true})\n\tt.Column(\"name\", \"string\", {\"null\": true, \"size\": 50})\n\tt.ForeignKey(\"org_id\", {\"orgs\": [\"id\"]}, {\"on_delete\": \"cascade\"})\n\tt.Index(\"name\", {\"unique\": true})\n}",
                "CREATE TABLE \"users\" (\"id\" uuid NOT NULL, \"name\" VARCHAR (50), \"created_at\" timestamp NOT NULL, \
                 \"updated_at\" timestamp NOT NULL, PRIMARY KEY(\"id\"), FOREIGN KEY (org_id) REFERENCES orgs (id) ON DELETE \
                 cascade);\nCREATE UNIQUE INDEX \"users_name_idx\" ON \"users\" (name);\n",
            ),
            (
                "create_table(\"a\", {timestamps: false}) {\n t.Column(\"id\", \"integer\", {primary: true})\n}",
                "CREATE TABLE \"a\" (\"id\" SERIAL NOT NULL, PRIMARY KEY(\"id\"));\n\n",
            ),
            (
                "add_column(\"a\", \"b\", \"bool\", {\"default\": false})",
                "ALTER TABLE \"a\" ADD COLUMN \"b\" bool NOT NULL DEFAULT 'false';\n",
            ),
            (
                "change_column(\"a\", \"b\", \"text\", {null: true})",
                "ALTER TABLE \"a\" ALTER COLUMN \"b\" TYPE text, ALTER COLUMN \"b\" DROP NOT NULL;\n",
            ),
            (
                "add_index(\"a\", [\"b\", \"c\"], {})drop_index(\"a\", \"a_d_idx\")",
                "CREATE INDEX \"a_b_c_idx\" ON \"a\" (b, c);\nDROP INDEX \"a_d_idx\";\n",
            ),
            (
                "add_foreign_key(\"a\", \"b_id\", {\"b\": [\"id\"]}, {})",
                "ALTER TABLE a ADD CONSTRAINT a_b_id_fk FOREIGN KEY (b_id) REFERENCES b (id);\n",
            ),
            (
                "sql(\"UPDATE a\n SET b = \\\"c\\\"\")\n// note\nsql(`SELECT 1;`)",
                "UPDATE a\n SET b = \"c\";\nSELECT 1;\n",
            ),
            ("rename_table(\"a\", \"b\")", "ALTER TABLE \"a\" RENAME TO \"b\";\n"),
            ("", ""),
        ] {
            assert_eq!(to_sql(fizz).as_deref(), Some(expected), "{fizz}");
        }
    }

    #[test]
    fn what_is_not_understood_is_no_sql() {
        for fizz in
            ["exec(\"./run.sh\")", "add_column(\"a\")", "<%= if (true) { %>", "sql(\"SELECT 1", "drop_table(name)"]
        {
            assert_eq!(to_sql(fizz), None, "{fizz}");
        }
    }

    #[test]
    fn names_say_the_direction() {
        assert!(is_up("1_a.up.fizz") && is_up("20180103_create.fizz"));
        assert!(!is_up("1_a.down.fizz") && !is_up("a.fizz") && !is_up("1_a.up.sql"));
    }
}
