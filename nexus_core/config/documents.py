"""Reads JSON files, and says what is wrong with one so that it can be put right without asking again."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from nexus_core.config.json_document import JsonDocument, quick_json
from nexus_core.errors import ConfigError, FileError
from nexus_core.files.reading import MAX_BYTES, read_bytes
from nexus_core.text.visible import visible_line
from nexus_core.values.layer import Skipped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nexus_core.config.json_document import JsonValue
    from nexus_core.config.lines import Lines
    from nexus_core.files.admission import Admission

T = TypeVar("T")

_HEADING = "Configuration Error"


def read_document(path: Path, *, comments: bool = False, empty: JsonValue, quote: bool = True) -> JsonDocument | None:
    """The JSON document in a file, or None when there is no such file; a blank file holds `empty`.

    Args:
        path: The file.
        comments: Whether comments and trailing commas are allowed.
        empty: The value of a file with nothing in it (with `comments`: nothing but comments).
        quote: Whether an error may show lines of the file as they are; say no where any of them may hold a password,
            and their words are covered.

    Raises:
        ConfigError: It is not UTF-8, not JSON, or larger than 1 MiB; the report shows where.
        FileError: It is not a regular file, or cannot be read.
    """
    data = _read(path, read_bytes, MAX_BYTES)
    if data is None:
        return None
    return _document(path, _decode(path, data, quote=quote), comments=comments, empty=empty, quote=quote)


def read_layer_document(
    path: Path,
    admission: Admission,
    *,
    comments: bool = False,
    empty: JsonValue,
    quote: bool = True,
    max_bytes: int = MAX_BYTES,
) -> JsonDocument | Skipped:
    """The JSON document in a file, on behalf of a layer: only if the file may be read, and why not otherwise."""
    text = read_layer_text(path, admission, quote=quote, max_bytes=max_bytes)
    if isinstance(text, Skipped):
        return text
    return _document(path, text, comments=comments, empty=empty, quote=quote)


def read_layer_text(
    path: Path, admission: Admission, *, quote: bool = True, max_bytes: int = MAX_BYTES
) -> str | Skipped:
    """The text of a settings file that is not JSON, on behalf of a layer.

    Raises:
        ConfigError: It is not UTF-8, or larger than `max_bytes` (1 MiB); the report shows where.
        FileError: It is not a regular file, or cannot be read.
    """
    data = _read(path, partial(admission.read_bytes, max_bytes=max_bytes), max_bytes)
    return data if isinstance(data, Skipped) else _decode(path, data, quote=quote)


def setting_error(
    path: Path,
    lines: Lines | None,
    position: tuple[int, int],
    *,
    title: str,
    message: str,
    closing: str,
    heading: str = _HEADING,
) -> ConfigError:
    """The error for something wrong at a position of a file; its report shows the lines around it.

    Lines that may hold a password or a key are never shown.

    Args:
        path: The file.
        lines: The text of the file; None if nothing of it may be shown.
        position: Line and column of what the caret is put under.
        title: The rest of the first line, such as `Invalid setting in <path>`.
        message: What is wrong, one sentence without a final period.
        closing: What to do about it, a whole sentence.
        heading: What the first line begins with.
    """
    from nexus_core.config.excerpt import render_excerpt  # noqa: PLC0415 - only when something is wrong
    from nexus_core.config.lines import Position  # noqa: PLC0415 - as above
    from nexus_core.config.secrecy import secret_lines_around  # noqa: PLC0415 - as above

    line, column = place = Position(*position)
    parts = (
        f"{heading}: {visible_line(title)}",
        f"  Line {line}, Column {column}: {visible_line(message)}",
        render_excerpt(lines, place, secret_lines_around(lines, place)) if lines else "",
        closing,
    )
    report = "\n\n".join(filter(None, parts))
    return ConfigError(message, where=f"{path}:{line}:{column}", hint=closing, report=report)


def syntax_error(
    path: Path, lines: Lines | None, position: tuple[int, int], message: str, *, heading: str = _HEADING
) -> ConfigError:
    """The error for a text that is not JSON at a position."""
    title, closing = f"Invalid JSON in {path}", "Fix the JSON syntax error and try again."
    return setting_error(path, lines, position, title=title, message=message, closing=closing, heading=heading)


def _read(path: Path, read: Callable[[Path], T], max_bytes: int) -> T:
    try:
        return read(path)
    except FileError:
        if _is_oversize(path, max_bytes):
            raise _oversize_error(path, max_bytes) from None
        raise


def _document(path: Path, text: str, *, comments: bool, empty: JsonValue, quote: bool) -> JsonDocument:
    return quick_json(text, comments=comments) or _parse(path, text, comments=comments, empty=empty, quote=quote)


def _parse(path: Path, text: str, *, comments: bool, empty: JsonValue, quote: bool) -> JsonDocument:
    """As our own parser reads a text that is not plain JSON."""
    from nexus_core.config.json_parser import JsonSyntaxError, Span, is_blank, parse_json  # noqa: PLC0415 - as above
    from nexus_core.config.lines import Lines  # noqa: PLC0415 - as above

    try:
        if is_blank(text, comments=comments):
            return JsonDocument(empty, text, root=Span(0, 0, len(text)))
        return parse_json(text, comments=comments)
    except JsonSyntaxError as error:
        from nexus_core.config.covering import cover  # noqa: PLC0415 - only when something is wrong

        lines = Lines(text)
        # The place is told before the message, which need not end by leading to it.
        message = error.message.removesuffix(" at").removesuffix(" starting")
        if not comments and text.startswith(("//", "/*"), error.offset):
            message = "Comments are not allowed in JSON"
        shown = lines if quote else Lines(cover(text))
        raise syntax_error(path, shown, lines.position(error.offset), message) from None


def _decode(path: Path, data: bytes, *, quote: bool) -> str:
    """The text of a file without its byte order mark."""
    mark = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
    zero = data.find(0)
    try:
        text = data[mark:].decode("utf-8")
    except UnicodeDecodeError as error:
        bad = mark + error.start
        offset = min(zero, bad) if zero >= 0 else bad
    else:
        if zero < 0:
            return text
        offset = zero
    from nexus_core.config.encodings import encoding_error  # noqa: PLC0415 - as above

    raise encoding_error(path, data, mark, offset, quote=quote)


def _is_oversize(path: Path, max_bytes: int) -> bool:
    try:
        return path.is_file() and os.path.getsize(path) > max_bytes  # noqa: PTH202 - as `is_file`, without links
    except OSError:
        return False


def _oversize_error(path: Path, max_bytes: int) -> ConfigError:
    # Of the file as a whole, which begins there.
    return setting_error(
        path,
        None,
        (1, 1),
        title=f"Invalid {'TOML' if path.suffix == '.toml' else 'JSON'} in {path}",
        message=f"larger than {max_bytes >> 20} MiB",
        closing="Shorten the file and try again.",
    )
