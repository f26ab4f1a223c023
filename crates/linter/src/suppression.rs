//! Comments that switch rules off: `-- pgvet: ignore[rule-a, rule-b] reason` for the statement that they stand before,
//! in or behind, `-- pgvet: ignore-file[rule] reason` for the file. Block comments and comments in function bodies do
//! as well.
//!
//! Suppressions are accountable: one that names no rule, and one that suppresses nothing, is a finding itself. Those of
//! other linters are understood for the rules that correspond, and are not held to account.

mod directive;

use crate::comment::MARK;
use crate::diagnostic::Diagnostic;
use crate::fix::{Applicability, Edit, Fix};
use crate::meta::{Category, RuleMeta};
use crate::report::Reporter;
use crate::rule::Rule;
use crate::rules;
use crate::settings::Settings;
use directive::{Directive, Mistake, Origin, RuleName, Scope};
use pgvet_model::migration::{Direction, Migration};
use pgvet_syntax::lexer::Lexer;
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// One of these is in every suppression that is understood.
const MARKS: [&str; 4] = [MARK, "squawk-ignore", "eugene:", "atlas:nolint"];

/// A finding that a comment took away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suppressed {
    #[serde(deserialize_with = "rules::read_finding")]
    pub diagnostic: Diagnostic,
    /// The reason that the comment gives; may be empty.
    pub reason: SmolStr,
}

/// Most files have no suppressions, and are not read again.
fn has_mark(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark))
}

/// Moves the findings that comments suppress to `suppressed`, and adds findings about the comments themselves.
pub(crate) fn apply(
    comments: &[FoundComment],
    migrations: &[Migration<'_>],
    settings: &Settings,
    found: &mut Vec<Diagnostic>,
    suppressed: &mut Vec<Suppressed>,
) {
    let mut findings = Findings::new(std::mem::take(found));
    for FoundComment { file, comment: (comment, scope) } in comments {
        let (file, migration, comment) = (*file, &migrations[*file as usize], *comment);
        let Some(directive) = directive::read(&migration.file.text, comment) else { continue };
        let suppression = Suppression { file, migration, comment, scope: *scope };
        match directive {
            Ok(directive) => suppression.follow(&directive, settings, &mut findings, suppressed),
            Err(Mistake { message, help }) => {
                let added = &mut findings.added;
                suppression.report(&rules::engine::unknown_suppression::RULE, settings, added, |reporter| {
                    reporter.report(comment, message).help(help).emit();
                });
            }
        }
    }
    *found = findings.into_rest();
}

/// The findings of a run by their location, so that each comment looks at few of them.
struct Findings {
    /// In order; those that a comment has taken are gone.
    all: Vec<Option<Diagnostic>>,
    /// By file.
    of_file: FxHashMap<u32, Vec<usize>>,
    /// By file and statement.
    of_statement: FxHashMap<(u32, TextRange), Vec<usize>>,
    /// By file and where they begin, in order.
    by_start: FxHashMap<u32, Vec<(u32, usize)>>,
    /// Rules of which a comment has taken all findings of a file.
    whole_files: FxHashSet<(u32, &'static str)>,
    /// Findings about the comments themselves, which no comment suppresses.
    added: Vec<Diagnostic>,
}

impl Findings {
    fn new(all: Vec<Diagnostic>) -> Self {
        let mut of_file: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        let mut of_statement: FxHashMap<(u32, TextRange), Vec<usize>> = FxHashMap::default();
        let mut by_start: FxHashMap<u32, Vec<(u32, usize)>> = FxHashMap::default();
        for (at, found) in all.iter().enumerate() {
            of_file.entry(found.file).or_default().push(at);
            of_statement.entry((found.file, found.statement)).or_default().push(at);
            by_start.entry(found.file).or_default().push((found.range.start, at));
        }
        by_start.values_mut().for_each(|starts| starts.sort_unstable());
        let all = all.into_iter().map(Some).collect();
        Self { all, of_file, of_statement, by_start, whole_files: FxHashSet::default(), added: Vec::new() }
    }

    /// The places in `all` of the findings of a file.
    fn in_file(&mut self, file: u32) -> Vec<usize> {
        let Some(places) = self.of_file.get_mut(&file) else { return Vec::new() };
        places.retain(|at| self.all[*at].is_some());
        places.clone()
    }

    /// Those of a statement, and those that are shown inside of it.
    fn in_statement(&self, file: u32, statement: TextRange) -> Vec<usize> {
        let mut places = self.of_statement.get(&(file, statement)).cloned().unwrap_or_default();
        let starts = self.by_start.get(&file).map_or(&[][..], Vec::as_slice);
        let first = starts.partition_point(|(start, _)| *start < statement.start);
        let inside = starts[first..].iter().take_while(|(start, _)| *start <= statement.end);
        places.extend(inside.map(|(_, at)| *at));
        places.retain(|at| {
            let is_here = |found: &Diagnostic| found.statement == statement || statement.contains(found.range);
            self.all[*at].as_ref().is_some_and(is_here)
        });
        places.sort_unstable();
        places.dedup();
        places
    }

    fn into_rest(self) -> Vec<Diagnostic> {
        self.all.into_iter().flatten().chain(self.added).collect()
    }
}

/// A comment of a migration that may suppress something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundComment {
    /// Index of its migration.
    pub(crate) file: u32,
    pub(crate) comment: Comment,
}

/// A comment that may suppress something, with the statement that it belongs to.
pub(crate) type Comment = (TextRange, Option<TextRange>);

/// Finds the comments in the text of a migration that may suppress something, in all of its sections.
pub(crate) fn comments(migration: &Migration<'_>) -> Vec<Comment> {
    let text = &migration.file.text;
    if !has_mark(text) {
        return Vec::new();
    }
    let mut comments = Vec::new();
    for statement in migration.parsed {
        comments.extend(statement.comments.iter().map(|comment| (*comment, Some(statement.range))));
        for token in &statement.tokens {
            comments
                .extend(body_comments(text, token.range).into_iter().map(|comment| (comment, Some(statement.range))));
        }
    }
    let known: FxHashSet<TextRange> = comments.iter().map(|(comment, _)| *comment).collect();
    let others = statement::split(text).comments.into_iter().filter(|comment| !known.contains(comment));
    comments.extend(others.map(|comment| (comment, None)));
    comments.retain(|(comment, _)| text.get(comment.as_usize()).is_some_and(has_mark));
    comments.sort_by_key(|(comment, _)| *comment);
    comments
}

/// The comments in a dollar-quoted string: the body of DO or a function.
fn body_comments(text: &str, token: TextRange) -> Vec<TextRange> {
    let quoted = text.get(token.as_usize()).unwrap_or_default();
    let tag = quoted.strip_prefix('$').and_then(|rest| rest.find('$')).map(|at| at as u32 + 2);
    let Some(tag) = tag.filter(|tag| has_mark(quoted) && quoted.len() >= 2 * *tag as usize) else {
        return Vec::new();
    };
    let mut lexer = Lexer::new(text, TextRange::new(token.start + tag, token.end - tag));
    let mut nested: Vec<TextRange> = Vec::new();
    for token in lexer.by_ref() {
        nested.extend(body_comments(text, token.range));
    }
    nested.extend(lexer.take_comments());
    nested
}

/// A comment of a migration.
struct Suppression<'a> {
    file: u32,
    migration: &'a Migration<'a>,
    comment: TextRange,
    /// The statement that it belongs to.
    scope: Option<TextRange>,
}

