"""Settings of compaction, and the token limits that they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

if TYPE_CHECKING:
    from nexus_core.types.compaction import CompactionTrigger, SummaryForm, SummaryRole
    from nexus_core.types.settings import Settings

FidelityPolicy = Literal["warn", "reinject", "off"]
"""Handling of facts that a summary omits: report them, show them beside it, or do not check."""


class CompactionOptions(NamedTuple):
    """The settings under `compaction`; `nexus config schema` describes each."""

    enabled: bool = True
    trigger_ratio: float = 1.0
    trigger_tokens: int | None = None
    trigger_turns: int | None = None
    target_ratio: float = 0.6
    overflow_ratio: float = 0.4
    keep_turns: int = 3
    recent_preserve_ratio: float = 0.25
    summary_budget_ratio: float = 0.25
    redact_secrets: bool = True
    evidence: bool = True
    evidence_tokens: int = 4000
    user_tokens: int = 4000
    fidelity: FidelityPolicy = "reinject"
    summarizers: tuple[str, ...] = ("given", "extractive")
    form: SummaryForm = "standalone"
    model: str | None = None
    command: tuple[str, ...] | None = None
    timeout: float = 120.0
    summary_marker: str = "[Previous conversation summary]"
    summary_role: SummaryRole = "user"


def read_compaction_options(settings: Settings) -> CompactionOptions:
    """Return the options of merged settings, with defaults for what is not set."""
    group = settings.get("compaction")
    given = cast("dict[str, Any]", group if isinstance(group, dict) else {})
    known: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each
        for name, each in given.items()
        if name in CompactionOptions._fields
    }
    return CompactionOptions(**known)


def compute_trigger_tokens(options: CompactionOptions, limit: int) -> int:
    """Return the tokens of a call that trigger a compaction, of at most `limit`."""
    return min(int(limit * options.trigger_ratio), limit if options.trigger_tokens is None else options.trigger_tokens)


def compute_target_tokens(options: CompactionOptions, trigger: CompactionTrigger, limit: int) -> int:
    """Return the wanted tokens of a call after a compaction; 0 for the fewest."""
    if trigger in ("manual", "periodic"):
        return 0
    if trigger == "overflow_recovery":
        return int(limit * options.overflow_ratio)
    start, target = compute_trigger_tokens(options, limit), int(limit * options.target_ratio)
    return target if target < start else int(start * options.target_ratio)  # otherwise the next one is due at once
