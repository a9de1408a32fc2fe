"""Steps and calls as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.dialects.neutral import to_json

if TYPE_CHECKING:
    from nexus_core.session.steps.recorded import CallKey, RecordedCall
    from nexus_core.values.ledger import Step


def step_facts(step: Step) -> dict[str, object]:
    """All that is known of a step, its messages in Nexus's own form."""
    return {
        "id": step.id,
        "turn": step.turn,
        "parent": step.parent,
        "branch": step.branch,
        "position": step.position,
        "kind": step.kind,
        "closes": step.closes,
        "tokens": step.tokens,
        "counter": step.counter,
        "total": step.total,
        "compaction": step.compaction,
        "created": step.created,
        "digest": step.digest,
        "chain": step.chain,
        "data": dict(step.data),
        "messages": [to_json(message) for message in step.messages],
    }


def call_facts(call: RecordedCall) -> dict[str, object]:
    """A call, with the key by which its result is recorded."""
    facts: dict[str, object] = {
        "key": written_key(call.key),
        "id": call.id,
        "name": call.name,
        "arguments": dict(call.arguments),
    }
    return facts if call.raw is None else facts | {"raw": call.raw}


def written_key(key: CallKey) -> str:
    """Which call is meant, in one word."""
    return f"{key.step}:{key.place}"
