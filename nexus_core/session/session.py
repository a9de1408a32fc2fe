"""Session: a durable conversation with a model, for synchronous programs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from warnings import warn

from nexus_core.deprecation import renamed_argument, renamed_attribute
from nexus_core.errors import OtherDirectoryWarning
from nexus_core.runner import run
from nexus_core.session.workers import SpawnArguments

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence
    from typing import Unpack

    from nexus_core.compaction.compact import CompactionPreview
    from nexus_core.request.input import EventFields
    from nexus_core.session.engine import Engine
    from nexus_core.thread.state import RecordedCall, RecordedStep
    from nexus_core.types.assembled import AssembledContext, CacheReport
    from nexus_core.types.compaction import CompactionReport, RevertedCompaction
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message, Usage


class Session:
    """A durable conversation with a model; `Nexus.session` opens one.

    What a method has recorded survives a crash after it returns. Threads may share a Session, and several processes may
    write to the same conversation.

    Args:
        engine: The operations of the session.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_placed = False

    def _warn_if_moved(self) -> None:
        """Warn once, before the first write, if the session was last used in another directory."""
        if self._is_placed:
            return
        self._is_placed = True
        if (moved := run(self._engine.find_move())) is not None:
            warn(moved.message, OtherDirectoryWarning, stacklevel=3)

    def __repr__(self) -> str:
        return f"Session({self._engine.describe()})"

    @property
    def name(self) -> str:
        """The session's name, unique in its ledger."""
        return self._engine.label

    def ask(self, message: object, *, interrupt: bool = False, **event: Unpack[EventFields]) -> AssembledContext:
        """Start a turn: store the message and return the assembled call.

        Args:
            message: Text, a `Message`, or a user message or its parts in any API's format.
            interrupt: Whether to end a turn that is still open, without its pending tool calls.
            event: Metadata of the message: timezone, platform, platform_actions, hook_data, attachments, source,
                event_id, profile.

        Raises:
            TurnError: A turn is open.
            BudgetError: What must be sent exceeds the budget.

        Warns:
            OtherDirectoryWarning: It was last used in another directory, and `any_directory` was not given.
        """
        self._warn_if_moved()
        return run(self._engine.ask(message, interrupt=interrupt, event=event))

    def next(self) -> AssembledContext:
        """Return the next call of the open turn. It stays the same, byte for byte, until something is recorded.

        Raises:
            PendingToolCallsError: Tool calls have no recorded results yet.
            TurnError: No turn is open.
            BudgetError: What must be sent exceeds the budget.
        """
        self._warn_if_moved()
        return run(self._engine.next())

    @renamed_argument("given", "reply_or_result")
    def record(self, reply_or_result: object, *, interrupted: bool | None = None) -> RecordedStep:
        """Store a model's reply or a tool result. Recording the same one again changes nothing.

        Args:
            reply_or_result: What an SDK returned (an object, a dict, or the list of a stream's chunks), an assistant
                message, `call.result(…)`, a message with tool results in any API's format, or an `AgentResult`.
            interrupted: Whether the reply is partial: it ends the turn, and its tool calls are not run. If None, a
                stream without an end event is refused.

        Raises:
            TurnError: The turn expects neither, or the call has a different result already.
            ConflictError: Another writer has continued the session.
            MessageError: The format is unknown, or a stream has no end event.
        """
        return run(self._engine.record(reply_or_result, interrupted=interrupted))

    def preview(self, message: object = None, **event: Unpack[EventFields]) -> AssembledContext:
        """Return what `ask` would return, or `next` if there is no message, without storing anything."""
        self._warn_if_moved()
        return run(self._engine.preview(message, event))

    def replay(self, step: str | RecordedStep | Step) -> AssembledContext:
        """Rebuild the call that a reply answered, byte for byte, from the ledger alone.

        Args:
            step: The reply's step, as `record` returned it, or its id; or another step of a turn, for the call that
                followed it.

        Raises:
            UsageError: There is no such step.
            TurnError: No call was assembled at that step, as in an imported session.
        """
        return run(self._engine.replay(step))

    def cache_report(self, step: str | RecordedStep | Step) -> CacheReport:
        """Return how much of a call the provider read from its prompt cache, and why it was not more.

        Args:
            step: The reply's step, as `record` returned it, or its id.

        Raises:
            UsageError: There is no such step.
        """
        return run(self._engine.cache(step))

    @renamed_argument("label", "name")
    def spawn(
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
    ) -> Session:
        """Open a worker (a subagent): a session with one task, whose final reply becomes the result of a tool call.

        It has the role `worker` and none of this conversation, and inherits this session's model, renderer,
        permissions and tools. A tool call has one worker: after a restart, spawning for the same call returns it.

        Args:
            task: The worker's task, part of its system prompt.
            cwd: Its working directory, whose instructions come before those of this session's directory.
            call: The tool call that its final reply answers.
            skills: The skills that its prompt lists; all by default.
            name: The name of its session.
            model: Its model.
            tools: Its tools, in any API's format.
            system_prompt: Its whole system prompt, in place of loaded instructions and the task.

        Raises:
            UnknownNameError: No plugin provides the role `worker`.
            TurnError: That tool call is not pending.
            SessionExistsError: Another session has that name.
        """
        return Session(
            run(self._engine.spawn(SpawnArguments(task, cwd, call, skills, name, model, tools, system_prompt)))
        )

    def report_result(self) -> RecordedStep | None:
        """Record a worker's final reply as the result of its tool call. `record` does so when the worker finishes.

        Returns:
            The step in the parent session; None if this is not a worker, or it has not finished.

        Raises:
            TurnError: The tool call is no longer pending.
        """
        return run(self._engine.report())

    def reload(self) -> None:
        """Load files, settings and tools again for the next call. The conversation stays."""
        run(self._engine.reload())

    def interrupt(self) -> RecordedStep | None:
        """End the open turn without its pending tool calls. Return None if no turn is open."""
        return run(self._engine.interrupt())

    @renamed_argument("label", "name")
    def fork(self, name: str, *, at: str | RecordedStep | Step | None = None) -> Session:
        """Open a new session that branches off after a closed turn, with the same model and tools.

        Args:
            name: The name of the new session.
            at: The turn, or the step that ended it, or its id; the last closed turn by default.

        Raises:
            SessionExistsError: A session of that name exists.
            UsageError: There is no such step in this session.
            TurnError: The turn is still open, or the step does not end one.
        """
        return Session(run(self._engine.fork(name, at)))

    def compact(self, focus: str = "", *, dry_run: bool = False) -> CompactionReport | None:
        """Replace earlier turns by a summary in all further calls. The ledger keeps them, and `undo` reverts it.

        Args:
            focus: What the summary must keep above all.
            dry_run: Whether to return the plan only, without calling a summarizer or storing anything.

        Returns:
            A report; None if there is nothing to summarize.

        Raises:
            SummaryError: Every summarizer failed. Nothing has changed.
            BudgetError: What must stay exceeds the budget, whatever is summarized.
            TurnError: The session is archived.
        """
        return run(self._engine.compact(focus, dry_run=dry_run))

    def preview_compaction(self, focus: str = "") -> CompactionPreview:
        """Return what `compact` would do, or why it would do nothing, and whether the next call compacts by itself.

        Args:
            focus: What the summary must keep above all.

        Raises:
            BudgetError: What must stay exceeds the budget, whatever is summarized.
            TurnError: The session is archived.
        """
        return run(self._engine.preview_compaction(focus))

    def undo(self) -> RevertedCompaction:
        """Revert the latest compaction. The one before it applies again, and later turns stay.

        Raises:
            TurnError: No compaction is in effect.
        """
        return run(self._engine.undo())

    def expand(self, compaction: str | RecordedStep | Step) -> tuple[Step, ...]:
        """Return the original steps that a compaction replaced.

        Args:
            compaction: The compaction's step, or its id.

        Raises:
            UsageError: There is no such compaction.
        """
        return run(self._engine.expand(compaction))

    def pin(self, step: str | RecordedStep | Step) -> bool:
        """Keep a step's messages verbatim in every later compaction, in forks too.

        Args:
            step: The step, or its id. Its tool calls and their results stay together.

        Returns:
            False if it was pinned already.

        Raises:
            UsageError: There is no such step in this session, or it has no message.
            TurnError: A compaction has replaced it already.
        """
        return run(self._engine.pin(step))

    def unpin(self, step: str | RecordedStep | Step) -> bool:
        """Remove a pin. Return False if the step was not pinned."""
        return run(self._engine.pin(step, remove=True))

    def forget_memories(self, ids: Iterable[str], *, steps: Iterable[str] = ()) -> bool:
        """Leave memories out of all later calls. The steps that recorded them stay as they are.

        Args:
            ids: The ids of the memories, as `nexus memory list` prints them.
            steps: The ids of steps of this session that no search finds any more. They stay in the ledger. Every
                session that shares them records it.

        Returns:
            False if no later call would have had one of them, and no step is named.

        Raises:
            UsageError: The session has no such step.
        """
        return run(self._engine.forget_memories(ids, steps=steps))

    def recover(self, error: BaseException) -> AssembledContext:
        """Return a shorter call after a provider refused one as too long, once per call.

        Args:
            error: The exception of the provider's SDK.

        Raises:
            error: The exception has another cause, or the call was shortened before.
        """
        return run(self._engine.recover(error))

    @property
    def is_open(self) -> bool:
        """True if a turn is open: continue it with `next`. Otherwise start one with `ask`."""
        return run(self._engine.is_open())

    @property
    def pending_calls(self) -> tuple[RecordedCall, ...]:
        """The tool calls without a recorded result."""
        return run(self._engine.pending())

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as it is sent: the latest summary and the messages after it, or all messages."""
        return run(self._engine.messages())

    @property
    def original_messages(self) -> tuple[Message, ...]:
        """Like `messages`, but user messages as passed to `ask`, before rendering."""
        return run(self._engine.messages(original=True))

    @property
    def usage(self) -> Usage:
        """Tokens used by the conversation since its first turn."""
        return run(self._engine.usage())

    label = renamed_attribute("Session", "label", "name")
    cache = renamed_attribute("Session", "cache", "cache_report")
    pending = renamed_attribute("Session", "pending", "pending_calls")
    report = renamed_attribute("Session", "report", "report_result")
    said = renamed_attribute("Session", "said", "original_messages")
