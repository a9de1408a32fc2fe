"""Settings files as JSON documents, and the settings needed before plugins.

A text that is small, plain and valid is parsed by Python's own json module, many times as fast as by `jsonc`. Texts
that the two might treat differently, invalid texts, and the positions of values are left to `jsonc`.

Early settings: `ancestor_depth` comes from the local config.json, else the user's own, else it is 2. Ancestors cannot
change it, because it decides which ancestors are found. `plugins.disabled` counts in the user's own file only. The
table `plugins` of these files is passed on unchecked, for plugins that need it before settings are merged. Everything
else is validated when the layers are loaded.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from codecs import BOM_UTF8
from functools import cache, cached_property, partial
from json import JSONDecoder
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar

from nexus_core.config.pointers import split_pointer
from nexus_core.errors import ConfigError, FileError
from nexus_core.files.read import MAX_FILE_BYTES, LayerReader, read_bytes
from nexus_core.text.safety import visible_line
from nexus_core.types.layers import Layer, SkippedFile
from nexus_core.types.request import DEFAULT_ANCESTOR_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nexus_core.config.jsonc import JsonSpan


class TextPosition(NamedTuple):
    """A position in a text. The first line and the first column are 1."""

    line: int
    column: int


class LineIndex:
    """Converts offsets of a text into lines and columns."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.text))]

    def position(self, offset: int) -> TextPosition:
        """Return the line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return TextPosition(line, offset - self._starts[line - 1] + 1)

    def line(self, number: int) -> str | None:
        """Return the text of a line without its line end, or None if there is no such line."""
        if not 1 <= number <= len(self._starts):
            return None
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[self._starts[number - 1] : end].rstrip("\r\n")


MAX_DEPTH = 64
MAX_VALUES = 100_000
"""Most values of a document: without a limit, 1 MiB of `[0,0,0,…` takes seconds and 150 MiB of memory."""
MAX_INTEGER_DIGITS = 4000
"""Most digits of an integer; Python refuses to convert much longer ones."""

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | float | bool | None
"""Any value of a JSON document."""

_INFINITY = float("inf")


class JsonDocument:
    """A JSON text and its value.

    Args:
        value: The parsed value.
        text: The text.
        comments: True if comments and trailing commas are allowed in it.
        root: The span of the root with those of all values inside; None to parse it when it is needed.
    """

    def __init__(self, value: JsonValue, text: str, *, comments: bool = False, root: JsonSpan | None = None) -> None:
        self.value = value
        self._text = text
        self._comments = comments
        if root is not None:
            self.root = root

    @cached_property
    def root(self) -> JsonSpan:
        """The span of the root with those of all values inside."""
        from nexus_core.config.jsonc import parse_json

        return parse_json(self._text, comments=self._comments).root

    @cached_property
    def lines(self) -> LineIndex:
        """The lines of the text."""
        return LineIndex(self._text)

    def span(self, pointer: str) -> JsonSpan | None:
        """Return the span of the value at a pointer, or None if there is no such value."""
        span, missing = self._follow(pointer)
        return None if missing else span

    def position(self, pointer: str) -> TextPosition:
        """Return the line and column of a pointer: of its key if it has one, else of the nearest existing parent."""
        return self.lines.position(self._follow(pointer)[0].key)

    def _follow(self, pointer: str) -> tuple[JsonSpan, bool]:
        span = self.root
        for token in split_pointer(pointer):
            member = span.member(token)
            if member is None:
                return span, True
            span = member
        return span, False


def parse_plain_json(text: str, *, comments: bool = False) -> JsonDocument | None:
    """Return the document in a text, or None if `parse_json` has to parse it."""
    if not _is_plain(text):
        return None
    try:
        return JsonDocument(_build_decoder().decode(text), text, comments=comments)
    except ValueError:
        return None


def _is_plain(text: str) -> bool:
    """Return True if a text can be neither too deep nor too large, and has no escaped surrogates."""
    return (
        len(text) <= MAX_VALUES
        and text.count("{") + text.count("[") <= MAX_DEPTH
        and "\\ud" not in text
        and "\\uD" not in text
    )


@cache
def _build_decoder() -> JSONDecoder:
    return JSONDecoder(
        object_pairs_hook=_build_object,
        parse_int=_parse_integer,
        parse_float=_parse_number,
        parse_constant=_refuse_word,
    )


def _build_object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("duplicate key")
    return members


def _parse_integer(digits: str) -> int:
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else _refuse_word(digits)


def _parse_number(digits: str) -> float:
    number = float(digits)
    return number if -_INFINITY < number < _INFINITY else _refuse_word(digits)


def _refuse_word(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


T = TypeVar("T")

_ERROR_HEADING = "Configuration Error"


def read_json(path: Path, *, comments: bool = False, empty: JsonValue, quote: bool = True) -> JsonDocument | None:
    """Return the JSON document in a file, or None if there is no such file. A blank file holds `empty`.

    Args:
        path: The file.
        comments: True to allow comments and trailing commas.
        empty: The value of a blank file (with `comments`: one with nothing but comments).
        quote: True if an error may show lines of the file; False if any line may hold a password, so that their words
            are masked.

    Raises:
        ConfigError: It is not UTF-8, not JSON, or larger than 1 MiB; the report shows where.
        FileError: It is not a regular file, or cannot be read.
    """
    data = _read_limited(path, read_bytes, MAX_FILE_BYTES)
    if data is None:
        return None
    return _parse_document(path, _decode_utf8(path, data, quote=quote), comments=comments, empty=empty, quote=quote)


def read_layer_json(
    path: Path,
    admission: LayerReader,
    *,
    comments: bool = False,
    empty: JsonValue,
    quote: bool = True,
    max_bytes: int = MAX_FILE_BYTES,
) -> JsonDocument | SkippedFile:
    """Return the JSON document in a file on behalf of a layer, or why the file may not be read."""
    text = read_layer_text(path, admission, quote=quote, max_bytes=max_bytes)
    if isinstance(text, SkippedFile):
        return text
    return _parse_document(path, text, comments=comments, empty=empty, quote=quote)


def read_layer_text(
    path: Path, admission: LayerReader, *, quote: bool = True, max_bytes: int = MAX_FILE_BYTES
) -> str | SkippedFile:
    """Return the text of a settings file that is not JSON, on behalf of a layer.

    Raises:
        ConfigError: It is not UTF-8, or larger than `max_bytes` (1 MiB); the report shows where.
        FileError: It is not a regular file, or cannot be read.
    """
    data = _read_limited(path, partial(admission.read_bytes, max_bytes=max_bytes), max_bytes)
    return data if isinstance(data, SkippedFile) else _decode_utf8(path, data, quote=quote)


def setting_error(
    path: Path,
    lines: LineIndex | None,
    position: tuple[int, int],
    *,
    title: str,
    message: str,
    closing: str,
    heading: str = _ERROR_HEADING,
) -> ConfigError:
    """Build the error for a position of a file. Its report shows the lines around it.

    Lines that may hold a password or a key are never shown.

    Args:
        path: The file.
        lines: The text of the file; None if nothing of it may be shown.
        position: Line and column for the caret.
        title: The rest of the first line, such as `Invalid setting in <path>`.
        message: What is wrong, one sentence without a final period.
        closing: What to do about it, a full sentence.
        heading: The start of the first line.
    """
    from nexus_core.config.excerpt import render_excerpt
    from nexus_core.config.secrets import find_secret_lines

    line, column = place = TextPosition(*position)
    parts = (
        f"{heading}: {visible_line(title)}",
        f"  Line {line}, Column {column}: {visible_line(message)}",
        render_excerpt(lines, place, find_secret_lines(lines, place)) if lines else "",
        closing,
    )
    report = "\n\n".join(filter(None, parts))
    return ConfigError(message, where=f"{path}:{line}:{column}", hint=closing, report=report)


def syntax_error(
    path: Path, lines: LineIndex | None, position: tuple[int, int], message: str, *, heading: str = _ERROR_HEADING
) -> ConfigError:
    """Build the error for a text that is not JSON at a position."""
    title, closing = f"Invalid JSON in {path}", "Fix the JSON syntax error and try again."
    return setting_error(path, lines, position, title=title, message=message, closing=closing, heading=heading)


def _read_limited(path: Path, read: Callable[[Path], T], max_bytes: int) -> T:
    try:
        return read(path)
    except FileError:
        if _is_oversize(path, max_bytes):
            raise _oversize_error(path, max_bytes) from None
        raise


def _parse_document(path: Path, text: str, *, comments: bool, empty: JsonValue, quote: bool) -> JsonDocument:
    return parse_plain_json(text, comments=comments) or _parse_with_positions(
        path, text, comments=comments, empty=empty, quote=quote
    )


def _parse_with_positions(path: Path, text: str, *, comments: bool, empty: JsonValue, quote: bool) -> JsonDocument:
    """Parse a text that is not plain JSON with our own parser."""
    from nexus_core.config.jsonc import JsonSpan, JsonSyntaxError, is_blank, parse_json

    try:
        if is_blank(text, comments=comments):
            return JsonDocument(empty, text, root=JsonSpan(0, 0, len(text)))
        return parse_json(text, comments=comments)
    except JsonSyntaxError as error:
        from nexus_core.config.secrets import cover_text

        lines = LineIndex(text)
        # The report names the position before the message, so the message need not lead to it.
        message = error.message.removesuffix(" at").removesuffix(" starting")
        if not comments and text.startswith(("//", "/*"), error.offset):
            message = "Comments are not allowed in JSON"
        shown = lines if quote else LineIndex(cover_text(text, error.offset))
        raise syntax_error(path, shown, lines.position(error.offset), message) from None


def _decode_utf8(path: Path, data: bytes, *, quote: bool) -> str:
    """Return the text of a file without its byte order mark."""
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
    from nexus_core.config.excerpt import encoding_error

    raise encoding_error(path, data, mark, offset, quote=quote)


def _is_oversize(path: Path, max_bytes: int) -> bool:
    try:
        return path.is_file() and os.path.getsize(path) > max_bytes  # noqa: PTH202 - as `is_file`, without links
    except OSError:
        return False


def _oversize_error(path: Path, max_bytes: int) -> ConfigError:
    # The error is about the file as a whole, so it points to the start.
    return setting_error(
        path,
        None,
        (1, 1),
        title=f"Invalid {'TOML' if path.suffix == '.toml' else 'JSON'} in {path}",
        message=f"larger than {max_bytes >> 20} MiB",
        closing="Shorten the file and try again.",
    )


MAX_ANCESTOR_DEPTH = 10


class EarlySettings(NamedTuple):
    """The settings that are known before plugins are loaded."""

    ancestor_depth: int = DEFAULT_ANCESTOR_DEPTH
    disabled_plugins: tuple[str, ...] = ()
    plugin_tables: tuple[Mapping[str, object], ...] = ()


def read_early_settings(home: Path, local: Path) -> EarlySettings:
    """Read `home`/config.json and `local`/config.json, both optional.

    Raises:
        ConfigError: A file is not valid JSON, or one of the values is not allowed.
        FileError: A file cannot be read.
    """
    own = _read_settings_file(home / "config.json")
    project = own if local == home else _read_project_file(local)
    depth = _get_ancestor_depth(project)
    if depth is None:
        depth = _get_ancestor_depth(own)
    return EarlySettings(
        ancestor_depth=DEFAULT_ANCESTOR_DEPTH if depth is None else depth,
        disabled_plugins=_get_disabled_plugins(own),
        plugin_tables=tuple(table for table in map(_get_plugin_table, (own, project)) if table),
    )


def read_user_setting(home: Path, group: str, key: str) -> object:
    """Return a setting of the user's own config.json as written, unchecked, or None if it is not set.

    Raises:
        ConfigError: The file is not valid JSON.
        FileError: The file cannot be read.
    """
    own = _read_settings_file(home / "config.json")
    return own.get(group, key) if own else None


class _SettingsFile(NamedTuple):
    path: Path
    document: JsonDocument

    def get(self, group: str, key: str) -> object:
        settings = self.document.value
        values = settings.get(group) if isinstance(settings, dict) else None
        return values.get(key) if isinstance(values, dict) else None

    def error(self, pointer: str, message: str) -> ConfigError:
        return setting_error(
            self.path,
            self.document.lines,
            self.document.position(pointer),
            title=f"Invalid setting in {self.path}",
            message=message,
            closing="Correct the setting and try again.",
        )


def _read_settings_file(path: Path) -> _SettingsFile | None:
    if not os.path.lexists(path):
        return None

    document = read_json(path, empty={})
    return None if document is None else _SettingsFile(path, document)


def _read_project_file(directory: Path) -> _SettingsFile | None:
    path = directory / "config.json"
    if not os.path.lexists(path):
        return None
    # A link out of the project is not followed, not even for an error message.
    admission = LayerReader(Layer("local", directory, "local", root=directory.parent))
    document = read_layer_json(path, admission, empty={})
    return None if isinstance(document, SkippedFile) else _SettingsFile(path, document)


def _get_ancestor_depth(file: _SettingsFile | None) -> int | None:
    depth = file.get("context", "ancestor_depth") if file else None
    if file is None or depth is None:
        return None
    # bool is an int to Python, but `true` is not a depth. Validation of all settings reports a wrong value.
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= MAX_ANCESTOR_DEPTH:
        return None
    return depth


def _get_plugin_table(file: _SettingsFile | None) -> Mapping[str, object]:
    """Return the table `plugins` of a file, not validated."""
    settings = file.document.value if file else None
    table = settings.get("plugins") if isinstance(settings, dict) else None
    return table if isinstance(table, dict) else {}


def _get_disabled_plugins(file: _SettingsFile | None) -> tuple[str, ...]:
    names = file.get("plugins", "disabled") if file else None
    if file is None or names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise file.error("/plugins/disabled", "plugins.disabled must be a list of plugin names")
    return tuple(str(name) for name in names)
