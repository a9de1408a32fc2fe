"""What may be known about the occasion of a message."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from nexus_core.types.messages import JSON, Message
    from nexus_core.types.request import Request


class EventFields(TypedDict, total=False):
    """The arguments by which `ask` and `preview` are told about it; fields as those of `Request`."""

    timezone: str | None
    platform: str | None
    platform_actions: Iterable[str] | None
    hook_data: Mapping[str, object] | None
    attachments: Iterable[str | os.PathLike[str] | Mapping[str, object]] | None
    profile: Mapping[str, object] | None
    source: str | None
    event_id: str | None


EVENT = tuple(EventFields.__annotations__)
"""What may be told about it."""


PROFILE = "profile"
"""What of the occasion a session remembers: it stays until another is given."""


def with_event(request: Request, message: Message | None, event: JSON) -> Request:
    """The circumstances of a turn: those of the session, what was said and what is known about the occasion."""
    fields: dict[str, Any] = {name: value for name, value in event.items() if name in EVENT}
    for name in ("platform_actions", "attachments"):
        fields[name] = tuple(fields.get(name, ()))
    return replace(request, message=message, **fields)
