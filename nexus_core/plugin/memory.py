"""Helpers for plugins that find memories: search in turns, ranking of other texts, rules of the user.

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from nexus_core.ledger.senders import read_sender
    from nexus_core.memory.forgotten_memories import read_forgotten_memories
    from nexus_core.memory.recall import MIN_MEMORY_SCORE, format_memory
    from nexus_core.memory.search import map_facet_steps, search_steps
    from nexus_core.memory.statements import find_lasting_rules, find_rules, keep_typed_text
    from nexus_core.memory.text_scores import rank_texts
    from nexus_core.memory.words import find_query_words
    from nexus_core.types.memory import STEP_FACETS
    from nexus_core.types.memory import MemoryOrigin as MemoryOrigin  # noqa: PLC0414 - a type, and not in __all__

_HOMES = {
    "MIN_MEMORY_SCORE": "nexus_core.memory.recall:MIN_MEMORY_SCORE",
    "STEP_FACETS": "nexus_core.types.memory:STEP_FACETS",
    "MemoryOrigin": "nexus_core.types.memory:MemoryOrigin",
    "find_query_words": "nexus_core.memory.words:find_query_words",
    "find_lasting_rules": "nexus_core.memory.statements:find_lasting_rules",
    "find_rules": "nexus_core.memory.statements:find_rules",
    "format_memory": "nexus_core.memory.recall:format_memory",
    "rank_texts": "nexus_core.memory.text_scores:rank_texts",
    "read_forgotten_memories": "nexus_core.memory.forgotten_memories:read_forgotten_memories",
    "map_facet_steps": "nexus_core.memory.search:map_facet_steps",
    "read_sender": "nexus_core.ledger.senders:read_sender",
    "search_steps": "nexus_core.memory.search:search_steps",
    "keep_typed_text": "nexus_core.memory.statements:keep_typed_text",
}
"""The definition of each name, as `module:attribute`."""

__all__ = [
    "MIN_MEMORY_SCORE",
    "STEP_FACETS",
    "find_lasting_rules",
    "find_query_words",
    "find_rules",
    "format_memory",
    "keep_typed_text",
    "map_facet_steps",
    "rank_texts",
    "read_forgotten_memories",
    "read_sender",
    "search_steps",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
