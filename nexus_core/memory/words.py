"""Words of texts and questions: tokens, stop words, stems and entities.

All backends store the stems that this module computes, so that they find the same turns. Change `WORDS_VERSION` with
every change of the stems of a text: indexes of another version are built anew.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

WORDS_VERSION = 5
"""The version of stems and facets, stored with each index."""
MAX_WORD_CHARACTERS = 40
"""Longer words are cut: digests and base64 would fill the index, and their ends are not searched for."""
MAX_QUERY_CHARACTERS = 20_000
"""Characters of a question that are read: a pasted file has its topic in its beginning."""
MAX_QUERY_WORDS = 48
"""Different words of a question that are looked up, the first ones."""

_STOP_WORDS_TEXT = """
a about after again all also am an and any are aren as at be because been before being both but by can cannot could
couldn d did didn do does doesn doing don down during each either else etc ever few for from further get gets getting
got had hadn has hasn have haven having he her here hers herself him himself his how however i if in into is isn it its
itself just let ll m may me might more most much must my myself no nor not now of off on once one only onto or other our
ours ourselves out over own please re s same shall she should shouldn so some such t than that the their theirs them
themselves then there these they this those through to too under until up us ve very was wasn we were weren what when
where whether which while who whom whose why will with won would wouldn you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())

_WORD = re.compile(r"[^\W_]+")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_CAMEL_CASE = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+)"
)
"""Scripts that are written without spaces; their words are pairs of characters."""


class QueryWord(NamedTuple):
    """A word of a question.

    Attributes:
        text: The word as it is written, in lower case.
        stem: Its stem, by which it is looked up.
    """

    text: str
    stem: str


def split_words(text: str) -> Iterable[str]:
    """Return the lower-case words of a text, camelCase whole and in parts."""
    if text.isascii() and not _CAMEL_CASE.search(text):
        return [word[:MAX_WORD_CHARACTERS] for word in _WORD.findall(text.lower())]
    return _split_mixed_words(text)


def _split_mixed_words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        if word.isascii():
            if not word.islower() and _CAMEL_CASE.search(word):
                parts = _CAMEL_PART.findall(word)
                if len(parts) > 1:
                    yield from (part.lower() for part in parts)
            yield word[:MAX_WORD_CHARACTERS].lower()
        else:
            yield from _split_other_word(word)


def _split_other_word(word: str) -> Iterator[str]:
    """Yield the words in a run of letters that is not ASCII, without accents."""
    folded = unicodedata.normalize("NFKD", word[: 4 * MAX_WORD_CHARACTERS]).casefold()
    folded = "".join(char for char in unicodedata.normalize("NFC", folded) if not unicodedata.combining(char))
    if not folded.isascii():
        folded = unicodedata.normalize("NFD", folded)
        folded = unicodedata.normalize("NFC", "".join(char for char in folded if unicodedata.category(char) != "Mn"))
    for index, piece in enumerate(_UNSPACED.split(folded)):
        if index % 2 == 0:
            yield from (each[:MAX_WORD_CHARACTERS] for each in _WORD.findall(piece))
        elif len(piece) == 1:
            yield piece
        else:
            yield from (piece[at : at + 2] for at in range(len(piece) - 1))


def find_stems(words: Iterable[str]) -> dict[str, None]:
    """Return the different stems of words, without stop words, in their order."""
    found: dict[str, None] = {}
    for word in words:
        known = _STEMS.get(word)
        if known is None:
            known = get_index_stem(word)
        if known:
            found[known] = None
    return found


def find_text_stems(text: str) -> frozenset[str]:
    """Return the different stems of a text, without stop words."""
    return frozenset(find_stems(split_words(text)))


def find_shared_stems(text: str, stems: Collection[str]) -> set[str]:
    """Return those of some stems that a text has."""
    # A stem is the beginning of its word, but perhaps for the last character (city: citi), so that few need to be made.
    beginnings = tuple({stem[:-1] or stem for stem in stems})
    found = find_stems(word for word in split_words(text) if word.startswith(beginnings))
    return {stem for stem in stems if stem in found}


def find_query_words(text: str) -> tuple[QueryWord, ...]:
    """Return the query's words for lookup, one for each stem."""
    return _find_query_words(text[:MAX_QUERY_CHARACTERS])


@lru_cache(maxsize=8)  # every source asks for the words of the same message
def _find_query_words(text: str) -> tuple[QueryWord, ...]:
    found: dict[str, str] = {}
    for word in split_words(text):
        stem = get_index_stem(word)
        if stem and stem not in found:
            found[stem] = word
            if len(found) == MAX_QUERY_WORDS:
                break
    return tuple(QueryWord(word, stem) for stem, word in found.items())


_MAX_CACHED_STEMS = 200_000
_STEMS: dict[str, str] = dict.fromkeys(STOP_WORDS, "")
"""Stems of words, "" for a stop word."""


def get_index_stem(word: str) -> str:
    """Return the stem of a word in lower case, "" for a stop word."""
    stem = _STEMS.get(word)
    if stem is None:
        if len(_STEMS) > _MAX_CACHED_STEMS:
            _STEMS.clear()
            _STEMS.update(dict.fromkeys(STOP_WORDS, ""))
        stem = _STEMS[word] = compute_porter_stem(word)
    return stem


