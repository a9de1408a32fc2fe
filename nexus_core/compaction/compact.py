"""Compact a session: plan it, have it summarized, and append the summary as one step.

`compact` does it on request, `compact_automatically` before a call that would not fit, and `recover` after a provider
refused one. Another writer may append steps meanwhile: they stay after the kept part, unless they change what
the summary is based on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus_core.compaction.compose import (
    FRAME_TOKENS,
    MAX_PROSE_TOKENS,
    compose_summary,
    divide_summary_limit,
    fidelity_to_json,
    read_previous_evidence,
)
from nexus_core.compaction.extractive import EXTRACTIVE_NAME
from nexus_core.compaction.overflow import read_overflow
from nexus_core.compaction.plan import CompactionGoal, plan_or_explain
from nexus_core.compaction.prompts import redact_message
from nexus_core.compaction.summarize import SummaryTask, ask_summarizers, find_summarizers
from nexus_core.compaction.trigger import NoCompaction, find_block
from nexus_core.errors import BudgetError, ConflictError, PluginError, SummaryError
from nexus_core.history.budget import RESPONSE_RESERVE_DIVISOR, TOOL_RESERVE_DIVISOR
from nexus_core.history.truncation import replace_oldest_item_media
from nexus_core.memory.facts import TextFactCache
from nexus_core.request.build import build_request
from nexus_core.runner import blocking
from nexus_core.text.console import format_count
from nexus_core.thread.cache import PLACEHOLDER_STEP_ID
from nexus_core.thread.calibration import CountedCall, add_calibration_sample, get_calibration_key
from nexus_core.thread.projection import add_summary_form, build_session_summary, get_summary_trust
from nexus_core.thread.state import MAX_APPEND_ATTEMPTS, AppendableThread, add_learned_limit, build_contention_error
from nexus_core.types.ledger import NewStep
from nexus_core.types.payloads import CompactionPayload, StepPayload
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.compaction.compose import ComposedSummary
    from nexus_core.compaction.overflow import Overflow
    from nexus_core.compaction.plan import PlannedCompaction
    from nexus_core.compaction.summarize import Summary
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.request.build import CallPlan
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.request.static_context import StaticContext
    from nexus_core.runner import Operation
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.thread.state import SessionState
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.budget import TokenBudget
    from nexus_core.types.compaction import CompactionReport, CompactionTrigger, Summarizer, ThreadMessage
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message

MAX_COMPACTION_ATTEMPTS = 3
"""Attempts of a manual compaction, if others compact the session at the same time."""
MAX_STORED_SAVINGS = 2
"""Compactions whose savings a step stores: as many as the cooldown needs."""
COOLDOWN_CODES = ("cooldown", "small-savings")
"""Reasons against an automatic compaction that its caller gets as a finding."""


class CompactionThread(AppendableThread, Protocol):
    """A session's thread, as far as compaction needs it. Methods block."""

    runtime: SessionRuntime

    @property
    def cache(self) -> ThreadCache:
        """Cached steps of the thread."""

    def plan(self, state: SessionState) -> CallPlan:
        """Plan the next call of a state."""

    def static_context(self, state: SessionState) -> StaticContext:
        """Return the static context as it is on disk now."""


class SessionMovedError(ConflictError):
    """Raised if another writer has changed what a summary is based on: compactions or pins."""


class AutoCompactionOutcome(NamedTuple):
    """The outcome of an automatic compaction.

    Attributes:
        has_moved: True if the session has changed, so that its next call must be planned again.
        finding: What the caller of the session should know.
        floor: The error that what must stay does not fit; None if it fits.
        has_failed: True if every summarizer failed.
    """

    has_moved: bool = False
    finding: Finding | None = None
    floor: BudgetError | None = None
    has_failed: bool = False


class CompactionPreview(NamedTuple):
    """The answer of a dry run.

    Attributes:
        report: What `compact` would do; None if it would do nothing.
        reason: Why it would do nothing; None if there is a report.
        automatic: Why the next call does not compact the session by itself; None if it does.
    """

    report: CompactionReport | None
    reason: NoCompaction | None
    automatic: NoCompaction | None


# ---- entry points ---------------------------------------------------------------------------------------------------


