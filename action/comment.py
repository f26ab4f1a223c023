"""One comment on a pull request, made once and then kept up to date.

A step of its own, which alone gets the token: the check before it may run what the repository says.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from commands import command  # noqa: E402

# Stands first in the comment, by which it is found again.
MARK = "<!-- pgvet -->"

MAX_COMMENT = 60_000

# Anybody may write comments, so the search for ours is bounded.
PAGE = 100
MAX_PAGES = 50


def update(event: dict, report: str, is_needed: bool, token: str) -> str | None:
    """Writes the comment. Returns what went wrong, if something did: a comment is no reason to fail."""
    pull = event.get("pull_request")
    if not pull:
        return None
    if not token:
        return "no comment was written: there is no token"
    api = Api(token)
    body = f"{MARK}\n{cut(report)}"
    try:
        for known in api.comments(pull["number"]):
            if (known["body"] or "").startswith(MARK) and is_ours(known):
                if known["body"] != body:
                    api.send("PATCH", f"issues/comments/{known['id']}", {"body": body})
                return None
        if is_needed:
            api.send("POST", f"issues/{pull['number']}/comments", {"body": body})
    except urllib.error.HTTPError as error:
        why = "the token may not write: pull requests from forks get one that reads only, others need `pull-requests: write`"
        reason = why if error.code in (401, 403, 404) else str(error)
        return f"no comment was written: {reason}"
    except TooManyComments:
        return (
            f"no comment was written: pgvet's earlier comment is not among the first {MAX_PAGES * PAGE:,} comments, "
            "and later ones were not searched"
        )
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        return f"no comment was written: {error}"
    return None


def is_ours(known: dict) -> bool:
    """Whether somebody who may write to the repository has written the comment: anyone can begin one with the mark, and
    change it after the report is in it."""
    is_bot = known.get("user", {}).get("type") == "Bot"
    return is_bot or known.get("author_association") in ("OWNER", "MEMBER", "COLLABORATOR")


class TooManyComments(Exception):
    """Ours may be among the comments that were not read: another one on each run would flood the pull request."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token to another host."""

    def redirect_request(self, *_):
        return None


def cut(report: str) -> str:
    if len(report) <= MAX_COMMENT:
        return report
    return report[:MAX_COMMENT].rsplit("\n", 1)[0] + "\n\nThe rest is in the summary of the job.\n"


class Api:
    def __init__(self, token: str) -> None:
        root = os.environ.get("GITHUB_API_URL", "https://api.github.com")
        self.root = f"{root}/repos/{os.environ['GITHUB_REPOSITORY']}/"
        self.token = token

    def comments(self, number: int):
        for page in range(1, MAX_PAGES + 1):
            found = self.send("GET", f"issues/{number}/comments?per_page={PAGE}&page={page}")
            yield from found
            if len(found) < PAGE:
                return
        raise TooManyComments

    def send(self, method: str, path: str, content: dict | None = None):
        data = json.dumps(content).encode() if content is not None else None
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self.token}",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "pgvet",
        }
        request = urllib.request.Request(self.root + path, data=data, headers=headers, method=method)
        with urllib.request.build_opener(NoRedirects).open(request, timeout=30) as response:
            return json.loads(response.read() or "null")


def main() -> None:
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    report = Path(os.environ["PGVET_REPORT"]).read_text(encoding="utf-8")
    is_needed = os.environ["PGVET_WORTH_A_COMMENT"] == "true"
    problem = update(event, report, is_needed, os.environ.get("INPUT_TOKEN", "").strip())
    if problem:
        command("warning", problem)


if __name__ == "__main__":
    main()
