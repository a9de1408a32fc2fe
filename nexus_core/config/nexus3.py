"""Detection of settings of NEXUS3, which keeps its own in the same `config.json`.

They have no effect here, and do not keep a command from running: a load sets them aside, with one finding per file.
`nexus config migrate` translates them, see `migrate`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.config.pointers import copy_settings, follow_keys
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nexus_core.types.layers import LayerConfig

    SettingKeys = tuple[str, ...]

_NUMBER = (int, float)
_TOP_LEVEL_SETTINGS: Mapping[str, type | tuple[type, ...]] = {
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
_GROUP_SETTINGS: Mapping[str, tuple[str, ...]] = {
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
_MODEL_SETTINGS = ("context_window", "guidance", "reasoning")
"""Settings of a model in NEXUS3 beside `id`, which Nexus has too."""
_MAX_SHOWN_NAMES = 5
"""Names that a finding lists."""


def find_nexus3_settings(settings: Mapping[str, Any]) -> list[SettingKeys]:
    """Return the keys of all settings that only NEXUS3 has. A name with a value of another type is a mistake."""
    found: list[SettingKeys] = [
        (key,)
        for key, value in settings.items()
        if key in _TOP_LEVEL_SETTINGS and _has_type(value, _TOP_LEVEL_SETTINGS[key]) and _is_nexus3_value(key, value)
    ]
    for group, names in _GROUP_SETTINGS.items():
        # Every load runs this, and most groups have none of these.
        if group in settings and isinstance(given := settings[group], dict) and not given.keys().isdisjoint(names):
            found += [(group, name) for name in names if name in given]
    models = settings.get("models")
    for alias, model in models.items() if isinstance(models, dict) else ():
        found += [("models", alias, name) for name in _MODEL_SETTINGS if isinstance(model, dict) and name in model]
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
        settings = remove_keys(config.settings, found)
        content = config.settings if config.content is None else config.content
        kept.append(replace(config, settings=settings, content=content))
        names = [".".join(keys) for keys in found]
        more = f" and {len(names) - _MAX_SHOWN_NAMES} more" if len(names) > _MAX_SHOWN_NAMES else ""
        listed = f"{', '.join(names[:_MAX_SHOWN_NAMES])}{more}"
        is_own = config.layer is None or config.layer.is_own
        command = f"nexus config migrate{'' if is_own else ' --project'}"
        what = f"settings of NEXUS3 are not used: {listed}; `{command}` translates them"
        findings.append(Finding("nexus3-settings", what, config.path))
    return kept, findings


def remove_keys(settings: Mapping[str, Any], found: Iterable[SettingKeys]) -> dict[str, Any]:
    """Return a copy of the settings without those at some keys."""
    left = copy_settings(settings)
    for *path, last in found:
        parent = follow_keys(left, path)
        if isinstance(parent, dict):
            parent.pop(last, None)
    return left


def _has_type(value: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _is_nexus3_value(key: str, value: object) -> bool:
    """Return True if the value fits NEXUS3: its providers are objects by name, not the fields of one provider."""
    return key != "providers" or (isinstance(value, dict) and all(isinstance(each, dict) for each in value.values()))
