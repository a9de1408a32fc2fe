"""A thread in turns and groups, as it is looked at when a part of it has to go."""

from __future__ import annotations

from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.compaction.compose import Evidence, compute_summary_limit, read_evidence
from nexus_core.compaction.facts import extract_facts
from nexus_core.compaction.options import read_compaction_options
from nexus_core.compaction.trigger import compute_target_tokens, read_savings
from nexus_core.errors import BudgetError, PluginError
from nexus_core.history.groups import group_messages, is_session_start
from nexus_core.thread.projection import holds_turn_input, read_summary_trust, read_thread_parts
from nexus_core.types.compaction import (
    CompactionBudget,
    CompactionPlan,
    CompactionReport,
    ThreadGroup,
    ThreadMessage,
    ThreadOutline,
    ThreadTurn,
)
from nexus_core.types.messages import Message

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from nexus_core.compaction.compact import CompactionThread
    from nexus_core.compaction.options import CompactionOptions
    from nexus_core.history.items import HistoryItem
    from nexus_core.host.manager import Host
    from nexus_core.request.build import CallPlan
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.thread.sizes import MessageSizer
    from nexus_core.thread.state import SessionState
    from nexus_core.types.budget import TokenCounter
    from nexus_core.types.compaction import CompactionTrigger
    from nexus_core.types.ledger import Step
    from nexus_core.types.prompt import TrustLevel


def outline_thread(
    messages: Iterable[ThreadMessage],
    *,
    open_turn: str = "",
    first_kept: str | None = None,
    carried: Iterable[ThreadMessage] = (),
    pinned: Collection[str] = frozenset(),
    summary_tokens: int = 0,
) -> ThreadOutline:
    """The turns of a thread.

    Args:
        messages: As a model reads them, oldest first, without the summary at their beginning.
        open_turn: The turn that goes on, "" for none.
        first_kept: Where what the latest compaction kept begins; None without one.
        carried: Pinned messages from before that place.
        pinned: Steps whose messages must stay; what lives or dies with them stays too.
        summary_tokens: What the summary takes that stands before all of them.
    """
    turns = [
        _turn(name, list(each), first_kept, pinned, is_open=name == open_turn)
        for name, each in groupby(messages, key=lambda message: message.turn)
    ]
    return ThreadOutline(tuple(turns), tuple(_groups(list(carried), pinned)), summary_tokens)


def _turn(
    name: str, messages: Sequence[ThreadMessage], first_kept: str | None, pinned: Collection[str], *, is_open: bool
) -> ThreadTurn:
    begins_inside = first_kept != name and any(each.step == first_kept for each in messages if not each.is_input)
    first = first_kept if begins_inside and first_kept is not None else name
    return ThreadTurn(name, tuple(_groups(messages, pinned)), first, is_open)


def _groups(messages: Sequence[ThreadMessage], pinned: Collection[str]) -> Iterator[ThreadGroup]:
    """Groups of whole steps: what one step says belongs together, since only whole steps can be kept."""
    joined: list[list[ThreadMessage]] = []
    for group in group_messages([each.message for each in messages]):
        found = list(messages[group.first : group.last + 1])
        if joined and joined[-1][-1].step == found[0].step:
            joined[-1] += found
        else:
            joined.append(found)
    for found in joined:
        yield ThreadGroup(tuple(found), pinned=any(each.step in pinned for each in found))


CORE_PLANNER = "nexus"
"""Who plans where no plugin does."""


class CompactionSelection(NamedTuple):
    """What becomes of a thread.

    Attributes:
        plan: Where the part begins that stays.
        planner: The plugin that said so.
        turn: The turn in which that part begins, "" where nothing stays.
        covered: The groups that are summarised, oldest first.
        pinned: The groups before that part that stay all the same.
        kept: The groups from there on; what the open turn is about comes first, wherever it stands.
        room: How many tokens the summary may take.
        is_outgrown: Whether the summary there is does not fit beside what must stay; then a shorter one is written,
            whatever else is summarised with it.
    """

    plan: CompactionPlan
    planner: str
    turn: str
    covered: tuple[ThreadGroup, ...]
    pinned: tuple[ThreadGroup, ...]
    kept: tuple[ThreadGroup, ...]
    room: int
    is_outgrown: bool = False

    @property
    def covered_tokens(self) -> int:
        """What is summarised takes."""
        return _tokens(self.covered)

    @property
    def kept_tokens(self) -> int:
        """What stays takes."""
        return _tokens(self.kept) + _tokens(self.pinned)

    @property
    def covered_messages(self) -> tuple[ThreadMessage, ...]:
        """What is summarised."""
        return tuple(each for group in self.covered for each in group.messages)

    @property
    def kept_messages(self) -> tuple[ThreadMessage, ...]:
        """What stays."""
        return tuple(each for group in (*self.pinned, *self.kept) for each in group.messages)


