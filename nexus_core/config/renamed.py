"""Former names of settings, which work for one more release.

A load moves them to their new names before anything else reads them, so that rules about a setting (approval, merging)
apply whatever name a file uses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.config.pointers import copy_settings
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.types.layers import LayerConfig

RENAMED_SETTINGS = {"compaction.summarisers": "compaction.summarizers"}
"""New names of settings by former name. Both are in the same group."""


def rename_settings(configs: Iterable[LayerConfig]) -> tuple[list[LayerConfig], list[Finding]]:
    """Return the configs with the new names of settings, and a finding for each former name in a file."""
    renamed: list[LayerConfig] = []
    findings: list[Finding] = []
    for config in configs:
        for old, new in RENAMED_SETTINGS.items():
            group, _, key = old.partition(".")
            given = config.settings.get(group)
            if isinstance(given, dict) and key in given:
                config, finding = _rename_setting(config, group, key, new.partition(".")[2])  # noqa: PLW2901 - one after the other
                findings.append(finding)
        renamed.append(config)
    return renamed, findings


def _rename_setting(config: LayerConfig, group: str, old: str, new: str) -> tuple[LayerConfig, Finding]:
    settings = copy_settings(config.settings)
    values: dict[str, Any] = settings[group]
    position = config.position
    if new in values:
        del values[old]
        what = f"{group}.{old} is not used beside {group}.{new}, its new name; remove it"
    else:
        settings[group] = {new if key == old else key: value for key, value in values.items()}
        what = f"{group}.{old} is called {group}.{new} now; the former name is removed in the next release"
        position = _translate_pointers(position, f"/{group}/{new}", f"/{group}/{old}")
    line, _ = config.position(f"/{group}/{old}")
    finding = Finding("renamed-setting", what, config.path, line)
    content = config.settings if config.content is None else config.content
    return replace(config, settings=settings, content=content, position=position), finding


def _translate_pointers(
    position: Callable[[str], tuple[int, int]], new: str, old: str
) -> Callable[[str], tuple[int, int]]:
    """Return a position function for a file that has a setting under its former name."""

    def translate(pointer: str) -> tuple[int, int]:
        is_renamed = pointer == new or pointer.startswith(f"{new}/")
        return position(old + pointer.removeprefix(new) if is_renamed else pointer)

    return translate
