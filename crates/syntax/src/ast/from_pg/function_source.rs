//! Functions as items of FROM.

use super::context::Context;
use crate::ast::{Expr, FromItem, FunctionColumn, FunctionForm};
use pg::Node;
use pgvet_parser::tree as pg;

impl Context<'_> {
    pub(super) fn calls_of_from(
        &self,
        calls: Vec<Expr>,
        form: Option<FunctionForm>,
        name: Option<&pg::Alias>,
        lateral: bool,
        cursor: &mut usize,
    ) -> FromItem {
        let range = super::expression::cover(&calls);
        self.advance(cursor, range);
        FromItem::Function { calls, form: form.into(), alias: name.map(super::query::alias), lateral, range }
    }

    /// A list of the call and its column definitions.
    pub(super) fn function_of_from(&self, node: pg::NodeRef<'_>) -> Option<Expr> {
        match node.node() {
            Node::List(list) => list.items().first().map(|call| self.expression(call)),
            _ => None,
        }
    }

    /// What surrounds the calls, if it is more than an alias.
    pub(super) fn function_form(&self, function: &pg::RangeFunction<'_>) -> Option<FunctionForm> {
        let of_calls: Vec<_> = function.functions.iter().map(|node| self.columns_of_call(node)).collect();
        let form = FunctionForm {
            rows_from: function.is_rowsfrom,
            ordinality: function.ordinality,
            of_calls: if of_calls.iter().all(Vec::is_empty) { Vec::new() } else { of_calls },
            columns: self.function_columns(function.coldeflist),
        };
        (form != FunctionForm::default()).then_some(form)
    }

    fn columns_of_call(&self, node: pg::NodeRef<'_>) -> Vec<FunctionColumn> {
        let Node::List(list) = node.node() else { return Vec::new() };
        match list.items().iter().nth(1).map(pg::NodeRef::node) {
            Some(Node::List(columns)) => self.function_columns(columns.items()),
            _ => Vec::new(),
        }
    }

    fn function_columns(&self, nodes: pg::List<'_>) -> Vec<FunctionColumn> {
        let column = |node: pg::NodeRef<'_>| match node.node() {
            Node::ColumnDef(column) => Some(FunctionColumn {
                name: column.colname.as_str().into(),
                type_name: self.required_type(column.type_name),
                collation: column.coll_clause.and_then(|collate| self.collation(collate)),
            }),
            _ => None,
        };
        nodes.iter().filter_map(column).collect()
    }
}
