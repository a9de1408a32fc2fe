"""Dialect of OpenAI's Chat Completions API and compatible servers."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from nexus_core.dialects.calls import (
    FREE_TEXT_ARGUMENT,
    LEGACY_CALL_KEY,
    assign_call_ids,
    build_legacy_call_id,
    merge_assistant_messages,
    parse_arguments,
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
    get_audio_format,
    parse_data_url,
    take_file_data,
)
from nexus_core.dialects.registry import ApiDialect, Outline
from nexus_core.dialects.requests import (
    OPENAI_APIS,
    read_each,
    read_request_arguments,
    require_list,
    select_request_arguments,
)
from nexus_core.dialects.rules import OPENAI_RULES
from nexus_core.dialects.tools import (
    is_legacy_function,
    read_legacy_functions,
    read_tools,
    write_legacy_functions,
    write_tools,
)
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
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.types.api import CacheMarkers, Dialect
    from nexus_core.types.messages import Part, ResultPart, Role, Stop, Tool

_AUDIO_INPUT_FORMATS = ("wav", "mp3")


def read_content(block: dict[str, Any]) -> tuple[list[ResultPart], str]:
    """Remove and parse `content`. Also return `list` if it was a list."""
    content = block.get("content")
    if content is None:
        return [], ""
    del block["content"]
    if isinstance(content, str):
        return [Text(content)], ""
    if not isinstance(content, list):
        raise MessageError(f"expected text or a list of parts, not {describe_json_value(content)}", path="content")
    parts = []
    for index, item in enumerate(content):
        with ErrorPath(f"content[{index}]"):
            parts.append(_read_part(require_object(item)))
    return parts, "list"


def write_content(
    parts: Sequence[ResultPart], api: str, *, spelling: object, media: bool
) -> str | list[dict[str, Any]]:
    """Return a list of parts, or plain text if that is enough.

    A list that was read stays a list.
    """
    blocks = [block for block in (write_part(part, api, media=media) for part in parts) if block is not None]
    if spelling == "list" or len(blocks) > 1 or any(block.keys() != {"type", "text"} for block in blocks):
        return blocks
    return "".join(block["text"] for block in blocks)


def write_part(part: ResultPart, api: str, *, media: bool) -> dict[str, Any] | None:
    """Convert a part that was read from `api`. None for another API's block.

    Images and files become a text placeholder if the message cannot hold them (`media` is False) or the API cannot
    show them.
    """
    is_native = api == "openai"
    if isinstance(part, Opaque):
        return dict(part.block) if part.api == "openai" else None
    if isinstance(part, Text):
        kind = "refusal" if api in OPENAI_APIS and "_refusal" in part.extra else "text"
        body: dict[str, Any] = {"type": kind, kind: part.text}
        return add_provider_fields(body, part.extra) if is_native else body
    if is_native:
        return _write_native_image(part) if isinstance(part, Image) else _write_native_file(part)
    shown = _write_converted_image(part) if isinstance(part, Image) else _write_converted_file(part, api)
    return shown if shown and media else {"type": "text", "text": build_media_placeholder(part).text}


def _read_part(block: dict[str, Any]) -> ResultPart:
    kind = block.get("type")
    if kind == "text":
        del block["type"]
        return Text(take_text(block, "text"), with_metadata(block))
    if kind == "refusal":
        del block["type"]
        return Text(take_text(block, "refusal"), with_metadata(block, refusal="part"))
    if kind == "image_url":
        return _read_image(block)
    if kind == "input_audio":
        return read_audio(block)
    if kind == "file":
        return _read_file(block)
    if not isinstance(kind, str):
        raise MessageError(
            "there is no 'type'" if kind is None else f"expected text, not {describe_json_value(kind)}",
            path="type",
            hint="set it to the part's type: text, image_url, input_audio, file or refusal",
        )
    return Opaque("openai", block)


def _read_image(block: dict[str, Any]) -> Image:
    # Some servers accept the bare URL where OpenAI wants an object.
    bare = isinstance(block.get("image_url"), str)
    inner = {"url": block["image_url"]} if bare else get_object(block, "image_url")
    with ErrorPath("image_url"):
        url = take_text(inner, "url")
        detail = take_optional_text(inner, "detail")
    held = parse_data_url(url)
    return Image(
        mime=held.mime if held else "",
        data=held.data if held else "",
        url="" if held else url,
        detail=detail,
        extra=with_metadata(_get_other_fields(block, "image_url"), inner=inner, bare=bare),
    )


def _write_native_image(image: Image) -> dict[str, Any]:
    url = build_data_url(image.mime, image.data) if image.data else image.url
    inner = {"url": url} | ({"detail": image.detail} if image.detail else {})
    bare = image.extra.get("_bare")
    return add_provider_fields(
        {"type": "image_url", "image_url": url if bare else inner | _get_inner_fields(image)}, image.extra
    )


def _write_converted_image(image: Image) -> dict[str, Any] | None:
    url = build_data_url(image.mime, image.data) if image.data else image.url
    detail = {"detail": image.detail} if image.detail in ("auto", "low", "high", "original") else {}
    return {"type": "image_url", "image_url": {"url": url} | detail} if url else None


def read_audio(block: dict[str, Any]) -> File:
    """Parse an `input_audio` part, which has the same shape in Responses."""
    inner = get_object(block, "input_audio")
    with ErrorPath("input_audio"):
        data, kind = take_text(inner, "data"), take_text(inner, "format")
    extra = with_metadata(_get_other_fields(block, "input_audio"), inner=inner) | {"_sound": kind}
    return File(mime=f"audio/{kind}", data=data, extra=extra)


def write_audio(file: File) -> dict[str, Any]:
    """Write an audio part as it was read."""
    inner: dict[str, Any] = {"data": file.data, "format": file.extra["_sound"]}
    return add_provider_fields({"type": "input_audio", "input_audio": inner | _get_inner_fields(file)}, file.extra)


def _read_file(block: dict[str, Any]) -> File:
    inner = get_object(block, "file")
    with ErrorPath("file"):
        held = take_file_data(inner)
        file_id, name = (take_optional_text(inner, key) for key in ("file_id", "filename"))
    return File(
        name=name,
        mime=held.mime,
        data=held.data,
        file_id=file_id,
        extra=with_metadata(_get_other_fields(block, "file"), inner=inner),
    )


def _write_native_file(file: File) -> dict[str, Any]:
    if "_sound" in file.extra:
        return write_audio(file)
    given = {"filename": file.name, "file_data": build_file_data(file), "file_id": file.file_id}
    inner = {key: value for key, value in given.items() if value}
    return add_provider_fields({"type": "file", "file": inner | _get_inner_fields(file)}, file.extra)


def _write_converted_file(file: File, api: str) -> dict[str, Any] | None:
    if file.file_id and api in OPENAI_APIS:
        return {"type": "file", "file": {"file_id": file.file_id}}
    if not file.data:
        return None
    sound = get_audio_format(file.mime)
    if sound:
        inner = {"data": file.data, "format": sound}
        return {"type": "input_audio", "input_audio": inner} if sound in _AUDIO_INPUT_FORMATS else None
    return {
        "type": "file",
        "file": {"filename": choose_file_name(file), "file_data": build_data_url(file.mime, file.data)},
    }


def _get_other_fields(block: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name not in ("type", key)}


def _get_inner_fields(part: Image | File) -> dict[str, Any]:
    inner: Any = part.extra.get("_inner", {})
    return dict(inner)


TOOL_CALLS_FIELD = "tool_calls"
"""Field of tool calls. A call of an unknown type is an Opaque part with the block `{"tool_calls": call}`."""


def read_tool_calls(block: dict[str, Any]) -> list[Part]:
    """Remove and parse the tool calls of an assistant message.

    An empty list or null is kept.
    """
    calls: list[Part] = []
    given = block.get(TOOL_CALLS_FIELD)
    if given:
        if not isinstance(given, list):
            raise MessageError(f"expected a list, not {describe_json_value(given)}", path=TOOL_CALLS_FIELD)
        for index, item in enumerate(given):
            with ErrorPath(f"{TOOL_CALLS_FIELD}[{index}]"):
                calls.append(_read_tool_call(require_object(item)))
        del block[TOOL_CALLS_FIELD]
    if block.get("function_call") is not None:
        with ErrorPath("function_call"):
            calls.append(_read_legacy_call(require_object(block["function_call"])))
        del block["function_call"]
    return calls


def write_tool_calls(parts: Sequence[Part], api: str) -> dict[str, Any]:
    """Return the message fields that hold the tool calls."""
    is_native = api == "openai"
    calls: list[object] = []
    body: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Opaque) and part.api == "openai" and TOOL_CALLS_FIELD in part.block:
            calls.append(part.block[TOOL_CALLS_FIELD])
        elif isinstance(part, ToolCall) and is_native and LEGACY_CALL_KEY in part.extra:
            body["function_call"] = add_provider_fields(
                {"name": part.name, "arguments": serialize_arguments(part)}, part.extra
            )
        elif isinstance(part, ToolCall):
            calls.append(_write_tool_call(part, api))
    return body | ({TOOL_CALLS_FIELD: calls} if calls else {})


def take_arguments(block: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Remove `arguments` and return them parsed and as raw text.

    The raw text is None if they are missing or an object, as some servers write them.
    """
    given = block.pop("arguments", None)
    if isinstance(given, str):
        return parse_arguments(given), given
    if given is None or isinstance(given, dict):
        return given or {}, None
    raise MessageError(f"expected JSON in a text, not {describe_json_value(given)}", path="arguments")


