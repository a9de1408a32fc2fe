"""Tools with which a manager creates, messages and reads workers, and the one with which a worker reports to it."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any

from nexus_core.agents.tools import FunctionTool
from nexus_core.errors import NexusError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.rpc.pool import AgentPool
    from nexus_core.rpc.pooled_agent import AgentTurn, PooledAgent

WORKER_SECONDS = 24 * 3600.0
"""Time-out of a tool that waits for a worker; every model call and tool of the worker has its own."""
MAX_READ_CHARACTERS = 4_000
"""Characters of each message that `nexus_read` returns."""
FIRST_MESSAGE = "Begin with your task."
"""The message that starts a worker, whose task is in its system prompt."""


class ManagerTools:
    """The tools of one agent of a pool, as methods.

    Args:
        pool: The pool.
        agent: Returns the agent.
    """

    def __init__(self, pool: AgentPool, agent: Callable[[], PooledAgent]) -> None:
        self._pool = pool
        self._agent = agent
        self._reports: set[asyncio.Task[None]] = set()

    async def nexus_create(self, agent_id: str, task: str, cwd: str = "", wait: bool = True) -> str:
        """Create a worker agent for one task.

        Args:
            agent_id: A name for the worker, such as tests-1.
            task: The task, with everything that the worker needs to know. It does not see this conversation.
            cwd: The directory that it works in, whose instructions it reads; by default yours.
            wait: True to wait and return its final reply. False to go on at once; its reply arrives as a message.
        """
        manager = self._agent()
        worker = await self._pool.create(agent_id, parent=manager.id, task=task, cwd=cwd or None, contained=True)
        if await worker.session.is_open:
            return await self._wait_for(worker, worker.resume(), wait=wait)
        if done := [each for each in await worker.session.messages if each.role == "assistant"]:
            return done[-1].content  # this call was run before: the program was killed before it stored the result
        return await self._wait_for(worker, worker.send(FIRST_MESSAGE), wait=wait)

    async def nexus_send(self, agent_id: str, message: str, wait: bool = True) -> str:
        """Send a message to one of your workers.

        Args:
            agent_id: The worker.
            message: The message.
            wait: True to wait and return its reply. False to go on at once; its reply arrives as a message.
        """
        worker = self._find(agent_id)
        return await self._wait_for(worker, worker.send(message), wait=wait)

    async def nexus_read(self, agent_id: str, limit: int = 10) -> list[dict[str, str]]:
        """Read the latest messages of one of your workers.

        Args:
            agent_id: The worker.
            limit: Most messages to return.
        """
        messages = await self._find(agent_id).session.messages
        newest = messages[-max(1, limit) :]
        return [{"role": each.role, "text": _outline(each)[:MAX_READ_CHARACTERS]} for each in newest]

    def nexus_list(self) -> list[dict[str, Any]]:
        """List your workers: what they work on, and whether they are running."""
        return [self._pool.describe(each) for each in self._agent().children.values()]

    def nexus_cancel(self, agent_id: str) -> str:
        """Stop what one of your workers is doing. It can be sent messages afterwards.

        Args:
            agent_id: The worker.
        """
        return f"{agent_id} was stopped." if self._find(agent_id).cancel() else f"{agent_id} was not running."

    async def nexus_destroy(self, agent_id: str) -> str:
        """End one of your workers and those that it has created.

        Args:
            agent_id: The worker.
        """
        ended = await self._pool.destroy(self._find(agent_id).id)
        return f"Ended: {', '.join(ended)}."

    def nexus_report(self, message: str) -> str:
        """Send a message to your manager before you are done. Your final reply reaches it anyway.

        Args:
            message: The message.
        """
        self._tell_manager(self._agent(), f"[Message from worker {self._agent().id}]\n{message}")
        return "Your manager reads it before its next step."

    # ---- how ----------------------------------------------------------------------------------------------------

    def _find(self, agent_id: str) -> PooledAgent:
        found = self._agent().children.get(agent_id)
        if found is None:
            raise UnknownNameError("worker", agent_id, self._agent().children)
        return found

    async def _wait_for(self, worker: PooledAgent, turn: AgentTurn, *, wait: bool) -> str:
        if wait:
            try:
                return await turn.answer()
            except asyncio.CancelledError:  # the manager's turn has ended, so nobody waits for the worker
                worker.cancel()
                raise
        task = asyncio.get_running_loop().create_task(self._report_end(worker, turn))
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)
        return f"{worker.id} is working. Its reply will arrive as a message."

    async def _report_end(self, worker: PooledAgent, turn: AgentTurn) -> None:
        try:
            text = f"[Worker {worker.id} has finished]\n{await turn.answer()}"
        except NexusError as error:
            text = f"[Worker {worker.id} has failed]\n{error.what}"
        self._tell_manager(worker, text)

    def _tell_manager(self, worker: PooledAgent, text: str) -> None:
        manager = worker.parent
        if manager is None:
            raise UsageError(f"agent {worker.id!r} has no manager")
        if not manager.is_destroyed:
            manager.send(text, delivery="steer")


def build_manager_tools(pool: AgentPool, agent: Callable[[], PooledAgent], role: str) -> list[FunctionTool]:
    """Return the tools of the pool for an agent with a role; those of other roles have none.

    A worker has `nexus_report` and, for workers of its own, those that do not send messages.
    """
    owner = ManagerTools(pool, agent)
    names = _TOOLS_BY_ROLE.get(role, ())
    return [tool.with_function(getattr(owner, tool.name)) for tool in _get_templates() if tool.name in names]


_MANAGER = ("nexus_create", "nexus_send", "nexus_read", "nexus_list", "nexus_cancel", "nexus_destroy")
_WORKER = ("nexus_report", "nexus_create", "nexus_read", "nexus_list", "nexus_cancel", "nexus_destroy")
_TOOLS_BY_ROLE = {"manager": _MANAGER, "worker": _WORKER}


@cache
def _get_templates() -> tuple[FunctionTool, ...]:
    """Return the tools without an agent. Their schemas are built once."""
    blank: Any = None
    owner = ManagerTools(blank, blank)
    return (
        FunctionTool(owner.nexus_create, scope="spawn", timeout=WORKER_SECONDS),
        FunctionTool(owner.nexus_send, scope="messaging", timeout=WORKER_SECONDS),
        FunctionTool(owner.nexus_read, risk="low", scope="spawn"),
        FunctionTool(owner.nexus_list, risk="low", scope="spawn"),
        FunctionTool(owner.nexus_cancel, scope="spawn"),
        FunctionTool(owner.nexus_destroy, scope="spawn"),
        FunctionTool(owner.nexus_report, risk="low"),
    )


def _outline(message: Any) -> str:  # noqa: ANN401 - a Message
    calls = [f"[calls {each.name}]" for each in message.tool_calls]
    results = [f"[result of {each.name}] {each.text}" for each in message.tool_results]
    return "\n".join(filter(None, [message.content, *calls, *results]))
