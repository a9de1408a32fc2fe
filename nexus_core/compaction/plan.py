"""Plan a compaction: its limits, and the steps or messages to summarize and to keep."""

from __future__ import annotations

from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.compaction.compose import compute_summary_limit
from nexus_core.compaction.trigger import (
    NoCompaction,
    compute_target_tokens,
    explain_empty_plan,
    explain_small_plan,
    explain_state,
    find_block,
    read_compaction_options,
)
from nexus_core.errors import BudgetError, PluginError, UsageError
from nexus_core.history.groups import MessageLinks, find_group_starts, group_messages, is_session_start
from nexus_core.thread.projection import holds_turn_input, read_thread_parts
from nexus_core.types.base import dataclass
from nexus_core.types.compaction import (
    CompactionBudget,
    CompactionPlan,
    CompactionReport,
    ThreadGroup,
    ThreadMessage,
    ThreadOutline,
    ThreadTurn,
)
from nexus_core.types.payloads import CompactionPayload, StepPayload

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from nexus_core.compaction.compact import CompactionThread
    from nexus_core.compaction.trigger import CompactionOptions
    from nexus_core.history.truncation import HistoryItem
    from nexus_core.host.manager import Host
    from nexus_core.request.build import CallPlan
    from nexus_core.thread.cache import MessageSizer, ThreadCache
    from nexus_core.thread.state import SessionState
    from nexus_core.types.budget import TokenCounter
    from nexus_core.types.compaction import CompactionTrigger
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message

CORE_PLANNER = "nexus"
"""The planner's name if no plugin planned."""
MAX_SUMMARY_SHARE = 0.75
"""The largest share of the summarized tokens that a summary may have, in addition to the previous summary's."""

EXPECTED_SUMMARY_DIVISOR = 6
"""The part of the summarized tokens that a summary usually has, in addition to the previous summary's."""


class CompactionGoal(NamedTuple):
    """Trigger, focus and token limit of one compaction.

    Attributes:
        trigger: The reason.
        focus: What the summary must keep above all.
        limit: Maximum tokens of a call; None for the model's.
        learned: Fields to store with the compaction: calibration and limits that a provider's error revealed.
    """

    trigger: CompactionTrigger
    focus: str = ""
    limit: int | None = None
    learned: StepPayload = StepPayload()


