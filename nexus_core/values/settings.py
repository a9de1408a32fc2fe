"""Merged settings, each with the places it comes from."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Origin(NamedTuple):
    """A place where a setting was made: file, line and column (0 when unknown), and layer."""

    path: Path
    line: int
    column: int
    layer: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)


@dataclass(frozen=True, slots=True)
class Settings:
    """What all layers together set.

    Attributes:
        value: The merged settings, before defaults are filled in.
        origins: By JSON pointer, where a value comes from: the winner first, then what it overrode, nearest first.
        policies: By JSON pointer, how a value was made of those of several layers, where a plugin, `merging.lists` or
            Nexus decides that: `unique (merging.lists)`, `by-name (plugin mcp)`.
    """

    value: Mapping[str, object] = field(default_factory=dict)
    origins: Mapping[str, tuple[Origin, ...]] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict, compare=False)

    def get(self, dotted: str, default: object = None) -> object:
        """The value of `provider.model`, or `default` where nobody set it."""
        value: object = self.value
        for key in dotted.split("."):
            if not isinstance(value, dict) or key not in value:
                return default
            value = value[key]
        return value

    def model_id(self, name: str = "") -> str:
        """Return the id of a model, an alias (`models.<alias>.id`) replaced by the model that it stands for.

        An alias may stand for another alias.

        Args:
            name: A model or an alias; `provider.model` where it is empty.
        """
        given = name or self.value.get("provider")
        if isinstance(given, dict):
            given = given.get("model")
        models = self.value.get("models")
        if not isinstance(given, str) or not isinstance(models, dict):
            return given if isinstance(given, str) else ""
        # To the end, so that the answer stands for itself; aliases that stand for each other are a fault.
        names = [given]
        while isinstance(model := models.get(names[-1]), dict):
            found = model.get("id")
            if not isinstance(found, str) or found in ("", names[-1]):
                break
            if found in names:
                return given
            names.append(found)
        return names[-1]
