"""Checks merged settings against the schema and says, for each fault, in which file and line it was made."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args, get_origin

from nexus_core.config.documents import setting_error
from nexus_core.config.lines import Lines
from nexus_core.config.pointers import pointer_to
from nexus_core.errors import ConfigError, PluginError, did_you_mean
from nexus_core.files.reading import read_text
from nexus_core.text.visible import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from nexus_core.config.schema import Config
    from nexus_core.values.settings import Settings

DISABLED = "disabled"
"""The one key under `plugins` that is not the name of a plugin."""


LONGEST_NAME = 200
"""How many characters of the name of a setting a message repeats."""


def build_config(settings: Settings, plugin_models: Mapping[str, type[BaseModel]] | None = None) -> Config:
    """The settings as an object with every default filled in.

    Args:
        settings: The merged settings.
        plugin_models: By plugin name, what may stand under `plugins.<name>`.

    Raises:
        ConfigError: A setting is unknown or has a value that is not allowed; the first fault is shown.
    """
    from nexus_core.config.schema import Config  # noqa: PLC0415 - pydantic is imported only where settings are checked

    for error in find_faults(settings, plugin_models):
        raise error
    return Config.model_validate(settings.value)


def find_faults(
    settings: Settings, plugin_models: Mapping[str, type[BaseModel]] | None = None
) -> Iterator[ConfigError]:
    """Every fault in the settings, as the error that would be raised for it."""
    from nexus_core.config.schema import Config  # noqa: PLC0415 - as above

    for fault in _faults(Config, settings.value):
        yield _located(settings, "", Config, fault)
    yield from _plugin_faults(settings, plugin_models or {})


def import_models(targets: Mapping[str, str]) -> dict[str, type[BaseModel]]:
    """The models of plugins' settings, from where they say they are.

    Raises:
        PluginError: A plugin names something that cannot be imported or is no pydantic model.
    """
    from pydantic import BaseModel  # noqa: PLC0415 - as above

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
            raise PluginError(f"{target} is no pydantic model", plugin=plugin, hook="nexus_settings")
        models[plugin] = model
    return models


def _faults(model: type[BaseModel], value: object) -> list[ErrorDetails]:
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    try:
        model.model_validate(value)
    except ValidationError as error:
        return error.errors(include_url=False, include_input=False)
    return []


def _plugin_faults(settings: Settings, models: Mapping[str, type[BaseModel]]) -> Iterator[ConfigError]:
    plugins = settings.value.get("plugins")
    if not isinstance(plugins, dict):
        return
    for name, value in plugins.items():
        pointer = pointer_to("/plugins", name)
        if name == DISABLED:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                yield locate_fault(settings, pointer, "plugins.disabled must be a list of plugin names")
        elif name in models:
            for fault in _faults(models[name], value):
                yield _located(settings, pointer, models[name], fault)
        elif nearest := did_you_mean(name, [*models, DISABLED]):
            # A plugin that is not installed here may still have its settings in a shared file.
            yield locate_fault(settings, pointer, f"unknown plugin {name!r}; {nearest}")


def _located(settings: Settings, base: str, model: type[BaseModel], fault: ErrorDetails) -> ConfigError:
    pointer = base
    for key in fault["loc"]:
        if pointer_to(pointer, key) not in settings.origins and isinstance(key, str) and fault["type"] != "missing":
            break  # the name of a branch of a union, not a key of the file
        pointer = pointer_to(pointer, key)
    dotted = shortened(".".join(map(str, pointer.split("/")[1:])), LONGEST_NAME)
    return locate_fault(settings, pointer, _message(dotted, model, fault))


def _message(dotted: str, model: type[BaseModel], fault: ErrorDetails) -> str:
    if fault["type"] == "extra_forbidden":
        *path, key = fault["loc"]
        known = _known_keys(model, path)
        hint = did_you_mean(str(key), known) or f"known here: {', '.join(sorted(known))}"
        return f"unknown setting {dotted!r}; {hint}"
    if fault["type"] == "literal_error":
        return f"{dotted} must be one of {fault['ctx']['expected'].replace(' or ', ', ')}"
    text = fault["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{dotted}: {text}"


def _known_keys(model: type[BaseModel], path: list[int | str]) -> list[str]:
    current: Any = model
    for key in path:
        if get_origin(current) is dict:  # by names of the user's own
            current = get_args(current)[1]
        else:
            field = getattr(current, "model_fields", {}).get(key)
            current = field.annotation if field else None
    return list(getattr(current, "model_fields", {}))


def locate_fault(settings: Settings, pointer: str, message: str) -> ConfigError:
    """The error that shows where a setting stands, and says what is wrong with it."""
    origins = settings.origins.get(pointer)
    if not origins:
        return ConfigError(message, where=pointer)
    origin = origins[0]
    # The lines of servers may hold secrets, whatever file they are in.
    is_shown = not pointer.startswith("/mcp_servers")
    return setting_error(
        origin.path,
        Lines(read_text(origin.path) or "") if is_shown else None,
        (origin.line or 1, origin.column or 1),
        title=f"Invalid setting in {origin.path}",
        message=message,
        closing="Correct the setting and try again.",
    )
