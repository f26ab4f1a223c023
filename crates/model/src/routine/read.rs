//! From the text of a body to statements with ranges in the file.

use super::naming::Naming;
use super::{AllWords, Node, SqlRole, Words};
use crate::catalog::{Function, Oid, PerBody, SearchPath};
use crate::execute::Bodies;
use pgvet_syntax::ast::from_pg::{parse_sql, parse_statement};
use pgvet_syntax::ast::{Ast, Do, FunctionBody};
use pgvet_syntax::lexer::tokenize;
use pgvet_syntax::plpgsql::texts;
use pgvet_syntax::plpgsql::{
    self, Block, Body, BodyText, ConstantSql, Context, SqlParser, SqlText, Statement, Visitor, walk,
};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::fill_text;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Languages whose code is read.
const READ: [&str; 2] = ["plpgsql", "sql"];

/// The code of a function, a procedure or a DO block.
#[derive(Debug)]
pub struct Routine {
    /// `None` for DO.
    pub function: Option<Arc<Function>>,
    /// Index of the file in the run.
    pub file: u32,
    /// The statement of the file that holds the code.
    pub statement: TextRange,
    /// The name in CREATE FUNCTION, or the keyword DO.
    pub name_range: TextRange,
    pub code: Code,
    /// The schemas in which the code looks names up.
    pub search_path: SearchPath,
    /// SQL that could not be parsed.
    pub unread: Vec<TextRange>,
    /// Statements and expressions by where they stand.
    parsed: FxHashMap<TextRange, Ast>,
    /// The statements that EXECUTE runs, by the position of its expression.
    dynamic: FxHashMap<TextRange, Dynamic>,
    pub(super) variable_names: OnceCell<Vec<SmolStr>>,
}

/// Where the code of a routine is defined.
struct Definition {
    file: u32,
    statement: TextRange,
    name: TextRange,
}

/// The code, by language. Other languages are not read.
#[derive(Debug)]
pub enum Code {
    Plpgsql(Body),
    /// Statements of LANGUAGE sql, in quotes or BEGIN ATOMIC, with their places.
    Sql(Vec<(TextRange, Ast)>),
}

/// The statements that EXECUTE runs.
#[derive(Debug)]
pub struct Dynamic {
    /// The text, as far as it is constant.
    pub constant: Option<ConstantSql>,
    /// Its statements, if all of it is constant or the unknown parts are names or values; ranges are offsets in the text.
    pub statements: Vec<Ast>,
}

impl Routine {
    /// The code of a function whose text is in no file, as that of one that EXECUTE creates: ranges are offsets in the
    /// text. `None` for a function in another language.
    pub fn alone(function: &Arc<Function>) -> Option<Self> {
        let (code, found) = match &*function.body {
            FunctionBody::Source { text, .. } if READ.contains(&function.language.as_str()) => {
                let text = fill_text(text);
                let whole = TextRange::new(0, text.len() as u32);
                read_text(&mut SqlParser::new(&text), &function.language, whole)
            }
            FunctionBody::Atomic { statements, .. } => {
                let statements = statements.iter().map(|ast| (TextRange::default(), ast.clone())).collect();
                (Code::Sql(statements), Found::default())
            }
            FunctionBody::Source { .. } | FunctionBody::Library | FunctionBody::Missing => return None,
        };
        let nowhere = TextRange::default();
        let place = Definition { file: 0, statement: nowhere, name: nowhere };
        Some(Self::new(Some(Arc::clone(function)), place, function.search_path(), (code, found)))
    }

    fn new(function: Option<Arc<Function>>, at: Definition, search_path: SearchPath, read: (Code, Found)) -> Self {
        let (code, found) = read;
        Self {
            function,
            file: at.file,
            statement: at.statement,
            name_range: at.name,
            code,
            search_path,
            unread: found.unread,
            parsed: found.parsed,
            dynamic: found.dynamic,
            variable_names: OnceCell::new(),
        }
    }

    pub fn oid(&self) -> Option<Oid> {
        self.function.as_ref().map(|function| function.oid)
    }

    /// Whether all of the code was read.
    pub fn is_read(&self) -> bool {
        let has_errors = matches!(&self.code, Code::Plpgsql(body) if !body.errors.is_empty());
        self.unread.is_empty() && !has_errors
    }

    /// Returns the parts of the code that could not be parsed.
    pub fn unparsed(&self) -> Vec<TextRange> {
        let errors = match &self.code {
            Code::Plpgsql(body) => body.errors.as_slice(),
            Code::Sql(_) => &[],
        };
        errors.iter().map(|error| error.range).chain(self.unread.iter().copied()).collect()
    }

    /// `app.f()`, or `this DO block`.
    pub fn name(&self) -> String {
        match &self.function {
            Some(function) => function.display_name(),
            None => "this DO block".to_owned(),
        }
    }

