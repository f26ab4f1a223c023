//! UPDATE and DELETE that go through a whole table, although they have a WHERE clause.

use super::{Depth, Env, is_always_true};
use crate::ast::{
    Assignment, Expr, ExprKind, FromItem, FunctionCall, JoinKind, OperatorForm, Part, Query, QueryBody, QueryStatement,
    RelationRef, Select, Update, With,
};
use crate::builtin;
use crate::catalog::{Constraint, ForeignKeyConstraint, Index, Oid, Relation};
use crate::effect::{RelationKind, ScanCause};
use crate::execute::Executor;
use crate::expression::{aggregates, yields_one_row};
use crate::source::TextRange;
use smol_str::SmolStr;

/// An UPDATE or DELETE.
pub(super) struct Change<'a> {
    pub(super) oid: Oid,
    pub(super) with: Option<&'a With>,
    pub(super) table: &'a RelationRef,
    /// FROM or USING.
    pub(super) from: &'a [FromItem],
    pub(super) filter: Option<&'a Expr>,
}

/// A table of the statement, and the name that its columns go by.
#[derive(Clone, Copy)]
struct Member<'a> {
    name: &'a SmolStr,
    table: Oid,
    /// The query that reads all rows of the table, where it stands in one.
    query: Option<&'a Query>,
}

