use crate::ranges::assert_inside;
use pgvet_syntax::lexer::{TokenKind, tokenize};
use pgvet_syntax::plpgsql::{self, BodyText, Context, SqlParser, SqlText, Statement, StatementKind, Visitor};
use pgvet_syntax::source::TextRange;

/// Every string of the text is read as a body, and where there is none, all of it.
pub fn plpgsql(text: &str) {
    let everything = TextRange::new(0, text.len() as u32);
    let is_body = |kind| matches!(kind, TokenKind::String | TokenKind::DollarString);
    let literals: Vec<_> = tokenize(text, everything).into_iter().filter(|token| is_body(token.kind)).collect();
    for literal in &literals {
        read(text, &BodyText::from_literal(text, literal.range));
    }
    if literals.is_empty() {
        read(text, &BodyText::verbatim(text, everything));
    }
}

/// Checks that everything that is read has its place in the file, and the SQL in it its place in the body.
fn read(text: &str, body: &BodyText<'_>) {
    let read = plpgsql::read(body);
    assert_inside(text, &read.errors);
    let mut statements = Statements { text, body, parser: SqlParser::new(body.source()) };
    plpgsql::walk(&read.block, &mut statements);
    if body.is_verbatim() {
        assert_inside(text, &read);
    }
    for token in tokenize(body.source(), body.range()) {
        if let Some(constant) = plpgsql::constant_sql(body.source(), token.range) {
            drop(pgvet_syntax::ast::from_pg::parse_sql(&constant.text));
        }
    }
}

struct Statements<'a> {
    text: &'a str,
    body: &'a BodyText<'a>,
    parser: SqlParser,
}

impl Statements<'_> {
    fn check(&mut self, sql: &SqlText) {
        assert!(self.text.get(sql.range.as_usize()).is_some(), "{sql:?} of {:?}", self.text);
        let place = self.body.source().get(sql.place.as_usize());
        assert!(place.is_some_and(|place| place.len() == sql.text.len()), "{sql:?} of {:?}", self.text);
        let parsed = self.parser.statement(sql);
        assert_inside(self.body.source(), &parsed);
        assert_inside(self.body.source(), &self.parser.expression(sql));
    }
}

impl Visitor for Statements<'_> {
    fn statement(&mut self, statement: &Statement, _: Context) {
        assert!(self.text.get(statement.range.as_usize()).is_some(), "{statement:?} of {:?}", self.text);
        match &statement.kind {
            StatementKind::Sql(sql) => self.check(&sql.text),
            StatementKind::Perform(sql) | StatementKind::Call(sql) => self.check(sql),
            StatementKind::Assign(assign) => self.check(&assign.value),
            StatementKind::Execute(execute) => self.check(&execute.query.expression),
            _ => {}
        }
    }
}
