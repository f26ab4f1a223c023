//! Checks that irrelevant changes of a text change no finding: every fixture and every case of the lock truth is
//! checked once more after unrelated migrations, under other file names, with other spellings, with a comment, divided
//! into several files and with each of its rules suppressed.

use crate::scenario::{Outcome, Scenario, Section, SectionKind};
use crate::{expect_none, fixtures, tested_rules};
use pgvet_linter::meta::Category;
use pgvet_linter::rule::Rule;
use pgvet_linter::rules::{self, bloat, compatibility, data, engine, locking, schema, security, transaction};
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::ast::{AlterTableAction, Ast, ObjectName, Persistence};
use pgvet_syntax::lexer::{Token, TokenKind};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{Statement, parse_file};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A change that must not change what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Variant {
    /// Fifty migrations of other tables ran before.
    After,
    /// Other names of the files, in the same order.
    Renamed,
    /// Unquoted words in the other case.
    Case,
    /// Comments and blanks between tokens.
    Spaced,
    /// Names of tables in quotes.
    Quoted,
    /// Names of tables with their schema.
    Qualified,
    /// A line with a comment before each statement.
    Commented,
    /// Each statement in a file of its own, released together.
    Divided,
}

const ALL: [Variant; 8] = [
    Variant::After,
    Variant::Renamed,
    Variant::Case,
    Variant::Spaced,
    Variant::Quoted,
    Variant::Qualified,
    Variant::Commented,
    Variant::Divided,
];

/// A text to check, with its name.
struct Subject {
    name: String,
    text: String,
}

/// The fixtures, and the cases of the lock truth as fixtures.
fn subjects() -> Vec<Subject> {
    let mut subjects = Vec::new();
    for folder in tested_rules().map(|meta| meta.name) {
        for path in fixtures::files(folder) {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            subjects.push(Subject { name: format!("{folder}/{file}"), text });
        }
    }
    if std::env::var_os("RULE").is_none() {
        subjects.extend(lock_cases());
    }
    subjects
}

#[derive(Deserialize)]
struct LockCase {
    id: String,
    #[serde(default)]
    setup: Vec<String>,
    #[serde(default)]
    session: Option<String>,
    sql: String,
    #[serde(default)]
    outside_tx: bool,
}

fn lock_cases() -> Vec<Subject> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/locks/cases.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let case = |line: &str| {
        let case: LockCase = serde_json::from_str(line).unwrap();
        let statements = |list: &[String]| list.iter().map(|sql| format!("{sql};\n")).collect::<Vec<_>>().concat();
        let mode = if case.outside_tx { "autocommit" } else { "transaction" };
        let (setup, session) = (statements(&case.setup), statements(case.session.as_slice()));
        let text = format!("-- history:\n{setup}-- migration: {mode}\n{session}{};\n", case.sql);
        Subject { name: format!("locks/{}", case.id), text }
    };
    text.lines().map(case).collect()
}

/// Whether the text of the statement can be spelled in another way.
fn is_plain(statement: &Statement, text: &str) -> bool {
    let is_sql = |token: &Token| {
        !matches!(token.kind, TokenKind::Unterminated | TokenKind::Invalid | TokenKind::Punctuation(b':'))
    };
    let is_read = statement.ast().is_some() && statement.placeholders.is_empty() && statement.quoting.is_none();
    // What tools put in: `{name}`, `:name`, `@name`.
    is_read && statement.tokens.iter().all(is_sql) && !text.contains(['{', '\\', '@'])
}

/// Replaces parts of the statements of each migration, from the last to the first.
fn edited(scenario: &mut Scenario, edit: impl Fn(&Statement, &str) -> Vec<(usize, usize, String)>) -> bool {
    let mut changed = false;
    for section in scenario.sections.iter_mut().filter(|section| section.kind == SectionKind::Migration) {
        let file = parse_file(SourceFile::new(section.path.clone(), section.text.clone()));
        for statement in file.statements.iter().rev() {
            if !is_plain(statement, &section.text[statement.range.as_usize()]) {
                continue;
            }
            let mut edits = edit(statement, &section.text);
            edits.sort();
            for (start, end, new) in edits.into_iter().rev() {
                changed |= section.text[start..end] != new;
                section.text.replace_range(start..end, &new);
            }
        }
    }
    changed
}

