"""Turns the texts of layers into the first sections of the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.values.section import Section

if TYPE_CHECKING:
    from nexus_core.values.layer import Layer, Scope
    from nexus_core.values.loaded import Loaded

FIRST_ORDER = 100
LAST_ORDER = 199

_TITLES: dict[Scope, str] = {
    "defaults": "Default Configuration",
    "global": "Global Configuration",
    "ancestor": "Ancestor Configuration ({name})",
    "local": "Project Configuration",
}


def layer_sections(loaded: Loaded) -> tuple[Section, ...]:
    """One section for each layer text, in the order of the layers; blank texts contribute nothing."""
    texts = [text for text in loaded.texts if text.text.strip()]
    return tuple(
        Section(
            id=f"layer-{index:03}",
            title=_title(text.layer) if text.layer else "Configuration",
            text=text.text,
            order=min(FIRST_ORDER + index, LAST_ORDER),
            source=text.source,
        )
        for index, text in enumerate(texts)
    )


def _title(layer: Layer) -> str:
    return _TITLES[layer.scope].format(name=layer.name.partition(":")[2] or layer.name)
