"""Distinctive words of a fact, by which another text is recognized as repeating it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.memory.words import FRAME_STEMS, find_query_entities, find_query_words, find_stems, split_words

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_COMPARED_CHARACTERS = 20_000
"""Characters of a text that are compared with a fact."""
_MIN_NAME_CHARACTERS = 4
"""Letters and digits of a name or number that is enough to recognize a fact: "17" is in many texts."""
_MIN_SHARED_STEMS = 2
_TOKEN = re.compile(r"[^\s,;()\"'`]+")
_DIGIT = re.compile(r"\d")


class DistinctiveWords(NamedTuple):
    """The words of a fact that few other texts have.

    Attributes:
        stems: The stems of the words.
        names: The stems of each name, identifier and number.
    """

    stems: frozenset[str]
    names: tuple[frozenset[str], ...]

    def occur_in(self, text: str, question: str = "") -> bool:
        """True if a text has one of the words, other than those of the question that it answers."""
        return not (self.stems - _find_text_stems(question)).isdisjoint(_find_text_stems(text))

    def are_repeated_in(self, text: str, question: str = "") -> bool:
        """True if a text has a name of the fact, or half of its words; other words of a question do not count.

        Args:
            text: The text.
            question: The message that the text answers; "" for none.
        """
        found = _find_text_stems(text)
        if any(name <= found for name in self.names):
            return True
        stems = self.stems - _find_text_stems(question)
        needed = min(len(stems), max(_MIN_SHARED_STEMS, (len(stems) + 1) // 2))
        return bool(stems) and len(stems & found) >= needed and not text.rstrip().endswith("?")


def find_distinctive_words(fact: str, is_common: Callable[[str], bool]) -> DistinctiveWords:
    """Return the distinctive words of a fact; all its words if each of them is common.

    Args:
        fact: The text.
        is_common: True for a word that many other texts have.
    """
    words = [word for word in find_query_words(fact) if word.stem not in FRAME_STEMS]
    rare = frozenset(word.stem for word in words if not is_common(word.text))
    stems = rare or frozenset(word.stem for word in words)
    # A token with a digit is a number or an identifier: a host, a version, a time of day.
    tokens = [token for token in _TOKEN.findall(fact[:MAX_COMPARED_CHARACTERS]) if _DIGIT.search(token)]
    texts = (*find_query_entities(fact), *tokens)
    names = dict.fromkeys(frozenset(find_stems(split_words(text))) for text in texts)
    is_long = {name: sum(map(len, name)) >= _MIN_NAME_CHARACTERS for name in names}
    return DistinctiveWords(stems, tuple(name for name in names if is_long[name] and not name.isdisjoint(stems)))


def _find_text_stems(text: str) -> frozenset[str]:
    return frozenset(find_stems(split_words(text[:MAX_COMPARED_CHARACTERS])))
