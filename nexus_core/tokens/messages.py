"""Token counts of messages, tools, images and documents.

Images and documents count by the rules that providers publish:

- OpenAI: 85, and 170 for each tile of 512 pixels after scaling into 2048 by 2048 and to a short side of 768; 85 alone
  for low detail.
- Anthropic: a token for 750 pixels, after scaling to a long side of at most 2576 and 3.75 million pixels. Older models
  scale to 1568; for them this is high.
- Gemini: 258 up to 384 by 384, else 258 for each tile of 768 pixels after scaling into 3072 by 3072.

An image of unknown size (a link, an upload) counts as the largest that is not scaled down; without a known API the
highest of the three counts. Documents count by the page.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Mapping
from json.encoder import JSONEncoder
from math import ceil
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus_core.types.budget import MESSAGE_OVERHEAD_TOKENS
from nexus_core.types.messages import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.types.messages import Message, Part, Tool

_SAMPLE_CHARACTERS = 1000


class Base64Bytes:
    """The bytes of a base64 text, decoded on access. Invalid base64 decodes to no bytes, or to wrong ones."""

    def __init__(self, text: str) -> None:
        # E-mail breaks base64 into lines; if the first lines are not broken, the later ones are not either.
        self._text = "".join(text.split()) if len(text[:_SAMPLE_CHARACTERS].split()) > 1 else text

    def __len__(self) -> int:
        return (len(self._text) - self._text[-2:].count("=")) * 3 // 4

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes starting at `offset`."""
        first, last = offset // 3, -(-(offset + length) // 3)
        return self._decode(self._text[first * 4 : last * 4])[offset - first * 3 :][:length]

    def read_all(self) -> bytes:
        """Return all bytes."""
        return self._decode(self._text)

    @staticmethod
    def _decode(text: str) -> bytes:
        try:
            return a2b_base64(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))
        except (Error, ValueError):  # an impossible length, or not ASCII
            return b""


UNKNOWN_IMAGE_TOKENS = {"openai": 1445, "anthropic": 5000, "gemini": 1548}
"""Tokens of an image of unknown size."""
TOKENS_PER_PAGE = {"openai": 3000, "anthropic": 3000, "gemini": 258}
"""Tokens of a page: its text and its image. A document that cannot be read counts as one page."""
BYTES_PER_PAGE = 100_000
"""Bytes of a page, if pages cannot be counted."""
BYTES_PER_TOKEN = 500
"""Bytes of a token in audio, video and other files."""

_HEADER_BYTES = 30
"""Bytes of the header in which all formats but JPEG store their size; no image is smaller."""
_API_ALIASES = {"responses": "openai"}
_PDF_PAGE_PATTERN = rb"/Type\s*/Page(?![A-Za-z])"


class ImageSize(NamedTuple):
    """An image's size in pixels."""

    width: int
    height: int


def count_image(image: Image, api: str = "") -> int:
    """Return the tokens of an image for an API, or the highest of all if the API is unknown."""
    size = read_image_size(_get_media_bytes(image))
    rules = (
        (_IMAGE_RULES[_API_ALIASES.get(api, api)],)
        if _API_ALIASES.get(api, api) in _IMAGE_RULES
        else tuple(_IMAGE_RULES.values())
    )
    return max(rule(size, image.detail) for rule in rules)


