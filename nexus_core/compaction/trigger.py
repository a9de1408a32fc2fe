"""Compaction triggers, and the reasons against a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from nexus_core.errors import TurnError
from nexus_core.text.console import format_share
from nexus_core.thread.state import count_turns, ensure_not_archived
from nexus_core.types.payloads import CompactionPayload
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.compaction.plan import PlannedCompaction
    from nexus_core.errors import NexusError
    from nexus_core.request.build import CallPlan
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.thread.state import SessionState
    from nexus_core.types.compaction import CompactionTrigger, SummaryForm, SummaryRole
    from nexus_core.types.ledger import Step
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
    evidence_tokens: int | None = None
    user_tokens: int | None = None
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


COMPACTION_DUE = "compaction-due"
"""The code of a preview's finding that the real call would compact first."""
MIN_COVERED_TOKENS = 100
"""Tokens. The frame of a summary has half of that, so that summarizing less saves next to nothing."""
MIN_SAVINGS_SHARE = 0.1
"""A compaction that removes a smaller share of the tokens was not worth it."""
MIN_FREED_SHARE = 0.3
"""Before the limit is reached, a compaction must free so much: the provider reads the new prefix at full price, which
costs about as much as the next calls save."""
MAX_SMALL_SAVINGS = 2
"""After so many of those in a row, automatic compaction pauses."""
MAX_COMPACTIONS_PER_REPLY = 2
"""Automatic compactions without a reply between them; more would be a loop."""

_EARLY_TRIGGERS: tuple[CompactionTrigger, ...] = ("context_limit", "periodic")
"""Triggers that settings may move before the limit."""
_REPLY_KINDS = ("reply", "turn")

# ---- when ---------------------------------------------------------------------------------------------------------


def find_trigger(
    options: CompactionOptions, cache: ThreadCache, tip: Step, used: int, limit: int
) -> CompactionTrigger | None:
    """Return why the next call requires a compaction; None if it does not.

    Args:
        options: The settings.
        cache: The session's thread.
        tip: Its newest step.
        used: Tokens of the next call if nothing is left out.
        limit: Maximum tokens of a call.
    """
    if not options.enabled:
        return None
    if used >= compute_trigger_tokens(options, limit):
        return "context_limit"
    if options.trigger_turns is not None and count_turns_since_compaction(cache, tip) >= options.trigger_turns:
        return "periodic"
    return None


def count_turns_since_compaction(cache: ThreadCache, tip: Step) -> int:
    """Return the number of turns closed since the latest compaction, if any."""
    before = 0 if tip.compaction is None else count_turns(cache, cache.get_step(tip.compaction))
    return count_turns(cache, tip) - before - (not tip.closes)


def build_due_finding(trigger: CompactionTrigger) -> Finding:
    """Return the finding of a preview, which leaves out what the real call would summarize."""
    why = "it does not fit otherwise" if trigger == "context_limit" else "so many turns are there"
    return Finding(
        COMPACTION_DUE, f"earlier turns are summarized before this is sent, because {why}; here, they are left out"
    )


# ---- why not ------------------------------------------------------------------------------------------------------

NoCompactionCode = Literal[
    "empty",
    "archived",
    "disabled",
    "below-trigger",
    "already-shortened",
    "cooldown",
    "small-savings",
    "must-stay",
    "nothing-to-summarize",
    "too-little",
    "not-worth-it",
]
"""The kinds of reasons against a compaction."""


class NoCompaction(NamedTuple):
    """The reason why a session is not compacted.

    Attributes:
        code: The kind of reason.
        message: The reason, as the end of a sentence.
        hint: What to do about it, as a sentence without its full stop.
        error: The error that a caller raises who asked for the compaction; None if it is not an error.
    """

    code: NoCompactionCode
    message: str
    hint: str
    error: NexusError | None = None


def find_block(
    cache: ThreadCache, state: SessionState, call: CallPlan, trigger: CompactionTrigger
) -> NoCompaction | None:
    """Return why a session is not compacted, whatever its messages; None to continue.

    Args:
        cache: The session's thread.
        state: Its state; it has a step.
        call: Its next call.
        trigger: Why it should be compacted. A manual compaction is never blocked.
    """
    tip, options = state.tip, read_compaction_options(call.window.settings)
    if trigger == "manual" or tip is None:
        return None
    if not options.enabled:
        hint = "set compaction.enabled to true, or run `nexus session compact`"
        return NoCompaction("disabled", "compaction.enabled is false", hint)
    since_reply = list_compactions_since_reply(cache, tip)
    if trigger == "overflow_recovery" and any(each.trigger == trigger for each in since_reply):
        what = "it was made shorter once already since the last reply"
        return NoCompaction("already-shortened", what, "shorten the message, or use a larger model")
    # A compaction for a larger window was no attempt to fit into this one.
    available = call.window.budget.available
    attempts = [each for each in since_reply if each.limit is None or each.limit <= available]
    # If nothing can be sent without another compaction, it is tried however little the latest ones saved.
    latest = None if tip.compaction is None or call.overflows else cache.get_step(tip.compaction).payload
    cooldown = find_cooldown(
        latest.savings if isinstance(latest, CompactionPayload) else (),
        since_reply=len(attempts),
        turns_since=count_turns_since_compaction(cache, tip),
        keep_turns=options.keep_turns,
    )
    if trigger == "overflow_recovery" or call.trigger is not None:
        return cooldown
    # What was left out during a cooldown may be what keeps the call below the trigger.
    has_dropped = any(each.action == "dropped" for each in call.decisions)
    return cooldown if cooldown and has_dropped else _explain_below_trigger(options, call)


