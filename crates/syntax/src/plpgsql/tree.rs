//! The parts of a function body, in the words of the PL/pgSQL documentation.
//!
//! Every range is a range of the file. The range of a statement ends before its semicolon.

use super::SqlText;
use crate::ast::Name;
use crate::source::TextRange;
use smol_str::SmolStr;

/// A function body, or the code of DO.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    pub options: Vec<CompilerOption>,
    pub block: Block,
    /// Parts that could not be read, in order.
    pub errors: Vec<ReadError>,
}

/// A part of a body that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    pub range: TextRange,
    pub message: String,
}

/// An option such as `#variable_conflict use_column`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerOption {
    pub name: SmolStr,
    pub value: SmolStr,
    pub range: TextRange,
}

/// `[<<label>>] [DECLARE ...] BEGIN ... [EXCEPTION ...] END`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    pub label: Option<Name>,
    /// The keyword DECLARE.
    pub declare: Option<TextRange>,
    pub declarations: Vec<Declaration>,
    /// The keyword BEGIN.
    pub begin: TextRange,
    pub statements: Vec<Statement>,
    pub exception: Option<ExceptionSection>,
    /// The keyword END; where it is missing, the empty range at the end of the block.
    pub end: TextRange,
    pub range: TextRange,
}

/// The EXCEPTION part of a block. A block that has one runs in a subtransaction.
#[derive(Debug, Clone, PartialEq)]
pub struct ExceptionSection {
    /// The keyword EXCEPTION.
    pub keyword: TextRange,
    pub handlers: Vec<Handler>,
    pub range: TextRange,
}

/// `WHEN condition [OR ...] THEN statements`.
#[derive(Debug, Clone, PartialEq)]
pub struct Handler {
    /// The keyword WHEN.
    pub when: TextRange,
    pub conditions: Vec<Condition>,
    pub statements: Vec<Statement>,
    pub range: TextRange,
}

impl Handler {
    /// The words `WHEN ... OTHERS`, if this handler catches everything.
    pub fn others(&self) -> Option<TextRange> {
        let others = self.conditions.iter().find(|condition| condition.kind == ConditionKind::Others)?;
        Some(self.when.cover(others.range))
    }

    /// Whether it continues as if nothing had happened.
    pub fn does_nothing(&self) -> bool {
        self.statements.iter().all(|statement| {
            matches!(statement.kind, StatementKind::Null | StatementKind::Continue(_) | StatementKind::Return(None))
        })
    }

    /// Whether it does no more than write a message that nobody has to notice, such as `RAISE NOTICE`.
    pub fn only_notes(&self) -> bool {
        self.statements.iter().all(|statement| match &statement.kind {
            StatementKind::Null | StatementKind::Continue(_) | StatementKind::Return(None) => true,
            StatementKind::Raise(raise) => !matches!(raise.level, RaiseLevel::Warning | RaiseLevel::Exception),
            _ => false,
        })
    }
}

/// A condition that a handler catches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: ConditionKind,
    pub range: TextRange,
}

/// The forms of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionKind {
    /// `unique_violation`.
    Name(SmolStr),
    /// `SQLSTATE '23505'`.
    SqlState(SmolStr),
    /// Everything but `query_canceled` and `assert_failure`.
    Others,
}

/// One entry of DECLARE.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    pub name: Name,
    pub kind: DeclarationKind,
    pub range: TextRange,
}

/// The kinds of declaration.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclarationKind {
    Variable(Variable),
    /// `name ALIAS FOR $1`.
    Alias(Target),
    Cursor(CursorDeclaration),
}

/// `name [CONSTANT] type [COLLATE c] [NOT NULL] [:= default]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub constant: bool,
    pub data_type: DataType,
    pub collation: Option<TextRange>,
    pub not_null: bool,
    pub default: Option<SqlText>,
}

/// The type of a variable or cursor argument.
#[derive(Debug, Clone, PartialEq)]
pub enum DataType {
    Named(SqlText),
    /// `path%TYPE`, possibly with `[]` (PostgreSQL 17).
    PercentType {
        path: Vec<SmolStr>,
        is_array: bool,
        range: TextRange,
    },
    /// `path%ROWTYPE`.
    PercentRowtype {
        path: Vec<SmolStr>,
        is_array: bool,
        range: TextRange,
    },
}

