//! The state of the session in which migrations run: transaction, settings, locks held.

mod held;

pub use held::{Changes, HeldLocks};

use crate::catalog::{Catalog, Oid, RelationKind, SearchPath, search_path};
use crate::effect::{DataChange, DataChangeKind, Lock, LockCause, Rows};
use crate::place::Place;
use crate::runner::SessionScope;
use held::Mark;
use imbl::{OrdMap, OrdSet, Vector};
use pgvet_syntax::ast::{LockMode, ObjectName, Prepare};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::boolean;
use serde::{Deserialize, Serialize};
use smol_str::{SmolStr, ToSmolStr};
use std::sync::Arc;

const SEARCH_PATH: &str = "search_path";

/// The setting that decides whether a backslash in an ordinary string is an ordinary character.
pub const CONFORMING_STRINGS: &str = "standard_conforming_strings";

/// Whether the value of a setting, as it is written, turns it on; `None` if it is no boolean.
pub(crate) fn switch(value: &str) -> Option<bool> {
    boolean(value.trim_matches('\''))
}

/// The session.
#[derive(Debug, Clone, Default)]
pub struct Session {
    pub settings: SettingsInEffect,
    /// The open transaction block, if any.
    pub block: Option<TransactionBlock>,
    /// The statements of PREPARE. No transaction undoes them.
    pub prepared: OrdMap<SmolStr, Arc<Prepare>>,
}

/// Settings (GUCs) by lower-case name. What is absent has the server's default.
#[derive(Debug, Clone)]
pub struct SettingsInEffect {
    session: OrdMap<SmolStr, SettingValue>,
    /// SET LOCAL: gone at the end of the transaction.
    local: OrdMap<SmolStr, SettingValue>,
    /// The value of `search_path`; names are looked up more often than it changes.
    search_path: SearchPath,
    /// `search_path` while no statement sets it.
    initial_path: SearchPath,
    /// `search_path` after RESET, which also undoes what the migration tool has set.
    default_path: SearchPath,
    /// Set by an earlier migration, which may have run in another session.
    doubtful: OrdSet<SmolStr>,
}

/// A value and where it was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingValue {
    /// As written, lists joined with `, `.
    pub value: SmolStr,
    pub place: Place,
}

impl Default for SettingsInEffect {
    fn default() -> Self {
        Self::new(SearchPath::assumed())
    }
}

impl SettingsInEffect {
    fn new(initial_path: SearchPath) -> Self {
        Self {
            session: OrdMap::new(),
            local: OrdMap::new(),
            search_path: initial_path.clone(),
            default_path: initial_path.clone(),
            initial_path,
            doubtful: OrdSet::new(),
        }
    }

    /// Whether `standard_conforming_strings` is on; `None` if its value is not known.
    pub fn conforming_strings(&self) -> Option<bool> {
        self.get(CONFORMING_STRINGS).map_or(Some(true), |setting| switch(&setting.value))
    }

    /// The defaults of a server, which nothing has changed.
    pub fn of_new_server() -> Self {
        Self::new(SearchPath::of_server())
    }

    /// The same before any statement, if the program that runs migrations puts these schemas first in `search_path`.
    #[must_use]
    pub(crate) fn with_first_schemas(&self, first: &[SmolStr]) -> Self {
        let mut settings = self.clone();
        if !first.is_empty() {
            let others = self.default_path.iter().filter(|schema| !first.contains(schema));
            settings.initial_path = first.iter().chain(others).cloned().collect::<Vec<_>>().into();
            settings.search_path = settings.initial_path.clone();
        }
        settings
    }

    pub fn get(&self, name: &str) -> Option<&SettingValue> {
        self.local.get(name).or_else(|| self.session.get(name))
    }

    /// SET.
    pub fn set(&mut self, name: SmolStr, value: SettingValue) {
        self.change(&name.clone(), |settings| {
            settings.local.remove(&name);
            settings.doubtful.remove(&name);
            settings.session.insert(name, value);
        });
    }

