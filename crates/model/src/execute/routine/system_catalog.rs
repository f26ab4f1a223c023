//! Answers questions to the system catalogs and the information schema about the existence of a row.

use crate::builtin::BuiltinTypeKind;
use crate::catalog::{Column, Relation, RelationKind, TypeDef, TypeKind};
use crate::execute::Executor;
use pgvet_syntax::ast::{Expr, ExprKind, FromItem, Literal, OperatorForm, Query, QueryBody, SubqueryKind};
use smol_str::SmolStr;
use std::sync::Arc;

/// A query of the system catalogs: the system relations of FROM, and its `column = 'literal'` conditions by the
/// columns' last names. Joins between catalogs are assumed to join rows of the same object.
#[derive(Default)]
struct Question {
    tables: Vec<SmolStr>,
    wanted: Vec<(SmolStr, SmolStr)>,
}

/// Columns that hold the name of a schema or database.
const SCHEMA_COLUMNS: &[&str] = &[
    "constraint_schema",
    "event_object_schema",
    "nspname",
    "routine_schema",
    "schema_name",
    "schemaname",
    "sequence_schema",
    "table_catalog",
    "table_schema",
    "trigger_schema",
];

/// Columns that are compared with a regclass or regtype, whose text folds and qualifies names.
const OID_COLUMNS: &[&str] = &["attrelid", "conrelid", "enumtypid", "oid", "polrelid", "tgrelid"];

impl Question {
    fn get(&self, columns: &[&str]) -> Option<&str> {
        let found = |column: &&str| self.wanted.iter().find(|(name, _)| name == column);
        columns.iter().find_map(found).map(|(_, value)| value.as_str())
    }

    fn asks(&self, tables: &[&str]) -> bool {
        self.tables.iter().any(|table| tables.contains(&table.as_str()))
    }

    /// Whether all conditions are about these columns, or about schemas.
    fn only(&self, columns: &[&str]) -> bool {
        self.wanted.iter().all(|(name, _)| columns.contains(&name.as_str()) || SCHEMA_COLUMNS.contains(&name.as_str()))
    }

    fn in_schema(&self, schema: &str) -> bool {
        self.schemas().all(|wanted| wanted == schema)
    }

    /// The schema of the object in question.
    fn schema(&self) -> Option<&str> {
        self.schemas().next()
    }

    fn schemas(&self) -> impl Iterator<Item = &str> {
        let columns = SCHEMA_COLUMNS.iter().filter(|column| **column != "table_catalog");
        columns.filter_map(move |column| self.get(&[column]))
    }

    /// Whether the catalogs of the question show relations of this kind.
    fn shows(&self, kind: RelationKind) -> bool {
        use RelationKind as K;
        let by_view = self.tables.iter().all(|table| match table.as_str() {
            "pg_tables" => matches!(kind, K::Table | K::PartitionedTable),
            "tables" => kind.is_table() || kind == K::View,
            "pg_views" | "views" => kind == K::View,
            "pg_matviews" => kind == K::MaterializedView,
            "pg_indexes" | "pg_index" => kind.is_index() || self.get(&["indexname"]).is_none(),
            "sequences" | "pg_sequences" => kind == K::Sequence,
            _ => true,
        });
        let by_kind = self.get(&["relkind"]).is_none_or(|wanted| match wanted {
            "r" => kind == K::Table,
            "p" => kind == K::PartitionedTable,
            "i" => kind == K::Index,
            "I" => kind == K::PartitionedIndex,
            "S" => kind == K::Sequence,
            "v" => kind == K::View,
            "m" => kind == K::MaterializedView,
            "c" => kind == K::CompositeType,
            "f" => kind == K::ForeignTable,
            _ => true,
        });
        by_view && by_kind
    }

    /// Whether the relation is the one that the question names, if it names one.
    fn is_relation(&self, relation: &Relation, columns: &[&str]) -> bool {
        self.in_schema(&relation.schema) && self.get(columns).is_none_or(|wanted| wanted == relation.name)
    }
}

