"""Inputs of the static zone: files, sections, role, renderer and tools, valid until a file changes.

Calls of renderers enforce their contract: a wrong result or an exception becomes a PluginError.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from functools import cached_property
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from nexus_core.errors import NexusError, PluginError
from nexus_core.host.calls import describe_exception
from nexus_core.host.discovery import OWN_DISTRIBUTION
from nexus_core.layers.context import LoadedContext
from nexus_core.layers.load import build_layer_sections, build_permissions_section
from nexus_core.layers.policy import inherit_permissions
from nexus_core.rendering import LABELLED_RENDERER, find_agent_role, find_renderer, get_replacing_plugin, sort_sections
from nexus_core.text.safety import repair_surrogates
from nexus_core.types.prompt import ArrangedMessages, Renderer, Section, Source
from nexus_core.types.request import DEFAULT_MODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nexus_core.host.manager import Host
    from nexus_core.request.prefix import ToolOffer
    from nexus_core.types.layers import Layer, LoadedLayers
    from nexus_core.types.mcp import ActiveSetting
    from nexus_core.types.messages import JSON, Message, Tool
    from nexus_core.types.prompt import AgentRole, ArrangeRequest
    from nexus_core.types.request import AgentMode, Request
    from nexus_core.types.settings import Settings

_ARRANGED_LENGTH = 2


def configure_renderer(renderer: Renderer, loaded: LoadedLayers) -> Renderer:
    """Return a renderer configured by the loaded settings and files.

    Raises:
        PluginError: The renderer failed or returned something else. So do the functions below.
    """
    if renderer.configure is None:
        return renderer
    result = _call(renderer, "configure", renderer.configure, loaded)
    if not isinstance(result, Renderer):
        raise _build_error(renderer, "configure", f"answered {_describe(result)}, expected a Renderer")
    return result if result.plugin == renderer.plugin else replace(result, plugin=renderer.plugin)


def render_system(renderer: Renderer, sections: Sequence[Section]) -> str:
    """Return the system prompt of the sections, with surrogate pairs joined."""
    result = _call(renderer, "system", renderer.system, sections)
    if not isinstance(result, str):
        raise _build_error(renderer, "system", f"answered {_describe(result)}, expected a text")
    return result if result.isascii() else repair_surrogates(result)


def render_input(renderer: Renderer, request: Request, sections: Sequence[Section], now: int) -> Message:
    """Return the rendered user message; arguments as for `Renderer.current`."""
    result = _call(renderer, "current", renderer.current, request, sections, now)
    if not _is_message(result) or result.role != "user":
        raise _build_error(renderer, "current", f"answered {_describe(result)}, expected a message of the user")
    if _is_blank(result) and request.message is not None and not _is_blank(request.message):
        raise _build_error(
            renderer, "current", "answered an empty message, so that the model would not read what was said"
        )
    return result


def arrange_messages(renderer: Renderer, request: ArrangeRequest) -> ArrangedMessages:
    """Return history and input as rearranged by a renderer that has `arrange`."""
    assert renderer.arrange is not None  # noqa: S101 - callers check it
    result = _call(renderer, "arrange", renderer.arrange, request)
    if not isinstance(result, tuple) or len(result) != _ARRANGED_LENGTH or not _are_messages(*result):
        raise _build_error(renderer, "arrange", "did not answer with messages and a message, as in Arranged")
    return ArrangedMessages(*result)


def _are_messages(history: object, current: object) -> bool:
    is_input = current is None or _is_message(current)
    return is_input and isinstance(history, tuple) and all(map(_is_message, history))


def _is_message(value: object) -> TypeGuard[Message]:
    from nexus_core.types.messages import Message

    return isinstance(value, Message)


def _is_blank(message: Message) -> bool:
    """True if a message holds nothing but blank texts."""
    from nexus_core.types.messages import Text

    return all(isinstance(part, Text) and not part.text.strip() for part in message.parts)


def _call(renderer: Renderer, name: str, function: Callable[..., object], *arguments: object) -> Any:  # noqa: ANN401 - callers check the result
    try:
        return function(*arguments)
    except NexusError:  # already a message to the user
        raise
    except (Exception, SystemExit) as error:
        raise _build_error(renderer, name, describe_exception(error)) from error


def _describe(result: object) -> str:
    return f"a message of the {result.role}" if _is_message(result) else type(result).__name__


def _build_error(renderer: Renderer, name: str, problem: str) -> PluginError:
    message = f"{name} of its renderer {renderer.name!r} {problem}"
    return PluginError(message, plugin=renderer.plugin or OWN_DISTRIBUTION, hook="nexus_renderers")


OVERRIDE_SECTION = "system_prompt"
"""The id of the only section if the caller passes a whole system prompt."""


def build_override_section(text: str) -> Section:
    """Return the only section for a system prompt that the caller passes."""
    return Section(OVERRIDE_SECTION, "System Prompt", text, source=Source(uri="caller:"))


class StaticContext:
    """Everything the static zone of a session is built from.

    Calls each plugin hook at most once.

    Args:
        request: The request without what changes from turn to turn.
        loaded: The loaded layers.
        sections: The static sections without those of the renderer.
        host: The plugin manager.
        settings: The settings in effect, which a worker's parents may tighten; None for those of the layers.

    Raises:
        UnknownNameError: No plugin offers the role or the renderer.
    """

    def __init__(
        self,
        request: Request,
        loaded: LoadedLayers,
        sections: Iterable[Section],
        host: Host,
        settings: Settings | None = None,
    ) -> None:
        self.request = request
        self.loaded = loaded
        self.settings: Settings = settings or loaded.settings
        self._host = host
        self.role: AgentRole = find_agent_role(host, request.role)
        configured = loaded.settings.get("renderer")
        name = request.renderer or (configured if isinstance(configured, str) else LABELLED_RENDERER.name)
        self.renderer: Renderer = configure_renderer(find_renderer(host, name), loaded)
        self.sections = tuple(sort_sections((*sections, *self.renderer.sections)))
        if request.system_prompt:
            self.sections = (build_override_section(request.system_prompt),)

    @property
    def is_current(self) -> bool:
        """True if the renderer's own sections are unchanged.

        They may come from files that the layer cache does not watch.
        """
        return configure_renderer(self.renderer, self.loaded).sections == self.renderer.sections

    @property
    def cwd(self) -> Path:
        """The directory that the agent works in."""
        return self.request.cwd

    @property
    def permissions(self) -> tuple[str, ...]:
        """The permission level of the settings, and the caller's permissions."""
        return (str(self.settings.get("permissions.level", "trusted")), *(self.request.permissions or ()))

    @cached_property
    def tool_offers(self) -> tuple[ToolOffer, ...]:
        """All tools, also those that are kept from the model, with the reason."""
        from nexus_core.request.prefix import offer_tools

        added = self._host.tools(self.request, self.loaded)
        return offer_tools(self.request.tools or (), added, self.role, self.settings, self.request.permissions)

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model may call."""
        from nexus_core.request.prefix import list_permitted_tools

        return list_permitted_tools(self.tool_offers)

    @cached_property
    def prefix_key(self) -> JSON:
        """The values that start a new prefix at once when one of them changes."""
        from nexus_core.dialects.neutral import encode_value

        request, rules = self.request, self.settings.get("permissions")
        plugin = get_replacing_plugin(self._host, self.renderer)
        replacing = {"renderer_plugin": plugin} if plugin else {}
        if request.system_prompt:
            replacing["system_prompt"] = request.system_prompt
        return replacing | {
            "mode": request.mode,
            "role": self.role.name,
            "renderer": self.renderer.name,
            "permissions": list(self.permissions),
            "rules": rules if isinstance(rules, dict) else {},
            "trust": self._list_trusted_parts(),
            "task": request.task,
            "skills": None if request.skills is None else list(request.skills),
            "tools": [encode_value(tool) for tool in request.tools or ()],
        }

    @cached_property
    def sections_blob(self) -> bytes:
        """The sections, serialized."""
        from nexus_core.request.prefix import write_sections

        return write_sections(self.sections)

    @cached_property
    def sections_digest(self) -> str:
        """The digest of `sections_blob`."""
        return _compute_digest(self.sections_blob)

    @cached_property
    def system_prompt(self) -> str:
        """The rendered system prompt."""
        if self.request.system_prompt:
            return self.request.system_prompt
        return render_system(self.renderer, self.sections)

    @cached_property
    def settings_blob(self) -> bytes:
        """The settings of a call, serialized."""
        from nexus_core.request.prefix import write_settings

        return write_settings(self.settings)

    @cached_property
    def settings_digest(self) -> str:
        """The digest of `settings_blob`."""
        return _compute_digest(self.settings_blob)

    def _list_trusted_parts(self) -> list[list[Any]]:
        """Return path, pointer and digest of the project settings in effect.

        Settings that wait for the user's approval have no effect.
        """
        return sorted(
            [str(part.path), part.pointer, _compute_digest(part.content.encode("utf-8", "surrogatepass"))]
            for part in self.loaded.active
            if part.decision == "allowed"
        )


def _compute_digest(content: bytes) -> str:
    from nexus_core.ledger.codec import compute_blob_digest

    return compute_blob_digest(content)


MIN_FILE_AGE_NS = 100_000_000
"""A file changed more recently than this may change again without a new timestamp, because the clocks of file systems
tick slowly."""
MAX_CACHED_DIRECTORIES = 32
"""Each worker (subagent) may have a directory of its own."""
MAX_CACHED_CONTEXTS = 16
"""Most programs have one or two."""
SUBAGENT_ORDER = 99
"""Puts a worker's own instructions before those it inherits."""
LoadedDirectory = tuple["Request", "LoadedLayers"]
"""The request for a directory and its layers."""
FileFacts = tuple[int, int, int, int, int] | None


