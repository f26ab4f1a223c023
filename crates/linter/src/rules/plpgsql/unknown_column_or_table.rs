//! Code that names what does not exist.

use super::changed::{Changed, is_whole};
use super::names::Names;
use super::records;
use super::scope::{Columns, Lacking, Named, unresolved};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RoutineContext, Until, declare_rule};
use crate::rules::text::signature;
use crate::severity::Severity;
use pgvet_model::builtin;
use pgvet_model::catalog::{Function, Relation, RelationKind, SqlType};
use pgvet_model::routine::{Around, Node, Sql, SqlRole, Step};
use pgvet_syntax::ast::{Assignment, Ast, Expr, ExprKind, Name, ObjectName, OnConflict, Part, Setting};
use pgvet_syntax::lexer::{TokenKind, tokenize};
use pgvet_syntax::plpgsql::{Block, DataType, DeclarationKind, SqlText, Statement, StatementKind, texts};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

declare_rule! {
    /// The code of a function names a table that was dropped or renamed, or a column that no table of the statement has.
    ///
    /// ## Why it matters
    ///
    /// Every call that reaches the statement fails, and so does the statement that called the function. For a trigger
    /// function, each write that fires the trigger fails. PostgreSQL does not look up the names in a PL/pgSQL function
    /// before the function runs, and a change of the table does not change the function.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE users (id bigint, email text);
    /// CREATE FUNCTION rename(wanted bigint, new_mail text) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     UPDATE users SET mail = new_mail WHERE id = wanted;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE users (id bigint, email text);
    /// CREATE FUNCTION rename(wanted bigint, new_mail text) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     UPDATE users SET email = new_mail WHERE id = wanted;
    /// END $$;
    /// ```
    ///
    /// ## Also reported
    ///
    /// - a field of a record that the table of `%ROWTYPE` lacks, or that the only query that fills the record does not
    ///   return
    /// - a column of `NEW` or `OLD` that a table with the trigger lacks
    /// - a column of `%TYPE` that the table lacks
    ///
    /// ## When it is not reported
    ///
    /// - The migrations do not show the whole table or view, or the statement also reads a function, a system catalog, or
    ///   another table whose columns are not known.
    /// - The function itself creates or changes the table, or runs dynamic SQL that may do so.
    /// - No migration has ever created the table: it may be created elsewhere.
    /// - The code is a `DO` block, which `statement-will-fail` checks.
    ///
    /// ## Confidence
    ///
    /// pgvet compares each function with the schema after the last migration, and with the schema after the deployment
    /// that defines it, and reports it once. If the function fails only until a later deployment replaces or drops it, or
    /// creates what it lacks, the severity is `warning`. The confidence is `possible`, and the finding is shown only with `--confidence possible`, in these cases:
    ///
    /// - Other code of the project may create the table.
    /// - The code uses a column of `NEW` or `OLD` only under a condition that tests which table fired the trigger, for
    ///   example with `TG_TABLE_NAME`.
    /// - The code uses a column of `NEW` or `OLD` only under a condition, and only some of the tables with the trigger
    ///   lack the column.
    /// - The function sets `search_path`, or the order of the files is not known.
    ///
    /// If nothing seems to run the function, the severity is `info`. Examples are a trigger function whose triggers
    /// were dropped with their table, and a function that a later migration created again with different parameters.
    "unknown-column-or-table", Plpgsql, Error,
    { sources: &["plpgsql_check/plpgsql_check_function"] }
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    if context.function().is_none() {
        return;
    }
    let steps = context.routine.steps();
    let mut finder = Finder::new(context, &steps);
    let mut branched = false;
    for step in &steps {
        finder.runs_for = RunsFor::of(context, step, branched);
        branched |= step.around.iter().any(|around| !matches!(around, Around::Loop { .. }));
        match step.node {
            Node::Statement(statement) => {
                finder.targets(statement);
                finder.fields(texts::of_statement(statement));
            }
            Node::Block(block) => {
                finder.types(block);
                finder.fields(texts::of_declarations(block));
            }
            Node::Sql(_) => {}
        }
        for sql in &step.sql {
            if sql.dynamic.is_none_or(is_whole) {
                finder.statement(sql);
            }
        }
    }
    finder.report(reporter);
}

