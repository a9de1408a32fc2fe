"""What plugins declare about settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from nexus_core.values.checks import require_one_of, require_type, require_words
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

ListPolicy = Literal["join", "replace", "unique", "by-name"]
"""How two lists under one key become one: all items, the later ones, each item once, or the later of each name."""

LIST_POLICIES: tuple[ListPolicy, ...] = get_args(ListPolicy)


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """What may stand under `plugins.<name>` in config.json.

    Attributes:
        model: A pydantic model to check it with, as `package.module:Class`; imported when there is something to check.
            Derive it from `nexus_core.plugin.Strict`.
        active: Settings that start a program, open a connection or name code to load; in a project they take effect
            only after the user has approved them.
        protected: Settings that no project decides, approved or not: where credentials and conversations go.
        off_only: Switches that a project may set to false and to nothing else: what the model is told about the user.
    """

    model: str
    active: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    off_only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_words(self.model, "PluginSettings.model")
        if ":" not in self.model:
            raise ValueError(f"PluginSettings.model must look like 'package.module:Class', not {self.model!r}")


InitScope = Literal["local", "global"]
"""Whether a project or the user's own directory is being set up."""


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
        require_words(self.name, "InitFile.name")
        if self.name.startswith(("/", "\\")) or ".." in self.name.split("/"):
            raise ValueError(f"InitFile.name must stay inside the directory, not {self.name!r}")
        require_type(self.text, "InitFile.text", str)


@dataclass(frozen=True, slots=True)
class MergePolicy:
    """How the values of several layers under one key become one.

    Attributes:
        key: The key's dotted name: `mcp_servers`.
        policy: For lists, `join` (the default elsewhere), `replace`, `unique` or `by-name`; `replace` is also for
            objects, which are merged key by key elsewhere. For any value, a function of the inherited value and that of
            the more local layer: it gets copies, returns the JSON value to use, and is called once for every layer that
            sets the key after the first one. What a file says with `$replace` or `$remove` is not given to it.
    """

    key: str
    policy: ListPolicy | Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        require_words(self.key, "MergePolicy.key")
        if not callable(self.policy):
            require_one_of(self.policy, "MergePolicy.policy", LIST_POLICIES)