impl Executor<'_> {
    /// Does an UPDATE or DELETE concern all rows of its table? Without WHERE it does, and also where its conditions hold
    /// for each row: they find the row that a foreign key of it refers to, or the row itself in a query of the whole
    /// table, or they ask for the null that a column of the same migration has everywhere.
    ///
    /// ```sql
    /// ALTER TABLE items ADD COLUMN owner bigint;
    /// UPDATE items SET owner = orders.owner FROM orders WHERE orders.id = items.order_id AND items.owner IS NULL;
    /// ```
    pub(super) fn reaches_all_rows(&self, change: &Change<'_>, env: &Env<'_>) -> bool {
        let Some(filter) = change.filter.filter(|filter| !is_always_true(filter)) else { return true };
        let own = Member { name: name_of(change.table), table: change.oid, query: None };
        let (mut joined, mut conditions) = (Vec::new(), Vec::new());
        add_conditions(filter, &mut conditions);
        if !change.from.iter().all(|item| self.add_members(item, change, env, &mut joined, &mut conditions)) {
            return false;
        }
        let all: Vec<Member<'_>> = std::iter::once(own).chain(joined.iter().copied()).collect();
        conditions.retain(|condition| !self.is_null_everywhere(condition, own, &all));
        let mut reached = vec![own];
        while let Some(at) = joined.iter().position(|next| self.join_by_key(&reached, *next, &all, &mut conditions)) {
            reached.push(joined.swap_remove(at));
        }
        joined.is_empty() && conditions.is_empty()
    }

    /// Does a query ask for nothing but the least or greatest values of columns that lead an index?
    pub(super) fn asks_for_ends(&self, select: &Select, table: Oid) -> bool {
        let relation = self.catalog.relation(table);
        let indexes = || relation.indexes.iter().filter_map(|oid| self.catalog.relation(*oid).index());
        let leads = |column: &SmolStr| {
            indexes().any(|index| {
                let leading = index.elements.first().and_then(|element| element.key.as_column());
                index.predicate.is_none() && index.method == "btree" && index.valid && leading == Some(column)
            })
        };
        let is_end = |call: &&FunctionCall| {
            let argument = call.arguments.first().map(|argument| &argument.value.kind);
            let column = argument.and_then(|kind| if let ExprKind::Column(path) = kind { path.last() } else { None });
            matches!(call.name.as_str(), "min" | "max") && call.filter.is_none() && column.is_some_and(leads)
        };
        let mut calls = select.targets.iter().flat_map(|target| aggregates(&target.value)).peekable();
        select.group_by.is_empty() && calls.peek().is_some() && calls.all(|call| is_end(&call))
    }

    /// Does an UPDATE fill a column that this deployment has added, in rows that no index can find? It reads the whole table
    /// for them, and mostly changes a large part of it.
    ///
    /// What sets a flag in a few rows has a default for the others, and compares with a constant.
    pub(super) fn fills_by_scan(&self, table: Oid, update: &Update) -> bool {
        let Some(filter) = &update.filter else { return false };
        let relation = self.catalog.relation(table);
        let is_filled = |assignment: &Assignment| {
            let column = relation
                .column(&assignment.column.text)
                .filter(|column| column.added_in.is_some() && column.added_in == self.deployment);
            column.is_some_and(|column| column.null_everywhere || !picks_rows(filter))
        };
        if relation.kind != RelationKind::Table || !relation.known || relation.unknown_parts {
            return false;
        }
        let mut is_batch = false;
        filter.visit(&mut |part| is_batch |= matches!(part, Part::Query(query) if query.limit.is_some()));
        let mut named = Vec::new();
        add_compared(filter, &mut named);
        let finds = |index: &Index| {
            let leading = index.elements.first().and_then(|element| element.key.as_column());
            index.predicate.is_some() || leading.is_none_or(|column| named.contains(&column))
        };
        let mut indexes = relation.indexes.iter().map(|oid| self.catalog.relation(*oid).index());
        let is_found =
            named.iter().any(|name| *name == "ctid") || indexes.any(|index| index.is_none_or(|one| finds(one)));
        !is_batch && !is_found && update.assignments.iter().any(is_filled)
    }

    /// Notes that an UPDATE or DELETE reads the table in use that it joins without any condition that picks some rows.
    ///
    /// Of two tables that are joined so, one at least is read to its end; where both are large, both are.
    pub(super) fn read_joined(&mut self, change: &Change<'_>, keyword: TextRange, env: &Env<'_>) {
        let (mut joined, mut conditions) = (Vec::new(), Vec::new());
        change.filter.iter().for_each(|filter| add_conditions(filter, &mut conditions));
        let mut items = change.from.iter();
        let are_tables = items.all(|item| self.add_members(item, change, env, &mut joined, &mut conditions));
        let is_used = |member: &&Member<'_>| {
            let kind = self.catalog.relation(member.table).kind;
            member.query.is_none() && kind == RelationKind::Table && self.visibility(member.table).is_exposed()
        };
        if env.depth < Depth::Run || !are_tables || conditions.into_iter().any(picks_rows) {
            return;
        }
        if let Some(table) = joined.iter().find(is_used).map(|member| member.table) {
            self.scan(table, ScanCause::Query, keyword);
        }
    }

    /// An UPDATE has given these columns values.
    pub(super) fn fill_columns(&mut self, table: Oid, names: &[SmolStr]) {
        let is_filled =
            |name: &SmolStr, relation: &Relation| relation.column(name).is_some_and(|column| column.null_everywhere);
        let filled: Vec<&SmolStr> = names.iter().filter(|name| is_filled(name, self.catalog.relation(table))).collect();
        for name in filled {
            if let Some(column) = self.catalog.relation_mut(table).column_mut(name) {
                column.null_everywhere = false;
            }
        }
    }

    /// The tables of an item of FROM, and the conditions of its joins; false if there is anything else in it.
    fn add_members<'a>(
        &self,
        item: &'a FromItem,
        change: &Change<'a>,
        env: &Env<'_>,
        members: &mut Vec<Member<'a>>,
        conditions: &mut Vec<&'a Expr>,
    ) -> bool {
        let member = match item {
            FromItem::Relation(relation) if env.is_cte(&relation.name) => {
                let query = query_named(change.with, &relation.name.name.text);
                query.map(|query| Member { name: name_of(relation), table: change.oid, query: Some(query) })
            }
            FromItem::Relation(relation) => {
                let found = self.find(&relation.name);
                found.map(|table| Member { name: name_of(relation), table, query: None })
            }
            FromItem::Subquery { query, alias: Some(alias), .. } if alias.columns.is_empty() => {
                Some(Member { name: &alias.name, table: change.oid, query: Some(query) })
            }
            FromItem::Join { kind: JoinKind::Inner, left, right, on, using } if using.is_empty() => {
                on.iter().for_each(|condition| add_conditions(condition, conditions));
                return [left, right].iter().all(|side| self.add_members(side, change, env, members, conditions));
            }
            _ => None,
        };
        let member =
            member.filter(|member| member.query.is_none_or(|query| self.yields_all_rows(query, change.oid, env)));
        members.extend(member);
        member.is_some()
    }

    /// Does a query yield a row for each row of the table?
    fn yields_all_rows(&self, query: &Query, table: Oid, env: &Env<'_>) -> bool {
        let QueryBody::Select(select) = &query.body else { return false };
        let [FromItem::Relation(only)] = select.from.as_slice() else { return false };
        let is_whole =
            query.limit.is_none() && query.offset.is_none() && select.filter.as_ref().is_none_or(is_always_true);
        let is_grouped = select.distinct.is_some() || !select.group_by.is_empty() || select.having.is_some();
        is_whole
            && !is_grouped
            && !yields_one_row(select)
            && !self.may_multiply(select)
            && !env.is_cte(&only.name)
            && self.find(&only.name) == Some(table)
    }

    /// Does a query call a function that may yield several rows for one, or none?
    fn may_multiply(&self, select: &Select) -> bool {
        let yields_one = |call: &FunctionCall| {
            let known = builtin::functions(&call.name);
            let own = self.called_functions(call);
            let own_yields_set =
                own.iter().any(|oid| self.catalog.get_function(*oid).is_none_or(|one| one.returns_set));
            call.window.is_some()
                || !(known.is_empty() && own.is_empty() || own_yields_set || known.iter().any(|one| one.returns_set))
        };
        let mut found = false;
        for target in &select.targets {
            target.value.walk(&mut |part| found |= matches!(&part.kind, ExprKind::Call(call) if !yields_one(call)));
        }
        found
    }

    /// `column IS NULL`, of a column that no statement has filled since it was added.
    fn is_null_everywhere(&self, condition: &Expr, own: Member<'_>, all: &[Member<'_>]) -> bool {
        let ExprKind::IsNull { operand, negated: false } = &condition.kind else { return false };
        let column = self.column_of(operand, all).filter(|(member, _)| is(*member, own));
        let column = column.and_then(|(_, name)| self.catalog.relation(own.table).column(name));
        column.is_some_and(|column| column.null_everywhere)
    }

    /// Is there exactly one row of `next` for each row of the tables that were reached, because a foreign key says so? The
    /// conditions that compare its columns are then done with.
    fn join_by_key(
        &self,
        reached: &[Member<'_>],
        next: Member<'_>,
        all: &[Member<'_>],
        conditions: &mut Vec<&Expr>,
    ) -> bool {
        if let Some(query) = next.query {
            return self.join_by_row(reached[0], next, query, all, conditions);
        }
        for from in reached {
            let relation = self.catalog.relation(from.table);
            for key in relation.constraints.iter().filter_map(|one| always_finds(one, relation)) {
                if key.referenced != next.table {
                    continue;
                }
                let pairs = || key.columns.iter().zip(&key.referenced_columns);
                let compares = |condition: &Expr, (own, other): (&SmolStr, &SmolStr)| {
                    self.sides_of(condition, all).is_some_and(|sides| {
                        let (left, right) = sides;
                        let names = |side: Side<'_>, member, column| is(side.0, member) && side.1 == column;
                        names(left, *from, own) && names(right, next, other)
                            || names(right, *from, own) && names(left, next, other)
                    })
                };
                if pairs().all(|pair| conditions.iter().any(|condition| compares(condition, pair))) {
                    conditions.retain(|condition| !pairs().any(|pair| compares(condition, pair)));
                    return true;
                }
            }
        }
        false
    }

    /// Does a condition find the row itself in a query of the whole table?
    fn join_by_row(
        &self,
        own: Member<'_>,
        next: Member<'_>,
        query: &Query,
        all: &[Member<'_>],
        conditions: &mut Vec<&Expr>,
    ) -> bool {
        let QueryBody::Select(select) = &query.body else { return false };
        let relation = self.catalog.relation(own.table);
        let is_shown = |column: &SmolStr| {
            let is_it = |value: &Expr| matches!(&value.kind, ExprKind::Column(path) if path.last() == Some(column));
            let named = |alias: &Option<SmolStr>| alias.as_ref().is_none_or(|alias| alias == column);
            select.targets.iter().any(|target| is_it(&target.value) && named(&target.alias))
        };
        let finds = |condition: &&Expr| {
            self.sides_of(condition, all).is_some_and(|((one, left), (other, right))| {
                let members = is(one, own) && is(other, next) || is(one, next) && is(other, own);
                members && left == right && is_filled(relation, left) && is_shown(left)
            })
        };
        let is_found = conditions.iter().any(finds);
        conditions.retain(|condition| !finds(condition));
        is_found
    }

    /// The columns of `one.column = other.column`.
    fn sides_of<'a>(&self, condition: &'a Expr, all: &[Member<'a>]) -> Option<(Side<'a>, Side<'a>)> {
        let ExprKind::Operator { operator, operands, form: OperatorForm::Plain, .. } = &condition.kind else {
            return None;
        };
        let [left, right] = operands.as_slice() else { return None };
        (operator == "=").then_some((self.column_of(left, all)?, self.column_of(right, all)?))
    }

    /// The table that a column belongs to, by its qualifier or because no other has such a column.
    fn column_of<'a>(&self, expression: &'a Expr, all: &[Member<'a>]) -> Option<Side<'a>> {
        let ExprKind::Column(path) = &expression.kind else { return None };
        let (name, qualifier) = path.split_last()?;
        let has_column = |member: &&Member<'_>| self.catalog.relation(member.table).column(name).is_some();
        let owner = match qualifier.last() {
            Some(qualifier) => all.iter().find(|member| member.name == qualifier),
            None if all.iter().filter(has_column).count() == 1 => all.iter().find(has_column),
            None => None,
        };
        owner.map(|member| (*member, name))
    }
}

type Side<'a> = (Member<'a>, &'a SmolStr);

fn is(one: Member<'_>, other: Member<'_>) -> bool {
    std::ptr::eq(one.name, other.name)
}

fn is_filled(relation: &Relation, name: &SmolStr) -> bool {
    relation.column(name).is_some_and(|column| column.not_null)
}

/// A foreign key for which every row has a row of the other table.
fn always_finds<'a>(constraint: &'a Constraint, relation: &Relation) -> Option<&'a ForeignKeyConstraint> {
    let key = constraint.foreign_key().filter(|_| constraint.valid && constraint.enforced)?;
    key.columns.iter().all(|name| is_filled(relation, name)).then_some(key)
}

/// The columns of a condition by which an index could find rows: no index of a column finds what a function makes of it.
fn add_compared<'a>(condition: &'a Expr, found: &mut Vec<&'a SmolStr>) {
    match &condition.kind {
        ExprKind::Column(path) => found.extend(path.last()),
        ExprKind::Call(_) => {}
        ExprKind::Subquery { .. } => condition.visit(&mut |part| {
            if let Part::Expr(Expr { kind: ExprKind::Column(path), .. }) = part {
                found.extend(path.last());
            }
        }),
        _ => condition.for_each_child(|child| add_compared(child, found)),
    }
}

