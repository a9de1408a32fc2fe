"""The few settings that must be known before any plugin is asked: how far up to look, and whom not to load.

`ancestor_depth` comes from the local config.json, else the user's own, else it is 2; ancestors cannot change
it, because they are only found with it. `plugins.disabled` is the user's own decision: a project has no say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import ConfigError
from nexus_core.files.reading import read_text
from nexus_core.values.request import DEFAULT_ANCESTOR_DEPTH

if TYPE_CHECKING:
    from pathlib import Path

MAX_ANCESTOR_DEPTH = 10


class EarlySettings(NamedTuple):
    """What is known before plugins are loaded."""

    ancestor_depth: int = DEFAULT_ANCESTOR_DEPTH
    disabled_plugins: tuple[str, ...] = ()


def read_early_settings(home: Path, local: Path) -> EarlySettings:
    """Read `home`/config.json and `local`/config.json, both optional.

    Raises:
        ConfigError: A file is not valid JSON, or one of the values is not allowed.
        FileError: A file cannot be read.
    """
    own, project = home / "config.json", local / "config.json"
    own_settings = _read_object(own)
    project_settings = own_settings if project == own else _read_object(project)
    depth = _ancestor_depth(project, project_settings)
    if depth is None:
        depth = _ancestor_depth(own, own_settings)
    return EarlySettings(
        ancestor_depth=DEFAULT_ANCESTOR_DEPTH if depth is None else depth,
        disabled_plugins=_disabled_plugins(own, own_settings),
    )


def _read_object(path: Path) -> dict[str, object]:
    text = read_text(path)
    if text is None or not text.strip():
        return {}
    import json  # noqa: PLC0415 - most directories have no config.json

    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"invalid JSON: {error.msg}",
            where=f"{path}:{error.lineno}:{error.colno}",
            hint="fix the JSON syntax error and try again",
        ) from None
    except RecursionError:
        raise ConfigError("invalid JSON: nested too deeply", where=str(path)) from None
    if not isinstance(value, dict):
        raise ConfigError("a configuration must be a JSON object", where=str(path), hint="write { … }")
    return value


def _ancestor_depth(path: Path, settings: dict[str, object]) -> int | None:
    depth = _table(path, settings, "context").get("ancestor_depth")
    if depth is None:
        return None
    # bool is an int to Python, but `true` is not a depth.
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= MAX_ANCESTOR_DEPTH:
        raise ConfigError(
            f"context.ancestor_depth must be a whole number from 0 to {MAX_ANCESTOR_DEPTH}, not {depth!r}",
            where=str(path),
        )
    return depth


def _disabled_plugins(path: Path, settings: dict[str, object]) -> tuple[str, ...]:
    names = _table(path, settings, "plugins").get("disabled", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError("plugins.disabled must be a list of plugin names", where=str(path))
    return tuple(names)


def _table(path: Path, settings: dict[str, object], key: str) -> dict[str, object]:
    table = settings.get(key, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{key} must be a JSON object", where=str(path), hint=f'write "{key}": {{ … }}')
    return table
