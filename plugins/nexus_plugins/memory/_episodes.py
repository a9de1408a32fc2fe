"""Episodes: turns of other sessions, word for word."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core import Source
from nexus_core.plugin import Memory
from nexus_core.plugin.ledgers import StepQuery
from nexus_core.plugin.memory import find_query_words, find_sender, search_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.plugin import Ledger, MemoryQuery
    from nexus_core.plugin.ledgers import StepHit
    from nexus_core.plugin.memory import MemoryOrigin

MAX_EPISODES = 100
MAX_EPISODE_CHARACTERS = 1200
"""Characters of a turn that are quoted: its part with the most words of the query."""
SCORE_SCALE = 1.05
"""Turns whose score is 19 % of the weight of the query's words reach the floor for injection (0.2). Measured, that and
the cut far below the best turn lose two points of recall together; 25 % would lose three."""
_WEAK_SCORE = 0.1
"""The highest score of a turn about a name that was never mentioned, or for a vague message: below the floor for
injection."""
_MIN_QUERY_WORDS = 2
"""A message with fewer words that are looked up, and without a name, is vague: "hello", "thanks", "continue"."""
_MAX_SEARCHED = 400
"""Turns that are looked at if some of the first ones are of another sender."""
_ORIGINS: dict[str, MemoryOrigin] = {"user": "user", "assistant": "assistant"}


def search_episodes(ledger: Ledger, query: MemoryQuery) -> list[Memory]:
    """Return the turns of other sessions that match a query, the best first.

    A question about a name, path or identifier that occurs nowhere, and a message of one word, get turns with a score
    below the floor: they can be searched for, and are not injected.
    """
    own = (query.session,) if query.session and ledger.session(query.session) is not None else ()
    limit = max(1, min(query.limit, MAX_EPISODES))
    asked = StepQuery(
        text=query.text,
        directory=None if query.directory is None else str(query.directory),
        exclude_sessions=own,
        limit=limit,
        snippet_characters=MAX_EPISODE_CHARACTERS,
    )
    result = search_steps(ledger, asked)
    hits = _keep_sender(ledger, query, result.strong_hits)
    if len(hits) < len(result.strong_hits) and len(result.hits) == limit:
        result = search_steps(ledger, replace(asked, limit=_MAX_SEARCHED))
        hits = _keep_sender(ledger, query, result.strong_hits)[:limit]
    is_vague = not query.entities and len(find_query_words(query.text)) < _MIN_QUERY_WORDS
    most = _WEAK_SCORE if result.unknown_names or is_vague else 1.0
    scale = SCORE_SCALE / result.weight
    return [_build_episode(hit, min(most, scale * hit.score)) for hit in hits if hit.text.strip()]


def _keep_sender(ledger: Ledger, query: MemoryQuery, hits: Sequence[StepHit]) -> list[StepHit]:
    """Return the hits in turns of the sender who asks; all if any directory is asked for."""
    if query.directory is None:
        return [*hits]
    senders = {turn: find_sender(ledger, turn) for turn in dict.fromkeys(hit.turn for hit in hits)}
    return [hit for hit in hits if senders[hit.turn] == query.identity]


def _build_episode(hit: StepHit, score: float) -> Memory:
    return Memory(
        text=hit.text,
        kind="episode",
        source=Source(uri=f"step:{hit.step}"),
        origin=_ORIGINS.get(hit.role, "tool"),
        session=hit.session,
        time=hit.created,
        score=min(max(score, 0.0), 1.0),
        reason=f"matches {', '.join(hit.words)}" if hit.words else "next to a step that matches",
    )
