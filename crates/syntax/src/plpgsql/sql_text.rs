//! SQL inside PL/pgSQL.

use super::DataType;
use crate::ast::from_pg::{parse_expression, parse_expression_query, parse_statement};
use crate::ast::{Ast, Expr, ExprKind, Query, SyntaxError, TypeName};
use crate::lexer::tokenize;
use crate::source::TextRange;

/// An SQL statement or expression in a function body.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SqlText {
    /// Where it is in the file.
    pub range: TextRange,
    /// Where it is in the source of the [`super::BodyText`]: the same, unless the body has escapes.
    pub place: TextRange,
    /// The text to parse, as long as `place`: clauses of PL/pgSQL are blanked.
    pub text: String,
}

/// Parses the SQL of the bodies of one source, with ranges that are offsets in that source.
///
/// Blanked text differs from the source, so each text is written over its place in a copy of the source first; one copy
/// serves all bodies of a file.
#[derive(Debug, Clone)]
pub struct SqlParser {
    source: String,
}

impl SqlParser {
    /// `source` is the file, or [`super::BodyText::source`] for a body with escapes.
    pub fn new(source: &str) -> Self {
        Self { source: source.to_owned() }
    }

    /// Writes a text over a part of the source that is as long; false where it does not fit.
    pub fn overwrite(&mut self, range: TextRange, text: &str) -> bool {
        let fits = self.source.get(range.as_usize()).is_some_and(|old| old.len() == text.len());
        if fits && self.source[range.as_usize()] != *text {
            self.source.replace_range(range.as_usize(), text);
        }
        fits
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    fn place(&mut self, sql: &SqlText) -> Option<TextRange> {
        self.overwrite(sql.place, &sql.text).then_some(sql.place)
    }

    pub fn statement(&mut self, sql: &SqlText) -> Result<Ast, SyntaxError> {
        let range = self.place(sql).ok_or_else(|| misplaced(sql))?;
        parse_statement(&self.source, range, &tokenize(&self.source, range))
    }

    /// An expression as the query that PL/pgSQL makes of it.
    pub fn query(&mut self, sql: &SqlText) -> Result<Query, SyntaxError> {
        let range = self.place(sql).ok_or_else(|| misplaced(sql))?;
        parse_expression_query(&self.source, range)
    }

    /// PL/pgSQL puts SELECT before an expression, so that `count(*) FROM t` is one.
    pub fn expression(&mut self, sql: &SqlText) -> Result<Expr, SyntaxError> {
        let range = self.place(sql).ok_or_else(|| misplaced(sql))?;
        parse_expression(&self.source, range)
    }
}

fn misplaced(sql: &SqlText) -> SyntaxError {
    SyntaxError { message: "SQL text of another source".to_owned(), range: sql.range }
}

impl DataType {
    /// The type in the words of SQL; `None` for `%ROWTYPE` and for text that is no type.
    pub fn type_name(&self) -> Option<TypeName> {
        match self {
            Self::Named(sql) => {
                let cast = format!("NULL::{}", sql.text);
                let range = TextRange::new(0, cast.len() as u32);
                let expression = parse_expression(&cast, range).ok()?;
                match expression.kind {
                    ExprKind::Cast { target, .. } => Some(TypeName { range: sql.range, ..*target }),
                    _ => None,
                }
            }
            Self::PercentType { path, is_array, range } => {
                let (column, relation) = path.split_last()?;
                let (name, schemas) = relation.split_last()?;
                Some(TypeName {
                    schema: schemas.last().cloned(),
                    name: name.clone(),
                    modifiers: Vec::new(),
                    is_array: *is_array,
                    setof: false,
                    percent_type: Some(column.clone()),
                    range: *range,
                })
            }
            Self::PercentRowtype { .. } => None,
        }
    }
}
