"""`nexus session search`."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.commands.session.overview import collect_damage, report_damage
from nexus_core.cli.options import JsonOption
from nexus_core.cli.output import format_time, get_line_width
from nexus_core.cli.session_lookup import LedgerOption, build_session_option, find_session, open_ledger_nexus
from nexus_core.compaction.quotes import shorten_step_id
from nexus_core.ledger.queries import find_sessions_to_search
from nexus_core.ledger.search import find_quote, search_session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.cli.commands.session.overview import DamagedSession
    from nexus_core.cli.context import CliContext
    from nexus_core.types.ledger import Ledger, SessionRecord, Step

app = typer.Typer()

_HEADING = ("SESSION", "WHEN", "STEP", "WHO", "WORDS")
_MAX_MATCHES, _MIN_EXCERPT_CHARACTERS = 1_000, 40
_JSON_EXCERPT_CHARACTERS = 4_000
"""Characters around what was found, in JSON."""

TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="The text to find, exactly as it was written.")]
SessionOption = Annotated[str, build_session_option("Only in this session; in all of them by default.")]
LimitOption = Annotated[
    int, typer.Option("-n", "--limit", metavar="N", min=1, max=_MAX_MATCHES, help="List at most N matches.")
]

EXAMPLES = """
\b
Examples:
  nexus session search "login fails"
  nexus session search cookie --session auth-bug --limit 5
"""


class SearchMatch(NamedTuple):
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
    text: TextArgument,
    *,
    session: SessionOption = "",
    limit: LimitOption = 20,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Search the messages of all sessions.

    Messages, reasoning, calls and results are searched, newest first, and printed without secrets. Of each session the
    newest 10,000 steps are looked through. STEP will do for `show --step`, `replay` and `pin`.
    """
    cli: CliContext = ctx.obj
    damaged: list[DamagedSession] = []
    with open_ledger_nexus(ctx, ledger) as nexus:
        records = [find_session(nexus.ledger, session)] if session else find_sessions_to_search(nexus.ledger, text)
        hits = find_newest_matches(nexus.ledger, records, text, limit, damaged)
    if json:
        found = [_match_to_json(hit, text) for hit in hits]
        cli.console.json({"schema": 1, "found": found, "damaged": [each._asdict() for each in damaged]})
    elif hits:
        _print_matches(cli, hits, text)
    else:
        cli.console.message("Nothing found.")
    report_damage(cli, damaged)


def find_newest_matches(
    ledger: Ledger, records: Iterable[SessionRecord], text: str, limit: int, damaged: list[DamagedSession]
) -> list[SearchMatch]:
    """Return the newest matches, newest first. A step that forks share is found once.

    Args:
        ledger: Where the sessions are.
        records: The sessions, those changed last first.
        text: The text to find.
        limit: How many matches at most.
        damaged: Where to add the sessions that cannot be read.
    """
    hits: dict[str, SearchMatch] = {}
    for record in records:
        newest = sorted(hits.values(), key=_sort_key, reverse=True)[:limit]
        if len(newest) == limit and record.updated < newest[-1].moment:
            break  # nothing of it, or of those behind it, is newer
        hits = {hit.step.id: hit for hit in newest}
        with collect_damage(damaged, record.label):
            found = search_session(ledger, record, text, limit=limit)
            moments = reversed([*accumulate((step.created for step in reversed(found)), max)])
            for step, moment in zip(found, moments, strict=True):
                hits.setdefault(step.id, SearchMatch(record.label, step, moment))
    return sorted(hits.values(), key=_sort_key, reverse=True)[:limit]


def _sort_key(hit: SearchMatch) -> tuple[int, int, str]:
    return hit.moment, hit.step.position, hit.step.id


def _print_matches(cli: CliContext, hits: list[SearchMatch], text: str) -> None:
    taken = max(len(hit.label) for hit in hits) + len("  2026-01-01 12:00  4N6M1R  assistant  ……")
    room = max(get_line_width() - taken, len(text), _MIN_EXCERPT_CHARACTERS)
    rows: list[tuple[str, ...]] = [_HEADING]
    for label, step, _ in hits:
        quote = find_quote(step, text, room)
        rows.append(
            (label, format_time(step.created), shorten_step_id(step.id), quote.role, " ".join(quote.text.split()))
        )
    cli.console.table(rows, styles=["bold"])


def _match_to_json(hit: SearchMatch, text: str) -> dict[str, object]:
    label, step, _ = hit
    about = {"session": label, "step": step.id, "turn": step.turn, "kind": step.kind, "created": step.created}
    return about | find_quote(step, text, _JSON_EXCERPT_CHARACTERS)._asdict()
