//! Settings of a session that statements run under.

use crate::recording::Parameter;
use crate::value::constant;
use pgvet_syntax::ast::{Ast, ExprKind, Literal, Query, QueryBody};
use pgvet_syntax::lexer::quote_identifier;
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// The settings that differ from those of the server, each as the statement that makes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSettings {
    own: BTreeMap<SmolStr, String>,
    at_start: BTreeMap<SmolStr, String>,
}

impl SessionSettings {
    /// The settings that a client asks for when it connects, as parameters of their own or in `options`.
    pub(crate) fn at_start(parameters: &[(String, String)]) -> Self {
        let mut found = BTreeMap::new();
        let mut set = |name: &str, value: &str| {
            let name = name.replace('-', "_").to_ascii_lowercase();
            if !is_of_client(&name) && !matches!(&*name, "replication" | "options") && !name.starts_with("_pq_") {
                found.insert(SmolStr::from(&name), statement(&name, value));
            }
        };
        for (name, value) in parameters {
            match name.as_str() {
                "options" => options(value).iter().for_each(|(name, value)| set(name, value)),
                name => set(name, value),
            }
        }
        Self { own: found.clone(), at_start: found }
    }

    pub(crate) fn set(&mut self, name: SmolStr, sql: Option<String>) {
        match sql.or_else(|| self.at_start.get(&name).cloned()) {
            Some(sql) => drop(self.own.insert(name, sql)),
            None => drop(self.own.remove(&name)),
        }
    }

    pub(crate) fn reset(&mut self) {
        self.own.clone_from(&self.at_start);
    }

    /// The statements that lead from other settings to these.
    pub(crate) fn after(&self, before: &Self) -> Vec<String> {
        let gone = before.own.keys().filter(|name| !self.own.contains_key(*name)).map(|name| format!("RESET {name}"));
        let new = self.own.iter().filter(|(name, sql)| before.own.get(*name) != Some(sql)).map(|(_, sql)| sql.clone());
        gone.chain(new).collect()
    }
}

/// Settings that drivers and tools make for themselves. They change neither locks nor what is found under a name.
const CLIENT_SETTINGS: &[&str] = &[
    "application_name",
    "bytea_output",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "extra_float_digits",
    "intervalstyle",
    "jit",
    "log_min_messages",
    "log_statement",
    "standard_conforming_strings",
    "timezone",
    "transaction_isolation",
    "xmloption",
];

/// Whether a setting changes nothing that a migration does.
pub(crate) fn is_of_client(name: &str) -> bool {
    CLIENT_SETTINGS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// `SELECT set_config('search_path', 'app', false)`: the name of the setting, and its value if it is known and lasts for
/// the session.
pub(crate) fn session_setting(query: &Query, parameters: &[Parameter]) -> Option<(SmolStr, Option<String>)> {
    let QueryBody::Select(select) = &query.body else { return None };
    let [target] = &*select.targets else { return None };
    let ExprKind::Call(call) = &target.value.kind else { return None };
    let [name, value, is_local] = &*call.arguments else { return None };
    let ExprKind::Literal(Literal::String(name)) = &name.value.kind else { return None };
    let lasts = matches!(is_local.value.kind, ExprKind::Literal(Literal::Boolean(false)));
    let value = constant(&value.value, parameters).filter(|_| lasts);
    (select.from.is_empty() && call.name == "set_config").then(|| (name.to_ascii_lowercase().into(), value))
}

/// Whether a query sets a parameter of PostgreSQL itself. A name with a dot belongs to an extension or to the project,
/// which can keep secrets in it.
pub(crate) fn is_own_setting(ast: &Ast) -> bool {
    let Ast::Select(query) = ast else { return false };
    session_setting(query, &[]).is_some_and(|(name, _)| !name.contains('.'))
}

/// The statement that makes a setting.
pub(crate) fn statement(name: &str, value: &str) -> String {
    let value = match name {
        "search_path" if !value.is_empty() => {
            let schemas = value.split(',').map(|schema| schema.trim().trim_matches('"'));
            schemas.map(quote_identifier).collect::<Vec<_>>().join(", ")
        }
        _ => format!("'{}'", value.replace('\'', "''")),
    };
    format!("SET {} = {value}", quote_identifier(name))
}

/// `-c name=value`, `-cname=value` and `--name=value`; a backslash keeps the next character as it is.
///
/// Source: PostgreSQL 18, `src/backend/utils/init/postinit.c`, `pg_split_opts`.
fn options(text: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut characters = text.chars();
    while let Some(one) = characters.next() {
        let last = words.last_mut().expect("there is always a word");
        match one {
            '\\' => last.extend(characters.next()),
            one if one.is_whitespace() => words.push(String::new()),
            one => last.push(one),
        }
    }
    let mut found = Vec::new();
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let assignment = match word.as_str() {
            "-c" => words.next(),
            word => word.strip_prefix("--").or_else(|| word.strip_prefix("-c")).map(str::to_owned),
        };
        let pair = assignment.as_deref().and_then(|text| text.split_once('='));
        found.extend(pair.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn settings_of_the_connection_are_statements() {
        let start = parameters(&[
            ("options", r"-c lock_timeout=5s --statement-timeout=1min -csearch_path=app,\ public"),
            ("client_encoding", "UTF8"),
            ("application_name", "x"),
        ]);
        let settings = SessionSettings::at_start(&start);
        assert_eq!(
            settings.after(&SessionSettings::default()),
            ["SET lock_timeout = '5s'", "SET search_path = app, public", "SET statement_timeout = '1min'"]
        );
    }

    #[test]
    fn a_reset_restores_the_settings_of_the_connection() {
        let mut settings = SessionSettings::at_start(&parameters(&[("lock_timeout", "5s")]));
        let start = settings.clone();
        settings.set("lock_timeout".into(), Some("SET lock_timeout = 0".to_owned()));
        settings.set("role".into(), Some("SET ROLE app".to_owned()));
        assert_eq!(settings.after(&start), ["SET lock_timeout = 0", "SET ROLE app"]);
        let changed = settings.clone();
        settings.set("lock_timeout".into(), None);
        settings.set("role".into(), None);
        assert_eq!(settings, start);
        assert_eq!(settings.after(&changed), ["RESET role", "SET lock_timeout = '5s'"]);
    }
}