def _read_tool_call(block: dict[str, Any]) -> Part:
    kind = block.get("type", "function")
    if kind not in ("function", "custom"):
        if not isinstance(kind, str):
            raise MessageError(f"expected text, not {describe_json_value(kind)}", path="type")
        return Opaque("openai", {TOOL_CALLS_FIELD: block})
    call_id = take_text(block, "id")
    inner = get_object(block, kind)
    with ErrorPath(kind):
        name = take_text(inner, "name")
        if kind == "custom":
            arguments: dict[str, Any] = {FREE_TEXT_ARGUMENT: take_text(inner, "input")}
            raw = None
        else:
            arguments, raw = take_arguments(inner)
    rest = {key: value for key, value in block.items() if key not in ("type", kind)}
    extra = with_metadata(rest, custom=kind == "custom", untyped="type" not in block, inner=inner)
    return ToolCall(call_id, name, arguments, raw, extra)


def _read_legacy_call(block: dict[str, Any]) -> ToolCall:
    name = take_text(block, "name")
    arguments, raw = take_arguments(block)
    return ToolCall(build_legacy_call_id(name), name, arguments, raw, with_metadata(block, former=True))


def _write_tool_call(call: ToolCall, api: str) -> dict[str, Any]:
    is_native = api == "openai"
    inner: Any = call.extra.get("_inner", {}) if is_native else {}
    kind = "custom" if api in OPENAI_APIS and "_custom" in call.extra else "function"
    if kind == "custom":
        function = {"name": call.name, "input": call.arguments.get(FREE_TEXT_ARGUMENT, "")}
    else:
        function = {"name": call.name, "arguments": serialize_arguments(call)}
    head = {"id": call.id} | ({} if is_native and "_untyped" in call.extra else {"type": kind})
    body: dict[str, Any] = head | {kind: function | inner}
    return add_provider_fields(body, call.extra) if is_native else body


