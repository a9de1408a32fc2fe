"""Says what is wrong with a settings file that is not text in UTF-8."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from typing import TYPE_CHECKING

from nexus_core.config.covering import cover
from nexus_core.config.documents import setting_error
from nexus_core.config.lines import Lines

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.errors import ConfigError

# The longer marks first: one of UTF-32 begins with one of UTF-16.
_MARKS = {BOM_UTF32_LE: "UTF-32", BOM_UTF32_BE: "UTF-32", BOM_UTF16_LE: "UTF-16", BOM_UTF16_BE: "UTF-16"}


def encoding_error(path: Path, data: bytes, mark: int, offset: int, *, quote: bool) -> ConfigError:
    """The error for a file with a byte at `offset` that is not text; its byte order mark takes `mark` bytes."""
    # Bytes that are no text are shown as escapes. All that stands before the first of them is text.
    lines = Lines(data[mark:].decode("utf-8", "backslashreplace"))
    position = lines.position(len(data[mark:offset].decode("utf-8")))
    encoding = _likely_encoding(data, offset)
    is_damage = encoding is None and data[offset] == 0
    return setting_error(
        path,
        lines if quote else Lines(cover(lines.text)),
        position,
        title=f"Invalid encoding in {path}",
        message=f"Byte 0x{data[offset]:02x} at offset {offset} is not {'text' if data[offset] == 0 else 'UTF-8'}"
        + (f"; the file looks like {encoding}" if encoding else ""),
        closing=f"{'Remove it' if is_damage else 'Save the file as UTF-8'} and try again.",
    )


def _likely_encoding(data: bytes, offset: int) -> str | None:
    """What a file is probably written in that is not UTF-8 at `offset`, or None when it is rather damaged."""
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            return name
    zero = data.find(0)
    if zero in (0, 1):
        # JSON begins with an ASCII character; it has zero bytes before it when big-endian, and after it otherwise.
        order = "LE" if zero else "BE"
        return next((name for name in ("UTF-32", "UTF-16") if _is_text(data, f"{name}-{order}")), None)
    if zero > 1:
        return None
    # With other characters before, it was UTF-8 so far.
    return "Latin-1 or Windows-1252" if data[:offset].isascii() else None


def _is_text(data: bytes, encoding: str) -> bool:
    try:
        return "\0" not in data.decode(encoding)
    except UnicodeDecodeError:
        return False
