//! VALIDATE CONSTRAINT that reads the table under a lock which another command of the same ALTER TABLE takes.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::{Advice, one_line};
use crate::rules::statement::altered::{Altered, by_range, subject};
use crate::rules::text::sql_name;
use pgvet_model::effect::{RelationName, Scan, ScanCause};
use pgvet_model::execute::command_lock_level;
use pgvet_syntax::ast::{AlterTableAction, AlterTableCommand, ConstraintKind, LockMode};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `VALIDATE CONSTRAINT` in the same `ALTER TABLE` as a subcommand that needs a stronger lock.
    ///
    /// ## Why it matters
    ///
    /// VALIDATE then reads the whole table while writes, and often also reads, are blocked. ALTER TABLE takes the
    /// strongest lock that any of its subcommands needs, and holds the lock until the transaction ends. ADD COLUMN, and
    /// the ADD CONSTRAINT of the same constraint, need a stronger lock than VALIDATE. On its own, VALIDATE takes a lock
    /// that allows reads and writes.
    ///
    /// If you merge several ALTER TABLE statements into one, as some linters advise, VALIDATE may run under a stronger
    /// lock than it needs.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders
    ///     ADD CONSTRAINT orders_total_check CHECK (total >= 0) NOT VALID,
    ///     VALIDATE CONSTRAINT orders_total_check;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE orders ADD CONSTRAINT orders_total_check CHECK (total >= 0) NOT VALID;
    /// ALTER TABLE orders VALIDATE CONSTRAINT orders_total_check;
    /// ```
    ///
    /// Run each statement in a transaction of its own.
    ///
    /// ## When it is not reported
    ///
    /// - a statement whose other subcommands need no stronger lock than VALIDATE, such as SET STATISTICS, storage
    ///   parameters or another VALIDATE
    /// - a constraint that is already valid
    /// - two statements in one transaction, which `validate-in-same-transaction` reports
    /// - a table that the same transaction created, or that the same migration created and left empty
    "validate-with-stronger-subcommand", Locking, Error,
    {
        sources: &["squawk/constraint-missing-not-valid", "pgls/requireSeparateConstraintValidation"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(altered) = Altered::of(context).filter(|_| context.effects.fails.is_none()) else { return };
    let scans = context.effects.scans.iter().filter(|scan| {
        matches!(scan.cause, ScanCause::Validate { .. })
            && scan.lock > LockMode::ShareUpdateExclusive
            && scan.relation.visibility.is_exposed()
    });
    for (range, scans) in by_range(scans, |scan| scan.range) {
        report(context, reporter, altered, range, &scans);
    }
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    altered: Altered<'_>,
    range: TextRange,
    scans: &[&Scan],
) {
    let Some(mode) = scans.iter().map(|scan| scan.lock).max() else { return };
    let tables: Vec<&RelationName> = scans.iter().map(|scan| &scan.relation).collect();
    let subject = subject(Some(altered), &tables);
    let effect = match mode {
        LockMode::AccessExclusive => "nobody can read or write the table",
        _ => "nobody can write to the table",
    };
    let mode_name = mode.sql();
    let message = format!(
        "this VALIDATE reads all of {subject} under {mode_name}, because another subcommand of the ALTER TABLE needs that \
         lock: {effect} until the transaction ends"
    );
    let mut finding = reporter.report(range, message).relation(altered.table);
    let is_stronger = |command: &&AlterTableCommand| command_lock_level(&command.action, context.target) == mode;
    let stronger = altered.statement.commands.iter().find(is_stronger);
    if let Some(command) = stronger {
        finding = finding.label(command.keyword, format!("takes {mode_name}"));
    }
    let table = sql_name(context, altered.table);
    let validate = altered.command(range).and_then(|command| one_line(context, command.range));
    let help: String = match validate {
        Some(validate) => {
            let after =
                if adds_constraint(altered) { ", after the transaction that adds it has committed" } else { "" };
            let sentence =
                format!("validate the constraint with a separate ALTER TABLE in its own transaction{after}:");
            Advice::new(sentence).sql(format!("ALTER TABLE {table} {validate}")).into()
        }
        None => "validate the constraint with a separate ALTER TABLE in its own transaction".to_owned(),
    };
    finding.help(help).emit();
}

fn adds_constraint(altered: Altered<'_>) -> bool {
    altered.statement.commands.iter().any(|command| match &command.action {
        AlterTableAction::AddConstraint(constraint) => {
            constraint.not_valid && !matches!(constraint.kind, ConstraintKind::Exclude(_))
        }
        _ => false,
    })
}
