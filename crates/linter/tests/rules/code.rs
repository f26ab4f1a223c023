//! The effects of a statement are the same in a file and in code that the file runs, and so are the findings: every
//! statement of every fixture runs once more in a DO block, through EXECUTE of a constant, in a called function and in
//! a called procedure.

use crate::scenario::{Outcome, Scenario, Section, SectionKind};
use crate::{expect_none, fixtures, tested_rules};
use pgvet_linter::rule::Rule;
use pgvet_linter::rules::{engine, transaction};
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::ast::{Ast, ReindexTarget, Setting};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{Statement, parse_file};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Code that runs one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Code {
    Do,
    /// In single quotes, so that the text of the file is another one than the code.
    Escaped,
    Execute,
    Function,
    Procedure,
    Prepared,
}

const ALL: [Code; 6] = [Code::Do, Code::Escaped, Code::Execute, Code::Function, Code::Procedure, Code::Prepared];

impl Code {
    /// The statement that runs the code, on the lines of the statement that it stands for. What it calls is added to the
    /// definitions.
    fn around(self, statement: &str, definitions: &mut Vec<String>) -> String {
        let body = format!("$m$ BEGIN {}; END $m$", in_plpgsql(statement));
        let name = format!("public.pgvet_code_{}()", definitions.len());
        let lines = "\n".repeat(statement.matches('\n').count());
        match self {
            Self::Do => format!("DO {body}"),
            Self::Escaped => format!("DO 'BEGIN {}; END'", in_plpgsql(statement).replace('\'', "''")),
            Self::Prepared => {
                let name = format!("pgvet_{}", statement.len());
                format!("PREPARE {name} AS {statement}; EXECUTE {name}; DEALLOCATE {name}")
            }
            Self::Execute => format!("DO $m$ BEGIN EXECUTE $s${statement}$s$; END $m$"),
            Self::Function => {
                definitions.push(format!("CREATE FUNCTION {name} RETURNS void LANGUAGE plpgsql AS {body};\n"));
                format!("SELECT {lines}{name}")
            }
            Self::Procedure => {
                definitions.push(format!("CREATE PROCEDURE {name} LANGUAGE plpgsql AS {body};\n"));
                format!("CALL {lines}{name}")
            }
        }
    }
}

/// PL/pgSQL runs a query whose rows nobody wants with PERFORM.
fn in_plpgsql(statement: &str) -> String {
    match statement.split_at_checked("SELECT".len()) {
        Some((word, rest)) if word.eq_ignore_ascii_case("select") => format!("PERFORM{rest}"),
        _ => statement.to_owned(),
    }
}

