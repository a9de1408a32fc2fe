"""Changes settings in a file, and only if the result is still valid."""

from __future__ import annotations

import os
import re
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nexus_core.config.documents import read_document, setting_error
from nexus_core.config.dotted import follow_keys
from nexus_core.config.editing import remove_value, set_value
from nexus_core.config.json_parser import JsonSyntaxError, parse_json
from nexus_core.config.keys import keys_of, require_known
from nexus_core.config.merging import merge_configs
from nexus_core.config.nexus3 import find_nexus3_settings, find_untouched_keys, migrate_text, strip_nexus3_settings
from nexus_core.config.pointers import join_pointer
from nexus_core.config.servers.normalising import normalise_servers
from nexus_core.config.validation import find_faults
from nexus_core.errors import ConfigError, FileError, UnknownNameError, UsageError
from nexus_core.files.lock import locked_directory
from nexus_core.files.reading import MAX_BYTES, read_bytes
from nexus_core.files.writing import current_umask, make_directories, write_bytes_atomically, write_text_atomically
from nexus_core.values.layer import LayerConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from nexus_core.config.json_document import JsonDocument, JsonValue
    from nexus_core.config.nexus3 import MigratedSetting
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


def remove_setting(path: Path, key: str, *, write: bool = True, find: FindFaults = find_faults) -> str:
    """Remove `key` from the config.json at `path`, and return the new text of the file.

    A group of settings that becomes empty by that is removed, too. Arguments are those of `change_setting`.

    Raises:
        UnknownNameError: The file does not have that setting; says which of its settings is near.
        UsageError: The file would not be valid without it.
        ConfigError: The file is malformed.
        FileError: The file or its directory is a link, or cannot be written.
    """
    if path.parent.is_symlink():
        raise FileError("is a link", where=str(path.parent), hint="change the file where the link leads to")
    if not write or not path.exists():
        return _without(path, key, find)
    with locked_directory(path.parent):
        text = _without(path, key, find)
        write_text_atomically(path, text, mode=path.stat().st_mode & 0o777)
    return text


def _without(path: Path, key: str, find: FindFaults) -> str:
    document = read_document(path, empty={})
    settings = {} if document is None else _require_object(path, document)
    keys = _keys_in(settings, key)
    if not keys:
        raise UnknownNameError(f"setting in {path}", key, _names_in(settings))
    while len(keys) > 1 and len(follow_keys(settings, keys[:-1])) == 1:
        keys = keys[:-1]
    before = (read_bytes(path) or b"").decode()
    text = remove_value(before, join_pointer(keys))
    known = {fault.what for fault in _find_text_faults(path, before, find)}
    for fault in _find_text_faults(path, text, find):
        if fault.what not in known:
            raise UsageError(f"cannot unset {key}: {fault.what}", where=str(path), hint=fault.hint)
    return text


def _keys_in(settings: dict[str, Any], name: str) -> list[str]:
    """Return the keys that lead to a setting by its dotted name, some of which may have dots themselves; else none."""
    for first, value in settings.items():
        if name == first:
            return [first]
        if name.startswith(f"{first}.") and isinstance(value, dict):
            rest = _keys_in(value, name[len(first) + 1 :])
            if rest:
                return [first, *rest]
    return []


def _names_in(settings: dict[str, Any], above: str = "") -> list[str]:
    names = []
    for key, value in settings.items():
        names.append(f"{above}{key}")
        names += _names_in(value, f"{above}{key}.") if isinstance(value, dict) else []
    return names


class ConfigMigration(NamedTuple):
    """What `migrate_config` did, or would do.

    Attributes:
        text: The new text of the file.
        moved: What became of every setting of NEXUS3.
        kept: The keys of the settings that stay as they are.
        faults: What is wrong with those.
        backup: The file as it was; None where nothing was written.
    """

    text: str
    moved: list[MigratedSetting]
    kept: list[tuple[str, ...]]
    faults: tuple[str, ...] = ()
    backup: Path | None = None