    /// The statement or expression that was read from a text. Expressions that call nothing are not read.
    pub fn sql(&self, text: &SqlText) -> Option<&Ast> {
        self.parsed.get(&text.range)
    }

    /// An expression, also one that calls nothing, whose ranges are then no places in the file.
    pub fn expression(&self, text: &SqlText) -> Option<Cow<'_, Ast>> {
        if let Some(known) = self.sql(text) {
            return Some(Cow::Borrowed(known));
        }
        Self::expression_of(&text.text).map(Cow::Owned)
    }

    /// An expression of the code, from its text alone.
    pub fn expression_of(text: &str) -> Option<Ast> {
        parse_sql(&format!("SELECT {text}")).ok()?.into_iter().next()
    }

    /// Returns the EXECUTEs whose text is known only at run time.
    pub fn unread_dynamic(&self) -> Vec<TextRange> {
        let steps = self.steps();
        let unread = steps.iter().filter_map(|step| {
            let Node::Statement(statement) = step.node else { return None };
            let query = statement.kind.dynamic_query()?;
            let is_read = self.dynamic(&query.expression).is_some_and(|dynamic| !dynamic.statements.is_empty());
            (!is_read).then_some(query.keyword)
        });
        unread.collect()
    }

    /// The statements in the text of EXECUTE.
    pub fn dynamic(&self, expression: &SqlText) -> Option<&Dynamic> {
        self.dynamic.get(&expression.range)
    }
}

/// A definition and what was read of it: a later one may replace it.
type ReadFunction = (Arc<Function>, Option<Rc<Routine>>);

/// Reads routines, each once in a run.
#[derive(Debug, Default)]
pub struct RoutineReader {
    /// With a copy of the file to parse in.
    parsers: RefCell<FxHashMap<u32, SqlParser>>,
    functions: RefCell<FxHashMap<Oid, ReadFunction>>,
    /// DO blocks by file and place.
    blocks: RefCell<FxHashMap<(u32, u32), Rc<Routine>>>,
    words: PerBody<Rc<Words>>,
    all_words: PerBody<Rc<AllWords>>,
    pub(super) naming: RefCell<Naming>,
    /// The same bodies as statements that call the functions run them.
    pub(super) bodies: Rc<Bodies>,
}

impl RoutineReader {
    /// The words of a body, of which `text` is the source.
    pub fn words(&self, body: &Arc<FunctionBody>, text: &str) -> Rc<Words> {
        self.words.once(body, || Rc::new(Words::of(text)))
    }

    /// All words of a body, of which `text` is the source.
    pub(super) fn all_words(&self, body: &Arc<FunctionBody>, text: &str) -> Rc<AllWords> {
        self.all_words.once(body, || Rc::new(AllWords::from_iter([text])))
    }

    /// `None` for a function in another language, or without a definition in a file.
    pub(super) fn function<'t>(&self, function: &Arc<Function>, text: impl Fn(u32) -> &'t str) -> Option<Rc<Routine>> {
        if let Some((known, routine)) = self.functions.borrow().get(&function.oid)
            && Arc::ptr_eq(known, function)
        {
            return routine.clone();
        }
        let routine = self.read_function(function, text).map(Rc::new);
        self.functions.borrow_mut().insert(function.oid, (Arc::clone(function), routine.clone()));
        routine
    }

    fn read_function<'t>(&self, function: &Arc<Function>, text: impl Fn(u32) -> &'t str) -> Option<Routine> {
        let mut parsers = self.parsers.borrow_mut();
        let definition = function.defined_at.as_ref()?;
        let parser = parsers.entry(definition.file).or_insert_with(|| SqlParser::new(text(definition.file)));
        let (code, found) = match &*function.body {
            FunctionBody::Source { .. } => read_source(parser, &function.language, definition.body)?,
            FunctionBody::Atomic { statements, .. } => {
                let statements = statements.iter().map(|ast| (definition.statement, ast.clone())).collect();
                (Code::Sql(statements), Found::default())
            }
            FunctionBody::Library | FunctionBody::Missing => return None,
        };
        let place = Definition { file: definition.file, statement: definition.statement, name: definition.name };
        Some(Routine::new(Some(Arc::clone(function)), place, function.search_path(), (code, found)))
    }

    /// A DO block.
    pub(super) fn block(
        &self,
        file: u32,
        statement: TextRange,
        block: &Do,
        search_path: SearchPath,
        text: &str,
    ) -> Option<Rc<Routine>> {
        let key = (file, block.keyword.start);
        if let Some(known) = self.blocks.borrow().get(&key)
            && known.search_path == search_path
        {
            return Some(Rc::clone(known));
        }
        let FunctionBody::Source { range, .. } = &block.body else { return None };
        let mut parsers = self.parsers.borrow_mut();
        let parser = parsers.entry(file).or_insert_with(|| SqlParser::new(text));
        let read = read_source(parser, &block.language, *range)?;
        let place = Definition { file, statement, name: block.keyword };
        let routine = Rc::new(Routine::new(None, place, search_path, read));
        self.blocks.borrow_mut().insert(key, Rc::clone(&routine));
        Some(routine)
    }
}

