"""Arguments of `client.converse`, tool definitions, and the rules of the API.

Each rule has its evidence beside it, an error message and an issue that quotes it, unless botocore's description of the
API has the rule. If models differ, the stricter rule applies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core import MessageError, Tool, get_dialect
from nexus_core.plugin.dialects import (
    BEFORE_MESSAGES,
    ApiRules,
    Conversation,
    at_path,
    json_kind,
    provider_fields,
    read_each,
    to_json_dict,
    with_metadata,
)
from nexus_plugins.bedrock._fields import API, drop_fields, get_text, require_mapping, require_text
from nexus_plugins.bedrock._messages import (
    CACHE_POINT,
    build_cache_point,
    read_message,
    read_system_blocks,
    write_messages,
    write_system,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core import Message
    from nexus_plugins.bedrock._fields import Block

_MEGABYTE = 1024 * 1024

RULES = ApiRules(
    name=API,
    # Instructions are `system`. Since 2026 the role `system` exists among messages too, to add and remove tools.
    system="field",
    later_system=True,
    # "A conversation must start with a user message" (langgenius/dify#12340).
    first=frozenset({"user"}),
    # "This model does not support assistant message prefill. The conversation must end with a user message"
    # (NousResearch/hermes-agent#101401).
    last=frozenset({"user", "tool"}),
    # "Expected toolResult blocks at messages.2.content for the following Ids" (agno-agi/agno#6698). `write_messages`
    # makes roles alternate.
    results="together",
    # "The toolResult blocks at messages.X.content contain duplicate Ids" (BerriAI/litellm#20047).
    unique_ids=True,
    # The service also accepts dots and colons, but Anthropic's models on Bedrock do not.
    id_pattern=r"[a-zA-Z0-9_-]+",
    id_length=64,
    name_pattern=r"[a-zA-Z0-9_-]+",
    name_length=64,
    object_arguments=True,
    # "The text field in the ContentBlock object at messages.11.content.0 is blank" (continuedev/continue#9767).
    blank_text=False,
    silent_errors=False,
    final_blanks=False,
    # Anthropic's models reject reasoning that they did not sign; others do not need it.
    signed_reasoning=True,
    reasoning_keeps_next=True,
    # Images and documents are allowed in user messages and tool results.
    media=frozenset({"user", "tool"}),
    # 3.75 MB for an image and 4.5 MB for a document, as sizes in base64.
    image_size=5 * _MEGABYTE,
    file_size=6 * _MEGABYTE,
    # Documented by Anthropic for its models on Bedrock.
    request_bytes=20_000_000,
    # A separate block, which ends the cached prefix; at most four of them.
    cache_mark="cachePoint",
    cache_marks=4,
    serves=frozenset({"anthropic"}),
)

_TOOL_KINDS = ("toolSpec", "systemTool", CACHE_POINT)
_FIRST_PATH = "tools[0]"
_REMOVED_TOOL_TEXT = "Was available earlier in this conversation, and is not any more."
_EMPTY_SCHEMA = {"type": "object", "properties": {}}


def read_tools(tools: Iterable[object]) -> tuple[Tool, ...]:
    """Read tool definitions in the format of Bedrock, any other API or MCP, or Tool objects."""
    found: list[Tool] = []
    for index, item in enumerate(tools):
        try:
            _read_tool(found, item)
        except MessageError as error:
            raise at_path(f"tools[{index}]", _strip_path(error)) from None
    return tuple(found)


def write_tools(tools: Sequence[Tool]) -> list[Block]:
    """Return tool definitions for `toolConfig`, without tools that another provider runs itself."""
    return [
        block for tool in tools for block in (_write_own_tool(tool) if tool.api == API else _write_other_tool(tool))
    ]


def add_tools_cache_point(tools: Sequence[Block], lifetime: str) -> list[Block]:
    """Return tool definitions with a cache point at the end, unless there is one."""
    return list(tools) if not tools or CACHE_POINT in tools[-1] else [*tools, build_cache_point(lifetime)]


def build_placeholder_tools(messages: Iterable[Message]) -> list[Block]:
    """Return definitions for tools that past messages called, for a request without tools.

    "The toolConfig field must be defined when using toolUse and toolResult content blocks" (langgenius/dify#17545).
    """
    names = dict.fromkeys(call.name for message in messages for call in message.tool_calls)
    return [
        _build_spec({"name": name, "description": _REMOVED_TOOL_TEXT, "inputSchema": {"json": _EMPTY_SCHEMA}})
        for name in names
    ]


def _strip_path(error: MessageError) -> MessageError:
    """Return an error of another dialect without the path of its list of one tool."""
    path = error.path.removeprefix(_FIRST_PATH).lstrip(".")
    return MessageError(error.what, path=path, hint=error.hint, command=error.command)


def _read_tool(found: list[Tool], item: object) -> None:
    """Read one element. A cache point belongs to the tool before it."""
    block = {} if isinstance(item, Tool) or callable(item) else to_json_dict(item)
    kind = next((kind for kind in _TOOL_KINDS if block.get(kind) is not None), "")
    if not kind:
        found += get_dialect("openai").read_tools([item])
    elif kind == "toolSpec":
        found.append(_read_spec(require_mapping(block, kind), drop_fields(block, kind)))
    elif (
        kind == CACHE_POINT
        and found
        and found[-1].api == API
        and CACHE_POINT not in found[-1].extra
        and block.keys() == {CACHE_POINT}
    ):
        found[-1] = replace(found[-1], extra={**found[-1].extra, CACHE_POINT: block[CACHE_POINT]})
    else:
        name = get_text(require_mapping(block, kind), "name", kind) or kind
        found.append(Tool(name=name, api=API, extra=with_metadata(block, builtin=True)))


def _read_spec(spec: Block, rest: Block) -> Tool:
    name, description = require_text(spec, "name", "toolSpec"), get_text(spec, "description", "toolSpec")
    schema: Any = spec.get("inputSchema")
    parameters = schema.get("json") if isinstance(schema, dict) else None
    if not isinstance(parameters, dict) or not parameters:
        parameters = {}
    elif schema.keys() == {"json"}:
        spec = drop_fields(spec, "inputSchema")
    inner = drop_fields(spec, "name", "description" if description else "")
    extra = with_metadata({}, inner=inner, outer=rest)
    return Tool(name=name, description=description, parameters=parameters, api=API, extra=extra)


def _write_own_tool(tool: Tool) -> list[Block]:
    extra: Any = tool.extra
    mark = extra.get(CACHE_POINT)
    if isinstance(mark, dict) and mark.get("type") == "ephemeral":  # a cache marker in the neutral form
        mark = build_cache_point(str(mark.get("ttl", "")))[CACHE_POINT]
    after = [] if mark is None else [{CACHE_POINT: mark}]
    if "_builtin" in extra:
        block = drop_fields(provider_fields(extra), CACHE_POINT)
        return [block, *after] if block else after
    spec: Block = {"name": tool.name} | ({"description": tool.description} if tool.description else {})
    spec |= {"inputSchema": {"json": dict(tool.parameters)}} if tool.parameters else {}
    return [_build_spec(spec | extra.get("_inner", {}), extra.get("_outer", {})), *after]


def _write_other_tool(tool: Tool) -> list[Block]:
    """Return the definition that Anthropic's dialect writes: name, description and a JSON Schema of an object."""
    written = get_dialect("anthropic").write_tools([tool])
    if not written or "input_schema" not in written[0]:
        return []
    schema = {"type": "object", **written[0]["input_schema"]}
    described = {"description": tool.description} if tool.description.strip() else {}
    return [_build_spec({"name": tool.name, **described, "inputSchema": {"json": schema}})]


def _build_spec(spec: Block, rest: Block | None = None) -> Block:
    return {"toolSpec": spec, **(rest or {})}


_INFERENCE_FIELDS = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop_sequences": "stopSequences",
}
"""Arguments of other APIs, and their names in the `inferenceConfig` of Converse."""

