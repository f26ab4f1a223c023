//! Which SQL a statement of PL/pgSQL runs itself.

use super::{
    Block, DeclarationKind, DynamicQuery, LoopKind, OpenSource, QuerySource, RaiseMessage, SqlText, Statement,
    StatementKind,
};

/// How PL/pgSQL uses a piece of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlRole {
    /// A statement, or the query of a loop or cursor.
    Statement,
    /// An expression, as the SELECT that PL/pgSQL makes of it.
    Expression,
    /// The text of EXECUTE.
    Dynamic,
}

/// The SQL of a statement, in the order of the text, without that of the statements inside it.
pub fn of_statement(statement: &Statement) -> Vec<(SqlRole, &SqlText)> {
    let mut texts = Texts(Vec::new());
    texts.statement(&statement.kind);
    texts.0
}

/// The SQL of a block's declarations.
pub fn of_declarations(block: &Block) -> Vec<(SqlRole, &SqlText)> {
    let mut texts = Texts(Vec::new());
    for declaration in &block.declarations {
        match &declaration.kind {
            DeclarationKind::Variable(variable) => texts.expressions(&variable.default),
            DeclarationKind::Cursor(cursor) => texts.run(&cursor.query),
            DeclarationKind::Alias(_) => {}
        }
    }
    texts.0
}

struct Texts<'a>(Vec<(SqlRole, &'a SqlText)>);

impl<'a> Texts<'a> {
    fn statement(&mut self, kind: &'a StatementKind) {
        match kind {
            StatementKind::Assign(assign) => self.expression(&assign.value),
            StatementKind::If(conditional) => {
                self.expressions(conditional.branches.iter().map(|branch| &branch.condition));
            }
            StatementKind::Case(case) => {
                self.expressions(&case.operand);
                self.expressions(case.branches.iter().map(|branch| &branch.condition));
            }
            StatementKind::Loop(a_loop) => self.loop_head(&a_loop.kind),
            StatementKind::Exit(exit) | StatementKind::Continue(exit) => self.expressions(&exit.when),
            StatementKind::Return(value) | StatementKind::ReturnNext(value) => self.expressions(value),
            StatementKind::ReturnQuery(source) => self.source(source),
            StatementKind::Raise(raise) => {
                if let RaiseMessage::Format { arguments, .. } = &raise.message {
                    self.expressions(arguments);
                }
                self.expressions(raise.options.iter().map(|option| &option.value));
            }
            StatementKind::Assert(assert) => {
                self.expression(&assert.condition);
                self.expressions(&assert.message);
            }
            StatementKind::Execute(execute) => self.dynamic(&execute.query),
            StatementKind::Perform(text) | StatementKind::Call(text) => self.run(text),
            StatementKind::Sql(sql) => self.run(&sql.text),
            StatementKind::Open(open) => match &open.source {
                OpenSource::Bound(arguments) => self.expressions(arguments),
                OpenSource::Unbound(source) => self.source(source),
            },
            StatementKind::Block(_)
            | StatementKind::GetDiagnostics(_)
            | StatementKind::Fetch(_)
            | StatementKind::Move(_)
            | StatementKind::Close(_)
            | StatementKind::Commit(_)
            | StatementKind::Rollback(_)
            | StatementKind::Null => {}
        }
    }

    fn loop_head(&mut self, kind: &'a LoopKind) {
        match kind {
            LoopKind::Endless => {}
            LoopKind::While(condition) => self.expression(condition),
            LoopKind::Integer { from, to, by, .. } => {
                self.expression(from);
                self.expression(to);
                self.expressions(by);
            }
            LoopKind::Query { query, .. } => self.run(query),
            LoopKind::Dynamic { query, .. } => self.dynamic(query),
            LoopKind::Cursor { arguments, .. } => self.expressions(arguments),
            LoopKind::Foreach { array, .. } => self.expression(array),
        }
    }

    fn source(&mut self, source: &'a QuerySource) {
        match source {
            QuerySource::Static(text) => self.run(text),
            QuerySource::Dynamic(query) => self.dynamic(query),
        }
    }

    fn dynamic(&mut self, query: &'a DynamicQuery) {
        self.0.push((SqlRole::Dynamic, &query.expression));
        self.expressions(&query.using);
    }

    fn run(&mut self, text: &'a SqlText) {
        self.0.push((SqlRole::Statement, text));
    }

    fn expression(&mut self, text: &'a SqlText) {
        self.0.push((SqlRole::Expression, text));
    }

    fn expressions(&mut self, texts: impl IntoIterator<Item = &'a SqlText>) {
        texts.into_iter().for_each(|text| self.expression(text));
    }
}
