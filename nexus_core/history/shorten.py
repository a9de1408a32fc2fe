"""Smaller messages: long texts cut to head and tail, and placeholders for images and documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

from nexus_core.dialects.requests import count_message_bytes
from nexus_core.history.groups import group_messages
from nexus_core.tokens.messages import Base64Bytes
from nexus_core.types.messages import File, Image, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.types.messages import Message, Part, ResultPart

HEAD_SHARE = 0.7
"""The share of the kept characters that comes from the beginning of the text."""
MIN_SIGNATURE_CHARACTERS = 48
"""A shorter value in place of a signature tells the provider not to check it."""


def shorten_results(message: Message, limit: int, count: Callable[[str], int]) -> Message:
    """Return the message with texts of tool results shortened to `limit` tokens; the same object if none is longer."""
    parts = tuple(
        _shorten_result(part, limit, count) if isinstance(part, ToolResult) else part for part in message.parts
    )
    return message if all(map(_is_same_object, parts, message.parts)) else replace(message, parts=parts)


def list_long_texts(message: Message) -> list[str]:
    """Return the texts that `shorten_texts` may shorten: tool results, arguments of tool calls, and plain texts."""
    texts = [part.text for result in message.tool_results for part in result.parts if isinstance(part, Text)]
    texts += [part.text for part in message.parts if _is_plain_text(part)]
    return texts + [text for call in message.tool_calls if _is_unsigned(call) for text in _list_strings(call.arguments)]


def shorten_texts(message: Message, limit: int, count: Callable[[str], int]) -> Message:
    """Return the message with the texts of `list_long_texts` shortened; the same object if none is longer.

    Arguments of a tool call stay a valid JSON object with the same keys.
    """
    parts = tuple(_shorten_any_part(part, limit, count) for part in shorten_results(message, limit, count).parts)
    return message if all(map(_is_same_object, parts, message.parts)) else replace(message, parts=parts)


def _shorten_any_part(part: Part, limit: int, count: Callable[[str], int]) -> Part:
    if isinstance(part, Text) and _is_plain_text(part):
        return _shorten_part(part, limit, count)
    if isinstance(part, ToolCall) and _is_unsigned(part):
        arguments = _shorten_strings(part.arguments, limit, count)
        return part if arguments is part.arguments else replace(part, arguments=arguments, raw=None)
    return part


def _is_plain_text(part: object) -> TypeGuard[Text]:
    """Return True for a text without fields that may refer to positions in it, such as citations."""
    return isinstance(part, Text) and not part.extra


def _is_unsigned(call: ToolCall) -> bool:
    """Return True for a tool call that no provider has signed: a signed one must be sent back as it was."""
    return not any(
        "signature" in name.lower() and len(str(value)) >= MIN_SIGNATURE_CHARACTERS
        for name, value in call.extra.items()
    )


def _list_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _list_strings(each)


def _shorten_strings(value: Any, limit: int, count: Callable[[str], int]) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value with long strings shortened; the same object if none is longer."""
    if isinstance(value, str):
        return shorten_text(value, limit, count)
    if isinstance(value, dict):
        items = {name: _shorten_strings(each, limit, count) for name, each in value.items()}
        return value if all(items[name] is each for name, each in value.items()) else items
    if isinstance(value, list):
        shortened = [_shorten_strings(each, limit, count) for each in value]
        return value if all(map(_is_same_object, shortened, value)) else shortened
    return value


