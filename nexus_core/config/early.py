"""The few settings that must be known before any plugin is asked: how far up to look, and whom not to load.

What they say to plugins is handed on unchecked, for what a plugin must know before settings are merged.
`ancestor_depth` comes from the local config.json, else the user's own, else it is 2; ancestors cannot change
it, because they are only found with it. `plugins.disabled` is the user's own decision: a project has no say. Everything
else in these files is checked when the layers are loaded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.values.request import DEFAULT_ANCESTOR_DEPTH

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core.config.json_document import JsonDocument
    from nexus_core.errors import ConfigError

MAX_ANCESTOR_DEPTH = 10


class EarlySettings(NamedTuple):
    """What is known before plugins are loaded."""

    ancestor_depth: int = DEFAULT_ANCESTOR_DEPTH
    disabled_plugins: tuple[str, ...] = ()
    plugin_tables: tuple[Mapping[str, object], ...] = ()


def read_early_settings(home: Path, local: Path) -> EarlySettings:
    """Read `home`/config.json and `local`/config.json, both optional.

    Raises:
        ConfigError: A file is not valid JSON, or one of the values is not allowed.
        FileError: A file cannot be read.
    """
    own = _read(home / "config.json")
    project = own if local == home else _read_project(local)
    depth = _ancestor_depth(project)
    if depth is None:
        depth = _ancestor_depth(own)
    return EarlySettings(
        ancestor_depth=DEFAULT_ANCESTOR_DEPTH if depth is None else depth,
        disabled_plugins=_disabled_plugins(own),
        plugin_tables=tuple(table for table in map(_plugin_table, (own, project)) if table),
    )


def read_user_setting(home: Path, group: str, key: str) -> object:
    """Return a setting of the user's own config.json as written, unchecked; None if it is not set.

    Raises:
        ConfigError: The file is not valid JSON.
        FileError: The file cannot be read.
    """
    own = _read(home / "config.json")
    return own.get(group, key) if own else None


class _File(NamedTuple):
    path: Path
    document: JsonDocument

    def get(self, group: str, key: str) -> object:
        settings = self.document.value
        values = settings.get(group) if isinstance(settings, dict) else None
        return values.get(key) if isinstance(values, dict) else None

    def error(self, pointer: str, message: str) -> ConfigError:
        from nexus_core.config.documents import setting_error  # noqa: PLC0415 - only where there is a file

        return setting_error(
            self.path,
            self.document.lines,
            self.document.position(pointer),
            title=f"Invalid setting in {self.path}",
            message=message,
            closing="Correct the setting and try again.",
        )


def _read(path: Path) -> _File | None:
    if not os.path.lexists(path):
        return None
    from nexus_core.config.documents import read_document  # noqa: PLC0415 - many directories have no config.json

    document = read_document(path, empty={})
    return None if document is None else _File(path, document)


def _read_project(directory: Path) -> _File | None:
    path = directory / "config.json"
    if not os.path.lexists(path):
        return None
    from nexus_core.config.documents import read_layer_document  # noqa: PLC0415 - as above
    from nexus_core.files.admission import Admission  # noqa: PLC0415 - as above
    from nexus_core.values.layer import Layer, Skipped  # noqa: PLC0415 - as above

    # A link out of the project is not followed, not even to say what is wrong with it.
    admission = Admission(Layer("local", directory, "local", root=directory.parent))
    document = read_layer_document(path, admission, empty={})
    return None if isinstance(document, Skipped) else _File(path, document)


def _ancestor_depth(file: _File | None) -> int | None:
    depth = file.get("context", "ancestor_depth") if file else None
    if file is None or depth is None:
        return None
    # bool is an int to Python, but `true` is not a depth. What is none is told when all settings are checked.
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= MAX_ANCESTOR_DEPTH:
        return None
    return depth


def _plugin_table(file: _File | None) -> Mapping[str, object]:
    """What a file says to plugins; whether it may is found when settings are checked."""
    settings = file.document.value if file else None
    table = settings.get("plugins") if isinstance(settings, dict) else None
    return table if isinstance(table, dict) else {}


def _disabled_plugins(file: _File | None) -> tuple[str, ...]:
    names = file.get("plugins", "disabled") if file else None
    if file is None or names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise file.error("/plugins/disabled", "plugins.disabled must be a list of plugin names")
    return tuple(str(name) for name in names)
