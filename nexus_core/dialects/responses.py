"""Dialect of OpenAI's Responses API: items, requests, replies and streams.

Besides functions and custom tools there are calls that the provider defines and the client runs, such as shell calls.
The client must return their results, so they are tool calls and tool results here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.calls import (
    CUSTOM_TOOL_CALL,
    FREE_TEXT_ARGUMENT,
    FUNCTION_CALL,
    OUTPUT_TYPES,
    assign_call_ids,
    serialize_arguments,
)
from nexus_core.dialects.fields import (
    ErrorPath,
    add_provider_fields,
    describe_json_value,
    format_for_error,
    get_count,
    get_list,
    get_object,
    get_optional_text,
    get_text,
    omit_keys,
    require_object,
    take_optional_text,
    take_text,
    to_json_dict,
    with_metadata,
)
from nexus_core.dialects.media import (
    build_data_url,
    build_file_data,
    build_media_placeholder,
    choose_file_name,
    parse_data_url,
    take_file_data,
)
from nexus_core.dialects.openai import add_cache_marker, get_spelled_role, read_audio, take_arguments, write_audio
from nexus_core.dialects.registry import ApiDialect, Outline
from nexus_core.dialects.requests import (
    OPENAI_APIS,
    read_each,
    read_request_arguments,
    require_list,
    select_request_arguments,
)
from nexus_core.dialects.rules import RESPONSES_RULES
from nexus_core.dialects.tools import read_tools, write_tools
from nexus_core.errors import MessageError, did_you_mean
from nexus_core.types.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Reply,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nexus_core.types.api import CacheMarkers, Dialect
    from nexus_core.types.messages import Part, ResultPart, Role, Stop, Tool

_TEXT_TYPES = ("input_text", "output_text", "text")
_IMAGE_TYPES = ("input_image", "computer_screenshot")
_IMAGE_DETAILS = ("auto", "low", "high", "original")


def read_parts(block: dict[str, Any], key: str, *, text_type: str, typed: bool = True) -> tuple[list[ResultPart], str]:
    """Remove and parse the parts in a field of an item.

    Also returns their spelling: `text`, `one` (a single object), `list` or `nothing` (missing or null).

    Args:
        block: The item, which is modified.
        key: The field.
        text_type: Default type of a text part in this field. Other types are stored as metadata.
        typed: True if each part must have a `type`.
    """
    content = block.get(key)
    if content is None:
        return [], "nothing"
    del block[key]
    if isinstance(content, str):
        return [Text(content)], "text"
    if isinstance(content, dict):
        with ErrorPath(key):
            return [_read_part(content, text_type, typed=typed)], "one"
    if not isinstance(content, list):
        raise MessageError(f"expected text or a list of parts, not {describe_json_value(content)}", path=key)
    parts = []
    for index, item in enumerate(content):
        with ErrorPath(f"{key}[{index}]"):
            parts.append(_read_part(require_object(item), text_type, typed=typed))
    return parts, "list"


def write_parts(parts: Sequence[ResultPart], api: str, *, spelling: object, text_type: str) -> object:
    """Return the value of a content field.

    It is plain text if that is enough and it was not a list.
    """
    blocks = [block for block in (write_part(part, api, text_type=text_type) for part in parts) if block is not None]
    if spelling == "one" and len(blocks) == 1:
        return blocks[0]
    if spelling == "list" or len(blocks) > 1 or any(block.keys() != {"type", "text"} for block in blocks):
        return blocks
    return "".join(block["text"] for block in blocks)


def write_part(part: ResultPart, api: str, *, text_type: str) -> dict[str, Any] | None:
    """Convert a part that was read from `api`. None for another API's block.

    Images and files that Responses does not accept become a text placeholder.
    """
    is_native = api == "responses"
    if isinstance(part, Opaque):
        return dict(part.block) if part.api == "responses" else None
    if is_native:
        return _write_native_part(part, text_type)
    if isinstance(part, Text):
        return {"type": text_type, "text": part.text}
    block = _write_converted_image(part, api) if isinstance(part, Image) else _write_converted_file(part, api)
    return block or {"type": text_type, "text": build_media_placeholder(part).text}


def _read_part(block: dict[str, Any], text_type: str, *, typed: bool) -> ResultPart:
    kind = block.get("type")
    if kind in _TEXT_TYPES:
        other_type = "" if kind == text_type else kind
        return Text(take_text(block, "text"), with_metadata(omit_keys(block, "type"), type=other_type))
    if kind == "refusal":
        return Text(take_text(block, "refusal"), with_metadata(omit_keys(block, "type"), refusal="part"))
    if kind in _IMAGE_TYPES:
        return _read_image(block)
    if kind == "input_file":
        return _read_file(block)
    if kind == "input_audio":
        return read_audio(block)
    if typed:
        get_text(block, "type")
    return Opaque("responses", block)


def _write_native_part(part: Text | Image | File, text_type: str) -> dict[str, Any]:
    if isinstance(part, Text):
        kind: Any = "refusal" if "_refusal" in part.extra else part.extra.get("_type", text_type)
        return add_provider_fields({"type": kind, "refusal" if kind == "refusal" else "text": part.text}, part.extra)
    if "_sound" in part.extra and isinstance(part, File):
        return write_audio(part)
    if isinstance(part, Image):
        url = build_data_url(part.mime, part.data) if part.data else part.url
        kind = part.extra.get("_type", "input_image")
        given = {"type": kind, "detail": part.detail, "image_url": url, "file_id": part.file_id}
    else:
        given = {"type": "input_file", "filename": part.name, "file_data": build_file_data(part)}
        given |= {"file_url": part.url, "file_id": part.file_id}
    return add_provider_fields({key: value for key, value in given.items() if value}, part.extra)


def _read_image(block: dict[str, Any]) -> Image:
    held = parse_data_url(get_optional_text(block, "image_url"))
    url = take_optional_text(block, "image_url")
    detail, file_id = take_optional_text(block, "detail"), take_optional_text(block, "file_id")
    kind = block.pop("type")
    return Image(
        mime=held.mime if held else "",
        data=held.data if held else "",
        url="" if held else url,
        file_id=file_id,
        detail=detail,
        extra=with_metadata(block, type="" if kind == "input_image" else kind),
    )


def _read_file(block: dict[str, Any]) -> File:
    held = take_file_data(block)
    name, url, file_id = (take_optional_text(block, key) for key in ("filename", "file_url", "file_id"))
    return File(
        name=name,
        mime=held.mime,
        data=held.data,
        url=url,
        file_id=file_id,
        extra=with_metadata(omit_keys(block, "type")),
    )


def _write_converted_image(image: Image, api: str) -> dict[str, Any] | None:
    url = build_data_url(image.mime, image.data) if image.data else image.url
    where = {"image_url": url} if url else {"file_id": image.file_id} if image.file_id and api in OPENAI_APIS else None
    detail = image.detail if image.detail in _IMAGE_DETAILS else "auto"
    return {"type": "input_image", "detail": detail} | where if where else None


def _write_converted_file(file: File, api: str) -> dict[str, Any] | None:
    if file.mime.startswith("audio/"):
        return None  # Responses has no audio input
    if file.file_id and api in OPENAI_APIS:
        return {"type": "input_file", "file_id": file.file_id}
    if file.data:
        return {
            "type": "input_file",
            "filename": choose_file_name(file),
            "file_data": build_data_url(file.mime, file.data),
        }
    return {"type": "input_file", "file_url": file.url} if file.url else None


_CALL_TYPES = {output: call for call, output in OUTPUT_TYPES.items()}
OUTPUTS_WITH_PARTS = (OUTPUT_TYPES[FUNCTION_CALL], OUTPUT_TYPES[CUSTOM_TOOL_CALL])
"""Types of results whose output is text or a list of typed parts."""
_OUTPUT_FIELDS = {"tool_search_output": "tools"}
_ACTION_FIELDS = ("action", "actions", "operation", "arguments")
"""Fields with the arguments of provider-defined calls."""


def is_client_call(block: Mapping[str, Any]) -> bool:
    """Return True if the item is a call that the client runs."""
    kind = block.get("type")
    # A tool search has a call id only if the client runs it.
    return kind in OUTPUT_TYPES and (kind != "tool_search_call" or bool(block.get("call_id")))


def is_client_result(block: Mapping[str, Any]) -> bool:
    """Return True if the item is the result of a call that the client ran."""
    kind = block.get("type")
    return kind in _CALL_TYPES and (kind != "tool_search_output" or bool(block.get("call_id")))


def read_call(block: dict[str, Any]) -> ToolCall:
    """Parse a tool call item."""
    kind = block.pop("type")
    call_id = take_text(block, "call_id")
    if kind == FUNCTION_CALL:
        name = take_text(block, "name")
        arguments, raw = take_arguments(block)
        return ToolCall(call_id, name, arguments, raw, with_metadata(block))
    if kind == CUSTOM_TOOL_CALL:
        name, text = take_text(block, "name"), take_text(block, "input")
        return ToolCall(call_id, name, {FREE_TEXT_ARGUMENT: text}, None, with_metadata(block, custom=True))
    given = {key: block.pop(key) for key in _ACTION_FIELDS if key in block}
    return ToolCall(call_id, kind.removesuffix("_call"), given, None, with_metadata(block, type=kind))


def write_call(call: ToolCall, api: str) -> dict[str, Any]:
    """Return the item of a tool call that was read from `api`."""
    is_native = api == "responses"
    kind = get_call_type(call, api)
    body: dict[str, Any] = {"type": kind, "call_id": call.id}
    if kind == FUNCTION_CALL:
        body |= {"name": call.name, "arguments": serialize_arguments(call)}
    elif kind == CUSTOM_TOOL_CALL:
        body |= {"name": call.name, "input": call.arguments.get(FREE_TEXT_ARGUMENT, "")}
    else:
        body |= call.arguments
    return add_provider_fields(body, call.extra) if is_native else body


def get_call_type(call: ToolCall, api: str) -> str:
    """Return the item type of a tool call that was read from `api`."""
    if api == "responses" and "_type" in call.extra:
        return str(call.extra["_type"])
    return CUSTOM_TOOL_CALL if api in OPENAI_APIS and "_custom" in call.extra else FUNCTION_CALL


def read_result(block: dict[str, Any]) -> ToolResult:
    """Parse a tool result item."""
    kind = block.pop("type")
    # The result of a local shell call has the call id in `id`.
    key = "id" if kind == "local_shell_call_output" and "call_id" not in block else "call_id"
    call_id = take_optional_text(block, key) if kind == OUTPUT_TYPES[FUNCTION_CALL] else take_text(block, key)
    name = take_optional_text(block, "name")
    content = _OUTPUT_FIELDS.get(kind, "output")
    if content not in block and kind != OUTPUT_TYPES["apply_patch_call"]:
        raise MessageError(f"there is no {content!r}", path=content, hint="it must be text or a list of parts")
    parts, spelling = read_parts(block, content, text_type="input_text", typed=kind in OUTPUTS_WITH_PARTS)
    extra = with_metadata(block, type=kind, content=spelling, key="" if key == "call_id" else key)
    return ToolResult(call_id, tuple(parts), name, extra=extra)


def write_result(result: ToolResult, api: str, kind: str) -> dict[str, Any]:
    """Return the item of a tool result.

    A new one gets the shape for a call of type `kind`.
    """
    if api != "responses" or "_type" not in result.extra:
        return _write_new_result(result, api, kind)
    output = str(result.extra["_type"])
    key: Any = result.extra.get("_key", "call_id")
    body: dict[str, Any] = {"type": output}
    if result.call_id or output != OUTPUT_TYPES[FUNCTION_CALL]:
        body[key] = result.call_id
    if result.name:
        body["name"] = result.name
    spelling = result.extra.get("_content")
    if result.parts or spelling != "nothing":
        body[_OUTPUT_FIELDS.get(output, "output")] = write_parts(
            result.parts, api, spelling=spelling, text_type="input_text"
        )
    return add_provider_fields(body, result.extra)


def _write_new_result(result: ToolResult, api: str, kind: str) -> dict[str, Any]:
    body: dict[str, Any] = {"type": OUTPUT_TYPES[kind], "call_id": result.call_id}
    if kind == "local_shell_call":
        return {"type": OUTPUT_TYPES[kind], "id": result.call_id, "output": result.text}
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": int(result.is_error)}
        return body | {"output": [{"stdout": result.text, "stderr": "", "outcome": outcome}]}
    if kind == "apply_patch_call":
        return body | {"status": "failed" if result.is_error else "completed", "output": result.text}
    if kind == "tool_search_call":
        return body | {"tools": []}
    if kind == "computer_call":
        screenshot = next((part for part in result.parts if isinstance(part, Image)), Image())
        return body | {"output": _write_screenshot(screenshot, api)}
    return body | {"output": write_parts(result.parts, api, spelling="", text_type="input_text")}


def _write_screenshot(image: Image, api: str) -> dict[str, Any]:
    part = write_part(image, api, text_type="input_text") or {}
    return {"type": "computer_screenshot"} | {key: part[key] for key in ("image_url", "file_id") if key in part}


MESSAGE_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
CLIENT_ITEM_ROLES: dict[str, Role] = {
    "additional_tools": "system",
    "compaction_trigger": "user",
    "configuration_update": "system",
    "item_reference": "user",
    "mcp_approval_response": "user",
}
"""Roles of the items that become Opaque and that the client sends. All other opaque items come from the model."""


def read_item(item: object) -> Message:
    """Parse one item of `input` or `output`."""
    block = to_json_dict(item)
    kind = block.get("type")
    if kind == "message" or (kind is None and "role" in block):
        return _read_message_item(block)
    if kind is None and "id" in block:
        return _read_opaque_item(block, "item_reference")
    get_text(block, "type")
    if is_client_call(block):
        return Message("assistant", (read_call(block),), api="responses")
    if is_client_result(block):
        return Message("tool", (read_result(block),), api="responses")
    if kind == "reasoning":
        return Message("assistant", (_read_reasoning_item(block),), api="responses")
    return _read_opaque_item(block, str(kind))


def get_text_type(role: str) -> str:
    """Return the type of text parts in a message of that role."""
    return "output_text" if role == "assistant" else "input_text"


def _read_message_item(block: dict[str, Any]) -> Message:
    role = take_text(block, "role")
    if role not in MESSAGE_ROLES:
        hint = did_you_mean(role, MESSAGE_ROLES) or f"Responses has the roles {', '.join(MESSAGE_ROLES)}"
        raise MessageError(f"unknown role {role!a}", path="role", hint=hint)
    if "content" not in block:
        raise MessageError("there is no 'content'", path="content", hint="it must be text or a list of parts")
    parts, spelling = read_parts(block, "content", text_type=get_text_type(role))
    untyped = not block.get("type")  # null stays in `extra`, so that it differs from a missing type
    if not untyped:
        del block["type"]
    speaker = MESSAGE_ROLES[role]
    extra = with_metadata(block, content=spelling, role="" if role == speaker else role, untyped=untyped)
    return Message(speaker, tuple(parts), api="responses", extra=extra)


def _read_reasoning_item(block: dict[str, Any]) -> Reasoning:
    """Parse a reasoning item.

    Its fields stay in `extra` to be sent back. The text is only for display.
    """
    del block["type"]
    encrypted = take_optional_text(block, "encrypted_content")
    texts = [text for key in ("summary", "content") for text in _list_texts(block, key)]
    return Reasoning(
        text="\n\n".join(texts), encrypted=encrypted, api="responses", extra=with_metadata(block, whole=True)
    )


def _list_texts(block: dict[str, Any], key: str) -> list[str]:
    given = block.get(key)
    if given is None:
        return []
    if not isinstance(given, list):
        raise MessageError(f"expected a list, not {describe_json_value(given)}", path=key)
    found = (require_object(part).get("text") for part in given)
    return [text for text in found if isinstance(text, str)]


def _read_opaque_item(block: dict[str, Any], kind: str) -> Message:
    role = block.get("role")
    speaker = (
        MESSAGE_ROLES.get(role, "assistant") if isinstance(role, str) else CLIENT_ITEM_ROLES.get(kind, "assistant")
    )
    return Message(speaker, (Opaque("responses", block),), api="responses")


Body = dict[str, Any]


def write_items(messages: Iterable[Message], marks: CacheMarkers | None = None) -> list[Body]:
    """Return the `input` of a request, with breakpoints at the indices of `marks`."""
    items: list[Body] = []
    kinds: dict[str, str] = {}  # types of the calls so far, by id: a result's type depends on its call's
    for index, message in enumerate(assign_call_ids(messages, "responses")):
        kinds |= {call.id: get_call_type(call, message.api) for call in message.tool_calls}
        written = (
            [_write_native_message(message)]
            if _was_message_item(message)
            else list(_write_message_items(message, kinds))
        )
        if marks and index in marks and written and message.role != "assistant":
            _mark_item(written[-1])
        items += written
    return items


def _mark_item(item: Body) -> None:
    field = "output" if item.get("type") in OUTPUTS_WITH_PARTS else "content"
    if field in item:
        item[field] = add_cache_marker(item[field], "input_text")


def _was_message_item(message: Message) -> bool:
    was_read = message.api == "responses" and "_content" in message.extra
    return was_read and not any(isinstance(part, ToolCall | ToolResult | Reasoning) for part in message.parts)


def _write_native_message(message: Message) -> Body:
    role = get_spelled_role(message)
    parts: Any = message.parts
    body: Body = {} if "_untyped" in message.extra else {"type": "message"}
    body["role"] = role
    spelling = message.extra["_content"]
    if parts or spelling != "nothing":
        body["content"] = write_parts(parts, "responses", spelling=spelling, text_type=get_text_type(role))
    return add_provider_fields(body, message.extra)


def _write_message_items(message: Message, kinds: dict[str, str]) -> Iterator[Body]:
    """Yield the items of a message in part order.

    Calls, results and reasoning are separate items.
    """
    content: list[Text | Image | File] = []
    for part in message.parts:
        if isinstance(part, Text | Image | File):
            content.append(part)
            continue
        yield from _write_content_items(content, message)
        content = []
        yield from _write_part_items(part, message.api, kinds)
    yield from _write_content_items(content, message)


def _write_part_items(part: Part, api: str, kinds: dict[str, str]) -> Iterator[Body]:
    if isinstance(part, ToolCall):
        yield write_call(part, api)
    elif isinstance(part, ToolResult):
        yield write_result(part, api, kinds.get(part.call_id, FUNCTION_CALL))
    elif isinstance(part, Opaque) and part.api == "responses":
        yield dict(part.block)
    elif isinstance(part, Reasoning) and part.api == "responses":
        yield _write_reasoning_item(part)


def _write_content_items(parts: list[Text | Image | File], message: Message) -> Iterator[Body]:
    if not parts:
        return
    role = "user" if message.role == "tool" else get_spelled_role(message)
    # An assistant message without the API's id may not have a list of parts.
    runs = (
        [[part if isinstance(part, Text) else build_media_placeholder(part)] for part in parts]
        if role == "assistant"
        else [parts]
    )
    for run in runs:
        if not _is_blank_filler(run, message):
            content = write_parts(run, message.api, spelling="", text_type="input_text")
            yield {"type": "message", "role": role, "content": content}


def _is_blank_filler(run: Sequence[Text | Image | File], message: Message) -> bool:
    """Return True for a blank text that another API puts beside a tool call.

    It would be an empty item.
    """
    is_converted = message.role == "assistant" and message.api != "responses" and len(message.parts) > 1
    return is_converted and all(isinstance(part, Text) and not part.text.strip() for part in run)


def _write_reasoning_item(reasoning: Reasoning) -> Body:
    body: Body = {"type": "reasoning"}
    if reasoning.encrypted:
        body["encrypted_content"] = reasoning.encrypted
    if "_whole" not in reasoning.extra and reasoning.text:
        body["summary"] = [{"type": "summary_text", "text": reasoning.text}]
    return add_provider_fields(body, reasoning.extra)


_SERVER_KEYS = frozenset({"id", "status"})
"""Text fields that the API adds to its output and accepts as input."""
_MESSAGE_KEYS = frozenset({"type", "role", "content"}) | _SERVER_KEYS
_CALL_KEYS = frozenset({"type", "call_id", "name", "arguments"}) | _SERVER_KEYS
_RESULT_KEYS = frozenset({"type", "call_id", "output"}) | _SERVER_KEYS
_TEXT_KEYS = frozenset({"type", "text", "annotations", "logprobs"})


def outline_item(item: object) -> Outline | None:
    """Return the outline of an item of `input`, or None if it is not plain."""
    if type(item) is not dict:
        return None
    kind = item.get("type", "message")
    if kind == "message":
        found = Outline("assistant" if item.get("role") == "assistant" else "user")
        is_plain = (
            item.get("role") in ("user", "assistant") and item.keys() <= _MESSAGE_KEYS and _outline_content(found, item)
        )
    elif kind == "function_call":
        found = Outline("assistant")
        is_plain = item.keys() <= _CALL_KEYS
        is_plain = is_plain and found.add_call(item.get("call_id"), item.get("name"), item.get("arguments"), str)
    else:
        found = Outline("tool")
        is_plain = kind == "function_call_output" and item.keys() <= _RESULT_KEYS and found.add_text(item.get("output"))
        is_plain = is_plain and found.add_result(item.get("call_id"), "")
    if is_plain and not _SERVER_KEYS.isdisjoint(item):
        is_plain = all(found.add_text(item[name]) for name in _SERVER_KEYS if name in item)
    return found if is_plain else None


def _outline_content(found: Outline, item: dict[str, Any]) -> bool:
    content = item.get("content")
    if found.add_text(content):
        return True
    if type(content) is not list or not content:
        return False
    text_type = "output_text" if found.role == "assistant" else "input_text"
    for part in content:
        if type(part) is not dict or part.get("type") != text_type or not part.keys() <= _TEXT_KEYS:
            return False
        if part.get("annotations") or part.get("logprobs") or not found.add_text(part.get("text")):
            return False
    return True


def read_request(body: object) -> Conversation:
    """Parse a request: the arguments of the SDK's call, or the request body."""
    given = read_request_arguments(body)
    messages: tuple[Message, ...] = ()
    if instructions := get_optional_text(given, "instructions"):
        del given["instructions"]
        messages = (Message("system", (Text(instructions),), api="responses", extra={"_instructions": True}),)
    spelling = "nothing"
    if given.get("input") is not None:
        value = given.pop("input")
        spelling = "text" if isinstance(value, str) else "list"
        messages += _read_input(value)
    tools: tuple[Tool, ...] = ()
    if given.get("tools"):
        tools = read_tools(require_list(given.pop("tools"), "tools"), "responses")
    return Conversation(messages=messages, tools=tools, api="responses", extra=with_metadata(given, input=spelling))


