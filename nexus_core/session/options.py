"""Arguments of sessions and requests: validated, stored with the session, and merged with what was stored."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from nexus_core.dialects.fields import describe_json_value, read_list, read_text, read_texts
from nexus_core.errors import MessageError, UnknownNameError, UsageError
from nexus_core.request.input import EVENT_FIELDS, EventFields, read_event, read_input
from nexus_core.request.prefix import read_tools
from nexus_core.types.payloads import SessionPayload
from nexus_core.types.request import AGENT_MODES, DEFAULT_MODE, DEFAULT_ROLE, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Unpack

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.request.input import UserInput
    from nexus_core.types.request import AgentMode

STORED_OPTIONS = ("model", "role", "renderer", "permissions", "system_prompt", "task", "skills", "mode")
"""The options stored in a session's record; its tools are stored with the prefix."""
_ROLES_WITHOUT_TASK = (DEFAULT_ROLE, "manager")
ALL_SKILLS = "all"
"""Resets the skills of a session to all: None keeps the stored ones, and [] means none."""


class CallArguments(TypedDict, total=False):
    """The arguments of `Nexus.session` and `Nexus.request` that configure the agent."""

    model: str | None
    tools: Iterable[object] | None
    role: str | None
    renderer: str | None
    permissions: Iterable[str] | None
    system_prompt: str | None
    task: str | None
    skills: Iterable[str] | None


class SessionArguments(CallArguments, total=False):
    """The arguments of `Nexus.session`."""

    mode: AgentMode | None


class SessionOptions(NamedTuple):
    """Validated arguments of a session. None keeps the stored value, "" resets it to the default.

    Attributes:
        model: The model to call.
        tools: Tool definitions in the format of any API.
        role: The agent role.
        renderer: The renderer of prompts and user messages.
        permissions: Granted permissions; tools that need others are left out.
        system_prompt: The whole system prompt, in place of loaded instructions.
        task: The task of a worker.
        skills: The skills in the prompt; `ALL_SKILLS` resets it to all.
        mode: What drives the agent: a REPL, a server, or nothing that is known.
    """

    model: str | None = None
    tools: tuple[object, ...] | None = None
    role: str | None = None
    renderer: str | None = None
    permissions: tuple[str, ...] | None = None
    system_prompt: str | None = None
    task: str | None = None
    skills: tuple[str, ...] | str | None = None
    mode: str | None = None

    @property
    def stored(self) -> SessionPayload:
        """The options to store with the session: those that were given."""
        given = {name: getattr(self, name) for name in STORED_OPTIONS}
        return SessionPayload(**{name: each for name, each in given.items() if each is not None})

    def over(self, remembered: SessionPayload) -> dict[str, Any]:
        """Return fields of a request: the given options, else those stored with the session.

        Raises:
            UsageError: A task is given, and the role has none.
        """
        both = {name: getattr(self, name) for name in STORED_OPTIONS}
        both = {name: getattr(remembered, name) if value is None else value for name, value in both.items()}
        merged = {name: value for name, value in both.items() if not _is_usual(name, value)}
        if self.task and merged.get("role", DEFAULT_ROLE) in _ROLES_WITHOUT_TASK:
            raise UsageError(
                "task is only for a worker",
                hint='leave it out, or say role="worker"',
                command="leave out --task, or say --role worker",
            )
        return merged


def read_session_options(dialects: DialectRegistry, /, **said: Unpack[SessionArguments]) -> SessionOptions:
    """Validate the arguments of a session.

    Args:
        dialects: The formats that tools may have.
        said: The arguments.

    Raises:
        UsageError: An argument has the wrong type, for example text in place of a list.
        MessageError: One of the tools is not a tool definition.
    """
    unknown = next((name for name in said if name not in _READERS), None)
    if unknown is not None:
        raise UnknownNameError("argument of a session", unknown, _READERS)
    read = {name: None if value is None else _READERS[name](value, name) for name, value in said.items()}
    if tools := read.get("tools"):
        _ensure_readable(tools, dialects)
    return SessionOptions(**read)


def build_request_fields(dialects: DialectRegistry, /, **given: Unpack[SessionArguments]) -> dict[str, Any]:
    """Return the fields of a request that a new session with these arguments would have, without its model.

    Raises:
        UsageError: An argument has the wrong type.
        MessageError: One of the tools is not a tool definition.
    """
    chosen = read_session_options(dialects, **given)
    fields = chosen.over(SessionPayload())
    fields.pop("model", None)
    if not chosen.tools:
        return fields
    return fields | {"tools": read_tools(chosen.tools, "", dialects)}


