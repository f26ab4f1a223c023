//! Queries: which relations they lock, and which functions they run.
//!
//! A statement is read in up to four steps, each of which locks more. CREATE VIEW stops after the first, PREPARE and
//! the check of a function's body after the second, EXPLAIN after the third.

mod after;
mod cascade;
mod change;
mod constant_names;
mod copy;
pub(super) mod describe;
mod digest;
mod duplicates;
mod function_columns;
mod functions;
mod geometry;
mod index_row;
mod references;
pub(super) mod rows;
mod same_change;
mod text_functions;
mod updatable;
mod utility;
mod values;

use super::{Executor, Run, fail};
use crate::catalog::{Oid, RelationKind};
use crate::effect::LockCause;
use crate::expression::yields_one_row;
use pgvet_syntax::ast::{
    Cte, Expr, ExprKind, FromItem, FunctionCall, LockMode, ObjectName, Query, QueryBody, QueryStatement, RelationRef,
    RowLockStrength, RowLocking, Select, SubqueryKind, Target, With,
};
use pgvet_syntax::source::TextRange;
use rows::Wanted;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

/// How far PostgreSQL takes a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// Names are looked up: locks what the query names.
    Analyze,
    /// Views are expanded: locks what they read.
    Rewrite,
    /// Children and indexes are examined.
    Plan,
    /// It runs: functions, triggers and foreign keys act.
    Run,
}

/// The names that a WITH clause gives, each with the number of its first query.
#[derive(Default)]
pub(super) struct CteNames(FxHashMap<SmolStr, usize>);

impl CteNames {
    fn of(with: Option<&With>) -> Self {
        let mut names = FxHashMap::default();
        for (at, cte) in with.iter().flat_map(|with| &with.ctes).enumerate() {
            names.entry(cte.name.text.clone()).or_insert(at);
        }
        Self(names)
    }

    /// All of them, as the query after the clause sees them.
    fn all(&self) -> VisibleCtes<'_> {
        self.before(usize::MAX)
    }

    fn before(&self, at: usize) -> VisibleCtes<'_> {
        VisibleCtes { names: Some(self), before: at }
    }
}

/// The names of a WITH clause that a part of the query sees.
#[derive(Clone, Copy)]
struct VisibleCtes<'a> {
    names: Option<&'a CteNames>,
    /// Names of queries from this one on are not visible.
    before: usize,
}

impl VisibleCtes<'_> {
    fn position(self, name: &SmolStr) -> Option<usize> {
        self.names?.0.get(name).copied().filter(|at| *at < self.before)
    }
}

/// The context of the part of a query that is being read.
#[derive(Clone, Copy)]
pub(super) struct Env<'a> {
    depth: Depth,
    /// Names of WITH, which hide relations.
    ctes: VisibleCtes<'a>,
    /// The clause that gives them.
    with: Option<&'a With>,
    /// The items that the query reads and, if it changes rows, their relation.
    from: &'a [FromItem],
    target: Option<&'a RelationRef>,
    outer: Option<&'a Env<'a>>,
    /// FOR UPDATE, FOR SHARE and so on.
    row_locks: RowLocks<'a>,
}

/// The relations of a FROM clause that FOR UPDATE locks.
#[derive(Clone, Copy)]
enum RowLocks<'a> {
    None,
    All,
    Of(&'a [RowLocking]),
}

impl<'a> Env<'a> {
    pub(super) fn new(depth: Depth) -> Self {
        let ctes = VisibleCtes { names: None, before: 0 };
        Env { depth, ctes, with: None, from: &[], target: None, outer: None, row_locks: RowLocks::None }
    }

    /// That of a statement with names of WITH inside this one.
    fn inner(&self) -> Env<'_> {
        Env { outer: Some(self), row_locks: RowLocks::None, ..Env::new(self.depth) }
    }

    fn is_cte(&self, name: &ObjectName) -> bool {
        name.schema.is_none()
            && (self.ctes.position(&name.name.text).is_some() || self.outer.is_some_and(|outer| outer.is_cte(name)))
    }

    /// The environments around this one, from the inside.
    fn around(&self) -> impl Iterator<Item = &Env<'a>> {
        std::iter::successors(self.outer, |env| env.outer)
    }

    /// A query of WITH by its name, and what it sees.
    fn cte(&self, name: &ObjectName) -> Option<(&'a Cte, Env<'a>)> {
        if name.schema.is_some() {
            return None;
        }
        match self.ctes.position(&name.name.text) {
            None => self.outer?.cte(name),
            Some(at) => {
                let with = self.with?;
                let visible = if with.recursive { self.ctes } else { VisibleCtes { before: at, ..self.ctes } };
                Some((with.ctes.get(at)?, Env { ctes: visible, from: &[], target: None, ..*self }))
            }
        }
    }

    fn with_row_locks(self, row_locks: RowLocks<'a>) -> Self {
        Env { row_locks, ..self }
    }
}

