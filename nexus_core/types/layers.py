"""Layers on disk with their texts and settings, and everything that a load found."""

from __future__ import annotations

from dataclasses import dataclass as standard_dataclass
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from nexus_core.types.base import (
    dataclass,
    require_absolute,
    require_json,
    require_one_of,
    require_text,
    require_type,
)
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nexus_core.types.mcp import ActiveSetting, MCPServerWithOrigin
    from nexus_core.types.messages import JSON
    from nexus_core.types.plugins import Finding
    from nexus_core.types.prompt import Source


class Piece(NamedTuple):
    """The origin of a part of a text that was made of several files.

    Attributes:
        start: Offset of its first character in the text, from 0; it ends where the next piece starts.
        path: The file that it comes from.
        line: The line in that file where it starts, from 1.
        column: The column in that line, from 1.
    """

    start: int
    path: Path
    line: int
    column: int


LayerScope = Literal["defaults", "global", "ancestor", "local"]
"""The distance of a layer from the working directory; later ones extend earlier ones."""

TextPurpose = Literal["instructions", "documentation"]
"""The purpose of a text: instructions for the agent, or a description of something."""

LAYER_SCOPES: tuple[LayerScope, ...] = get_args(LayerScope)
TEXT_PURPOSES: tuple[TextPurpose, ...] = get_args(TextPurpose)


@dataclass(frozen=True, slots=True)
class Layer:
    """A directory that contributes texts and settings.

    Attributes:
        name: `defaults`, `global`, `ancestor:<dirname>`, `local`, or a name of your own.
        directory: The directory of the layer's own files, absolute; it need not exist.
        scope: The distance from the working directory, which decides the order.
        distance: Levels above the working directory; the farthest ancestor comes first.
        root: The project directory of the layer; None if that is `directory` itself.
        only_rules: True if only workspace rules are read here, because it is beyond `ancestor_depth`.
        boundary: The directory, with links resolved, that all files of the layer must be inside of; None to detect it.
        in_repository: True if the boundary is that of a repository.
        from_repository: True if it is in the user's home, but may have come with a repository that contains the home;
            set by the core until the user has approved it.
        plugin: The plugin that found it; set by the host.
    """

    name: str
    directory: Path
    scope: LayerScope
    distance: int = 0
    root: Path | None = None
    only_rules: bool = False
    boundary: Path | None = field(default=None, compare=False)
    in_repository: bool = field(default=False, compare=False)
    from_repository: bool = field(default=False, compare=False)
    plugin: str = ""

    def __post_init__(self) -> None:
        require_text(self.name, "Layer.name")
        require_absolute(self.directory, "Layer.directory")
        require_one_of(self.scope, "Layer.scope", LAYER_SCOPES)
        require_type(self.distance, "Layer.distance", int)
        if self.root is not None:
            require_absolute(self.root, "Layer.root")

    @property
    def project(self) -> Path:
        """The project directory of the layer."""
        return self.root or self.directory

    @property
    def is_own(self) -> bool:
        """True if it belongs to the user or to Nexus, rather than to a project, which may be untrusted."""
        return self.scope in {"defaults", "global"} and not self.from_repository

    @property
    def sort_key(self) -> tuple[int, int, str, str, str]:
        """The key of the load order: scope, farthest first, then name, directory and plugin."""
        return LAYER_SCOPES.index(self.scope), -self.distance, self.name, str(self.directory), self.plugin


@dataclass(frozen=True, slots=True)
class LayerText:
    """A text file of a layer.

    Attributes:
        path: The file, absolute.
        text: Its decoded content, with imports expanded.
        purpose: Instructions or documentation.
        title: The heading of the text; "" puts it under the heading of its layer.
        imports: The files that were imported into the text.
        layer: The layer that it belongs to; set by the host.
        source: The source of the text; set by the host.
        pieces: The origins of the parts of a text with imports, in order, so that a finding can name file and line.
        kind: `workspace` for the work, `persona` for the identity of the agent and its user. Of several persona texts
            with one title, the most local one is used.
        data: Machine-readable data beside the text, as in `Section.data`.
    """

    path: Path
    text: str
    purpose: TextPurpose = "instructions"
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
        require_one_of(self.purpose, "LayerText.purpose", TEXT_PURPOSES)
        require_type(self.title, "LayerText.title", str)
        require_type(self.pieces, "LayerText.pieces", tuple)
        require_json(self.data, "LayerText.data")
        if self.pieces:
            for piece in self.pieces:
                require_type(piece, "LayerText.pieces", Piece)


