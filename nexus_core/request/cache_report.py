"""Cache reports: how much of a call came from the provider's prompt cache, and why not more."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.truncation import read_truncation_point
from nexus_core.request.prefix import find_changed_sections
from nexus_core.thread.state import Turn
from nexus_core.types.assembled import CacheMiss, CacheReport
from nexus_core.types.payloads import RenderedPayload, ReplyPayload
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core.history.truncation import TruncationPoint
    from nexus_core.request.prefix import Prefix, PrefixStore
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.types.ledger import Step
    from nexus_core.types.prompt import Section
    from nexus_core.types.settings import Settings

CACHE_LIFETIME_MS, LONG_CACHE_LIFETIME_MS = 5 * 60 * 1000, 60 * 60 * 1000
"""Providers cache a prefix for at least five minutes after its last use, or for an hour if the call asks for it."""
MS_PER_MINUTE = 60 * 1000
CACHE_TOLERANCE = 0.75
"""A smaller share of the expected tokens is a miss. It is not 1, because providers cache in blocks and count tokens in
their own way."""


class CallFacts(NamedTuple):
    """The facts of a call that decide what the provider could cache.

    Attributes:
        model: The name of the model.
        epoch: The digest of the prefix.
        cut: The truncation point of the history.
        compaction: The compaction that replaced earlier turns.
        sent: Tokens of the call by our count; None if they were not counted.
        cached: Tokens from the cache; None if the provider did not report them.
        at: When its reply was recorded, in milliseconds since 1970.
        sent_at: When it was sent, so that the time of the reply does not count as a pause; None if unknown.
        lifetime: How long the provider caches it, in milliseconds.
    """

    model: str
    epoch: str
    cut: TruncationPoint | None
    compaction: str | None
    sent: int | None
    cached: int | None
    at: int
    sent_at: int | None = None
    lifetime: int = CACHE_LIFETIME_MS


def get_cache_report(runtime: SessionRuntime, cache: ThreadCache, step: Step, settings: Settings) -> CacheReport:
    """Return the cache report of the call that a reply answers.

    Args:
        runtime: Shared by all sessions of the Nexus.
        cache: The session's thread.
        step: The step with the reply.
        settings: Settings, which may describe the model.
    """
    facts = _read_call_facts(cache, step)
    if facts is None:
        return CacheReport()
    earlier = next(
        (each for each in reversed(cache.read_newest(step.id, lambda _: True)[:-1]) if each.kind == "reply"), None
    )
    before = None if earlier is None else _read_call_facts(cache, earlier)
    if earlier is not None and before is None:
        return CacheReport(got=facts.cached)
    return _build_report(facts, before, runtime.prefixes, runtime.get_model(facts.model, settings).cache_minimum)


def find_expiry(reply: Step, at: int) -> CacheMiss | None:
    """Return the cache miss of a call that comes too late after a reply; None if it comes in time.

    Args:
        reply: The step with the reply to the call before.
        at: When the later call is sent, in milliseconds since 1970.
    """
    return _find_expiry(reply.created, at, get_cache_lifetime(reply))


def _find_expiry(before: int, at: int, lifetime: int) -> CacheMiss | None:
    if at - before <= lifetime:
        return None
    pause, limit = (at - before) // MS_PER_MINUTE, lifetime // MS_PER_MINUTE
    return CacheMiss(cause="time", message=f"expired after {limit} min, the previous call was {pause:,} min earlier")


def get_cache_lifetime(reply: Step) -> int:
    """Return how long a provider caches the call of a reply in milliseconds, by what it reported to have written."""
    usage = reply.payload.usage if isinstance(reply.payload, ReplyPayload) else None
    if usage is not None and 2 * usage.cache_write_1h_tokens > usage.cache_write_tokens:
        return LONG_CACHE_LIFETIME_MS
    return CACHE_LIFETIME_MS


def list_cache_reports(
    steps: Iterable[Step], prefixes: PrefixStore, cache_minimum: Callable[[str], int]
) -> Iterator[tuple[Step, CacheReport]]:
    """Yield the cache report of every reply of a thread, newest first, in one pass.

    Args:
        steps: The steps of the thread, newest first.
        prefixes: The stored prefixes.
        cache_minimum: Returns the smallest prefix in tokens that a model's provider caches.
    """
    later: tuple[Step, CallFacts | None] | None = None
    for call in _find_calls(steps):
        if later is not None:
            yield later[0], _report_between(later[1], call[1], prefixes, cache_minimum)
        later = call
    if later is not None:
        facts = later[1]
        yield later[0], CacheReport() if facts is None else _build_report(facts, None, prefixes, 0)


def _find_calls(steps: Iterable[Step]) -> Iterator[tuple[Step, CallFacts | None]]:
    """Yield the replies of a thread, newest first, with the facts of their calls.

    The rendered step before a reply names its model.
    """
    unmatched: list[Step] = []
    sent_at: dict[str, int] = {}
    newer: Step | None = None
    for step in steps:
        if newer is not None and newer.kind == "reply":
            sent_at[newer.id] = step.created
        newer = step
        if unmatched and unmatched[0].turn != step.turn:
            yield from ((reply, None) for reply in unmatched)
            unmatched = []
        if step.kind == "reply":
            unmatched.append(step)
        elif isinstance(step.payload, RenderedPayload) and (model := step.payload.model) is not None:
            yield from ((reply, _build_call_facts(reply, model, sent_at.pop(reply.id, None))) for reply in unmatched)
            unmatched = []
    yield from ((reply, None) for reply in unmatched)


def _read_call_facts(cache: ThreadCache, step: Step) -> CallFacts | None:
    if step.kind != "reply":
        return None
    turn = cache.read_turn(step.id)
    return _build_call_facts(step, Turn(turn).rendered.model, turn[-2].created if turn[1:] else None)


def _build_call_facts(step: Step, model: str | None, sent_at: int | None) -> CallFacts | None:
    """Return the facts of a reply's call; None if it was not assembled here.

    The call was sent when the step before the reply was recorded.
    """
    reply = step.payload
    if model is None or not isinstance(reply, ReplyPayload) or not reply.epoch:
        return None
    return CallFacts(
        model=model,
        epoch=reply.epoch,
        cut=read_truncation_point(reply.cut),
        compaction=step.compaction,
        sent=reply.sent,
        cached=None if reply.usage is None else reply.usage.cached_input_tokens,
        at=step.created,
        sent_at=sent_at,
        lifetime=get_cache_lifetime(step),
    )


def _report_between(
    facts: CallFacts | None, before: CallFacts | None, prefixes: PrefixStore, cache_minimum: Callable[[str], int]
) -> CacheReport:
    if facts is None:
        return CacheReport()
    if before is None:
        return CacheReport(got=facts.cached)
    return _build_report(facts, before, prefixes, cache_minimum(facts.model))


def _build_report(facts: CallFacts, before: CallFacts | None, prefixes: PrefixStore, minimum: int) -> CacheReport:
    def blame() -> CacheMiss | None:
        if before is None:
            return None
        old, new = prefixes.find(before.epoch), prefixes.find(facts.epoch)
        if old is None or new is None:  # the ledger lost it
            return None
        return compare_prefixes(
            old, new, prefixes.read_sections(old.sections_digest), prefixes.read_sections(new.sections_digest)
        )

    return report_cache(facts, before, minimum, blame)


def report_cache(
    call: CallFacts, before: CallFacts | None, minimum: int, blame_prefix: Callable[[], CacheMiss | None]
) -> CacheReport:
    """Return expected and actual cached tokens of a call, and why they differ.

    Args:
        call: The call.
        before: The call before it in the session; None for the first.
        minimum: The smallest prefix in tokens that the model's provider caches; 0 if unknown.
        blame_prefix: Returns the difference between the prefixes of both calls.
    """
    if before is None:
        message = "this was the first call, so nothing was cached yet"
        return CacheReport(expected=0, got=call.cached, blame=CacheMiss(cause="first", message=message))
    if before.sent is None or call.cached is None:
        return CacheReport(expected=before.sent, got=call.cached)
    if call.cached >= before.sent * CACHE_TOLERANCE:
        return CacheReport(expected=before.sent, got=call.cached)
    blame = next(_find_causes(call, before, minimum, blame_prefix))
    return CacheReport(expected=before.sent, got=call.cached, blame=blame)


def _find_causes(
    call: CallFacts, before: CallFacts, minimum: int, blame_prefix: Callable[[], CacheMiss | None]
) -> Iterator[CacheMiss]:
    """Yield possible causes of a cache miss, likeliest first, at least one."""
    expiry = _find_expiry(before.at, call.at if call.sent_at is None else call.sent_at, before.lifetime)
    if before.sent is not None and before.sent < minimum:
        short = f"the beginning has {before.sent:,} tokens, and {call.model} caches none below {minimum:,}"
        yield CacheMiss(cause="short", message=short)
    if call.model != before.model:
        yield CacheMiss(cause="model", name=call.model, message=f"{call.model} was asked instead of {before.model}")
    if expiry is not None and not call.cached:  # a change further on leaves what comes before it in the cache
        yield expiry
    if call.epoch != before.epoch:
        blame = blame_prefix()
        if blame is not None:
            yield blame
    if call.compaction != before.compaction:
        yield CacheMiss(cause="compaction", message="a summary took the place of earlier turns")
    if call.cut != before.cut:
        yield CacheMiss(cause="cut", message="earlier turns were left out so that it fits")
    if expiry is not None:
        yield expiry
    yield CacheMiss(cause="unknown", message="both calls start alike, and nothing shows why it was not cached")


def compare_prefixes(
    before: Prefix, after: Prefix, sections_before: Sequence[Section], sections_after: Sequence[Section]
) -> CacheMiss | None:
    """Return the first difference between two prefixes; None if there is none.

    Tools come before sections, as providers read them.
    """
    renderers = before.key.get("renderer"), after.key.get("renderer")
    if renderers[0] != renderers[1]:
        return CacheMiss(cause="renderer", name=str(renderers[1]), message=f"the renderer is {renderers[1]} now")
    tools = {tool.name: tool for tool in before.tools}, {tool.name: tool for tool in after.tools}
    for name in dict.fromkeys([*tools[1], *tools[0]]):
        if tools[0].get(name) != tools[1].get(name):
            message = f"the tool {name!r} {_describe_change(name in tools[0], name in tools[1])}"
            return CacheMiss(cause="tool", name=name, message=message)
    if list(tools[0]) != list(tools[1]):
        return CacheMiss(cause="tool", message="the tools are in another order")
    for was, section in find_changed_sections(sections_before, sections_after):
        changed = section or was
        if changed is not None:
            source = changed.source or Source(uri="plugin:nexus")
            message = f"{changed.title!r} ({source.uri}) {_describe_change(was is not None, section is not None)}"
            return CacheMiss(cause="section", name=changed.title, source=source, message=message)
    return None


def _describe_change(was: bool, is_now: bool) -> str:
    return "has changed" if was and is_now else "is new" if is_now else "is gone"
