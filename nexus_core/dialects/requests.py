"""Request bodies: arguments of an SDK's call, and their size in bytes.

Sizes are upper bounds for every API. Each piece is counted in its longest form: JSON with whitespace, non-ASCII
characters escaped as some SDKs do, tool call arguments as an object and as JSON text. A fixed overhead per piece covers
what an API's shape and `repair` may add.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from json.encoder import JSONEncoder, encode_basestring_ascii
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import (
    describe_json_value,
    get_provider_fields,
    is_not_given,
    prefix_error_path,
    to_json_types,
)
from nexus_core.errors import MessageError
from nexus_core.types.messages import File, Image, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from nexus_core.types.messages import JSON, Conversation, Message, Part, Tool

if TYPE_CHECKING:
    Read = TypeVar("Read")


def read_request_arguments(body: object) -> dict[str, Any]:
    """Return the arguments of a call, unconverted.

    An SDK's sentinels for `not given` are left out.
    """
    if not isinstance(body, Mapping):
        body = to_json_types(body)
    if not isinstance(body, Mapping):
        raise MessageError(f"expected the arguments of a call, not {describe_json_value(body)}")
    for name in body:
        if not isinstance(name, str):
            raise MessageError(f"expected text as the name of an argument, not {describe_json_value(name)}")
    return {name: value for name, value in body.items() if not is_not_given(value)}


def require_list(value: object, path: str) -> list[Any] | tuple[Any, ...]:
    """Return the value if it is a list or tuple.

    Iterators are rejected, because reading would exhaust them.
    """
    if isinstance(value, list | tuple):
        return value
    raise MessageError(f"expected a list, not {describe_json_value(value)}", path=path)


def build_not_a_list_error(given: object) -> MessageError:
    """Return the error for a value that is not a list of messages, with a hint."""
    hint = None
    if isinstance(given, Mapping):
        hint = "pass the value of its field `messages`, `input` or `contents`"
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        hint = "make it a list: list(messages)"
    return MessageError(f"expected a list of messages, not {describe_json_value(given)}", path="messages", hint=hint)


def read_each(items: Iterable[object], read: Callable[[object], Read], path: str) -> tuple[Read, ...]:
    """Apply `read` to every element. Errors have the element's index in their path."""
    found = []
    for index, item in enumerate(items):
        try:
            found.append(read(item))
        except MessageError as error:
            raise prefix_error_path(f"{path}[{index}]", error) from None
    return tuple(found)


OPENAI_APIS = ("openai", "responses", "")
"""APIs that share file ids, refusals and custom tools: both of OpenAI's, and "" for messages built by the caller."""

_SHARED_ARGUMENTS = frozenset(
    {
        "metadata",
        "model",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "temperature",
        "top_logprobs",
        "top_p",
        "user",
        "extra_body",
        "extra_headers",
        "extra_query",
        "timeout",
    }
)
"""Arguments with the same name and meaning in both of OpenAI's APIs."""


def select_request_arguments(conversation: Conversation, api: str) -> dict[str, Any]:
    """Return a request's other arguments that `api` understands.

    All of them if they are of that API, the shared ones if they are of OpenAI's other API, else none.
    """
    arguments = get_provider_fields(conversation.extra)
    if conversation.api in (api, ""):
        return arguments
    if conversation.api in OPENAI_APIS:
        return {name: value for name, value in arguments.items() if name in _SHARED_ARGUMENTS}
    return {}


REQUEST_OVERHEAD_BYTES = 1000
"""Covers model name, cache key, cache markers and maximum reply length."""
MESSAGE_OVERHEAD_BYTES = 60
PART_OVERHEAD_BYTES = 80
MEDIA_OVERHEAD_BYTES = 200
CALL_OVERHEAD_BYTES = 400
"""Covers the tool result that `repair` may add for the call."""
_BASE64_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"


def count_message_bytes(message: Message) -> int:
    """Return the maximum size of a message in a request body, in bytes."""
    size = MESSAGE_OVERHEAD_BYTES + sum(_count_part_bytes(part) for part in message.parts)
    return (
        size
        + (_count_quoted_bytes(message.name) if message.name else 0)
        + (_count_json_bytes(message.extra) if message.extra else 0)
    )


