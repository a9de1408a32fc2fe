"""How many bytes messages and tools take in the body of a request: never fewer than they do, whichever API it is for.

Counted is the longest that the same thing becomes anywhere: JSON with blanks, letters beyond ASCII escaped as some SDKs
do it, arguments of a call as an object and as a text that holds one. What is around it in an API's shape, and what
repair may add to it, is covered by a fixed number of bytes for each piece.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from json.encoder import JSONEncoder, encode_basestring_ascii
from string import ascii_letters, digits
from typing import TYPE_CHECKING

from nexus_core.values.parts import File, Image, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.conversation import Tool
    from nexus_core.values.message import Message
    from nexus_core.values.parts import JSON, Part

REQUEST = 1000
"""What a request has besides: the model's name, a key and marks for the cache, room for the answer."""
MESSAGE = 60
PART = 80
MEDIUM = 200
CALL = 400
"""A call may be answered by repair, in its own words."""
_BASE64 = (ascii_letters + digits + "+/=-_").encode()


def measure_message(message: Message) -> int:
    """The bytes of a message."""
    size = MESSAGE + sum(_measure_part(part) for part in message.parts)
    return size + (_quoted(message.name) if message.name else 0) + (_written(message.extra) if message.extra else 0)


def measure_tools(tools: Iterable[Tool]) -> int:
    """The bytes of definitions of tools."""
    return sum(
        MEDIUM + _quoted(tool.name) + _quoted(tool.description) + _written(tool.parameters) + _written(tool.extra)
        for tool in tools
    )


def measure_options(options: JSON) -> int:
    """The bytes of arguments that a call has besides what is said, whether there are any or not."""
    return REQUEST + _written(options)


def _measure_part(part: Part) -> int:
    if isinstance(part, Text):
        return PART + _quoted(part.text) + (_blanks(part) + _written(part.extra) if part.extra else 0)
    if isinstance(part, ToolCall):
        return _measure_call(part)
    if isinstance(part, ToolResult):
        return _measure_result(part)
    if isinstance(part, Image | File):
        return _measure_medium(part)
    if isinstance(part, Reasoning):
        said = _quoted(part.text) + _quoted(part.signature) + _quoted(part.encrypted)
        return MEDIUM + said + _written(part.extra)
    return PART + _written(part.block)


def _measure_call(call: ToolCall) -> int:
    # The names stand in the result as well, where repair puts one.
    size = CALL + 2 * (_quoted(call.id) + _quoted(call.name)) + _written(call.extra)
    size += _quoted(_encode(call.arguments))
    if call.raw is None:
        return size
    # Repair makes an object of what is no JSON, and some APIs want that as a text.
    return size + (_quoted(call.raw) if call.arguments else _quoted(encode_basestring_ascii(call.raw)))


def _measure_result(result: ToolResult) -> int:
    size = MEDIUM + _quoted(result.call_id) + _quoted(result.name) + sum(map(_measure_part, result.parts))
    if not result.extra:
        return size
    # Gemini has an object where others have its text.
    return size + sum(_blanks(part) for part in result.parts if isinstance(part, Text)) + _written(result.extra)


def _blanks(text: Text) -> int:
    """What its own API may add where it has JSON, and others the text of it."""
    return text.text.count(",") + text.text.count(":")


def _measure_medium(part: Image | File) -> int:
    size = MEDIUM + _quoted(part.mime) + _quoted(part.url) + _quoted(part.file_id) + _written(part.extra)
    if isinstance(part, Image):
        return size + _quoted(part.detail) + _measure_base64(part.data)
    return size + 2 * _quoted(part.name) + max(_measure_base64(part.data), _measure_words(part))


def _measure_base64(data: str) -> int:
    """As for any text, in a third of the time where it is base64 indeed."""
    is_plain = data.isascii() and not data.encode().translate(None, _BASE64)
    return len(data) + len('""') if is_plain else _quoted(data)


def _measure_words(file: File) -> int:
    """A document of words, as Anthropic reads it: not in base64."""
    if "_source" not in file.extra and (file.mime == "application/pdf" or file.mime.startswith("image/")):
        return 0
    try:
        return _quoted(b64decode(file.data, validate=True).decode("utf-8", "surrogatepass"))
    except ValueError:
        return 0


def _quoted(text: str) -> int:
    return len(encode_basestring_ascii(text))


def _written(value: JSON) -> int:
    return _quoted(_encode(value)) if value else 0


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


_encode = JSONEncoder(ensure_ascii=False, default=_plain).encode
