//! Names and lists in messages and in the SQL of help.

use crate::rule::{RoutineContext, RuleContext};
use crate::settings::Settings;
use pgvet_model::catalog::{Catalog, Function, SqlType};
use pgvet_model::effect::RelationName;
use pgvet_model::execute::ask_about_types;
use pgvet_model::version::Target;
pub(crate) use pgvet_syntax::lexer::quote_identifier as identifier;
use smol_str::SmolStr;

/// A relation as SQL, qualified where the search path does not lead to its schema.
pub(crate) fn sql_name(context: &RuleContext<'_>, relation: &RelationName) -> String {
    let name = identifier(&relation.name);
    if relation.schema == pgvet_model::catalog::TEMPORARY_SCHEMA
        || context.session.settings.search_path().contains(&relation.schema)
    {
        name
    } else {
        format!("{}.{name}", identifier(&relation.schema))
    }
}

/// A name in a schema as SQL, for statements that run with the default search path.
pub(crate) fn qualified(schema: &str, name: &str) -> String {
    match schema {
        "public" => identifier(name),
        schema => format!("{}.{}", identifier(schema), identifier(name)),
    }
}

/// `` `a`, `b` and `c` ``; of many only the first and how many more.
pub(crate) fn enumerate<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 5;
    let mut quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if quoted.len() > SHOWN + 1 {
        let more = quoted.len() - SHOWN;
        quoted.truncate(SHOWN);
        quoted.push(format!("{more} more"));
    }
    join(&quoted)
}

/// `a, b and c`.
pub(crate) fn join(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `a, b or c`.
pub(crate) fn either(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The function as ALTER ROUTINE and DROP ROUTINE find it, whatever others of its name there are.
pub(crate) fn signature(context: &RoutineContext<'_>, function: &Function) -> String {
    signature_of(context.catalog, context.settings, function)
}

/// The same for a function of a catalog.
pub(crate) fn signature_of(catalog: &Catalog, settings: &Settings, function: &Function) -> String {
    let name = qualified(&function.schema, &function.name);
    if !function.input_types().all(SqlType::is_known) {
        return name;
    }
    let target = Target::new(settings.versions.to);
    let path = vec![SmolStr::new_static("public")].into();
    let types: Vec<String> = ask_about_types(catalog, path, &target, |types| {
        function.input_types().map(|sql_type| types.format_type(SqlType::new(sql_type.oid))).collect()
    });
    format!("{name}({})", types.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        for (name, expected) in [
            ("orders", "orders"),
            ("_2", "_2"),
            ("Orders", "\"Orders\""),
            ("2nd", "\"2nd\""),
            ("user", "\"user\""),
            ("order", "\"order\""),
            ("a\"b", "\"a\"\"b\""),
            ("", "\"\""),
        ] {
            assert_eq!(identifier(name), expected);
        }
    }

    #[test]
    fn names_outside_of_public_have_their_schema() {
        assert_eq!(qualified("public", "Orders"), "\"Orders\"");
        assert_eq!(qualified("app.old", "orders"), "\"app.old\".orders");
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(enumerate(["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(enumerate(["a"; 7]), "`a`, `a`, `a`, `a`, `a` and 2 more");
        assert_eq!(enumerate([]), "");
    }
}
