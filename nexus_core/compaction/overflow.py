"""Detect from a provider's error that a request was too long, and read its numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ERROR_CHARACTERS = 20_000
"""Characters of an error text that are searched."""
MAX_ERROR_CAUSES = 8
"""Exceptions of a chain that are searched."""

MAX_NUMBER_DIGITS = 12
"""Digits of a number: no window is larger, and Python parses very long numbers slowly."""

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
_PAYLOAD_TOO_LARGE = 413
_RATE_LIMITED = 429

_NUMBER = r"(?P<{}>\d[\d,._]{{0,24}})"
_LIMIT, _REQUESTED, _TOTAL = map(_NUMBER.format, ("limit", "asked", "all"))
_RESPONSE = rf"(?:[^)]{{1,160}}?{_NUMBER.format('answer')}(?: tokens)? (?:in|for) (?:the|your) (?:completion|output))?"
"""Tokens for the reply, if the provider adds them to the tokens of the request."""
_LENGTH = rf"maximum (?:context|prompt) length (?:is|of) {_LIMIT}(?: tokens)?"

# Messages of providers. The first pattern that matches gives the numbers.
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"prompt is too long: {_REQUESTED} tokens > {_LIMIT} maximum",
        rf"prompt is too long: {_REQUESTED}, model maximum context length: {_LIMIT}",
        rf"exceed context limit: {_REQUESTED} \+ (?P<answer>\d+) > {_LIMIT}",
        rf"input token count \(?{_REQUESTED}\)? exceeds the maximum number of tokens(?: allowed)? \(?{_LIMIT}\)?",
        rf"input token count is {_REQUESTED} but (?:the )?model only supports up to {_LIMIT}",
        rf"input token count exceeds the maximum number of tokens(?: allowed)? \(?{_LIMIT}\)?",
        rf"{_LENGTH}[^\d]{{1,120}}?you requested (?:a total of |about )?{_TOTAL} tokens{_RESPONSE}",
        rf"{_LENGTH}[^\d]{{1,120}}?{_REQUESTED}(?: input)? tokens",
        rf"input tokens exceed the configured limit of {_LIMIT} tokens[^\d]{{1,80}}?{_REQUESTED} tokens",
        rf"input tokens exceed the configured limit of {_LIMIT}",
        rf"passed {_REQUESTED} input tokens and requested (?P<answer>\d+) output tokens[^\d]{{1,80}}?{_LIMIT} tokens",
        rf"requested tokens \({_REQUESTED}\) exceed context window of {_LIMIT}",
        rf"prompt has {_REQUESTED} tokens, but the configured context size is {_LIMIT}",
        rf"prompt token count of {_REQUESTED}[^\d]{{1,120}}?{_LIMIT}",
        rf"prompt contains {_REQUESTED} tokens(?: and \d+ draft tokens)?[^\d]{{1,120}}?{_LIMIT}",
        rf"\brequest \({_REQUESTED} tokens\) exceeds the available context size \({_LIMIT} tokens\)",
        rf"\binput \({_REQUESTED} tokens\) is longer than the model's context length \({_LIMIT} tokens\)",
        rf"prompt \(length {_REQUESTED}\) is longer than the maximum model length of {_LIMIT}",
        rf"tokens? \+ `max_new_tokens` must be <= {_LIMIT}[^\d]{{1,40}}{_REQUESTED}",
        rf"`inputs` must have less than {_LIMIT} tokens\. Given: {_REQUESTED}",
        rf"total number of tokens in the prompt cannot exceed {_LIMIT} - received {_REQUESTED}",
        rf"current length is {_REQUESTED} while limit is {_LIMIT}",
        rf"exceeded model token limit: {_LIMIT} \(requested: {_REQUESTED}\)",
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
_TOO_MANY_BYTES = re.compile(
    rf"{_TOO_LARGE}|\b{_PAYLOAD_TOO_LARGE}\b[^\n]{{0,40}}too large|request payload size exceeds the limit",
    re.IGNORECASE,
)
"""Messages about bytes instead of tokens, for errors without a status."""
_RATE = re.compile(r"tokens per (?:min|day|hour|second)|\bTPM\b|rate.?limit|quota", re.IGNORECASE)


class Overflow(NamedTuple):
    """A request that was too long.

    Attributes:
        limit: Tokens of the model's window; None if the provider does not give it.
        asked: Tokens of the request without those for the reply; None if the provider does not give them.
        message: The provider's message.
        answer: Tokens for the reply, if the provider adds them to the request's.
        is_size: True if the error only states that the request was too large, which may mean its bytes.
    """

    limit: int | None
    asked: int | None
    message: str
    answer: int = 0
    is_size: bool = False


def read_overflow(error: BaseException) -> Overflow | None:
    """Return the numbers of an error about a too long request; None for other errors.

    Works for the errors of any SDK: by their code, their status, or their text.
    """
    for each in _list_causes(error):
        status = _find_int_attribute(each, "status_code", "status", "code")
        for text in _list_texts(each):
            found = _read_text(text, status)
            if found is not None:
                return found
        codes = _list_codes(each)
        if codes & _CODES or status == _PAYLOAD_TOO_LARGE:
            is_size = _TOO_LARGE in codes or (status == _PAYLOAD_TOO_LARGE and not codes & _CODES)
            return Overflow(None, None, str(each)[:MAX_ERROR_CHARACTERS], is_size=is_size)
    return None


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(seen) < MAX_ERROR_CAUSES:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _read_text(text: str, status: object) -> Overflow | None:
    for pattern in _PATTERNS:
        match = pattern.search(text)
        if match:
            break
    else:
        return Overflow(None, None, text, is_size=True) if _TOO_MANY_BYTES.search(text) else None
    found = match.groupdict()
    if "limit" not in found and (status == _RATE_LIMITED or _RATE.search(text)):
        return None  # a rate limit, which a retry resolves
    asked, answer, total = (_parse_number(found.get(name)) for name in ("asked", "answer", "all"))
    if total is not None:
        asked = total - (answer or 0)
    return Overflow(_parse_number(found.get("limit")), asked, text, answer or 0)


def _parse_number(text: str | None) -> int | None:
    """Return a number; None without digits, and for 0, which is not a length."""
    digits = re.sub(r"\D", "", text or "")
    return int(digits[:MAX_NUMBER_DIGITS]) or None if digits else None


def _list_texts(error: BaseException) -> Iterator[str]:
    """Yield the texts of an error, the plainest first."""
    body = getattr(error, "body", None)
    for candidate in (
        getattr(error, "message", None),
        *_list_strings(body),
        _read_response_text(error),
        _safe_str(error),
    ):
        if isinstance(candidate, str) and candidate:
            yield candidate[:MAX_ERROR_CHARACTERS]


def _list_strings(body: object, depth: int = 3) -> Iterator[str]:
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict) and depth:
        for value in body.values():
            yield from _list_strings(value, depth - 1)


def _read_response_text(error: BaseException) -> str:
    try:
        text = getattr(getattr(error, "response", None), "text", "")
    except Exception:  # noqa: BLE001 - a stream that was not read may raise anything
        return ""
    return text if isinstance(text, str) else ""


def _safe_str(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - `__str__` of a third-party exception may fail
        return ""


def _list_codes(error: BaseException) -> set[object]:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    described = [inner.get("code"), inner.get("type")] if isinstance(inner, dict) else []
    codes = [getattr(error, "code", None), getattr(error, "type", None), *described]
    return {code for code in codes if isinstance(code, str)}


def _find_int_attribute(error: BaseException, *names: str) -> object:
    return next((value for name in names if isinstance(value := getattr(error, name, None), int)), None)
