"""Tells from a provider's error whether a request was too long, and by how much."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ERROR_CHARACTERS = 20_000
"""Characters of an error that are looked at."""
MAX_ERROR_CAUSES = 8
"""How many causes of an error are looked at."""

MAX_NUMBER_DIGITS = 12
"""Digits; no window is larger, and longer ones take their time to be read."""

_TOO_LARGE = "request_too_large"
_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "input_too_long",
        "model_context_window_exceeded",
        "model_max_prompt_tokens_exceeded",
        "prompt_too_long",
        _TOO_LARGE,
        "string_above_max_length",
    }
)
_TOO_MUCH = 413
_NOW = 429  # too much at once, which is another matter

_NUMBER = r"(?P<{}>\d[\d,._]*)"
_LIMIT, _ASKED, _ALL = map(_NUMBER.format, ("limit", "asked", "all"))
_ANSWER = rf"(?:[^)]{{1,160}}?{_NUMBER.format('answer')}(?: tokens)? (?:in|for) (?:the|your) (?:completion|output))?"
"""Room for the answer, where a provider adds it to what was asked."""
_LENGTH = rf"maximum (?:context|prompt) length (?:is|of) {_LIMIT}(?: tokens)?"

# What providers write. The first that fits tells the numbers.
_SAYINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"prompt is too long: {_ASKED} tokens > {_LIMIT} maximum",
        rf"prompt is too long: {_ASKED}, model maximum context length: {_LIMIT}",
        rf"exceed context limit: {_ASKED} \+ (?P<answer>\d+) > {_LIMIT}",
        rf"input token count \(?{_ASKED}\)? exceeds the maximum number of tokens(?: allowed)? \(?{_LIMIT}\)?",
        rf"input token count is {_ASKED} but (?:the )?model only supports up to {_LIMIT}",
        rf"input token count exceeds the maximum number of tokens(?: allowed)? \(?{_LIMIT}\)?",
        rf"{_LENGTH}[^\d]{{1,120}}?you requested (?:a total of |about )?{_ALL} tokens{_ANSWER}",
        rf"{_LENGTH}[^\d]{{1,120}}?{_ASKED}(?: input)? tokens",
        rf"input tokens exceed the configured limit of {_LIMIT} tokens[^\d]{{1,80}}?{_ASKED} tokens",
        rf"input tokens exceed the configured limit of {_LIMIT}",
        rf"passed {_ASKED} input tokens and requested (?P<answer>\d+) output tokens[^\d]{{1,80}}?{_LIMIT} tokens",
        rf"requested tokens \({_ASKED}\) exceed context window of {_LIMIT}",
        rf"prompt has {_ASKED} tokens, but the configured context size is {_LIMIT}",
        rf"prompt token count of {_ASKED}[^\d]{{1,120}}?{_LIMIT}",
        rf"prompt contains {_ASKED} tokens(?: and \d+ draft tokens)?[^\d]{{1,120}}?{_LIMIT}",
        rf"\brequest \({_ASKED} tokens\) exceeds the available context size \({_LIMIT} tokens\)",
        rf"\binput \({_ASKED} tokens\) is longer than the model's context length \({_LIMIT} tokens\)",
        rf"prompt \(length {_ASKED}\) is longer than the maximum model length of {_LIMIT}",
        rf"tokens? \+ `max_new_tokens` must be <= {_LIMIT}[^\d]{{1,40}}{_ASKED}",
        rf"`inputs` must have less than {_LIMIT} tokens\. Given: {_ASKED}",
        rf"total number of tokens in the prompt cannot exceed {_LIMIT} - received {_ASKED}",
        rf"current length is {_ASKED} while limit is {_LIMIT}",
        rf"exceeded model token limit: {_LIMIT} \(requested: {_ASKED}\)",
        rf"exceeded model token limit: {_LIMIT}",
        rf"range of input length should be \[\d+, ?{_LIMIT}\]",
        rf"exceeds (?:the )?maximum allowed input length of {_LIMIT} tokens",
        rf"context length (?:of|is) only {_LIMIT}",
        rf"body too large for [^\n]{{1,80}}? model\. Max size: {_LIMIT} tokens",
        _LENGTH,
        r"exceeds? the (?:model's )?(?:maximum |available )?context (?:window|length|size)",
        r"context[ _]?(?:window|length|size)(?: limit)?[ _]?(?:is |was |has been )?exceed(?:ed|s)",
        r"exceeded (?:max |the maximum )?context length",
        r"context window exceeds limit",
        r"input is too long for requested model",
        r"input length exceeds (?:the )?(?:maximum )?context length",
        r"number of input tokens exceeds (?:the )?maximum length",
        r"tokens to keep from the initial prompt is greater than the context length",
        r"prompt(?: is |[ _])too[ _]long",
        r"prompt exceeds max length",
        r"tokens in request more than max tokens allowed",
        r"too many tokens: (?:the )?(?:total|max|prompt|size)",
        r"reduce the length of the (?:messages|prompt|input)",
    )
)
_SIZE = re.compile(
    rf"{_TOO_LARGE}|\b{_TOO_MUCH}\b[^\n]{{0,40}}too large|request payload size exceeds the limit", re.IGNORECASE
)
"""What is said of bytes and not of tokens, where an error has no status."""
_RATE = re.compile(r"tokens per (?:min|day|hour|second)|\bTPM\b|rate.?limit|quota", re.IGNORECASE)


class Overflow(NamedTuple):
    """A request that was too long.

    Attributes:
        limit: How many tokens the model reads; None when the provider did not say.
        asked: How many the request had, without room for the answer; None when the provider did not say.
        message: What the provider said.
        answer: How many were wanted for the answer, where the provider adds them to what was asked.
        is_size: Whether nothing is said but that the request was too large, which may be its bytes.
    """

    limit: int | None
    asked: int | None
    message: str
    answer: int = 0
    is_size: bool = False


def read_overflow(error: BaseException) -> Overflow | None:
    """What an error says about a request that was too long; None where it says something else.

    Errors of any SDK are understood: by their code, by their status, or by their words.
    """
    for each in _causes(error):
        status = _field(each, "status_code", "status", "code")
        for text in _texts(each):
            found = _read_text(text, status)
            if found is not None:
                return found
        codes = _codes(each)
        if codes & _CODES or status == _TOO_MUCH:
            is_size = _TOO_LARGE in codes or (status == _TOO_MUCH and not codes & _CODES)
            return Overflow(None, None, str(each)[:MAX_ERROR_CHARACTERS], is_size=is_size)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(seen) < MAX_ERROR_CAUSES:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _read_text(text: str, status: object) -> Overflow | None:
    for saying in _SAYINGS:
        match = saying.search(text)
        if match:
            break
    else:
        return Overflow(None, None, text, is_size=True) if _SIZE.search(text) else None
    found = match.groupdict()
    if "limit" not in found and (status == _NOW or _RATE.search(text)):
        return None  # too many tokens in a minute are fewer in the next
    asked, answer, total = (_number(found.get(name)) for name in ("asked", "answer", "all"))
    if total is not None:
        asked = total - (answer or 0)
    return Overflow(_number(found.get("limit")), asked, text, answer or 0)


def _number(text: str | None) -> int | None:
    """A number; None where it says nothing, as nought does of a length."""
    digits = re.sub(r"\D", "", text or "")
    return int(digits[:MAX_NUMBER_DIGITS]) or None if digits else None


def _texts(error: BaseException) -> Iterator[str]:
    """What an error says, the plainest first."""
    body = getattr(error, "body", None)
    for candidate in (getattr(error, "message", None), *_strings(body), _response_text(error), _safe_str(error)):
        if isinstance(candidate, str) and candidate:
            yield candidate[:MAX_ERROR_CHARACTERS]


def _strings(body: object, depth: int = 3) -> Iterator[str]:
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict) and depth:
        for value in body.values():
            yield from _strings(value, depth - 1)


def _response_text(error: BaseException) -> str:
    try:
        text = getattr(getattr(error, "response", None), "text", "")
    except Exception:  # noqa: BLE001 - a stream that was not read raises whatever its library likes
        return ""
    return text if isinstance(text, str) else ""


def _safe_str(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a stranger's exception may fail at this too
        return ""


def _codes(error: BaseException) -> set[object]:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    described = [inner.get("code"), inner.get("type")] if isinstance(inner, dict) else []
    codes = [getattr(error, "code", None), getattr(error, "type", None), *described]
    return {code for code in codes if isinstance(code, str)}


def _field(error: BaseException, *names: str) -> object:
    return next((value for name in names if isinstance(value := getattr(error, name, None), int)), None)
