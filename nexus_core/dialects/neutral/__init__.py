"""Nexus's own messages, and their form in JSON: for records, and for programs that keep conversations of any API.

json_form.py     how a value is written, field by field; dialect.py: all of it as one object
"""

from __future__ import annotations

from typing import Any

from nexus_core.dialects.neutral.json_form import decode, encode
from nexus_core.values.message import Message


def to_json(message: Message) -> dict[str, Any]:
    """A message as JSON, with nothing of it lost; equal messages give equal bytes."""
    return encode(message)


def from_json(given: object) -> Message:
    """The message that `to_json` wrote.

    Raises:
        MessageError: It is something else, or of a later version.
    """
    return decode(Message, given)
