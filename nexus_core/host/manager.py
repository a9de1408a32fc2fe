"""The plugin host: one typed method per hook, and registries of plugin contributions."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, cast

import pluggy

from nexus_core import hookspecs
from nexus_core.config.load import read_early_settings
from nexus_core.config.merge import NOT_MERGED, KeyMergeRule
from nexus_core.config.pointers import dotted_to_pointer
from nexus_core.errors import NexusError, UnknownNameError, did_you_mean
from nexus_core.files.places import find_nexus_home, resolve_directory
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.calls import ProblemReporter, describe_exception, get_hooks
from nexus_core.host.discovery import (
    OWN_DISTRIBUTION,
    PluginPolicy,
    find_installed_candidates,
    get_user_disabled_plugins,
    read_policy,
)
from nexus_core.host.loader import PluginLoader
from nexus_core.text.safety import neutralize, repair_surrogates, strip_hidden
from nexus_core.types.base import copy_value
from nexus_core.types.layers import SkippedFile
from nexus_core.types.prompt import KIND_ZONES, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from nexus_core.host.calls import HookResult
    from nexus_core.host.discovery import PluginCandidate
    from nexus_core.types.api import Dialect
    from nexus_core.types.assembled import AssembledContext, CacheReport
    from nexus_core.types.budget import Model, ModelCounter, TokenCounter, TruncationStrategy
    from nexus_core.types.compaction import CompactionBudget, CompactionPlan, Summarizer, ThreadOutline
    from nexus_core.types.layers import Layer, LayerConfig, LayerText, LoadedLayers
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.memory import Embedder, MemorySource
    from nexus_core.types.messages import Tool, Usage
    from nexus_core.types.plugins import Command, Finding, HookCall, PluginInfo, Problem, Toolset
    from nexus_core.types.prompt import AgentRole, Renderer, Section, TrustLevel, Zone
    from nexus_core.types.providers import Provider
    from nexus_core.types.request import Request
    from nexus_core.types.settings import InitScope, MergePolicy, PluginSettings, Settings
    from nexus_core.types.transcripts import TranscriptReader

T = TypeVar("T")


class PluginReplacement(NamedTuple):
    """A bundled contribution that a third-party plugin replaces by using the same name.

    Attributes:
        plugin: The third-party plugin whose contribution is used.
        kind: The kind of contribution, as messages name it: "truncation", "model".
        name: The name that both have.
        owner: The bundled plugin whose contribution is not used; the name of our distribution for Nexus itself.
    """

    plugin: str
    kind: str
    name: str
    owner: str

    def __str__(self) -> str:
        owner = "Nexus itself" if self.owner == OWN_DISTRIBUTION else f"the bundled plugin {self.owner}"
        return f"the {self.kind} {self.name!r} of {owner}"


class ContributionRegistry(Generic[T]):
    """A sorted map from name to value that knows which plugin each value came from.

    Args:
        kind: The kind of value, as messages name it: "command", "renderer".
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, tuple[T, str]] = {}
        self._replaced: dict[str, T] = {}

    def add(self, name: str, value: T, plugin: str) -> str | None:
        """Add a value unless its name is taken. Return the plugin that has taken it, or None."""
        entry = self._entries.setdefault(name, (value, plugin))
        return None if entry[0] is value else entry[1]

    def replace(self, name: str, value: T) -> None:
        """Remember the bundled value that a third-party plugin's value replaces."""
        self._replaced[name] = value

    def get_bundled(self, name: str) -> T:
        """Return the bundled value of that name, or what `get` returns if there is none."""
        return self._replaced[name] if name in self._replaced else self.get(name)

    def owner(self, name: str) -> str:
        """Return the plugin that provided the value of that name."""
        return self._entries[name][1]

    def get(self, name: str) -> T:
        """Return the value of that name, or raise an UnknownNameError with the nearest name."""
        try:
            return self._entries[name][0]
        except KeyError:
            raise UnknownNameError(self.kind, name, self._entries) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        return len(self._entries)


