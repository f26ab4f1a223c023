use super::*;
use crate::config::absolute;
use std::fs;

/// The migrations of a project, of which `1_a.sql`, `2_b.sql` and `10_c.sql` are in `db/migrations`.
struct Sample {
    _root: tempfile::TempDir,
    scripts: PsqlScripts,
}

impl Sample {
    fn of(file: &str, text: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let top = absolute(root.path());
        let write = |path: &str, text: &str| {
            let path = top.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for name in ["1_a.sql", "2_b.sql", "10_c.sql"] {
            write(&format!("db/migrations/{name}"), "SELECT 1;");
        }
        write("db/all.sql", "\\i migrations/2_b.sql\n\\ir ./migrations/1_a.sql\n");
        write("schema.sql", "CREATE TABLE t ();");
        write(file, text);
        let scripts = PsqlScripts::of(&top.join("db/migrations"), &top, &Nearby::default());
        Self { _root: root, scripts }
    }

    /// Which files run, `-` for a run in one transaction, and whether the script has another order.
    fn shown(&self) -> String {
        let names = ["1_a.sql", "2_b.sql", "10_c.sql"];
        let mark = |run: &Run| if run.in_transaction { "-" } else { "" };
        let shown = names.iter().filter_map(|name| Some(format!("{}{name}", mark(self.scripts.run_of(name)?))));
        let other = if self.scripts.other_order(&names).is_some() { " other order" } else { "" };
        shown.collect::<Vec<_>>().join(" ") + other
    }
}

const ALL: &str = "1_a.sql 2_b.sql 10_c.sql";

fn check(cases: &[(&str, &str, &str)]) {
    for (file, text, expected) in cases {
        let sample = Sample::of(file, text);
        assert_eq!(sample.shown(), *expected, "{file}: {text}\n{:?}", sample.scripts);
    }
}

#[test]
fn scripts_of_a_shell_run_files() {
    let by_name = &format!("{ALL} other order");
    check(&[
        ("run.sh", "psql -f db/migrations/1_a.sql\n", "1_a.sql"),
        ("run.sh", "psql -1 -f db/migrations/1_a.sql\n", "-1_a.sql"),
        ("scripts/run.sh", "psql \"$URL\" < ../db/migrations/1_a.sql\n", "1_a.sql"),
        ("run.sh", "cat db/migrations/2_b.sql | docker exec -i db psql -U app\n", "2_b.sql"),
        (
            "run.sh",
            "psql -v ON_ERROR_STOP=1 \\\n  -f db/migrations/1_a.sql \\\n  -f db/migrations/2_b.sql\n",
            "1_a.sql 2_b.sql",
        ),
        ("run.sh", "psql -f db/migrations/2_b.sql\npsql -f db/migrations/1_a.sql\n", "1_a.sql 2_b.sql other order"),
        ("run.sh", "for f in db/migrations/*.sql; do\n  psql -f \"$f\"\ndone\n", by_name),
        (
            "run.sh",
            "for f in $(ls db/migrations/*.sql | sort -V); do psql --single-transaction -f $f; done\n",
            "-1_a.sql -2_b.sql -10_c.sql",
        ),
        ("run.sh", "D=\"$(dirname \"$0\")/db/migrations\"\nfor f in \"$D\"/*.sql; do psql < \"$f\"; done\n", by_name),
        ("run.sh", "for f in $(ls db/migrations); do psql -f \"db/migrations/$f\"; done\n", by_name),
        ("run.sh", "cd db/migrations\nfor f in *.sql; do psql -f $f; done\n", by_name),
        (
            "run.sh",
            "run() { psql -f \"$1\"; }\nrun db/migrations/1_a.sql\nrun db/migrations/2_b.sql\n",
            "1_a.sql 2_b.sql",
        ),
        ("run.sh", "while read f; do psql -f \"$f\"; done < <(find db/migrations -name '*.sql' | sort)\n", by_name),
        ("run.sh", "find db/migrations -name '*.sql' | xargs -I{} psql -f {}\n", by_name),
        ("run.sh", "psql -f db/all.sql\n", "1_a.sql 2_b.sql other order"),
        ("run.sh", "psql <<EOF\n\\i db/migrations/1_a.sql\nEOF\n", "1_a.sql"),
        ("db/migrations/run.sh", "for f in *.sql; do psql -f $f; done\n", by_name),
        ("bin/migrate", "psql -f /app/db/migrations/1_a.sql\n", "1_a.sql"),
    ]);
}

#[test]
fn other_files_with_commands_run_files() {
    let by_name = &format!("{ALL} other order");
    check(&[
        (
            "Makefile",
            "DIR := db/migrations\nup:\n\t@for f in $(DIR)/*.sql; do \\\n\t\tpsql $$URL -f $$f; \\\n\tdone\n",
            by_name,
        ),
        ("justfile", "up:\n    psql {{url}} -f db/migrations/1_a.sql\n", "1_a.sql"),
        (
            "package.json",
            "{\n  \"scripts\": {\n    \"up\": \"psql \\\"$URL\\\" -f db/migrations/1_a.sql && psql -f db/migrations/2_b.sql\",\n",
            "1_a.sql 2_b.sql",
        ),
        (".github/workflows/ci.yml", "steps:\n  - run: psql -h localhost -f db/migrations/1_a.sql\n", "1_a.sql"),
        ("compose.yml", "command: [\"psql\", \"-f\", \"/db/migrations/1_a.sql\"]\n", "1_a.sql"),
        ("Dockerfile", "RUN psql -f db/migrations/1_a.sql\n", "1_a.sql"),
        (
            "migrate.py",
            "for path in sorted(Path('db/migrations').glob('*.sql')):\n    run([\"psql\", url, \"-f\", str(path)])\n",
            by_name,
        ),
        (
            "migrate.ts",
            "const dir = join(__dirname, 'db', 'migrations');\nexecSync(`psql ${url} -1 -f ${file}`);\n",
            "-1_a.sql -2_b.sql -10_c.sql other order",
        ),
        ("main.go", "exec.Command(\"psql\", dsn, \"-f\", \"db/migrations/1_a.sql\")\n", "1_a.sql"),
    ]);
}

#[test]
fn other_words_run_nothing() {
    check(&[
        ("run.sh", "# psql -f db/migrations/1_a.sql\n", ""),
        ("run.sh", "ls db/migrations/*.sql\npsql -c 'SELECT 1'\n", ""),
        ("run.sh", "sqlx migrate run --source db/migrations\npsql -f schema.sql\n", ""),
        ("run.sh", "pg_dump > db/migrations/1_a.sql; psql -l\n", ""),
        ("run.sh", "psql -c 'TABLE t' > db/migrations/1_a.sql\n", ""),
        ("run_test.sh", "psql -f db/migrations/1_a.sql\n", ""),
        ("run.sh", "psql -f other/db/1_a.sql\n", ""),
        ("check.py", "TOOLS = ['psql', 'git']\nread('db/migrations')\n", ""),
    ]);
}

#[test]
fn files_elsewhere_are_known() {
    let sample = Sample::of("run.sh", "psql -f schema.sql\nsqlx migrate run\n");
    let others: Vec<_> =
        sample.scripts.others().map(|(path, place)| (path.file_name().unwrap().to_owned(), place.as_str())).collect();
    assert_eq!(others, [("schema.sql".into(), "run.sh:1")]);
}

#[test]
fn hostile_scripts_end() {
    let variables: Vec<String> = (0..500).map(|at| format!("V{}=$V{at}$V{at}{}\n", at + 1, "x".repeat(50))).collect();
    let variables = variables.concat();
    let text = format!("V0=db/migrations\n{variables}psql -f {}\n", "\"$V9\" $(ls $V9) ".repeat(9_000));
    let started = std::time::Instant::now();
    assert_eq!(Sample::of("run.sh", &text).shown(), "");
    let short = format!("A=\"{}\"\npsql -f {}\n", "a ".repeat(2_000), "$A".repeat(50_000));
    assert_eq!(Sample::of("run.sh", &short).shown(), "");
    for part in ["$(", "`", "\"", "${", "{{", "$", "\\", "(", "for f in ", "psql -f "] {
        Sample::of("run.sh", &format!("psql {}", part.repeat(20_000)));
        Sample::of("run.py", &format!("'psql' -f {}", part.repeat(20_000)));
    }
    assert!(started.elapsed().as_secs() < 60);
}

#[test]
fn patterns_match_names() {
    for (pattern, name) in
        [("*.sql", "1.sql"), ("[0-9]*.sql", "1_a.sql"), ("*/up.sql", "1/up.sql"), ("?_*.up.sql", "1_a.up.sql")]
    {
        assert!(matches(pattern, name), "{pattern}");
    }
    for (pattern, name) in [("*.sql", "a/1.sql"), ("*.up.sql", "1.down.sql"), ("?.sql", "10.sql"), ("", "a")] {
        assert!(!matches(pattern, name), "{pattern}");
    }
    assert!(!matches(&"*a".repeat(500), &"a".repeat(400)), "hostile patterns end");
}

#[test]
fn code_and_containers_run_files_elsewhere() {
    let place = |file: &str, text: &str| {
        let sample = Sample::of(file, text);
        sample.scripts.others().map(|(_, place)| place.to_string()).collect::<Vec<_>>()
    };
    for (file, text, expected) in [
        ("main.go", "//go:embed schema.sql\nvar schema string\nfunc run() { db.Exec(schema) }\n", "main.go:1"),
        ("src/db.ts", "const sql = fs.readFileSync('schema.sql', 'utf8');\nawait pool.query(sql);\n", "src/db.ts:1"),
        ("db.py", "conn.execute(Path('schema.sql').read_text())\n", "db.py:1"),
        ("compose.yml", "  - ./schema.sql:/docker-entrypoint-initdb.d/1.sql\n", "compose.yml:1"),
        ("Dockerfile", "COPY schema.sql /docker-entrypoint-initdb.d/\n", "Dockerfile:1"),
    ] {
        assert_eq!(place(file, text), [expected], "{text}");
    }
    for (file, text) in [
        ("main.go", "// see schema.sql\nfunc run() { db.Exec(schema) }\n"),
        ("db.ts", "await pool.query(readFileSync('other.sql'));\n"),
        ("db.ts", "await pool.query(readFileSync('db/migrations/1_a.sql'));\n"),
        ("db.ts", "copyFile('schema.sql');\n"),
        ("compose.yml", "  - ./schema.sql:/tmp/1.sql\n"),
    ] {
        assert_eq!(place(file, text), [] as [&str; 0], "{text}");
    }
}