    /// SET LOCAL. Outside a transaction it has no effect; the caller knows.
    pub fn set_local(&mut self, name: SmolStr, value: SettingValue) {
        self.change(&name.clone(), |settings| drop(settings.local.insert(name, value)));
    }

    /// RESET.
    pub fn reset(&mut self, name: &str) {
        self.change(name, |settings| {
            if name == SEARCH_PATH {
                settings.initial_path = settings.default_path.clone();
            }
            settings.local.remove(name);
            settings.doubtful.remove(name);
            settings.session.remove(name);
        });
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Self)) {
        change(self);
        if name == SEARCH_PATH {
            self.search_path = match self.get(SEARCH_PATH) {
                None => self.initial_path.clone(),
                Some(setting) => {
                    let mut schemas = search_path(&setting.value);
                    if self.is_doubtful(SEARCH_PATH) {
                        // In a session of its own it would have the default.
                        let others = self.initial_path.iter().filter(|schema| !schemas.contains(schema)).cloned();
                        schemas.extend(others.collect::<Vec<_>>());
                    }
                    schemas.into()
                }
            };
        }
    }

    /// Whether the value was set by an earlier migration that is not known to run in the same session.
    pub fn is_doubtful(&self, name: &str) -> bool {
        self.doubtful.contains(name) && !self.local.contains_key(name)
    }

    /// The values that an earlier migration has left to this one. `certain`: it runs in the same session for sure.
    fn carry(&mut self, left: &Left, certain: bool) {
        for (name, value) in &left.settings {
            if name == SEARCH_PATH && left.scope == SessionScope::RunWithoutSearchPath {
                continue;
            }
            if !certain && !left.steady.contains(name) {
                self.doubtful.insert(name.clone());
            }
            self.change(name, |settings| drop(settings.session.insert(name.clone(), value.clone())));
        }
    }

    /// After code that may not have run: whether what it has set is in effect is not known.
    pub(crate) fn doubt_changes_since(&mut self, before: &Self) {
        let value = |settings: &Self, name: &str| settings.get(name).map(|setting| setting.value.clone());
        let names = self.session.keys().chain(self.local.keys());
        let changed: Vec<SmolStr> = names.filter(|name| value(self, name) != value(before, name)).cloned().collect();
        for name in changed {
            // Of a doubtful setting only one value is kept.
            let set = self.local.remove(&name).or_else(|| self.session.get(&name).cloned());
            let Some(set) = set else { continue };
            self.doubtful.insert(name.clone());
            self.change(&name.clone(), |settings| drop(settings.session.insert(name, set)));
        }
    }

    /// RESET ALL, DISCARD ALL.
    pub fn reset_all(&mut self) {
        *self = Self::new(self.default_path.clone());
    }

    fn end_transaction(&mut self) {
        self.change(SEARCH_PATH, |settings| settings.local = OrdMap::new());
    }

    /// The value of a timeout in milliseconds: `None` when it is not set or 0, which switches it off.
    pub fn timeout(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|setting| milliseconds(&setting.value)).filter(|milliseconds| *milliseconds > 0)
    }

    /// The schemas of `search_path` in order, without `$user`; PostgreSQL's default is `"$user", public`.
    pub fn search_path(&self) -> SearchPath {
        self.search_path.clone()
    }

    /// The schemas in which an object of this name is looked up.
    pub fn schemas_of(&self, name: &ObjectName) -> SearchPath {
        self.schemas(name.schema.as_ref().map(|schema| &schema.text))
    }

    /// The schema itself where one is given, or else the search path.
    pub fn schemas(&self, schema: Option<&SmolStr>) -> SearchPath {
        schema.map_or_else(|| self.search_path(), |schema| vec![schema.clone()].into())
    }

    /// Whether the session's time zone is known to be UTC, or is not set: UTC is the server's default if none is
    /// configured.
    pub fn time_zone_is_utc(&self) -> bool {
        self.get("timezone").is_none_or(|setting| {
            matches!(
                setting.value.to_ascii_lowercase().as_str(),
                "utc" | "gmt" | "etc/utc" | "etc/gmt" | "0" | "zulu" | "z" | "uct"
            )
        })
    }
}