/// Reads a body that is between quotes at `inside`.
fn read_source(parser: &mut SqlParser, language: &str, inside: TextRange) -> Option<(Code, Found)> {
    if !READ.contains(&language) {
        return None;
    }
    let range = align(parser, inside)?;
    Some(read_text(parser, language, range))
}

/// Reads a body that is in the text as PostgreSQL sees it.
fn read_text(parser: &mut SqlParser, language: &str, range: TextRange) -> (Code, Found) {
    let mut found = Found::default();
    if language == "plpgsql" {
        let body = plpgsql::read(&BodyText::verbatim(parser.source(), range));
        let mut collector = Collector { parser, found };
        walk(&body.block, &mut collector);
        return (Code::Plpgsql(body), collector.found);
    }
    let tokens = tokenize(parser.source(), range);
    let mut statements = Vec::new();
    for piece in tokens.split(|token| token.is_punctuation(b';')) {
        let (Some(first), Some(last)) = (piece.first(), piece.last()) else { continue };
        let place = TextRange::new(first.range.start, last.range.end);
        match parse_statement(parser.source(), place, piece) {
            Ok(ast) => statements.push((place, ast)),
            Err(_) => found.unread.push(place),
        }
    }
    (Code::Sql(statements), found)
}

/// Puts the text that PostgreSQL sees, with placeholders filled, into its place in the parser's copy of the file.
fn align(parser: &mut SqlParser, inside: TextRange) -> Option<TextRange> {
    let (range, text) = {
        let source = parser.source();
        let body = BodyText::from_literal(source, literal_around(source, inside)?);
        let (range, text) = body.aligned();
        (range, fill_text(&text))
    };
    parser.overwrite(range, &text).then_some(range)
}

/// The string literal whose inside is at `inside`.
fn literal_around(source: &str, inside: TextRange) -> Option<TextRange> {
    let before = source.get(..inside.start as usize)?;
    let after = source.get(inside.end as usize..)?;
    if before.ends_with('\'') {
        let prefix = ["E'", "e'", "U&'", "u&'"].into_iter().find(|prefix| before.ends_with(prefix)).map_or(1, str::len);
        return Some(TextRange::new(inside.start - prefix as u32, inside.end + u32::from(after.starts_with('\''))));
    }
    let tag = before.strip_suffix('$')?.rfind('$').map(|at| (before.len() - at) as u32)?;
    after.starts_with('$').then(|| TextRange::new(inside.start - tag, inside.end + tag))
}

#[derive(Debug, Default)]
struct Found {
    parsed: FxHashMap<TextRange, Ast>,
    dynamic: FxHashMap<TextRange, Dynamic>,
    unread: Vec<TextRange>,
}

/// Parses the SQL of a body.
struct Collector<'p> {
    parser: &'p mut SqlParser,
    found: Found,
}

impl Visitor for Collector<'_> {
    fn statement(&mut self, statement: &Statement, _: Context) {
        self.texts(texts::of_statement(statement));
    }

    fn block(&mut self, block: &Block, _: Context) {
        self.texts(texts::of_declarations(block));
    }
}

impl Collector<'_> {
    fn texts(&mut self, texts: Vec<(SqlRole, &SqlText)>) {
        for (role, text) in texts {
            let parsed = match role {
                SqlRole::Statement => self.parser.statement(text),
                SqlRole::Expression if !text.text.contains('(') && !names_trigger_variable(&text.text) => continue,
                SqlRole::Expression => self.parser.query(text).map(|query| Ast::Select(Box::new(query))),
                SqlRole::Dynamic => {
                    let dynamic = Dynamic::read(text, self.parser.source());
                    self.found.dynamic.insert(text.range, dynamic);
                    self.parser.query(text).map(|query| Ast::Select(Box::new(query)))
                }
            };
            match parsed {
                Ok(ast) => drop(self.found.parsed.insert(text.range, ast)),
                Err(_) => self.found.unread.push(text.range),
            }
        }
    }
}

/// Whether an expression may name a field of the row of a trigger, or another variable of triggers. Saves parsing most of
/// those that call nothing.
fn names_trigger_variable(expression: &str) -> bool {
    let text = expression.to_ascii_lowercase();
    ["new.", "old.", "tg_"].iter().any(|part| text.contains(part))
}

impl Dynamic {
    fn read(expression: &SqlText, source: &str) -> Self {
        let constant = expression.constant(source);
        let statements = constant.as_ref().and_then(|constant| parse_sql(&constant.text).ok()).unwrap_or_default();
        Self { constant, statements }
    }
}