def select_steps(
    host: Host, thread: ThreadOutline, budget: CompactionBudget, counter: TokenCounter
) -> CompactionSelection | None:
    """What becomes of a thread; None where there is nothing to summarise.

    Plugins say where the part begins that stays (`nexus_compaction_plan`). Where none does, and the summary there is
    does not fit any more because it was written for a larger window, that alone is made shorter.

    Raises:
        BudgetError: What must stay does not fit, whatever is summarised; it lists what that is.
        PluginError: A plugin's plan would tear apart what belongs together.
    """
    require_floor(thread, budget)
    answer = host.compaction_plan(thread, budget, counter)
    if answer is None and is_outgrown(thread, budget) and _fits_whole(thread, budget):
        answer = CompactionPlan(first_kept=thread.turns[0].first if thread.turns else None), CORE_PLANNER
    return None if answer is None else _selected(thread, budget, *answer)


def is_outgrown(thread: ThreadOutline, budget: CompactionBudget) -> bool:
    """Whether the summary of a thread does not fit beside what must stay."""
    return 0 < thread.summary_tokens > budget.available - sum(_floor(thread, budget).values())


def _fits_whole(thread: ThreadOutline, budget: CompactionBudget) -> bool:
    """Whether all of a thread fits beside a summary that is as short as may be."""
    return sum(budget.fixed.values()) + _tokens(_all_groups(thread)) + budget.least_summary <= budget.available


def require_floor(thread: ThreadOutline, budget: CompactionBudget) -> None:
    """Refuse to summarise where what must stay does not fit.

    Raises:
        BudgetError: It lists what must stay: the fixed parts, what the open turn is about and its newest group, what is
            pinned, and the shortest summary.
    """
    parts = _floor(thread, budget)
    if thread.summary_tokens or not all(group.pinned for group in _others(thread)):
        parts["summary"] = budget.least_summary
    needed = sum(parts.values())
    if needed > budget.available:
        raise BudgetError(needed, budget.available, {name: tokens for name, tokens in parts.items() if tokens})


def _floor(thread: ThreadOutline, budget: CompactionBudget) -> dict[str, int]:
    """What must stay besides a summary, tokens by name."""
    parts = dict(budget.fixed)
    for name, group in zip(("event", "newest group"), _ends(thread), strict=False):
        parts[name] = parts.get(name, 0) + group.tokens
    parts["pinned"] = _tokens(group for group in _others(thread) if group.pinned)
    return parts


def _ends(thread: ThreadOutline) -> list[ThreadGroup]:
    """What the open turn is about, and its newest group."""
    ending = _open_turn(thread)
    return [] if ending is None else [*ending.groups[:1], *ending.groups[1:][-1:]]


def _others(thread: ThreadOutline) -> list[ThreadGroup]:
    ends = _ends(thread)
    return [group for group in _all_groups(thread) if all(group is not each for each in ends)]


def _selected(
    thread: ThreadOutline, budget: CompactionBudget, plan: CompactionPlan, planner: str
) -> CompactionSelection:
    """What a plan means, group by group."""
    turn = _turn_of(thread, plan, planner)
    covered = [group for group in thread.carried if not group.pinned]
    pinned = [group for group in thread.carried if group.pinned]
    kept: list[ThreadGroup] = []
    has_begun = False
    for each, group in _groups_of_turns(thread):
        has_begun = has_begun or (each.id == turn and _begins(each, group, plan.first_kept))
        is_event = each.is_open and group is each.groups[0]
        if has_begun or is_event:
            kept.append(group)
        else:
            (pinned if group.pinned else covered).append(group)
    left = budget.available - sum(budget.fixed.values()) - _tokens(kept) - _tokens(pinned)
    wanted = budget.summary if plan.summary_tokens is None else min(plan.summary_tokens, budget.summary)
    outgrown = is_outgrown(thread, budget)
    if not covered and not outgrown:
        raise _broken(planner, "summarises nothing")
    if left < budget.least_summary:
        raise _broken(planner, "keeps more than fits")
    room = max(min(wanted, left), 1)
    return CompactionSelection(plan, planner, turn, tuple(covered), tuple(pinned), tuple(kept), room, outgrown)


