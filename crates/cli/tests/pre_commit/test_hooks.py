"""Real pre-commit in repositories made for it: PGVET names the program, or PGVET_WHEELS a folder with its wheel."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
WHEELS = os.environ.get("PGVET_WHEELS")
HISTORY = 2000 if WHEELS else 20

# What a mirror of the hooks is: the hooks, and a package that depends on the wheel.
MIRROR = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "pgvet-pre-commit"
version = "0"
dependencies = ["pgvet"]

[tool.setuptools]
py-modules = []
"""

CLEAN = "SET lock_timeout = '1s';\nALTER TABLE t0 ALTER COLUMN v TYPE varchar(20);\n"
# To tell that this rewrites the table takes the history.
BAD = "SET lock_timeout = '1s';\nALTER TABLE t0 ALTER COLUMN v TYPE varchar(5);\n"
UNBOUNDED = "BEGIN;\nALTER TABLE t0 ADD COLUMN w int;\nCOMMIT;\n"


def environment():
    settings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for who in "AUTHOR", "COMMITTER":
        settings |= {f"GIT_{who}_NAME": "t", f"GIT_{who}_EMAIL": "t@example.org"}
    folders = [os.path.dirname(sys.executable)]
    if WHEELS:
        settings["PIP_FIND_LINKS"] = WHEELS
    else:
        folders.append(os.path.dirname(os.environ["PGVET"]))
    settings["PATH"] = os.pathsep.join([*folders, settings["PATH"]])
    return settings


def offline(command):
    """The command where no network is: in a namespace of its own where this user may make one."""
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0:
        command = ("unshare", "-rn", *command)
    nowhere = "http://127.0.0.1:9"
    return command, {"PIP_NO_INDEX": "1", "http_proxy": nowhere, "https_proxy": nowhere}


