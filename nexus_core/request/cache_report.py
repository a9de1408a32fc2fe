"""Why a call did not find its beginning in the provider's cache, told from what is known of two calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.request.prefix import find_changed_sections
from nexus_core.thread.state import SessionState
from nexus_core.thread.turns import Turn, get_step_usage
from nexus_core.types.assembled import CacheMiss, CacheReport
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core.history.items import TruncationPoint
    from nexus_core.request.prefix import Prefix, PrefixStore
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.types.ledger import Step
    from nexus_core.types.prompt import Section
    from nexus_core.types.settings import Settings

CACHE_LIFETIME_MS = 5 * 60 * 1000
"""Milliseconds. So long providers keep a beginning at least, unless they are asked for more."""
CACHE_TOLERANCE = 0.75
"""The share of what is expected that counts as all of it: providers cache in blocks, and count in their own way."""


class CallFacts(NamedTuple):
    """What is known of a call.

    Attributes:
        model: Who was asked.
        epoch: System prompt and tools, by their digest.
        cut: Where its history began.
        compaction: What took the place of earlier turns.
        sent: The tokens that were sent, as we count; None where nobody counted.
        cached: The tokens that came from the cache; None where the provider does not say.
        at: When its reply was recorded, in milliseconds since 1970.
    """

    model: str
    epoch: str
    cut: TruncationPoint | None
    compaction: str | None
    sent: int | None
    cached: int | None
    at: int


def report_cache(
    call: CallFacts, before: CallFacts | None, minimum: int, blame_epoch: Callable[[], CacheMiss | None]
) -> CacheReport:
    """What a call could expect of the cache, what it got, and what came between.

    Args:
        call: The call.
        before: The one before it in the same conversation.
        minimum: The shortest beginning that the model's provider caches; 0 when nobody said.
        blame_epoch: Compares system prompts and tools, where they differ.
    """
    if before is None:
        message = "this was the first call, so nothing was cached yet"
        return CacheReport(expected=0, got=call.cached, blame=CacheMiss(cause="first", message=message))
    if before.sent is None or call.cached is None:
        return CacheReport(expected=before.sent, got=call.cached)
    if call.cached >= before.sent * CACHE_TOLERANCE:
        return CacheReport(expected=before.sent, got=call.cached)
    blame = next(_blames(call, before, minimum, blame_epoch))
    return CacheReport(expected=before.sent, got=call.cached, blame=blame)


def compare_prefixes(
    before: Prefix, after: Prefix, told: Sequence[Section], now: Sequence[Section]
) -> CacheMiss | None:
    """The first tool or section by which two epochs differ; providers read tools first."""
    renderers = before.key.get("renderer"), after.key.get("renderer")
    if renderers[0] != renderers[1]:
        return CacheMiss(cause="renderer", name=str(renderers[1]), message=f"the renderer is {renderers[1]} now")
    tools = {tool.name: tool for tool in before.tools}, {tool.name: tool for tool in after.tools}
    for name in dict.fromkeys([*tools[1], *tools[0]]):
        if tools[0].get(name) != tools[1].get(name):
            message = f"the tool {name!r} {_change(name in tools[0], name in tools[1])}"
            return CacheMiss(cause="tool", name=name, message=message)
    if list(tools[0]) != list(tools[1]):
        return CacheMiss(cause="tool", message="the tools are in another order")
    for was, section in find_changed_sections(told, now):
        found = section or was
        if found is not None:
            source = found.source or Source(uri="plugin:nexus")
            message = f"{found.title!r} ({source.uri}) {_change(was is not None, section is not None)}"
            return CacheMiss(cause="section", name=found.title, source=source, message=message)
    return None


def _blames(
    call: CallFacts, before: CallFacts, minimum: int, blame_epoch: Callable[[], CacheMiss | None]
) -> Iterator[CacheMiss]:
    """What is to blame, the likeliest first; there is always something."""
    if before.sent is not None and before.sent < minimum:
        short = f"the beginning has {before.sent:,} tokens, and {call.model} caches none below {minimum:,}"
        yield CacheMiss(cause="short", message=short)
    if call.model != before.model:
        yield CacheMiss(cause="model", name=call.model, message=f"{call.model} was asked instead of {before.model}")
    if call.epoch != before.epoch:
        blame = blame_epoch()
        if blame is not None:
            yield blame
    if call.compaction != before.compaction:
        yield CacheMiss(cause="compaction", message="a summary took the place of earlier turns")
    if call.cut != before.cut:
        yield CacheMiss(cause="cut", message="earlier turns were left out so that it fits")
    if call.at - before.at > CACHE_LIFETIME_MS:
        minutes = (call.at - before.at) // 60_000
        yield CacheMiss(cause="time", message=f"the previous call was {minutes:,} minutes ago, and caches last five")
    yield CacheMiss(cause="unknown", message="both calls start alike, and nothing shows why it was not cached")


def _change(was: bool, is_now: bool) -> str:
    return "has changed" if was and is_now else "is new" if is_now else "is gone"


def get_cache_report(runtime: SessionRuntime, cache: ThreadCache, step: Step, settings: Settings) -> CacheReport:
    """What the call that a reply answers could expect of the cache, and what it got.

    Args:
        runtime: Shared by all sessions of the Nexus.
        cache: Its thread.
        step: The reply.
        settings: What is known of models.
    """
    facts = _facts(cache, step)
    if facts is None:
        return CacheReport()
    earlier = next(
        (each for each in reversed(cache.read_newest(step.id, lambda _: True)[:-1]) if each.kind == "reply"), None
    )
    before = None if earlier is None else _facts(cache, earlier)
    if earlier is not None and before is None:
        return CacheReport(got=facts.cached)
    return _report(facts, before, runtime.prefixes, runtime.get_model(facts.model, settings).cache_minimum)


def list_cache_reports(
    steps: Iterable[Step], prefixes: PrefixStore, cache_minimum: Callable[[str], int]
) -> Iterator[tuple[Step, CacheReport]]:
    """What became of the cache in every call of a thread, the newest first; each step is looked at once.

    Args:
        steps: The thread, the newest step first.
        prefixes: What was frozen, by its address.
        cache_minimum: The shortest beginning that a model's provider caches, by the model's name.
    """
    later: tuple[Step, CallFacts | None] | None = None
    for call in _calls(steps):
        if later is not None:
            yield later[0], _between(later[1], call[1], prefixes, cache_minimum)
        later = call
    if later is not None:
        facts = later[1]
        yield later[0], CacheReport() if facts is None else _report(facts, None, prefixes, 0)


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
    facts: CallFacts | None, before: CallFacts | None, prefixes: PrefixStore, cache_minimum: Callable[[str], int]
) -> CacheReport:
    if facts is None:
        return CacheReport()
    if before is None:
        return CacheReport(got=facts.cached)
    return _report(facts, before, prefixes, cache_minimum(facts.model))


def _report(facts: CallFacts, before: CallFacts | None, prefixes: PrefixStore, minimum: int) -> CacheReport:
    def blame() -> CacheMiss | None:
        if before is None:
            return None
        old, new = prefixes.find(before.epoch), prefixes.find(facts.epoch)
        if old is None or new is None:  # gone from the ledger
            return None
        return compare_prefixes(
            old, new, prefixes.read_sections(old.sections_digest), prefixes.read_sections(new.sections_digest)
        )

    return report_cache(facts, before, minimum, blame)


def _facts(cache: ThreadCache, step: Step) -> CallFacts | None:
    return None if step.kind != "reply" else _facts_of(step, Turn(cache.read_turn(step.id)).get_rendered("model"))


def _facts_of(step: Step, model: object) -> CallFacts | None:
    """What is known of the call that a reply answers; None where nothing says how it was sent."""
    usage, sent, state = get_step_usage(step), step.data.get("sent"), SessionState(None, step, None)
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
