"""State of a session: turns, running totals, costs, and what a recorded step returns.

All of it is read from the newest steps: each carries the totals, the calibration and the learned limits of every model
on to the next. `Session.record` returns a RecordedStep with RecordedCalls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import cached_property
from operator import attrgetter
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nexus_core.deprecation import renamed_attribute
from nexus_core.dialects.calls import INVALID_JSON_ARGUMENT, has_invalid_arguments
from nexus_core.dialects.fields import read_flag
from nexus_core.errors import ConflictError, TurnError, UsageError
from nexus_core.history.groups import is_session_start
from nexus_core.history.truncation import read_truncation_point
from nexus_core.ledger.ledger import count_import_reverted, find_reverted, skip_reverted, walk_back
from nexus_core.types.assembled import CacheReport
from nexus_core.types.base import dataclass
from nexus_core.types.messages import File, Image, Opaque, Text, ToolResult, Usage
from nexus_core.types.payloads import (
    InputPayload,
    LearnedLimit,
    RenderedPayload,
    ReplyPayload,
    ResultPayload,
    SessionPayload,
    StepPayload,
    ToolCallKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.history.truncation import TruncationPoint
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.tokens.prices import Cost, PriceList
    from nexus_core.types.ledger import Ledger, NewStep, SessionRecord, Step
    from nexus_core.types.messages import JSON, Message, ResultPart, ToolCall
    from nexus_core.types.payloads import LearnedLimits

NO_CACHE_REPORT = CacheReport()
_NOT_RENDERED = RenderedPayload()
_PART_TYPES = (Text, Image, File, Opaque)


class CallResult(NamedTuple):
    """A tool result and the call it answers; `RecordedCall.result` makes one."""

    key: ToolCallKey
    result: ToolResult


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call that the model has made.

    Attributes:
        key: The step and the position of the call.
        call: The call as the model wrote it.
    """

    key: ToolCallKey
    call: ToolCall

    @property
    def id(self) -> str:
        """The provider's id of the call. It may be empty or occur twice."""
        return self.call.id

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.call.name

    @property
    def arguments(self) -> JSON:
        """The arguments; `{"INVALID_JSON": "…"}` with the model's text if they are not a JSON object."""
        return {INVALID_JSON_ARGUMENT: self.call.raw} if self.has_invalid_arguments else self.call.arguments

    @property
    def has_invalid_arguments(self) -> bool:
        """True if the arguments are not a JSON object. Do not run such a call, but record an error as its result."""
        return has_invalid_arguments(self.call)

    @property
    def raw(self) -> str | None:
        """The arguments as the model wrote them, if the API returns text."""
        return self.call.raw

    def result(self, content: str | Iterable[ResultPart] = "", *, is_error: bool = False) -> CallResult:
        """Return the result of the call, for `Session.record`.

        Args:
            content: Text, or parts: texts, images, files.
            is_error: Whether the tool failed.
        """
        is_error = read_flag(is_error, "is_error")
        return CallResult(self.key, ToolResult(self.call.id, _read_parts(content, self.name), self.name, is_error))

    is_broken = renamed_attribute("RecordedCall", "is_broken", "has_invalid_arguments")

    def __str__(self) -> str:
        return f"{self.name} ({self.id})" if self.id else self.name


