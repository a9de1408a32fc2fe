"""What became of the facts of a conversation when a summary took its place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core.compaction.evidence.shapes import UNSPACED
from nexus_core.types.compaction import FACT_CLASSES, Fidelity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from nexus_core.compaction.evidence.facts import Key
    from nexus_core.types.compaction import Fact, FactClass

_MOST_HITS = 50
"""So many places of a text are looked at for one fact; more would only be parts of longer words."""
_UNSPACED = re.compile(f"[{UNSPACED}]")
_JOINTS = ("_", "/", "\\", ".", "-")


def measure_fidelity(
    facts: Iterable[Fact], text: str, kept: Collection[Key] = frozenset()
) -> dict[FactClass, Fidelity]:
    """What became of facts, by class; classes of which there was none are left out.

    Args:
        facts: What was known before.
        text: What the model reads instead: the summary with all that belongs to it.
        kept: The facts of the messages that stay as they are, by class and text.
    """
    retained: dict[FactClass, list[str]] = {kind: [] for kind in FACT_CLASSES}
    recoverable: dict[FactClass, dict[str, str]] = {kind: {} for kind in FACT_CLASSES}
    lost: dict[FactClass, list[str]] = {kind: [] for kind in FACT_CLASSES}
    for fact in facts:
        if is_retained(fact, text, kept):
            retained[fact.kind].append(fact.text)
        elif fact.step:
            recoverable[fact.kind][fact.text] = fact.step
        else:
            lost[fact.kind].append(fact.text)
    found = {
        kind: Fidelity(retained=tuple(retained[kind]), recoverable=recoverable[kind], lost=tuple(lost[kind]))
        for kind in FACT_CLASSES
    }
    return {kind: each for kind, each in found.items() if each.total}


def is_retained(fact: Fact, text: str, kept: Collection[Key] = frozenset()) -> bool:
    """Whether a model still reads a fact."""
    return (fact.kind, fact.text) in kept or stands_in(fact.text, text)


def stands_in(words: str, text: str) -> bool:
    """Whether words stand in a text by themselves, not as a part of longer ones."""
    place = -1
    for _ in range(_MOST_HITS):
        place = text.find(words, place + 1)
        if place < 0:
            return False
        end = place + len(words)
        if not _goes_on(text[max(place - 1, 0) : place], words[0]) and not _goes_on(text[end : end + 1], words[-1]):
            return True
        if _ends_sentence(text[end : end + 2]) and not _goes_on(text[max(place - 1, 0) : place], words[0]):
            return True
    return False


def fidelity_to_json(fidelity: Mapping[FactClass, Fidelity]) -> dict[str, Any]:
    """Numbers by class, as they are written down with a compaction; the facts themselves stand beside them."""
    return {
        kind: {"retained": len(each.retained), "recoverable": len(each.recoverable), "lost": len(each.lost)}
        for kind, each in fidelity.items()
    }


def _goes_on(neighbour: str, end: str) -> bool:
    """Whether a word goes on beyond its end."""
    if end.isascii() and _UNSPACED.match(neighbour):
        return False
    return end.isalnum() and (neighbour.isalnum() or neighbour in _JOINTS)


def _ends_sentence(after: str) -> bool:
    return after[:1] in (".", "-") and not after[1:].isalnum()
