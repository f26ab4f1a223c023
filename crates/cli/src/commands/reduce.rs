//! `pgvet reduce`.

use super::load;
use crate::args::ReduceArgs;
use crate::error::{ExitStatus, Failure};
use crate::inert;
use crate::progress::Spinner;
use crate::rule_names::{self, Named};
use pgvet_linter::confidence::Confidence;
use pgvet_linter::settings::Settings;
use pgvet_linter::severity::Severity;
use pgvet_model::migration::TransactionMode;
use pgvet_reduce::{
    Control, DifferenceOracle, Document, End, FindingOracle, LockOracle, NoReduction, Oracle, Progress, Reduction,
    ServerOracle, Size, Wanted, WantedOutput, reduce,
};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::statement::parse;
use pgvet_trace::provider::{Lasting, Scratch, ScratchOptions};
use pgvet_trace::{Attempts, Limits, ModelDifference, Outcome, Output, Question};
use pgvet_workspace::config::Config;
use pgvet_workspace::{Project, create_report};
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub(crate) fn run(args: &ReduceArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    let deadline = started.checked_add(args.time_limit);
    let rule = args.finding.as_deref().map(one_rule).transpose()?;
    // A server starts while the files are read.
    std::thread::scope(|scope| {
        let needs_server = args.error.is_some() || args.difference.is_some() || args.output_differs.is_some();
        let server = needs_server.then(|| scope.spawn(|| Scratch::running_server(server_options(args))));
        let project = load(&args.input)?;
        if !project.problems.is_empty() {
            return Ok(ExitStatus::NotChecked);
        }
        let server = server.map(|server| server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let document = document(&project);
        let headers = headers(&project);
        let search = Search { args, started, deadline, interrupted: pgvet_trace::interruption()? };
        let reduction = match server {
            None => search.without_server(document, project, rule)?,
            Some(server) => search.on_server(document, one_database(project)?, server?)?,
        };
        write(args, &reduction.document, &headers, out)?;
        tell(args, &reduction, started.elapsed())
    })
}

/// The one rule of that name.
fn one_rule(name: &str) -> Result<&'static str, Failure> {
    match rule_names::find(name)? {
        Named::Rule(rule) => Ok(rule.name),
        Named::Several(what, _) => {
            Err(Failure::new(format!("`{name}` means {what}")).help("name one rule; `pgvet rules` lists them"))
        }
    }
}

/// The settings of `check`, with every finding of the rule shown.
fn settings(args: &ReduceArgs, config: &Config, rule: Option<&'static str>) -> Settings {
    let mut settings = args.input.settings(config);
    settings.level = Severity::Info;
    settings.confidence = Confidence::Possible;
    if let Some(rule) = rule.and_then(pgvet_linter::rules::find)
        && settings.severity_of(&rule.meta).is_none()
    {
        settings.ignore.retain(|name| name != rule.meta.name);
        settings.only.clear();
        settings.levels.rules.insert(rule.meta.name.to_owned(), Some(rule.meta.severity));
    }
    settings
}

fn server_options(args: &ReduceArgs) -> ScratchOptions {
    let major = args.input.pg_version.map(|versions| versions.to.0);
    ScratchOptions { binaries: args.pg_bin.clone(), major, ..ScratchOptions::default() }
}

/// A project whose migrations one server can run.
fn one_database(project: Project) -> Result<Project, Failure> {
    if project.databases.len() > 1 {
        let help = "name the migrations of one of them";
        return Err(Failure::new("these are migrations of several databases").help(help));
    }
    Ok(project)
}

/// The files of a project, in their order.
fn document(project: &Project) -> Document {
    let texts = project.files.iter().map(|file| &file.parsed.source);
    Document::new(texts.map(|source| (source.path.as_str(), source.text.as_str())))
}

/// A comment for each file that says where it comes from. A single file needs none.
fn headers(project: &Project) -> Vec<Option<String>> {
    let header = |file: &pgvet_workspace::ProjectFile| {
        let sections = &file.layout.sections;
        let in_transaction = sections.iter().any(|section| section.transaction == TransactionMode::Transaction);
        let transaction = if in_transaction { " (in one transaction)" } else { "" };
        let is_needed = project.files.len() > 1 || in_transaction;
        is_needed.then(|| format!("-- {}{transaction}\n", inert::line(&file.parsed.source.path)))
    };
    project.files.iter().map(header).collect()
}

/// A search, with a line that shows how far it has come.
struct Search<'a> {
    args: &'a ReduceArgs,
    started: Instant,
    deadline: Option<Instant>,
    interrupted: Arc<AtomicBool>,
}

