"""Checks merged settings against the schema and says, for each fault, in which file and line it was made."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

from nexus_core.config.documents import setting_error
from nexus_core.config.lines import Lines
from nexus_core.config.pointers import pointer_to, split_pointer
from nexus_core.errors import ConfigError, FileError, PluginError, did_you_mean
from nexus_core.files.reading import read_text
from nexus_core.text.visible import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from nexus_core.config.schema import Config
    from nexus_core.values.settings import Settings

DISABLED = "disabled"
"""The one key under `plugins` that is not the name of a plugin."""


LONGEST_NAME = 200
"""How many characters of the name of a setting a message repeats."""


class Fault(NamedTuple):
    """What is wrong with a setting: where it stands among the settings, and one sentence without a final period."""

    pointer: str
    message: str


def build_config(
    settings: Settings, plugin_models: Mapping[str, type[BaseModel]] | None = None, further: Iterable[Fault] = ()
) -> Config:
    """The settings as an object with every default filled in.

    Args:
        settings: The merged settings.
        plugin_models: By plugin name, what may stand under `plugins.<name>`.
        further: What else was found wrong with them.

    Raises:
        ConfigError: A setting is unknown or has a value that is not allowed; the first is shown, others are counted.
    """
    from nexus_core.config.schema import Config  # noqa: PLC0415 - pydantic is imported only where settings are checked

    if faults := list_faults(settings, plugin_models, further):
        raise _located(settings, faults[0], more=len(faults) - 1)
    return Config.model_validate(settings.value)


def list_faults(
    settings: Settings, models: Mapping[str, type[BaseModel]] | None, further: Iterable[Fault]
) -> list[Fault]:
    """Every fault in the settings, file by file from the top; arguments as for `build_config`."""
    from nexus_core.config.schema import Config  # noqa: PLC0415 - as above

    own = (_fault(settings, "", Config, found) for found in _faults(Config, settings.value))
    return sorted([*own, *_plugin_faults(settings, models or {}), *further], key=lambda each: _place(settings, each))


def find_faults(
    settings: Settings, plugin_models: Mapping[str, type[BaseModel]] | None = None, further: Iterable[Fault] = ()
) -> Iterator[ConfigError]:
    """The same, as the errors that would be raised for them."""
    return (_located(settings, fault) for fault in list_faults(settings, plugin_models, further))


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


def _place(settings: Settings, fault: Fault) -> tuple[str, int, int]:
    origin = next(iter(settings.origins.get(fault.pointer, ())), None)
    return (str(origin.path), origin.line, origin.column) if origin else ("", 0, 0)


def _faults(model: type[BaseModel], value: object) -> list[ErrorDetails]:
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    try:
        model.model_validate(value)
    except ValidationError as error:
        return error.errors(include_url=False, include_input=False)
    return []


def _plugin_faults(settings: Settings, models: Mapping[str, type[BaseModel]]) -> Iterator[Fault]:
    plugins = settings.value.get("plugins")
    if not isinstance(plugins, dict):
        return
    for name, value in plugins.items():
        pointer = pointer_to("/plugins", name)
        if name == DISABLED:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                yield Fault(pointer, "plugins.disabled must be a list of plugin names")
        elif name in models:
            for found in _faults(models[name], value):
                yield _fault(settings, pointer, models[name], found)
        elif nearest := did_you_mean(name, [*models, DISABLED]):
            # A plugin that is not installed here may still have its settings in a shared file.
            yield Fault(pointer, f"unknown plugin {name!r}; {nearest}")


def _fault(settings: Settings, base: str, model: type[BaseModel], found: ErrorDetails) -> Fault:
    pointer = base
    for key in found["loc"]:
        if pointer_to(pointer, key) not in settings.origins and isinstance(key, str) and found["type"] != "missing":
            break  # the name of a branch of a union, not a key of the file
        pointer = pointer_to(pointer, key)
    dotted = ".".join(split_pointer(pointer))
    return Fault(pointer, _message(shortened(dotted, LONGEST_NAME), model, found, settings.get(dotted)))


def _message(dotted: str, model: type[BaseModel], fault: ErrorDetails, value: object) -> str:
    if fault["type"] == "extra_forbidden":
        *path, key = fault["loc"]
        known = _known_keys(model, path)
        hint = did_you_mean(str(key), known) or f"known here: {', '.join(sorted(known))}"
        return f"unknown setting {dotted!r}; {hint}"
    if fault["type"] == "literal_error":
        allowed = fault["ctx"]["expected"].replace(" or ", ", ")
        nearest = did_you_mean(str(value)[:LONGEST_NAME], [each.strip("'") for each in allowed.split(", ")])
        return f"{dotted} must be one of {allowed}" + (f"; {nearest}" if nearest else "")
    if fault["type"] in {"dict_type", "model_type"}:  # these speak of Python
        return f"{dotted}: should be an object, {{ … }}"
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


def _located(settings: Settings, fault: Fault, *, more: int = 0) -> ConfigError:
    """The error that shows where a setting stands, says what is wrong with it, and how much more is wrong."""
    pointer, message = fault
    others = f" {more} more: `nexus config validate` lists all." if more else ""
    origins = settings.origins.get(pointer)
    if not origins:
        return ConfigError(message, where=pointer, hint=others.strip() or None)
    origin = origins[0]
    # The lines of servers may hold secrets, whatever file they are in.
    is_shown = not pointer.startswith("/mcp_servers")
    advice = "Correct the setting and try again."
    if message.startswith("unknown setting") and _is_shared(origin.path):
        command = f"nexus config migrate{'' if origin.layer in ('defaults', 'global') else ' --project'}"
        advice = f"Correct or remove it first; then `{command}` translates the settings of NEXUS3 in this file."
    return setting_error(
        origin.path,
        Lines(read_text(origin.path) or "") if is_shown else None,
        (origin.line or 1, origin.column or 1),
        title=f"Invalid setting in {origin.path}",
        message=message,
        closing=f"{advice}{others}",
    )


def _is_shared(path: Path) -> bool:
    """True if a file has settings of NEXUS3, too."""
    from nexus_core.config.documents import read_document  # noqa: PLC0415 - only for an unknown setting
    from nexus_core.config.nexus3 import find_nexus3_settings  # noqa: PLC0415 - as above

    try:
        document = read_document(path, empty={})
    except (ConfigError, FileError):
        return False
    value = document.value if document else None
    return isinstance(value, dict) and bool(find_nexus3_settings(value))
