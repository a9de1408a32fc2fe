"""Distinctive words of a fact, to recognize other texts that repeat it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.memory.words import (
    FRAME_STEMS,
    MAX_QUERY_CHARACTERS,
    MAX_QUERY_WORDS,
    find_query_entities,
    find_query_words,
    find_text_stems,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

MAX_COMPARED_CHARACTERS = 20_000
"""Characters of a text that are compared with a fact."""
_MIN_NAME_CHARACTERS = 4
"""Letters and digits of a name or number that is enough to recognize a fact: "17" is in many texts."""
_MIN_SHARED_STEMS = 2
_TOKEN = re.compile(r"[^\s,;()\"'`]+")
_DIGIT = re.compile(r"\d")


class DistinctiveWords(NamedTuple):
    """The words by which a fact is recognized.

    Attributes:
        stems: The stems of its words.
        rare: Those that few other texts have.
        names: The stems of each name, identifier and number, of which one is rare.
        is_cut: True if the fact has more words, which are not compared.
    """

    stems: frozenset[str]
    rare: frozenset[str]
    names: tuple[frozenset[str], ...]
    is_cut: bool = False

    def shares_rare_word(self, text: str, question: str = "") -> bool:
        """True if a text has a rare word of the fact that is not in the question."""
        wanted = (self.rare or self.stems) - find_text_stems(question[:MAX_COMPARED_CHARACTERS])
        return not wanted.isdisjoint(find_text_stems(text[:MAX_COMPARED_CHARACTERS]))

    def has_name_in(self, text: str) -> bool:
        """True if a text has a name, an identifier or a number of the fact."""
        found = find_text_stems(text[:MAX_COMPARED_CHARACTERS])
        return any(name <= found for name in self.names)

    def compute_overlap(self, text: str) -> float:
        """Return the part of the fact's words and names that a text has, from 0 to 1."""
        found = find_text_stems(text[:MAX_COMPARED_CHARACTERS])
        shared = len(self.stems & found) + sum(name <= found for name in self.names)
        return shared / max(len(self.stems) + len(self.names), 1)

    def is_repeated_by(self, text: str, question: str = "") -> bool:
        """True if a text has a name of the fact, or half of its rare words.

        Args:
            text: The text.
            question: The message that the text answers; "" for none.
        """
        found = find_text_stems(text[:MAX_COMPARED_CHARACTERS])
        if any(name <= found for name in self.names):
            return True
        stems = self.rare - find_text_stems(question[:MAX_COMPARED_CHARACTERS])
        needed = min(len(stems), max(_MIN_SHARED_STEMS, (len(stems) + 1) // 2))
        return bool(stems) and len(stems & found) >= needed and not text.rstrip().endswith("?")


def find_distinctive_words(fact: str, find_common: Callable[[Collection[str]], Collection[str]]) -> DistinctiveWords:
    """Return the distinctive words of a fact.

    Args:
        fact: The text.
        find_common: Returns those of some stems that many other texts have.
    """
    words = [word for word in find_query_words(fact) if word.stem not in FRAME_STEMS]
    stems = frozenset(word.stem for word in words)
    rare = stems.difference(find_common(stems))
    # A token with a digit is a number or an identifier: a host, a version, a time of day.
    tokens = [token for token in _TOKEN.findall(fact[:MAX_COMPARED_CHARACTERS]) if _DIGIT.search(token)]
    texts = (*find_query_entities(fact), *tokens)
    names = dict.fromkeys(find_text_stems(text) for text in texts)
    is_long = {name: sum(map(len, name)) >= _MIN_NAME_CHARACTERS for name in names}
    distinctive = tuple(name for name in names if is_long[name] and not name.isdisjoint(rare))
    is_cut = len(fact) > MAX_QUERY_CHARACTERS or len(find_text_stems(fact)) > MAX_QUERY_WORDS
    return DistinctiveWords(stems, rare, distinctive, is_cut)