fn other_case(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() }).collect()
}

/// The tables that a statement names where a schema can stand.
fn tables(ast: &Ast) -> Vec<&ObjectName> {
    match ast {
        Ast::CreateTable(create) if create.persistence != Persistence::Temporary => vec![&create.name],
        Ast::AlterTable(alter) if alter.commands.iter().all(|command| !is_renaming(&command.action)) => {
            vec![&alter.name]
        }
        Ast::CreateIndex(create) => vec![&create.table],
        Ast::Truncate(truncate) => truncate.tables.iter().map(|(name, _)| name).collect(),
        Ast::LockTable(lock) => lock.tables.iter().map(|(name, _)| name).collect(),
        Ast::Insert(insert) => vec![&insert.table.name],
        Ast::Update(update) => vec![&update.table.name],
        Ast::Delete(delete) => vec![&delete.table.name],
        _ => Vec::new(),
    }
}

fn is_renaming(action: &AlterTableAction) -> bool {
    matches!(action, AlterTableAction::ChangeOwner { .. })
}

/// The scenario in another form; `None` where it has none.
fn changed(variant: Variant, text: &str) -> Option<Scenario> {
    let mut scenario = Scenario::parse(text);
    let done = match variant {
        Variant::After => {
            let unrelated = (0..50).map(|at| {
                let text = format!("CREATE TABLE pgvet_other_{at} (id bigint PRIMARY KEY, note text);\n");
                Section::new(SectionKind::History, TransactionMode::Autocommit, text)
            });
            scenario.prepend(unrelated.collect());
            true
        }
        Variant::Renamed => {
            for (at, section) in scenario.sections.iter_mut().enumerate() {
                section.path = format!("db/other/{at:04}_part.sql");
            }
            true
        }
        Variant::Case => edited(&mut scenario, |statement, text| {
            let words = statement.tokens.iter().filter(|token| token.kind == TokenKind::Word);
            words.map(|token| (start(token), end(token), other_case(token.text(text)))).collect()
        }),
        Variant::Spaced => edited(&mut scenario, |statement, text| {
            let gaps = statement.tokens.windows(2).filter(|pair| !is_fixed(pair, text));
            gaps.map(|pair| (end(&pair[0]), end(&pair[0]), "  /* x */ ".to_owned())).collect()
        }),
        Variant::Quoted => {
            let names = created_tables(&scenario);
            edited(&mut scenario, |statement, text| {
                let is_name = |token: &&Token| token.kind == TokenKind::Word && names.contains(token.text(text));
                let named = statement.tokens.iter().filter(is_name);
                named.map(|token| (start(token), end(token), format!("\"{}\"", token.text(text)))).collect()
            })
        }
        Variant::Qualified => {
            let lower = text.to_ascii_lowercase();
            if ["search_path", "create schema", "temp", "with "].iter().any(|word| lower.contains(word)) {
                return None;
            }
            edited(&mut scenario, |statement, _| {
                let ast = statement.ast().expect("a plain statement was parsed");
                let bare = tables(ast).into_iter().filter(|name| name.schema.is_none());
                bare.map(|name| {
                    let at = name.name.range.start as usize;
                    (at, at, "public.".to_owned())
                })
                .collect()
            })
        }
        Variant::Commented => edited(&mut scenario, |statement, text| {
            let at = statement.range.start as usize;
            let is_alone =
                text[..at].lines().last().is_none_or(|line| line.trim().is_empty()) || text[..at].ends_with('\n');
            if is_alone { vec![(at, at, "/* a comment */ ".to_owned())] } else { Vec::new() }
        }),
        Variant::Divided => divide(&mut scenario),
    };
    done.then_some(scenario)
}

fn start(token: &Token) -> usize {
    token.range.start as usize
}

fn end(token: &Token) -> usize {
    token.range.end as usize
}

/// Whether nothing may be between two tokens: strings on two lines are one, and a prefix belongs to its string.
fn is_fixed(pair: &[Token], text: &str) -> bool {
    let is_string = |token: &Token| matches!(token.kind, TokenKind::String | TokenKind::BitString);
    let is_prefix = pair[0].kind == TokenKind::Word && is_string(&pair[1]) && pair[0].range.end == pair[1].range.start;
    let is_one = is_string(&pair[0]) && is_string(&pair[1]);
    is_one || is_prefix || text[end(&pair[0])..start(&pair[1])].contains("--")
}

