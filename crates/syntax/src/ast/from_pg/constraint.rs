//! Constraints of columns, tables and domains.

use super::context::{Context, Span, exact, written};
use crate::ast::{
    Constraint, ConstraintKind, ExcludeConstraint, ForeignKey, IndexConstraint, IndexElement, Name, ReferentialAction,
};
use crate::source::TextRange;
use pg::ConstrType;
use pg::Node;
use pgvet_parser::tree as pg;
use smol_str::SmolStr;

impl Context<'_> {
    /// The constraints of a column. The grammar makes a node of every DEFERRABLE, NOT ENFORCED and so on; here they
    /// belong to the constraint before them, as PostgreSQL itself reads them (`transformConstraintAttrs`).
    pub(super) fn column_constraints(&self, column: &pg::ColumnDef, span: Span) -> Vec<Constraint> {
        let collate = column.coll_clause.map(|collate| collate.location);
        self.constraint_list(column.constraints, collate, span)
    }

    /// Constraints in column syntax, each of which ends where the next clause begins.
    pub(super) fn constraint_list(&self, nodes: pg::List<'_>, collate: Option<i32>, span: Span) -> Vec<Constraint> {
        let nodes: Vec<&pg::Constraint> = nodes.iter().filter_map(constraint_node).collect();
        let locations = nodes.iter().map(|node| node.location).chain(collate);
        let starts: Vec<usize> = locations.filter_map(|location| self.index(location)).collect();
        let end_of = |start: usize| starts.iter().copied().filter(|next| *next > start).min().unwrap_or(span.end);
        let mut constraints: Vec<Constraint> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let start = self.index(node.location).unwrap_or(span.start);
            let own = Span::new(start, end_of(start));
            if let Some(constraint) = self.constraint(node, own) {
                constraints.push(constraint);
            } else if let Some(last) = constraints.last_mut() {
                apply_attribute(last, node.contype);
                last.range = last.range.cover(self.range(own));
            }
        }
        constraints
    }

    pub(super) fn table_constraint(&self, node: &pg::Constraint) -> Constraint {
        let span = self.element_span(self.index(node.location).unwrap_or(0));
        self.constraint(node, span).unwrap_or_else(|| self.plain(node, ConstraintKind::Null, span))
    }

    /// `None` for an attribute of another constraint.
    fn constraint(&self, node: &pg::Constraint, span: Span) -> Option<Constraint> {
        let kind = match node.contype {
            ConstrType::CONSTR_NULL => ConstraintKind::Null,
            ConstrType::CONSTR_NOTNULL => {
                let after = self.find_word(span, &["NULL"]).map_or(span.start, |at| at + 1);
                ConstraintKind::NotNull { column: self.names(span.from(after), node.keys).pop() }
            }
            ConstrType::CONSTR_DEFAULT => ConstraintKind::Default(self.whole(node.raw_expr)),
            ConstrType::CONSTR_IDENTITY => {
                ConstraintKind::Identity { always: node.generated_when == "a", options: self.options(node.options) }
            }
            ConstrType::CONSTR_GENERATED => ConstraintKind::Generated {
                expression: self.operand(node.raw_expr),
                stored: node.generated_kind == "s",
                explicit_kind: self.find_word(span, &["STORED", "VIRTUAL"]).is_some(),
            },
            ConstrType::CONSTR_CHECK => ConstraintKind::Check(self.operand(node.raw_expr)),
            ConstrType::CONSTR_PRIMARY => ConstraintKind::PrimaryKey(Box::new(self.index_constraint(node, span))),
            ConstrType::CONSTR_UNIQUE => ConstraintKind::Unique(Box::new(self.index_constraint(node, span))),
            ConstrType::CONSTR_EXCLUSION => ConstraintKind::Exclude(Box::new(self.exclude(node, span))),
            ConstrType::CONSTR_FOREIGN => ConstraintKind::ForeignKey(Box::new(self.foreign_key(node, span))),
            // Words such as DEFERRABLE, which belong to the constraint before them.
            _ => return None,
        };
        Some(self.plain(node, kind, span))
    }

    fn plain(&self, node: &pg::Constraint, kind: ConstraintKind, span: Span) -> Constraint {
        let named = self.is(span.start, "CONSTRAINT");
        let clause = if named { span.start + 2 } else { span.start };
        // The other kinds leave the field unset.
        let enforceable = matches!(kind, ConstraintKind::Check(_) | ConstraintKind::ForeignKey(_));
        Constraint {
            name: written(&node.conname).map(|name| Name::new(name, self.token_range(clause.saturating_sub(1)))),
            keyword: self.range(self.constraint_keyword(clause)),
            kind,
            deferrable: node.deferrable,
            initially_deferred: node.initdeferred,
            not_valid: node.skip_validation,
            not_enforced: enforceable && !node.is_enforced,
            no_inherit: node.is_no_inherit,
            range: self.range(span),
        }
    }

    fn constraint_keyword(&self, start: usize) -> Span {
        const TWO_WORDS: [[&str; 2]; 3] = [["PRIMARY", "KEY"], ["FOREIGN", "KEY"], ["NOT", "NULL"]];
        let end = TWO_WORDS.iter().map(|words| self.skip(start, words)).max().unwrap_or(start);
        Span::new(start, end.max(start + 1))
    }

    fn index_constraint(&self, node: &pg::Constraint, span: Span) -> IndexConstraint {
        let using_index = written(&node.indexname).map(|name| {
            let after = self.find_word(span, &["INDEX"]).map_or(span.start, |at| at + 1);
            self.name(span.from(after), &name)
        });
        IndexConstraint {
            columns: self.names_in_brackets(span, node.keys),
            including: self.including(span, node.including),
            using_index,
            nulls_not_distinct: node.nulls_not_distinct,
            without_overlaps: node.without_overlaps,
            parameters: (!node.options.is_empty()).then(|| self.parameters(span)).flatten(),
            tablespace: written(&node.indexspace),
        }
    }

    /// `WITH (...)`.
    fn parameters(&self, span: Span) -> Option<TextRange> {
        let with = self.find(span, |at| self.is(at, "WITH") && self.is_mark(at + 1, b'('))?;
        Some(self.range(Span::new(with, self.next(with + 1))))
    }

    /// Names in the first brackets of the span.
    fn names_in_brackets(&self, span: Span, nodes: pg::List<'_>) -> Vec<Name> {
        let open = self.find(span, |at| self.is_mark(at, b'('));
        self.names(open.map_or(span, |open| self.inside(open)), nodes)
    }

    /// Names after INCLUDE.
    pub(super) fn including(&self, span: Span, nodes: pg::List<'_>) -> Vec<Name> {
        if nodes.is_empty() {
            return Vec::new();
        }
        let after = self.find_word(span, &["INCLUDE"]).map_or(span.start, |at| at + 1);
        let plain: Vec<SmolStr> = nodes
            .iter()
            .filter_map(|node| match node.node() {
                Node::String(text) => Some(text.sval.as_str().into()),
                Node::IndexElem(element) => Some(element.name.as_str().into()),
                _ => None,
            })
            .collect();
        let brackets = self.inside(after);
        plain.iter().map(|name| self.name(brackets, name)).collect()
    }

    fn exclude(&self, node: &pg::Constraint, span: Span) -> ExcludeConstraint {
        let open = self.find(span, |at| self.is_mark(at, b'('));
        let parts = open.map_or_else(Vec::new, |open| self.split(self.inside(open), b','));
        let elements = node.exclusions.iter().enumerate().filter_map(|(at, node)| {
            let Node::List(pair) = node.node() else { return None };
            let (element, operator) = (pair.items().first()?, pair.items().last()?);
            Some((self.index_element(element, parts.get(at).copied().unwrap_or(span))?, operator_name(operator)))
        });
        ExcludeConstraint {
            method: written(&node.access_method).unwrap_or_else(|| "gist".into()),
            elements: exact(elements),
            including: self.including(span, node.including),
            predicate: self.optional(node.where_clause),
        }
    }

    /// A key of an index, written in `span`.
    pub(super) fn index_element(&self, node: pg::NodeRef<'_>, span: Span) -> Option<IndexElement> {
        let Node::IndexElem(element) = node.node() else { return None };
        let last = |nodes: pg::List<'_>| super::context::strings(nodes).pop();
        Some(IndexElement {
            key: self.key(&element.name, element.expr, span),
            collation: last(element.collation),
            operator_class: last(element.opclass),
            descending: element.ordering == pg::SortByDir::SORTBY_DESC,
            nulls_first: match element.nulls_ordering {
                pg::SortByNulls::SORTBY_NULLS_FIRST => Some(true),
                pg::SortByNulls::SORTBY_NULLS_LAST => Some(false),
                _ => None,
            },
        })
    }

    fn foreign_key(&self, node: &pg::Constraint, span: Span) -> ForeignKey {
        let table = self.required_relation(node.pktable);
        let after_table = span.from(self.index_after(table.range()));
        let set_columns = self.find(after_table, |at| {
            self.is(at, "SET") && self.is_any(at + 1, &["NULL", "DEFAULT"]) && self.is_mark(at + 2, b'(')
        });
        ForeignKey {
            columns: self.names_in_brackets(span, node.fk_attrs),
            referenced_columns: self.names(after_table, node.pk_attrs),
            on_delete: referential_action(&node.fk_del_action),
            on_update: referential_action(&node.fk_upd_action),
            set_columns: self.names(span.from(set_columns.unwrap_or(after_table.start)), node.fk_del_set_cols),
            match_full: node.fk_matchtype == "f",
            table,
        }
    }
}