_CAPITALIZED = re.compile(r"(?<![\w./-])[A-Z][a-z]+(?:[A-Z][a-z]+)*(?![\w/])")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n\"'(\[]\s*|[-*]\s+)$")
_MAX_GAP_CHARACTERS = 50
"""Characters before a word that are searched for the end of a sentence."""
_IDENTIFIER = re.compile(
    r"(?<![\w./-])(?:"
    r"(?:~|\.{1,2})?/?[\w.-]+(?:/[\w.-]+)+"  # a path
    r"|[\w-]+\.[a-z][a-z0-9]{0,5}(?![\w.])"  # a file
    r"|[A-Za-z][A-Za-z0-9]*-\d+"  # a ticket, a host, a version
    r"|[A-Za-z]\w*_\w+"  # snake_case
    r"|[A-Za-z]*[a-z0-9][A-Z]\w*"  # camelCase
    r"|(?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,40}"  # a commit
    r")(?!\w)"
)


def find_query_entities(text: str) -> tuple[str, ...]:
    """Return a question's entities: names, paths, files, tickets, identifiers.

    The first word of a sentence does not count as a name, because it is always capitalized.
    """
    return _find_query_entities(text[:MAX_QUERY_CHARACTERS])


@lru_cache(maxsize=8)  # a message is asked for its names once for the query, and once for the ranking
def _find_query_entities(text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for match in _IDENTIFIER.finditer(text):
        found[match[0].strip(".")] = None
    for match in _CAPITALIZED.finditer(text):
        if match[0].lower() in STOP_WORDS or match[0].lower() in _DATE_WORDS:
            continue
        before = text[max(match.start() - _MAX_GAP_CHARACTERS, 0) : match.start()]
        if not _SENTENCE_START.search(before):
            found[match[0]] = None
    return tuple(found)


MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march",),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sep", "sept"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        1,
    )
    for name in names
}
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_DATE_WORDS = frozenset((*MONTHS, *_DAYS.split()))
TIME_WORD = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|ago|recently|lately|weekend|week|month|year|last|next|since|"
    rf"{'|'.join(_DAYS.split())}|{'|'.join(name for name in MONTHS if name != 'may')}|(?:19|20)\d\d|\d{{1,2}}:\d\d)\b",
    re.IGNORECASE,
)
"""A word that names a time, as in the answer to a question that begins with "when"."""

_VOWELS = frozenset("aeiou")
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"), ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion",
    "al", "er", "ic", "ou",
)  # fmt: skip
_MIN_STEMMED_CHARACTERS = 3


def compute_porter_stem(word: str) -> str:
    """Return the stem of an English word in lower case, by Porter's algorithm (1980).

    Words with digits and words of other scripts are their own stems.
    """
    if len(word) < _MIN_STEMMED_CHARACTERS or not (word.isascii() and word.isalpha()):
        return word
    word = _strip_inflection(word)
    word = _replace_suffix(word, _STEP_2)
    word = _replace_suffix(word, _STEP_3)
    for suffix in _STEP_4:
        if word.endswith(suffix):
            left = word[: -len(suffix)]
            if _count_syllables(left) > 1 and (suffix != "ion" or left[-1:] in ("s", "t")):
                word = left
            break
    if word.endswith("e"):
        left = word[:-1]
        syllables = _count_syllables(left)
        if syllables > 1 or (syllables == 1 and not _ends_short(left)):
            word = left
    if word.endswith("ll") and _count_syllables(word[:-1]) > 1:
        word = word[:-1]
    return word


def _strip_inflection(word: str) -> str:
    """Remove a plural, -ed or -ing, and turn a final y into i (steps 1a to 1c)."""
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        if _count_syllables(word[:-3]) > 0:
            word = word[:-1]
    else:
        for suffix in ("ed", "ing"):
            left = word[: -len(suffix)]
            if word.endswith(suffix) and _has_vowel(left):
                word = _restore_ending(left)
                break
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    return word


def _restore_ending(left: str) -> str:
    """Return a word without -ed or -ing, its former ending restored."""
    if left.endswith(("at", "bl", "iz")):
        return left + "e"
    if len(left) > 1 and left[-1] == left[-2] and _is_consonant(left, len(left) - 1) and left[-1] not in "lsz":
        return left[:-1]
    if _count_syllables(left) == 1 and _ends_short(left):
        return left + "e"
    return left


def _replace_suffix(word: str, suffixes: tuple[tuple[str, str], ...]) -> str:
    for suffix, replacement in suffixes:
        if word.endswith(suffix):
            left = word[: -len(suffix)]
            return left + replacement if _count_syllables(left) > 0 else word
    return word


def _is_consonant(word: str, index: int) -> bool:
    char = word[index]
    return char not in _VOWELS and (char != "y" or index == 0 or not _is_consonant(word, index - 1))


def _count_syllables(word: str) -> int:
    """Return how often a consonant follows a vowel, which Porter calls the measure."""
    count, was_vowel = 0, False
    for index in range(len(word)):
        if _is_consonant(word, index):
            count += was_vowel
            was_vowel = False
        else:
            was_vowel = True
    return count


def _has_vowel(word: str) -> bool:
    return any(not _is_consonant(word, index) for index in range(len(word)))


def _ends_short(word: str) -> bool:
    """True if a word ends in consonant, vowel, consonant (not w, x or y)."""
    last = len(word) - 1
    return (
        last > 1
        and _is_consonant(word, last)
        and not _is_consonant(word, last - 1)
        and _is_consonant(word, last - 2)
        and word[last] not in "wxy"
    )


_FRAME_WORDS_TEXT = """
according certain consider considered currently describe described different discuss discussed example examples happen
happened happening kind likely lot main many mention mentioned mentions name named names often particular people person
possible potential reason reasons recent recently someone something anything sort specific thing things type use used
using various way ways
"""
FRAME_STEMS = frozenset(compute_porter_stem(word) for word in _FRAME_WORDS_TEXT.split())
"""Stems of words with which questions are asked, and which their answers seldom have: "what kind of", "mentioned"."""
