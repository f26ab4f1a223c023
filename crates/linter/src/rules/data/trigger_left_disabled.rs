//! Triggers, rules and policies that a migration switches off and not on again.

use crate::ast::{
    AlterTableAction, Ast, Firing, Literal, ObjectKind, ObjectName, RowSecurity, Set, Setting, TriggerChoice,
};
use crate::catalog::Relation;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::lasting::Lasting;
use crate::source::TextRange;
use crate::statement::Statement;
use smol_str::SmolStr;

declare_rule! {
    /// A migration switches off a trigger, a rule, row-level security or all triggers of the session, and leaves it off.
    ///
    /// ## Why it matters
    ///
    /// Mostly it was switched off for a moment, for a large change of rows. What the trigger was there for does not
    /// happen from then on, and nobody gets an error: audit logs have gaps, counters are wrong, and where all triggers are
    /// off, foreign keys are not checked. Without row-level security everybody sees all rows.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders DISABLE TRIGGER audit;
    /// UPDATE orders SET total = 0 WHERE total IS NULL;
    /// ALTER TABLE orders DISABLE TRIGGER audit;
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
    /// Where a later statement of the migration switches it on, or drops the trigger or the table; for tables of the same
    /// migration; for `SET LOCAL`, which ends with the transaction; for what a `ROLLBACK` of the migration undoes. Where the
    /// migration also drops policies of the table, and no policy of it is known to be left, row-level security is given up
    /// on purpose.
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
    table: Option<&'a ObjectName>,
    off: Off,
    range: TextRange,
    times: usize,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let mut left: Vec<Left<'_>> = Vec::new();
    let lasting = Lasting::of(context.migration).statements;
    for run in lasting.iter().flat_map(|statement| context.ran_by(statement)) {
        match &*run.ast {
            Ast::AlterTable(alter) => {
                for command in &alter.commands {
                    switch(&mut left, &alter.name, &command.action, run.in_file(command.keyword));
                }
            }
            Ast::Set(set) => set_role(&mut left, set, run.in_file(set.range)),
            Ast::Discard(crate::ast::Discard::All) => left.retain(|left| left.off != Off::SessionTriggers),
            _ => {}
        }
    }
    let path = context.session.settings.search_path();
    for Left { table, off, range, times } in left {
        let relation =
            table.and_then(|name| context.after.find_relation(name, &path)).map(|oid| context.after.relation(oid));
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
        if is_gone || off == Off::RowSecurity && is_given_up() {
            continue;
        }
        let name = table.map_or("", |table| table.name.text.as_str());
        let what = match &off {
            Off::Trigger(trigger) => format!("the trigger `{trigger}` of `{name}` stays off"),
            Off::AllTriggers => format!("all triggers of `{name}` stay off, those that check foreign keys included"),
            Off::UserTriggers => format!("all triggers of `{name}` stay off"),
            Off::Rule(rule) => format!("the rule `{rule}` of `{name}` stays off"),
            Off::RowSecurity => format!("row-level security of `{name}` stays off"),
            Off::SessionTriggers => "triggers and the checks of foreign keys stay off for this session".to_owned(),
        };
        let twice = if times > 1 { ": it is switched off twice" } else { "" };
        let help = match off {
            Off::SessionTriggers => {
                "use SET LOCAL in a transaction, or at the end:\n    RESET session_replication_role;"
            }
            _ if times > 1 => "was ENABLE meant here?",
            _ => "write ENABLE at the end of the migration; drop it where it is not needed any more",
        };
        reporter.report(range, format!("{what}{twice}")).help(help).emit();
    }
}

/// Does the migration drop a policy of the table?
fn drops_policy(context: &MigrationContext<'_>, lasting: &[&Statement], table: &str) -> bool {
    let mut ran = lasting.iter().flat_map(|statement| context.ran_by(statement));
    ran.any(|run| match &*run.ast {
        Ast::Drop(drop) if drop.kind == ObjectKind::Policy => {
            drop.objects.iter().any(|object| object.on.as_ref().is_some_and(|on| on.name.text == table))
        }
        _ => false,
    })
}

/// Is there still something that can be off?
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

/// What ENABLE or DISABLE in ALTER TABLE changes.
fn switch<'a>(left: &mut Vec<Left<'a>>, table: &'a ObjectName, action: &AlterTableAction, range: TextRange) {
    let (is_off, off) = match action {
        AlterTableAction::Trigger { firing, which } => {
            let off = match which {
                TriggerChoice::Named(name) => Off::Trigger(name.text.clone()),
                TriggerChoice::All => Off::AllTriggers,
                TriggerChoice::User => Off::UserTriggers,
            };
            (*firing == Firing::Disable, off)
        }
        AlterTableAction::Rule { firing, name } => (*firing == Firing::Disable, Off::Rule(name.text.clone())),
        AlterTableAction::RowSecurity(RowSecurity::Disable) => (true, Off::RowSecurity),
        AlterTableAction::RowSecurity(RowSecurity::Enable) => (false, Off::RowSecurity),
        _ => return,
    };
    let same_table = |other: &Left<'_>| other.table.is_some_and(|other| other.name.text == table.name.text);
    if is_off {
        add(left, Some(table), off, range, &same_table);
        return;
    }
    left.retain(|other| {
        let switched_on = match (&off, &other.off) {
            (Off::AllTriggers, Off::Trigger(_) | Off::AllTriggers | Off::UserTriggers)
            | (Off::UserTriggers, Off::Trigger(_) | Off::UserTriggers) => true,
            (off, other) => off == other,
        };
        !(switched_on && same_table(other))
    });
}

fn add<'a>(
    left: &mut Vec<Left<'a>>,
    table: Option<&'a ObjectName>,
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

fn set_role(left: &mut Vec<Left<'_>>, set: &Set, range: TextRange) {
    let name = match &set.setting {
        Setting::Value { name, .. } | Setting::Default { name } => name.as_str(),
        Setting::ResetAll => "session_replication_role",
        Setting::Transaction => return,
    };
    if name != "session_replication_role" || set.local {
        return;
    }
    let is_replica = matches!(&set.setting, Setting::Value { values, .. }
        if matches!(values.first(), Some(Literal::String(value)) if value.eq_ignore_ascii_case("replica")));
    if is_replica {
        add(left, None, Off::SessionTriggers, range, &|other| other.table.is_none());
    } else {
        left.retain(|other| other.off != Off::SessionTriggers);
    }
}
