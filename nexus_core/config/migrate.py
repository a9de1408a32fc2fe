"""Migration of settings of NEXUS3 to those of Nexus, in the file that both share."""

from __future__ import annotations

import os
import re
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.edit import find_text_errors, remove_value, require_object, set_value
from nexus_core.config.jsonc import parse_json
from nexus_core.config.load import read_json
from nexus_core.config.nexus3 import find_nexus3_settings, remove_keys
from nexus_core.config.pointers import follow_keys, join_pointer
from nexus_core.config.validate import find_config_errors
from nexus_core.errors import FileError, UsageError
from nexus_core.files.read import read_bytes
from nexus_core.files.write import directory_lock, write_bytes_atomically, write_text_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from nexus_core.config.edit import FindConfigErrors
    from nexus_core.config.nexus3 import SettingKeys

_PERMISSION_LEVELS = ("yolo", "trusted", "sandboxed")
_APIS = {"anthropic": "anthropic"}
_DEFAULT_API = "openai"
"""All other types of provider are compatible with OpenAI."""
_NO_EQUIVALENT = "Nexus has no such setting"


class MigratedSetting(NamedTuple):
    """The migration of one setting.

    Attributes:
        source: The keys that lead to it.
        target: The keys of the setting of Nexus that replaces it; empty for none.
        value: The value there.
        reason: Why there is none.
        is_changed: True if the value differs from the old one.
    """

    source: SettingKeys
    target: SettingKeys = ()
    value: Any = None
    reason: str = ""
    is_changed: bool = False


class ConfigMigration(NamedTuple):
    """The result of `migrate_config`, or its plan.

    Attributes:
        text: The new text of the file.
        moved: The migration of every setting of NEXUS3.
        kept: The keys of the settings that stay unchanged.
        faults: Errors in those.
        backup: The file with the old content; None if nothing was written.
    """

    text: str
    moved: list[MigratedSetting]
    kept: list[tuple[str, ...]]
    faults: tuple[str, ...] = ()
    backup: Path | None = None


def migrate_config(
    path: Path, *, allowed: Callable[[str], bool], write: bool, find: FindConfigErrors = find_config_errors
) -> ConfigMigration | None:
    """Translate the settings of NEXUS3 in a config.json, with a backup beside it. Return None without any.

    A value that the setting of Nexus cannot have is left out; other errors that the file had before stay in it.

    Args:
        path: The file.
        allowed: True if the file may have a setting, by its dotted name.
        write: False to only return what would be written.
        find: Finds errors in settings.

    Raises:
        ConfigError: The file is malformed.
        UsageError: A setting cannot be put where it belongs.
        FileError: It is a link, or cannot be written.
    """
    if not path.exists():
        return None
    if path.is_symlink() or path.parent.is_symlink():  # checked before anything is written beside it
        linked = path if path.is_symlink() else path.parent
        raise FileError("is a link", where=str(linked), hint="migrate the file where the link leads to")
    if not write:
        return _migrate_file(path, allowed, find)
    with directory_lock(path.parent):
        found = _migrate_file(path, allowed, find)
        if found is None:
            return None
        mode = path.stat().st_mode & 0o777
        names = (f"{path.name}.nexus3{f'-{number}' if number > 1 else ''}" for number in count(1))
        backup = next(each for name in names if not os.path.lexists(each := path.with_name(name)))
        write_bytes_atomically(backup, read_bytes(path) or b"", mode=mode)
        write_text_atomically(path, found.text, mode=mode)
    return found._replace(backup=backup)


def _migrate_file(path: Path, allowed: Callable[[str], bool], find: FindConfigErrors) -> ConfigMigration | None:
    document = read_json(path, empty={})
    if document is None:
        return None
    settings = require_object(path, document)
    if not find_nexus3_settings(settings):
        return None
    refused: dict[tuple[str, ...], str] = {}
    while True:
        try:
            text, moved = migrate_text((read_bytes(path) or b"").decode(), allowed, refused)
        except ValueError as error:
            raise UsageError(f"cannot migrate: {error}", where=str(path)) from None
        errors = [error.what for error in find_text_errors(path, text, find)]
        wrong = {each.target: what for each in moved if each.target and (what := _find_error(each.target, errors))}
        if not wrong:
            return ConfigMigration(text, moved, find_untouched_keys(settings), tuple(errors))
        refused |= wrong


def _find_error(keys: Iterable[str], errors: Iterable[str]) -> str:
    """Return the error about a setting, or "" for none."""
    name = ".".join(keys)
    return next((what for what in errors if re.match(rf"{re.escape(name)}(?![\w.-])", what)), "")


def plan_migration(
    settings: Mapping[str, Any], refused: Mapping[SettingKeys, str] | None = None
) -> list[MigratedSetting]:
    """Return the migration of every setting of NEXUS3 in a file, in the order of the file.

    A setting of Nexus that the file has already stays unchanged. References to secrets stay references.

    Args:
        settings: The settings of the file.
        refused: Settings of Nexus that cannot have the values, and why.
    """
    moved: list[MigratedSetting] = []
    for keys in find_nexus3_settings(settings):
        moved += _translate_setting(keys, follow_keys(settings, keys), settings)
    used: set[SettingKeys] = set()
    result = []
    for each in moved:
        if each.target and (each.target in used or follow_keys(settings, each.target) is not None):
            result.append(MigratedSetting(each.source, reason=f"{'.'.join(each.target)} is set already"))
        elif refused and each.target in refused:
            result.append(MigratedSetting(each.source, reason=refused[each.target]))
        else:
            used.add(each.target)
            result.append(each)
    return result