impl DataType {
    pub fn range(&self) -> TextRange {
        match self {
            Self::Named(text) => text.range,
            Self::PercentType { range, .. } | Self::PercentRowtype { range, .. } => *range,
        }
    }
}

/// `name [[NO] SCROLL] CURSOR [(arguments)] FOR query`.
#[derive(Debug, Clone, PartialEq)]
pub struct CursorDeclaration {
    pub scroll: Option<bool>,
    pub arguments: Vec<(Name, DataType)>,
    pub query: SqlText,
}

/// A statement of PL/pgSQL.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    pub kind: StatementKind,
    /// The first token: mostly the keyword that names the statement.
    pub keyword: TextRange,
    pub range: TextRange,
}

/// The kinds of statement.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    Block(Box<Block>),
    Assign(Assign),
    If(Conditional),
    Case(Case),
    Loop(Box<Loop>),
    Exit(Exit),
    Continue(Exit),
    Return(Option<SqlText>),
    ReturnNext(Option<SqlText>),
    ReturnQuery(QuerySource),
    Raise(Raise),
    Assert(Assert),
    Execute(Execute),
    /// The text has SELECT in place of PERFORM.
    Perform(SqlText),
    GetDiagnostics(GetDiagnostics),
    Open(Open),
    Fetch(Fetch),
    /// MOVE; without targets.
    Move(Fetch),
    Close(Target),
    /// CALL, and DO inside a function.
    Call(SqlText),
    Commit(Chain),
    Rollback(Chain),
    Null,
    Sql(Sql),
}

/// A variable that receives a value: `x`, `rec.field`, `a[1].b`, `$1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The names before the first subscript, folded.
    pub names: Vec<SmolStr>,
    pub range: TextRange,
}

/// `target := value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assign {
    pub target: Target,
    pub value: SqlText,
}

/// `IF ... THEN ... ELSIF ... ELSE ... END IF`.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditional {
    pub branches: Vec<Branch>,
    pub otherwise: Option<Else>,
}

/// A condition and what runs if it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// IF, ELSIF or WHEN.
    pub keyword: TextRange,
    /// In a simple CASE: the values that are compared with the operand.
    pub condition: SqlText,
    pub statements: Vec<Statement>,
}

/// The ELSE of IF or CASE.
#[derive(Debug, Clone, PartialEq)]
pub struct Else {
    /// The keyword ELSE.
    pub keyword: TextRange,
    pub statements: Vec<Statement>,
}

/// `CASE [operand] WHEN ... THEN ... ELSE ... END CASE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub operand: Option<SqlText>,
    pub branches: Vec<Branch>,
    pub otherwise: Option<Else>,
}

/// A loop of any kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    pub label: Option<Name>,
    pub kind: LoopKind,
    /// The keyword LOOP before the statements.
    pub keyword: TextRange,
    pub statements: Vec<Statement>,
}

/// The kinds of loop.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopKind {
    /// LOOP without a condition.
    Endless,
    While(SqlText),
    /// `FOR i IN [REVERSE] from .. to [BY step]`.
    Integer {
        variable: Target,
        reverse: bool,
        from: SqlText,
        to: SqlText,
        by: Option<SqlText>,
    },
    /// `FOR targets IN query`.
    Query {
        targets: Vec<Target>,
        query: SqlText,
    },
    /// `FOR targets IN EXECUTE ...`.
    Dynamic {
        targets: Vec<Target>,
        query: DynamicQuery,
    },
    /// `FOR record IN cursor [(arguments)]`.
    Cursor {
        targets: Vec<Target>,
        cursor: Target,
        arguments: Option<SqlText>,
    },
    /// `FOREACH target [SLICE n] IN ARRAY expression`.
    Foreach {
        targets: Vec<Target>,
        slice: u32,
        array: SqlText,
    },
}

