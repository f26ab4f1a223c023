//! Whether deployed code is known to run a function.

use super::application::Setting;
use pgvet_model::application::KnownTransaction;
use pgvet_model::catalog::{Oid, PUBLIC};
use pgvet_model::production::calls_per_hour;
use pgvet_model::routine::CallerKind;
use rustc_hash::FxHashSet;

impl Setting<'_> {
    /// Whether something shows that deployed code calls a function: configuration, a trigger, a policy, a default, a view,
    /// a query of the project, a role with a privilege on this function in particular, or another such function.
    pub(super) fn is_known_to_run(&self, function: Oid) -> bool {
        let (mut seen, mut open) = (FxHashSet::from_iter([function]), vec![function]);
        while let Some(next) = open.pop() {
            if self.is_started(next) {
                return true;
            }
            for site in self.routines.callers_of(next) {
                match &site.kind {
                    CallerKind::Function(caller) => {
                        if seen.insert(caller.oid) {
                            open.push(caller.oid);
                        }
                    }
                    CallerKind::Policy(..) | CallerKind::Default(..) | CallerKind::View(_) => return true,
                }
            }
        }
        false
    }

    /// Whether something other than code in the database shows that.
    fn is_started(&self, oid: Oid) -> bool {
        let Some(function) = self.catalog.get_function(oid) else { return false };
        let is_granted = || {
            let mut given = self.catalog.privileges(oid).filter(|given| given.grantee != PUBLIC);
            given.any(|given| self.catalog.is_execute_granted(function, &given.grantee))
        };
        let is_queried = || {
            let mut statements = self.application.transactions.iter().flat_map(KnownTransaction::with_words);
            statements.any(|(_, words)| words.all.may_name(&function.name))
        };
        calls_per_hour(self.functions, &function.schema, &function.name).is_some()
            || !self.routines.triggers_of(oid).is_empty()
            || is_granted()
            || is_queried()
    }
}
