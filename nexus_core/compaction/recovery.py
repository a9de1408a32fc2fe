"""Shorten a session after a provider rejected its call as too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.compaction.compact import compact_now
from nexus_core.compaction.overflow import read_overflow
from nexus_core.compaction.plan import CompactionTask
from nexus_core.compaction.trigger import NoCompaction, find_block
from nexus_core.errors import ConflictError, PluginError, SummaryError
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
"""The share of the rejected call that may fit if the provider gives no numbers."""
PROVIDER_COUNT_FACTORS = (1.0, 10.0)
"""Plausible ratios of the provider's token count to ours; others are clamped."""


def recover(
    thread: CompactionThread, sent_budget: Callable[[SessionState], TokenBudget | None], error: BaseException
) -> Operation[None]:
    """Shorten a session whose last call a provider rejected as too long.

    Args:
        thread: The session's thread.
        sent_budget: Returns the size of the rejected call; None if it is not known.
        error: The provider's error.

    Raises:
        error: It has another cause, or nothing can be shortened. In the second case a note gives the reason.
    """
    overflow = read_overflow(error)
    state = yield from blocking(thread.read)
    if overflow is None or state.tip is None or state.open_turn is None or state.open_turn.pending:
        raise error
    call = yield from blocking(thread.plan, state)
    reason = yield from blocking(find_block, thread.cache, state, call, OVERFLOW_TRIGGER)
    if reason is not None:
        raise add_recovery_note(error, reason.message)
    sent = yield from blocking(sent_budget, state)
    task = _build_task(state, call, overflow, sent, thread.runtime.dialects)
    try:
        if "request_bytes" in task.learned and _has_older_media(call):
            # The next call replaces older media by placeholders, and nothing has to be summarized.
            yield from blocking(thread.append, NewStep(kind="sealed", data=task.learned), state)
            return
        outcome = yield from compact_now(thread, state, task, call)
    except (SummaryError, PluginError) as why:
        raise add_recovery_note(error, why.what) from why
    except ConflictError:
        raise add_recovery_note(error, "somebody else has continued the session") from None
    if isinstance(outcome, NoCompaction):
        raise add_recovery_note(error, outcome.message) from outcome.error


def add_recovery_note(error: BaseException, why: str) -> BaseException:
    """Return a provider's error with a note why no shorter call is sent."""
    error.add_note(f"Nexus did not make the conversation shorter: {why}.")
    return error


def _has_older_media(call: CallPlan) -> bool:
    """True if media before the open turn's input can be replaced by placeholders."""
    return any(
        call.window.sizer.replace_media(each) is not each
        for each in call.items
        if not (each.is_input and each.turn == call.turn)
    )


def _build_task(
    state: SessionState, call: CallPlan, overflow: Overflow, sent: TokenBudget | None, dialects: DialectRegistry
) -> CompactionTask:
    """Return the limit that the error implies, and what it reveals about the provider."""
    window, model, tokens = call.window, call.request.model, None if sent is None else sent.total
    limit = _compute_available(window.budget, overflow)
    learned: dict[str, object] = {}
    if overflow.asked is not None and tokens:
        limit = int(limit / min(max(overflow.asked / tokens, PROVIDER_COUNT_FACTORS[0]), PROVIDER_COUNT_FACTORS[1]))
        learned["calibration"] = add_calibration_sample(state.calibration_samples, model, tokens, overflow.asked)
    windows = add_learned_limit(state.learned_windows, model, overflow.limit, window.model.window)
    if windows is not None:
        learned["windows"] = {name: list(each) for name, each in windows.items()}
    if sent is not None and overflow.is_size:
        sizes = add_learned_limit(
            state.learned_request_bytes, model, sent.bytes - 1, dialects.request_limit(window.model)
        )
        learned |= {} if sizes is None else {"request_bytes": {name: list(each) for name, each in sizes.items()}}
    if tokens:
        limit = min(limit, int(tokens * ASSUMED_OVERFLOW_SHARE))
    return CompactionTask(OVERFLOW_TRIGGER, limit=min(limit, window.available_tokens), learned=learned)


def _compute_available(allowance: TokenBudget, overflow: Overflow) -> int:
    """Return the tokens of a call with the window and the reply that the error names."""
    limit = min(overflow.limit or allowance.limit, allowance.limit)
    response = max(min(allowance.reserve_response, limit // RESPONSE_RESERVE_DIVISOR), min(overflow.answer, limit // 2))
    return limit - response - min(allowance.reserve_tools, limit // TOOL_RESERVE_DIVISOR)