impl Search<'_> {
    fn without_server(
        &self,
        document: Document,
        project: Project,
        rule: Option<&'static str>,
    ) -> Result<Reduction, Failure> {
        let settings = |config: &Config| settings(self.args, config, rule);
        let reduction = match (rule, &self.args.lock) {
            (Some(rule), _) => self.reduce(document, &mut FindingOracle::new(project, rule, &settings)),
            (None, Some(lock)) => self.reduce(document, &mut LockOracle::new(project, lock.clone(), &settings)),
            (None, None) => return Err(Failure::new("nothing was named that is to be kept")),
        };
        reduction.map_err(|none| self.nothing(none, None, true))
    }

    fn on_server(&self, document: Document, project: Project, server: Scratch) -> Result<Reduction, Failure> {
        match (&self.args.error, &self.args.output_differs) {
            (Some(error), _) => self.by_attempts(document, project, server, error.clone(), Question::Runs),
            (None, Some(output)) => self.by_attempts(document, project, server, output.clone(), output.question()),
            (None, None) => self.by_differences(document, project, server),
        }
    }

    fn by_differences(&self, document: Document, project: Project, server: Scratch) -> Result<Reduction, Failure> {
        let wanted = self.args.difference.clone().filter(|wanted| wanted != "any");
        let settings = |config: &Config| settings(self.args, config, None);
        let server = Lasting::new(server);
        let mut oracle = DifferenceOracle::new(project, wanted, server, self.args.statement_timeout, &settings);
        let reduction = self.reduce(document, &mut oracle).map_err(|none| self.nothing(none, None, true))?;
        if let Some(ModelDifference { what, relation, predicted, observed, .. }) = oracle.difference() {
            let of = if relation.is_empty() { String::new() } else { format!(" of {relation}") };
            let text = format!("{what}{of}: predicted {predicted}, observed {observed}");
            Failure::new(inert::line(&text)).write_note(&mut io::stderr().lock())?;
        }
        Ok(reduction)
    }

    fn by_attempts<W: Wanted>(
        &self,
        document: Document,
        project: Project,
        server: Scratch,
        wanted: W,
        question: Question,
    ) -> Result<Reduction, Failure> {
        let disk = Some(std::env::temp_dir());
        let limits = Limits { time: Some(self.args.time_limit), since: Some(self.started), disk, ..Limits::default() };
        let server = Attempts::start(server, question, self.args.statement_timeout, limits)?;
        for text in server.announcements() {
            Failure::new(inert::line(text)).write_note(&mut io::stderr().lock())?;
        }
        let mut oracle = ServerOracle::new(project, wanted, server);
        let last_is_query = ends_with_query(&document);
        let reduction = self.reduce(document, &mut oracle);
        for reason in oracle.not_run() {
            Failure::new(inert::line(reason)).write_note(&mut io::stderr().lock())?;
        }
        reduction.map_err(|none| self.nothing(none, oracle.last(), last_is_query))
    }

    fn reduce(&self, document: Document, oracle: &mut dyn Oracle) -> Result<Reduction, NoReduction> {
        let spinner = Spinner::new();
        spinner.begin("reducing");
        let mut told = Instant::now();
        let mut progress = |progress: &Progress| {
            if told.elapsed() >= Duration::from_millis(100) {
                told = Instant::now();
                spinner.say(&format!(
                    "{} tries, {} accepted: {}",
                    progress.tries,
                    progress.accepted,
                    size(progress.size)
                ));
            }
        };
        let control = Control { deadline: self.deadline, interrupted: &self.interrupted, progress: &mut progress };
        reduce(document, oracle, control)
    }

    /// Why nothing was reduced. `seen` is what a server showed.
    fn nothing(&self, none: NoReduction, seen: Option<&Outcome>, last_is_query: bool) -> Failure {
        let args = self.args;
        match none {
            NoReduction::Failed(error) => error.into(),
            NoReduction::Flaky { held, tries } => Failure::new(format!(
                "only {held} of {tries} runs of the original show the problem, so nothing can be removed reliably"
            ))
            .help("first make every run show it, for example with a fixed time or fixed random values"),
            NoReduction::DoesNotHold if args.difference.is_some() => {
                Failure::new("the server does what pgvet predicts, so there is nothing to reduce")
                    .help("`pgvet trace` shows all differences; those that pgvet itself expects are not reduced")
            }
            NoReduction::DoesNotHold => match (&args.finding, &args.lock, &args.output_differs) {
                (Some(rule), ..) => {
                    Failure::new(format!("`{rule}` has no finding here, so there is nothing to reduce"))
                        .help("`pgvet check` shows which rules have findings")
                }
                (_, Some(lock), _) => Failure::new(format!("no statement takes {lock}, so there is nothing to reduce"))
                    .help("`pgvet effects` shows the locks of each statement"),
                (.., Some(wanted)) => no_output(wanted, seen, last_is_query),
                _ => {
                    let why = failure(seen).unwrap_or_else(|| "no statement fails".to_owned());
                    Failure::new(format!("the server does not give this error: {why}"))
                        .help("name the error that the server gives, or the files that lead to it")
                }
            },
        }
    }
}

