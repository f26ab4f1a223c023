//! Triggers, rules and policies that a migration switches off and not on again.

use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::deployment::lasting::Lasting;
use pgvet_model::catalog::Relation;
use pgvet_model::effect::{ChangeAction, ChangedObject, ObjectChange, RelationName};
use pgvet_syntax::ast::{Ast, Firing, Literal, ObjectKind, Setting, TriggerChoice};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;
use smol_str::SmolStr;

declare_rule! {
    /// A migration that disables a trigger, a rule or row-level security, or all triggers for its session
    /// (`session_replication_role`), and does not enable them again.
    ///
    /// ## Why it matters
    ///
    /// Triggers are often disabled for a large change of rows and then forgotten. From then on the trigger does not
    /// run, and nobody gets an error: audit logs have gaps, and counters are wrong. If all triggers are disabled,
    /// foreign keys are not checked. Without row-level security, every role with SELECT sees all rows.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders DISABLE TRIGGER audit;
    /// UPDATE orders SET total = 0 WHERE total IS NULL;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE orders DISABLE TRIGGER audit;
    /// UPDATE orders SET total = 0 WHERE total IS NULL;
    /// ALTER TABLE orders ENABLE TRIGGER audit;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a trigger that a later statement of the migration enables again or drops, alone or with its table
    /// - tables that the same migration creates
    /// - `SET LOCAL`, which ends with the transaction
    /// - a statement that a `ROLLBACK` of the migration undoes
    /// - row-level security of a table whose policies the migration drops, so that no known policy is left: pgvet
    ///   assumes that row-level security is then disabled on purpose
    "trigger-left-disabled", Data, Warning,
    {}
    migration = check,
}

/// What is off.
#[derive(Debug, PartialEq, Eq)]
enum Off {
    Trigger(SmolStr),
    AllTriggers,
    UserTriggers,
    Rule(SmolStr),
    RowSecurity,
    /// `session_replication_role = replica`.
    SessionTriggers,
}

/// Something that is off, by which words, and how often it was switched off.
struct Left<'a> {
    /// `None` for the session.
    table: Option<&'a RelationName>,
    off: Off,
    range: TextRange,
    times: usize,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let mut left: Vec<Left<'_>> = Vec::new();
    let lasting = Lasting::of(context.migration).statements;
    for run in lasting.iter().flat_map(|statement| context.ran_by(statement)) {
        for change in &run.changes {
            switch(&mut left, change, run.in_file(change.range));
        }
    }
    for Left { table, off, range, times } in left {
        let relation = table.and_then(|table| context.after.get_relation(table.oid));
        let is_gone = match (table, relation) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(_), Some(relation)) => {
                relation.birth.is_of(context.deployment()) || (relation.known && !is_there(relation, &off))
            }
        };
        let is_given_up = || {
            relation
                .is_some_and(|relation| relation.policies.is_empty() && drops_policy(context, &lasting, &relation.name))
        };
        let was_off = || {
            let before = table.and_then(|table| context.before.get_relation(table.oid));
            before.is_some_and(|relation| relation.known && !relation.row_security)
        };
        if is_gone || off == Off::RowSecurity && (was_off() || is_given_up()) {
            continue;
        }
        let name = table.map_or("", |table| table.name.as_str());
        let what = match &off {
            Off::Trigger(trigger) => format!("the trigger `{trigger}` on `{name}` stays disabled"),
            Off::AllTriggers => {
                format!("all triggers on `{name}` stay disabled, including those that check foreign keys")
            }
            Off::UserTriggers => format!("all triggers on `{name}` stay disabled"),
            Off::Rule(rule) => format!("the rule `{rule}` on `{name}` stays disabled"),
            Off::RowSecurity => format!("row-level security on `{name}` stays disabled"),
            Off::SessionTriggers => {
                "triggers and foreign key checks stay disabled for the rest of the session".to_owned()
            }
        };
        let is_twice = times > 1 && off != Off::SessionTriggers;
        let twice =
            if is_twice { ": the migration runs DISABLE more than once, but never ENABLE afterwards" } else { "" };
        let help = match off {
            Off::SessionTriggers => {
                "use SET LOCAL in a transaction, or reset the setting at the end:\n    RESET session_replication_role;"
            }
            _ if times > 1 => "did you mean ENABLE here?",
            Off::RowSecurity => {
                "enable row-level security again at the end of the migration; if the table no longer needs row-level \
                 security, drop its policies"
            }
            Off::AllTriggers | Off::UserTriggers => "enable the triggers again at the end of the migration",
            Off::Trigger(_) | Off::Rule(_) => {
                "enable the trigger or rule again at the end of the migration, or drop it if it is not needed any more"
            }
        };
        reporter.report(range, format!("{what}{twice}")).help(help).emit();
    }
}