def count_tool_bytes(tools: Iterable[Tool]) -> int:
    """Return the maximum size of tool definitions, in bytes."""
    return sum(
        MEDIA_OVERHEAD_BYTES
        + _count_quoted_bytes(tool.name)
        + _count_quoted_bytes(tool.description)
        + _count_json_bytes(tool.parameters)
        + _count_json_bytes(tool.extra)
        for tool in tools
    )


def count_option_bytes(options: JSON) -> int:
    """Return the maximum size of a call's other arguments, in bytes.

    Includes the fixed overhead.
    """
    return REQUEST_OVERHEAD_BYTES + _count_json_bytes(options)


def _count_part_bytes(part: Part) -> int:
    if isinstance(part, Text):
        return (
            PART_OVERHEAD_BYTES
            + _count_quoted_bytes(part.text)
            + (_count_added_blanks(part) + _count_json_bytes(part.extra) if part.extra else 0)
        )
    if isinstance(part, ToolCall):
        return _count_call_bytes(part)
    if isinstance(part, ToolResult):
        return _count_result_bytes(part)
    if isinstance(part, Image | File):
        return _count_media_bytes(part)
    if isinstance(part, Reasoning):
        size = (
            _count_quoted_bytes(part.text) + _count_quoted_bytes(part.signature) + _count_quoted_bytes(part.encrypted)
        )
        return MEDIA_OVERHEAD_BYTES + size + _count_json_bytes(part.extra)
    return PART_OVERHEAD_BYTES + _count_json_bytes(part.block)


def _count_call_bytes(call: ToolCall) -> int:
    # Twice, because a result that `repair` adds repeats id and name.
    size = (
        CALL_OVERHEAD_BYTES
        + 2 * (_count_quoted_bytes(call.id) + _count_quoted_bytes(call.name))
        + _count_json_bytes(call.extra)
    )
    size += _count_quoted_bytes(_encode_json(call.arguments))
    if call.raw is None:
        return size
    # `repair` wraps invalid JSON in an object, which some APIs need as JSON text.
    return size + (
        _count_quoted_bytes(call.raw) if call.arguments else _count_quoted_bytes(encode_basestring_ascii(call.raw))
    )


def _count_result_bytes(result: ToolResult) -> int:
    size = (
        MEDIA_OVERHEAD_BYTES
        + _count_quoted_bytes(result.call_id)
        + _count_quoted_bytes(result.name)
        + sum(map(_count_part_bytes, result.parts))
    )
    if not result.extra:
        return size
    # Gemini writes an object where other APIs write its JSON text.
    return (
        size
        + sum(_count_added_blanks(part) for part in result.parts if isinstance(part, Text))
        + _count_json_bytes(result.extra)
    )


def _count_added_blanks(text: Text) -> int:
    """Return how many blanks its API may add if it serializes the text as JSON."""
    return text.text.count(",") + text.text.count(":")


def _count_media_bytes(part: Image | File) -> int:
    size = (
        MEDIA_OVERHEAD_BYTES
        + _count_quoted_bytes(part.mime)
        + _count_quoted_bytes(part.url)
        + _count_quoted_bytes(part.file_id)
        + _count_json_bytes(part.extra)
    )
    if isinstance(part, Image):
        return size + _count_quoted_bytes(part.detail) + _count_base64_bytes(part.data)
    return size + 2 * _count_quoted_bytes(part.name) + max(_count_base64_bytes(part.data), _count_document_bytes(part))


def _count_base64_bytes(data: str) -> int:
    """Count like any text, but three times faster for valid base64."""
    is_plain = data.isascii() and not data.encode().translate(None, _BASE64_CHARACTERS)
    return len(data) + len('""') if is_plain else _count_quoted_bytes(data)


def _count_document_bytes(file: File) -> int:
    """Return the size of a text document in Anthropic's form, which is not base64."""
    if "_source" not in file.extra and (file.mime == "application/pdf" or file.mime.startswith("image/")):
        return 0
    try:
        return _count_quoted_bytes(b64decode(file.data, validate=True).decode("utf-8", "surrogatepass"))
    except ValueError:
        return 0


def _count_quoted_bytes(text: str) -> int:
    return len(encode_basestring_ascii(text))


def _count_json_bytes(value: JSON) -> int:
    return _count_quoted_bytes(_encode_json(value)) if value else 0


def _convert_unknown(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


_encode_json = JSONEncoder(ensure_ascii=False, default=_convert_unknown).encode