# Sets fields of a result that only the host knows. The result is a copy without other references, so it may change.
_set_frozen_field = object.__setattr__
_MEMORY_IN_PROMPT = (
    "is a memory in the system prompt, so every new memory breaks the cache; return it from nexus_current_sections"
)


class Host:
    """The loaded plugins, with one method per hook.

    Args:
        candidates: The plugins to load. In first-answer hooks, later ones are called first.
        policy: Which of them may load, and what happens when one misbehaves.
        report: Called once with each problem; None writes problems to the log.
        trace: Called with every call of every plugin's hook function; None traces nothing.
    """

    def __init__(
        self,
        candidates: Iterable[PluginCandidate],
        policy: PluginPolicy,
        *,
        report: Callable[[Problem], None] | None = None,
        trace: Callable[[HookCall], None] | None = None,
    ) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._implementations: dict[str, list[Callable[..., HookResult[Any] | None]]] = {}
        self._cached_results: dict[str, list[HookResult[Any]]] = {}
        self._declared: dict[str, tuple[str, ...]] = {}
        self._policies: dict[tuple[str, ...], dict[str, KeyMergeRule]] = {}
        self._replacements: dict[PluginReplacement, None] = {}
        self._closers: dict[Callable[[], None], str] = {}  # of providers, with their plugins
        self._reporter = ProblemReporter(strict=policy.strict, report=report)
        self.plugins: tuple[PluginInfo, ...] = PluginLoader(self._manager, reporter=self._reporter, trace=trace).load(
            candidates, disabled=policy.disabled
        )
        self._bundled = frozenset(plugin.name for plugin in self.plugins if plugin.bundled)
        self._warn_about_misspelled_names(policy.disabled)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of plugins that did not stop the run so far."""
        return self._reporter.problems

    def note(self, plugin: str, hook: str, message: str) -> None:
        """Report a problem with something that a plugin provided, and continue without it."""
        self._reporter.report(plugin, message, hook=hook)

    def commands(self, core: Iterable[Command] = ()) -> ContributionRegistry[Command]:
        """Call `nexus_commands`. The names of `core` commands are reserved."""
        registry: ContributionRegistry[Command] = ContributionRegistry("command")
        for command in core:
            registry.add(command.name, command, OWN_DISTRIBUTION)
        # Installing a package must not change what a command of ours does, so bundled plugins come first here.
        for answer in sorted(self._call_hook_once("nexus_commands"), key=lambda answer: not self._is_bundled(answer)):
            for command in answer.items:
                if owner := registry.add(command.name, command, answer.plugin):
                    taken_by = "Nexus itself" if owner == OWN_DISTRIBUTION else f"plugin {owner!r}"
                    message = f"the command {command.name!r} is taken by {taken_by}; it is left out"
                    self._reporter.report(answer.plugin, message, hook="nexus_commands")
        return registry

    def init_files(self, scope: InitScope) -> dict[str, str]:
        """Call `nexus_init_files`. Return contents by file name, sorted."""
        files: dict[str, str] = {}
        for answer in self._call_hook("nexus_init_files", scope=scope):
            for file in answer.items:
                files.setdefault(file.name, file.text)
        return dict(sorted(files.items()))

    def settings(self) -> dict[str, PluginSettings]:
        """Call `nexus_settings`. Return the declaration of each plugin."""
        return {answer.plugin: item for answer in self._call_hook_once("nexus_settings") for item in answer.items[:1]}

    def setting_models(self) -> dict[str, str]:
        """Return by plugin the model of its settings, as `package.module:Class`."""
        return {name: declared.model for name, declared in self.settings().items()}

    def active_settings(self) -> tuple[str, ...]:
        """Return the settings of plugins that need approval in a project, as dotted names."""
        return self._get_declared_settings("active")

    def protected_settings(self) -> tuple[str, ...]:
        """Return the user-only settings of plugins, as dotted names."""
        return self._get_declared_settings("protected")

    def off_only_settings(self) -> tuple[str, ...]:
        """Return the switches of plugins that a project may only turn off, as dotted names."""
        return self._get_declared_settings("off_only")

    def _get_declared_settings(self, kind: Literal["active", "protected", "off_only"]) -> tuple[str, ...]:
        """Return the dotted names of the settings declared as `kind`. Cached, because every load needs all kinds."""
        if kind not in self._declared:
            declared = self.settings().items()
            self._declared[kind] = tuple(
                f"plugins.{name}.{key}" for name, each in declared for key in getattr(each, kind)
            )
        return self._declared[kind]

    def merge_policies(self, guarded: tuple[str, ...] = ()) -> dict[str, KeyMergeRule]:
        """Call `nexus_merge_policies`. Return rules by JSON pointer.

        Args:
            guarded: The dotted names of settings for which only bundled plugins may have a policy, in addition to the
                active and protected settings of other plugins.
        """
        if guarded not in self._policies:  # every load asks
            self._policies[guarded] = self._collect_merge_policies(guarded)
        return dict(self._policies[guarded])

    def _collect_merge_policies(self, guarded: tuple[str, ...]) -> dict[str, KeyMergeRule]:
        policies: dict[str, KeyMergeRule] = {}
        for answer in self._call_hook_once("nexus_merge_policies"):
            for item in answer.items:
                if not self._is_bundled(answer) and self._is_guarded(item.key, answer.plugin, guarded):
                    message = f"its policy for {item.key!r} is left out: no plugin decides how that is merged"
                    self._reporter.report(answer.plugin, message, hook="nexus_merge_policies")
                    continue
                rule = self._isolate_merge(answer.plugin, item) if callable(item.policy) else item.policy
                policies.setdefault(dotted_to_pointer(item.key), KeyMergeRule(rule, f"plugin {answer.plugin}"))
        return policies

    def _is_guarded(self, key: str, plugin: str, guarded: Collection[str]) -> bool:
        """Return True if a setting overlaps a guarded one, or an active or protected one of another plugin."""
        kept = (*guarded, *self.active_settings(), *self.protected_settings(), *self.off_only_settings())
        return any(_settings_overlap(key, name) for name in kept if not name.startswith(f"plugins.{plugin}."))

    def _isolate_merge(self, plugin: str, policy: MergePolicy) -> Callable[[object, object], object]:
        """Wrap a plugin's merge function: it gets copies, its result is checked, and failures are reported."""
        function = cast("Callable[[object, object], object]", policy.policy)

        def fail(what: str, cause: BaseException | None = None) -> object:
            message = f"its policy for {policy.key!r} is not used, because it {what}"
            self._reporter.report(plugin, message, hook="nexus_merge_policies", cause=cause)
            return NOT_MERGED

        def merge(inherited: object, value: object) -> object:
            try:
                result = function(json.loads(json.dumps(inherited)), json.loads(json.dumps(value)))
                copy = json.loads(json.dumps(result, allow_nan=False))
            except (KeyboardInterrupt, NexusError):
                raise
            except BaseException as error:  # noqa: BLE001 - a plugin's function may raise anything
                return fail(describe_exception(error), error)
            # JSON turns a tuple into a list and a number used as a key into a string.
            return copy if copy == result else fail(f"returned {type(result).__name__}, which is not a JSON value")

        return merge

    def layers(self, request: Request) -> tuple[list[Layer], list[SkippedFile]]:
        """Call `nexus_layers`. Return layers, the most local last, and skipped files."""
        layers: list[Layer] = []
        skipped: list[SkippedFile] = []
        for answer in self._call_hook("nexus_layers", request=request):
            for item in answer.items:
                _set_frozen_field(item, "plugin", answer.plugin)
                (skipped if isinstance(item, SkippedFile) else layers).append(item)
        return sorted(layers, key=lambda layer: layer.sort_key), skipped

    def layer_config(self, layer: Layer, request: Request) -> tuple[list[LayerConfig], list[SkippedFile]]:
        """Call `nexus_layer_config`."""
        return self._call_layer_hook(layer, "nexus_layer_config", request=request)

    def layer_texts(self, layer: Layer, settings: Settings) -> tuple[list[LayerText], list[SkippedFile]]:
        """Call `nexus_layer_texts`."""
        return self._call_layer_hook(layer, "nexus_layer_texts", settings=settings)

    def static_sections(self, request: Request, loaded: LoadedLayers) -> tuple[Section, ...]:
        """Call `nexus_static_sections`, without the values of the request that change from turn to turn."""
        return self._sections("nexus_static_sections", "static", request.standing, loaded)

    def current_sections(self, request: Request, loaded: LoadedLayers) -> tuple[Section, ...]:
        """Call `nexus_current_sections`."""
        return self._sections("nexus_current_sections", "current", request, loaded)

    def tools(self, request: Request, loaded: LoadedLayers) -> list[tuple[Tool, str]]:
        """Call `nexus_tools`. Return tools with the plugins that provided them."""
        answers: list[HookResult[Tool]] = self._call_hook("nexus_tools", request=request.standing, loaded=loaded)
        return [(tool, answer.plugin) for answer in answers for tool in answer.items]

    def renderers(self, core: Iterable[Renderer] = ()) -> ContributionRegistry[Renderer]:
        """Call `nexus_renderers`."""
        registry: ContributionRegistry[Renderer] = ContributionRegistry("renderer")
        self._collect(registry, "nexus_renderers", core)
        return registry

    def dialects(self, built_in: Collection[str] = (), reserved: Collection[str] = ()) -> ContributionRegistry[Dialect]:
        """Call `nexus_dialects`.

        Args:
            built_in: The names of Nexus's own dialects, which a plugin can replace.
            reserved: The names that no plugin can use.
        """
        registry: ContributionRegistry[Dialect] = ContributionRegistry("dialect")
        self._collect(registry, "nexus_dialects", reserved=reserved)
        for name in built_in:
            if name in registry:
                self._replacements[PluginReplacement(registry.owner(name), registry.kind, name, OWN_DISTRIBUTION)] = (
                    None
                )
        return registry

    def roles(self, core: Iterable[AgentRole] = ()) -> ContributionRegistry[AgentRole]:
        """Call `nexus_roles`."""
        registry: ContributionRegistry[AgentRole] = ContributionRegistry("role")
        self._collect(registry, "nexus_roles", core)
        return registry

    def models(self) -> dict[str, Model]:
        """Call `nexus_models`. Return models by name. Those of installed plugins replace bundled ones."""
        registry: ContributionRegistry[Model] = ContributionRegistry("model")
        self._collect(registry, "nexus_models")
        return {name: registry.get(name) for name in registry}

    def token_counter(self, model: str, encoding: str) -> tuple[ModelCounter, str] | None:
        """Call `nexus_token_counter`. Return a counter with the plugin that provided it."""
        answer: HookResult[ModelCounter] | None = self._manager.hook.nexus_token_counter(model=model, encoding=encoding)
        return (answer.items[0], answer.plugin) if answer else None

    def truncations(self) -> ContributionRegistry[TruncationStrategy]:
        """Call `nexus_truncation_strategies`."""
        registry: ContributionRegistry[TruncationStrategy] = ContributionRegistry("truncation")
        self._collect(registry, "nexus_truncation_strategies")
        return registry

    def compaction_plan(
        self, thread: ThreadOutline, budget: CompactionBudget, counter: TokenCounter
    ) -> tuple[CompactionPlan, str] | None:
        """Call `nexus_compaction_plan`. Return a plan with the plugin that provided it."""
        answer: HookResult[CompactionPlan] | None = self._manager.hook.nexus_compaction_plan(
            thread=thread, budget=budget, counter=counter
        )
        return (answer.items[0], answer.plugin) if answer else None

    def summarizers(
        self, loaded: LoadedLayers, core: Iterable[Summarizer] = (), reserved: Collection[str] = ()
    ) -> ContributionRegistry[Summarizer]:
        """Call `nexus_summarizers`. No plugin can use the `reserved` names."""
        registry: ContributionRegistry[Summarizer] = ContributionRegistry("summarizer")
        self._collect(registry, "nexus_summarizers", core, reserved, loaded=loaded)
        return registry

    def ledger(self, url: str) -> Ledger | None:
        """Call `nexus_ledger`."""
        answer: HookResult[Ledger] | None = self._manager.hook.nexus_ledger(url=url)
        return answer.items[0] if answer else None

    def memory_sources(
        self, request: Request, loaded: LoadedLayers, ledger: Ledger
    ) -> ContributionRegistry[MemorySource]:
        """Call `nexus_memory_sources`."""
        registry: ContributionRegistry[MemorySource] = ContributionRegistry("memory source")
        self._collect(registry, "nexus_memory_sources", request=request, loaded=loaded, ledger=ledger)
        return registry

    def embedders(self) -> ContributionRegistry[Embedder]:
        """Call `nexus_embedders`."""
        registry: ContributionRegistry[Embedder] = ContributionRegistry("embedder")
        self._collect(registry, "nexus_embedders")
        return registry

    def providers(self, loaded: LoadedLayers) -> ContributionRegistry[Provider]:
        """Call `nexus_providers`."""
        registry: ContributionRegistry[Provider] = ContributionRegistry("provider")
        self._collect(registry, "nexus_providers", loaded=loaded)
        for name in registry:
            if (close := registry.get(name).close) is not None:
                self._closers.setdefault(close, registry.owner(name))
        return registry

    def close(self) -> None:
        """Close the idle connections of all providers that `providers` has returned."""
        closers, self._closers = self._closers, {}
        for close, plugin in closers.items():
            try:
                close()
            except Exception as error:  # noqa: BLE001 - a plugin may raise anything, and the rest is closed nevertheless
                self.note(plugin, "nexus_providers", f"Provider.close failed: {type(error).__name__}: {error}")

    def toolsets(self) -> ContributionRegistry[Toolset]:
        """Call `nexus_toolsets`."""
        registry: ContributionRegistry[Toolset] = ContributionRegistry("toolset")
        self._collect(registry, "nexus_toolsets")
        return registry

    def transcripts(self, reserved: Collection[str] = ()) -> ContributionRegistry[TranscriptReader]:
        """Call `nexus_transcripts`. No plugin can use a `reserved` name."""
        registry: ContributionRegistry[TranscriptReader] = ContributionRegistry("transcript format")
        self._collect(registry, "nexus_transcripts", reserved=reserved)
        return registry

    def assembled(self, context: AssembledContext) -> None:
        """Call `nexus_call_assembled`. Each plugin gets its own copy of the context."""
        from nexus_core.types.assembled import copy_on_read

        for announce in self._get_implementations("nexus_call_assembled"):
            announce(copy_on_read(context))

    def recorded(self, step: Step, session: str, usage: Usage | None, cache: CacheReport) -> None:
        """Call `nexus_step_recorded`. Each plugin gets its own copy of the step."""
        for announce in self._get_implementations("nexus_step_recorded"):
            announce(copy_value(step), session, usage, cache)

    def diagnose(self, request: Request, loaded: LoadedLayers) -> list[Finding]:
        """Call `nexus_diagnose`. Return findings sorted by file, line and code."""
        answers: list[HookResult[Finding]] = self._call_hook("nexus_diagnose", request=request, loaded=loaded)
        found = [finding for answer in answers for finding in answer.items]
        return sorted(found, key=lambda finding: (str(finding.path or ""), finding.line, finding.column, finding.code))

    def _call_layer_hook(self, layer: Layer, hook: str, **others: object) -> tuple[list[Any], list[SkippedFile]]:
        """Return what a hook finds in a layer, each item with its source, and the files it skipped."""
        trust: TrustLevel = "user" if layer.is_own else "project"
        found: list[Any] = []
        skipped: list[SkippedFile] = []
        for answer in self._call_hook(hook, layer=layer, **others):
            for item in answer.items:
                if isinstance(item, SkippedFile):
                    _set_frozen_field(item, "layer", item.layer or layer.name)
                    _set_frozen_field(item, "plugin", answer.plugin)
                    skipped.append(item)
                else:
                    _set_frozen_field(item, "layer", layer)
                    _set_frozen_field(
                        item, "source", Source(uri=str(item.path), layer=layer.name, plugin=answer.plugin, trust=trust)
                    )
                    found.append(item)
        return found, skipped

    def _sections(self, hook: str, zone: Zone, request: Request, loaded: LoadedLayers) -> tuple[Section, ...]:
        """Return the sections of a hook, each with its source, a kind of that zone, and sanitized text.

        A plugin may pass on untrusted text, such as file names or a program's output. The text must not imitate markup
        of Nexus, contain invisible characters, or contain surrogates, which no request body can hold.
        """
        answers: list[HookResult[Section]] = self._call_hook(hook, request=request, loaded=loaded)
        for answer in answers:
            for section in answer.items:
                _set_frozen_field(section, "source", _build_section_source(section, answer.plugin))
                _set_frozen_field(section, "text", neutralize(strip_hidden(repair_surrogates(section.text))))
                if KIND_ZONES[section.kind] != zone:
                    if section.kind == "memory":
                        self._reporter.report(
                            answer.plugin, f"the section {section.id!r} {_MEMORY_IN_PROMPT}", hook=hook
                        )
                    _set_frozen_field(section, "kind", "workspace" if zone == "static" else "event")
        return tuple(section for answer in answers for section in answer.items)

    def _collect(
        self,
        registry: ContributionRegistry[Any],
        hook: str,
        core: Iterable[Any] = (),
        reserved: Collection[str] = (),
        **arguments: object,
    ) -> None:
        """Add what a hook provides by name: third-party plugins first, then bundled ones, then Nexus itself.

        If two third-party plugins use one name, the plugin whose own name sorts first wins; the other is reported.

        Args:
            registry: The registry to fill.
            hook: The hook to call.
            core: The items of Nexus itself.
            reserved: Names that no plugin can use.
            arguments: The arguments of the hook.
        """
        answers = self._call_hook(hook, **arguments) if arguments else self._call_hook_once(hook)
        for answer in sorted(answers, key=self._is_bundled):
            for item in answer.items:
                if hasattr(item, "plugin"):
                    _set_frozen_field(item, "plugin", answer.plugin)
                if item.name in reserved:
                    message = f"the {registry.kind} {item.name!r} is taken by Nexus itself; it is left out"
                    self._reporter.report(answer.plugin, message, hook=hook)
                elif owner := registry.add(item.name, item, answer.plugin):
                    if self._is_bundled(answer) and owner not in self._bundled:
                        self._note_replacement(registry, item, answer.plugin)
                    else:
                        message = f"the {registry.kind} {item.name!r} is taken by plugin {owner!r}; it is left out"
                        self._reporter.report(answer.plugin, message, hook=hook)
        for item in core:
            if registry.add(item.name, item, OWN_DISTRIBUTION):
                self._note_replacement(registry, item, OWN_DISTRIBUTION)

    def _note_replacement(self, registry: ContributionRegistry[Any], item: Any, owner: str) -> None:  # noqa: ANN401 - of any registry
        """Remember that a bundled item is not used, because a third-party plugin uses its name."""
        registry.replace(item.name, item)
        self._replacements[PluginReplacement(registry.owner(item.name), registry.kind, item.name, owner)] = None

    def _is_bundled(self, answer: HookResult[Any]) -> bool:
        return answer.plugin in self._bundled

    @property
    def replacements(self) -> tuple[PluginReplacement, ...]:
        """Bundled contributions that third-party plugins replace, as far as their hooks were called."""
        return tuple(sorted(self._replacements))

    def is_replaced(self, kind: str, name: str) -> bool:
        """Return True if a third-party plugin is known to replace a bundled contribution of that kind and name."""
        return any((each.kind, each.name) == (kind, name) for each in self._replacements)

    def has_third_party(self, hook: str) -> bool:
        """Return True if a plugin that does not ship with Nexus implements a hook."""
        return any(not each.bundled and each.status == "active" and hook in each.hooks for each in self.plugins)

    def _call_hook_once(self, hook: str) -> list[HookResult[Any]]:
        """Return the cached results of a hook whose results do not change while a plugin is loaded."""
        if hook not in self._cached_results:
            self._cached_results[hook] = self._call_hook(hook)
        return self._cached_results[hook]

    def _call_hook(self, hook: str, **arguments: object) -> list[HookResult[Any]]:
        """Return the results of a hook that collects."""
        values = [arguments[name] for name in get_hooks()[hook].parameters]
        results = [implementation(*values) for implementation in self._get_implementations(hook)]
        return [result for result in results if result is not None]

    def _get_implementations(self, hook: str) -> list[Callable[..., HookResult[Any] | None]]:
        """Return the functions of a hook by plugin name, so that the order of installation does not matter."""
        if hook not in self._implementations:
            found = sorted(getattr(self._manager.hook, hook).get_hookimpls(), key=lambda each: each.plugin_name)
            self._implementations[hook] = [each.function for each in found]
        return self._implementations[hook]

    def _warn_about_misspelled_names(self, disabled: frozenset[str]) -> None:
        # A name that is not installed here is fine (settings are shared between machines), a near miss is not.
        names = {plugin.name for plugin in self.plugins}
        for name in sorted(disabled - names):
            if nearest := did_you_mean(name, names):
                self._reporter.report(name, f"disabled, but not installed; {nearest}")


