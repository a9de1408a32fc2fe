"""`RESULTS.md`, made of reports: the same reports, the same document."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measuring.goals import GOALS
from benchmarks.measuring.reports import Report, format_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchmarks.measuring.goals import Reasons
    from benchmarks.measuring.rows import Row

INTRODUCTION = (
    "Written by `make bench`, from one run on one machine: {machine}. Ratios are of medians measured side by side in "
    "that run; what was counted is no matter of luck. [README.md](README.md) says what each row means."
)
UNKNOWN = "The reason is not known yet."


class Area(NamedTuple):
    """What one script found.

    Attributes:
        title: What it is about.
        command: What finds it again.
        report: What it found; None when it could not measure.
        failure: Why it could not.
    """

    title: str
    command: str
    report: Report | None
    failure: str = ""

    @property
    def rows(self) -> Sequence[Row]:
        """Its rows; none when it could not measure."""
        return self.report.rows if self.report else ()


def write_document(areas: Sequence[Area], machine: str, reasons: Reasons) -> str:
    """The document."""
    parts = [
        "# Results",
        INTRODUCTION.format(machine=machine),
        *_summary(areas, reasons),
        *_goals(areas, reasons),
    ]
    for area in areas:
        parts += _area(area)
    return "\n\n".join(parts) + "\n"


def _summary(areas: Sequence[Area], reasons: Reasons) -> Iterator[str]:
    rows = [row for area in areas for row in area.rows]
    goals, missed = sum(len(row.goals) for row in rows), [row for row in rows if row.missed]
    yield f"{goals} goals, {sum(len(row.missed) for row in missed)} missed; {len(rows)} rows."
    if missed:
        yield "## Missed goals"
        told = [(row.name, row.shown, _bounds(row), reasons.missed.get(row.name, UNKNOWN)) for row in missed]
        yield format_markdown(("row", "measured", "goal", "why"), told)
    left = [(area.title, name, why) for area in areas for name, why in _left_out(area)]
    if left:
        yield "## Not measured"
        yield format_markdown(("area", "what", "why"), left)


def _left_out(area: Area) -> Iterator[tuple[str, str]]:
    if area.report is None:
        yield "all of it", area.failure
    else:
        yield from area.report.missing.items()


def _goals(areas: Sequence[Area], reasons: Reasons) -> Iterator[str]:
    yield "## The goals P1 to P12"
    lines = []
    for name, words in GOALS.items():
        found = [goal.is_met(row.value) for area in areas for row in area.rows for goal in row.goals if goal.id == name]
        verdict = f"{sum(found)} of {len(found)} met" if found else "NOT MEASURED"
        without = reasons.unmeasured.get(name, "")
        places = ", ".join(dict.fromkeys(area.title for area in areas if name in _ids(area.rows)))
        lines.append((name, words, verdict, places or "-", without or "-"))
    yield format_markdown(("goal", "what", "verdict", "where", "without a row"), lines)


def _ids(rows: Iterable[Row]) -> set[str]:
    return {goal.id for row in rows for goal in row.goals}


def _area(area: Area) -> Iterator[str]:
    yield f"## {area.title}"
    yield f"    {area.command}"
    if area.report is None:
        yield f"Could not be measured: {area.failure}"
        return
    lines = [(row.name, row.shown, row.wanted, row.verdict, row.detail or "-") for row in area.rows]
    yield format_markdown(("row", "measured", "goal", "verdict", "of"), lines)
    yield from area.report.notes
    if area.report.versions:
        yield f"With {format_versions(area.report.versions)}."


def _bounds(row: Row) -> str:
    return row._replace(goals=row.missed).wanted


def format_markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    cells = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in cells)
