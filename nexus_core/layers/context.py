"""What was loaded for a directory, completed: its prompt, its settings as an object, and what a subagent gets of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.layers.sections import layer_sections
from nexus_core.rendering.labelled import in_order, render_labelled, render_section
from nexus_core.values.loaded import Loaded
from nexus_core.values.section import Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from nexus_core.config.schema import Config
    from nexus_core.values.layer import LayerText
    from nexus_core.values.servers import MCPServerWithOrigin


class LoadedSource(NamedTuple):
    """A file whose text is in the prompt, and the layer it belongs to."""

    path: Path
    layer_name: str


class ContextSources(NamedTuple):
    """Where everything in a context comes from, in the order in which it was merged."""

    global_dir: Path | None
    ancestor_dirs: tuple[Path, ...]
    local_dir: Path | None
    prompt_sources: tuple[LoadedSource, ...]
    config_sources: tuple[Path, ...]
    mcp_sources: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedContext:
    """Everything that was loaded for a directory.

    Attributes:
        cwd: The directory.
        loaded: Layers, texts, settings and servers, as plugins see them.
        layer_sections: The part of the prompt that comes from files.
        other_sections: The part that is true of this place: environment, active configuration, servers.
        subagent_sections: What stands before the prompt of a parent, if this is the context of a subagent.
        override: A prompt given by hand, which takes the place of all of that.
        load_for: Loads the context of another directory with the same plugins.
    """

    cwd: Path
    loaded: Loaded
    layer_sections: tuple[Section, ...]
    other_sections: tuple[Section, ...]
    load_for: Callable[[Path], LoadedContext]
    subagent_sections: tuple[Section, ...] = ()
    override: str | None = None

    @property
    def system_prompt(self) -> str:
        """The labelled prompt."""
        if self.override is not None:
            return self.override
        prompt = render_labelled([*self.layer_sections, *self.other_sections])
        return "\n\n".join([*map(render_section, self.subagent_sections), prompt])

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the prompt in their order, each with its source."""
        return (*self.subagent_sections, *in_order([*self.layer_sections, *self.other_sections]))

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
        by_scope = {layer.scope: layer.directory for layer in self.loaded.layers}
        return ContextSources(
            global_dir=by_scope.get("global"),
            ancestor_dirs=tuple(layer.directory for layer in self.loaded.layers if layer.scope == "ancestor"),
            local_dir=by_scope.get("local"),
            prompt_sources=tuple(
                LoadedSource(text.path, text.layer.name if text.layer else "") for text in self.loaded.texts
            ),
            config_sources=_paths(config.path for config in self.loaded.configs if config.path.name == "config.json"),
            mcp_sources=_paths(config.path for config in self.loaded.configs if "mcp_servers" in config.settings),
        )

    def for_subagent(
        self, cwd: Path, system_prompt: str | None = None, *, include_ancestors: bool = False
    ) -> LoadedContext:
        """The context of a subagent that works in `cwd`: its own instructions, then this context, nothing twice.

        Args:
            cwd: Where the subagent works.
            system_prompt: A prompt that takes the place of everything.
            include_ancestors: Whether the ancestors of `cwd` that this context lacks are added too.
        """
        child = self.load_for(cwd)
        known = {text.path.resolve() for text in self.loaded.texts} | {text.text for text in self.loaded.texts}
        added = [
            text
            for text in child.loaded.texts
            if _speaks_for_subagent(text, include_ancestors=include_ancestors)
            and text.path.resolve() not in known
            and text.text not in known
        ]
        return LoadedContext(
            cwd=child.cwd,
            loaded=child.loaded,
            layer_sections=self.layer_sections,
            other_sections=child.other_sections,
            load_for=self.load_for,
            subagent_sections=(*self.subagent_sections, *map(_subagent_section, reversed(added))),
            override=system_prompt,
        )


def _speaks_for_subagent(text: LayerText, *, include_ancestors: bool) -> bool:
    if text.layer is None or text.title:  # workspace rules stay with whoever was given them
        return False
    return text.layer.scope == "local" or (include_ancestors and text.layer.scope == "ancestor")


def _subagent_section(text: LayerText) -> Section:
    (section,) = layer_sections(Loaded(texts=(text,)))
    return Section("subagent", title="Subagent Configuration", text=section.text, source=section.source)


def _paths(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(paths))
