//! `pgvet trace`.

use super::load;
use crate::bookkeeping;
use crate::error::{ExitStatus, Failure};
use crate::progress::Spinner;
use crate::report::trace::TraceReport;
use crate::report::{trace_html, trace_json, trace_markdown, trace_table};
use crate::style::Style;
use crate::trace_args::{On, TraceArgs, TraceFormat};
use pgvet_linter::check::{self, Migration, StatementEffects};
use pgvet_linter::effect::RelationKind;
use pgvet_linter::settings::Settings;
use pgvet_linter::source::SourceFile;
use pgvet_linter::version::{PgVersion, VersionRange};
use pgvet_trace::provider::{
    CloneProvider, DataDir, DataDirOptions, Dblab, DblabOptions, Scratch, ScratchOptions, Template, Url, parse_address,
};
use pgvet_trace::{Address, Event, server};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

pub(crate) fn run(args: &TraceArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    if args.clean {
        return clean(args, out);
    }
    let project = load(&args.input)?;
    if !project.problems.is_empty() {
        return Ok(ExitStatus::NotChecked);
    }
    let migrations = project.migrations();
    let model = args.input.settings(&project.config_of(1));
    let mut settings = pgvet_trace::Settings {
        variables: args.variables.iter().cloned().collect(),
        statement_timeout: args.statement_timeout,
        keep_going: args.keep_going,
        repeat: args.repeat.into(),
        rows: args.rows.clone(),
        setup: bookkeeping::tables(&project, args.input.schema.is_some()),
        canaries: BTreeMap::new(),
        reader: args.inject_reader,
    };
    if args.canary {
        settings.canaries = canaries(&predicted(args, &settings.setup, &migrations, &model));
    }
    let mut provider = provider(args)?;
    let spinner = Spinner::new();
    let trace = pgvet_trace::run(&migrations, provider.as_mut(), &settings, &mut |event| spinner.say(&said(event)));
    drop(spinner);
    let trace = trace?;
    let predicted = predicted(
        args,
        &settings.setup,
        &migrations,
        &settings_for(trace.major, args.input.settings(&project.config_of(1))),
    );
    let report = TraceReport::new(&project, &trace, &predicted, &args.max_held);
    let style = Style::new(args.input.color);
    match args.format {
        TraceFormat::Full => trace_table::write(&report, style, out)?,
        TraceFormat::Json => trace_json::write(&report, out)?,
        TraceFormat::Markdown => trace_markdown::write(&report, out)?,
    }
    if let Some(file) = &args.report {
        let cannot = |error| Failure::new(format!("cannot write `{}`: {error}", file.display()));
        std::fs::write(file, trace_html::page(&report)).map_err(cannot)?;
    }
    Ok(status(args, &report))
}

