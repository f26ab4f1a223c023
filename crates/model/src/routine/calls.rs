//! All code of a database: which code calls which, and which triggers run what.

use super::evaluation::{Evaluated, evaluate};
use super::made::Made;
use super::read::RoutineReader;
use super::{AllWords, Around, Bound, Hotness, Node, Routine, Sql, Step, Trial};
use crate::catalog::{Catalog, Function, Mention, Oid, Relation, SearchPath, Trigger};
use crate::migration::Migration;
use crate::place::Place;
use crate::production::Functions;
use crate::version::PgVersion;
use pgvet_syntax::ast::{Do, Expr, ExprKind, FunctionBody, FunctionCall, Part, Persistence};
use pgvet_syntax::lexer::{Lexer, TokenKind, identifier};
use pgvet_syntax::source::TextRange;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// The code of a database. Bodies are read when somebody asks for them.
#[derive(Debug)]
pub struct Routines<'a> {
    /// For their texts: their statements may be gone.
    pub migrations: &'a [Migration<'a>],
    pub(super) catalog: &'a Catalog,
    pub(super) functions: &'a Functions,
    reader: &'a RoutineReader,
    triggers: OnceCell<FxHashMap<Oid, Vec<TriggerUse>>>,
    /// The functions whose triggers are asked for, if these are not all.
    only: Option<Vec<Oid>>,
    callers: OnceCell<FxHashMap<Oid, Vec<CallSite>>>,
    /// The objects that the code of functions creates.
    made: OnceCell<Made>,
    pub(super) hot: RefCell<FxHashMap<Oid, Rc<Hotness>>>,
    /// Results that were found while that of another function is being found: they may lack the callers of that one.
    pub(super) seen: RefCell<FxHashMap<Oid, Rc<Hotness>>>,
    /// Functions whose hotness is being found, so that recursion ends.
    pub(super) open: RefCell<Vec<Oid>>,
}

/// A trigger that runs a function.
#[derive(Debug, Clone)]
pub struct TriggerUse {
    pub table: Arc<Relation>,
    pub trigger: Arc<Trigger>,
}

/// A place that calls a function.
#[derive(Debug, Clone)]
pub struct CallSite {
    pub kind: CallerKind,
    /// The name in the call; the definition of the relation where the call is in one.
    pub place: Option<Place>,
    /// The innermost loop around the call: its first words.
    pub in_loop: Option<TextRange>,
    /// The query around the call runs it for each row.
    pub for_each_row: bool,
}

/// A caller of a function.
#[derive(Debug, Clone)]
pub enum CallerKind {
    Function(Arc<Function>),
    /// A row-level security policy: its name, and the table.
    Policy(SmolStr, Arc<Relation>),
    /// The default of a column.
    Default(SmolStr, Arc<Relation>),
    View(Arc<Relation>),
}