impl RowLocks<'_> {
    /// How strongly the rows of a relation are locked.
    fn strength(self, name: &str) -> Option<RowLockStrength> {
        match self {
            Self::None => None,
            Self::All => Some(RowLockStrength::Update),
            Self::Of(clauses) => {
                let names =
                    |clause: &&RowLocking| clause.of.is_empty() || clause.of.iter().any(|of| of.name.text == name);
                clauses.iter().filter(names).map(|clause| clause.strength).max()
            }
        }
    }

    fn holds_for(self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Of(clauses) => clauses
                .iter()
                .any(|clause| clause.of.is_empty() || clause.of.iter().any(|relation| relation.name.text == name)),
        }
    }
}

/// FOR UPDATE needs rows of tables behind the rows of the result.
///
/// Source: PostgreSQL 18, `src/backend/parser/analyze.c`, `CheckSelectLocking` and `transformLockingClause`.
fn check_row_locking(query: &Query) -> Run {
    let Some(locking) = query.locking.first() else { return Ok(()) };
    let range = locking.of.first().map_or_else(TextRange::default, ObjectName::range);
    check_has_rows_to_lock(query, range)?;
    let QueryBody::Select(select) = &query.body else { return Ok(()) };
    let missing =
        query.locking.iter().flat_map(|locking| &locking.of).find(|of| !is_in_from(&select.from, &of.name.text));
    match missing {
        Some(of) => fail("42P01", format!("relation \"{of}\" in FOR UPDATE not found in FROM clause"), of.range()),
        None => Ok(()),
    }
}

/// Rows of a query are locked only where each stands for rows of tables; so are those of the query of a view.
fn check_has_rows_to_lock(query: &Query, range: TextRange) -> Run {
    let select = match &query.body {
        QueryBody::Select(select) => select,
        QueryBody::SetOperation { .. } => {
            return fail("0A000", "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT", range);
        }
        QueryBody::Values(_) => return fail("0A000", "FOR UPDATE cannot be applied to VALUES", range),
    };
    let grouped = !select.group_by.is_empty() || select.having.is_some();
    if select.distinct.is_some() || grouped || yields_one_row(select) {
        return fail("0A000", "FOR UPDATE is not allowed with DISTINCT, GROUP BY, HAVING or aggregates", range);
    }
    Ok(())
}

fn is_in_from(items: &[FromItem], name: &SmolStr) -> bool {
    items.iter().any(|item| match item {
        FromItem::Relation(relation) => *name == relation.called().as_str(),
        FromItem::Subquery { alias, .. } => alias.as_ref().is_some_and(|alias| alias.name == *name),
        FromItem::Join { left, right, .. } => {
            is_in_from(std::slice::from_ref(left), name) || is_in_from(std::slice::from_ref(right), name)
        }
        FromItem::Function { .. } => true,
    })
}

