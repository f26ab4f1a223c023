//! Code of functions, read once however often it runs.

use crate::catalog::PerBody;
use pgvet_syntax::ast::from_pg::parse_sql;
use pgvet_syntax::ast::{Ast, Expr, FunctionBody, Query, SyntaxError};
use pgvet_syntax::plpgsql::{self, Block, BodyText, SqlParser, SqlText};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::{fill_text, split};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A body in PL/pgSQL, and the SQL in it as far as it has run.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) text: Arc<str>,
    pub(super) block: Block,
    /// The parts of it that are not PL/pgSQL.
    pub(super) unparsed: Vec<TextRange>,
    parser: RefCell<SqlParser>,
    statements: Parsed<Ast>,
    queries: Parsed<Query>,
    expressions: Parsed<Expr>,
}

type Parsed<T> = RefCell<FxHashMap<SqlText, Option<Arc<T>>>>;

impl Code {
    pub(super) fn read(text: &str) -> Self {
        let text = &fill_text(text);
        let body = plpgsql::read(&BodyText::verbatim(text, TextRange::new(0, text.len() as u32)));
        Self {
            text: Arc::from(text.as_ref()),
            unparsed: body.errors.iter().map(|error| error.range).collect(),
            block: body.block,
            parser: RefCell::new(SqlParser::new(text)),
            statements: Parsed::default(),
            queries: Parsed::default(),
            expressions: Parsed::default(),
        }
    }

    /// `None` for what cannot be read, here and below.
    pub(super) fn statement(&self, sql: &SqlText) -> Option<Arc<Ast>> {
        self.once(&self.statements, sql, SqlParser::statement)
    }

    pub(super) fn query(&self, sql: &SqlText) -> Option<Arc<Query>> {
        self.once(&self.queries, sql, SqlParser::query)
    }

    pub(super) fn expression(&self, sql: &SqlText) -> Option<Arc<Expr>> {
        self.once(&self.expressions, sql, SqlParser::expression)
    }

    fn once<T>(
        &self,
        known: &Parsed<T>,
        sql: &SqlText,
        parse: impl FnOnce(&mut SqlParser, &SqlText) -> Result<T, SyntaxError>,
    ) -> Option<Arc<T>> {
        if let Some(known) = known.borrow().get(sql) {
            return known.clone();
        }
        let parsed = parse(&mut self.parser.borrow_mut(), sql).ok().map(Arc::new);
        known.borrow_mut().insert(sql.clone(), parsed.clone());
        parsed
    }
}

/// Statements of SQL one after the other, in a body or in what EXECUTE is given.
#[derive(Debug)]
pub(super) struct SqlCode {
    pub(super) text: Arc<str>,
    pub(super) statements: Vec<(SqlText, Arc<Ast>)>,
}

impl SqlCode {
    /// `None` where it cannot be read.
    pub(super) fn read(text: &str) -> Option<Self> {
        let statements = parse_sql(text).ok()?;
        let pieces: Vec<TextRange> =
            split(text).pieces.iter().filter(|piece| piece.kind.is_statement()).map(|piece| piece.range).collect();
        let whole = TextRange::new(0, text.len() as u32);
        let is_split = pieces.len() == statements.len();
        let place = |(at, ast)| {
            let range = if is_split { pieces[at] } else { whole };
            (SqlText { range, place: range, text: text[range.as_usize()].to_owned() }, Arc::new(ast))
        };
        Some(Self { text: Arc::from(text), statements: statements.into_iter().enumerate().map(place).collect() })
    }
}

/// The bodies of the functions that a run has called. Triggers run the same ones for each statement.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    code: PerBody<Rc<Code>>,
    sql: PerBody<Option<Rc<SqlCode>>>,
}

impl Bodies {
    /// A body in PL/pgSQL, of which `text` is the source.
    pub(super) fn code(&self, body: &Arc<FunctionBody>, text: &str) -> Rc<Code> {
        self.code.once(body, || Rc::new(Code::read(text)))
    }

    /// The same for a body in SQL; `None` where it cannot be read.
    pub(super) fn sql(&self, body: &Arc<FunctionBody>, text: &str) -> Option<Rc<SqlCode>> {
        self.sql.once(body, || SqlCode::read(text).map(Rc::new))
    }
}
