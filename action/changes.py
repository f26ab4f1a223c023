"""The commit against which a change is judged, fetched where the checkout is too shallow to have it."""

from __future__ import annotations

import subprocess

import programs

ZEROS = "0" * 40

# How many more commits are fetched, until there is one that both sides have.
DEEPER = (50, 500, 5000)


class Failure(Exception):
    """What cannot be found out, with the next step."""


# What a checkout may have configured to run.
SETTINGS = (
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
)


def git(*arguments: str) -> str | None:
    """What git prints, or `None` where it fails."""
    program = programs.find("git")
    if program is None:
        raise Failure("there is no git on PATH outside of the checkout")
    settings = [option for setting in SETTINGS for option in ("-c", setting)]
    run = subprocess.run([program, *settings, *arguments], capture_output=True, text=True, check=False)
    return run.stdout.strip() if run.returncode == 0 else None


def base(event_name: str, event: dict, wanted: str) -> str | None:
    """The commit since which changes count; `None` where the event is no change."""
    if git("rev-parse", "--git-dir") is None:
        raise Failure("this is no git repository: run actions/checkout before pgvet")
    if wanted.startswith("-"):
        raise Failure(f"`{wanted}` is no commit or branch of this repository")
    if wanted:
        return merge_base(wanted, wanted)
    if event_name in ("pull_request", "pull_request_target"):
        pull = event["pull_request"]
        return before_merge(pull) or merge_base(pull["base"]["sha"], pull["base"]["ref"])
    if event_name == "merge_group":
        return merge_base(event["merge_group"]["base_sha"], event["merge_group"]["base_ref"])
    if event_name == "push":
        return before_push(event)
    return None


def before_merge(pull: dict) -> str | None:
    """GitHub checks out what merging would give; then its first parent is what the pull request is merged into, and
    two commits are all that is needed."""
    head = git("rev-parse", "HEAD")
    for _ in range(2):
        parents = (git("rev-list", "--parents", "-n", "1", "HEAD") or "").split()[1:]
        if len(parents) == 2 and parents[1] == pull["head"]["sha"]:
            return parents[0] if has(parents[0]) else None
        if head == pull["head"]["sha"] or git("fetch", "--no-tags", "--quiet", "--deepen=1", "origin") is None:
            return None
    return None


def before_push(event: dict) -> str | None:
    before = event.get("before", ZEROS)
    if event.get("deleted"):
        return None
    # After a forced push the old commit may be gone.
    if before != ZEROS and (has(before) or fetch(before)):
        return merge_base(before, before)
    branch = event["repository"]["default_branch"]
    if event.get("ref") == f"refs/heads/{branch}":
        return None
    return merge_base(f"origin/{branch}", branch)


def has(commit: str) -> bool:
    return git("cat-file", "-e", commit + "^{commit}") is not None


def fetch(what: str) -> bool:
    return git("fetch", "--no-tags", "--quiet", "--depth=1", "--", "origin", what) is not None


def merge_base(commit: str, branch: str) -> str:
    """The last commit that HEAD has in common with another one."""
    if not has(commit):
        name = commit.removeprefix("origin/")
        if not (fetch(f"+refs/heads/{name}:refs/remotes/origin/{name}") or fetch(commit)):
            raise Failure(f"`{commit}` is no commit or branch of this repository")
        commit = f"origin/{name}" if has(f"origin/{name}") else commit
    for deepen in (0, *DEEPER):
        if deepen:
            git("fetch", "--no-tags", "--quiet", f"--deepen={deepen}", "--", "origin", commit.removeprefix("origin/"))
            git("fetch", "--no-tags", "--quiet", f"--deepen={deepen}", "origin")
        found = git("merge-base", commit, "HEAD")
        if found:
            return found
        if git("rev-parse", "--is-shallow-repository") != "true":
            break
    raise Failure(
        f"this checkout and `{branch}` have no commit in common: set `fetch-depth: 0` in actions/checkout"
    )
