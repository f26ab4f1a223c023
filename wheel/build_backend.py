"""maturin, with the libclang of PyPI: bindings to PostgreSQL's parser, which is C, are generated while pgvet is built."""

import os
import pathlib
import subprocess
import sys
import tempfile
from importlib.util import find_spec

import maturin
from maturin import *  # noqa: F403 - the hooks that pip calls


def build_wheel(*arguments):
    use_libclang()
    # pre-commit keeps the folder that it builds in, and what cargo leaves is large.
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("CARGO_TARGET_DIR", folder)
        return maturin.build_wheel(*arguments)


def use_libclang():
    """Points the build at the library, which comes without the headers of a compiler, and at those of the system's."""
    package = find_spec("clang")
    libraries = pathlib.Path(package.origin).parent / "native" if package and package.origin else None
    if "LIBCLANG_PATH" in os.environ or not (libraries and any(libraries.glob("libclang.*"))):
        return
    os.environ["LIBCLANG_PATH"] = str(libraries)
    if sys.platform != "win32":
        compiler = os.environ.get("CC", "cc")
        try:
            headers = subprocess.check_output([compiler, "-print-file-name=include"], text=True).strip()
        except (OSError, subprocess.CalledProcessError):
            return  # The build will say that there is no compiler.
        more = os.environ.get("BINDGEN_EXTRA_CLANG_ARGS", "")
        os.environ["BINDGEN_EXTRA_CLANG_ARGS"] = f"{more} -isystem '{headers}'"
