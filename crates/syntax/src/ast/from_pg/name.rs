//! Names, types, constants and options.

use super::context::{Context, Span, exact, string, strings, written};
use crate::ast::{DefElem, DefValue, DropBehavior, Literal, Name, ObjectName, Persistence, RelationRef, TypeName};
use crate::source::TextRange;
use pg::Node;
use pgvet_parser::tree as pg;
use smol_str::{SmolStr, ToSmolStr};

impl Context<'_> {
    /// A relation, which PostgreSQL locates.
    pub(super) fn relation(&self, relation: &pg::RangeVar) -> ObjectName {
        let parts = [relation.catalogname.as_str(), &relation.schemaname, &relation.relname];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        self.object_name(&parts, self.index(relation.location).unwrap_or(self.everything().end))
    }

    /// A relation that the grammar always gives.
    pub(super) fn required_relation(&self, relation: Option<&pg::RangeVar>) -> ObjectName {
        relation.map_or_else(|| self.nameless(0), |relation| self.relation(relation))
    }

    /// A relation of a query.
    pub(super) fn relation_ref(&self, relation: &pg::RangeVar) -> RelationRef {
        RelationRef {
            name: self.relation(relation),
            only: !relation.inh,
            alias: relation.alias.map(super::query::alias),
        }
    }

    pub(super) fn required_relation_ref(&self, relation: Option<&pg::RangeVar>) -> RelationRef {
        match relation {
            Some(relation) => self.relation_ref(relation),
            None => RelationRef { name: self.nameless(0), only: false, alias: None },
        }
    }

    /// A possibly qualified name whose first part is the token at `index`.
    pub(super) fn object_name(&self, parts: &[impl AsRef<str>], index: usize) -> ObjectName {
        let written = self.dotted_end(index.min(self.everything().end)).saturating_sub(index).div_ceil(2);
        let range = |part: usize| {
            let missing = parts.len().saturating_sub(written);
            self.token_range(index + 2 * part.saturating_sub(missing))
        };
        let name_at = |part: usize| Name::new(parts[part].as_ref(), range(part));
        match parts.len() {
            0 => self.nameless(index),
            1 => ObjectName { schema: None, name: name_at(0) },
            count => ObjectName { schema: Some(name_at(count - 2)), name: name_at(count - 1) },
        }
    }

    /// Stands for a name that the tree does not have.
    pub(super) fn nameless(&self, index: usize) -> ObjectName {
        ObjectName { schema: None, name: Name::new("", self.token_range(index)) }
    }

    /// A possibly qualified name from String nodes.
    pub(super) fn object_name_of(&self, nodes: pg::List<'_>, index: usize) -> ObjectName {
        self.object_name(&strings(nodes), index)
    }

    pub(super) fn type_name(&self, node: &pg::TypeName) -> TypeName {
        let mut path = strings(node.names);
        let percent_type = if node.pct_type { path.pop() } else { None };
        let name = path.pop().unwrap_or_default();
        let schema = path.pop().filter(|schema| schema != "pg_catalog");
        let range = self
            .index(node.location)
            .map_or(TextRange::default(), |start| self.range(Span::new(start, self.type_end(start))));
        TypeName {
            schema,
            name,
            modifiers: exact(node.typmods.iter().filter_map(modifier)),
            is_array: !node.array_bounds.is_empty(),
            setof: node.setof,
            percent_type,
            range,
        }
    }

    /// A type that the grammar always gives.
    pub(super) fn required_type(&self, node: Option<&pg::TypeName>) -> TypeName {
        node.map_or_else(nameless_type, |node| self.type_name(node))
    }

    /// Behind the type that starts at `start`.
    pub(super) fn type_end(&self, start: usize) -> usize {
        let mut at = self.dotted_end(start);
        let plain = at == start + 1;
        if plain && self.is(start, "DOUBLE") {
            at = self.skip(at, &["PRECISION"]);
        } else if plain && self.is_any(start, &["CHARACTER", "CHAR", "NCHAR", "BIT", "NATIONAL"]) {
            at = self.skip_any(at, &["CHARACTER", "CHAR"]);
            at = self.skip(at, &["VARYING"]);
        }
        if self.is_mark(at, b'(') {
            at = self.next(at);
        }
        if plain && self.is_any(start, &["TIME", "TIMESTAMP"]) {
            at = self.skip(at, &["WITH", "TIME", "ZONE"]);
            at = self.skip(at, &["WITHOUT", "TIME", "ZONE"]);
        } else if plain && self.is(start, "INTERVAL") {
            at = self.interval_fields_end(at);
        }
        if self.text(at) == "%" && self.is(at + 1, "TYPE") {
            at += 2;
        }
        at = self.skip(at, &["ARRAY"]);
        while self.is_mark(at, b'[') {
            at = self.next(at);
        }
        at.min(self.everything().end)
    }

    fn interval_fields_end(&self, mut at: usize) -> usize {
        const FIELDS: &[&str] = &["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
        at = self.skip_any(at, FIELDS);
        if self.is(at, "TO") {
            at = self.skip_any(at + 1, FIELDS);
        }
        if self.is(at.saturating_sub(1), "SECOND") && self.is_mark(at, b'(') { self.next(at) } else { at }
    }

    pub(super) fn options(&self, nodes: pg::List<'_>) -> Vec<DefElem> {
        exact(nodes.iter().filter_map(def_elem).map(|element| self.option(element)))
    }

    pub(super) fn option(&self, element: &pg::DefElem) -> DefElem {
        let value = match element.arg.map(pg::NodeRef::node) {
            None => DefValue::None,
            Some(Node::TypeName(name)) => self.type_or_word(element, name),
            Some(Node::List(list)) => list_value(list.items()),
            Some(Node::VariableSetStmt(set)) => DefValue::Names(set_words(set)),
            Some(Node::AStar(_)) => DefValue::Names(vec!["*".into()]),
            Some(node) => literal_of(node).map_or(DefValue::Other, DefValue::Literal),
        };
        DefElem {
            namespace: written(&element.defnamespace),
            name: element.defname.as_str().into(),
            value,
            range: self.range_at(element.location),
        }
    }

    /// The grammar reads a bare word after `=` as a type.
    fn type_or_word(&self, element: &pg::DefElem, node: &pg::TypeName) -> DefValue {
        let name = self.type_name(node);
        let is_word = name.modifiers.is_empty() && !name.is_array && !name.setof && name.percent_type.is_none();
        if element.defname == "as" || !is_word {
            return DefValue::Type(name);
        }
        DefValue::Names(name.schema.into_iter().chain([name.name]).collect())
    }
}