impl Suppression<'_> {
    fn follow(
        &self,
        directive: &Directive,
        settings: &Settings,
        findings: &mut Findings,
        suppressed: &mut Vec<Suppressed>,
    ) {
        if let Origin::Other(linter) = directive.origin {
            self.suppress(directive, findings, suppressed, |rule| corresponds(rule, linter, &directive.names));
            return;
        }
        let mut unused = Vec::new();
        for name in &directive.names {
            match rules::find(&name.text) {
                Some(rule) if rule.meta.category != Category::Engine => {
                    let is_again =
                        directive.scope == Scope::File && !findings.whole_files.insert((self.file, rule.meta.name));
                    let used =
                        !is_again && self.suppress(directive, findings, suppressed, |meta| meta.name == rule.meta.name);
                    // What can be said about the comments of migrations that are only parsed?
                    let is_run = self.migration.direction == Direction::Up || settings.lint_down;
                    let runs = is_run && settings.severity_in(self.file, &rule.meta).is_some();
                    if !used && runs {
                        unused.push(name);
                    }
                }
                rule => self.unknown(name, rule, settings, &mut findings.added),
            }
        }
        if !unused.is_empty() && self.is_own() {
            self.unused(directive, &unused, settings, &mut findings.added);
        }
        if settings.require_reasons && directive.reason.is_empty() && self.is_own() {
            let added = &mut findings.added;
            self.report(&rules::engine::suppression_without_reason::RULE, settings, added, |reporter| {
                let help = "write the reason after the brackets: `-- pgvet: ignore[rule] reason`";
                reporter.report(self.comment, "this suppression gives no reason").help(help).emit();
            });
        }
    }

    /// Whether it is in the part of the file that the migration runs.
    fn is_own(&self) -> bool {
        self.migration.section.is_none_or(|section| section.contains(self.comment))
    }

    /// Removes the findings of some rules, and returns whether there were any.
    fn suppress(
        &self,
        directive: &Directive,
        findings: &mut Findings,
        suppressed: &mut Vec<Suppressed>,
        concerns: impl Fn(&RuleMeta) -> bool,
    ) -> bool {
        let places = match (directive.scope, self.scope) {
            (Scope::File, _) => findings.in_file(self.file),
            (Scope::Statement, Some(statement)) => findings.in_statement(self.file, statement),
            (Scope::Statement, None) => Vec::new(),
        };
        let before = suppressed.len();
        for at in places {
            let is_meant = |found: &mut Diagnostic| rules::find(found.rule).is_some_and(|rule| concerns(&rule.meta));
            if let Some(diagnostic) = findings.all[at].take_if(is_meant) {
                suppressed.push(Suppressed { diagnostic, reason: directive.reason.clone() });
            }
        }
        suppressed.len() > before
    }

    fn unknown(&self, name: &RuleName, rule: Option<&'static Rule>, settings: &Settings, found: &mut Vec<Diagnostic>) {
        if !self.is_own() {
            return;
        }
        let (message, help) = match (rule, rules::nearest(&name.text)) {
            (Some(_), _) => (
                format!("`{}` cannot be suppressed", name.text),
                "comments cannot suppress rules of category `engine`: correct the statement, or accept the finding \
                 with `pgvet baseline`"
                    .to_owned(),
            ),
            (None, Some(nearest)) => (
                format!("there is no rule `{}`, so this suppresses nothing", name.text),
                format!("did you mean `{nearest}`? `pgvet rules` lists all rules"),
            ),
            (None, None) => (
                format!("there is no rule `{}`, so this suppresses nothing", name.text),
                "`pgvet rules` lists all rules".to_owned(),
            ),
        };
        self.report(&rules::engine::unknown_suppression::RULE, settings, found, |reporter| {
            reporter.report(name.range, message).help(help).emit();
        });
    }

    fn unused(&self, directive: &Directive, unused: &[&RuleName], settings: &Settings, found: &mut Vec<Diagnostic>) {
        let names: Vec<String> = unused.iter().map(|name| format!("`{}`", name.text)).collect();
        let place = match directive.scope {
            Scope::File => "in this file",
            Scope::Statement => "here",
        };
        let verb = if names.len() == 1 { "reports" } else { "report" };
        let message = format!("this comment suppresses {}, which {verb} nothing {place}", names.join(", "));
        let text = &self.migration.file.text;
        let fix = if unused.len() == directive.names.len() {
            let edit = Edit { range: whole_lines(text, self.comment), text: String::new() };
            Fix { title: "delete the comment".to_owned(), applicability: Applicability::Safe, edits: vec![edit] }
        } else {
            let kept = directive.names.iter().filter(|name| !unused.contains(name)).map(|name| name.text.as_str());
            let edit = Edit { range: directive.list, text: kept.collect::<Vec<_>>().join(", ") };
            Fix { title: "delete the unused names".to_owned(), applicability: Applicability::Safe, edits: vec![edit] }
        };
        let (range, help) = if unused.len() == directive.names.len() {
            (self.comment, "delete the comment, or it will hide a later finding")
        } else {
            (unused[0].range, "delete the unused names, or they will hide later findings")
        };
        self.report(&rules::engine::unused_suppression::RULE, settings, found, |reporter| {
            reporter.report(range, message).help(help).fix(fix).emit();
        });
    }

    fn report(
        &self,
        rule: &'static Rule,
        settings: &Settings,
        found: &mut Vec<Diagnostic>,
        report: impl FnOnce(&mut Reporter<'_>),
    ) {
        // A reporter compares with all findings that are there, and those of other comments are other ones.
        let mut own = Vec::new();
        let version = settings.versions.from;
        if let Some(mut reporter) = Reporter::new(settings, &rule.meta, self.file, self.comment, version, &mut own) {
            report(&mut reporter);
        }
        for diagnostic in &mut own {
            diagnostic.pg_versions = settings.versions.iter().collect();
        }
        found.append(&mut own);
    }
}

