"""An agent reports the memories that were added to a message."""

from __future__ import annotations

import json
from pathlib import Path

from nexus_core.agents import MemoryEvent
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, called, replied


def test_injected_memories_are_an_event_once(make_nexus: MakeNexus, nexus_home: Path) -> None:
    (nexus_home / "config.json").write_text(json.dumps({"memory": {"enabled": True}}))
    note = "The auth middleware lives in services/gateway/auth.py."
    nexus = make_nexus({".nexus3/memory/gateway.md": f"# Auth middleware\n\n{note}\n"})

    def work() -> str:
        """Work."""
        return "worked"

    model = FakeModel(called("work", {}), replied("In the gateway."), replied("You are welcome."))
    agent = nexus.agent("s", tools=[work], provider=model.provider)
    events = list(agent.run("Where is the auth middleware?"))
    later = list(agent.run("Thanks."))

    (event,) = (each for each in events if isinstance(each, MemoryEvent))
    assert note in model.contexts[0].messages[-1].content
    assert any("gateway.md" in str(each.source) for each in event.memories)
    assert all(each.reason for each in event.memories)
    assert [each for each in later if isinstance(each, MemoryEvent)] == []
