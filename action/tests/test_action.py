"""The action on recorded events, in git repositories made for it, against a server that plays GitHub's API."""

import http.server
import json
import os
import re
import secrets
import string
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

HERE = Path(__file__).parent
ACTION = HERE.parent.parent / "action.yml"
ZEROS = "0" * 40
TOKEN = secrets.token_hex(16)

TABLE = "CREATE TABLE orders (id bigint PRIMARY KEY, note varchar(20));\n"
INDEX = "SET lock_timeout = '2s';\nCREATE INDEX orders_note ON orders (note);\n"
NEW_INDEX = INDEX.replace("orders_note", "orders_note_again")
CLEAN = "SET lock_timeout = '2s';\nALTER TABLE orders ADD COLUMN other text;\n"


def step(program):
    """The command of the step of the action that runs a program."""
    command = re.search(rf"^      run: (.*{re.escape(program)}.*)$", ACTION.read_text(), re.MULTILINE).group(1)
    return ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", command]


def block(program):
    """The text of the step of the action that runs a program."""
    return next(text for text in ACTION.read_text().split("    - name: ") if f"action/{program}" in text)


def variables(program):
    """The environment of a step, as the action writes it."""
    return dict(re.findall(r"^        (\w+): (.*)$", block(program), re.MULTILINE))


def is_run(program, inputs, outputs):
    """Whether the condition of a step holds after the check."""
    condition = re.search(r"^      if: \$\{\{ (.*) \}\}$", block(program), re.MULTILINE).group(1)
    known = {f"inputs.{name}": inputs.get(name, "") for name in ("comment", "capture", "trace")}
    known |= {"steps.check.outputs.report": outputs.get("report", "")}
    parts = [part for part in condition.split(" && ") if part != "!cancelled()"]
    comparisons = [re.fullmatch(r"(\S+) ([!=]=) '(\w*)'", part).groups() for part in parts]
    return all((known[name] == value) == (sign == "==") for name, sign, value in comparisons)


