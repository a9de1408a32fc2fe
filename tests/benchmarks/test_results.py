"""RESULTS.md is made of what was measured, and of nothing else; the runner knows every benchmark."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import run
from benchmarks.measuring.document import Area, write_document
from benchmarks.measuring.goals import GOALS, Reasons, read_reasons
from benchmarks.measuring.reports import Report
from benchmarks.measuring.rows import Goal, Row
from tests.conftest import ROOT

SCRIPTS = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"run"}
MACHINE = "2 cores, CPython 3.11.7"
REASONS = Reasons({"slow / fast": "It is known to be slow."}, {"P10": "There is no engine."})

FAST = Row("a / b", 1.5, (Goal("<=", 2, "P1"),), detail="3 ms / 2 ms")
SLOW = Row("slow / fast", 7.0, (Goal("<=", 5),))
ODD = Row("odd / even", 7.0, (Goal("<=", 5, "P4"), Goal("<=", 8)))
AREAS = [
    Area(
        "One", "python benchmarks/one.py", Report([FAST, SLOW], {"peer": "1.0"}, {"other": "it could not be installed"})
    ),
    Area("Two", "python benchmarks/two.py", Report([ODD], notes=["Counted twice."])),
    Area("Three", "python benchmarks/three.py", None, "no compiler"),
]


def test_run_tells_how_long_the_rest_took_the_last_time(tmp_path: Path) -> None:
    first, second, *_ = run.BENCHMARKS
    run.write_durations(tmp_path, {first.name: 200.0, second.name: 40.0}, quick=False)

    known = run.read_durations(tmp_path, quick=False)

    assert run.estimate_rest([first, second], known) == ", about 4 min left"
    assert run.estimate_rest([second], known) == ", less than a minute left"
    assert run.estimate_rest(run.BENCHMARKS, known) == ""
    assert run.read_durations(tmp_path, quick=True) == {}


def written(areas: list[Area] = AREAS) -> str:
    return write_document(areas, MACHINE, REASONS)


def lines_with(text: str, areas: list[Area] = AREAS) -> list[str]:
    return [line for line in written(areas).splitlines() if text in line]


# ---- the document ---------------------------------------------------------------------------------------------------


def test_the_same_reports_make_the_same_document() -> None:
    assert written() == written([area._replace() for area in AREAS])
    assert MACHINE in written()


def test_every_area_has_its_table_its_command_and_its_versions() -> None:
    document = written()

    assert "## One\n\n    python benchmarks/one.py\n" in document
    assert "| a / b | 1.50 | <= 2 (P1) | ok | 3 ms / 2 ms |" in document
    assert "With peer 1.0." in document
    assert "Counted twice." in document


def test_a_missed_goal_stands_at_the_top_with_its_number_and_its_reason() -> None:
    assert "| slow / fast | 7.00 | <= 5 | It is known to be slow. |" in written()
    assert "| slow / fast | 7.00 | <= 5 | MISSED | - |" in written()


def test_a_missed_goal_without_a_reason_is_not_hidden() -> None:
    assert "| odd / even | 7.00 | <= 5 (P4) | The reason is not known yet. |" in written()


def test_the_number_of_goals_and_of_missed_ones_is_told() -> None:
    assert "4 goals, 2 missed; 3 rows." in written()


def test_a_missing_peer_is_named() -> None:
    assert "| One | other | it could not be installed |" in written()


def test_a_benchmark_that_could_not_measure_is_named() -> None:
    assert "| Three | all of it | no compiler |" in written()
    assert "Could not be measured: no compiler" in written()


def test_nothing_is_said_to_be_missed_or_missing_where_nothing_is() -> None:
    document = written([Area("One", "it", Report([FAST]))])

    assert "## Missed goals" not in document
    assert "## Not measured" not in document


def test_every_goal_is_listed_with_where_it_is_measured() -> None:
    listed = [line.split(" | ") for line in lines_with("| P")]

    assert [cells[0].removeprefix("| ") for cells in listed if cells[0].startswith("| P")] == list(GOALS)
    assert lines_with("| P1 |")[0].endswith("| 1 of 1 met | One | - |")
    assert lines_with("| P4 |")[0].endswith("| 0 of 1 met | Two | - |")
    assert lines_with("| P10 |")[0].endswith("| NOT MEASURED | - | There is no engine. |")


def test_a_bar_in_a_name_does_not_break_the_table() -> None:
    assert lines_with("first&#124;second", [Area("One", "it", Report([Row("first|second", 1.0)]))]) != []


# ---- what is in the repository --------------------------------------------------------------------------------------


def test_every_benchmark_is_run() -> None:
    assert {benchmark.name for benchmark in run.BENCHMARKS} == SCRIPTS


def test_the_readme_tells_of_every_benchmark() -> None:
    readme = (ROOT / "benchmarks/README.md").read_text()
    assert {name for name in SCRIPTS if f"benchmarks/{name}.py" not in readme} == set()


def test_every_goal_has_a_row_in_a_benchmark_or_a_reason_why_not() -> None:
    sources = "".join((ROOT / "benchmarks" / f"{name}.py").read_text() for name in SCRIPTS)
    without = GOALS.keys() - set(re.findall(r'"(P\d+)"', sources))

    assert without <= read_reasons().unmeasured.keys()


def test_reasons_are_about_goals_that_there_are() -> None:
    assert read_reasons().unmeasured.keys() <= GOALS.keys()


def test_no_benchmark_takes_what_it_needs_from_another() -> None:
    borrowed = {
        name: found
        for name in SCRIPTS
        if (
            found := re.findall(
                r"^from benchmarks\.(?!measuring)\w+", (ROOT / f"benchmarks/{name}.py").read_text(), re.MULTILINE
            )
        )
    }
    assert borrowed == {}


def test_the_machine_is_described_without_its_name() -> None:
    described = run.describe_machine()

    assert platform.python_version() in described
    assert platform.node() not in described.split()
    assert str(Path.home()) not in described


# ---- the runner -----------------------------------------------------------------------------------------------------


class Scripts:
    """Stands for the processes that the runner starts: each script finds what it is told to."""

    def __init__(self, found: dict[str, Report]) -> None:
        self.found = found
        self.started: list[list[str]] = []

    def run(self, argv: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.started.append(argv)
        report = self.found.get(Path(argv[1]).stem)
        if report is None:
            return subprocess.CompletedProcess(argv, 2, stderr=f"one: no compiler in {ROOT}\n")
        Path(argv[argv.index("--json") + 1]).write_text(json.dumps(report.to_json()))
        return subprocess.CompletedProcess(argv, 0, stderr="")


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Scripts:
    scripts = Scripts({benchmark.name: Report([FAST]) for benchmark in run.BENCHMARKS})
    monkeypatch.setattr(subprocess, "run", scripts.run)
    return scripts


def test_a_run_writes_what_the_scripts_found(scripts: Scripts, tmp_path: Path) -> None:
    scripts.found["layers"] = Report([SLOW])

    code = run.main(["--output", str(tmp_path / "RESULTS.md")])

    assert code == 1
    document = (tmp_path / "RESULTS.md").read_text()
    assert "| slow / fast | 7.00 | <= 5 | MISSED | - |" in document
    assert [line for line in document.splitlines() if line.startswith("    python ")] == [
        f"    python benchmarks/{benchmark.name}.py" for benchmark in run.BENCHMARKS
    ]


def test_a_run_goes_on_after_a_script_that_fails_and_names_it(scripts: Scripts, tmp_path: Path) -> None:
    del scripts.found["layers"]

    code = run.main(["--output", str(tmp_path / "RESULTS.md")])

    assert code == 2
    assert len(scripts.started) == len(run.BENCHMARKS)
    assert "| Layers | all of it | one: no compiler in . |" in (tmp_path / "RESULTS.md").read_text()


def test_a_quick_run_writes_nothing_and_every_script_is_told(scripts: Scripts, tmp_path: Path) -> None:
    assert run.main(["--quick", "--output", str(tmp_path / "RESULTS.md")]) == 0

    assert not (tmp_path / "RESULTS.md").exists()
    assert all("--quick" in argv for argv in scripts.started)


def test_some_may_be_chosen(scripts: Scripts, tmp_path: Path) -> None:
    code = run.main(["--only", "layers", "writing", "--output", str(tmp_path / "RESULTS.md")])

    assert code == 0
    assert [Path(argv[1]).stem for argv in scripts.started] == ["layers", "writing"]
    assert "| Start-up | all of it | left out of this run |" in (tmp_path / "RESULTS.md").read_text()


def test_a_part_of_them_does_not_take_the_place_of_all_results(
    scripts: Scripts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "RESULTS", tmp_path / "RESULTS.md")

    run.main(["--only", "layers"])
    assert not (tmp_path / "RESULTS.md").exists()

    run.main([])
    assert len(scripts.started) == 1 + len(run.BENCHMARKS)
    assert (tmp_path / "RESULTS.md").exists()


@pytest.mark.slow
def test_a_real_script_is_run_and_read(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks/run.py"), "--only", "writing", "--quick"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert 'to("anthropic") / json.dumps' in done.stdout


def test_the_shares_on_the_page_about_caching_are_those_that_were_measured() -> None:
    page = (ROOT / "docs/explanation/zones-and-caching.md").read_text()
    results = (ROOT / "benchmarks/RESULTS.md").read_text()
    measured = results.partition("\n## Caching\n")[2].partition("\n## ")[0]
    shares = re.findall(r"\d+\.\d %|\d+ of \d+ calls", page)

    assert len(shares) > 10
    assert [share for share in shares if share not in measured] == []
