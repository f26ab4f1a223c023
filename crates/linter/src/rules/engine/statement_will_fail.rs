//! Statements that PostgreSQL refuses.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, RoutineContext, RuleContext, declare_rule};
use crate::rules::statement::sqlstate;
use pgvet_model::catalog::{Catalog, SearchPath};
use pgvet_model::effect::{Failure, FailureSubject};
use pgvet_model::migration::Direction;
use pgvet_model::routine::{Around, Sql, Trial};
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::{AlterTableAction, Ast, QueryBody};
use pgvet_syntax::lexer::{TokenKind, identifier, tokenize};
use pgvet_syntax::statement::Statement;
use smol_str::SmolStr;

declare_rule! {
    /// A statement that PostgreSQL refuses, given the schema that the migrations have created up to that point.
    ///
    /// ## Why it matters
    ///
    /// The migration fails at this statement. Outside a transaction, the earlier statements of the migration are
    /// already committed.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// ALTER TABLE orders DROP COLUMN note;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// ALTER TABLE orders DROP COLUMN IF EXISTS note;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - The object may exist although no migration shows it.
    /// - Whether the statement fails depends only on the data.
    /// - Only PostgreSQL versions outside the configured `pg-version` refuse the statement.
    /// - An operator or a cast seems to be missing, but a migration creates operators, casts, aggregates or types, or
    ///   installs an extension whose objects pgvet does not know.
    /// - The missing names are parameters that a tool replaces, such as `@name` and `sqlc.arg(name)`.
    /// - `concurrently-in-transaction` or `enum-value-used-in-same-transaction` reports the statement.
    /// - Whether PostgreSQL refuses the statement depends on another file, and pgvet does not know which of the two
    ///   files runs first. Examples are scripts without numbers in their names, and migrations in a programming
    ///   language.
    /// - A `RAISE EXCEPTION` runs only unless an earlier statement of the same block raises an error that a handler of
    ///   the block catches: a script may check that PostgreSQL refuses the statement. A handler that catches the exception
    ///   itself also hides it.
    /// - An earlier migration already used the missing table or column: pgvet then assumes that the table or column
    ///   exists.
    ///
    /// If a migration has already succeeded in production, a finding in it is wrong. If many old files have findings,
    /// pgvet probably applies the files in the wrong order, or the files belong to several databases. `pgvet config`
    /// shows the order. If two folders contain the same migrations, skip one of the folders with `exclude`. List the
    /// folder of each database in `paths`.
    ///
    /// ## Also reported
    ///
    /// This rule reports a `REFRESH MATERIALIZED VIEW CONCURRENTLY` in the code of a function if the view has no unique
    /// index that PostgreSQL can use, after the last migration.
    ///
    /// This rule also reports files that the migration tool itself refuses. For example, goose refuses a file that it
    /// cannot split into statements. Flyway refuses a file that mixes statements that can run in a transaction with
    /// statements that cannot. The confidence is `likely` if only comments in the file suggest the tool, and `certain`
    /// if the configuration or a manifest of the project names the tool.
    ///
    /// ## Confidence
    ///
    /// The confidence is `certain`, with these exceptions. The confidence is `likely` in these cases:
    ///
    /// - The statement follows code that pgvet does not analyze and that may have changed the schema.
    /// - A column is missing in a table that `CREATE TABLE IF NOT EXISTS` creates. The table may have existed before, with
    ///   the column.
    /// - An exception handler around the statement catches other errors, and an earlier statement of the same block may
    ///   raise one: the statement then does not run.
    /// - A name without a schema may refer to another schema, because no statement sets `search_path`.
    /// - The file has the syntax of another database, or a manifest, setting or program near it names another database
    ///   beside PostgreSQL.
    /// - Migrations of later deployments exist. This migration has then probably been applied already, perhaps without
    ///   an error, for a reason that the migrations do not show.
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`, in these cases:
    ///
    /// - The statement creates a relation that an earlier statement already uses, although no earlier migration creates
    ///   the relation.
    /// - PostgreSQL already refuses an earlier statement of the migration.
    /// - An earlier file has the statements of this one, or the other way round, and PostgreSQL refuses the statement only
    ///   if both files run.
    /// - A script or program of the project also runs a file such as `schema.sql` that has the missing or duplicate name.
    /// - A script of the project runs the files with psql in another order, and PostgreSQL refuses the statement only because
    ///   of another file.
    /// - An exception handler hides the error. If a handler of this kind is the usual way to make the statement
    ///   repeatable, nothing is reported.
    "statement-will-fail", Engine, Error,
    {}
    statement = check,
    routine = check_code,
    migration = check_refusals,
}

/// SQLSTATEs that rules of the category transaction explain better.
const EXPLAINED_ELSEWHERE: [&str; 2] = [sqlstate::ACTIVE_SQL_TRANSACTION, sqlstate::UNSAFE_NEW_ENUM_VALUE_USAGE];

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(failure) = &context.effects.fails else { return };
    if EXPLAINED_ELSEWHERE.contains(&failure.sqlstate) {
        return;
    }
    let is_caught = context.code.is_some_and(|code| code.caught);
    if is_caught && is_expected(context.ast, failure) {
        return;
    }
    let range = if failure.range.is_empty() { context.statement.range } else { failure.range };
    let is_raised = failure.raised.is_some();
    let what = if is_raised { "this always fails" } else { "PostgreSQL refuses this" };
    let always = if is_caught && !is_raised { " in every run" } else { "" };
    let hidden = if is_caught { ", and the EXCEPTION block hides the error" } else { "" };
    let message = format!("{what}{always}{hidden}: {}", failure.reason);
    let mut finding = reporter.report(range, message);
    if is_caught {
        finding = finding.assuming(Assumption::HandlerExpectsOther);
    }
    if failure.unless_handled {
        finding = finding.assuming(Assumption::NothingHandledBefore);
    }
    if let Some(help) = help(failure) {
        finding = finding.help(help);
    }
    if let Some(table) = guessed(context, failure) {
        finding = finding.assuming(Assumption::ExistsAsUsed { table });
    }
    if let Some(schema) = failure.assumed_schema.clone() {
        finding = finding.assuming(Assumption::SearchPathNotSet { schema });
    }
    if context.session.settings.is_doubtful("search_path") {
        finding = finding.assuming(Assumption::SameRun { setting: SmolStr::new_static("search_path") });
    }
    if context.before.follows_hidden_code() {
        finding = finding.assuming(Assumption::HiddenCodeIsHarmless);
    }
    if let Some(table) = created_if_missing(context, failure) {
        finding = finding.assuming(Assumption::CreatedAsWritten { table });
    }
    if context.earlier.iter().any(|earlier| earlier.refused) {
        finding = finding.assuming(Assumption::EarlierRefusalCorrected);
    }
    if let Some(other) = repeated(context, failure) {
        finding = finding.assuming(Assumption::RunsAgain { other });
    }
    if let Some(script) = context.settings.script_of_other_order(context.file)
        && !fails_alone(context, failure)
    {
        finding = finding.assuming(Assumption::OrderThoughScript { script });
    }
    if let Some(assumption) = of_schema_script(context, failure) {
        finding = finding.assuming(assumption);
    }
    if has_run(context) {
        finding = finding.assuming(Assumption::HistoryComplete);
    }
    finding.emit();
}

/// Statements in the code of functions that fail whatever the rows are: REFRESH of what cannot be refreshed.
fn check_code(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    if context.function().is_none() || context.called_by_migration {
        return;
    }
    let steps = context.routine.steps();
    let makes_it = |sql: &Sql<'_>| matches!(sql.ast, Ast::CreateIndex(_) | Ast::CreateTableAs(_));
    if steps.iter().flat_map(|step| &step.sql).any(makes_it) {
        return;
    }
    for step in &steps {
        let is_caught = step.around.iter().any(|around| matches!(around, Around::Exception { .. }));
        for sql in step.sql.iter().filter(|sql| !is_caught && matches!(sql.ast, Ast::RefreshMaterializedView(_))) {
            let tried = Trial::new(context.catalog, &context.routine.search_path, context.settings.versions.to);
            let lasting = ["42809", "55000"];
            let failure = tried.run_in_block(sql.ast).fails.filter(|failure| lasting.contains(&failure.sqlstate));
            let Some(failure) = failure else { continue };
            let message = format!("{} fails when it reaches this statement: {}", context.name(), failure.reason);
            let mut finding = reporter.report(sql.place(failure.range), message);
            if let Some(help) = help(&failure) {
                finding = finding.help(help);
            }
            finding.emit();
        }
    }
}

/// Whether the refusal is the usual one that a handler makes a statement repeatable with: what it creates exists, or what
/// it drops or renames does not.
fn is_expected(ast: &Ast, failure: &Failure) -> bool {
    match failure.sqlstate {
        "42P07" | "42710" | "42701" | "42P06" | "42723" | "42P16" => true,
        "42P01" | "42703" | "42704" | "42883" | "3F000" => match ast {
            Ast::Drop(_) | Ast::Rename(_) | Ast::SetSchema(_) => true,
            Ast::AlterTable(alter) => alter.commands.iter().any(|command| {
                use AlterTableAction as A;
                matches!(
                    command.action,
                    A::DropColumn { .. } | A::DropConstraint { .. } | A::DropDefault { .. } | A::DropNotNull { .. }
                )
            }),
            _ => false,
        },
        _ => false,
    }
}

/// Whether a migration of a later deployment of the same database exists. Tools stop at a statement that PostgreSQL
/// refuses, so an author who went on has run this one: something that the migrations do not show let it pass.
fn has_run(context: &RuleContext<'_>) -> bool {
    let deployment = context.deployment();
    let own = context.migration;
    let later = (0..).zip(context.migrations).skip(context.file as usize + 1);
    own.ordered
        && later.into_iter().any(|(index, migration)| {
            migration.direction == Direction::Up
                && migration.ordered
                && migration.database == own.database
                && migration.deployment(index) != deployment
        })
}

/// Returns the file that repeats the statements of this one, or the other way round, if PostgreSQL may refuse the
/// statement only because both run.
fn repeated(context: &RuleContext<'_>, failure: &Failure) -> Option<SmolStr> {
    let repeated = context.settings.repository.get(&context.file)?.repeated.as_ref()?;
    let is_missing = is_missing(failure);
    let is_decided = context.code.is_some_and(|code| code.guarded);
    let is_explained = if failure.raised.is_some() { is_decided } else { repeated.removes || !is_missing };
    (is_explained && !fails_alone(context, failure)).then(|| repeated.path.clone())
}

/// Returns what is assumed if code of the project also runs a file that has the names of which one is missing or taken.
fn of_schema_script(context: &RuleContext<'_>, failure: &Failure) -> Option<Assumption> {
    let schema = context.settings.repository.get(&context.file)?.schema.as_ref()?;
    let is_about_existence =
        is_missing(failure) || matches!(failure.sqlstate, "42P07" | "42710" | "42701" | "42P06" | "42723");
    let tokens = tokenize(context.source(), failure.range);
    let names = tokens.iter().filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier));
    let mut names = names.map(|token| identifier(token.text(context.source()))).peekable();
    let has_all = names.peek().is_some() && names.all(|name| schema.names.contains(&name));
    (is_about_existence && has_all)
        .then(|| Assumption::OnlyMigrationsThough { path: schema.path.clone(), place: schema.place.clone() })
}

/// Whether PostgreSQL refuses a statement because something does not exist.
fn is_missing(failure: &Failure) -> bool {
    ["42P01", "42703", "42704", "42883", "3F000"].contains(&failure.sqlstate)
}

/// Whether PostgreSQL refuses the statement for the same reason if no other migration has run.
fn fails_alone(context: &RuleContext<'_>, failure: &Failure) -> bool {
    let outer = context.code.map_or(context.statement.range, |code| code.outer);
    let version = context.target.version();
    let mut runs: Vec<Alone> = context.endings.recall().unwrap_or_default();
    runs.retain(|alone| alone.file == context.file);
    let is_before = |alone: &Alone| alone.version == version && alone.end <= outer.start;
    let mut alone = match runs.iter().position(is_before) {
        Some(at) => runs.swap_remove(at),
        None => Alone::new(context.file, version),
    };
    alone.go_on(context.migration.own_statements(), outer.start);
    let fails = alone.fails == Some(failure.sqlstate);
    runs.retain(|other| other.version != version);
    runs.push(alone);
    context.endings.remember(runs);
    fails
}

/// How far the statements of a migration were run without other migrations on a version, so that each is run once.
#[derive(Debug)]
struct Alone {
    file: u32,
    version: PgVersion,
    /// Where the last statement begins that was run, and how many were.
    end: u32,
    count: usize,
    trial: Trial,
    /// Why PostgreSQL refuses that statement.
    fails: Option<&'static str>,
}

impl Alone {
    fn new(file: u32, version: PgVersion) -> Self {
        let path = SearchPath::from(vec![SmolStr::new_static("public")]);
        Self { file, version, end: 0, count: 0, trial: Trial::new(&Catalog::new(), &path, version), fails: None }
    }

    /// Runs the statements up to the one that begins at `start`.
    fn go_on(&mut self, statements: &[Statement], start: u32) {
        let count = statements.partition_point(|statement| statement.range.start <= start);
        for ast in statements.get(self.count..count).into_iter().flatten().filter_map(Statement::ast) {
            self.fails = self.trial.run(ast).fails.map(|failure| failure.sqlstate);
        }
        (self.count, self.end) = (self.count.max(count), start);
    }
}

/// Refusals by the migration tool, before PostgreSQL sees the statement.
fn check_refusals(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for refusal in context.migration.refusals {
        let mut finding = reporter.report(refusal.range, refusal.message.clone()).help(refusal.help.clone());
        if refusal.by_default {
            finding = finding.assuming(Assumption::DefaultOfTool);
        }
        if let Some(tool) = refusal.unproven {
            finding = finding.assuming(Assumption::RunByTool { tool: SmolStr::new_static(tool) });
        }
        finding.emit();
    }
}

/// Returns the relation whose name is taken only because an earlier statement used it before any had made it. That
/// statement may have failed, or have run in another order or database.
fn guessed(context: &RuleContext<'_>, failure: &Failure) -> Option<SmolStr> {
    let name = match context.ast {
        Ast::CreateTable(create) => &create.name,
        Ast::CreateTableAs(create) => &create.into.name,
        Ast::Select(query) => {
            let QueryBody::Select(select) = &query.body else { return None };
            &select.into.as_ref()?.name
        }
        _ => return None,
    };
    let schemas = context.session.settings.schemas_of(name);
    let taken = schemas.iter().find_map(|schema| {
        let oid = context.before.relation_named(schema, &name.name.text)?;
        context.before.get_relation(oid)
    });
    let guess = taken.filter(|relation| !relation.known && relation.birth.deployment.is_none())?;
    (failure.sqlstate == "42P07").then(|| guess.name.clone())
}

/// Returns the table of a statement that lacks a column, if the table may have existed before the migrations.
fn created_if_missing(context: &RuleContext<'_>, failure: &Failure) -> Option<SmolStr> {
    let locks = context.effects.locks.iter().filter(|_| failure.sqlstate == "42703");
    let mut tables = locks.filter_map(|lock| context.before.get_relation(lock.relation.oid));
    tables.find(|table| table.birth.if_not_exists).map(|table| table.name.clone())
}

/// The next step for some kinds of refusals.
///
/// Source: PostgreSQL 18 documentation, appendix A, error codes.
fn help(failure: &Failure) -> Option<&'static str> {
    match failure.sqlstate {
        _ if failure.subject == FailureSubject::Operator => Some("cast one side to the type of the other: value::type"),
        "42P01" | "42703" | "42704" | "42883" | "3F000" => Some(
            "if the missing object exists in your database, let pgvet read the earlier migration (--history) or the \
             schema dump (--schema) that creates it",
        ),
        "42P07" | "42701" | "42710" | "42723" | "42P06" => {
            Some("remove this definition if it is a duplicate, or give the new object another name")
        }
        "2BP01" => Some(
            "drop the dependent objects first. CASCADE would drop them without asking, and all other dependent \
             objects, too",
        ),
        "25P01" => Some("add BEGIN before this statement, and COMMIT after the statements that need the lock"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::assumption::Assumption;
    use crate::check::check;
    use crate::confidence::Confidence;
    use crate::settings::Settings;
    use pgvet_model::migration::Migration;
    use pgvet_syntax::source::SourceFile;
    use pgvet_syntax::statement::parse_file;

    fn refusal(before: &str) -> (Confidence, Vec<Assumption>) {
        let text = format!("CREATE TABLE orders (id bigint);{before}ALTER TABLE orders DROP COLUMN note;");
        let file = parse_file(SourceFile::new("1.sql".to_owned(), text));
        let migration = Migration::new(&file);
        let found =
            check(&[migration], &Settings { only: vec!["statement-will-fail".to_owned()], ..Settings::default() });
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0].confidence, found[0].assumptions.clone())
    }

    #[test]
    fn a_name_that_may_mean_another_table_is_not_certain() {
        let other_schema = "CREATE TABLE app.orders (id bigint);";
        let assumed = Assumption::SearchPathNotSet { schema: "public".into() };
        assert_eq!(refusal(other_schema), (Confidence::Likely, vec![assumed]));
        let path = format!("{other_schema} SET search_path = public;");
        assert_eq!(refusal(&path), (Confidence::Certain, vec![]));
    }

    #[test]
    fn a_column_of_a_table_that_may_be_older_is_not_certain() {
        let refused = |create: &str| {
            let file = parse_file(SourceFile::new("1.sql".to_owned(), format!("{create} CREATE INDEX ON t (note);")));
            let settings = Settings { only: vec!["statement-will-fail".to_owned()], ..Settings::default() };
            check(&[Migration::new(&file)], &settings)[0].assumptions.clone()
        };
        assert_eq!(refused("CREATE TABLE t (id bigint);"), []);
        let assumed = Assumption::CreatedAsWritten { table: "t".into() };
        assert_eq!(refused("CREATE TABLE IF NOT EXISTS t (id bigint);"), [assumed]);
    }

    #[test]
    fn a_refusal_after_code_that_was_not_analyzed_is_not_certain() {
        assert_eq!(refusal(""), (Confidence::Certain, vec![]));
        let hidden = "SELECT add_what_is_missing('orders');";
        assert_eq!(refusal(hidden), (Confidence::Likely, vec![Assumption::HiddenCodeIsHarmless]));
        let in_from = "SELECT * FROM add_what_is_missing('orders');";
        assert_eq!(refusal(in_from), (Confidence::Likely, vec![Assumption::HiddenCodeIsHarmless]));
        let beside_rows = "SELECT count(*) + add_column('orders', 'note') FROM orders;";
        assert_eq!(refusal(beside_rows), (Confidence::Likely, vec![Assumption::HiddenCodeIsHarmless]));
    }
}
