"""Nexus: the facade over plugins, layers, sessions and the ledger of one directory."""

from __future__ import annotations

import os
from _thread import allocate_lock  # what `threading` calls Lock, without the module's start-up time
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nexus_core.config.load import EarlySettings, read_early_settings
from nexus_core.deprecation import renamed_argument
from nexus_core.errors import NexusClosedError, UnknownNameError, UsageError
from nexus_core.files.places import defaults_directory, find_nexus_home, normalize_path, resolve_directory
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.discovery import (
    build_given_candidates,
    find_installed_candidates,
    get_user_disabled_plugins,
    read_policy,
)
from nexus_core.host.manager import Host
from nexus_core.layers import OWN_PROFILE, LayerLoader
from nexus_core.types.request import AGENT_MODES, DEFAULT_MODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Unpack

    from nexus_core.agents.agent import Agent, AgentArguments, AsyncAgent
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.history.fit import FitOptions, FitResult
    from nexus_core.layers.context import LoadedContext
    from nexus_core.ledger.deletion import DeletionReport
    from nexus_core.memory.recall import RecallResult
    from nexus_core.memory.search import SearchResult
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.request.static_context import StaticContext
    from nexus_core.runner import Operation
    from nexus_core.session.async_session import AsyncSession
    from nexus_core.session.engine import Engine
    from nexus_core.session.options import RequestFields, SessionArguments
    from nexus_core.session.session import Session
    from nexus_core.thread.state import RecordedStep
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.compaction import SummarizeFunction
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.plugins import HookCall, PluginInfo, Problem
    from nexus_core.types.prompt import Section
    from nexus_core.types.request import AgentMode, Request

T = TypeVar("T")

LEDGER = "ledger.db"
"""The ledger's file in the Nexus home."""


