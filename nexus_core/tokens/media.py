"""The tokens of pictures and documents, by the rules that providers publish.

- OpenAI: 85, and 170 for each tile of 512 pixels after scaling into 2048 by 2048 and to a short side of 768; 85 alone
  when little detail is asked for.
- Anthropic: a token for 750 pixels, after scaling to a long side of at most 2576 and 3.75 million pixels. Older models
  scale to 1568; for them this is high.
- Gemini: 258 up to 384 by 384, else 258 for each tile of 768 pixels after scaling into 3072 by 3072.

A picture whose size cannot be seen (a link, an upload) counts as the largest that is not scaled down; without a known
API the highest of the three counts. Documents count by the page.
"""

from __future__ import annotations

import re
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.tokens.base64_bytes import Base64Bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.values.parts import File, Image

UNKNOWN_IMAGE = {"openai": 1445, "anthropic": 5000, "gemini": 1548}
"""Tokens of a picture of unknown size."""
PAGE = {"openai": 3000, "anthropic": 3000, "gemini": 258}
"""Tokens of a page: its text and its picture. A document that cannot be seen counts as one."""
BYTES_PER_PAGE = 100_000
"""Where pages cannot be counted."""
BYTES_PER_TOKEN = 500
"""Sound, film and anything else."""

_HEAD = 30
"""The bytes in which all but JPEG tell their size; no picture has fewer."""
_APIS = {"responses": "openai"}
_PDF_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")


class Size(NamedTuple):
    """A picture's size in pixels."""

    width: int
    height: int


def count_image(image: Image, api: str = "") -> int:
    """The tokens of a picture for an API; the highest of all when the API is not known."""
    size = image_size(_content(image))
    rules = (_RULES[_APIS.get(api, api)],) if _APIS.get(api, api) in _RULES else tuple(_RULES.values())
    return max(rule(size, image.detail) for rule in rules)


def count_file(file: File, api: str, count: Callable[[str], int]) -> int:
    """The tokens of a document: its words if it is plain text, else by its pages or bytes."""
    content, page = _content(file), PAGE.get(_APIS.get(api, api), max(PAGE.values()))
    if not content:
        return page
    if file.mime.startswith("text/"):
        return count(content.read_all().decode("utf-8", "replace"))
    if file.mime == "application/pdf" or content.read(0, 5) == b"%PDF-":
        pages = len(_PDF_PAGE.findall(content.read_all())) or ceil(len(content) / BYTES_PER_PAGE)
        return page * pages
    return max(page if len(content) < BYTES_PER_PAGE else 0, len(content) // BYTES_PER_TOKEN)


def image_size(content: Base64Bytes) -> Size | None:
    """The size that the head of a PNG, GIF, WebP or JPEG file tells; None when it tells none."""
    head = content.read(0, _HEAD)
    if len(head) < _HEAD:
        return None
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        size = Size(int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big"))
    elif head.startswith((b"GIF87a", b"GIF89a")):
        size = Size(int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little"))
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        size = _webp_size(head)
    elif head.startswith(b"\xff\xd8"):
        size = _jpeg_size(content)
    else:
        return None
    return size if size.width and size.height else None


def _webp_size(head: bytes) -> Size:
    kind = head[12:16]
    if kind == b"VP8X":
        return Size(int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1)
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 ":
        return Size(int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF)
    return Size(0, 0)


_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MAX_SEGMENTS = 1000
"""No picture has so many before its size; a made-up one may."""


def _jpeg_size(content: Base64Bytes) -> Size:
    at = 2
    for _ in range(_MAX_SEGMENTS):
        segment = content.read(at, 9)
        if len(segment) < 9 or segment[0] != 0xFF:  # noqa: PLR2004 - the length of what is read, the mark of a segment
            break
        if segment[1] in _JPEG_FRAMES:
            return Size(int.from_bytes(segment[7:9], "big"), int.from_bytes(segment[5:7], "big"))
        filling = segment[1] == 0xFF  # noqa: PLR2004 - as above
        at += 1 if filling else 2 + int.from_bytes(segment[2:4], "big")
    return Size(0, 0)


def _openai(size: Size | None, detail: str) -> int:
    if detail == "low":
        return 85
    if size is None:
        return UNKNOWN_IMAGE["openai"]
    inside = _scaled(size, 2048 / max(size))
    short = _scaled(inside, 768 / min(inside))
    return 85 + 170 * ceil(short.width / 512) * ceil(short.height / 512)


def _anthropic(size: Size | None, _detail: str) -> int:
    if size is None:
        return UNKNOWN_IMAGE["anthropic"]
    inside = _scaled(size, 2576 / max(size))
    return min(ceil(inside.width * inside.height / 750), UNKNOWN_IMAGE["anthropic"])


def _gemini(size: Size | None, _detail: str) -> int:
    if size is None:
        return UNKNOWN_IMAGE["gemini"]
    if max(size) <= 384:  # noqa: PLR2004 - the provider's number, as all of them here
        return 258
    inside = _scaled(size, 3072 / max(size))
    return 258 * ceil(inside.width / 768) * ceil(inside.height / 768)


_RULES: dict[str, Callable[[Size | None, str], int]] = {"openai": _openai, "anthropic": _anthropic, "gemini": _gemini}


def _scaled(size: Size, factor: float) -> Size:
    """The size made smaller; never larger."""
    return size if factor >= 1 else Size(max(1, round(size.width * factor)), max(1, round(size.height * factor)))


def _content(media: Image | File) -> Base64Bytes:
    """The bytes of a picture or document, also where they stand in a `data:` link; none if they are elsewhere."""
    if not media.data and media.url.startswith("data:"):
        return Base64Bytes(media.url.partition(",")[2])
    return Base64Bytes(media.data)