_REASONING_FIELDS = ("reasoning_content", "reasoning")
"""DeepSeek, Qwen and vLLM use the first; OpenRouter, Groq and newer vLLM the second; some both, with the same text."""

_REASONING_DETAILS_FIELD = "reasoning_details"
"""OpenRouter's field: a list of reasoning texts, summaries and encrypted reasoning."""


def read_reasoning(block: dict[str, Any]) -> list[Reasoning]:
    """Remove and parse the reasoning of an assistant message."""
    texts = {key: block.pop(key) for key in _REASONING_FIELDS if isinstance(block.get(key), str) and block[key]}
    details = block.get(_REASONING_DETAILS_FIELD)
    if details and isinstance(details, list) and all(isinstance(detail, dict) for detail in details):
        del block[_REASONING_DETAILS_FIELD]
        first, *others = details
        # The text fields repeat the details: kept as metadata of the first one, so that they are not counted twice.
        return [_read_reasoning_detail(first, texts), *(_read_reasoning_detail(detail, {}) for detail in others)]
    if not texts:
        return []
    field, text = texts.popitem() if len(texts) == 1 else (_REASONING_FIELDS[0], texts.pop(_REASONING_FIELDS[0]))
    return [Reasoning(text=text, api="openai", extra=with_metadata({}, field=field, also=texts))]


