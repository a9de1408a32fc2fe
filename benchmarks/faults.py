"""What must never happen, tried many times and counted: by the tests, in their long form.

    python benchmarks/faults.py [--json FILE]

Runs some of the slow tests and reads the figures that they print. Exit code 1 when something was lost, split or wrong.
Needs the extra `dev`; the tests start a PostgreSQL server of their own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measuring.reports import CannotMeasureError, Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

NEVER = (Goal("<=", 0),)
EXPERIMENT = re.compile(r"^(?P<name>\w+) \((?P<backend>\w+)\): (?P<result>\{.*\})$")
FIGURE = re.compile(r"^\d+ [a-z]")
"""What a test prints for people: so many of something."""
DAMAGE = re.compile(
    r"^(?P<cases>\d+) times (?P<bytes>\d+) random bytes: (?P<harmful>\d+) .*, (?P<found>\d+) of these found$"
)


class Fault(NamedTuple):
    """Something that must never happen.

    Attributes:
        title: What.
        test: Where it is tried: file and function.
        long: What the name of the long form has in its brackets.
        wrong: What its experiments count that must never happen; none where only the tests themselves can tell.
    """

    title: str
    test: str
    long: str = ""
    wrong: tuple[str, ...] = ()

    @property
    def function(self) -> str:
        """The test without its file."""
        return self.test.rpartition("::")[2]


FAULTS = (
    Fault(
        "a writer is killed",
        "tests/ledger/test_faults.py::test_a_writer_that_is_killed_loses_nothing_it_was_told_is_kept",
        "200",
        ("missing", "half"),
    ),
    Fault(
        "8 processes write",
        "tests/ledger/test_faults.py::test_eight_processes_write_without_loss",
        "200",
        ("failed", "lost", "twice", "forks"),
    ),
    Fault(
        "32 processes write",
        "tests/ledger/test_faults.py::test_thirty_two_processes_write_into_one_file_without_loss",
        wrong=("failed", "lost", "twice", "forks"),
    ),
    Fault(
        "8 processes open a ledger",
        "tests/ledger/test_faults.py::test_eight_processes_open_a_new_or_an_older_file_at_once",
        "20",
        ("failed",),
    ),
    Fault("bytes of the file are changed", "tests/ledger/test_faults.py::test_random_damage_is_found", "3000"),
    Fault(
        "a loop of tools is killed",
        "tests/session/test_killing.py::test_a_loop_that_is_killed_again_and_again_loses_nothing_and_does_nothing_twice",
    ),
    Fault(
        "a compaction is killed",
        "tests/session/test_compact_killing.py::test_a_compaction_that_is_killed_has_happened_or_has_not",
    ),
    Fault("an import is killed", "tests/cli/session/test_import.py::test_an_import_that_is_killed_leaves_nothing_half"),
    Fault(
        "a migration is killed",
        "tests/ledger/test_killed_calls.py::test_a_migration_that_is_killed_anywhere_leaves_the_old_or_the_new_file",
    ),
    Fault(
        "a command is killed at calls to the system",
        "tests/ledger/test_killed_calls.py::test_a_command_that_is_killed_at_any_call_has_happened_or_has_not",
    ),
    Fault("the disk fails", "tests/ledger/test_disks.py::test_a_disk_that_fails_now_and_then_loses_nothing"),
    Fault("the disk is full", "tests/ledger/test_disks.py::test_a_full_disk_is_an_error_and_not_the_end"),
    Fault(
        "a PostgreSQL server is killed",
        "tests/ledger/test_postgres.py::test_a_server_that_is_killed_and_started_again_loses_nothing",
    ),
    Fault(
        "10,000 threads are planned to be summarised",
        "tests/compaction/test_planning.py::test_no_tool_pair_is_ever_split_in_ten_thousand_threads",
    ),
    Fault(
        "1,000,000 hostile texts are put between tags",
        "tests/plugins/tagged/test_safety.py::test_a_million_texts_come_back_as_they_were_put_in",
    ),
    Fault(
        "malformed files are read, each within a second and 100 MB",
        "tests/config/test_malformed.py::test_every_kind_is_refused_within_a_second_and_100_megabytes",
    ),
    Fault(
        "summarisers fail",
        "tests/compaction/test_chain.py::test_no_more_than_two_calls_of_models_fail_and_the_result_is_typed",
    ),
    Fault(
        "a session is cut: calls begin as the one before",
        "tests/session/test_prefix.py::test_over_many_turns_each_call_begins_with_the_one_before_between_cuts",
    ),
    Fault(
        "a session is summarised: calls begin as the one before",
        "tests/session/test_prefix.py::test_over_many_turns_each_call_begins_with_the_one_before_between_compactions",
    ),
    Fault(
        "hostile repositories are looked at",
        "tests/hostile/test_hostile_repositories.py::test_looking_at_a_hostile_repository_does_nothing",
    ),
)


class Tried(NamedTuple):
    """A test that was run: its name, whether it failed or was skipped, and the lines that it printed."""

    name: str
    failed: bool
    skipped: bool
    lines: list[str]


def main(argv: Sequence[str] | None = None) -> int:
    """Count, print, and return the exit code."""
    return Script("Try what must never happen, and count.").run(measure, argv)


def measure(_: Namespace) -> Report:
    """Rows of all faults; a fault whose tests did not run is named."""
    tried = run_tests([fault.test for fault in FAULTS])
    rows: list[Row] = []
    missing = {}
    for fault in FAULTS:
        own = [each for each in tried if each.name.partition("[")[0] == fault.function]
        own = [
            each for each in own if fault.long in each.name.partition("[")[2].rstrip("]").split("-") or not fault.long
        ]
        done = [each for each in own if not each.skipped]
        if done:
            rows += make_rows(fault, done, len(own) - len(done))
        else:
            missing[fault.title] = "its tests were skipped here" if own else "its tests were not found"
    return Report(rows, missing=missing)


def run_tests(tests: Sequence[str]) -> list[Tried]:
    """The tests, all forms of each, with what they printed."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        options = [
            "-q",
            "-n",
            "auto",
            "--dist",
            "loadgroup",
            "-p",
            "no:cacheprovider",
            "-o",
            "junit_logging=system-out",
        ]
        command = [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *tests]
        settings = {name: value for name, value in os.environ.items() if not name.startswith("NEXUS_HOME")}
        done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
        if not report.exists():
            raise CannotMeasureError(f"the tests could not be run: {(done.stdout or done.stderr).strip()[-300:]}")
        return list(read_report(report))


