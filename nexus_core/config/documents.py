"""Reads JSON files, and says what is wrong with one so that it can be put right without asking again."""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from typing import TYPE_CHECKING

from nexus_core.config.json_parser import JsonDocument, JsonSyntaxError, Lines, Span, is_blank, parse_json
from nexus_core.errors import ConfigError
from nexus_core.files.reading import read_bytes
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.config.json_parser import JsonValue, Position

# The longer marks first: one of UTF-32 begins with one of UTF-16.
_MARKS = {BOM_UTF32_LE: "UTF-32", BOM_UTF32_BE: "UTF-32", BOM_UTF16_LE: "UTF-16", BOM_UTF16_BE: "UTF-16"}


def read_document(path: Path, *, comments: bool = False, empty: JsonValue) -> JsonDocument | None:
    """The JSON document in a file, or None when there is no such file; a blank file holds `empty`.

    Args:
        path: The file.
        comments: Whether comments and trailing commas are allowed.
        empty: The value of a file with nothing in it (with `comments`: nothing but comments).

    Raises:
        ConfigError: It is not UTF-8 or not JSON; the report shows where.
        FileError: It is larger than 1 MiB, not a regular file, or cannot be read.
    """
    data = read_bytes(path)
    if data is None:
        return None
    text = _decode(path, data)
    try:
        if is_blank(text, comments=comments):
            return JsonDocument(empty, Span(0, 0, len(text)), Lines(text))
        return parse_json(text, comments=comments)
    except JsonSyntaxError as error:
        lines = Lines(text)
        raise syntax_error(path, lines, lines.position(error.offset), error.message) from None


def syntax_error(path: Path, lines: Lines, position: Position, message: str) -> ConfigError:
    """The error for a text that is not JSON at a position."""
    return setting_error(
        path,
        lines,
        position,
        title=f"Invalid JSON in {path}",
        message=message,
        closing="Fix the JSON syntax error and try again.",
    )


def setting_error(
    path: Path, lines: Lines, position: Position, *, title: str, message: str, closing: str
) -> ConfigError:
    """The error for something wrong at a position of a file; its report shows the lines around it.

    Args:
        path: The file.
        lines: The text of the file.
        position: What the caret is put under.
        title: The rest of the first line, such as `Invalid setting in <path>`.
        message: What is wrong, one sentence without a final period.
        closing: What to do about it, a whole sentence.
    """
    from nexus_core.config.excerpt import render_excerpt  # noqa: PLC0415 - only when something is wrong

    parts = (
        f"Configuration Error: {visible_line(title)}",
        f"  Line {position.line}, Column {position.column}: {visible_line(message)}",
        render_excerpt(lines, position),
        closing,
    )
    where = f"{path}:{position.line}:{position.column}"
    return ConfigError(message, where=where, hint=closing, report="\n\n".join(parts))


def _decode(path: Path, data: bytes) -> str:
    """The text of a file without its byte order mark."""
    mark = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
    zero = data.find(0)
    try:
        text = data[mark:].decode("utf-8")
    except UnicodeDecodeError as error:
        bad = mark + error.start
        raise _encoding_error(path, data, mark, min(zero, bad) if zero >= 0 else bad) from None
    if zero >= 0:
        raise _encoding_error(path, data, mark, zero)
    return text


def _encoding_error(path: Path, data: bytes, mark: int, offset: int) -> ConfigError:
    # Bytes that are no text are shown as escapes. All that stands before the first of them is text.
    lines = Lines(data[mark:].decode("utf-8", "backslashreplace"))
    position = lines.position(len(data[mark:offset].decode("utf-8")))
    encoding = _likely_encoding(data, offset)
    is_damage = encoding is None and data[offset] == 0
    return setting_error(
        path,
        lines,
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
