"""AgentPool: many agents in one process that share plugins, ledger, provider connections and token counters."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypedDict

from nexus_core.agents.agent import check_loop_arguments, choose_provider, read_agent_tools
from nexus_core.agents.loop import MAX_MODEL_CALLS, AgentLoop
from nexus_core.agents.permissions import read_level
from nexus_core.config.durations import require_seconds
from nexus_core.errors import AgentCycleError, AgentDestroyedError, AgentExistsError, UnknownNameError, UsageError
from nexus_core.files.places import expand_user, resolve_directory
from nexus_core.layers.policy import PERMISSION_LEVELS, tightest_level
from nexus_core.ledger.store import new_id, read_label
from nexus_core.memory.recall import search_memories
from nexus_core.nexus import Nexus
from nexus_core.rpc.manager_tools import build_manager_tools
from nexus_core.rpc.pooled_agent import PooledAgent, question_to_json
from nexus_core.rpc.session_logger import SessionLogger
from nexus_core.runner import run
from nexus_core.session.engine import open_engine
from nexus_core.session.workers import WORKER_ROLE, SpawnArguments
from nexus_core.types.request import DEFAULT_MODE, DEFAULT_ROLE

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Unpack

    from nexus_core.agents.loop import AgentLogger, AskPermission
    from nexus_core.config.schema import Config
    from nexus_core.host.manager import ContributionRegistry
    from nexus_core.memory.recall import RecallResult
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.session.engine import Engine
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.providers import Provider
    from nexus_core.types.request import AgentMode

MAX_WORKER_DEPTH = 4
"""Workers of workers, so that models cannot create them without end."""
MAX_CACHED_PROVIDERS = 32
"""Directories whose providers are kept; most pools have one or two."""
DEFAULT_TASK = "Do what the messages of your manager ask."
"""The task of a worker that is created without one."""


class PromptLoaderLike(Protocol):
    """Loads a system prompt, as `nexus_core.context.PromptLoader` does."""

    def load(self, is_repl: bool = ...) -> Any:  # noqa: ANN401 - an object with `content`
        """Return an object whose `content` is the system prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedComponents:
    """Components shared by all agents of a pool.

    Attributes:
        config: Settings whose model, provider and permission level apply to agents that set none. All other settings
            come from the files of each agent's directory.
        provider: The provider, or its name; None for that of the settings or of the model.
        prompt_loader: Loads the system prompt of agents without a prompt, a directory and a parent of their own. None
            loads the layers of the pool's directory, as for all other agents.
        base_log_dir: The directory in which each agent has a log (`SessionLogger`); None for no logs.
        nexus: The Nexus with plugins and ledger, which the caller closes; None for one of the current directory, which
            the pool closes.
        tools: The tools of agents that set none: Python functions, and objects that run the tools of plugins.
        ask: Called with a tool call that needs permission, and the reason; True lets it run.
        question_seconds: If there is no `ask`: the time for `PooledAgent.answer_permission` to answer a tool call that
            needs permission, before it is refused; None or 0 refuses at once.
        mode: What drives the agents, as for `Nexus.session`.
    """

    config: Config | Mapping[str, Any] | None = None
    provider: str | Provider | None = None
    prompt_loader: PromptLoaderLike | None = None
    base_log_dir: str | os.PathLike[str] | None = None
    nexus: Nexus | None = None
    tools: Sequence[object] = ()
    ask: AskPermission | None = None
    question_seconds: float | None = None
    mode: AgentMode | None = None


