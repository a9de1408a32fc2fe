"""What may be known about the occasion of a message."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nexus_core.values.message import Message
    from nexus_core.values.parts import JSON
    from nexus_core.values.request import Request

EVENT = ("timezone", "platform", "platform_actions", "hook_data", "attachments", "profile", "source", "event_id")
"""What may be told about it."""


def with_event(request: Request, message: Message | None, event: JSON) -> Request:
    """The circumstances of a turn: those of the session, what was said and what is known about the occasion."""
    fields: dict[str, Any] = {name: value for name, value in event.items() if name in EVENT}
    for name in ("platform_actions", "attachments"):
        fields[name] = tuple(fields.get(name, ()))
    return replace(request, message=message, **fields)
