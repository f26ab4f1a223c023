//! The model's queries about types and expressions: the catalog as [`crate::expression`] sees it.

use super::{Executor, Knowledge, Run, fail};
use crate::builtin::{self, BuiltinTypeKind, CastContext, Extension, Volatility};
use crate::catalog::{Catalog, Column, ConstraintKind, Function, Oid, SearchPath, SqlType, TypeDef, TypeKind};
use crate::effect::{Failure, FailureSubject};
use crate::expression::{self, Analyzer, Coercion, Refused, Schema, Scope, Typed};
use crate::version::Target;
use pgvet_syntax::ast::{Expr, ExprKind, FunctionBody, Literal, Name, ObjectName, Query, TypeName};
use pgvet_syntax::deparse;
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

/// The effect of a change of a column's type on the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeChange {
    /// PostgreSQL refuses it with this SQLSTATE.
    Impossible(&'static str),
    Rewrite,
    NoRewrite,
    /// None if the time zone is UTC, which no statement says.
    NoRewriteInUtc,
}

/// The catalog along a search path.
pub(crate) struct SchemaView<'a> {
    catalog: &'a Catalog,
    search_path: SearchPath,
}

/// Asks something about expressions in a catalog along a search path.
pub fn ask<T>(
    catalog: &Catalog,
    search_path: SearchPath,
    target: &Target,
    question: impl FnOnce(&Analyzer<'_>) -> T,
) -> T {
    question(&Analyzer::new(&SchemaView { catalog, search_path }, target))
}

impl SchemaView<'_> {
    /// The schemas in which a name is searched for.
    fn schemas<'s>(&'s self, schema: Option<&'s str>) -> impl Iterator<Item = &'s str> {
        let path = if schema.is_some() { &[] } else { &self.search_path[..] };
        schema.into_iter().chain(path.iter().map(SmolStr::as_str))
    }
}

impl Schema for SchemaView<'_> {
    fn type_named(&self, schema: Option<&str>, name: &str) -> Option<Oid> {
        self.schemas(schema).find_map(|schema| self.catalog.type_named(schema, name))
    }

    fn type_by_oid(&self, oid: Oid) -> Option<Arc<TypeDef>> {
        self.catalog.get_type(oid).cloned()
    }

    fn functions_named(&self, schema: Option<&str>, name: &str) -> Vec<Arc<Function>> {
        self.schemas(schema).flat_map(|schema| self.catalog.functions_named(schema, name).cloned()).collect()
    }

    fn relation_named(&self, schema: Option<&str>, name: &str) -> Option<Oid> {
        let plain = |text: &str| Name::new(text, pgvet_syntax::source::TextRange::default());
        self.catalog.find_relation(&ObjectName { schema: schema.map(plain), name: plain(name) }, &self.search_path)
    }

    fn columns(&self, relation: Oid) -> Option<Vec<(SmolStr, SqlType)>> {
        let relation = self.catalog.get_relation(relation).filter(|relation| relation.known)?;
        Some(relation.columns.iter().map(|column| (column.name.clone(), column.sql_type)).collect())
    }

    fn sql_body(&self, function: &Function) -> Option<Arc<Query>> {
        let mut statements = match &*function.body {
            // A body that reads a table cannot be inlined; most are recognized without parsing.
            FunctionBody::Source { text, .. } if mentions_word(text, "from") => return None,
            FunctionBody::Source { text, .. } => pgvet_syntax::ast::from_pg::parse_sql(text).ok()?,
            FunctionBody::Atomic { statements, .. } => statements.clone(),
            FunctionBody::Library | FunctionBody::Missing => return None,
        };
        match (statements.pop(), statements.is_empty()) {
            (Some(pgvet_syntax::ast::Ast::Select(query)), true) => Some(Arc::new(*query)),
            _ => None,
        }
    }

    fn extensions(&self) -> &[&'static Extension] {
        self.catalog.known_extensions()
    }
}

