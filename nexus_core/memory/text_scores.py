"""Ranking of a few texts by the words that they share with a query.

For sources with hundreds of texts, such as notes and rules; turns of conversations are searched by an index. A word
counts by how few of the texts have it. The score is the share of the query that a text covers, so that scores of
different sources can be compared with one floor.
"""

from __future__ import annotations

from functools import lru_cache
from math import log
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.memory.words import find_query_words, find_stems, find_text_stems, split_words
from nexus_core.text.secrets import redact_beginning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_TEXT_CHARACTERS = 8_000
"""Characters of a text that are compared."""
MAX_FULL_WORDS = 10
"""A query of more words is about several things: a text that covers a part of them this large covers it all."""
_PRIOR_TEXTS = 20
"""Texts without any word of the query, added to the count so that few texts do not make every word common."""
_MIN_RELATIVE_SCORE = 0.4
"""A text below this share of the best score is left out."""
_MIN_MATCHED_WORDS = 2
"""Words that must match if there is a minimum score: one that matches by chance says little about a message."""


class RelevantText(NamedTuple):
    """A text that matches a query.

    Attributes:
        place: Its index among the texts.
        score: The share of the query that it covers, from 0 to 1.
        words: The words of the query that it has, the rarest first.
    """

    place: int
    score: float
    words: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The matching words, for display."""
        return f"matches {', '.join(self.words)}"


def rank_texts(
    query: str, texts: Sequence[str], *, entities: Iterable[str] = (), limit: int = 20, min_score: float = 0.0
) -> list[RelevantText]:
    """Return the texts that share words with a query, the best first.

    Args:
        query: Any text.
        texts: The texts of a source.
        entities: Names in the query, of which one is enough to match.
        limit: Most texts to return.
        min_score: The score from which on a text is returned. Without one, a word in common is enough.
    """
    asked = {word.stem: word.text for word in find_query_words(query)}
    if not asked or not texts:
        return []
    named = {stem for name in entities for stem in find_stems(split_words(name))}
    found = [_find_redacted_stems(text) & asked.keys() for text in texts]
    total = len(texts) + _PRIOR_TEXTS
    weights: dict[str, float] = {}
    for stem in asked:
        count = sum(stem in each for each in found)
        weights[stem] = log(1 + (total - count + 0.5) / (count + 0.5))
    whole = min(sum(weights.values()), MAX_FULL_WORDS * max(weights.values()))
    needed = min(_MIN_MATCHED_WORDS, len(asked)) if min_score else 1
    ranked = []
    for place, stems in enumerate(found):
        if len(stems) >= needed or stems & named:
            best = sorted(stems, key=lambda stem: (-weights[stem], stem))
            score = min(1.0, sum(weights[stem] for stem in best) / whole)
            ranked.append(RelevantText(place, score, tuple(asked[stem] for stem in best)))
    ranked.sort(key=lambda each: (-each.score, each.place))
    floor = max(ranked[0].score * _MIN_RELATIVE_SCORE, min_score) if ranked else 0.0
    return [each for each in ranked if each.score >= floor][:limit]


@lru_cache(maxsize=4096)  # the texts of a source are the same in every turn
def _find_redacted_stems(text: str) -> frozenset[str]:
    # The words that match are shown and stored as the reason of a memory: a secret must not be one.
    return find_text_stems(redact_beginning(text, MAX_TEXT_CHARACTERS))
