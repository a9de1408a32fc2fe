"""The summary of a session: who is asked for it, and what belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.assembly.call import assemble
from nexus_core.assembly.hiding import hide_oldest
from nexus_core.compaction.chain import SummaryTask, ask_summarizers
from nexus_core.compaction.composing import compose_summary, share_out
from nexus_core.compaction.extractive import NAME as EXTRACTIVE
from nexus_core.compaction.fidelity import fidelity_to_json
from nexus_core.compaction.summarizers import find_summarizers
from nexus_core.compaction.summary import build_summary_fields, summary_in_session, trust_of
from nexus_core.session.drivers import wait
from nexus_core.session.steps.clamping import SOME_STEP

if TYPE_CHECKING:
    from nexus_core.compaction.chain import Summary
    from nexus_core.compaction.composing import Composed, Shares
    from nexus_core.session.asking.planning import Plan
    from nexus_core.session.compacting.selecting import Chosen
    from nexus_core.session.drivers import Work
    from nexus_core.session.place import SessionRuntime
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.compaction import Summarizer

GAINS = 2
"""So many compactions are remembered with what they brought."""


class Summarised(NamedTuple):
    """A session with a summary in the place of a part of it.

    Attributes:
        chosen: What was summarised.
        summary: Who wrote it.
        composed: The summary with all that belongs to it.
        tokens: What it takes.
    """

    chosen: Chosen
    summary: Summary
    composed: Composed
    tokens: int

    def data(self, after: int) -> dict[str, Any]:
        """What a compaction says about itself.

        Args:
            after: What the next call takes.
        """
        chosen, covered = self.chosen, self.chosen.selection.covered_messages
        before, earlier = chosen.before, chosen.outlined.earlier
        steps = [each.step for each in sorted(covered, key=lambda each: each.position)]
        return {
            "summary": self.composed.text,
            **build_summary_fields(chosen.options.summary_marker, chosen.options.summary_role),
            "prose": self.composed.prose,
            **self.composed.evidence.to_json(),
            "fidelity": fidelity_to_json(self.composed.fidelity),
            "first_kept": chosen.selection.plan.first_kept,
            "pinned": list(chosen.pinned),
            "covered": [steps[0], steps[-1]] if steps else [],
            "trigger": chosen.occasion.trigger,
            "focus": chosen.occasion.focus,
            "summariser": self.summary.summarizer,
            "calls": self.summary.calls,
            "failures": [list(each) for each in self.summary.failures],
            "redacted": dict(sorted(self.summary.redacted.items())),
            "form": self.summary.form,
            "note": self.summary.note,
            "planner": chosen.selection.planner,
            "tokens_before": before,
            "tokens_after": after,
            "gains": [list(each) for each in (*earlier.gains, (before, after))][-GAINS:],
            "trust": trust_of([each.message for each in covered], earlier.trust),
        }


def summarise(place: SessionRuntime, plan: Plan, chosen: Chosen) -> Work[Summarised]:
    """Have a part of a session summarised; no ledger is touched meanwhile.

    Raises:
        SummaryError: Nobody could.
        UnknownNameError: The settings name a summarizer that there is not.
    """
    count, options = plan.window.scales.counter.count, chosen.options
    asked = yield from wait(_prepare, place, plan, chosen)
    summary = yield from ask_summarizers(asked.task, asked.chain, count)

    def compose() -> Composed:
        said = zip(chosen.selection.covered_messages, summary.messages, strict=True)
        return compose_summary(
            summary.text,
            covered=[each._replace(message=message) for each, message in said],
            kept=chosen.selection.kept_messages,
            previous=chosen.outlined.earlier.evidence,
            shares=asked.shares,
            evidence=options.evidence,
            policy=options.fidelity,
            count=count,
        )

    composed = yield from wait(compose)
    message = summary_in_session(composed.text, SOME_STEP, marker=options.summary_marker, role=options.summary_role)
    tokens = plan.window.scales.weigh(message)
    return Summarised(chosen, summary, composed, tokens)


class _Asked(NamedTuple):
    task: SummaryTask
    chain: list[Summarizer]
    shares: Shares


def _prepare(place: SessionRuntime, plan: Plan, chosen: Chosen) -> _Asked:
    """Who is asked, and what for."""
    options, earlier = chosen.options, chosen.outlined.earlier
    outgrown, names = chosen.selection.is_outgrown, options.summarizers
    shares = share_out(
        chosen.room,
        facts=options.evidence_tokens if options.evidence else 0,
        words=options.user_tokens if options.evidence else 0,
    )
    task = SummaryTask(
        messages=[each.message for each in chosen.selection.covered_messages],
        max_tokens=shares.prose,
        previous=earlier.prose,
        focus=chosen.occasion.focus,
        # What a model cannot read with the summary in it, it has in no cache either.
        context=_next_call(plan, chosen) if options.form == "cached" and not outgrown else None,
        timeout=options.timeout,
        redact=options.redact_secrets,
        model=plan.call.request.model,
    )
    count = plan.window.scales.counter.count
    if outgrown:  # nothing could be sent without another
        names = (*names, EXTRACTIVE)
    chain = find_summarizers(place.host, plan.standing.loaded, names, given=place.summarize, count=count)
    return _Asked(task, chain, shares)


def _next_call(plan: Plan, chosen: Chosen) -> AssembledContext:
    """The call that would be made next if nothing were summarised, for whoever goes on from it."""
    planned = {each.key: each for each in plan.call.sent}
    sent = [planned.get(each.key, each) for each in chosen.outlined.sent]
    sent = hide_oldest(sent, plan.window.fitting(plan.call.turn, None, plan.call.epoch))
    return assemble(plan.call._replace(sent=sent, decisions=(), must_fit=False))