/// Whether a statement of the code sets `search_path`.
fn sets_search_path(context: &RoutineContext<'_>) -> bool {
    let is_set = |ast: &Ast| {
        let mut found = matches!(ast, Ast::Set(set) if matches!(&set.setting,
            Setting::Value { name, .. } | Setting::Default { name } if name == "search_path"));
        ast.visit(&mut |part| {
            if let Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part {
                found |= call.name == "set_config";
            }
        });
        found
    };
    context.routine.steps().iter().any(|step| step.sql.iter().any(|sql| is_set(sql.ast)))
}

/// For which tables of a trigger function's triggers a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunsFor {
    Every,
    /// A condition comes before, and the code does not ask for which table it runs: each condition may be true for any.
    Conditional,
    /// A condition comes before, and the code asks.
    Asking,
}

impl RunsFor {
    /// `branched` says whether an earlier step depended on a condition and may have returned.
    fn of(context: &RoutineContext<'_>, step: &Step<'_>, branched: bool) -> Self {
        let is_loop = |around: &Around<'_>| matches!(around, Around::Loop { .. });
        match () {
            () if !branched && step.around.iter().all(is_loop) => Self::Every,
            () if asks_for_table(context) => Self::Asking,
            () => Self::Conditional,
        }
    }
}

/// Variables that differ from trigger to trigger, and the rows as a whole, from which a function can take a column only
/// where there is one: `to_jsonb(NEW) ? 'changed_at'`.
const TELLING: [&str; 9] =
    ["tg_table_name", "tg_table_schema", "tg_relname", "tg_relid", "tg_name", "tg_argv", "tg_nargs", "new", "old"];

/// Whether the code of a trigger function reads something that tells for which table it runs.
fn asks_for_table(context: &RoutineContext<'_>) -> bool {
    let reads = |ast: &Ast| {
        let mut found = false;
        ast.visit(&mut |part| {
            if let Part::Expr(Expr { kind: ExprKind::Column(path), .. }) = part
                && let [name] = path.as_slice()
            {
                found |= TELLING.contains(&name.as_str());
            }
        });
        found
    };
    context.routine.steps().iter().any(|step| step.sql.iter().any(|sql| reads(sql.ast)))
}

struct Finder<'f> {
    context: &'f RoutineContext<'f>,
    changed: Changed,
    /// The fields of variables.
    records: FxHashMap<SmolStr, Columns<'f>>,
    missing: Vec<Missing>,
    /// For which tables the current step runs.
    runs_for: RunsFor,
}

/// A name that does not exist.
struct Missing {
    range: TextRange,
    /// `table ... no longer exists`.
    what: String,
    /// It existed once.
    is_gone: bool,
    /// `did you mean ...?`
    near: Option<String>,
    /// The evidence against it.
    doubt: Option<Assumption>,
}