/// Whether the migration drops a policy of the table. IF EXISTS has no effect on a table that no statement has shown.
fn drops_policy(context: &MigrationContext<'_>, lasting: &[&Statement], table: &str) -> bool {
    let mut ran = lasting.iter().flat_map(|statement| context.ran_by(statement));
    ran.any(|run| match &*run.ast {
        Ast::Drop(drop) if drop.kind == ObjectKind::Policy => {
            drop.objects.iter().any(|object| object.on.as_ref().is_some_and(|on| on.name.text == table))
        }
        _ => false,
    })
}

/// Whether the trigger or rule still exists.
fn is_there(relation: &Relation, off: &Off) -> bool {
    match off {
        Off::Trigger(name) => {
            relation.triggers.iter().any(|trigger| trigger.name == *name && trigger.firing == Firing::Disable)
        }
        Off::UserTriggers => relation.triggers.iter().any(|trigger| trigger.firing == Firing::Disable),
        Off::Rule(name) => relation.rules.contains(name),
        Off::RowSecurity => !relation.row_security,
        Off::AllTriggers | Off::SessionTriggers => true,
    }
}

/// What is switched off or on.
fn switch<'a>(left: &mut Vec<Left<'a>>, change: &'a ObjectChange, range: TextRange) {
    let off = match &change.object {
        ChangedObject::Trigger { which: TriggerChoice::Named(name), .. } => Off::Trigger(name.text.clone()),
        ChangedObject::Trigger { which: TriggerChoice::All, .. } => Off::AllTriggers,
        ChangedObject::Trigger { which: TriggerChoice::User, .. } => Off::UserTriggers,
        ChangedObject::Rule { name, .. } => Off::Rule(name.clone()),
        ChangedObject::RowSecurity { .. } => Off::RowSecurity,
        ChangedObject::Setting { setting, local } => return set_role(left, setting, *local, range),
        _ => return,
    };
    let table = change.object.table();
    let same_table = |other: &Left<'_>| other.table.map(|other| other.oid) == table.map(|table| table.oid);
    match change.action {
        ChangeAction::Disable => add(left, table, off, range, &same_table),
        ChangeAction::Enable => left.retain(|other| {
            let switched_on = match (&off, &other.off) {
                (Off::AllTriggers, Off::Trigger(_) | Off::AllTriggers | Off::UserTriggers)
                | (Off::UserTriggers, Off::Trigger(_) | Off::UserTriggers) => true,
                (off, other) => off == other,
            };
            !(switched_on && same_table(other))
        }),
        _ => {}
    }
}

fn add<'a>(
    left: &mut Vec<Left<'a>>,
    table: Option<&'a RelationName>,
    off: Off,
    range: TextRange,
    same_table: &dyn Fn(&Left<'_>) -> bool,
) {
    match left.iter_mut().find(|other| other.off == off && same_table(other)) {
        Some(other) => {
            other.times += 1;
            other.range = range;
        }
        None => left.push(Left { table, off, range, times: 1 }),
    }
}

fn set_role(left: &mut Vec<Left<'_>>, setting: &Setting, local: bool, range: TextRange) {
    let name = match setting {
        Setting::Value { name, .. } | Setting::Default { name } => name.as_str(),
        Setting::ResetAll => "session_replication_role",
        Setting::Transaction => return,
    };
    if name != "session_replication_role" || local {
        return;
    }
    let is_replica = matches!(setting, Setting::Value { values, .. }
        if matches!(values.first(), Some(Literal::String(value)) if value.eq_ignore_ascii_case("replica")));
    if is_replica {
        add(left, None, Off::SessionTriggers, range, &|other| other.table.is_none());
    } else {
        left.retain(|other| other.off != Off::SessionTriggers);
    }
}
