"""One typed method per hook: the rest of Nexus never touches an untyped call."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast

import pluggy

from nexus_core import hookspecs
from nexus_core.config.pointers import pointer_of
from nexus_core.errors import NexusError, did_you_mean
from nexus_core.host.blame import Blame
from nexus_core.host.candidates import OWN_DISTRIBUTION
from nexus_core.host.contract import hooks
from nexus_core.host.implementation import describe
from nexus_core.host.loading import Loader
from nexus_core.host.registry import PluginReplacement, Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from nexus_core.config.merging import KeyMergeRule
    from nexus_core.host.answers import Answer
    from nexus_core.host.candidates import Candidate
    from nexus_core.host.policy import PluginPolicy
    from nexus_core.values.api import Dialect
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.budget import Truncation
    from nexus_core.values.cache import CacheReport
    from nexus_core.values.command import Command
    from nexus_core.values.compaction import CompactionBudget, CompactionPlan, Summariser, ThreadOutline
    from nexus_core.values.conversation import Tool, Usage
    from nexus_core.values.counting import Model, ModelCounter, TokenCounter
    from nexus_core.values.declarations import InitScope, MergePolicy, PluginSettings
    from nexus_core.values.events import HookCall, Problem
    from nexus_core.values.finding import Finding
    from nexus_core.values.layer import Layer, LayerConfig, LayerText, Skipped
    from nexus_core.values.ledger import Ledger, Step
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.plugin import PluginInfo
    from nexus_core.values.rendering import AgentRole, Renderer
    from nexus_core.values.request import Request
    from nexus_core.values.section import Section, Zone
    from nexus_core.values.settings import Settings
    from nexus_core.values.source import Source, Trust

# Writes into a value of an answer what only the host knows. It is a copy that nobody else has yet, so it may change.
_stamp = object.__setattr__
_MEMORY_IN_PROMPT = (
    "is a memory in the system prompt, so every new memory breaks the cache; nexus_current_sections tells it"
)


class Host:
    """The loaded plugins, and a method for each hook that asks them.

    Args:
        candidates: The plugins to load, those asked last in first-answer hooks first.
        policy: Which of them may load, and what happens when one misbehaves.
        report: Told about each problem once; the log is told when it is None.
        trace: Told about every plugin's answer to every hook.
    """

    def __init__(
        self,
        candidates: Iterable[Candidate],
        policy: PluginPolicy,
        *,
        report: Callable[[Problem], None] | None = None,
        trace: Callable[[HookCall], None] | None = None,
    ) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        for stage in hookspecs.STAGES:
            self._manager.add_hookspecs(stage)
        self._in_order: dict[str, list[Callable[..., Answer[Any] | None]]] = {}
        self._answers: dict[str, list[Answer[Any]]] = {}
        self._declared: dict[str, tuple[str, ...]] = {}
        self._policies: dict[tuple[str, ...], dict[str, KeyMergeRule]] = {}
        self._replacements: dict[PluginReplacement, None] = {}
        self._blame = Blame(strict=policy.strict, report=report)
        self.plugins: tuple[PluginInfo, ...] = Loader(self._manager, blame=self._blame, trace=trace).load(
            candidates, disabled=policy.disabled
        )
        self._bundled = frozenset(plugin.name for plugin in self.plugins if plugin.bundled)
        self._warn_about_typing_errors(policy.disabled)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What plugins did wrong so far and the run went on without."""
        return self._blame.problems

    def note(self, plugin: str, hook: str, message: str) -> None:
        """Report what went wrong in something that a plugin has offered, and the run goes on without."""
        self._blame.note(plugin, message, hook=hook)

    def commands(self, core: Iterable[Command] = ()) -> Registry[Command]:
        """Ask `nexus_commands`; the names of `core` commands are taken already."""
        registry: Registry[Command] = Registry("command")
        for command in core:
            registry.add(command.name, command, OWN_DISTRIBUTION)
        # Installing a package must not change what a command of ours does, so bundled plugins come first here.
        for answer in sorted(self._ask_once("nexus_commands"), key=lambda answer: not self._is_bundled(answer)):
            for command in answer.items:
                if owner := registry.add(command.name, command, answer.plugin):
                    taken_by = "Nexus itself" if owner == OWN_DISTRIBUTION else f"plugin {owner!r}"
                    message = f"the command {command.name!r} is taken by {taken_by}; it is left out"
                    self._blame.note(answer.plugin, message, hook="nexus_commands")
        return registry

    def init_files(self, scope: InitScope) -> dict[str, str]:
        """Ask `nexus_init_files`: contents by name, sorted."""
        files: dict[str, str] = {}
        for answer in self._ask("nexus_init_files", scope=scope):
            for file in answer.items:
                files.setdefault(file.name, file.text)
        return dict(sorted(files.items()))

    def settings(self) -> dict[str, PluginSettings]:
        """Ask `nexus_settings`: what each plugin says about its own settings."""
        return {answer.plugin: item for answer in self._ask_once("nexus_settings") for item in answer.items[:1]}

    def setting_models(self) -> dict[str, str]:
        """By plugin, the model of its settings, as `package.module:Class`."""
        return {name: declared.model for name, declared in self.settings().items()}

    def active_settings(self) -> tuple[str, ...]:
        """The settings of plugins that take effect in a project only after approval, as dotted names."""
        return self._settings_declared("active")

    def protected_settings(self) -> tuple[str, ...]:
        """The settings of plugins that no project decides, as dotted names."""
        return self._settings_declared("protected")

    def off_only_settings(self) -> tuple[str, ...]:
        """Return the switches of plugins that a project may only turn off, as dotted names."""
        return self._settings_declared("off_only")

    def _settings_declared(self, kind: Literal["active", "protected", "off_only"]) -> tuple[str, ...]:
        """Return the dotted names of the settings that plugins declare as a kind; every load asks for all kinds."""
        if kind not in self._declared:
            declared = self.settings().items()
            self._declared[kind] = tuple(
                f"plugins.{name}.{key}" for name, each in declared for key in getattr(each, kind)
            )
        return self._declared[kind]

    def merge_policies(self, guarded: tuple[str, ...] = ()) -> dict[str, KeyMergeRule]:
        """Ask `nexus_merge_policies`: policies by JSON pointer.

        Args:
            guarded: The dotted names of settings for which only bundled plugins have a policy; so are the active and
                protected settings of other plugins.
        """
        if guarded not in self._policies:  # every load asks
            self._policies[guarded] = self._ask_for_policies(guarded)
        return dict(self._policies[guarded])

    def _ask_for_policies(self, guarded: tuple[str, ...]) -> dict[str, KeyMergeRule]:
        from nexus_core.config.merging import KeyMergeRule  # noqa: PLC0415 - not everybody loads layers

        policies: dict[str, KeyMergeRule] = {}
        for answer in self._ask_once("nexus_merge_policies"):
            for item in answer.items:
                if not self._is_bundled(answer) and self._is_kept(item.key, answer.plugin, guarded):
                    message = f"its policy for {item.key!r} is left out: no plugin decides how that is merged"
                    self._blame.note(answer.plugin, message, hook="nexus_merge_policies")
                    continue
                rule = self._isolate_merge(answer.plugin, item) if callable(item.policy) else item.policy
                policies.setdefault(pointer_of(item.key), KeyMergeRule(rule, f"plugin {answer.plugin}"))
        return policies

    def _is_kept(self, key: str, plugin: str, guarded: Collection[str]) -> bool:
        """True if a setting is guarded, or is an active or protected one of another plugin; so is one around those."""
        kept = (*guarded, *self.active_settings(), *self.protected_settings(), *self.off_only_settings())
        return any(_overlap(key, name) for name in kept if not name.startswith(f"plugins.{plugin}."))

    def _isolate_merge(self, plugin: str, policy: MergePolicy) -> Callable[[object, object], object]:
        """Return a plugin's merge function with copies as arguments and a checked result, which reports failures."""
        from nexus_core.config.merging import NOT_MERGED  # noqa: PLC0415 - as above

        function = cast("Callable[[object, object], object]", policy.policy)

        def fail(what: str, cause: BaseException | None = None) -> object:
            message = f"its policy for {policy.key!r} is not used, because it {what}"
            self._blame.note(plugin, message, hook="nexus_merge_policies", cause=cause)
            return NOT_MERGED

        def merge(inherited: object, value: object) -> object:
            import json  # noqa: PLC0415 - few plugins merge anything

            try:
                result = function(json.loads(json.dumps(inherited)), json.loads(json.dumps(value)))
                copy = json.loads(json.dumps(result, allow_nan=False))
            except (KeyboardInterrupt, NexusError):
                raise
            except BaseException as error:  # noqa: BLE001 - a plugin's function may raise anything
                return fail(describe(error), error)
            # A tuple would come back as a list, and a number as a key as a text.
            return copy if copy == result else fail(f"returned {type(result).__name__}, which is not a JSON value")

        return merge

    def layers(self, request: Request) -> tuple[list[Layer], list[Skipped]]:
        """Ask `nexus_layers`; the most local layer comes last."""
        from nexus_core.values.layer import Skipped  # noqa: PLC0415 - not everybody loads layers

        layers: list[Layer] = []
        skipped: list[Skipped] = []
        for answer in self._ask("nexus_layers", request=request):
            for item in answer.items:
                _stamp(item, "plugin", answer.plugin)
                (skipped if isinstance(item, Skipped) else layers).append(item)
        return sorted(layers, key=lambda layer: layer.sort_key), skipped

    def layer_config(self, layer: Layer, request: Request) -> tuple[list[LayerConfig], list[Skipped]]:
        """Ask `nexus_layer_config`."""
        return self._ask_about(layer, "nexus_layer_config", request=request)

    def layer_texts(self, layer: Layer, settings: Settings) -> tuple[list[LayerText], list[Skipped]]:
        """Ask `nexus_layer_texts`."""
        return self._ask_about(layer, "nexus_layer_texts", settings=settings)

    def static_sections(self, request: Request, loaded: Loaded) -> tuple[Section, ...]:
        """Ask `nexus_static_sections`; without what changes from turn to turn."""
        return self._sections("nexus_static_sections", "static", request.standing, loaded)

    def current_sections(self, request: Request, loaded: Loaded) -> tuple[Section, ...]:
        """Ask `nexus_current_sections`."""
        return self._sections("nexus_current_sections", "current", request, loaded)

    def tools(self, request: Request, loaded: Loaded) -> list[tuple[Tool, str]]:
        """Ask `nexus_tools`: tools with the plugins they come from."""
        answers: list[Answer[Tool]] = self._ask("nexus_tools", request=request.standing, loaded=loaded)
        return [(tool, answer.plugin) for answer in answers for tool in answer.items]

    def renderers(self, core: Iterable[Renderer] = ()) -> Registry[Renderer]:
        """Ask `nexus_renderers`."""
        registry: Registry[Renderer] = Registry("renderer")
        self._collect(registry, "nexus_renderers", core)
        return registry

    def dialects(self, built_in: Collection[str] = (), reserved: Collection[str] = ()) -> Registry[Dialect]:
        """Ask `nexus_dialects`.

        Args:
            built_in: The names of Nexus's own dialects, which a plugin can replace.
            reserved: The names that no plugin can offer.
        """
        registry: Registry[Dialect] = Registry("dialect")
        self._collect(registry, "nexus_dialects", reserved=reserved)
        for name in built_in:
            if name in registry:
                self._replacements[PluginReplacement(registry.owner(name), registry.kind, name, OWN_DISTRIBUTION)] = (
                    None
                )
        return registry

    def roles(self, core: Iterable[AgentRole] = ()) -> Registry[AgentRole]:
        """Ask `nexus_roles`."""
        registry: Registry[AgentRole] = Registry("role")
        self._collect(registry, "nexus_roles", core)
        return registry

    def models(self) -> dict[str, Model]:
        """Ask `nexus_models`: models by name; those of installed plugins replace bundled ones."""
        registry: Registry[Model] = Registry("model")
        self._collect(registry, "nexus_models")
        return {name: registry.get(name) for name in registry}

    def token_counter(self, model: str, encoding: str) -> tuple[ModelCounter, str] | None:
        """Ask `nexus_token_counter`: a counter with the plugin it comes from."""
        answer: Answer[ModelCounter] | None = self._manager.hook.nexus_token_counter(model=model, encoding=encoding)
        return (answer.items[0], answer.plugin) if answer else None

    def truncations(self) -> Registry[Truncation]:
        """Ask `nexus_truncations`."""
        registry: Registry[Truncation] = Registry("truncation")
        self._collect(registry, "nexus_truncations")
        return registry

    def compaction_plan(
        self, thread: ThreadOutline, budget: CompactionBudget, counter: TokenCounter
    ) -> tuple[CompactionPlan, str] | None:
        """Ask `nexus_compaction_plan`: a plan with the plugin it comes from."""
        answer: Answer[CompactionPlan] | None = self._manager.hook.nexus_compaction_plan(
            thread=thread, budget=budget, counter=counter
        )
        return (answer.items[0], answer.plugin) if answer else None

    def summarisers(
        self, loaded: Loaded, core: Iterable[Summariser] = (), reserved: Collection[str] = ()
    ) -> Registry[Summariser]:
        """Ask `nexus_summarisers`; no plugin can offer the `reserved` names."""
        registry: Registry[Summariser] = Registry("summariser")
        self._collect(registry, "nexus_summarisers", core, reserved, loaded=loaded)
        return registry

    def ledger(self, url: str) -> Ledger | None:
        """Ask `nexus_ledger`."""
        answer: Answer[Ledger] | None = self._manager.hook.nexus_ledger(url=url)
        return answer.items[0] if answer else None

    def listens(self, hook: str) -> bool:
        """Whether anybody wants to be told of something; most are watched by nobody."""
        return bool(self._asked(hook))

    def assembled(self, context: AssembledContext) -> None:
        """Tell `nexus_assembled`; each plugin gets a context of its own."""
        for tell in self._asked("nexus_assembled"):
            tell(context.apart())

    def recorded(self, step: Step, session: str, usage: Usage | None, cache: CacheReport) -> None:
        """Tell `nexus_recorded`; each plugin gets a step of its own."""
        from nexus_core.values.copying import copied  # noqa: PLC0415 - only what happens in a session is told

        for tell in self._asked("nexus_recorded"):
            tell(copied(step), session, usage, cache)

    def diagnose(self, request: Request, loaded: Loaded) -> list[Finding]:
        """Ask `nexus_diagnose`; sorted by file, line and code."""
        answers: list[Answer[Finding]] = self._ask("nexus_diagnose", request=request, loaded=loaded)
        found = [finding for answer in answers for finding in answer.items]
        return sorted(found, key=lambda finding: (str(finding.path or ""), finding.line, finding.column, finding.code))

    def _ask_about(self, layer: Layer, hook: str, **others: object) -> tuple[list[Any], list[Skipped]]:
        """What a hook finds in a layer, each stamped with where it comes from, and what it found wanting."""
        skip, source = _layer_values()
        trust: Trust = "user" if layer.is_own else "project"
        found: list[Any] = []
        skipped: list[Skipped] = []
        for answer in self._ask(hook, layer=layer, **others):
            for item in answer.items:
                if isinstance(item, skip):
                    _stamp(item, "layer", item.layer or layer.name)
                    _stamp(item, "plugin", answer.plugin)
                    skipped.append(item)
                else:
                    _stamp(item, "layer", layer)
                    _stamp(
                        item, "source", source(uri=str(item.path), layer=layer.name, plugin=answer.plugin, trust=trust)
                    )
                    found.append(item)
        return found, skipped

    def _sections(self, hook: str, zone: Zone, request: Request, loaded: Loaded) -> tuple[Section, ...]:
        """Return the sections of a hook, each with its source, in a kind of that zone, and with a safe text.

        A plugin may pass on anything: names of files, notes of a program. Its text forges no line of Nexus, holds no
        characters that a reader does not see, and no surrogates, which no request can hold.
        """
        from nexus_core.text.hidden import strip_hidden  # noqa: PLC0415 - as above
        from nexus_core.text.markers import neutralise  # noqa: PLC0415 - as above
        from nexus_core.text.surrogates import join_halves  # noqa: PLC0415 - as above
        from nexus_core.values.section import ZONES  # noqa: PLC0415 - as above

        answers: list[Answer[Section]] = self._ask(hook, request=request, loaded=loaded)
        for answer in answers:
            for section in answer.items:
                _stamp(section, "source", _source(section, answer.plugin))
                _stamp(section, "text", neutralise(strip_hidden(join_halves(section.text))))
                if ZONES[section.kind] != zone:
                    if section.kind == "memory":
                        self._blame.note(answer.plugin, f"the section {section.id!r} {_MEMORY_IN_PROMPT}", hook=hook)
                    _stamp(section, "kind", "workspace" if zone == "static" else "event")
        return tuple(section for answer in answers for section in answer.items)

    def _collect(
        self,
        registry: Registry[Any],
        hook: str,
        core: Iterable[Any] = (),
        reserved: Collection[str] = (),
        **arguments: object,
    ) -> None:
        """Add what a hook offers under its names: third-party plugins first, then bundled ones, then Nexus itself.

        Of two third-party plugins with one name, that whose own name sorts first wins, and the other is reported.

        Args:
            registry: Where to add it.
            hook: The hook to ask.
            core: What Nexus itself offers.
            reserved: Names that no plugin can offer.
            arguments: The arguments of the hook.
        """
        answers = self._ask(hook, **arguments) if arguments else self._ask_once(hook)
        for answer in sorted(answers, key=self._is_bundled):
            for item in answer.items:
                if hasattr(item, "plugin"):
                    _stamp(item, "plugin", answer.plugin)
                if item.name in reserved:
                    message = f"the {registry.kind} {item.name!r} is taken by Nexus itself; it is left out"
                    self._blame.note(answer.plugin, message, hook=hook)
                elif owner := registry.add(item.name, item, answer.plugin):
                    if self._is_bundled(answer) and owner not in self._bundled:
                        self._note_replacement(registry, item, answer.plugin)
                    else:
                        message = f"the {registry.kind} {item.name!r} is taken by plugin {owner!r}; it is left out"
                        self._blame.note(answer.plugin, message, hook=hook)
        for item in core:
            if registry.add(item.name, item, OWN_DISTRIBUTION):
                self._note_replacement(registry, item, OWN_DISTRIBUTION)

    def _note_replacement(self, registry: Registry[Any], item: Any, owner: str) -> None:  # noqa: ANN401 - of any registry
        """Remember that a bundled item is not used, because a third-party plugin offers one of its name."""
        registry.replace(item.name, item)
        self._replacements[PluginReplacement(registry.owner(item.name), registry.kind, item.name, owner)] = None

    def _is_bundled(self, answer: Answer[Any]) -> bool:
        return answer.plugin in self._bundled

    @property
    def replacements(self) -> tuple[PluginReplacement, ...]:
        """What third-party plugins replace by offering it under the same name, as far as it was asked for."""
        return tuple(sorted(self._replacements))

    def is_replaced(self, kind: str, name: str) -> bool:
        """True if a third-party plugin's thing of that kind is known to be used in place of a bundled one."""
        return any((each.kind, each.name) == (kind, name) for each in self._replacements)

    def has_third_party(self, hook: str) -> bool:
        """True if a plugin that does not ship with Nexus implements a hook."""
        return any(not each.bundled and each.status == "active" and hook in each.hooks for each in self.plugins)

    def _ask_once(self, hook: str) -> list[Answer[Any]]:
        """The answers to a hook that asks what a plugin is like, which does not change while it is loaded."""
        if hook not in self._answers:
            self._answers[hook] = self._ask(hook)
        return self._answers[hook]

    def _ask(self, hook: str, **arguments: object) -> list[Answer[Any]]:
        """What the plugins answer to a hook that collects."""
        given = [arguments[name] for name in hooks()[hook].parameters]
        answers = [ask(*given) for ask in self._asked(hook)]
        return [answer for answer in answers if answer is not None]

    def _asked(self, hook: str) -> list[Callable[..., Answer[Any] | None]]:
        """Whom to ask, by name of plugin: the order in which they were installed or registered must never show."""
        if hook not in self._in_order:
            found = sorted(getattr(self._manager.hook, hook).get_hookimpls(), key=lambda each: each.plugin_name)
            self._in_order[hook] = [each.function for each in found]
        return self._in_order[hook]

    def _warn_about_typing_errors(self, disabled: frozenset[str]) -> None:
        # A name that is not installed here is fine (settings are shared between machines), a near miss is not.
        names = {plugin.name for plugin in self.plugins}
        for name in sorted(disabled - names):
            if nearest := did_you_mean(name, names):
                self._blame.note(name, f"disabled, but not installed; {nearest}")


def _overlap(one: str, other: str) -> bool:
    """True if one dotted name is the other, or is above or below it."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


@cache
def _layer_values() -> tuple[type[Skipped], type[Source]]:
    """What answers about layers are made of; not everybody loads layers, and who does asks often."""
    from nexus_core.values.layer import Skipped  # noqa: PLC0415 - as above
    from nexus_core.values.source import Source  # noqa: PLC0415 - as above

    return Skipped, Source


def _source(section: Section, plugin: str) -> Source:
    from nexus_core.values.source import Source  # noqa: PLC0415 - as above

    if section.source is None:
        return Source(uri=f"plugin:{plugin}", plugin=plugin)
    return replace(section.source, plugin=plugin)
