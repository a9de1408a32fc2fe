"""Earlier turns give way to a summary: chosen, summarised, and appended as one step unless something has changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus_core.errors import BudgetError, ConflictError, PluginError, SummaryError
from nexus_core.session.compacting.braking import why_not_again
from nexus_core.session.compacting.selecting import CompactionReason, choose
from nexus_core.session.compacting.summarising import summarise
from nexus_core.session.drivers import wait
from nexus_core.session.thread.appending import ATTEMPTS, AppendableThread, build_contention_error, ensure_not_archived
from nexus_core.types.ledger import NewStep
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from nexus_core.assembly.static_context import StaticContext
    from nexus_core.session.asking.planning import Plan
    from nexus_core.session.compacting.summarising import Summarised
    from nexus_core.session.drivers import Work
    from nexus_core.session.place import SessionRuntime
    from nexus_core.session.steps.state import State
    from nexus_core.session.steps.tail import Tail
    from nexus_core.types.compaction import CompactionReport
    from nexus_core.types.ledger import Step

TRIES = 3
"""So often somebody else may compact a session while this program does."""


class CompactionThread(AppendableThread, Protocol):
    """A session's thread, as far as compaction needs it. Methods block."""

    place: SessionRuntime

    @property
    def tail(self) -> Tail:
        """Cached steps of the thread."""

    def plan(self, state: State) -> Plan:
        """Plan the next call of a state."""

    def standing(self, state: State) -> StaticContext:
        """Return the static context as it is on disk now."""


class Moved(NamedTuple):
    """Somebody else has compacted the session meanwhile, taken a compaction back, or pinned what was summarised."""


class Relief(NamedTuple):
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


def compact(thread: CompactionThread, focus: str, *, dry_run: bool) -> Work[CompactionReport | None]:
    """Compact a session because somebody asks for it; None where there is nothing to summarise.

    Raises:
        SummaryError: Nobody could summarise it; nothing is changed.
        TurnError: It is archived.
    """
    for _ in range(TRIES):
        state = yield from wait(thread.read)
        if state.tip is None:
            return None
        ensure_not_archived(state)
        plan = yield from wait(thread.plan, state)
        occasion = CompactionReason("manual", focus)
        done = yield from compact_now(thread, state, plan, occasion, dry_run=dry_run)
        if not isinstance(done, Moved):
            return done
    raise build_contention_error(thread.label)


def relieve(thread: CompactionThread, state: State, plan: Plan) -> Work[Relief]:
    """Make a session shorter by itself, because the next call asks for it."""
    if plan.due is None or state.tip is None:
        return Relief()
    try:
        stop = yield from wait(why_not_again, thread.tail, state.tip, plan)
        if stop:
            return Relief(finding=Finding("compaction-stopped", f"earlier turns are not summarised: {stop}"))
        done = yield from compact_now(thread, state, plan, CompactionReason(plan.due))
    except BudgetError as error:
        return Relief(floor=error)
    except (SummaryError, PluginError) as error:
        return Relief(finding=Finding("compaction-failed", error.what), has_failed=True)
    if done is None:
        return Relief()
    return Relief(has_moved=True, finding=None if isinstance(done, Moved) else _told(done))


def compact_now(
    thread: CompactionThread, state: State, plan: Plan, occasion: CompactionReason, *, dry_run: bool = False
) -> Work[CompactionReport | Moved | None]:
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
    chosen = yield from wait(choose, thread, state, plan, occasion)
    if chosen is None or dry_run:
        return None if chosen is None else chosen.report()
    made = yield from summarise(thread.place, plan, chosen)
    after = chosen.fixed + chosen.selection.kept_tokens + made.tokens
    if after >= chosen.before:
        raise SummaryError([(made.summary.summarizer, f"left {after:,} of {chosen.before:,} tokens")])
    step = yield from _append(thread, state, plan, made)
    return Moved() if step is None else _report(made, step)


def _append(thread: CompactionThread, state: State, plan: Plan, made: Summarised) -> Work[Step | None]:
    """Append a compaction; None where what it was made for is not so any more.

    What was recorded meanwhile stays: it stands behind what the compaction keeps.
    """
    first, now = state, state
    for _ in range(ATTEMPTS):
        try:
            return (yield from wait(_write, thread, first, now, plan, made))
        except ConflictError:
            now = yield from wait(thread.read)
            if now.tip is None or first.tip is None:
                return None
            if now.tip.compaction != first.tip.compaction or made.chosen.concerns(set(now.pins) ^ set(first.pins)):
                return None
    raise build_contention_error(thread.label)


def _write(thread: CompactionThread, first: State, now: State, plan: Plan, made: Summarised) -> Step:
    """Append a compaction where a session stands now, with everything on disk as it is now.

    Args:
        thread: Its steps.
        first: Where it stood when it was summarised.
        now: Where it stands.
        plan: What it would have sent.
        made: The summary.
    """
    place, chosen, standing = thread.place, made.chosen, thread.standing(now)
    before = place.epochs.find(now.epoch)
    draft = place.epochs.begin(before, standing, now.reloads, place.now())
    fixed = sum(plan.window.prefix_sizes.count_tokens(draft.epoch).values())
    data = made.data(fixed + chosen.selection.kept_tokens + made.tokens)
    data |= {"model": plan.call.request.model, "limit": plan.window.allowance.available}
    data |= {"epoch": draft.epoch.digest, "view": draft.epoch.view, "cut": None}
    if data["first_kept"] is None:
        data["first_kept"] = _first_after(thread, first, now)
    data |= chosen.occasion.learnt
    place.epochs.store(draft.blobs)
    return thread.append(NewStep(kind="compaction", closes=now.open_turn is None, data=data), now)


def _first_after(thread: CompactionThread, first: State, now: State) -> str | None:
    """The step that was recorded first after nothing was kept; None where there is none."""
    assert first.tip is not None and now.tip is not None  # noqa: S101, PT018 - asked before
    return None if first.tip.id == now.tip.id else thread.tail.since(first.tip.id, now.tip.id)[1].id


def _report(made: Summarised, step: Step) -> CompactionReport:
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
