"""AsyncSession: the verbs of a Session, awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from nexus_core.session.drivers import run_async
from nexus_core.session.pipeline import reraise

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from nexus_core.session.pipeline import Pipeline
    from nexus_core.session.recorded import RecordedCall, RecordedStep
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.conversation import Usage
    from nexus_core.values.message import Message


class AsyncSession:
    """A conversation by its name, for programs with an event loop; made by `Nexus.async_session`.

    What has to wait for a disk or a server waits in another thread. Arguments and errors are those of `Session`.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    @property
    def label(self) -> str:
        """Its name."""
        return self._pipeline.label

    async def ask(self, message: object, *, interrupt: bool = False, **event: Any) -> AssembledContext:  # noqa: ANN401 - by name
        """Open a turn: the message is kept, then everything is put together that goes to the model."""
        return await run_async(self._pipeline.ask(message, interrupt=interrupt, event=event))

    async def next(self) -> AssembledContext:
        """What goes to the model now, in the turn that is open; the same bytes until something is recorded."""
        return await run_async(self._pipeline.next())

    async def record(self, given: object, *, interrupted: bool = False) -> RecordedStep:
        """Keep what a model answered or a tool brought; the same thing a second time changes nothing."""
        return await run_async(self._pipeline.record(given, interrupted=interrupted))

    async def preview(self, message: object = None, **event: Any) -> AssembledContext:  # noqa: ANN401 - by name
        """What `ask` would return, or `next` where no message is given; nothing is written."""
        return await run_async(self._pipeline.preview(message, event))

    async def interrupt(self) -> RecordedStep | None:
        """End the turn that is open; calls that wait are given up. None where no turn is open."""
        return await run_async(self._pipeline.interrupt())

    async def fork(self, label: str, *, at: str | None = None) -> AsyncSession:
        """A new session that begins where the last closed turn of this one ended, with its model and tools."""
        return AsyncSession(await run_async(self._pipeline.fork(label, at)))

    async def recover(self, error: BaseException) -> NoReturn:
        """What to send after a provider refused a call; for now, the error is raised again."""
        reraise(error)

    @property
    def pending(self) -> Coroutine[Any, Any, tuple[RecordedCall, ...]]:
        """The calls that wait for their result: `await session.pending`."""
        return run_async(self._pipeline.pending())

    @property
    def messages(self) -> Coroutine[Any, Any, tuple[Message, ...]]:
        """What was said, awaited: the latest summary and what it keeps, or all."""
        return run_async(self._pipeline.messages())

    @property
    def usage(self) -> Coroutine[Any, Any, Usage]:
        """What the conversation has cost, from its first turn on, awaited."""
        return run_async(self._pipeline.usage())
