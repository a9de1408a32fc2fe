"""What was loaded for a directory, completed: its prompt, its settings as an object, and what a subagent gets of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.rendering.labelled import in_order, render_labelled, render_section
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.section import Section

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from nexus_core.config.schema import Config
    from nexus_core.layers.context_layer import ContextLayer
    from nexus_core.layers.profiles import ProfileView
    from nexus_core.values.layer import LayerText
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.servers import MCPServerWithOrigin


class LoadedSource(NamedTuple):
    """A file whose text is in the prompt, and the layer it belongs to."""

    path: Path
    layer_name: str


class ContextSources(NamedTuple):
    """Where everything in a context comes from, in the order in which it was merged."""

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
        layer_sections: The part of the prompt that comes from files.
        other_sections: The part that is true of this place: environment, active configuration, servers.
        load_for: Loads what a subagent gets of another directory, with the same plugins.
        parent: For a subagent, the context of the agent that made it.
        added: For a subagent, the texts that its parent does not have.
        override: A prompt given by hand, which takes the place of both parts.
        agent_view: What another agent would read here, when the context is that agent's.
    """

    cwd: Path
    loaded: Loaded
    layer_sections: tuple[Section, ...]
    other_sections: tuple[Section, ...]
    load_for: Callable[[str | os.PathLike[str]], LoadedContext]
    parent: LoadedContext | None = None
    added: tuple[LayerText, ...] = ()
    override: str | None = None
    agent_view: ProfileView | None = None

    @property
    def system_prompt(self) -> str:
        """The labelled prompt."""
        return self.render()

    def render(self, *, home: Path | None = None) -> str:
        """The labelled prompt; the paths of files below `home` begin with `~`, so that it is the same for everybody."""
        prompt = self.override
        if prompt is None:
            prompt = render_labelled([*self.layer_sections, *self.other_sections], home=home)
        return "\n\n".join([*(render_section(section, home=home) for section in self.subagent_sections), prompt])

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the prompt in their order, each with its source; a prompt given by hand has none."""
        rest = [] if self.override is not None else in_order([*self.layer_sections, *self.other_sections])
        return (*self.subagent_sections, *rest)

    @property
    def subagent_sections(self) -> tuple[Section, ...]:
        """What stands before the prompt that a subagent inherits, its own instructions first."""
        inherited = self.parent.subagent_sections if self.parent else ()
        return (*map(_subagent_section, self.added), *inherited)

    @property
    def texts(self) -> tuple[LayerText, ...]:
        """The texts of files that are in the prompt."""
        if self.parent is not None:
            return (*self.added, *self.parent.texts)
        return () if self.override is not None else self.loaded.texts

    @property
    def layers(self) -> tuple[ContextLayer, ...]:
        """The layers of this directory one by one, as their files have them, in the order of the load."""
        from nexus_core.layers.context_layer import context_layers  # noqa: PLC0415 - a prompt needs no single layer

        return context_layers(self.loaded)

    @property
    def config(self) -> Config:
        """The settings with every default filled in."""
        from nexus_core.config.validation import build_config  # noqa: PLC0415 - only those who ask for it need pydantic

        return build_config(self.loaded.settings)

    @property
    def mcp_servers(self) -> list[MCPServerWithOrigin]:
        """The servers, each with its origin."""
        return list(self.loaded.servers)

    @property
    def sources(self) -> ContextSources:
        """Where everything comes from."""
        from nexus_core.config.servers import SETTING  # noqa: PLC0415 - as above
        from nexus_core.layers.context_layer import is_servers_file, layer_place  # noqa: PLC0415 - as above

        places = [(layer, place) for layer in self.loaded.layers if (place := layer_place(layer, self.loaded))]
        by_name = {layer.name: place for layer, place in places}
        configs = self.loaded.configs
        return ContextSources(
            global_dir=by_name.get("global"),
            ancestor_dirs=[place for layer, place in places if layer.scope == "ancestor"],
            local_dir=by_name.get("local"),
            prompt_sources=[LoadedSource(text.path, text.layer.name if text.layer else "") for text in self.texts],
            config_sources=_paths(config.path for config in configs if not is_servers_file(config)),
            mcp_sources=_paths(config.path for config in configs if SETTING in config.settings),
        )

    def for_subagent(
        self, cwd: str | os.PathLike[str], system_prompt: str | None = None, *, include_ancestors: bool = False
    ) -> LoadedContext:
        """The context of a subagent that works in `cwd`: its own instructions, then this context, nothing twice.

        Its settings and its environment are those of `cwd`; it gets no MCP servers.

        Args:
            cwd: Where the subagent works.
            system_prompt: A prompt that takes the place of everything.
            include_ancestors: Whether the ancestors of `cwd` that this context lacks are added too.
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

    def _lacking(self, loaded: Loaded, *, include_ancestors: bool) -> Iterator[LayerText]:
        """What speaks for a subagent and is not in this prompt, the most local first."""
        from nexus_core.layers.texts import Known  # noqa: PLC0415 - most contexts have no subagent

        known = Known(self.texts)
        scopes = {"local", "ancestor"} if include_ancestors else {"local"}
        # What repeats a text of the subagent's surroundings may still be new to its parent.
        for text in sorted((*loaded.texts, *loaded.repeated), key=_nearness):
            # Workspace rules, which have a title, stay with whoever was given them.
            speaks = text.layer and text.layer.scope in scopes and not text.title and text.text.strip()
            if speaks and known.add(text) is None:
                yield text


def _nearness(text: LayerText) -> tuple[int, bool]:
    return text.layer.distance if text.layer else 0, text.purpose != "instructions"


def _subagent_section(text: LayerText) -> Section:
    return Section("subagent", title="Subagent Configuration", text=text.text, source=text.source)


def _paths(paths: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(paths))