class Nexus:
    """The context of one directory: its prompt, its settings, and the sessions of an agent that works there.

    Args:
        cwd: The directory the agent works in.
        home: The user's Nexus directory; by default `NEXUS_HOME`, else `~/.nexus3`.
        layers: Whether to load layers from disk.
        installed: Whether to load installed plugins; without layers too, no settings are read.
        defaults: Whether to use the bundled defaults if there is no global layer.
        plugins: Objects with hooks, in addition to the installed plugins.
        disable: Names of plugins not to load.
        ledger: The store of conversations, as a URL (`sqlite:///path`, `postgresql://…`, `memory:`) or an open ledger,
            which the caller closes; by default `ledger.url` of the settings, else a file in the home.
        summarize: Your own summarizer, called first: it takes a `SummaryRequest` and returns a text, or an awaitable.
        strict: Whether the first problem with any plugin stops the run; NEXUS_STRICT=1 decides when None.
        report: Called with each problem of a plugin; by default they go to the `nexus_core` logger.
        trace: Called after every hook call of a plugin.

    Raises:
        FileError: The directory does not exist.
        ConfigError: The user's or the project's config.json cannot be used, or NEXUS_HOME lies inside the project.
        PluginError: One of `plugins` breaks the contract; or any plugin does, in a strict run.
    """

    def __init__(
        self,
        cwd: str | os.PathLike[str] = ".",
        *,
        home: str | os.PathLike[str] | None = None,
        layers: bool = True,
        installed: bool = True,
        defaults: bool = True,
        plugins: Iterable[object] = (),
        disable: Iterable[str] = (),
        ledger: str | Ledger | None = None,
        summarize: SummarizeFunction | None = None,
        strict: bool | None = None,
        report: Callable[[Problem], None] | None = None,
        trace: Callable[[HookCall], None] | None = None,
    ) -> None:
        self.cwd = resolve_directory(_path(cwd, "cwd"))
        self.home = find_nexus_home(self.cwd) if home is None else normalize_path(_path(home, "home"))
        settings = EarlySettings()
        if layers or installed:  # without layers, no setting limits how far up to look
            settings = read_early_settings(self.home, self.cwd / ".nexus3" if layers else self.home)
        disabled = get_user_disabled_plugins(self.home, settings.disabled_plugins)
        names = _listed(disable, "disable", "'name'")
        policy = read_policy((*disabled, *names), strict=strict)
        candidates = list(BUNDLED)
        if installed and not policy.only_bundled:
            candidates += find_installed_candidates(outside=self.cwd)
        candidates += build_given_candidates(_listed(plugins, "plugins", "module"))
        self._host: Host | None = Host(candidates, policy, report=report, trace=trace)
        standing_in = defaults_directory() if defaults else None
        self._layers = LayerLoader(lambda: self.host, self.home, defaults=standing_in, looks=layers)
        _ensure_usable(ledger, summarize)
        self._given_ledger = ledger
        self._ledger: Ledger | None = None
        self._runtime: SessionRuntime | None = None
        self._summarize = summarize
        self._opening = allocate_lock()

    @property
    def host(self) -> Host:
        """The plugin manager, for plugins and tests; raises NexusClosedError after `close()`."""
        if self._host is None:
            raise NexusClosedError("this Nexus is closed", hint="make a new one, or use it before close()")
        return self._host

    @property
    def plugins(self) -> tuple[PluginInfo, ...]:
        """All plugins that were found, with the reason if one was not loaded."""
        return self.host.plugins

    @property
    def dialects(self) -> DialectRegistry:
        """The dialects (formats of APIs): the built-in ones, then those of plugins."""
        from nexus_core.dialects.registry import create_registry

        return create_registry(lambda: self.host)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of plugins that were skipped so far."""
        return self.host.problems

    @property
    def runtime(self) -> SessionRuntime:
        """What all sessions of this Nexus share, for a pool of agents; raises NexusClosedError after `close()`."""
        return self._get_runtime(self.host)

    def request(self, *, mode: AgentMode = DEFAULT_MODE, **fields: Unpack[RequestFields]) -> Request:
        """Build the request that hooks receive.

        Args:
            mode: What drives the agent: `repl` (a person at a prompt) or `server` (programs over HTTP); "" for the
                mode of the session, if it has one.
            fields: Any other field of `Request`; a message and tools may be in any API's format.

        Raises:
            UnknownNameError: There is no such field or mode.
            MessageError: The message or a tool has no known format.
        """
        if mode != DEFAULT_MODE and mode not in AGENT_MODES:
            raise UnknownNameError("mode", mode, AGENT_MODES)
        request = self._layers.request(self.cwd, mode)
        if not fields:
            return request
        from nexus_core.session.options import fill_request

        return fill_request(request, self.dialects, **fields)

    def load(self, request: Request | None = None) -> LoadedLayers:
        """Load the layers of a request from disk: their settings and texts.

        Raises:
            ConfigError: A settings file is malformed, or sets something that is not allowed.
            FileError: A text cannot be read.
        """
        return self._layers.load(request or self.request())

    def context(
        self,
        *,
        mode: AgentMode = DEFAULT_MODE,
        profile: str = OWN_PROFILE,
        files: Sequence[str | os.PathLike[str]] = (),
    ) -> LoadedContext:
        """Load this directory once: sections, settings, servers, and the prompt in the format of `ContextLoader`.

        That format names the model and its context window. Sessions send `system_prompt()` instead.

        Args:
            mode: As for `request`.
            profile: The agent whose rules apply: `nexus`, or another, such as `claude`, `codex` or `cursor`.
            files: Files that another agent works on, relative to the directory; rules for these are included.
        """
        if profile != OWN_PROFILE:
            return self._layers.context_as(profile, self.cwd, files)
        return self._layers.context(self.request(mode=mode))

    def system_prompt(self, **given: Unpack[SessionArguments]) -> str:
        """Return the system prompt that a new session here sends, byte for byte; `nexus show` prints it.

        Args:
            given: Arguments of `session`: role, mode, renderer, permissions, task, skills. The model makes no
                difference.

        Raises:
            UnknownNameError: There is no such mode, role or renderer.
            UsageError: An argument has the wrong type, or a worker has no task.
        """
        return self.static_context(**given).system_prompt

    def sections(self, **given: Unpack[SessionArguments]) -> tuple[Section, ...]:
        """Return the sections of the system prompt in their order, each with its source. Arguments as above."""
        return self.static_context(**given).sections

    def static_context(self, **given: Unpack[SessionArguments]) -> StaticContext:
        """Return the static zone, loaded once: `system`, `sections`, `tools` and `loaded`. Arguments as above."""
        from nexus_core.request.static_context import build_static_context

        fields: dict[str, Any] = {"permissions": (), "tools": ()}
        if given:
            from nexus_core.session.options import build_request_fields

            fields |= build_request_fields(self.dialects, **given)
        request = self.request(mode=fields.get("mode", DEFAULT_MODE))
        return build_static_context(self.host, [(request, self.load(request))], fields)

    def fit(self, messages: Sequence[T], *, model: str = "", **options: Unpack[FitOptions]) -> FitResult[T]:
        """Fit messages into the window, with the plugins of this Nexus and the settings of its directory.

        Args:
            messages: Dicts or SDK objects of any API, or `Message`.
            model: The model whose window and tokenizer apply, or an alias; by default `provider.model` of the settings.
            options: As for `nexus_core.fit_messages`.
        """
        from nexus_core.history.budget import require_model_name
        from nexus_core.history.fit import fit_messages

        require_model_name(model or "")
        settings = self.load().settings
        return fit_messages(messages, model=settings.model_id(model), host=self.host, settings=settings, **options)

    @property
    def ledger(self) -> Ledger:
        """The ledger (append-only store) of conversations, opened when it is first used.

        Raises:
            LedgerError: It cannot be opened, or no plugin supports its URL.
            NexusClosedError: After `close()`.
        """
        host, given = self.host, self._given_ledger
        if given is not None and not isinstance(given, str):
            return given
        with self._opening:
            if self._ledger is None:
                from nexus_core.ledger.url import open_ledger

                self._ledger = open_ledger(host, given or self._ledger_url())
            return self._ledger

    @renamed_argument("label", "name")
    def session(
        self,
        name: str,
        *,
        model: str | None = None,
        tools: Iterable[object] | None = None,
        role: str | None = None,
        renderer: str | None = None,
        permissions: Iterable[str] | None = None,
        system_prompt: str | None = None,
        task: str | None = None,
        skills: Iterable[str] | None = None,
        mode: AgentMode | None = None,
        any_directory: bool = False,
    ) -> Session:
        """Open the session called `name`. The first `ask` creates it.

        A name is unique in the ledger, whatever the directory. An argument that is None keeps the session's stored
        value, or the default in a new one. An empty list stores that there are none, "" restores the default.

        Args:
            name: The session's name.
            model: The model, or an alias (`models.<alias>.id`); by default `provider.model` of the settings.
            tools: The tools that the model may call, in any API's format.
            role: The agent role; by default `unified`.
            renderer: The renderer; by default `renderer` of the settings, else `labelled`.
            permissions: The agent's permissions, as free text that the model reads. Tools that require others
                (`Tool.permissions`) are left out.
            system_prompt: The whole system prompt, in place of everything that is loaded.
            task: The task of a worker.
            skills: The skills that a worker's prompt lists; "all" restores the default.
            mode: What drives the agent: `repl` (a person at a prompt) or `server` (programs over HTTP). By default the
                prompt says nothing about it.
            any_directory: Whether to accept a session that was last used in another directory. Otherwise the next call
                has a finding, and `OtherDirectoryWarning` is issued.

        Raises:
            UsageError: An argument has the wrong type, or no plugin provides the role.
            MessageError: A tool has no known format.
        """
        from nexus_core.session.session import Session

        said: SessionArguments = {
            "model": model,
            "tools": tools,
            "role": role,
            "renderer": renderer,
            "permissions": permissions,
            "system_prompt": system_prompt,
            "task": task,
            "skills": skills,
            "mode": mode,
        }
        return Session(self._open_engine(name, any_directory=any_directory, **said))

    @renamed_argument("label", "name")
    def delete_session(self, name: str, *, reason: str = "", workers: bool = False) -> DeletionReport:
        """Erase a session and everything that no other session needs, and record the deletion. It cannot be undone.

        Args:
            name: The session's name.
            reason: The reason, which the ledger keeps.
            workers: Whether to delete its workers too.

        Raises:
            UnknownNameError: There is no such session.
            LedgerError: This ledger does not support deletion.
        """
        from nexus_core.ledger.deletion import DeletableLedger, undeletable_ledger_error

        ledger = self.ledger
        if not isinstance(ledger, DeletableLedger):
            raise undeletable_ledger_error(ledger.url)
        report = ledger.delete(name, reason=reason, workers=workers)
        if self._runtime is not None:
            self._runtime.forget(report.labels)
        return report

    def search(self, text: str, *, advance: Callable[[int], None] | None = None, **filters: Any) -> SearchResult:  # noqa: ANN401 - the fields of a StepQuery
        """Return the turns of the ledger that fit a question best, ranked by its words.

        Args:
            text: The question, in plain words.
            advance: Called with the number of steps that were indexed since its last call.
            **filters: The other fields of `StepQuery`: session, directory, roles, kinds, since, until,
                exclude_sessions, limit.

        Raises:
            UnknownNameError: There is no such session, role, kind or filter.
            UsageError: An argument has the wrong type, or `since` is after `until`.
        """
        from dataclasses import fields

        from nexus_core.memory.search import StepQuery, search_steps
        from nexus_core.memory.step_index import ignore_progress

        known = [field.name for field in fields(StepQuery) if field.name != "text"]
        for name in sorted(filters.keys() - known):
            raise UnknownNameError("filter", name, known)
        return search_steps(self.ledger, StepQuery(text=text, **filters), advance=advance or ignore_progress)

    def recall(
        self, text: str, *, session: str = "", limit: int = 10, everywhere: bool = False, facets: Sequence[str] = ()
    ) -> RecallResult:
        """Search all memory sources, whether `memory.enabled` is on or off.

        Args:
            text: A question, or some words.
            session: The session that asks, whose own turns are not found; "" for none.
            limit: Most memories to return.
            everywhere: True for memories of all directories; by default, `memory.scope` decides.
            facets: Only memories with one of these facts, such as `command`; () for all.

        Returns:
            The memories, the best first, without forgotten ones, and findings about sources that failed.

        Raises:
            FileError: The list of forgotten memories cannot be read.
            UnknownNameError: There is no such facet.
            UsageError: The text is empty, or the limit is not positive.
        """
        from nexus_core.memory.recall import search_memories

        request = self.request(session=session)
        loaded = self.load(request)
        return search_memories(
            self.host, request, loaded, self.ledger, text, limit=limit, everywhere=everywhere, facets=facets
        )

    @renamed_argument("label", "name")
    def async_session(
        self, name: str, *, any_directory: bool = False, **said: Unpack[SessionArguments]
    ) -> AsyncSession:
        """Open the session called `name` for an asynchronous program. Arguments as for `session`."""
        from nexus_core.session.async_session import AsyncSession

        return AsyncSession(self._open_engine(name, any_directory=any_directory, **said))

    def agent(self, name: str, **given: Unpack[AgentArguments]) -> Agent:
        """Open the session called `name` for an agent that calls the model and runs its tools. Connects to nothing yet.

        Args:
            name: The session's name.
            given: The arguments of `session`, and:
                tools: Python functions with type hints, `tool(function, …)`, and what runs the tools of plugins: the
                servers of `nexus_plugins.mcp.call.connect`, and `SkillGuideTool`.
                provider: The provider, or its name; by default `provider.provider` of the settings, else that of the
                model.
                level: A permission level that is tighter than `permissions.level` of the settings.
                ask: Called with a tool call that needs permission, and the reason; True lets it run. Without it, such
                calls are refused.
                max_calls: Maximum model calls of one run; 100 by default.

        Raises:
            UsageError: An argument has the wrong type; there is no such provider, level or role; or a function cannot
                be a tool.
        """
        from nexus_core.agents.agent import Agent, open_agent_loop

        return Agent(open_agent_loop(self._get_runtime(self.host), self.load(), name, **given))

    def async_agent(self, name: str, **given: Unpack[AgentArguments]) -> AsyncAgent:
        """Open the session called `name` for an agent in an asynchronous program. Arguments as for `agent`."""
        from nexus_core.agents.agent import AsyncAgent, open_agent_loop

        return AsyncAgent(open_agent_loop(self._get_runtime(self.host), self.load(), name, **given))

    def assemble(self, request: Request, *, must_fit: bool = True, announce: bool = True) -> AssembledContext:
        """Assemble one call for a request, without storing anything or calling a model.

        `request.session` adds the history of that session, with its stored model, role and tools where the request has
        none.

        Args:
            request: The message and its circumstances.
            must_fit: Whether to raise BudgetError if it does not fit.
            announce: Whether to call the hook `nexus_call_assembled`, which means that the call is about to be sent.
                Never called if `must_fit` is False.

        Raises:
            UnknownNameError: There is no such session, role or renderer.
            TurnError: The request has a message while a turn of the session is open.
            BudgetError: What must be sent exceeds the budget.
        """
        from nexus_core.runner import run

        return run(self._assembling(request, must_fit=must_fit, announce=announce))

    async def async_assemble(
        self, request: Request, *, must_fit: bool = True, announce: bool = True
    ) -> AssembledContext:
        """Assemble one call as `assemble` does, with blocking I/O in another thread."""
        from nexus_core.runner import run_async

        return await run_async(self._assembling(request, must_fit=must_fit, announce=announce))

    def replay(self, step: str | RecordedStep | Step) -> AssembledContext:
        """Rebuild the call that a reply of any session answered, byte for byte, from the ledger alone.

        Args:
            step: The reply's step, as `record` returned it, or its id; or another step of a turn, for the call that
                followed it.

        Raises:
            UsageError: There is no such step.
            TurnError: No call was assembled at that step, as in an imported session.
        """
        from nexus_core.runner import run
        from nexus_core.session.engine import replay_step

        return run(replay_step(self._get_runtime(self.host), step))

    def _assembling(self, request: Request, *, must_fit: bool, announce: bool) -> Operation[AssembledContext]:
        from nexus_core.session.engine import assemble_request

        return assemble_request(self._get_runtime(self.host), request, must_fit=must_fit, announce=announce)

    def _open_engine(self, label: str, *, any_directory: bool, **said: Unpack[SessionArguments]) -> Engine:
        from nexus_core.session.engine import open_engine

        return open_engine(self._get_runtime(self.host), label, any_directory=any_directory, **said)

    def _get_runtime(self, host: Host) -> SessionRuntime:
        """Return the state that the sessions of this Nexus share."""
        from nexus_core.session.engine import open_runtime

        if self._runtime is None:
            own, load, ledger = self._summarize, self._load_for, lambda: self.ledger
            self._runtime = open_runtime(host, load, cwd=self.cwd, home=self.home, ledger=ledger, summarize=own)
        return self._runtime

    def _load_for(self, cwd: Path, mode: AgentMode) -> tuple[Request, LoadedLayers]:
        request = self._layers.request(cwd, mode)
        return request, self.load(request)

    def _ledger_url(self) -> str:
        url = self._layers.load_settings(self.request()).get("ledger.url")
        return url if isinstance(url, str) else f"sqlite:///{self.home / LEDGER}"

    def close(self) -> None:
        """Close the plugins, idle connections to models, and the ledger. A second call does nothing."""
        host, self._host, self._runtime = self._host, None, None
        ledger, self._ledger = self._ledger, None
        try:
            if host is not None:
                host.close()
        finally:
            if ledger is not None:
                ledger.close()

    def __repr__(self) -> str:
        return f"Nexus({str(self.cwd)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ensure_usable(ledger: object, summarize: object) -> None:
    if ledger is not None and not isinstance(ledger, str) and not hasattr(ledger, "put_blobs"):
        hint = "ledger='sqlite:///path', or one that is open"
        raise UsageError(f"ledger must be a URL or a ledger, not of type {type(ledger).__name__}", hint=hint)
    if summarize is not None and not callable(summarize):
        hint = "summarize=write, where write(request) returns a text"
        raise UsageError(f"summarize must be a function, not of type {type(summarize).__name__}", hint=hint)


def _listed(given: Iterable[T], name: str, example: str) -> list[T]:
    """Return a list of arguments; a single one in place of a list is refused."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        shown = repr(given) if isinstance(given, str) else f"of type {type(given).__name__}"
        raise UsageError(f"{name} must be a list, not {shown}", hint=f"write {name}=[{example}]")
    return list(given)


def _path(given: object, name: str) -> str | os.PathLike[str]:
    if isinstance(given, str | os.PathLike):
        return given
    raise UsageError(f"{name} must be a path, not of type {type(given).__name__}")
