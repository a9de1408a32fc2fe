"""Changes one setting in a file, and only if the result is still valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from nexus_core.config.documents import read_document
from nexus_core.config.editing import set_value
from nexus_core.config.json_parser import JsonSyntaxError, parse_json
from nexus_core.config.keys import known_keys, pointer_of
from nexus_core.config.merging import merge_configs
from nexus_core.config.servers.normalising import normalise_servers
from nexus_core.config.validation import find_faults
from nexus_core.errors import ConfigError, UnknownNameError, UsageError
from nexus_core.files.reading import read_text
from nexus_core.files.writing import write_text_atomically
from nexus_core.values.layer import LayerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.config.json_document import JsonValue


def change_setting(path: Path, key: str, word: str, *, write: bool = True) -> str:
    """Set `key` in the config.json at `path`, and return the new text of the file.

    Args:
        path: The file; it is made if it is not there.
        key: The dotted name of the setting.
        word: The value as JSON, or a plain word that is taken as text.
        write: Whether to write the file, or only to say what it would hold.

    Raises:
        UsageError: There is no such setting, or it cannot have that value.
        ConfigError: The file is malformed to begin with.
    """
    if key not in known_keys() and not key.startswith("plugins."):
        raise UnknownNameError("setting", key, known_keys())
    read_document(path, empty={})  # says what is wrong with the file before anything is done to it
    text = set_value(read_text(path) or "", pointer_of(key), _value(word))
    _check(path, key, text)
    if write:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        write_text_atomically(path, text, mode=mode)
    return text


def _value(word: str) -> JsonValue:
    try:
        return parse_json(word).value
    except JsonSyntaxError:
        return word


def _check(path: Path, key: str, text: str) -> None:
    config = LayerConfig(path, cast("dict[str, object]", parse_json(text).value))
    try:
        settings = merge_configs(normalise_servers([config], []))
    except ConfigError as error:
        raise UsageError(f"cannot set {key}: {error.what}", where=str(path), hint=error.hint) from None
    for fault in find_faults(settings):
        raise UsageError(f"cannot set {key}: {fault.what}", where=str(path))
