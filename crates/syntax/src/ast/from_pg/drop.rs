//! DROP, RENAME, SET SCHEMA, OWNER TO, COMMENT ON and GRANT: what names any kind of object.

use super::context::{Context, Span, exact, string, strings, written};
use super::name::{behavior, roles};
use crate::ast::{
    AlterDefaultPrivileges, ChangeOwner, Comment, Drop, DropObject, FutureObjects, Grant, Name, NamedPrivilege,
    ObjectKind, ObjectName, Rename, SetSchema, Signature, TypeName,
};
use pg::Node;
use pgvet_parser::tree as pg;
use smol_str::SmolStr;

/// An object that a statement names without location.
struct Named {
    name: ObjectName,
    /// The relation, type or domain that has it.
    on: Option<ObjectName>,
    arguments: Option<Vec<TypeName>>,
}

impl Context<'_> {
    pub(super) fn drop(&self, drop: &pg::DropStmt, span: Span) -> Drop {
        let kind = object_kind(drop.remove_type);
        let mut start = self.object_type_end(span.start + 1);
        start = self.skip(start, &["CONCURRENTLY"]);
        let keyword = self.range(span.to(start));
        start = self.skip(start, &["IF", "EXISTS"]);
        let parts = self.split(span.from(start), b',');
        let objects = drop.objects.iter().enumerate().map(|(at, node)| {
            let named = self.named(kind, node, parts.get(at).copied().unwrap_or(span));
            DropObject { name: named.name, on: named.on, arguments: named.arguments }
        });
        Drop {
            kind,
            objects: exact(objects),
            if_exists: drop.missing_ok,
            behavior: behavior(drop.behavior),
            concurrently: drop.concurrent,
            keyword,
        }
    }

    /// Behind the words of an object type: `TABLE`, `MATERIALIZED VIEW`, `FOREIGN DATA WRAPPER`, ...
    fn object_type_end(&self, start: usize) -> usize {
        const TWO: [[&str; 2]; 9] = [
            ["MATERIALIZED", "VIEW"],
            ["FOREIGN", "TABLE"],
            ["EVENT", "TRIGGER"],
            ["ACCESS", "METHOD"],
            ["OPERATOR", "CLASS"],
            ["OPERATOR", "FAMILY"],
            ["LARGE", "OBJECT"],
            ["USER", "MAPPING"],
            ["PROCEDURAL", "LANGUAGE"],
        ];
        let three = self.skip(start, &["FOREIGN", "DATA", "WRAPPER"]);
        if three > start {
            return three;
        }
        if self.is_any(start, &["TEXT"]) && self.is(start + 1, "SEARCH") {
            return start + 3;
        }
        TWO.iter().map(|words| self.skip(start, words)).find(|end| *end > start).unwrap_or(start + 1)
    }

    /// The object in a node of DROP, COMMENT and so on, written in `span`.
    fn named(&self, kind: ObjectKind, node: pg::NodeRef<'_>, span: Span) -> Named {
        let plain = |name| Named { name, on: None, arguments: None };
        match node.node() {
            Node::List(list) if is_on_relation(kind) => self.named_on_relation(&strings(list.items()), span),
            // ALTER DOMAIN ... RENAME CONSTRAINT names the domain alone, by its path.
            Node::List(list) if kind == ObjectKind::DomainConstraint && begins_with_type(list.items()) => {
                self.named_on_type(list.items(), span)
            }
            Node::List(list) => plain(self.object_name_of(list.items(), span.start)),
            Node::String(text) => plain(self.object_name(&[text.sval.as_str()], span.start)),
            Node::TypeName(name) => plain(self.type_object(name)),
            Node::ObjectWithArgs(object) => Named {
                name: self.object_name_of(object.objname, span.start),
                on: None,
                arguments: self.argument_types(object),
            },
            Node::RangeVar(relation) => plain(self.relation(relation)),
            _ => plain(self.nameless(span.start)),
        }
    }

    /// The relation's path, then the name; `name ON relation`, or `relation.column`.
    fn named_on_relation(&self, parts: &[SmolStr], span: Span) -> Named {
        let (name, path) = parts.split_last().map_or(("", [].as_slice()), |(name, path)| (name.as_str(), path));
        let on = self.find_word(span, &["ON"]);
        let (own, path_start) = match on {
            Some(on) => (span.start, self.skip(on + 1, &["DOMAIN"])),
            None => (span.start + 2 * path.len(), span.start),
        };
        Named {
            name: ObjectName { schema: None, name: self.name_at(own, name) },
            on: Some(self.object_name(path, path_start)),
            arguments: None,
        }
    }

    /// A constraint of a domain: the type and the name.
    fn named_on_type(&self, items: pg::List<'_>, span: Span) -> Named {
        let on = items.first().and_then(|node| match node.node() {
            Node::TypeName(name) => Some(self.type_object(name)),
            _ => None,
        });
        let name = items.last().and_then(string).unwrap_or_default();
        Named { name: ObjectName { schema: None, name: self.name(span, name) }, on, arguments: None }
    }

    /// A type or domain by name.
    pub(super) fn type_object(&self, name: &pg::TypeName) -> ObjectName {
        let start = self.index(name.location).unwrap_or(self.everything().end);
        let parts: Vec<SmolStr> = strings(name.names);
        // `integer` is one word in the text and two parts in the tree.
        let internal = parts.len() == 2 && parts[0] == "pg_catalog" && !self.is_mark(start + 1, b'.');
        self.object_name(if internal { &parts[1..] } else { &parts }, start)
    }

    pub(super) fn argument_types(&self, object: &pg::ObjectWithArgs) -> Option<Vec<TypeName>> {
        let types = object.objargs.iter().filter_map(|node| match node.node() {
            Node::TypeName(name) => Some(self.type_name(name)),
            _ => None,
        });
        (!object.args_unspecified).then(|| exact(types))
    }

    pub(super) fn rename(&self, rename: &pg::RenameStmt, span: Span) -> Rename {
        let kind = object_kind(rename.rename_type);
        let word = self.find_last(span, |at| self.is(at, "RENAME")).unwrap_or(span.start);
        let to = self.find_last(span, |at| self.is(at, "TO")).unwrap_or(span.end);
        let start = self.altered_object(span.start);
        let named = match (&rename.relation, rename.object) {
            (Some(relation), _) => Named { name: self.relation(relation), on: None, arguments: None },
            (None, Some(node)) => self.named(kind, node, span.from(start).to(word)),
            // Roles, databases, schemas and tablespaces.
            (None, None) => {
                Named { name: self.object_name(&[rename.subname.as_str()], start), on: None, arguments: None }
            }
        };
        let has_owner = rename.relation.is_some() || rename.object.is_some();
        let sub_name = has_owner.then(|| written(&rename.subname)).flatten().map(|name| {
            // `ALTER TRIGGER name ON ...` names it first, `RENAME COLUMN name TO` last.
            let before = matches!(kind, ObjectKind::Trigger | ObjectKind::Rule | ObjectKind::Policy);
            let place = if before { span.from(start) } else { Span::new(word + 1, to) };
            let place = if before { place } else { place.from(self.skip_rename_kind(place)) };
            self.name(place, &name)
        });
        let (object, sub_name) = match named.on {
            Some(on) => (on, sub_name.or(Some(named.name.name))),
            None => (named.name, sub_name),
        };
        let relation_kind = match rename.relation_type {
            pg::ObjectType::OBJECT_ACCESS_METHOD => owner_kind(kind),
            relation_type => object_kind(relation_type),
        };
        Rename {
            kind,
            relation_kind,
            object,
            sub_name,
            arguments: named.arguments,
            new_name: self.name_at((to + 1).min(span.end.saturating_sub(1)), &rename.newname),
            only: rename.relation.is_some_and(|relation| !relation.inh),
            if_exists: rename.missing_ok,
            cascade: rename.behavior == pg::DropBehavior::DROP_CASCADE,
            keyword: self.token_range(word),
        }
    }

    /// Behind COLUMN, CONSTRAINT or ATTRIBUTE, unless that word is the name itself.
    fn skip_rename_kind(&self, place: Span) -> usize {
        let after = self.skip_any(place.start, &["COLUMN", "CONSTRAINT", "ATTRIBUTE"]);
        if after < place.end { after } else { place.start }
    }

    /// Behind `ALTER kind [IF EXISTS]`.
    fn altered_object(&self, start: usize) -> usize {
        self.skip(self.object_type_end(start + 1), &["IF", "EXISTS"])
    }

    pub(super) fn set_schema(&self, alter: &pg::AlterObjectSchemaStmt, span: Span) -> SetSchema {
        let kind = object_kind(alter.object_type);
        let word = self.find_last(span, |at| self.is(at, "SET")).unwrap_or(span.start);
        let named = self.altered(kind, alter.relation, alter.object, span.to(word));
        SetSchema {
            kind,
            object: named.name,
            arguments: named.arguments,
            new_schema: self.name_at((word + 2).min(span.end.saturating_sub(1)), &alter.newschema),
            if_exists: alter.missing_ok,
            keyword: self.range(Span::new(word, (word + 2).min(span.end))),
        }
    }

    fn altered(
        &self,
        kind: ObjectKind,
        relation: Option<&pg::RangeVar>,
        object: Option<pg::NodeRef<'_>>,
        span: Span,
    ) -> Named {
        let start = self.altered_object(span.start);
        match (relation, object) {
            (Some(relation), _) => Named { name: self.relation(relation), on: None, arguments: None },
            (None, Some(node)) => self.named(kind, node, span.from(start)),
            (None, None) => Named { name: self.nameless(start), on: None, arguments: None },
        }
    }

    pub(super) fn change_owner(&self, alter: &pg::AlterOwnerStmt, span: Span) -> ChangeOwner {
        let kind = object_kind(alter.object_type);
        ChangeOwner { kind, object: self.altered(kind, alter.relation, alter.object, span).name }
    }

    pub(super) fn comment(&self, comment: &pg::CommentStmt, span: Span) -> Comment {
        let kind = object_kind(comment.objtype);
        let is = self.find_last(span, |at| self.is(at, "IS")).unwrap_or(span.end);
        let start = self.object_type_end(span.start + 2);
        let place = span.from(start).to(is);
        let named = match comment.object {
            Some(node) => self.named(kind, node, place),
            None => Named { name: self.nameless(start), on: None, arguments: None },
        };
        let arguments = named.arguments;
        let (object, sub_name) = match named.on {
            Some(on) => (on, Some(named.name.name)),
            None => (named.name, None),
        };
        let null = self.is(is + 1, "NULL");
        Comment { kind, object, sub_name, arguments, text: (!null).then(|| comment.comment.as_str().into()) }
    }

    pub(super) fn grant(&self, grant: &pg::GrantStmt, span: Span) -> Grant {
        let kind = object_kind(grant.objtype);
        let on = self.find_word(span, &["ON"]).unwrap_or(span.start);
        let all_in_schema = grant.targtype == pg::GrantTargetType::ACL_TARGET_ALL_IN_SCHEMA;
        let start = match self.find_word(span.from(on), &["SCHEMA"]) {
            Some(schema) if all_in_schema => schema + 1,
            _ if self.is_name(on + 1, "table") && !self.is_mark(on + 2, b'.') => on + 2,
            _ if kind == ObjectKind::Table => on + 1,
            _ => self.object_type_end(on + 1),
        };
        let parts = self.split(span.from(start), b',');
        let named = grant.objects.iter().enumerate();
        let named = named.map(|(at, node)| self.named(kind, node, parts.get(at).copied().unwrap_or(span)));
        let (mut objects, mut routines) = (Vec::new(), Vec::new());
        for Named { name, arguments, .. } in named {
            objects.push(name.clone());
            if matches!(kind, ObjectKind::Function | ObjectKind::Procedure | ObjectKind::Routine) {
                routines.push(Signature { name, arguments });
            }
        }
        let privileges = grant.privileges.iter().filter_map(|node| match node.node() {
            Node::AccessPriv(privilege) => {
                let name = written(&privilege.priv_name);
                Some(NamedPrivilege { name, columns: strings(privilege.cols) })
            }
            _ => None,
        });
        Grant {
            grant: grant.is_grant,
            grant_option: grant.grant_option,
            kind,
            objects,
            routines,
            all_in_schema,
            privileges: exact(privileges),
            grantees: roles(grant.grantees),
            keyword: self.token_range(span.start),
        }
    }
}

