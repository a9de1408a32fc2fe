"""The facade: a place, its plugins, and what a model should read there."""

from __future__ import annotations

import os
from _thread import allocate_lock  # what `threading` calls Lock, without the module's start-up time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nexus_core.config.early import EarlySettings, read_early_settings
from nexus_core.errors import ClosedError, UnknownNameError, UsageError
from nexus_core.files.places import defaults_directory, existing_directory, home_directory
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.candidates import given_candidates
from nexus_core.host.host import Host
from nexus_core.host.installed import installed_candidates
from nexus_core.host.policy import disabled_by_user, read_policy
from nexus_core.layers.loader import OWN_PROFILE, LayerLoader
from nexus_core.values.request import DEFAULT_MODE, MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Unpack

    from nexus_core.assembly.static_context import StaticContext
    from nexus_core.dialects.finding import Dialects
    from nexus_core.history.fit import FitOptions, Fitted
    from nexus_core.history.ledger.deletion import DeletionReport
    from nexus_core.layers.context import LoadedContext
    from nexus_core.session.asking.requesting import RequestFields
    from nexus_core.session.async_session import AsyncSession
    from nexus_core.session.drivers import Work
    from nexus_core.session.options import Saying
    from nexus_core.session.pipeline import Pipeline
    from nexus_core.session.place import Place
    from nexus_core.session.session import Session
    from nexus_core.session.steps.recorded import RecordedStep
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.compaction import Summarize
    from nexus_core.values.events import HookCall, Problem
    from nexus_core.values.ledger import Ledger, Step
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.plugin import PluginInfo
    from nexus_core.values.request import Mode, Request
    from nexus_core.values.section import Section

T = TypeVar("T")

LEDGER = "ledger.db"
"""The file in the home that conversations are kept in."""