def read_skills(given: object, name: str = "skills") -> tuple[str, ...] | str:
    """Return names of skills, or `ALL_SKILLS`.

    Raises:
        UsageError: It is neither.
    """
    return (
        ALL_SKILLS
        if given == ALL_SKILLS
        else read_texts(given, name, hint=f'{name}=[{given!a}], or {name}="{ALL_SKILLS}"')
    )


def get_mode(stored: object, default: AgentMode = DEFAULT_MODE) -> AgentMode:
    """Return the mode that a session's record or an epoch names, else the default."""
    return next((mode for mode in (DEFAULT_MODE, *AGENT_MODES) if mode == stored), default)


def _is_usual(name: str, value: object) -> bool:
    return value in (None, "") or (name == "skills" and value == ALL_SKILLS)  # an empty list says that there are none


def _tools(given: object, name: str) -> tuple[object, ...]:
    """Return tool definitions; the dialect of the model reads them once the model is known."""
    tools = read_list(given, name)
    for place, tool in enumerate(tools):
        if isinstance(tool, str | bytes | int | float | None):
            hint = 'for example {"name": "read_file", "description": "Read a file.", "input_schema": {…}}'
            raise UsageError(
                f"each of tools must be a definition, and tools[{place}] is {describe_json_value(tool)}", hint=hint
            )
    return tools


def _ensure_readable(tools: tuple[object, ...], dialects: DialectRegistry) -> None:
    try:
        read_tools(tools, "", dialects)
    except MessageError:
        with suppress(MessageError):  # definitions of newer Gemini tools are recognized only as Gemini's
            read_tools(tools, "gemini", dialects)
            return
        raise


def _mode(given: object, name: str) -> str:
    mode = read_text(given, name, hint=f'{name}="{AGENT_MODES[-1]}"')
    if mode not in ("", *AGENT_MODES):
        raise UnknownNameError(name, mode, AGENT_MODES)
    return mode


_READERS: dict[str, Callable[[object, str], Any]] = {
    "model": read_text,
    "tools": _tools,
    "role": read_text,
    "renderer": read_text,
    "permissions": read_texts,
    "system_prompt": read_text,
    "task": read_text,
    "skills": read_skills,
    "mode": _mode,
}

_PLACE = ("cwd", "home", "defaults", "ancestor_depth", "plugin_tables", "mode", "is_call", "lenient")
"""Fields that a Nexus sets itself, or that have another argument."""


class RequestFields(CallArguments, EventFields, total=False):
    """The arguments of `Nexus.request`."""

    session: str | None
    message: object


def fill_request(request: Request, dialects: DialectRegistry, /, **given: Unpack[RequestFields]) -> Request:
    """Return a request with the given fields; message and tools may have the format of any API.

    Raises:
        UnknownNameError: There is no such field.
        MessageError: The message or one of the tools has an unknown format.
        UsageError: A field has the wrong type.
    """
    known = [field.name for field in fields(Request) if field.name not in _PLACE]
    for name in given:
        if name not in known:
            raise UnknownNameError("field of a request", name, known)
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    event: dict[str, Any] = {name: values.pop(name) for name in EVENT_FIELDS if name in values}
    message, session = values.pop("message", None), read_text(values.pop("session", ""), "session")
    read = {
        name: value for name, value in read_session_options(dialects, **values)._asdict().items() if value is not None
    }
    if read.get("skills") == ALL_SKILLS:
        del read["skills"]
        if session:
            hint = f'nexus.session({session!r}, skills="{ALL_SKILLS}") takes it back to all'
            raise UsageError("a session remembers which skills it is told about", hint=hint)
    if "tools" in read:
        read["tools"] = read_tools(read["tools"], "", dialects)
    if message is not None or event:
        said = read_input(message, event, dialects) if message is not None else None
        message = None if said is None else said.message
        event = read_event(event) if said is None else dict(said.event)
    lists: dict[str, Any] = {name: tuple(event.pop(name, [])) for name in ("platform_actions", "attachments")}
    return replace(request, **read, **event, **lists, session=session, message=message)


def get_request_options(request: Request, dialects: DialectRegistry) -> SessionOptions:
    """Return the session options in a request."""
    return read_session_options(
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


def read_request_input(request: Request, dialects: DialectRegistry) -> UserInput | None:
    """Return the user message in a request; None if it has none."""
    if request.message is None:
        return None
    told = {name: getattr(request, name) for name in EVENT_FIELDS if getattr(request, name)}
    return read_input(request.message, told, dialects)
