//! Functions of `PostGIS` that add and drop columns of geometries.
//!
//! Source: `PostGIS` 3.5, `postgis/postgis.sql.in`, `AddGeometryColumn`, `DropGeometryColumn` and `DropGeometryTable`.

use crate::effect::UnknownReason;
use crate::execute::executed::InFile;
use crate::execute::routine::Value;
use crate::execute::{Executor, Run};
use pgvet_syntax::ast::FunctionCall;
use pgvet_syntax::lexer::quote_identifier;

/// Whether a call means such a function.
pub(super) fn is_geometry_function(call: &FunctionCall) -> bool {
    matches!(call.name.as_str(), "addgeometrycolumn" | "dropgeometrycolumn" | "dropgeometrytable")
}

impl Executor<'_> {
    /// Runs what such a function executes.
    pub(super) fn run_geometry_function(&mut self, call: &FunctionCall) -> Run {
        let values: Vec<Option<Value>> = call.arguments.iter().map(|argument| self.value(&argument.value)).collect();
        let Some(text) = statements(call, &values) else {
            let function = format!("{}()", call.name);
            self.skip_code(UnknownReason::TextFunction { function }, call.name_range, true);
            return Ok(());
        };
        self.run_text(Some(Value::Text(text)), call.name_range, InFile::At(call.name_range), false)
    }
}

/// The statements of a call; `None` if its arguments are not known.
fn statements(call: &FunctionCall, values: &[Option<Value>]) -> Option<String> {
    let text = |value: &Option<Value>| value.as_ref().and_then(Value::as_text).map(str::to_owned);
    let texts: Vec<Option<String>> = values.iter().map(text).collect();
    // The first number is the SRID. It may be negative, which is no constant.
    let is_number = |value: &Option<String>| value.as_ref().is_none_or(|text| text.parse::<i64>().is_ok());
    let named = match call.name.as_str() {
        "addgeometrycolumn" => texts.iter().position(is_number)?,
        _ => texts.len(),
    };
    let names: Vec<&str> = texts[..named].iter().map(Option::as_deref).collect::<Option<_>>()?;
    let table = |names: &[&str]| match names {
        [table] | ["", table] => Some(quote_identifier(table)),
        // A database may come before.
        [.., schema, table] => Some(format!("{}.{}", quote_identifier(schema), quote_identifier(table))),
        [] => None,
    };
    if call.name == "dropgeometrytable" {
        return Some(format!("DROP TABLE {}", table(&names)?));
    }
    let (column, before) = names.split_last()?;
    let (table, quoted) = (table(before)?, quote_identifier(column));
    if call.name == "dropgeometrycolumn" {
        return Some(format!("ALTER TABLE {table} DROP COLUMN {quoted}"));
    }
    let [srid, kind, dimensions, modified @ ..] = &texts[named..] else { return None };
    let srid = srid.as_deref().unwrap_or("0");
    let (kind, dimensions) = (kind.as_deref()?.to_ascii_uppercase(), dimensions.as_deref()?);
    if modified.first().is_none_or(|modified| modified.as_deref() != Some("false")) {
        let suffix = match dimensions {
            "3" if !kind.ends_with(['Z', 'M']) => "Z",
            "4" if !kind.ends_with("ZM") => "ZM",
            _ => "",
        };
        return Some(format!("ALTER TABLE {table} ADD COLUMN {quoted} geometry({kind}{suffix}, {srid})"));
    }
    let check = |name: &str, condition: String| {
        let name = format!("enforce_{name}_{column}");
        format!("; ALTER TABLE {table} ADD CONSTRAINT {} CHECK ({condition})", quote_identifier(&name))
    };
    let mut all = format!("ALTER TABLE {table} ADD COLUMN {quoted} geometry");
    all += &check("srid", format!("st_srid({quoted}) = {srid}"));
    all += &check("dims", format!("st_ndims({quoted}) = {dimensions}"));
    if kind != "GEOMETRY" {
        all += &check("geotype", format!("geometrytype({quoted}) = '{kind}' OR {quoted} IS NULL"));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::{check, check_failure, check_locks};

    const HISTORY: &str = "CREATE SCHEMA s; CREATE TABLE s.t(id int); CREATE TABLE t(id int);";

    #[test]
    fn columns_of_geometries_are_known() {
        for (call, table) in [
            ("AddGeometryColumn('t', 'at', 4326, 'POINT', 2)", "t"),
            ("AddGeometryColumn('', 't', 'at', 4326, 'POINT', 2)", "t"),
            ("public.AddGeometryColumn('s', 't', 'at', -1, 'POINT', 3, true)", "s.t"),
            ("AddGeometryColumn('database', 's', 't', 'at', 4326, 'POINT', 2)", "s.t"),
        ] {
            let history = format!("{HISTORY} SELECT {call};");
            check_failure(&history, &format!("ALTER TABLE {table} ADD COLUMN at int"), "42701");
            check_failure(&history, &format!("ALTER TABLE {table} DROP COLUMN at"), "");
            check_failure(&history, &format!("SELECT {}; ALTER TABLE {table} ADD COLUMN at int", drop_of(call)), "");
            check_locks(HISTORY, &format!("SELECT {call}"), &["t AccessExclusive"]);
        }
        check_failure(HISTORY, "SELECT DropGeometryTable('s', 't'); ALTER TABLE s.t ADD COLUMN a int", "42P01");
    }

    /// `DropGeometryColumn` with the names of an `AddGeometryColumn`.
    fn drop_of(call: &str) -> String {
        let names = &call[call.find('(').unwrap() + 1..call.find("'at'").unwrap() + 4];
        format!("DropGeometryColumn({names})")
    }

    #[test]
    fn constraints_take_the_place_of_a_type_modifier() {
        let call = "SELECT AddGeometryColumn('t', 'at', 4326, 'POINT', 2, false)";
        check(HISTORY, call, &["lock public.t AccessExclusive", "scan public.t"]);
        check_failure(&format!("{HISTORY} {call};"), "ALTER TABLE t DROP CONSTRAINT enforce_geotype_at", "");
        check_failure(&format!("{HISTORY} {call};"), "ALTER TABLE t DROP CONSTRAINT enforce_other_at", "42704");
    }
}