def compact(thread: CompactionThread, focus: str, *, dry_run: bool) -> Operation[CompactionReport | None]:
    """Compact a session on request; None if there is nothing to summarize.

    Raises:
        SummaryError: Every summarizer failed; nothing has changed.
        BudgetError: What must stay does not fit, whatever is summarized.
        TurnError: The session is archived.
    """
    task = CompactionGoal("manual", focus)
    for _ in range(MAX_COMPACTION_ATTEMPTS):
        state = yield from blocking(thread.read)
        if dry_run:
            planned = yield from blocking(plan_or_explain, thread, state, task)
            return _require_no_error(planned if isinstance(planned, NoCompaction) else planned.report())
        try:
            outcome = yield from compact_now(thread, state, task)
        except SessionMovedError:
            continue
        return _require_no_error(outcome)
    raise build_contention_error(thread.label)


def preview_compaction(thread: CompactionThread, focus: str) -> Operation[CompactionPreview]:
    """Return what `compact` would do, or why it would do nothing.

    Calls no summarizer and stores nothing.

    Raises:
        BudgetError: What must stay does not fit, whatever is summarized.
        TurnError: The session is archived.
    """
    return (yield from blocking(_preview, thread, focus))


def _preview(thread: CompactionThread, focus: str) -> CompactionPreview:
    state = thread.read()
    outcome = plan_or_explain(thread, state, CompactionGoal("manual", focus))
    if isinstance(outcome, NoCompaction):
        _require_no_error(outcome)
        call, report, reason = None, None, outcome
    else:
        call, report, reason = outcome.call, outcome.report(), None
    if state.tip is None:
        return CompactionPreview(report, reason, reason)
    call = thread.plan(state) if call is None else call
    due = plan_or_explain(thread, state, CompactionGoal(call.trigger or "context_limit"), call)
    return CompactionPreview(report, reason, due if isinstance(due, NoCompaction) else None)


def _require_no_error(outcome: CompactionReport | NoCompaction) -> CompactionReport | None:
    if not isinstance(outcome, NoCompaction):
        return outcome
    if outcome.error is not None:
        raise outcome.error
    return None


def compact_automatically(
    thread: CompactionThread, state: SessionState, call: CallPlan
) -> Operation[AutoCompactionOutcome]:
    """Compact a session if its next call requires it."""
    if call.trigger is None:
        return AutoCompactionOutcome()
    try:
        outcome = yield from compact_now(thread, state, CompactionGoal(call.trigger), call)
    except SessionMovedError:
        return AutoCompactionOutcome(has_moved=True)
    except (SummaryError, PluginError) as error:
        return AutoCompactionOutcome(finding=Finding("compaction-failed", error.what), has_failed=True)
    if not isinstance(outcome, NoCompaction):
        return AutoCompactionOutcome(has_moved=True, finding=build_compacted_finding(outcome))
    finding = None
    if outcome.code in COOLDOWN_CODES:
        finding = Finding("compaction-stopped", f"earlier turns are not summarized: {outcome.message}")
    return AutoCompactionOutcome(
        finding=finding, floor=outcome.error if isinstance(outcome.error, BudgetError) else None
    )


def compact_now(
    thread: CompactionThread, state: SessionState, task: CompactionGoal, call: CallPlan | None = None
) -> Operation[CompactionReport | NoCompaction]:
    """Compact a session in the state in which it was read.

    Args:
        thread: The session's thread.
        state: Its state.
        task: Why it is compacted, and for which limit.
        call: The next call of the state; None to plan it.

    Returns:
        The report, or the reason why nothing is compacted.

    Raises:
        SummaryError: Every summarizer failed; nothing has changed.
        PluginError: A plugin's plan would separate what must stay together.
        SessionMovedError: Another writer has changed what the summary is based on.
    """
    planned = yield from blocking(plan_or_explain, thread, state, task, call)
    if isinstance(planned, NoCompaction):
        return planned
    summary, composed = yield from summarize_session(thread.runtime, planned)
    tokens = _count_summary_tokens(planned, composed)
    after = planned.fixed_tokens + planned.selection.kept_tokens + tokens
    if after >= planned.tokens_before:
        raise SummaryError([(summary.summarizer, f"left {after:,} of {planned.tokens_before:,} tokens")])
    payload = build_compaction_payload(planned, summary, composed)
    step = yield from _append(thread, state, planned, payload, tokens=tokens)
    return _build_report(planned, summary, composed, step)