impl<'a> Routines<'a> {
    pub fn new(
        migrations: &'a [Migration<'a>],
        catalog: &'a Catalog,
        functions: &'a Functions,
        reader: &'a RoutineReader,
    ) -> Self {
        Self {
            migrations,
            catalog,
            functions,
            reader,
            triggers: OnceCell::new(),
            only: None,
            callers: OnceCell::new(),
            made: OnceCell::new(),
            hot: RefCell::default(),
            seen: RefCell::default(),
            open: RefCell::default(),
        }
    }

    /// The same for some functions, without a look at all tables for the triggers that run them.
    pub fn of_functions(
        migrations: &'a [Migration<'a>],
        catalog: &'a Catalog,
        functions: &'a Functions,
        reader: &'a RoutineReader,
        only: Vec<Oid>,
    ) -> Self {
        Self { only: Some(only), ..Self::new(migrations, catalog, functions, reader) }
    }

    /// The catalog with the functions.
    pub fn catalog(&self) -> &'a Catalog {
        self.catalog
    }

    /// The code of a function in PL/pgSQL or SQL.
    pub fn function(&self, oid: Oid) -> Option<Rc<Routine>> {
        let text = |file: u32| self.migrations[file as usize].file.text.as_str();
        self.reader.function(self.catalog.get_function(oid)?, text)
    }

    /// A trial of statements of code. What functions do is read once for all of them.
    pub fn trial(&self, search_path: &SearchPath, version: PgVersion) -> Trial {
        Trial::of_code(self.catalog, search_path, version).with_bodies(&self.reader.bodies)
    }

    /// All words in the text of a function's body; `None` for a body without a text.
    pub fn all_words(&self, function: &Function) -> Option<Rc<AllWords>> {
        let FunctionBody::Source { text, .. } = &*function.body else { return None };
        Some(self.reader.all_words(&function.body, text))
    }

    /// The functions whose texts may have one of the names, the oldest first. A name without a word is in no text.
    pub fn naming<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<Arc<Function>> {
        let mut naming = self.reader.naming.borrow_mut();
        naming.add(self.catalog, |function| self.all_words(function));
        naming.naming(self.catalog, names)
    }

    /// The text of SQL in a routine; for EXECUTE the text that it runs.
    pub fn text<'s>(&'s self, routine: &Routine, sql: &'s Sql<'_>) -> &'s str {
        match sql.dynamic.and_then(|dynamic| dynamic.constant.as_ref()) {
            Some(constant) => &constant.text,
            None => self.migrations[routine.file as usize].file.text.get(sql.range.as_usize()).unwrap_or_default(),
        }
    }

    /// Whether the code of a function may make a relation of that name.
    pub fn makes(&self, name: &str) -> bool {
        self.made().makes(name, |_| true)
    }

    /// Whether the code of a function may make a temporary table of that name.
    pub fn makes_temporary(&self, name: &str) -> bool {
        self.made().makes(name, |persistence| persistence == Persistence::Temporary)
    }

    fn made(&self) -> &Made {
        self.made.get_or_init(|| {
            let routines = self.catalog.functions().filter_map(|function| self.function(function.oid));
            Made::by(routines)
        })
    }

    /// The code of a DO block.
    pub fn block(&self, file: u32, statement: TextRange, block: &Do, search_path: SearchPath) -> Option<Rc<Routine>> {
        let text = &self.migrations[file as usize].file.text;
        self.reader.block(file, statement, block, search_path, text)
    }

    /// The functions that are defined in a migration, in the order of their definitions.
    pub fn defined_in(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<Oid> {
        let defined = |function: &Arc<Function>| {
            let definition = function.defined_at.as_ref().filter(|definition| is_wanted(definition.file))?;
            Some((definition.file, definition.name.start, function.oid))
        };
        let mut found: Vec<_> = self.catalog.functions().filter_map(defined).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, oid)| oid).collect()
    }

    /// Whether the definition of a function is in a reported migration.
    pub fn is_reported(&self, function: Oid) -> bool {
        let definition = self.catalog.get_function(function).and_then(|function| function.defined_at.as_ref());
        let migration = definition.and_then(|definition| self.migrations.get(definition.file as usize));
        migration.is_some_and(|migration| migration.report)
    }

    /// The triggers that run a function, without those that partitions have from their parent.
    pub fn triggers_of(&self, function: Oid) -> &[TriggerUse] {
        self.triggers.get_or_init(|| self.find_triggers()).get(&function).map_or(&[], Vec::as_slice)
    }

    fn find_triggers(&self) -> FxHashMap<Oid, Vec<TriggerUse>> {
        let mut found: FxHashMap<Oid, Vec<TriggerUse>> = FxHashMap::default();
        let tables = match &self.only {
            Some(only) => {
                let sought: Vec<Mention> = only.iter().copied().map(Mention::Object).collect();
                self.catalog.relations_mentioning(&sought)
            }
            None => self.catalog.relations_where(|relation| !relation.triggers.is_empty()),
        };
        for table in tables {
            for trigger in table.triggers.iter().filter(|trigger| !trigger.inherited && trigger.function.is_valid()) {
                let trigger_use = TriggerUse { table: Arc::clone(table), trigger: Arc::clone(trigger) };
                found.entry(trigger.function).or_default().push(trigger_use);
            }
        }
        found
    }

    /// The places that call a function: in other functions, its own recursion included, policies, defaults and views.
    pub fn callers_of(&self, function: Oid) -> &[CallSite] {
        self.callers.get_or_init(|| self.find_callers()).get(&function).map_or(&[], Vec::as_slice)
    }

    /// Whether the code of a function calls another one, itself or in the functions that it calls.
    pub fn reaches(&self, from: Oid, sought: Oid) -> bool {
        let mut seen = FxHashSet::from_iter([from]);
        let mut open = vec![from];
        while let Some(next) = open.pop() {
            for callee in self.callees(next) {
                if callee == sought {
                    return true;
                }
                if seen.insert(callee) {
                    open.push(callee);
                }
            }
        }
        false
    }

    fn callees(&self, function: Oid) -> Vec<Oid> {
        let Some(routine) = self.function(function) else { return Vec::new() };
        let mut callees = Vec::new();
        for sql in routine.steps().iter().flat_map(|step| &step.sql) {
            sql.ast.visit(&mut |part| {
                if let Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part {
                    callees.extend(self.catalog.functions_called(call, &routine.search_path));
                }
            });
        }
        callees
    }

    fn find_callers(&self) -> FxHashMap<Oid, Vec<CallSite>> {
        let mut found = Callers { routines: self, sites: FxHashMap::default() };
        let names: FxHashSet<SmolStr> = self.catalog.functions().map(|function| function.name.clone()).collect();
        let mut functions: Vec<_> = self.catalog.functions().collect();
        functions.sort_unstable_by_key(|function| function.oid);
        for function in functions {
            if may_call(&function.body, &names)
                && let Some(routine) = self.function(function.oid)
            {
                found.function(function, &routine);
            }
        }
        for relation in self.catalog.relations_where(|_| true) {
            found.relation(relation);
        }
        found.sites
    }
}

