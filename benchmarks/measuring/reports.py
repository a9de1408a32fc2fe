"""What a script found, as text for who started it and as JSON for who started them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.measuring.rows import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class CannotMeasureError(Exception):
    """Something that the measurement needs is not there or has failed; the message says what."""


class Report(NamedTuple):
    """What a script found.

    Attributes:
        rows: The numbers.
        versions: By distribution, the version that was measured.
        missing: By what is not in the rows, the reason.
        notes: What else is worth knowing, a sentence each.
    """

    rows: Sequence[Row]
    versions: Mapping[str, str] = {}
    missing: Mapping[str, str] = {}
    notes: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        rows = [row._asdict() | {"goals": [goal._asdict() for goal in row.goals]} for row in self.rows]
        return {
            "rows": rows,
            "versions": dict(self.versions),
            "missing": dict(self.missing),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Report:
        """As it was before it was JSON."""
        rows = [Row(**row | {"goals": tuple(Goal(**goal) for goal in row["goals"])}) for row in content["rows"]]
        return cls(rows, content["versions"], content["missing"], content["notes"])


def format_report(report: Report) -> str:
    """A table, and what else there is to say."""
    lines = [("ROW", "NUMBER", "GOAL", "VERDICT", "OF")]
    lines += [(row.name, row.shown, row.wanted, row.verdict, row.detail) for row in report.rows]
    parts = [format_versions(report.versions), format_table(lines), *report.notes]
    for reason in dict.fromkeys(report.missing.values()):
        names = ", ".join(name for name, why in report.missing.items() if why == reason)
        parts.append(f"not measured: {names}: {reason}")
    return "\n\n".join(filter(None, parts))


def format_versions(versions: Mapping[str, str]) -> str:
    """The versions in one line."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def format_table(lines: Sequence[Sequence[str]]) -> str:
    """The lines with their columns aligned."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def exit_code(rows: Iterable[Row]) -> int:
    """1 when a goal was missed, else 0."""
    return int(any(row.missed for row in rows))
