"""Preferences: rules in user messages of earlier sessions.

Text of tools, files and the web is never read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from nexus_core import Source
from nexus_core.plugin import Memory
from nexus_core.plugin.ledgers import StepQuery
from nexus_core.plugin.memory import find_lasting_rules, keep_typed_text, map_facet_steps, rank_texts, read_sender

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.plugin import Ledger, MemoryQuery, Step
    from nexus_core.plugin.ledgers import IndexedStep

MAX_RULE_STEPS = 1_000
"""Messages with rules that are used, the newest."""
MAX_CACHED_STEPS = 4 * MAX_RULE_STEPS


class _StatedRules(NamedTuple):
    """The rules of a message, its sender and its session's directory."""

    rules: tuple[Memory, ...]
    sender: str
    directory: str | None


_cache: WeakKeyDictionary[Ledger, dict[IndexedStep, _StatedRules]] = WeakKeyDictionary()
"""Rules by ledger and step, so that each message is read once. The index of the ledger says which of them exist."""


def search_preferences(ledger: Ledger, query: MemoryQuery) -> list[Memory]:
    """Return the rules that match a query, best first, without duplicates."""
    rules = list({rule.text.casefold(): rule for rule in reversed(list_preferences(ledger, query))}.values())
    texts = [rule.text for rule in rules]
    found = rank_texts(query.text, texts, entities=query.entities, limit=query.limit, min_score=query.min_score)
    return [replace(rules[each.place], score=each.score, reason=each.reason) for each in found]


def list_preferences(ledger: Ledger, query: MemoryQuery) -> list[Memory]:
    """Return the rules of the user in a query's directory, the newest first."""
    here = None if query.directory is None else str(query.directory)
    own = (query.session,) if query.session else ()
    asked = StepQuery(text="", directory=here, facets=("rule",), exclude_sessions=own, limit=MAX_RULE_STEPS)
    known = _cache.setdefault(ledger, {})
    if len(known) > MAX_CACHED_STEPS:
        known.clear()

    def read_rules(step: Step, session: str) -> _StatedRules:
        record = ledger.session(session) if session else None
        is_worker = record is not None and record.payload.parent is not None  # an agent asks a worker
        directory = "" if is_worker or record is None else record.payload.cwd
        return _StatedRules(tuple(_find_step_rules(step, session)), read_sender(step), directory)

    rules = {
        rule.id: rule
        for stated in map_facet_steps(ledger, asked, read_rules, known)
        if stated.directory != "" and (here is None or (stated.directory == here and stated.sender == query.identity))
        for rule in stated.rules
    }
    return sorted(rules.values(), key=lambda rule: (-rule.time, rule.id))


def _find_step_rules(step: Step, session: str) -> Iterator[Memory]:
    """Yield the lasting rules in the user messages of a step, as they were given."""
    if step.kind not in ("input", "turn") or any(step.payload.kinds):
        return
    for message in step.messages:
        if message.role != "user" or message.name or message.tool_results:
            continue
        for sentence in find_lasting_rules(keep_typed_text(message.content)):
            yield Memory(
                text=sentence,
                kind="preference",
                source=Source(uri=f"step:{step.id}"),
                session=session,
                time=step.created,
            )
