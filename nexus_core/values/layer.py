"""Places on disk that contribute to the prompt, and what is found there."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, get_args

from nexus_core.values.checks import require_absolute, require_json, require_one_of, require_type, require_words
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nexus_core.values.parts import JSON
    from nexus_core.values.piece import Piece
    from nexus_core.values.source import Source

Scope = Literal["defaults", "global", "ancestor", "local"]
"""How near a layer is to the work; later ones extend earlier ones."""

Purpose = Literal["instructions", "documentation"]
"""Whether a text tells the agent what to do, or merely describes something."""

SCOPES: tuple[Scope, ...] = get_args(Scope)
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


@dataclass(frozen=True, slots=True)
class Layer:
    """A place that contributes texts and settings.

    Attributes:
        name: `defaults`, `global`, `ancestor:<dirname>`, `local`, or a name of your own.
        directory: The directory that holds the layer's own files, absolute; it need not exist.
        scope: How near it is to the work; it decides the order.
        distance: How many levels above the working directory it lies; the farthest ancestor comes first.
        root: The project directory that it is about, when that is not `directory` itself.
        only_rules: Whether nothing but workspace rules is read here, because it lies beyond `ancestor_depth`.
        boundary: What files read on its behalf must not lie outside of, without links; looked for when it is None.
        in_repository: Whether the boundary is that of a repository.
        from_repository: Whether it is in the user's home, but may have come with a repository that the home lies in;
            set by the core until the user has approved it.
        plugin: The plugin that found it; stamped by the host.
    """

    name: str
    directory: Path
    scope: Scope
    distance: int = 0
    root: Path | None = None
    only_rules: bool = False
    boundary: Path | None = field(default=None, compare=False)
    in_repository: bool = field(default=False, compare=False)
    from_repository: bool = field(default=False, compare=False)
    plugin: str = ""

    def __post_init__(self) -> None:
        require_words(self.name, "Layer.name")
        require_absolute(self.directory, "Layer.directory")
        require_one_of(self.scope, "Layer.scope", SCOPES)
        require_type(self.distance, "Layer.distance", int)
        if self.root is not None:
            require_absolute(self.root, "Layer.root")

    @property
    def project(self) -> Path:
        """The directory that the layer is about."""
        return self.root or self.directory

    @property
    def is_own(self) -> bool:
        """Whether it belongs to the user or to Nexus, rather than to a project that came from somewhere."""
        return self.scope in {"defaults", "global"} and not self.from_repository

    @property
    def sort_key(self) -> tuple[int, int, str, str, str]:
        """The order of a load: by scope, farthest first, then by name, place and plugin."""
        return SCOPES.index(self.scope), -self.distance, self.name, str(self.directory), self.plugin


@dataclass(frozen=True, slots=True)
class LayerText:
    """A text file of a layer.

    Attributes:
        path: The file, absolute.
        text: Its content, decoded, with its imports in place.
        purpose: Whether it instructs or documents.
        title: A heading of its own; without one the text stands under the heading of its layer.
        imports: The files whose content was put in place of an import.
        pieces: Where the parts of such a text come from, in order, so that a remark can name the file and line.
        layer: The layer it belongs to; stamped by the host.
        source: Where it comes from; stamped by the host.
        kind: Whether it is about the work, or about who the agent and its user are. Of several persona texts with one
            title, the most local one is used.
        data: Facts beside the text, as `Section.data`.
    """

    path: Path
    text: str
    purpose: Purpose = "instructions"
    title: str = ""
    imports: tuple[Path, ...] = ()
    layer: Layer | None = None
    source: Source | None = None
    pieces: tuple[Piece, ...] = field(default=(), compare=False, repr=False)
    kind: Literal["workspace", "persona"] = "workspace"
    data: JSON = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        require_absolute(self.path, "LayerText.path")
        require_one_of(self.kind, "LayerText.kind", ("workspace", "persona"))
        require_type(self.text, "LayerText.text", str)
        require_one_of(self.purpose, "LayerText.purpose", PURPOSES)
        require_type(self.title, "LayerText.title", str)
        require_type(self.pieces, "LayerText.pieces", tuple)
        require_json(self.data, "LayerText.data")
        if self.pieces:
            from nexus_core.values.piece import Piece  # noqa: PLC0415 - most texts are one file

            for piece in self.pieces:
                require_type(piece, "LayerText.pieces", Piece)


def _nowhere(_pointer: str) -> tuple[int, int]:
    return 0, 0


@dataclass(frozen=True, slots=True)
class LayerConfig:
    """The settings of a layer, as one file has them.

    Attributes:
        path: The file, absolute.
        settings: What it says, before validation.
        position: Gives the line and column of a setting by its JSON pointer ("" is the whole); (0, 0) is unknown.
        layer: The layer it belongs to; stamped by the host.
        source: Where it comes from; stamped by the host.
        content: The whole file, where that is more than `settings`: it has a shape of its own, or something was held
            back.
    """

    path: Path
    settings: Mapping[str, object]
    position: Callable[[str], tuple[int, int]] = field(default=_nowhere, compare=False)
    layer: Layer | None = None
    source: Source | None = None
    content: Mapping[str, object] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        require_absolute(self.path, "LayerConfig.path")
        require_type(self.settings, "LayerConfig.settings", dict)
        require_type(self.content, "LayerConfig.content", dict, type(None))


@dataclass(frozen=True, slots=True)
class Skipped:
    """A place that was looked at and contributes nothing.

    Attributes:
        path: The file or directory.
        reason: Why, in a few words: "not there", "blank", "anybody may write to it".
        layer: The name of the layer it would have belonged to.
        plugin: The plugin that looked; stamped by the host.
        line: Where in the file, from 1; None when it is about the whole.
        is_mistake: True if nobody writes that on purpose, such as a misspelt key: it becomes a finding of the load.
    """

    path: Path
    reason: str
    layer: str = ""
    plugin: str = ""
    line: int | None = None
    is_mistake: bool = False

    def __post_init__(self) -> None:
        require_absolute(self.path, "Skipped.path")
        require_words(self.reason, "Skipped.reason")
        if self.line is not None:
            require_type(self.line, "Skipped.line", int, type(None))

    @property
    def place(self) -> str:
        """The file with its line, as editors understand it."""
        return str(self.path) if self.line is None else f"{self.path}:{self.line}"
