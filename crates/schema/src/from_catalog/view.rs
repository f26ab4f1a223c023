//! The query of a view, whose text has the names of its time.

use crate::object::{Code, Known};
use pgvet_model::catalog::{Catalog, Relation, ViewDefinition};
use pgvet_syntax::ast::{Ast, ExprKind, Part, Query, RelationRef};
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::statement;
use smol_str::SmolStr;

/// The query with the schema of every relation, if its names still mean the same; otherwise why it is not known.
pub(super) fn query(catalog: &Catalog, view: &Relation, definition: &ViewDefinition) -> Code {
    let text = definition.text.trim();
    let statements = statement::parse(text);
    let [only] = statements.as_slice() else { return Known::unknown("the query of a view") };
    let parsed = only.parsed.as_ref().ok().and_then(|ast| match &**ast {
        Ast::Select(query) => Some(query),
        _ => None,
    });
    let Some(parsed) = parsed else { return Known::unknown("the query of a view") };
    if has_stale_star(catalog, view, definition, parsed) {
        return Known::unknown("`*` in a view whose tables have other columns now");
    }
    if !knows_its_columns(definition, parsed) {
        return Known::unknown("the query of a view whose columns were renamed");
    }
    match qualified(catalog, definition, parsed, text) {
        Some(text) => Known::Value(text),
        None => Known::unknown("the query of a view that reads renamed relations"),
    }
}

fn qualified(catalog: &Catalog, definition: &ViewDefinition, query: &Query, text: &str) -> Option<String> {
    let mut with: Vec<&SmolStr> = Vec::new();
    let mut read: Vec<&RelationRef> = Vec::new();
    query.visit(&mut |part| match part {
        Part::Query(query) => with.extend(query.with.iter().flat_map(|with| &with.ctes).map(|cte| &cte.name.text)),
        Part::Read(relation) => read.push(relation),
        _ => {}
    });
    let current: Vec<&Relation> =
        definition.references.iter().filter_map(|(oid, _)| catalog.get_relation(*oid).map(|one| &**one)).collect();
    let mut inserted: Vec<(u32, String)> = Vec::new();
    for relation in read {
        let name = &relation.name.name;
        match &relation.name.schema {
            Some(schema) if matches!(schema.text.as_str(), "pg_catalog" | "information_schema") => {}
            Some(schema) => {
                let is_there = |one: &&&Relation| one.schema == schema.text && one.name == name.text;
                current.iter().find(is_there)?;
            }
            None if with.contains(&&name.text) => {}
            None => {
                let mut found = current.iter().filter(|one| one.name == name.text);
                match (found.next(), found.next()) {
                    (Some(one), None) => {
                        inserted.push((name.range.start, format!("{}.", quote_identifier(&one.schema))));
                    }
                    // Relations of the system are not among the references.
                    (None, _) if name.text.starts_with("pg_") => {}
                    _ => return None,
                }
            }
        }
    }
    inserted.sort();
    let mut text = text.to_owned();
    for (at, schema) in inserted.iter().rev() {
        text.insert_str(*at as usize, schema);
    }
    Some(text)
}

/// Whether `*` stands for other columns than when the view was made.
fn has_stale_star(catalog: &Catalog, view: &Relation, definition: &ViewDefinition, query: &Query) -> bool {
    let mut has_star = false;
    query.visit(&mut |part| {
        has_star |= matches!(part, Part::Expr(expr) if matches!(expr.kind, ExprKind::Star(_)));
    });
    let is_shown = |name: &SmolStr| view.columns.iter().any(|column| column.name == *name);
    let read = definition.references.iter().filter_map(|(oid, _)| catalog.get_relation(*oid));
    has_star && !read.flat_map(|relation| &relation.columns).all(|column| is_shown(&column.name))
}

/// Whether every column that the view uses is named in its query, unless it has a `*`.
fn knows_its_columns(definition: &ViewDefinition, query: &Query) -> bool {
    let mut named: Vec<&SmolStr> = Vec::new();
    let mut is_open = false;
    query.visit(&mut |part| {
        if let Part::Expr(expr) = part {
            match &expr.kind {
                ExprKind::Column(parts) => named.extend(parts.last()),
                ExprKind::Star(_) => is_open = true,
                _ => {}
            }
        }
    });
    let mut used = definition.references.iter().flat_map(|(_, columns)| columns);
    is_open || used.all(|column| named.contains(&column) || joins_by_name(query))
}

/// USING and NATURAL name columns without an expression.
fn joins_by_name(query: &Query) -> bool {
    use pgvet_syntax::ast::{FromItem, JoinKind};
    fn joins(item: &FromItem) -> bool {
        match item {
            FromItem::Join { kind, left, right, using, .. } => {
                *kind == JoinKind::Natural || !using.is_empty() || joins(left) || joins(right)
            }
            _ => false,
        }
    }
    let mut found = false;
    query.visit(&mut |part| {
        if let Part::Query(query) = part
            && let pgvet_syntax::ast::QueryBody::Select(select) = &query.body
        {
            found |= select.from.iter().any(joins);
        }
    });
    found
}