/// Reads PostgreSQL's notation of a time setting: a number of milliseconds, or a number with a unit.
fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim().trim_matches('\'');
    let digits = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let factor = match text[digits..].trim() {
        "" | "ms" => 1.0,
        "us" => 0.001,
        "s" => 1_000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    #[expect(clippy::cast_sign_loss, reason = "digits alone make no negative number")]
    Some((number * factor).round() as u64)
}

/// The session that a migration leaves to the next one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Left {
    pub(crate) settings: OrdMap<SmolStr, SettingValue>,
    /// The settings of migrations that each run runs again: they are in effect in every later migration.
    pub(crate) steady: OrdSet<SmolStr>,
    pub(crate) path: String,
    pub(crate) report: bool,
    pub(crate) release: Option<u32>,
    pub(crate) scope: SessionScope,
    /// The number of the first transaction of the migrations that may be in one with it.
    pub(crate) since: u32,
}

impl Left {
    /// What is in effect in a later run as well.
    pub(crate) fn in_every_run(mut self) -> Option<Self> {
        let of_this_run: Vec<SmolStr> =
            self.settings.keys().filter(|name| !self.steady.contains(*name)).cloned().collect();
        for name in of_this_run {
            self.settings.remove(&name);
        }
        (!self.settings.is_empty()).then_some(self)
    }

    /// The settings with their values that each run makes again.
    pub(crate) fn steady_settings(&self) -> OrdMap<SmolStr, SettingValue> {
        let steady = self.settings.iter().filter(|(name, _)| self.steady.contains(*name));
        steady.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// An open transaction block.
#[derive(Debug, Clone)]
pub struct TransactionBlock {
    /// Opened by BEGIN in the file, not by the program that runs it.
    pub explicit: bool,
    /// The number of the transaction; relations remember in which they were made.
    pub number: u32,
    /// The transactions from this number on may be this one: the program runs all that is pending in one.
    pub may_be_since: Option<u32>,
    pub started: Place,
    pub locks: HeldLocks,
    pub changes: Changes,
    /// What it did that takes longer the larger a table is, in order.
    pub work: Vector<LongWork>,
    savepoints: Vector<Savepoint>,
    before: Snapshot,
}

/// A lock that the transaction holds.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldLock {
    pub relation: Oid,
    /// Schema-qualified.
    pub name: SmolStr,
    pub kind: RelationKind,
    pub mode: LockMode,
    pub cause: LockCause,
    /// See [`Lock::patience`].
    pub patience: Option<u64>,
    /// Whether other sessions could wait for it.
    pub exposed: bool,
    /// See [`RelationName::unseen_part`](crate::effect::RelationName::unseen_part).
    pub unseen_part: Option<SmolStr>,
    pub place: Place,
    /// The part of the statement that requests it.
    pub range: TextRange,
}

impl HeldLock {
    /// See [`Lock::is_nowait`].
    pub fn is_nowait(&self) -> bool {
        self.patience == Some(0)
    }

    /// A lock that a statement has taken. `range`: what asks for it, in the file.
    pub(crate) fn new(lock: &Lock, place: Place, range: TextRange) -> Self {
        Self {
            relation: lock.relation.oid,
            name: lock.relation.to_smolstr(),
            kind: lock.relation.kind,
            mode: lock.mode,
            cause: lock.cause,
            patience: lock.patience,
            exposed: lock.relation.visibility.is_exposed(),
            unseen_part: lock.relation.unseen_part.clone(),
            place,
            range,
        }
    }

