"""Processes that share the tests: each file in one of them, and the files of some folders in the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.conftest import ROOT
from tests.scheduling import get_unit

TEST = """
import os, time, pytest

@pytest.mark.parametrize("number", range(4))
def test_one_of_many(number):
    time.sleep(0.05)  # so that the other process has its turn
    with open("seen", "a") as seen:
        seen.write(f"{__file__.rpartition('/')[0]} {__file__} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""
CONFTEST = """
from tests.conftest import pytest_collection_modifyitems, pytest_xdist_make_scheduler
"""


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/packaging/test_wheel.py::test_a[tests/b.py::c]", "tests/packaging/"),
        ("tests/cli/test_show.py::test_a", "tests/cli/test_show.py"),
    ],
)
def test_the_unit_of_a_test_is_its_file_or_a_folder(nodeid: str, unit: str) -> None:
    assert get_unit(nodeid) == unit


@pytest.mark.slow
def test_no_unit_is_run_by_two_processes(tmp_path: Path) -> None:
    files = [*(f"tests/packaging/test_{number}.py" for number in range(3)), *(f"tests/cli/test_{n}.py" for n in "abc")]
    write_files(tmp_path, {"conftest.py": CONFTEST, "pytest.ini": "[pytest]", **dict.fromkeys(files, TEST)})
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    options = ["-p", "no:cacheprovider", "-p", "no:langsmith_plugin", "--import-mode=importlib"]

    outcome = subprocess.run(
        [*command, *options],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert outcome.returncode == 0, outcome.stdout
    seen = {tuple(line.split()) for line in (tmp_path / "seen").read_text(encoding="utf-8").splitlines()}
    assert len({file for _, file, _ in seen}) == len(seen) == len(files)
    assert len({process for folder, _, process in seen if folder.endswith("packaging")}) == 1
    assert len({process for _, _, process in seen}) == 2