/// Why a run did not come to its end.
fn failure(seen: Option<&Outcome>) -> Option<String> {
    match seen? {
        Outcome::Refused(refused) => Some(format!("{} (SQLSTATE {})", refused.message, refused.sqlstate)),
        Outcome::TimedOut => Some("a statement takes longer than --statement-timeout".to_owned()),
        Outcome::Done(_) => None,
    }
}

/// Whether the last statement has a plan.
fn ends_with_query(document: &Document) -> bool {
    let last = document.sql().last().map(parse).unwrap_or_default();
    let has_plan =
        |ast: &Ast| matches!(ast, Ast::Select(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Merge(_));
    last.iter().filter_map(|statement| statement.ast()).any(has_plan)
}

/// Why the last query does not have the output.
fn no_output(wanted: &WantedOutput, seen: Option<&Outcome>, last_is_query: bool) -> Failure {
    if !last_is_query {
        return Failure::new("the last statement is not a query, so it has no output or plan that could differ")
            .help("put the query at the end of the last file");
    }
    if let Some(why) = failure(seen) {
        return Failure::new(format!("the last query has no output: {why}"))
            .help("name all files that the query needs; to reduce SQL that fails, use --error");
    }
    match (wanted, seen) {
        (WantedOutput::PlanNode(node), Some(Outcome::Done(Output::Plan(nodes)))) => {
            let nodes: Vec<String> = nodes.iter().map(|node| inert::line(node).into_owned()).collect();
            Failure::new(format!("the plan of the last query has no node `{node}`; it has {}", nodes.join(", ")))
                .help("name one of these nodes, or run ANALYZE after rows are inserted: plans depend on statistics")
        }
        _ => Failure::new("the last statement returns no rows, so it has no output that could differ")
            .help("put the query at the end of the last file"),
    }
}

/// Writes what is left.
fn write(
    args: &ReduceArgs,
    document: &Document,
    headers: &[Option<String>],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let Some(path) = &args.output else {
        return inert::through_if_seen(out, |out| Ok(write_texts(document, headers, out)?));
    };
    let failure = |error: io::Error| Failure::new(format!("cannot write `{}`: {error}", path.display()));
    let mut file = BufWriter::new(create_report(path).map_err(|problem| Failure::from(&problem))?);
    write_texts(document, headers, &mut file).and_then(|()| file.flush()).map_err(failure)
}

fn write_texts(document: &Document, headers: &[Option<String>], out: &mut dyn Write) -> io::Result<()> {
    for ((_, text), header) in document.texts().zip(headers).filter(|((_, text), _)| !text.trim().is_empty()) {
        if let Some(header) = header {
            out.write_all(header.as_bytes())?;
        }
        writeln!(out, "{}", text.trim())?;
    }
    Ok(())
}

/// Says what was done, and why it ended.
fn tell(args: &ReduceArgs, reduction: &Reduction, took: Duration) -> Result<ExitStatus, Failure> {
    let Reduction { before, progress, .. } = reduction;
    let mut stderr = io::stderr().lock();
    if !args.input.loudness.quiet {
        let text = format!(
            "reduced {} to {} ({} tries, {} accepted, {:.1} s)",
            size(*before),
            size(progress.size),
            progress.tries,
            progress.accepted,
            took.as_secs_f64(),
        );
        Failure::new(text).write_note(&mut stderr)?;
    }
    let checked = if reduction.is_confirmed { "" } else { ", tried in a transaction but not in a database of its own" };
    let early = |why: &str| Failure::new(format!("{why}: this is the smallest SQL so far{checked}"));
    match &reduction.end {
        End::Complete => return Ok(ExitStatus::Clean),
        End::TimeLimit => early("the time limit was reached").write_note(&mut stderr)?,
        End::Interrupted => early("interrupted").write_note(&mut stderr)?,
        End::Failed(error) => {
            Failure::from(error.clone()).write(&mut stderr)?;
            return Ok(ExitStatus::NotChecked);
        }
    }
    Ok(ExitStatus::Findings)
}

fn size(size: Size) -> String {
    let of = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    format!("{}, {}, {}", of(size.files, "file"), of(size.statements, "statement"), of(size.tokens, "token"))
}
