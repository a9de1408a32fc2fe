"""Finds its way in the JSON of strangers."""

from __future__ import annotations

import json

CUT_OFF = "[The summary was cut off here.]"
THOUGHTS = 8000
"""Tokens for what a model thinks before it writes, where that counts as written. The prompt says how long it may be."""


class NoSummary(Exception):  # noqa: N818 - it says what there is
    """Raised when an answer has no summary in it; says why, for a sentence that begins with the endpoint."""


def parse(body: bytes) -> object:
    """The JSON in an answer.

    Raises:
        NoSummary: There is none.
    """
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):  # no UTF-8 is a ValueError too
        raise NoSummary("answered with something that is not JSON") from None
    return value


def find(value: object, *path: str | int) -> object:
    """What stands under keys and places inside of JSON; None where nothing does."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def find_text(value: object, *path: str | int) -> str:
    """The text that stands there; "" where none does."""
    found = find(value, *path)
    return found if isinstance(found, str) else ""


def joined_texts(blocks: object) -> str:
    """The texts of those blocks that are texts."""
    if not isinstance(blocks, list):
        return ""
    return "".join(find_text(block, "text") for block in blocks if find(block, "type") == "text")


def whole(text: str) -> str:
    """A text that can be encoded: halves of characters are joined, and � stands for what stays half."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def explanation(body: bytes) -> str:
    """What an answer says went wrong, in whichever of the usual shapes; else the answer itself."""
    try:
        value = parse(body)
    except NoSummary:
        return body[:4096].decode("utf-8", "replace")
    if isinstance(value, list):
        value = find(value, 0)
    candidates = [("error", "message"), ("error",), ("message",), ("detail",)]
    return next((said for path in candidates if (said := find_text(value, *path))), whole(json.dumps(value)))
