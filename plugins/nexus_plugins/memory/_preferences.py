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
    """The rules of a message, as memories of no session, and its sender."""

    rules: tuple[Memory, ...]
    sender: str


_cache: WeakKeyDictionary[Ledger, dict[IndexedStep, _StatedRules]] = WeakKeyDictionary()
"""Rules by ledger and step, so that each message is read once. The index of the ledger says which of them exist, and in
which session: sessions are renamed, moved and deleted."""


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
    asked = StepQuery(
        text="", directory=here, below=False, facets=("rule",), exclude_sessions=own, limit=MAX_RULE_STEPS
    )
    known = _cache.setdefault(ledger, {})
    if len(known) > MAX_CACHED_STEPS:
        known.clear()

    def read_rules(step: Step) -> _StatedRules:
        return _StatedRules(tuple(_find_step_rules(step)), read_sender(step))

    found = map_facet_steps(ledger, asked, read_rules, known)
    if here is not None:
        found = [(stated, name) for stated, name in found if stated.sender == query.identity]
    records = {name: ledger.session(name) for name in {name for stated, name in found if stated.rules and name}}
    rules: dict[str, Memory] = {}
    for stated, name in found:
        record = records.get(name)
        if record is not None and not record.payload.is_subagent:  # an agent asks a subagent
            rules |= {rule.id: replace(rule, session=name) for rule in stated.rules}
    return sorted(rules.values(), key=lambda rule: (-rule.time, rule.id))


def _find_step_rules(step: Step) -> Iterator[Memory]:
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
                time=step.created,
            )
