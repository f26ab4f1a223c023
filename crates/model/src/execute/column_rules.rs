//! Checks of the definition of a column, wherever it is written.
//!
//! Source: PostgreSQL 18, `src/backend/parser/parse_utilcmd.c`, `transformColumnDefinition`;
//! `src/backend/catalog/heap.c`, `CheckAttributeNamesTypes` and `cookDefault`.

use super::expressions::{collation_asked, columns_of};
use super::{Executor, Run, fail};
use crate::builtin::Volatility;
use crate::catalog::{Column, Oid, SqlType};
use pgvet_syntax::ast::{ColumnDef, ConstraintKind, Expr, ExprKind, Name};
use pgvet_syntax::source::TextRange;

/// Oids of `boolean` and of the type of a bare string.
const BOOLEAN: u32 = 16;
const UNKNOWN: u32 = 705;

/// PostgreSQL's `MaxHeapAttributeNumber` (`src/include/access/htup_details.h`).
const MAX_COLUMNS: usize = 1600;

/// PostgreSQL's `INDEX_MAX_KEYS` and `PARTITION_MAX_KEYS` (`src/include/pg_config_manual.h`).
pub(super) const MAX_KEYS: usize = 32;

/// PostgreSQL's `STATS_MAX_DIMENSIONS` (`src/include/statistics/statistics.h`).
pub(super) const MAX_STATISTICS_COLUMNS: usize = 8;

/// Refuses one column more than a table can have. Dropped columns count in PostgreSQL, too, and are not known here.
pub(super) fn check_column_count(existing: usize, name: &Name) -> Run {
    if existing < MAX_COLUMNS {
        return Ok(());
    }
    fail("54011", format!("tables can have at most {MAX_COLUMNS} columns"), name.range)
}

/// A column with the name, type and storage of its definition; its constraints are left for later.
pub(super) fn bare_column(definition: &ColumnDef, sql_type: SqlType) -> Column {
    Column {
        name: definition.name.text.clone(),
        sql_type,
        not_null: false,
        default: None,
        identity: None,
        generated: None,
        collation: collation_asked(definition.collation.as_ref()),
        storage: definition.storage.clone(),
        compression: definition.compression.clone(),
        is_local: true,
        inherited_from: 0,
        has_missing_value: false,
        added_in: None,
        held: None,
    }
}