/// What the model says. A scratch server is empty at first, but for the tables of the tools, and the model is told so.
fn predicted(
    args: &TraceArgs,
    setup: &[String],
    migrations: &[Migration<'_>],
    settings: &Settings,
) -> Vec<Vec<StatementEffects>> {
    if args.on != On::Scratch || args.input.schema.is_some() {
        return check::effects(migrations, settings);
    }
    let empty = check::parse_file(SourceFile { path: String::new(), text: setup.join(";\n") });
    let baseline = Migration { report: false, baseline: true, ..Migration::new(&empty) };
    let all: Vec<Migration<'_>> = std::iter::once(baseline).chain(migrations.iter().copied()).collect();
    let mut predicted = check::effects(&all, settings);
    predicted.remove(0);
    predicted
}

/// The tables that each migration is expected to close to readers or writers.
fn canaries(predicted: &[Vec<StatementEffects>]) -> BTreeMap<usize, Vec<String>> {
    let closed = |statement: &StatementEffects| {
        let locks = statement.effects.locks.iter().filter(|lock| lock.mode.blocks_writes());
        let tables = locks.filter(|lock| lock.relation.kind == RelationKind::Table);
        tables.map(|lock| lock.relation.to_string()).collect::<BTreeSet<_>>()
    };
    let of_migration = |statements: &Vec<StatementEffects>| {
        let tables: BTreeSet<String> = statements.iter().flat_map(closed).collect();
        tables.into_iter().collect()
    };
    predicted.iter().map(of_migration).enumerate().collect()
}

fn status(args: &TraceArgs, report: &TraceReport<'_>) -> ExitStatus {
    if report.failed() {
        ExitStatus::NotChecked
    } else if !report.exceeded.is_empty() {
        ExitStatus::Findings
    } else if args.strict_model && report.differences.iter().any(|difference| difference.unknown.is_none()) {
        ExitStatus::ModelDiffers
    } else {
        ExitStatus::Clean
    }
}

fn provider(args: &TraceArgs) -> Result<Box<dyn CloneProvider>, Failure> {
    Ok(match args.on {
        On::Scratch => Box::new(Scratch::new(ScratchOptions {
            binaries: args.pg_bin.clone(),
            major: args.input.pg_version.map(|versions| versions.to.0),
            durable: !args.rows.is_empty(),
            setup: Vec::new(),
        })),
        On::Template => Box::new(Template::new(address(args)?)),
        On::Url if !args.this_is_a_clone => {
            return Err(Failure::new("--on url runs the migrations on the database itself, and blocks and changes it")
                .help("say --this-is-a-clone if that is what it is for"));
        }
        On::Url => Box::new(Url::new(address(args)?)),
        On::Datadir => Box::new(data_directory(args)?),
        On::Dblab => Box::new(dblab(args)?),
    })
}

fn data_directory(args: &TraceArgs) -> Result<DataDir, Failure> {
    let missing = |what: &str, help: &str| Failure::new(format!("--on datadir needs {what}")).help(help);
    Ok(DataDir::new(DataDirOptions {
        folder: args.data.clone().ok_or_else(|| missing("a data directory", "name it: --data DIR"))?,
        database: args.database.clone().ok_or_else(|| missing("a database", "name it: --database NAME"))?,
        user: std::env::var("PGUSER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "postgres".to_owned()),
        binaries: args.pg_bin.clone(),
    }))
}

fn dblab(args: &TraceArgs) -> Result<Dblab, Failure> {
    let missing = |what: &str, help: &str| Failure::new(format!("--on dblab needs {what}")).help(help);
    let url = args.dblab.clone();
    let token = std::env::var("DBLAB_TOKEN").ok().filter(|token| !token.is_empty());
    Ok(Dblab::new(DblabOptions {
        url: url.ok_or_else(|| missing("an address", "name it: --dblab https://HOST:PORT"))?,
        token: token.ok_or_else(|| missing("a token", "set DBLAB_TOKEN"))?,
        database: args.database.clone().ok_or_else(|| missing("a database", "name it: --database NAME"))?,
        branch: args.dblab_branch.clone(),
        snapshot: None,
    }))
}

fn address(args: &TraceArgs) -> Result<Address, Failure> {
    let text = args.database.as_deref().ok_or_else(|| {
        Failure::new("--on template and --on url need a database").help("name it: --database postgres://HOST/DATABASE")
    })?;
    Ok(parse_address(text)?)
}

/// The settings of the project, for the major that was traced.
fn settings_for(major: u8, settings: Settings) -> Settings {
    let version = PgVersion(major);
    Settings { versions: VersionRange { from: version, to: version }, versions_configured: true, ..settings }
}

fn said(event: Event<'_>) -> String {
    match event {
        Event::History { path } => format!("replaying {path}"),
        Event::Rows { table, rows } => format!("filling {table} with {rows} rows"),
        Event::Statement { path, number, sql } => {
            let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{path}: {} {}", number + 1, line.chars().take(60).collect::<String>())
        }
    }
}

fn clean(args: &TraceArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let folders = server::remove_leftovers();
    let mut removed: Vec<String> = folders.iter().map(|folder| format!("the server in {}", folder.display())).collect();
    if args.on == On::Template {
        let databases = Template::new(address(args)?).remove_leftovers_now()?;
        removed.extend(databases.iter().map(|name| format!("the database {name}")));
    }
    if args.on == On::Dblab {
        removed.extend(dblab(args)?.remove_leftovers_now()?.iter().map(|name| format!("the clone {name}")));
    }
    for what in &removed {
        writeln!(out, "removed {what}")?;
    }
    if removed.is_empty() {
        writeln!(out, "nothing to remove")?;
    }
    Ok(ExitStatus::Clean)
}