class StaticContextCache:
    """Cache of static contexts, by loaded layers and request.

    Args:
        host: The plugin manager.
        layer_cache: Cache of loaded layers.
    """

    def __init__(self, host: Host, layer_cache: LayerCache) -> None:
        self._host = host
        self._layer_cache = layer_cache
        self._known: list[tuple[list[LoadedLayers], tuple[Request, Mapping[str, Any], int], StaticContext]] = []

    def load(self, directories: Sequence[Path], mode: AgentMode = DEFAULT_MODE) -> list[LoadedDirectory]:
        """Return the loaded directories, loading again those that have changed.

        Args:
            directories: The working directory; for a worker, preceded by those of the agents that it inherits from.
            mode: The mode of the agent.
        """
        return [self._layer_cache.get(directory, mode) for directory in directories]

    def get_last_load(
        self, directories: Sequence[Path], mode: AgentMode = DEFAULT_MODE
    ) -> list[LoadedDirectory] | None:
        """Return the last loads, even if outdated; None if one is missing."""
        loads = [self._layer_cache.get_last(directory, mode) for directory in directories]
        found = [each for each in loads if each is not None]
        return found if len(found) == len(loads) else None

    def get_static_context(
        self, loaded: Sequence[LoadedDirectory], fields: Mapping[str, Any], reloads: int
    ) -> StaticContext:
        """Return the static context of a session, the same object while nothing changes.

        Args:
            loaded: The loaded directories.
            fields: The fields of the request that the caller decides: role, renderer, task, tools.
            reloads: How often the session was reloaded: plugins are asked again after each time.

        Raises:
            UnknownNameError: No plugin offers the role or the renderer.
        """
        layers, key = [each for _, each in loaded], (loaded[-1][0], fields, reloads)
        for cached_layers, cached_key, cached in self._known:
            is_same = len(cached_layers) == len(layers) and all(map(is_, cached_layers, layers))
            if is_same and cached_key == key and cached.is_current:
                return cached
        static = build_static_context(self._host, loaded, fields)
        self._known = [(layers, key, static), *self._known[: MAX_CACHED_CONTEXTS - 1]]
        return static


