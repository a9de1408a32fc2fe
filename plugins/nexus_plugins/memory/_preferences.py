"""Preferences: rules in user messages of earlier sessions. Text of tools, files and the web is never read."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core import Source
from nexus_core.plugin import Memory
from nexus_core.plugin.ledgers import read_forgotten_steps
from nexus_core.plugin.memory import find_rules, keep_typed_text, rank_texts, read_sender

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.plugin import Ledger, MemoryQuery, Step
    from nexus_core.plugin.ledgers import SessionRecord

MAX_SESSIONS = 200
"""Sessions that are read, those used last."""
MAX_STEPS = 2000
"""Steps of each session that are read, the newest."""
MAX_CACHED_SESSIONS = 400
_LASTING = re.compile(
    r"\b(?:always|never|from now on|in (?:the )?future|remember|by default|every time|whenever"
    r"|i(?:['\u2019]d| would)? (?:always )?(?:want|prefer|like|expect)|do ?n['\u2019]?t ever|as a rule)\b",
    re.IGNORECASE,
)
"""Words of a rule that holds beyond its turn."""
_cache: OrderedDict[tuple[str, str], tuple[tuple[str, Memory], ...]] = OrderedDict()
"""The senders and rules of a session by ledger and newest step: a session that has not moved is not read again."""


def search_preferences(ledger: Ledger, query: MemoryQuery) -> list[Memory]:
    """Return the rules that match a query, the best first; of those with the same words, the newest."""
    rules = list({rule.text.casefold(): rule for rule in reversed(list_preferences(ledger, query))}.values())
    found = rank_texts(query.text, [rule.text for rule in rules], entities=query.entities, limit=query.limit)
    return [replace(rules[each.place], score=each.score, reason=each.reason) for each in found]


def list_preferences(ledger: Ledger, query: MemoryQuery) -> list[Memory]:
    """Return the rules of the user in a query's directory, the newest first."""
    rules = {
        rule.id: rule
        for record in _list_sessions(ledger, query)
        if record.label != query.session
        for sender, rule in _read_rules(ledger, record)  # forks share steps
        if query.directory is None or sender == query.identity
    }
    return sorted(rules.values(), key=lambda rule: (-rule.time, rule.id))


def _list_sessions(ledger: Ledger, query: MemoryQuery) -> list[SessionRecord]:
    here = None if query.directory is None else str(query.directory)
    return [
        record
        for record in ledger.sessions(status=None)
        if (here is None or record.payload.cwd == here) and record.payload.parent is None  # an agent asks a worker
    ][:MAX_SESSIONS]


def _read_rules(ledger: Ledger, record: SessionRecord) -> tuple[tuple[str, Memory], ...]:
    """Return the rules in a session, each with the sender of its message."""
    if record.tip is None:
        return ()
    key = ledger.url, f"{record.label} {record.tip}"
    if key not in _cache or ledger.url.startswith("memory:"):  # such ledgers share a URL
        steps = ledger.thread(record.tip, limit=MAX_STEPS)
        forgotten = {name for step in steps if step.kind == "forget" for name in read_forgotten_steps(step.data)}
        _cache[key] = tuple(
            (read_sender(step), rule)
            for step in steps
            if step.id not in forgotten
            for rule in _find_step_rules(step, record.label)
        )
        while len(_cache) > MAX_CACHED_SESSIONS:
            _cache.popitem(last=False)
    return _cache[key]


def _find_step_rules(step: Step, session: str) -> Iterator[Memory]:
    """Yield the lasting rules in the user messages of a step, as they were given."""
    if step.kind not in ("input", "turn") or any(step.payload.kinds):
        return
    for message in step.messages:
        if message.role != "user" or message.name or message.tool_results:
            continue
        for sentence in find_rules(keep_typed_text(message.content)):
            if _LASTING.search(sentence) and not sentence.rstrip().endswith("?"):
                yield Memory(
                    text=sentence,
                    kind="preference",
                    source=Source(uri=f"step:{step.id}"),
                    session=session,
                    time=step.created,
                )