_LOWERCASE_ARGUMENTS = ("messages", "system")
"""Arguments of Converse without a capital letter in their names; all others have one."""
_UNCACHED_MODELS = re.compile(r"claude-(instant|v2|3-(opus|sonnet|haiku)|3-5-sonnet)")
"""Models without prompt caching on Bedrock, which reject cache points although Anthropic's own API accepts them."""
_PROMPT_MARKER = ":prompt/"
"""Part of a `modelId` that names a prompt of Bedrock's prompt management, which has its own messages."""


def read_request(body: object) -> Conversation:
    """Read the arguments of a call, or its request body."""
    if not isinstance(body, Mapping):
        raise MessageError(f"expected the arguments of a call, not {json_kind(body)}")
    arguments: Block = {}
    for name, value in body.items():
        if not isinstance(name, str):
            raise MessageError(f"expected text as the name of an argument, not {json_kind(name)}")
        arguments[name] = value
    is_bare = "messages" not in arguments and _PROMPT_MARKER in str(arguments.get("modelId"))
    if "messages" not in arguments and not is_bare:
        raise MessageError("there is no 'messages'", path="messages", hint="it must be a list of messages")
    messages = read_each(_require_list_value(arguments.pop("messages", ()), "messages"), read_message, "messages")
    # Empty and null values stay in the arguments, to distinguish them from missing ones.
    if arguments.get("system"):
        _require_list_value(arguments["system"], "system")
        messages = (read_system_blocks(to_json_dict({"system": arguments.pop("system")})["system"]), *messages)
    tools = _pop_tools(arguments)
    return Conversation(messages=messages, tools=tools, api=API, extra=with_metadata(arguments, bare=is_bare))


