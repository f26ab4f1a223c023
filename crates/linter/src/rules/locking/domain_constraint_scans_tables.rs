//! ALTER DOMAIN that checks every table with a column of the domain.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::text::enumerate;
use pgvet_model::catalog::TypeKind;
use pgvet_model::effect::{Scan, ScanCause};
use pgvet_syntax::ast::{AlterDomain, AlterDomainAction, Ast, ConstraintKind};
use smol_str::SmolStr;

declare_rule! {
    /// `ALTER DOMAIN` that adds or validates a constraint on a domain that is the type of table columns.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL reads all rows of every table that has a column of the domain, one table after the other. Each table
    /// stays locked in SHARE mode until the transaction ends: nobody can insert, update or delete. For a CHECK,
    /// `NOT VALID` avoids the scan. However, up to PostgreSQL 18, a later `VALIDATE CONSTRAINT` on the domain takes the
    /// same lock. On a table, `VALIDATE CONSTRAINT` takes a weaker lock.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER DOMAIN email ADD CONSTRAINT email_has_at CHECK (VALUE LIKE '%@%');
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER DOMAIN email ADD CONSTRAINT email_has_at CHECK (VALUE LIKE '%@%') NOT VALID;
    /// ```
    ///
    /// New values are checked from then on. To check existing values without blocking writes, add the CHECK to each
    /// table as `NOT VALID`, with the column instead of `VALUE`, and validate it in a later transaction.
    ///
    /// ## When it is not reported
    ///
    /// - domains that no column of a table uses, as far as the migrations show
    /// - tables that the same transaction created, or that the same migration created and left empty
    "domain-constraint-scans-tables", Locking, Warning,
    {
        sources: &["squawk/ban-alter-domain-with-add-constraint"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    if let Ast::AlterDomain(statement) = context.ast
        && checks_values(&statement.action)
        && !is_known(context, statement)
    {
        let message = format!(
            "this reads every table with a column of domain `{}`, and blocks all writes to these tables until the \
             transaction ends",
            statement.name
        );
        reporter.report(statement.name.range(), message).help(help(context)).emit();
        return;
    }
    let scans = context.effects.scans.iter();
    let scans: Vec<&Scan> = scans
        .filter(|scan| matches!(scan.cause, ScanCause::Domain { .. }) && scan.relation.visibility.is_exposed())
        .filter(|scan| scan.lock.blocks_writes())
        .collect();
    let Some(first) = scans.first() else { return };
    let tables = enumerate(scans.iter().map(|scan| scan.relation.name.as_str()));
    let them = if scans.len() == 1 { "the table" } else { "these tables" };
    let message = format!(
        "this reads all rows of {tables}, and blocks all writes to {them} until the transaction \
                           ends"
    );
    let mut finding = reporter.report(first.range, message).help(help(context));
    for scan in scans {
        finding = finding.relation(&scan.relation);
    }
    finding.emit();
}

/// Whether existing values are checked.
fn checks_values(action: &AlterDomainAction) -> bool {
    match action {
        AlterDomainAction::SetNotNull | AlterDomainAction::ValidateConstraint { .. } => true,
        AlterDomainAction::AddConstraint(constraint) => !constraint.not_valid,
        _ => false,
    }
}

/// Whether a statement of the history creates the domain.
fn is_known(context: &RuleContext<'_>, statement: &AlterDomain) -> bool {
    let schemas = context.session.settings.schemas_of(&statement.name);
    let is_domain = |schema: &SmolStr| {
        let oid = context.before.type_named(schema, &statement.name.name.text)?;
        Some(matches!(context.before.get_type(oid)?.kind, TypeKind::Domain(_)))
    };
    schemas.iter().any(|schema| is_domain(schema) == Some(true))
}

fn help(context: &RuleContext<'_>) -> String {
    let tables = "o check existing rows without blocking writes, add the same CHECK to each table as NOT VALID, with the \
                  column name instead of VALUE, and validate that constraint in a later transaction";
    let Ast::AlterDomain(statement) = context.ast else { return format!("t{tables}") };
    match &statement.action {
        AlterDomainAction::AddConstraint(constraint) if matches!(constraint.kind, ConstraintKind::Check(_)) => format!(
            "add the constraint as NOT VALID, so that PostgreSQL checks only new values and reads no table:\n    \
             ALTER DOMAIN {} ADD {} NOT VALID;\nt{tables}",
            context.text(statement.name.range()),
            context.text(constraint.range)
        ),
        AlterDomainAction::ValidateConstraint { .. } => {
            format!("leave the domain's constraint NOT VALID, because it checks new values anyway. T{tables}")
        }
        _ => "instead of NOT NULL on the domain, add CHECK (... IS NOT NULL) to each table as NOT VALID, and validate \
              that constraint in a later transaction"
            .to_owned(),
    }
}
