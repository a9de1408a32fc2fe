"""Search for a sentence in Markdown, ignoring case, line breaks and decoration.

A sentence is rarely pasted as it is in its file: a terminal wraps it, a page shows it without asterisks and backticks,
a list puts a bullet before it. It begins and ends at word borders: "scoped rule" is not in "unscoped rules".
"""

from __future__ import annotations

import re

from nexus_core.text.safety import locate_stripped, strip_all_hidden

# One character for one, so that an offset in the plain text is an offset in the file.
_PLAIN = str.maketrans("\u2018\u2019\u201a\u201c\u201d\u201e\u2010\u2011\u2012\u2013\u2014\u00a0", "'''\"\"\"----- ")
# The decoration of a line: quotes, a heading, a bullet or number, a box to tick.
_LINE_START = r"[ \t>]*+(?:\#{1,6}[ \t]++|(?:[-*+\u2022]|\d{1,9}[.)])[ \t]++(?:\[[ xX]\][ \t]++)?)?"
_MARK = r"[*_`~|\\\[\]]|(?<=\])\([^()\s]{0,2000}\)"
# Between words: blanks, line breaks and decoration; before and after a comma or a full stop there may be none of it.
_GAP = rf"(?:\n{_LINE_START}|[^\S\n]|{_MARK})"
_TOKEN = re.compile(r"\u2026|\.\.\.|\w+|[^\w\s]")
_ELLIPSIS = ("\u2026", "...")
UNSPACED_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Scripts without blanks between words, so that a word may end anywhere, as ranges of a character class: Thai and Lao,
Burmese, Khmer; then Japanese and Chinese."""
# Without the underscore, which is decoration.
_LETTER_PATTERN = rf"[^\W_{UNSPACED_SCRIPTS}]"
_IS_LETTER = re.compile(_LETTER_PATTERN).match
_DECORATION = re.compile(rf"(?m)^{_LINE_START}|{_MARK}")

MAX_SENTENCE_CHARACTERS = 2_000
"""Characters of a sentence that are compared; the time per position of a text grows with them."""


class SentenceMatcher:
    """A sentence to search for.

    Args:
        sentence: As written or pasted; a `…` at its end stands for the rest.
    """

    def __init__(self, sentence: str) -> None:
        self._sentence = strip_all_hidden(sentence.strip().replace("\r", ""))
        plain = _DECORATION.sub(" ", self._sentence[:MAX_SENTENCE_CHARACTERS].translate(_PLAIN))
        tokens = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(plain)]
        is_whole = len(self._sentence) <= MAX_SENTENCE_CHARACTERS
        while tokens and tokens[-1][0] in _ELLIPSIS:
            tokens.pop()
            is_whole = False
        words = [token for token, *_ in tokens if token[0].isalnum() or token[0] == "_"]
        # A sentence without a word is decoration itself, and is searched literally.
        self._rarest = max(words, key=len, default="").lower()
        self._pattern = _compile_sentence(tokens, is_whole=is_whole) if words else None

    def find(self, text: str) -> int | None:
        """Return the offset at which the sentence begins in a text, or None if it is not found.

        Invisible characters are ignored.
        """
        offset = self._find_visible(text)
        if offset is not None or text.isascii() or (visible := strip_all_hidden(text)) == text:
            return offset
        offset = self._find_visible(visible)
        return None if offset is None else locate_stripped(text, offset)

    def _find_visible(self, text: str) -> int | None:
        offset = self._find_exactly(text)
        if offset is not None or self._pattern is None:
            return offset
        # Many times as fast as the pattern, and enough for most texts.
        if self._rarest not in text.lower():
            return None
        found = self._pattern.search(text.translate(_PLAIN))
        return found.start() if found else None

    def _find_exactly(self, text: str) -> int | None:
        offset = text.find(self._sentence)
        while offset >= 0:
            end = offset + len(self._sentence)
            if not _is_inside_word(text, offset) and not _is_inside_word(text, end):
                return offset
            offset = text.find(self._sentence, offset + 1)
        return None

    def find_line(self, text: str) -> int | None:
        """Return the line, from 1, in which the sentence begins in a text, or None if it is not found."""
        offset = self.find(text)
        return None if offset is None else text.count("\n", 0, offset) + 1


def _is_inside_word(text: str, offset: int) -> bool:
    """Return True if there is a letter or digit on both sides of an offset."""
    return 0 < offset < len(text) and bool(_IS_LETTER(text, offset - 1) and _IS_LETTER(text, offset))


def _compile_sentence(tokens: list[tuple[str, int, int]], *, is_whole: bool) -> re.Pattern[str]:
    parts: list[str] = []
    last_end, was_word = 0, False
    for token, start, end in tokens:
        is_word = token[0].isalnum() or token[0] == "_"
        if parts:
            # Two words stay two words; without a blank between them, only decoration may come between.
            parts.append(f"(?>{_GAP}+)" if is_word and was_word and start > last_end else f"(?>{_GAP}*)")
        parts.append(r"(?:\u2026|\.\.\.)" if token in _ELLIPSIS else re.escape(token))
        last_end, was_word = end, is_word
    before = f"(?<!{_LETTER_PATTERN})" if _IS_LETTER(tokens[0][0]) else ""
    # A terminal or an ellipsis may have cut a word in two.
    after = f"(?!{_LETTER_PATTERN})" if is_whole and _IS_LETTER(tokens[-1][0][-1]) else ""
    return re.compile("".join((before, *parts, after)), re.IGNORECASE)
