//! SET, RESET and DISCARD.

use super::{Executor, Run};
use crate::catalog::search_path_value;
use crate::effect::{ChangeAction, ChangedObject, LockCause};
use crate::session::SettingValue;
use pgvet_syntax::ast::{Discard, DropBehavior, Name, Set, Setting};
use smol_str::SmolStr;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/utils/misc/guc_funcs.c`, `ExecSetVariableStmt`.
    pub(super) fn set(&mut self, set: &Set) -> Run {
        let object = ChangedObject::Setting { setting: set.setting.clone(), local: set.local };
        self.change_object(object, ChangeAction::Alter, set.range);
        // SET LOCAL outside a transaction is a warning and nothing else.
        let effective = !set.local || self.is_in_transaction();
        let settings = &mut self.session.settings;
        match &set.setting {
            Setting::Value { name, values } if effective => {
                let values: Vec<SmolStr> = values.iter().map(super::view::literal_text).collect();
                let value =
                    if name == "search_path" { search_path_value(&values) } else { SmolStr::new(values.join(", ")) };
                let value = SettingValue { value, place: self.place };
                if set.local {
                    settings.set_local(name.clone(), value);
                } else {
                    settings.set(name.clone(), value);
                }
            }
            Setting::Default { name } if effective => settings.reset(name),
            Setting::ResetAll => settings.reset_all(),
            Setting::Value { .. } | Setting::Default { .. } | Setting::Transaction => {}
        }
        Ok(())
    }

    /// Whether SET LOCAL holds beyond its own statement: in a transaction block, and in code, which runs in the transaction
    /// of the statement that calls it.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.session.in_transaction() || self.recorder.is_in_code()
    }

    /// Forgets a prepared statement. One that is not known may have been prepared before the migration.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/prepare.c`, `DeallocateQuery`.
    pub(super) fn deallocate(&mut self, name: Option<&Name>) -> Run {
        match name {
            Some(name) => drop(self.session.prepared.remove(&name.text)),
            None => self.session.prepared.clear(),
        }
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/discard.c`, `DiscardCommand`.
    pub(super) fn discard(&mut self, discard: Discard) -> Run {
        if discard == Discard::All {
            self.prevent_in_block("DISCARD ALL", self.place.range)?;
            let object = ChangedObject::Setting { setting: Setting::ResetAll, local: false };
            self.change_object(object, ChangeAction::Alter, self.place.range);
            self.session.settings.reset_all();
            self.session.prepared.clear();
        }
        if matches!(discard, Discard::All | Discard::Temporary) {
            let temporary: Vec<_> = (self.catalog.relations_in_order().into_iter())
                .filter(|relation| relation.is_temporary())
                .map(|relation| relation.oid)
                .collect();
            for oid in temporary {
                if self.catalog.get_relation(oid).is_some() {
                    self.drop_relation(oid, DropBehavior::Cascade, LockCause::Target, self.place.range)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check_failure;

    #[test]
    fn search_path_decides_where_names_are_found() {
        let history = "CREATE SCHEMA s; CREATE TABLE s.t(a int);";
        check_failure(history, "SET search_path TO s; CREATE TABLE t(a int)", "42P07");
        check_failure(history, "SET search_path TO s; RESET ALL; CREATE TABLE t(a int)", "");
        check_failure(history, "SET LOCAL search_path TO s; CREATE TABLE t(a int)", "");
        for code in ["SET LOCAL search_path TO s;", "PERFORM set_config('search_path', 's', true);"] {
            check_failure(history, &format!("DO $$ BEGIN {code} CREATE TABLE t(a int); END $$"), "42P07");
            check_failure(history, &format!("DO $$ BEGIN {code} COMMIT; CREATE TABLE t(a int); END $$"), "");
            check_failure(history, &format!("DO $$ BEGIN {code} END $$; CREATE TABLE t(a int)"), "");
        }
        check_failure(history, "SELECT set_config('search_path', 's', false); CREATE TABLE t(a int)", "42P07");
    }
}
