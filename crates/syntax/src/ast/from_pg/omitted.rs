//! The parts of a query that only its text shows.

use super::context::exact;
use crate::ast::{Omitted, SortDirection, Sorting};
use pg::Node;
use pgvet_parser::tree as pg;

/// A part of a query that its tree does not show. Subqueries have their own.
pub(super) fn omitted(select: &pg::SelectStmt<'_>) -> Option<Omitted> {
    if select.limit_option == pg::LimitOption::LIMIT_OPTION_WITH_TIES {
        return Some(Omitted::WithTies);
    }
    if select.group_distinct {
        return Some(Omitted::GroupByDistinct);
    }
    let has_operator = |node: pg::NodeRef<'_>| matches!(node.node(), Node::SortBy(sort) if !sort.use_op.is_empty());
    if select.sort_clause.iter().any(has_operator) {
        return Some(Omitted::SortOperator);
    }
    select.from_clause.iter().find_map(of_source)
}

fn of_source(source: pg::NodeRef<'_>) -> Option<Omitted> {
    match source.node() {
        Node::RangeTableSample(_) => Some(Omitted::TableSample),
        Node::JoinExpr(join) if join.alias.is_some() || join.join_using_alias.is_some() => Some(Omitted::JoinAlias),
        Node::JoinExpr(join) if join.is_natural && join.jointype != pg::JoinType::JOIN_INNER => {
            Some(Omitted::NaturalOuterJoin)
        }
        Node::JoinExpr(join) => [join.larg, join.rarg].into_iter().flatten().find_map(of_source),
        _ => None,
    }
}

/// The words after the expressions of ORDER BY; nothing if no expression has any.
pub(super) fn sorting(clause: pg::List<'_>) -> Option<Vec<Sorting>> {
    let of_node = |node: pg::NodeRef<'_>| match node.node() {
        Node::SortBy(sort) => Sorting {
            direction: match sort.sortby_dir {
                pg::SortByDir::SORTBY_ASC => Some(SortDirection::Ascending),
                pg::SortByDir::SORTBY_DESC => Some(SortDirection::Descending),
                _ => None,
            },
            nulls_first: match sort.sortby_nulls {
                pg::SortByNulls::SORTBY_NULLS_FIRST => Some(true),
                pg::SortByNulls::SORTBY_NULLS_LAST => Some(false),
                _ => None,
            },
        },
        _ => Sorting::default(),
    };
    let has_words = |node| of_node(node) != Sorting::default();
    clause.iter().any(has_words).then(|| exact(clause.iter().map(of_node)))
}
