"""Validation of merged settings, with the file and line of each error.

Settings that were found valid are marked in the cache directory, because validating them again costs more than the rest
of a load. pydantic is imported only if something is validated.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

from nexus_core._version import __version__
from nexus_core.config.load import LineIndex, read_json, setting_error
from nexus_core.config.nexus3 import find_nexus3_settings
from nexus_core.config.pointers import pointer_to, split_pointer
from nexus_core.errors import ConfigError, FileError, PluginError, UnknownNameError, did_you_mean
from nexus_core.files.places import cache_directory
from nexus_core.files.read import read_text
from nexus_core.files.write import make_directories
from nexus_core.text.safety import shorten
from nexus_core.types.base import blake2b

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from nexus_core.config.schema import Config
    from nexus_core.types.settings import Settings

_MODELS_KEY = "models"
_OPEN_GROUPS = ("plugins.", f"{_MODELS_KEY}.", "provider.options.")
"""Groups whose keys are named by users, plugins or providers."""


@cache
def _flat_defaults() -> dict[str, object]:
    from nexus_core.config.schema import Config

    return dict(_flatten_settings(Config().model_dump(), ""))


def list_settings() -> list[str]:
    """Return every setting and group of settings by its dotted name, sorted."""
    return sorted(_flat_defaults())


def get_default(key: str) -> object:
    """Return the default value of a setting, or None for an unknown one."""
    return _flat_defaults().get(key)


def split_setting_name(name: str) -> list[str]:
    """Return the keys of a setting: `models.gpt-4.1.window` has three, because a model's name may contain dots."""
    first, *rest = name.split(".")
    if first != _MODELS_KEY or not rest:
        return [first, *rest]
    *words, last = rest
    return [first, ".".join(words), last] if words and last in _list_model_config_keys() else [first, ".".join(rest)]


def require_known_setting(name: str) -> None:
    """Raise if a setting does not exist. Settings of plugins are not checked here.

    Raises:
        UnknownNameError: There is no setting of that name.
    """
    stem, _, last = name.rpartition(".")
    if name in _flat_defaults() or (
        name.startswith(_OPEN_GROUPS) and all(name.split(".")) and not _is_mistyped(stem, last)
    ):
        return
    raise UnknownNameError("setting", name, [*list_settings(), *(f"{stem}.{key}" for key in _list_keys_below(stem))])


def _is_mistyped(stem: str, last: str) -> bool:
    keys = _list_keys_below(stem)
    return last not in keys and bool(did_you_mean(last, keys))


def _list_keys_below(stem: str) -> list[str]:
    """Return the settings of a model, if `stem` names a model."""
    return _list_model_config_keys() if stem.startswith(f"{_MODELS_KEY}.") and all(stem.split(".")) else []


@cache
def _list_model_config_keys() -> list[str]:
    from nexus_core.config.schema import ModelConfig

    return list(ModelConfig.model_fields)


def _flatten_settings(value: dict[str, Any], prefix: str) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, item in value.items():
        found.append((prefix + key, item))
        if isinstance(item, dict):
            found += _flatten_settings(item, f"{prefix}{key}.")
    return found


DISABLED_KEY = "disabled"
"""The one key under `plugins` that is not the name of a plugin."""


MAX_NAME_CHARACTERS = 200
"""Characters of a setting's name that a message repeats."""


class InvalidSetting(NamedTuple):
    """An error in a setting: its JSON pointer, and one sentence without a final period."""

    pointer: str
    message: str


def build_config(
    settings: Settings,
    plugin_models: Mapping[str, type[BaseModel]] | None = None,
    further: Iterable[InvalidSetting] = (),
) -> Config:
    """Return the settings as an object with every default filled in.

    Args:
        settings: The merged settings.
        plugin_models: By plugin name, the model of `plugins.<name>`.
        further: Errors that were found elsewhere.

    Raises:
        ConfigError: A setting is unknown or has a value that is not allowed; the first is shown, others are counted.
    """
    from nexus_core.config.schema import Config

    if errors := list_invalid_settings(settings, plugin_models, further):
        raise _build_config_error(settings, errors[0], more=len(errors) - 1)
    return Config.model_validate(settings.value)