def _read_parts(content: object, tool: str) -> str | tuple[ResultPart, ...]:
    if isinstance(content, str):
        return content
    if isinstance(content, _PART_TYPES):
        return (content,)
    if isinstance(content, Iterable):
        parts = tuple(content)
        if all(isinstance(part, _PART_TYPES) for part in parts):
            return parts
    raise UsageError(
        f"the result of {tool} must be text or parts, not {type(content).__name__}",
        hint="json.dumps(…) makes text of anything",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """A step that `Session.record` has stored.

    Attributes:
        id: The step's id in the ledger.
        turn: The id of its turn.
        text: The text of the reply, without reasoning and tool calls.
        tool_calls: The tool calls that need a result.
        usage: Tokens of the call; None if the API did not report them.
        done: True if the turn ended with this step.
        cache: How much of the call the provider read from its prompt cache.
        duplicate: True if it was recorded before.
    """

    id: str
    turn: str
    text: str = ""
    tool_calls: tuple[RecordedCall, ...] = ()
    usage: Usage | None = None
    done: bool = False
    cache: CacheReport = NO_CACHE_REPORT
    duplicate: bool = False


class Turn:
    """The steps of one turn.

    Args:
        steps: The steps so far, oldest first.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)

    @property
    def is_open(self) -> bool:
        """True if the turn has not ended."""
        return not self.steps[-1].closes

    @property
    def is_rendered(self) -> bool:
        """True if the rendered input is stored."""
        return any(step.kind == "sealed" for step in self.steps)

    @property
    def input_message(self) -> Message | None:
        """The user message before it was rendered; None if the turn has none."""
        first = self.steps[0]
        return first.messages[0] if first.kind == "input" and first.messages else None

    @cached_property
    def rendered(self) -> RenderedPayload:
        """The fields of all rendered steps; each is that of the newest step that has it."""
        found = [step.payload for step in self.steps if isinstance(step.payload, RenderedPayload)]
        rendered = found[0] if found else _NOT_RENDERED
        for later in found[1:]:
            rendered = rendered.merge(later)
        return rendered

    @cached_property
    def replies(self) -> tuple[Step, ...]:
        """The steps with the model's replies."""
        return tuple(step for step in self.steps if step.kind == "reply")

    @cached_property
    def calls(self) -> dict[ToolCallKey, ToolCall]:
        """The tool calls that the caller has to run, in their order."""
        return {
            ToolCallKey(step.id, place): call
            for step in self.replies
            for place, call in enumerate(find_client_calls(step.messages))
        }

    @cached_property
    def answered(self) -> dict[ToolCallKey, AnsweredCall]:
        """The recorded tool results, by their calls."""
        return {
            key: AnsweredCall(step, result)
            for step in self.steps
            if isinstance(step.payload, ResultPayload)
            for key, result in zip(step.payload.answers, list_results(step.messages), strict=False)
        }

    @cached_property
    def pending(self) -> tuple[RecordedCall, ...]:
        """The tool calls without a result; none if the turn has ended."""
        if not self.is_open:
            return ()
        return tuple(RecordedCall(key, call) for key, call in self.calls.items() if key not in self.answered)


def build_recorded_step(step: Step, *, duplicate: bool = False) -> RecordedStep:
    """Return a step as `Session.record` returns it."""
    payload, messages = step.payload, step.messages
    reply = payload if isinstance(payload, ReplyPayload) else None
    calls = find_client_calls(messages) if step.kind == "reply" else ()
    return RecordedStep(
        id=step.id,
        turn=step.turn,
        text="" if reply is None else "\n".join(filter(None, map(_get_reply_text, messages))),
        tool_calls=tuple(RecordedCall(ToolCallKey(step.id, place), call) for place, call in enumerate(calls)),
        usage=None if reply is None else reply.usage,
        done=step.closes,
        duplicate=duplicate,
    )


class AnsweredCall(NamedTuple):
    """A recorded tool result and the step that holds it."""

    step: Step
    result: ToolResult


def find_client_calls(messages: Iterable[Message]) -> list[ToolCall]:
    """Return the tool calls that have no result among the messages.

    A provider answers the calls of its own tools in the same reply.
    """
    messages = tuple(messages)
    answered = [result.call_id for result in list_results(messages)]
    calls = []
    for message in messages:
        for call in message.tool_calls:
            if call.id in answered:
                answered.remove(call.id)
            else:
                calls.append(call)
    return calls


def list_results(messages: Iterable[Message]) -> list[ToolResult]:
    """Return the tool results of messages."""
    return [result for message in messages for result in message.tool_results]


def _get_reply_text(message: Message) -> str:
    return message.content if message.role == "assistant" else ""


_EMPTY_STEP, _NEW_SESSION = StepPayload(), SessionPayload()


class SessionState:
    """State of a session at its newest step.

    Args:
        record: The session; None before its first step.
        tip: Its newest step; None before the first.
        turn: The turn of that step, open or closed.
    """

    def __init__(self, record: SessionRecord | None, tip: Step | None, turn: Turn | None) -> None:
        self.record = record
        self.tip = tip
        self.turn = turn

    @cached_property
    def open_turn(self) -> Turn | None:
        """The open turn; None if the newest turn is closed."""
        return self.turn if self.turn is not None and self.turn.is_open else None

    @cached_property
    def stored_options(self) -> SessionPayload:
        """The options stored with the session."""
        return _NEW_SESSION if self.record is None else self.record.payload

    @cached_property
    def newest(self) -> StepPayload:
        """The fields of the newest step, which describe the session; empty before the first step."""
        return _EMPTY_STEP if self.tip is None else self.tip.payload

    @cached_property
    def cut(self) -> TruncationPoint | None:
        """The truncation point of the last call; None if nothing was left out."""
        return read_truncation_point(self.newest.cut)

    @cached_property
    def event(self) -> dict[str, Any]:
        """Metadata of the event that started the open turn."""
        opening = self.open_turn.steps[0].payload if self.open_turn else None
        return dict(opening.event or {}) if isinstance(opening, InputPayload) else {}


NO_STATE = SessionState(None, None, None)
"""The state of a session that is not known."""


def continue_step(tip: Step | NewStep | None, step: NewStep) -> NewStep:
    """Return a step with the fields that it carries on from the step before, `tip`, and with the running totals."""
    payload = step.payload.follow(
        None if tip is None else tip.payload,
        turns=add_turn(tip, step),
        total_tokens=add_tokens(tip, step),
        total_usage=add_usage(tip, step),
    )
    return step.with_payload(payload)


# ---- learned limits -------------------------------------------------------------------------------------------------


def add_learned_limit(known: LearnedLimits, model: str, limit: int | None, assumed: int) -> LearnedLimits | None:
    """Return the limits after a refused call; None if nothing new was learned.

    Args:
        known: The limits so far.
        model: The name of the model.
        limit: The limit that the provider reported; None if it reported none.
        assumed: The limit by settings and plugins.
    """
    if limit is None or limit >= get_learned_limit(known, model, assumed):
        return None
    return {**known, model: LearnedLimit(limit, assumed)}


def get_learned_limit(known: LearnedLimits, model: str, assumed: int) -> int:
    """Return the limit of a model: the learned one, else the assumed one.

    A learned limit holds as long as the assumed one is the same.

    Args:
        known: The learned limits.
        model: The name of the model.
        assumed: The limit by settings and plugins.
    """
    learned = known.get(model)
    return assumed if learned is None or learned.assumed != assumed else learned.limit


_STEPS_PER_READ = 50
"""Steps per query where only some turns are wanted."""
MARKER_KINDS = ("compaction", "revert", "pin", "forget", "state")
"""Kinds of steps without messages of their own; a turn of one such step is not counted."""
_USAGE_FIELDS = tuple(field.name for field in fields(Usage))
_get_numbers = attrgetter(*_USAGE_FIELDS)


# ---- turns ----------------------------------------------------------------------------------------------------------


def add_turn(tip: Step | NewStep | None, step: NewStep) -> int | None:
    """Return the number of turns up to a step after `tip`; None if it is not stored with `tip`."""
    if tip is None:
        return int(counts_as_turn(step))
    before = tip.payload.turns
    return None if before is None else before + (tip.closes and counts_as_turn(step) and not continues_turn(step))


def count_turns(cache: ThreadCache, tip: Step) -> int:
    """Return the number of turns up to `tip`.

    The newest stored total and the turns since, so that few steps are read.
    """
    if tip.payload.turns is not None:
        return tip.payload.turns  # no other step is read

    def has_total(steps: Sequence[Step]) -> bool:
        return any(step.payload.turns is not None for step in steps)

    turns = 0
    for step in reversed(cache.read_newest(tip.id, has_total)):
        if step.payload.turns is not None:
            return turns + step.payload.turns
        turns += opens_turn(step)
    return turns


def count_ledger_turns(ledger: Ledger) -> int:
    """Return the number of turns of all sessions. Each counts once, and what an import took back does not."""
    turns = 0
    for step in ledger.steps():
        turns += opens_turn(step)
        if count_import_reverted(step):
            # Steps of another branch are part of another session, too.
            turns -= sum(opens_turn(each) for each in find_reverted(ledger, step) if each.branch == step.branch)
    return turns


def opens_turn(step: Step) -> bool:
    """True if a step opens a turn that is counted."""
    return step.id == step.turn and counts_as_turn(step) and not continues_turn(step)


def counts_as_turn(step: Step | NewStep) -> bool:
    """True if a turn that starts with such a step is counted.

    Instructions and the session start get no reply, so they are not.
    """
    return step.kind not in MARKER_KINDS and not is_unanswered_input(step)


def is_unanswered_input(step: Step | NewStep) -> bool:
    """True if a step only has system messages or the session start, which get no reply."""
    is_closed_input = step.kind == "input" and step.closes and bool(step.messages)
    return is_closed_input and all(message.role == "system" or is_session_start(message) for message in step.messages)


def continues_turn(step: Step | NewStep) -> bool:
    """True if a step continues the turn before its own, as the state of a framework always does."""
    if step.kind == "state":
        return True
    return step.kind in ("turn", "reply") and isinstance(step.payload, ReplyPayload) and step.payload.continues


def is_session_start_step(step: Step) -> bool:
    """True if a step only holds the time at which the session started."""
    return step.closes and step.parent is None and any(map(is_session_start, step.messages))


def get_parent_turn(cache: ThreadCache, parent: str | None) -> str | None:
    """Return the turn of a parent step; None for the first turn of a session."""
    before = None if parent is None else cache.get_step(parent)
    return None if before is None or is_session_start_step(before) else before.turn


def read_newest_turns(ledger: Ledger, record: SessionRecord, wanted: int | None) -> list[Turn]:
    """Return the newest turns, oldest first, with compactions, reverts and pins among them.

    A turn that was stored in several pieces is one. Steps that an import reverted are left out.

    Args:
        ledger: The ledger of the session.
        record: The session.
        wanted: The number of turns of the conversation; None for all.
    """
    turns: list[Turn] = []
    counted = 0
    steps: list[Step] = []
    for step in skip_reverted(walk_back(ledger, record.tip, batch_size=_STEPS_PER_READ)):
        if steps and step.turn != steps[-1].turn and not continues_turn(steps[-1]):
            turns.append(Turn(steps[::-1]))
            counted += opens_turn(steps[-1])
            steps = []
            if counted == wanted:
                break
        steps.append(step)
    else:
        turns += [Turn(steps[::-1])] if steps else []
    return turns[::-1]


# ---- tokens ---------------------------------------------------------------------------------------------------------


def add_tokens(tip: Step | NewStep | None, step: NewStep) -> int | None:
    """Return the tokens of a thread up to a step after `tip`; None if they are not stored with `tip`.

    The ledger's own sum, `total`, restarts with each counter; this one covers all of them.
    """
    before = 0 if tip is None else tip.payload.total_tokens
    return None if before is None else before + step.tokens


def count_tokens(cache: ThreadCache, tip: Step) -> int:
    """Return the tokens of a thread up to `tip`.

    The newest stored total and the steps since.
    """

    def has_total(steps: Sequence[Step]) -> bool:
        return any(step.payload.total_tokens is not None for step in steps)

    tokens = 0
    for step in reversed(cache.read_newest(tip.id, has_total)):
        if step.payload.total_tokens is not None:
            return tokens + step.payload.total_tokens
        tokens += step.tokens
    return tokens


# ---- usage ----------------------------------------------------------------------------------------------------------


def add_usage(tip: Step | NewStep | None, step: NewStep) -> Usage | None:
    """Return the usage of a thread up to a step after `tip`; None if it is not stored with `tip`."""
    before = Usage() if tip is None else tip.payload.total_usage
    now = get_step_usage(step)
    return before if before is None or now is None else before + now


def get_step_usage(step: Step | NewStep) -> Usage | None:
    """Return the usage of a step's call; None if it is unknown."""
    return step.payload.usage if isinstance(step.payload, ReplyPayload) else None


def sum_usage(cache: ThreadCache, tip: Step) -> Usage:
    """Return the usage of a thread up to `tip`.

    The newest stored total and the calls since.
    """

    def has_total(steps: Sequence[Step]) -> bool:
        return any(step.payload.total_usage is not None for step in steps)

    usages: list[Usage] = []
    for step in reversed(cache.read_newest(tip.id, has_total)):
        if step.payload.total_usage is not None:
            usages.append(step.payload.total_usage)
            break
        if (usage := get_step_usage(step)) is not None:
            usages.append(usage)
    return add_usages(usages)


def add_usages(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages."""
    return sum(usages, start=Usage())


def subtract_usage(spent: Usage, usage: Usage) -> Usage:
    """Return a total without the usage of one call; no field drops below zero."""
    numbers = (max(total - part, 0) for total, part in zip(_get_numbers(spent), _get_numbers(usage), strict=True))
    return Usage(**dict(zip(_USAGE_FIELDS, numbers, strict=True)))


# ---- costs ----------------------------------------------------------------------------------------------------------


class ThreadCost(NamedTuple):
    """The cost of all calls of a thread.

    Attributes:
        cost: The sum.
        first_call: The oldest step that reports calls; "" for none. Forks have it in common.
    """

    cost: Cost
    first_call: str


def sum_costs(ledger: Ledger, tip: str | None, prices: PriceList) -> ThreadCost:
    """Return the cost of all calls of a thread.

    Reads the whole thread: each reply has its own model, so that no running total of tokens will do.

    Args:
        ledger: The ledger of the thread.
        tip: Its newest step; None for none.
        prices: The prices of models.
    """
    first_call = ""

    def find_calls() -> Iterator[tuple[str, Usage, int]]:
        nonlocal first_call
        for step in skip_reverted(walk_back(ledger, tip)):
            call = _find_paid_call(step)
            if call is not None:
                first_call = step.id  # the oldest step comes last
                yield call

    cost = prices.sum(find_calls())
    return ThreadCost(cost, first_call)


def compute_step_cost(step: Step, prices: PriceList) -> Cost | None:
    """Return the cost of a reply or a whole turn; None for other steps, and if no usage was reported."""
    call = _find_paid_call(step)
    return None if call is None else prices.compute(call[0], call[1], calls=call[2])


def _find_paid_call(step: Step) -> tuple[str, Usage, int] | None:
    """Return model, usage and number of the calls that a step reports; None if it reports none."""
    if step.kind not in ("reply", "turn"):  # most steps of a long thread need not be decoded
        return None
    usage = get_step_usage(step)
    if usage is None or not usage.total_tokens:
        return None
    calls = 1 if step.kind == "reply" else max(sum(message.role == "assistant" for message in step.messages), 1)
    return step.payload.model or "", usage, calls


if TYPE_CHECKING:
    Decide = Callable[[SessionState], NewStep | "DuplicateStep" | None]

MAX_APPEND_ATTEMPTS = 100
"""Each attempt fails only if another writer has appended, so a session never stops growing meanwhile."""


class DuplicateStep(NamedTuple):
    """The step that already holds what the caller records again."""

    step: Step


class AppendableThread(Protocol):
    """Protocol: a session to append to. Methods do blocking I/O."""

    label: str

    def read(self) -> SessionState:
        """Return the current state of the session."""

    def append(self, step: NewStep, state: SessionState) -> Step:
        """Append a step after the newest step of a state.

        Raises:
            ConflictError: Another writer has appended since.
        """

    def append_decided(self, decide: Decide) -> Step | DuplicateStep | None:
        """Append the step that `decide` returns for the current state, again if another writer appends first."""


def build_contention_error(label: str) -> ConflictError:
    """Return the error for an append that lost against other writers every time."""
    return ConflictError(
        f"could not append to session {label!r}: {MAX_APPEND_ATTEMPTS} conflicting writes in a row",
        hint="fewer programs at once, or a fork for each",
    )


def ensure_not_archived(state: SessionState) -> None:
    """Raise a TurnError if the session is archived.

    For callers that open a turn; an open turn of an archived session may be finished.
    """
    if state.record is not None and state.record.status == "archived":
        undo = f"nexus session unarchive {quote(state.record.label)}"
        raise TurnError(
            f"session {state.record.label!r} is archived",
            hint=f"`{undo}` restores it; it can be read and forked as it is",
        )
