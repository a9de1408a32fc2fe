"""Serialization of JSON and short text, the same for every ledger."""

from __future__ import annotations

import json
from json import encoder
from math import isfinite
from typing import TYPE_CHECKING, Any

from nexus_core.errors import LedgerError, UsageError
from nexus_core.text.safety import repair_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LABEL_CHARACTERS = 500
"""Maximum characters of a session's label. Longer ones do not fit into the index of every database."""


def _build_encoder(*, sort_keys: bool) -> Callable[[object], str]:
    """Return a function that serializes JSON.

    `json.dumps` would build its encoder anew for each text, three times a step.
    """
    plain = encoder.JSONEncoder(sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    make: Any = getattr(encoder, "c_make_encoder", None)
    if make is None:  # another Python than CPython
        return plain.encode
    options = (sort_keys, plain.skipkeys, plain.allow_nan)
    pieces = make(None, plain.default, encoder.encode_basestring, None, ":", ",", *options)
    return lambda value: "".join(pieces(value, 0))


_encode_in_order, _encode_sorted = _build_encoder(sort_keys=False), _build_encoder(sort_keys=True)


def write_json(value: object, what: str = "data") -> str:
    """Serialize JSON as stored: keys in their order, no blanks, no ASCII escapes.

    Surrogates are joined or become U+FFFD. Numbers that are not finite become `"NaN"`, `"Infinity"` and `"-Infinity"`.

    Args:
        value: The value.
        what: Its name in the error.

    Raises:
        LedgerError: It contains a value of a type that JSON does not have.
    """
    return _encode(value, what, _encode_in_order)


_decoder: Any = json.JSONDecoder()
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once


def parse_json(text: str) -> Any:  # noqa: ANN401 - JSON has many types
    """Parse stored JSON like `json.loads`.

    It needs two thirds of the time for the short texts of most steps.

    Raises:
        ValueError: It is not JSON.
        RecursionError: It is nested too deeply.
    """
    try:
        value, end = _scan(text, 0)
    except (StopIteration, TypeError):  # it begins with a blank, or is not text
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


def write_canonical_json(value: object, what: str = "data") -> str:
    """Serialize JSON with sorted keys, so that equal values give the same text."""
    return _encode(value, what, _encode_sorted)


def clean_text(text: str) -> str:
    """Return a short text as it is stored: NUL and surrogates become U+FFFD."""
    return (text if text.isascii() else repair_surrogates(text)).replace("\0", "\ufffd")


def normalize_label(text: str) -> str:
    """Return the label of a session as it is stored.

    Raises:
        UsageError: It is empty or too long.
    """
    label = clean_text(text)
    if not label.strip():
        raise UsageError("a session needs a name", hint="give it a label such as 'release-notes'")
    if len(label) > MAX_LABEL_CHARACTERS:
        raise UsageError(f"a session's name has at most {MAX_LABEL_CHARACTERS} characters, not {len(label)}")
    return label


def _encode(value: object, what: str, encode: Callable[[object], str]) -> str:
    try:
        text = encode(value)
        if not text.isascii():
            text.encode()
    except (TypeError, ValueError, RecursionError):
        return _encode_repaired(value, what, encode)
    return text


def _encode_repaired(value: object, what: str, encode: Callable[[object], str]) -> str:
    """Serialize a value with surrogates or with numbers that are not finite."""
    try:
        text = repair_surrogates(encode(_replace_non_finite(value)))
        return encode(json.loads(text))  # repaired keys may be equal, or sort differently
    except (TypeError, ValueError, RecursionError) as error:
        hint = "give dicts, lists, text and numbers"
        raise LedgerError(f"{what} cannot be written as JSON: {error}", hint=hint) from None


def _replace_non_finite(value: Any) -> Any:  # noqa: ANN401 - JSON has many types
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124 - NaN differs from itself
    if isinstance(value, dict):
        return {key: _replace_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_non_finite(item) for item in value]
    return value