impl<'f> Finder<'f> {
    fn new(context: &'f RoutineContext<'f>, steps: &[Step<'_>]) -> Self {
        let changed = Changed::of(context, steps);
        let mut finder =
            Self { context, changed, records: FxHashMap::default(), missing: Vec::new(), runs_for: RunsFor::Every };
        finder.records = records::of(&context.routine, &|name| finder.known(name));
        finder
    }

    fn statement(&mut self, sql: &Sql<'_>) {
        let names = Names::of(sql.ast);
        for name in &names.relations {
            self.table(sql, name);
        }
        sql.ast.visit(&mut |part| match part {
            Part::Insert(insert) => {
                self.columns(sql, &insert.table.name, &names, insert.columns.iter());
                if let Some(OnConflict { update: Some(assignments), .. }) = &insert.on_conflict {
                    self.columns(sql, &insert.table.name, &names, assigned(assignments));
                }
            }
            Part::Update(update) => self.columns(sql, &update.table.name, &names, assigned(&update.assignments)),
            _ => {}
        });
        for named in unresolved(sql.ast, &|name| self.known(name)) {
            self.named(sql, named);
        }
    }

    /// A name that is no column of the statement. The text of EXECUTE has no variables.
    fn named(&mut self, sql: &Sql<'_>, named: Named<'f>) {
        let is_variable = |name: &SmolStr| {
            sql.role != SqlRole::Dynamic && self.context.routine.is_variable(std::slice::from_ref(name))
        };
        match named {
            Named::Missing { qualifier, column, range, of } => {
                let is_function = qualifier.is_some() && self.is_function(&column);
                let is_other = is_variable(qualifier.as_ref().unwrap_or(&column)) || is_function;
                if !is_other && !SYSTEM_COLUMNS.contains(&column.as_str()) {
                    self.lacks(sql.place(range), &column, &of);
                }
            }
            Named::NotJoined { column, of } => self.lacks(sql.range, &column, &of),
            Named::OfVariable { record, column, range } if is_variable(&record) => {
                self.of_trigger(&record, &column, sql.place(range));
                self.of_record(&record, &column, sql.place(range));
            }
            Named::OfVariable { .. } => {}
        }
    }

    fn lacks(&mut self, range: TextRange, column: &str, of: &Lacking<'_>) {
        let what = match of {
            Lacking::Relation(relation) => return self.no_column(range, column, relation, None),
            Lacking::Query(name) if name.is_empty() => format!("the query in FROM has no column `{column}`"),
            Lacking::Query(name) => format!("`{name}` has no column `{column}`"),
            Lacking::All => format!("no table of this statement has a column `{column}`"),
        };
        self.add(Missing { range, what, is_gone: false, near: None, doubt: None });
    }

    /// `record.field`, if the fields of the record are known.
    ///
    /// Source: PostgreSQL 18, `src/pl/plpgsql/src/pl_comp.c`, `resolve_column_ref`: record has no field.
    fn of_record(&mut self, record: &SmolStr, field: &SmolStr, range: TextRange) {
        let Some(columns) = self.records.get(record) else { return };
        if columns.has(field) != Some(false) {
            return;
        }
        if let Columns::Relation(relation) = columns {
            return self.no_column(range, field, relation, None);
        }
        let what = format!("the query that fills `{record}` returns no column `{field}`");
        self.add(Missing { range, what, is_gone: false, near: None, doubt: None });
    }

    /// Fields in expressions that call nothing, which are not parsed.
    fn fields(&mut self, texts: Vec<(SqlRole, &SqlText)>) {
        if self.records.is_empty() {
            return;
        }
        for (_, text) in texts
            .into_iter()
            .filter(|(role, text)| *role == SqlRole::Expression && self.context.routine.sql(text).is_none())
        {
            let source = self.context.source.text.as_str();
            let tokens = tokenize(source, text.range);
            let is_dot = |at: usize| tokens.get(at).is_some_and(|token| token.is_punctuation(b'.'));
            let word = |at: usize| {
                let token = tokens.get(at).filter(|token| token.kind == TokenKind::Word)?;
                Some(SmolStr::new(token.text(source).to_ascii_lowercase()))
            };
            for at in 0..tokens.len() {
                if !is_dot(at + 1) || is_dot(at + 3) || at.checked_sub(1).is_some_and(is_dot) {
                    continue;
                }
                if let (Some(record), Some(field)) = (word(at), word(at + 2)) {
                    self.of_record(&record, &field, tokens[at + 2].range);
                }
            }
        }
    }

    /// `table.column%TYPE`.
    fn types(&mut self, block: &Block) {
        for declaration in &block.declarations {
            let DeclarationKind::Variable(variable) = &declaration.kind else { continue };
            let DataType::PercentType { path, range, .. } = &variable.data_type else { continue };
            let [table, column] = path.as_slice() else { continue };
            let name = ObjectName { schema: None, name: Name::new(table.clone(), *range) };
            let is_variable = self.context.routine.is_variable(std::slice::from_ref(table));
            if let Some(relation) = self.known(&name).filter(|table| !is_variable && table.column(column).is_none()) {
                self.no_column(*range, column, relation, None);
            }
        }
    }

    /// A table that a migration dropped or renamed, and that nothing creates again.
    fn table(&mut self, sql: &Sql<'_>, name: &ObjectName) {
        let path = &self.context.routine.search_path;
        let is_there = self.context.relation(name).is_some() || self.creates(&name.name.text);
        if is_there || !self.context.catalog.is_gone(name, path) {
            return;
        }
        let what = format!("table `{name}` no longer exists");
        let doubt = self.doubt(&name.name.text);
        self.add(Missing { range: sql.place(name.range()), what, is_gone: true, near: None, doubt });
    }

    /// Whether a statement of the function itself creates a table of that name.
    fn creates(&self, table: &str) -> bool {
        let is_created = |ast: &Ast| match ast {
            Ast::CreateTable(create) => create.name.name.text == table,
            Ast::CreateTableAs(create) => create.into.name.name.text == table,
            _ => false,
        };
        self.context.routine.steps().iter().any(|step| step.sql.iter().any(|sql| is_created(sql.ast)))
    }

    /// The evidence that a table exists although the migrations dropped it.
    fn doubt(&self, table: &str) -> Option<Assumption> {
        let catalog = self.context.catalog;
        if !self.context.routines.migrations[self.context.file as usize].ordered {
            Some(Assumption::OrderOfNames)
        } else if let Some(script) = self.context.settings.script_of_other_order(self.context.file) {
            Some(Assumption::OrderThoughScript { script })
        } else if catalog.relation_count() < catalog.names_gone() {
            Some(Assumption::OneHistory)
        } else if self.context.routines.makes(table) {
            Some(Assumption::AbsentThoughCodeMayCreate { table: table.into() })
        } else {
            None
        }
    }

    /// The columns that a statement sets.
    fn columns<'c>(
        &mut self,
        sql: &Sql<'_>,
        table: &ObjectName,
        names: &Names<'_>,
        columns: impl Iterator<Item = &'c Name>,
    ) {
        if table.schema.is_none() && names.ctes.contains(&table.name.text) {
            return;
        }
        let Some(relation) = self.known(table) else { return };
        for column in columns {
            if !column.text.is_empty() && relation.column(&column.text).is_none() {
                self.no_column(sql.place(column.range), &column.text, relation, None);
            }
        }
    }

