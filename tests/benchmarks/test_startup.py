from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import startup
from benchmarks.measuring import venvs
from benchmarks.measuring.processes import Command
from benchmarks.measuring.reports import CannotMeasureError
from benchmarks.measuring.rows import compare
from benchmarks.measuring.venvs import Venv

FAST = {
    "python -c pass": 10.0,
    "import the names of nexus_core": 12.0,
    "bare Typer app": 50.0,
    "bare Typer app --help": 150.0,
    "nexus --version": 20.0,
    "nexus --help": 90.0,
    "nexus plugin list": 55.0,
    "nexus show": 58.0,
    "nexus assemble": 95.0,
    "nexus assemble MSG": 98.0,
    "llm plugins": 700.0,
    "llm --version": 690.0,
    "import the names of langchain_core.messages": 280.0,
    "import the names of mcp": 760.0,
    "import the names of agents": 1690.0,
    "import the names of litellm": 3000.0,
}
SLOW = FAST | {"nexus assemble": 120.0}
PEERS = {"llm plugins", "llm --version", *(name for name in FAST if name.startswith("import ") and "nexus" not in name)}


class RunMain:
    """Runs the whole script on given medians, without venvs and without processes."""

    def __init__(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cache, self.monkeypatch = cache, monkeypatch
        self.measured: list[str] = []

    def __call__(
        self, medians: dict[str, float], *options: str, run_program: Callable[..., str] = lambda *_: "1.0"
    ) -> int:
        def measure(commands: list[Command], _: int) -> dict[str, float]:
            self.measured += [command.name for command in commands]
            return {command.name: medians[command.name] for command in commands}

        self.monkeypatch.setattr(venvs, "run_program", run_program)
        self.monkeypatch.setattr(startup, "run_program", run_program)
        self.monkeypatch.setattr(startup, "measure_medians", measure)
        return startup.main(["--cache", str(self.cache), *options])


@pytest.fixture
def run_main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunMain:
    return RunMain(tmp_path, monkeypatch)


def verdicts(medians: dict[str, float]) -> dict[str, str]:
    return {row.name: row.verdict for row in compare(medians, startup.COMPARISONS)}


def test_the_goals_are_the_ones_promised() -> None:
    goals = {(row.dividend, row.divisor): row.goals for row in startup.COMPARISONS if row.goals}
    assert {
        names: [f"{goal.sense} {goal.bound:g} {goal.id}".strip() for goal in kept] for names, kept in goals.items()
    } == {
        ("nexus show", "bare Typer app"): ["<= 1.4"],
        ("nexus plugin list", "bare Typer app"): ["<= 1.4"],
        ("nexus assemble", "bare Typer app"): ["<= 2"],
        ("nexus assemble MSG", "bare Typer app"): ["<= 2"],
        ("nexus show", "python -c pass"): ["<= 6 P5"],
        ("llm plugins", "nexus show"): [">= 4"],
        ("llm plugins", "nexus plugin list"): [">= 5 P5", ">= 4"],
        ("llm --version", "nexus show"): [">= 8 P5"],
        ("nexus --help", "bare Typer app --help"): ["<= 1 P5"],
        ("import the names of nexus_core", "python -c pass"): ["<= 5 P6"],
        ("import the names of langchain_core.messages", "import the names of nexus_core"): [">= 4 P6"],
        ("import the names of mcp", "import the names of nexus_core"): [">= 12 P6"],
        ("import the names of agents", "import the names of nexus_core"): [">= 25 P6"],
    }


def test_a_slow_command_misses_only_its_own_goal() -> None:
    changed = verdicts(SLOW).items() - verdicts(FAST).items()
    assert changed == {("nexus assemble / bare Typer app", "MISSED")}


def test_a_row_without_a_goal_has_no_verdict() -> None:
    assert verdicts(FAST)["nexus --version / python -c pass"] == "-"


def test_a_row_without_its_peer_is_skipped() -> None:
    without = {name: median for name, median in FAST.items() if not name.startswith("llm")}
    assert verdicts(FAST).keys() - verdicts(without).keys() == {
        "llm plugins / nexus plugin list",
        "llm plugins / nexus show",
        "llm --version / nexus show",
        "llm --version / nexus --version",
    }


def test_the_exit_code_is_0_when_every_goal_is_met(run_main: RunMain) -> None:
    assert run_main(FAST) == 0


def test_the_exit_code_is_1_when_a_goal_is_missed(run_main: RunMain) -> None:
    assert run_main(SLOW) == 1


def test_every_command_of_the_table_is_measured(run_main: RunMain) -> None:
    run_main(FAST)
    assert set(run_main.measured) == FAST.keys()


def test_without_peers_leaves_them_out(run_main: RunMain) -> None:
    run_main(FAST, "--without-peers")
    assert set(run_main.measured) == FAST.keys() - PEERS


def test_a_peer_that_cannot_be_installed_is_named_and_left_out(
    run_main: RunMain, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse_llm(*argv: str) -> str:
        if argv[-1] == "llm":
            raise CannotMeasureError("no network")
        return "1.0"

    assert run_main(FAST, run_program=refuse_llm) == 0
    printed = capsys.readouterr()
    assert "llm plugins" not in run_main.measured
    assert "llm cannot be installed, its rows are left out: no network" in printed.err
    assert "not measured: llm: it could not be installed" in printed.out


def test_the_exit_code_is_2_when_nexus_cannot_be_installed(
    run_main: RunMain, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: str) -> str:
        raise CannotMeasureError("no compiler")

    assert run_main(FAST, run_program=refuse) == 2
    assert capsys.readouterr().err.endswith(": no compiler\n")


def test_the_report_shows_ratio_goal_verdict_and_times(run_main: RunMain, capsys: pytest.CaptureFixture[str]) -> None:
    run_main(SLOW)
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert ["nexus assemble / bare Typer app", "2.40", "<= 2", "MISSED", "120 ms / 50 ms"] in cells


def test_no_measured_command_is_kept_from_its_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    venv = Venv(tmp_path)
    commands = startup.list_commands(venv, {"llm": venv}, "bare", tmp_path)
    assert [command.name for command in commands if "PYTHONDONTWRITEBYTECODE" in command.environment] == []


def test_the_users_own_nexus_settings_do_not_reach_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", "none")
    commands = startup.list_commands(Venv(tmp_path), {}, "bare", tmp_path)
    assert [command.name for command in commands if "NEXUS_PLUGINS" in command.environment] == []


def test_only_those_who_show_a_prompt_have_a_home_with_something_in_it(tmp_path: Path) -> None:
    venv = Venv(tmp_path)
    commands = startup.list_commands(venv, {"llm": venv}, "bare", tmp_path)
    filled = {command.name: command for command in commands if "--home" in command.argv}
    assert filled.keys() == {"nexus show", "nexus assemble", "nexus assemble MSG"}
    assert all(Path(command.argv[-1], "NEXUS.md").is_file() for command in filled.values())
    assert all((command.directory / ".nexus3").is_dir() for command in filled.values())
    assert not any(Path(command.environment["NEXUS_HOME"]).exists() for command in commands)


def test_the_bare_app_is_compiled_before_it_is_measured(tmp_path: Path) -> None:
    startup.write_bare_app(tmp_path / "bare", venvs.OWN)
    assert len(list((tmp_path / "bare" / "__pycache__").glob("bare_app.*.pyc"))) == 1
