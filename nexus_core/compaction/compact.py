"""Earlier turns give way to a summary: chosen, summarised, and appended as one step unless something has changed."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus_core.compaction.compose import summarize_session
from nexus_core.compaction.coverage import is_covered
from nexus_core.compaction.plan import CompactionReason, plan_compaction
from nexus_core.compaction.trigger import find_cooldown_reason
from nexus_core.errors import BudgetError, ConflictError, PluginError, SummaryError, TurnError, UsageError
from nexus_core.runner import blocking
from nexus_core.thread.append import (
    MAX_APPEND_ATTEMPTS,
    AppendableThread,
    RecordedBefore,
    append,
    build_contention_error,
    ensure_not_archived,
)
from nexus_core.thread.lookup import find_step
from nexus_core.thread.totals import MARKER_KINDS
from nexus_core.types.compaction import RevertedCompaction
from nexus_core.types.ledger import NewStep
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from nexus_core.compaction.compose import WrittenSummary
    from nexus_core.request.build import CallPlan
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.request.static_context import StaticContext
    from nexus_core.runner import Operation
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.thread.state import SessionState
    from nexus_core.types.compaction import CompactionReport
    from nexus_core.types.ledger import Ledger, Step

MAX_COMPACTION_ATTEMPTS = 3
"""So often somebody else may compact a session while this program does."""


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


class SessionMoved(NamedTuple):
    """Somebody else has compacted the session meanwhile, taken a compaction back, or pinned what was summarised."""


class AutoCompaction(NamedTuple):
    """What was done about a session that is too long.

    Attributes:
        has_moved: Whether it stands elsewhere now.
        finding: What a person should know about it.
        floor: What must stay, where that does not fit.
        has_failed: Whether nobody could summarise it.
    """

    has_moved: bool = False
    finding: Finding | None = None
    floor: BudgetError | None = None
    has_failed: bool = False


def compact(thread: CompactionThread, focus: str, *, dry_run: bool) -> Operation[CompactionReport | None]:
    """Compact a session because somebody asks for it; None where there is nothing to summarise.

    Raises:
        SummaryError: Nobody could summarise it; nothing is changed.
        TurnError: It is archived.
    """
    for _ in range(MAX_COMPACTION_ATTEMPTS):
        state = yield from blocking(thread.read)
        if state.tip is None:
            return None
        ensure_not_archived(state)
        plan = yield from blocking(thread.plan, state)
        occasion = CompactionReason("manual", focus)
        done = yield from compact_now(thread, state, plan, occasion, dry_run=dry_run)
        if not isinstance(done, SessionMoved):
            return done
    raise build_contention_error(thread.label)


def compact_automatically(thread: CompactionThread, state: SessionState, plan: CallPlan) -> Operation[AutoCompaction]:
    """Make a session shorter by itself, because the next call asks for it."""
    if plan.trigger is None or state.tip is None:
        return AutoCompaction()
    try:
        stop = yield from blocking(find_cooldown_reason, thread.cache, state.tip, plan)
        if stop:
            return AutoCompaction(finding=Finding("compaction-stopped", f"earlier turns are not summarised: {stop}"))
        done = yield from compact_now(thread, state, plan, CompactionReason(plan.trigger))
    except BudgetError as error:
        return AutoCompaction(floor=error)
    except (SummaryError, PluginError) as error:
        return AutoCompaction(finding=Finding("compaction-failed", error.what), has_failed=True)
    if done is None:
        return AutoCompaction()
    return AutoCompaction(has_moved=True, finding=None if isinstance(done, SessionMoved) else _told(done))


def compact_now(
    thread: CompactionThread, state: SessionState, plan: CallPlan, occasion: CompactionReason, *, dry_run: bool = False
) -> Operation[CompactionReport | SessionMoved | None]:
    """Compact a session that stands where it was read; None where there is nothing to summarise.

    Args:
        thread: Its steps.
        state: Where it stands.
        plan: What it would send.
        occasion: Why.
        dry_run: Whether only to say what would be done; nobody is asked for a summary then.

    Raises:
        BudgetError: What must stay does not fit, whatever is summarised.
        SummaryError: Nobody could summarise it; nothing is changed.
        PluginError: A plugin decided what stays, and cannot have that.
    """
    chosen = yield from blocking(plan_compaction, thread, state, plan, occasion)
    if chosen is None or dry_run:
        return None if chosen is None else chosen.report()
    made = yield from summarize_session(thread.runtime, plan, chosen)
    after = chosen.fixed + chosen.selection.kept_tokens + made.tokens
    if after >= chosen.before:
        raise SummaryError([(made.summary.summarizer, f"left {after:,} of {chosen.before:,} tokens")])
    step = yield from _append(thread, state, plan, made)
    return SessionMoved() if step is None else _report(made, step)


def _append(
    thread: CompactionThread, state: SessionState, plan: CallPlan, made: WrittenSummary
) -> Operation[Step | None]:
    """Append a compaction; None where what it was made for is not so any more.

    What was recorded meanwhile stays: it stands behind what the compaction keeps.
    """
    first, now = state, state
    for _ in range(MAX_APPEND_ATTEMPTS):
        try:
            return (yield from blocking(_write, thread, first, now, plan, made))
        except ConflictError:
            now = yield from blocking(thread.read)
            if now.tip is None or first.tip is None:
                return None
            if now.tip.compaction != first.tip.compaction or made.chosen.concerns(set(now.pins) ^ set(first.pins)):
                return None
    raise build_contention_error(thread.label)


def _write(
    thread: CompactionThread, first: SessionState, now: SessionState, plan: CallPlan, made: WrittenSummary
) -> Step:
    """Append a compaction where a session stands now, with everything on disk as it is now.

    Args:
        thread: Its steps.
        first: Where it stood when it was summarised.
        now: Where it stands.
        plan: What it would have sent.
        made: The summary.
    """
    runtime, chosen, static = thread.runtime, made.chosen, thread.static_context(now)
    before = runtime.prefixes.find(now.epoch)
    pending = runtime.prefixes.begin(before, static, now.reloads, runtime.now())
    fixed = sum(plan.window.prefix_sizer.count_tokens(pending.prefix).values())
    data = made.data(fixed + chosen.selection.kept_tokens + made.tokens)
    data |= {"model": plan.request.model, "limit": plan.window.budget.available}
    data |= {"epoch": pending.prefix.digest, "view": pending.prefix.sections_digest, "cut": None}
    if data["first_kept"] is None:
        data["first_kept"] = _first_after(thread, first, now)
    data |= chosen.occasion.learnt
    runtime.prefixes.store(pending.blobs)
    return thread.append(NewStep(kind="compaction", closes=now.open_turn is None, data=data), now)


def _first_after(thread: CompactionThread, first: SessionState, now: SessionState) -> str | None:
    """The step that was recorded first after nothing was kept; None where there is none."""
    assert first.tip is not None and now.tip is not None  # noqa: S101, PT018 - asked before
    return None if first.tip.id == now.tip.id else thread.cache.read_since(first.tip.id, now.tip.id)[1].id


def _report(made: WrittenSummary, step: Step) -> CompactionReport:
    after = step.data.get("tokens_after")
    return replace(
        made.chosen.report(),
        step=step.id,
        tokens_after=after if isinstance(after, int) else 0,
        summary=made.composed.text,
        summarizer=made.summary.summarizer,
        calls=made.summary.calls,
        failures=made.summary.failures,
        fidelity=made.composed.fidelity,
        redacted=dict(sorted(made.summary.redacted.items())),
        form=made.summary.form,
        note=made.summary.note,
    )


def _told(report: CompactionReport) -> Finding:
    """What a compaction did, in half a sentence."""
    from nexus_core.text.console import format_count

    missing = sum(len(each.recoverable) + len(each.lost) for each in report.fidelity.values())
    what = f"{format_count(report.messages, 'earlier message')} summarised" if report.messages else "summary shortened"
    sizes = f"{report.tokens_before:,} tokens became {report.tokens_after:,}"
    facts = f"; {format_count(missing, 'fact')} only in the ledger now" if missing else ""
    note = f"; {report.note}" if report.note else ""
    return Finding("compacted", f"{what} by {report.summarizer}: {sizes}{facts}{note}", step=report.step or "")


def undo(thread: CompactionThread) -> Operation[RevertedCompaction]:
    """Take the latest compaction back that counts; the one before it counts again. Nothing is deleted.

    Raises:
        TurnError: None counts.
    """
    step = yield from append(thread, lambda state: build_revert_step(thread.cache, state))
    assert step is not None and not isinstance(step, RecordedBefore)  # noqa: S101, PT018 - a revert is never there already
    return RevertedCompaction(step.id, str(step.data["reverts"]), step.compaction)


def build_revert_step(cache: ThreadCache, state: SessionState) -> NewStep:
    """The step that takes the latest compaction back.

    Raises:
        TurnError: None counts.
    """
    latest = find_latest_compaction(cache, state.tip)
    data = {"restores": latest.restored, "reverts": latest.compaction, "cut": None}
    return NewStep(kind="revert", closes=state.open_turn is None, data=data)


def find_latest_compaction(cache: ThreadCache, tip: Step | None) -> RevertedCompaction:
    """The compaction that counts, and the one that would count without it; no step says so yet.

    Raises:
        TurnError: None counts.
    """
    if tip is None or tip.compaction is None:
        raise TurnError("nothing is compacted here", hint="there is nothing to take back")
    compaction = cache.get_step(tip.compaction)
    before = None if compaction.parent is None else cache.get_step(compaction.parent).compaction
    return RevertedCompaction("", compaction.id, before)


def pin(thread: CompactionThread, name: str, *, remove: bool) -> Operation[bool]:
    """Pin a step, or let go of it; whether that changed anything.

    Raises:
        UsageError: There is no such step in the session, or nothing is said in it.
        TurnError: A summary stands for it already.
    """
    ledger, label = thread.runtime.ledger, thread.label
    step = yield from append(thread, lambda state: build_pin_step(ledger, label, state, name, remove=remove))
    return step is not None


def build_pin_step(ledger: Ledger, label: str, state: SessionState, name: str, *, remove: bool) -> NewStep | None:
    """The step that says which steps are pinned from now on; None where they are already. Errors as above."""
    step = None if name in state.pins else _find(ledger, label, state, name)
    meant = name if step is None else step.id
    is_pinned = meant in state.pins
    if is_pinned is not remove:
        return None
    if step is not None and not remove:
        _ensure_there(ledger, state, step)
    pins = [each for each in state.pins if each != meant]
    return NewStep(kind="pin", closes=state.open_turn is None, data={"pins": pins if remove else [*pins, meant]})


def _find(ledger: Ledger, label: str, state: SessionState, name: str) -> Step:
    step = None if state.tip is None else find_step(ledger, name, state.tip)
    if step is None:
        hint = f"`nexus session show {quote(label)} --json` names its steps"
        raise UsageError(f"there is no step {name!r} in session {label!r}", hint=hint)
    return step


def _ensure_there(ledger: Ledger, state: SessionState, step: Step) -> None:
    """Only what is still read as it was said can stay so."""
    if step.kind in MARKER_KINDS or not step.messages:
        raise UsageError(f"nothing is said in step {step.id}", hint="pin what was asked, answered or found")
    compaction = None if state.tip is None else state.tip.compaction
    if is_covered(ledger, step, compaction):
        raise TurnError(
            f"compaction {compaction} stands for step {step.id} already",
            hint="undo gives it back; then pin it, and compact again",
        )
