"""Validated changes of one setting in its file that keep every other byte."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nexus_core.config.jsonc import JsonSyntaxError, is_blank, parse_json
from nexus_core.config.load import read_json, setting_error
from nexus_core.config.merge import is_comment, merge_configs
from nexus_core.config.nexus3 import strip_nexus3_settings
from nexus_core.config.pointers import array_index, follow_keys, join_pointer, split_pointer
from nexus_core.config.renamed import rename_settings
from nexus_core.config.servers import normalize_servers
from nexus_core.config.validate import find_config_errors, require_known_setting, split_setting_name
from nexus_core.errors import ConfigError, FileError, UnknownNameError, UsageError, did_you_mean
from nexus_core.files.read import MAX_FILE_BYTES, read_bytes
from nexus_core.files.write import current_umask, directory_lock, make_directories, write_text_atomically
from nexus_core.text.safety import visible_json
from nexus_core.types.layers import LayerConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from nexus_core.config.jsonc import JsonSpan
    from nexus_core.config.load import JsonDocument, JsonValue
    from nexus_core.types.settings import Settings

DEFAULT_INDENT = "  "

_APPEND_TOKEN = "-"  # noqa: S105 - the token of a JSON pointer for the index after the last item of an array
_BYTE_ORDER_MARK = "\ufeff"
_BLANKS = re.compile(r"[ \t]*")
_LINE_END = re.compile(r"\r\n|\n|\r")
_COMMENT_OR_COMMA = re.compile(r"[ \t\n\r]*(//[^\n\r]*|/\*.*?\*/|,)", re.DOTALL)
_JSON_TYPE_NAMES = {'"': "a string", "t": "a boolean", "f": "a boolean", "n": "null"}


def set_value(text: str, pointer: str, value: JsonValue, *, comments: bool = False) -> str:
    """Return `text` with `value` at `pointer`.

    A new member becomes the last of its object and is laid out like its neighbours; missing parent objects are created.
    In an array, `-` or its length appends; a missing array is created for `-`. A blank text becomes a document.

    Raises:
        JsonSyntaxError: The text is not JSON.
        ValueError: The pointer leads through a value without members or past the end of an array, or the value cannot
            be written as JSON that can be read again.
    """
    tokens = split_pointer(pointer)

    def edit(body: str) -> str:
        if is_blank(body, comments=comments):
            return _new_document(body, _wrap_value(tokens, value))
        return _JsonEditor(body, comments=comments).set(tokens, value)

    return _apply_edit(text, edit, comments=comments)


def remove_value(text: str, pointer: str, *, comments: bool = False) -> str:
    """Return `text` without the value at `pointer`. Comments beside it stay.

    Raises:
        JsonSyntaxError: The text is not JSON.
        ValueError: There is no such value, or it is the whole document.
    """
    tokens = split_pointer(pointer)

    def edit(body: str) -> str:
        if is_blank(body, comments=comments):
            raise ValueError(f"there is nothing at {pointer!r}")
        return _JsonEditor(body, comments=comments).remove(tokens)

    return _apply_edit(text, edit, comments=comments)


def _apply_edit(text: str, edit: Callable[[str], str], *, comments: bool) -> str:
    """Return the edited text after parsing it, so that a file never becomes unreadable."""
    body = text.removeprefix(_BYTE_ORDER_MARK)
    edited = edit(body)
    parse_json(edited, comments=comments)
    return text[: len(text) - len(body)] + edited


class _TextEdit(NamedTuple):
    start: int
    end: int
    text: str = ""


class _MemberTail(NamedTuple):
    comma: int | None  # the offset of the comma after a member
    end: int  # the end of the last comment or comma after it


class _JsonEditor:
    def __init__(self, text: str, *, comments: bool) -> None:
        self._text = text
        self._comments = comments
        self._root = parse_json(text, comments=comments).root
        self._newline = _detect_line_end(text)

    def set(self, tokens: list[str], value: JsonValue) -> str:
        chain = self._follow(tokens)
        missing = tokens[len(chain) - 1 :]
        if missing:
            self._require_place(chain, tokens)
            return self._add(chain, missing[0], _wrap_value(missing[1:], value))
        span = chain[-1]
        old = parse_json(self._text[span.start : span.end], comments=self._comments).value
        if _serialize_json(old) == _serialize_json(value):
            return self._text
        indent = self._indent_of_line(span.key) if self._has_lines(chain) else None
        return self._apply(_TextEdit(span.start, span.end, self._layout(chain, value, indent)))

    def remove(self, tokens: list[str]) -> str:
        chain = self._follow(tokens)
        if len(chain) <= len(tokens):
            self._require_members(chain, tokens)
            raise ValueError(f"there is nothing at {join_pointer(tokens)!r}")
        if not tokens:
            raise ValueError("the whole document cannot be removed")
        container, span = chain[-2:]
        siblings = _list_members(container)
        inside = self._text[container.start + 1 : span.key] + self._text[span.end : container.end - 1]
        if len(siblings) == 1 and not inside.strip(" \t\r\n,"):
            return self._apply(_TextEdit(container.start + 1, container.end - 1))
        index = siblings.index(span)
        comma = self._tail(span.end).comma
        if comma is None and index:
            comma = self._tail(siblings[index - 1].end).comma
        if comma is None:
            return self._apply(self._cut(span.key, span.end))
        if comma > span.start and not self._text[span.end : comma].strip():
            return self._apply(self._cut(span.key, comma + 1))
        return self._apply(self._cut(span.key, span.end), _TextEdit(comma, comma + 1))

    def _follow(self, tokens: list[str]) -> list[JsonSpan]:
        """Return the spans on the path, from the root to the last that exists."""
        chain = [self._root]
        for token in tokens:
            member = chain[-1].member(token)
            if member is None:
                break
            chain.append(member)
        return chain

    def _require_members(self, chain: Sequence[JsonSpan], tokens: list[str]) -> None:
        if chain[-1].inner is None:
            # Only its type, because the value may be a secret.
            kind = _JSON_TYPE_NAMES.get(self._text[chain[-1].start], "a number")
            there = join_pointer(tokens[: len(chain) - 1])
            raise ValueError(f"{join_pointer(tokens)!r} cannot be reached: {there!r} is {kind}, which has no members")

    def _require_place(self, chain: Sequence[JsonSpan], tokens: list[str]) -> None:
        self._require_members(chain, tokens)
        items, token = chain[-1].inner, tokens[len(chain) - 1]
        if isinstance(items, list) and token != _APPEND_TOKEN and array_index(token) != len(items):
            there = join_pointer(tokens[: len(chain) - 1])
            raise ValueError(
                f"{token!r} is not an index of the array at {there!r}: use one up to {len(items)}, or '-' to append"
            )

    def _add(self, chain: Sequence[JsonSpan], token: str, value: JsonValue) -> str:
        container, members = chain[-1], _list_members(chain[-1])
        indent = self._indent_of_members(chain) if self._has_lines(chain) else None
        member = self._layout(chain, value, indent)
        if isinstance(container.inner, dict):
            member = f"{_serialize_json(token)}: {member}"
        after, closing = members[-1].end if members else container.start + 1, container.end - 1
        comma, end = self._tail(after)
        edits = [_TextEdit(after, after, ",")] if members and comma is None else []
        if comma is not None:
            member += ","
        if indent is None:
            edits.append(_TextEdit(end, end, f" {member}" if end > container.start + 1 else member))
        elif members or _LINE_END.search(self._text, end, closing):
            edits.append(_TextEdit(end, end, f"{self._newline}{indent}{member}"))
        else:
            outer = self._indent_of_line(container.start)
            edits.append(_TextEdit(end, closing, f"{self._newline}{indent}{member}{self._newline}{outer}"))
        return self._apply(*edits)

    def _tail(self, offset: int) -> _MemberTail:
        comma = None
        while found := _COMMENT_OR_COMMA.match(self._text, offset):
            offset = found.end()
            comma = offset - 1 if found[1] == "," else comma
        return _MemberTail(comma, offset)

    def _has_lines(self, chain: Sequence[JsonSpan]) -> bool:
        """Return True if the members of the last value get lines of their own, as they or those around it have."""
        span = chain[-1]
        if _LINE_END.search(self._text, span.start, span.end):
            return True
        return not span.inner and (len(chain) == 1 or self._has_lines(chain[:-1]))

    def _layout(self, chain: Sequence[JsonSpan], value: JsonValue, indent: str | None) -> str:
        """Serialize a value for a line with this indent, or in one line if that is None."""
        if indent is None:
            return _serialize_json(value)
        return _serialize_json(value, self._indent_unit(chain)).replace("\n", self._newline + indent)

    def _indent_unit(self, chain: Sequence[JsonSpan]) -> str:
        for span in reversed(chain):
            outer = self._indent_of_line(span.start)
            for member in _list_members(span)[:1]:
                indent = self._indent_before(member.key)
                if indent is not None and indent.startswith(outer) and indent != outer:
                    return indent.removeprefix(outer)
        return DEFAULT_INDENT

    def _indent_of_members(self, chain: Sequence[JsonSpan]) -> str:
        members = _list_members(chain[-1])
        for member in (*members[-1:], *members[:1]):
            indent = self._indent_before(member.key)
            if indent is not None:
                return indent
        return self._indent_of_line(chain[-1].start) + self._indent_unit(chain)

    def _indent_before(self, offset: int) -> str | None:
        """Return the blanks before an offset, or None if something else precedes it in its line."""
        start = self._before_blanks(offset)
        return self._text[start:offset] if start == 0 or self._text[start - 1] in "\r\n" else None

    def _indent_of_line(self, offset: int) -> str:
        start = max(self._text.rfind("\n", 0, offset), self._text.rfind("\r", 0, offset)) + 1
        return self._text[start : self._after_blanks(start)]

    def _cut(self, start: int, end: int) -> _TextEdit:
        """Return an edit that removes a range with the blanks around it, and its lines if they become blank."""
        after = self._after_blanks(end)
        line_end = _LINE_END.match(self._text, after)
        indent = self._indent_before(start)
        if indent is not None and line_end:
            return _TextEdit(start - len(indent), line_end.end())
        if indent is None and (line_end or self._text[after] in "}]"):
            return _TextEdit(self._before_blanks(start), end)
        return _TextEdit(start, after)

    def _before_blanks(self, offset: int) -> int:
        while offset and self._text[offset - 1] in " \t":
            offset -= 1
        return offset

    def _after_blanks(self, offset: int) -> int:
        return _BLANKS.match(self._text, offset).end()  # type: ignore[union-attr] # it matches nothing too

    def _apply(self, *edits: _TextEdit) -> str:
        parts: list[str] = []
        done = 0
        # Two edits at one offset, the comma and the member after it, stay in the order given.
        for edit in sorted(edits, key=lambda edit: edit.start):
            parts += self._text[done : edit.start], edit.text
            done = edit.end
        return "".join(parts) + self._text[done:]


def _new_document(blank: str, value: JsonValue) -> str:
    newline = _detect_line_end(blank)
    comments = blank if blank.strip() else ""
    if comments and not comments.endswith(("\n", "\r")):
        comments += newline
    return comments + _serialize_json(value, DEFAULT_INDENT).replace("\n", newline) + newline


def _wrap_value(tokens: Sequence[str], value: JsonValue) -> JsonValue:
    """Wrap a value in the objects and arrays that lead to it."""
    for token in reversed(tokens):
        value = [value] if token == _APPEND_TOKEN else {token: value}
    return value


def _serialize_json(value: JsonValue, indent: str | None = None) -> str:
    try:
        return visible_json(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent))
    except RecursionError:
        raise ValueError("the value is nested too deeply") from None


def _list_members(span: JsonSpan) -> list[JsonSpan]:
    return list(span.inner.values()) if isinstance(span.inner, dict) else span.inner or []


def _detect_line_end(text: str) -> str:
    found = _LINE_END.search(text)
    return found[0] if found else "\n"


if TYPE_CHECKING:
    FindConfigErrors = Callable[[Settings], Iterable[ConfigError]]


def change_setting(
    path: Path,
    key: str,
    word: str,
    *,
    own: bool = False,
    write: bool = True,
    find: FindConfigErrors = find_config_errors,
) -> str:
    """Set `key` in the config.json at `path`, and return the new text of the file.

    Args:
        path: The file; created if it does not exist.
        key: The dotted name of the setting.
        word: The value as JSON, or a plain word that becomes a string.
        own: True for the user's own file, which other users need not read.
        write: False to only return the new text.
        find: Finds errors in settings; the default knows no plugins.

    Raises:
        UsageError: There is no such setting, or it cannot have that value.
        ConfigError: The file is malformed to begin with.
        FileError: The file or its directory is a link, or cannot be written.
    """
    require_known_setting(key)
    if path.parent.is_symlink():
        raise FileError("is a link", where=str(path.parent), hint="change the file where the link leads to")
    if not write or not path.parent.exists():
        text = _change_text(path, key, word, find)  # raises before anything is created
        if not write:
            return text
    make_directories(path.parent, mode=0o700 if own else 0o755)
    with directory_lock(path.parent):
        text = _change_text(path, key, word, find)
        mode = 0o600 if own else 0o644 & ~current_umask()
        write_text_atomically(path, text, mode=path.stat().st_mode & 0o777 if path.exists() else mode)
    return text


def remove_setting(path: Path, key: str, *, write: bool = True, find: FindConfigErrors = find_config_errors) -> str:
    """Remove `key` from the config.json at `path`, and return the new text of the file.

    A group of settings that becomes empty is removed too. Arguments are those of `change_setting`.

    Raises:
        UnknownNameError: There is no such setting, and the file does not have it; names the nearest one.
        UsageError: The setting is not set there, or the file would not be valid without it.
        ConfigError: The file is malformed.
        FileError: The file or its directory is a link, or cannot be written.
    """
    if path.parent.is_symlink():
        raise FileError("is a link", where=str(path.parent), hint="change the file where the link leads to")
    if not write or not path.exists():
        return _remove_from_text(path, key, find)
    with directory_lock(path.parent):
        text = _remove_from_text(path, key, find)
        write_text_atomically(path, text, mode=path.stat().st_mode & 0o777)
    return text


def _remove_from_text(path: Path, key: str, find: FindConfigErrors) -> str:
    document = read_json(path, empty={})
    settings = {} if document is None else require_object(path, document)
    keys = _find_keys(settings, key)
    if not keys:
        raise _build_unset_error(path, key, settings)
    while len(keys) > 1 and len(follow_keys(settings, keys[:-1])) == 1:
        keys = keys[:-1]
    before = (read_bytes(path) or b"").decode()
    text = remove_value(before, join_pointer(keys))
    known = {error.what for error in find_text_errors(path, before, find)}
    for error in find_text_errors(path, text, find):
        if error.what not in known:
            raise UsageError(f"cannot unset {key}: {error.what}", where=str(path), hint=error.hint)
    return text


def _find_keys(settings: dict[str, Any], name: str) -> list[str]:
    """Return the keys that lead to a setting by its dotted name, or []. Keys may have dots themselves."""
    for first, value in settings.items():
        if name == first:
            return [first]
        if name.startswith(f"{first}.") and isinstance(value, dict):
            rest = _find_keys(value, name[len(first) + 1 :])
            if rest:
                return [first, *rest]
    return []


def _build_unset_error(path: Path, key: str, settings: dict[str, Any]) -> UsageError:
    """Return the error for a setting that the file does not have."""
    names = _list_names(settings)
    try:
        require_known_setting(key)
    except UnknownNameError:
        return UnknownNameError(f"setting in {path}", key, names)
    hint = did_you_mean(key, names) or "`nexus config show --origins` says which file sets what"
    return UsageError(f"{key} is not set in {path}", hint=hint)


def _list_names(settings: dict[str, Any], above: str = "") -> list[str]:
    names = []
    for key, value in settings.items():
        if is_comment(key):
            continue
        names.append(f"{above}{key}")
        names += _list_names(value, f"{above}{key}.") if isinstance(value, dict) else []
    return names


def _change_text(path: Path, key: str, word: str, find: FindConfigErrors) -> str:
    """Return the new text of the file, with every other byte unchanged."""
    document = read_json(path, empty={})
    if document is not None:
        require_object(path, document)
    try:
        text = set_value((read_bytes(path) or b"").decode(), join_pointer(split_setting_name(key)), _parse_value(word))
    except ValueError as error:
        raise UsageError(f"cannot set {key}: {error}", where=str(path)) from None
    if len(text.encode()) > MAX_FILE_BYTES:
        raise UsageError(f"cannot set {key}: the file would be larger than 1 MiB", where=str(path))
    _require_valid(path, key, text, find)
    return text


def _parse_value(word: str) -> JsonValue:
    try:
        return parse_json(word).value
    except JsonSyntaxError:
        return word


def _require_valid(path: Path, key: str, text: str, find: FindConfigErrors) -> None:
    """Raise a UsageError if the text is not valid. `key` is the setting that was set."""
    for error in find_text_errors(path, text, find):
        what = error.what.removeprefix(f"{key}: ").removeprefix(f"{key} ")  # the message names it already
        raise UsageError(f"cannot set {key}: {what}", where=str(path), hint=error.hint)


def find_text_errors(path: Path, text: str, find: FindConfigErrors) -> Iterator[ConfigError]:
    """Yield the errors in the text of a file."""
    config = LayerConfig(path, cast("dict[str, object]", parse_json(text.removeprefix("\ufeff")).value))
    configs, _ = strip_nexus3_settings([config])
    configs, _ = rename_settings(configs)
    try:
        settings = merge_configs(normalize_servers(configs, []))
    except ConfigError as error:
        yield error
    else:
        yield from (ConfigError(error.what) for error in find(settings))


def require_object(path: Path, document: JsonDocument) -> dict[str, Any]:
    """Return the settings in a document, or raise a ConfigError if it is not an object."""
    if isinstance(document.value, dict):
        return document.value
    raise setting_error(
        path,
        document.lines,
        (1, 1),
        title=f"Invalid configuration in {path}",
        message="a configuration must be a JSON object",
        closing="Write {} and try again.",
    )
