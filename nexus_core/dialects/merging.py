"""Answers that one API gives in several elements and another in one."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable


def with_calls_together(messages: Iterable[Message], api: str) -> list[Message]:
    """The messages, those in a row by an assistant made one where there are calls among them.

    An API that wants the results right after the calls would find another answer between them. Messages of that API
    itself stay as they are.
    """
    merged: list[Message] = []
    for foreign, run in groupby(messages, key=lambda message: message.role == "assistant" and message.api != api):
        neighbours = list(run)
        if foreign and len(neighbours) > 1 and any(message.tool_calls for message in neighbours):
            apis = {message.api for message in neighbours}
            parts = tuple(part for message in neighbours for part in message.parts)
            merged.append(Message("assistant", parts, neighbours[0].name, apis.pop() if len(apis) == 1 else ""))
        else:
            merged += neighbours
    return merged
