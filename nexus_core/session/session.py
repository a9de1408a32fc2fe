"""Session: a conversation that outlives the program."""

from __future__ import annotations

from typing import TYPE_CHECKING
from warnings import warn

from nexus_core.errors import OtherDirectoryWarning
from nexus_core.session.drivers import run

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
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


class Session:
    """A conversation by its name; made by `Nexus.session`.

    Every verb is durable when it returns. Several threads may use one Session, and several programs one conversation.

    Args:
        pipeline: What its verbs do.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._is_placed = False

    def _warn_if_moved(self) -> None:
        """Warn once, before anything is written, of a session that was last used in another directory."""
        if self._is_placed:
            return
        self._is_placed = True
        if (moved := run(self._pipeline.find_move())) is not None:
            warn(moved.message, OtherDirectoryWarning, stacklevel=3)

    def __repr__(self) -> str:
        return f"Session({self._pipeline.describe()})"

    @property
    def label(self) -> str:
        """Its name."""
        return self._pipeline.label

    def ask(self, message: object, *, interrupt: bool = False, **event: Unpack[Occasion]) -> AssembledContext:
        """Open a turn: the message is kept, then everything is put together that goes to the model.

        Args:
            message: Text, a `Message`, a user's message or its parts in the shape of any API.
            interrupt: Whether a turn that is still open is given up.
            event: What is known of the occasion: timezone, platform, platform_actions, hook_data, attachments, source,
                event_id, profile.

        Raises:
            TurnError: A turn is open already.
            BudgetError: What must be sent does not fit.

        Warns:
            OtherDirectoryWarning: It was last used in another directory, and `any_directory` was not given.
        """
        self._warn_if_moved()
        return run(self._pipeline.ask(message, interrupt=interrupt, event=event))

    def next(self) -> AssembledContext:
        """What goes to the model now, in the turn that is open; the same bytes until something is recorded.

        Raises:
            PendingCalls: Tools were called whose results are not recorded.
            TurnError: No turn is open.
            BudgetError: What must be sent does not fit.
        """
        self._warn_if_moved()
        return run(self._pipeline.next())

    def record(self, given: object, *, interrupted: bool | None = None) -> RecordedStep:
        """Keep what a model answered or a tool brought; the same thing a second time changes nothing.

        Args:
            given: What an SDK returned (object, dict, or the list of a stream's pieces), the model's message alone,
                `call.result(…)`, a message with results in the shape of any API, or an `AgentResult`.
            interrupted: Whether a reply was cut off: it ends the turn, and its calls are not run. Where it is not said,
                the pieces of a stream that has no end are refused.

        Raises:
            TurnError: Nothing of the kind is expected, or a call has another result already.
            ConflictError: Somebody else has gone on with the session.
            MessageError: It is in no shape that is known, or the end of a stream is missing.
        """
        return run(self._pipeline.record(given, interrupted=interrupted))

    def preview(self, message: object = None, **event: Unpack[Occasion]) -> AssembledContext:
        """What `ask` would return, or `next` where no message is given; nothing is written."""
        self._warn_if_moved()
        return run(self._pipeline.preview(message, event))

    def replay(self, step: str | RecordedStep | Step) -> AssembledContext:
        """What was sent before a reply, byte for byte, from what is kept alone.

        Args:
            step: The reply, as `record` returned it or by the id of its step; or another step of a turn, for what was
                sent then.

        Raises:
            UsageError: There is no such step.
            TurnError: Nothing was sent by Nexus there.
        """
        return run(self._pipeline.replay(step))

    def cache(self, step: str | RecordedStep | Step) -> CacheReport:
        """What became of the provider's cache in the call that a reply answers; what `record` said about it.

        Args:
            step: The reply, as `record` returned it or by the id of its step.

        Raises:
            UsageError: There is no such step.
        """
        return run(self._pipeline.cache(step))

    def spawn(
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
    ) -> Session:
        """A worker: a session of its own with one task, whose answer is recorded as the result of a call.

        It plays the role `worker`, knows nothing of what was said here, and has the model, the renderer, the
        permissions and the caller's tools of this session unless others are given. Its answer is recorded here as soon
        as it has one. For the same call there is one worker: after a restart, spawn again what is pending.

        Args:
            task: What it is to do.
            cwd: Where it works; what is written there for agents counts for it, before what counts here.
            call: The call that its answer is the result of.
            skills: The skills it is told about; all by default.
            label: The name of its session.
            model: Whom it asks.
            tools: What it may ask for, in the shape of any API.
            system_prompt: Its whole system prompt, in place of what is loaded and of the task: put that into it, or
                ask it.

        Raises:
            UnknownNameError: No plugin offers the role `worker`.
            TurnError: Nobody waits for the result of that call.
            ExistsError: Another session has that name.
        """
        from nexus_core.session.spawning import Orders  # noqa: PLC0415 - few sessions have workers

        return Session(run(self._pipeline.spawn(Orders(task, cwd, call, skills, label, model, tools, system_prompt))))

    def report(self) -> RecordedStep | None:
        """Record a worker's answer as the result of the call that it was made for; done by itself when it answers.

        Returns:
            The step in the session that made it; None for a session that is no worker, or is still at work.

        Raises:
            TurnError: Nobody waits for it any more.
        """
        return run(self._pipeline.report())

    def reload(self) -> None:
        """Begin the next call with everything as it is then: files, settings, tools. What was said stays."""
        run(self._pipeline.reload())

    def interrupt(self) -> RecordedStep | None:
        """End the turn that is open; calls that wait are given up. None where no turn is open."""
        return run(self._pipeline.interrupt())

    def fork(self, label: str, *, at: str | RecordedStep | Step | None = None) -> Session:
        """A new session that begins where a closed turn of this one ended, with its model and tools.

        Args:
            label: The name of the new session.
            at: The turn, or the step that ended it, itself or by its id; the last closed turn by default.

        Raises:
            ExistsError: There is a session of that name.
            UsageError: There is no such step in this session.
            TurnError: The turn is still open, or the step does not end one.
        """
        return Session(run(self._pipeline.fork(label, at)))

    def compact(self, focus: str = "", *, dry_run: bool = False) -> CompactionReport | None:
        """Have earlier turns summarised now; nothing is deleted, and `undo` takes it back.

        Args:
            focus: What is to be kept above all.
            dry_run: Whether only to say what would be done; nobody is asked for a summary, and nothing is written.

        Returns:
            What was done; None where there is nothing to summarise.

        Raises:
            SummaryError: Nobody could summarise it; nothing is changed.
            BudgetError: What must stay does not fit, whatever is summarised.
            TurnError: It is archived.
        """
        return run(self._pipeline.compact(focus, dry_run=dry_run))

    def undo(self) -> Reverted:
        """Take the latest compaction back; the one before it counts again, and what was said since stays.

        Raises:
            TurnError: Nothing is compacted.
        """
        return run(self._pipeline.undo())

    def expand(self, compaction: str | RecordedStep | Step) -> tuple[Step, ...]:
        """The steps that a compaction stands for, as they were recorded.

        Args:
            compaction: Its step, itself or by its id.

        Raises:
            UsageError: There is no such compaction.
        """
        return run(self._pipeline.expand(compaction))

    def pin(self, step: str | RecordedStep | Step) -> bool:
        """Have what was said in a step stay as it is when the rest is summarised; forks know of it too.

        Args:
            step: The step, itself or by its id. What belongs to it stays too: calls with their results.

        Returns:
            Whether it was not pinned before.

        Raises:
            UsageError: There is no such step in this session, or nothing is said in it.
            TurnError: A summary stands for it already.
        """
        return run(self._pipeline.pin(step))

    def unpin(self, step: str | RecordedStep | Step) -> bool:
        """Let go of a step that was pinned; whether it was."""
        return run(self._pipeline.pin(step, remove=True))

    def recover(self, error: BaseException) -> AssembledContext:
        """What to send after a provider refused a call: something shorter, if it was too long; once for each call.

        Args:
            error: What the provider's SDK raised.

        Raises:
            error: It says something else, or the call was made shorter once already.
        """
        return run(self._pipeline.recover(error))

    @property
    def is_open(self) -> bool:
        """Whether a turn is open: then `next` goes on with it, else `ask` opens one."""
        return run(self._pipeline.is_open())

    @property
    def pending(self) -> tuple[RecordedCall, ...]:
        """The calls that wait for their result."""
        return run(self._pipeline.pending())

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said, as it is sent: the latest summary and what it keeps, or all."""
        return run(self._pipeline.messages())

    @property
    def said(self) -> tuple[Message, ...]:
        """The same messages, those that were asked in the words in which they were given to `ask`."""
        return run(self._pipeline.messages(as_said=True))

    @property
    def usage(self) -> Usage:
        """What the conversation has cost, from its first turn on."""
        return run(self._pipeline.usage())
