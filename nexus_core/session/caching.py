"""What became of the provider's cache, told from the steps of two replies, or of all replies of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.assembly.cache_report import CallFacts, compare_epochs, report_cache
from nexus_core.session.steps.state import State
from nexus_core.session.steps.turns import Turn, usage_of
from nexus_core.types.assembled import CacheReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.session.place import SessionRuntime
    from nexus_core.session.steps.epochs import Epochs
    from nexus_core.session.steps.tail import Tail
    from nexus_core.types.assembled import CacheMiss
    from nexus_core.types.ledger import Step
    from nexus_core.types.settings import Settings


def cache_of(place: SessionRuntime, tail: Tail, step: Step, settings: Settings) -> CacheReport:
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
    return _report(facts, before, place.epochs, place.model(facts.model, settings).cache_minimum)


def cache_along(
    steps: Iterable[Step], epochs: Epochs, cache_minimum: Callable[[str], int]
) -> Iterator[tuple[Step, CacheReport]]:
    """What became of the cache in every call of a thread, the newest first; each step is looked at once.

    Args:
        steps: The thread, the newest step first.
        epochs: What was frozen, by its address.
        cache_minimum: The shortest beginning that a model's provider caches, by the model's name.
    """
    later: tuple[Step, CallFacts | None] | None = None
    for call in _calls(steps):
        if later is not None:
            yield later[0], _between(later[1], call[1], epochs, cache_minimum)
        later = call
    if later is not None:
        facts = later[1]
        yield later[0], CacheReport() if facts is None else _report(facts, None, epochs, 0)


def _calls(steps: Iterable[Step]) -> Iterator[tuple[Step, CallFacts | None]]:
    """The replies of a thread, the newest first, with what is known of their calls: the seal before them says whom."""
    unsealed: list[Step] = []
    for step in steps:
        if unsealed and unsealed[0].turn != step.turn:
            yield from ((reply, None) for reply in unsealed)
            unsealed = []
        if step.kind == "reply":
            unsealed.append(step)
        elif step.kind == "sealed" and "model" in step.data:
            yield from ((reply, _facts_of(reply, step.data["model"])) for reply in unsealed)
            unsealed = []
    yield from ((reply, None) for reply in unsealed)


def _between(
    facts: CallFacts | None, before: CallFacts | None, epochs: Epochs, cache_minimum: Callable[[str], int]
) -> CacheReport:
    if facts is None:
        return CacheReport()
    if before is None:
        return CacheReport(got=facts.cached)
    return _report(facts, before, epochs, cache_minimum(facts.model))


def _report(facts: CallFacts, before: CallFacts | None, epochs: Epochs, minimum: int) -> CacheReport:
    def blame() -> CacheMiss | None:
        if before is None:
            return None
        old, new = epochs.find(before.epoch), epochs.find(facts.epoch)
        if old is None or new is None:  # gone from the ledger
            return None
        return compare_epochs(old, new, epochs.view(old.view), epochs.view(new.view))

    return report_cache(facts, before, minimum, blame)


def _facts(tail: Tail, step: Step) -> CallFacts | None:
    return None if step.kind != "reply" else _facts_of(step, Turn(tail.turn(step.id)).sealed("model"))


def _facts_of(step: Step, model: object) -> CallFacts | None:
    """What is known of the call that a reply answers; None where nothing says how it was sent."""
    usage, sent, state = usage_of(step), step.data.get("sent"), State(None, step, None)
    if not isinstance(model, str) or not state.epoch:
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