/// Stands for a type that the tree does not have.
fn nameless_type() -> TypeName {
    TypeName {
        schema: None,
        name: SmolStr::default(),
        modifiers: Vec::new(),
        is_array: false,
        setof: false,
        percent_type: None,
        range: TextRange::default(),
    }
}

/// The `DefElem` in a node.
pub(super) fn def_elem(node: pg::NodeRef<'_>) -> Option<&pg::DefElem<'_>> {
    match node.node() {
        Node::DefElem(element) => Some(element),
        _ => None,
    }
}

/// The setting and the values of a function's SET.
fn set_words(set: &pg::VariableSetStmt) -> Vec<SmolStr> {
    let values = set.args.iter().filter_map(literal).map(|literal| match literal {
        Literal::Integer(number) => number.to_smolstr(),
        Literal::Numeric(text) | Literal::String(text) | Literal::BitString(text) => text,
        Literal::Boolean(value) => value.to_smolstr(),
        Literal::Null => "null".into(),
    });
    std::iter::once(set.name.to_ascii_lowercase().into()).chain(values).collect()
}

fn list_value(items: pg::List<'_>) -> DefValue {
    if items.iter().all(|item| string(item).is_some()) {
        return DefValue::Names(strings(items));
    }
    let literals: Vec<Literal> = items.iter().filter_map(literal).collect();
    if literals.len() == items.len() { DefValue::List(literals) } else { DefValue::Other }
}

/// The constant in a node, also after a cast (`interval '1 day'`).
pub(super) fn literal(node: pg::NodeRef<'_>) -> Option<Literal> {
    Some(node.node()).and_then(literal_of)
}

fn literal_of(node: Node<'_>) -> Option<Literal> {
    match node {
        Node::AConst(constant) => Some(constant_literal(constant)),
        Node::Integer(integer) => Some(Literal::Integer(integer.ival.into())),
        Node::Float(float) => Some(number(&float.fval)),
        Node::Boolean(boolean) => Some(Literal::Boolean(boolean.boolval)),
        Node::String(text) => Some(Literal::String(text.sval.as_str().into())),
        Node::BitString(bits) => Some(Literal::BitString(bits.bsval.as_str().into())),
        Node::TypeCast(cast) => cast.arg.and_then(literal),
        _ => None,
    }
}

pub(super) fn constant_literal(constant: &pg::AConst) -> Literal {
    constant.value().and_then(literal_of).unwrap_or(Literal::Null)
}

fn number(digits: &str) -> Literal {
    digits.parse().map_or_else(|_| Literal::Numeric(digits.into()), Literal::Integer)
}

/// A type modifier: a constant, or a word as in `geometry(Point)`.
fn modifier(node: pg::NodeRef<'_>) -> Option<Literal> {
    match node.node() {
        Node::ColumnRef(column) => strings(column.fields).pop().map(Literal::String),
        _ => literal(node),
    }
}

pub(super) fn behavior(behavior: pg::DropBehavior) -> DropBehavior {
    match behavior {
        pg::DropBehavior::DROP_CASCADE => DropBehavior::Cascade,
        _ => DropBehavior::Restrict,
    }
}

/// `relpersistence` of `pg_class`.
pub(super) fn persistence(letter: &str) -> Persistence {
    match letter {
        "t" => Persistence::Temporary,
        "u" => Persistence::Unlogged,
        _ => Persistence::Permanent,
    }
}

/// A role; the special ones by their keyword in lower case.
pub(super) fn role(role: &pg::RoleSpec) -> SmolStr {
    match role.roletype {
        pg::RoleSpecType::ROLESPEC_CURRENT_ROLE => "current_role".into(),
        pg::RoleSpecType::ROLESPEC_CURRENT_USER => "current_user".into(),
        pg::RoleSpecType::ROLESPEC_SESSION_USER => "session_user".into(),
        pg::RoleSpecType::ROLESPEC_PUBLIC => "public".into(),
        _ => role.rolename.as_str().into(),
    }
}

pub(super) fn roles(nodes: pg::List<'_>) -> Vec<SmolStr> {
    nodes
        .iter()
        .filter_map(|node| match node.node() {
            Node::RoleSpec(spec) => Some(role(spec)),
            _ => None,
        })
        .collect()
}
