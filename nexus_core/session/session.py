"""Session: a conversation that outlives the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from nexus_core.session.drivers import run
from nexus_core.session.pipeline import reraise

if TYPE_CHECKING:
    from nexus_core.session.pipeline import Pipeline
    from nexus_core.session.recorded import RecordedCall, RecordedStep
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.conversation import Usage
    from nexus_core.values.message import Message


class Session:
    """A conversation by its name; made by `Nexus.session`.

    Every verb is durable when it returns. Several threads may use one Session, and several programs one conversation.

    Args:
        pipeline: What its verbs do.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    @property
    def label(self) -> str:
        """Its name."""
        return self._pipeline.label

    def ask(self, message: object, *, interrupt: bool = False, **event: Any) -> AssembledContext:  # noqa: ANN401 - by name
        """Open a turn: the message is kept, then everything is put together that goes to the model.

        Args:
            message: Text, parts, a `Message`, or a user's message in the shape of any API.
            interrupt: Whether a turn that is still open is given up.
            event: What is known of the occasion: platform, attachments, event_id, source, hook_data.

        Raises:
            TurnError: A turn is open already.
            BudgetError: What must be sent does not fit.
        """
        return run(self._pipeline.ask(message, interrupt=interrupt, event=event))

    def next(self) -> AssembledContext:
        """What goes to the model now, in the turn that is open; the same bytes until something is recorded.

        Raises:
            PendingCalls: Tools were called whose results are not recorded.
            TurnError: No turn is open.
            BudgetError: What must be sent does not fit.
        """
        return run(self._pipeline.next())

    def record(self, given: object, *, interrupted: bool = False) -> RecordedStep:
        """Keep what a model answered or a tool brought; the same thing a second time changes nothing.

        Args:
            given: What an SDK returned (object, dict, or the list of a stream's pieces), `call.result(…)`, a message
                with results in the shape of any API, or an `AgentResult`.
            interrupted: Whether a reply was cut off: it ends the turn, and its calls are not run.

        Raises:
            TurnError: Nothing of the kind is expected, or a call has another result already.
            ConflictError: Somebody else has gone on with the session.
            MessageError: It is in no shape that is known.
        """
        return run(self._pipeline.record(given, interrupted=interrupted))

    def preview(self, message: object = None, **event: Any) -> AssembledContext:  # noqa: ANN401 - by name
        """What `ask` would return, or `next` where no message is given; nothing is written."""
        return run(self._pipeline.preview(message, event))

    def interrupt(self) -> RecordedStep | None:
        """End the turn that is open; calls that wait are given up. None where no turn is open."""
        return run(self._pipeline.interrupt())

    def fork(self, label: str, *, at: str | None = None) -> Session:
        """A new session that begins where a closed turn of this one ended, with its model and tools.

        Args:
            label: The name of the new session.
            at: The turn, or the step that ended it; the last closed turn by default.

        Raises:
            ExistsError: There is a session of that name.
            UsageError: There is no such step in this session.
            TurnError: The turn is still open, or the step does not end one.
        """
        return Session(run(self._pipeline.fork(label, at)))

    def recover(self, error: BaseException) -> NoReturn:
        """What to send after a provider refused a call; for now, the error is raised again."""
        reraise(error)

    @property
    def pending(self) -> tuple[RecordedCall, ...]:
        """The calls that wait for their result."""
        return run(self._pipeline.pending())

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said: the latest summary and what it keeps, or all."""
        return run(self._pipeline.messages())

    @property
    def usage(self) -> Usage:
        """What the conversation has cost, from its first turn on."""
        return run(self._pipeline.usage())
