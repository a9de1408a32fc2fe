"""Why a call did not find its beginning in the provider's cache, told from what is known of two calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.assembly.notices import changed_sections
from nexus_core.types.assembled import CacheMiss, CacheReport
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.assembly.cut import Cut
    from nexus_core.assembly.epoch import Epoch
    from nexus_core.types.prompt import Section

LASTS = 5 * 60 * 1000
"""Milliseconds. So long providers keep a beginning at least, unless they are asked for more."""
NEAR = 0.75
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
    cut: Cut | None
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
    if call.cached >= before.sent * NEAR:
        return CacheReport(expected=before.sent, got=call.cached)
    blame = next(_blames(call, before, minimum, blame_epoch))
    return CacheReport(expected=before.sent, got=call.cached, blame=blame)


def compare_epochs(before: Epoch, after: Epoch, told: Sequence[Section], now: Sequence[Section]) -> CacheMiss | None:
    """The first tool or section by which two epochs differ; providers read tools first."""
    renderers = before.basis.get("renderer"), after.basis.get("renderer")
    if renderers[0] != renderers[1]:
        return CacheMiss(cause="renderer", name=str(renderers[1]), message=f"the renderer is {renderers[1]} now")
    tools = {tool.name: tool for tool in before.tools}, {tool.name: tool for tool in after.tools}
    for name in dict.fromkeys([*tools[1], *tools[0]]):
        if tools[0].get(name) != tools[1].get(name):
            message = f"the tool {name!r} {_change(name in tools[0], name in tools[1])}"
            return CacheMiss(cause="tool", name=name, message=message)
    if list(tools[0]) != list(tools[1]):
        return CacheMiss(cause="tool", message="the tools are in another order")
    for was, section in changed_sections(told, now):
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
    if call.at - before.at > LASTS:
        minutes = (call.at - before.at) // 60_000
        yield CacheMiss(cause="time", message=f"the previous call was {minutes:,} minutes ago, and caches last five")
    yield CacheMiss(cause="unknown", message="both calls start alike, and nothing shows why it was not cached")


def _change(was: bool, is_now: bool) -> str:
    return "has changed" if was and is_now else "is new" if is_now else "is gone"