def find_untouched_keys(settings: Mapping[str, Any]) -> list[SettingKeys]:
    """Return the keys of all settings that a migration does not change, with `mcp_servers` as one."""
    return list(_iter_leaves(remove_keys(settings, find_nexus3_settings(settings)), ()))


def migrate_text(
    text: str, allowed: Callable[[str], bool] = lambda _: True, refused: Mapping[SettingKeys, str] | None = None
) -> tuple[str, list[MigratedSetting]]:
    """Return the text of a config.json with the settings of NEXUS3 translated, and the migration of each.

    Every other byte stays unchanged.

    Args:
        text: The text, which is a JSON object.
        allowed: True if the file may have a setting, by its dotted name.
        refused: Settings of Nexus that cannot have the values, and why.

    Raises:
        ValueError: A setting cannot be set, because its parent has a value of another type.
    """
    settings: Any = parse_json(text.removeprefix("\ufeff")).value
    moved = [
        each
        if not each.target or allowed(".".join(each.target))
        else MigratedSetting(each.source, reason="only your own config may have it")
        for each in plan_migration(settings, refused)
    ]
    for keys in find_nexus3_settings(settings):
        text = remove_value(text, join_pointer(keys))
    for each in moved:
        if each.target:
            text = set_value(text, join_pointer(each.target), each.value)
    left: Any = parse_json(text.removeprefix("\ufeff")).value
    for key in [key for key, value in left.items() if value == {} != settings.get(key)]:
        text = remove_value(text, join_pointer([key]))
    return text, moved


def _iter_leaves(settings: Mapping[str, Any], above: SettingKeys) -> Iterator[SettingKeys]:
    for key, value in settings.items():
        if key.startswith("_"):  # a comment
            continue
        keys = (*above, key)
        if isinstance(value, dict) and key != "mcp_servers":
            yield from _iter_leaves(value, keys)
        else:
            yield keys


def _translate_setting(keys: SettingKeys, value: Any, settings: Mapping[str, Any]) -> Iterator[MigratedSetting]:  # noqa: ANN401 - JSON
    if keys == ("default_model",):
        _, alias = _split_model(value, settings.get("providers"))
        yield MigratedSetting(keys, ("provider", "model"), alias, is_changed=alias != value)
    elif keys == ("providers",):
        yield from _translate_providers(value, settings)
    elif keys == ("provider", "type"):
        yield _translate_provider_type(keys, value)
    elif keys == ("compaction", "trigger_threshold"):
        yield MigratedSetting(keys, ("compaction", "trigger_ratio"), value)
    elif keys in (("default_permission_level",), ("permissions", "default_preset")):
        if value in _PERMISSION_LEVELS:
            yield MigratedSetting(keys, ("permissions", "level"), value)
        else:
            yield MigratedSetting(keys, reason=f"Nexus knows the levels {', '.join(_PERMISSION_LEVELS)}")
    elif keys[0] == "models" and keys[-1] == "context_window":
        yield MigratedSetting(keys, (*keys[:-1], "window"), value)
    else:
        yield MigratedSetting(keys, reason=_NO_EQUIVALENT)


def _translate_providers(providers: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[MigratedSetting]:
    used = _find_used_provider(providers, str(settings.get("default_model") or ""))
    for name, provider in providers.items():
        for key, value in provider.items():
            keys = ("providers", name, key)
            if key == "models" and isinstance(value, dict):
                yield from _translate_models(keys, value)
            elif key not in ("type", "base_url", "api_key_env"):
                yield MigratedSetting(keys, reason=_NO_EQUIVALENT)
            elif name != used:
                yield MigratedSetting(keys, reason="Nexus has one provider per config.json")
            elif key == "type":
                yield _translate_provider_type(keys, value)
            else:
                yield MigratedSetting(keys, ("provider", key), value)


def _translate_provider_type(keys: SettingKeys, value: Any) -> MigratedSetting:  # noqa: ANN401 - JSON
    api = _APIS.get(str(value), _DEFAULT_API)
    return MigratedSetting(keys, ("provider", "provider"), api, is_changed=api != value)


def _translate_models(keys: SettingKeys, models: Mapping[str, Any]) -> Iterator[MigratedSetting]:
    for alias, model in models.items():
        for key, value in model.items() if isinstance(model, dict) else ():
            target = {"id": "id", "context_window": "window"}.get(key)
            if target:
                yield MigratedSetting((*keys, alias, key), ("models", alias, target), value)
            else:
                yield MigratedSetting((*keys, alias, key), reason=_NO_EQUIVALENT)


def _find_used_provider(providers: Mapping[str, Any], default: str) -> str:
    """Return the name of the provider of the default model, or else of the first."""
    named, alias = _split_model(default, providers)
    if named:
        return named
    serving = (name for name, each in providers.items() if alias in _get_aliases(each))
    return next(serving, next(iter(providers), ""))


def _split_model(default: str, providers: object) -> tuple[str, str]:
    """Return the provider that a default model names, "" for none, and the alias, which may contain slashes."""
    known = providers if isinstance(providers, dict) else {}
    named = [name for name in known if default.startswith(f"{name}/")]
    if named:
        name = max(named, key=len)
        return name, default[len(name) + 1 :]
    is_alias = any(default in _get_aliases(each) for each in known.values() if isinstance(each, dict))
    return "", default if is_alias or "/" not in default else default.partition("/")[2]


def _get_aliases(provider: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON value
    models = provider.get("models")
    return models if isinstance(models, dict) else {}