pub(super) fn constraint_node(node: pg::NodeRef<'_>) -> Option<&pg::Constraint<'_>> {
    match node.node() {
        Node::Constraint(constraint) => Some(constraint),
        _ => None,
    }
}

fn apply_attribute(constraint: &mut Constraint, attribute: ConstrType) {
    match attribute {
        ConstrType::CONSTR_ATTR_DEFERRABLE => constraint.deferrable = true,
        ConstrType::CONSTR_ATTR_DEFERRED => {
            constraint.deferrable = true;
            constraint.initially_deferred = true;
        }
        ConstrType::CONSTR_ATTR_NOT_DEFERRABLE => constraint.deferrable = false,
        ConstrType::CONSTR_ATTR_IMMEDIATE => constraint.initially_deferred = false,
        ConstrType::CONSTR_ATTR_ENFORCED => constraint.not_enforced = false,
        ConstrType::CONSTR_ATTR_NOT_ENFORCED => {
            constraint.not_enforced = true;
            constraint.not_valid = true;
        }
        _ => {}
    }
}

/// The operator of EXCLUDE without its schema.
fn operator_name(node: pg::NodeRef<'_>) -> SmolStr {
    match node.node() {
        Node::List(list) => super::context::strings(list.items()).pop().unwrap_or_default(),
        _ => super::context::string(node).unwrap_or_default().into(),
    }
}

/// `FKCONSTR_ACTION`_* of PostgreSQL's parsenodes.h.
fn referential_action(letter: &str) -> ReferentialAction {
    match letter {
        "r" => ReferentialAction::Restrict,
        "c" => ReferentialAction::Cascade,
        "n" => ReferentialAction::SetNull,
        "d" => ReferentialAction::SetDefault,
        _ => ReferentialAction::NoAction,
    }
}
