"""What a compaction did, or would do, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.cli.tables import right_aligned
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.cli.shell import CommandShell
    from nexus_core.values.compaction import CompactionReport, Fidelity

_FACTS = ("FACTS", "RETAINED", "RECOVERABLE", "LOST")
_NAMES = {
    "path": "paths",
    "command": "commands",
    "identifier": "identifiers",
    "url": "addresses",
    "number": "numbers",
    "error": "errors",
}


def print_report(shell: CommandShell, label: str, report: CompactionReport | None, *, json: bool) -> None:
    """Print what became of a session; nothing became of it where there is no report."""
    if json:
        shell.console.json({"schema": 1, "session": label, "compaction": None if report is None else _facts(report)})
        return
    if report is None:
        stays = "The newest turns stay as they are (compaction.keep_turns, 3 by default)."
        shell.console.message(visible_line(f"There is nothing to summarise in {label}. {stays}"))
        return
    for name, what in report.failures:
        shell.console.warning(visible_line(f"{name} {what}"))
    shell.console.table([("session", label), *_rows(report)])
    if report.fidelity:
        shell.console.text("")
        rows = [_FACTS, *((_NAMES[kind], *_numbers(each)) for kind, each in report.fidelity.items())]
        shell.console.table(right_aligned(rows, {1, 2, 3}), styles=["bold"])


def _rows(report: CompactionReport) -> Iterator[tuple[str, str]]:
    what = f"{counted(report.turns, 'turn')}, {counted(report.messages, 'message')}"
    yield "summarised" if report.step else "to summarise", what
    yield "kept", f"everything from step {report.first_kept} on" if report.first_kept else "nothing of it"
    if report.pinned:
        yield "pinned", ", ".join(report.pinned)
    at_most = "" if report.step else "at most "
    sizes = f"{report.tokens_before:,} -> {at_most}{report.tokens_after:,} of {report.available:,}"
    yield "tokens", sizes
    if report.step:
        yield "summariser", report.summariser
        if report.note:
            yield "note", report.note
        if report.redacted:
            taken = ", ".join(f"{number} {kind}" for kind, number in sorted(report.redacted.items()))
            yield "secrets taken out", taken
        yield "step", report.step


def _numbers(fidelity: Fidelity) -> tuple[str, str, str]:
    return f"{len(fidelity.retained):,}", f"{len(fidelity.recoverable):,}", f"{len(fidelity.lost):,}"


def _facts(report: CompactionReport) -> dict[str, object]:
    """All of it, for JSON."""
    return {
        "step": report.step,
        "trigger": report.trigger,
        "turns": report.turns,
        "messages": report.messages,
        "first_kept": report.first_kept,
        "pinned": list(report.pinned),
        "tokens_before": report.tokens_before,
        "tokens_after": report.tokens_after,
        "available": report.available,
        "summary": report.summary,
        "summariser": report.summariser,
        "calls": report.calls,
        "failures": [{"summariser": name, "what": what} for name, what in report.failures],
        "fidelity": {
            kind: {"retained": list(each.retained), "recoverable": dict(each.recoverable), "lost": list(each.lost)}
            for kind, each in report.fidelity.items()
        },
        "redacted": dict(report.redacted),
        "form": report.form,
        "note": report.note,
        "planner": report.planner,
    }
