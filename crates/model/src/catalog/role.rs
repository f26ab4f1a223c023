//! Roles whose privileges another role has, as far as the migrations say.

use super::Catalog;
use super::privilege::PUBLIC;
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Memberships {
    /// The roles of each member.
    roles: OrdMap<SmolStr, OrdSet<SmolStr>>,
    /// Roles that were created NOINHERIT.
    without_inheritance: OrdSet<SmolStr>,
}

impl Catalog {
    /// The roles whose privileges a role has without SET ROLE: itself, PUBLIC, and those of which it is a member,
    /// directly or through others.
    pub fn roles_of(&self, role: &SmolStr) -> Vec<SmolStr> {
        let mut found = vec![role.clone()];
        let mut next = 0;
        while let Some(member) = found.get(next) {
            let more = self.memberships.roles.get(member).into_iter().flatten();
            let more: Vec<SmolStr> = more.filter(|role| !found.contains(role)).cloned().collect();
            found.extend(more);
            next += 1;
        }
        if role != PUBLIC {
            found.push(SmolStr::new_static(PUBLIC));
        }
        found
    }

    /// Whether a role has the privileges of the roles of which it becomes a member.
    pub fn inherits(&self, role: &str) -> bool {
        !self.memberships.without_inheritance.contains(role)
    }

    pub fn set_without_inheritance(&mut self, role: &SmolStr) {
        self.memberships.without_inheritance.insert(role.clone());
    }

    pub fn add_member(&mut self, role: &SmolStr, member: &SmolStr) {
        self.memberships.roles.entry(member.clone()).or_default().insert(role.clone());
    }

    pub fn remove_member(&mut self, role: &str, member: &str) {
        if let Some(roles) = self.memberships.roles.get_mut(member) {
            roles.remove(role);
        }
    }
}
