"""`nexus session search`."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.ledger import session_option
from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.session.group import LedgerUrl, app, find_session, open_nexus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.cli.session.damage import Damaged
    from nexus_core.cli.shell import CommandShell
    from nexus_core.values.ledger import Ledger, SessionRecord, Step

_HEADING = ("SESSION", "WHEN", "STEP", "WHO", "WORDS")
_MOST, _FEWEST = 1_000, 40
_TOLD = 4_000
"""Characters around what was found, in JSON."""

Sought = Annotated[str, typer.Argument(metavar="TEXT", help="The text to find, exactly as it was written.")]
Within = Annotated[str, session_option("Only in this session; in all of them by default.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=_MOST, help="How many of the newest matches.")]

EXAMPLES = """
\b
Examples:
  nexus session search "login fails"
  nexus session search cookie --session auth-bug --limit 5
"""


class Hit(NamedTuple):
    """A step in which something was found.

    Attributes:
        label: The session that led there.
        step: The step.
        moment: When it was made, or what was found before it in the session if that is later: clocks are set back.
    """

    label: str
    step: Step
    moment: int


@app.command(epilog=EXAMPLES)
def search(
    ctx: typer.Context,
    text: Sought,
    *,
    session: Within = "",
    limit: Limit = 20,
    ledger: LedgerUrl = "",
    json: Json = False,
) -> None:
    """Find where something was said: in messages, thoughts, calls and results, newest first, without secrets.

    Of each session the newest 10,000 steps are looked through. STEP will do for `show --step`, `replay` and `pin`.
    """
    from nexus_core.cli.session.damage import tell_damage  # noqa: PLC0415 - other commands do not need it

    shell: CommandShell = ctx.obj
    damaged: list[Damaged] = []
    with open_nexus(ctx, ledger) as nexus:
        records = [find_session(nexus.ledger, session)] if session else nexus.ledger.sessions(status=None)
        hits = _newest(nexus.ledger, records, text, limit, damaged)
    if json:
        found = [_facts(hit, text) for hit in hits]
        shell.console.json({"schema": 1, "found": found, "damaged": [each._asdict() for each in damaged]})
    elif hits:
        _print(shell, hits, text)
    else:
        shell.console.message("Nothing found.")
    tell_damage(shell, damaged)


def _newest(
    ledger: Ledger, records: Iterable[SessionRecord], text: str, limit: int, damaged: list[Damaged]
) -> list[Hit]:
    """The newest findings of sessions, of which those changed last come first; what forks share is found once."""
    from nexus_core.cli.session.damage import noting  # noqa: PLC0415 - as above
    from nexus_core.history.ledger.searching import search_session  # noqa: PLC0415 - as above

    hits: dict[str, Hit] = {}
    for record in records:
        newest = sorted(hits.values(), key=_age, reverse=True)[:limit]
        if len(newest) == limit and record.updated < newest[-1].moment:
            break  # nothing of it, or of those behind it, is newer
        hits = {hit.step.id: hit for hit in newest}
        with noting(damaged, record.label):
            found = search_session(ledger, record, text, limit=limit)
            moments = reversed([*accumulate((step.created for step in reversed(found)), max)])
            for step, moment in zip(found, moments, strict=True):
                hits.setdefault(step.id, Hit(record.label, step, moment))
    return sorted(hits.values(), key=_age, reverse=True)[:limit]


def _age(hit: Hit) -> tuple[int, int, str]:
    return hit.moment, hit.step.position, hit.step.id


def _print(shell: CommandShell, hits: list[Hit], text: str) -> None:
    from nexus_core.cli.bars import line_width  # noqa: PLC0415 - as above
    from nexus_core.cli.session.overview import moment  # noqa: PLC0415 - as above
    from nexus_core.compaction.evidence.rendering import short_step  # noqa: PLC0415 - as above
    from nexus_core.history.ledger.searching import quote_around  # noqa: PLC0415 - as above

    taken = max(len(hit.label) for hit in hits) + len("  2026-01-01 12:00  4N6M1R  assistant  ……")
    room = max(line_width() - taken, len(text), _FEWEST)
    rows: list[tuple[str, ...]] = [_HEADING]
    for label, step, _ in hits:
        quote = quote_around(step, text, room)
        rows.append((label, moment(step.created), short_step(step.id), quote.role, " ".join(quote.text.split())))
    shell.console.table(rows, styles=["bold"])


def _facts(hit: Hit, text: str) -> dict[str, object]:
    from nexus_core.history.ledger.searching import quote_around  # noqa: PLC0415 - as above

    label, step, _ = hit
    about = {"session": label, "step": step.id, "turn": step.turn, "kind": step.kind, "created": step.created}
    return about | quote_around(step, text, _TOLD)._asdict()
