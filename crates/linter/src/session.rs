//! The state of the session in which migrations run: transaction, settings, locks held.

mod held;

pub use held::{Changes, HeldLocks};

use crate::ast::{ObjectName, Prepare};
use crate::catalog::{Catalog, Oid};
use crate::effect::{DataChange, DataChangeKind, Lock, LockCause, LockMode, RelationKind, Rows};
use crate::lexer::quote_identifier;
use crate::runner::{Left, SessionScope};
use crate::source::TextRange;
use held::Mark;
use imbl::{OrdMap, OrdSet, Vector};
use serde::{Deserialize, Serialize};
use smol_str::{SmolStr, ToSmolStr};
use std::ops::Deref;
use std::sync::Arc;

/// A place in the run: the migration's index and a range in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub file: u32,
    pub range: TextRange,
}

const SEARCH_PATH: &str = "search_path";

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
    /// What `search_path` says; names are looked up more often than it changes.
    search_path: SearchPath,
    /// `search_path` before the first statement, and after RESET.
    initial_path: SearchPath,
    /// Set by an earlier migration, which may have run in another session.
    doubtful: OrdSet<SmolStr>,
}

/// Schemas in which names are looked up, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchPath {
    schemas: Arc<[SmolStr]>,
    is_assumed: bool,
}

impl SearchPath {
    /// The default, `public`.
    fn of_server() -> Self {
        Self { schemas: Arc::new([SmolStr::new_static("public")]), is_assumed: false }
    }

    /// The default where no statement sets the path, which the role, the database or the connection may set.
    fn assumed() -> Self {
        Self { is_assumed: true, ..Self::of_server() }
    }

    /// Whether no statement has set it.
    pub fn is_assumed(&self) -> bool {
        self.is_assumed
    }
}

impl Deref for SearchPath {
    type Target = [SmolStr];

    fn deref(&self) -> &[SmolStr] {
        &self.schemas
    }
}

impl From<Vec<SmolStr>> for SearchPath {
    fn from(schemas: Vec<SmolStr>) -> Self {
        Self { schemas: schemas.into(), is_assumed: false }
    }
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
            initial_path,
            doubtful: OrdSet::new(),
        }
    }

    /// The defaults of a server, which nothing has changed.
    pub fn of_new_server() -> Self {
        Self::new(SearchPath::of_server())
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

    /// SET LOCAL. Outside a transaction block it has no effect; the caller knows.
    pub fn set_local(&mut self, name: SmolStr, value: SettingValue) {
        self.change(&name.clone(), |settings| drop(settings.local.insert(name, value)));
    }

    /// RESET.
    pub fn reset(&mut self, name: &str) {
        self.change(name, |settings| {
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

    /// Was the value set by an earlier migration of which nothing shows that it runs in the same session?
    pub fn is_doubtful(&self, name: &str) -> bool {
        self.doubtful.contains(name) && !self.local.contains_key(name)
    }

    /// The values that an earlier migration has left to this one. `certain`: it runs in the same session for sure.
    fn carry(&mut self, left: &Left, certain: bool) {
        for (name, value) in &left.settings {
            if name == SEARCH_PATH && left.scope == SessionScope::RunWithoutSearchPath {
                continue;
            }
            if !certain {
                self.doubtful.insert(name.clone());
            }
            self.change(name, |settings| drop(settings.session.insert(name.clone(), value.clone())));
        }
    }

    /// RESET ALL, DISCARD ALL.
    pub fn reset_all(&mut self) {
        *self = Self::new(self.initial_path.clone());
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

    /// Is the session's time zone known to be UTC? Unset counts: it is the server's default where none is configured.
    pub fn time_zone_is_utc(&self) -> bool {
        self.get("timezone").is_none_or(|setting| {
            matches!(
                setting.value.to_ascii_lowercase().as_str(),
                "utc" | "gmt" | "etc/utc" | "etc/gmt" | "0" | "zulu" | "z" | "uct"
            )
        })
    }
}

/// The schemas of a value of `search_path`, without `$user`.
pub(crate) fn search_path(value: &str) -> Vec<SmolStr> {
    names_in_path(value).into_iter().filter(|name| name != "$user").collect()
}

/// The names in a value of `search_path`.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/varlena.c`, `SplitIdentifierString`.
pub(crate) fn names_in_path(value: &str) -> Vec<SmolStr> {
    let mut names = Vec::new();
    let mut rest = value.trim();
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_name(quoted)
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            (rest[..end].trim().to_ascii_lowercase(), &rest[end..])
        };
        if !name.is_empty() {
            names.push(SmolStr::new(name));
        }
        rest = after.find(',').map_or("", |comma| after[comma + 1..].trim_start());
    }
    names
}

/// A name up to its closing quote, and what follows that.
fn quoted_name(text: &str) -> (String, &str) {
    let mut end = 0;
    while let Some(quote) = text[end..].find('"') {
        end += quote;
        if !text[end + 1..].starts_with('"') {
            return (text[..end].replace("\"\"", "\""), &text[end + 1..]);
        }
        end += 2;
    }
    (text.to_owned(), "")
}

/// The value of `search_path` for these schemas. SET makes one schema of each of its values: `'a, b'` is one name.
///
/// Source: PostgreSQL 18, `src/backend/utils/misc/guc_funcs.c`, `flatten_set_variable_args`.
pub(crate) fn search_path_value<S: AsRef<str>>(schemas: &[S]) -> SmolStr {
    let quoted: Vec<String> = schemas.iter().map(|name| quote_identifier(name.as_ref())).collect();
    SmolStr::new(quoted.join(", "))
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
    /// Whether a statement of it did more than change the catalog and a few rows.
    pub worked: bool,
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
    /// Could anybody wait for it?
    pub exposed: bool,
    pub place: Place,
    /// What asks for it, within the statement.
    pub range: TextRange,
}

impl HeldLock {
    /// A lock that a statement has taken. `range`: what asks for it, in the file.
    pub(crate) fn new(lock: &Lock, place: Place, range: TextRange) -> Self {
        Self {
            relation: lock.relation.oid,
            name: lock.relation.to_smolstr(),
            kind: lock.relation.kind,
            mode: lock.mode,
            cause: lock.cause,
            exposed: lock.relation.visibility.is_exposed(),
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
    /// How many.
    pub rows: Rows,
    pub place: Place,
}

impl Change {
    pub(crate) fn new(change: &DataChange, place: Place) -> Self {
        Self { relation: change.relation.oid, kind: change.kind, rows: change.rows.clone(), place }
    }
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

    /// What the settings are for the next migration.
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
            worked: false,
            savepoints: Vector::new(),
            before,
        });
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
    fn search_path_drops_user_and_quotes() {
        let mut settings = SettingsInEffect::default();
        assert_eq!(*settings.search_path(), ["public"]);
        settings.set("search_path".into(), value("\"$user\", App, \"Mixed\", \"a, \"\"b\""));
        assert_eq!(*settings.search_path(), ["app", "Mixed", "a, \"b"]);
        settings.set("search_path".into(), value(&search_path_value(&["a, b", "C", ""])));
        assert_eq!(*settings.search_path(), ["a, b", "C"]);
    }
}
