//! Queries and data changes.

use super::{Expr, Name, ObjectName, Rare, TypeName};
use crate::source::TextRange;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// SELECT, VALUES, TABLE, or a combination of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Query {
    pub with: Rare<With>,
    pub body: QueryBody,
    pub order_by: Vec<Expr>,
    /// One for each of `order_by`; absent if none of them has words after it.
    pub sorting: Rare<Vec<Sorting>>,
    pub limit: Rare<Expr>,
    pub offset: Rare<Expr>,
    pub locking: Vec<RowLocking>,
    /// A part of it, outside of its subqueries, that is nowhere in this tree.
    pub omitted: Option<Omitted>,
    pub range: TextRange,
}

/// The words after an expression of ORDER BY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sorting {
    pub direction: Option<SortDirection>,
    /// NULLS FIRST, and false for NULLS LAST.
    pub nulls_first: Option<bool>,
}

/// ASC or DESC, if written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SortDirection {
    Ascending,
    Descending,
}

/// What a query can have that its tree does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Omitted {
    /// `FETCH FIRST ... WITH TIES`.
    WithTies,
    /// `ORDER BY ... USING`.
    SortOperator,
    GroupByDistinct,
    NaturalOuterJoin,
    JoinAlias,
    TableSample,
}

impl Query {
    /// A query that is nothing but its body.
    pub(crate) fn of_body(body: QueryBody, range: TextRange) -> Self {
        let (order_by, locking) = (Vec::new(), Vec::new());
        let (sorting, omitted) = (Rare::NONE, None);
        Self {
            with: Rare::NONE,
            body,
            order_by,
            sorting,
            limit: Rare::NONE,
            offset: Rare::NONE,
            locking,
            omitted,
            range,
        }
    }
}

/// The part of a query between WITH and ORDER BY.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum QueryBody {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>),
    SetOperation { operator: SetOperator, all: bool, left: Box<Query>, right: Box<Query> },
}

/// UNION, INTERSECT or EXCEPT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// One SELECT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Select {
    /// DISTINCT, and the expressions of DISTINCT ON.
    pub distinct: Rare<Vec<Expr>>,
    pub targets: Vec<Target>,
    pub into: Rare<IntoClause>,
    pub from: Vec<FromItem>,
    pub filter: Rare<Expr>,
    pub group_by: Vec<Expr>,
    pub having: Rare<Expr>,
    /// Partition and order expressions of the WINDOW clause.
    pub windows: Vec<Expr>,
}

/// An output column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub value: Expr,
    pub alias: Option<SmolStr>,
}

/// The new table of SELECT INTO and CREATE TABLE AS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntoClause {
    pub name: ObjectName,
    pub persistence: Persistence,
    pub columns: Vec<Name>,
    pub with_data: bool,
    pub on_commit_drop: bool,
}

/// Permanent, unlogged or temporary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Persistence {
    #[default]
    Permanent,
    Unlogged,
    Temporary,
}

/// An item of FROM or USING.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FromItem {
    Relation(RelationRef),
    Subquery {
        query: Box<Query>,
        alias: Option<Alias>,
        lateral: bool,
    },
    /// A function (or ROWS FROM, XMLTABLE, `JSON_TABLE`: their expressions).
    Function {
        calls: Vec<Expr>,
        form: Rare<FunctionForm>,
        alias: Option<Alias>,
        lateral: bool,
        range: TextRange,
    },
    Join {
        kind: JoinKind,
        left: Box<FromItem>,
        right: Box<FromItem>,
        on: Option<Expr>,
        using: Vec<SmolStr>,
    },
}

/// What an item of FROM has besides plain calls of functions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FunctionForm {
    /// ROWS FROM (...).
    pub rows_from: bool,
    /// WITH ORDINALITY: a last column with the number of the row.
    pub ordinality: bool,
    /// The columns that are defined after each function of ROWS FROM; empty if there are none at all.
    pub of_calls: Vec<Vec<FunctionColumn>>,
    /// The columns that are defined after the alias.
    pub columns: Vec<FunctionColumn>,
}

/// A column that a query defines for a function which returns records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionColumn {
    pub name: SmolStr,
    pub type_name: TypeName,
    pub collation: Option<ObjectName>,
}

/// A relation by name in a query, with its alias.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelationRef {
    pub name: ObjectName,
    /// ONLY: without its children.
    pub only: bool,
    pub alias: Option<Alias>,
}

/// The kinds of join; NATURAL is a kind of its own because it names no columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Natural,
}

