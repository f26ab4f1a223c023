//! Whether a function runs often, and what says so.

use super::{CallSite, CallerKind, Routines, TriggerUse};
use crate::catalog::{Oid, RelationKind};
use crate::place::Place;
use crate::production::calls_per_hour;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// Maximum number of reported steps of a chain of callers.
const MAX_CHAIN: usize = 6;

/// Minimum number of calls an hour, if configuration gives a rate, that is often.
const OFTEN: u64 = 60;

/// Why a function runs often; empty if nothing says that it does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hotness {
    /// The reasons, the plainest first; what makes a caller hot follows the call.
    pub reasons: Vec<Reason>,
    /// Calls per hour, of itself or of the caller that is called most.
    pub calls_per_hour: Option<u64>,
}

/// One thing that says that a function runs often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub kind: ReasonKind,
    /// Where that stands; `None` for what configuration says.
    pub place: Option<Place>,
    /// `this trigger runs f() for every row that is inserted into t`.
    pub text: String,
}

/// A reason why a function runs often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonKind {
    Configured,
    RowTrigger,
    StatementTrigger,
    /// A loop calls it.
    Loop,
    /// A query calls it for each row.
    Query,
    /// A function that runs often calls it; the reasons of that follow.
    Caller,
    /// A policy, a default or a view calls it.
    Relation,
}

impl Hotness {
    pub fn is_hot(&self) -> bool {
        !self.reasons.is_empty()
    }

    /// The row trigger that runs it, by way of other functions or not.
    pub fn row_trigger(&self) -> Option<&Reason> {
        self.reasons.iter().find(|reason| reason.kind == ReasonKind::RowTrigger)
    }

    /// The configured rate, for a sentence of the message: `called 40,000 times an hour`.
    pub fn configured(&self) -> Option<String> {
        self.calls_per_hour.map(|calls| format!("called {} times an hour", grouped(calls)))
    }
}

/// A number with commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

impl Routines<'_> {
    /// Whether a function runs often.
    pub fn hotness_of(&self, oid: Oid) -> Rc<Hotness> {
        let known = |found: &RefCell<FxHashMap<Oid, Rc<Hotness>>>| found.borrow().get(&oid).map(Rc::clone);
        if let Some(known) = known(&self.hot).or_else(|| known(&self.seen)) {
            return known;
        }
        if self.open.borrow().contains(&oid) {
            return Rc::default();
        }
        self.open.borrow_mut().push(oid);
        let found = Rc::new(self.find_hotness(oid));
        self.open.borrow_mut().pop();
        let is_outermost = self.open.borrow().is_empty();
        // What was found within a recursion lacks the callers that were open. Those are examined anyway, so each
        // function is examined once: there may be very many ways from one to another.
        if is_outermost || found.is_hot() {
            self.hot.borrow_mut().insert(oid, Rc::clone(&found));
        } else {
            self.seen.borrow_mut().insert(oid, Rc::clone(&found));
        }
        if is_outermost {
            self.seen.borrow_mut().clear();
        }
        found
    }

    fn find_hotness(&self, oid: Oid) -> Hotness {
        let mut found = Hotness::default();
        let Some(function) = self.catalog.get_function(oid) else { return found };
        let name = function.display_name();
        if let Some(calls) = calls_per_hour(self.functions, &function.schema, &function.name) {
            found.calls_per_hour = Some(calls);
            if calls < OFTEN {
                return found;
            }
            let text = format!("configuration says that {name} is called {} times an hour", grouped(calls));
            found.reasons.push(Reason { kind: ReasonKind::Configured, place: None, text });
        }
        let mut triggers: Vec<&TriggerUse> = self.triggers_of(oid).iter().filter(|using| using.is_frequent()).collect();
        triggers.sort_by_key(|using| !using.trigger.for_each_row);
        found.reasons.extend(triggers.into_iter().take(1).map(|using| using.reason(&name)));
        for site in self.callers_of(oid) {
            if found.reasons.len() >= MAX_CHAIN {
                break;
            }
            self.add_caller(oid, &name, site, &mut found);
        }
        found
    }

    fn add_caller(&self, oid: Oid, name: &str, site: &CallSite, found: &mut Hotness) {
        match &site.kind {
            CallerKind::Function(caller) => {
                let caller_name = caller.display_name();
                if let (Some(in_loop), Some(place)) = (site.in_loop, site.place) {
                    let place = Place { range: in_loop, ..place };
                    let text = format!("this loop in {caller_name} calls {name} in every round");
                    found.reasons.push(Reason { kind: ReasonKind::Loop, place: Some(place), text });
                } else if site.for_each_row {
                    let text = format!("this query in {caller_name} calls {name} for each row");
                    found.reasons.push(Reason { kind: ReasonKind::Query, place: site.place, text });
                }
                let hot = if caller.oid == oid { Rc::default() } else { self.hotness_of(caller.oid) };
                if hot.is_hot() && found.reasons.len() < MAX_CHAIN {
                    if site.in_loop.is_none() && !site.for_each_row {
                        let text = format!("{caller_name} calls {name} here, and is called often itself");
                        found.reasons.push(Reason { kind: ReasonKind::Caller, place: site.place, text });
                    }
                    found.calls_per_hour = found.calls_per_hour.max(hot.calls_per_hour);
                    let room = MAX_CHAIN.saturating_sub(found.reasons.len());
                    found.reasons.extend(hot.reasons.iter().take(room).cloned());
                }
            }
            CallerKind::Policy(policy, table) => {
                let text = format!("the policy {policy} of {} calls {name} for rows that queries touch", table.name);
                found.reasons.push(Reason { kind: ReasonKind::Relation, place: site.place, text });
            }
            CallerKind::Default(column, table) => {
                let text = format!("the default of {}.{column} calls {name} for each new row", table.name);
                found.reasons.push(Reason { kind: ReasonKind::Relation, place: site.place, text });
            }
            // A materialized view runs it only when it is refreshed.
            CallerKind::View(view) if view.kind == RelationKind::View => {
                let text = format!("the view {} calls {name} in every query of it", view.name);
                found.reasons.push(Reason { kind: ReasonKind::Relation, place: site.place, text });
            }
            CallerKind::View(_) => {}
        }
    }
}

impl TriggerUse {
    /// Whether it fires in normal use. TRUNCATE is not frequent.
    fn is_frequent(&self) -> bool {
        let events = self.trigger.events;
        let enabled = !matches!(self.trigger.firing, pgvet_syntax::ast::Firing::Disable);
        enabled && (events.insert || events.update || events.delete)
    }

    fn reason(&self, name: &str) -> Reason {
        let events = self.trigger.events;
        let words = [(events.insert, "INSERT"), (events.update, "UPDATE"), (events.delete, "DELETE")];
        let words: Vec<&str> = words.into_iter().filter(|(fires, _)| *fires).map(|(_, word)| word).collect();
        let often = if self.trigger.for_each_row { "every row of" } else { "every" };
        let text = format!("this trigger runs {name} for {often} {} on `{}`", words.join(" or "), self.table.name);
        let (file, range) = self.trigger.defined_at;
        let kind = if self.trigger.for_each_row { ReasonKind::RowTrigger } else { ReasonKind::StatementTrigger };
        Reason { kind, place: Some(Place { file, range }), text }
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_grouped() {
        let shown = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
    }
}