def git(folder, *arguments):
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    settings += ["-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false"]
    run = subprocess.run(["git", *settings, *arguments], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, f"git {arguments}: {run.stderr}"
    return run.stdout.strip()


class Api(http.server.BaseHTTPRequestHandler):
    """Comments of one pull request."""

    def do_GET(self):
        self.server.asked.append(("GET", self.path))
        page = int(self.path.rsplit("page=", 1)[1])
        self.answer(200, self.server.comments[(page - 1) * 100 : page * 100])

    def do_POST(self):
        self.write("POST", lambda body: self.server.comments.append({"id": 999, "body": body, "user": {"type": "Bot"}}))

    def do_PATCH(self):
        number = int(self.path.rsplit("/", 1)[1])

        def change(body):
            next(one for one in self.server.comments if one["id"] == number)["body"] = body

        self.write("PATCH", change)

    def write(self, method, change):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        self.server.asked.append((method, self.path))
        if self.server.reads_only:
            return self.answer(403, {"message": "Resource not accessible by integration"})
        change(body)
        return self.answer(200, {})

    def answer(self, status, content):
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


class ActionTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.searched_first = []
        self.upstream = self.folder / "upstream"
        self.upstream.mkdir()
        git(self.upstream, "init", "-q")
        git(self.upstream, "config", "uploadpack.allowAnySHA1InWant", "true")
        self.write("migrations/1.sql", TABLE)
        self.write("migrations/2.sql", INDEX)
        self.base = self.commit("the past")
        self.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
        self.api.comments, self.api.asked, self.api.reads_only = [], [], False
        threading.Thread(target=self.api.serve_forever, daemon=True).start()
        self.addCleanup(self.api.server_close)
        self.addCleanup(self.api.shutdown)

    def write(self, path, text):
        path = self.upstream / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, message):
        git(self.upstream, "add", "-A")
        git(self.upstream, "commit", "-q", "--allow-empty", "-m", message)
        return git(self.upstream, "rev-parse", "HEAD")

    def branch(self):
        """A branch for the change; meanwhile others change main."""
        git(self.upstream, "checkout", "-q", "-b", "feature")

    def merge(self):
        """What GitHub makes of a pull request, as refs/pull/7/merge."""
        head = git(self.upstream, "rev-parse", "HEAD")
        git(self.upstream, "checkout", "-q", "main")
        self.write("migrations/2b.sql", "CREATE INDEX ON orders (id);\n")
        self.commit("a change of others, after the event's base")
        git(self.upstream, "checkout", "-q", "--detach")
        git(self.upstream, "merge", "-q", "--no-ff", "-m", "merge", head)
        merge = git(self.upstream, "rev-parse", "HEAD")
        git(self.upstream, "update-ref", "refs/pull/7/merge", merge)
        git(self.upstream, "checkout", "-q", "main")
        return head, merge

    def clone(self, revision, depth=1):
        """What actions/checkout leaves."""
        clone = self.folder / "clone"
        clone.mkdir()
        git(clone, "init", "-q")
        git(clone, "remote", "add", "origin", self.upstream.as_uri())
        limit = [f"--depth={depth}"] if depth else []
        git(clone, "fetch", "-q", *limit, "origin", revision)
        git(clone, "checkout", "-q", "FETCH_HEAD")
        return clone

    def run_action(self, clone, event_name, payload=None, values=None, **inputs):
        event = self.folder / "event.json"
        text = (HERE / "events" / f"{payload or event_name}.json").read_text() if payload != "" else "{}"
        event.write_text(string.Template(text).safe_substitute(values or {}))
        names = ("summary", "output")
        files = {name: self.folder / name for name in names}
        for file in files.values():
            file.write_text("")
        environment = {
            "PATH": os.pathsep.join([*self.searched_first, str(Path(os.environ["PGVET"]).parent), os.environ["PATH"]]),
            "HOME": str(self.folder),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "protocol.file.allow",
            "GIT_CONFIG_VALUE_0": "always",
            "GITHUB_EVENT_NAME": event_name,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "octo-org/shop",
            "GITHUB_API_URL": f"http://127.0.0.1:{self.api.server_port}",
            "GITHUB_STEP_SUMMARY": str(files["summary"]),
            "GITHUB_OUTPUT": str(files["output"]),
            "GITHUB_ACTION_PATH": str(ACTION.parent),
            "RUNNER_TEMP": str(self.folder),
        }
        # Where the tests find servers, the action finds them.
        environment.update({name: value for name, value in os.environ.items() if name.startswith("PGVET_P")})
        given = {"version": "installed", "annotations": "true", "summary": "true", "schema": "true", "token": TOKEN}
        given |= inputs
        check = self.run_step("main.py", clone, environment, given)
        self.said = check.stdout + check.stderr
        self.summary, output = (files[name].read_text() for name in names)
        self.outputs = dict(line.split("=", 1) for line in output.splitlines())
        if is_run("comment.py", inputs, self.outputs):
            comment = self.run_step("comment.py", clone, environment, given)
            self.said += comment.stdout + comment.stderr
            self.assertEqual(comment.returncode, 0, self.said)
        return check.returncode

    def run_step(self, program, clone, environment, inputs):
        """Runs a step of the action with the variables that action.yml gives it."""
        def value(expression):
            origin, name = re.fullmatch(r"\$\{\{ (inputs|steps\.check\.outputs)\.([\w-]+) \}\}", expression).groups()
            return inputs.get(name.replace("-", "_"), "") if origin == "inputs" else self.outputs[name]

        own = {name: value(expression) for name, expression in variables(program).items()}
        return subprocess.run(step(program), cwd=clone, env={**environment, **own}, capture_output=True, text=True)

    def assert_reported(self, status, *paths):
        """These files have annotations, and no others."""
        lines = [line for line in self.said.splitlines() if line.startswith(("::error ", "::warning "))]
        found = sorted({line.split("file=", 1)[1].split(",", 1)[0] for line in lines})
        self.assertEqual((status, found), (1 if paths else 0, sorted(paths)), self.said)

    def pull_request(self, depth=1, event="pull_request", **inputs):
        head, merge = self.merge()
        clone = self.clone("refs/pull/7/merge", depth)
        values = {"HEAD": head, "BASE": self.base, "MERGE": merge}
        return self.run_action(clone, "pull_request", event, values, **inputs)

    def test_a_pull_request_in_a_shallow_clone(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        self.assert_reported(self.pull_request(), "migrations/3.sql")
        self.assertIn("index-without-concurrently", self.summary)
        self.assertEqual((self.outputs["errors"], self.outputs["files"]), ("1", "1"))
        sarif = json.loads(Path(self.outputs["sarif-file"]).read_text())
        self.assertEqual(sarif["version"], "2.1.0")

    def test_a_pull_request_in_a_whole_clone(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        self.assert_reported(self.pull_request(depth=0), "migrations/3.sql")

    def test_the_head_of_a_pull_request_in_a_shallow_clone(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        head = self.commit("change")
        git(self.upstream, "checkout", "-q", "main")
        self.write("migrations/0.sql", INDEX)
        base = self.commit("main goes on")
        clone = self.clone(head)
        values = {"HEAD": head, "BASE": base, "MERGE": ZEROS}
        self.assert_reported(self.run_action(clone, "pull_request", values=values), "migrations/3.sql")

    def test_a_git_of_the_checkout_is_not_run(self):
        ran = self.folder / "ran"
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.write("git", f"#!/bin/sh\ntouch {ran}\nexec /usr/bin/env -i PATH=/usr/bin:/bin git \"$@\"\n")
        (self.upstream / "git").chmod(0o755)
        self.commit("change")
        self.searched_first = [str(self.folder / "clone"), ""]
        self.assert_reported(self.pull_request(), "migrations/3.sql")
        self.assertFalse(ran.exists(), self.said)

    def test_a_pull_request_that_is_clean(self):
        self.branch()
        self.write("migrations/3.sql", CLEAN)
        self.commit("change")
        self.assert_reported(self.pull_request(comment="true"))
        self.assertEqual(self.api.comments, [])

    def test_changes_of_the_schema_are_shown(self):
        self.branch()
        columns = "".join(f", c{number} int" for number in range(60))
        tables = "".join(f"CREATE TABLE t{number} (id int);\n" for number in range(120))
        text = f'{CLEAN}DROP INDEX orders_note;\nCREATE TABLE "`<b>|" (id int{columns});\n{tables}'
        self.write("migrations/3.sql", text)
        self.commit("change")
        self.pull_request(comment="true", paths="migrations")
        self.assertIn("### Schema changes", self.summary)
        self.assertIn("- adds column `public.orders.other`: `text`\n", self.summary)
        self.assertIn("- drops index `public.orders.orders_note`\n", self.summary)
        self.assertIn('``public.`<b>|``', self.summary)
        self.assertRegex(self.summary, "and [0-9]+ more characters\n")
        self.assertRegex(self.summary, "\n23 more changes: `pgvet diff` lists them.\n")
        self.assertIn("### Schema changes", self.api.comments[-1]["body"])

    def test_a_schema_that_stays_is_not_mentioned(self):
        self.branch()
        self.write("migrations/3.sql", "SET lock_timeout = '2s';\nUPDATE orders SET note = 'x' WHERE id = 1;\n")
        self.commit("change")
        self.pull_request()
        self.assertNotIn("Schema changes", self.summary)

    def test_a_pull_request_without_sql(self):
        self.branch()
        self.write("README.md", "nothing to see")
        self.commit("change")
        self.assert_reported(self.pull_request())
        self.assertEqual(self.outputs["files"], "0")

    def test_a_migration_that_is_renamed_and_changed(self):
        self.branch()
        git(self.upstream, "mv", "migrations/2.sql", "migrations/4.sql")
        self.write("migrations/4.sql", INDEX + "SELECT 1;\n")
        self.commit("rename")
        self.assert_reported(self.pull_request(), "migrations/2.sql", "migrations/4.sql")

    def test_a_deleted_migration_is_reported(self):
        self.branch()
        git(self.upstream, "rm", "-q", "migrations/2.sql")
        self.commit("delete")
        self.assertEqual(self.pull_request(), 0, self.said)
        self.assertIn("::warning file=migrations/2.sql,line=1,endLine=1,title=pgvet (applied-migration-removed)", self.said)

    def test_three_hundred_changed_files(self):
        self.branch()
        for number in range(100, 400):
            self.write(f"migrations/{number}.sql", INDEX.replace("orders_note", f"i{number}"))
        self.commit("many")
        status = self.pull_request()
        self.assertEqual((status, self.outputs["files"], self.outputs["errors"]), (1, "300", "300"), self.said)

    def test_a_push(self):
        self.write("migrations/3.sql", NEW_INDEX)
        head = self.commit("change")
        values = {"BRANCH": "main", "BEFORE": self.base, "HEAD": head}
        self.assert_reported(self.run_action(self.clone("main"), "push", values=values), "migrations/3.sql")

    def test_the_first_push_of_a_branch(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        head = self.commit("change")
        values = {"BRANCH": "feature", "BEFORE": ZEROS, "HEAD": head}
        self.assert_reported(self.run_action(self.clone("feature"), "push", values=values), "migrations/3.sql")

    def test_a_forced_push_whose_old_commit_is_gone(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        head = self.commit("change")
        values = {"BRANCH": "feature", "BEFORE": "1" * 40, "HEAD": head}
        self.assert_reported(self.run_action(self.clone("feature"), "push", values=values), "migrations/3.sql")

    def test_other_events_report_all(self):
        status = self.run_action(self.clone("main"), "schedule", payload="")
        self.assert_reported(status, "migrations/2.sql")

    def test_a_base_that_is_given(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        status = self.run_action(self.clone("feature"), "workflow_dispatch", payload="", base="main")
        self.assert_reported(status, "migrations/3.sql")

    def test_a_base_that_is_not_there(self):
        status = self.run_action(self.clone("main"), "workflow_dispatch", payload="", base="no-such-branch")
        self.assertEqual(status, 2)
        self.assertIn("::error::`no-such-branch` is no commit or branch", self.said)

    def test_histories_without_a_common_commit(self):
        git(self.upstream, "checkout", "-q", "--orphan", "other")
        head = self.commit("orphan")
        values = {"HEAD": head, "BASE": self.base, "MERGE": ZEROS}
        self.assertEqual(self.run_action(self.clone("other"), "pull_request", values=values), 2)
        self.assertIn("fetch-depth: 0", self.said)

    def test_no_repository(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertEqual(self.run_action(empty, "push", values={"BEFORE": ZEROS}), 2)
        self.assertIn("actions/checkout", self.said)

    def test_inputs_reach_the_program(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        status = self.pull_request(fail_on="never", args="--ignore index-without-concurrently", annotations="false")
        self.assertEqual(status, 0)
        self.assertNotIn("::error ", self.said)
        self.assertEqual(self.outputs["errors"], "0")

    def test_a_comment_is_made_once_and_kept_up_to_date(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        self.api.comments = [{"id": number, "body": "thanks"} for number in range(150)]
        head, merge = self.merge()
        clone = self.clone("refs/pull/7/merge")
        values = {"HEAD": head, "BASE": self.base, "MERGE": merge}
        run = lambda **inputs: self.run_action(clone, "pull_request", values=values, comment="true", **inputs)
        run()
        self.assertEqual(len(self.api.comments), 151)
        self.assertIn("index-without-concurrently", self.api.comments[-1]["body"])
        run()
        run(args="--ignore index-without-concurrently")
        self.assertEqual(len(self.api.comments), 151)
        self.assertNotIn("index-without-concurrently", self.api.comments[-1]["body"])
        writes = [method for method, _ in self.api.asked if method != "GET"]
        self.assertEqual(writes, ["POST", "PATCH"])

    def test_a_comment_of_a_stranger_is_not_taken_over(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        stranger = {"id": 1, "body": "<!-- pgvet --> all is well", "user": {"type": "User"}, "author_association": "NONE"}
        self.api.comments = [stranger]
        self.pull_request(comment="true")
        self.assertEqual(stranger["body"], "<!-- pgvet --> all is well")
        self.assertEqual(len(self.api.comments), 2)

    def test_the_search_for_the_earlier_comment_ends_without_a_second_one(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        ours = {"id": 5000, "body": "<!-- pgvet --> old", "user": {"type": "Bot"}}
        self.api.comments = [{"id": number, "body": "thanks"} for number in range(5000)] + [ours]
        head, merge = self.merge()
        clone = self.clone("refs/pull/7/merge")
        values = {"HEAD": head, "BASE": self.base, "MERGE": merge}
        run = lambda: self.run_action(clone, "pull_request", values=values, comment="true")
        run()
        self.assertEqual({method for method, _ in self.api.asked}, {"GET"})
        self.assertIn("::warning::no comment was written: pgvet's earlier comment is not among the first 5,000", self.said)
        # One fewer before it, and it is found.
        del self.api.comments[0]
        run()
        self.assertEqual([method for method, _ in self.api.asked if method != "GET"], ["PATCH"])

    def test_a_program_of_the_checkout_is_not_run(self):
        self.branch()
        for name in ("git", "pgvet", "python3"):
            self.write(name, "#!/bin/sh\ntouch ../pwned\n")
            (self.upstream / name).chmod(0o755)
        for name in ("json.py", "venv.py", "pip.py", "tempfile.py", "changes.py", "comment.py"):
            self.write(name, "open('../pwned', 'w')\n")
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        self.assert_reported(self.pull_request(), "migrations/3.sql")
        self.assertFalse((self.folder / "pwned").exists())

    def test_only_a_wheel_with_a_known_checksum_is_installed(self):
        sys.path.insert(0, str(HERE.parent))
        import install

        good = "sha256:" + "0" * 64
        for version, hashes in [("", ""), ("1.2.3", ""), ("latest", ""), ("1.2.3 --index-url x", good), ("1.2.3", "md5:0")]:
            with self.assertRaises(install.Refusal, msg=f"{version} {hashes}"):
                install.requirement(version, hashes)
        self.assertEqual(install.requirement("1.2.3", good), f"pgvet==1.2.3 --hash={good}")
        command = " ".join(map(str, install.installing(Path("python"), Path("wanted"))))
        for option in ["-I -m pip", "--no-deps", "--only-binary :all:", "--require-hashes"]:
            self.assertIn(option, command)

    def test_a_release_records_the_checksums_of_its_wheels(self):
        import importlib.machinery
        import importlib.util

        path = str(HERE.parent.parent / ".ci/wheel-hashes")
        loader = importlib.machinery.SourceFileLoader("wheel_hashes", path)
        spec = importlib.util.spec_from_loader("wheel_hashes", loader)
        wheel_hashes = importlib.util.module_from_spec(spec)
        loader.exec_module(wheel_hashes)
        root, dist = self.folder / "root", self.folder / "dist"
        (root / "action").mkdir(parents=True)
        dist.mkdir()
        (root / "Cargo.toml").write_text('[workspace.package]\nversion = "1.2.3"\n')
        recorded = root / "action/hashes.txt"
        recorded.write_text("# Checksums\n1.2.2 sha256:" + "1" * 64 + "\n")

        def run(task):
            return wheel_hashes.main([task, str(dist)], root)

        self.assertEqual(run("record"), 1, "there is no wheel")
        (dist / "pgvet-1.2.3-py3-none-win_amd64.whl").write_bytes(b"a")
        self.assertEqual(run("check"), 1, "a wheel that is not recorded")
        self.assertEqual(run("record"), 0)
        self.assertEqual(run("check"), 0)
        self.assertEqual(len(recorded.read_text().splitlines()), 3, "other releases stay")
        (dist / "pgvet-1.2.3-py3-none-win_amd64.whl").write_bytes(b"b")
        self.assertEqual(run("check"), 1, "another wheel of the same name")
        (dist / "pgvet-1.2.4-py3-none-win_amd64.whl").write_bytes(b"a")
        self.assertEqual(run("record"), 1, "a wheel of another version")

    def test_a_file_of_the_checkout_is_not_imported_by_the_installation(self):
        checkout, temporary = self.folder / "checkout", self.folder / "temporary"
        checkout.mkdir()
        temporary.mkdir()
        for name in ("venv.py", "pip.py", "subprocess.py", "re.py", "sitecustomize.py"):
            (checkout / name).write_text("open('pwned', 'w')\n")
        environment = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(temporary)}
        environment |= {"GITHUB_ACTION_PATH": str(ACTION.parent), "PYTHONPATH": str(checkout)}
        # A checksum that no wheel has: the installation goes as far as pip, which finds nothing to install.
        environment |= {"PGVET_HASHES": "sha256:" + "0" * 64, "PGVET_VERSION": "0.0.1", "PIP_NO_INDEX": "1"}
        run = subprocess.run(step("install.py"), cwd=checkout, env=environment, capture_output=True, text=True)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("No matching distribution found for pgvet==0.0.1", run.stderr)
        self.assertFalse([*self.folder.glob("*/pwned"), *self.folder.glob("**/pgvet/pwned")])

    def test_a_version_without_a_known_checksum_is_not_installed(self):
        environment = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(self.folder), "GITHUB_ACTION_PATH": str(ACTION.parent)}
        run = subprocess.run(step("install.py"), cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn("::error::this version of the action has no checksum", run.stdout)

    def test_a_base_that_is_an_option_is_refused(self):
        status = self.run_action(self.clone("main"), "workflow_dispatch", payload="", base="--upload-pack=touch pwned")
        self.assertEqual(status, 2)
        self.assertIn("is no commit or branch", self.said)

    def test_a_fork_has_no_right_to_comment(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        self.api.reads_only = True
        status = self.pull_request(event="pull_request_from_fork", comment="true")
        self.assertEqual(status, 1)
        self.assertIn("::warning::no comment was written: the token may not write", self.said)

    def test_the_changed_migrations_are_traced(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        status = self.pull_request(trace="true", trace_args="--pg-version 18")
        self.assertEqual(status, 1, self.said)
        self.assertRegex(self.summary, r"SHARE .*orders", self.said)

    def test_migrations_in_code_are_captured(self):
        one = "INSERT INTO knex_migrations (name, batch) VALUES ('1_orders.js', 1)\n"
        two = "INSERT INTO knex_migrations (name, batch) VALUES ('2_note.js', 1)\n"
        self.write("migrations/1_orders.js", "")
        self.base = self.commit("a migration in code")
        self.branch()
        self.write("migrations/2_note.js", "// an index of orders (note)\n")
        table = "CREATE TABLE knex_migrations (name text, batch int)\n"
        note = "CREATE INDEX orders_note ON orders (note)\n"
        self.write("sent.txt", table + TABLE + one + note + two)
        self.commit("change")
        command = f"{sys.executable} {HERE / 'send.py'} sent.txt"
        status = self.pull_request(capture=command)
        self.assert_reported(status, "migrations/2_note.js")
        self.assertIn("index-without-concurrently", self.summary)
        self.assertEqual(self.outputs["files"], "1")

    def test_what_the_repository_runs_finds_no_token(self):
        """Neither the command nor a process that it could look into has the token."""
        search = f"""import os, pathlib
read = []
for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        read.append(path.read_bytes())
    except OSError:
        pass
assert sum(b"RUNNER_TEMP=" in text for text in read) > 1, "it sees the processes of the action"
pathlib.Path(os.environ["RUNNER_TEMP"], "seen").write_bytes(b"".join(text for text in read if b"{TOKEN}" in text))
"""
        self.branch()
        self.write("search.py", search)
        self.write("sent.txt", TABLE)
        self.commit("change")
        command = f"sh -c '{sys.executable} search.py && exec {sys.executable} {HERE / 'send.py'} sent.txt'"
        self.pull_request(capture=command)
        self.assertEqual((self.folder / "seen").read_bytes(), b"", self.said)

    def test_a_capture_does_not_comment(self):
        self.branch()
        self.write("sent.txt", TABLE)
        self.commit("change")
        command = f"{sys.executable} {HERE / 'send.py'} sent.txt"
        self.assertEqual(self.pull_request(capture=command, comment="true"), 2, self.said)
        self.assertIn("::error::`capture` runs code of the repository", self.said)
        self.assertEqual((self.api.asked, self.outputs), ([], {}))

    def test_a_trace_does_not_comment(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        self.assertEqual(self.pull_request(trace="true", comment="true"), 2, self.said)
        self.assertIn("::error::`trace` runs SQL, which can start programs", self.said)
        self.assertEqual((self.api.asked, self.outputs), ([], {}))
        report = {"report": "report.md"}
        self.assertTrue(is_run("comment.py", {"comment": "true"}, report))
        for runs in ({"trace": "true"}, {"capture": "make migrate"}):
            self.assertFalse(is_run("comment.py", {"comment": "true", **runs}, report), runs)

    def test_a_capture_that_fails_is_an_error(self):
        self.branch()
        self.commit("change")
        self.assertEqual(self.pull_request(capture="false"), 1, self.said)
        self.assertIn("::error::pgvet could not check the migrations", self.said)

    def test_a_capture_has_no_paths(self):
        self.branch()
        self.commit("change")
        self.assertEqual(self.pull_request(capture="true", paths="migrations"), 2, self.said)
        self.assertIn("::error::`paths` names files with SQL", self.said)

    def test_arguments_that_no_shell_reads_are_refused(self):
        self.branch()
        self.write("migrations/3.sql", NEW_INDEX)
        self.commit("change")
        self.assertEqual(self.pull_request(args="--ignore 'half"), 2, self.said)
        self.assertIn("::error::`args` cannot be read as in a shell: No closing quotation", self.said)


if __name__ == "__main__":
    unittest.main()