def _turn_of(thread: ThreadOutline, plan: CompactionPlan, planner: str) -> str:
    """The turn in which what stays begins."""
    if plan.first_kept is None:
        if _open_turn(thread) is not None:
            raise _broken(planner, "keeps nothing of the open turn")
        return ""
    for turn, group in _groups_of_turns(thread):
        if _begins(turn, group, plan.first_kept):
            return turn.id
    raise _broken(planner, f"begins with step {plan.first_kept}, which begins no turn and no group of the open one")


def _begins(turn: ThreadTurn, group: ThreadGroup, step: str | None) -> bool:
    if group is turn.groups[0]:
        return step == turn.first
    return turn.is_open and step == group.steps[0]


def _open_turn(thread: ThreadOutline) -> ThreadTurn | None:
    return thread.turns[-1] if thread.turns and thread.turns[-1].is_open else None


def _groups_of_turns(thread: ThreadOutline) -> Iterator[tuple[ThreadTurn, ThreadGroup]]:
    return ((turn, group) for turn in thread.turns for group in turn.groups)


def _all_groups(thread: ThreadOutline) -> Iterator[ThreadGroup]:
    yield from thread.carried
    yield from (group for _, group in _groups_of_turns(thread))


def _tokens(groups: Iterable[ThreadGroup]) -> int:
    return sum(group.tokens for group in groups)


def _broken(planner: str, what: str) -> PluginError:
    return PluginError(f"its plan {what}", plugin=planner, hook="nexus_compaction_plan")


class PreviousSummary(NamedTuple):
    """What an earlier compaction left.

    Attributes:
        prose: What its summarizer wrote.
        evidence: What it carried on.
        trust: Whose word it is.
        gains: What it and those before it brought: tokens before and after, the newest last.
    """

    prose: str = ""
    evidence: Evidence = Evidence()
    trust: TrustLevel = "user"
    gains: tuple[tuple[int, int], ...] = ()


class SessionOutline(NamedTuple):
    """A session that is to be compacted.

    Attributes:
        thread: Its turns and groups.
        sent: Its messages, as they would be sent.
        earlier: What the latest compaction left.
    """

    thread: ThreadOutline
    sent: list[HistoryItem]
    earlier: PreviousSummary

    @property
    def tokens(self) -> int:
        """What its messages take."""
        return sum(each.tokens for each in self.sent)


def outline_session(
    cache: ThreadCache, state: SessionState, sizer: MessageSizer, event: HistoryItem | None
) -> SessionOutline:
    """A session in turns and groups; all of it since the latest summary is read.

    Args:
        cache: Its thread.
        state: Where it stands; it has a step.
        sizer: Who says what messages take.
        event: What the open turn is about, as it is sent; None where none is open.
    """
    tip, opened = state.tip, state.open_turn
    assert tip is not None  # noqa: S101 - something was said
    compaction = None if tip.compaction is None else cache.get_step(tip.compaction)
    summary, carried, kept = read_thread_parts(cache, tip, sizer)
    turn = opened.steps[0].id if opened else ""
    kept = [event if event and each.is_input and each.turn == turn else each for each in kept]
    first = None if compaction is None else compaction.data.get("first_kept")
    # There is nothing to summarise in the line that says when the session started.
    said = [
        each for each in kept if not is_session_start(each.message) or _is_pinned(cache.get_step(each.step), state.pins)
    ]
    thread = outline_thread(
        [_message(each, cache) for each in said],
        open_turn=turn,
        first_kept=first if isinstance(first, str) else None,
        carried=[_message(each, cache) for each in carried],
        pinned={each.step for each in (*carried, *kept) if _is_pinned(cache.get_step(each.step), state.pins)},
        summary_tokens=sum(each.tokens for each in summary),
    )
    return SessionOutline(thread, [*summary, *carried, *kept], _earlier(compaction, summary))


def _earlier(compaction: Step | None, summary: list[HistoryItem]) -> PreviousSummary:
    if compaction is None:
        return PreviousSummary()
    prose = compaction.data.get("prose") or compaction.data.get("summary")
    told = prose if isinstance(prose, str) else "\n\n".join(each.message.content for each in summary)
    evidence = read_evidence(compaction.data)
    if "facts" not in compaction.data:  # another program wrote it
        said = ThreadMessage(Message("user", told), compaction.id, compaction.turn, compaction.position)
        evidence = evidence._replace(facts=extract_facts([said]))
    return PreviousSummary(told, evidence, read_summary_trust(compaction), read_savings(compaction))


