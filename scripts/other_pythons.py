"""Run quick tests on the other Pythons that Nexus supports, where they are installed.

    python scripts/other_pythons.py [--brief] [3.12 ...]

Each gets an environment in build/, with Nexus and what these tests need. Every module is imported, and the tests of a
few rooms and, without `--brief`, of what commands print are run; those that need SDKs of providers, frameworks or
PostgreSQL run on one Python only. A Python that is not installed, or for which packages cannot be installed, is skipped
with a line that says so. Exit code: 0 if all that ran has passed, 1 if not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
SUPPORTED = tuple(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text()))
PACKAGES = ("hypothesis", "jsonschema", "pyte", "pytest", "pytest-timeout", "pytest-xdist")
ROOMS = ("config", "text", "tokens", "types")
LONG_ROOMS = ("golden",)
"""Rooms that take minutes, for `make pythons`; `make test` leaves them out."""
BRIEF = "--brief"
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
IMPORT_ALL = """
import importlib, pkgutil, sys
import nexus_core, nexus_plugins
count = 0
for package in (nexus_core, nexus_plugins):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            if (error.name or "nexus").partition(".")[0].startswith("nexus"):
                raise
            continue  # of an optional extra
        count += 1
print(f"{count} modules imported")
"""


def main(versions: list[str]) -> int:
    """Test each version, and return the exit code."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    rooms = ROOMS if BRIEF in versions else (*ROOMS, *LONG_ROOMS)
    named = [version for version in versions if version != BRIEF]
    failed = [version for version in named or SUPPORTED if version != here and not passes(version, rooms)]
    return 1 if failed else 0


def passes(version: str, rooms: Sequence[str]) -> bool:
    """Return False if a test fails on a version."""
    python = find_python(version)
    if python is None:
        print(f"Python {version}: skipped, it is not installed", flush=True)
        return True
    environment = ROOT / "build" / f"python-{version}"
    reason = prepare(python, environment)
    if reason:
        print(f"Python {version}: skipped, its packages cannot be installed: {reason}", flush=True)
        return True
    print(f"Python {version}: every module, and tests of {', '.join(rooms)}", flush=True)
    program = str(environment / "bin" / "python")
    folders = [f"tests/{room}" for room in rooms]
    pytest = [program, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", "-p", "no:cacheprovider", *folders]
    quick = ["-m", "not slow", "--hypothesis-profile=quick", "--most-cases=2"]
    commands = ([program, "-c", IMPORT_ALL], [*pytest, *quick])
    return all(subprocess.run(command, cwd=ROOT, check=False).returncode == 0 for command in commands)


def find_python(version: str) -> Path | None:
    """Return an interpreter of a version: on the path, or one that pyenv keeps."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), key=str)
    named = shutil.which(f"python{version}")
    for path in [*([Path(named)] if named else []), *reversed(kept)]:
        # What pyenv puts on the path may be there without the version behind it.
        done = subprocess.run([path, "-c", VERSION], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return path
    return None


def prepare(python: Path, environment: Path) -> str:
    """Make an environment with Nexus and the packages, unless it is there. Return why that failed, "" if it did not."""
    done = environment / ".done"
    sources = (ROOT / "pyproject.toml", ROOT / "constraints.txt", Path(__file__))
    if done.exists() and all(done.stat().st_mtime >= source.stat().st_mtime for source in sources):
        return ""
    shutil.rmtree(environment, ignore_errors=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in (
        [str(python), "-m", "venv", str(environment)],
        [*pip, "--constraint", str(ROOT / "constraints.txt"), "--editable", str(ROOT), *PACKAGES],
    ):
        try:
            outcome = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        except OSError as error:
            return str(error)
        if outcome.returncode:
            said = [line for line in outcome.stderr.splitlines() if not line.startswith("WARNING")]
            return said[-1].strip() if said else f"exit code {outcome.returncode}"
    done.touch()
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
