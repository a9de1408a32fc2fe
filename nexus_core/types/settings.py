"""Merged settings with their origins, and the settings that plugins declare."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from nexus_core.types.base import dataclass, require_one_of, require_text, require_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class SettingOrigin(NamedTuple):
    """The position of a setting: file, line and column (0 if unknown), and layer."""

    path: Path
    line: int
    column: int
    layer: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged settings of all layers.

    Attributes:
        value: The merged settings, before defaults are filled in.
        origins: The origins of each value, by JSON pointer: the effective one first, then those it overrode, nearest
            first.
        policies: The merge policy of each value for which a plugin, `merging.lists` or Nexus has one, by JSON pointer:
            `unique (merging.lists)`, `by-name (plugin mcp)`.
    """

    value: Mapping[str, object] = field(default_factory=dict)
    origins: Mapping[str, tuple[SettingOrigin, ...]] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict, compare=False)

    def get(self, dotted: str, default: object = None) -> object:
        """Return the value of a dotted name such as `provider.model`, or `default` if it is not set."""
        value: object = self.value
        for key in dotted.split("."):
            if not isinstance(value, dict) or key not in value:
                return default
            value = value[key]
        return value

    def get_number(self, dotted: str, default: int) -> int:
        """Return an integer setting; `default` if it is not set or is not an integer."""
        value = self.get(dotted, default)
        return value if isinstance(value, int) else default

    def model_id(self, name: str = "") -> str:
        """Return the id of a model, resolving aliases (`models.<alias>.id`), which may refer to each other.

        Args:
            name: A model or an alias; "" for `provider.model`.
        """
        given = name or self.value.get("provider")
        if isinstance(given, dict):
            given = given.get("model")
        models = self.value.get("models")
        if not isinstance(given, str) or not isinstance(models, dict):
            return given if isinstance(given, str) else ""
        # Follow aliases to the end; a cycle is an error in the settings, and leaves the name as it is.
        names = [given]
        while isinstance(model := models.get(names[-1]), dict):
            found = model.get("id")
            if not isinstance(found, str) or found in ("", names[-1]):
                break
            if found in names:
                return given
            names.append(found)
        return names[-1]


ListPolicy = Literal["join", "replace", "unique", "by-name"]
"""The way to merge two lists under one key: all items, the later list, each item once, or the later of each name."""

LIST_POLICIES: tuple[ListPolicy, ...] = get_args(ListPolicy)


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """The declaration of a plugin's settings, under `plugins.<name>` in config.json.

    Attributes:
        model: A pydantic model for validation, as `package.module:Class`; imported when there is something to validate.
            Derive it from `nexus_core.plugin.settings.StrictModel`.
        active: Settings that start a program, open a connection or name code to load; in a project they take effect
            only after the user has approved them.
        protected: Settings that a project may never set, such as where credentials and conversations are sent.
        off_only: Switches that a project may only set to false, such as those for data about the user in the prompt.
    """

    model: str
    active: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    off_only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_text(self.model, "PluginSettings.model")
        if ":" not in self.model:
            raise ValueError(f"PluginSettings.model must look like 'package.module:Class', not {self.model!r}")


InitScope = Literal["local", "global"]
"""The target of `nexus init`: a project, or the user's Nexus directory."""


@dataclass(frozen=True, slots=True)
class InitFile:
    """A file that `nexus init` writes.

    Attributes:
        name: Its path inside `.nexus3`.
        text: Its content.
    """

    name: str
    text: str

    def __post_init__(self) -> None:
        require_text(self.name, "InitFile.name")
        if self.name.startswith(("/", "\\")) or ".." in self.name.split("/"):
            raise ValueError(f"InitFile.name must stay inside the directory, not {self.name!r}")
        require_type(self.text, "InitFile.text", str)


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """The rule that merges the values of several layers under one key.

    Attributes:
        key: The dotted name of the key: `mcp_servers`.
        policy: For lists, `join` (the default elsewhere), `replace`, `unique` or `by-name`; `replace` is also for
            objects, which are merged key by key elsewhere. For any value, a function of the inherited value and that of
            the more local layer: it gets copies, returns the JSON value to use, and is called once for every layer that
            sets the key after the first one. It does not get values with `$replace` or `$remove`.
    """

    key: str
    policy: ListPolicy | Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        require_text(self.key, "MergePolicy.key")
        if not callable(self.policy):
            require_one_of(self.policy, "MergePolicy.policy", LIST_POLICIES)