/// The tables that the scenario creates under names in lower case.
fn created_tables(scenario: &Scenario) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for section in &scenario.sections {
        for statement in parse_file(SourceFile::new(section.path.clone(), section.text.clone())).statements {
            if let Some(Ast::CreateTable(create)) = statement.ast() {
                let name = create.name.name.text.as_str();
                if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
                    names.insert(name.to_owned());
                }
            }
        }
    }
    names
}

/// Divides migrations whose statements each run in a transaction of their own anyway. Lines stay.
fn divide(scenario: &mut Scenario) -> bool {
    let is_other = |section: &Section| section.release.is_some() || section.text.contains(['\\', '{']);
    if scenario.sections.iter().any(is_other) || !scenario.settings.opt_outs.is_empty() || !scenario.ordered {
        return false;
    }
    let mut changed = false;
    let mut sections = Vec::new();
    for (number, section) in scenario.sections.drain(..).enumerate() {
        let file = parse_file(SourceFile::new(section.path.clone(), section.text.clone()));
        let is_alone = |statement: &Statement| {
            !matches!(
                statement.ast(),
                None | Some(Ast::Transaction(_) | Ast::Set(_) | Ast::Prepare(_) | Ast::Execute(_))
            )
        };
        let can = section.kind == SectionKind::Migration
            && section.mode == TransactionMode::Autocommit
            && file.statements.len() > 1
            && file.statements.iter().all(is_alone);
        if !can {
            sections.push(section);
            continue;
        }
        changed = true;
        for (at, statement) in file.statements.iter().enumerate() {
            let from = if at == 0 { 0 } else { file.statements[at - 1].range.end as usize };
            let to =
                if at + 1 == file.statements.len() { section.text.len() } else { statement.range.end as usize + 1 };
            let to = to.min(section.text.len());
            let before: String = section.text[..from].chars().filter(|c| *c == '\n').collect();
            let own = section.text[from..to].trim_start_matches(';');
            let text = format!("{before}{own}");
            sections.push(Section { text, release: Some(number as u32), ..section.clone() });
        }
    }
    scenario.sections = sections;
    changed
}

/// The lines and rules of findings in migrations.
fn found(outcome: &Outcome) -> BTreeSet<(u32, &'static str)> {
    outcome.found.iter().map(|found| (outcome.line(found), found.rule)).collect()
}

/// A difference that is right.
struct Exception {
    /// None for every rule.
    rules: &'static [&'static Rule],
    variants: &'static [Variant],
    /// How the place begins: folder and file.
    place: &'static str,
    reason: &'static str,
}

