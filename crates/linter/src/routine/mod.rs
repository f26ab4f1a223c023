//! Functions, procedures and DO blocks as rules see them: the code, read once with exact ranges in the file that holds
//! it, what surrounds each statement, who calls it, and whether that is often.

mod bound;
mod calls;
mod creations;
mod evaluation;
mod hotness;
mod made;
mod outline;
mod read;
mod steps;
pub mod subtransactions;
mod texts;
mod trial;
mod variables;
mod words;

#[cfg(test)]
mod tests;

pub use bound::Bound;
pub use calls::{CallSite, CallerKind, Routines, TriggerUse};
pub use creations::Creation;
pub(crate) use hotness::grouped;
pub use hotness::{Hotness, Reason, ReasonKind};
pub(crate) use outline::Outline;
pub use read::{Code, Dynamic, Routine, RoutineReader};
pub use steps::{Around, Node, Sql, Step};
pub use texts::SqlRole;
pub use trial::{Ending, Endings, Trial};
pub use variables::{Variable, VariableKind};
pub use words::Words;

use crate::ast::{FunctionCall, ObjectName};
use crate::catalog::{Catalog, Function, Oid, Relation};
use crate::check::Migration;
use crate::deployment::Deployment;
use crate::effect::RelationName;
use crate::session::Session;
use crate::settings::Settings;
use crate::source::{SourceFile, TextRange};
use std::rc::Rc;
use std::sync::Arc;

/// All that a rule may look at in the code of a function, a procedure or a DO block.
///
/// A function is shown when the replay of its database has ended, if its definition stands in a reported migration: one
/// that a later migration replaced or dropped can hurt nobody. A DO block is shown at its statement.
#[derive(Debug)]
pub struct RoutineContext<'a> {
    /// Index of the migration that holds the definition.
    pub file: u32,
    /// The file of the definition.
    pub source: &'a SourceFile,
    /// The migration that a DO block is a statement of.
    pub migration: Option<&'a Migration<'a>>,
    /// The session before a DO block.
    pub session: Option<&'a Session>,
    pub routine: Rc<Routine>,
    /// The catalog that the code meets: at the end of the replay, or before the DO block.
    pub catalog: &'a Catalog,
    /// The same, or the catalog after the DO block.
    pub after: &'a Catalog,
    pub settings: &'a Settings,
    /// All code of the database.
    pub routines: &'a Routines<'a>,
    /// A statement of a migration calls it, in code that it runs at the latest: it is a helper of migrations, and what it
    /// does was reported there.
    pub called_by_migration: bool,
}

impl RoutineContext<'_> {
    /// What is released together with the migration that holds the definition.
    pub fn deployment(&self) -> Option<Deployment> {
        self.routines.migrations.get(self.file as usize)?.deployment(self.file)
    }

    /// The text of a range of the file.
    pub fn text(&self, range: TextRange) -> &str {
        self.source.text.get(range.as_usize()).unwrap_or_default()
    }

    /// `None` for a DO block.
    pub fn function(&self) -> Option<&Arc<Function>> {
        self.routine.function.as_ref()
    }

    /// `app.f()`, or `this DO block`.
    pub fn name(&self) -> String {
        self.routine.name()
    }

    /// The relation that the code means by a name, temporary ones included.
    pub fn relation(&self, name: &ObjectName) -> Option<&Relation> {
        let oid = self.catalog.find_relation(name, &self.routine.search_path)?;
        self.catalog.get_relation(oid).map(|relation| &**relation)
    }

    /// The relation for [`crate::report::Finding::relation`]: at run time it is there and in use.
    pub fn relation_name(&self, relation: &Relation) -> RelationName {
        RelationName::existing(relation)
    }

    /// The functions of the project that a call may mean.
    pub fn called(&self, call: &FunctionCall) -> Vec<Oid> {
        self.catalog.functions_called(call, &self.routine.search_path)
    }

    /// The triggers that run it.
    pub fn triggers(&self) -> &[TriggerUse] {
        self.routine.oid().map_or(&[], |oid| self.routines.triggers_of(oid))
    }

    /// The places in other code that call it.
    pub fn callers(&self) -> &[CallSite] {
        self.routine.oid().map_or(&[], |oid| self.routines.callers_of(oid))
    }

    /// Whether it runs often, and why. A DO block runs once.
    pub fn hotness(&self) -> Rc<Hotness> {
        self.routine.oid().map_or_else(Rc::default, |oid| self.routines.hotness_of(oid))
    }
}