    /// The variables that a statement assigns.
    fn targets(&mut self, statement: &Statement) {
        let targets = match &statement.kind {
            StatementKind::Assign(assign) => std::slice::from_ref(&assign.target),
            StatementKind::Sql(sql) => sql.into.as_ref().map_or(&[][..], |into| &into.targets),
            StatementKind::Execute(execute) => execute.into.as_ref().map_or(&[][..], |into| &into.targets),
            _ => &[],
        };
        for target in targets {
            if let [record, column, ..] = target.names.as_slice() {
                self.of_trigger(record, column, target.range);
                self.of_record(record, column, target.range);
            }
        }
    }

    /// `new.column`, if a trigger of the function is on a table without the column, and the step runs for that table.
    ///
    /// Source: PostgreSQL 18, `src/pl/plpgsql/src/pl_exec.c`, `exec_assign_value`: record "new" has no field.
    fn of_trigger(&mut self, record: &SmolStr, column: &SmolStr, place: TextRange) {
        if (record != "new" && record != "old") || SYSTEM_COLUMNS.contains(&column.as_str()) {
            return;
        }
        let lacks = |table: &Relation| is_known(table) && table.column(column).is_none();
        let triggers = self.context.triggers();
        let Some(first) = triggers.iter().find(|using| lacks(&using.table)) else { return };
        let fails = match self.runs_for {
            RunsFor::Every => true,
            RunsFor::Conditional => triggers.iter().all(|using| lacks(&using.table)),
            RunsFor::Asking => false,
        };
        let doubt = (!fails).then(|| Assumption::BranchRunsFor { table: first.table.name.clone() });
        self.no_column(place, column, &first.table, doubt);
    }