static EXCEPTIONS: &[Exception] = &[
    Exception {
        rules: &[&data::statement_per_row::RULE],
        variants: &[Variant::Commented, Variant::Divided],
        place: "",
        reason: "the comment before a captured statement says how often it was sent, and its file which migration sent it",
    },
    Exception {
        rules: &[&data::looks_like_rename::RULE],
        variants: &[Variant::Divided],
        place: "required-column-without-default/reported.sql:8",
        reason: "open: in one statement the new column is required, and in several it is not yet",
    },
    Exception {
        rules: &[&locking::set_not_null_scans_table::RULE],
        variants: &[Variant::Divided],
        place: "required-column-without-default/inserting_functions.sql:16",
        reason: "in a file of its own, the statement is followed by code that still inserts rows without the column",
    },
    Exception {
        rules: &[],
        variants: &[Variant::After],
        place: "dynamic-ddl-on-unknown-object/reported.sql",
        reason: "the code runs over all tables, so that it changes the others as well",
    },
    Exception {
        rules: &[&locking::missing_lock_timeout::RULE],
        variants: &[Variant::After],
        place: "drop-object-cascade/unseen_public.sql",
        reason: "the schema then holds tables, which the statement locks",
    },
    Exception {
        rules: &[&transaction::many_tables_locked::RULE],
        variants: &[Variant::After],
        place: "locks/alter_all_in_tablespace",
        reason: "the statement is about all tables, so that it locks the others as well",
    },
    Exception {
        rules: &[],
        variants: &[Variant::After],
        place: "drop-table/unseen_if_exists.sql",
        reason: "after a history, a table that no migration shows is assumed not to exist where IF EXISTS asks for it",
    },
    Exception {
        rules: &[&locking::missing_lock_timeout::RULE],
        variants: &[Variant::After, Variant::Divided],
        place: "not-rerunnable/silent.sql:5",
        reason: "after a history, a view that no migration shows is assumed not to exist where IF EXISTS asks for it",
    },
    Exception {
        rules: &[],
        variants: &[Variant::After],
        place: "missing-lock-timeout/if_exists.sql",
        reason: "after a history, a trigger that no migration shows is assumed not to exist where IF EXISTS asks for it",
    },
    Exception {
        rules: &[&data::unbounded_update_or_delete::RULE],
        variants: &[Variant::Qualified],
        place: "system-catalog-write/silent.sql:5",
        reason: "the name alone is that of a view of the system, and not in the schema public",
    },
    Exception {
        rules: &[&transaction::retry_blocked::RULE],
        variants: &[Variant::Divided],
        place: "",
        reason: "nothing runs before the statement of a file of one statement, so the next run can repeat it",
    },
    Exception {
        rules: &[&transaction::invalid_index_kept::RULE],
        variants: &[Variant::Divided],
        place: "invalid-index-kept/silent.sql",
        reason: "the next run repeats the file of the build alone, and not the DROP INDEX before it",
    },
    Exception {
        rules: &[&transaction::not_rerunnable::RULE, &engine::unused_suppression::RULE],
        variants: &[Variant::Divided],
        place: "",
        reason: "a file of one statement leaves nothing half done, and its suppression is of no use",
    },
    Exception {
        rules: &[
            &data::missing_analyze::RULE,
            &data::trigger_left_disabled::RULE,
            &bloat::freeze_age_raised::RULE,
            &security::view_without_security_invoker::RULE,
        ],
        variants: &[Variant::Divided],
        place: "",
        reason: "what a migration leaves behind is left behind by each of the files, and once for each",
    },
    Exception {
        rules: &[&engine::statement_will_fail::RULE],
        variants: &[Variant::Divided],
        place: "statement-will-fail/",
        reason: "what a migration lacks is assumed to be there in later ones, because those who have run them have it",
    },
    Exception {
        rules: &[
            &compatibility::cached_plan_result_changes::RULE,
            &compatibility::column_rejects_values::RULE,
            &compatibility::conflict_target_lost::RULE,
            &compatibility::constraint_rejects_writes::RULE,
            &compatibility::drop_column::RULE,
            &compatibility::drop_object::RULE,
            &compatibility::drop_object_cascade::RULE,
            &compatibility::drop_table::RULE,
            &compatibility::enum_value_renamed_or_removed::RULE,
            &compatibility::if_not_exists_masks_difference::RULE,
            &compatibility::index_function_replaced::RULE,
            &compatibility::policy_hides_rows::RULE,
            &compatibility::policy_recursion::RULE,
            &compatibility::primary_key_dropped::RULE,
            &compatibility::privilege_revoked::RULE,
            &compatibility::rename_column::RULE,
            &compatibility::rename_or_move_object::RULE,
            &compatibility::replace_loses_attributes::RULE,
            &compatibility::type_narrowing::RULE,
            &compatibility::used_index_dropped::RULE,
            &compatibility::view_not_updatable::RULE,
            &data::insert_may_violate_unique::RULE,
            &data::sequence_behind_keys::RULE,
            &data::toast_compression_not_applied::RULE,
            &bloat::large_object_orphaned::RULE,
            &locking::foreign_key_locks_other_table::RULE,
            &locking::missing_lock_timeout::RULE,
            &security::grant_to_public::RULE,
            &security::policy_always_true::RULE,
            &security::revoke_without_effect::RULE,
            &schema::default_violates_check::RULE,
            &schema::set_null_on_not_null_column::RULE,
        ],
        variants: &[Variant::Divided],
        place: "",
        reason: "open: what later statements change is searched for in the migration, and not in its deployment",
    },
];

#[derive(Default)]
struct Report {
    compared: BTreeMap<String, (usize, usize)>,
    problems: Vec<String>,
    used: BTreeSet<usize>,
}

