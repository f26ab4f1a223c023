//! What a change of type demands of the values of the column.

use super::is_pure;
use crate::builtin::{CastContext, Volatility, oid};
use crate::catalog::{Column, Oid, SqlType, TypeKind};
use crate::effect::{Conversion, ConversionTest, Demand, Visibility, Written};
use crate::execute::Executor;
use crate::execute::alter_table::use_of;
use crate::expression::{Analyzer, Coercion, Refusals, Scope};
use pgvet_syntax::ast::Expr;
use pgvet_syntax::deparse::{self, NotKept};
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    /// Notes what a change of type demands, while the column has its old type.
    pub(crate) fn demand_of_type_change(
        &mut self,
        table: Oid,
        column: &Column,
        new: SqlType,
        using: Option<&Expr>,
        range: TextRange,
    ) {
        if self.visibility(table) != Visibility::Existing {
            return;
        }
        let scope = self.scope_of(table);
        let old = column.sql_type;
        let change = Change { column: &column.name, old, new, using, has_placeholders: self.has_placeholders };
        let Some(test) = self.with_analyzer(|analyzer| change.test(analyzer, &scope)) else { return };
        let relation = self.catalog.relation(table);
        let met = self.met(relation, &[&column.name]);
        let value = using.map_or(old, |using| self.analyze(using, Some(table)).sql_type);
        let is_pure = using.is_none_or(|using| self.is_pure_in(table, using))
            && self.with_analyzer(|analyzer| is_pure_cast(analyzer, value, new))
            && self.is_pure_domain(new.oid);
        let name = self.with_analyzer(|analyzer| analyzer.format_type(new));
        let written = use_of(using, &column.name);
        let demand =
            Demand::Type(Conversion { column: column.name.clone(), from: old, to: new, name, using: written, test });
        self.note_demand(table, demand, met, range, is_pure);
    }

    /// Whether the CHECKs of a domain, and of those that it is over, change nothing; any other type has none.
    fn is_pure_domain(&self, oid: Oid) -> bool {
        let Some(TypeKind::Domain(domain)) = self.catalog.get_type(oid).map(|own| &own.kind) else { return true };
        let scope = Scope::of_columns("used", [("value".into(), domain.base)]);
        let is_pure_check = |check: &Expr| self.with_analyzer(|analyzer| is_pure(&analyzer.infer(check, &scope)));
        domain.checks.iter().all(|check| is_pure_check(&check.expression)) && self.is_pure_domain(domain.base.oid)
    }
}

/// Whether the cast that PostgreSQL adds changes nothing, as far as its definition says.
fn is_pure_cast(analyzer: &Analyzer<'_>, from: SqlType, to: SqlType) -> bool {
    match analyzer.coercion(from, to, CastContext::Assignment) {
        Coercion::Steps(steps) => steps.iter().all(|step| step.volatility() != Volatility::Volatile),
        Coercion::Impossible | Coercion::Unknown => false,
    }
}

/// A change of the type of a column.
struct Change<'a> {
    column: &'a str,
    old: SqlType,
    new: SqlType,
    using: Option<&'a Expr>,
    has_placeholders: bool,
}

impl Change<'_> {
    /// How the values that do not fit are found; `None` if all fit.
    fn test(&self, analyzer: &Analyzer<'_>, scope: &Scope) -> Option<ConversionTest> {
        if self.has_placeholders && self.using.is_some() {
            let placeholder = NotKept("a placeholder whose value is not known");
            return Some(ConversionTest::Convert(Err(placeholder)));
        }
        match analyzer.refused_values(scope, self.column, self.old, self.new, self.using) {
            Refusals::Never => None,
            Refusals::When(condition) => Some(ConversionTest::Condition(condition)),
            Refusals::Unknown if self.using.is_none() && self.takes_all(analyzer) => None,
            Refusals::Unknown => Some(ConversionTest::Convert(self.converted(analyzer))),
        }
    }

    /// An implicit cast takes every value, unless it has to fit a length or to be a number of less range.
    fn takes_all(&self, analyzer: &Analyzer<'_>) -> bool {
        let is_implicit = || analyzer.coercion(self.old, self.new, CastContext::Implicit) != Coercion::Impossible;
        self.new.typmod == -1 && !matches!(self.new.oid.0, oid::FLOAT4 | oid::FLOAT8) && is_implicit()
    }

    /// The new value. A cast that is written out may take more than the one that PostgreSQL adds.
    fn converted(&self, analyzer: &Analyzer<'_>) -> Written {
        let element = analyzer.element_type(self.new.oid).unwrap_or(self.new.oid);
        if self.new.typmod != -1 && matches!(element.0, oid::VARCHAR | oid::BPCHAR | oid::BIT | oid::VARBIT) {
            return Err(NotKept("the conversion to a type with a length"));
        }
        if !self.old.is_known() && self.using.is_none() {
            return Err(NotKept("a column whose type is not known"));
        }
        let value = match self.using {
            Some(using) => deparse::expression(using)?,
            None => quote_identifier(self.column),
        };
        match analyzer.type_as_sql(self.new) {
            Some(to) => Ok(format!("({value})::{to}")),
            None => Err(NotKept("the name of a type that is not known")),
        }
    }
}
