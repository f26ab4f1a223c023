//! What deployed code finds under the name of a column that is dropped or renamed.

use super::type_narrowing::loss;
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::RuleContext;
use pgvet_model::builtin::type_by_oid;
use pgvet_model::catalog::{Catalog, Column, Oid, SqlType, TypeKind};
use pgvet_model::effect::RelationName;
use pgvet_model::execute::ask_about_types;
use pgvet_syntax::source::TextRange;

/// How well a new type replaces the old one in queries of deployed code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    /// It takes every value of the old type, and gives them back as they were.
    Wider,
    Other,
}

/// Reports a column that has another type when the transaction has ended.
pub(super) fn report_other_type(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    range: TextRange,
    table: &RelationName,
    end: &Catalog,
    new: &Column,
) {
    let before = context.before.get_relation(table.oid);
    let Some(old) = before.and_then(|relation| relation.column(&new.name)) else { return };
    let change = change((context.before, old.sql_type), (end, new.sql_type));
    if change == Change::None {
        return;
    }
    let path = || context.session.settings.search_path();
    let shown = |catalog, shown| ask_about_types(catalog, path(), context.target, |types| types.format_type(shown));
    let (from, to) = (shown(context.before, old.sql_type), shown(end, new.sql_type));
    let message = format!(
        "after this transaction `{}.{}` has type `{to}`, but deployed code still expects `{from}`",
        table.name, new.name
    );
    let help = format!(
        "keep `{0}`, and add the column of type `{to}` under another name. Drop `{0}` when all deployed code uses the new \
         column",
        new.name
    );
    let mut finding = reporter.report(range, message).relation(table).help(help);
    if change == Change::Wider {
        let (table, column) = (table.name.clone(), new.name.clone());
        finding = finding.assuming(Assumption::WiderTypeMatters { table, column });
    }
    finding.emit();
}

/// Whether it is the same type for queries of deployed code.
pub(super) fn is_same_type(old: (&Catalog, SqlType), new: (&Catalog, SqlType)) -> bool {
    change(old, new) == Change::None
}

/// Whether the new type can hold every value of the old one, and clients write both in the same way.
pub(super) fn takes_every_value(old: (&Catalog, SqlType), new: (&Catalog, SqlType)) -> bool {
    change(old, new) != Change::Other
}

fn change(old: (&Catalog, SqlType), new: (&Catalog, SqlType)) -> Change {
    let (from, to) = (base_type(old.0, old.1), base_type(new.0, new.1));
    if from == to || from.oid == Oid::INVALID || to.oid == Oid::INVALID {
        return Change::None;
    }
    if let (Some(from), Some(to)) = (labels(old.0, from.oid), labels(new.0, to.oid)) {
        let has_all = from.iter().all(|label| to.contains(label));
        return match name(old.0, old.1.oid) == name(new.0, new.1.oid) {
            _ if !has_all => Change::Other,
            true => Change::None,
            false => Change::Wider,
        };
    }
    if name(old.0, from.oid).is_some_and(|old| Some(old) == name(new.0, to.oid)) {
        return Change::None;
    }
    match (family(from.oid), family(to.oid)) {
        (Some(old), Some(new)) if old == new && loss(from, to).is_none() => Change::Wider,
        _ if is_assumed(old.0, from.oid) && is_assumed(new.0, to.oid) => Change::None,
        _ => Change::Other,
    }
}

/// The type below domains.
fn base_type(catalog: &Catalog, mut sql_type: SqlType) -> SqlType {
    while let Some(TypeKind::Domain(domain)) = catalog.get_type(sql_type.oid).map(|found| &found.kind) {
        sql_type = domain.base;
    }
    sql_type
}

fn labels(catalog: &Catalog, oid: Oid) -> Option<Vec<&str>> {
    match &catalog.get_type(oid)?.kind {
        TypeKind::Enum { labels } => Some(labels.iter().map(|label| label.label.as_str()).collect()),
        _ => None,
    }
}

/// The schema and name of a type of the project.
fn name(catalog: &Catalog, oid: Oid) -> Option<(&str, &str)> {
    catalog.get_type(oid).map(|found| (found.schema.as_str(), found.name.as_str()))
}

/// No statement has shown the type.
fn is_assumed(catalog: &Catalog, oid: Oid) -> bool {
    matches!(catalog.get_type(oid).map(|found| &found.kind), Some(TypeKind::Assumed))
}

/// Types whose values clients read and write in the same way.
fn family(oid: Oid) -> Option<&'static str> {
    match type_by_oid(oid.0)?.name {
        "int2" | "int4" | "int8" => Some("integer"),
        "float4" | "float8" => Some("float"),
        "numeric" => Some("numeric"),
        "text" | "varchar" | "bpchar" => Some("text"),
        "json" | "jsonb" => Some("json"),
        _ => None,
    }
}
