//! Conditions on the environment: settings that no statement makes, and the database or role that the code meets.
//!
//! The schema does not say whether the code behind them runs. The usual question,
//! `current_setting('app.seed', true) = 'on'`, has an answer where nothing sets the setting: it is NULL then.

use super::value::Value;
use crate::catalog::Catalog;
use crate::execute::Executor;
use crate::session::Session;
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, string_literal};
use smol_str::SmolStr;
use std::cell::{Cell, RefCell};

/// Functions whose result depends on where the code runs.
const OF_ENVIRONMENT: &[&str] =
    &["current_setting", "current_database", "current_user", "session_user", "pg_has_role", "pg_is_in_recovery"];

/// Settings that no statement makes, while an expression is evaluated.
#[derive(Debug, Default)]
pub(crate) struct UnsetSettings {
    /// Treats them as NULL instead of unknown.
    assumed: Cell<bool>,
    /// The last one that mattered.
    asked: RefCell<Option<SmolStr>>,
}

impl UnsetSettings {
    /// What `unset` stands for: the value if the setting is not set.
    pub(super) fn value(&self, setting: &SmolStr, unset: Value) -> Option<Value> {
        self.asked.replace(Some(setting.clone()));
        self.assumed.get().then_some(unset)
    }
}

/// Whether a call asks for the version of the server, for which the model knows the majors.
fn is_version(call: &FunctionCall) -> bool {
    let name = call.arguments.first().and_then(|argument| string_literal(&argument.value));
    name.is_some_and(|name| name.starts_with("server_version"))
}

/// What an answer depends on that is not the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Environment {
    /// A setting that no statement makes, and the answer where it is not set.
    Setting {
        name: SmolStr,
        unset: Option<bool>,
    },
    Other,
}

/// The state before code that the environment decides on.
pub(super) struct Before {
    catalog: Catalog,
    session: Session,
}