def build_static_context(host: Host, loaded: Sequence[LoadedDirectory], fields: Mapping[str, Any]) -> StaticContext:
    """Build the static context of a session.

    `nexus show` and `Nexus.system_prompt` use it too, so that they print what a session sends.

    Args:
        host: The plugin manager.
        loaded: The loaded directory; for a worker, preceded by those of the agents that it inherits from.
        fields: The fields of the request that the caller decides: role, renderer, mode, permissions, task, tools.

    Raises:
        UnknownNameError: No plugin offers the role or the renderer.
    """
    request, layers = loaded[-1]
    request = replace(request, **fields, is_call=True).standing
    settings = layers.settings
    if len(loaded) > 1:
        settings = inherit_permissions(settings, (each.settings for _, each in loaded[:-1]))
    if request.system_prompt:
        return StaticContext(request, layers, (), host, settings)
    layer_sections = build_layer_sections(layers) if len(loaded) == 1 else _build_worker_sections(loaded)
    other_sections = host.static_sections(request, layers)
    permissions = build_permissions_section(settings, request.permissions or ())
    return StaticContext(request, layers, [*layer_sections, permissions, *other_sections], host, settings)


def _build_worker_sections(loaded: Sequence[LoadedDirectory]) -> list[Section]:
    """Return the instructions of a worker: those of its own directory that its parents lack, then theirs."""
    contexts = {
        one.cwd: LoadedContext(
            cwd=one.cwd,
            loaded=each,
            layer_sections=build_layer_sections(each),
            other_sections=(),
            load_for=lambda cwd: contexts[cwd],  # type: ignore[index] # only for directories in it
        )
        for one, each in loaded
    }
    context = contexts[loaded[0][0].cwd]
    for one, _ in loaded[1:]:
        if one.cwd != context.cwd:
            context = context.for_subagent(one.cwd)
    own = [replace(section, order=SUBAGENT_ORDER) for section in context.subagent_sections]
    return [*own, *context.layer_sections]