impl Executor<'_> {
    /// Takes the locks of planning and running a query.
    pub(crate) fn run_query(&mut self, query: &Query) -> Run {
        self.read_query(query, Depth::Run)
    }

    /// Takes the locks of a query that PostgreSQL processes to this depth.
    pub(crate) fn read_query(&mut self, query: &Query, depth: Depth) -> Run {
        self.query(query, &Env::new(depth))
    }

    /// Takes the locks of the subqueries in a stored expression, such as a policy's.
    pub(crate) fn read_expression(&mut self, expr: &Expr, depth: Depth) -> Run {
        self.expression(expr, &Env::new(depth))
    }

    fn query(&mut self, query: &Query, outer: &Env<'_>) -> Run {
        self.query_rows(query, outer, true)
    }

    /// Reads a query of which all rows are wanted, or only the first.
    fn query_rows(&mut self, query: &Query, outer: &Env<'_>, all: bool) -> Run {
        check_row_locking(query)?;
        let wanted = Wanted {
            limit: query.limit.as_ref().and_then(|limit| u64::try_from(self.whole_number(limit)?).ok()),
            first: !all || query.limit.is_some(),
            ordered: !query.order_by.is_empty(),
        };
        let all = all && query.limit.is_none();
        let names = self.with_clause(query.with.as_ref(), outer)?;
        let env = Env { ctes: names.all(), with: query.with.as_ref(), row_locks: outer.row_locks, ..outer.inner() };
        let env = match (query.locking.is_empty(), outer.row_locks) {
            (false, RowLocks::None) => env.with_row_locks(RowLocks::Of(&query.locking)),
            _ => env,
        };
        match &query.body {
            QueryBody::Select(select) => self.select(select, &Env { from: &select.from, ..env }, wanted)?,
            QueryBody::Values(rows) => self.expressions(rows.iter().flatten(), &env)?,
            QueryBody::SetOperation { left, right, .. } => {
                self.query_rows(left, &env, all)?;
                self.query_rows(right, &env, all)?;
            }
        }
        let rest = query.order_by.iter().chain(&query.limit).chain(&query.offset);
        self.expressions(rest, &env)
    }

    /// Reads the queries of WITH and returns the names that they give.
    fn with_clause(&mut self, with: Option<&With>, outer: &Env<'_>) -> Run<CteNames> {
        let all = CteNames::of(with);
        let Some(with) = with else { return Ok(all) };
        for (at, cte) in with.ctes.iter().enumerate() {
            let visible = if with.recursive { all.all() } else { all.before(at) };
            let env = Env { ctes: visible, with: Some(with), ..outer.inner() };
            self.query_statement(&cte.statement, &env)?;
        }
        Ok(all)
    }

    fn query_statement(&mut self, statement: &QueryStatement, env: &Env<'_>) -> Run {
        match statement {
            QueryStatement::Select(query) => self.query(query, env),
            QueryStatement::Insert(insert) => self.insert_rows(insert, env),
            QueryStatement::Update(update) => self.update_rows(update, env),
            QueryStatement::Delete(delete) => self.delete_rows(delete, env),
            QueryStatement::Merge(merge) => self.merge_rows(merge, env),
        }
    }

    fn select(&mut self, select: &Select, env: &Env<'_>, wanted: Wanted) -> Run {
        for item in &select.from {
            self.read_from_item(item, env)?;
        }
        self.note_select(select, env, wanted);
        let plain = env.with_row_locks(RowLocks::None);
        let parts = (select.distinct.iter().flatten())
            .chain(select.targets.iter().map(|target| &target.value))
            .chain(&select.filter)
            .chain(&select.group_by)
            .chain(&select.having)
            .chain(&select.windows);
        self.expressions(parts, &plain)
    }

    fn read_from_item(&mut self, item: &FromItem, env: &Env<'_>) -> Run {
        match item {
            FromItem::Relation(relation) => self.read_relation(relation, env),
            FromItem::Subquery { query, alias, .. } => {
                let locked = alias.as_ref().is_none_or(|alias| env.row_locks.holds_for(&alias.name));
                let row_locks = match env.row_locks {
                    RowLocks::None => RowLocks::None,
                    _ if locked => RowLocks::All,
                    _ => RowLocks::None,
                };
                self.query(query, &env.with_row_locks(row_locks))
            }
            FromItem::Function { calls, .. } => self.expressions(calls, env),
            FromItem::Join { left, right, on, .. } => {
                self.read_from_item(left, env)?;
                self.read_from_item(right, env)?;
                self.expressions(on, env)
            }
        }
    }

    fn read_relation(&mut self, relation: &RelationRef, env: &Env<'_>) -> Run {
        if env.is_cte(&relation.name) || self.is_system_relation(&relation.name) {
            return Ok(());
        }
        let alias = relation.called();
        let mode = if env.row_locks.holds_for(alias) { LockMode::RowShare } else { LockMode::AccessShare };
        let oid = self.open_for_query(&relation.name, mode)?;
        let read = self.catalog.relation(oid);
        if read.kind.is_index() || read.kind == RelationKind::CompositeType {
            return fail("42809", format!("cannot open relation \"{}\"", read.name), relation.name.range());
        }
        let unlockable = matches!(read.kind, RelationKind::MaterializedView | RelationKind::Sequence);
        if mode == LockMode::RowShare && unlockable && env.depth == Depth::Run {
            return fail("42809", format!("cannot lock rows in \"{}\"", read.name), relation.name.range());
        }
        self.follow_read(oid, mode, relation.only, env.depth, relation.name.range())
    }

    /// Opens a relation that a query names.
    fn open_for_query(&mut self, name: &ObjectName, mode: LockMode) -> Run<Oid> {
        let before = self.effects.locks.len();
        let oid = self.open_in_query(name, mode)?;
        self.effects.locks.explain(before, |_, cause, _| *cause = LockCause::Query);
        Ok(oid)
    }

    /// Locks what reading a relation touches besides itself: the relations under a view, children and indexes.
    pub(crate) fn follow_read(&mut self, oid: Oid, mode: LockMode, only: bool, depth: Depth, range: TextRange) -> Run {
        if depth >= Depth::Rewrite {
            self.check_reads_not_itself(oid, range)?;
        }
        self.follow(oid, mode, only, depth, range, &mut FxHashSet::default())
    }

    fn follow(
        &mut self,
        oid: Oid,
        mode: LockMode,
        only: bool,
        depth: Depth,
        range: TextRange,
        seen: &mut FxHashSet<Oid>,
    ) -> Run {
        if !seen.insert(oid) {
            return Ok(());
        }
        if depth == Depth::Run {
            self.check_populated(oid, range)?;
        }
        let relation = self.catalog.relation(oid);
        if relation.kind == RelationKind::View {
            let Some(view) = relation.view().cloned() else { return Ok(()) };
            if mode == LockMode::RowShare && depth >= Depth::Plan {
                check_has_rows_to_lock(&view.query, range)?;
            }
            if depth >= Depth::Rewrite {
                for (read, _) in &view.references {
                    if self.catalog.get_relation(*read).is_some() {
                        self.lock(*read, mode, LockCause::Query, range);
                        self.follow(*read, mode, false, depth, range, seen)?;
                    }
                }
            }
            if depth == Depth::Run {
                for object in &view.objects {
                    self.run_function(*object, range);
                }
            }
        } else if depth >= Depth::Plan {
            self.lock_indexes(oid, mode, range);
            if !only {
                for child in self.lock_descendants(oid, mode, range) {
                    self.lock_indexes(child, mode, range);
                }
            }
        }
        Ok(())
    }

    /// A materialized view can be read only once it has been filled.
    ///
    /// Source: PostgreSQL 18, `src/backend/executor/execUtils.c`, `ExecOpenScanRelation`.
    fn check_populated(&self, oid: Oid, range: TextRange) -> Run {
        let read = self.catalog.relation(oid);
        // Whether a job has filled it since an earlier migration is not known.
        let is_new = self.is_new(read);
        let is_empty =
            is_new && read.kind == RelationKind::MaterializedView && !read.view().is_none_or(|view| view.populated);
        if is_empty {
            return fail("55000", format!("materialized view \"{}\" has not been populated", read.name), range);
        }
        Ok(())
    }

    fn expressions<'e>(&mut self, list: impl IntoIterator<Item = &'e Expr>, env: &Env<'_>) -> Run {
        for expr in list {
            self.expression(expr, env)?;
        }
        Ok(())
    }

    fn output(&mut self, targets: &[Target], env: &Env<'_>) -> Run {
        self.expressions(targets.iter().map(|target| &target.value), env)
    }

    fn expression(&mut self, expr: &Expr, env: &Env<'_>) -> Run {
        let mut subqueries: Vec<(&Query, SubqueryKind)> = Vec::new();
        let mut calls: Vec<&FunctionCall> = Vec::new();
        let (mut casts, mut fields) = (Vec::new(), Vec::new());
        expr.walk(&mut |part| match &part.kind {
            ExprKind::Subquery { query, kind, .. } => subqueries.push((query, *kind)),
            ExprKind::Call(call) => calls.push(call),
            ExprKind::Cast { operand, target } => casts.push((operand, target)),
            ExprKind::Column(_) | ExprKind::Indirection { .. } => fields.push(part),
            _ => {}
        });
        fields.into_iter().for_each(|field| self.note_reach_of_field(field));
        for (operand, target) in casts {
            self.check_enum_cast(operand, target)?;
        }
        self.check_named_relations(expr)?;
        for (query, kind) in subqueries {
            // The first row answers EXISTS.
            self.query_rows(query, &env.with_row_locks(RowLocks::None), kind != SubqueryKind::Exists)?;
        }
        if env.depth == Depth::Run {
            for call in calls {
                self.run_call(call)?;
            }
        }
        Ok(())
    }

    /// Whether it is a relation of PostgreSQL itself.
    pub(crate) fn is_system_relation(&self, name: &ObjectName) -> bool {
        match &name.schema {
            Some(schema) => matches!(schema.as_str(), "pg_catalog" | "information_schema" | "pg_toast"),
            None => name.name.as_str().starts_with("pg_") && self.find(name).is_none(),
        }
    }
}

