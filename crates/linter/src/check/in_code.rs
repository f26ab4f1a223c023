//! Statements of the file and of the code that they run, as rules see them.

use super::Checker;
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::effect::{CalledFunction, Evidence};
use crate::guard::run_rule;
use crate::replay::StatementVisit;
use crate::report::{self, Reporter};
use crate::rule::{Earlier, InCode, Rule, RuleContext};
use crate::source::TextRange;
use std::sync::Arc;

impl Checker<'_> {
    /// What rules may look at: a statement of the file, or the one of these that its code ran.
    pub(super) fn context<'a>(&'a self, visit: &StatementVisit<'a>, inner: Option<usize>) -> RuleContext<'a> {
        let executed = &visit.code.executed;
        let of_file = RuleContext {
            file: visit.file,
            migration: visit.migration,
            statement: visit.statement,
            ast: visit.ast,
            effects: visit.code.own.as_ref().filter(|_| visit.evidence == Evidence::Predicted).unwrap_or(visit.effects),
            whole: visit.effects,
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
            code: None,
        };
        let Some(at) = inner else { return of_file };
        let run = &executed[at];
        let code = InCode {
            text: &run.code,
            outer: visit.statement.range,
            in_transaction: visit.session.in_transaction(),
            guarded: run.guarded,
            end: visit.after,
            earlier: &executed[..at],
            later: &executed[at + 1..],
        };
        RuleContext {
            statement: &run.statement,
            ast: run.statement.ast().unwrap_or(visit.ast),
            effects: &run.effects,
            whole: &run.effects,
            before: &run.before,
            after: &run.after,
            session: &run.session,
            code: Some(code),
            ..of_file
        }
    }

    /// Shows each statement that code has run to the rules, as if it stood in the file.
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
            }
            found
        });
        found.collect()
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
            let reporter = Reporter::at(self.settings, rule, *severity, context.file, statement, version, &mut found);
            let mut reporter = if context.code.is_some() { reporter.in_code() } else { reporter };
            run_rule(rule, &mut reporter, |reporter| function(context, reporter));
        }
        found
    }

    /// What the statement has run is earlier for those after it.
    pub(super) fn note_done(&mut self, visit: &StatementVisit<'_>) {
        let outer = visit.statement.range.start;
        if self.done.last().is_some_and(|last| last.outer == outer) {
            return;
        }
        let inner = visit.code.executed.iter().map(|run| (&run.statement, Some(&run.code), &run.effects));
        for (statement, code, effects) in inner.chain([(visit.statement, None, visit.effects)]) {
            let Ok(ast) = &statement.parsed else { continue };
            let range = code.map_or(statement.range, |code| code.shown.range(statement.range));
            let by_trigger = effects.unknown.iter().filter(|unknown| unknown.by_trigger);
            let opaque_triggers = by_trigger.map(|unknown| unknown.reason.clone()).collect();
            self.done.push(Earlier { outer, ast: Arc::clone(ast), range, code: code.cloned(), opaque_triggers });
        }
    }
}

/// What called functions do is found at the call: shows where those that lead to it are defined.
pub(super) fn label_calls(
    found: &mut Diagnostic,
    visit: &StatementVisit<'_>,
    leads_to_it: impl Fn(&CalledFunction) -> bool,
) {
    for call in visit.effects.calls.iter().filter(|call| call.range == found.range && leads_to_it(call)) {
        let Some((file, range)) = call.defined_at else { continue };
        let label = Label { file, range, message: format!("in {}, which this runs", call.name) };
        if !found.labels.contains(&label) {
            found.labels.push(label);
        }
    }
}