/// Whether the statement can run in code with the same meaning.
fn runs_in(code: Code, statement: &Statement, text: &str) -> bool {
    let Some(ast) = statement.ast() else { return false };
    let quoted = text.contains("$m$") || text.contains("$s$");
    // Code that a called function defines or runs is where it is defined, and is shown at the call. Open: rules of
    // code read only what the file shows as it is.
    let is_code = matches!(ast, Ast::Do(_) | Ast::CreateFunction(_));
    let is_shown_elsewhere = is_code && matches!(code, Code::Function | Code::Procedure | Code::Escaped);
    let is_query = matches!(ast, Ast::Select(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Merge(_));
    let cannot_prepare = code == Code::Prepared && !is_query;
    let is_read_otherwise = statement.quoting.is_some() || changes_reading(ast);
    let is_other = is_refused(ast) || means_other(ast) || is_read_otherwise || !statement.placeholders.is_empty();
    !(is_other || quoted || is_shown_elsewhere || cannot_prepare)
}

/// PostgreSQL refuses it in a function, or it is about the transaction that the file controls.
fn is_refused(ast: &Ast) -> bool {
    match ast {
        Ast::Transaction(_) | Ast::Vacuum(_) | Ast::Copy(_) | Ast::CreateOther(_) | Ast::Discard(_) => true,
        Ast::Reindex(reindex) if !reindex.concurrently => {
            !matches!(reindex.target, ReindexTarget::Index(_) | ReindexTarget::Table(_))
        }
        ast => ast.is_concurrent(),
    }
}

/// PL/pgSQL has an EXECUTE of its own, and the other statements yield rows or are about the session.
fn means_other(ast: &Ast) -> bool {
    matches!(ast, Ast::Execute(_) | Ast::Prepare(_) | Ast::Explain(_) | Ast::DeclareCursor(_))
}

/// Whether the statement changes how the text after it is read: in code that is uncertain.
fn changes_reading(ast: &Ast) -> bool {
    let decides = |name: &str| ["standard_conforming_strings", "client_encoding"].contains(&name);
    match ast {
        Ast::Set(set) => match &set.setting {
            Setting::Value { name, .. } | Setting::Default { name } => decides(name),
            Setting::ResetAll => true,
            Setting::Transaction => false,
        },
        _ => false,
    }
}

/// The scenario with the statements of its migrations in code, if there is one that can be. A migration before all others
/// defines what they call; without `code` it defines nothing that is used.
fn in_code(text: &str, code: Option<Code>) -> Option<Scenario> {
    let mut scenario = Scenario::parse(text);
    let mut definitions = vec!["CREATE FUNCTION public.pgvet_code() RETURNS void LANGUAGE sql AS '';\n".to_owned()];
    let mut changed = code.is_none();
    for section in scenario.sections.iter_mut().filter(|section| section.kind == SectionKind::Migration) {
        let Some(code) = code else { continue };
        let file = parse_file(SourceFile::new(section.path.clone(), section.text.clone()));
        for statement in file.statements.iter().rev() {
            let written = &section.text[statement.range.as_usize()];
            if runs_in(code, statement, written) {
                let around = code.around(written, &mut definitions);
                section.text.replace_range(statement.range.as_usize(), &around);
                changed = true;
            }
        }
    }
    let definitions = Section::new(SectionKind::History, TransactionMode::Autocommit, definitions.concat());
    scenario.prepend(vec![definitions]);
    changed.then_some(scenario)
}

/// The lines of statements; those that share a line are one.
fn lines_of_statements(outcome: &Outcome) -> Vec<RangeInclusive<u32>> {
    let mut lines: Vec<RangeInclusive<u32>> = Vec::new();
    for file in outcome.files.iter().skip(1) {
        for statement in &file.statements {
            let line = |at| file.source.position(at).line;
            let (start, end) = (line(statement.range.start), line(statement.range.end));
            match lines.last_mut() {
                Some(last) if *last.end() >= start && *last.start() <= start => {
                    *last = *last.start()..=end.max(*last.end());
                }
                _ => lines.push(start..=end),
            }
        }
    }
    lines
}

/// The rules that report something, with the first line of the statement.
fn reported(outcome: &Outcome, lines: &[RangeInclusive<u32>]) -> BTreeSet<(u32, &'static str)> {
    let place = |line: u32| lines.iter().find(|lines| lines.contains(&line)).map_or(0, |lines| *lines.start());
    outcome.found.iter().map(|found| (place(outcome.line(found)), found.rule)).collect()
}

/// A difference that is right, or that is known and still to be fixed.
struct Exception {
    rule: &'static str,
    codes: &'static [Code],
    /// How the place begins: folder and file.
    place: &'static str,
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        rule: "",
        codes: &[Code::Do, Code::Execute],
        place: "syntax-error/code.sql:15",
        reason: "PostgreSQL's parser reads the text of a DO block in the file, and here another DO block runs it",
    },
    Exception {
        rule: "not-analyzed",
        codes: &[Code::Function, Code::Procedure],
        place: "drop-object-cascade/unseen_public.sql",
        reason: "the statement also drops the function, which the later statements are then no longer in",
    },
    Exception {
        rule: "statement-per-row",
        codes: &ALL,
        place: "",
        reason: "a program has sent the statements of captured migrations, and none in code",
    },
    Exception {
        rule: "",
        codes: &[Code::Procedure],
        place: "column-default-rewrites-table/before_11.sql",
        reason: "PostgreSQL 10 has no procedures",
    },
    Exception {
        rule: "not-rerunnable",
        codes: &[Code::Prepared],
        place: "statement-per-row/reported.sql",
        reason: "a prepared INSERT of constants is one as well",
    },
    Exception {
        rule: "inconsistent-lock-order",
        codes: &[Code::Function, Code::Procedure],
        place: "writes-lost-after-copy/evidence.sql",
        reason: "the INSERT into `users_new` locks it before `users`, from which it reads; in a function that stays in the \
                 database, other sessions may do so while the migration renames `users` first",
    },
    Exception {
        // `drop-column` yields to `contract-before-release`.
        rule: "",
        codes: &[Code::Function, Code::Procedure],
        place: "contract-before-release/together.sql",
        reason: "the text of the migration that expands names no table if a function of an earlier one does the work",
    },
    Exception {
        rule: "not-rerunnable",
        codes: &[Code::Function, Code::Procedure],
        place: "",
        reason: "in the file `retry-blocked` reports the statement instead",
    },
    Exception {
        rule: "retry-blocked",
        codes: &ALL,
        place: "",
        reason: "code runs in one transaction, which is rolled back when a statement of it stops",
    },
    Exception {
        rule: "timeout-not-in-effect",
        codes: &ALL,
        place: "timeout-not-in-effect/reported.sql",
        reason: "code always runs in a transaction, so that SET LOCAL has an effect until it ends",
    },
    Exception {
        rule: "",
        codes: &ALL,
        place: "statement-will-fail/reported.sql",
        reason: "LOCK TABLE needs a transaction block in a file, and none in code",
    },
    Exception {
        rule: "work-after-strong-lock",
        codes: &ALL,
        place: "work-after-strong-lock/silent.sql",
        reason: "code may insert the same rows repeatedly, so that a table that it fills may hold many",
    },
    Exception {
        rule: "missing-lock-timeout",
        codes: &[Code::Do, Code::Execute],
        place: "statement-will-fail/silent.sql",
        reason: "open: after a statement that lacks something, code leaves other doubts than the file",
    },
    Exception {
        rule: "subtransaction-overflow",
        codes: &ALL,
        place: "subtransaction-overflow/",
        reason: "open: the rule counts the subtransactions of a DO block, but not of one within another",
    },
    Exception {
        rule: "subtransaction-per-row",
        codes: &[Code::Function, Code::Procedure, Code::Prepared],
        place: "subtransaction-per-row/",
        reason: "open: the rule reads the queries of the file, and not those of called functions",
    },
    Exception {
        rule: "toast-compression-not-applied",
        codes: &[Code::Prepared],
        place: "toast-compression-not-applied/silent.sql",
        reason: "open: what makes the rows new is searched for in the statements of the file",
    },
    Exception {
        rule: "drop-column",
        codes: &[Code::Prepared],
        place: "drop-column/added_again.sql",
        reason: "open: what keeps the values is searched for in the statements of the file",
    },
    Exception {
        rule: "",
        codes: &[Code::Escaped],
        place: "ambiguous-text/",
        reason: "another text is ambiguous in another way",
    },
    Exception {
        rule: "not-analyzed",
        codes: &[Code::Do, Code::Execute],
        place: "ambiguous-text/reported.sql:4",
        reason: "strings of code are doubted together, and not one by one",
    },
    Exception {
        // `unbounded-update-or-delete` yields to `bulk-change-in-loop`.
        rule: "",
        codes: &ALL,
        place: "bulk-change-in-loop/silent.sql",
        reason: "open: that the table goes later is searched for in the statements of the file",
    },
];