# ---- loaded layers --------------------------------------------------------------------------------------------------


class LayerCache:
    """Cache of loaded layers by directory and mode.

    Args:
        load: Loads a directory and returns the request for it, which depends on the files, and the layers.
    """

    def __init__(self, load: Callable[[Path, AgentMode], tuple[Request, LoadedLayers]]) -> None:
        self._load = load
        self._known: dict[tuple[Path, AgentMode], tuple[FileSnapshot, Request, LoadedLayers]] = {}

    def get(self, cwd: Path, mode: AgentMode) -> tuple[Request, LoadedLayers]:
        """Return request and layers of a directory, the same while unchanged."""
        cached = self._known.get((cwd, mode))
        if cached is not None and cached[0].is_fresh():
            return cached[1:]
        since = time.time_ns()
        request, loaded = self._load(cwd, mode)
        snapshot = take_file_snapshot(list_watched_paths(request, loaded), since)
        if (
            cached is not None
            and cached[2] == loaded
            and _are_unchanged(cached[0], snapshot, list_skill_paths(request, loaded))
        ):
            loaded = cached[2]  # the snapshot was not settled, or a file was only touched
        if len(self._known) >= MAX_CACHED_DIRECTORIES:
            self._known.clear()
        self._known[cwd, mode] = snapshot, request, loaded
        return request, loaded

    def get_last(self, cwd: Path, mode: AgentMode) -> tuple[Request, LoadedLayers] | None:
        """Return the last load of a directory, even if outdated; None without one."""
        cached = self._known.get((cwd, mode))
        return None if cached is None else cached[1:]