def write_reasoning(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the message fields that hold the reasoning."""
    reasoning: dict[str, list[Any]] = {}
    also: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Reasoning) and part.api == "openai":
            field: Any = part.extra.get("_field", _REASONING_FIELDS[0])
            reasoning.setdefault(field, []).append(
                _write_reasoning_detail(part) if field == _REASONING_DETAILS_FIELD else part.text
            )
            also |= cast("dict[str, Any]", part.extra.get("_also", {}))
    return {
        field: pieces if field == _REASONING_DETAILS_FIELD else "\n".join(pieces) for field, pieces in reasoning.items()
    } | also


def _read_reasoning_detail(detail: dict[str, Any], also: dict[str, str]) -> Reasoning:
    where = next((key for key in ("text", "summary") if isinstance(detail.get(key), str) and detail[key]), "")
    text = detail.pop(where) if where else ""
    signature, encrypted = (
        take_optional_text(detail, key) if isinstance(detail.get(key), str) else "" for key in ("signature", "data")
    )
    extra = with_metadata(detail, field=_REASONING_DETAILS_FIELD, text=where, also=also)
    return Reasoning(text=text, signature=signature, encrypted=encrypted, api="openai", extra=extra)


def _write_reasoning_detail(part: Reasoning) -> dict[str, Any]:
    where: Any = part.extra.get("_text", "text")
    body = {where: part.text, "signature": part.signature, "data": part.encrypted}
    return add_provider_fields({key: value for key, value in body.items() if value}, part.extra)


CACHE_MARKER_FIELD = "prompt_cache_breakpoint"
MARKABLE_TYPES = frozenset({"text", "image_url", "input_audio", "file", "input_text", "input_image", "input_file"})
"""Part types of Chat Completions and Responses that allow a cache breakpoint. Parts of a reply do not."""


def add_cache_marker(content: Any, kind: str) -> Any:  # noqa: ANN401 - a text or a list of parts of a request body
    """Return the content with a cache breakpoint on the last part that allows one.

    A part that already has a breakpoint is not changed.

    Args:
        content: Text, or a list of parts, which is modified.
        kind: The part type that a plain text gets, since only a part can have a breakpoint.
    """
    parts = [{"type": kind, "text": content}] if isinstance(content, str) and content else content
    if not isinstance(parts, list):
        return content
    last = next((part for part in reversed(parts) if part.get("type") in MARKABLE_TYPES), None)
    if last is None:
        return content
    if last.get(CACHE_MARKER_FIELD) is None:
        last[CACHE_MARKER_FIELD] = {"mode": "explicit"}
    return parts


_SPEAKER_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user"}
_KNOWN_ROLES = (*_SPEAKER_ROLES, "assistant", "tool", "function")
AUDIO_FIELD = "audio"


def read_message(item: object) -> Message:
    """Parse one message."""
    block = to_json_dict(item)
    if "role" not in block:
        raise MessageError("there is no 'role'", path="role", hint=_explain_missing_role(block))
    role = get_text(block, "role")
    if role not in _KNOWN_ROLES:
        hint = did_you_mean(role, _KNOWN_ROLES) or f"Chat Completions has the roles {', '.join(_KNOWN_ROLES)}"
        raise MessageError(f"unknown role {role!a}", path="role", hint=hint)
    del block["role"]
    if role == "assistant":
        return _read_assistant_message(block)
    if "content" not in block:
        raise MessageError("there is no 'content'", path="content", hint="it must be text or a list of parts")
    return _read_input_message(block, role) if role in _SPEAKER_ROLES else _read_tool_message(block, role)


def _explain_missing_role(block: dict[str, Any]) -> str:
    """Return a hint that guesses from the fields what was passed instead of a message."""
    if "choices" in block:
        return "this is a whole reply; append its message: reply.choices[0].message"
    others = {"type": "an item of OpenAI Responses", "parts": "a Gemini content"}
    other = next((name for field, name in others.items() if field in block), None)
    if other:
        return f"this looks like {other}; convert it to the API of the other messages before you join them"
    return f"it must be one of {', '.join(_KNOWN_ROLES)}"


def _read_input_message(block: dict[str, Any], role: str) -> Message:
    parts, spelling = read_content(block)
    name = take_optional_text(block, "name")
    speaker = _SPEAKER_ROLES[role]
    extra = with_metadata(block, content=spelling, role="" if role == speaker else role)
    return Message(speaker, tuple(parts), name=name, api="openai", extra=extra)


def _read_tool_message(block: dict[str, Any], role: str) -> Message:
    is_legacy = role == "function"
    name = take_text(block, "name") if is_legacy else take_optional_text(block, "name")
    call_id = build_legacy_call_id(name) if is_legacy else take_text(block, "tool_call_id")
    parts, spelling = read_content(block)
    result = ToolResult(call_id, tuple(parts), name, extra=with_metadata(block, content=spelling, former=is_legacy))
    return Message("tool", (result,), api="openai")


def _read_assistant_message(block: dict[str, Any]) -> Message:
    reasoning = read_reasoning(block)
    content, spelling = read_content(block)
    parts: list[Part] = [*reasoning, *content]
    if refusal := take_optional_text(block, "refusal"):
        parts.append(Text(refusal, {"_refusal": "field"}))
    parts += _read_audio_reply(block)
    parts += read_tool_calls(block)
    name = take_optional_text(block, "name")
    return Message("assistant", tuple(parts), name=name, api="openai", extra=with_metadata(block, content=spelling))


def _read_audio_reply(block: dict[str, Any]) -> list[Part]:
    """Remove and parse a spoken reply. Without a transcript it becomes Opaque."""
    audio = block.get(AUDIO_FIELD)
    if not isinstance(audio, dict) or not audio:
        return []
    del block[AUDIO_FIELD]
    transcript = audio.get("transcript")
    if isinstance(transcript, str) and transcript:
        return [Text(transcript, {"_voice": {key: value for key, value in audio.items() if key != "transcript"}})]
    return [Opaque("openai", {AUDIO_FIELD: audio})]


Body = dict[str, Any]
_SPEAKER_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SHOWN_BELOW_TEXT = "[{} in the next message from the user]"


def write_messages(messages: Iterable[Message], marks: CacheMarkers | None = None) -> list[Body]:
    """Return the `messages` of a request, with breakpoints at the indices of `marks`."""
    given = list(messages)
    merged = merge_assistant_messages(given, "openai")
    marked = {id(given[index]) for index in marks or () if index >= 0}  # merged messages are replies, never marked
    bodies: list[Body] = []
    waiting: list[Body] = []  # images in tool results: only a user message may hold them, after the last result
    for message, before in zip(assign_call_ids(merged, "openai"), merged, strict=True):
        written = _write_message(message)
        if id(before) in marked and written and message.role != "assistant":
            last = written[-1][0]
            last["content"] = add_cache_marker(last.get("content"), "text")
        for body, shown in written:
            if waiting and body["role"] != "tool":
                bodies.append({"role": "user", "content": waiting})
                waiting = []
            bodies.append(body)
            waiting += shown
    return [*bodies, {"role": "user", "content": waiting}] if waiting else bodies


def _write_message(message: Message) -> list[tuple[Body, list[Body]]]:
    results = [_write_tool_message(part, message) for part in message.parts if isinstance(part, ToolResult)]
    body = _write_assistant_message(message) if message.role == "assistant" else _write_input_message(message)
    if body is None:
        return results
    # Nothing may come between a tool call and its results.
    return [(body, []), *results] if message.role == "assistant" else [*results, (body, [])]


def _write_input_message(message: Message) -> Body | None:
    is_native = message.api == "openai"
    if is_native and message.role == "tool":
        return None
    parts = [part for part in message.parts if _is_content_part(part)]
    role = "user" if message.role == "tool" else get_spelled_role(message)
    content = write_content(parts, message.api, spelling=message.extra.get("_content"), media=role == "user")
    if not is_native and not content:
        return None
    body: Body = {"role": role}
    if parts or "content" not in message.extra:
        body["content"] = content
    return _finish_message(body, message)


def _write_assistant_message(message: Message) -> Body | None:
    is_native = message.api == "openai"
    parts = [part for part in message.parts if _is_content_part(part) and not (is_native and _is_side_field(part))]
    fields = write_reasoning(message.parts) | write_tool_calls(message.parts, message.api)
    if is_native:
        fields |= _write_side_fields(message.parts)
    content = write_content(parts, message.api, spelling=message.extra.get("_content"), media=False)
    if not (is_native or content or fields):
        return None
    body: Body = {"role": "assistant"}
    if not is_native:
        body["content"] = content or None  # null as in the API's own replies; it rejects an empty list
    elif parts or "_content" in message.extra:
        body["content"] = content
    return _finish_message(body | fields, message)


def _write_tool_message(result: ToolResult, message: Message) -> tuple[Body, list[Body]]:
    if message.api == "openai":
        return _write_native_tool_message(result), []
    parts: list[ResultPart] = []
    shown: list[Body] = []
    for part in result.parts:
        block = write_part(part, message.api, media=True)
        if block is not None and isinstance(part, Image | File) and block["type"] != "text":
            shown.append(block)
            parts.append(Text(_SHOWN_BELOW_TEXT.format("image" if isinstance(part, Image) else "file")))
        else:
            parts.append(part)
    content = write_content(parts, message.api, spelling="", media=False)
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}, shown


def _write_native_tool_message(result: ToolResult) -> Body:
    is_legacy = "_former" in result.extra
    body: Body = {"role": "function"} if is_legacy else {"role": "tool", "tool_call_id": result.call_id}
    if is_legacy or result.name:
        body["name"] = result.name
    if result.parts or "content" not in result.extra:
        spelling = result.extra.get("_content")
        body["content"] = write_content(result.parts, "openai", spelling=spelling, media=True)
    return add_provider_fields(body, result.extra)


def _write_side_fields(parts: Sequence[Part]) -> Body:
    """Return the fields beside `content`: refusal and audio."""
    body: Body = {}
    refusals = [part.text for part in parts if isinstance(part, Text) and part.extra.get("_refusal") == "field"]
    if refusals:
        body["refusal"] = "\n".join(refusals)
    for part in parts:
        if isinstance(part, Text) and "_voice" in part.extra:
            body[AUDIO_FIELD] = part.extra["_voice"] | {"transcript": part.text}  # type: ignore[operator]
        elif isinstance(part, Opaque) and part.api == "openai" and AUDIO_FIELD in part.block:
            body[AUDIO_FIELD] = part.block[AUDIO_FIELD]
    return body


def _is_content_part(part: Part) -> TypeGuard[ResultPart]:
    # A block without a type was read from a field beside `content`.
    return isinstance(part, Text | Image | File) or (isinstance(part, Opaque) and "type" in part.block)


def _is_side_field(part: ResultPart) -> bool:
    return isinstance(part, Text) and ("_voice" in part.extra or part.extra.get("_refusal") == "field")


def get_spelled_role(message: Message) -> str:
    """Return the message's role, or `developer` if it was read with that role."""
    developer = message.role == "system" and message.api in OPENAI_APIS and message.extra.get("_role") == "developer"
    return "developer" if developer else message.role


def _finish_message(body: Body, message: Message) -> Body:
    if message.name and (message.api == "openai" or _SPEAKER_NAME.fullmatch(message.name)):
        body["name"] = message.name
    return add_provider_fields(body, message.extra) if message.api == "openai" else body


_MESSAGE_FIELDS = 2
"""Number of fields of a plain message: role and content. Counting fields is faster than comparing their names, and
as strict where every value is checked, because the value of a missing field is None."""
_RESULT_FIELDS = 3
"""A message with a tool result has the id of the call, too."""
_REPLY_KEYS = frozenset({"role", "content", "tool_calls"})
_UNUSED_KEYS = frozenset({"refusal", "annotations", "audio", "function_call"})
"""Fields of a reply that an SDK sets to null."""
_CALL_FIELDS = 3
"""id, type and function."""
_FUNCTION_FIELDS = 2
"""name and arguments."""


def outline_message(item: object) -> Outline | None:
    """Return the outline of a chat message, or None if it is not plain."""
    if type(item) is not dict:
        return None
    role = item.get("role")
    if role == "user":
        found = Outline("user")
        return found if len(item) == _MESSAGE_FIELDS and found.add_texts(item.get("content"), "text") else None
    if role == "assistant":
        found = Outline("assistant")
        return found if _outline_reply(found, item) else None
    found = Outline("tool")
    is_result = role == "tool" and len(item) == _RESULT_FIELDS + ("name" in item)
    is_plain = is_result and found.add_result(item.get("tool_call_id"), item.get("name", ""))
    return found if is_plain and found.add_texts(item.get("content"), "text") else None


def _outline_reply(found: Outline, item: dict[str, Any]) -> bool:
    if not item.keys() <= _REPLY_KEYS and any(
        name not in _REPLY_KEYS and (value is not None or name not in _UNUSED_KEYS) for name, value in item.items()
    ):
        return False
    content, calls = item.get("content"), item.get("tool_calls")
    if calls is None and ("tool_calls" in item or content is None):
        return False
    if content and not found.add_texts(content, "text"):
        return False
    if calls is None:
        return bool(content)
    # An empty text is common beside tool calls.
    return (content is None or type(content) in (str, list)) and content != [] and _outline_calls(found, calls)


def _outline_calls(found: Outline, calls: object) -> bool:
    if type(calls) is not list or not calls:
        return False
    for call in calls:
        if type(call) is not dict or len(call) != _CALL_FIELDS or call.get("type") != "function":
            return False
        function = call.get("function")
        if type(function) is not dict or len(function) != _FUNCTION_FIELDS:
            return False
        if not found.add_call(call.get("id"), function.get("name"), function.get("arguments"), str):
            return False
    return True


def read_request(body: object) -> Conversation:
    """Parse a request: the arguments of the SDK's call, or the request body."""
    given = read_request_arguments(body)
    if "messages" not in given:
        raise MessageError("there is no 'messages'", path="messages", hint="it must be a list of messages")
    messages = read_each(require_list(given.pop("messages"), "messages"), read_message, "messages")
    tools: tuple[Tool, ...] = ()
    # An empty list or null stays in `extra`, so that it differs from a missing field when written back.
    if given.get("tools"):
        tools = read_tools(require_list(given.pop("tools"), "tools"), "openai")
    if given.get("functions"):
        tools += read_legacy_functions(require_list(given.pop("functions"), "functions"))
    return Conversation(messages=messages, tools=tools, api="openai", extra=with_metadata(given))


def write_request(conversation: Conversation, marks: CacheMarkers | None = None) -> dict[str, Any]:
    """Return the arguments of the SDK's call."""
    body: dict[str, Any] = {"messages": write_messages(conversation.messages, marks)}
    if tools := write_tools([tool for tool in conversation.tools if not is_legacy_function(tool)], "openai"):
        body["tools"] = tools
    if functions := write_legacy_functions(conversation.tools):
        body["functions"] = functions
    return select_request_arguments(conversation, "openai") | body


_STREAMED_TEXT_FIELDS = ("content", "refusal", "reasoning_content", "reasoning")
_STREAMED_CALL_FIELDS = ("arguments", "input")
_STREAMED_AUDIO_FIELDS = ("data", "transcript")
_STREAMED_REASONING_FIELDS = ("text", "summary")


def merge_chunks(chunks: Sequence[object]) -> dict[str, Any]:
    """Merge the chunks of a stream into one completion with the first choice."""
    merger = _ChunkMerger()
    for index, item in enumerate(chunks):
        with ErrorPath(f"[{index}]"):
            chunk = to_json_dict(item)
            # The SDK's stream helper wraps each chunk in an event, and repeats its content in further events.
            if isinstance(chunk.get("type"), str) and "choices" not in chunk:
                if chunk["type"] != "chunk":
                    continue
                chunk = require_object(chunk.get("chunk"))
            merger.add(chunk)
    return merger.build_completion()


class _StreamedFields:
    """Fields of a streamed object. Pieces are joined once, at the end."""

    def __init__(self, *piecewise: str) -> None:
        self._piecewise = piecewise
        self._pieces: dict[str, list[str]] = {}
        self._complete: dict[str, Any] = {}

    def add(self, block: dict[str, Any]) -> None:
        for key, value in block.items():
            if value is None:
                self._complete.setdefault(key, None)
            elif key in self._piecewise and isinstance(value, str):
                self._pieces.setdefault(key, []).append(value)
            elif value != "" or key not in self._complete:
                self._complete[key] = value

    def join(self) -> dict[str, Any]:
        return self._complete | {key: "".join(pieces) for key, pieces in self._pieces.items()}


class _StreamedChatCall:
    """A tool call that is being streamed."""

    def __init__(self) -> None:
        self.id = ""
        self._outer = _StreamedFields()
        self._inner = {
            "function": _StreamedFields(*_STREAMED_CALL_FIELDS),
            "custom": _StreamedFields(*_STREAMED_CALL_FIELDS),
        }

    def add(self, delta: dict[str, Any]) -> None:
        self.id = self.id or delta.get("id") or ""
        for kind, pieces in self._inner.items():
            if isinstance(delta.get(kind), dict):
                pieces.add(delta[kind])
        self._outer.add({key: value for key, value in delta.items() if key not in ("index", *self._inner)})

    def join(self) -> dict[str, Any]:
        inner = {kind: joined for kind, pieces in self._inner.items() if (joined := pieces.join())}
        return self._outer.join() | inner


class _ChunkMerger:
    def __init__(self) -> None:
        self._body: dict[str, Any] = {}
        self._message = _StreamedFields(*_STREAMED_TEXT_FIELDS)
        self._audio = _StreamedFields(*_STREAMED_AUDIO_FIELDS)
        self._legacy_call = _StreamedFields(*_STREAMED_CALL_FIELDS)
        self._calls: list[_StreamedChatCall] = []
        self._by_index: dict[object, _StreamedChatCall] = {}
        self._thoughts: list[tuple[object, _StreamedFields]] = []
        self._annotations: list[object] = []
        self._choice: dict[str, Any] | None = None

    def add(self, chunk: dict[str, Any]) -> None:
        for key in ("id", "model", "usage", "error"):
            if chunk.get(key):
                self._body[key] = chunk[key]
        choices = chunk.get("choices")
        for index, item in enumerate(choices if isinstance(choices, list) else ()):
            with ErrorPath(f"choices[{index}]"):
                choice = require_object(item)
                if choice.get("index", 0) == 0:
                    self._add_choice(choice)

    def build_completion(self) -> dict[str, Any]:
        if self._choice is None:
            return self._body | {"choices": []}
        message = self._message.join()
        found: dict[str, Any] = {
            "tool_calls": [call.join() for call in self._calls],
            "reasoning_details": [pieces.join() for _, pieces in self._thoughts],
            "annotations": self._annotations,
            "audio": self._audio.join(),
            "function_call": self._legacy_call.join(),
        }
        message |= {key: value for key, value in found.items() if value}
        return self._body | {"choices": [self._choice | {"message": message}]}

    def _add_choice(self, choice: dict[str, Any]) -> None:
        self._choice = self._choice or {}
        if choice.get("finish_reason"):
            self._choice["finish_reason"] = choice["finish_reason"]
        if isinstance(choice.get("usage"), dict):
            self._body.setdefault("usage", choice["usage"])
        if choice.get("delta") is None:
            return
        with ErrorPath("delta"):
            delta = require_object(choice["delta"])
            self._add_lists(delta)
            for key, pieces in (("audio", self._audio), ("function_call", self._legacy_call)):
                if isinstance(delta.get(key), dict):
                    pieces.add(delta.pop(key))
            self._message.add(delta)

    def _add_lists(self, delta: dict[str, Any]) -> None:
        for key, add in (
            ("tool_calls", self._add_call),
            ("reasoning_details", self._add_thought),
            ("annotations", self._annotations.append),
        ):
            if delta.get(key) is None:
                continue
            items = delta.pop(key)
            if not isinstance(items, list):
                raise MessageError(f"expected a list, not {describe_json_value(items)}", path=key)
            for index, item in enumerate(items):
                with ErrorPath(f"{key}[{index}]"):
                    add(require_object(item))

    def _add_call(self, delta: dict[str, Any]) -> None:
        if delta.get("id") is not None:
            get_text(delta, "id")
        call = (
            self._by_index.get(_build_key(delta, "index")) if "index" in delta else next(iter(self._calls[-1:]), None)
        )
        # Some servers give every call the index 0 or none; a new id means a new call.
        if call is None or (call.id and delta.get("id") and delta["id"] != call.id):
            call = _StreamedChatCall()
            self._calls.append(call)
        self._by_index[_build_key(delta, "index")] = call
        call.add(delta)

    def _add_thought(self, detail: dict[str, Any]) -> None:
        key = (_build_key(detail, "type"), _build_key(detail, "index"))
        if not self._thoughts or self._thoughts[-1][0] != key:
            self._thoughts.append((key, _StreamedFields(*_STREAMED_REASONING_FIELDS)))
        self._thoughts[-1][1].add(detail)


def _build_key(block: dict[str, Any], name: str) -> str:
    return repr(block.get(name))


_STOP_REASONS: dict[str, Stop] = {
    "stop": "end",
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "refusal",
    "error": "error",
}


def read_reply(reply: object) -> Reply:
    """Parse a completion, or the list of its stream chunks.

    Only the first choice is read.
    """
    is_streamed = isinstance(reply, list | tuple)
    body = merge_chunks(reply) if isinstance(reply, list | tuple) else to_json_dict(reply)
    choice = _get_first_choice(body)
    with ErrorPath("choices[0]"):
        given = get_object(choice, "message")
        with ErrorPath("message"):
            message = read_message(_make_sendable(given))
        reason = get_optional_text(choice, "finish_reason")
    return Reply(
        messages=(message,),
        stop="broken" if is_streamed and not reason else _classify_stop(reason, message),
        stop_reason=reason,
        usage=_read_usage(body),
        id=get_optional_text(body, "id"),
        model=get_optional_text(body, "model"),
        api="openai",
    )


def _get_first_choice(body: dict[str, Any]) -> dict[str, Any]:
    error = body.get("error")
    if error and not body.get("choices"):
        message = error.get("message") if isinstance(error, dict) else error
        raise MessageError(f"the server answered with an error: {format_for_error(message)}", path="error")
    choices = get_list(body, "choices")
    if not choices:
        raise MessageError("the response contains no reply", path="choices")
    with ErrorPath("choices[0]"):
        return require_object(choices[0])


def _make_sendable(message: dict[str, Any]) -> dict[str, Any]:
    """Return a reply's message as valid input.

    SDKs and servers add fields that the API rejects.
    """
    body = {"role": "assistant"} | message
    calls = body.get("tool_calls")
    if not calls:
        body.pop("tool_calls", None)
    elif isinstance(calls, list):
        body["tool_calls"] = [omit_keys(call, "index") if isinstance(call, dict) else call for call in calls]
    return body


def _classify_stop(reason: str, message: Message) -> Stop:
    if reason in ("stop", "eos", "end_turn"):
        # Some servers use these reasons for every reply.
        if message.tool_calls:
            return "tools"
        if any("_refusal" in getattr(part, "extra", ()) for part in message.parts):
            return "refusal"
        return "end"
    return _STOP_REASONS.get(reason, "")


def _read_usage(body: dict[str, Any]) -> Usage | None:
    if body.get("usage") is None:
        return None
    with ErrorPath("usage"):
        usage = get_object(body, "usage")
        read, written = (_get_usage_details(usage, f"{side}_tokens_details") for side in ("prompt", "completion"))
        return Usage(
            input_tokens=get_count(usage, "prompt_tokens"),
            output_tokens=get_count(usage, "completion_tokens"),
            # DeepSeek calls it prompt_cache_hit_tokens.
            cached_input_tokens=get_count(read, "cached_tokens") or get_count(usage, "prompt_cache_hit_tokens"),
            cache_write_tokens=get_count(read, "cache_write_tokens"),
            reasoning_tokens=get_count(written, "reasoning_tokens"),
        )


def _get_usage_details(usage: dict[str, Any], key: str) -> dict[str, Any]:
    return {} if usage.get(key) is None else get_object(usage, key)


_CHAT_FIELDS = frozenset({"tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content", "audio"})
_CHAT_PART_TYPES = ("image_url", "file", "refusal")  # a tuple: the value looked up may be unhashable


def is_chat_message(item: Mapping[str, Any]) -> bool:
    """Return True if the message has a role, field or part of Chat Completions only."""
    if not isinstance(item.get("role"), str) or "type" in item or "parts" in item:
        return False
    if not _CHAT_FIELDS.isdisjoint(item) or item["role"] in ("tool", "function"):
        return True
    content = item.get("content")
    return isinstance(content, list) and any(_is_chat_part(part) for part in content)


def _is_chat_part(part: object) -> bool:
    # Anthropic's images and documents have a `source`; a part of Chat Completions has a field named after its type.
    return isinstance(part, dict) and part.get("type") in _CHAT_PART_TYPES and part["type"] in part


DIALECT: Dialect = ApiDialect(
    rules=OPENAI_RULES,
    recognises=is_chat_message,
    read=read_message,
    write=write_messages,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    read_tools=partial(read_tools, api="openai"),
    write_tools=partial(write_tools, api="openai"),
    outline=outline_message,
)