def write_request(conversation: Conversation, marks: CacheMarkers | None = None) -> dict[str, Any]:
    """Return the arguments of the SDK's call.

    A system message at the start becomes `instructions`, unless it needs a cache breakpoint, which only items can have.
    """
    marks = marks or {}
    rest = conversation.messages
    body: dict[str, Any] = {}
    if rest and _is_instructions(rest[0]) and 0 not in marks:
        body["instructions"] = rest[0].content
        rest, marks = rest[1:], {index - 1: lifetime for index, lifetime in marks.items()}
    items = write_items(rest, marks)
    spelling = conversation.extra.get("_input") if conversation.api == "responses" else "list"
    if spelling == "text" and len(items) == 1 and _is_single_text(rest):
        body["input"] = rest[0].content
    elif items or spelling != "nothing":
        body["input"] = items
    if tools := write_tools(conversation.tools, "responses"):
        body["tools"] = tools
    return select_request_arguments(conversation, "responses") | body


def _read_input(value: object) -> tuple[Message, ...]:
    if isinstance(value, str):
        return (Message("user", (Text(value),), api="responses"),)
    return read_each(require_list(value, "input"), read_item, "input")


def _is_instructions(message: Message) -> bool:
    """Return True for a system text from `instructions` or another API."""
    is_field = message.api != "responses" or "_instructions" in message.extra
    is_text = len(message.parts) == 1 and isinstance(message.parts[0], Text)
    return is_field and is_text and message.role == "system" and get_spelled_role(message) == "system"


