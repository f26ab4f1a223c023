//! Types as PostgreSQL's `format_type` writes them.

use super::{Analyzer, typmod};
use crate::builtin;
use crate::catalog::SqlType;
use pgvet_syntax::lexer::quote_identifier;

impl Analyzer<'_> {
    /// PostgreSQL's `format_type`, without the schema if the name is found without it; `???` for unknown types.
    pub fn format_type(&self, sql_type: SqlType) -> String {
        self.known_type(sql_type).unwrap_or_else(|| "???".to_owned())
    }

    /// The same, but `None` for unknown types.
    pub fn known_type(&self, sql_type: SqlType) -> Option<String> {
        let Some(facts) = self.facts(sql_type.oid) else { return self.plain_name(sql_type) };
        match facts.element {
            // oidvector and int2vector are arrays with names of their own.
            Some(element) if facts.array.is_none() => {
                let element = self.known_type(SqlType { oid: element, typmod: sql_type.typmod })?;
                Some(format!("{element}[]"))
            }
            _ => typmod::format(sql_type.oid.0, sql_type.typmod).or_else(|| self.plain_name(sql_type)),
        }
    }

    /// The modifiers of a type of the database, in parentheses; nothing without modifiers.
    fn own_modifiers(&self, sql_type: SqlType) -> String {
        let Some(definition) = self.schema.type_by_oid(sql_type.oid) else { return String::new() };
        let modifiers = usize::try_from(sql_type.typmod).ok().and_then(|place| definition.modifiers.get(place));
        modifiers.map(|modifiers| format!("({modifiers})")).unwrap_or_default()
    }

    fn plain_name(&self, sql_type: SqlType) -> Option<String> {
        if let Some(row) = builtin::type_by_oid(sql_type.oid.0) {
            return Some(if row.schema == "pg_catalog" {
                row.name.to_owned()
            } else {
                format!("{}.{}", row.schema, row.name)
            });
        }
        let definition = self.schema.type_by_oid(sql_type.oid)?;
        let visible = self.schema.type_named(None, &definition.name) == Some(sql_type.oid);
        let name = quote_identifier(&definition.name);
        let name = if visible { name } else { format!("{}.{name}", quote_identifier(&definition.schema)) };
        Some(name + &self.own_modifiers(sql_type))
    }
}