impl Executor<'_> {
    /// Asks something about expressions, with the catalog and session as they are.
    pub(crate) fn with_analyzer<T>(&self, ask: impl FnOnce(&Analyzer<'_>) -> T) -> T {
        self::ask(&self.catalog, self.session.settings.search_path(), self.target, ask)
    }

    pub(crate) fn is_domain(&self, sql_type: SqlType) -> bool {
        let kind = self.catalog.get_type(sql_type.oid).map(|definition| &definition.kind);
        matches!(kind, Some(TypeKind::Domain(_)))
    }

    pub(crate) fn is_enum(&self, oid: Oid) -> bool {
        self.catalog.get_type(oid).is_some_and(|own| matches!(own.kind, TypeKind::Enum { .. }))
    }

    /// Whether a default is stored. `DEFAULT NULL` is not, unless the null is coerced: to a domain, or to a length. An
    /// interval takes its modifier at once.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/heap.c`, `AddRelationNewConstraints`;
    /// `src/backend/parser/parse_coerce.c`, `coerce_type` and `coerce_type_typmod`.
    pub(crate) fn keeps_default(&self, default: &Expr, sql_type: SqlType) -> bool {
        let is_interval = sql_type.oid == Oid(builtin::oid::INTERVAL);
        let coerced = self.is_domain(sql_type) || (sql_type.typmod >= 0 && !is_interval);
        coerced || !is_null_literal(default)
    }

    /// The default as a column keeps it.
    pub(crate) fn stored_default(&self, default: &Expr, sql_type: SqlType) -> Run<Option<Arc<Expr>>> {
        self.check_named_relations(default)?;
        self.check_enum_literal(sql_type, default)?;
        self.check_enum_casts(default)?;
        Ok(self.keeps_default(default, sql_type).then(|| Arc::new(default.clone())))
    }

    /// The columns of a table as a scope.
    pub(crate) fn scope_of(&self, table: Oid) -> Scope {
        let relation = self.catalog.relation(table);
        Scope::of_columns(&relation.name, relation.columns.iter().map(|column| (column.name.clone(), column.sql_type)))
    }

    /// The type that a name stands for. A type that no statement has shown is an extension's, or assumed to exist.
    pub(crate) fn resolve_type(&mut self, name: &TypeName) -> SqlType {
        let resolved = self.with_analyzer(|analyzer| analyzer.resolve_type(name));
        if resolved.is_known() || name.percent_type.is_some() {
            return resolved;
        }
        let extension = self.extension_with_type(&name.name);
        let schema = name.schema.clone().or_else(|| self.catalog.extension(extension?.name).cloned());
        let schema = schema.or_else(|| self.schema_of_unknown_extension(&name.name));
        let schema = schema.unwrap_or_else(|| self.creation_schema());
        let kind = extension.map_or(TypeKind::Assumed, |_| TypeKind::Base);
        let known = self.catalog.type_named(&schema, &name.name);
        let oid = known.unwrap_or_else(|| self.catalog.add_type(&schema, &name.name, kind, 0));
        let typmod = match name.modifiers.as_slice() {
            [] => -1,
            modifiers => self.catalog.typmod_of(oid, &deparse::modifiers(modifiers)),
        };
        let array = || self.catalog.get_type(oid).map_or(Oid::INVALID, |definition| definition.array);
        SqlType { oid: if name.is_array { array() } else { oid }, typmod }
    }

    /// The installed extension that has a base type of this name.
    fn extension_with_type(&self, name: &str) -> Option<&'static Extension> {
        let provides = |extension: &&&'static Extension| {
            extension.types.iter().any(|provided| provided.name == name && provided.kind == BuiltinTypeKind::Base)
        };
        self.catalog.known_extensions().iter().find(provides).copied()
    }

    /// The schema in which a type of an extension is found whose objects are not known: that of the extension with the
    /// name of the type, or else the first of the search path that has such an extension. The role or the database may set
    /// the path if no statement does; then the schema of the extensions is taken if they are all in one.
    fn schema_of_unknown_extension(&self, type_name: &str) -> Option<SmolStr> {
        let path = self.session.settings.search_path();
        let schemas = || self.catalog.unknown_extensions().map(|(_, schema)| schema);
        let namesake = self.catalog.unknown_extensions().find(|(name, _)| *name == type_name).map(|(_, schema)| schema);
        let is_found = |schema: &&SmolStr| path.is_assumed() || path.contains(*schema);
        let in_path = path.iter().find(|schema| schemas().any(|own| own == *schema));
        let only = schemas().next().filter(|first| path.is_assumed() && schemas().all(|schema| schema == *first));
        namesake.filter(is_found).or(in_path).or(only).cloned()
    }

    /// The type of a new column, or of one that changes. Where everything is known but a type, it does not exist.
    pub(crate) fn require_type(&mut self, name: &TypeName) -> Run<SqlType> {
        let certain = self.knows_all_of(name.schema.as_ref()) && self.catalog.extensions().next().is_none();
        let resolved = self.resolve_type(name);
        let kind = self.catalog.get_type(resolved.oid).map(|definition| &definition.kind);
        let element = match kind {
            Some(TypeKind::Array { element }) => self.catalog.get_type(*element).map(|definition| &definition.kind),
            other => other,
        };
        if certain && matches!(element, Some(TypeKind::Assumed)) {
            if let Some(schema) = &name.schema {
                self.check_schema(&Name::new(schema.clone(), name.range))?;
            }
            return fail("42704", format!("type \"{}\" does not exist", name.name), name.range);
        }
        Ok(resolved)
    }

    /// Analyses an expression over the columns of `table`.
    pub(crate) fn analyze(&self, expr: &Expr, table: Option<Oid>) -> Typed {
        let scope = table.map_or_else(Scope::default, |table| self.scope_of(table));
        self.with_analyzer(|analyzer| analyzer.infer(expr, &scope))
    }

    /// Whether all functions, operators and casts of the database are known.
    pub(crate) fn knows_all_code(&self) -> bool {
        self.knowledge == Knowledge::Everything && self.catalog.knows_all_code()
    }

    /// Fails where an expression calls what does not exist, as far as all that may exist is known.
    pub(crate) fn check_meaning(&self, typed: &Typed, range: TextRange) -> Run {
        let Some(refused) = &typed.refused else { return Ok(()) };
        let certain = if refused.subject == FailureSubject::Function {
            self.knows_all_code()
        } else {
            self.knowledge >= Knowledge::History && self.catalog.knows_all_code()
        };
        let Refused { sqlstate, reason, subject } = refused.clone();
        if certain { Err(Failure { subject, ..Failure::new(sqlstate, reason, range) }) } else { Ok(()) }
    }

    /// The same for all expressions of a query.
    pub(crate) fn check_query_meaning(&self, query: &Query, range: TextRange) -> Run {
        if !self.catalog.knows_all_code() {
            return Ok(());
        }
        self.check_meaning(&self.with_analyzer(|analyzer| analyzer.infer_query(query)), range)
    }

    /// The name of the domain where the type is one that has constraints, itself or below.
    pub(crate) fn constrained_domain(&self, sql_type: SqlType) -> Option<SmolStr> {
        let mut oid = sql_type.oid;
        let mut outermost = None;
        while let Some(definition) = self.catalog.get_type(oid) {
            let TypeKind::Domain(domain) = &definition.kind else { break };
            outermost.get_or_insert_with(|| definition.name.clone());
            if domain.not_null || !domain.checks.is_empty() {
                return outermost;
            }
            oid = domain.base.oid;
        }
        None
    }

    /// The default that a column gets from its type: that of the outermost domain that has one.
    pub(crate) fn domain_default(&self, sql_type: SqlType) -> Option<Arc<Expr>> {
        let mut oid = sql_type.oid;
        while let Some(TypeKind::Domain(domain)) = self.catalog.get_type(oid).map(|definition| &definition.kind) {
            if domain.default.is_some() {
                return domain.default.clone();
            }
            oid = domain.base.oid;
        }
        None
    }

    /// The volatile function in a default, coerced to the column's type; an empty name where none is to blame.
    pub(crate) fn volatility_of_default(&mut self, default: &Expr, table: Oid, sql_type: SqlType) -> Option<SmolStr> {
        let scope = self.scope_of(table);
        let (typed, coerced) = self.with_analyzer(|analyzer| {
            let typed = analyzer.infer(default, &scope);
            let coerced = match analyzer.coercion(typed.sql_type, sql_type, CastContext::Assignment) {
                Coercion::Steps(steps) => steps.iter().any(|step| step.volatility() == Volatility::Volatile),
                _ => false,
            };
            (typed, coerced)
        });
        for reason in typed.unknown {
            self.unknown(reason);
        }
        (coerced || typed.volatility == Volatility::Volatile).then(|| typed.volatile_function.unwrap_or_default())
    }

    /// Whether the valid constraints of the table prove that the column holds no null.
    pub(crate) fn constraints_imply_not_null(&self, table: Oid, column: &SmolStr) -> bool {
        self.catalog.relation(table).constraints.iter().any(|constraint| match &constraint.kind {
            ConstraintKind::Check { expression, .. } => {
                constraint.holds() && expression::check_implies_not_null(expression, column)
            }
            _ => false,
        })
    }

    /// Returns the effect of a change of a column's type on the rows.
    pub(crate) fn type_change(
        &mut self,
        table: Oid,
        column: &Column,
        new: SqlType,
        using: Option<&Expr>,
    ) -> TypeChange {
        let scope = self.scope_of(table);
        let utc = self.target.at_least(12) && self.session.settings.time_zone_is_utc();
        let change = |utc| {
            self.with_analyzer(|analyzer| analyzer.type_change(&scope, &column.name, column.sql_type, new, using, utc))
        };
        let rests_on_utc = || {
            self.session.settings.get("timezone").is_none() && matches!(change(false), expression::TypeChange::Rewrite)
        };
        match change(utc) {
            expression::TypeChange::NoRewrite { .. } if utc && rests_on_utc() => TypeChange::NoRewriteInUtc,
            expression::TypeChange::Impossible(sqlstate) => TypeChange::Impossible(sqlstate),
            expression::TypeChange::Rewrite => TypeChange::Rewrite,
            expression::TypeChange::NoRewrite { .. } => TypeChange::NoRewrite,
            expression::TypeChange::Unknown(reason) => {
                self.unknown(reason);
                TypeChange::Rewrite
            }
        }
    }

    /// Whether both types have the same default operator class for the access method.
    pub(crate) fn same_operator_class(&self, method: &str, old: SqlType, new: SqlType) -> bool {
        if old.oid == new.oid {
            return true;
        }
        let class = |sql_type| {
            self.with_analyzer(|analyzer| {
                analyzer.default_operator_class(method, sql_type).map(|class| (class.family, class.input))
            })
        };
        class(old).is_some_and(|old| class(new) == Some(old))
    }

    /// COLLATE is refused for a type that has no collation. Types of the project may have one.
    pub(crate) fn check_collation(&self, sql_type: SqlType, range: TextRange) -> Run {
        let base = self.with_analyzer(|analyzer| analyzer.base_type(sql_type)).oid;
        if base.is_builtin() && !self.is_collatable(sql_type) {
            let name = self.with_analyzer(|analyzer| analyzer.format_type(sql_type));
            return fail("42804", format!("collations are not supported by type {name}"), range);
        }
        Ok(())
    }

    /// Whether the type has a collation.
    pub(crate) fn is_collatable(&self, sql_type: SqlType) -> bool {
        let base = self.with_analyzer(|analyzer| analyzer.base_type(sql_type)).oid;
        builtin::type_by_oid(base.0).is_some_and(|found| !found.collation.is_empty())
    }
}

