"""The arguments of `client.models.generate_content`, and the body that REST takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import at, named
from nexus_core.dialects.gemini.reading import read_message, read_system
from nexus_core.dialects.gemini.spelling import camel
from nexus_core.dialects.gemini.writing import write_messages, write_system
from nexus_core.dialects.notes import fields_of, noted
from nexus_core.dialects.requests import arguments_of, listed, read_each
from nexus_core.dialects.tools import read_tools, write_tools
from nexus_core.errors import MessageError
from nexus_core.values.conversation import Conversation

if TYPE_CHECKING:
    from nexus_core.values.api import Marks
    from nexus_core.values.conversation import Tool
    from nexus_core.values.message import Message

_SYSTEM = ("system_instruction", "systemInstruction")
_CALL = frozenset({"model", "contents", "config"})
"""What `generate_content` takes; all else stands in its `config`."""


def read_request(body: object) -> Conversation:
    """A request as it is given to the SDK, or as REST takes it: what else there is stands beside the contents."""
    given = arguments_of(body)
    if "contents" not in given:
        raise MessageError("there is no 'contents'", path="contents", hint="it must be a list of contents")
    contents = given.pop("contents")
    elements = contents if isinstance(contents, list | tuple) else [contents]
    messages = read_each(elements, read_message, "contents")
    is_body = "config" not in given and any(camel(key) not in _CALL for key in given)
    if given.get("config") is not None:
        given["config"] = _options(given["config"])
    with at("" if is_body else "config"):
        system, tools, key = _take_options(given if is_body else given.get("config") or {})
    extra = noted(given, body=is_body, system=key)
    return Conversation(messages=(*system, *messages), tools=tools, api="gemini", extra=extra)


def write_request(conversation: Conversation, marks: Marks | None = None) -> dict[str, Any]:  # noqa: ARG001 - Gemini finds by itself what it has read
    """The arguments of the SDK's call; the body for REST where that was read.

    Arguments of another provider's request mean something else and are left out.
    """
    known = conversation.extra if conversation.api in ("gemini", "") else {}
    body: dict[str, Any] = fields_of(known)
    is_body = "_body" in known
    options: dict[str, Any] = {}
    system = write_system(conversation.messages, short=not is_body)
    if system is not None:
        options[str(known.get("_system", _SYSTEM[is_body]))] = system
    if tools := write_tools(conversation.tools, "gemini"):
        options["tools"] = tools
    body["contents"] = write_messages(conversation.messages)
    if is_body:
        return body | options
    call, others = _divided(body)
    return call | ({"config": others | options} if others or options else {})


def override_options(body: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call with others in their place: of the call itself, or of its `config`."""
    call, others = _divided(options)
    config = {**body.get("config", {}), **others}
    return body | call | ({"config": config} if config or "config" in body else {})


def _divided(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the call itself takes, and what stands in its `config`, whether it was given there or not."""
    call = {key: value for key, value in arguments.items() if key in _CALL}
    others = {key: value for key, value in arguments.items() if key not in _CALL}
    config = arguments.get("config")
    return call, others if config is None else others | _options(config)


def _options(config: object) -> dict[str, Any]:
    """The settings of a call as a dict, with the caller's own values: a schema may be a class."""
    if isinstance(config, Mapping):
        return dict(config)
    given = getattr(config, "model_fields_set", None)
    if given is None:
        raise MessageError(f"expected an object, not {named(config)}", path="config")
    return {name: getattr(config, name) for name in sorted(given)}


def _take_options(options: dict[str, Any]) -> tuple[tuple[Message, ...], tuple[Tool, ...], str]:
    """Instructions and tools, taken out, and how the instructions were spelled. What is empty or null stays."""
    key = next((key for key in _SYSTEM if options.get(key)), "")
    system: tuple[Message, ...] = ()
    if key:
        with at(key):
            system = (read_system(options.pop(key)),)
    tools: tuple[Tool, ...] = ()
    if options.get("tools"):
        tools = read_tools(listed(options.pop("tools"), "tools"), "gemini")
    return system, tools, key
