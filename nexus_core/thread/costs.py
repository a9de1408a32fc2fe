"""The cost of steps and of threads, at the prices of their models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.ledger.ledger import skip_reverted, walk_back
from nexus_core.tokens.prices import sum_call_costs
from nexus_core.types.payloads import ReplyPayload

if TYPE_CHECKING:
    from nexus_core.tokens.prices import Cost, PriceList
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.messages import Usage

_PAID_KINDS = ("reply", "turn")


def sum_costs(ledger: Ledger, tip: str | None, prices: PriceList) -> Cost:
    """Return the cost of all calls of a thread.

    Reads the whole thread: each reply has its own model, so that no running total of tokens will do.
    """
    steps = skip_reverted(walk_back(ledger, tip))
    return sum_call_costs((call for step in steps if (call := _find_call(step)) is not None), prices)


def compute_step_cost(step: Step, prices: PriceList) -> Cost | None:
    """Return the cost of a reply or a whole turn; None for other steps, and if no usage was reported."""
    call = _find_call(step)
    return None if call is None else prices.compute(call[0], call[1], calls=call[2])


def _find_call(step: Step) -> tuple[str, Usage, int] | None:
    """Return model, usage and number of the calls that a step reports; None if it reports none."""
    if step.kind not in _PAID_KINDS:  # most steps of a long thread need not be decoded
        return None
    payload = step.payload
    usage = payload.usage if isinstance(payload, ReplyPayload) else None
    if usage is None or not usage.total_tokens:
        return None
    calls = 1 if step.kind == "reply" else max(sum(message.role == "assistant" for message in step.messages), 1)
    return payload.model or "", usage, calls
