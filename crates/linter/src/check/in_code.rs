//! Statements of the file and of the code that they run, as rules see them.

use super::Checker;
use crate::assumption::Assumption;
use crate::diagnostic::{Diagnostic, Label};
use crate::guard::run_rule;
use crate::report::{self, Reporter};
use crate::rule::{Earlier, InCode, Rule, RuleContext};
use crate::rules;
use crate::severity::Severity;
use pgvet_model::effect::{CalledFunction, Evidence};
use pgvet_model::execute::Executed;
use pgvet_model::replay::StatementVisit;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::source::TextRange;
use std::sync::Arc;

impl Checker<'_> {
    /// The context of rules: a statement of the file, or one that its code ran.
    pub(super) fn context<'a>(&'a self, visit: &StatementVisit<'a>, inner: Option<usize>) -> RuleContext<'a> {
        let executed = &visit.code.executed;
        let of_file = RuleContext {
            file: visit.file,
            migration: visit.migration,
            statement: visit.statement,
            ast: visit.ast,
            effects: visit.code.own.as_ref().filter(|_| visit.evidence == Evidence::Predicted).unwrap_or(visit.effects),
            whole: visit.effects,
            inner_statements: executed.len(),
            evidence: visit.evidence,
            before: visit.before,
            after: visit.after,
            session: visit.session,
            target: visit.target,
            settings: self.settings,
            migrations: self.migrations,
            reader: self.reader,
            endings: self.endings,
            earlier: &self.done,
            earlier_moves: &self.done_moves,
            code: None,
        };
        let Some(at) = inner else { return of_file };
        in_code(of_file, &executed[at], false, (&executed[..at], &executed[at + 1..]))
    }

    /// Shows what a handler caught, and makes nothing of, to the rules about that.
    fn found_in_caught(&self, visit: &StatementVisit<'_>, rules: &[(&'static Rule, Severity)]) -> Vec<Diagnostic> {
        let about_it =
            [&rules::compatibility::if_not_exists_masks_difference::RULE, &rules::engine::statement_will_fail::RULE];
        let rules: Vec<_> = rules
            .iter()
            .filter(|(rule, _)| about_it.iter().any(|other| std::ptr::eq(*other, *rule)))
            .copied()
            .collect();
        let caught = visit.code.caught.iter().filter(|_| visit.evidence == Evidence::Predicted);
        let found = caught.flat_map(|run| {
            let context = in_code(self.context(visit, None), run, true, (&[], &[]));
            let mut found = self.found_by_rules(&context, visit.statement.range, &rules);
            found.iter_mut().for_each(|diagnostic| report::place_in_file(diagnostic, visit.file, &run.code));
            found
        });
        found.collect()
    }

    /// Shows each statement that code has run to the rules, as if it were in the file.
    pub(super) fn found_in_code(
        &self,
        visit: &StatementVisit<'_>,
        rules: &[(&'static Rule, Severity)],
    ) -> Vec<Diagnostic> {
        let is_predicted = visit.evidence == Evidence::Predicted;
        let executed = visit.code.executed.iter().filter(|_| is_predicted).enumerate();
        let found = executed.flat_map(|(at, run)| {
            let mut found = self.found_by_rules(&self.context(visit, Some(at)), visit.statement.range, rules);
            for diagnostic in &mut found {
                report::place_in_file(diagnostic, visit.file, &run.code);
                label_calls(diagnostic, visit, |call| run.code.running.contains(&call.oid));
                if let Some(setting) = run.needs_setting.clone() {
                    diagnostic.assume(Assumption::SettingMade { setting });
                }
            }
            found
        });
        found.chain(self.found_in_caught(visit, rules)).collect()
    }

    pub(super) fn found_by_rules(
        &self,
        context: &RuleContext<'_>,
        statement: TextRange,
        rules: &[(&'static Rule, Severity)],
    ) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (rule, severity) in rules {
            let Some(function) = rule.statement else { continue };
            let version = context.target.version();
            let reporter =
                Reporter::at(self.settings, &rule.meta, *severity, context.file, statement, version, &mut found);
            let mut reporter = if context.code.is_some() { reporter.in_code() } else { reporter };
            run_rule(rule, &mut reporter, |reporter| function(context, reporter));
        }
        found
    }

    /// Records the statements that the statement has run, for those after it.
    pub(super) fn note_done(&mut self, visit: &StatementVisit<'_>) {
        let outer = visit.statement.range.start;
        if self.done.last().is_some_and(|last| last.outer == outer) {
            return;
        }
        let own = visit.code.own.as_ref().unwrap_or(visit.effects);
        let inner = visit.code.executed.iter().map(|run| (&run.statement, Some(&run.code), &run.effects));
        for (statement, code, effects) in inner.chain([(visit.statement, None, own)]) {
            let Ok(ast) = &statement.parsed else { continue };
            let range = code.map_or(statement.range, |code| code.shown.range(statement.range));
            let by_trigger = effects.unknown.iter().filter(|unknown| unknown.by_trigger);
            let opaque_triggers = by_trigger.map(|unknown| unknown.reason.clone()).collect();
            let changes = effects.changes.clone();
            let (code, refused) = (code.cloned(), effects.fails.is_some());
            if matches!(**ast, Ast::Rename(_) | Ast::SetSchema(_)) {
                self.done_moves.push(self.done.len());
            }
            self.done.push(Earlier { outer, ast: Arc::clone(ast), range, code, changes, opaque_triggers, refused });
        }
    }
}

/// Labels findings in called functions, which are reported at the call, with the definitions of the functions that lead
/// to it.
pub(super) fn label_calls(
    found: &mut Diagnostic,
    visit: &StatementVisit<'_>,
    leads_to_it: impl Fn(&CalledFunction) -> bool,
) {
    for call in visit.effects.calls.iter().filter(|call| call.range == found.range && leads_to_it(call)) {
        let Some((file, range)) = call.defined_at else { continue };
        let label = Label { file, range, message: format!("in {}, which this statement runs", call.name) };
        if !found.labels.contains(&label) {
            found.labels.push(label);
        }
    }
}

/// The context of a statement that code ran, between others.
fn in_code<'a>(
    of_file: RuleContext<'a>,
    run: &'a Executed,
    caught: bool,
    (earlier, later): (&'a [Executed], &'a [Executed]),
) -> RuleContext<'a> {
    let code = InCode {
        text: &run.code,
        outer: of_file.statement.range,
        in_transaction: of_file.session.in_transaction(),
        guarded: run.guarded,
        caught,
        end: of_file.after,
        earlier,
        later,
    };
    RuleContext {
        statement: &run.statement,
        ast: run.statement.ast().unwrap_or(of_file.ast),
        effects: &run.effects,
        whole: &run.effects,
        before: &run.before,
        after: &run.after,
        session: &run.session,
        code: Some(code),
        ..of_file
    }
}