/// Whether a body names one of these functions before a parenthesis. Saves reading it.
fn may_call(body: &FunctionBody, names: &FxHashSet<SmolStr>) -> bool {
    let FunctionBody::Source { text, .. } = body else { return true };
    let mut last: Option<SmolStr> = None;
    for token in Lexer::new(text, TextRange::new(0, text.len() as u32)) {
        match token.kind {
            TokenKind::Word | TokenKind::QuotedIdentifier => last = Some(identifier(token.text(text))),
            TokenKind::Punctuation(b'(') if last.as_ref().is_some_and(|name| names.contains(name)) => return true,
            // A call may be in the text of EXECUTE.
            TokenKind::String | TokenKind::DollarString if token.text(text).contains('(') => return true,
            _ => last = None,
        }
    }
    false
}

struct Callers<'r, 'a> {
    routines: &'r Routines<'a>,
    sites: FxHashMap<Oid, Vec<CallSite>>,
}

impl Callers<'_, '_> {
    fn function(&mut self, function: &Arc<Function>, routine: &Routine) {
        for step in routine.steps() {
            let in_loop = loop_head(&step);
            for sql in &step.sql {
                evaluate(sql.ast, sql.one_row, self.routines.catalog, &routine.search_path, &mut |what, times| {
                    let Evaluated::Call(call) = what else { return };
                    let range = sql.place(call.name_range);
                    let site = CallSite {
                        kind: CallerKind::Function(Arc::clone(function)),
                        place: Some(Place { file: routine.file, range }),
                        in_loop,
                        for_each_row: times == Bound::Unbounded,
                    };
                    self.add(call, &routine.search_path, &site);
                });
            }
        }
    }

    fn relation(&mut self, relation: &Arc<Relation>) {
        let path = vec![relation.schema.clone(), SmolStr::new_static("public")].into();
        let site = |kind| CallSite { kind, place: None, in_loop: None, for_each_row: true };
        for policy in &relation.policies {
            let site = site(CallerKind::Policy(policy.name.clone(), Arc::clone(relation)));
            for expression in policy.using.iter().chain(&policy.check) {
                self.expression(expression, &path, &site);
            }
        }
        for column in &relation.columns {
            let site = site(CallerKind::Default(column.name.clone(), Arc::clone(relation)));
            if let Some(default) = &column.default {
                self.expression(default, &path, &site);
            }
        }
        for function in relation.view().iter().flat_map(|view| &view.objects) {
            if self.routines.catalog.get_function(*function).is_some() {
                self.sites.entry(*function).or_default().push(site(CallerKind::View(Arc::clone(relation))));
            }
        }
    }

    fn expression(&mut self, expression: &Expr, path: &SearchPath, site: &CallSite) {
        expression.visit(&mut |part| {
            if let Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part {
                self.add(call, path, site);
            }
        });
    }

    fn add(&mut self, call: &FunctionCall, path: &SearchPath, site: &CallSite) {
        for oid in self.routines.catalog.functions_called(call, path) {
            self.sites.entry(oid).or_default().push(site.clone());
        }
    }
}

/// The first words of the innermost loop around a step.
fn loop_head(step: &Step<'_>) -> Option<TextRange> {
    if let Node::Statement(statement) = step.node
        && matches!(&statement.kind, pgvet_syntax::plpgsql::StatementKind::Loop(a_loop)
            if matches!(a_loop.kind, pgvet_syntax::plpgsql::LoopKind::While(_)))
    {
        return Some(statement.keyword);
    }
    step.around.iter().rev().find_map(|around| match around {
        Around::Loop { statement, a_loop } => Some(statement.keyword.cover(a_loop.keyword)),
        _ => None,
    })
}
