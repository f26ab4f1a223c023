//! Decides conditions about the system catalogs, the usual way to make a migration repeatable:
//! `IF NOT EXISTS (SELECT 1 FROM pg_type WHERE typname = 'mood') THEN`.

use super::Executor;
use crate::ast::{Expr, ExprKind, FromItem, Literal, ObjectName, OperatorForm, Query, QueryBody, SubqueryKind};
use crate::effect::RelationKind;
use crate::execute::Knowledge;
use smol_str::SmolStr;

/// `column = 'literal'` conditions of a query, by the column's last name.
type Wanted = Vec<(SmolStr, SmolStr)>;

impl Executor<'_> {
    /// The truth of a condition, where the catalog as the history shows it decides.
    pub(super) fn decide(&self, condition: &Expr, variables: &[(SmolStr, String)]) -> Option<bool> {
        match &condition.kind {
            ExprKind::Not(inner) => self.decide(inner, variables).map(|truth| !truth),
            ExprKind::And(parts) => {
                let truths: Vec<_> = parts.iter().map(|part| self.decide(part, variables)).collect();
                if truths.contains(&Some(false)) {
                    return Some(false);
                }
                truths.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
            }
            ExprKind::Or(parts) => {
                let truths: Vec<_> = parts.iter().map(|part| self.decide(part, variables)).collect();
                if truths.contains(&Some(true)) {
                    return Some(true);
                }
                truths.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
            }
            ExprKind::Literal(Literal::Boolean(value)) => Some(*value),
            ExprKind::Subquery { kind: SubqueryKind::Exists, query, .. } => self.exists(query, variables),
            ExprKind::IsNull { operand, negated } => {
                self.is_null_lookup(operand, variables).map(|null| null != *negated)
            }
            _ => None,
        }
    }

    /// `to_regclass('t') IS NULL`.
    fn is_null_lookup(&self, operand: &Expr, variables: &[(SmolStr, String)]) -> Option<bool> {
        let ExprKind::Call(call) = &operand.kind else { return None };
        let argument = call.arguments.first().and_then(|argument| text(&argument.value, variables))?;
        match call.name.as_str() {
            "to_regclass" => {
                let found = self.named(&argument).is_some();
                self.certain(found).map(|found| !found)
            }
            _ => None,
        }
    }

    /// Something that was found exists; something that was not found is missing only where history is known.
    fn certain(&self, found: bool) -> Option<bool> {
        (found || self.knowledge != Knowledge::Nothing).then_some(found)
    }

    fn named(&self, name: &str) -> Option<crate::catalog::Oid> {
        let (schema, name) = match name.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, name),
        };
        let part =
            |text: &str| crate::ast::Name::new(crate::lexer::identifier(text), crate::source::TextRange::default());
        self.find(&ObjectName { schema: schema.map(part), name: part(name) })
    }

    fn exists(&self, query: &Query, variables: &[(SmolStr, String)]) -> Option<bool> {
        let QueryBody::Select(select) = &query.body else { return None };
        if query.with.is_some() || !select.group_by.is_empty() || select.having.is_some() {
            return None;
        }
        let mut tables = Vec::new();
        let mut wanted = Wanted::new();
        for item in &select.from {
            system_tables(item, &mut tables, &mut wanted, variables)?;
        }
        if let Some(filter) = &select.filter {
            conditions(filter, &mut wanted, variables)?;
        }
        let tables: Vec<&str> = tables.iter().map(SmolStr::as_str).collect();
        self.catalog_has(&tables, &wanted).and_then(|found| self.certain(found))
    }

    /// Is there such a row? `None` for catalogs or conditions that the model does not have.
    fn catalog_has(&self, tables: &[&str], wanted: &Wanted) -> Option<bool> {
        let get = |column: &str| wanted.iter().find(|(name, _)| name == column).map(|(_, value)| value.as_str());
        let in_schema = |column: &str, schema: &SmolStr| get(column).is_none_or(|wanted| wanted == schema);
        let has = |table: &str| tables.contains(&table);
        if has("pg_constraint") || has("table_constraints") {
            let name = get("conname").or_else(|| get("constraint_name"));
            let primary = matches!(get("constraint_type").or_else(|| get("contype")), Some("PRIMARY KEY" | "p"));
            if name.is_none() && !primary {
                return None;
            }
            let on_table = |table: &SmolStr| {
                let wanted = get("conrelid").or_else(|| get("table_name")).or_else(|| get("relname"));
                wanted
                    .is_none_or(|wanted| wanted.rsplit('.').next().is_some_and(|last| last.trim_matches('"') == table))
            };
            return Some(self.catalog.relations().any(|relation| {
                on_table(&relation.name)
                    && (in_schema("constraint_schema", &relation.schema) && in_schema("table_schema", &relation.schema))
                    && match name {
                        Some(name) => relation.constraint(name).is_some(),
                        None => relation.primary_key().is_some(),
                    }
            }));
        }
        if has("columns") || has("pg_attribute") {
            let table = get("table_name").or_else(|| get("relname")).or_else(|| get("attrelid"))?;
            let column = get("column_name").or_else(|| get("attname"))?;
            let table = table.rsplit('.').next()?.trim_matches('"');
            if get("data_type").is_some() || get("is_nullable").is_some() || get("udt_name").is_some() {
                return None;
            }
            return Some(self.catalog.relations().any(|relation| {
                relation.name == table
                    && in_schema("table_schema", &relation.schema)
                    && relation.column(column).is_some()
            }));
        }
        if has("pg_class") || has("tables") || has("pg_tables") || has("pg_indexes") || has("views") || has("sequences")
        {
            let columns = ["indexname", "relname", "table_name", "tablename", "viewname", "sequence_name"];
            let name = columns.into_iter().find_map(get)?;
            let index = get("indexname").is_some() || get("relkind") == Some("i");
            return Some(self.catalog.relations().any(|relation| {
                relation.name == name
                    && ["schemaname", "table_schema", "nspname", "sequence_schema"]
                        .into_iter()
                        .all(|column| in_schema(column, &relation.schema))
                    && (!index || matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex))
            }));
        }
        if has("pg_trigger") || has("triggers") {
            let name = get("tgname").or_else(|| get("trigger_name"))?;
            let table = get("tgrelid").or_else(|| get("event_object_table")).or_else(|| get("relname"));
            return Some(self.catalog.relations().any(|relation| {
                table.is_none_or(|table| table.rsplit('.').next() == Some(relation.name.as_str()))
                    && relation.triggers.iter().any(|trigger| trigger.name == name)
            }));
        }
        if has("pg_policies") || has("pg_policy") {
            let name = get("policyname").or_else(|| get("polname"))?;
            return Some(self.catalog.relations().any(|relation| {
                get("tablename").is_none_or(|table| table == relation.name)
                    && relation.policies.iter().any(|policy| policy.name == name)
            }));
        }
        if has("pg_enum") {
            let label = get("enumlabel")?;
            return Some(self.catalog.types().any(|definition| {
                let of_type = get("typname").or_else(|| get("enumtypid"));
                of_type.is_none_or(|wanted| wanted.rsplit('.').next().is_some_and(|last| last.trim_matches('"') == definition.name))
                    && matches!(&definition.kind, crate::catalog::TypeKind::Enum { labels } if labels.iter().any(|one| one.label == label))
            }));
        }
        if has("pg_type") {
            let name = get("typname")?;
            return Some(
                self.catalog
                    .types()
                    .any(|definition| definition.name == name && in_schema("nspname", &definition.schema))
                    || self.catalog.relations().any(|relation| relation.name == name && relation.kind.is_table()),
            );
        }
        if has("pg_proc") || has("routines") {
            let name = get("proname").or_else(|| get("routine_name"))?;
            return Some(self.catalog.functions().any(|function| function.name == name));
        }
        if has("pg_extension") {
            let name = get("extname")?;
            return Some(self.catalog.extension(name).is_some());
        }
        if has("pg_namespace") || has("schemata") {
            let name = get("nspname").or_else(|| get("schema_name"))?;
            return Some(self.catalog.has_schema(name));
        }
        if has("pg_publication") {
            let name = get("pubname")?;
            return Some(self.catalog.publication(name).is_some());
        }
        None
    }
}

