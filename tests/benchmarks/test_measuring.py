"""What the benchmarks share: rows and goals, medians, processes, environments, options."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.measuring import venvs
from benchmarks.measuring.processes import (
    Command,
    describe_failure,
    measure_cpu,
    measure_medians,
    run_program,
)
from benchmarks.measuring.reports import CannotMeasureError, Report, format_report
from benchmarks.measuring.rows import Comparison, Goal, Row, compare
from benchmarks.measuring.script import Script
from benchmarks.measuring.tables import FILES, write_tables
from benchmarks.measuring.timing import medians
from benchmarks.measuring.venvs import Peers, install_nexus
from nexus_plugins.tiktoken_counter._tables import load_tables
from tests.conftest import ROOT


def make_command(code: str, directory: Path, name: str = "it") -> Command:
    return Command(name, (sys.executable, "-c", code), directory, {})


# ---- rows -----------------------------------------------------------------------------------------------------------


def test_a_ratio_is_the_first_median_divided_by_the_second() -> None:
    [row] = compare({"a": 30.0, "b": 20.0}, [Comparison("a", "b")])
    assert row == Row("a / b", 1.5, detail="30 ms / 20 ms")


@pytest.mark.parametrize(
    ("goal", "value", "met"),
    [
        (Goal("<=", 1.4), 1.4, True),
        (Goal("<=", 1.4), 1.41, False),
        (Goal(">=", 4.0), 4.0, True),
        (Goal(">=", 4.0), 3.99, False),
    ],
)
def test_a_goal_is_met_up_to_its_bound(goal: Goal, value: float, met: bool) -> None:
    assert goal.is_met(value) is met


def test_a_row_may_meet_one_goal_and_miss_another() -> None:
    row = Row("a / b", 2.5, (Goal("<=", 2, "P8"), Goal("<=", 3)))

    assert (row.wanted, row.verdict) == ("<= 2 (P8), <= 3", "MISSED, ok")
    assert row.missed == (Goal("<=", 2, "P8"),)


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (Row("ratio", 1.2345), "1.23"),
        (Row("large ratio", 43651.2), "43,651"),
        (Row("share", 0.961, unit="share"), "96.1 %"),
        (Row("count", 10_000, unit="count"), "10,000"),
    ],
)
def test_a_number_is_shown_in_the_way_of_its_unit(row: Row, shown: str) -> None:
    assert row.shown == shown


def test_a_quick_run_misses_only_what_is_an_order_of_magnitude_off() -> None:
    fast = Row("a / b", 13.9, (Goal("<=", 1.4),)).loosened()
    slow = Row("a / b", 14.1, (Goal("<=", 1.4),)).loosened()
    peer = Row("b / a", 101, (Goal(">=", 1000),)).loosened()

    assert [row.verdict for row in (fast, slow, peer)] == ["ok", "MISSED", "ok"]


def test_what_was_counted_has_the_same_goal_in_a_quick_run() -> None:
    assert Row("lost", 1, (Goal("<=", 0),), "count").loosened().verdict == "MISSED"


def test_a_goal_that_is_missed_today_has_its_own_bound_in_a_quick_run() -> None:
    assert Goal("<=", 5, quick=150).loosened().bound == 150
    assert Row("kept", 0.84, (Goal(">=", 0.95, quick=0.8),), "share").loosened().verdict == "ok"


# ---- reports --------------------------------------------------------------------------------------------------------

REPORT = Report(
    [Row("a / b", 1.5, (Goal("<=", 2, "P1"),), detail="3 ms / 2 ms"), Row("lost", 0, (Goal("<=", 0),), "count")],
    {"peer": "1.0"},
    {"other": "it could not be installed"},
    ["One run."],
)


def test_a_report_is_the_same_after_it_was_json() -> None:
    assert Report.from_json(json.loads(json.dumps(REPORT.to_json()))) == REPORT


def test_a_report_names_what_is_missing() -> None:
    assert "not measured: other: it could not be installed" in format_report(REPORT)


# ---- scripts --------------------------------------------------------------------------------------------------------


def run_script(measure: Report | Exception, *argv: str) -> int:
    def answer(_: Namespace) -> Report:
        if isinstance(measure, Exception):
            raise measure
        return measure

    return Script("Measure.").run(answer, argv)


def test_the_exit_code_says_whether_goals_were_met() -> None:
    slow = Report([Row("a / b", 3, (Goal("<=", 2),))])

    assert [run_script(REPORT), run_script(slow), run_script(slow, "--quick")] == [0, 1, 0]
    assert run_script(CannotMeasureError("no compiler")) == 2


def test_what_was_found_is_written_as_json(tmp_path: Path) -> None:
    run_script(REPORT, "--json", str(tmp_path / "found.json"))

    assert Report.from_json(json.loads((tmp_path / "found.json").read_text())) == REPORT


def options(*argv: str) -> Namespace:
    script = Script("Measure.")
    script.runs(15, quick=3)
    return script.options(argv)


def test_a_quick_run_does_less_unless_it_is_told_how_much() -> None:
    assert [options().runs, options("--quick").runs, options("--quick", "-n", "7").runs] == [15, 3, 7]


def test_no_run_at_all_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        options("-n", "0")
    assert "-n has to be at least 1" in capsys.readouterr().err


# ---- timing ---------------------------------------------------------------------------------------------------------


def test_works_are_done_in_turns_and_the_warm_up_does_not_count() -> None:
    order: list[str] = []
    times = {"a": iter([9.0, 1.0, 3.0, 2.0]), "b": iter([9.0, 5.0, 5.0, 6.0])}

    def work(name: str) -> float:
        order.append(name)
        return next(times[name])

    assert medians(3, lambda: work("a"), lambda: work("b"), warm_up=1) == [2.0, 5.0]
    assert order == ["a", "b"] * 4


def test_the_first_run_of_a_command_is_thrown_away(tmp_path: Path) -> None:
    times = iter([1000.0, 1.0, 2.0, 3.0])
    assert measure_medians([make_command("", tmp_path)], 3, lambda _: next(times)) == {"it": 2.0}


def test_commands_are_measured_in_turn(tmp_path: Path) -> None:
    order: list[str] = []

    def measure(command: Command) -> float:
        order.append(command.name)
        return 1.0

    measure_medians([make_command("", tmp_path, name) for name in "ab"], 2, measure)
    assert order == ["a", "b", "a", "b", "a", "b"]


def test_cpu_time_counts_the_work_of_the_child(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.1: pass"
    assert measure_cpu(make_command(busy, tmp_path)) >= 90


def test_cpu_time_does_not_count_waiting(tmp_path: Path) -> None:
    waiting, busy = "import time; time.sleep(0.3)", "import time\nwhile time.process_time() < 0.3: pass"
    assert any(
        measure_cpu(make_command(waiting, tmp_path)) < measure_cpu(make_command(busy, tmp_path)) for _ in range(3)
    )


def test_a_command_that_fails_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasureError, match="failed: out of order"):
        measure_cpu(make_command("raise SystemExit('out of order')", tmp_path))


def test_a_failure_is_told_by_its_error_line() -> None:
    told = describe_failure(["pip", "install"], "Looking\n   ERROR: no such thing\nnote: not our fault\n")
    assert told == "`pip install` failed: ERROR: no such thing"


# ---- environments ---------------------------------------------------------------------------------------------------


def test_pip_is_not_kept_from_writing_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert run_program(sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)") == "False"


def test_nexus_is_installed_again_from_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Sequence[str]] = []
    monkeypatch.setattr(venvs, "run_program", lambda *argv: calls.append(argv))
    install_nexus(tmp_path)
    assert {"install", "--compile", "--force-reinstall", str(ROOT)} <= set(calls[-1])


def test_a_peer_that_cannot_be_had_is_remembered_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: str) -> str:
        raise CannotMeasureError("no network")

    monkeypatch.setattr(venvs, "run_program", refuse)
    peers = Peers(tmp_path)

    assert peers.get("llm") is None
    assert peers.missing == {"llm": "it could not be installed"}


def test_a_quick_run_installs_nothing_and_says_whom_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(venvs, "run_program", lambda *_: pytest.fail("a program was started"))
    peers = Peers(tmp_path, without=True)

    assert peers.get("llm") is None
    assert peers.nexus() == venvs.OWN
    assert peers.missing == {"llm": "left out as asked"}


def test_tiktoken_finds_the_files_it_would_have_downloaded(tmp_path: Path) -> None:
    from hashlib import sha256

    write_tables(tmp_path)

    digests = {name: sha256((tmp_path / file).read_bytes()).hexdigest() for name, file in FILES.items()}
    assert digests == {name: load_tables()[name].origin_sha256 for name in FILES}