    /// A table or view all of whose columns are known.
    fn known(&self, name: &ObjectName) -> Option<&'f Relation> {
        let relation = self.context.relation(name).filter(|_| !self.changed.may_be(name))?;
        let is_view = matches!(relation.kind, RelationKind::View | RelationKind::MaterializedView);
        let is_known = is_known(relation) || is_view && relation.known && !relation.columns.is_empty();
        (is_known && relation.of_type.is_none()).then_some(relation)
    }

    /// Whether `alias.name` may be a call of a function.
    fn is_function(&self, name: &str) -> bool {
        builtin::type_by_name(name).is_some()
            || !builtin::functions(name).is_empty()
            || self.context.catalog.functions_with_name(name).next().is_some()
    }

    fn no_column(&mut self, range: TextRange, column: &str, relation: &Relation, doubt: Option<Assumption>) {
        let near = relation
            .columns
            .iter()
            .map(|own| (strsim::damerau_levenshtein(&own.name, column), &own.name))
            .min()
            .filter(|(distance, _)| *distance <= 2 && *distance < column.len())
            .map(|(_, name)| format!("did you mean `{name}`?"));
        let what = format!("`{}` has no column `{column}`", relation.name);
        self.add(Missing { range, what, is_gone: false, near, doubt });
    }

    /// CREATE OR REPLACE with different parameters creates another function and keeps the old one.
    fn is_superseded(&self) -> bool {
        let Some(own) = self.context.function() else { return false };
        let at =
            |function: &Function| Some((function.defined_at.as_ref()?.file, function.defined_at.as_ref()?.name.start));
        let mut overloads = self.context.catalog.functions_named(&own.schema, &own.name);
        overloads.any(|other| other.oid != own.oid && at(other) > at(own))
    }

    /// Whether its triggers were dropped with the table. Only a trigger can run a trigger function. One that has no
    /// trigger yet may get one from code that is not known.
    fn has_lost_its_triggers(&self) -> bool {
        let is_of_trigger = self.context.function().is_some_and(|own| own.result_name() == Some("trigger"));
        is_of_trigger && self.context.triggers().is_empty() && self.missing.iter().all(|missing| missing.is_gone)
    }

    /// Whether nothing in the project runs the function any more.
    fn is_left_over(&self) -> bool {
        self.has_lost_its_triggers()
            || self.context.until.is_none() && self.context.callers().is_empty() && self.is_superseded()
    }

    fn drop_left_over(&self) -> Option<String> {
        let own = self.context.function()?;
        let why = if self.has_lost_its_triggers() {
            "no trigger calls the function any more, so drop it".to_owned()
        } else if self.is_superseded() && own.input_types().all(SqlType::is_known) {
            // The name alone would mean both.
            let name = self.context.name();
            format!(
                "a later migration created {name} with different parameters, so both versions exist; if nothing calls \
                 this version any more, drop it"
            )
        } else {
            return None;
        };
        let kind = if own.procedure { "PROCEDURE" } else { "FUNCTION" };
        Some(format!("{why}:\n    DROP {kind} {};", signature(self.context, own)))
    }

    fn add(&mut self, missing: Missing) {
        if self.missing.iter().all(|known| known.what != missing.what) {
            self.missing.push(missing);
        }
    }

    /// A function that fails is one finding: at the first of the surest names, with the others as labels.
    fn report(mut self, reporter: &mut Reporter<'_>) {
        self.missing.sort_by_key(|missing| (missing.doubt.is_some(), missing.range.start));
        let Some((first, others)) = self.missing.split_first() else { return };
        let is_temporary = self.context.until.is_some();
        let near = first.near.clone().or_else(|| if is_temporary { None } else { self.drop_left_over() });
        let otherwise = if is_temporary {
            "correct the function in this migration, or release the later migration together with it"
        } else if first.is_gone {
            "change or drop the function in the migration that drops or renames the table"
        } else {
            "use a column that the table has; if a migration drops or renames the missing column, change the function \
             in that migration"
        };
        let help = near.unwrap_or_else(|| otherwise.to_owned());
        let name = self.context.name();
        let end = self.context.until.map_or("", words);
        let message = format!("{name} fails when it reaches this statement{end}: {}", first.what);
        let mut finding = reporter.report(first.range, message).help(help);
        finding = match self.context.until {
            Some(Until::Replaced(at)) => finding.label_in(at.file, at.range, format!("replaces {name}")),
            Some(_) => finding,
            None => finding.runs_often(&self.context.hotness()),
        };
        if self.is_left_over() {
            finding = finding.severity(Severity::Info);
        } else if is_temporary {
            finding = finding.severity(Severity::Warning);
        }
        let search_path = sets_search_path(self.context).then_some(Assumption::SearchPathUnchanged);
        for assumption in first.doubt.iter().cloned().chain(search_path) {
            finding = finding.assuming(assumption);
        }
        for missing in others {
            let near = missing.near.as_ref().map_or_else(String::new, |near| format!(": {near}"));
            finding = finding.label(missing.range, format!("{}{near}", missing.what));
        }
        finding.emit();
    }
}

/// When the function no longer fails.
fn words(until: Until) -> &'static str {
    match until {
        Until::Replaced(_) => " until a later migration replaces it",
        Until::Dropped => " until a later migration drops it",
        Until::SchemaChanged => " until a later migration changes the schema",
    }
}

const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];

fn assigned(assignments: &[Assignment]) -> impl Iterator<Item = &Name> {
    assignments.iter().map(|assignment| &assignment.column)
}

fn is_known(relation: &Relation) -> bool {
    relation.known && matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable)
}