def _is_pinned(step: Step, pins: Collection[str]) -> bool:
    return step.id in pins or (holds_turn_input(step) and step.turn in pins)


def _message(sent: HistoryItem, cache: ThreadCache) -> ThreadMessage:
    """A message as it was said: what was told beside it is told again where it still holds."""
    said = sent.original or sent.message
    return ThreadMessage(said, sent.step, sent.turn, cache.get_step(sent.step).position, sent.tokens, sent.is_input)


MIN_COVERED_TOKENS = 100
"""Tokens. Less is not worth a summary: what stands around it takes half of that."""
MAX_SUMMARY_SHARE = 0.75
"""A summary takes no more than this share of what it stands for, beside what an earlier one took."""


class CompactionReason(NamedTuple):
    """Why a session is compacted.

    Attributes:
        trigger: Why.
        focus: What the user wants to be kept above all.
        most: The tokens that a call may use; None for what is known of the model.
        learnt: What was just learnt of a provider, as a step says it: how it counts, and its window.
    """

    trigger: CompactionTrigger
    focus: str = ""
    most: int | None = None
    learnt: Mapping[str, object] = MappingProxyType({})


class CompactionTask(NamedTuple):
    """What becomes of a session.

    Attributes:
        occasion: Why.
        options: What the settings say.
        outlined: The session as it is.
        selection: What is summarised, and what stays.
        budget: How short it should become.
    """

    occasion: CompactionReason
    options: CompactionOptions
    outlined: SessionOutline
    selection: CompactionSelection
    budget: CompactionBudget

    @property
    def before(self) -> int:
        """What the next call would take as it is."""
        return self.fixed + self.outlined.tokens

    @property
    def fixed(self) -> int:
        """What system prompt and tools take."""
        return sum(self.budget.fixed.values())

    @property
    def room(self) -> int:
        """What the summary may take: no more than there is room for, and than is worth it."""
        worth = self.outlined.thread.summary_tokens + int(self.selection.covered_tokens * MAX_SUMMARY_SHARE)
        return max(min(self.selection.room, worth), 1)

    @property
    def pinned(self) -> tuple[str, ...]:
        """The steps that stay although what comes behind them is summarised."""
        return tuple(dict.fromkeys(step for group in self.selection.pinned for step in group.steps))

    def concerns(self, steps: Collection[str]) -> bool:
        """Whether it matters that somebody pins some of the steps, or lets go of them."""
        groups = (*self.selection.covered, *self.selection.pinned)
        return any(each.step in steps or each.turn in steps for group in groups for each in group.messages)

    def report(self) -> CompactionReport:
        """What is going to be done."""
        covered = self.selection.covered_messages
        return CompactionReport(
            step=None,
            trigger=self.occasion.trigger,
            turns=len({each.turn for each in covered if each.turn}),
            messages=len(covered),
            first_kept=self.selection.plan.first_kept,
            pinned=self.pinned,
            tokens_before=self.before,
            tokens_after=self.fixed + self.selection.kept_tokens + self.room,
            available=self.budget.available,
            planner=self.selection.planner,
        )


def plan_compaction(
    thread: CompactionThread, state: SessionState, plan: CallPlan, occasion: CompactionReason
) -> CompactionTask | None:
    """What becomes of a session; None where there is nothing that is worth a summary.

    Raises:
        BudgetError: What must stay does not fit, whatever is summarised.
        PluginError: A plugin's plan would tear apart what belongs together.
    """
    if state.tip is None:
        return None
    options, sizer = read_compaction_options(plan.window.settings), plan.window.sizer
    most = plan.window.available_tokens if occasion.most is None else occasion.most
    outlined = outline_session(thread.cache, state, sizer, plan.input)
    budget = CompactionBudget(
        available=most,
        target=compute_target_tokens(options, occasion.trigger, most),
        fixed=plan.prefix_tokens,
        summary=compute_summary_limit(options, most),
        keep_turns=options.keep_turns,
    )
    selection = select_steps(thread.runtime.host, outlined.thread, budget, sizer.counter)
    if selection is None or (selection.covered_tokens < MIN_COVERED_TOKENS and not selection.is_outgrown):
        return None
    return CompactionTask(occasion, options, outlined, selection, budget)