/// Whether a WHERE restricts nothing: `true`, `1 = 1`.
pub(crate) fn is_always_true(filter: &Expr) -> bool {
    match &filter.kind {
        ExprKind::Literal(pgvet_syntax::ast::Literal::Boolean(value)) => *value,
        ExprKind::Operator { operator, operands, .. } if operator == "=" => {
            matches!(&operands[..], [left, right]
                if left.kind == right.kind && matches!(left.kind, ExprKind::Literal(ref literal)
                    if *literal != pgvet_syntax::ast::Literal::Null))
        }
        ExprKind::Cast { operand, .. } => match pgvet_syntax::ast::string_literal(operand) {
            Some(text) => matches!(text, "t" | "true"),
            None => is_always_true(operand),
        },
        ExprKind::And(list) => list.iter().all(is_always_true),
        ExprKind::Or(list) => list.iter().any(is_always_true),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_locks, effects_on};

    const T: &str = "CREATE TABLE t(id int PRIMARY KEY, a int); CREATE VIEW v AS SELECT id, a FROM t;";

    #[test]
    fn views_are_expanded_and_with_hides_relations() {
        check_locks(T, "SELECT * FROM v", &["v AccessShare", "t AccessShare", "t_pkey AccessShare"]);
        check_locks(T, "WITH t AS (SELECT 1) SELECT * FROM t", &[]);
        check_locks(T, "PREPARE p AS SELECT * FROM v", &["v AccessShare", "t AccessShare"]);
        check_locks(T, "SELECT * FROM pg_class, information_schema.tables", &[]);
        check_locks(T, "SELECT * FROM v FOR UPDATE", &["v RowShare", "t RowShare", "t_pkey RowShare"]);
        check_locks(T, "UPDATE v SET a = 1 WHERE id = 1", &["v RowExclusive", "t RowExclusive", "t_pkey RowExclusive"]);
    }

    #[test]
    fn what_the_first_rows_answer_reads_no_table() {
        let t = "CREATE TABLE t(id int PRIMARY KEY, a int);";
        for (sql, scans) in [
            ("SELECT * FROM t", true),
            ("SELECT count(*) FROM t LIMIT 1", true),
            ("SELECT a FROM t GROUP BY a LIMIT 1", true),
            ("SELECT max(a), max(id) FROM t", true),
            ("SELECT max(id), count(a) FROM t", true),
            ("SELECT 1 WHERE 5 IN (SELECT a FROM t)", true),
            ("SELECT * FROM t LIMIT 1", false),
            ("SELECT * FROM t UNION ALL SELECT * FROM t LIMIT 1", false),
            ("SELECT EXISTS (SELECT 1 FROM t)", false),
            ("DO $$ BEGIN IF NOT EXISTS (SELECT FROM t) THEN RAISE NOTICE 'none'; END IF; END $$", false),
            ("SELECT coalesce(max(id), 0) + 1, min(t.id) FROM t", false),
            ("DO $$ DECLARE n int; BEGIN SELECT a INTO STRICT n FROM t; END $$", false),
            ("DO $$ DECLARE n int; BEGIN SELECT a INTO n FROM t ORDER BY a; END $$", true),
            ("DO $$ DECLARE n int; BEGIN SELECT DISTINCT a INTO n FROM t; END $$", true),
            ("DO $$ DECLARE n int; BEGIN SELECT count(*) INTO n FROM t; END $$", true),
            ("DO $$ DECLARE n int; BEGIN PERFORM a FROM t; END $$", true),
        ] {
            assert_eq!(effects_on(17, t, sql).scans.len(), usize::from(scans), "{sql}");
        }
    }

    #[test]
    fn data_changes_know_whether_they_are_unbounded() {
        for (sql, unbounded) in [
            ("UPDATE t SET a = 1", true),
            ("UPDATE t SET a = 1 WHERE true", true),
            ("DELETE FROM t WHERE 1 = 1 AND id = 2", false),
            ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", true),
            ("INSERT INTO t SELECT * FROM v", true),
            ("INSERT INTO t SELECT max(id), 1 FROM t", false),
            ("INSERT INTO t VALUES (1, 2)", false),
        ] {
            let changes = effects_on(17, T, sql).data_changes;
            assert_eq!(changes.iter().map(|change| !change.rows.is_few()).collect::<Vec<_>>(), [unbounded], "{sql}");
        }
    }
}
