"""Episodes: turns of other sessions, word for word."""

from __future__ import annotations

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
_MIN_NEIGHBOR_FACTOR = 1.3
"""How far above the evident score a turn without a word of the query must be. Measured on conversations, that takes a
tenth off what questions about other things are given, and 0.4 points off the evidence that is found."""
_WEAK_SCORE = 0.1
"""The highest score of a turn about a name that was never mentioned, or for a vague message: below the floor for
injection."""
_MIN_QUERY_WORDS = 2
"""A message with fewer words that are looked up, and without a name, is vague: "hello", "thanks", "continue"."""
_ORIGINS: dict[str, MemoryOrigin] = {"user": "user", "assistant": "assistant"}


def search_episodes(ledger: Ledger, query: MemoryQuery) -> list[Memory]:
    """Return the turns of other sessions that match a query, the best first.

    For a question about a name, path or identifier that occurs nowhere, and for a message of one word, all turns score
    below the floor: they can be searched for, and are not injected. So does a step that is only near one that matches,
    and one that adds nothing.
    """
    is_vague = not query.entities and len(find_query_words(query.text)) < _MIN_QUERY_WORDS
    if is_vague and query.min_score > _WEAK_SCORE:
        return []
    asked = StepQuery(
        text=query.text,
        directory=None if query.directory is None else str(query.directory),
        facets=query.required_facets,
        exclude_sessions=(query.session,) if query.session else (),
        sender=None if query.directory is None else query.identity,
        with_answers=True,
        min_share=MIN_SHARE_OF_BEST,
        only_evident=query.min_score >= MIN_MEMORY_SCORE,
        limit=max(1, min(query.limit, MAX_EPISODES)),
        snippet_characters=MAX_EPISODE_CHARACTERS,
    )
    result = search_steps(ledger, asked)
    scale = MIN_MEMORY_SCORE / result.evident_score
    stems = {word.stem for word in find_query_words(query.text)}
    related = {hit.step for hit in find_related_hits(result)}
    episodes = []
    for hit in result.hits:
        if hit.text.strip():
            is_weak = is_vague or not result.is_evident or hit.step not in related or not _says_something(hit, stems)
            episodes.append(_build_episode(hit, min(_WEAK_SCORE if is_weak else 1.0, scale * hit.score)))
    return episodes


def find_related_hits(result: SearchResult) -> list[StepHit]:
    """Return the hits that have a word of the question, and those that belong to one.

    The steps of a turn belong together. A step that is a turn by itself, as in a chat of people, belongs to the turns
    around it.
    """
    least = _MIN_NEIGHBOR_FACTOR * result.evident_score
    turns = {hit.turn for hit in result.hits if hit.words}
    return [hit for hit in result.hits if hit.turn in turns or (hit.kind == "turn" and hit.score >= least)]


def _says_something(hit: StepHit, asked: set[str]) -> bool:
    """True if a hit adds something to the question. A word with a digit may be an answer."""
    if any(char.isdigit() for char in hit.text):
        return True
    if hit.role == "user" and not hit.answer and hit.text.rstrip().endswith("?"):
        is_chat = hit.kind == "turn"  # where others answer in a turn of their own
        return is_chat and any(word.stem not in asked for word in find_query_words(hit.text))
    return bool(hit.words) or len(find_query_words(hit.text)) > 1


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
    """Return the text of a hit with its adjacent question or answer."""
    if hit.question:
        return f"In answer to (step:{hit.beside}): {hit.question}\n{hit.text}"
    return f"{hit.text}\nAnswered (step:{hit.beside}): {hit.answer}" if hit.answer else hit.text