/// Rules that say that PostgreSQL refuses a statement.
static REFUSALS: [&Rule; 3] = [
    &engine::statement_will_fail::RULE,
    &transaction::concurrently_in_transaction::RULE,
    &transaction::enum_value_used_in_same_transaction::RULE,
];

/// Whether the difference is one of the exceptions, which it marks as used.
fn is_exception(code: Code, rule: &str, place: &str, used: &mut BTreeSet<usize>) -> bool {
    let applies = |exception: &Exception| {
        (exception.rule.is_empty() || exception.rule == rule)
            && exception.codes.contains(&code)
            && place.starts_with(exception.place)
    };
    let found = EXCEPTIONS.iter().position(applies);
    used.extend(found);
    found.is_some()
}

pub(crate) fn check_findings() {
    let mut used = BTreeSet::new();
    let mut problems = Vec::new();
    for folder in tested_rules().map(|meta| meta.name) {
        for path in fixtures::files(folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            let Some(plain) = in_code(&text, None).map(|plain| plain.run()) else { continue };
            let lines = lines_of_statements(&plain);
            let expected = reported(&plain, &lines);
            // Whether a function fails depends on its data too often: a refusal inside of it is not taken for certain.
            let refused = expected.iter().any(|(_, name)| REFUSALS.iter().any(|rule| rule.meta.name == *name));
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            for code in ALL {
                if refused && matches!(code, Code::Function | Code::Procedure | Code::Prepared) {
                    continue;
                }
                let Some(scenario) = in_code(&text, Some(code)) else { continue };
                let found = reported(&scenario.run(), &lines);
                for (line, rule) in expected.symmetric_difference(&found) {
                    let place = format!("{folder}/{file}:{line}");
                    if !is_exception(code, rule, &place, &mut used) {
                        let what = if found.contains(&(*line, *rule)) { "only there" } else { "only in the file" };
                        problems.push(format!("{code:?} {place}: {rule}: {what}"));
                    }
                }
            }
        }
    }
    if std::env::var_os("RULE").is_none() {
        let unused = EXCEPTIONS.iter().enumerate().filter(|(at, _)| !used.contains(at));
        problems.extend(
            unused.map(|(_, exception)| format!("nothing to except: {}: {}", exception.place, exception.reason)),
        );
    }
    expect_none(&problems);
}
