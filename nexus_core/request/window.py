"""Context window of a model, and the room in it by settings, calibration and learned limits."""

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
"""A tenth is added to the tokens of the input if they are estimated, because it was never counted by the provider."""


class ContextWindow:
    """The context window of a model in a session.

    Args:
        runtime: Shared by all sessions of the Nexus.
        settings: Settings of the user and the project.
        model: The name of the model.
        state: State of the session, with its calibration and learned limits.
        cache: The session's thread, which caches sizes of its steps; None for a conversation that is not stored.

    Attributes:
        budget: Limits and reserves of a call, before anything is counted.
        available_tokens: Tokens available for a call, by our own count.
        findings: Warnings about the model and its limits.
        options: Options of the API call from the settings.
        writer: Writes calls in the format of an API.
    """

    def __init__(
        self, runtime: SessionRuntime, settings: Settings, model: str, state: SessionState, cache: ThreadCache | None
    ) -> None:
        self.settings = settings
        self.model = runtime.get_model(model, settings)
        shared = runtime.get_sizer(model, settings)
        self.sizer = shared if cache is None else cache.get_sizer(shared)
        self.prefix_sizer = runtime.get_prefix_sizer(shared.counter)
        self.strategy = runtime.get_strategy(settings)
        calibration = get_calibration(state.calibration_samples, model)
        limit = get_learned_limit(state.learned_windows, model, self.model.window)
        assumed_size = runtime.dialects.request_limit(self.model)
        size = get_learned_limit(state.learned_request_bytes, model, assumed_size)
        findings = (
            runtime.find_model_finding(model, settings),
            _warn_of_smaller_window(model, limit, self.model.window),
            _warn_of_smaller_requests(model, size, assumed_size),
        )
        self.findings: tuple[Finding, ...] = tuple(finding for finding in findings if finding is not None)
        self.budget = TokenBudget(
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
        self.writer = LazyWriter(self.model, partial(runtime.get_model, settings=settings), settings, runtime.dialects)
        self.available_tokens = int(self.budget.available / (calibration.high if calibration else 1))

    def limits(self, turn: str, tip: Step | None, prefix: Prefix | None = None) -> FitLimits:
        """Return the limits for the messages of a call, next to a prefix if one is given."""
        prefix_tokens = 0 if prefix is None else sum(self.prefix_sizer.count_tokens(prefix).values())
        fixed_bytes = 0 if prefix is None else sum(self.count_fixed_bytes(prefix).values())
        return FitLimits(
            room=self.available_tokens - prefix_tokens,
            bytes=self.budget.byte_limit - fixed_bytes,
            limit=self.budget.available,
            byte_limit=self.budget.byte_limit,
            replace_media=self.sizer.replace_media,
            truncation=self.strategy,
            turn=turn,
            compaction=tip.compaction if tip is not None else None,
            known=self.sizer.groups,
            pinned=get_pins(tip),
        )

    def count_fixed_bytes(self, prefix: Prefix) -> dict[str, int]:
        """Return the bytes of a request body without messages, by part."""
        return self.prefix_sizer.count_bytes(prefix) | {"options": count_option_bytes(self.options)}

    def size_input(self, item: HistoryItem) -> HistoryItem:
        """Return a rendered input with its bytes and its tokens with a margin."""
        tokens = self.sizer.count_tokens(item.message)
        return self._add_margin(item._replace(tokens=tokens, size=self.sizer.count_bytes(item.message)))

    def add_input_margin(self, items: Iterable[HistoryItem], turn: str) -> list[HistoryItem]:
        """Return the messages, with a safety margin on the input of the open turn."""
        return [self._add_margin(each) if each.is_input and each.turn == turn else each for each in items]

    def _add_margin(self, item: HistoryItem) -> HistoryItem:
        if self.sizer.counter.exact:
            return item
        margin = -(-item.tokens // ESTIMATE_MARGIN_DIVISOR)
        return item._replace(tokens=item.tokens + margin, margin=margin)


def _warn_of_smaller_window(model: str, limit: int, assumed: int) -> Finding | None:
    """Return a warning if the context window is smaller than assumed."""
    if limit == assumed:
        return None
    from nexus_core.types.plugins import Finding

    message = f"the provider of {model!r} said that it reads {limit:,} tokens, not {assumed:,}"
    return Finding("smaller-window", f"{message}; models.{model}.window sets what counts")


def _warn_of_smaller_requests(model: str, size: int, assumed: int) -> Finding | None:
    """Return a warning if the provider accepts smaller requests than assumed."""
    if size == assumed:
        return None
    from nexus_core.types.plugins import Finding

    message = f"a request of {size + 1:,} bytes to {model!r} was refused as too large"
    return Finding("smaller-request", f"{message}; models.{model}.request_bytes sets what counts")
