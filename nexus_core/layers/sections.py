"""Turns the texts of layers into the first sections of the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.text.hidden import strip_hidden
from nexus_core.text.visible import visible_line
from nexus_core.values.section import Section
from nexus_core.values.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.layer import Layer, LayerText, Scope
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.settings import Settings

FIRST_ORDER = 100
TITLED_ORDER = 200
LAST_ORDER = 299
PERSONA_ORDER = 300
LAST_PERSONA_ORDER = 399
PERMISSIONS = "permissions"
ACTIVE = "active-configuration"
ACTIVE_ORDER = 700

_TITLES: dict[Scope, str] = {
    "defaults": "Default Configuration",
    "global": "Global Configuration",
    "ancestor": "Ancestor Configuration",
    "local": "Project Configuration",
}


def layer_sections(loaded: Loaded) -> tuple[Section, ...]:
    """One section for each layer text, in the order of the layers; blank texts contribute nothing.

    Texts with a title of their own follow those that speak for their layer.
    """
    texts = [text for text in loaded.texts if text.text.strip()]
    return tuple(
        Section(
            id=f"layer-{index:05}",
            title=text.title or _title(text.layer),
            text=text.text,
            kind=text.kind,
            order=_order(text, index),
            source=text.source,
            data=text.data,
        )
        for index, text in enumerate(texts)
    )


def _order(text: LayerText, index: int) -> int:
    if text.kind == "persona":
        return min(PERSONA_ORDER + index, LAST_PERSONA_ORDER)
    return min((TITLED_ORDER if text.title else FIRST_ORDER) + index, LAST_ORDER)


def _title(layer: Layer | None) -> str:
    if layer is None:
        return "Configuration"
    # `global` is plainly that; `ancestor:company` and `global:policy` say which one.
    own_name = layer.name.partition(":")[2] or layer.name
    return _TITLES[layer.scope] + (f" ({own_name})" if own_name != layer.scope else "")


def active_configuration(settings: Settings, window: int | None) -> Section:
    """The section `Active Configuration`: the model and its window, where they are known, and the permission level."""
    model = settings.model_id()
    lines = [
        f"Model: {_in_one_line(model)}" if model else "",
        f"Context window: {window} tokens" if window else "",
        f"Permission level: {settings.get('permissions.level', 'trusted')}",
    ]
    return Section(
        ACTIVE,
        title="Active Configuration",
        text="\n".join(filter(None, lines)),
        order=ACTIVE_ORDER,
        source=Source(uri="settings:"),
    )


def permissions(settings: Settings, granted: Iterable[str] = ()) -> Section:
    """The section `Agent Permissions` of a session, whose prompt has no `Active Configuration`.

    Args:
        settings: What they say under `permissions`.
        granted: What the caller lets the agent do, in words of its own.
    """
    level = settings.get("permissions.level", "trusted")
    named = {
        "Allowed tools": settings.get("permissions.tools.allow"),
        "Denied tools": settings.get("permissions.tools.deny") or None,
        "Granted": _without_full_stops(list(granted)) or None,
    }
    lines = [f"Permission level: {level} (from loosest to tightest: yolo, trusted, sandboxed)"]
    lines += [
        f"{title}: {', '.join(map(_in_one_line, names)) or 'none'}"
        for title, names in named.items()
        if isinstance(names, list)
    ]
    return Section(
        PERMISSIONS,
        title="Agent Permissions",
        text="\n".join(lines),
        kind="persona",
        order=LAST_PERSONA_ORDER,
        source=Source(uri="settings:"),
    )


def _without_full_stops(words: list[str]) -> list[str]:
    """Return sentences as they are listed with commas between them; a single one stays as it is."""
    if len(words) == 1:
        return words
    return [word if word.rstrip().endswith("..") else word.rstrip().removesuffix(".") for word in words]


def _in_one_line(value: object) -> str:
    # A project may call its model anything; it must not start a heading of its own, or say what no reader sees.
    return visible_line(strip_hidden(str(value)))