class PlannedCompaction(NamedTuple):
    """A compaction before anything is summarized.

    Attributes:
        task: The reason for it.
        call: The next call without it.
        options: The settings.
        outline: The turns and groups of the session.
        items: Its messages, as they would be sent.
        selection: The groups to summarize and to keep.
        budget: The limits.
        previous: The compaction in effect; None if there is none.
        previous_prose: The text that its summarizer wrote.
        whole_messages: By step, the messages of which the model reads only the two ends, because a tool result is long.
    """

    task: CompactionGoal
    call: CallPlan
    options: CompactionOptions
    outline: ThreadOutline
    items: list[HistoryItem]
    selection: CompactionSelection
    budget: CompactionBudget
    previous: Step | None
    previous_prose: str
    whole_messages: Mapping[str, tuple[Message, ...]] = MappingProxyType({})

    @property
    def tokens_before(self) -> int:
        """Tokens of the next call without the compaction."""
        return self.fixed_tokens + sum(each.tokens for each in self.items)

    @property
    def fixed_tokens(self) -> int:
        """Tokens of system prompt and tools."""
        return sum(self.budget.fixed.values())

    @property
    def summary_limit(self) -> int:
        """Maximum tokens of the summary: no more than fit, and than are worth it."""
        worth = self.outline.summary_tokens + int(self.selection.covered_tokens * MAX_SUMMARY_SHARE)
        return max(min(self.selection.summary_limit, worth), 1)

    @property
    def expected_share(self) -> float:
        """The share of the tokens that the compaction is expected to free."""
        covered = self.selection.covered_tokens
        summary = min(self.summary_limit, self.outline.summary_tokens + covered // EXPECTED_SUMMARY_DIVISOR)
        after = self.fixed_tokens + self.selection.kept_tokens + summary
        return 1 - after / self.tokens_before if self.tokens_before else 0.0

    @property
    def pinned_steps(self) -> tuple[str, ...]:
        """Steps before the kept part that stay."""
        return tuple(dict.fromkeys(step for group in self.selection.pinned for step in group.steps))

    def depends_on_pins(self, steps: Collection[str]) -> bool:
        """True if pinning or unpinning one of these steps makes the plan wrong."""
        groups = (*self.selection.covered, *self.selection.pinned)
        return any(each.step in steps or each.turn in steps for group in groups for each in group.messages)

    def report(self) -> CompactionReport:
        """Return the report of a dry run."""
        covered = self.selection.covered_messages
        return CompactionReport(
            step=None,
            trigger=self.task.trigger,
            turns=len({each.turn for each in covered if each.turn}),
            messages=len(covered),
            first_kept=self.selection.plan.first_kept,
            pinned=self.pinned_steps,
            tokens_before=self.tokens_before,
            tokens_after=self.fixed_tokens + self.selection.kept_tokens + self.summary_limit,
            available=self.budget.available,
            planner=self.selection.planner,
        )


def plan_or_explain(
    thread: CompactionThread, state: SessionState, task: CompactionGoal, call: CallPlan | None = None
) -> PlannedCompaction | NoCompaction:
    """Return the plan of a compaction, or the reason why there is none. Blocks.

    Automatic and manual compaction, recovery and dry runs all ask here, so that they give the same answer.

    Args:
        thread: The session's thread.
        state: Its state.
        task: Why it should be compacted, and for which limit.
        call: The next call of the state; None to plan it.

    Raises:
        PluginError: A plugin's plan would separate what must stay together.
    """
    reason = explain_state(state, task.trigger)
    if reason is not None:
        return reason
    call = thread.plan(state) if call is None else call
    reason = find_block(thread.cache, state, call, task.trigger)
    if reason is not None:
        return reason
    try:
        planned = plan_compaction(thread, state, call, task)
    except BudgetError as error:
        return NoCompaction("must-stay", error.what, error.hint or "unpin steps, or use a larger model", error)
    return explain_empty_plan(call) if planned is None else explain_small_plan(planned) or planned


def plan_compaction(
    thread: CompactionThread, state: SessionState, call: CallPlan, task: CompactionGoal
) -> PlannedCompaction | None:
    """Plan the compaction of a session; None if there is nothing to summarize.

    Raises:
        BudgetError: What must stay does not fit, whatever is summarized.
        PluginError: A plugin's plan would separate what must stay together.
    """
    tip = state.tip
    assert tip is not None  # noqa: S101 - `plan_or_explain` has checked it
    options, sizer = read_compaction_options(call.window.settings), call.window.sizer
    limit = call.window.available_tokens if task.limit is None else task.limit
    previous = None if tip.compaction is None else thread.cache.get_step(tip.compaction)
    outline, items, summary = outline_session(thread.cache, state, sizer, call.input)
    share = compute_summary_limit(options, limit if task.limit is not None else _count_window_tokens(call))
    must_stay = sum(call.prefix_tokens.values()) + (call.input.tokens if call.input else 0)
    budget = CompactionBudget(
        available=limit,
        target=compute_target_tokens(options, task.trigger, limit),
        fixed=call.prefix_tokens,
        summary=min(share, max(limit // 4, limit - must_stay)),  # in a small window, the reserves leave less
        keep_turns=options.keep_turns,
    )
    selection = select_steps(thread.runtime.host, outline, budget, sizer.counter)
    if selection is None:
        return None
    prose = "" if previous is None else _read_prose(previous, summary)
    whole = {item.step: thread.cache.get_step(item.step).messages for item in items if item.is_shortened}
    return PlannedCompaction(task, call, options, outline, items, selection, budget, previous, prose, whole)


def _count_window_tokens(call: CallPlan) -> int:
    """Return the tokens of the model's whole window, by our own count."""
    budget = call.window.budget
    return budget.limit * call.window.available_tokens // max(budget.available, 1)


def _read_prose(compaction: Step, summary: Iterable[HistoryItem]) -> str:
    """Return the text that a summarizer wrote, or the summary of another program."""
    payload = compaction.payload
    prose = payload.prose or payload.summary if isinstance(payload, CompactionPayload) else ""
    return prose or "\n\n".join(each.message.content for each in summary)


# ---- outline ------------------------------------------------------------------------------------------------------


def outline_session(
    cache: ThreadCache, state: SessionState, sizer: MessageSizer, current_input: HistoryItem | None
) -> tuple[ThreadOutline, list[HistoryItem], list[HistoryItem]]:
    """Return the outline of a session, its messages, and those of its summary.

    Args:
        cache: The session's thread.
        state: Its state; it has a step.
        sizer: Counts tokens.
        current_input: The open turn's input as it is sent; None if no turn is open.
    """
    tip, open_turn = state.tip, state.open_turn
    assert tip is not None  # noqa: S101 - `plan_or_explain` has checked it
    compaction = None if tip.compaction is None else cache.get_step(tip.compaction)
    summary, carried, kept = read_thread_parts(cache, tip, sizer)
    turn = open_turn.steps[0].id if open_turn else ""
    kept = [current_input if current_input and each.is_input and each.turn == turn else each for each in kept]
    payload = None if compaction is None else compaction.payload
    # The message that gives the session's start has nothing to summarize.
    listed = [
        each
        for each in kept
        if not is_session_start(each.message) or _is_pinned(cache.get_step(each.step), state.newest.pins)
    ]
    outline = outline_thread(
        [_build_message(each, cache) for each in listed],
        open_turn=turn,
        first_kept=payload.first_kept if isinstance(payload, CompactionPayload) else None,
        carried=[_build_message(each, cache) for each in carried],
        pinned={each.step for each in (*carried, *kept) if _is_pinned(cache.get_step(each.step), state.newest.pins)},
        summary_tokens=sum(each.tokens for each in summary),
    )
    return outline, [*summary, *carried, *kept], summary


def _is_pinned(step: Step, pins: Collection[str]) -> bool:
    return step.id in pins or (holds_turn_input(step) and step.turn in pins)


def _build_message(item: HistoryItem, cache: ThreadCache) -> ThreadMessage:
    """Return a message as it was given, without what was rendered around it."""
    step = cache.get_step(item.step)
    message = item.original or item.message
    if item.original is None and step.kind == "sealed" and item.message.role == "user":
        # A rendered input that an earlier compaction carried is without its turn.
        message = next((each for each in cache.get_step(step.turn).messages if each.role == "user"), message)
    return ThreadMessage(message, item.step, item.turn, step.position, item.tokens, item.is_input)


def outline_thread(
    messages: Iterable[ThreadMessage],
    *,
    open_turn: str = "",
    first_kept: str | None = None,
    carried: Iterable[ThreadMessage] = (),
    pinned: Collection[str] = frozenset(),
    summary_tokens: int = 0,
) -> ThreadOutline:
    """Return the turns and groups of a thread.

    Args:
        messages: The messages as a model reads them, oldest first, without the summary before them.
        open_turn: The id of the open turn; "" if none is open.
        first_kept: The first step that the latest compaction kept; None without one.
        carried: Pinned messages from before that step.
        pinned: Steps whose groups must stay.
        summary_tokens: Tokens of the summary before the messages.
    """
    turns = [
        _build_turn(name, list(each), first_kept, pinned, is_open=name == open_turn)
        for name, each in groupby(messages, key=lambda message: message.turn)
    ]
    return ThreadOutline(tuple(turns), tuple(_group_steps(list(carried), pinned)), summary_tokens)


def _build_turn(
    name: str, messages: Sequence[ThreadMessage], first_kept: str | None, pinned: Collection[str], *, is_open: bool
) -> ThreadTurn:
    begins_inside = first_kept != name and any(each.step == first_kept for each in messages if not each.is_input)
    first = first_kept if begins_inside and first_kept is not None else name
    return ThreadTurn(name, tuple(_group_steps(messages, pinned)), first, is_open)


def _group_steps(messages: Sequence[ThreadMessage], pinned: Collection[str]) -> Iterator[ThreadGroup]:
    """Yield groups of complete steps, because only complete steps can be kept."""
    joined: list[list[ThreadMessage]] = []
    for group in group_messages([each.message for each in messages]):
        found = list(messages[slice(*group)])
        if joined and joined[-1][-1].step == found[0].step:
            joined[-1] += found
        else:
            joined.append(found)
    for found in joined:
        yield ThreadGroup(tuple(found), pinned=any(each.step in pinned for each in found))


# ---- selection ----------------------------------------------------------------------------------------------------


class CompactionSelection(NamedTuple):
    """The groups of a thread to summarize, and those to keep.

    Attributes:
        plan: The first step to keep.
        planner: The plugin that chose it.
        turn: The turn of that step; "" if no step is kept.
        covered: The groups to summarize, oldest first.
        pinned: Groups before the first kept step that stay: pinned ones, and those that the plan names.
        kept: The groups from the first kept step on, and the open turn's input, which comes first.
        summary_limit: Maximum tokens of the summary.
        is_outgrown: True if the present summary does not fit beside what must stay. A shorter one is written, even if
            no group is summarized.
    """

    plan: CompactionPlan
    planner: str
    turn: str
    covered: tuple[ThreadGroup, ...]
    pinned: tuple[ThreadGroup, ...]
    kept: tuple[ThreadGroup, ...]
    summary_limit: int
    is_outgrown: bool = False

    @property
    def covered_tokens(self) -> int:
        """Tokens of the messages to summarize."""
        return _count_tokens(self.covered)

    @property
    def kept_tokens(self) -> int:
        """Tokens of the messages that stay."""
        return _count_tokens(self.kept) + _count_tokens(self.pinned)

    @property
    def covered_messages(self) -> tuple[ThreadMessage, ...]:
        """The messages to summarize."""
        return tuple(each for group in self.covered for each in group.messages)

    @property
    def kept_messages(self) -> tuple[ThreadMessage, ...]:
        """The messages that stay."""
        return tuple(each for group in (*self.pinned, *self.kept) for each in group.messages)


def select_steps(
    host: Host, thread: ThreadOutline, budget: CompactionBudget, counter: TokenCounter
) -> CompactionSelection | None:
    """Return the groups to summarize and to keep; None if there is nothing to summarize.

    Plugins choose the first step to keep (`nexus_compaction_plan`). If none does, and the present summary was written
    for a larger window and does not fit any more, only the summary is shortened.

    Raises:
        BudgetError: What must stay does not fit, whatever is summarized; lists its parts.
        PluginError: A plugin's plan would separate what must stay together.
    """
    require_floor(thread, budget)
    answer = host.compaction_plan(thread, budget, counter)
    if answer is None and is_outgrown(thread, budget) and _fits_with_shortest_summary(thread, budget):
        answer = CompactionPlan(first_kept=thread.turns[0].first if thread.turns else None), CORE_PLANNER
    return None if answer is None else _apply_plan(thread, budget, *answer)


def require_floor(thread: ThreadOutline, budget: CompactionBudget) -> None:
    """Check that what must stay fits.

    Raises:
        BudgetError: It does not; lists the fixed parts, the open turn's input and newest group, pinned groups, and the
            shortest summary.
    """
    parts = _list_floor_parts(thread, budget)
    if thread.summary_tokens or not all(group.pinned for group in _list_removable_groups(thread)):
        parts["summary"] = budget.least_summary
    needed = sum(parts.values())
    if needed > budget.available:
        raise BudgetError(needed, budget.available, {name: tokens for name, tokens in parts.items() if tokens})


def is_outgrown(thread: ThreadOutline, budget: CompactionBudget) -> bool:
    """True if the summary of a thread does not fit beside what must stay."""
    return 0 < thread.summary_tokens > budget.available - sum(_list_floor_parts(thread, budget).values())


def _fits_with_shortest_summary(thread: ThreadOutline, budget: CompactionBudget) -> bool:
    """True if the whole thread fits beside the shortest summary."""
    tokens = sum(budget.fixed.values()) + _count_tokens(_list_groups(thread))
    return tokens + budget.least_summary <= budget.available


def _list_floor_parts(thread: ThreadOutline, budget: CompactionBudget) -> dict[str, int]:
    """Return the tokens of what must stay besides a summary, by name."""
    parts = dict(budget.fixed)
    for name, group in zip(("event", "newest group"), _list_open_ends(thread), strict=False):
        parts[name] = parts.get(name, 0) + group.tokens
    parts["pinned"] = _count_tokens(group for group in _list_removable_groups(thread) if group.pinned)
    return parts


def _list_open_ends(thread: ThreadOutline) -> list[ThreadGroup]:
    """Return the open turn's input and its newest group."""
    turn = _find_open_turn(thread)
    return [] if turn is None else [*turn.groups[:1], *turn.groups[1:][-1:]]


def _list_removable_groups(thread: ThreadOutline) -> list[ThreadGroup]:
    ends = _list_open_ends(thread)
    return [group for group in _list_groups(thread) if all(group is not each for each in ends)]


def _apply_plan(
    thread: ThreadOutline, budget: CompactionBudget, plan: CompactionPlan, planner: str
) -> CompactionSelection:
    """Return the groups that a plan summarizes and keeps."""
    turn_id = _find_first_kept_turn(thread, plan, planner)
    named = _find_named_groups(thread, plan, planner)
    covered = [group for group in thread.carried if not group.pinned and id(group) not in named]
    pinned = [group for group in thread.carried if group.pinned or id(group) in named]
    kept: list[ThreadGroup] = []
    has_begun = False
    for turn, group in _list_turn_groups(thread):
        has_begun = has_begun or (turn.id == turn_id and _begins_at(turn, group, plan.first_kept))
        is_input = turn.is_open and group is turn.groups[0]
        if has_begun or is_input:
            kept.append(group)
        else:
            (pinned if group.pinned or id(group) in named else covered).append(group)
    left = budget.available - sum(budget.fixed.values()) - _count_tokens(kept) - _count_tokens(pinned)
    wanted = budget.summary if plan.summary_tokens is None else min(plan.summary_tokens, budget.summary)
    outgrown = is_outgrown(thread, budget)
    if not covered and not outgrown:
        raise _build_plan_error(planner, "summarizes nothing")
    if left < budget.least_summary:
        raise _build_plan_error(planner, "keeps more than fits")
    limit = max(min(wanted, left), 1)
    return CompactionSelection(plan, planner, turn_id, tuple(covered), tuple(pinned), tuple(kept), limit, outgrown)


def _find_named_groups(thread: ThreadOutline, plan: CompactionPlan, planner: str) -> set[int]:
    """Return the identities of the groups whose steps a plan keeps by name."""
    wanted = set(plan.kept_steps)
    found: set[int] = set()
    for group in _list_groups(thread) if wanted else ():
        steps = wanted.intersection(group.steps)
        if steps and len(steps) < len(group.steps):
            raise _build_plan_error(planner, f"keeps step {min(steps)} without the rest of its group")
        if steps:
            found.add(id(group))
            wanted -= steps
    if wanted:
        raise _build_plan_error(planner, f"keeps step {min(wanted)}, which is not in the thread")
    return found


def _find_first_kept_turn(thread: ThreadOutline, plan: CompactionPlan, planner: str) -> str:
    """Return the id of the turn in which the kept part begins; "" if nothing is kept."""
    if plan.first_kept is None:
        if _find_open_turn(thread) is not None:
            raise _build_plan_error(planner, "keeps nothing of the open turn")
        return ""
    for turn, group in _list_turn_groups(thread):
        if _begins_at(turn, group, plan.first_kept):
            return turn.id
    what = f"begins with step {plan.first_kept}, which begins no turn and no group of the open one"
    raise _build_plan_error(planner, what)


def _begins_at(turn: ThreadTurn, group: ThreadGroup, step: str | None) -> bool:
    if group is turn.groups[0]:
        return step == turn.first
    return turn.is_open and step == group.steps[0]


def _find_open_turn(thread: ThreadOutline) -> ThreadTurn | None:
    return thread.turns[-1] if thread.turns and thread.turns[-1].is_open else None


def _list_turn_groups(thread: ThreadOutline) -> Iterator[tuple[ThreadTurn, ThreadGroup]]:
    return ((turn, group) for turn in thread.turns for group in turn.groups)


def _list_groups(thread: ThreadOutline) -> Iterator[ThreadGroup]:
    yield from thread.carried
    yield from (group for _, group in _list_turn_groups(thread))


def _count_tokens(groups: Iterable[ThreadGroup]) -> int:
    return sum(group.tokens for group in groups)


def _build_plan_error(planner: str, what: str) -> PluginError:
    return PluginError(f"its plan {what}", plugin=planner, hook="nexus_compaction_plan")


DEFAULT_PRESERVE_RATIO = 0.25
"""The share of the budget for recent messages."""


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """A conversation in memory after its beginning was summarized.

    Attributes:
        summary_message: The summary as a user message.
        preserved_messages: The messages that stay.
        original_token_count: Tokens of the conversation before.
        new_token_count: Tokens of the summary and the preserved messages.
    """

    summary_message: Message
    preserved_messages: list[Message]
    original_token_count: int
    new_token_count: int


def select_messages_for_compaction(
    messages: Sequence[Message],
    token_counter: TokenCounter,
    available_budget: int,
    recent_preserve_ratio: float = DEFAULT_PRESERVE_RATIO,
) -> tuple[list[Message], list[Message]]:
    """Return the messages to summarize, and the newest ones to preserve.

    As many are preserved as fit into a share of the budget. Tool calls and their results stay together. The newest
    group is always preserved, because a message without a reply or a call without its result cannot be continued from a
    summary.

    Args:
        messages: The conversation, oldest first.
        token_counter: Counts tokens.
        available_budget: Tokens available for messages.
        recent_preserve_ratio: The share of them for preserved messages.

    Raises:
        UsageError: The ratio is not between 0 and 1.
    """
    if not 0 <= recent_preserve_ratio <= 1:
        raise UsageError(
            f"recent_preserve_ratio must be between 0 and 1, not {recent_preserve_ratio}", hint="0.25 is usual"
        )
    available = int(max(available_budget, 0) * recent_preserve_ratio)
    first = len(messages)
    for start in find_group_starts(lambda index: MessageLinks(messages[index]), len(messages)):
        available -= token_counter.count_messages(list(messages[start:first]))
        if available < 0 and first < len(messages):
            break
        first = start
    return list(messages[:first]), list(messages[first:])
