"""What `make` runs where it matters to more than who types it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.tables import FUZZED


def seed_of(*arguments: str) -> str:
    """The seed with which `make fuzz` would run."""
    command = ["make", "--dry-run", "fuzz", *arguments]
    printed = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    (seed,) = re.findall(r"--table fuzz .*--hypothesis-seed=(\d+)", printed)
    return str(seed)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_fuzz_draws_its_examples_anew_unless_a_seed_is_given() -> None:
    assert seed_of() != seed_of()
    assert seed_of("SEED=7") == seed_of("SEED=7", "LONG=1") == "7"


@pytest.mark.slow
def test_fuzz_ends_with_the_seed_that_repeats_it() -> None:
    options = ["-n", "0", "--table", "fuzz", "--hypothesis-seed=7", "--hypothesis-profile=quick"]
    command = [sys.executable, "-m", "pytest", *options, "tests/properties/test_sections.py"]

    printed = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout

    assert "seed 7: make fuzz SEED=7 tries the same again" in printed


def run_other_pythons(home: Path, version: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/other_pythons.py", version]
    settings = {"HOME": str(home), "PATH": f"{home}:/bin:/usr/bin"}
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False, env=settings)


def test_python_that_is_not_installed_is_skipped(tmp_path: Path) -> None:
    outcome = run_other_pythons(tmp_path, "3.99")

    assert (outcome.returncode, outcome.stdout) == (0, "Python 3.99: skipped, it is not installed\n")


def test_python_without_packages_is_skipped_with_the_reason(tmp_path: Path) -> None:
    fake = tmp_path / "python3.99"
    fake.write_text('#!/bin/sh\n[ "$1" = -c ] && echo 3.99 && exit\necho "no index can be reached" >&2; exit 1\n')
    fake.chmod(0o755)

    outcome = run_other_pythons(tmp_path, "3.99")

    reason = "its packages cannot be installed: no index can be reached"
    assert (outcome.returncode, outcome.stdout) == (0, f"Python 3.99: skipped, {reason}\n")


def test_the_steps_of_a_release_include_fuzz() -> None:
    steps = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## How to release")[2]

    assert "make fuzz LONG=1" in steps


@pytest.mark.parametrize("row", FUZZED)
def test_fuzz_row_names_files_with_random_examples(row: str) -> None:
    """A renamed file must not leave a row of the table with nothing tried."""
    for file in FUZZED[row]:
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert "@given" in text or "texts_come_back" in text, file
