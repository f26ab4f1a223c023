"""The findings of two builds of pgvet over the public repositories that fixtures/history/README.md pins."""

import argparse
import collections
import json
import pathlib
import re
import subprocess

ROW = re.compile(r"^\| ([\w.-]+/[\w.-]+) \| ([0-9a-f]{40}) \|", re.MULTILINE)
# More differences than these are counted only.
SHOWN = 100


def repositories(readme):
    return ROW.findall(readme.read_text(encoding="utf-8"))


def check_out(name, commit, folder):
    if folder.exists():
        return
    folder.mkdir(parents=True)
    for arguments in (
        ["init", "-q"],
        ["remote", "add", "origin", f"https://github.com/{name}"],
        ["fetch", "-q", "--depth=1", "--filter=blob:limit=2m", "origin", commit],
        ["checkout", "-q", "FETCH_HEAD"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True)


def findings(program, folder):
    """How often each finding is made: rule, place and message."""
    arguments = [program, "check", "--no-config", "--format", "json", "."]
    run = subprocess.run(arguments, cwd=folder, capture_output=True, check=False)
    if not run.stdout:
        raise SystemExit(f"{program} in {folder}: {run.stderr.decode()}")
    found = json.loads(run.stdout)["diagnostics"]
    return collections.Counter(
        (one["rule"], one["path"], one["range"]["start"]["line"], one["message"]) for one in found
    )


def report(differences):
    """Markdown: `differences` maps a repository to what is gone and what is new."""
    changed = {name: sides for name, sides in differences.items() if sides[0] or sides[1]}
    lines = ["## Findings in public migrations", ""]
    if not changed:
        return "\n".join([*lines, f"None differs in {len(differences)} repositories."])
    for name, (gone, new) in changed.items():
        lines += [f"### {name}: {sum(new.values())} new, {sum(gone.values())} gone", ""]
        marked = [("+", one) for one in sorted(new)] + [("-", one) for one in sorted(gone)]
        lines += ["```diff"] + [f"{mark} {path}:{line} [{rule}] {message}" for mark, (rule, path, line, message) in marked[:SHOWN]]
        lines += ["```", ""]
        if len(marked) > SHOWN:
            lines += [f"and {len(marked) - SHOWN} more", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--branch", required=True)
    parser.add_argument("--checkouts", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    readme = pathlib.Path(__file__).parent.parent / "fixtures/history/README.md"
    differences = {}
    for name, commit in repositories(readme):
        folder = arguments.checkouts / name.rsplit("/", 1)[1]
        check_out(name, commit, folder)
        base, branch = findings(arguments.base, folder), findings(arguments.branch, folder)
        differences[name] = (base - branch, branch - base)
    print(report(differences))


if __name__ == "__main__":
    main()
