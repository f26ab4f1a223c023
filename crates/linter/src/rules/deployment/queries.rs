//! Which known queries deployed code can run already.

use crate::rule::RuleContext;
use crate::rules::deployment::other_statements::is_relation_name_freed;
use pgvet_model::application::KnownStatement;
use pgvet_model::catalog::{Catalog, Relation, SearchPath};
use pgvet_model::deployment::Deployment;
use pgvet_syntax::ast::{Ast, ObjectName, Part};

/// The relations that a query names. Names of WITH are among them.
fn relations(ast: &Ast) -> Vec<&ObjectName> {
    let mut found = Vec::new();
    ast.visit(&mut |part| match part {
        Part::Read(relation) => found.push(&relation.name),
        Part::Insert(insert) => found.push(&insert.table.name),
        Part::Update(update) => found.push(&update.table.name),
        Part::Delete(delete) => found.push(&delete.table.name),
        Part::Merge(merge) => found.push(&merge.table.name),
        Part::Expr(_) | Part::Query(_) => {}
    });
    found
}

/// Whether a query uses a relation that this deployment creates, so that only code of the next release can run it.
pub(crate) fn uses_new_relation(
    query: &KnownStatement,
    path: &SearchPath,
    [before, after]: [&Catalog; 2],
    deployment: Option<Deployment>,
) -> bool {
    let find = |catalog, name| found(catalog, name, path);
    relations(&query.ast).into_iter().any(|name| {
        let relation = find(before, name).or_else(|| find(after, name));
        relation.is_some_and(|relation| relation.birth.is_of(deployment))
    })
}

/// The same at a statement: for relations that the migration has created before it, or creates after it.
pub(crate) fn is_for_next_release(context: &RuleContext<'_>, query: &KnownStatement) -> bool {
    let path = context.session.settings.search_path();
    let is_new = |relation: &Relation| {
        relation.birth.is_of(context.deployment()) && !is_relation_name_freed(context, &relation.schema, &relation.name)
    };
    let is_created_later = |name: &ObjectName| {
        context.later().any(|statement| match statement.ast() {
            Some(Ast::CreateTable(create)) => create.name.name.text == name.name.text,
            _ => false,
        })
    };
    relations(&query.ast).into_iter().any(|name| match found(context.before, name, &path) {
        Some(relation) => is_new(relation),
        None => is_created_later(name),
    })
}

fn found<'c>(catalog: &'c Catalog, name: &ObjectName, path: &SearchPath) -> Option<&'c Relation> {
    catalog.get_relation(catalog.find_relation(name, path)?).map(|relation| &**relation)
}