impl Context<'_> {
    pub(super) fn default_privileges(
        &self,
        alter: &pg::AlterDefaultPrivilegesStmt,
        span: Span,
    ) -> Option<AlterDefaultPrivileges> {
        let mut future = FutureObjects::default();
        for node in alter.options {
            let Node::DefElem(option) = node.node() else { continue };
            let Some(Node::List(list)) = option.arg.map(pg::NodeRef::node) else { continue };
            match option.defname.as_str() {
                "schemas" => future.schemas = strings(list.items()),
                "roles" => future.creators = roles(list.items()),
                _ => {}
            }
        }
        let start = self.find_word(span, &["GRANT", "REVOKE"]).unwrap_or(span.start);
        let grant = self.grant(alter.action?, span.from(start));
        Some(AlterDefaultPrivileges { future, grant })
    }
}

fn begins_with_type(items: pg::List<'_>) -> bool {
    items.first().is_some_and(|first| matches!(first.node(), Node::TypeName(_)))
}

/// Kinds whose node is the path of a relation and a name in it.
fn is_on_relation(kind: ObjectKind) -> bool {
    use ObjectKind::{Column, Constraint, Policy, Rule, Trigger};
    matches!(kind, Column | Constraint | Trigger | Rule | Policy)
}

/// The kind of the object that has the renamed object, if the statement does not say.
fn owner_kind(kind: ObjectKind) -> ObjectKind {
    match kind {
        ObjectKind::DomainConstraint => ObjectKind::Domain,
        ObjectKind::Attribute => ObjectKind::Type,
        ObjectKind::Column | ObjectKind::Constraint | ObjectKind::Trigger | ObjectKind::Rule | ObjectKind::Policy => {
            ObjectKind::Table
        }
        kind => kind,
    }
}