class Nexus:
    """Everything Nexus knows about one directory, through the plugins that are installed.

    Args:
        cwd: The directory the agent works in.
        home: The user's own directory; by default `NEXUS_HOME`, else `~/.nexus3`.
        layers: Whether to look for layers on disk at all.
        installed: Whether to load installed plugins; without layers too, no settings are read.
        defaults: Whether the defaults that ship with Nexus stand in for a missing global layer.
        plugins: Objects with hooks, in addition to the installed plugins.
        disable: Names of plugins not to load.
        ledger: Where conversations are kept, as a url (`sqlite:///path`, `postgresql://…`, `memory:`) or an open
            ledger, which stays the caller's to close; by default `ledger.url` of the settings, else a file in the home.
        summarize: Your own summariser, asked first: it is given a `SummaryRequest` and returns a text, or an awaitable.
        strict: Whether the first problem with any plugin stops the run; NEXUS_STRICT=1 decides when None.
        report: Called with each problem a plugin causes; without it they go to the `nexus_core` logger.
        trace: Called after every plugin's answer to a hook.

    Raises:
        FileError: There is no such directory.
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
        summarize: Summarize | None = None,
        strict: bool | None = None,
        report: Callable[[Problem], None] | None = None,
        trace: Callable[[HookCall], None] | None = None,
    ) -> None:
        self.cwd = existing_directory(_path(cwd, "cwd"))
        self.home = home_directory(self.cwd) if home is None else Path(_path(home, "home")).absolute()
        settings = EarlySettings()
        if layers or installed:  # without layers, nobody asks the project how far up to look
            settings = read_early_settings(self.home, self.cwd / ".nexus3" if layers else self.home)
        disabled = disabled_by_user(self.home, settings.disabled_plugins)
        names = _listed(disable, "disable", "'name'")
        policy = read_policy((*disabled, *names), strict=strict)
        candidates = list(BUNDLED)
        if installed and not policy.only_bundled:
            candidates += installed_candidates(outside=self.cwd)
        candidates += given_candidates(_listed(plugins, "plugins", "module"))
        self._host: Host | None = Host(candidates, policy, report=report, trace=trace)
        standing_in = defaults_directory() if defaults else None
        self._layers = LayerLoader(lambda: self.host, self.home, defaults=standing_in, looks=layers)
        _ensure_usable(ledger, summarize)
        self._given_ledger = ledger
        self._ledger: Ledger | None = None
        self._place: Place | None = None
        self._summarize = summarize
        self._opening = allocate_lock()

    @property
    def host(self) -> Host:
        """The loaded plugins; raises ClosedError after `close()`."""
        if self._host is None:
            raise ClosedError("this Nexus is closed", hint="make a new one, or use it before close()")
        return self._host

    @property
    def plugins(self) -> tuple[PluginInfo, ...]:
        """Every plugin that was found, loaded or not, and why not."""
        return self.host.plugins

    @property
    def dialects(self) -> Dialects:
        """The shapes of APIs: those that are built in, then those of this Nexus's plugins."""
        from nexus_core.dialects.finding import dialects_of  # noqa: PLC0415 - most need no conversation

        return dialects_of(lambda: self.host)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What plugins did wrong so far and the run went on without."""
        return self.host.problems

    def request(self, *, mode: Mode = DEFAULT_MODE, **fields: Unpack[RequestFields]) -> Request:
        """The circumstances that hooks are told about.

        Args:
            mode: The driver of the agent: `repl`, a person at a prompt, or `server`, programs over HTTP; "" for the
                mode of the session, else none.
            fields: Any other field of `Request`; a message and tools may be given in the shape of any API.

        Raises:
            UnknownNameError: There is no such field, or mode.
            MessageError: The message is none, or one of the tools.
        """
        if mode != DEFAULT_MODE and mode not in MODES:
            raise UnknownNameError("mode", mode, MODES)
        request = self._layers.request(self.cwd, mode)
        if not fields:
            return request
        from nexus_core.session.asking.requesting import with_fields  # noqa: PLC0415 - most need no conversation

        return with_fields(request, self.dialects, **fields)

    def load(self, request: Request | None = None) -> Loaded:
        """Find the layers of a request and read their settings and texts, fresh from disk.

        Raises:
            ConfigError: A settings file is malformed, or sets something that is not allowed.
            FileError: A text cannot be read.
        """
        return self._layers.load(request or self.request())

    def context(self, *, mode: Mode = DEFAULT_MODE, profile: str = OWN_PROFILE) -> LoadedContext:
        """Load this directory once: sections, settings, servers, and the prompt in the form of `ContextLoader`.

        That form names the model and its context window, which no session sends; `system_prompt()` is what one sends.

        Args:
            mode: As for `request`.
            profile: Through whose eyes: `nexus`, or what `claude`, `codex` or `gemini` would read here.
        """
        if profile != OWN_PROFILE:
            return self._layers.context_as(profile, self.cwd)
        return self._layers.context(self.request(mode=mode))

    def system_prompt(self, **given: Unpack[Saying]) -> str:
        """Return the system prompt that a new session here sends, byte for byte; `nexus show` prints it.

        Args:
            given: Arguments as for `session`: role, mode, renderer, permissions, task, skills. The model changes
                nothing.

        Raises:
            UnknownNameError: There is no such mode, or no plugin offers the role or the renderer.
            UsageError: An argument is of another type than it must be, or a worker has no task.
        """
        return self.static_context(**given).system

    def sections(self, **given: Unpack[Saying]) -> tuple[Section, ...]:
        """Return the sections of that prompt in their order, each with its source; arguments as above."""
        return self.static_context(**given).sections

    def static_context(self, **given: Unpack[Saying]) -> StaticContext:
        """Return all of that, loaded once: `system`, `sections`, `tools` and `loaded`; arguments as above."""
        from nexus_core.assembly.surroundings import build_static_context  # noqa: PLC0415 - not for what loads no prompt

        fields: dict[str, Any] = {"permissions": (), "tools": ()}
        if given:
            from nexus_core.session.options import build_request_fields  # noqa: PLC0415 - most need no conversation

            fields |= build_request_fields(self.dialects, **given)
        request = self.request(mode=fields.get("mode", DEFAULT_MODE))
        return build_static_context(self.host, [(request, self.load(request))], fields)

    def fit(self, messages: Sequence[T], *, model: str = "", **options: Unpack[FitOptions]) -> Fitted[T]:
        """The messages that fit, as `nexus_core.fit`, with the plugins of this Nexus and the settings of its directory.

        Args:
            messages: Dicts or SDK objects of any API, or `Message`.
            model: Whose window and tokeniser count, or an alias; by default `provider.model` of the settings.
            options: As for `nexus_core.fit`.
        """
        from nexus_core.history.fit import fit  # noqa: PLC0415 - most need no conversation

        settings = self.load().settings
        return fit(messages, model=settings.model_id(model), host=self.host, settings=settings, **options)

    @property
    def ledger(self) -> Ledger:
        """Where conversations are kept; opened when it is first asked for.

        Raises:
            LedgerError: It cannot be opened, or no plugin knows its url.
            ClosedError: After `close()`.
        """
        host, given = self.host, self._given_ledger
        if given is not None and not isinstance(given, str):
            return given
        with self._opening:
            if self._ledger is None:
                from nexus_core.history.ledger.opening import open_ledger  # noqa: PLC0415 - most need no conversation

                self._ledger = open_ledger(host, given or self._ledger_url())
            return self._ledger

    def session(
        self,
        label: str,
        *,
        model: str | None = None,
        tools: Iterable[object] | None = None,
        role: str | None = None,
        renderer: str | None = None,
        permissions: Iterable[str] | None = None,
        system_prompt: str | None = None,
        task: str | None = None,
        skills: Iterable[str] | None = None,
        mode: Mode | None = None,
        any_directory: bool = False,
    ) -> Session:
        """A conversation by its name, which goes on where it was left; a new one begins when something is said.

        Names are for the whole ledger, whatever the directory. Arguments that are left out keep what was said before,
        else they are as usual. An empty list says that there are none, an empty word that it is as usual again.

        Args:
            label: Its name.
            model: Whom to ask, or an alias (`models.<alias>.id`); usually `provider.model` of the settings.
            tools: What the model may ask for, in the shape of any API.
            role: What part the agent plays; usually `unified`.
            renderer: What puts requests into words; usually `renderer` of the settings, else `labelled`.
            permissions: What the agent may do, in words of your own; the model reads them. Tools that need others
                (`Tool.permissions`) are left out.
            system_prompt: The whole system prompt, in place of everything that is loaded.
            task: What a worker is to do.
            skills: The skills that a worker is told about; usually all, to which "all" goes back.
            mode: The driver of the agent: `repl`, a person at a prompt, or `server`, programs over HTTP. Usually none:
                then the model reads nothing about it.
            any_directory: Whether it may have been used in another directory before. Otherwise that is a finding of
                the next call and an `OtherDirectoryWarning`.

        Raises:
            UsageError: Something is of another kind than it must be, or nobody offers the role.
            MessageError: One of the tools is none.
        """
        from nexus_core.session.session import Session  # noqa: PLC0415 - as above

        said: Saying = {
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
        return Session(self._pipeline(label, any_directory=any_directory, **said))

    def delete_session(self, label: str, *, reason: str = "", workers: bool = False) -> DeletionReport:
        """Delete a session: its names, and everything that no other session needs; that is recorded, and for good.

        Args:
            label: Its name.
            reason: Why; it is kept in the ledger.
            workers: Whether its workers are deleted, too.

        Raises:
            UnknownNameError: There is no such session.
            LedgerError: Nothing can be deleted from this ledger.
        """
        from nexus_core.history.ledger.deletion import DeletableLedger, undeletable  # noqa: PLC0415 - seldom used

        ledger = self.ledger
        if not isinstance(ledger, DeletableLedger):
            raise undeletable(ledger.url)
        report = ledger.delete(label, reason=reason, workers=workers)
        if self._place is not None:
            self._place.forget(report.labels)
        return report

    def async_session(self, label: str, *, any_directory: bool = False, **said: Unpack[Saying]) -> AsyncSession:
        """The same with verbs that are awaited; arguments as for `session`."""
        from nexus_core.session.async_session import AsyncSession  # noqa: PLC0415 - as above

        return AsyncSession(self._pipeline(label, any_directory=any_directory, **said))

    def assemble(self, request: Request, *, must_fit: bool = True, announce: bool = True) -> AssembledContext:
        """Everything that one call is made of, for a request; nothing is written, and no model is called.

        With `request.session`, the history of that session is read, and what was said before about its model, role and
        tools counts where the request says nothing.

        Args:
            request: The circumstances, and what is said.
            must_fit: False for whoever wants to look at what does not fit.
            announce: Whether plugins are told that it is about to be sent (`nexus_assembled`); False for whoever only
                looks. What need not fit is never announced.

        Raises:
            UnknownNameError: There is no such session, role or renderer.
            TurnError: Something is said while a turn of the session is open.
            BudgetError: What must be sent does not fit.
        """
        from nexus_core.session.drivers import run  # noqa: PLC0415 - as above

        return run(self._assembling(request, must_fit=must_fit, announce=announce))

    async def async_assemble(
        self, request: Request, *, must_fit: bool = True, announce: bool = True
    ) -> AssembledContext:
        """The same, awaited; what has to wait for a disk or a server waits in another thread."""
        from nexus_core.session.drivers import run_async  # noqa: PLC0415 - as above

        return await run_async(self._assembling(request, must_fit=must_fit, announce=announce))

    def replay(self, step: str | RecordedStep | Step) -> AssembledContext:
        """What was sent before a reply, byte for byte, from what is kept alone; of any session.

        Args:
            step: The reply, as `record` returned it or by the id of its step; or another step of a turn, for what was
                sent then.

        Raises:
            UsageError: There is no such step.
            TurnError: Nothing was sent by Nexus there.
        """
        from nexus_core.session.drivers import run  # noqa: PLC0415 - as above
        from nexus_core.session.opening import replaying  # noqa: PLC0415 - as above

        return run(replaying(self._place_of(self.host), step))

    def _assembling(self, request: Request, *, must_fit: bool, announce: bool) -> Work[AssembledContext]:
        from nexus_core.session.opening import assembling  # noqa: PLC0415 - as above

        return assembling(self._place_of(self.host), request, must_fit=must_fit, announce=announce)

    def _pipeline(self, label: str, *, any_directory: bool, **said: Unpack[Saying]) -> Pipeline:
        from nexus_core.session.opening import open_pipeline  # noqa: PLC0415 - as above

        return open_pipeline(self._place_of(self.host), label, any_directory=any_directory, **said)

    def _place_of(self, host: Host) -> Place:
        """What its sessions have in common."""
        from nexus_core.session.opening import open_place  # noqa: PLC0415 - as above

        if self._place is None:
            own, load, ledger = self._summarize, self._load_for, lambda: self.ledger
            self._place = open_place(host, load, cwd=self.cwd, home=self.home, ledger=ledger, summarize=own)
        return self._place

    def _load_for(self, cwd: Path, mode: Mode) -> tuple[Request, Loaded]:
        request = self._layers.request(cwd, mode)
        return request, self.load(request)

    def _ledger_url(self) -> str:
        url = self.load().settings.get("ledger.url")
        return url if isinstance(url, str) else f"sqlite:///{self.home / LEDGER}"

    def close(self) -> None:
        """Let go of the plugins and of what they opened; a second call does nothing."""
        self._host = self._place = None
        ledger, self._ledger = self._ledger, None
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
        raise UsageError(f"ledger must be a url or a ledger, not of type {type(ledger).__name__}", hint=hint)
    if summarize is not None and not callable(summarize):
        hint = "summarize=write, where write(request) returns a text"
        raise UsageError(f"summarize must be a function, not of type {type(summarize).__name__}", hint=hint)


def _listed(given: Iterable[T], name: str, example: str) -> list[T]:
    """What was given as a list; a single one is a mistake that is easily made."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        shown = repr(given) if isinstance(given, str) else f"of type {type(given).__name__}"
        raise UsageError(f"{name} must be a list, not {shown}", hint=f"write {name}=[{example}]")
    return list(given)


def _path(given: object, name: str) -> str | os.PathLike[str]:
    if isinstance(given, str | os.PathLike):
        return given
    raise UsageError(f"{name} must be a path, not of type {type(given).__name__}")
