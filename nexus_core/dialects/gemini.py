"""Dialect of Gemini's generateContent API: contents, requests and replies.

Every field has two spellings, `inlineData` in REST and `inline_data` in the Python SDK. Gemini accepts both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial, reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.calls import get_call_arguments, serialize_compact_json
from nexus_core.dialects.fields import (
    ErrorPath,
    add_provider_fields,
    describe_json_value,
    get_count,
    get_object,
    get_optional_text,
    get_provider_fields,
    get_text,
    omit_keys,
    require_object,
    to_camel_case,
    to_json_types,
    with_metadata,
)
from nexus_core.dialects.gemini_stream import CONTENT_PATH, merge_responses
from nexus_core.dialects.media import build_media_placeholder, parse_data_url
from nexus_core.dialects.registry import ApiDialect, Outline
from nexus_core.dialects.requests import read_each, read_request_arguments, require_list
from nexus_core.dialects.rules import GEMINI_RULES
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
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.types.api import CacheMarkers, Dialect
    from nexus_core.types.messages import Part, ResultPart, Role, Stop, Tool


class CamelCaseFields:
    """Fields of an object by their camelCase names, removed one by one.

    Null counts as missing.

    Attributes:
        rest: The fields that were not removed, with their original names.
        original_names: Original names of removed fields that are not camelCase, including those of inner objects.
    """

    def __init__(self, block: dict[str, Any], within: CamelCaseFields | None = None, path: str = "") -> None:
        self.rest = dict(block)
        self.original_names: list[str] = within.original_names if within else []
        self._path = path
        self._keys: dict[str, str] = {}
        for key in block:
            name = to_camel_case(key)
            if name in self._keys:
                raise MessageError(f"duplicate field: {self._keys[name]!a} and {key!a} mean the same", path=path)
            self._keys[name] = key

    def __contains__(self, name: str) -> bool:
        return self.rest.get(self._keys.get(name, name)) is not None

    def take(self, name: str) -> Any:  # noqa: ANN401 - JSON has many types
        """Remove and return a field, which must be present."""
        key = self._keys[name]
        if key != name:
            self.original_names.append(key)
        return self.rest.pop(key)

    def take_object(self, name: str) -> CamelCaseFields:
        """Remove an inner object, which must be present, and return its fields."""
        path = self.path(name)
        with ErrorPath(path):
            return CamelCaseFields(require_object(self.take(name)), self, path)

    def take_text(self, name: str) -> str:
        """Remove and return a text field, which must be present."""
        with ErrorPath(self._path):
            get_text(self.rest, self._keys.get(name, name))
        text: str = self.take(name)
        return text

    def take_optional_text(self, name: str) -> str:
        """Remove and return a text field.

        An empty or missing one is left as it is, and "" returned.
        """
        return self.take_text(name) if name in self and self.rest[self._keys[name]] != "" else ""

    def path(self, name: str) -> str:
        """Return the path of a field, for errors."""
        return ".".join(filter(None, (self._path, self._keys.get(name, name))))


def restore_spelling(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part as Gemini wrote it.

    Restores original field names and fields that were not parsed.
    """
    original_names = {to_camel_case(key): key for key in extra.get("_snake", ())}
    rest = extra.get("_inner", {})
    part = {
        original_names.get(name, name): rest | {original_names.get(key, key): inner for key, inner in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in body.items()
    }
    return add_provider_fields(part, extra)


Block = dict[str, Any]

_URLSAFE_TO_STANDARD = str.maketrans("-_", "+/")
_STANDARD_TO_URLSAFE = str.maketrans("+/", "-_")
_BASE64_GROUP = 4
_UPLOADED_FILES_URL = "https://generativelanguage.googleapis.com/"
"""Prefix of files that were uploaded to Gemini. No other provider can fetch them."""
_MIME_BY_EXTENSION = {
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webp": "image/webp",
}


def read_inline_data(fields: CamelCaseFields) -> Image | File | None:
    """Parse an `inlineData` part, or return None if it has no data."""
    inner = fields.take_object("inlineData")
    mime, data = inner.take_optional_text("mimeType"), inner.take_optional_text("data")
    is_urlsafe = ("-" in data or "_" in data) and not ("+" in data or "/" in data)
    missing = -len(data) % _BASE64_GROUP
    if is_urlsafe:
        data = data.translate(_URLSAFE_TO_STANDARD)
    metadata = {"urlsafe": is_urlsafe, "unpadded": bool(missing)}
    return _build_media(fields, inner, mime, metadata, data=data + "=" * missing) if data else None


def read_file_data(fields: CamelCaseFields) -> Image | File | None:
    """Parse a `fileData` part, or return None if it has no URI."""
    inner = fields.take_object("fileData")
    mime, uri = inner.take_optional_text("mimeType"), inner.take_optional_text("fileUri")
    is_public = uri.startswith(("https://", "http://")) and not uri.startswith(_UPLOADED_FILES_URL)
    return _build_media(fields, inner, mime, {}, **{"url" if is_public else "file_id": uri}) if uri else None


def write_media(part: Image | File, api: str) -> Block | None:
    """Return a part with inline data or a URI, None for unsupported media."""
    if api == "gemini":
        return _write_native_media(part)
    mime, data = parse_data_url(part.url) or (part.mime, part.data)
    if data:
        return {"inlineData": {"mimeType": mime, "data": data}} if mime else None
    # A file id of another provider is not a URI and cannot be fetched.
    uri = part.url or part.file_id
    if "://" not in uri:
        return None
    mime = mime or _MIME_BY_EXTENSION.get(uri.partition("?")[0].rpartition(".")[2].lower(), "")
    return {"fileData": ({"mimeType": mime} if mime else {}) | {"fileUri": uri}}


def _build_media(
    fields: CamelCaseFields, inner: CamelCaseFields, mime: str, metadata: dict[str, bool], **location: str
) -> Image | File:
    name = "" if mime.startswith("image/") else inner.take_optional_text("displayName")
    extra = with_metadata(fields.rest, snake=fields.original_names, inner=inner.rest, **metadata)
    if mime.startswith("image/"):
        return Image(mime=mime, extra=extra, **location)
    return File(name=name, mime=mime, extra=extra, **location)


def _write_native_media(part: Image | File) -> Block:
    inner: Block = {"mimeType": part.mime} if part.mime else {}
    if part.data:
        data = part.data.rstrip("=") if "_unpadded" in part.extra else part.data
        inner["data"] = data.translate(_STANDARD_TO_URLSAFE) if "_urlsafe" in part.extra else data
    else:
        inner["fileUri"] = part.url or part.file_id
    if isinstance(part, File) and part.name:
        inner["displayName"] = part.name
    return restore_spelling({"inlineData" if part.data else "fileData": inner}, part.extra)


SINGLE_TEXT_KEYS = ("output", "error", "result")
"""Keys under which a single text is the whole result; any other response is JSON. Gemini documents the first two."""


def read_function_response(fields: CamelCaseFields) -> ToolResult:
    """Parse a tool result. A response that is not a single text becomes JSON text."""
    inner = fields.take_object("functionResponse")
    call_id, name = inner.take_optional_text("id"), inner.take_optional_text("name")
    content, spelling, failed = _read_response(inner)
    parts = [*content, *_read_result_media(inner)]
    extra = with_metadata(fields.rest, snake=fields.original_names, inner=inner.rest, response=spelling)
    return ToolResult(call_id, tuple(parts), name, failed, extra)


def write_function_response(result: ToolResult, api: str, name: str) -> Block:
    """Return the part of a tool result.

    Args:
        result: The tool result.
        api: The dialect that it was read from.
        name: The name of the function that was called.
    """
    is_native = api == "gemini"
    texts, media = _write_result_parts(result, api)
    rest: Any = result.extra.get("_inner", {}) if is_native else {}
    inner: Block = ({"id": result.call_id} if result.call_id else {}) | ({"name": name} if name else {})
    response = _write_response(result, texts, is_native=is_native)
    # An empty response that was missing or null is written back as missing or null.
    if response or not (is_native and ("response" in rest or result.extra.get("_response") == "missing")):
        inner["response"] = response
    if media:
        inner["parts"] = media
    body: Block = {"functionResponse": inner}
    return restore_spelling(body, result.extra) if is_native else body


def _write_result_parts(result: ToolResult, api: str) -> tuple[list[str], list[Block]]:
    """Return the texts of a tool result, with media placeholders, and its media parts.

    Blank texts of another API are left out.
    """
    texts: list[str] = []
    media: list[Block] = []
    for part in result.parts:
        block = write_media(part, api) if isinstance(part, Image | File) else None
        if block:
            media.append(block)
        elif isinstance(part, Image | File):
            texts.append(build_media_placeholder(part).text)
        elif isinstance(part, Text):
            texts += [part.text] if api == "gemini" or part.text.strip() else []
        elif part.api == "gemini":
            media.append(dict(part.block))
    return texts, media


def _read_response(inner: CamelCaseFields) -> tuple[list[ResultPart], str, bool]:
    """Return the parts of a response, its spelling, and True if it is an error."""
    if "response" not in inner:
        return [], "" if "response" in inner.rest else "missing", False
    path = inner.path("response")
    with ErrorPath(path):
        response = require_object(inner.take("response"))
    key = next(iter(response), "")
    if response == {"error": ""}:
        return [], "", True  # an error without text, as `_write_response` writes it
    if len(response) == 1 and key in SINGLE_TEXT_KEYS and isinstance(response[key], str):
        return [Text(response[key])], "result" if key == "result" else "", key == "error"
    if not response:
        return [], "", False
    try:
        return [Text(serialize_compact_json(response))], "json", bool(response.get("error"))
    except ValueError:  # an integer with too many digits for Python to print
        raise MessageError("it cannot be written as JSON", path=path) from None


def _write_response(result: ToolResult, texts: list[str], *, is_native: bool) -> Block:
    spelling = result.extra.get("_response") if is_native else ""
    text = "\n".join(texts)
    given = _parse_object(text) if spelling == "json" else None
    if given is not None:
        return given
    if not (texts or result.is_error):
        return {}
    return {"error" if result.is_error else "result" if spelling == "result" else "output": text}


def _parse_object(text: str) -> Block | None:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _read_result_media(inner: CamelCaseFields) -> list[ResultPart]:
    if not inner.rest.get("parts"):
        return []
    path = inner.path("parts")
    items = inner.take("parts")
    if not isinstance(items, list):
        raise MessageError(f"expected a list, not {describe_json_value(items)}", path=path)
    return list(read_each(items, lambda item: _read_result_part(require_object(item)), path))


def _read_result_part(block: Block) -> ResultPart:
    fields = CamelCaseFields(block)
    found = [read for name, read in (("inlineData", read_inline_data), ("fileData", read_file_data)) if name in fields]
    part = found[0](fields) if len(found) == 1 else None
    return part or Opaque("gemini", block)


THOUGHT_SIGNATURE = "thoughtSignature"


def is_part(block: Mapping[str, Any]) -> bool:
    """Return True if a dict has a field that only a Gemini part has."""
    return "type" not in block and any(block[key] is not None and to_camel_case(key) in _PART_READERS for key in block)


def read_part(block: Block) -> Part:
    """Parse one part. Parts of server-side tools and unknown parts become Opaque."""
    fields = CamelCaseFields(block)
    kinds = [kind for kind in _PART_READERS if kind in fields]
    if len(kinds) > 1:
        raise MessageError(
            f"a part has exactly one content field, not {' and '.join(kinds)}", hint="split it into two parts"
        )
    read = _PART_READERS[kinds[0]] if kinds else None
    return (read(fields) if read else None) or Opaque("gemini", block)


def write_part(part: Part, api: str, names: Mapping[str, str]) -> Block | None:
    """Convert a part. None for another API's opaque blocks, reasoning and blank texts.

    Args:
        part: The part.
        api: The dialect that it was read from.
        names: Names of the functions that were called, by call id.
    """
    is_native = api == "gemini"
    if isinstance(part, Opaque | Reasoning):
        return _write_signed_part(part) if part.api == "gemini" else None
    if isinstance(part, ToolResult):
        return write_function_response(
            part, api, part.name if is_native else part.name or names.get(part.call_id) or "unknown"
        )
    if isinstance(part, ToolCall):
        return _write_function_call(part, is_native=is_native)
    if isinstance(part, Image | File):
        return write_media(part, api) or {"text": build_media_placeholder(part).text}
    if is_native:
        return add_provider_fields({"text": part.text}, part.extra)
    return {"text": part.text} if part.text.strip() else None


def _read_text(fields: CamelCaseFields) -> Text | Reasoning:
    text = fields.take_text("text")
    if fields.rest.get("thought") is not True:
        return Text(text, with_metadata(fields.rest))
    fields.take("thought")
    signature = fields.take_optional_text(THOUGHT_SIGNATURE)
    extra = with_metadata(fields.rest, snake=fields.original_names)
    return Reasoning(text=text, signature=signature, api="gemini", extra=extra)


def _write_signed_part(part: Opaque | Reasoning) -> Block:
    """Return a part that Gemini must get back unchanged."""
    if isinstance(part, Opaque):
        return dict(part.block)
    signed = {THOUGHT_SIGNATURE: part.signature} if part.signature else {}
    return restore_spelling({"text": part.text, "thought": True} | signed, part.extra)


def _read_function_call(fields: CamelCaseFields) -> ToolCall:
    inner = fields.take_object("functionCall")
    call_id, name = inner.take_optional_text("id"), inner.take_text("name")
    missing = "args" not in inner.rest
    arguments: Block = {}
    if "args" in inner:
        with ErrorPath(inner.path("args")):
            arguments = require_object(inner.take("args"))
    extra = with_metadata(fields.rest, snake=fields.original_names, inner=inner.rest, missing=missing)
    return ToolCall(call_id, name, arguments, extra=extra)


def _write_function_call(call: ToolCall, *, is_native: bool) -> Block:
    rest: Any = call.extra.get("_inner", {}) if is_native else {}
    inner: Block = ({"id": call.id} if call.id else {}) | {"name": call.name}
    arguments = get_call_arguments(call)
    # Empty arguments that were missing or null are written back as missing or null.
    if arguments or not (is_native and ("_missing" in call.extra or "args" in rest)):
        inner["args"] = arguments
    body: Block = {"functionCall": inner}
    return restore_spelling(body, call.extra) if is_native else body


_PART_READERS: dict[str, Callable[[CamelCaseFields], Part | None] | None] = {
    "text": _read_text,
    "inlineData": read_inline_data,
    "fileData": read_file_data,
    "functionCall": _read_function_call,
    "functionResponse": read_function_response,
    "executableCode": None,
    "codeExecutionResult": None,
    "toolCall": None,
    "toolResponse": None,
}
"""Readers by the field that determines a part's type; None for types that become Opaque."""

_ROLES: dict[str, Role] = {"": "user", "user": "user", "model": "assistant", "function": "user", "tool": "user"}


def read_message(item: object) -> Message:
    """Parse one element of `contents`.

    As in the SDK, it may also be a text, a part or a list of parts.
    """
    return read_content(to_content(to_json_types(item)))


def read_content(block: Block) -> Message:
    """Parse a content given as a dict."""
    given = get_optional_text(block, "role")
    if given not in _ROLES:
        raise MessageError(f"unknown role {given!a}", path="role", hint=_suggest_role(given))
    parts = _read_parts(block)
    role = _ROLES[given]
    if role == "user" and parts and all(isinstance(part, ToolResult) for part in parts):
        role = "tool"
    missing = [key for key in ("role", "parts") if key not in block]
    # An empty or null field stays in `extra`, so that it differs from a missing one when written back.
    rest = omit_keys(block, "role" if given else "", "" if block.get("parts") is None else "parts")
    spelling = "" if given in ("user", "model") else given
    return Message(role, tuple(parts), api="gemini", extra=with_metadata(rest, role=spelling, missing=missing))


def read_system(given: object) -> Message:
    """Parse the system instruction: a text, a content, a part or a list of parts."""
    value = to_json_types(given)
    if isinstance(value, str):
        return Message("system", (Text(value),), api="gemini")
    block = to_content(value)
    parts = _read_parts(block)
    return Message("system", tuple(parts), api="gemini", extra=with_metadata(omit_keys(block, "parts"), content="list"))


def to_content(value: Any) -> Block:  # noqa: ANN401 - JSON has many types
    """Expand the SDK's shorthands to a content. A content is returned as it is."""
    if isinstance(value, str):
        return {"role": "user", "parts": [{"text": value}]}
    if isinstance(value, list):
        return {
            "role": "user",
            "parts": [{"text": each} if isinstance(each, str) else _to_part(each) for each in value],
        }
    block = require_object(value)
    if "content" in block and "parts" not in block:  # would be read as empty, and its content silently lost
        hint = "Gemini has `parts`; this looks like a message of another API: read it with that API's dialect"
        raise MessageError("there is 'content' instead of 'parts'", path="content", hint=hint)
    if "role" in block or "parts" in block:
        return block
    part = _to_part(block)
    if not is_part(part):
        raise MessageError("there is no 'parts'", path="parts", hint="it must be a list of parts")
    # The SDK infers the role in the same way: only a model calls functions.
    return {"role": "model" if "functionCall" in part or "function_call" in part else "user", "parts": [part]}


def _to_part(value: Any) -> Any:  # noqa: ANN401 - JSON has many types
    """Convert an uploaded file to a part with its URI.

    Other values are returned as they are.
    """
    if isinstance(value, dict) and isinstance(value.get("uri"), str) and not is_part(value):
        mime = value.get("mimeType") or value.get("mime_type")
        return {"fileData": {"fileUri": value["uri"]} | ({"mimeType": mime} if mime else {})}
    return value


def _read_parts(block: Block) -> list[Part]:
    given = block.get("parts")
    if given is None:
        return []
    if not isinstance(given, list):
        raise MessageError(f"expected a list of parts, not {describe_json_value(given)}", path="parts")
    return list(read_each(given, lambda item: read_part(require_object(item)), "parts"))


def _suggest_role(role: str) -> str:
    if role == "system":
        return "pass system messages as systemInstruction"
    return did_you_mean(role, _ROLES) or f"Gemini has the roles {', '.join(filter(None, _ROLES))}"


Body = dict[str, Any]

SKIP_SIGNATURE_CHECK = "skip_thought_signature_validator"
"""Gemini 3 rejects tool calls without its signature. Google documents this value for calls of other models."""


class _WrittenContent(NamedTuple):
    """An element of `contents`, with the facts that decide about merging.

    Attributes:
        body: The element.
        speaker: The role of its message; `tool` if it has only tool results.
        is_native: True if it is one content that was read from Gemini.
        has_calls: True if it has tool calls.
    """

    body: Body
    speaker: Role
    is_native: bool = False
    has_calls: bool = False


def write_messages(messages: Iterable[Message]) -> list[Body]:
    """Return the `contents` of a request body.

    A reply with tool calls becomes one content. The next one has all of its tool results and nothing else.
    """
    given = list(messages)
    names = {call.id: call.name for message in given for call in message.tool_calls if call.id}
    elements = (element for message in given for element in _write_message(message, names))
    bodies: list[Body] = []
    for speaker, run in groupby(elements, key=lambda element: element.speaker):
        neighbours = list(run)
        if not all(element.is_native for element in neighbours) and _should_merge(speaker, neighbours):
            neighbours = [reduce(_merge_contents, neighbours)]
        bodies += map(_add_skipped_signature, neighbours)
    return bodies


def write_system(messages: Iterable[Message], *, short: bool) -> str | Body | None:
    """Return the system instruction, or None if there is no system message.

    Args:
        messages: The messages, of which only system messages are used.
        short: True to return plain text if that is enough and it was not read as a content.
    """
    found = [message for message in messages if message.role == "system"]
    parts = [block for message in found for block in _write_content_parts(_replace_media(message), message.api, {})]
    if not parts:
        return None
    is_native = found[0] if len(found) == 1 and found[0].api == "gemini" else None
    if short and len(parts) == 1 and parts[0].keys() == {"text"} and not (is_native and "_content" in is_native.extra):
        text: str = parts[0]["text"]
        return text
    return add_provider_fields({"parts": parts}, is_native.extra if is_native else {})


def _replace_media(message: Message) -> list[Part]:
    is_native = message.api == "gemini"
    return [
        build_media_placeholder(part) if isinstance(part, Image | File) and not is_native else part
        for part in message.parts
    ]


def _write_message(message: Message, names: Mapping[str, str]) -> list[_WrittenContent]:
    if message.role == "system":
        return []
    has_calls = bool(message.tool_calls)
    if message.api == "gemini":
        return [_WrittenContent(_write_native_content(message), message.role, is_native=True, has_calls=has_calls)]
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    others = [part for part in message.parts if not isinstance(part, ToolResult)]
    elements = []
    if result_parts := _write_content_parts(results, message.api, names):
        elements.append(_WrittenContent({"role": "user", "parts": result_parts}, "tool"))
    if other_parts := _write_content_parts(others, message.api, names):
        speaker: Role = "assistant" if message.role == "assistant" else "user"
        body = {"role": "model" if speaker == "assistant" else "user", "parts": other_parts}
        elements.append(_WrittenContent(body, speaker, has_calls=has_calls))
    return elements


def _write_native_content(message: Message) -> Body:
    missing: Any = message.extra.get("_missing", ())
    body: Body = {}
    # A field that was null or missing stays so.
    if not ("role" in missing or "role" in message.extra):
        body["role"] = message.extra.get("_role", "model" if message.role == "assistant" else "user")
    if message.parts or not ("parts" in missing or "parts" in message.extra):
        body["parts"] = _write_content_parts(message.parts, "gemini", {})
    return add_provider_fields(body, message.extra)


def _write_content_parts(parts: Iterable[Part], api: str, names: Mapping[str, str]) -> list[Body]:
    return [block for part in parts if (block := write_part(part, api, names)) is not None]


def _should_merge(speaker: Role, run: Sequence[_WrittenContent]) -> bool:
    return speaker == "tool" or (speaker == "assistant" and any(element.has_calls for element in run))


def _merge_contents(before: _WrittenContent, after: _WrittenContent) -> _WrittenContent:
    parts = [*(before.body.get("parts") or ()), *(after.body.get("parts") or ())]
    return _WrittenContent(after.body | before.body | {"parts": parts}, before.speaker)


def _add_skipped_signature(element: _WrittenContent) -> Body:
    """Return the body, without signature checks for another model's tool calls.

    Only the first tool call of a content needs the value that skips the check.
    """
    first = next((part for part in element.body.get("parts") or () if "functionCall" in map(to_camel_case, part)), None)
    if element.is_native or first is None or THOUGHT_SIGNATURE in map(to_camel_case, first):
        return element.body
    parts = [
        part | {THOUGHT_SIGNATURE: SKIP_SIGNATURE_CHECK} if part is first else part for part in element.body["parts"]
    ]
    return element.body | {"parts": parts}


_CALL_FIELDS = 2
"""Number of fields of a plain call: name and args. Counting fields is faster than comparing their names, and as strict
where every value is checked, because the value of a missing field is None."""
_RESULT_FIELDS = 2
"""name and response."""


def outline_content(item: object) -> Outline | None:
    """Return the outline of an element of `contents`, or None if it is not plain."""
    if type(item) is not dict or len(item) != 2:  # noqa: PLR2004 - role and parts
        return None
    role, parts = item.get("role"), item.get("parts")
    if role not in ("user", "model") or type(parts) is not list or not parts:
        return None
    found = Outline("assistant" if role == "model" else "user")
    for part in parts:
        if type(part) is not dict or not _outline_part(found, part):
            return None
    return found.with_tool_role(len(parts))


def _outline_part(found: Outline, part: dict[str, Any]) -> bool:
    """Add a part with one field and maybe a signature.

    Returns False for any other part.
    """
    if len(part) != 1 and (len(part) != 2 or not found.add_text(part.get(THOUGHT_SIGNATURE))):  # noqa: PLR2004 - these two
        return False
    if "text" in part:
        return found.add_text(part["text"])
    call = part.get("functionCall")
    if type(call) is dict:
        return len(call) == _CALL_FIELDS and found.add_call("", call.get("name"), call.get("args"), dict)
    result = part.get("functionResponse")
    if type(result) is not dict or len(result) != _RESULT_FIELDS or not found.add_result("", result.get("name")):
        return False
    response = result.get("response")
    if type(response) is not dict or len(response) != 1:
        return False
    name, text = next(iter(response.items()))
    return name in SINGLE_TEXT_KEYS and found.add_text(text)


_SYSTEM_KEYS = ("system_instruction", "systemInstruction")
_CALL_ARGUMENTS = frozenset({"model", "contents", "config"})
"""Parameters of the SDK's `generate_content`. All other options belong in `config`."""


def read_request(body: object) -> Conversation:
    """Parse a request: the arguments of the SDK's call, or the REST body."""
    given = read_request_arguments(body)
    if "contents" not in given:
        raise MessageError("there is no 'contents'", path="contents", hint="it must be a list of contents")
    contents = given.pop("contents")
    elements = contents if isinstance(contents, list | tuple) else [contents]
    messages = read_each(elements, read_message, "contents")
    is_body = "config" not in given and any(to_camel_case(key) not in _CALL_ARGUMENTS for key in given)
    if given.get("config") is not None:
        given["config"] = _to_config_dict(given["config"])
    with ErrorPath("" if is_body else "config"):
        system, tools, key = _take_options(given if is_body else given.get("config") or {})
    extra = with_metadata(given, body=is_body, system=key)
    return Conversation(messages=(*system, *messages), tools=tools, api="gemini", extra=extra)


def write_request(conversation: Conversation, marks: CacheMarkers | None = None) -> dict[str, Any]:  # noqa: ARG001 - Gemini caches prefixes without breakpoints
    """Return the arguments of the SDK's call, or a REST body if one was read.

    Arguments of another provider's request are left out, because they may mean something else here.
    """
    known = conversation.extra if conversation.api in ("gemini", "") else {}
    body: dict[str, Any] = get_provider_fields(known)
    is_body = "_body" in known
    options: dict[str, Any] = {}
    system = write_system(conversation.messages, short=not is_body)
    if system is not None:
        options[str(known.get("_system", _SYSTEM_KEYS[is_body]))] = system
    if tools := write_tools(conversation.tools, "gemini"):
        options["tools"] = tools
    body["contents"] = write_messages(conversation.messages)
    if is_body:
        return body | options
    call, others = _split_arguments(body)
    return call | ({"config": others | options} if others or options else {})


def override_options(body: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Replace arguments of a call, at the top level or in `config`."""
    call, others = _split_arguments(options)
    config = {**body.get("config", {}), **others}
    return body | call | ({"config": config} if config or "config" in body else {})


def _split_arguments(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split arguments into those of the call and those of `config`.

    The latter may be given at either level.
    """
    call = {key: value for key, value in arguments.items() if key in _CALL_ARGUMENTS}
    others = {key: value for key, value in arguments.items() if key not in _CALL_ARGUMENTS}
    config = arguments.get("config")
    return call, others if config is None else others | _to_config_dict(config)


def _to_config_dict(config: object) -> dict[str, Any]:
    """Return `config` as a dict.

    The caller's objects are not converted, because a schema may be a class.
    """
    if isinstance(config, Mapping):
        return dict(config)
    given = getattr(config, "model_fields_set", None)
    if given is None:
        raise MessageError(f"expected an object, not {describe_json_value(config)}", path="config")
    return {name: getattr(config, name) for name in sorted(given)}


def _take_options(options: dict[str, Any]) -> tuple[tuple[Message, ...], tuple[Tool, ...], str]:
    """Remove and parse system instruction and tools.

    Also return the instruction's key. Empty values stay.
    """
    key = next((key for key in _SYSTEM_KEYS if options.get(key)), "")
    system: tuple[Message, ...] = ()
    if key:
        with ErrorPath(key):
            system = (read_system(options.pop(key)),)
    tools: tuple[Tool, ...] = ()
    if options.get("tools"):
        tools = read_tools(require_list(options.pop("tools"), "tools"), "gemini")
    return system, tools, key


_FINISH_REASONS: dict[str, Stop] = {
    "": "",
    "FINISH_REASON_UNSPECIFIED": "",
    "STOP": "end",
    "MAX_TOKENS": "length",
    "CONTINUATION": "pause",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
}
"""Stops by Gemini's finish reason. All other reasons are errors, such as a malformed call or unsupported language."""


def read_reply(reply: object) -> Reply:
    """Parse a response, or the list of a stream's responses.

    Only the first candidate is read.
    """
    response = merge_responses(reply if isinstance(reply, list | tuple) else [reply])
    with ErrorPath(CONTENT_PATH):
        message = read_content({"role": "model", "parts": response["parts"]})
    blocked = get_optional_text(response["promptFeedback"], "blockReason")
    reason = blocked or get_optional_text(response, "finishReason")
    stop = "refusal" if blocked else _FINISH_REASONS.get(reason, "error")
    if not reason and isinstance(reply, list | tuple):
        stop = "broken"
    return Reply(
        messages=(message,),
        # Gemini has no finish reason of its own for tool calls.
        stop="tools" if stop == "end" and message.tool_calls else stop,
        stop_reason=reason,
        usage=_read_usage(response),
        id=get_optional_text(response, "responseId"),
        model=get_optional_text(response, "modelVersion"),
        api="gemini",
    )


def _read_usage(response: dict[str, Any]) -> Usage | None:
    if response.get("usageMetadata") is None:
        return None
    usage = get_object(response, "usageMetadata")
    with ErrorPath("usageMetadata"):
        reasoning_tokens = get_count(usage, "thoughtsTokenCount")
        return Usage(
            # Results of server-side tools are input as well, but counted separately.
            input_tokens=get_count(usage, "promptTokenCount") + get_count(usage, "toolUsePromptTokenCount"),
            output_tokens=get_count(usage, "candidatesTokenCount") + reasoning_tokens,
            cached_input_tokens=get_count(usage, "cachedContentTokenCount"),
            reasoning_tokens=reasoning_tokens,
        )


def is_gemini_content(item: Mapping[str, Any]) -> bool:
    """Return True if the message has parts of a shape that only Gemini uses."""
    parts = item.get("parts")
    if not isinstance(parts, list) or "content" in item or "nexus" in item:  # Nexus's own messages have parts too
        return False
    return item.get("role") == "model" or any(isinstance(part, dict) and is_part(part) for part in parts)


DIALECT: Dialect = ApiDialect(
    rules=GEMINI_RULES,
    recognises=is_gemini_content,
    read=read_message,
    write=write_messages,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    read_tools=partial(read_tools, api="gemini"),
    write_tools=partial(write_tools, api="gemini"),
    outline=outline_content,
)
