"""The arguments of `client.converse` and `client.converse_stream`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nexus_core import MessageError
from nexus_core.plugin import (
    BEFORE_MESSAGES,
    Conversation,
    error_inside,
    fields_of,
    json_kind,
    noted,
    plain_mapping,
    read_each,
)
from nexus_plugins.bedrock._fields import API, without
from nexus_plugins.bedrock._messages import read_message, read_system, write_messages, write_system
from nexus_plugins.bedrock._tools import mark_end, read_tools, stand_ins, write_tools

if TYPE_CHECKING:
    from nexus_core import Tool
    from nexus_plugins.bedrock._fields import Block

_INFERENCE = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop_sequences": "stopSequences",
}
"""What other APIs have beside the messages, and Converse in its `inferenceConfig`."""

_PLAIN = ("messages", "system")
"""Arguments of Converse that have no capital letter in their names; all others do."""
_UNCACHED = re.compile(r"claude-(instant|v2|3-(opus|sonnet|haiku)|3-5-sonnet)")
"""Models that keep nothing in a cache behind Bedrock, although Anthropic's own API does, and refuse marks."""
_PROMPT = ":prompt/"
"""In the place of a model, what Bedrock's own management keeps; it has messages of its own."""


def read_request(body: object) -> Conversation:
    """A request as it is given to boto3 or sent."""
    if not isinstance(body, Mapping):
        raise MessageError(f"expected the arguments of a call, not {json_kind(body)}")
    given: Block = {}
    for name, value in body.items():
        if not isinstance(name, str):
            raise MessageError(f"expected text as the name of an argument, not {json_kind(name)}")
        given[name] = value
    is_bare = "messages" not in given and _PROMPT in str(given.get("modelId"))
    if "messages" not in given and not is_bare:
        raise MessageError("there is no 'messages'", path="messages", hint="it must be a list of messages")
    messages = read_each(_listed(given.pop("messages", ()), "messages"), read_message, "messages")
    # What is empty or null stays where it is, to be told from nothing at all.
    if given.get("system"):
        _listed(given["system"], "system")
        messages = (read_system(plain_mapping({"system": given.pop("system")})["system"]), *messages)
    tools = _take_tools(given)
    return Conversation(messages=messages, tools=tools, api=API, extra=noted(given, bare=is_bare))


def write_request(conversation: Conversation, marks: Mapping[int, str] | None = None) -> Block:
    """The arguments of boto3's call; those of another provider's request mean something else and are left out."""
    own, messages = conversation.api == API, conversation.messages
    body: Block = fields_of(conversation.extra) if own else _translated(conversation) if not conversation.api else {}
    marks = {} if _UNCACHED.search(str(body.get("modelId"))) else marks
    if system := write_system(messages, marks):
        body["system"] = system
    if messages or "_bare" not in conversation.extra:
        body["messages"] = write_messages(messages, marks, strictly=not own)
    tools = write_tools(conversation.tools) or ([] if own else stand_ins(messages))
    if marks and BEFORE_MESSAGES in marks:
        tools = mark_end(tools, marks[BEFORE_MESSAGES])
    config = body.get("toolConfig")
    if tools:
        body["toolConfig"] = {"tools": tools, **(config if isinstance(config, Mapping) else {})}
    return body


def _listed(value: object, path: str) -> list[Any] | tuple[Any, ...]:
    if isinstance(value, list | tuple):
        return value
    raise MessageError(f"expected a list, not {json_kind(value)}", path=path)


def _take_tools(given: Block) -> tuple[Tool, ...]:
    """The tools, taken out of `toolConfig`; what else is in there stays, and so do no tools at all."""
    config = given.get("toolConfig")
    if config is None:
        return ()
    if not isinstance(config, Mapping):
        raise MessageError(f"expected an object, not {json_kind(config)}", path="toolConfig")
    if not config.get("tools"):
        return ()
    items = _listed(config["tools"], "toolConfig.tools")
    try:
        tools = read_tools(items)
    except MessageError as error:
        raise error_inside("toolConfig", error) from None
    if others := without(config, "tools"):
        given["toolConfig"] = others
    else:
        del given["toolConfig"]
    return tools


def _translated(conversation: Conversation) -> Block:
    """Arguments of a conversation made here, where Converse has them.

    The model and the usual settings have other names there. What else no argument of Converse is called, is for the
    model itself: `thinking`, `top_k`.
    """
    given = fields_of(conversation.extra)
    body = {name: value for name, value in given.items() if name in _PLAIN or name != name.lower()}
    if "model" in given:
        body.setdefault("modelId", given["model"])
    usual = {spelled: given[name] for name, spelled in _INFERENCE.items() if name in given}
    others = {name: given[name] for name in given if name not in body and name not in _INFERENCE and name != "model"}
    for key, found in (("inferenceConfig", usual), ("additionalModelRequestFields", others)):
        held = body.get(key)
        if found:
            body[key] = found | (dict(held) if isinstance(held, Mapping) else {})
    return body
