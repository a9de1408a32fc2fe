"""`nexus session search`."""

from __future__ import annotations

import re
import time
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from nexus_core.cli.commands.session.overview import collect_damage, report_damage
from nexus_core.cli.options import FacetOption, JsonOption
from nexus_core.cli.output import format_time
from nexus_core.cli.session_lookup import (
    EMPTY_LEDGER_HINT,
    LedgerOption,
    build_session_option,
    find_session,
    open_ledger_nexus,
)
from nexus_core.compaction.evidence import shorten_step_id
from nexus_core.errors import UsageError, did_you_mean
from nexus_core.files.places import expand_user
from nexus_core.ledger.queries import find_sessions_to_search
from nexus_core.ledger.search import find_quote, search_session
from nexus_core.memory.search import SNIPPET_CHARACTERS, StepQuery, find_word_forms, search_steps
from nexus_core.memory.words import find_query_words
from nexus_core.text.console import format_count, format_share
from nexus_core.text.safety import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.cli.commands.session.overview import DamagedSession
    from nexus_core.cli.context import CliContext
    from nexus_core.memory.search import StepHit
    from nexus_core.types.ledger import Ledger, SessionRecord, Step

app = typer.Typer()

_HEADING = ("SESSION", "WHEN", "STEP", "WHO", "WORDS")
_MAX_MATCHES, _MIN_EXCERPT_CHARACTERS = 1_000, 40
_MAX_COUNTED = 100
"""Hits that are counted if filters leave none."""
_JSON_EXCERPT_CHARACTERS = 4_000
"""Characters around what was found, in JSON."""

TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="A question, or words to find.")]
SessionOption = Annotated[str, build_session_option("Only in this session; in all of them by default.")]
ExactOption = Annotated[bool, typer.Option("--exact", help="Find the text as it is written, newest first.")]
DirectoryOption = Annotated[
    str, typer.Option("--directory", metavar="DIR", help="Only sessions that work in DIR or below it.")
]
HereOption = Annotated[bool, typer.Option("--here", help="Only sessions of this directory or below it.")]
RoleOption = Annotated[
    list[str], typer.Option("--role", metavar="ROLE", help="Only user, assistant, tool or system; repeatable.")
]
KindOption = Annotated[
    list[str], typer.Option("--kind", metavar="KIND", help="Only steps of a kind: input, reply, result …; repeatable.")
]
SinceOption = Annotated[
    str, typer.Option("--since", metavar="TIME", help="Only since 2026-01-31, 2026-01-31T12:00, or 7d, 12h ago.")
]
UntilOption = Annotated[str, typer.Option("--until", metavar="TIME", help="Only before that time.")]
LimitOption = Annotated[
    int, typer.Option("-n", "--limit", metavar="N", min=1, max=_MAX_MATCHES, help="List at most N matches.")
]