/// Does a condition pick some rows, as a comparison with a constant does? One of two columns, a test for null and an
/// inequality may hold for many or all.
fn picks_rows(condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::And(list) | ExprKind::Or(list) => list.iter().any(picks_rows),
        ExprKind::IsNull { .. } => false,
        ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } => {
            let has_column = |side: &Expr| {
                let mut found = false;
                side.walk(&mut |part| found |= matches!(part.kind, ExprKind::Column(_)));
                found
            };
            !(operator == "<>" || operator == "=" && operands.iter().all(has_column))
        }
        _ => true,
    }
}

/// The query of a name of WITH.
fn query_named<'a>(with: Option<&'a With>, name: &SmolStr) -> Option<&'a Query> {
    let found = with?.ctes.iter().find(|cte| cte.name.text == *name && cte.columns.is_empty())?;
    match &found.statement {
        QueryStatement::Select(query) => Some(query),
        _ => None,
    }
}

fn name_of(relation: &RelationRef) -> &SmolStr {
    relation.called()
}

fn add_conditions<'a>(condition: &'a Expr, found: &mut Vec<&'a Expr>) {
    match &condition.kind {
        ExprKind::And(list) => list.iter().for_each(|part| add_conditions(part, found)),
        _ if is_always_true(condition) => {}
        _ => found.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::effects_on;

    #[test]
    fn conditions_that_hold_for_each_row_limit_nothing() {
        let tables = "CREATE TABLE p(id int PRIMARY KEY, b int, UNIQUE (id, b)); CREATE TABLE q(id int PRIMARY KEY, p int NOT NULL REFERENCES p);
            CREATE TABLE t(id int PRIMARY KEY, a int, n int REFERENCES q, q int NOT NULL REFERENCES q, b int NOT NULL, r int NOT NULL,
                FOREIGN KEY (r, b) REFERENCES p (id, b));
            CREATE TABLE s(id int NOT NULL); ALTER TABLE s ADD FOREIGN KEY (id) REFERENCES p NOT VALID;";
        for (sql, unbounded) in [
            ("UPDATE t SET a = q.p FROM q WHERE q.id = t.q", true),
            ("UPDATE t x SET a = y.b FROM q JOIN p y ON q.p = y.id WHERE x.q = q.id", true),
            ("DELETE FROM t USING q, p WHERE t.q = q.id AND q.p = p.id", true),
            ("UPDATE t SET a = 1 FROM p WHERE r = p.id AND p.b = t.b", true),
            ("UPDATE t SET a = n.at FROM (SELECT id, row_number() OVER () AS at FROM t) n WHERE n.id = t.id", true),
            ("WITH n AS (SELECT id FROM t) UPDATE t SET a = 1 FROM n WHERE t.id = n.id", true),
            // Half of a key, a key that may be null, one that was not checked, a condition besides, other joins.
            ("UPDATE t SET a = 1 FROM p WHERE r = p.id", false),
            ("UPDATE t SET a = 1 FROM q WHERE q.id = t.n", false),
            ("UPDATE s SET id = p.b FROM p WHERE p.id = s.id", false),
            ("UPDATE t SET a = q.p FROM q WHERE q.id = t.q AND q.p > 5", false),
            ("UPDATE t SET a = q.p FROM q WHERE q.id = t.q AND t.a IS NULL", false),
            ("UPDATE t SET a = q.p FROM q, p WHERE q.id = t.q AND p.id = 1", false),
            ("UPDATE q SET p = t.a FROM t WHERE q.id = t.q", false),
            ("WITH q AS (SELECT 1 AS id) UPDATE t SET a = 1 FROM q WHERE q.id = t.q", false),
            ("UPDATE t SET a = 1 FROM (SELECT id FROM t LIMIT 5) n WHERE n.id = t.id", false),
            ("UPDATE t SET a = 1 FROM (SELECT id FROM t WHERE a > 5) n WHERE n.id = t.id", false),
            ("UPDATE t SET a = 1 FROM (SELECT max(id) AS id FROM t) n WHERE n.id = t.id", false),
            ("UPDATE t SET a = 1 FROM (SELECT id, generate_series(1, a) FROM t) n WHERE n.id = t.id", false),
            ("UPDATE t SET a = 1 FROM (SELECT id, unseen(a) FROM t) n WHERE n.id = t.id", false),
            ("UPDATE t SET a = 1 FROM (SELECT q AS id FROM t) n WHERE n.id = t.id", false),
            ("UPDATE t SET a = 1 FROM (SELECT id FROM q) n WHERE n.id = t.id", false),
        ] {
            let changes = effects_on(17, tables, sql).data_changes;
            assert_eq!(changes.iter().map(|change| change.unbounded).collect::<Vec<_>>(), [unbounded], "{sql}");
        }
    }

    #[test]
    fn a_new_column_is_null_everywhere() {
        let table = "CREATE TABLE t(id int PRIMARY KEY, a int);";
        for (before, sql, unbounded) in [
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = a WHERE b IS NULL", true),
            ("ALTER TABLE t ADD b int", "UPDATE t x SET b = a WHERE x.b IS NULL AND true", true),
            ("ALTER TABLE t ADD b int; ALTER TABLE t ALTER b SET DEFAULT 1", "DELETE FROM t WHERE b IS NULL", true),
            ("ALTER TABLE t ADD b int DEFAULT 1", "UPDATE t SET b = a WHERE b IS NULL", false),
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = a WHERE b IS NOT NULL", false),
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = a WHERE b IS NULL AND id < 100", false),
            ("ALTER TABLE t ADD b int", "UPDATE t SET a = 1 WHERE a IS NULL", false),
            ("ALTER TABLE t ADD b int; UPDATE t SET b = 1 WHERE a = 1", "UPDATE t SET b = a WHERE b IS NULL", false),
            (
                "ALTER TABLE t ADD b int; ALTER TABLE t ALTER b TYPE bigint USING 1",
                "DELETE FROM t WHERE b IS NULL",
                false,
            ),
        ] {
            let script = format!("{before}; {sql}");
            let changes = effects_on(17, table, &script).data_changes;
            assert_eq!(changes.last().map(|change| change.unbounded), Some(unbounded), "{script}");
        }
    }

    #[test]
    fn a_join_without_a_choice_of_rows_reads_the_other_table() {
        let tables =
            "CREATE TABLE t(id int PRIMARY KEY, a int, p int); CREATE TABLE p(id int PRIMARY KEY, a int, b bool);";
        for (sql, scans) in [
            ("UPDATE t SET a = p.a FROM p WHERE p.id = t.p", true),
            ("UPDATE t SET a = p.a FROM p WHERE p.id = t.p AND (p.a <> 5 OR t.a IS NULL)", true),
            ("DELETE FROM t USING p WHERE p.id = t.p", true),
            ("UPDATE t SET a = p.a FROM p WHERE p.id = t.p AND p.a = 5", false),
            ("UPDATE t SET a = p.a FROM p WHERE p.id = t.p AND p.b", false),
            ("UPDATE t SET a = p.a FROM p WHERE p.id = t.p AND t.id BETWEEN 1 AND 100", false),
            ("UPDATE t SET a = p.a FROM p WHERE p.id = t.p AND t.id IN (SELECT id FROM t LIMIT 100)", false),
            ("UPDATE t SET a = p.a FROM p JOIN (VALUES (1)) v(id) ON p.id = v.id WHERE p.id = t.p", false),
            ("WITH p AS (SELECT 1 AS id) UPDATE t SET a = 1 FROM p WHERE p.id = t.p", false),
        ] {
            let found = effects_on(17, tables, sql).scans;
            assert_eq!(found.iter().any(|scan| scan.relation.name == "p"), scans, "{sql}");
        }
    }

    #[test]
    fn filling_a_new_column_where_no_index_helps_reads_the_table() {
        let table = "CREATE TABLE t(id int PRIMARY KEY, a int, k int); CREATE INDEX ON t(k); CREATE TABLE o(id int PRIMARY KEY, a int);";
        for (before, sql, scans) in [
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = 1 WHERE a = 5", true),
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = o.id FROM o WHERE o.a = t.a", true),
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = o.id FROM o WHERE abs(t.k) = o.a", true),
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = 1 WHERE k = 5 OR a = 5", false),
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = 1 WHERE k IN (SELECT a FROM o WHERE a > 5)", false),
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = 1 WHERE b IS NULL AND id BETWEEN 1 AND 1000", false),
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = 1 WHERE ctid IN (SELECT ctid FROM t WHERE b IS NULL)", false),
            ("ALTER TABLE t ADD b int", "UPDATE t SET b = 1 WHERE a IN (SELECT a FROM o LIMIT 9)", false),
            ("ALTER TABLE t ADD b int", "UPDATE t SET a = 1 WHERE a = 5", false),
            ("ALTER TABLE t ADD b bool NOT NULL DEFAULT false", "UPDATE t SET b = true WHERE a IS NOT NULL", true),
            ("ALTER TABLE t ADD b bool NOT NULL DEFAULT false", "UPDATE t SET b = true WHERE a = 5", false),
            ("ALTER TABLE t ADD b int; CREATE INDEX ON t((a + 1))", "UPDATE t SET b = 1 WHERE a + 1 = 5", false),
        ] {
            let found = effects_on(17, table, &format!("{before}; {sql}")).scans;
            assert_eq!(found.iter().any(|scan| scan.relation.name == "t"), scans, "{before}; {sql}");
        }
    }
}
