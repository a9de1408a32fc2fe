"""AsyncSession: the verbs of a Session, awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from warnings import warn

from nexus_core.errors import OtherDirectoryWarning
from nexus_core.session.drivers import run_async

if TYPE_CHECKING:
    import os
    from collections.abc import Coroutine, Sequence
    from typing import Unpack

    from nexus_core.session.asking.occasion import Occasion
    from nexus_core.session.pipeline import Pipeline
    from nexus_core.session.steps.recorded import RecordedCall, RecordedStep
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.cache import CacheReport
    from nexus_core.values.compaction import CompactionReport, Reverted
    from nexus_core.values.conversation import Usage
    from nexus_core.values.ledger import Step
    from nexus_core.values.message import Message


class AsyncSession:
    """A conversation by its name, for programs with an event loop; made by `Nexus.async_session`.

    What has to wait for a disk or a server waits in another thread. Arguments and errors are those of `Session`.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._is_placed = False

    async def _warn_if_moved(self) -> None:
        """Warn once, before anything is written, of a session that was last used in another directory."""
        if self._is_placed:
            return
        self._is_placed = True
        if (moved := await run_async(self._pipeline.find_move())) is not None:
            warn(moved.message, OtherDirectoryWarning, stacklevel=3)

    def __repr__(self) -> str:
        return f"AsyncSession({self._pipeline.describe()})"

    @property
    def label(self) -> str:
        """Its name."""
        return self._pipeline.label

    async def ask(self, message: object, *, interrupt: bool = False, **event: Unpack[Occasion]) -> AssembledContext:
        """Open a turn: the message is kept, then everything is put together that goes to the model."""
        await self._warn_if_moved()
        return await run_async(self._pipeline.ask(message, interrupt=interrupt, event=event))

    async def next(self) -> AssembledContext:
        """What goes to the model now, in the turn that is open; the same bytes until something is recorded."""
        await self._warn_if_moved()
        return await run_async(self._pipeline.next())

    async def record(self, given: object, *, interrupted: bool | None = None) -> RecordedStep:
        """Keep what a model answered or a tool brought; the same thing a second time changes nothing."""
        return await run_async(self._pipeline.record(given, interrupted=interrupted))

    async def preview(self, message: object = None, **event: Unpack[Occasion]) -> AssembledContext:
        """What `ask` would return, or `next` where no message is given; nothing is written."""
        await self._warn_if_moved()
        return await run_async(self._pipeline.preview(message, event))

    async def replay(self, step: str | RecordedStep | Step) -> AssembledContext:
        """What was sent before a reply, byte for byte, from what is kept alone."""
        return await run_async(self._pipeline.replay(step))

    async def cache(self, step: str | RecordedStep | Step) -> CacheReport:
        """What became of the provider's cache in the call that a reply answers; what `record` said about it."""
        return await run_async(self._pipeline.cache(step))

    async def spawn(
        self,
        task: str,
        *,
        cwd: str | os.PathLike[str] | None = None,
        call: RecordedCall | None = None,
        skills: Sequence[str] | None = None,
        label: str | None = None,
        model: str | None = None,
        tools: Sequence[object] | None = None,
        system_prompt: str | None = None,
    ) -> AsyncSession:
        """A worker: a session of its own with one task, whose answer is recorded as the result of a call."""
        from nexus_core.session.spawning import Orders  # noqa: PLC0415 - few sessions have workers

        orders = Orders(task, cwd, call, skills, label, model, tools, system_prompt)
        return AsyncSession(await run_async(self._pipeline.spawn(orders)))

    async def report(self) -> RecordedStep | None:
        """Record a worker's answer as the result of the call that it was made for; done by itself when it answers."""
        return await run_async(self._pipeline.report())

    async def reload(self) -> None:
        """Begin the next call with everything as it is then: files, settings, tools. What was said stays."""
        await run_async(self._pipeline.reload())

    async def interrupt(self) -> RecordedStep | None:
        """End the turn that is open; calls that wait are given up. None where no turn is open."""
        return await run_async(self._pipeline.interrupt())

    async def fork(self, label: str, *, at: str | RecordedStep | Step | None = None) -> AsyncSession:
        """A new session that begins where the last closed turn of this one ended, with its model and tools."""
        return AsyncSession(await run_async(self._pipeline.fork(label, at)))

    async def compact(self, focus: str = "", *, dry_run: bool = False) -> CompactionReport | None:
        """Have earlier turns summarised now; nothing is deleted, and `undo` takes it back."""
        return await run_async(self._pipeline.compact(focus, dry_run=dry_run))

    async def undo(self) -> Reverted:
        """Take the latest compaction back; the one before it counts again, and what was said since stays."""
        return await run_async(self._pipeline.undo())

    async def expand(self, compaction: str | RecordedStep | Step) -> tuple[Step, ...]:
        """The steps that a compaction stands for, as they were recorded."""
        return await run_async(self._pipeline.expand(compaction))

    async def pin(self, step: str | RecordedStep | Step) -> bool:
        """Have what was said in a step stay as it is when the rest is summarised; forks know of it too."""
        return await run_async(self._pipeline.pin(step))

    async def unpin(self, step: str | RecordedStep | Step) -> bool:
        """Let go of a step that was pinned; whether it was."""
        return await run_async(self._pipeline.pin(step, remove=True))

    async def recover(self, error: BaseException) -> AssembledContext:
        """What to send after a provider refused a call: something shorter, if it was too long; once for each call."""
        return await run_async(self._pipeline.recover(error))

    @property
    def pending(self) -> Coroutine[Any, Any, tuple[RecordedCall, ...]]:
        """The calls that wait for their result: `await session.pending`."""
        return run_async(self._pipeline.pending())

    @property
    def is_open(self) -> Coroutine[Any, Any, bool]:
        """Whether a turn is open: `await session.is_open`."""
        return run_async(self._pipeline.is_open())

    @property
    def messages(self) -> Coroutine[Any, Any, tuple[Message, ...]]:
        """What was said, as it is sent, awaited: the latest summary and what it keeps, or all."""
        return run_async(self._pipeline.messages())

    @property
    def said(self) -> Coroutine[Any, Any, tuple[Message, ...]]:
        """The same messages, those that were asked in the words in which they were given to `ask`, awaited."""
        return run_async(self._pipeline.messages(as_said=True))

    @property
    def usage(self) -> Coroutine[Any, Any, Usage]:
        """What the conversation has cost, from its first turn on, awaited."""
        return run_async(self._pipeline.usage())
