//! Roles and their members.

use super::name::{literal, roles};
use crate::ast::{CreateRole, GrantRole, Literal};
use pgvet_parser::tree as pg;
use pgvet_parser::tree::Node;
use smol_str::SmolStr;

pub(super) fn grant(grant: &pg::GrantRoleStmt) -> GrantRole {
    let granted = grant.granted_roles.iter().filter_map(|node| match node.node() {
        Node::AccessPriv(role) => Some(SmolStr::new(role.priv_name.as_str())),
        _ => None,
    });
    GrantRole {
        grant: grant.is_grant,
        roles: granted.collect(),
        members: roles(grant.grantee_roles),
        inherit: options(grant.opt).find(|option| option.defname.as_str() == "inherit").and_then(truth),
        option_only: !grant.is_grant && options(grant.opt).next().is_some(),
    }
}

pub(super) fn create(create: &pg::CreateRoleStmt) -> CreateRole {
    let named = |wanted: &'static [&'static str]| {
        let lists = options(create.options).filter(move |option| wanted.contains(&option.defname.as_str()));
        lists.flat_map(|option| match option.arg.map(pg::NodeRef::node) {
            Some(Node::List(list)) => roles(list.items()),
            _ => Vec::new(),
        })
    };
    let inherit = options(create.options).find(|option| option.defname.as_str() == "inherit");
    CreateRole {
        name: create.role.as_str().into(),
        inherit: inherit.and_then(truth).unwrap_or(true),
        member_of: named(&["addroleto"]).collect(),
        members: named(&["rolemembers", "adminmembers"]).collect(),
    }
}

fn options(nodes: pg::List<'_>) -> impl Iterator<Item = &pg::DefElem<'_>> {
    nodes.iter().filter_map(|node| match node.node() {
        Node::DefElem(option) => Some(option),
        _ => None,
    })
}

fn truth(option: &pg::DefElem<'_>) -> Option<bool> {
    match literal(option.arg?)? {
        Literal::Boolean(value) => Some(value),
        _ => None,
    }
}
