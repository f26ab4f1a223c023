"""Programs on PATH, and none that the checkout brings: Windows looks in the current folder first."""

from __future__ import annotations

import os
from pathlib import Path

ENDINGS = (".exe",) if os.name == "nt" else ("",)


def find(name: str) -> str | None:
    """The path of a program outside of the checkout, which is the current folder."""
    checkout = Path.cwd().resolve()
    for folder in filter(os.path.isabs, os.get_exec_path()):
        for ending in ENDINGS:
            path = Path(folder, name + ending)
            if path.is_file() and os.access(path, os.X_OK) and not path.resolve().is_relative_to(checkout):
                return str(path)
    return None
