"""What a system prompt was put together from, as it is written down beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.types.digest import blake2b
from nexus_core.types.prompt import merge_section_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.types.messages import JSON
    from nexus_core.types.prompt import Section

_RULES, _SOUL = "AGENTS.md", "SOUL.md"


def system_context(sections: Sequence[Section], *, version: int, now: int) -> JSON:
    """Digests of the workspace's rules and the agent's soul, who the agent is, what it can do, and since when.

    Args:
        sections: The static zone; what else they know (`Section.data`) stands beside that.
        version: How many epochs the session has had, with this one.
        now: The time, in milliseconds since 1970.
    """
    usual: dict[str, dict[str, object]] = {
        "workspace": {"agentsMdHash": _digest(sections, _RULES), "version": version},
        "persona": {"id": None, "soulHash": _digest(sections, _SOUL)},
        "nexusEnv": {"capabilityCount": 0, "snapshotAt": now},
    }
    known = merge_section_data(sections)
    facts = {group: {**named, **_group(known, group)} for group, named in usual.items()}
    return {**facts, **{group: known[group] for group in known if group not in usual}, "memory": None}


def _group(known: JSON, name: str) -> dict[str, object]:
    group = known.get(name)
    return dict(group) if isinstance(group, dict) else {}


def _digest(sections: Sequence[Section], file: str) -> str | None:
    texts = [
        section.text
        for section in sections
        if section.source and section.source.is_file and section.source.uri.endswith(f"/{file}")
    ]
    if not texts:
        return None
    return blake2b("\n\n".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
