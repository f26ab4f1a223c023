//! Code of functions, read once however often it runs.

use crate::ast::from_pg::parse_sql;
use crate::ast::{Ast, Expr, FunctionBody, Query};
use crate::catalog::PerBody;
use crate::plpgsql::{self, Block, BodyText, SqlParser, SqlText};
use crate::source::TextRange;
use crate::statement::{SyntaxError, fill_text};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A body in PL/pgSQL, and the SQL in it as far as it has run.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) block: Block,
    /// The parts of it that are not PL/pgSQL.
    pub(super) unparsed: Vec<TextRange>,
    parser: RefCell<SqlParser>,
    statements: Parsed<Ast>,
    queries: Parsed<Query>,
    expressions: Parsed<Expr>,
}

type Parsed<T> = RefCell<FxHashMap<SqlText, Option<Rc<T>>>>;

impl Code {
    pub(super) fn read(text: &str) -> Self {
        let text = &fill_text(text);
        let body = plpgsql::read(&BodyText::verbatim(text, TextRange::new(0, text.len() as u32)));
        Self {
            unparsed: body.errors.iter().map(|error| error.range).collect(),
            block: body.block,
            parser: RefCell::new(SqlParser::new(text)),
            statements: Parsed::default(),
            queries: Parsed::default(),
            expressions: Parsed::default(),
        }
    }

    /// `None` for what cannot be read, here and below.
    pub(super) fn statement(&self, sql: &SqlText) -> Option<Rc<Ast>> {
        self.once(&self.statements, sql, SqlParser::statement)
    }

    pub(super) fn query(&self, sql: &SqlText) -> Option<Rc<Query>> {
        self.once(&self.queries, sql, SqlParser::query)
    }

    pub(super) fn expression(&self, sql: &SqlText) -> Option<Rc<Expr>> {
        self.once(&self.expressions, sql, SqlParser::expression)
    }

    fn once<T>(
        &self,
        known: &Parsed<T>,
        sql: &SqlText,
        parse: impl FnOnce(&mut SqlParser, &SqlText) -> Result<T, SyntaxError>,
    ) -> Option<Rc<T>> {
        if let Some(known) = known.borrow().get(sql) {
            return known.clone();
        }
        let parsed = parse(&mut self.parser.borrow_mut(), sql).ok().map(Rc::new);
        known.borrow_mut().insert(sql.clone(), parsed.clone());
        parsed
    }
}

/// The bodies of the functions that a run has called. Triggers run the same ones for each statement.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    code: PerBody<Rc<Code>>,
    sql: PerBody<Option<Rc<Vec<Ast>>>>,
}

impl Bodies {
    /// A body in PL/pgSQL, of which `text` is the source.
    pub(super) fn code(&self, body: &Arc<FunctionBody>, text: &str) -> Rc<Code> {
        self.code.once(body, || Rc::new(Code::read(text)))
    }

    /// The same for a body in SQL; `None` where it cannot be read.
    pub(super) fn sql(&self, body: &Arc<FunctionBody>, text: &str) -> Option<Rc<Vec<Ast>>> {
        self.sql.once(body, || parse_sql(text).ok().map(Rc::new))
    }
}
