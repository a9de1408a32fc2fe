"""AsyncSession: a durable conversation with a model, for asynchronous programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from warnings import warn

from nexus_core.deprecation import renamed_argument, renamed_attribute
from nexus_core.errors import OtherDirectoryWarning
from nexus_core.runner import run_async
from nexus_core.session.workers import SpawnArguments

if TYPE_CHECKING:
    import os
    from collections.abc import Coroutine, Iterable, Sequence
    from typing import Unpack

    from nexus_core.compaction.compact import CompactionPreview
    from nexus_core.request.input import EventFields
    from nexus_core.session.engine import Engine
    from nexus_core.thread.state import RecordedCall, RecordedStep
    from nexus_core.types.assembled import AssembledContext, CacheReport
    from nexus_core.types.compaction import CompactionReport, RevertedCompaction
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message, Usage


class AsyncSession:
    """A durable conversation with a model; `Nexus.async_session` opens one.

    Its methods have the arguments and errors of `Session`. Blocking I/O runs in another thread.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_placed = False

    async def _warn_if_moved(self) -> None:
        """Warn once, before the first write, if the session was last used in another directory."""
        if self._is_placed:
            return
        self._is_placed = True
        if (moved := await run_async(self._engine.find_move())) is not None:
            warn(moved.message, OtherDirectoryWarning, stacklevel=3)

    def __repr__(self) -> str:
        return f"AsyncSession({self._engine.describe()})"

    @property
    def name(self) -> str:
        """The session's name, unique in its ledger."""
        return self._engine.label

    async def ask(self, message: object, *, interrupt: bool = False, **event: Unpack[EventFields]) -> AssembledContext:
        """Start a turn: store the message and return the assembled call."""
        await self._warn_if_moved()
        return await run_async(self._engine.ask(message, interrupt=interrupt, event=event))

    async def next(self) -> AssembledContext:
        """Return the next call of the open turn. It stays the same, byte for byte, until something is recorded."""
        await self._warn_if_moved()
        return await run_async(self._engine.next())

    @renamed_argument("given", "reply_or_result")
    async def record(self, reply_or_result: object, *, interrupted: bool | None = None) -> RecordedStep:
        """Store a model's reply or a tool result. Recording the same one again changes nothing."""
        return await run_async(self._engine.record(reply_or_result, interrupted=interrupted))

    async def preview(self, message: object = None, **event: Unpack[EventFields]) -> AssembledContext:
        """Return what `ask` would return, or `next` if there is no message, without storing anything."""
        await self._warn_if_moved()
        return await run_async(self._engine.preview(message, event))

    async def replay(self, step: str | RecordedStep | Step) -> AssembledContext:
        """Rebuild the call that a reply answered, byte for byte, from the ledger alone."""
        return await run_async(self._engine.replay(step))

    async def cache_report(self, step: str | RecordedStep | Step) -> CacheReport:
        """Return how much of a call the provider read from its prompt cache, and why it was not more."""
        return await run_async(self._engine.cache(step))

    @renamed_argument("label", "name")
    async def spawn(
        self,
        task: str,
        *,
        cwd: str | os.PathLike[str] | None = None,
        call: RecordedCall | None = None,
        skills: Sequence[str] | None = None,
        name: str | None = None,
        model: str | None = None,
        tools: Sequence[object] | None = None,
        system_prompt: str | None = None,
    ) -> AsyncSession:
        """Open a worker (a subagent): a session with one task, whose final reply becomes the result of a tool call."""
        orders = SpawnArguments(task, cwd, call, skills, name, model, tools, system_prompt)
        return AsyncSession(await run_async(self._engine.spawn(orders)))

    async def report_result(self) -> RecordedStep | None:
        """Record a worker's final reply as the result of its tool call. `record` does so when the worker finishes."""
        return await run_async(self._engine.report())

    async def reload(self) -> None:
        """Load files, settings and tools again for the next call. The conversation stays."""
        await run_async(self._engine.reload())

    async def interrupt(self) -> RecordedStep | None:
        """End the open turn without its pending tool calls. Return None if no turn is open."""
        return await run_async(self._engine.interrupt())

    @renamed_argument("label", "name")
    async def fork(self, name: str, *, at: str | RecordedStep | Step | None = None) -> AsyncSession:
        """Open a new session that branches off after a closed turn, with the same model and tools."""
        return AsyncSession(await run_async(self._engine.fork(name, at)))

    async def compact(self, focus: str = "", *, dry_run: bool = False) -> CompactionReport | None:
        """Replace earlier turns by a summary in all further calls. The ledger keeps them, and `undo` reverts it."""
        return await run_async(self._engine.compact(focus, dry_run=dry_run))

    async def preview_compaction(self, focus: str = "") -> CompactionPreview:
        """Return what `compact` would do, or why it would do nothing, and whether the next call compacts by itself."""
        return await run_async(self._engine.preview_compaction(focus))

    async def undo(self) -> RevertedCompaction:
        """Revert the latest compaction. The one before it applies again, and later turns stay."""
        return await run_async(self._engine.undo())

    async def expand(self, compaction: str | RecordedStep | Step) -> tuple[Step, ...]:
        """Return the original steps that a compaction replaced."""
        return await run_async(self._engine.expand(compaction))

    async def pin(self, step: str | RecordedStep | Step) -> bool:
        """Keep a step's messages verbatim in every later compaction, in forks too."""
        return await run_async(self._engine.pin(step))

    async def unpin(self, step: str | RecordedStep | Step) -> bool:
        """Remove a pin. Return False if the step was not pinned."""
        return await run_async(self._engine.pin(step, remove=True))

    async def forget_memories(self, ids: Iterable[str], *, steps: Iterable[str] = ()) -> bool:
        """Leave memories out of all later calls, and steps out of all searches. Return False if nothing changes."""
        return await run_async(self._engine.forget_memories(ids, steps=steps))

    async def recover(self, error: BaseException) -> AssembledContext:
        """Return a shorter call after a provider refused one as too long, once per call."""
        return await run_async(self._engine.recover(error))

    @property
    def pending_calls(self) -> Coroutine[Any, Any, tuple[RecordedCall, ...]]:
        """The tool calls without a recorded result: `await session.pending_calls`."""
        return run_async(self._engine.pending())

    @property
    def is_open(self) -> Coroutine[Any, Any, bool]:
        """True if a turn is open: `await session.is_open`."""
        return run_async(self._engine.is_open())

    @property
    def messages(self) -> Coroutine[Any, Any, tuple[Message, ...]]:
        """The conversation as it is sent: `await session.messages`."""
        return run_async(self._engine.messages())

    @property
    def original_messages(self) -> Coroutine[Any, Any, tuple[Message, ...]]:
        """Like `messages`, but user messages as passed to `ask`: `await session.original_messages`."""
        return run_async(self._engine.messages(original=True))

    @property
    def usage(self) -> Coroutine[Any, Any, Usage]:
        """Tokens used by the conversation since its first turn: `await session.usage`."""
        return run_async(self._engine.usage())

    label = renamed_attribute("AsyncSession", "label", "name")
    cache = renamed_attribute("AsyncSession", "cache", "cache_report")
    pending = renamed_attribute("AsyncSession", "pending", "pending_calls")
    report = renamed_attribute("AsyncSession", "report", "report_result")
    said = renamed_attribute("AsyncSession", "said", "original_messages")