/// `AS name (columns)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alias {
    pub name: SmolStr,
    pub columns: Vec<SmolStr>,
}

/// FOR UPDATE and its weaker forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowLocking {
    pub strength: RowLockStrength,
    /// OF: aliases or table names; empty means all.
    pub of: Vec<ObjectName>,
    pub nowait: bool,
    pub skip_locked: bool,
}

/// Row lock strengths, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RowLockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

/// WITH [RECURSIVE].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct With {
    pub recursive: bool,
    pub ctes: Vec<Cte>,
}

/// One common table expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cte {
    pub name: Name,
    pub columns: Vec<SmolStr>,
    /// MATERIALIZED, and false for NOT MATERIALIZED.
    pub materialized: Option<bool>,
    /// Whether it has SEARCH or CYCLE, whose parts are not in this tree.
    pub has_order_or_cycle: bool,
    pub statement: QueryStatement,
}

/// A statement that yields rows or changes data, wherever it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum QueryStatement {
    Select(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
}

/// INSERT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Insert {
    pub with: Option<With>,
    pub table: RelationRef,
    pub columns: Vec<Name>,
    pub overriding: Option<Overriding>,
    pub source: InsertSource,
    pub on_conflict: Option<OnConflict>,
    pub returning: Vec<Target>,
    pub range: TextRange,
}

/// What INSERT does with the values that it gives to identity columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Overriding {
    /// OVERRIDING SYSTEM VALUE: it uses them.
    System,
    /// OVERRIDING USER VALUE: it ignores them.
    User,
}

/// Where the inserted rows come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum InsertSource {
    DefaultValues,
    /// VALUES or any other query.
    Query(Box<Query>),
}

impl Select {
    /// The relations of FROM, without those of its subqueries.
    pub fn relations(&self) -> Vec<&RelationRef> {
        let mut found = Vec::new();
        self.from.iter().for_each(|item| item.relations(&mut found));
        found
    }
}

impl FromItem {
    fn relations<'a>(&'a self, found: &mut Vec<&'a RelationRef>) {
        match self {
            Self::Relation(relation) => found.push(relation),
            Self::Join { left, right, .. } => {
                left.relations(found);
                right.relations(found);
            }
            Self::Subquery { .. } | Self::Function { .. } => {}
        }
    }
}

impl RelationRef {
    /// The name that its columns have before them.
    pub fn called(&self) -> &SmolStr {
        self.alias.as_ref().map_or(&self.name.name.text, |alias| &alias.name)
    }
}

/// ON CONFLICT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnConflict {
    /// The arbiter; `None` for a bare ON CONFLICT DO NOTHING.
    pub target: Option<ConflictTarget>,
    /// The assignments of DO UPDATE; `None` for DO NOTHING.
    pub update: Option<Vec<Assignment>>,
    pub update_filter: Option<Expr>,
    pub range: TextRange,
}

/// How ON CONFLICT names its arbiter index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ConflictTarget {
    Constraint(Name),
    Inference { elements: Vec<Expr>, predicate: Option<Expr> },
}

/// `column = value` of SET; a multi-column assignment is one entry per column with the whole source as value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    pub column: Name,
    pub value: Expr,
}

/// UPDATE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Update {
    pub with: Option<With>,
    pub table: RelationRef,
    pub assignments: Vec<Assignment>,
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    pub returning: Vec<Target>,
    pub range: TextRange,
    pub keyword: TextRange,
}

/// DELETE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delete {
    pub with: Option<With>,
    pub table: RelationRef,
    pub using: Vec<FromItem>,
    pub filter: Option<Expr>,
    pub returning: Vec<Target>,
    pub range: TextRange,
    pub keyword: TextRange,
}

/// MERGE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Merge {
    pub with: Option<With>,
    pub table: RelationRef,
    pub source: FromItem,
    pub on: Expr,
    pub branches: Vec<MergeBranch>,
    pub returning: Vec<Target>,
    pub range: TextRange,
    pub keyword: TextRange,
}

/// One WHEN of MERGE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeBranch {
    pub matched: MergeMatch,
    pub condition: Option<Expr>,
    pub action: MergeAction,
}

/// The rows that a MERGE branch is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MergeMatch {
    Matched,
    NotMatchedBySource,
    NotMatchedByTarget,
}

/// The action of a MERGE branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum MergeAction {
    Insert { columns: Vec<Name>, values: Vec<Expr> },
    Update(Vec<Assignment>),
    Delete,
    DoNothing,
}
