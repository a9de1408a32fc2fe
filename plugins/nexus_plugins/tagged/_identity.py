"""Who the model is told to be: the text that ships with the plugin, or a file of a layer in its place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core import ConfigError, Section, Source
from nexus_core.plugin import Admission, Skipped, file_in, neutralise, strip_hidden
from nexus_plugins.tagged._options import IDENTITY, IDENTITY_FORM, PREFIX

if TYPE_CHECKING:
    from nexus_core.plugin import Layer, Loaded

CORE_IDENTITY = (Path(__file__).parent / "core_identity.md").read_text(encoding="utf-8")
"""The identity unless there is another one."""

ID = "core-identity"
ORDER = -1000
"""Before everything else."""


def own_identity() -> Section:
    """The identity that ships with the plugin."""
    return _section(CORE_IDENTITY, Source(uri="plugin:tagged", plugin="tagged"))


def find_identity(loaded: Loaded) -> Section:
    """The identity of the most local layer that has one; where none has, our own.

    Raises:
        ConfigError: The settings name a file that no layer has, or that is no name of one.
        FileError: It cannot be read.
    """
    given = loaded.settings.get(f"{PREFIX}.identity")
    name = IDENTITY if given is None else str(given)
    # Checked again here: the user's own directory is among the layers, and holds more than texts.
    if not re.fullmatch(IDENTITY_FORM, name):
        raise _refused(loaded, f"{name!r} is not the name of a Markdown file")
    reason = "there is none"
    for layer in reversed(loaded.layers):
        if layer.only_rules:
            continue
        path = file_in(layer.directory, name)
        text = Admission(layer).read_text(path)
        if not isinstance(text, Skipped):
            return _section(_made_safe(text, layer), _source(path, layer))
        if text.reason != "not there":
            reason = f"{path}: {text.reason}"
    if given is not None:
        raise _refused(loaded, f"no layer has a file {name!r} that may be read ({reason})")
    return own_identity()


def _section(text: str, source: Source) -> Section:
    return Section(ID, title="Core Identity", text=text, kind="persona", order=ORDER, source=source)


def _source(path: Path, layer: Layer) -> Source:
    return Source(uri=str(path), layer=layer.name, plugin="tagged", trust="user" if layer.is_own else "project")


def _made_safe(text: str, layer: Layer) -> str:
    # The user's own identity has to name the tags; a project's is a stranger's text like any other.
    return text if layer.is_own else neutralise(strip_hidden(text))


def _refused(loaded: Loaded, what: str) -> ConfigError:
    origins = loaded.settings.origins.get("/plugins/tagged/identity")
    return ConfigError(
        what,
        where=str(origins[0]) if origins else f"{PREFIX}.identity",
        hint=f"put the file beside the config.json, or remove {PREFIX}.identity",
    )