def count_file(file: File, api: str, count: Callable[[str], int]) -> int:
    """Return the tokens of a document: of its text if it is plain text, else by its pages or bytes."""
    content, page = (
        _get_media_bytes(file),
        TOKENS_PER_PAGE.get(_API_ALIASES.get(api, api), max(TOKENS_PER_PAGE.values())),
    )
    if not content:
        return page
    if file.mime.startswith("text/"):
        return count(content.read_all().decode("utf-8", "replace"))
    if file.mime == "application/pdf" or content.read(0, 5) == b"%PDF-":
        pages = len(re.findall(_PDF_PAGE_PATTERN, content.read_all())) or ceil(len(content) / BYTES_PER_PAGE)
        return page * pages
    return max(page if len(content) < BYTES_PER_PAGE else 0, len(content) // BYTES_PER_TOKEN)


def read_image_size(content: Base64Bytes) -> ImageSize | None:
    """Return the size in the header of a PNG, GIF, WebP or JPEG file, or None."""
    head = content.read(0, _HEADER_BYTES)
    if len(head) < _HEADER_BYTES:
        return None
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        size = ImageSize(int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big"))
    elif head.startswith((b"GIF87a", b"GIF89a")):
        size = ImageSize(int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little"))
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        size = _read_webp_size(head)
    elif head.startswith(b"\xff\xd8"):
        size = _read_jpeg_size(content)
    else:
        return None
    return size if size.width and size.height else None


def _read_webp_size(head: bytes) -> ImageSize:
    kind = head[12:16]
    if kind == b"VP8X":
        return ImageSize(int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1)
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return ImageSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 ":
        return ImageSize(int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF)
    return ImageSize(0, 0)


_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MAX_SEGMENTS = 1000
"""Segments before the size that are read; no real image has as many, but a crafted one may."""


def _read_jpeg_size(content: Base64Bytes) -> ImageSize:
    at = 2
    for _ in range(_MAX_SEGMENTS):
        segment = content.read(at, 9)
        if len(segment) < 9 or segment[0] != 0xFF:  # noqa: PLR2004 - the length that was read, the mark of a segment
            break
        if segment[1] in _JPEG_FRAMES:
            return ImageSize(int.from_bytes(segment[7:9], "big"), int.from_bytes(segment[5:7], "big"))
        filling = segment[1] == 0xFF  # noqa: PLR2004 - a fill byte
        at += 1 if filling else 2 + int.from_bytes(segment[2:4], "big")
    return ImageSize(0, 0)


def _count_openai_image(size: ImageSize | None, detail: str) -> int:
    if detail == "low":
        return 85
    if size is None:
        return UNKNOWN_IMAGE_TOKENS["openai"]
    inside = _scale_down(size, 2048 / max(size))
    short = _scale_down(inside, 768 / min(inside))
    return 85 + 170 * ceil(short.width / 512) * ceil(short.height / 512)


def _count_anthropic_image(size: ImageSize | None, _detail: str) -> int:
    if size is None:
        return UNKNOWN_IMAGE_TOKENS["anthropic"]
    inside = _scale_down(size, 2576 / max(size))
    return min(ceil(inside.width * inside.height / 750), UNKNOWN_IMAGE_TOKENS["anthropic"])


def _count_gemini_image(size: ImageSize | None, _detail: str) -> int:
    if size is None:
        return UNKNOWN_IMAGE_TOKENS["gemini"]
    if max(size) <= 384:  # noqa: PLR2004 - the provider's number, as all of them here
        return 258
    inside = _scale_down(size, 3072 / max(size))
    return 258 * ceil(inside.width / 768) * ceil(inside.height / 768)


_IMAGE_RULES: dict[str, Callable[[ImageSize | None, str], int]] = {
    "openai": _count_openai_image,
    "anthropic": _count_anthropic_image,
    "gemini": _count_gemini_image,
}


def _scale_down(size: ImageSize, factor: float) -> ImageSize:
    """Return the size scaled down, never up."""
    return size if factor >= 1 else ImageSize(max(1, round(size.width * factor)), max(1, round(size.height * factor)))


def _get_media_bytes(media: Image | File) -> Base64Bytes:
    """Return the bytes of an image or document, also from a `data:` URL, or none if they are elsewhere."""
    if not media.data and media.url.startswith("data:"):
        return Base64Bytes(media.url.partition(",")[2])
    return Base64Bytes(media.data)


_BASE64_BLOB_PATTERN = r"[A-Za-z0-9+/_\-]{4096,}={0,2}"
"""Base64 data, which is never read as words."""
_ENCRYPTED_CHARACTERS_PER_TOKEN = 4
"""Encrypted reasoning is about as long as its text, and the provider counts the text."""


class SupportsCount(Protocol):
    """Protocol: counts the tokens of a text."""

    def count(self, text: str) -> int:
        """Return the tokens of a text."""


def count_messages(counter: SupportsCount, messages: Iterable[Message]) -> int:
    """Return the tokens of messages, with an overhead of 4 each.

    Text and reasoning count verbatim, tool calls as their name and arguments as JSON, tool results as their parts,
    images and documents by the rules of the API they were read from, unknown blocks as JSON.
    """
    return sum([_count_message(counter, message) for message in messages])


def count_tools(counter: SupportsCount, tools: Iterable[Tool]) -> int:
    """Return the tokens of tool definitions, each as JSON with an overhead of 4."""
    return sum(MESSAGE_OVERHEAD_TOKENS + counter.count(to_compact_json(_build_definition(tool))) for tool in tools)


def to_compact_json(value: object) -> str:
    """Serialize a value as JSON without blanks or ASCII escapes. Values that are not JSON become strings."""
    return _encode_json(value)


def _count_message(counter: SupportsCount, message: Message) -> int:
    name = counter.count(message.name) if message.name else 0
    return MESSAGE_OVERHEAD_TOKENS + name + sum([_count_part(counter, part, message.api) for part in message.parts])


def _count_part(counter: SupportsCount, part: Part, api: str) -> int:
    if isinstance(part, Text):
        return counter.count(part.text)
    if isinstance(part, ToolCall):
        arguments = to_compact_json(part.arguments) if part.raw is None else part.raw
        # A provider writes markup around a call, which is many tokens for some.
        return getattr(counter, "tool_call_tokens", 0) + counter.count(part.name) + counter.count(arguments)
    if isinstance(part, ToolResult):
        return sum([_count_part(counter, each, api) for each in part.parts])
    if isinstance(part, Reasoning):
        return counter.count(part.text) + -(-len(part.encrypted) // _ENCRYPTED_CHARACTERS_PER_TOKEN)
    return _count_block(counter, part) if isinstance(part, Opaque) else _count_media(counter, part, api)


def _count_media(counter: SupportsCount, part: Image | File, api: str) -> int:
    return count_image(part, api) if isinstance(part, Image) else count_file(part, api, counter.count)


def _count_block(counter: SupportsCount, part: Opaque) -> int:
    blobs: list[str] = []

    def collect_blob(blob: re.Match[str]) -> str:
        blobs.append(blob[0])
        return ""

    words = re.sub(_BASE64_BLOB_PATTERN, collect_blob, to_compact_json(part.block))
    return counter.count(words) + sum(len(blob) * 3 // 4 // BYTES_PER_TOKEN for blob in blobs)


def _build_definition(tool: Tool) -> dict[str, object]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters, **tool.extra}


def _to_json_type(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


# Built once, because every other message has a tool call.
_encode_json = JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_to_json_type).encode
