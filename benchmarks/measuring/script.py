"""The options, the printing and the exit code that every script has."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring.reports import CannotMeasureError, exit_code, format_report
from benchmarks.measuring.venvs import Peers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.measuring.reports import Report

CACHE = Path(tempfile.gettempdir()) / "nexus-benchmarks"


class Script:
    """A benchmark as a program. Exit code: 0 all goals met, 1 a goal missed, 2 nothing could be measured.

    Args:
        about: What it measures, in a sentence.
    """

    def __init__(self, about: str) -> None:
        self.parser = argparse.ArgumentParser(description=about)
        self.parser.add_argument(
            "--quick", action="store_true", help="a short form that needs no network; goals ten times as wide"
        )
        self.parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found into a file, too")
        self._numbers: dict[str, tuple[int, int]] = {}

    def number(self, flag: str, name: str, usual: int, quick: int, about: str) -> None:
        """Add an option that says how much is done; it is smaller in a quick run."""
        self._numbers[name] = (usual, quick)
        told = f"{about} ({usual:,})"
        self.parser.add_argument(flag, dest=name, type=count_of(flag), metavar=name.upper(), help=told)

    def runs(self, usual: int, quick: int) -> None:
        """Add `-n`, how often each thing is done."""
        self.number("-n", "runs", usual, quick, "how often each is done")

    def peers(self) -> None:
        """Add where environments are kept, and whether peers are left out."""
        self.parser.add_argument(
            "--cache", type=Path, default=CACHE, metavar="DIR", help=f"where venvs are kept ({CACHE})"
        )
        self.parser.add_argument("--without-peers", action="store_true", help="measure Nexus only")

    def options(self, argv: Sequence[str] | None) -> argparse.Namespace:
        """The options that were given, or what stands for them; `peers` gives out the peers, if there are any."""
        given = self.parser.parse_args(argv)
        for name, (usual, quick) in self._numbers.items():
            if getattr(given, name) is None:
                setattr(given, name, quick if given.quick else usual)
        if hasattr(given, "cache"):
            given.peers = Peers(given.cache, without=given.without_peers or given.quick)
        return given

    def run(self, measure: Callable[[argparse.Namespace], Report], argv: Sequence[str] | None = None) -> int:
        """Measure, print, and return the exit code."""
        given = self.options(argv)
        try:
            report = measure(given)
        except (CannotMeasureError, OSError) as error:
            print(f"{Path(self.parser.prog).stem}: {error}", file=sys.stderr)
            return 2
        if given.quick:
            report = report._replace(rows=[row.loosened() for row in report.rows])
        print(format_report(report))
        if given.json:
            given.json.write_text(json.dumps(report.to_json()), encoding="utf-8")
        return exit_code(report.rows)


def count_of(flag: str) -> Callable[[str], int]:
    """Reads a number that is at least 1."""

    def read(text: str) -> int:
        number = int(text)
        if number < 1:
            raise argparse.ArgumentTypeError(f"{flag} has to be at least 1")
        return number

    read.__name__ = "number"  # argparse names it in its complaint
    return read
