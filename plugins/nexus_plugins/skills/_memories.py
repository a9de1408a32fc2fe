"""The memory source `skills`: guides whose description matches a message."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core import FileError, Source
from nexus_core.plugin import Memory
from nexus_core.plugin.memory import rank_texts
from nexus_plugins.skills._guides import find_skills, read_guide_text

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import LoadedLayers, MemoryQuery
    from nexus_plugins.skills._guides import SkillGuide

MAX_GUIDE_CHARACTERS = 3000
"""Characters of a guide in a memory; the rest can be read by its name."""


def search_skill_memories(request: Request, loaded: LoadedLayers, query: MemoryQuery) -> list[Memory]:
    """Return the guides whose name and description match a query, the best first."""
    guides = _list_guides(request, loaded)
    texts = [f"{guide.name} {guide.description}" for guide in guides]
    memories: list[Memory] = []
    for found in rank_texts(query.text, texts, entities=query.entities, limit=query.limit, min_score=query.min_score):
        with suppress(FileError):  # `nexus doctor` reports it
            memory = _build_memory(guides[found.place])
            memories.append(replace(memory, score=found.score, reason=found.reason))
    return memories


def list_skill_memories(request: Request, loaded: LoadedLayers, query: MemoryQuery) -> list[Memory]:  # noqa: ARG001 - as a source is called
    """Return all guides, by name."""
    memories: list[Memory] = []
    for guide in _list_guides(request, loaded):
        with suppress(FileError):
            memories.append(_build_memory(guide))
    return memories


def _list_guides(request: Request, loaded: LoadedLayers) -> list[SkillGuide]:
    """Return the guides that the agent may use."""
    skills = find_skills(loaded, request.home)
    return [each.guide for each in skills if request.skills is None or each.guide.name in request.skills]


def _build_memory(guide: SkillGuide) -> Memory:
    text = read_guide_text(guide)
    if len(text) > MAX_GUIDE_CHARACTERS:
        text = f"{text[:MAX_GUIDE_CHARACTERS]}… (`nexus skill show {guide.name}` has all of it)"
    is_own = guide.layer.is_own
    return Memory(
        text=f"{guide.description}\n\n{text}".strip(),
        kind="skill",
        source=Source(uri=str(guide.path), layer=guide.layer.name, trust="user" if is_own else "project"),
        origin="user" if is_own else "file",
        title=guide.name,
    )
