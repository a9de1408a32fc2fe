"""Fresh processes: those that prepare a measurement, and those that are measured."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measuring.reports import CannotMeasureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


class Command(NamedTuple):
    """A program to start: its name in the table, its arguments, where it runs and with which environment."""

    name: str
    argv: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]


def clean_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment without what would change how Python or Nexus starts."""
    # PYTHONDONTWRITEBYTECODE is the one that matters: with it pip leaves no bytecode behind, and every start would
    # measure the compiler.
    return {name: value for name, value in environment.items() if not name.startswith(("PYTHON", "NEXUS_"))}


def run_program(*argv: str, environment: Mapping[str, str] | None = None) -> str:
    """The output of a program that prepares the measurement, or measures in another environment."""
    settings = clean_environment() if environment is None else environment
    done = subprocess.run(argv, env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasureError(describe_failure(argv, done.stderr or done.stdout))
    return done.stdout.strip()


def describe_failure(argv: Sequence[str], output: str) -> str:
    """Which program failed, and its last words."""
    lines = output.strip().splitlines() or ["it wrote nothing"]
    # pip says good-bye with notes; its reason is the last line marked as an error.
    reason = next((line for line in reversed(lines) if "ERROR:" in line), lines[-1])
    return f"`{' '.join(argv)}` failed: {reason.strip()}"


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