# ---- summary --------------------------------------------------------------------------------------------------------


def summarize_session(
    runtime: SessionRuntime, planned: PlannedCompaction
) -> Operation[tuple[Summary, ComposedSummary]]:
    """Have the selected steps summarized, and compose the summary.

    The ledger is not used meanwhile.

    Raises:
        SummaryError: Every summarizer failed.
        UnknownNameError: The settings name an unknown summarizer.
    """
    options, count = planned.options, planned.call.window.sizer.counter.count
    prose_limit, fact_limit, quote_limit = divide_summary_limit(
        planned.summary_limit,
        facts=options.evidence_tokens if options.evidence else 0,
        quotes=options.user_tokens if options.evidence else 0,
    )
    # Without limits of their own, facts and quotes may have what the others do not need.
    shares = options.evidence and options.evidence_tokens is None and options.user_tokens is None
    previous = yield from blocking(read_previous_evidence, planned.previous, planned.previous_prose)
    cache = TextFactCache()

    def compose(prose: str, covered: Sequence[ThreadMessage]) -> ComposedSummary:
        return compose_summary(
            prose,
            covered=covered,
            kept=planned.selection.kept_messages,
            previous=previous,
            fact_limit=fact_limit,
            quote_limit=quote_limit,
            evidence=options.evidence,
            policy=options.fidelity,
            count=count,
            limit=planned.summary_limit if shares else 0,
            cache=cache,
        )

    def build_task() -> SummaryTask:
        evidence = compose("", planned.selection.covered_messages).lists if options.evidence else ""
        left = planned.summary_limit - FRAME_TOKENS - count(evidence)
        return _build_summary_task(planned, max(prose_limit, min(left, MAX_PROSE_TOKENS) if shares else 0), evidence)

    task = yield from blocking(build_task)
    chain = yield from blocking(_find_chain, runtime, planned)
    summary = yield from ask_summarizers(task, chain, count)
    covered = yield from blocking(_list_whole_messages, planned, summary.messages)
    composed = yield from blocking(compose, summary.text, covered)
    return summary, composed


def _list_whole_messages(planned: PlannedCompaction, redacted: Sequence[Message]) -> list[ThreadMessage]:
    """Return the summarized messages without secrets, and with the whole text of long tool results.

    The model read only the ends of these, but their facts are named with the step in which they are.
    """
    found: list[ThreadMessage] = []
    seen: Counter[str] = Counter()
    for each, message in zip(planned.selection.covered_messages, redacted, strict=True):
        whole = planned.whole_messages.get(each.step, ())[seen[each.step] :]
        seen[each.step] += 1
        if whole and whole[0].tool_results:
            message = redact_message(whole[0], Counter()) if planned.options.redact_secrets else whole[0]  # noqa: PLW2901 - the whole of it
        found.append(each._replace(message=message))
    return found


def _build_summary_task(planned: PlannedCompaction, max_tokens: int, evidence: str) -> SummaryTask:
    options = planned.options
    # A call that is too long for the model with the present summary in it is not in the provider's cache either.
    uses_cache = options.form == "cached" and not planned.selection.is_outgrown
    return SummaryTask(
        messages=[each.message for each in planned.selection.covered_messages],
        max_tokens=max_tokens,
        previous=planned.previous_prose,
        focus=planned.task.focus,
        context=_build_next_call(planned) if uses_cache else None,
        timeout=options.timeout,
        redact=options.redact_secrets,
        model=planned.call.request.model,
        evidence=evidence,
    )


def _build_next_call(planned: PlannedCompaction) -> AssembledContext:
    """Return the next call without the compaction, which the provider may have cached."""
    call = planned.call
    sent = {each.key: each for each in call.items}
    items = [sent.get(each.key, each) for each in planned.items]
    items = replace_oldest_item_media(items, call.window.limits(call.turn, None, call.prefix))
    return build_request(call._replace(items=items, decisions=(), must_fit=False))


def _find_chain(runtime: SessionRuntime, planned: PlannedCompaction) -> list[Summarizer]:
    names = planned.options.summarizers
    if planned.selection.is_outgrown:  # nothing can be sent without a shorter summary, so that one must not fail
        names = (*names, EXTRACTIVE_NAME)
    count = planned.call.window.sizer.counter.count
    return find_summarizers(runtime.host, planned.call.loaded, names, given=runtime.summarize, count=count)