EXAMPLES = """
\b
Examples:
  nexus session search "where did we change the auth middleware?"
  nexus session search "pytest" --facet command --since 7d
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
    exact: ExactOption = False,
    session: SessionOption = "",
    directory: DirectoryOption = "",
    here: HereOption = False,
    role: RoleOption = [],  # noqa: B006 - Typer copies it
    kind: KindOption = [],  # noqa: B006 - as above
    facet: FacetOption = [],  # noqa: B006 - as above
    since: SinceOption = "",
    until: UntilOption = "",
    limit: LimitOption = 20,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Search the messages of all sessions.

    Turns are ranked by the words of TEXT, best first: rare words count more, in any form (change, changed), and those
    of turns nearby count, too. --exact lists where TEXT occurs as it is written, newest first; of each session the
    newest 10,000 steps are looked through. Secrets are not printed. STEP will do for `show --step`, `replay` and `pin`.
    The first search indexes the ledger, later ones what is new.
    """
    cli: CliContext = ctx.obj
    if not text.strip():
        raise UsageError("there is nothing to look for", hint="text must not be empty")
    filters = SearchFilters.of(
        cli, directory=directory, here=here, roles=role, kinds=kind, facets=facet, since=since, until=until
    )
    if exact:
        filters.require_none()
        _search_exact(ctx, text, session, limit, ledger, json=json)
        return
    with open_ledger_nexus(ctx, ledger) as nexus:
        name = find_session(nexus.ledger, session).label if session else None
        most = SNIPPET_CHARACTERS if json else _measure_snippet(cli)
        query = StepQuery(text=text, session=name, limit=limit, snippet_characters=most, **filters._asdict())
        with cli.console.progress(None, "Indexing", unit="steps") as progress:
            result = search_steps(nexus.ledger, query, advance=progress.advance)
        hits = result.strong_hits
        unfiltered = None
        if not hits and any(value not in (None, ()) for value in filters):
            anywhere = StepQuery(text=text, session=name, limit=_MAX_COUNTED)
            unfiltered = len(search_steps(nexus.ledger, anywhere).strong_hits)
        nothing = "" if hits else _explain_nothing(nexus.ledger, query, unfiltered)
    if json:
        found = [{field: getattr(hit, field) for field in _JSON_FIELDS} for hit in hits]
        about = {
            field: getattr(result, field) for field in ("coverage", "is_evident", "unknown_names", "unknown_words")
        }
        cli.console.json({"schema": 1, "found": found, "damaged": [], **about, "without_filters": unfiltered})
        return
    if hits:
        _print_hits(cli, hits)
    else:
        cli.console.message(visible_line(nothing))
    notes = []
    if hits and not result.is_evident:
        notes.append(f"weak match: the best hit has {format_share(result.coverage)} of the question's words")
    if result.turns and (unknown := (*result.unknown_names, *result.unknown_words)):
        notes.append(f"occurs nowhere here: {', '.join(unknown)}")
    if hits and cli.console.is_terminal:
        notes.append("nexus session show SESSION --step STEP prints a step")
    if notes:
        cli.console.message(visible_line(f"({'; '.join(notes)})"), style="dim")


def _measure_snippet(cli: CliContext) -> int:
    """Return the number of snippet characters to show."""
    if not cli.console.is_terminal:
        return SNIPPET_CHARACTERS
    return max(min(cli.console.width - len("  ……"), SNIPPET_CHARACTERS), _MIN_EXCERPT_CHARACTERS)


def _explain_nothing(ledger: Ledger, query: StepQuery, unfiltered: int | None) -> str:
    """Return that nothing was found, and why if that is known.

    Args:
        ledger: Where was searched.
        query: What was searched for.
        unfiltered: How many hits there are without the filters; None if there were no filters.
    """
    if not ledger.sessions(status=None):
        return f"Nothing found: there are no sessions. {EMPTY_LEDGER_HINT}"
    if not find_query_words(query.text):
        return "Nothing found: the text has only words such as 'the' and 'of', which are not indexed; try --exact."
    if query.directory is not None:
        known = {record.payload.cwd for record in ledger.sessions(status=None) if record.payload.cwd}
        if not any(Path(each).is_relative_to(query.directory) for each in known):
            nearest = did_you_mean(query.directory, known)
            return f"Nothing found: no session works in {query.directory} or below it{nearest and '; '}{nearest}"
    if unfiltered:
        more = " or more" if unfiltered == _MAX_COUNTED else ""
        return f"Nothing found with these filters; without them: {format_count(unfiltered, 'hit')}{more}"
    return "Nothing found."


_JSON_FIELDS = ("session", "step", "turn", "kind", "created", "role", "text", "score")


class SearchFilters(NamedTuple):
    """The filters of a ranked search, with the names of the fields of `StepQuery`."""

    directory: str | None
    roles: tuple[str, ...]
    kinds: tuple[Any, ...]
    facets: tuple[Any, ...]
    since: int | None
    until: int | None

    @classmethod
    def of(
        cls,
        cli: CliContext,
        *,
        directory: str,
        here: bool,
        roles: Sequence[str],
        kinds: Sequence[str],
        facets: Sequence[str],
        since: str,
        until: str,
    ) -> SearchFilters:
        """Return the filters that options name.

        Raises:
            UsageError: A time cannot be read, or the first is after the last.
        """
        wanted = str(Path(cli.cwd, expand_user(directory)).resolve()) if directory else None
        if here and wanted is None:
            wanted = str(cli.cwd)
        since_ms, until_ms = parse_search_time(since), parse_search_time(until)
        if since_ms is not None and until_ms is not None and since_ms > until_ms:
            what = visible_line(f"--since {since} is after --until {until}")
            raise UsageError(what, hint="no step is between them: swap the two times")
        return cls(wanted, tuple(roles), tuple(kinds), tuple(facets), since_ms, until_ms)

    def require_none(self) -> None:
        """Reject filters together with `--exact`.

        Raises:
            UsageError: There is one.
        """
        if any(value not in (None, ()) for value in self):
            raise UsageError("--exact looks through everything", hint="it can be combined with --session and --limit")