/// The name in the text of a regclass or regtype.
fn last_part(text: &str) -> SmolStr {
    pgvet_syntax::lexer::identifier(text.rsplit('.').next().unwrap_or(text))
}

impl Executor<'_> {
    /// The relations that a question may be about: all of them only if it names none.
    fn asked<'s>(&'s self, name: Option<&'s str>) -> Box<dyn Iterator<Item = &'s Arc<Relation>> + 's> {
        match name {
            Some(name) => Box::new(self.catalog.relations_with_name(name)),
            None => Box::new(self.catalog.relations()),
        }
    }

    /// Whether the row that the query asks for exists, and the schema that it names. `None` for catalogs or conditions that
    /// the model does not have.
    pub(super) fn system_row(&self, query: &Query) -> Option<(bool, Option<SmolStr>)> {
        let QueryBody::Select(select) = &query.body else { return None };
        if query.with.is_some() || !select.group_by.is_empty() || select.having.is_some() || query.offset.is_some() {
            return None;
        }
        let mut question = Question::default();
        for item in &select.from {
            self.system_tables(item, &mut question)?;
        }
        if let Some(filter) = select.filter.as_ref() {
            self.conditions(filter, &mut question)?;
        }
        let schema = question.schema().map(SmolStr::new);
        self.answer(&question).map(|found| (found, schema))
    }

    fn answer(&self, question: &Question) -> Option<bool> {
        if question.asks(&["pg_constraint", "table_constraints", "key_column_usage", "constraint_column_usage"]) {
            self.has_constraint(question)
        } else if question.asks(&["columns", "pg_attribute"]) {
            self.has_column(question)
        } else if question.asks(&["pg_trigger", "triggers"]) {
            self.has_trigger(question)
        } else if question.asks(&["pg_policies", "pg_policy"]) {
            self.has_policy(question)
        } else if question.asks(&["pg_enum"]) {
            self.has_label(question)
        } else if question.asks(&["pg_type"]) {
            self.has_type(question)
        } else if question.asks(&["pg_proc", "routines"]) {
            self.has_function(question)
        } else if question.asks(&[
            "pg_class",
            "tables",
            "pg_tables",
            "pg_indexes",
            "views",
            "pg_views",
            "pg_matviews",
            "sequences",
        ]) {
            self.has_relation(question)
        } else if question.asks(&["pg_extension"]) {
            question.get(&["extname"]).map(|name| self.catalog.extension(name).is_some())
        } else if question.asks(&["pg_namespace", "schemata"]) {
            question.get(&["nspname", "schema_name"]).map(|name| self.catalog.has_schema(name))
        } else if question.asks(&["pg_publication"]) {
            question.get(&["pubname"]).map(|name| self.catalog.publication(name).is_some())
        } else {
            None
        }
    }

    fn has_constraint(&self, question: &Question) -> Option<bool> {
        const TABLE: &[&str] = &["conrelid", "table_name", "relname"];
        const NAME: &[&str] = &["conname", "constraint_name"];
        const KIND: &[&str] = &["contype", "constraint_type"];
        let name = question.get(NAME);
        let primary = matches!(question.get(KIND), Some("PRIMARY KEY" | "p"));
        if (name.is_none() && !primary) || !question.only(&[TABLE, NAME, KIND].concat()) {
            return None;
        }
        if name.is_some_and(|name| !self.catalog.has_constraint_named(name)) {
            return Some(false);
        }
        Some(self.asked(question.get(TABLE)).any(|relation| {
            question.is_relation(relation, TABLE)
                && match name {
                    Some(name) => relation.constraint(name).is_some(),
                    None => relation.primary_key().is_some(),
                }
        }))
    }

    fn has_column(&self, question: &Question) -> Option<bool> {
        const TABLE: &[&str] = &["table_name", "relname", "attrelid"];
        const NAME: &[&str] = &["column_name", "attname"];
        const FACTS: &[&str] = &["data_type", "is_nullable", "udt_name", "attnotnull"];
        let table = question.get(TABLE)?;
        let name = question.get(NAME)?;
        if !question.only(&[TABLE, NAME, FACTS].concat()) {
            return None;
        }
        for relation in self.asked(Some(table)).filter(|relation| question.is_relation(relation, TABLE)) {
            if let Some(column) = relation.column(name) {
                return self.column_is(column, question);
            }
            if !relation.known {
                return None;
            }
        }
        Some(false)
    }

    /// Whether the column meets the conditions on `information_schema.columns`.
    fn column_is(&self, column: &Column, question: &Question) -> Option<bool> {
        let mut all = true;
        if let Some(wanted) = question.get(&["is_nullable"]) {
            all &= wanted.eq_ignore_ascii_case("NO") == column.not_null;
        }
        if let Some(wanted) = question.get(&["attnotnull"]) {
            all &= matches!(wanted, "t" | "true") == column.not_null;
        }
        let oid = column.sql_type.oid;
        if let Some(wanted) = question.get(&["data_type"]) {
            all &= wanted == self.data_type(column)?;
        }
        if let Some(wanted) = question.get(&["udt_name"]) {
            let name = match crate::builtin::type_by_oid(oid.0) {
                Some(builtin) => SmolStr::new(builtin.name),
                None => self.catalog.get_type(oid)?.name.clone(),
            };
            all &= wanted == name;
        }
        Some(all)
    }

    /// `information_schema.columns.data_type`.
    fn data_type(&self, column: &Column) -> Option<String> {
        let sql_type = column.sql_type;
        if !sql_type.is_known() {
            return None;
        }
        if let Some(definition) = self.catalog.get_type(sql_type.oid) {
            return match definition.kind {
                TypeKind::Array { .. } => Some("ARRAY".to_owned()),
                TypeKind::Domain(_) | TypeKind::Assumed | TypeKind::Shell => None,
                _ => Some("USER-DEFINED".to_owned()),
            };
        }
        let plain = crate::catalog::SqlType::new(sql_type.oid);
        let name = self.with_analyzer(|analyzer| analyzer.format_type(plain));
        Some(if name.ends_with("[]") { "ARRAY".to_owned() } else { name })
    }

    fn has_relation(&self, question: &Question) -> Option<bool> {
        const NAME: &[&str] =
            &["indexname", "relname", "table_name", "tablename", "viewname", "matviewname", "sequence_name", "oid"];
        const ALL: &[&str] = &["indexrelid", "relkind", "table_type", "indrelid"];
        let name = question.get(NAME)?;
        if !question.only(&[NAME, ALL].concat()) || question.get(&["indexrelid", "indrelid"]).is_some() {
            return None;
        }
        let table = question.get(&["indexname"]).and(question.get(&["tablename"]));
        let found = self.asked(Some(name)).any(|relation| {
            question.in_schema(&relation.schema)
                && question.shows(relation.kind)
                && table.is_none_or(|table| {
                    let of = relation.index().and_then(|index| self.catalog.get_relation(index.table));
                    of.is_some_and(|of| of.name == table)
                })
        });
        // Its kind and its table are not known.
        let is_open = !found && self.has_own_relation(name, |schema| question.in_schema(schema));
        (!is_open).then_some(found)
    }

    fn has_trigger(&self, question: &Question) -> Option<bool> {
        const TABLE: &[&str] = &["tgrelid", "event_object_table", "relname"];
        const NAME: &[&str] = &["tgname", "trigger_name"];
        let name = question.get(NAME)?;
        if !question.only(&[TABLE, NAME].concat()) {
            return None;
        }
        let mut relations = self.asked(question.get(TABLE));
        Some(relations.any(|relation| question.is_relation(relation, TABLE) && relation.triggers.contains(name)))
    }

    fn has_policy(&self, question: &Question) -> Option<bool> {
        const TABLE: &[&str] = &["tablename", "polrelid", "relname"];
        const NAME: &[&str] = &["policyname", "polname"];
        let name = question.get(NAME)?;
        if !question.only(&[TABLE, NAME].concat()) {
            return None;
        }
        let mut relations = self.asked(question.get(TABLE));
        Some(relations.any(|relation| question.is_relation(relation, TABLE) && relation.policies.contains(name)))
    }

    fn has_label(&self, question: &Question) -> Option<bool> {
        const TYPE: &[&str] = &["typname", "enumtypid"];
        let label = question.get(&["enumlabel"])?;
        if !question.only(&[TYPE, &["enumlabel"]].concat()) {
            return None;
        }
        let has_it = |definition: &Arc<TypeDef>| {
            question.in_schema(&definition.schema)
                && matches!(&definition.kind, TypeKind::Enum { labels } if labels.contains(label))
        };
        Some(match question.get(TYPE) {
            Some(name) => self.catalog.types_with_name(name).any(has_it),
            None => self.catalog.types().any(has_it),
        })
    }

    fn has_type(&self, question: &Question) -> Option<bool> {
        let name = question.get(&["typname", "oid"])?;
        if !question.only(&["typname", "typtype", "oid"]) {
            return None;
        }
        let has_row_type = |relation: &Arc<Relation>| relation.kind.is_table() && question.in_schema(&relation.schema);
        let is_enum = question.get(&["typtype"]) == Some("e");
        let found = self.catalog.types_with_name(name).any(|definition| {
            question.in_schema(&definition.schema) && (!is_enum || matches!(definition.kind, TypeKind::Enum { .. }))
        });
        let kind = is_enum.then_some(BuiltinTypeKind::Enum);
        let of_project = found || (!is_enum && self.asked(Some(name)).any(has_row_type));
        Some(of_project || self.has_own_type(name, kind, |schema| question.in_schema(schema)))
    }

    fn has_function(&self, question: &Question) -> Option<bool> {
        let name = question.get(&["proname", "routine_name"])?;
        if !question.only(&["proname", "routine_name", "routine_type", "prokind"]) {
            return None;
        }
        Some(self.has_function_named(name, |schema| question.in_schema(schema)))
    }

    /// The names of the system relations in FROM; `None` when there is anything else.
    fn system_tables(&self, item: &FromItem, question: &mut Question) -> Option<()> {
        match item {
            FromItem::Relation(relation) => {
                let schema = relation.name.schema.as_ref().map(|schema| schema.text.as_str());
                let name = &relation.name.name.text;
                let system = matches!(schema, Some("pg_catalog" | "information_schema")) || name.starts_with("pg_");
                system.then(|| question.tables.push(name.clone()))
            }
            FromItem::Join { left, right, on, .. } => {
                self.system_tables(left, question)?;
                self.system_tables(right, question)?;
                on.as_ref().map_or(Some(()), |on| self.conditions(on, question))
            }
            _ => None,
        }
    }

    /// Collects `column = 'literal'`; joins of catalogs and harmless conditions are passed over, anything else gives up.
    fn conditions(&self, filter: &Expr, question: &mut Question) -> Option<()> {
        match &filter.kind {
            ExprKind::And(parts) => parts.iter().try_for_each(|part| self.conditions(part, question)),
            ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } if operator == "=" => {
                let [left, right] = operands.as_slice() else { return None };
                match (self.column(left), self.column(right)) {
                    (Some(_), Some(_)) => Some(()),
                    (Some(column), None) => self.condition(column, right, question),
                    (None, Some(column)) => self.condition(column, left, question),
                    (None, None) => (self.decide(filter)?).then_some(()),
                }
            }
            ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } if operator == ">" => {
                operands.first().and_then(|one| self.column(one)).filter(|name| name == "attnum").map(|_| ())
            }
            // `relkind IN ('r', 'p')`, `nspname = ANY (current_schemas(false))`
            ExprKind::Operator { operator, form: OperatorForm::In | OperatorForm::AnyArray, operands, .. }
                if operator == "=" =>
            {
                let column = operands.first().and_then(|one| self.column(one))?;
                let harmless = ["relkind", "table_type"].contains(&column.as_str())
                    || (SCHEMA_COLUMNS.contains(&column.as_str()) && operands.get(1).is_some_and(is_search_path));
                harmless.then_some(())
            }
            // `NOT attisdropped`, `NOT tgisinternal`
            ExprKind::Not(inner) => {
                self.column(inner).filter(|name| ["attisdropped", "tgisinternal"].contains(&name.as_str())).map(|_| ())
            }
            // `attnotnull`
            ExprKind::Column(_) => {
                let column = self.column(filter)?;
                question.wanted.push((column, SmolStr::new_static("true")));
                Some(())
            }
            _ => None,
        }
    }

    /// `column = value`.
    fn condition(&self, column: SmolStr, value: &Expr, question: &mut Question) -> Option<()> {
        match &value.kind {
            // `conrelid = (SELECT oid FROM pg_class WHERE relname = 't')`
            ExprKind::Subquery { query, kind: SubqueryKind::Scalar, .. } => {
                let QueryBody::Select(select) = &query.body else { return None };
                for item in &select.from {
                    self.system_tables(item, question)?;
                }
                select.filter.as_ref().map_or(Some(()), |filter| self.conditions(filter, question))
            }
            ExprKind::Call(call) if matches!(call.name.as_str(), "current_schema" | "current_database") => Some(()),
            ExprKind::SqlValue(name, _) if matches!(name.as_str(), "current_schema" | "current_catalog") => Some(()),
            // The schema that a template engine fills in is the one that the migration is about.
            _ if is_template(value) && SCHEMA_COLUMNS.contains(&column.as_str()) => Some(()),
            ExprKind::Literal(Literal::Boolean(false))
                if matches!(column.as_str(), "attisdropped" | "tgisinternal") =>
            {
                Some(())
            }
            _ => {
                let named = self.regclass(value);
                let is_oid = named.is_some() || OID_COLUMNS.contains(&column.as_str());
                let text = match named {
                    Some(name) => name,
                    None => self.value(value)?.as_text()?.to_owned(),
                };
                if is_oid && let Some((schema, _)) = text.rsplit_once('.') {
                    question.wanted.push((SmolStr::new_static("nspname"), last_part(schema)));
                }
                question.wanted.push((column, if is_oid { last_part(&text) } else { text.into() }));
                Some(())
            }
        }
    }

    /// The name in `'t'::regclass` and `to_regclass('t')`, whether or not it exists.
    fn regclass(&self, value: &Expr) -> Option<String> {
        match &value.kind {
            ExprKind::Cast { operand, .. } => self.regclass(operand),
            ExprKind::Call(call) if matches!(call.name.as_str(), "to_regclass" | "to_regtype") => {
                let argument = self.value(&call.arguments.first()?.value)?;
                argument.as_text().map(str::to_owned)
            }
            _ => None,
        }
    }

    /// The column of a catalog that an expression is; variables are none.
    fn column(&self, expr: &Expr) -> Option<SmolStr> {
        match &expr.kind {
            ExprKind::Column(parts) if !self.variables.has(parts) => parts.last().cloned(),
            ExprKind::Cast { operand, .. } => self.column(operand),
            _ => None,
        }
    }
}

fn is_template(expr: &Expr) -> bool {
    pgvet_syntax::ast::string_literal(expr).is_some_and(|text| text.contains("{{"))
}

fn is_search_path(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Call(call) if call.name == "current_schemas")
}