impl Loop {
    /// How often the loop runs at most, where the text tells: `FOR i IN 1..10`.
    pub fn constant_iterations(&self) -> Option<u64> {
        let LoopKind::Integer { reverse, from, to, by, .. } = &self.kind else { return None };
        let number = |text: &SqlText| text.text.replace([' ', '_'], "").parse::<i64>().ok();
        let step = by.as_ref().map_or(Some(1), number).filter(|step| *step > 0)?;
        let (low, high) = if *reverse { (number(to)?, number(from)?) } else { (number(from)?, number(to)?) };
        Some(if low > high { 0 } else { high.abs_diff(low) / step.unsigned_abs() + 1 })
    }
}

/// EXIT or CONTINUE.
#[derive(Debug, Clone, PartialEq)]
pub struct Exit {
    pub label: Option<Name>,
    pub when: Option<SqlText>,
}

/// A query written out, or put together at run time.
#[derive(Debug, Clone, PartialEq)]
pub enum QuerySource {
    Static(SqlText),
    Dynamic(DynamicQuery),
}

impl StatementKind {
    /// Returns the EXECUTE of a statement.
    pub fn dynamic_query(&self) -> Option<&DynamicQuery> {
        match self {
            Self::Execute(execute) => Some(&execute.query),
            Self::ReturnQuery(QuerySource::Dynamic(query)) => Some(query),
            Self::Loop(a_loop) => match &a_loop.kind {
                LoopKind::Dynamic { query, .. } => Some(query),
                _ => None,
            },
            Self::Open(open) => match &open.source {
                OpenSource::Unbound(QuerySource::Dynamic(query)) => Some(query),
                _ => None,
            },
            _ => None,
        }
    }
}

/// `EXECUTE expression [USING ...]`.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicQuery {
    /// The keyword EXECUTE.
    pub keyword: TextRange,
    /// The expression that makes the text of the statement.
    pub expression: SqlText,
    pub using: Vec<SqlText>,
}

/// EXECUTE as a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Execute {
    pub query: DynamicQuery,
    pub into: Option<Into>,
}

/// `INTO [STRICT] targets`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Into {
    pub strict: bool,
    pub targets: Vec<Target>,
    pub range: TextRange,
}

/// An SQL statement with the INTO clause of PL/pgSQL taken out of its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Sql {
    pub text: SqlText,
    pub into: Option<Into>,
}

/// The levels of RAISE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RaiseLevel {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    #[default]
    Exception,
}

/// RAISE.
#[derive(Debug, Clone, PartialEq)]
pub struct Raise {
    pub level: RaiseLevel,
    pub message: RaiseMessage,
    pub options: Vec<RaiseOption>,
}

/// The message of RAISE.
#[derive(Debug, Clone, PartialEq)]
pub enum RaiseMessage {
    /// `RAISE` alone: throws again what the handler caught.
    Rethrow,
    /// Only USING.
    None,
    Format {
        /// The string literal.
        format: TextRange,
        arguments: Vec<SqlText>,
    },
    Condition(Condition),
}

/// `USING option = expression`.
#[derive(Debug, Clone, PartialEq)]
pub struct RaiseOption {
    pub name: Name,
    pub value: SqlText,
}

/// ASSERT.
#[derive(Debug, Clone, PartialEq)]
pub struct Assert {
    pub condition: SqlText,
    pub message: Option<SqlText>,
}

/// `GET [STACKED] DIAGNOSTICS target = item, ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetDiagnostics {
    pub stacked: bool,
    pub items: Vec<(Target, Name)>,
}

/// OPEN.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    pub cursor: Target,
    pub scroll: Option<bool>,
    pub source: OpenSource,
}

/// The query that OPEN runs.
#[derive(Debug, Clone, PartialEq)]
pub enum OpenSource {
    /// The query of the cursor's declaration, possibly with arguments.
    Bound(Option<SqlText>),
    /// `FOR query`, `FOR EXECUTE ...`.
    Unbound(QuerySource),
}

/// FETCH or MOVE.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetch {
    /// `NEXT`, `RELATIVE -2`; without FROM.
    pub direction: Option<TextRange>,
    pub cursor: Target,
    pub into: Option<Into>,
}

/// COMMIT and ROLLBACK: `AND CHAIN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain(pub bool);
