"""What became of the provider's cache, told from the steps of two replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.assembly.cache_report import CallFacts, compare_epochs, report_cache
from nexus_core.session.state import State
from nexus_core.session.turns import Turn, usage_of
from nexus_core.values.cache import CacheReport

if TYPE_CHECKING:
    from nexus_core.session.place import Place
    from nexus_core.session.tail import Tail
    from nexus_core.values.cache import Blame
    from nexus_core.values.ledger import Step
    from nexus_core.values.settings import Settings


def cache_of(place: Place, tail: Tail, step: Step, settings: Settings) -> CacheReport:
    """What the call that a reply answers could expect of the cache, and what it got.

    Args:
        place: Where the session lives.
        tail: Its thread.
        step: The reply.
        settings: What is known of models.
    """
    facts = _facts(tail, step)
    if facts is None:
        return CacheReport()
    earlier = next((each for each in reversed(tail.newest(step.id, lambda _: True)[:-1]) if each.kind == "reply"), None)
    before = None if earlier is None else _facts(tail, earlier)
    if earlier is not None and before is None:
        return CacheReport(got=facts.cached)

    def blame() -> Blame | None:
        if before is None:
            return None
        old, new = place.epochs.read(before.epoch), place.epochs.read(facts.epoch)
        return compare_epochs(old, new, place.epochs.view(old.view), place.epochs.view(new.view))

    return report_cache(facts, before, place.model(facts.model, settings).cache_minimum, blame)


def _facts(tail: Tail, step: Step) -> CallFacts | None:
    """What is known of the call that a reply answers; None where nothing says how it was sent."""
    turn = Turn(tail.turn(step.id))
    model, usage, sent = turn.sealed("model"), usage_of(step), step.data.get("sent")
    state = State(None, step, turn)
    if step.kind != "reply" or not isinstance(model, str) or not state.epoch:
        return None
    return CallFacts(
        model=model,
        epoch=state.epoch,
        cut=state.cut,
        compaction=step.compaction,
        sent=sent if isinstance(sent, int) else None,
        cached=None if usage is None else usage.cached_input_tokens,
        at=step.created,
    )
