"""Settings of NEXUS3, which keeps its own in the same `config.json`.

They have no effect here, and do not keep a command from running: a load sets them aside, with one finding per file.
`plan_migration` returns what they become as settings of Nexus; `nexus config migrate` writes that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.dotted import copy_settings, follow_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from nexus_core.values.finding import Finding
    from nexus_core.values.layer import LayerConfig

    Keys = tuple[str, ...]

_NUMBER = (int, float)
_TOP: Mapping[str, type | tuple[type, ...]] = {
    "clipboard": dict,
    "default_model": str,
    "default_permission_level": str,
    "gitlab": dict,
    "max_concurrent_tools": int,
    "max_tool_iterations": int,
    "providers": dict,
    "search": dict,
    "server": dict,
    "skill_timeout": _NUMBER,
    "stream_output": bool,
}
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "compaction": ("trigger_threshold",),
    "permissions": ("default_preset", "destructive_tools", "presets"),
    "provider": (
        "allow_insecure_http",
        "api_version",
        "auth_method",
        "deployment",
        "extra_headers",
        "max_retries",
        "prompt_caching",
        "reasoning",
        "request_timeout",
        "retry_backoff",
        "ssl_ca_cert",
        "type",
        "verify_ssl",
    ),
}
_MODEL = ("context_window", "guidance", "reasoning")
"""What NEXUS3 says of a model beside its `id`, which Nexus has too."""
_LEVELS = ("yolo", "trusted", "sandboxed")
_APIS = {"anthropic": "anthropic"}
_DEFAULT_API = "openai"
"""All other types of provider speak like OpenAI."""
_NO_EQUIVALENT = "Nexus has no such setting"
_SHOWN = 5
"""How many names a finding repeats."""


class MigratedSetting(NamedTuple):
    """What becomes of a setting.

    Attributes:
        source: The keys that lead to it.
        target: The keys of the setting of Nexus that takes its place; empty for none.
        value: The value there.
        reason: Why there is none.
        is_changed: True if that value is another than before.
    """

    source: Keys
    target: Keys = ()
    value: Any = None
    reason: str = ""
    is_changed: bool = False


def find_nexus3_settings(settings: Mapping[str, Any]) -> list[Keys]:
    """Return the keys of all settings that only NEXUS3 has; a name with a value of another type is a mistake."""
    found: list[Keys] = [
        (key,) for key, value in settings.items() if key in _TOP and _has_type(value, _TOP[key]) and _fits(key, value)
    ]
    for group, names in _GROUPS.items():
        # Every load asks, and most groups have none of these.
        if group in settings and isinstance(given := settings[group], dict) and not given.keys().isdisjoint(names):
            found += [(group, name) for name in names if name in given]
    models = settings.get("models")
    for alias, model in models.items() if isinstance(models, dict) else ():
        found += [("models", alias, name) for name in _MODEL if isinstance(model, dict) and name in model]
    return found


def strip_nexus3_settings(configs: Iterable[LayerConfig]) -> tuple[list[LayerConfig], list[Finding]]:
    """Return the configs without the settings of NEXUS3, and a finding for each file that has some."""
    kept: list[LayerConfig] = []
    findings: list[Finding] = []
    for config in configs:
        found = find_nexus3_settings(config.settings)
        if not found:
            kept.append(config)
            continue
        from nexus_core.values.finding import Finding  # noqa: PLC0415 - most files have none of these

        settings = remove_keys(config.settings, found)
        content = config.settings if config.content is None else config.content
        kept.append(replace(config, settings=settings, content=content))
        names = [".".join(keys) for keys in found]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        listed = f"{', '.join(names[:_SHOWN])}{more}"
        is_own = config.layer is None or config.layer.is_own
        command = f"nexus config migrate{'' if is_own else ' --project'}"
        what = f"settings of NEXUS3 are not used: {listed}; `{command}` translates them"
        findings.append(Finding("nexus3-settings", what, config.path))
    return kept, findings


def remove_keys(settings: Mapping[str, Any], found: Iterable[Keys]) -> dict[str, Any]:
    """Return a copy of the settings without some of them."""
    left = copy_settings(settings)
    for *path, last in found:
        parent = follow_keys(left, path)
        if isinstance(parent, dict):
            parent.pop(last, None)
    return left


def plan_migration(settings: Mapping[str, Any], refused: Mapping[Keys, str] | None = None) -> list[MigratedSetting]:
    """Return what becomes of every setting of NEXUS3 in a file, in the order of the file.

    A setting of Nexus that the file has already stays as it is. References to secrets stay references.

    Args:
        settings: What the file says.
        refused: Settings of Nexus that cannot have the values, and why.
    """
    moved: list[MigratedSetting] = []
    for keys in find_nexus3_settings(settings):
        moved += _translated(keys, follow_keys(settings, keys), settings)
    taken: set[Keys] = set()
    result = []
    for each in moved:
        if each.target and (each.target in taken or follow_keys(settings, each.target) is not None):
            result.append(MigratedSetting(each.source, reason=f"{'.'.join(each.target)} is set already"))
        elif refused and each.target in refused:
            result.append(MigratedSetting(each.source, reason=refused[each.target]))
        else:
            taken.add(each.target)
            result.append(each)
    return result


def find_untouched_keys(settings: Mapping[str, Any]) -> list[Keys]:
    """Return the keys of all settings that a migration leaves as they are; `mcp_servers` is one, whatever is in it."""
    return list(_leaves(remove_keys(settings, find_nexus3_settings(settings)), ()))


def migrate_text(
    text: str, allowed: Callable[[str], bool] = lambda _: True, refused: Mapping[Keys, str] | None = None
) -> tuple[str, list[MigratedSetting]]:
    """Return the text of a config.json with settings of Nexus in the place of those of NEXUS3, and what became of each.

    Every other byte of it stays as it is.

    Args:
        text: The text, which is a JSON object.
        allowed: True if the file may have a setting, by its dotted name.
        refused: Settings of Nexus that cannot have the values, and why.

    Raises:
        ValueError: A setting cannot be put where it belongs, because something else is in its place.
    """
    from nexus_core.config.editing import remove_value, set_value  # noqa: PLC0415 - only `nexus config migrate` writes
    from nexus_core.config.json_parser import parse_json  # noqa: PLC0415 - as above
    from nexus_core.config.pointers import join_pointer  # noqa: PLC0415 - as above

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


def _leaves(settings: Mapping[str, Any], above: Keys) -> Iterator[Keys]:
    for key, value in settings.items():
        if key.startswith("_"):  # a comment
            continue
        keys = (*above, key)
        if isinstance(value, dict) and key != "mcp_servers":
            yield from _leaves(value, keys)
        else:
            yield keys


def _translated(keys: Keys, value: Any, settings: Mapping[str, Any]) -> Iterator[MigratedSetting]:  # noqa: ANN401 - JSON
    if keys == ("default_model",):
        _, alias = _split_model(value, settings.get("providers"))
        yield MigratedSetting(keys, ("provider", "model"), alias, is_changed=alias != value)
    elif keys == ("providers",):
        yield from _providers(value, settings)
    elif keys == ("provider", "type"):
        yield _provider_type(keys, value)
    elif keys == ("compaction", "trigger_threshold"):
        yield MigratedSetting(keys, ("compaction", "trigger_ratio"), value)
    elif keys in (("default_permission_level",), ("permissions", "default_preset")):
        if value in _LEVELS:
            yield MigratedSetting(keys, ("permissions", "level"), value)
        else:
            yield MigratedSetting(keys, reason=f"Nexus knows the levels {', '.join(_LEVELS)}")
    elif keys[0] == "models" and keys[-1] == "context_window":
        yield MigratedSetting(keys, (*keys[:-1], "window"), value)
    else:
        yield MigratedSetting(keys, reason=_NO_EQUIVALENT)


def _providers(providers: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[MigratedSetting]:
    used = _used_provider(providers, str(settings.get("default_model") or ""))
    for name, provider in providers.items():
        for key, value in provider.items():
            keys = ("providers", name, key)
            if key == "models" and isinstance(value, dict):
                yield from _models(keys, value)
            elif key not in ("type", "base_url", "api_key_env"):
                yield MigratedSetting(keys, reason=_NO_EQUIVALENT)
            elif name != used:
                yield MigratedSetting(keys, reason="Nexus has one provider per config.json")
            elif key == "type":
                yield _provider_type(keys, value)
            else:
                yield MigratedSetting(keys, ("provider", key), value)


def _provider_type(keys: Keys, value: Any) -> MigratedSetting:  # noqa: ANN401 - JSON
    api = _APIS.get(str(value), _DEFAULT_API)
    return MigratedSetting(keys, ("provider", "provider"), api, is_changed=api != value)


def _models(keys: Keys, models: Mapping[str, Any]) -> Iterator[MigratedSetting]:
    for alias, model in models.items():
        for key, value in model.items() if isinstance(model, dict) else ():
            target = {"id": "id", "context_window": "window"}.get(key)
            if target:
                yield MigratedSetting((*keys, alias, key), ("models", alias, target), value)
            else:
                yield MigratedSetting((*keys, alias, key), reason=_NO_EQUIVALENT)


def _used_provider(providers: Mapping[str, Any], default: str) -> str:
    """Return the name of the provider that serves the default model; else that of the first."""
    named, alias = _split_model(default, providers)
    if named:
        return named
    serving = (name for name, each in providers.items() if alias in _aliases(each))
    return next(serving, next(iter(providers), ""))


def _split_model(default: str, providers: object) -> tuple[str, str]:
    """Return the provider that a default model names, "" for none, and the alias, which may have slashes itself."""
    known = providers if isinstance(providers, dict) else {}
    named = [name for name in known if default.startswith(f"{name}/")]
    if named:
        name = max(named, key=len)
        return name, default[len(name) + 1 :]
    is_alias = any(default in _aliases(each) for each in known.values() if isinstance(each, dict))
    return "", default if is_alias or "/" not in default else default.partition("/")[2]


def _aliases(provider: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON value
    models = provider.get("models")
    return models if isinstance(models, dict) else {}


def _has_type(value: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _fits(key: str, value: object) -> bool:
    """True if the value can be NEXUS3's: its providers are objects by name, not the fields of one provider."""
    return key != "providers" or (isinstance(value, dict) and all(isinstance(each, dict) for each in value.values()))