    pub fn unqualified_name(&self) -> &str {
        self.name.rsplit_once('.').map_or(&self.name, |(_, name)| name)
    }
}

/// Rows of a relation that the transaction has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub relation: Oid,
    pub kind: DataChangeKind,
    /// See [`DataChange::changes_key`].
    pub changes_key: bool,
    /// See [`DataChange::checked_at_commit`].
    pub checked_at_commit: bool,
    /// How many.
    pub rows: Rows,
    pub place: Place,
}

impl Change {
    pub(crate) fn new(change: &DataChange, place: Place) -> Self {
        let DataChange { ref relation, kind, changes_key, checked_at_commit, ref rows, .. } = *change;
        Self { relation: relation.oid, kind, changes_key, checked_at_commit, rows: rows.clone(), place }
    }
}

/// Work of a transaction that takes longer the larger a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongWork {
    /// The statement.
    pub place: Place,
    /// The part of it that causes the work, in the file.
    pub range: TextRange,
}

impl TransactionBlock {
    /// The catalog when the transaction began.
    pub fn catalog_before(&self) -> &Catalog {
        &self.before.catalog
    }
}

#[derive(Debug, Clone)]
struct Savepoint {
    name: SmolStr,
    /// Many savepoints lie side by side in one block of memory, which is made on the stack.
    snapshot: Arc<Snapshot>,
    held: Mark,
}

#[derive(Debug, Clone)]
struct Snapshot {
    catalog: Catalog,
    settings: SettingsInEffect,
}

impl Session {
    /// The session of a migration that follows another in the same one. `certain`: nothing else is possible.
    pub(crate) fn after(initial: &SettingsInEffect, left: &Left, certain: bool) -> Self {
        let mut session = Self { settings: initial.clone(), ..Self::default() };
        session.settings.carry(left, certain);
        session
    }

    /// Returns the settings for the next migration.
    pub(crate) fn settings_left(&self) -> OrdMap<SmolStr, SettingValue> {
        self.settings.session.clone()
    }

    pub fn in_transaction(&self) -> bool {
        self.block.is_some()
    }

    /// Opens a transaction block.
    pub fn begin(&mut self, explicit: bool, number: u32, started: Place, catalog: &Catalog) {
        let before = Snapshot { catalog: catalog.clone(), settings: self.settings.clone() };
        self.block = Some(TransactionBlock {
            explicit,
            number,
            may_be_since: None,
            started,
            locks: HeldLocks::default(),
            changes: Changes::default(),
            work: Vector::new(),
            savepoints: Vector::new(),
            before,
        });
    }

    /// Ends the transaction of a statement outside a transaction block, whose code may have run SET LOCAL.
    pub(crate) fn end_statement(&mut self) {
        if self.block.is_none() && !self.settings.local.is_empty() {
            self.settings.end_transaction();
        }
    }

    pub fn commit(&mut self) {
        self.block = None;
        self.settings.end_transaction();
    }

    /// Undoes what the transaction did to the catalog and the settings.
    pub fn rollback(&mut self, catalog: &mut Catalog) {
        if let Some(block) = self.block.take() {
            *catalog = block.before.catalog;
            self.settings = block.before.settings;
        }
    }

    /// Remembers the present state under a name. False outside a transaction.
    pub fn savepoint(&mut self, name: SmolStr, catalog: &Catalog) -> bool {
        let snapshot = Arc::new(Snapshot { catalog: catalog.clone(), settings: self.settings.clone() });
        let Some(block) = &mut self.block else { return false };
        let held = Mark::of(&block.locks, &block.changes);
        block.savepoints.push_back(Savepoint { name, snapshot, held });
        true
    }

    /// Forgets a savepoint and those after it; what happened since stays. False if there is none of that name.
    pub fn release(&mut self, name: &str) -> bool {
        let Some(block) = &mut self.block else { return false };
        let Some(at) = block.savepoints.iter().rposition(|savepoint| savepoint.name == name) else { return false };
        block.savepoints.truncate(at);
        true
    }

