"""What action.yml does: finds what changed, checks it, and shows the result where GitHub shows it.

Only the standard library of Python 3.9 is used, so that every runner has all it takes.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import changes  # noqa: E402
import programs  # noqa: E402
from commands import command  # noqa: E402

# GitHub refuses larger summaries.
MAX_SUMMARY = 1_000_000


def given(name: str) -> str:
    return os.environ.get("INPUT_" + name, "").strip()


def is_on(name: str) -> bool:
    return given(name).lower() == "true"


def append(variable: str, text: str) -> None:
    path = os.environ.get(variable)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


def shortened(text: str, limit: int) -> str:
    if len(text.encode()) <= limit:
        return text
    note = "\n\nThe rest is omitted because it is too long to be shown here.\n"
    kept = text.encode()[: limit - len(note)].decode(errors="ignore")
    return kept.rsplit("\n", 1)[0] + note


class BadInput(Exception):
    """An input of the action that cannot be read."""


def words(name: str) -> list[str]:
    """The words of an input, as a shell splits them."""
    try:
        return shlex.split(given(name))
    except ValueError as error:
        label = name.lower().replace("_", "-")
        raise BadInput(f"`{label}` cannot be read as in a shell: {error}. Close the quotation in the workflow") from error


def selection(event: dict) -> list[str]:
    """The options of pgvet that name what is reported."""
    if is_on("ALL"):
        return []
    found = changes.base(os.environ.get("GITHUB_EVENT_NAME", ""), event, given("BASE"))
    if found is None:
        command("notice", "the event does not say what has changed, so all migrations are reported")
        return []
    print(f"reporting what changed since {found}", flush=True)
    return ["--since", found]


def paths() -> list[str]:
    return [line.strip() for line in given("PATHS").splitlines() if line.strip()]


def common(selected: list[str]) -> list[str]:
    options = list(selected)
    if given("PG_VERSION"):
        options += ["--pg-version", given("PG_VERSION")]
    return options + (["--", *paths()] if paths() else [])


def program() -> str:
    """The pgvet that the step before has installed, or the one on PATH."""
    if given("VERSION") != "installed":
        found = Path(os.environ["RUNNER_TEMP"], "pgvet").glob("*/pgvet*")
        return str(next(found))
    found = programs.find("pgvet")
    if not found:
        raise BadInput("there is no pgvet on PATH outside of the checkout: install it in a step before")
    return found


def check(selected: list[str], folder: Path) -> int:
    outputs = [f"{name}={folder / file}" for name, file in FILES.items()]
    screen = "github" if is_on("ANNOTATIONS") else "concise"
    formats = [option for output in [screen, *outputs] for option in ("--format", output)]
    fail_on = ["--fail-on", given("FAIL_ON")] if given("FAIL_ON") else []
    migrate = words("CAPTURE")
    if migrate:
        arguments = ["capture", *formats, *words("CAPTURE_ARGS"), *fail_on, *common(selected), "--", *migrate]
    else:
        arguments = ["check", *formats, *words("ARGS"), *fail_on, *common(selected)]
    return subprocess.run([program(), *arguments], check=False).returncode


REPORT = "report.md"
FILES = {"json": "pgvet.json", "markdown": "pgvet.md", "sarif": "pgvet.sarif"}


def trace(selected: list[str]) -> tuple[int, str]:
    options = words("TRACE_ARGS")
    arguments = [program(), "trace", "--format", "markdown", *options, *common(selected)]
    run = subprocess.run(arguments, stdout=subprocess.PIPE, check=False, text=True, encoding="utf-8")
    return run.returncode, run.stdout


def schema_changes(selected: list[str]) -> str:
    """What the change does to the schema: a section for each folder whose schema differs, or nothing."""
    if not selected:
        return ""
    folders = [path for path in paths() if Path(path).is_dir()] or [""]
    version = given("PG_VERSION")
    options = ["--pg-version", version] if version.isdecimal() else []
    sections = []
    for folder in folders:
        sides = [f"{selected[1]}:{folder}", folder or "."]
        arguments = [program(), "diff", "--format", "markdown", "--quiet", *options, "--", *sides]
        run = subprocess.run(arguments, capture_output=True, check=False, text=True, encoding="utf-8")
        if run.returncode == 1:
            sections.append(run.stdout)
        elif run.returncode != 0:
            print(f"schema changes are not shown: {run.stderr.strip()}", flush=True)
    return "\n".join(sections)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def refuse_contradictions() -> None:
    captures = bool(words("CAPTURE"))
    if captures and paths():
        raise BadInput("`paths` names files with SQL, and `capture` runs a command: remove one of them")
    if is_on("COMMENT") and (captures or is_on("TRACE")):
        runs = "`capture` runs code of the repository" if captures else "`trace` runs SQL, which can start programs"
        raise BadInput(
            f"{runs}, and must not be in one job with the token for `comment`: "
            "remove one of them, or comment in another job that only checks files"
        )


def main() -> int:
    refuse_contradictions()
    event_path = os.environ.get("GITHUB_EVENT_PATH")
    event = json.loads(Path(event_path).read_text(encoding="utf-8")) if event_path else {}
    try:
        selected = selection(event)
    except changes.Failure as failure:
        command("error", str(failure))
        return 2
    folder = Path(tempfile.mkdtemp(prefix="pgvet-", dir=os.environ.get("RUNNER_TEMP")))
    status = check(selected, folder)
    report = read(folder / FILES["markdown"])
    if status != 0 and not report:
        command("error", "pgvet could not check the migrations: the log says why")
        return status
    counts = json.loads(read(folder / FILES["json"]) or "{}").get("summary", {})
    reads_files = not given("CAPTURE")
    if is_on("SCHEMA") and reads_files and counts.get("files"):
        section = schema_changes(selected)
        report += f"\n{section}" if section else ""
    if is_on("TRACE") and reads_files and counts.get("files"):
        trace_status, traced = trace(selected)
        report += "\n" + traced
        status = max(status, trace_status)
    if is_on("SUMMARY"):
        append("GITHUB_STEP_SUMMARY", shortened(report, MAX_SUMMARY) + "\n")
    for name in ("errors", "warnings", "files"):
        append("GITHUB_OUTPUT", f"{name}={counts.get(name, 0)}\n")
    append("GITHUB_OUTPUT", f"sarif-file={folder / FILES['sarif']}\n")
    # For the step that comments. This one has no token, because it may run what the repository says.
    (folder / REPORT).write_text(report, encoding="utf-8")
    has_findings = any(counts.get(name) for name in ("errors", "warnings", "infos"))
    append("GITHUB_OUTPUT", f"report={folder / REPORT}\n")
    append("GITHUB_OUTPUT", f"worth-a-comment={str(has_findings).lower()}\n")
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadInput as refused:
        command("error", str(refused))
        sys.exit(2)