/// The names of the system relations in FROM; `None` when there is anything else.
fn system_tables(
    item: &FromItem,
    tables: &mut Vec<SmolStr>,
    wanted: &mut Wanted,
    variables: &[(SmolStr, String)],
) -> Option<()> {
    match item {
        FromItem::Relation(relation) => {
            let schema = relation.name.schema.as_ref().map(|schema| schema.text.as_str());
            let name = &relation.name.name.text;
            let system = matches!(schema, Some("pg_catalog" | "information_schema")) || name.starts_with("pg_");
            system.then(|| tables.push(name.clone()))
        }
        FromItem::Join { left, right, on, .. } => {
            system_tables(left, tables, wanted, variables)?;
            system_tables(right, tables, wanted, variables)?;
            on.as_ref().map_or(Some(()), |on| conditions(on, wanted, variables))
        }
        _ => None,
    }
}

/// Collects `column = 'literal'`; joins of catalogs and harmless conditions are passed over, anything else gives up.
fn conditions(filter: &Expr, wanted: &mut Wanted, variables: &[(SmolStr, String)]) -> Option<()> {
    match &filter.kind {
        ExprKind::And(parts) => parts.iter().try_for_each(|part| conditions(part, wanted, variables)),
        ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } if operator == "=" => {
            let [left, right] = operands.as_slice() else { return None };
            let (column, value) = match (column(left), column(right)) {
                (Some(_), Some(_)) => return Some(()),
                (Some(column), None) => (column, right),
                (None, Some(column)) => (column, left),
                (None, None) => return None,
            };
            match value.kind {
                ExprKind::Subquery { ref query, kind: SubqueryKind::Scalar, .. } => {
                    let QueryBody::Select(select) = &query.body else { return None };
                    let mut tables = Vec::new();
                    for item in &select.from {
                        system_tables(item, &mut tables, wanted, variables)?;
                    }
                    select.filter.as_ref().map_or(Some(()), |filter| conditions(filter, wanted, variables))
                }
                ExprKind::Call(ref call) if matches!(call.name.as_str(), "current_schema" | "current_database") => {
                    Some(())
                }
                _ => {
                    wanted.push((column, text(value, variables)?.into()));
                    Some(())
                }
            }
        }
        ExprKind::Not(inner) => {
            // `NOT attisdropped`, `NOT tgisinternal`
            column(inner).map(|_| ())
        }
        ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } if operator == ">" => {
            // `attnum > 0`
            operands.first().and_then(column).filter(|name| name == "attnum").map(|_| ())
        }
        _ => None,
    }
}

fn column(expr: &Expr) -> Option<SmolStr> {
    match &expr.kind {
        ExprKind::Column(parts) => parts.last().cloned(),
        ExprKind::Cast { operand, .. } => column(operand),
        _ => None,
    }
}

fn text(expr: &Expr, variables: &[(SmolStr, String)]) -> Option<String> {
    match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => Some(text.to_string()),
        ExprKind::Cast { operand, .. } => text(operand, variables),
        ExprKind::Column(parts) => {
            let [name] = parts.as_slice() else { return None };
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        }
        _ => None,
    }
}
