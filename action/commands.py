"""What the action tells GitHub on its output."""

from __future__ import annotations


def command(kind: str, message: str) -> None:
    """Tells GitHub something: <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>."""
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::{kind}::{escaped}", flush=True)