def list_invalid_settings(
    settings: Settings, models: Mapping[str, type[BaseModel]] | None, further: Iterable[InvalidSetting]
) -> list[InvalidSetting]:
    """Return every error in the settings, file by file from the top. Arguments as for `build_config`."""
    from nexus_core.config.schema import Config

    own = (
        _build_invalid_setting(settings, "", Config, found) for found in _find_pydantic_errors(Config, settings.value)
    )
    return sorted(
        [*own, *_find_plugin_errors(settings, models or {}), *further], key=lambda each: _sort_key(settings, each)
    )


def find_config_errors(
    settings: Settings,
    plugin_models: Mapping[str, type[BaseModel]] | None = None,
    further: Iterable[InvalidSetting] = (),
) -> Iterator[ConfigError]:
    """Yield the errors of `list_invalid_settings` as the exceptions that `build_config` would raise."""
    return (_build_config_error(settings, error) for error in list_invalid_settings(settings, plugin_models, further))


def import_settings_models(targets: Mapping[str, str]) -> dict[str, type[BaseModel]]:
    """Import the models of plugins' settings.

    Raises:
        PluginError: A plugin names something that cannot be imported or is not a pydantic model.
    """
    from pydantic import BaseModel

    models: dict[str, type[BaseModel]] = {}
    for plugin, target in targets.items():
        module, _, attribute = target.partition(":")
        try:
            model = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise PluginError(
                f"its settings cannot be imported: {error}", plugin=plugin, hook="nexus_settings"
            ) from error
        if not isinstance(model, type) or not issubclass(model, BaseModel):
            raise PluginError(f"{target} is not a pydantic model", plugin=plugin, hook="nexus_settings")
        models[plugin] = model
    return models


def _sort_key(settings: Settings, error: InvalidSetting) -> tuple[str, int, int]:
    origin = next(iter(settings.origins.get(error.pointer, ())), None)
    return (str(origin.path), origin.line, origin.column) if origin else ("", 0, 0)


def _find_pydantic_errors(model: type[BaseModel], value: object) -> list[ErrorDetails]:
    from pydantic import ValidationError

    try:
        model.model_validate(value)
    except ValidationError as error:
        return error.errors(include_url=False, include_input=False)
    return []


def _find_plugin_errors(settings: Settings, models: Mapping[str, type[BaseModel]]) -> Iterator[InvalidSetting]:
    plugins = settings.value.get("plugins")
    if not isinstance(plugins, dict):
        return
    for name, value in plugins.items():
        pointer = pointer_to("/plugins", name)
        if name == DISABLED_KEY:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                yield InvalidSetting(pointer, "plugins.disabled must be a list of plugin names")
        elif name in models:
            for found in _find_pydantic_errors(models[name], value):
                yield _build_invalid_setting(settings, pointer, models[name], found)
        elif nearest := did_you_mean(name, [*models, DISABLED_KEY]):
            # A plugin that is not installed here may still have its settings in a shared file.
            yield InvalidSetting(pointer, f"unknown plugin {name!r}; {nearest}")


def _build_invalid_setting(
    settings: Settings, base: str, model: type[BaseModel], found: ErrorDetails
) -> InvalidSetting:
    pointer = base
    for key in found["loc"]:
        if pointer_to(pointer, key) not in settings.origins and isinstance(key, str) and found["type"] != "missing":
            break  # the name of a branch of a union, not a key of the file
        pointer = pointer_to(pointer, key)
    dotted = ".".join(split_pointer(pointer))
    return InvalidSetting(
        pointer, _describe_error(shorten(dotted, MAX_NAME_CHARACTERS), model, found, settings.get(dotted))
    )


