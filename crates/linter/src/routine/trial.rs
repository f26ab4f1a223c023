//! What statements would do: they run on a copy of the catalog.

use crate::ast::{Ast, ObjectName, Set};
use crate::catalog::{Catalog, Oid};
use crate::effect::Effects;
use crate::execute::try_statement;
use crate::session::{Place, Session, SettingValue, search_path_value};
use crate::source::TextRange;
use crate::version::{PgVersion, Target};
use smol_str::SmolStr;
use std::cell::RefCell;

/// A copy of the catalog on which statements run one after the other.
#[derive(Debug)]
pub struct Trial {
    catalog: Catalog,
    session: Session,
    target: Target,
}

impl Trial {
    pub fn new(catalog: &Catalog, search_path: &[SmolStr], version: PgVersion) -> Self {
        let mut session = Session::default();
        let place = Place { file: 0, range: TextRange::default() };
        let value = SettingValue { value: search_path_value(search_path), place };
        session.settings.set(SmolStr::new_static("search_path"), value);
        Self { catalog: catalog.clone(), session, target: Target::new(version) }
    }

    /// What a statement does; the next one finds catalog and settings as this one leaves them.
    pub fn run(&mut self, ast: &Ast) -> Effects {
        // The statements are those of one transaction, or of one that commits each.
        let lasting = match ast {
            Ast::Set(set) if set.local => Some(Ast::Set(Set { local: false, ..set.clone() })),
            _ => None,
        };
        let tried = try_statement(&self.catalog, &self.session, lasting.as_ref().unwrap_or(ast), &self.target);
        (self.catalog, self.session.settings) = (tried.catalog, tried.settings);
        tried.effects
    }

    /// The catalog as the statements so far leave it.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(super) fn find(&self, name: &ObjectName) -> Option<Oid> {
        self.catalog.find_relation(name, &self.session.settings.search_path())
    }
}

/// The catalogs at the ends of the transactions and of the migration that is looked at: what its statements ask for, one
/// after the other, is run once.
#[derive(Debug, Default)]
pub struct Endings(RefCell<Vec<(Ending, Catalog)>>);

/// The end of what begins in a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub file: u32,
    /// Where its last statement begins.
    pub last: u32,
    pub version: PgVersion,
}

impl Endings {
    /// The catalog at an ending, which `run` finds out.
    pub fn get(&self, ending: Ending, run: impl FnOnce() -> Catalog) -> Catalog {
        let known = |known: &&(Ending, Catalog)| known.0 == ending;
        if let Some((_, catalog)) = self.0.borrow().iter().find(known) {
            return catalog.clone();
        }
        let catalog = run();
        let mut kept = self.0.borrow_mut();
        kept.retain(|(other, _)| other.file == ending.file && other.last >= ending.last);
        kept.push((ending, catalog.clone()));
        catalog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::from_pg::parse_sql;

    #[test]
    fn settings_stay_for_the_statements_that_follow() {
        let mut trial = Trial::new(&Catalog::new(), &["public".into()], PgVersion(18));
        let sql = "CREATE SCHEMA a; CREATE SCHEMA b; SET LOCAL search_path = a; CREATE TABLE t (id int);
            SELECT set_config('search_path', 'b', false); CREATE TABLE t (id int)";
        for statement in parse_sql(sql).unwrap() {
            assert_eq!(trial.run(&statement).fails, None);
        }
        assert!(
            trial.catalog().relation_named("a", "t").is_some() && trial.catalog().relation_named("b", "t").is_some()
        );
    }
}
