"""Every behaviour that was asked for is proved by a test, or stands under Planned."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.acceptance import Behaviours, find_faults, page, read_behaviours, read_proofs
from tests.conftest import ROOT

COLLECT = """
import pytest

class Collector:
    def pytest_collection_modifyitems(self, items):
        for item in items:
            for marker in item.iter_markers("acceptance"):
                print(*(f"= {row} {item.nodeid.partition('[')[0]}" for row in marker.args), sep="\\n")

raise SystemExit(pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", "tests"], plugins=[Collector()]))
"""
OURS = Behaviours({"One": {"A-01": "It does.", "A-02": "So does that."}}, {"A-02": "Not yet."})


@pytest.fixture(scope="module")
def proofs() -> dict[str, list[str]]:
    return read_proofs()


def test_every_behaviour_has_a_test_or_is_planned_and_every_marker_names_one(proofs: dict[str, list[str]]) -> None:
    assert find_faults(read_behaviours(), proofs) == []


@pytest.mark.parametrize(
    ("marked", "faults"),
    [
        ({"A-01": ["a test"]}, []),
        ({"A-01": ["a test"], "A-02": ["half of it"]}, []),
        ({}, ["A-01: no test"]),
        ({"A-01": ["a test"], "A-03": ["a test"]}, ["A-03: no such behaviour"]),
    ],
)
def test_what_is_neither_proved_nor_planned_is_a_fault_and_so_is_an_unknown_name(
    marked: dict[str, list[str]], faults: list[str]
) -> None:
    assert find_faults(OURS, marked) == faults


def test_a_plan_for_what_is_not_there_is_a_fault() -> None:
    behaviours = Behaviours({"One": {}}, {"A-09": "Some day."})

    assert find_faults(behaviours, {}) == ["A-09: no such behaviour"]


def test_markers_are_read_from_functions_and_methods_without_importing_them(tmp_path: Path) -> None:
    (tmp_path / "tests/deep").mkdir(parents=True)
    (tmp_path / "tests/deep/test_it.py").write_text(
        "import nowhere\n\n"
        '@pytest.mark.acceptance("A-01", "A-02")\n@pytest.mark.slow\ndef test_one(): ...\n\n'
        'class TestIt:\n    @pytest.mark.acceptance("A-01")\n    async def test_two(self): ...\n'
    )

    assert read_proofs(tmp_path / "tests") == {
        "A-01": ["tests/deep/test_it.py::test_one", "tests/deep/test_it.py::test_two"],
        "A-02": ["tests/deep/test_it.py::test_one"],
    }


@pytest.mark.slow
def test_what_is_read_is_what_pytest_collects(proofs: dict[str, list[str]]) -> None:
    outcome = subprocess.run([sys.executable, "-c", COLLECT], cwd=ROOT, text=True, capture_output=True, check=True)

    found = {
        (row, f"{path}::{names.rpartition('::')[2]}")
        for row, path, names in re.findall(r"^= (\S+) ([^:]+)::(\S+)$", outcome.stdout, re.MULTILINE)
    }
    assert found == {(row, test) for row, tests in proofs.items() for test in tests}


def test_the_page_has_every_behaviour_once_with_its_tests(proofs: dict[str, list[str]]) -> None:
    behaviours = read_behaviours()

    text, _, planned = page(behaviours, proofs).partition("\n## Planned\n")

    assert re.findall(r"^- \*\*(\S+)\*\*", text, re.MULTILINE) == list(behaviours.words)
    assert re.findall(r"^- \*\*(\S+)\*\*", planned, re.MULTILINE) == list(behaviours.planned)
    assert text.count("\n    - ") == sum(map(len, proofs.values()))
