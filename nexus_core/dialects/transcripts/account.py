"""An account of every line, kept while a transcript is read."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from nexus_core.dialects.finding import BUILT_IN
from nexus_core.dialects.transcripts.transcript import Line, Note, Report

if TYPE_CHECKING:
    from nexus_core.dialects.finding import Dialects
    from nexus_core.dialects.transcripts.transcript import Outcome


class Account:
    """What becomes of each line.

    Attributes:
        name: The file, for errors.
        dialects: The shapes that messages may be in.
        lines: How many lines there are.
    """

    def __init__(self, name: str = "", dialects: Dialects = BUILT_IN) -> None:
        self.name = name
        self.dialects = dialects
        self.lines = 0
        self._outcomes: dict[Outcome, list[int]] = defaultdict(list)
        self._notes: list[Note] = []
        self._kept: list[Line] = []

    def use(self, outcome: Outcome, *numbers: int) -> None:
        """Say what became of lines."""
        if numbers:
            self._outcomes[outcome] += numbers

    def keep(self, number: int, kind: str, value: object, outcome: Outcome = "metadata") -> None:
        """Keep a line as it is."""
        self._kept.append(Line(number, kind, value))
        self._outcomes[outcome].append(number)

    def note(self, number: int, text: str) -> None:
        """Remark something about a line."""
        self._notes.append(Note(number, text))

    @property
    def metadata(self) -> tuple[Line, ...]:
        """What was kept, in the order of the file."""
        return tuple(sorted(self._kept, key=lambda line: line.number))

    def report(self) -> Report:
        """The account, closed."""
        outcomes = {outcome: tuple(sorted(numbers)) for outcome, numbers in sorted(self._outcomes.items())}
        return Report(lines=self.lines, outcomes=outcomes, notes=tuple(sorted(self._notes)))