/// Whether a comment of another linter that names these of its rules, or all, concerns a rule of pgvet.
fn corresponds(rule: &RuleMeta, linter: &str, names: &[RuleName]) -> bool {
    let is_named = |source: &&str| {
        let name = source.strip_prefix(linter).and_then(|rest| rest.strip_prefix('/'));
        name.is_some_and(|name| names.iter().any(|named| named.text.eq_ignore_ascii_case(name)))
    };
    rule.category != Category::Engine && (names.is_empty() || rule.sources.iter().any(is_named))
}

/// The comment with the blanks before it, and with its line where nothing else stands on that.
fn whole_lines(text: &str, comment: TextRange) -> TextRange {
    let (start, end) = (comment.start as usize, comment.end as usize);
    let before = text[..start].trim_end_matches([' ', '\t']).len();
    let alone = before == 0 || text[..before].ends_with(['\n', '\r']);
    let line_break = ["\r\n", "\n", "\r"].into_iter().find(|line_break| text[end..].starts_with(line_break));
    match line_break {
        Some(line_break) if alone => TextRange::new(before as u32, (end + line_break.len()) as u32),
        // A block comment may be all that separates two words.
        None if end < text.len() => comment,
        _ => TextRange::new(before as u32, comment.end),
    }
}

#[cfg(test)]
mod tests;
