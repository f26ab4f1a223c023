//! Lookup tables, such as countries or states: migrations insert their rows.

use super::{Catalog, ConstraintKind, Relation};
use pgvet_syntax::ast::Expr;

impl Catalog {
    /// Returns how many rows migrations have inserted into a lookup table; `None` for other tables.
    pub fn lookup_rows(&self, relation: &Relation) -> Option<u64> {
        let rows = relation.birth.lookup_rows().filter(|_| !self.takes_other_rows(relation))?;
        let mut referenced = relation.constraints.iter().filter_map(|constraint| match &constraint.kind {
            ConstraintKind::ForeignKey(key) => self.get_relation(key.referenced),
            _ => None,
        });
        let is_lookup = referenced.all(|table| table.oid == relation.oid || table.birth.listed_rows().is_some());
        is_lookup.then_some(rows)
    }

    /// Whether the rows that the migrations have inserted are probably not all: they are the first users or examples.
    fn takes_other_rows(&self, relation: &Relation) -> bool {
        let birth = relation.birth;
        let is_inserted_by_code = birth.inserted_by.is_some_and(|function| self.get_function(function).is_some());
        birth.generates_keys || is_inserted_by_code || takes_rows_of_users(relation) || is_about_persons(relation)
    }
}

/// Words in names of columns with what an application asks of its users.
const OF_PERSONS: [&str; 7] = ["email", "username", "login", "password", "passwd", "phone", "lastname"];

/// Whether a row is about a person: the migrations insert the first of them, such as administrators.
fn is_about_persons(relation: &Relation) -> bool {
    let is_word = |word: &str| OF_PERSONS.iter().any(|personal| word.eq_ignore_ascii_case(personal));
    relation.columns.iter().any(|column| column.name.split('_').any(is_word))
}

/// Whether a policy lets sessions insert rows by what is in the row, such as their own: rows that the migrations have
/// inserted are not all.
fn takes_rows_of_users(relation: &Relation) -> bool {
    let depends_on_row = |condition: &Expr| {
        let mut found = false;
        condition.walk(&mut |part| found |= part.as_column().is_some_and(|name| relation.column(name).is_some()));
        found
    };
    relation.policies.iter().any(|policy| {
        let condition = policy.check.as_ref().or(policy.using.as_ref());
        ["insert", "all"].contains(&policy.command.as_str()) && condition.is_some_and(|found| depends_on_row(found))
    })
}