def _settings_overlap(one: str, other: str) -> bool:
    """Return True if one dotted name equals the other, or is above or below it."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _build_section_source(section: Section, plugin: str) -> Source:
    if section.source is None:
        return Source(uri=f"plugin:{plugin}", plugin=plugin)
    return replace(section.source, plugin=plugin)


def get_default_host() -> Host:
    """Return the host of the bundled and installed plugins, without those that the user has disabled.

    Built once, and again only after the user's policy about plugins changes. Problems go to the `nexus_core` logger.

    Raises:
        ConfigError: The user's config.json cannot be used, or NEXUS_HOME lies inside the project.
    """
    cwd = resolve_directory(".")
    home = find_nexus_home(cwd)
    return _build_default_host(
        cwd, read_policy(get_user_disabled_plugins(home, read_early_settings(home, home).disabled_plugins))
    )


def get_installed_host() -> Host:
    """Return the host of all bundled and installed plugins, for functions whose result depends on arguments only.

    Built once for a search path: no setting and no environment variable is read, so nothing is disabled in it.
    """
    return _build_installed_host(tuple(sys.path))


@lru_cache(maxsize=8)
def _build_installed_host(_search_path: tuple[str, ...]) -> Host:
    return Host([*BUNDLED, *find_installed_candidates(outside=None)], PluginPolicy())


@lru_cache(maxsize=8)
def _build_default_host(cwd: Path, policy: PluginPolicy) -> Host:
    candidates = list(BUNDLED)
    if not policy.only_bundled:
        candidates += find_installed_candidates(outside=cwd)
    return Host(candidates, policy)


def load_plugin(name: str) -> object:
    """Import and return a plugin by its name, bundled or installed."""
    candidates = {candidate.name: candidate for candidate in BUNDLED}
    if name not in candidates:
        installed = find_installed_candidates(outside=resolve_directory("."))
        candidates |= {candidate.name: candidate for candidate in installed}
    if name not in candidates:
        raise UnknownNameError("plugin", name, candidates)
    return candidates[name].load()
