"""Text and JSON as they are stored, the same in every ledger."""

from __future__ import annotations

import json
from json import encoder
from math import isfinite
from typing import TYPE_CHECKING, Any

from nexus_core.errors import LedgerError, UsageError
from nexus_core.text.surrogates import join_halves

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_LABEL = 500
"""Characters of a session's name; more do not fit into every database's index."""


def _writer(*, sort_keys: bool) -> Callable[[object], str]:
    """What writes a value as JSON, made once: the standard library makes it anew for every text, three times a step."""
    plain = encoder.JSONEncoder(sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    make: Any = getattr(encoder, "c_make_encoder", None)
    if make is None:  # another Python than CPython
        return plain.encode
    options = (sort_keys, plain.skipkeys, plain.allow_nan)
    pieces = make(None, plain.default, encoder.encode_basestring, None, ":", ",", *options)
    return lambda value: "".join(pieces(value, 0))


_in_order, _sorted = _writer(sort_keys=False), _writer(sort_keys=True)


def write_json(value: object, what: str = "data") -> str:
    """JSON as it is stored: keys in the order in which they came, no blanks, characters as they are.

    Halves of characters are joined or become U+FFFD, as in all text; numbers that JSON cannot write become `"NaN"`,
    `"Infinity"` and `"-Infinity"`.

    Raises:
        LedgerError: It holds something that JSON has no word for.
    """
    return _text(value, what, _in_order)


def canonical(value: object, what: str = "data") -> str:
    """The same with sorted keys: of equal content there is one form."""
    return _text(value, what, _sorted)


def clean(text: str) -> str:
    """A name or other short text as it is stored: NUL and halves of characters become U+FFFD."""
    return (text if text.isascii() else join_halves(text)).replace("\0", "\ufffd")


def label_of(text: str) -> str:
    """The name of a session as it is stored.

    Raises:
        UsageError: It is empty or too long.
    """
    label = clean(text)
    if not label.strip():
        raise UsageError("a session needs a name", hint="give it a label such as 'release-notes'")
    if len(label) > LONGEST_LABEL:
        raise UsageError(f"a session's name has at most {LONGEST_LABEL} characters, not {len(label)}")
    return label


def _text(value: object, what: str, encode: Callable[[object], str]) -> str:
    try:
        text = encode(value)
        if not text.isascii():
            text.encode()
    except (TypeError, ValueError, RecursionError):
        return _mended(value, what, encode)
    return text


def _mended(value: object, what: str, encode: Callable[[object], str]) -> str:
    """JSON of what cannot be written as it is: numbers that are infinite or none, halves of characters."""
    try:
        text = join_halves(encode(_finite(value)))
        return encode(json.loads(text))  # two keys may be one by now, and stand in another order
    except (TypeError, ValueError, RecursionError) as error:
        hint = "give dicts, lists, text and numbers"
        raise LedgerError(f"{what} cannot be written as JSON: {error}", hint=hint) from None


def _finite(value: Any) -> Any:  # noqa: ANN401 - JSON has many types
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124 - NaN differs from itself
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