/// The collation that a definition asks for; `"default"` is the one that a column has anyway.
pub(crate) fn collation_asked(name: Option<&ObjectName>) -> Option<SmolStr> {
    name.map(|name| name.name.text.clone()).filter(|name| name != "default")
}

/// `NULL`, also with a cast.
pub(crate) fn is_null_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(Literal::Null) => true,
        ExprKind::Cast { operand, .. } => is_null_literal(operand),
        _ => false,
    }
}

fn mentions_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part.eq_ignore_ascii_case(word))
}

/// The columns that an expression mentions, each once, in order.
pub(crate) fn columns_of(expr: &Expr) -> Vec<SmolStr> {
    let mut columns = Vec::new();
    expr.walk(&mut |part| {
        if let ExprKind::Column(parts) = &part.kind
            && let Some(column) = parts.last()
            && !columns.contains(column)
        {
            columns.push(column.clone());
        }
    });
    columns
}

/// Whether the expression mentions the column, by its name or in a whole-row reference.
pub(crate) fn mentions(expr: &Expr, column: &str) -> bool {
    let mut found = false;
    expr.walk(&mut |part| match &part.kind {
        ExprKind::Column(parts) => found |= parts.last().is_some_and(|last| last == column),
        ExprKind::Star(_) => found = true,
        _ => {}
    });
    found
}