def _count_summary_tokens(planned: PlannedCompaction, composed: ComposedSummary) -> int:
    options = planned.options
    message = build_session_summary(
        composed.text, PLACEHOLDER_STEP_ID, marker=options.summary_marker, role=options.summary_role
    )
    return planned.call.window.sizer.count_tokens(message)


# ---- step -----------------------------------------------------------------------------------------------------------


def build_compaction_payload(
    planned: PlannedCompaction, summary: Summary, composed: ComposedSummary
) -> CompactionPayload:
    """Return the fields of a compaction step that do not depend on its parent."""
    options, covered = planned.options, planned.selection.covered_messages
    steps = [each.step for each in sorted(covered, key=lambda each: each.position)]
    previous = CompactionPayload(trust="user") if planned.previous is None else planned.previous.payload
    if not isinstance(previous, CompactionPayload):
        previous = CompactionPayload()
    payload = CompactionPayload(summary=composed.text)
    payload = add_summary_form(payload, options.summary_marker, options.summary_role).replace(prose=composed.prose)
    others = CompactionPayload(
        fidelity=fidelity_to_json(composed.fidelity),
        first_kept=planned.selection.plan.first_kept,
        pinned=tuple(planned.pinned_steps),
        covered=(steps[0], steps[-1]) if steps else (),
        trigger=planned.task.trigger,
        focus=planned.task.focus,
        summarizer=summary.summarizer,
        calls=summary.calls,
        failures=[list(each) for each in summary.failures],
        redacted=dict(sorted(summary.redacted.items())),
        form=summary.form,
        note=summary.note,
        planner=planned.selection.planner,
        tokens_before=planned.tokens_before,
        tokens_after=0,
        savings=previous.savings,
        trust=get_summary_trust([each.message for each in covered], previous.trust),
    )
    return payload.merge(composed.evidence.to_payload()).merge(others)


def _append(
    thread: CompactionThread,
    state: SessionState,
    planned: PlannedCompaction,
    payload: CompactionPayload,
    *,
    tokens: int,
) -> Operation[Step]:
    """Append a compaction; steps that were recorded meanwhile stay after the kept part.

    Args:
        thread: The session's thread.
        state: The state that was summarized.
        planned: The plan.
        payload: The fields of the step.
        tokens: Tokens of the summary.

    Raises:
        SessionMovedError: Another writer has changed what the summary is based on.
    """
    now = state
    for _ in range(MAX_APPEND_ATTEMPTS):
        try:
            return (yield from blocking(_write, thread, state, now, planned, payload, tokens=tokens))
        except ConflictError:
            now = yield from blocking(thread.read)
            if (
                now.tip is None
                or state.tip is None
                or now.tip.compaction != state.tip.compaction
                or planned.depends_on_pins(set(now.newest.pins) ^ set(state.newest.pins))
            ):
                raise SessionMovedError(f"session {thread.label!r} was compacted by another program") from None
    raise build_contention_error(thread.label)


def _write(
    thread: CompactionThread,
    state: SessionState,
    now: SessionState,
    planned: PlannedCompaction,
    payload: CompactionPayload,
    *,
    tokens: int,
) -> Step:
    """Append a compaction to the present state, with a new prefix from the files on disk."""
    runtime, call, static = thread.runtime, planned.call, thread.static_context(now)
    before = runtime.prefixes.find(now.newest.epoch)
    pending = runtime.prefixes.begin(before, static, now.stored_options.reloads, runtime.now())
    fixed = sum(call.window.prefix_sizer.count_tokens(pending.prefix).values())
    after = fixed + planned.selection.kept_tokens + tokens
    changed = CompactionPayload(
        tokens_after=after,
        savings=(*payload.savings, (planned.tokens_before, after))[-MAX_STORED_SAVINGS:],
        model=call.request.model,
        limit=call.window.budget.available,
        epoch=pending.prefix.digest,
        sections_digest=pending.prefix.sections_digest,
        cut=None,
        first_kept=payload.first_kept or _find_first_after(thread, state, now),
    )
    if now.newest.memories:
        changed = changed.replace(memories="")  # recalled again if they still match
    payload = payload.merge(changed).merge(planned.task.learned)
    runtime.prefixes.store(pending.blobs)
    return thread.append(NewStep(kind="compaction", closes=now.open_turn is None, data=payload.to_json()), now)


