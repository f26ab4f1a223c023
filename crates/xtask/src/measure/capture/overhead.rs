//! How much longer a whole run of `pgvet capture` takes than the migrations alone, with many migrations of Django.

use super::sample::{Sample, copy, search_path};
use crate::measure::fixtures;
use crate::measure::median::median;
use pgvet_trace::server::{Binaries, Options, Server};
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(clap::Args)]
pub(super) struct Overhead {
    /// Measure a whole run of `pgvet capture` with generated migrations of Django instead.
    #[arg(long = "overhead", id = "overhead", conflicts_with_all = ["samples", "record"])]
    pub(super) is_wanted: bool,
    /// The build to measure.
    #[arg(long, value_name = "PATH", default_value = "target/release/pgvet", requires = "overhead")]
    pgvet: std::path::PathBuf,
    /// How many migrations are generated, rounded up to tens.
    #[arg(long, value_name = "N", default_value_t = 300, requires = "overhead")]
    migrations: usize,
    /// Fail if a run takes more than this percentage longer.
    #[arg(long, value_name = "PERCENT", requires = "overhead")]
    at_most: Option<f64>,
}

/// The migrations of one app: the name of the file, what runs before its operations, and the operations.
const MIGRATIONS: [(&str, &str, &str); 10] = [
    (
        "0001_initial",
        "",
        "migrations.CreateModel('Customer', [('id', models.BigAutoField(primary_key=True)), \
         ('email', models.CharField(max_length=100)), ('active', models.BooleanField(default=True))]), \
         migrations.CreateModel('Order', [('id', models.BigAutoField(primary_key=True)), \
         ('customer', models.ForeignKey('Customer', models.CASCADE)), ('total', models.IntegerField())])",
    ),
    ("0002_note", "", "migrations.AddField('order', 'note', models.TextField(default=''))"),
    ("0003_country", "", "migrations.AddField('customer', 'country', models.CharField(max_length=2, null=True))"),
    (
        "0004_fill",
        "def fill(apps, editor):\n    apps.get_model('APP', 'Customer').objects.filter(country=None).update(country='DE')\n",
        "migrations.RunPython(fill, migrations.RunPython.noop)",
    ),
    ("0005_required", "", "migrations.AlterField('customer', 'country', models.CharField(max_length=2, default='DE'))"),
    ("0006_index", "", "migrations.AddIndex('order', models.Index(fields=['total'], name='APP_total'))"),
    ("0007_rename", "", "migrations.RenameField('order', 'note', 'remark')"),
    (
        "0008_constraint",
        "",
        "migrations.AddConstraint('customer', models.UniqueConstraint(fields=['email'], name='APP_email'))",
    ),
    ("0009_longer", "", "migrations.AlterField('customer', 'email', models.CharField(max_length=200))"),
    ("0010_remove", "", "migrations.RemoveField('order', 'remark')"),
];

