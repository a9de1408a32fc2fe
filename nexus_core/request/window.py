"""What fits into a call of a model, as the settings and the provider's own counts tell."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nexus_core.dialects.requests import count_option_bytes
from nexus_core.history.budget import (
    MAX_RESPONSE_RESERVE_TOKENS,
    MAX_TOOL_RESERVE_TOKENS,
    RESPONSE_RESERVE_DIVISOR,
    TOOL_RESERVE_DIVISOR,
)
from nexus_core.history.truncation import FitLimits
from nexus_core.request.runtime import get_number
from nexus_core.request.writer import LazyWriter
from nexus_core.thread.state import get_calibration, get_learned_limit, get_pins
from nexus_core.types.budget import TokenBudget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.history.items import HistoryItem
    from nexus_core.request.prefix import Prefix
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.thread.state import SessionState
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import JSON
    from nexus_core.types.plugins import Finding
    from nexus_core.types.settings import Settings

ESTIMATE_MARGIN_DIVISOR = 10
"""A tenth is added to what the current message takes, where tokens are only estimated."""


class ContextWindow:
    """A model's window.

    Args:
        runtime: Shared by all sessions of the Nexus.
        settings: What the user and the project set.
        model: Whom to ask.
        state: Where the session stands: how providers have counted in it, and which windows they named.
        cache: Its thread, which remembers what its steps weigh; None for a conversation that is not kept.
    """

    def __init__(
        self, runtime: SessionRuntime, settings: Settings, model: str, state: SessionState, cache: ThreadCache | None
    ) -> None:
        self.settings = settings
        self.model = runtime.model(model, settings)
        shared = runtime.sizer(model, settings)
        self.sizer = shared if cache is None else cache.sizer(shared)
        self.prefix_sizer = runtime.get_prefix_sizer(shared.counter)
        self.truncation = runtime.truncation(settings)
        calibration, limit = (
            get_calibration(state.ratios, model),
            get_learned_limit(state.windows, model, self.model.window),
        )
        largest = runtime.dialects.request_limit(self.model)
        size = get_learned_limit(state.request_bytes, model, largest)
        findings = (
            runtime.unknown_model(model, settings),
            _smaller(model, limit, self.model.window),
            _refused(model, size, largest),
        )
        self.findings: tuple[Finding, ...] = tuple(finding for finding in findings if finding is not None)
        self.allowance = TokenBudget(
            limit=limit,
            reserve_response=min(
                get_number(settings, "budget.reserve_response", MAX_RESPONSE_RESERVE_TOKENS),
                limit // RESPONSE_RESERVE_DIVISOR,
            ),
            reserve_tools=min(
                get_number(settings, "budget.reserve_tools", MAX_TOOL_RESERVE_TOKENS), limit // TOOL_RESERVE_DIVISOR
            ),
            calibration=calibration,
            byte_limit=size,
        )
        options = settings.get("provider.options")
        self.options: JSON = options if isinstance(options, dict) else {}
        self.provider = str(settings.get("provider.provider") or self.model.api)
        self.writer = LazyWriter(self.model, partial(runtime.model, settings=settings), settings, runtime.dialects)
        self.most = int(self.allowance.available / (calibration.high if calibration else 1))

    def limits(self, turn: str, tip: Step | None, epoch: Prefix | None = None) -> FitLimits:
        """What there is room for beside an epoch."""
        fixed = 0 if epoch is None else sum(self.prefix_sizer.count_tokens(epoch).values())
        measured = 0 if epoch is None else sum(self.count_fixed_bytes(epoch).values())
        return FitLimits(
            room=self.most - fixed,
            bytes=self.allowance.byte_limit - measured,
            limit=self.allowance.available,
            byte_limit=self.allowance.byte_limit,
            replace_media=self.sizer.replace_media,
            truncation=self.truncation,
            turn=turn,
            compaction=tip.compaction if tip is not None else None,
            known=self.sizer.grouped,
            pinned=get_pins(tip),
        )

    def count_fixed_bytes(self, epoch: Prefix) -> dict[str, int]:
        """How many bytes a request has besides messages."""
        return self.prefix_sizer.count_bytes(epoch) | {"options": count_option_bytes(self.options)}

    def weigh_event(self, sent: HistoryItem) -> HistoryItem:
        """Return a message that was not sent before with its tokens, a margin among them, and its bytes."""
        tokens = self.sizer.count_tokens(sent.message)
        return self._with_margin(sent._replace(tokens=tokens, size=self.sizer.count_bytes(sent.message)))

    def with_margin(self, sent: Iterable[HistoryItem], turn: str) -> list[HistoryItem]:
        """Messages, what the open turn is about with a margin."""
        return [self._with_margin(each) if each.is_input and each.turn == turn else each for each in sent]

    def _with_margin(self, sent: HistoryItem) -> HistoryItem:
        if self.sizer.counter.exact:
            return sent
        margin = -(-sent.tokens // ESTIMATE_MARGIN_DIVISOR)
        return sent._replace(tokens=sent.tokens + margin, margin=margin)


def _smaller(model: str, limit: int, thought: int) -> Finding | None:
    """What to know about a model that reads less than we thought."""
    if limit == thought:
        return None
    from nexus_core.types.plugins import Finding

    what = f"the provider of {model!r} said that it reads {limit:,} tokens, not {thought:,}"
    return Finding("smaller-window", f"{what}; models.{model}.window sets what counts")


def _refused(model: str, size: int, thought: int) -> Finding | None:
    """What to know about a model whose server takes no requests as large as we thought."""
    if size == thought:
        return None
    from nexus_core.types.plugins import Finding

    what = f"a request of {size + 1:,} bytes to {model!r} was refused as too large"
    return Finding("smaller-request", f"{what}; models.{model}.request_bytes sets what counts")