/// A name without a schema.
pub(super) fn unqualified(name: Name) -> ObjectName {
    ObjectName { schema: None, name }
}

pub(super) fn object_kind(kind: pg::ObjectType) -> ObjectKind {
    use pg::ObjectType as Kind;
    match kind {
        Kind::OBJECT_TABLE => ObjectKind::Table,
        Kind::OBJECT_INDEX => ObjectKind::Index,
        Kind::OBJECT_SEQUENCE => ObjectKind::Sequence,
        Kind::OBJECT_VIEW => ObjectKind::View,
        Kind::OBJECT_MATVIEW => ObjectKind::MaterializedView,
        Kind::OBJECT_FOREIGN_TABLE => ObjectKind::ForeignTable,
        Kind::OBJECT_TYPE => ObjectKind::Type,
        Kind::OBJECT_DOMAIN => ObjectKind::Domain,
        Kind::OBJECT_SCHEMA => ObjectKind::Schema,
        Kind::OBJECT_FUNCTION => ObjectKind::Function,
        Kind::OBJECT_PROCEDURE => ObjectKind::Procedure,
        Kind::OBJECT_ROUTINE => ObjectKind::Routine,
        Kind::OBJECT_AGGREGATE => ObjectKind::Aggregate,
        Kind::OBJECT_LANGUAGE => ObjectKind::Language,
        Kind::OBJECT_TRIGGER => ObjectKind::Trigger,
        Kind::OBJECT_RULE => ObjectKind::Rule,
        Kind::OBJECT_POLICY => ObjectKind::Policy,
        Kind::OBJECT_COLUMN => ObjectKind::Column,
        Kind::OBJECT_TABCONSTRAINT => ObjectKind::Constraint,
        Kind::OBJECT_DOMCONSTRAINT => ObjectKind::DomainConstraint,
        Kind::OBJECT_ATTRIBUTE => ObjectKind::Attribute,
        Kind::OBJECT_EXTENSION => ObjectKind::Extension,
        Kind::OBJECT_PUBLICATION => ObjectKind::Publication,
        Kind::OBJECT_SUBSCRIPTION => ObjectKind::Subscription,
        Kind::OBJECT_STATISTIC_EXT => ObjectKind::Statistics,
        Kind::OBJECT_COLLATION => ObjectKind::Collation,
        Kind::OBJECT_ROLE => ObjectKind::Role,
        Kind::OBJECT_DATABASE => ObjectKind::Database,
        Kind::OBJECT_TABLESPACE => ObjectKind::Tablespace,
        Kind::OBJECT_EVENT_TRIGGER => ObjectKind::EventTrigger,
        Kind::OBJECT_PARAMETER_ACL => ObjectKind::Parameter,
        _ => ObjectKind::Other,
    }
}
