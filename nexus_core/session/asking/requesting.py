"""A request as a caller makes it, and a session's part in it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from nexus_core.errors import UnknownNameError, UsageError
from nexus_core.session.arguments import read_text
from nexus_core.session.asking.occasion import EVENT, EventFields
from nexus_core.session.options import ALL, Circumstances, options
from nexus_core.types.request import Request

if TYPE_CHECKING:
    from typing import Unpack

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.session.asking.inputs import Said
    from nexus_core.session.options import Options

_PLACE = ("cwd", "home", "defaults", "ancestor_depth", "plugin_tables", "mode", "is_call", "lenient")
"""What a Nexus knows by itself, or is asked for in another way."""


class RequestFields(Circumstances, EventFields, total=False):
    """The arguments by which a request is asked for."""

    session: str | None
    message: object


def with_fields(request: Request, dialects: DialectRegistry, /, **given: Unpack[RequestFields]) -> Request:
    """A request with what the caller says; a message and tools in the shape of any API.

    Raises:
        UnknownNameError: There is no such field.
        MessageError: The message is none, or one of the tools.
        UsageError: Something is told in a shape that means nothing.
    """
    known = [field.name for field in fields(Request) if field.name not in _PLACE]
    for name in given:
        if name not in known:
            raise UnknownNameError("field of a request", name, known)
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    event: dict[str, Any] = {name: values.pop(name) for name in EVENT if name in values}
    message, session = values.pop("message", None), read_text(values.pop("session", ""), "session")
    read = {name: value for name, value in options(dialects, **values)._asdict().items() if value is not None}
    if read.get("skills") == ALL:
        del read["skills"]
        if session:
            hint = f'nexus.session({session!r}, skills="{ALL}") takes it back to all'
            raise UsageError("a session remembers which skills it is told about", hint=hint)
    if "tools" in read:
        from nexus_core.assembly.tools import read_tools

        read["tools"] = read_tools(read["tools"], "", dialects)
    if message is not None or event:
        from nexus_core.session.asking.inputs import read_event, read_input

        said = read_input(message, event, dialects) if message is not None else None
        message = None if said is None else said.message
        event = read_event(event) if said is None else dict(said.event)
    lists: dict[str, Any] = {name: tuple(event.pop(name, [])) for name in ("platform_actions", "attachments")}
    return replace(request, **read, **event, **lists, session=session, message=message)


def options_of(request: Request, dialects: DialectRegistry) -> Options:
    """What a request says about the session."""
    return options(
        dialects,
        model=request.model or None,
        tools=request.tools,
        role=request.role or None,
        renderer=request.renderer or None,
        permissions=request.permissions,
        system_prompt=request.system_prompt or None,
        task=request.task or None,
        skills=request.skills,
        mode=request.mode or None,
    )


def event_of(request: Request, dialects: DialectRegistry) -> Said | None:
    """What a request says that is to be answered; None where it says nothing."""
    if request.message is None:
        return None
    from nexus_core.session.asking.inputs import read_input

    told = {name: getattr(request, name) for name in EVENT if getattr(request, name)}
    return read_input(request.message, told, dialects)