pub(super) fn run(arguments: &Overhead, rounds: usize, major: u8) -> Result<String, String> {
    let sample = Sample::named("django")?;
    let installed = sample.install()?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let project = folder.path().join("project");
    let count = generate(&project, arguments.migrations).map_err(|error| format!("{}: {error}", project.display()))?;
    let pgvet = arguments.pgvet.canonicalize().map_err(|error| format!("{}: {error}", arguments.pgvet.display()))?;
    let path = search_path(&installed);
    let (server, port) = start(major)?;
    let (mut alone, mut captured, mut first) = (Vec::new(), Vec::new(), None);
    // The first pair warms the caches: that of the system, and that of data directories.
    for round in 0..=rounds.max(1) {
        let database = format!("alone_{round}");
        server.query("postgres", &format!("CREATE DATABASE {database}")).map_err(|error| error.to_string())?;
        let mut migrate = Command::new("python");
        let [host, port] = ["127.0.0.1".to_owned(), port.to_string()];
        let user = "postgres".to_owned();
        let variables = [
            ("PGHOST", host),
            ("PGPORT", port),
            ("PGUSER", user),
            ("PGPASSWORD", String::new()),
            ("PGDATABASE", database),
        ];
        migrate.args(["manage.py", "migrate"]).envs(variables);
        let of_tool = seconds(&mut migrate, &project, &path, &[0])?;
        let mut capture = Command::new(&pgvet);
        capture.args(["capture", "--pg-version", &major.to_string(), "--", "python", "manage.py", "migrate"]);
        capture.env("PGVET_CACHE_DIR", folder.path().join("cache"));
        let of_capture = seconds(&mut capture, &project, &path, &[0, 1])?;
        if round == 0 {
            first = Some(more(of_tool, of_capture));
        } else {
            alone.push(of_tool);
            captured.push(of_capture);
        }
    }
    let pairs = alone.iter().zip(&captured).map(|(alone, captured)| more(*alone, *captured));
    let percent = median(pairs.collect());
    let mut report = format!("{count} migrations of Django, medians of {} runs\n", alone.len());
    let _ = writeln!(report, "alone {:.2} s, captured {:.2} s: {percent:+.1} %", median(alone), median(captured));
    let _ = writeln!(report, "the first run, without a kept data directory: {:+.1} %", first.unwrap_or(f64::NAN));
    match arguments.at_most {
        Some(limit) if percent > limit => Err(format!("{report}more than {limit} %")),
        _ => Ok(report),
    }
}

fn more(alone: f64, captured: f64) -> f64 {
    100.0 * (captured / alone - 1.0)
}

/// Runs a command in the project, whose exit status must be one of these.
fn seconds(command: &mut Command, project: &Path, path: &str, statuses: &[i32]) -> Result<f64, String> {
    command.current_dir(project).env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null());
    let shown = command.get_program().display().to_string();
    let started = Instant::now();
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    let took = started.elapsed().as_secs_f64();
    if output.status.code().is_some_and(|code| statuses.contains(&code)) {
        return Ok(took);
    }
    Err(format!("{shown} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// A server like the private one of a capture, which listens on a port.
fn start(major: u8) -> Result<(Server, u16), String> {
    let text = |error: pgvet_trace::Error| error.to_string();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| error.to_string())?.port();
    let settings = [("listen_addresses", "127.0.0.1"), ("autovacuum", "off"), ("max_wal_size", "4GB")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let options = Options { port: Some(port), settings, ..Options::default() };
    let server = Server::start_with(&Binaries::find(Some(major)).map_err(text)?, &options).map_err(text)?;
    Ok((server, port))
}

/// Writes a project with this many migrations, and returns their number.
fn generate(project: &Path, migrations: usize) -> std::io::Result<usize> {
    let apps = migrations.div_ceil(MIGRATIONS.len());
    for part in ["config", "manage.py"] {
        let from = fixtures("capture/django/project").join(part);
        let to = project.join(part);
        if from.is_dir() { copy(&from, &to)? } else { fs::copy(from, to).map(drop)? }
    }
    let settings = project.join("config/settings.py");
    let installed = format!("\nINSTALLED_APPS = [f\"app{{number}}\" for number in range({apps})]\n");
    fs::write(&settings, fs::read_to_string(&settings)? + &installed)?;
    for app in (0..apps).map(|number| format!("app{number}")) {
        let folder = project.join(&app).join("migrations");
        fs::create_dir_all(&folder)?;
        for package in [&project.join(&app), &folder] {
            fs::write(package.join("__init__.py"), "")?;
        }
        let mut before = String::new();
        for (name, code, operations) in MIGRATIONS {
            let text = format!(
                "from django.db import migrations, models\n\n{code}\nclass Migration(migrations.Migration):\n    \
                 dependencies = [{before}]\n    operations = [{operations}]\n"
            );
            fs::write(folder.join(format!("{name}.py")), text.replace("APP", &app))?;
            before = format!("('{app}', '{name}')");
        }
    }
    Ok(apps * MIGRATIONS.len())
}