impl Executor<'_> {
    /// The value of `current_setting(name, true)`; without the second argument an unset setting is an error.
    pub(super) fn setting_value(&self, call: &FunctionCall, arguments: &[Option<Value>]) -> Option<Value> {
        let name = SmolStr::new(arguments.first()?.as_ref()?.as_text()?.to_ascii_lowercase());
        let settings = &self.session.settings;
        if let Some(set) = settings.get(&name).filter(|_| name.contains('.') && !settings.is_doubtful(&name)) {
            return Some(Value::Text(set.value.to_string()));
        }
        let is_optional = call.arguments.len() == 2 && arguments[1].as_ref()?.truth() == Some(true);
        let is_unset = is_optional && name.contains('.') && settings.get(&name).is_none();
        if is_unset { self.unset_settings.value(&name, Value::Null) } else { None }
    }

    /// The value of an expression that a variable keeps: where a setting decides it, also its value without the setting.
    pub(super) fn kept_value(&self, expression: &Expr) -> Option<Value> {
        let (value, setting) = self.asking(|executor| executor.value(expression));
        let Some(name) = setting.filter(|_| value.is_none()) else {
            let is_of_environment = || self.depends_on_environment(expression).then_some(Value::Environment);
            return value.or_else(is_of_environment);
        };
        let unset = self.without_setting(|executor| executor.value(expression))?;
        Some(Value::Setting { name, unset: Box::new(unset) })
    }

    /// What a condition depends on that the schema does not decide.
    pub(super) fn environment_of(&self, condition: &Expr) -> Option<Environment> {
        let (_, setting) = self.asking(|executor| executor.holds(condition));
        if let Some(name) = setting {
            return Some(Environment::Setting {
                name,
                unset: self.without_setting(|executor| executor.holds(condition)),
            });
        }
        self.depends_on_environment(condition).then_some(Environment::Other)
    }

    fn depends_on_environment(&self, expression: &Expr) -> bool {
        let mut depends = false;
        expression.walk(&mut |part| {
            depends |= match &part.kind {
                ExprKind::Call(call) => OF_ENVIRONMENT.contains(&call.name.as_str()) && !is_version(call),
                ExprKind::SqlValue(name, _) => OF_ENVIRONMENT.contains(&name.as_str()),
                ExprKind::Column(path) => self.variables.get(&path.join(".")) == Some(&Value::Environment),
                _ => false,
            }
        });
        depends
    }

    fn asking<T>(&self, answer: impl FnOnce(&Self) -> Option<T>) -> (Option<T>, Option<SmolStr>) {
        let outer = self.unset_settings.asked.take();
        let answer = answer(self);
        let asked = self.unset_settings.asked.replace(outer);
        (answer, asked)
    }

    fn without_setting<T>(&self, answer: impl FnOnce(&Self) -> Option<T>) -> Option<T> {
        let outer = self.unset_settings.assumed.replace(true);
        let answer = answer(self);
        self.unset_settings.assumed.set(outer);
        answer
    }

    pub(super) fn before_environment(&self) -> Before {
        Before { catalog: self.catalog.clone(), session: self.session.clone() }
    }

    /// After code that the environment decides on: nothing may rely on what it did.
    pub(super) fn doubt_since(&mut self, before: &Before) {
        self.catalog.doubt_changes_since(&before.catalog);
        self.session.settings.doubt_changes_since(&before.session.settings);
    }
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::{check, check_failure, effects_on};

    const HISTORY: &str = "CREATE TABLE t(a int, b int); CREATE TABLE u(a int);";

    /// What an `ALTER TABLE t ALTER a SET NOT NULL` scans after the block.
    #[track_caller]
    fn scans_after(block: &str, expected: bool) {
        let effects = effects_on(17, HISTORY, &format!("DO $$ {block} $$; ALTER TABLE t ALTER a SET NOT NULL"));
        assert_eq!(effects.fails, None, "{block}");
        assert_eq!(!effects.scans.is_empty(), expected, "{block}");
    }

    #[test]
    fn nothing_relies_on_code_that_a_setting_decides_on() {
        let change = "ALTER TABLE t ALTER a SET NOT NULL;";
        scans_after(&format!("BEGIN {change} END"), false);
        for condition in [
            "current_setting('app.strict', true) = 'on'",
            "coalesce(current_setting('app.strict', true), 'off') = 'on'",
            "current_setting('app.strict', true)::boolean",
            "current_setting('app.strict', true) IS DISTINCT FROM 'off'",
            "current_setting('app.strict') = 'on'",
            "current_database() = 'production'",
            "current_user = 'deploy'",
        ] {
            scans_after(&format!("BEGIN IF {condition} THEN {change} END IF; END"), true);
            scans_after(&format!("DECLARE x boolean := {condition}; BEGIN IF x THEN {change} END IF; END"), true);
            scans_after(&format!("BEGIN IF NOT ({condition}) THEN RETURN; END IF; {change} END"), true);
        }
        // The schema decides: what the block makes is there afterwards in any case.
        let by_schema =
            "EXISTS (SELECT 1 FROM information_schema.columns WHERE table_name = 't' AND column_name = 'a')";
        scans_after(&format!("BEGIN IF {by_schema} THEN {change} END IF; END"), false);
    }

    #[test]
    fn a_setting_that_a_statement_makes_decides() {
        let block = "IF current_setting('app.strict', true) = 'on' THEN ALTER TABLE t ALTER a SET NOT NULL; END IF;";
        for (set, scans) in [("on", false), ("off", true)] {
            let statements =
                format!("SET app.strict = '{set}'; DO $$ BEGIN {block} END $$; ALTER TABLE t ALTER a SET NOT NULL");
            assert_eq!(!effects_on(17, HISTORY, &statements).scans.is_empty(), scans, "{set}");
        }
        check(HISTORY, &format!("SET app.strict = 'off'; DO $$ BEGIN {block} END $$"), &[]);
    }

    #[test]
    fn a_table_that_may_be_gone_or_there_is_refused_by_nothing() {
        for code in ["DROP TABLE u", "CREATE TABLE v(a int)", "ALTER TABLE u DROP COLUMN a, ADD COLUMN c int"] {
            let block = format!("DO $$ BEGIN IF current_setting('app.x', true) = 'on' THEN {code}; END IF; END $$;");
            for next in [
                "DROP TABLE u",
                "CREATE TABLE u(a int)",
                "ALTER TABLE u DROP COLUMN a",
                "CREATE TABLE v(a int)",
                "ALTER TABLE u ADD COLUMN c int",
            ] {
                let is_same = code.contains(" v(") == next.contains(" v(") && next != "DROP TABLE u";
                if is_same && !(next == "CREATE TABLE u(a int)" && code.starts_with("ALTER")) {
                    check_failure(HISTORY, &format!("{block} {next}"), "");
                }
            }
        }
    }
}