def _unknown_position(_pointer: str) -> tuple[int, int]:
    return 0, 0


@dataclass(frozen=True, slots=True)
class LayerConfig:
    """The settings from one file of a layer.

    Attributes:
        path: The file, absolute.
        settings: The settings, not yet validated.
        position: Returns line and column of a setting by its JSON pointer ("" for the whole file); (0, 0) if unknown.
        layer: The layer that it belongs to; set by the host.
        source: The source of the settings; set by the host.
        content: The complete content of the file if it is more than `settings`, because the file has another format or
            some settings were withheld; None if it is the same.
    """

    path: Path
    settings: Mapping[str, object]
    position: Callable[[str], tuple[int, int]] = field(default=_unknown_position, compare=False)
    layer: Layer | None = None
    source: Source | None = None
    content: Mapping[str, object] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        require_absolute(self.path, "LayerConfig.path")
        require_type(self.settings, "LayerConfig.settings", dict)
        require_type(self.content, "LayerConfig.content", dict, type(None))


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file or directory that was searched and contributes nothing.

    Attributes:
        path: The file or directory.
        reason: The reason in a few words: "not there", "blank".
        layer: The name of the layer that it would belong to.
        plugin: The plugin that searched it; set by the host.
        line: The line in the file, from 1; None for the whole file.
        is_mistake: True for an obvious mistake, such as a misspelt key: it becomes a finding of the load.
    """

    path: Path
    reason: str
    layer: str = ""
    plugin: str = ""
    line: int | None = None
    is_mistake: bool = False

    def __post_init__(self) -> None:
        require_absolute(self.path, "SkippedFile.path")
        require_text(self.reason, "SkippedFile.reason")
        if self.line is not None:
            require_type(self.line, "SkippedFile.line", int, type(None))

    @property
    def place(self) -> str:
        """The file with its line, in the form `path:line` that editors open."""
        return str(self.path) if self.line is None else f"{self.path}:{self.line}"


_NO_SETTINGS = Settings()


@standard_dataclass(frozen=True)  # without slots, because a cached property needs a __dict__
class LoadedLayers:
    """The layers of a request, with their texts, settings and findings.

    Attributes:
        layers: The layers in order of precedence; the last one is the most local.
        texts: The texts of the layers in the same order, sanitized.
        configs: The permitted settings of each file, in the same order.
        settings: The merged settings, each value with its origin.
        servers: The MCP servers of the settings.
        active: Settings of a project that start or connect to something, each with the user's decision.
        skipped: Files and directories that contribute nothing, each with the reason.
        findings: Warnings and notes for the user.
        repeated: Texts that are left out because they duplicate another, sanitized.
    """

    layers: tuple[Layer, ...] = ()
    texts: tuple[LayerText, ...] = ()
    configs: tuple[LayerConfig, ...] = ()
    settings: Settings = _NO_SETTINGS
    servers: tuple[MCPServerWithOrigin, ...] = ()
    active: tuple[ActiveSetting, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()
    findings: tuple[Finding, ...] = ()
    repeated: tuple[LayerText, ...] = ()

    def without_servers(self) -> LoadedLayers:
        """Return a copy without MCP servers, for agents that get none."""
        return replace(self, servers=())

    def texts_of(self, layer: Layer) -> tuple[LayerText, ...]:
        """Return the texts that were found in `layer`."""
        return tuple(self._texts_by_layer.get(layer, ()))

    @cached_property
    def _texts_by_layer(self) -> dict[Layer | None, list[LayerText]]:
        found: dict[Layer | None, list[LayerText]] = {}
        for text in self.texts:
            found.setdefault(text.layer, []).append(text)
        return found
