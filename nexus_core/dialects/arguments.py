"""What a call was made with: JSON in a text, as the model wrote it, or an object."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from nexus_core.dialects.plain import DEEPEST, plain
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from nexus_core.values.parts import JSON, ToolCall

FREE_TEXT = "input"
"""The name that the text of a custom tool has among its arguments."""

INVALID_JSON = "INVALID_JSON"
"""Under this name Anthropic's documentation hands arguments back that are no JSON; others took it over."""

_NOTHING = re.compile(r"\s*(\{\s*\})?\s*")


def parsed(raw: str) -> dict[str, Any]:
    """The arguments in a text; none where it is no JSON object."""
    try:
        value = DECODER.decode(raw)
        # Whoever writes it for another API walks through it.
        value = plain(value) if raw.count("{") + raw.count("[") > DEEPEST else value
    except (ValueError, RecursionError, MessageError):
        return {}
    return value if isinstance(value, dict) else {}


def written(call: ToolCall) -> str:
    """The arguments as text: the model's own where there is one.

    Raises:
        MessageError: They hold what JSON has no word for, or a number that Python refuses to print.
    """
    if call.raw is not None:
        return call.raw
    try:
        return compact(call.arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageError(f"the arguments of {call.name!a} cannot be written as JSON: {error}") from None


def compact(arguments: JSON) -> str:
    """Arguments as JSON without blanks, in their own order."""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), default=dict)


def as_object(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object, for APIs that take nothing else; a text that is none stands in a field of it."""
    if is_broken(call):
        return {FREE_TEXT: call.raw}
    copied: dict[str, Any] = plain(call.arguments)
    return copied


def is_broken(call: ToolCall) -> bool:
    """Whether the model wrote arguments of which nothing could be read."""
    return call.raw is not None and not call.arguments and not _NOTHING.fullmatch(call.raw)


def _finite(number: str) -> float:
    value = float(number)
    return value if isfinite(value) else _refuse(number)  # 1e999 would be written as Infinity


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
"""Reads what every JSON parser reads; made once, because making one takes longer than to read most arguments."""
