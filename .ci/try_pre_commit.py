"""Real pre-commit in a repository made for it: python3 try_pre_commit.py WHEELS REPOSITORY"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

WHEELS, REPOSITORY = map(pathlib.Path, sys.argv[1:3])

LOCAL = """repos:
  - repo: local
    hooks:
      - id: pgvet
        name: pgvet
        entry: pgvet check
        language: python
        additional_dependencies: [pgvet]
        files: \\.sql$
        require_serial: true
"""

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


def run(folder, *command, status=0, offline=False, **environment):
    """What a command prints; it must end with `status`."""
    settings = {
        **os.environ,
        "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org",
        "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org",
        "PIP_FIND_LINKS": str(WHEELS),
        **environment,
    }
    if offline:
        settings |= {"PIP_NO_INDEX": "1", "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
        if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0:
            command = ("unshare", "-rn", *command)
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == status, f"{command} ended with {done.returncode}, not {status}:\n{said}"
    return said


def write(root, path, text):
    path = root / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def repository(root, config, history):
    root.mkdir()
    run(root, "git", "init", "-q", "-b", "main")
    for number in range(history):
        write(root, f"migrations/{number:05}.sql", f"CREATE TABLE t{number} (id int PRIMARY KEY, v varchar(9));\n")
    write(root, ".pre-commit-config.yaml", config)
    run(root, "git", "add", "-A")
    run(root, "git", "commit", "-q", "-m", "past")
    run(root, "pre-commit", "install")
    run(root, "pre-commit", "install-hooks")


def try_hook(root, history):
    """A clean commit, and a bad one, whose history is needed to tell."""
    widen = "SET lock_timeout = '1s';\nALTER TABLE t0 ALTER COLUMN v TYPE varchar({});\n"
    write(root, "migrations/90000.sql", widen.format(20))
    run(root, "git", "add", "-A")
    run(root, "git", "commit", "-m", "clean", offline=True)
    write(root, "migrations/90001.sql", widen.format(5))
    write(root, "README.md", "more")
    run(root, "git", "add", "-A")
    begin = time.monotonic()
    said = run(root, "git", "commit", "-m", "bad", status=1, offline=True)
    took = time.monotonic() - begin
    assert "type-change-rewrites-table" in said and "90001.sql:2:" in said, said
    assert f"after {history + 1} earlier migrations" in said, said
    print(f"  clean commit passes, bad one is refused in {took:.2f} s after {history} migrations", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        os.environ["PRE_COMMIT_HOME"] = str(folder / "cache")
        repository(folder / "local", LOCAL, 2000)
        try_hook(folder / "local", 2000)

        mirror = folder / "mirror"
        mirror.mkdir()
        run(mirror, "git", "init", "-q", "-b", "main")
        write(mirror, ".pre-commit-hooks.yaml", (REPOSITORY / ".pre-commit-hooks.yaml").read_text())
        write(mirror, "pyproject.toml", MIRROR)
        run(mirror, "git", "add", "-A")
        run(mirror, "git", "commit", "-q", "-m", "hooks")
        revision = run(mirror, "git", "rev-parse", "HEAD").strip()
        for hook in ("pgvet", "pgvet-staged"):
            config = f"repos:\n  - repo: {mirror.as_uri()}\n    rev: {revision}\n    hooks:\n      - id: {hook}\n"
            repository(folder / hook, config, 20)
            try_hook(folder / hook, 20)


if __name__ == "__main__":
    main()