def write_request(conversation: Conversation, marks: Mapping[int, str] | None = None) -> Block:
    """Return the arguments of boto3's call. Those of another API's request are dropped, as their meaning differs."""
    own, messages = conversation.api == API, conversation.messages
    body: Block = (
        provider_fields(conversation.extra) if own else _convert_arguments(conversation) if not conversation.api else {}
    )
    marks = {} if _UNCACHED_MODELS.search(str(body.get("modelId"))) else marks
    if system := write_system(messages, marks):
        body["system"] = system
    if messages or "_bare" not in conversation.extra:
        body["messages"] = write_messages(messages, marks, strictly=not own)
    tools = write_tools(conversation.tools) or ([] if own else build_placeholder_tools(messages))
    if marks and BEFORE_MESSAGES in marks:
        tools = add_tools_cache_point(tools, marks[BEFORE_MESSAGES])
    config = body.get("toolConfig")
    if tools:
        body["toolConfig"] = {"tools": tools, **(config if isinstance(config, Mapping) else {})}
    return body


def _require_list_value(value: object, path: str) -> list[Any] | tuple[Any, ...]:
    if isinstance(value, list | tuple):
        return value
    raise MessageError(f"expected a list, not {json_kind(value)}", path=path)


def _pop_tools(arguments: Block) -> tuple[Tool, ...]:
    """Remove the tools from `toolConfig` and return them. Its other fields, and an empty list, stay."""
    config = arguments.get("toolConfig")
    if config is None:
        return ()
    if not isinstance(config, Mapping):
        raise MessageError(f"expected an object, not {json_kind(config)}", path="toolConfig")
    if not config.get("tools"):
        return ()
    items = _require_list_value(config["tools"], "toolConfig.tools")
    try:
        tools = read_tools(items)
    except MessageError as error:
        raise at_path("toolConfig", error) from None
    if others := drop_fields(config, "tools"):
        arguments["toolConfig"] = others
    else:
        del arguments["toolConfig"]
    return tools


def _convert_arguments(conversation: Conversation) -> Block:
    """Return the arguments of a conversation that Nexus built, under their names in Converse.

    The model and common settings have other names there. Arguments that Converse does not know are for the model
    itself, such as `thinking` and `top_k`.
    """
    arguments = provider_fields(conversation.extra)
    body = {name: value for name, value in arguments.items() if name in _LOWERCASE_ARGUMENTS or name != name.lower()}
    if "model" in arguments:
        body.setdefault("modelId", arguments["model"])
    inference = {field: arguments[name] for name, field in _INFERENCE_FIELDS.items() if name in arguments}
    others = {
        name: value
        for name, value in arguments.items()
        if name not in body and name not in _INFERENCE_FIELDS and name != "model"
    }
    for key, fields in (("inferenceConfig", inference), ("additionalModelRequestFields", others)):
        existing = body.get(key)
        if fields:
            body[key] = fields | (dict(existing) if isinstance(existing, Mapping) else {})
    return body
