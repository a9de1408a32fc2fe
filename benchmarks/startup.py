"""How long Nexus takes to start, beside plain Python, a bare Typer app and `llm`.

    python benchmarks/startup.py [-n RUNS] [--cache DIR] [--without-peers]

Prints ratios with their goals, then the medians behind them. Exit code: 0 all goals met, 1 a goal missed, 2 nothing
could be measured. Needs POSIX (`os.wait4`).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
ACME = ROOT / "examples" / "acme"

PYTHON = "python -c pass"
IMPORT = "import nexus_core"
BARE = "bare Typer app"
BARE_HELP = "bare Typer app --help"
VERSION = "nexus --version"
HELP = "nexus --help"
SHOW = "nexus show"
ASSEMBLE = "nexus assemble"
ASSEMBLE_MESSAGE = "nexus assemble MSG"
PLUGINS = "nexus plugins list"
LLM = "llm plugins"

# The least that Typer can do: whatever Nexus costs above this is its own.
BARE_APP = '''\
import typer

app = typer.Typer()


@app.command()
def hello() -> None:
    """Say hello."""
    typer.echo("hello")
'''
# Python keeps no bytecode of the file it is told to run, so that file is as small as the one pip writes for `nexus`.
BARE_LAUNCHER = """\
import sys
from bare_app import app
if __name__ == '__main__':
    sys.exit(app())
"""


class Goal(NamedTuple):
    """A bound that a ratio must keep."""

    sense: Literal["<=", ">="]
    bound: float

    def is_met(self, ratio: float) -> bool:
        """Whether the ratio keeps the bound; the bound itself does."""
        return ratio <= self.bound if self.sense == "<=" else ratio >= self.bound


class Comparison(NamedTuple):
    """Two commands whose times are divided, and what the quotient should be; no goal: for information."""

    dividend: str
    divisor: str
    goal: Goal | None = None


class Row(NamedTuple):
    """A comparison with its measured ratio."""

    comparison: Comparison
    ratio: float

    @property
    def verdict(self) -> str:
        """`ok`, `MISSED`, or `-` where there is no goal."""
        goal = self.comparison.goal
        if goal is None:
            return "-"
        return "ok" if goal.is_met(self.ratio) else "MISSED"


class Command(NamedTuple):
    """A program to start: its name in the table, its arguments, where it runs and with which environment."""

    name: str
    argv: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]


class Venv(NamedTuple):
    """A virtual environment; programs in it run through its interpreter, as a shebang line would do."""

    directory: Path

    @property
    def python(self) -> str:
        """The interpreter."""
        return str(self.directory / "bin" / "python")

    def script(self, name: str) -> str:
        """The console script of that name."""
        return str(self.directory / "bin" / name)


class CannotMeasureError(Exception):
    """A program that the measurement needs has failed; the message says which, and its last words."""


COMPARISONS = (
    Comparison(IMPORT, PYTHON, Goal("<=", 5)),
    Comparison(SHOW, BARE, Goal("<=", 1.4)),
    Comparison(PLUGINS, BARE, Goal("<=", 1.4)),
    Comparison(ASSEMBLE, BARE, Goal("<=", 2)),
    Comparison(ASSEMBLE_MESSAGE, BARE),
    Comparison(LLM, PLUGINS, Goal(">=", 4)),
    Comparison(LLM, SHOW, Goal(">=", 4)),
    Comparison(VERSION, PYTHON),
    Comparison(HELP, BARE_HELP),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    options = read_options(argv)
    try:
        cache = open_cache(options.cache)
        nexus = install_nexus(cache)
        llm = None if options.without_peers else install_llm(cache)
        print(describe_machine(nexus, llm))
        with tempfile.TemporaryDirectory() as empty:
            medians = measure_medians(
                list_commands(nexus, llm, write_bare_app(cache, nexus), Path(empty)), options.runs
            )
    except (CannotMeasureError, OSError) as error:
        print(f"startup: {error}", file=sys.stderr)
        return 2
    rows = compare(medians)
    print(format_report(rows, medians))
    return exit_code(rows)


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options: `runs`, `cache`, `without_peers`."""
    parser = argparse.ArgumentParser(description="Measure how long Nexus takes to start, beside its peers.")
    parser.add_argument(
        "-n", dest="runs", type=count_runs, default=15, metavar="RUNS", help="runs of each command (15)"
    )
    cache = Path(tempfile.gettempdir()) / "nexus-benchmarks"
    parser.add_argument("--cache", type=Path, default=cache, metavar="DIR", help=f"where the venvs are kept ({cache})")
    parser.add_argument("--without-peers", action="store_true", help="leave llm out")
    return parser.parse_args(argv)


