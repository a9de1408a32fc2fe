"""Whether an answer is a summary."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nexus_core.compaction.calling import SummarizerError
from nexus_core.history.shorten import shorten_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.types.compaction import SummaryRequest

SHORT = 400
"""A refusal is no longer than that; a summary that begins so says more."""
WIDEST = 64
"""Characters of a token, and more than any has that is not all blanks: a text that is longer need not be counted."""
_REFUSAL = re.compile(
    r"sorry[,.]|as an ai\b|unfortunately,? i\b|i(?:'m| am) (?:sorry|unable|not able|afraid)|i apologi[sz]e"
    r"|i (?:cannot|can't|won't|will not|must decline)",
    re.IGNORECASE,
)
_GARBAGE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOLERATED = 200
"""One character of garbage in so many is an accident."""


def judge_summary(
    answer: object, request: SummaryRequest, original: int, count: Callable[[str], int], *, is_model: bool = True
) -> str:
    """An answer as a summary, no longer than it may be.

    Args:
        answer: What a summarizer gave.
        request: What it was asked.
        original: What the conversation takes that it stands for.
        count: Who counts.
        is_model: Whether a model wrote it, which may refuse, or babble. Who only quotes what was said quotes refusals
            and odd characters too.

    Raises:
        SummarizerError: It is none.
    """
    text = _text_of(answer, is_model=is_model)
    if len(text) > original * WIDEST + SHORT:
        raise SummarizerError(f"wrote {len(text):,} characters in place of {original:,} tokens")
    if is_model and " ".join(text.split()) in _known_texts(request):
        raise SummarizerError("returned what it was given")
    if is_model and len(text) <= SHORT and _REFUSAL.match(text.replace("\u2019", "'")):
        raise SummarizerError(f"refused: {text.splitlines()[0][:80]}")
    tokens = count(text)
    if tokens >= original:
        raise SummarizerError(f"wrote {tokens:,} tokens in place of {original:,}")
    return shorten_text(text, request.max_tokens, count)


def _text_of(answer: object, *, is_model: bool) -> str:
    if not isinstance(answer, str):
        raise SummarizerError(f"returned {type(answer).__name__} instead of text")
    if _SURROGATE.search(answer):
        raise SummarizerError("returned text that cannot be encoded (a lone surrogate)")
    garbage = len(_GARBAGE.findall(answer))
    if is_model and garbage * _TOLERATED > len(answer):
        raise SummarizerError(f"returned {garbage:,} characters that are not text")
    text = _GARBAGE.sub("", answer).strip()
    if not text:
        raise SummarizerError("returned an empty text")
    return text


def _known_texts(request: SummaryRequest) -> set[str]:
    texts = [request.prompt, request.instruction, request.previous, *(message.content for message in request.messages)]
    joined = "\n".join(message.content for message in request.messages)
    return {" ".join(text.split()) for text in (*texts, joined) if text.strip()}
