"""Changes one setting in a file, and only if the result is still valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from nexus_core.config.documents import read_document, setting_error
from nexus_core.config.editing import set_value
from nexus_core.config.json_parser import JsonSyntaxError, parse_json
from nexus_core.config.keys import keys_of, require_known
from nexus_core.config.merging import merge_configs
from nexus_core.config.pointers import join_pointer
from nexus_core.config.servers.normalising import normalise_servers
from nexus_core.config.validation import find_faults
from nexus_core.errors import ConfigError, FileError, UsageError
from nexus_core.files.lock import locked_directory
from nexus_core.files.reading import MAX_BYTES, read_bytes
from nexus_core.files.writing import current_umask, make_directories, write_text_atomically
from nexus_core.values.layer import LayerConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from nexus_core.config.json_document import JsonValue
    from nexus_core.values.settings import Settings

    FindFaults = Callable[[Settings], Iterable[ConfigError]]


def change_setting(
    path: Path, key: str, word: str, *, own: bool = False, write: bool = True, find: FindFaults = find_faults
) -> str:
    """Set `key` in the config.json at `path`, and return the new text of the file.

    Args:
        path: The file; it is made if it is not there.
        key: The dotted name of the setting.
        word: The value as JSON, or a plain word that is taken as text.
        own: Whether it is the user's own file, which nobody else has to read.
        write: Whether to write the file, or only to say what it would hold.
        find: Finds what is wrong with settings; by itself, this knows no plugins.

    Raises:
        UsageError: There is no such setting, or it cannot have that value.
        ConfigError: The file is malformed to begin with.
        FileError: The file or its directory is a link, or cannot be written.
    """
    require_known(key)
    if path.parent.is_symlink():
        raise FileError("is a link", where=str(path.parent), hint="change the file where the link leads to")
    if not write or not path.parent.exists():
        text = _changed(path, key, word, find)  # what is wrong is said before anything is made
        if not write:
            return text
    make_directories(path.parent, mode=0o700 if own else 0o755)
    with locked_directory(path.parent):
        text = _changed(path, key, word, find)
        mode = 0o600 if own else 0o644 & ~current_umask()
        write_text_atomically(path, text, mode=path.stat().st_mode & 0o777 if path.exists() else mode)
    return text


def _changed(path: Path, key: str, word: str, find: FindFaults) -> str:
    """What the file would hold, every other byte of it as it is."""
    document = read_document(path, empty={})
    if document is not None and not isinstance(document.value, dict):
        raise setting_error(
            path,
            document.lines,
            (1, 1),
            title=f"Invalid configuration in {path}",
            message="a configuration must be a JSON object",
            closing="Write {} and try again.",
        )
    try:
        text = set_value((read_bytes(path) or b"").decode(), join_pointer(keys_of(key)), _value(word))
    except ValueError as error:
        raise UsageError(f"cannot set {key}: {error}", where=str(path)) from None
    if len(text.encode()) > MAX_BYTES:
        raise UsageError(f"cannot set {key}: the file would be larger than 1 MiB", where=str(path))
    _check(path, key, text, find)
    return text


def _value(word: str) -> JsonValue:
    try:
        return parse_json(word).value
    except JsonSyntaxError:
        return word


def _check(path: Path, key: str, text: str, find: FindFaults) -> None:
    config = LayerConfig(path, cast("dict[str, object]", parse_json(text.removeprefix("\ufeff")).value))
    try:
        settings = merge_configs(normalise_servers([config], []))
    except ConfigError as error:
        raise UsageError(f"cannot set {key}: {error.what}", where=str(path), hint=error.hint) from None
    for fault in find(settings):
        what = fault.what.removeprefix(f"{key}: ").removeprefix(f"{key} ")  # it has been named already
        raise UsageError(f"cannot set {key}: {what}", where=str(path))