_AGE = re.compile(r"(\d{1,5})\s*([mhdw])")
_AGE_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def parse_search_time(text: str) -> int | None:
    """Return a date, a time or an age in milliseconds since 1970, or None.

    Raises:
        UsageError: It is none of these.
    """
    if not text:
        return None
    if age := _AGE.fullmatch(text.strip()):
        return int((time.time() - int(age[1]) * _AGE_SECONDS[age[2]]) * 1000)
    try:
        return int(datetime.fromisoformat(text.strip()).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        hint = "write 2026-01-31, 2026-01-31T12:00, or an age: 30m, 12h, 7d, 2w"
        raise UsageError(f"{visible_line(text)!r} is not a time", hint=hint) from None


def _print_hits(cli: CliContext, hits: Sequence[StepHit]) -> None:
    rows: list[tuple[str, ...]] = [_HEADING]
    bold: dict[tuple[int, int], set[str]] = {}
    for row, hit in enumerate(hits, 1):
        rows.append((hit.session, format_time(hit.created), shorten_step_id(hit.step), hit.role, hit.text))
        bold[row, len(_HEADING) - 1] = find_word_forms(hit.text, hit.words)
    cli.console.table(rows, styles=["bold"], bold_words=bold, whole={len(_HEADING) - 1})


def _search_exact(ctx: typer.Context, text: str, session: str, limit: int, ledger: str, *, json: bool) -> None:
    cli: CliContext = ctx.obj
    damaged: list[DamagedSession] = []
    with open_ledger_nexus(ctx, ledger) as nexus:
        records = [find_session(nexus.ledger, session)] if session else find_sessions_to_search(nexus.ledger, text)
        with cli.console.progress(None, "Searching", unit="sessions") as progress:
            hits = find_newest_matches(nexus.ledger, records, text, limit, damaged, advance=progress.advance)
    if json:
        found = [_match_to_json(hit, text) for hit in hits]
        cli.console.json({"schema": 1, "found": found, "damaged": [each._asdict() for each in damaged]})
    elif hits:
        _print_matches(cli, hits, text)
    else:
        cli.console.message("Nothing found.")
    report_damage(cli, damaged)


def find_newest_matches(
    ledger: Ledger,
    records: Iterable[SessionRecord],
    text: str,
    limit: int,
    damaged: list[DamagedSession],
    *,
    advance: Callable[[int], None] = lambda _: None,
) -> list[SearchMatch]:
    """Return the newest matches, newest first. A step that forks share is found once.

    Args:
        ledger: Where the sessions are.
        records: The sessions, those changed last first.
        text: The text to find.
        limit: How many matches at most.
        damaged: Where to add the sessions that cannot be read.
        advance: Called with 1 for every session that was searched.
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
        advance(1)
    return sorted(hits.values(), key=_sort_key, reverse=True)[:limit]


def _sort_key(hit: SearchMatch) -> tuple[int, int, str]:
    return hit.moment, hit.step.position, hit.step.id


def _print_matches(cli: CliContext, hits: list[SearchMatch], text: str) -> None:
    taken = max(len(hit.label) for hit in hits) + len("  2026-01-01 12:00  4N6M1R  assistant  ……")
    room = max(cli.console.width - taken, len(text), _MIN_EXCERPT_CHARACTERS)
    if cli.console.is_terminal and taken + room > cli.console.width:  # then it moves to a line of its own
        room = max(cli.console.width - len("  ……"), len(text))
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
