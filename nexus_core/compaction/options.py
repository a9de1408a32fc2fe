"""What the settings say about compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

if TYPE_CHECKING:
    from nexus_core.types.compaction import SummaryForm, SummaryRole
    from nexus_core.types.settings import Settings

FidelityPolicy = Literal["warn", "reinject", "off"]
"""What to do about facts that a summary leaves out: say so, show them beside it, or not look."""


class CompactionOptions(NamedTuple):
    """`compaction` of the settings; what each means is said there (`nexus config schema`)."""

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
    """What merged settings say, with defaults where they say nothing."""
    group = settings.get("compaction")
    given = cast("dict[str, Any]", group if isinstance(group, dict) else {})
    known: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each
        for name, each in given.items()
        if name in CompactionOptions._fields
    }
    return CompactionOptions(**known)
