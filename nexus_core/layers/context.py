"""The context of a directory: prompt, settings, layers, and a subagent's share."""

from __future__ import annotations

import copy
import os
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.merge import deep_merge
from nexus_core.config.pointers import SERVERS
from nexus_core.layers.load import SeenTexts
from nexus_core.rendering import render_labelled, render_section, sort_sections
from nexus_core.types.base import dataclass
from nexus_core.types.prompt import Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from nexus_core.config.schema import Config
    from nexus_core.layers.agent_view import AgentView
    from nexus_core.types.layers import Layer, LayerConfig, LayerText, LoadedLayers
    from nexus_core.types.mcp import MCPServerWithOrigin


class LoadedSource(NamedTuple):
    """A file whose text is in the prompt, and the layer it belongs to."""

    path: Path
    layer_name: str


class ContextSources(NamedTuple):
    """The sources of everything in a context, in the order in which they were merged."""

    global_dir: Path | None
    ancestor_dirs: list[Path]
    local_dir: Path | None
    prompt_sources: list[LoadedSource]
    config_sources: list[Path]
    mcp_sources: list[Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedContext:
    """Everything that was loaded for a directory.

    Attributes:
        cwd: The directory.
        loaded: Layers, texts, settings and servers, as plugins see them.
        layer_sections: The sections of the prompt that come from files.
        other_sections: The sections about this directory: environment, active configuration, servers.
        load_for: Loads the context of a subagent in another directory, with the same plugins.
        parent: For a subagent, the context of the agent that created it.
        added: For a subagent, the texts that its parent does not have.
        override: A prompt given by the caller, which replaces both kinds of sections.
        agent_view: What another agent would read here, if the context is that agent's.
    """

    cwd: Path
    loaded: LoadedLayers
    layer_sections: tuple[Section, ...]
    other_sections: tuple[Section, ...]
    load_for: Callable[[str | os.PathLike[str]], LoadedContext]
    parent: LoadedContext | None = None
    added: tuple[LayerText, ...] = ()
    override: str | None = None
    agent_view: AgentView | None = None

    @property
    def system_prompt(self) -> str:
        """The labelled prompt."""
        return self.render()

    def render(self, *, home: Path | None = None) -> str:
        """Return the labelled prompt. Paths below `home` begin with `~`, so that it is the same for every user."""
        prompt = self.override
        if prompt is None:
            prompt = render_labelled([*self.layer_sections, *self.other_sections], home=home)
        return "\n\n".join([*(render_section(section, home=home) for section in self.subagent_sections), prompt])

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the prompt in order, each with its source. A prompt given by the caller has none."""
        rest = [] if self.override is not None else sort_sections([*self.layer_sections, *self.other_sections])
        return (*self.subagent_sections, *rest)

    @property
    def subagent_sections(self) -> tuple[Section, ...]:
        """The sections before the prompt that a subagent inherits, its own instructions first."""
        inherited = self.parent.subagent_sections if self.parent else ()
        return (*map(_build_subagent_section, self.added), *inherited)

    @property
    def texts(self) -> tuple[LayerText, ...]:
        """The texts of files that are in the prompt."""
        if self.parent is not None:
            return (*self.added, *self.parent.texts)
        return () if self.override is not None else self.loaded.texts

    @property
    def layers(self) -> tuple[ContextLayer, ...]:
        """The layers of this directory one by one, with the content of their files, in the order of the load."""
        return build_context_layers(self.loaded)

    @property
    def config(self) -> Config:
        """The settings with every default filled in."""
        from nexus_core.config.validate import build_config

        return build_config(self.loaded.settings)

    @property
    def mcp_servers(self) -> list[MCPServerWithOrigin]:
        """The servers, each with its origin."""
        return list(self.loaded.servers)

    @property
    def sources(self) -> ContextSources:
        """The directories and files that everything comes from."""
        places = [(layer, place) for layer in self.loaded.layers if (place := find_layer_directory(layer, self.loaded))]
        by_name = {layer.name: place for layer, place in places}
        configs = self.loaded.configs
        return ContextSources(
            global_dir=by_name.get("global"),
            ancestor_dirs=[place for layer, place in places if layer.scope == "ancestor"],
            local_dir=by_name.get("local"),
            prompt_sources=[LoadedSource(text.path, text.layer.name if text.layer else "") for text in self.texts],
            config_sources=_list_unique_paths(config.path for config in configs if not is_servers_file(config)),
            mcp_sources=_list_unique_paths(config.path for config in configs if SERVERS in config.settings),
        )

    def for_subagent(
        self, cwd: str | os.PathLike[str], system_prompt: str | None = None, *, include_ancestors: bool = False
    ) -> LoadedContext:
        """Return the context of a subagent in `cwd`: its own instructions, then this context, nothing twice.

        Its settings and its environment are those of `cwd`; it gets no MCP servers.

        Args:
            cwd: The working directory of the subagent.
            system_prompt: A prompt that replaces everything.
            include_ancestors: True to add the ancestors of `cwd` that this context lacks.
        """
        child = self.load_for(cwd)
        if system_prompt is not None:
            return replace(child, override=system_prompt)
        return replace(
            child,
            layer_sections=self.layer_sections,
            parent=self,
            added=tuple(self._lacking(child.loaded, include_ancestors=include_ancestors)),
            override=self.override,
        )

    def _lacking(self, loaded: LoadedLayers, *, include_ancestors: bool) -> Iterator[LayerText]:
        """Yield the texts for a subagent that are not in this prompt, the most local first."""
        known = SeenTexts(self.texts)
        scopes = {"local", "ancestor"} if include_ancestors else {"local"}
        # A text that repeats one of the subagent's own layers may still be new to its parent.
        for text in sorted((*loaded.texts, *loaded.repeated), key=_get_nearness):
            # Workspace rules, which have a title, stay with the agent that has them.
            applies = text.layer and text.layer.scope in scopes and not text.title and text.text.strip()
            if applies and known.add(text) is None:
                yield text


def _get_nearness(text: LayerText) -> tuple[int, bool]:
    return text.layer.distance if text.layer else 0, text.purpose != "instructions"


def _build_subagent_section(text: LayerText) -> Section:
    return Section("subagent", title="Subagent Configuration", text=text.text, source=text.source)


def _list_unique_paths(paths: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(paths))


@dataclass(frozen=True, slots=True)
class ContextLayer:
    """One layer by itself. Its settings are neither validated nor approved: to act on settings, use the merged ones.

    Attributes:
        name: `defaults`, `global`, `ancestor:<dirname>` or `local`.
        path: The directory that holds its files.
        prompt: The text of its NEXUS.md, sanitized; None without one, or if all of it is in the prompt already.
        config: The content of its config.json; None without one.
        mcp: The content of its mcp.json; None without one.
    """

    name: str
    path: Path
    prompt: str | None
    config: dict[str, Any] | None = field(repr=False)  # may hold secrets, as may the servers
    mcp: dict[str, Any] | None = field(repr=False)


def build_context_layers(loaded: LoadedLayers) -> tuple[ContextLayer, ...]:
    """Return the layers that exist, in the order of the load."""
    return tuple(
        _build_context_layer(layer, place, loaded)
        for layer in loaded.layers
        if (place := find_layer_directory(layer, loaded))
    )


def find_layer_directory(layer: Layer, loaded: LoadedLayers) -> Path | None:
    """Return the directory that holds the files of a layer, or None if it has only workspace rules, or nothing."""
    if layer.only_rules:
        return None
    if os.path.isdir(layer.directory):  # noqa: PTH112 - never fails
        return layer.directory
    return layer.project if any(text.layer == layer and not text.title for text in loaded.texts) else None


def is_servers_file(config: LayerConfig) -> bool:
    """Return True if a file only defines MCP servers."""
    return config.settings.keys() == {SERVERS} and config.path.name != "config.json"


def _build_context_layer(layer: Layer, place: Path, loaded: LoadedLayers) -> ContextLayer:
    own = [text for text in loaded.texts_of(layer) if text.purpose == "instructions" and not text.title]
    configs = [config for config in loaded.configs if config.layer == layer]
    return ContextLayer(
        name=layer.name,
        path=place,
        prompt="\n\n".join(text.text for text in own) if own else None,
        config=_merge_contents(config for config in configs if not is_servers_file(config)),
        mcp=_merge_contents(config for config in configs if is_servers_file(config)),
    )


def _merge_contents(configs: Iterable[LayerConfig]) -> dict[str, Any] | None:
    """Return a copy of the content of some files, merged. Usually one file, unless a plugin reads more."""
    merged: dict[str, Any] | None = None
    for config in configs:
        content = config.settings if config.content is None else config.content
        merged = deep_merge(merged or {}, content)
    return copy.deepcopy(merged)