def migrate_config(
    path: Path, *, allowed: Callable[[str], bool], write: bool, find: FindFaults = find_faults
) -> ConfigMigration | None:
    """Translate the settings of NEXUS3 in a config.json, keeping the file as it was beside it; None for nothing to do.

    Args:
        path: The file.
        allowed: True if the file may have a setting, by its dotted name.
        write: Whether to write, or only to say what would be written.
        find: Finds what is wrong with settings.

    A value that the setting of Nexus cannot have is left out; whatever else was wrong in the file before stays in it.

    Raises:
        ConfigError: The file is malformed.
        UsageError: A setting cannot be put where it belongs.
        FileError: It is a link, or cannot be written.
    """
    if not path.exists():
        return None
    if path.is_symlink() or path.parent.is_symlink():  # said before anything is written beside it
        linked = path if path.is_symlink() else path.parent
        raise FileError("is a link", where=str(linked), hint="migrate the file where the link leads to")
    if not write:
        return _migrated(path, allowed, find)
    with locked_directory(path.parent):
        found = _migrated(path, allowed, find)
        if found is None:
            return None
        mode = path.stat().st_mode & 0o777
        names = (f"{path.name}.nexus3{f'-{number}' if number > 1 else ''}" for number in count(1))
        backup = next(each for name in names if not os.path.lexists(each := path.with_name(name)))
        write_bytes_atomically(backup, read_bytes(path) or b"", mode=mode)
        write_text_atomically(path, found.text, mode=mode)
    return found._replace(backup=backup)


def _migrated(path: Path, allowed: Callable[[str], bool], find: FindFaults) -> ConfigMigration | None:
    document = read_document(path, empty={})
    if document is None:
        return None
    settings = _require_object(path, document)
    if not find_nexus3_settings(settings):
        return None
    refused: dict[tuple[str, ...], str] = {}
    while True:
        try:
            text, moved = migrate_text((read_bytes(path) or b"").decode(), allowed, refused)
        except ValueError as error:
            raise UsageError(f"cannot migrate: {error}", where=str(path)) from None
        faults = [fault.what for fault in _find_text_faults(path, text, find)]
        wrong = {each.target: what for each in moved if each.target and (what := _name_fault(each.target, faults))}
        if not wrong:
            return ConfigMigration(text, moved, find_untouched_keys(settings), tuple(faults))
        refused |= wrong


def _name_fault(keys: Iterable[str], faults: Iterable[str]) -> str:
    """Return what is wrong with a setting; "" for nothing."""
    name = ".".join(keys)
    return next((what for what in faults if re.match(rf"{re.escape(name)}(?![\w.-])", what)), "")


def _changed(path: Path, key: str, word: str, find: FindFaults) -> str:
    """What the file would hold, every other byte of it as it is."""
    document = read_document(path, empty={})
    if document is not None:
        _require_object(path, document)
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
    """Refuse what is not valid; `key` is the setting that was set."""
    for fault in _find_text_faults(path, text, find):
        what = fault.what.removeprefix(f"{key}: ").removeprefix(f"{key} ")  # it has been named already
        raise UsageError(f"cannot set {key}: {what}", where=str(path), hint=fault.hint)


def _find_text_faults(path: Path, text: str, find: FindFaults) -> Iterator[ConfigError]:
    """Find what is wrong with the text of a file."""
    config = LayerConfig(path, cast("dict[str, object]", parse_json(text.removeprefix("\ufeff")).value))
    configs, _ = strip_nexus3_settings([config])
    try:
        settings = merge_configs(normalise_servers(configs, []))
    except ConfigError as error:
        yield error
    else:
        yield from (ConfigError(fault.what) for fault in find(settings))


def _require_object(path: Path, document: JsonDocument) -> dict[str, Any]:
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