def find_cooldown(
    savings: Sequence[tuple[int, int]], *, since_reply: int, turns_since: int, keep_turns: int = 3
) -> NoCompaction | None:
    """Return why automatic compaction pauses; None if it does not.

    Args:
        savings: Tokens before and after the latest compactions, newest last; empty to ignore them.
        since_reply: Number of compactions since the last recorded reply.
        turns_since: Number of turns closed since the latest compaction.
        keep_turns: Number of turns that a compaction keeps. With that many new ones, another can save more again.
    """
    if since_reply >= MAX_COMPACTIONS_PER_REPLY:
        what = f"there were {since_reply} compactions since the last reply"
        return NoCompaction("cooldown", what, "record a reply first")
    shares = [compute_saved_share(*each) for each in savings[-MAX_SMALL_SAVINGS:]]
    is_small = len(shares) == MAX_SMALL_SAVINGS and max(shares) < MIN_SAVINGS_SHARE
    if is_small and turns_since < keep_turns:
        saved = " and ".join(format_share(max(share, 0)) for share in shares)
        left = keep_turns - turns_since
        hint = f"it is tried again after {left} more turn{'s' * (left > 1)}"
        return NoCompaction("small-savings", f"the last two compactions saved only {saved}", hint)
    return None


def compute_saved_share(before: int, after: int) -> float:
    """Return the share of the tokens that a compaction removed; negative if it added some."""
    return (before - after) / before if before > 0 else 0.0


def list_compactions_since_reply(cache: ThreadCache, tip: Step) -> list[CompactionPayload]:
    """Return the compactions since the last reply, newest first, with undone ones."""

    def has_reply(steps: Sequence[Step]) -> bool:
        return any(step.kind in _REPLY_KINDS for step in steps)

    found: list[CompactionPayload] = []
    for step in reversed(cache.read_newest(tip.id, has_reply)):
        if step.kind in _REPLY_KINDS:
            break
        if isinstance(step.payload, CompactionPayload):
            found.append(step.payload)
    return found


def explain_state(state: SessionState, trigger: CompactionTrigger) -> NoCompaction | None:
    """Return why a session in this state cannot be compacted; None to continue."""
    if state.tip is None:
        return NoCompaction("empty", "the session has no turn yet", "record a turn first")
    if trigger == "manual":  # an archived session may finish its open turn, and be compacted for that
        try:
            ensure_not_archived(state)
        except TurnError as error:
            return NoCompaction("archived", error.what, error.hint or "", error)
    return None


def _explain_below_trigger(options: CompactionOptions, call: CallPlan) -> NoCompaction:
    used = sum(call.prefix_tokens.values()) + sum(each.tokens for each in call.items)
    what = f"the next call has {used:,} tokens, and compaction begins at"
    what = f"{what} {compute_trigger_tokens(options, call.window.available_tokens):,}"
    return NoCompaction("below-trigger", what, "set compaction.trigger_ratio, trigger_tokens or trigger_turns")


def explain_empty_plan(call: CallPlan) -> NoCompaction:
    """Return that there is nothing to summarize."""
    keep_turns = read_compaction_options(call.window.settings).keep_turns
    hint = f"the newest turns stay as they are ({keep_turns} at least); set compaction.keep_turns to keep fewer"
    return NoCompaction("nothing-to-summarize", "there is nothing to summarize", hint)


def explain_small_plan(planned: PlannedCompaction) -> NoCompaction | None:
    """Return why a planned compaction is not worth it; None if it is."""
    tokens = planned.selection.covered_tokens
    if planned.selection.is_outgrown:
        return None
    if tokens < MIN_COVERED_TOKENS:
        what = f"only {tokens:,} tokens could be summarized, and fewer than {MIN_COVERED_TOKENS} are not worth it"
        return NoCompaction("too-little", what, "wait for more turns, or set compaction.keep_turns to keep fewer")
    is_early = planned.task.trigger in _EARLY_TRIGGERS and planned.tokens_before < planned.budget.available
    if not is_early or planned.expected_share >= MIN_FREED_SHARE:
        return None
    share = format_share(max(planned.expected_share, 0))
    what = f"it would free {share}, and less than {MIN_FREED_SHARE:.0%} is not worth a cold prompt cache"
    return NoCompaction("not-worth-it", what, "it is tried again before the next call; at the limit it is done anyway")
