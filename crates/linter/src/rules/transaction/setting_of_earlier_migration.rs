//! Migrations whose meaning depends on a setting of an earlier one.

use crate::cause::Cause;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use pgvet_model::effect::Effects;
use pgvet_model::routine::Trial;
use pgvet_model::session::SettingValue;
use smol_str::SmolStr;
use std::collections::BTreeSet;

declare_rule! {
    /// A statement whose effect depends on a `search_path` or role that an earlier migration set for the session.
    ///
    /// ## Why it matters
    ///
    /// The migration can have different effects on different databases. Some migration tools run all pending migrations
    /// in one session, and a `SET` lasts until the session ends. On a new database, the migration that changes the
    /// setting and this one run in the same session.
    ///
    /// On a database where the earlier migration has already been applied, this one runs in a new session, with the
    /// default setting. Names without a schema then refer to different objects, and new objects belong to a different
    /// role.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- set: one-session
    /// -- migration:
    /// CREATE SCHEMA app;
    /// SET search_path = app;
    /// -- migration:
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- set: one-session
    /// -- migration:
    /// CREATE SCHEMA app;
    /// SET search_path = app;
    /// -- migration:
    /// CREATE TABLE app.orders (id bigint PRIMARY KEY);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - tools that use a separate session for each migration, or reset the setting before each migration
    /// - statements that have the same effect with the default setting
    /// - `SET LOCAL`, which ends with its transaction
    ///
    /// ## Incidents
    ///
    /// - [flyway #1108](https://github.com/flyway/flyway/issues/1108): a migration changed the schema of the session,
    ///   and the next one created its table there, but only if both ran together
    /// - [golang-migrate #37](https://github.com/golang-migrate/migrate/issues/37): after a migration had changed the
    ///   schema of the session, the tool no longer found its own table
    ///
    /// ## Other linters
    ///
    /// No other known linter follows settings from one migration to the next.
    "setting-of-earlier-migration", Transaction, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let earlier = |name: &str| {
        let setting = context.session.settings.get(name);
        setting.filter(|setting| setting.place.file != context.file).cloned()
    };
    if let Some(setting) = earlier("search_path")
        && means_others(context)
    {
        report(context, reporter, "search_path", &setting, "names without a schema can refer to other objects here");
    } else if let Some(setting) = earlier("role")
        && !context.effects.creates.is_empty()
    {
        report(context, reporter, "role", &setting, "another role owns the new object");
    }
}

/// Whether the statement does something else with the `search_path` of a new session.
fn means_others(context: &RuleContext<'_>) -> bool {
    // The statements of code are judged one by one.
    if names(context.whole) != names(context.effects) {
        return false;
    }
    let mut settings = context.session.settings.clone();
    settings.reset("search_path");
    let trial = Trial::of_code(context.before, &settings.search_path(), context.target.version());
    names(&trial.run_in_block(context.ast)) != names(context.effects)
}

/// The relations that a statement makes and locks.
fn names(effects: &Effects) -> BTreeSet<(&SmolStr, &SmolStr)> {
    let locked = effects.locks.iter().map(|lock| &lock.relation);
    locked.chain(&effects.creates).map(|relation| (&relation.schema, &relation.name)).collect()
}

fn report(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, name: &str, setting: &SettingValue, then: &str) {
    let file = context.migrations.get(setting.place.file as usize).map_or("", |migration| &migration.file.path);
    let message = format!(
        "`{file}` sets `{name}` only for its own session: if that migration was applied in an earlier run, {then}"
    );
    let help = match name {
        "search_path" => "write the schema before each name, or also set search_path in this migration",
        _ => "also set the role in this migration",
    };
    let finding = reporter.report(context.statement.range, message).caused_by(Cause::Message);
    finding.label_in(setting.place.file, setting.place.range, format!("{name} is set here")).help(help).emit();
}
