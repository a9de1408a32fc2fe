"""What to send after a provider refused a call because it was too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.compaction.compact import SessionMoved, compact_now
from nexus_core.compaction.options import read_compaction_options
from nexus_core.compaction.overflow import read_overflow
from nexus_core.compaction.plan import CompactionReason
from nexus_core.compaction.trigger import find_cooldown_reason, list_compactions_since_reply
from nexus_core.errors import BudgetError, ConflictError, PluginError, SummaryError
from nexus_core.history.budget import RESPONSE_RESERVE_DIVISOR, TOOL_RESERVE_DIVISOR
from nexus_core.runner import blocking
from nexus_core.thread.state import add_calibration_sample, add_learned_limit
from nexus_core.types.ledger import NewStep

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.compaction.compact import CompactionThread
    from nexus_core.compaction.overflow import Overflow
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.request.build import CallPlan
    from nexus_core.runner import Operation
    from nexus_core.thread.state import SessionState
    from nexus_core.types.budget import TokenBudget
    from nexus_core.types.compaction import CompactionTrigger

OVERFLOW_TRIGGER: CompactionTrigger = "overflow_recovery"
ASSUMED_OVERFLOW_SHARE = 0.9
"""Where a provider does not say how much was too much, it was more than this share."""
PROVIDER_COUNT_FACTORS = (1.0, 10.0)
"""How much more than we a provider may count."""


def recover(
    thread: CompactionThread, sent_budget: Callable[[SessionState], TokenBudget | None], error: BaseException
) -> Operation[None]:
    """Make a session shorter after a provider refused its last call.

    Args:
        thread: The session's thread.
        sent_budget: Returns the size of the refused call.
        error: The provider's error.

    Raises:
        error: It says something else, or nothing more can be done about it: a note says why.
    """
    overflow = read_overflow(error)
    state = yield from blocking(thread.read)
    if overflow is None or state.tip is None or state.open_turn is None or state.open_turn.pending:
        raise error
    plan = yield from blocking(thread.plan, state)
    stop = yield from blocking(_why_not, thread, state, plan)
    if stop:
        raise add_recovery_note(error, stop)
    taken = yield from blocking(sent_budget, state)
    occasion = _occasion(state, plan, overflow, taken, thread.runtime.dialects)
    try:
        if "request_bytes" in occasion.learnt and _has_older_media(plan):
            # They are told in words from now on, and nothing has to be summarised.
            done: object = yield from blocking(thread.append, NewStep(kind="sealed", data=occasion.learnt), state)
        else:
            done = yield from compact_now(thread, state, plan, occasion)
    except (BudgetError, SummaryError, PluginError) as why:
        raise add_recovery_note(error, why.what) from why
    except ConflictError:
        done = SessionMoved()
    if done is None:
        raise add_recovery_note(error, "there is nothing to summarise")
    if isinstance(done, SessionMoved):
        raise add_recovery_note(error, "somebody else has continued the session")


def _why_not(thread: CompactionThread, state: SessionState, plan: CallPlan) -> str:
    """Why a refused call is not made shorter."""
    options = read_compaction_options(plan.window.settings)
    if not options.enabled:
        return "compaction.enabled is false"
    assert state.tip is not None  # noqa: S101 - asked before
    if any(
        step.data.get("trigger") == OVERFLOW_TRIGGER for step in list_compactions_since_reply(thread.cache, state.tip)
    ):
        return "it was made shorter once already since the last reply"
    return find_cooldown_reason(thread.cache, state.tip, plan)


def _has_older_media(plan: CallPlan) -> bool:
    """Whether there are pictures or documents that may be told in words: not those of the open turn's question."""
    sent, turn = plan.items, plan.turn
    return any(
        plan.window.sizer.replace_media(each) is not each for each in sent if not (each.is_input and each.turn == turn)
    )


def _occasion(
    state: SessionState, plan: CallPlan, overflow: Overflow, taken: TokenBudget | None, dialects: DialectRegistry
) -> CompactionReason:
    """How short it must become, as far as the provider says."""
    window, model, sent = plan.window, plan.request.model, None if taken is None else taken.total
    most = _available(window.budget, overflow)
    learnt: dict[str, object] = {}
    if overflow.asked is not None and sent:
        most = int(most / min(max(overflow.asked / sent, PROVIDER_COUNT_FACTORS[0]), PROVIDER_COUNT_FACTORS[1]))
        learnt["calibration"] = add_calibration_sample(state.calibration_samples, model, sent, overflow.asked)
    windows = add_learned_limit(state.learned_windows, model, overflow.limit, window.model.window)
    if windows is not None:
        learnt["windows"] = {name: list(each) for name, each in windows.items()}
    if taken is not None and overflow.is_size:
        sizes = add_learned_limit(
            state.learned_request_bytes, model, taken.bytes - 1, dialects.request_limit(window.model)
        )
        learnt |= {} if sizes is None else {"request_bytes": {name: list(each) for name, each in sizes.items()}}
    if sent:
        most = min(most, int(sent * ASSUMED_OVERFLOW_SHARE))
    return CompactionReason(OVERFLOW_TRIGGER, most=min(most, window.available_tokens), learnt=learnt)


def _available(allowance: TokenBudget, overflow: Overflow) -> int:
    """What a call may use of a window that is smaller than we thought, or of which more is wanted for the answer."""
    limit = min(overflow.limit or allowance.limit, allowance.limit)
    response = max(min(allowance.reserve_response, limit // RESPONSE_RESERVE_DIVISOR), min(overflow.answer, limit // 2))
    return limit - response - min(allowance.reserve_tools, limit // TOOL_RESERVE_DIVISOR)


def add_recovery_note(error: BaseException, why: str) -> BaseException:
    """A provider's error with a note that says why nothing shorter is sent."""
    error.add_note(f"Nexus did not make the conversation shorter: {why}.")
    return error