impl Executor<'_> {
    /// Contradictions within one column definition.
    pub(super) fn check_column_definition(&self, definition: &ColumnDef, serial: bool) -> Run {
        let name = &definition.name;
        if matches!(name.text.as_str(), "ctid" | "xmin" | "xmax" | "cmin" | "cmax" | "tableoid") {
            let reason = format!("column name \"{}\" conflicts with a system column name", name.text);
            return fail("42701", reason, name.range);
        }
        let kinds = || definition.constraints.iter().map(|constraint| &constraint.kind);
        let count = |wanted: fn(&ConstraintKind) -> bool| kinds().filter(|kind| wanted(kind)).count();
        let defaults = count(|kind| matches!(kind, ConstraintKind::Default(_))) + usize::from(serial);
        let identities = count(|kind| matches!(kind, ConstraintKind::Identity { .. }));
        let generated = count(|kind| matches!(kind, ConstraintKind::Generated { .. }));
        let null = count(|kind| matches!(kind, ConstraintKind::Null));
        let keys = count(|kind| matches!(kind, ConstraintKind::PrimaryKey(_)));
        let not_null = count(|kind| matches!(kind, ConstraintKind::NotNull { .. }));
        let never_null = not_null + identities + usize::from(serial) + if self.target.at_least(18) { keys } else { 0 };
        let what = if null > 0 && never_null > 0 {
            "conflicting NULL/NOT NULL declarations"
        } else if defaults > 1 {
            "multiple default values specified"
        } else if identities > 1 {
            "multiple identity specifications"
        } else if generated > 1 {
            "multiple generation clauses specified"
        } else if usize::from(defaults > 0) + identities + generated > 1 {
            "default, identity and generation expression exclude each other"
        } else {
            ""
        };
        if !what.is_empty() {
            return fail("42601", format!("{what} for column \"{}\"", name.text), name.range);
        }
        kinds().try_for_each(|kind| match kind {
            ConstraintKind::Default(default) => self.check_default(default),
            _ => Ok(()),
        })
    }

    /// A default names no columns and reads no tables.
    pub(super) fn check_default(&self, default: &Expr) -> Run {
        if !columns_of(default).is_empty() {
            return fail("0A000", "cannot use column reference in DEFAULT expression", default.range);
        }
        let typed = self.analyze(default, None);
        if typed.has_subquery {
            return fail("0A000", "cannot use subquery in DEFAULT expression", default.range);
        }
        self.check_meaning(&typed, default.range)
    }

    /// The expression of a generated column or an index must always give the same value. What cannot be told is let
    /// pass.
    pub(super) fn check_immutable(&self, table: Oid, expression: &Expr, what: &str, range: TextRange) -> Run {
        if !self.catalog.relation(table).known {
            return Ok(());
        }
        let typed = self.analyze(expression, Some(table));
        if typed.unknown.is_empty() && typed.sql_type.is_known() && typed.volatility != Volatility::Immutable {
            return fail("42P17", format!("{what} must be immutable"), range);
        }
        Ok(())
    }

    /// An expression over a table whose columns are all known names no others.
    pub(super) fn check_columns_exist(&self, table: Oid, expression: &Expr) -> Run {
        let relation = self.catalog.relation(table);
        if !relation.known {
            return Ok(());
        }
        let typed = self.analyze(expression, Some(table));
        if typed.has_subquery {
            return fail("0A000", "cannot use subquery in check constraint", expression.range);
        }
        let wrong_type = typed.sql_type.is_known() && !matches!(typed.sql_type.oid.0, BOOLEAN | UNKNOWN);
        let missing = columns_of(expression);
        if wrong_type && typed.sql_type.oid.is_builtin() && missing.iter().all(|name| relation.column(name).is_some()) {
            return fail("42804", "argument of CHECK must be type boolean", expression.range);
        }
        self.check_names(table, expression)
    }

    /// The same for an expression of any type.
    pub(super) fn check_names(&self, table: Oid, expression: &Expr) -> Run {
        let relation = self.catalog.relation(table);
        let is_missing = |name: &smol_str::SmolStr| {
            relation.known
                && relation.column(name).is_none()
                && *name != relation.name
                && !matches!(name.as_str(), "*" | "tableoid" | "ctid" | "xmin" | "xmax" | "cmin" | "cmax")
        };
        if let Some(missing) = columns_of(expression).into_iter().find(is_missing) {
            return fail("42703", format!("column \"{missing}\" does not exist"), expression.range);
        }
        self.check_named_relations(expression)?;
        self.check_boolean_operands(table, expression)?;
        if relation.known {
            self.check_meaning(&self.analyze(expression, Some(table)), expression.range)?;
        }
        Ok(())
    }

    /// NOT, AND and OR take nothing but booleans.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_expr.c`, `transformBoolExpr`.
    fn check_boolean_operands(&self, table: Oid, expression: &Expr) -> Run {
        let mut operands = Vec::new();
        expression.walk(&mut |part| match &part.kind {
            ExprKind::Not(operand) => operands.push(&**operand),
            ExprKind::And(list) | ExprKind::Or(list) => operands.extend(list),
            _ => {}
        });
        let is_wrong = |operand: &&&Expr| {
            let sql_type = self.analyze(operand, Some(table)).sql_type;
            let base = self.with_analyzer(|analyzer| analyzer.base_type(sql_type)).oid;
            sql_type.is_known() && base.is_builtin() && !matches!(base.0, BOOLEAN | UNKNOWN)
        };
        match operands.iter().find(is_wrong) {
            Some(operand) => fail("42804", "argument of NOT, AND or OR must be type boolean", operand.range),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::effects_on;

    #[test]
    fn a_table_has_at_most_1600_columns() {
        let columns = |count: usize| (0..count).map(|at| format!("c{at} int")).collect::<Vec<_>>().join(", ");
        let failure = |history: &str, sql: &str| effects_on(18, history, sql).fails.map(|failure| failure.sqlstate);
        let table = |count: usize| format!("CREATE TABLE t ({})", columns(count));
        assert_eq!(failure("", &table(1600)), None);
        assert_eq!(failure("", &table(1601)), Some("54011"));
        assert_eq!(failure(&table(1599), "ALTER TABLE t ADD COLUMN x int"), None);
        assert_eq!(failure(&table(1600), "ALTER TABLE t ADD COLUMN x int"), Some("54011"));
        assert_eq!(failure(&table(1600), "ALTER TABLE t ADD COLUMN IF NOT EXISTS c0 int"), None);
    }
}
