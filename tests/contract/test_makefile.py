"""What `make` runs where it matters to more than who types it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

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


def test_the_steps_of_a_release_include_fuzz() -> None:
    steps = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## How to release")[2]

    assert "make fuzz LONG=1" in steps


@pytest.mark.parametrize("row", FUZZED)
def test_fuzz_row_names_files_with_random_examples(row: str) -> None:
    """A renamed file must not leave a row of the table with nothing tried."""
    for file in FUZZED[row]:
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert "@given" in text or "texts_come_back" in text, file