    /// Goes back to a savepoint, which stays. Locks taken since are released. False if there is none of that name.
    pub fn rollback_to(&mut self, name: &str, catalog: &mut Catalog) -> bool {
        let Some(block) = &mut self.block else { return false };
        let Some(at) = block.savepoints.iter().rposition(|savepoint| savepoint.name == name) else { return false };
        block.savepoints.truncate(at + 1);
        let savepoint = &block.savepoints[at];
        *catalog = savepoint.snapshot.catalog.clone();
        self.settings = savepoint.snapshot.settings.clone();
        savepoint.held.restore(&mut block.locks, &mut block.changes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::search_path_value;

    fn value(text: &str) -> SettingValue {
        SettingValue { value: text.into(), place: Place { file: 0, range: TextRange::default() } }
    }

    #[test]
    fn set_local_ends_with_the_transaction_and_rollback_undoes_set() {
        let mut catalog = Catalog::new();
        let mut session = Session::default();
        let place = Place { file: 0, range: TextRange::default() };
        session.begin(true, 1, place, &catalog);
        session.settings.set_local("lock_timeout".into(), value("2s"));
        assert_eq!(session.settings.timeout("lock_timeout"), Some(2_000));
        session.commit();
        assert_eq!(session.settings.timeout("lock_timeout"), None);

        session.begin(true, 2, place, &catalog);
        session.settings.set("lock_timeout".into(), value("500"));
        session.rollback(&mut catalog);
        assert_eq!(session.settings.timeout("lock_timeout"), None);
    }

    #[test]
    fn rollback_to_a_savepoint_keeps_it() {
        let mut catalog = Catalog::new();
        let mut session = Session::default();
        session.begin(true, 1, Place { file: 0, range: TextRange::default() }, &catalog);
        assert!(session.savepoint("s".into(), &catalog));
        session.settings.set("lock_timeout".into(), value("1min"));
        assert!(session.rollback_to("s", &mut catalog));
        assert_eq!(session.settings.timeout("lock_timeout"), None);
        assert!(session.rollback_to("s", &mut catalog));
        assert!(session.release("s"));
        assert!(!session.release("s"));
    }

    #[test]
    fn zero_switches_a_timeout_off() {
        for (text, expected) in
            [("0", None), ("'5s'", Some(5_000)), ("1min", Some(60_000)), ("250", Some(250)), ("x", None)]
        {
            let mut settings = SettingsInEffect::default();
            settings.set("lock_timeout".into(), value(text));
            assert_eq!(settings.timeout("lock_timeout"), expected, "{text}");
        }
    }

    #[test]
    fn a_reset_undoes_what_the_program_has_set() {
        let first = [SmolStr::new("app")];
        let mut settings = SettingsInEffect::default().with_first_schemas(&first);
        let path = |settings: &SettingsInEffect| (settings.search_path().to_vec(), settings.search_path().is_assumed());
        let of_program = (vec!["app".into(), "public".into()], false);
        assert_eq!(path(&settings), of_program);
        settings.set_local("search_path".into(), value("other"));
        settings.end_transaction();
        assert_eq!(path(&settings), of_program);
        let mut all = settings.clone();
        settings.reset("search_path");
        all.reset_all();
        let of_server = (vec!["public".into()], true);
        assert_eq!((path(&settings), path(&all)), (of_server.clone(), of_server));
    }

    #[test]
    fn search_path_drops_user_and_quotes() {
        let mut settings = SettingsInEffect::default();
        assert_eq!(*settings.search_path(), ["public"]);
        settings.set("search_path".into(), value("\"$user\", App, \"Mixed\", \"a, \"\"b\""));
        assert_eq!(*settings.search_path(), ["app", "Mixed", "a, \"b"]);
        settings.set("search_path".into(), value(&search_path_value(&["a, b", "C", ""])));
        assert_eq!(*settings.search_path(), ["a, b", "C"]);
    }
}
