"""Redaction: replaces the secrets of a text before it goes to a summarizer, an export or another program.

`[redacted:aws-key]` says what was there. Shapes of secrets are in `secret_shapes`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from nexus_core.text.secret_shapes import (
    REDACTED,
    SecretSpan,
    closes_private_key,
    find_field_secrets,
    find_secrets,
    opens_private_key,
)

_MAX_PASSES = 6
"""A placeholder may end a word, so that the token next to it begins one; hostile texts need more than two passes."""
_MAX_CUT = 1024
"""Characters read beyond those that are shown, so that a secret that begins in them is known by its end."""
_KEY_NAMES, _VALUE_NAMES = ("name", "key", "header", "variable"), ("value", "val", "content")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]{0,60}")


class Redacted(NamedTuple):
    """A text without its secrets.

    Attributes:
        text: The text; `[redacted:aws-key]` stands where a secret was.
        counts: How many secrets of which kind there were.
    """

    text: str
    counts: Counter[str]


def redact(text: str) -> Redacted:
    """Return a text without keys, tokens and passwords; redacting it again changes nothing.

    Quotation marks, commas and brackets stay, so that JSON with secrets in it can still be parsed.
    """
    counts: Counter[str] = Counter()
    for _ in range(_MAX_PASSES):
        spans = find_secrets(text)
        if not spans:
            break
        text = _replace(text, spans, counts)
    return Redacted(text, counts)


def redact_beginning(text: str, length: int) -> str:
    """Return the first characters of a text without secrets, also of one that would be cut; the rest is not read."""
    return redact(text[: length + _MAX_CUT]).text[:length]


def redact_json(value: Any, counts: Counter[str] | None = None) -> Any:  # noqa: ANN401 - JSON has many types
    """Return JSON without keys, tokens and passwords; the name of a field counts as evidence for its value.

    Args:
        value: Dicts, lists, texts and numbers.
        counts: Counts what was redacted.
    """
    counts = Counter() if counts is None else counts
    if isinstance(value, str):
        return _redact_text(value, counts)
    if isinstance(value, dict):
        return _redact_fields(value, counts)
    if isinstance(value, list | tuple):
        return _redact_items(value, counts)
    return value


def _redact_text(text: str, counts: Counter[str]) -> str:
    redacted = redact(text)
    counts.update(redacted.counts)
    return redacted.text


def _replace(text: str, spans: list[SecretSpan], counts: Counter[str]) -> str:
    pieces = []
    at = 0
    for start, end, kind in spans:
        pieces += [text[at:start], f"{REDACTED}{kind}]"]
        counts[kind] += 1
        at = end
    return "".join([*pieces, text[at:]])


def _redact_fields(fields: dict[Any, Any], counts: Counter[str]) -> dict[Any, Any]:
    redacted: dict[Any, Any] = {}
    named = next((fields[name] for name in _KEY_NAMES if isinstance(fields.get(name), str)), "")
    for key, value in fields.items():
        shown = _redact_text(key, counts) if isinstance(key, str) else key
        number = 2
        while shown in redacted:  # two secrets of one kind
            shown, number = f"{shown.rpartition(' #')[0] or shown} #{number}", number + 1
        # {"name": "DB_PASSWORD", "value": "…"}, as in manifests and recorded requests
        redacted[shown] = _redact_field(named if named and key in _VALUE_NAMES else key, value, counts)
    return redacted


def _redact_field(name: object, value: object, counts: Counter[str]) -> object:
    if isinstance(name, str) and isinstance(value, str):
        if spans := find_field_secrets(name, value):
            value = _replace(value, spans, counts)
        return _redact_text(value, counts)
    return redact_json(value, counts)


def _redact_items(items: list[Any] | tuple[Any, ...], counts: Counter[str]) -> list[Any]:
    """Return a list without secrets; an option is evidence for the word behind it, as in the arguments of a command."""
    redacted: list[Any] = []
    before: object = None
    is_in_key = False
    for item in items:
        if not isinstance(item, str):
            redacted.append(redact_json(item, counts))
        elif is_in_key:  # a key as a list of its lines
            is_in_key = not closes_private_key(item)
            redacted.append(_redact_key_line(item, counts) if is_in_key else item)
        elif isinstance(before, str) and _OPTION.fullmatch(before) and not item.startswith("-"):
            redacted.append(_redact_field(before.lstrip("-"), item, counts))
        else:
            redacted.append(_redact_text(item, counts))
            is_in_key = opens_private_key(item)
        before = item
    return redacted


def _redact_key_line(line: str, counts: Counter[str]) -> str:
    if not line.strip() or line.startswith(REDACTED):
        return line
    counts["private-key"] += 1
    return f"{REDACTED}private-key]"