def shorten_text(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Return head and tail of a text around a line with the number of characters left out; at most `limit` tokens.

    A text that fits is returned unchanged. If the limit is too small for head and tail, the line alone is returned if
    it is shorter than the text.
    """
    kept = split_head_and_tail(text, limit, count, _describe_gap)
    if kept is None:
        return text
    head, tail = kept
    if head + tail:
        return _join_head_and_tail(text, head, tail, _describe_gap)
    line = _describe_gap(len(text))
    return line if count(line) < count(text) else text


def split_head_and_tail(
    text: str, limit: int, count: Callable[[str], int], line: Callable[[int], str]
) -> tuple[int, int] | None:
    """Return how many characters of head and tail fit into `limit` tokens, with a line between them.

    Args:
        text: The text.
        limit: Maximum tokens.
        count: Returns the tokens of a text.
        line: Returns the line between head and tail for a number of characters left out.

    Returns:
        None if the whole text fits; two zeros if only the line is left.
    """
    tokens, limit = count(text), max(limit, 0)
    if tokens <= limit:
        return None
    keep = int(len(text) * limit / tokens)
    while True:
        head, tail = int(keep * HEAD_SHARE), keep - int(keep * HEAD_SHARE)
        if keep == 0 or count(_join_head_and_tail(text, head, tail, line)) <= limit:
            return head, tail
        keep = keep * 9 // 10


def _join_head_and_tail(text: str, head: int, tail: int, line: Callable[[int], str]) -> str:
    return f"{text[:head]}\n{line(len(text) - head - tail)}\n{text[len(text) - tail :]}"


def _describe_gap(left_out: int) -> str:
    return f"[… {left_out:,} characters left out …]"


def _shorten_result(result: ToolResult, limit: int, count: Callable[[str], int]) -> ToolResult:
    parts = tuple(_shorten_part(part, limit, count) if isinstance(part, Text) else part for part in result.parts)
    return result if all(map(_is_same_object, parts, result.parts)) else replace(result, parts=parts)


def _shorten_part(part: Text, limit: int, count: Callable[[str], int]) -> Text:
    short = shorten_text(part.text, limit, count)
    return part if short is part.text else replace(part, text=short)


def _is_same_object(first: object, second: object) -> bool:
    return first is second


REQUEST_BYTES_RULE = "request_bytes"
"""The rule in decisions: the setting of a model with the maximum size of a request body."""


def count_media(message: Message) -> int:
    """Return the number of inline images and documents in a message; those behind a URL do not count."""
    return sum(map(_count_part_media, message.parts))


def replace_media(message: Message) -> Message:
    """Return the message with placeholders for inline images and documents; the same object if there are none."""
    return replace(message, parts=tuple(map(_replace_part_media, message.parts))) if count_media(message) else message


def replace_oldest_media(messages: Sequence[Message], most: int) -> tuple[list[Message], int]:
    """Replace as few images and documents as possible, oldest first; return the messages and their bytes.

    Args:
        messages: All messages; the newest group is never changed.
        most: Available bytes.
    """
    sizes = list(map(count_message_bytes, messages))
    told, size = list(messages), sum(sizes)
    for place in range(group_messages(messages)[-1].first if messages else 0):
        if size <= most:
            break
        told[place] = replace_media(messages[place])
        size += count_message_bytes(told[place]) - sizes[place]
    return told, size


def _count_part_media(part: Part) -> int:
    if isinstance(part, ToolResult):
        return sum(map(_count_part_media, part.parts))
    return int(isinstance(part, Image | File) and bool(_find_base64(part)))


def _replace_part_media(part: Part) -> Part:
    if isinstance(part, ToolResult):
        return replace(part, parts=tuple(map(_build_placeholder, part.parts))) if _count_part_media(part) else part
    return _build_placeholder(part) if isinstance(part, Image | File) else part


def _build_placeholder(part: ResultPart) -> ResultPart:
    if not isinstance(part, Image | File) or not (content := _find_base64(part)):
        return part
    kind = "image" if isinstance(part, Image) else "file"
    called = (part.name if isinstance(part, File) else "") or part.mime
    size = f"{len(Base64Bytes(content)):,} bytes"
    return Text(f"[{kind} left out, the request would be too large: {', '.join(filter(None, (called, size)))}]")


def _find_base64(part: Image | File) -> str:
    """Return the inline data in base64; "" for media behind a URL, which add nothing to the request body."""
    return part.data or (part.url.partition(",")[2] if part.url.startswith("data:") else "")
