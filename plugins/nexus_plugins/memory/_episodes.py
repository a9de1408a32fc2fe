"""Episodes: turns of other sessions, word for word."""

from __future__ import annotations

from math import exp, inf, log
from typing import TYPE_CHECKING

from nexus_core import Source
from nexus_core.plugin import Memory
from nexus_core.plugin.ledgers import StepQuery
from nexus_core.plugin.memory import MIN_MEMORY_SCORE, find_query_words, search_steps

if TYPE_CHECKING:
    from nexus_core.plugin import Ledger, MemoryQuery
    from nexus_core.plugin.ledgers import SearchResult, StepHit
    from nexus_core.plugin.memory import MemoryOrigin

MAX_EPISODES = 100
MAX_EPISODE_CHARACTERS = 1200
"""Characters of a turn that are quoted: its part with the most words of the query."""
MIN_SHARE_OF_BEST = 0.3
"""The share of the best turn's score below which turns are noise."""
_MIN_TURN_SHARE, _MIN_BEST_SHARE = 0.25, 0.3
"""Turns are injected whose score is a quarter of the weight of the query's words, if that of the best one is 30 %. Both
are those of a query with three rare words."""
_TYPICAL_RARE_WORDS, _RARITY_EXPONENT = 3.0, -0.35
_RARITY_FACTORS = (0.6, 1.4)
"""The smallest and the largest factor for other numbers of rare words: many words that match in part say more than one
that does."""
_WEAK_SCORE = 0.1
"""The highest score of a turn about a name that was never mentioned, or for a vague message: below the floor for
injection."""
_MIN_QUERY_WORDS = 2
"""A message with fewer words that are looked up, and without a name, is vague: "hello", "thanks", "continue"."""
_ORIGINS: dict[str, MemoryOrigin] = {"user": "user", "assistant": "assistant"}


def search_episodes(ledger: Ledger, query: MemoryQuery) -> list[Memory]:
    """Return the turns of other sessions that match a query, the best first.

    A question about a name, path or identifier that occurs nowhere, and a message of one word, get turns with a score
    below the floor: they can be searched for, and are not injected.
    """
    limit = max(1, min(query.limit, MAX_EPISODES))
    asked = StepQuery(
        text=query.text,
        directory=None if query.directory is None else str(query.directory),
        facets=query.required_facets,
        exclude_sessions=(query.session,) if query.session else (),
        sender=None if query.directory is None else query.identity,
        with_answers=True,
        min_share=MIN_SHARE_OF_BEST,
        limit=limit,
        snippet_characters=MAX_EPISODE_CHARACTERS,
    )
    result = search_steps(ledger, asked)
    is_vague = not query.entities and len(find_query_words(query.text)) < _MIN_QUERY_WORDS
    floor = compute_injection_floor(result)
    most = _WEAK_SCORE if floor == inf or is_vague else 1.0
    scale = MIN_MEMORY_SCORE / (_compute_turn_floor(result) if floor == inf else floor)
    return [_build_episode(hit, min(most, scale * hit.score)) for hit in result.hits if hit.text.strip()]


def compute_injection_floor(result: SearchResult) -> float:
    """Return the lowest score of a turn that is injected; infinity if none is, because too few words match."""
    floor = _compute_turn_floor(result)
    best = result.hits[0].score if result.hits else 0.0
    return floor if best >= floor * _MIN_BEST_SHARE / _MIN_TURN_SHARE and not result.unknown_names else inf


def _compute_turn_floor(result: SearchResult) -> float:
    rarest = log(1 + (result.turns + 0.5) / 0.5)  # the weight of a word that occurs nowhere
    least, most = _RARITY_FACTORS
    rare_words = result.weight / rarest
    factor = min(max(exp(_RARITY_EXPONENT * log(rare_words / _TYPICAL_RARE_WORDS)), least), most)
    return _MIN_TURN_SHARE * result.weight * factor


def _build_episode(hit: StepHit, score: float) -> Memory:
    return Memory(
        text=_join_answer(hit),
        kind="episode",
        source=Source(uri=f"step:{hit.step}"),
        origin=_ORIGINS.get(hit.role, "tool"),
        session=hit.session,
        time=hit.created,
        score=min(max(score, 0.0), 1.0),
        reason=f"matches {', '.join(hit.words)}" if hit.words else "next to a step that matches",
    )


def _join_answer(hit: StepHit) -> str:
    """Return the text of a turn, with its question before it or the answer after it, and their step."""
    if hit.question:
        return f"In answer to (step:{hit.beside}): {hit.question}\n{hit.text}"
    return f"{hit.text}\nAnswered (step:{hit.beside}): {hit.answer}" if hit.answer else hit.text
