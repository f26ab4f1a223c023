//! Rules that discard or replace writes of deployed code.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use pgvet_model::effect::{ChangeAction, ChangedObject, RelationName, RuleAction, Visibility};
use pgvet_syntax::ast::RuleEvent;
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `CREATE RULE` on an existing table that discards or replaces writes of deployed code.
    ///
    /// ## Why it matters
    ///
    /// With `DO INSTEAD NOTHING` PostgreSQL accepts a write, reports that it changed no row, and discards it. With `DO
    /// INSTEAD` and other statements, PostgreSQL runs those statements instead of the write. With either kind of rule,
    /// `RETURNING` fails unless the rule has a `RETURNING` clause. A rule for `INSERT` that runs other statements, and
    /// any rule for `UPDATE`, makes `INSERT ... ON CONFLICT` on the table fail.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE events (id bigint PRIMARY KEY);
    /// -- migration:
    /// CREATE RULE read_only AS ON INSERT TO events DO INSTEAD NOTHING;
    /// ```
    ///
    /// Use instead:
    ///
    /// Use a trigger that raises an error. Code that still writes then fails, so somebody notices it.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE events (id bigint PRIMARY KEY);
    /// CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    /// BEGIN RAISE EXCEPTION 'events is read-only'; END $$;
    /// -- migration:
    /// SET lock_timeout = '2s';
    /// CREATE TRIGGER read_only BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse();
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - tables that the same migration created
    /// - rules on views, which make it possible to write through the view
    ///
    /// ## Confidence
    ///
    /// For a rule with a condition, and for a rule that still runs the command (`DO ALSO`), the confidence is
    /// `possible`, and the finding is shown only with `--confidence possible`.
    ///
    /// ## Other linters
    ///
    /// No other known linter reports `CREATE RULE`.
    "rule-replaces-writes", Compatibility, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for change in &context.effects.changes {
        let ChangedObject::Rule { table, does: Some(does), .. } = &change.object else { continue };
        let is_meant = change.action == ChangeAction::Create && does.event != RuleEvent::Select;
        if is_meant && table.kind.is_table() && table.visibility == Visibility::Existing {
            report(reporter, table, *does, change.range);
        }
    }
}

fn report(reporter: &mut Reporter<'_>, table: &RelationName, does: RuleAction, range: TextRange) {
    let (name, event) = (&table.name, does.event.sql());
    let rows = if does.conditional { " for rows that meet its condition" } else { "" };
    // Source: PostgreSQL 18, `src/backend/rewrite/rewriteHandler.c`, `RewriteQuery`.
    let refuses_conflicts = match does.event {
        RuleEvent::Insert => !does.nothing,
        RuleEvent::Update => true,
        RuleEvent::Delete | RuleEvent::Select => false,
    };
    let message = match does {
        RuleAction { instead: true, nothing: true, .. } => {
            format!("this rule discards every {event} on `{name}`{rows}, without an error")
        }
        RuleAction { instead: true, .. } => {
            format!("this rule runs other statements instead of every {event} on `{name}`{rows}")
        }
        _ if !refuses_conflicts => return,
        _ => format!("with this rule, `INSERT ... ON CONFLICT` on `{name}` fails"),
    };
    let mut finding = reporter.report(range, message).relation(table);
    if does.conditional || !does.instead {
        finding = finding.assuming(Assumption::UsesRule { table: name.clone() });
    }
    let works = if does.event == RuleEvent::Delete { "RETURNING works" } else { "RETURNING and ON CONFLICT work" };
    finding.help(format!("use a trigger instead: a trigger can refuse or change rows, and {works} with it")).emit();
}