def _describe_error(dotted: str, model: type[BaseModel], error: ErrorDetails, value: object) -> str:
    if error["type"] == "extra_forbidden":
        *path, key = error["loc"]
        known = _list_model_keys(model, path)
        hint = did_you_mean(str(key), known) or f"known here: {', '.join(sorted(known))}"
        return f"unknown setting {dotted!r}; {hint}"
    if error["type"] == "literal_error":
        allowed = error["ctx"]["expected"].replace(" or ", ", ")
        nearest = did_you_mean(str(value)[:MAX_NAME_CHARACTERS], [each.strip("'") for each in allowed.split(", ")])
        return f"{dotted} must be one of {allowed}" + (f"; {nearest}" if nearest else "")
    if error["type"] in {"dict_type", "model_type"}:  # their messages use Python's terms
        return f"{dotted}: should be an object, {{ … }}"
    text = error["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{dotted}: {text}"


def _list_model_keys(model: type[BaseModel], path: list[int | str]) -> list[str]:
    current: Any = model
    for key in path:
        if get_origin(current) is dict:  # keys are names that the user chooses
            current = get_args(current)[1]
        else:
            field = getattr(current, "model_fields", {}).get(key)
            current = field.annotation if field else None
    return list(getattr(current, "model_fields", {}))


def _build_config_error(settings: Settings, error: InvalidSetting, *, more: int = 0) -> ConfigError:
    """Build the error that shows where a setting is, what is wrong with it, and how many more errors there are."""
    pointer, message = error
    others = f" {more} more: `nexus config validate` lists all." if more else ""
    origins = settings.origins.get(pointer)
    if not origins:
        return ConfigError(message, where=pointer, hint=others.strip() or None)
    origin = origins[0]
    # The lines of servers may hold secrets, in any file.
    is_shown = not pointer.startswith("/mcp_servers")
    advice = "Correct the setting and try again."
    if message.startswith("unknown setting") and _has_nexus3_settings(origin.path):
        command = f"nexus config migrate{'' if origin.layer in ('defaults', 'global') else ' --project'}"
        advice = f"Correct or remove it first; then `{command}` translates the settings of NEXUS3 in this file."
    return setting_error(
        origin.path,
        LineIndex(read_text(origin.path) or "") if is_shown else None,
        (origin.line or 1, origin.column or 1),
        title=f"Invalid setting in {origin.path}",
        message=message,
        closing=f"{advice}{others}",
    )


def _has_nexus3_settings(path: Path) -> bool:
    """Return True if a file also has settings of NEXUS3."""
    try:
        document = read_json(path, empty={})
    except (ConfigError, FileError):
        return False
    value = document.value if document else None
    return isinstance(value, dict) and bool(find_nexus3_settings(value))


def ensure_valid(settings: Settings, models: Mapping[str, str], further: Sequence[InvalidSetting] = ()) -> None:
    """Raise a ConfigError for the first error in the settings. Settings found valid before are not validated again.

    Args:
        settings: The merged settings.
        models: By plugin name, the model of its settings as `package.module:Class`.
        further: Errors that were found elsewhere.
    """
    if not settings.value:
        return
    mark = cache_directory() / "valid-settings" / _digest_settings(settings, models)
    if mark.exists() and not further:
        return

    build_config(settings, import_settings_models(models), further)
    _mark_valid(mark)


def _digest_settings(settings: Settings, models: Mapping[str, str]) -> str:
    content = json.dumps([__version__, sorted(models.items()), settings.value], sort_keys=True)
    return blake2b(content.encode(), digest_size=20).hexdigest()


def _mark_valid(mark: Path) -> None:
    try:
        make_directories(mark.parent, mode=0o700)
        mark.touch(mode=0o600)
    except (OSError, FileError):  # no cache on a read-only disk; the next run validates again
        return