def list_watched_paths(request: Request, loaded: LoadedLayers) -> set[str]:
    """Return every path that a load depends on.

    These are read files, missing files, and directories where files may appear.
    """
    paths: set[Path] = {*_find_levels(request), request.home, request.cwd / ".nexus3"}
    paths |= {request.home / name for name in ("config.json", "trust.json")}
    paths |= list_skill_paths(request, loaded)
    for layer in loaded.layers:
        paths |= {layer.directory, layer.project}
    for text in (*loaded.texts, *loaded.repeated):
        paths |= {text.path, *text.imports}
    paths |= {config.path for config in loaded.configs} | {skipped.path for skipped in loaded.skipped}
    return {*map(str, paths), *(path for part in loaded.active for path in _find_approved_files(part))}


def list_skill_paths(request: Request, loaded: LoadedLayers) -> set[Path]:
    """Return the paths of skills and of the list of used ones.

    Plugins read them for their sections, although no load does.
    """
    return {request.home / "used-skills.json", *(path for layer in loaded.layers for path in _find_skills(layer))}


def _find_levels(request: Request) -> Iterator[Path]:
    """Yield the working directory, and where layers or a `.git` may appear."""
    levels = [request.cwd, *request.cwd.parents]
    marks = [level / ".git" for level in levels]
    height = next((distance for distance, mark in enumerate(marks) if os.path.lexists(mark)), 0)
    yield from levels[: max(request.ancestor_depth, height) + 1]
    yield from marks


def _find_skills(layer: Layer) -> Iterator[Path]:
    """Yield the skill directory of a layer, and directory and guide of each skill."""
    directory = layer.directory / "skills"
    yield directory
    try:
        names = os.listdir(directory)  # noqa: PTH208 - names are enough
    except OSError:
        return
    yield from (each for name in sorted(names) for each in (directory / name, directory / name / "SKILL.md"))


def _find_approved_files(part: ActiveSetting) -> Iterator[str]:
    """Yield the files that an approval covers.

    They may be relative to the directory of the settings or to any parent.
    """
    try:
        files = json.loads(part.content).get("files", {})
    except (ValueError, AttributeError):
        return
    root = part.path.parent
    yield from (str(directory / name) for name in files for directory in (root, *root.parents))


# ---- changes on disk ------------------------------------------------------------------------------------------------


class FileSnapshot(NamedTuple):
    """The `stat` of some paths.

    Attributes:
        facts: By path: device, inode, size and times of the last changes; None for a missing file.
        is_settled: True if every later change is certain to change the facts.
        found: The paths that exist, with their facts.
        missing: The paths that do not exist, without those below one that does not exist either.
    """

    facts: dict[str, FileFacts]
    is_settled: bool
    found: tuple[tuple[str, FileFacts], ...]
    missing: tuple[str, ...]

    def is_fresh(self) -> bool:
        """True if no path has changed since."""
        # `access` instead of `stat`: it raises nothing for a missing file, and most of them are missing.
        return (
            self.is_settled
            and not any(os.access(path, os.F_OK) for path in self.missing)
            and all(_stat(path) == facts for path, facts in self.found)
        )


def take_file_snapshot(paths: Iterable[str], since: int) -> FileSnapshot:
    """Return the snapshot of paths whose content was just read.

    Args:
        paths: The paths.
        since: When reading began, in nanoseconds since 1970; a file changed later must be read again.
    """
    facts = {path: _stat(path) for path in paths}
    found = tuple((path, each) for path, each in facts.items() if each is not None)
    missing = tuple(
        path
        for path, each in facts.items()
        if each is None and "\0" not in path and facts.get(os.path.dirname(path), ()) is not None  # noqa: PTH120 - faster
    )
    is_settled = all(max(each[3:]) < since - MIN_FILE_AGE_NS for _, each in found)
    return FileSnapshot(facts, is_settled, found, missing)


def _stat(path: str) -> FileFacts:
    try:
        stat = os.stat(path)  # noqa: PTH116 - faster, for many files in every turn
    except (OSError, ValueError):
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _are_unchanged(before: FileSnapshot, now: FileSnapshot, paths: Iterable[Path]) -> bool:
    return all(before.facts.get(str(path)) == now.facts.get(str(path)) for path in paths)