def run(folder, *command, status=0, more=()):
    """What a command prints; it must end with `status`."""
    done = subprocess.run(
        command, cwd=folder, env=environment() | dict(more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert status in (None, done.returncode), f"{command} ended with {done.returncode}, not {status}:\n{done.stdout}"
    return done.stdout


def write(root, files):
    for path, text in files.items():
        path = root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def repository(root, files):
    """The revision of a new repository with these files."""
    write(root, files)
    run(root, "git", "init", "-q", "-b", "main")
    run(root, "git", "add", "-A")
    run(root, "git", "commit", "-q", "-m", "past")
    return run(root, "git", "rev-parse", "HEAD").strip()


class Hooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        os.environ["PRE_COMMIT_HOME"] = str(cls.folder / "pre-commit")
        os.environ["PGVET_CACHE_DIR"] = str(cls.folder / "cache")
        hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
        files = {"pyproject.toml": MIRROR}
        if not WHEELS:
            hooks, files = hooks.replace("language: python", "language: system"), {}
        cls.mirror = cls.folder / "hooks"
        cls.revision = repository(cls.mirror, files | {".pre-commit-hooks.yaml": hooks})

    def hook(self, name, more=""):
        return f"repos:\n  - repo: {self.mirror.as_uri()}\n    rev: {self.revision}\n    hooks:\n      - id: {name}\n{more}"

    def project(self, config, history=HISTORY):
        """A repository with migrations that have run, and with pre-commit at work."""
        root = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        past = {
            f"migrations/{number:05}.sql": f"CREATE TABLE t{number} (id int PRIMARY KEY, v varchar(9));\n"
            for number in range(history)
        }
        repository(root, past | {".pre-commit-config.yaml": config})
        run(root, "pre-commit", "install", "--install-hooks")
        return root

    def commit(self, root, files, status=0):
        write(root, files)
        run(root, "git", "add", "--", *files)
        command, more = offline(("git", "commit", "-m", "change"))
        return run(root, *command, status=status, more=more)

    def refuses_what_history_shows_to_be_bad(self, config):
        root = self.project(config)
        self.commit(root, {"migrations/90000.sql": CLEAN})
        begin = time.monotonic()
        said = self.commit(root, {"migrations/90001.sql": BAD, "README.md": "more"}, status=1)
        took = time.monotonic() - begin
        self.assertIn("type-change-rewrites-table", said)
        self.assertIn("migrations/90001.sql:2:", said)
        self.assertIn(f"{HISTORY + 1} earlier migrations replayed", said)
        print(f"a bad commit is refused in {took:.2f} s after {HISTORY} migrations", flush=True)

    def test_the_hook_for_changed_files(self):
        self.refuses_what_history_shows_to_be_bad(self.hook("pgvet"))

    def test_the_hook_for_all_that_is_staged(self):
        self.refuses_what_history_shows_to_be_bad(self.hook("pgvet-staged"))

    def test_a_fix_changes_the_file_and_stops_the_commit(self):
        root = self.project(self.hook("pgvet", "        args: [--fix, --]\n"), history=3)
        said = self.commit(root, {"migrations/90000.sql": UNBOUNDED}, status=1)
        self.assertIn("files were modified by this hook", said)
        fixed = (root / "migrations/90000.sql").read_text()
        self.assertEqual(fixed, UNBOUNDED.replace("BEGIN;\n", "BEGIN;\nSET LOCAL lock_timeout = '2s';\n"))
        self.commit(root, {"migrations/90000.sql": fixed})

    def test_the_hook_checks_what_check_would_check(self):
        root = self.project(self.hook("pgvet"), history=3)
        skipped = {
            "mysql/1_a.sql": "CREATE TABLE m (id int AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB;\n",
            "queries/users.sql": "-- name: GetUser :one\nSELECT v FROM t0 WHERE id = sqlc.arg(id);\n",
            "tests/reset.sql": "TRUNCATE t0;\nDROP TABLE t1;\n",
            "structure.sql": "-- PostgreSQL database dump\nCREATE TABLE t0 (id int);\n",
            "migrations/legacy/1.sql": "DROP TABLE t2;\n",
            "pgvet.toml": "[migrations]\nexclude = [\"migrations/legacy\"]\n",
        }
        self.commit(root, skipped)
        self.commit(root, {"migrations/90001.sql": BAD}, status=1)
        # The same as a check of everything says about these files.
        forced = run(root, "pgvet", "check", "--format", "concise", "--force-exclude", "--", *skipped, "migrations/90001.sql", status=1)
        whole = run(root, "pgvet", "check", "--format", "concise", status=1)
        findings = [line for line in whole.splitlines() if line.startswith("migrations/90001.sql:")]
        self.assertEqual([line for line in forced.splitlines() if "[" in line and ".sql:" in line], findings)

    def test_a_file_name_is_no_option(self):
        for more in "", "        args: [--fail-on, warning]\n":
            root = self.project(self.hook("pgvet", more), history=3)
            self.commit(root, {"--output-file=../pwned.sql": BAD}, status=None)
            self.assertFalse((root.parent / "pwned.sql").exists())

    def test_what_is_not_staged_does_not_count(self):
        root = self.project(self.hook("pgvet"), history=3)
        write(root, {"migrations/90000.sql": CLEAN})
        run(root, "git", "add", "-A")
        self.commit(root, {"README.md": "more"})
        self.commit(root, {"migrations/90001.sql": CLEAN.replace("20", "30")})
        write(root, {"migrations/90001.sql": BAD})
        self.commit(root, {"migrations/90002.sql": CLEAN.replace("20", "40")})
        self.assertEqual((root / "migrations/90001.sql").read_text(), BAD)

    if WHEELS:

        def test_the_hook_of_the_documentation(self):
            blocks = (ROOT / "docs/pre-commit.md").read_text().split("```yaml\n")
            self.refuses_what_history_shows_to_be_bad(blocks[1].split("```")[0])


if __name__ == "__main__":
    unittest.main()