def _is_single_text(messages: tuple[Message, ...]) -> bool:
    only = messages[0]
    return only.role == "user" and len(only.parts) == 1 and isinstance(only.parts[0], Text)


Block = dict[str, Any]

_DELTA_FIELDS = {
    "response.output_text.delta": "content",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
"""Fields that a delta event extends, by event type."""


class UnfinishedItems:
    """Items that a stream has not completed. Pieces are joined once, at the end."""

    def __init__(self) -> None:
        self._items: dict[str, Block] = {}
        self._pieces: dict[str, dict[str, list[str]]] = {}

    def add(self, kind: str, event: Block) -> None:
        """Process the next event, which has the type `kind`."""
        index = repr(event.get("output_index"))
        if kind == "response.output_item.added" and isinstance(event.get("item"), dict):
            self._items[index] = event["item"]
        elif kind == "response.output_item.done":
            self._items.pop(index, None)
        elif kind in _DELTA_FIELDS:
            self._pieces.setdefault(index, {}).setdefault(_DELTA_FIELDS[kind], []).append(
                get_optional_text(event, "delta")
            )

    def items(self) -> list[Block]:
        """Return the unfinished items that have some content."""
        return [self._join(index, item) for index, item in self._items.items() if index in self._pieces]

    def _join(self, index: str, item: Block) -> Block:
        texts = {field: "".join(pieces) for field, pieces in self._pieces[index].items()}
        if "content" in texts:
            return item | {"content": [{"type": "output_text", "text": texts["content"], "annotations": []}]}
        return item | texts


_FINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_BROKEN_STATUS = "broken"
"""Status of a response without a final event, for which the API has no status."""
_STOP_STATUSES: dict[str, Stop] = {
    "failed": "error",
    "cancelled": "error",
    "queued": "pause",
    "in_progress": "pause",
    _BROKEN_STATUS: "broken",
}
_INCOMPLETE_REASONS: dict[str, Stop] = {"content_filter": "refusal", "steered": "pause"}


def read_reply(reply: object) -> Reply:
    """Parse a response, or the list of its stream events."""
    body = _merge_events(reply) if isinstance(reply, list | tuple) else to_json_dict(reply)
    _raise_server_error(body)
    messages = read_each(get_list(body, "output"), read_item, "output")
    status, incomplete_reason = get_optional_text(body, "status"), _get_incomplete_reason(body)
    return Reply(
        messages=messages,
        stop=_classify_stop(status, incomplete_reason, messages),
        stop_reason=incomplete_reason or _get_error_code(body) or ("" if status == _BROKEN_STATUS else status),
        usage=_read_usage(body),
        id=get_optional_text(body, "id"),
        model=get_optional_text(body, "model"),
        api="responses",
    )


def _merge_events(events: Sequence[object]) -> dict[str, Any]:
    """Return the response of the final event.

    If it is missing or has no output, what was streamed so far is used.
    """
    body: dict[str, Any] = {}
    done: list[Any] = []
    unfinished = UnfinishedItems()
    for index, item in enumerate(events):
        with ErrorPath(f"[{index}]"):
            event = to_json_dict(item)
            kind = get_optional_text(event, "type")
            unfinished.add(kind, event)
        if isinstance(event.get("response"), dict):
            body = event["response"]
        if kind == "error":
            return body | {"status": "failed", "error": event, "output": [*done, *unfinished.items()]}
        if kind == "response.output_item.done":
            done.append(event.get("item"))
        if kind in _FINAL_EVENTS:
            return body if body.get("output") else body | {"output": done}
    if not body and not done:
        raise MessageError("the events contain no reply", hint="pass all events of the stream, in order")
    return body | {"status": _BROKEN_STATUS, "output": body.get("output") or [*done, *unfinished.items()]}


def _raise_server_error(body: dict[str, Any]) -> None:
    error = body.get("error")
    if error and "output" not in body:
        message = error.get("message") if isinstance(error, dict) else error
        raise MessageError(f"the server answered with an error: {format_for_error(message)}", path="error")


def _classify_stop(status: str, incomplete_reason: str, messages: Sequence[Message]) -> Stop:
    if status == "incomplete":
        return _INCOMPLETE_REASONS.get(incomplete_reason, "length")
    if status in _STOP_STATUSES:
        return _STOP_STATUSES[status]
    answered = {result.call_id for message in messages for result in message.tool_results}
    if any(call.id not in answered for message in messages for call in message.tool_calls):
        return "tools"
    parts = [part for message in messages for part in message.parts]
    if any(isinstance(part, Opaque) and part.block.get("type") == "mcp_approval_request" for part in parts):
        return "tools"
    if any(isinstance(part, Text) and "_refusal" in part.extra for part in parts):
        return "refusal"
    return "end" if status == "completed" else ""


def _get_incomplete_reason(body: dict[str, Any]) -> str:
    if body.get("incomplete_details") is None:
        return ""
    with ErrorPath("incomplete_details"):
        return get_optional_text(get_object(body, "incomplete_details"), "reason")


def _get_error_code(body: dict[str, Any]) -> str:
    error = body.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else ""


def _read_usage(body: dict[str, Any]) -> Usage | None:
    if body.get("usage") is None:
        return None
    with ErrorPath("usage"):
        usage = get_object(body, "usage")
        read, written = (
            {} if usage.get(key) is None else get_object(usage, key)
            for key in ("input_tokens_details", "output_tokens_details")
        )
        return Usage(
            input_tokens=get_count(usage, "input_tokens"),
            output_tokens=get_count(usage, "output_tokens"),
            cached_input_tokens=get_count(read, "cached_tokens"),
            cache_write_tokens=get_count(read, "cache_write_tokens"),
            reasoning_tokens=get_count(written, "reasoning_tokens"),
        )


# A tuple: the value looked up may be unhashable.
_PART_TYPES = ("input_text", "output_text", "input_image", "input_file")


def is_responses_item(item: Mapping[str, Any]) -> bool:
    """Return True if the item or one of its parts has a type of Responses only."""
    kind, content = item.get("type"), item.get("content")
    if isinstance(content, list):
        return any(isinstance(part, dict) and part.get("type") in _PART_TYPES for part in content)
    if kind == "message":
        return isinstance(content, str)
    return isinstance(kind, str) and (kind in OUTPUT_TYPES or kind in OUTPUT_TYPES.values() or "role" not in item)


DIALECT: Dialect = ApiDialect(
    rules=RESPONSES_RULES,
    recognises=is_responses_item,
    read=read_item,
    write=write_items,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    read_tools=partial(read_tools, api="responses"),
    write_tools=partial(write_tools, api="responses"),
    outline=outline_item,
)