def count_runs(text: str) -> int:
    """A number of runs, at least 1."""
    runs = int(text)
    if runs < 1:
        raise argparse.ArgumentTypeError("at least one run is needed")
    return runs


# Preparing ------------------------------------------------------------------------------------------------------------


def open_cache(directory: Path) -> Path:
    """The cache directory, made if need be."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if directory.stat().st_uid != os.getuid():
        # The default lies where every user may write, and what is found in it will be run.
        raise CannotMeasureError(f"{directory} belongs to another user; choose another with --cache")
    return directory.resolve()


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would change how Python or Nexus starts."""
    # PYTHONDONTWRITEBYTECODE is the one that matters: with it pip leaves no bytecode behind, and every start would
    # measure the compiler.
    return {name: value for name, value in environment.items() if not name.startswith(("PYTHON", "NEXUS_"))}


def run_program(*argv: str) -> str:
    """The output of a program that prepares the measurement."""
    done = subprocess.run(argv, env=clean_environment(os.environ), capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasureError(describe_failure(argv, done.stderr or done.stdout))
    return done.stdout.strip()


def describe_failure(argv: Sequence[str], output: str) -> str:
    """Which program failed, and its last words."""
    lines = output.strip().splitlines() or ["it wrote nothing"]
    # pip says good-bye with notes; its reason is the last line marked as an error.
    reason = next((line for line in reversed(lines) if "ERROR:" in line), lines[-1])
    return f"`{' '.join(argv)}` failed: {reason.strip()}"


def install_nexus(cache: Path) -> Venv:
    """A venv with Nexus as it is in the working tree now, installed as a user would."""
    venv = make_venv(cache, "nexus")
    install(venv, "--force-reinstall", str(ROOT))  # the version number may be the same, the tree is not
    return venv


def install_llm(cache: Path) -> Venv | None:
    """A venv with `llm`; None, and a message, when it cannot be had."""
    try:
        venv = make_venv(cache, "llm")
        install(venv, "llm")
    except CannotMeasureError as error:
        print(f"llm cannot be installed, its rows are left out: {error}", file=sys.stderr)
        return None
    return venv


def make_venv(cache: Path, name: str) -> Venv:
    """The venv of that name for this interpreter, made if it is not there yet."""
    venv = Venv(cache / f"{name}-{sys.implementation.cache_tag}")
    if not Path(venv.script("pip")).exists():  # pip comes last, so a venv left half made is made again
        run_program(sys.executable, "-m", "venv", str(venv.directory))
    return venv


def install(venv: Venv, *what: str) -> None:
    """Install with bytecode, whatever pip's configuration says."""
    # Without the version check the last line of a failure is the failure, not an advertisement for a newer pip.
    run_program(venv.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--compile", *what)


def write_bare_app(cache: Path, venv: Venv) -> str:
    """Write the bare Typer app, compile it, and return its launcher."""
    directory = cache / "bare"
    directory.mkdir(exist_ok=True)
    (directory / "bare_app.py").write_text(BARE_APP, encoding="utf-8")
    launcher = directory / "bare"
    launcher.write_text(BARE_LAUNCHER, encoding="utf-8")
    run_program(venv.python, "-m", "compileall", "-q", str(directory))
    return str(launcher)


def list_commands(nexus: Venv, llm: Venv | None, bare: str, empty: Path) -> list[Command]:
    """What is measured; nothing is in a command's directory and home, except where there must be something to show."""
    work, home = empty / "work", empty / "home"  # side by side: a home in the directory would be refused
    work.mkdir()
    environment = clean_environment(os.environ) | {"NEXUS_HOME": str(home), "LLM_USER_PATH": str(home)}
    python, script = nexus.python, nexus.script("nexus")

    def command(name: str, *argv: str) -> Command:
        return Command(name, argv, work, environment)

    def acme(name: str, *argv: str) -> Command:
        found = command(name, python, script, *argv, "--home", str(ACME / "home" / ".nexus3"))
        return found._replace(directory=ACME / "company" / "backend" / "auth-service")

    # What is compared stands side by side, to meet the same noise. A program that follows a big one finds the
    # processor's caches cold, so Nexus goes before what it is measured by: never to its own advantage.
    commands = [
        command(HELP, python, script, "--help"),
        command(BARE_HELP, python, bare, "--help"),
        command(VERSION, python, script, "--version"),
        command(IMPORT, python, "-c", "import nexus_core"),
        command(PYTHON, python, "-c", "pass"),
        acme(ASSEMBLE_MESSAGE, "assemble", "Why does login fail?"),
        acme(ASSEMBLE, "assemble"),
        acme(SHOW, "show"),
        command(PLUGINS, python, script, "plugins", "list"),
        command(BARE, python, bare),
    ]
    if llm:
        commands.append(command(LLM, llm.python, llm.script("llm"), "plugins"))
    return commands


# Measuring ------------------------------------------------------------------------------------------------------------


def measure_cpu(command: Command) -> float:
    """The CPU time, user and system, of one fresh process, in milliseconds."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command.argv,
            cwd=command.directory,
            env=command.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # it has been waited for; Popen cannot know
        if process.returncode:
            output.seek(0)
            raise CannotMeasureError(describe_failure(command.argv, output.read().decode(errors="replace")))
    return (usage.ru_utime + usage.ru_stime) * 1000


def measure_medians(
    commands: Sequence[Command], runs: int, measure: Callable[[Command], float] = measure_cpu
) -> dict[str, float]:
    """The median of each command's times, in milliseconds."""
    times: dict[str, list[float]] = {command.name: [] for command in commands}
    for _ in range(1 + runs):
        for command in commands:  # in turn, so that noise on the machine falls on all of them alike
            times[command.name].append(measure(command))
    # The first run fills the disk cache and may still write bytecode.
    return {name: statistics.median(measured[1:]) for name, measured in times.items()}


def compare(medians: Mapping[str, float], comparisons: Iterable[Comparison] = COMPARISONS) -> list[Row]:
    """A row for each comparison of which both commands were measured."""
    return [
        Row(comparison, medians[comparison.dividend] / medians[comparison.divisor])
        for comparison in comparisons
        if comparison.dividend in medians and comparison.divisor in medians
    ]


def exit_code(rows: Iterable[Row]) -> int:
    """1 when a goal was missed, else 0."""
    return int(any(row.verdict == "MISSED" for row in rows))


# Printing -------------------------------------------------------------------------------------------------------------


def describe_machine(nexus: Venv, llm: Venv | None) -> str:
    """What the numbers depend on, in one line."""
    python = run_program(
        nexus.python, "-c", "import platform as p; print(p.python_implementation(), p.python_version())"
    )
    versions = [python, f"typer {read_version(nexus, 'typer')}"]
    if llm:
        versions.append(f"llm {read_version(llm, 'llm')}")
    return ", ".join([*versions, f"{os.cpu_count()} cores"])


def read_version(venv: Venv, distribution: str) -> str:
    """The version of a distribution that is installed in the venv."""
    return run_program(venv.python, "-c", f"from importlib.metadata import version; print(version({distribution!r}))")


def format_report(rows: Iterable[Row], medians: Mapping[str, float]) -> str:
    """The table of ratios, and below it the medians."""
    ratios = [("ROW", "RATIO", "GOAL", "VERDICT"), *map(format_row, rows)]
    times = [("COMMAND", "MEDIAN CPU MS"), *((name, f"{median:.4g}") for name, median in medians.items())]
    return f"\n{format_table(ratios)}\n\n{format_table(times)}"


def format_row(row: Row) -> tuple[str, str, str, str]:
    """The cells of a row."""
    dividend, divisor, goal = row.comparison
    return f"{dividend} / {divisor}", f"{row.ratio:.2f}", f"{goal.sense} {goal.bound:g}" if goal else "-", row.verdict


def format_table(lines: Sequence[Sequence[str]]) -> str:
    """The lines with their columns aligned."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


if __name__ == "__main__":
    sys.exit(main())