impl Report {
    fn compare(
        &mut self,
        variant: Variant,
        name: &str,
        expected: &BTreeSet<(u32, &'static str)>,
        found: &BTreeSet<(u32, &'static str)>,
    ) {
        let (all, same) = self.compared.entry(format!("{variant:?}")).or_default();
        *all += 1;
        let mut differs = false;
        for (line, rule) in expected.symmetric_difference(found) {
            let place = format!("{name}:{line}");
            let applies = |exception: &Exception| {
                (exception.rules.is_empty() || exception.rules.iter().any(|known| known.meta.name == *rule))
                    && exception.variants.contains(&variant)
                    && place.starts_with(exception.place)
            };
            if let Some(at) = EXCEPTIONS.iter().position(applies) {
                self.used.insert(at);
                continue;
            }
            differs = true;
            let what = if found.contains(&(*line, *rule)) { "only there" } else { "only before" };
            self.problems.push(format!("{variant:?} {name}:{line}: {rule}: {what}"));
        }
        *same += usize::from(!differs);
    }

    /// A suppressed rule takes its own findings along, and neither takes nor brings others.
    fn suppress(&mut self, subject: &Subject, expected: &BTreeSet<(u32, &'static str)>) {
        // Problems of the text itself cannot be suppressed.
        let is_engine = |name: &str| rules::find(name).is_some_and(|rule| rule.meta.category == Category::Engine);
        let rules: BTreeSet<&str> = expected.iter().map(|(_, rule)| *rule).filter(|name| !is_engine(name)).collect();
        for rule in rules {
            let mut scenario = Scenario::parse(&subject.text);
            let is_free = scenario.sections.iter().all(|section| !section.text.contains("pgvet:"));
            if !is_free {
                return;
            }
            for section in scenario.sections.iter_mut().filter(|section| section.kind == SectionKind::Migration) {
                section.text.insert_str(0, &format!("/* pgvet: ignore-file[{rule}] */ "));
            }
            let left: BTreeSet<_> = expected.iter().filter(|(_, other)| *other != rule).copied().collect();
            let found: BTreeSet<_> = found(&scenario.run());
            // What is found in one file is not suppressed in another.
            let unused = engine::unused_suppression::RULE.meta.name;
            let found: BTreeSet<_> = found.into_iter().filter(|(_, name)| *name != unused).collect();
            let (all, same) = self.compared.entry("Suppressed".to_owned()).or_default();
            *all += 1;
            *same += usize::from(left == found);
            for (line, other) in left.symmetric_difference(&found) {
                let what = if found.contains(&(*line, *other)) { "only then" } else { "not then" };
                self.problems.push(format!("without {rule} {}:{line}: {other}: {what}", subject.name));
            }
        }
    }
}

/// Checks the subjects in parallel.
pub(crate) fn check_findings() {
    let (subjects, next, report) = (subjects(), AtomicUsize::new(0), Mutex::new(Report::default()));
    let work = || {
        while let Some(subject) = subjects.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut own = Report::default();
            let expected = found(&Scenario::parse(&subject.text).run());
            for variant in ALL {
                let Some(scenario) = changed(variant, &subject.text) else { continue };
                own.compare(variant, &subject.name, &expected, &found(&scenario.run()));
            }
            if !subject.name.starts_with("locks/") {
                own.suppress(subject, &expected);
            }
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.problems.append(&mut own.problems);
            report.used.append(&mut own.used);
            for (variant, (all, same)) in own.compared {
                let total = report.compared.entry(variant).or_default();
                *total = (total.0 + all, total.1 + same);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let thread = std::thread::Builder::new().stack_size(pgvet_syntax::statement::PARSE_STACK_BYTES);
            thread.spawn_scoped(scope, work).unwrap();
        }
    });
    let Report { compared, mut problems, used } = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    if std::env::var_os("RULE").is_none() {
        let unused = EXCEPTIONS.iter().enumerate().filter(|(at, _)| !used.contains(at));
        problems.extend(
            unused.map(|(_, exception)| format!("nothing to except: {}: {}", exception.place, exception.reason)),
        );
    }
    problems.sort();
    if !problems.is_empty() {
        problems.push(format!("comparisons, and those that hold or are excepted: {compared:?}"));
    }
    expect_none(&problems);
}
