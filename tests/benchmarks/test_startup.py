from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "startup.py"

FAST = {
    "python -c pass": 10.0,
    "import nexus_core": 20.0,
    "bare Typer app": 60.0,
    "bare Typer app --help": 150.0,
    "nexus --version": 20.0,
    "nexus --help": 90.0,
    "nexus plugins list": 75.0,
    "nexus show": 80.0,
    "nexus assemble": 110.0,
    "nexus assemble MSG": 170.0,
    "llm plugins": 700.0,
}
SLOW = FAST | {"nexus show": 90.0}


@pytest.fixture(scope="module")
def startup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("startup_benchmark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run_main(startup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunMain:
    return RunMain(startup, tmp_path, monkeypatch)


class RunMain:
    """Runs the whole script on given medians, without venvs and without processes."""

    def __init__(self, startup: ModuleType, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.startup, self.cache, self.monkeypatch = startup, cache, monkeypatch
        self.measured: list[str] = []

    def __call__(
        self, medians: dict[str, float], *options: str, run_program: Callable[..., str] = lambda *_: "1.0"
    ) -> int:
        def measure(commands: list[tuple[str, ...]], _: int) -> dict[str, float]:
            self.measured = [command[0] for command in commands]
            return {name: medians[name] for name in self.measured}

        self.monkeypatch.setattr(self.startup, "run_program", run_program)
        self.monkeypatch.setattr(self.startup, "measure_medians", measure)
        return int(self.startup.main(["--cache", str(self.cache), *options]))


def make_command(startup: ModuleType, code: str, directory: Path, name: str = "it") -> object:
    return startup.Command(name, (sys.executable, "-c", code), directory, {})


def verdicts(startup: ModuleType, medians: dict[str, float]) -> dict[str, str]:
    return {f"{row.comparison.dividend} / {row.comparison.divisor}": row.verdict for row in startup.compare(medians)}


def test_a_ratio_is_the_first_median_divided_by_the_second(startup: ModuleType) -> None:
    [row] = startup.compare({"a": 30.0, "b": 20.0}, [startup.Comparison("a", "b")])
    assert row.ratio == 1.5


@pytest.mark.parametrize(
    ("sense", "ratio", "met"),
    [("<=", 1.4, True), ("<=", 1.41, False), (">=", 4.0, True), (">=", 3.99, False)],
)
def test_a_goal_is_met_up_to_its_bound(startup: ModuleType, sense: str, ratio: float, met: bool) -> None:
    bound = 1.4 if sense == "<=" else 4.0
    assert startup.Goal(sense, bound).is_met(ratio) is met


def test_the_goals_are_the_ones_promised(startup: ModuleType) -> None:
    goals = {(row.dividend, row.divisor): row.goal for row in startup.COMPARISONS if row.goal}
    assert goals == {
        ("import nexus_core", "python -c pass"): ("<=", 5),
        ("nexus show", "bare Typer app"): ("<=", 1.4),
        ("nexus plugins list", "bare Typer app"): ("<=", 1.4),
        ("nexus assemble", "bare Typer app"): ("<=", 2),
        ("llm plugins", "nexus plugins list"): (">=", 4),
        ("llm plugins", "nexus show"): (">=", 4),
    }


def test_a_slow_command_misses_only_its_own_goal(startup: ModuleType) -> None:
    changed = verdicts(startup, SLOW).items() - verdicts(startup, FAST).items()
    assert changed == {("nexus show / bare Typer app", "MISSED")}


def test_a_row_without_a_goal_has_no_verdict(startup: ModuleType) -> None:
    assert verdicts(startup, FAST)["nexus --help / bare Typer app --help"] == "-"


def test_a_row_without_its_peer_is_skipped(startup: ModuleType) -> None:
    without = {name: median for name, median in FAST.items() if name != "llm plugins"}
    assert verdicts(startup, FAST).keys() - verdicts(startup, without).keys() == {
        "llm plugins / nexus plugins list",
        "llm plugins / nexus show",
    }


def test_the_exit_code_is_0_when_every_goal_is_met(run_main: RunMain) -> None:
    assert run_main(FAST) == 0


def test_the_exit_code_is_1_when_a_goal_is_missed(run_main: RunMain) -> None:
    assert run_main(SLOW) == 1


def test_every_command_of_the_table_is_measured(run_main: RunMain) -> None:
    run_main(FAST)
    assert set(run_main.measured) == FAST.keys()


def test_without_peers_leaves_llm_out(run_main: RunMain) -> None:
    run_main(FAST, "--without-peers")
    assert set(run_main.measured) == FAST.keys() - {"llm plugins"}


def test_a_peer_that_cannot_be_installed_is_named_and_left_out(
    run_main: RunMain, startup: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse_llm(*argv: str) -> str:
        if argv[-1] == "llm":
            raise startup.CannotMeasureError("no network")
        return "1.0"

    assert run_main(FAST, run_program=refuse_llm) == 0
    assert "llm plugins" not in run_main.measured
    assert "llm cannot be installed, its rows are left out: no network" in capsys.readouterr().err


def test_the_exit_code_is_2_when_nexus_cannot_be_installed(
    run_main: RunMain, startup: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: str) -> str:
        raise startup.CannotMeasureError("no compiler")

    assert run_main(FAST, run_program=refuse) == 2
    assert capsys.readouterr().err == "startup: no compiler\n"


def test_the_report_shows_ratio_goal_and_verdict(run_main: RunMain, capsys: pytest.CaptureFixture[str]) -> None:
    run_main(SLOW)
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert ["nexus show / bare Typer app", "1.50", "<= 1.4", "MISSED"] in cells


def test_the_report_shows_the_medians(run_main: RunMain, capsys: pytest.CaptureFixture[str]) -> None:
    run_main(FAST)
    assert ["llm", "plugins", "700"] in [line.split() for line in capsys.readouterr().out.splitlines()]


def test_the_first_run_is_thrown_away(startup: ModuleType, tmp_path: Path) -> None:
    times = iter([1000.0, 1.0, 2.0, 3.0])
    medians = startup.measure_medians([make_command(startup, "", tmp_path)], 3, lambda _: next(times))
    assert medians == {"it": 2.0}


def test_commands_are_measured_in_turn(startup: ModuleType, tmp_path: Path) -> None:
    order: list[str] = []

    def measure(command: tuple[str, ...]) -> float:
        order.append(command[0])
        return 1.0

    startup.measure_medians([make_command(startup, "", tmp_path, name) for name in "ab"], 2, measure)
    assert order == ["a", "b", "a", "b", "a", "b"]


def test_cpu_time_counts_the_work_of_the_child(startup: ModuleType, tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.1: pass"
    assert startup.measure_cpu(make_command(startup, busy, tmp_path)) >= 90


def test_cpu_time_does_not_count_waiting(startup: ModuleType, tmp_path: Path) -> None:
    idle = "import time; time.sleep(0.3)"
    assert startup.measure_cpu(make_command(startup, idle, tmp_path)) < 250


def test_a_command_that_fails_is_not_measured(startup: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(startup.CannotMeasureError, match="failed: out of order"):
        startup.measure_cpu(make_command(startup, "raise SystemExit('out of order')", tmp_path))


def test_a_failure_is_told_by_its_error_line(startup: ModuleType) -> None:
    told = startup.describe_failure(["pip", "install"], "Looking\n   ERROR: no such thing\nnote: not our fault\n")
    assert told == "`pip install` failed: ERROR: no such thing"


def test_no_measured_command_is_kept_from_its_bytecode(
    startup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    venv = startup.Venv(tmp_path)
    commands = startup.list_commands(venv, venv, "bare", tmp_path)
    assert [command.name for command in commands if "PYTHONDONTWRITEBYTECODE" in command.environment] == []


def test_pip_is_not_kept_from_writing_bytecode(startup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert startup.run_program(sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)") == "False"


def test_the_users_own_nexus_settings_do_not_reach_a_command(
    startup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", "none")
    venv = startup.Venv(tmp_path)
    commands = startup.list_commands(venv, None, "bare", tmp_path)
    assert [command.name for command in commands if "NEXUS_PLUGINS" in command.environment] == []


def test_only_those_who_show_a_prompt_have_a_home_with_something_in_it(startup: ModuleType, tmp_path: Path) -> None:
    venv = startup.Venv(tmp_path)
    commands = startup.list_commands(venv, venv, "bare", tmp_path)
    filled = {command.name: command for command in commands if "--home" in command.argv}
    assert filled.keys() == {"nexus show", "nexus assemble", "nexus assemble MSG"}
    assert all(Path(command.argv[-1], "NEXUS.md").is_file() for command in filled.values())
    assert all((command.directory / ".nexus3").is_dir() for command in filled.values())
    assert not any(Path(command.environment["NEXUS_HOME"]).exists() for command in commands)


def test_nexus_is_installed_again_from_the_tree(
    startup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(startup, "run_program", lambda *argv: calls.append(argv))
    startup.install_nexus(tmp_path)
    assert {"install", "--compile", "--force-reinstall", str(SCRIPT.parents[1])} <= set(calls[-1])


def test_the_bare_app_is_compiled_before_it_is_measured(startup: ModuleType, tmp_path: Path) -> None:
    interpreter = tmp_path / "venv" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.symlink_to(sys.executable)
    startup.write_bare_app(tmp_path, startup.Venv(tmp_path / "venv"))
    assert len(list((tmp_path / "bare" / "__pycache__").glob("bare_app.*.pyc"))) == 1


def test_no_run_at_all_is_refused(startup: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        startup.read_options(["-n", "0"])
    assert "at least one run" in capsys.readouterr().err