def _find_first_after(thread: CompactionThread, state: SessionState, now: SessionState) -> str | None:
    """Return the first step recorded after a state of which nothing is kept."""
    assert state.tip is not None and now.tip is not None  # noqa: S101, PT018 - `_append` has checked it
    return None if state.tip.id == now.tip.id else thread.cache.read_since(state.tip.id, now.tip.id)[1].id


# ---- report ---------------------------------------------------------------------------------------------------------


def _build_report(
    planned: PlannedCompaction, summary: Summary, composed: ComposedSummary, step: Step
) -> CompactionReport:
    stored = step.payload
    return replace(
        planned.report(),
        step=step.id,
        tokens_after=(stored.tokens_after or 0) if isinstance(stored, CompactionPayload) else 0,
        summary=composed.text,
        summarizer=summary.summarizer,
        calls=summary.calls,
        failures=summary.failures,
        fidelity=composed.fidelity,
        redacted=dict(sorted(summary.redacted.items())),
        form=summary.form,
        note=summary.note,
    )


def build_compacted_finding(report: CompactionReport) -> Finding:
    """Return the finding that says what a compaction has done."""
    missing = sum(len(each.recoverable) + len(each.lost) for each in report.fidelity.values())
    what = f"{format_count(report.messages, 'earlier message')} summarized" if report.messages else "summary shortened"
    sizes = f"{report.tokens_before:,} tokens became {report.tokens_after:,}"
    facts = f"; {format_count(missing, 'fact')} only in the ledger now" if missing else ""
    note = f"; {report.note}" if report.note else ""
    return Finding("compacted", f"{what} by {report.summarizer}: {sizes}{facts}{note}", step=report.step or "")


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
        if task.learned.request_bytes and _has_older_media(call):
            # The next call replaces older media by placeholders, and nothing has to be summarized.
            yield from blocking(thread.append, NewStep(kind="sealed", data=task.learned.to_json()), state)
            return
        outcome = yield from compact_now(thread, state, task, call)
    except (SummaryError, PluginError) as why:
        raise add_recovery_note(error, why.what) from why
    except ConflictError:
        raise add_recovery_note(error, "another writer has continued the session") from None
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
) -> CompactionGoal:
    """Return the limit that the error implies, and what it reveals about the provider."""
    window, model, tokens = call.window, call.request.model, None if sent is None else sent.total - sent.margin
    limit = _compute_available(window.budget, overflow)
    learned, newest = StepPayload(), state.newest
    if overflow.asked is not None and tokens:
        limit = int(limit / min(max(overflow.asked / tokens, PROVIDER_COUNT_FACTORS[0]), PROVIDER_COUNT_FACTORS[1]))
        refused = CountedCall(tokens, overflow.asked)
        key = get_calibration_key(model, window.sizer.counter)
        samples = add_calibration_sample(newest.calibration, key, refused, window.last_counted)
        learned = learned.replace(calibration=samples)
    windows = add_learned_limit(newest.windows, model, overflow.limit, window.model.window)
    if windows is not None:
        learned = learned.replace(windows=windows)
    if sent is not None and overflow.is_size:
        sizes = add_learned_limit(newest.request_bytes, model, sent.bytes - 1, dialects.request_limit(window.model))
        learned = learned if sizes is None else learned.replace(request_bytes=sizes)
    if tokens:
        limit = min(limit, int(tokens * ASSUMED_OVERFLOW_SHARE))
    return CompactionGoal(OVERFLOW_TRIGGER, limit=min(limit, window.available_tokens), learned=learned)


def _compute_available(allowance: TokenBudget, overflow: Overflow) -> int:
    """Return the tokens of a call with the window and the reply that the error names."""
    limit = min(overflow.limit or allowance.limit, allowance.limit)
    response = max(min(allowance.reserve_response, limit // RESPONSE_RESERVE_DIVISOR), min(overflow.answer, limit // 2))
    return limit - response - min(allowance.reserve_tools, limit // TOOL_RESERVE_DIVISOR)
