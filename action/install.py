"""Installs the pgvet that belongs to this version of the action: a wheel whose checksum is known, and nothing else.

It runs isolated (`python3 -I`) and outside of the checkout, so that no file of a pull request is imported.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

ACTION = Path(__file__).resolve().parent

# A line for each wheel of each release: `0.1.0 sha256:...`.
RECORDED = ACTION / "hashes.txt"


class Refusal(Exception):
    """Why nothing is installed, with the next step."""


def own_version() -> str:
    """The version of the repository that holds the action."""
    text = (ACTION.parent / "Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^version = "([^"]+)"$', text, re.MULTILINE).group(1)


def recorded(version: str) -> list[str]:
    lines = RECORDED.read_text(encoding="utf-8").splitlines() if RECORDED.exists() else []
    return [words[1] for words in map(str.split, lines) if len(words) == 2 and words[0] == version]


def requirement(version: str, hashes: str) -> str:
    """The one line that pip is to install, with its checksums."""
    version = version or own_version()
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?", version):
        raise Refusal(f"`{version}` is no version: write one such as 1.2.3, or `installed`")
    known = hashes.split() or recorded(version)
    wrong = [one for one in known if not re.fullmatch(r"sha256:[0-9a-f]{64}", one)]
    if wrong:
        raise Refusal(f"`{wrong[0]}` is no checksum: write `sha256:` and 64 hexadecimal digits")
    if not known:
        raise Refusal(
            f"this version of the action has no checksum of pgvet {version}: use the action of that release, "
            "give `hashes` (its SHA256SUMS has them), or install pgvet in a step before and set `version: installed`"
        )
    return " ".join([f"pgvet=={version}", *(f"--hash={one}" for one in known)])


def installing(python: Path, wanted: Path) -> list[str | Path]:
    """The command that installs the wheel, and nothing that is built or whose checksum is another one."""
    command = [python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    return [*command, "--only-binary", ":all:", "--require-hashes", "-r", wanted]


def interpreter(folder: Path) -> Path:
    """The Python of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def main() -> int:
    folder = Path(os.environ["RUNNER_TEMP"], "pgvet")
    try:
        line = requirement(os.environ.get("PGVET_VERSION", "").strip(), os.environ.get("PGVET_HASHES", ""))
    except Refusal as refusal:
        print("::error::" + str(refusal).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
        return 2
    venv.create(folder, with_pip=True)
    wanted = folder / "requirements.txt"
    wanted.write_text(line + "\n", encoding="utf-8")
    return subprocess.run(installing(interpreter(folder), wanted), cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