def read_report(path: Path) -> Iterator[Tried]:
    """The tests of a report in the format of JUnit."""
    for case in ET.parse(path).iter("testcase"):  # noqa: S314 - pytest has just written it
        kinds = {child.tag for child in case}
        printed = case.findtext("system-out") or ""
        yield Tried(case.get("name", ""), bool(kinds & {"failure", "error"}), "skipped" in kinds, printed.splitlines())


def make_rows(fault: Fault, done: Sequence[Tried], skipped: int) -> Iterator[Row]:
    """A row for each experiment with a figure of its own, else one for all tests of the fault."""
    lines = [line for each in done for line in each.lines]
    rows = [*experiment_rows(fault, lines), *damage_rows(fault, lines)]
    yield from rows
    failed = [each.name for each in done if each.failed]
    if failed or not rows:
        figures = [line for line in lines if FIGURE.match(line)][:3]
        told = [f"{len(done)} tests" + f", {skipped} skipped" * bool(skipped), *figures, *failed[:3]]
        yield Row(f"{fault.title}: tests failed", len(failed), NEVER, "count", "; ".join(told))


def experiment_rows(fault: Fault, lines: Sequence[str]) -> Iterator[Row]:
    """What experiments have counted, each with a backend."""
    for found in filter(None, map(EXPERIMENT.match, lines)) if fault.wrong else ():
        result = json.loads(found["result"])
        counts = ", ".join(f"{name} {value:,}" for name, value in result.items() if type(value) is int)
        name = f"{fault.title}, {found['name'].replace('_', ' ')}, {found['backend']}: {', '.join(fault.wrong)}"
        yield Row(name, sum(result[name] for name in fault.wrong), NEVER, "count", counts)


def damage_rows(fault: Fault, lines: Sequence[str]) -> Iterator[Row]:
    """How much of the damage that changes what is read was found."""
    for found in filter(None, map(DAMAGE.match, lines)):
        detail = f"{int(found['cases']):,} times, {int(found['harmful']):,} changed what is read"
        share = int(found["found"]) / int(found["harmful"])
        yield Row(f"{fault.title}, {found['bytes']} at once: found", share, (Goal(">=", 0.99),), "share", detail)


if __name__ == "__main__":
    sys.exit(main())