class AgentFields(TypedDict, total=False):
    """The arguments of `AgentPool.create`, by the names of `AgentConfig`."""

    cwd: str | os.PathLike[str] | None
    system_prompt: str | None
    model: str | None
    role: str | None
    parent: str | None
    task: str | None
    level: str | None
    tools: Sequence[object] | None
    provider: str | Provider | None
    permissions: Sequence[str] | None
    skills: Sequence[str] | None
    max_calls: int
    contained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The options of an agent of a pool.

    Attributes:
        agent_id: Its id, which is the name of its session; None to make one.
        cwd: Its working directory, whose instructions it reads; None for that of its parent or of the pool.
        system_prompt: Its whole system prompt, in place of everything that is loaded.
        model: Its model; None for that of its parent, the pool's `config` or the settings.
        role: Its role: `manager` has tools for workers; `unified` by default, `worker` for an agent with a parent.
        parent: The id of the agent whose worker it is.
        task: The task of a worker.
        level: A permission level that is tighter than that of the settings, and of its parent.
        tools: Its tools; None for those of its parent or the pool.
        provider: Its provider, or the name of one; None for that of its parent or the pool.
        permissions: Its permissions, as for `Nexus.session`; a worker has those of its parent.
        skills: The skills that a worker's prompt lists; None for all.
        max_calls: Maximum model calls of one turn.
        contained: Whether a sandboxed parent's worker must stay in its parent's directory.
    """

    agent_id: str | None = None
    cwd: str | os.PathLike[str] | None = None
    system_prompt: str | None = None
    model: str | None = None
    role: str | None = None
    parent: str | None = None
    task: str | None = None
    level: str | None = None
    tools: Sequence[object] | None = None
    provider: str | Provider | None = None
    permissions: Sequence[str] | None = None
    skills: Sequence[str] | None = None
    max_calls: int = MAX_MODEL_CALLS
    contained: bool = False


class AgentPool:
    """Agents that share plugins, ledger, connections and token counters.

    Use a pool in one event loop, and close it: `async with AgentPool(…) as pool`.

    Args:
        shared: What they share: `SharedComponents`, or a `Nexus` alone; None for a Nexus of the current directory.
    """

    def __init__(self, shared: SharedComponents | Nexus | None = None) -> None:
        if isinstance(shared, Nexus):
            shared = SharedComponents(nexus=shared)
        elif shared is not None and not isinstance(shared, SharedComponents):
            raise UsageError(
                f"a pool needs SharedComponents or a Nexus, not of type {type(shared).__name__}",
                hint="AgentPool(SharedComponents(nexus=nexus))",
            )
        self.shared = shared or SharedComponents()
        if self.shared.question_seconds is not None:
            require_seconds(self.shared.question_seconds, "question_seconds", allows_zero=True)
        self.nexus = self.shared.nexus or Nexus()
        self._defaults = _read_defaults(self.shared.config)
        self._tools = read_agent_tools(self.shared.tools)
        self._agents: dict[str, PooledAgent] = {}
        self._creating: set[str] = set()
        self._providers: dict[int, tuple[LoadedLayers, ContributionRegistry[Provider]]] = {}
        self._is_closed = False

    def __repr__(self) -> str:
        return f"AgentPool({len(self._agents)} agents, {str(self.nexus.cwd)!r})"

    def __len__(self) -> int:
        return len(self._agents)

    def __iter__(self) -> Iterator[PooledAgent]:
        return iter(tuple(self._agents.values()))

    def __contains__(self, agent_id: object) -> bool:
        return agent_id in self._agents

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- agents ---------------------------------------------------------------------------------------------------

    async def create(
        self, agent_id: str | None = None, *, config: AgentConfig | None = None, **given: Unpack[AgentFields]
    ) -> PooledAgent:
        """Create an agent, or continue the one whose session is in the ledger. Connects to nothing yet.

        Args:
            agent_id: Its id, unique in the pool; by default that of `config`, else a new one.
            config: Its options.
            given: Options that override those of `config`.

        Raises:
            AgentExistsError: The pool has an agent of that id.
            UnknownNameError: There is no such parent, role, provider or level.
            AgentCycleError: The agent would be its own parent, directly or through others.
            SessionExistsError: A session of that name is in the ledger, and not the worker of this parent.
            UsageError: An option is invalid, or looser than its parent's.
        """
        self._ensure_open()
        chosen = _merge_config(config, agent_id, given)
        name = read_label(f"agent-{new_id()}" if chosen.agent_id is None else chosen.agent_id)
        with self._reserve(name):
            return await self._add_agent(name, chosen)

    async def fork(self, agent_id: str, name: str) -> PooledAgent:
        """Create an agent whose session branches off after another's last closed turn, with its permission level.

        Args:
            agent_id: The agent whose session is continued.
            name: The id of the new one, unique in the pool and in the ledger.

        Raises:
            UnknownNameError: There is no such agent.
            AgentExistsError: The pool has an agent of the new id.
            SessionExistsError: A session of that name is in the ledger.
        """
        self._ensure_open()
        agent, name = self.get(agent_id), read_label(name)
        cwd = None if agent.cwd == self.nexus.cwd else agent.cwd
        role = agent.role if agent.parent is None else None
        # That of a worker is bound by its parent's, which the fork does not have.
        config = AgentConfig(agent_id=name, cwd=cwd, role=role, level=agent.level)
        # An agent without messages has no session yet, so that the ledger would give its name away.
        with self._reserve(name):
            return await self._add_agent(name, config, fork_of=agent)

    @contextmanager
    def _reserve(self, name: str) -> Iterator[None]:
        """Keep an id from others while its agent is being created.

        Raises:
            AgentExistsError: The pool has an agent of that id, or is creating one.
        """
        if name in self._agents or name in self._creating:
            hint = f"pool.get({name!r}) returns it; destroy() it first to make another"
            raise AgentExistsError(f"there is an agent {name!r} already", hint=hint)
        self._creating.add(name)
        try:
            yield
        finally:
            self._creating.discard(name)

    async def _add_agent(self, name: str, config: AgentConfig, *, fork_of: PooledAgent | None = None) -> PooledAgent:
        parent = self._find_parent(name, config.parent)
        agent = await asyncio.to_thread(self._open_agent, name, config, parent)
        if fork_of is not None:  # last, so that nothing is stored for an agent that cannot be opened
            await fork_of.session.fork(name)
        self._ensure_open()
        if parent is not None:
            if parent.is_destroyed:
                raise AgentDestroyedError(f"agent {parent.id!r} was destroyed meanwhile")
            parent.children[name] = agent
        self._agents[name] = agent
        return agent

    def get(self, agent_id: str) -> PooledAgent:
        """Return the agent of that id.

        Raises:
            UnknownNameError: There is none.
        """
        try:
            return self._agents[agent_id]
        except (KeyError, TypeError):
            raise UnknownNameError("agent", str(agent_id), self._agents) from None

    def list(self) -> list[dict[str, Any]]:
        """Return what is known of each agent, in the order in which they were created. Reads no file."""
        return [self.describe(each) for each in self._agents.values()]

    def describe(self, agent: PooledAgent) -> dict[str, Any]:
        """Return what is known of an agent, as JSON."""
        return {
            "agent_id": agent.id,
            "parent": agent.parent.id if agent.parent else None,
            "children": list(agent.children),
            "cwd": str(agent.cwd),
            "role": agent.role,
            "level": agent.level,
            "running": agent.is_running,
            "waiting": agent.waiting,
            "question": question_to_json(agent.question),
        }

    async def destroy(self, agent_id: str) -> tuple[str, ...]:
        """End an agent and its workers, and return their ids. Turns are cancelled, and sessions stay in the ledger.

        Raises:
            UnknownNameError: There is no such agent.
        """
        agent = self.get(agent_id)
        ended: tuple[str, ...] = ()
        for child in tuple(agent.children.values()):
            if child.id in self._agents:
                ended += await self.destroy(child.id)
        self._agents.pop(agent_id, None)
        if agent.parent is not None:
            agent.parent.children.pop(agent_id, None)
        await agent.destroy()
        return (*ended, agent_id)

    def search_memories(self, text: str, agent: PooledAgent | None, limit: int) -> RecallResult:
        """Search all memory sources as `Nexus.recall` does. It blocks.

        Args:
            text: A question, or some words.
            agent: The agent that asks: its directory is searched, and its own turns are left out.
            limit: Most memories to return.
        """
        cwd = self.nexus.cwd if agent is None else agent.cwd
        runtime = self.nexus.runtime if cwd == self.nexus.cwd else self.nexus.runtime.at(cwd)
        request, loaded = runtime.static_contexts.load([cwd], self.shared.mode or DEFAULT_MODE)[0]
        if agent is not None:
            request = replace(request, session=agent.id)
        return search_memories(runtime.host, request, loaded, runtime.ledger, text, limit=limit)

    async def close(self) -> None:
        """End all agents, and close the Nexus if the pool has opened it. A second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        agents, self._agents = tuple(self._agents.values()), {}
        await asyncio.gather(*(agent.destroy() for agent in agents))
        if self.shared.nexus is None:
            await asyncio.to_thread(self.nexus.close)

    def _ensure_open(self) -> None:
        if self._is_closed:
            raise AgentDestroyedError("this pool is closed", hint="make a new AgentPool")

    def _find_parent(self, name: str, parent_id: str | None) -> PooledAgent | None:
        if parent_id is None:
            return None
        if parent_id == name:
            raise AgentCycleError(f"agent {name!r} cannot be its own parent")
        parent = self.get(parent_id)
        depth, above = 1, parent
        while above.parent is not None:
            depth, above = depth + 1, above.parent
        if depth > MAX_WORKER_DEPTH:
            raise UsageError(
                f"agent {parent_id!r} is a worker of a worker, {depth - 1} levels deep, and cannot have workers",
                hint="let its manager create them",
            )
        return parent

    # ---- opening, in another thread -------------------------------------------------------------------------------

    def _open_agent(self, name: str, config: AgentConfig, parent: PooledAgent | None) -> PooledAgent:
        check_loop_arguments(self.shared.ask, config.max_calls)
        inherited = self._tools if parent is None else parent.tools
        tools = inherited if config.tools is None else read_agent_tools(config.tools)
        role = WORKER_ROLE if parent is not None else config.role or DEFAULT_ROLE
        cwd = self._find_directory(config, parent)
        opened: list[PooledAgent] = []
        own = build_manager_tools(self, lambda: opened[0], role)
        functions = tools.functions | {each.name: each for each in own}
        definitions = [*(tools.definitions or ()), *(each.definition for each in own)]
        is_elsewhere = parent is None and cwd != self.nexus.cwd
        runtime = self.nexus.runtime.at(cwd) if is_elsewhere else self.nexus.runtime
        _, loaded = runtime.static_contexts.load([cwd], self.shared.mode or DEFAULT_MODE)[0]
        providers = self._get_providers(runtime, loaded)
        given = config.provider or (parent.provider if parent else None) or self.shared.provider
        given = given or self._defaults.get("provider")
        has_model = bool(config.model or parent or self._defaults.get("model"))
        provider = choose_provider(given, providers, loaded.settings, has_model=has_model)
        level = self._read_level(config, loaded, parent)
        # Last, when nothing can be refused any more: the session of a worker is stored when it is opened.
        if parent is None:
            engine, view = (self._open_engine(runtime, name, config, definitions) for _ in range(2))
        else:
            engine, view = (self._spawn(name, config, parent, definitions) for _ in range(2))
        loop = AgentLoop(
            engine,
            lambda: runtime.ledger,
            providers=providers,
            provider=provider,
            functions=functions,
            runners=tools.runners,
            level=level,
            ask=self._build_ask(lambda: opened[0]),
            max_calls=config.max_calls,
            logger=self._open_logger(name),
        )
        agent = PooledAgent(
            name,
            loop,
            view=view,
            tools=tools,
            provider=provider,
            cwd=cwd,
            role=role,
            parent=parent,
            question_seconds=None if self.shared.ask else self.shared.question_seconds,
        )
        opened.append(agent)
        return agent

    def _build_ask(self, get_agent: Callable[[], PooledAgent]) -> AskPermission | None:
        """Return the function that asks whether a tool call of an agent may run; None if nothing is asked."""
        if self.shared.ask is not None or not self.shared.question_seconds:
            return self.shared.ask
        # It returns an awaitable, which the turn awaits in the event loop.
        return lambda call, reason: get_agent().ask_permission(call, reason)

    def _find_directory(self, config: AgentConfig, parent: PooledAgent | None) -> Path:
        base = self.nexus.cwd if parent is None else parent.cwd
        if config.cwd is None:
            return base
        cwd = resolve_directory(base / expand_user(config.cwd))
        is_confined = config.contained and parent is not None and parent.level == PERMISSION_LEVELS[-1]
        if is_confined and not cwd.is_relative_to(base):
            raise UsageError(
                f"{cwd} is outside of the parent's directory, {base}",
                hint="a sandboxed agent creates workers in its own directory",
            )
        return cwd

    def _open_engine(
        self, runtime: SessionRuntime, name: str, config: AgentConfig, definitions: Sequence[object]
    ) -> Engine:
        if config.task:
            raise UsageError("a task is for a worker, and a worker needs a parent", hint="parent='…'")
        if config.role == WORKER_ROLE:
            raise UsageError("a worker needs a parent", hint="parent='…'")
        prompt = config.system_prompt
        if prompt is None and self.shared.prompt_loader is not None and config.cwd is None:
            prompt = str(self.shared.prompt_loader.load(is_repl=False).content)
        return open_engine(
            runtime,
            name,
            any_directory=config.cwd is not None,
            model=config.model or self._defaults.get("model"),
            tools=definitions,
            role=config.role,
            permissions=config.permissions,
            system_prompt=prompt,
            skills=config.skills,
            mode=self.shared.mode,
        )

    def _spawn(self, name: str, config: AgentConfig, parent: PooledAgent, definitions: Sequence[object]) -> Engine:
        if config.role not in (None, WORKER_ROLE):
            raise UsageError(
                f"an agent with a parent is a worker, not {config.role!r}", hint="leave out role=, or parent="
            )
        if config.permissions is not None:
            raise UsageError("a worker has the permissions of its parent", hint="leave out permissions=")
        self._refuse_cycle(name, parent)
        task = DEFAULT_TASK if config.task is None else config.task
        orders = SpawnArguments(
            task,
            None if config.cwd is None else self._find_directory(config, parent),
            skills=config.skills,
            label=name,
            model=config.model,
            tools=definitions,
            system_prompt=config.system_prompt,
            reopen=True,
        )
        return run(parent.engine.spawn(orders))

    def _refuse_cycle(self, name: str, parent: PooledAgent) -> None:
        """Raise if the ledger says that the parent is a worker of the agent, directly or through others."""
        ledger, above = self.nexus.ledger, parent.id
        seen: set[str] = set()
        while above and above not in seen:
            seen.add(above)
            record = ledger.session(above)
            above = (record.payload.parent or "") if record is not None else ""
            if above == name:
                raise AgentCycleError(
                    f"agent {parent.id!r} is a worker of {name!r}, so it cannot be its parent",
                    hint="give the new agent another id",
                )

    def _read_level(self, config: AgentConfig, loaded: LoadedLayers, parent: PooledAgent | None) -> str:
        allowed = read_level(None, loaded.settings, parent.level if parent else None)
        if config.level is None and (default := self._defaults.get("level")) in PERMISSION_LEVELS:
            return tightest_level(allowed, default)
        return read_level(config.level, loaded.settings, parent.level if parent else None)

    def _get_providers(self, runtime: SessionRuntime, loaded: LoadedLayers) -> ContributionRegistry[Provider]:
        """Return the providers of a directory, so that agents there share their connections."""
        known = self._providers.get(id(loaded))
        if known is None or known[0] is not loaded:
            if len(self._providers) >= MAX_CACHED_PROVIDERS:
                self._providers.clear()
            self._providers[id(loaded)] = known = loaded, runtime.host.providers(loaded)
        return known[1]

    def _open_logger(self, name: str) -> AgentLogger | None:
        if self.shared.base_log_dir is None:
            return None
        return SessionLogger(Path(self.shared.base_log_dir), name)


def _merge_config(config: AgentConfig | None, agent_id: str | None, given: AgentFields) -> AgentConfig:
    if config is not None and not isinstance(config, AgentConfig):
        raise UsageError(f"config must be an AgentConfig, not of type {type(config).__name__}")
    known = [each.name for each in fields(AgentConfig)]
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise UnknownNameError("option of an agent", unknown, known)
    merged = replace(config or AgentConfig(), **given)
    return merged if agent_id is None else replace(merged, agent_id=agent_id)


def _read_defaults(config: Any) -> dict[str, str]:  # noqa: ANN401 - settings in any form
    """Return the model, provider and permission level of settings, as far as they are set."""
    if config is None:
        return {}
    if hasattr(config, "model_dump"):
        config = config.model_dump(exclude_unset=True)
    if not isinstance(config, dict):
        raise UsageError(f"config must be settings, not of type {type(config).__name__}", hint="leave it out")
    provider, permissions = (config.get(name) or {} for name in ("provider", "permissions"))
    found = {
        "model": provider.get("model"),
        "provider": provider.get("provider"),
        "level": permissions.get("level"),
    }
    return {name: value for name, value in found.items() if isinstance(value, str) and value}
