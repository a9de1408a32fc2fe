"""Why a call did not find its beginning in the cache."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core import Section, Source, Tool
from nexus_core.history.truncation import MessageKey, TruncationPoint
from nexus_core.request.cache_report import LONG_CACHE_LIFETIME_MS, CallFacts, compare_prefixes, report_cache
from nexus_core.request.prefix import Prefix
from nexus_core.types.assembled import CacheMiss

BEFORE = CallFacts("m", "e1", None, None, 5000, 0, 0)
EPOCH_BLAME = CacheMiss(cause="section", name="Rules", message="rules changed")


def after(**changed: Any) -> CallFacts:
    return BEFORE._replace(**{"cached": 0, "sent": 6000, "at": 60_000, **changed})


def report(call: CallFacts, before: CallFacts | None = BEFORE, minimum: int = 1024) -> Any:
    return report_cache(call, before, minimum, lambda: EPOCH_BLAME)


def test_a_beginning_that_was_found_is_a_hit() -> None:
    found = report(after(cached=4900))

    assert (found.verdict, found.expected, found.got, found.blame) == ("hit", 5000, 4900, None)
    assert str(found) == "4,900 of 5,000 expected tokens came from the cache"


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (after(model="n"), "model"),
        (after(epoch="e2"), "section"),
        (after(compaction="c"), "compaction"),
        (after(cut=TruncationPoint("oldest_first", MessageKey("s", 0))), "cut"),
        (after(at=301_000), "time"),
        (after(at=400_000, sent_at=299_000), "unknown"),
        (after(at=301_000, epoch="e2"), "time"),
        (after(at=301_000, epoch="e2", cached=2000), "section"),
        (after(at=301_000, cached=2000), "time"),
        (after(), "unknown"),
        (after(model="n", epoch="e2", at=10**9), "model"),
    ],
)
def test_the_first_change_is_to_blame(call: CallFacts, cause: str) -> None:
    found = report(call)

    assert (found.verdict, found.blame.cause) == ("miss", cause)


def test_an_expired_cache_says_after_how_long() -> None:
    found = report(after(at=541_000))

    assert str(found) == (
        "0 of 5,000 expected tokens came from the cache: expired after 5 min, the previous call was 9 min earlier"
    )


def test_a_cache_for_an_hour_expires_later() -> None:
    before = BEFORE._replace(lifetime=LONG_CACHE_LIFETIME_MS)

    assert report(after(at=541_000), before).blame.cause == "unknown"
    assert str(report(after(at=3_660_000), before).blame).startswith("expired after 60 min")


def test_a_beginning_that_is_too_short_says_so() -> None:
    found = report(after(), BEFORE._replace(sent=800))

    assert found.blame.cause == "short"
    assert "1,024" in str(found)


def test_a_first_call_expects_nothing() -> None:
    assert report(after(), None).blame.cause == "first"


def test_where_nobody_counted_nothing_is_known() -> None:
    assert report(after(cached=None)).verdict == "unknown"
    assert report(after(), BEFORE._replace(sent=None)).verdict == "unknown"
    assert str(report(after(cached=None))) == "unknown"


def epoch(*tools: str, renderer: str = "labelled") -> Prefix:
    return Prefix("d", "", tuple(Tool(name=name) for name in tools), {"renderer": renderer}, "", {})


def rules(text: str) -> Section:
    return Section("layer-00000", title="Rules", text=text, source=Source(uri="/w/NEXUS.md"))


@pytest.mark.parametrize(
    ("pair", "sections", "blamed"),
    [
        ((epoch("a"), epoch("a", "b")), ("x", "x"), ("tool", "b", "the tool 'b' is new")),
        ((epoch("a", "b"), epoch("a")), ("x", "x"), ("tool", "b", "the tool 'b' is gone")),
        ((epoch("a", "b"), epoch("b", "a")), ("x", "x"), ("tool", "", "the tools are in another order")),
        ((epoch("a"), epoch("b")), ("x", "y"), ("tool", "b", "the tool 'b' is new")),
        ((epoch("a"), epoch("a")), ("x", "y"), ("section", "Rules", "'Rules' (/w/NEXUS.md) has changed")),
        ((epoch(), epoch(renderer="tagged")), ("x", "y"), ("renderer", "tagged", "the renderer is tagged now")),
    ],
)
def test_what_differs_between_epochs_is_named(
    pair: tuple[Prefix, Prefix], sections: tuple[str, str], blamed: tuple[str, str, str]
) -> None:
    found = compare_prefixes(*pair, [rules(sections[0])], [rules(sections[1])])

    assert found is not None
    assert (found.cause, found.name, found.message) == blamed


def test_epochs_that_say_the_same_are_not_to_blame() -> None:
    assert compare_prefixes(epoch("a"), epoch("a"), [rules("x")], [rules("x")]) is None
