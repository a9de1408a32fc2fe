"""The figures that tests print become rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import faults
from benchmarks.faults import Fault, Tried
from benchmarks.measuring.rows import Row
from tests.conftest import ROOT

KILLED = Fault("a writer is killed", "tests/x.py::test_kills", "200", ("missing", "half"))


def rows(fault: Fault, *lines: str, failed: bool = False) -> list[Row]:
    return list(faults.make_rows(fault, [Tried("test_kills[200]", failed, skipped=False, lines=list(lines))], 0))


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.title)
def test_every_fault_names_a_test_that_there_is(fault: Fault) -> None:
    path, _, function = fault.test.partition("::")

    source = (ROOT / path).read_text()

    assert f"def {function}(" in source
    assert fault.long.replace(",", "") in source.replace("_", "")


def test_an_experiment_becomes_a_row_with_what_must_never_happen() -> None:
    [row] = rows(KILLED, 'kills (sqlite): {"kills": 200, "missing": 1, "half": 2, "found": []}')

    assert (row.name, row.value) == ("a writer is killed, kills, sqlite: missing, half", 3)
    assert (row.verdict, row.detail) == ("MISSED", "kills 200, missing 1, half 2")


def test_found_damage_is_a_share_of_what_did_harm() -> None:
    fault = Fault("bytes are changed", "tests/x.py::test_kills")

    [row] = rows(fault, "3000 times 64 random bytes: 1500 changed what is read, 1485 of these found")

    assert (row.name, row.shown, row.verdict) == ("bytes are changed, 64 at once: found", "99.0 %", "ok")


def test_where_there_is_no_experiment_failed_tests_are_counted_and_named() -> None:
    fault = Fault("a loop is killed", "tests/x.py::test_kills")

    [row] = rows(fault, "01M7HZG0DAHBN2G5XAQB1RDXPB", "8 kills, 0 missing", failed=True)

    assert (row.name, row.value) == ("a loop is killed: tests failed", 1)
    assert row.detail == "1 tests; 8 kills, 0 missing; test_kills[200]"


def test_a_report_of_pytest_is_read(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase name="a"><system-out>8 kills\n</system-out></testcase>'
        '<testcase name="b"><failure message="x">x</failure></testcase>'
        '<testcase name="c"><skipped>x</skipped></testcase></testsuite></testsuites>'
    )

    assert list(faults.read_report(report)) == [
        Tried("a", failed=False, skipped=False, lines=["8 kills"]),
        Tried("b", failed=True, skipped=False, lines=[]),
        Tried("c", failed=False, skipped=True, lines=[]),
    ]
