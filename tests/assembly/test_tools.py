"""The tools that a caller gives."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core import MessageError, Nexus
from nexus_core.assembly.tools import read_tools
from nexus_core.values.conversation import Tool


def anthropic(name: str) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}}


def test_two_tools_of_one_name_are_refused_whatever_their_shape() -> None:
    given = [anthropic("look"), Tool(name="read"), {"type": "function", "function": {"name": "look"}}]

    with pytest.raises(MessageError, match="two tools are called 'look'") as caught:
        read_tools(given, "anthropic")

    assert caught.value.path == "tools"


@pytest.mark.parametrize("tool", [anthropic(""), anthropic(" "), Tool(name="")])
def test_a_tool_without_a_name_is_refused(tool: object) -> None:
    with pytest.raises(MessageError, match="a tool has no name"):
        read_tools([tool], "openai")


def test_the_names_of_what_a_provider_runs_are_its_own_business() -> None:
    stores = [{"type": "file_search", "vector_store_ids": [name]} for name in "ab"]

    assert len(read_tools([*stores, {"type": "function", "name": "file_search"}], "responses")) == 3


def test_a_session_with_such_tools_is_refused_before_anything_is_kept() -> None:
    with Nexus(ledger="memory:") as nexus:
        with pytest.raises(MessageError, match="two tools are called 'look'"):
            nexus.session("work", tools=[anthropic("look"), anthropic("look")]).ask("Hello")

        assert nexus.ledger.sessions(status=None) == []
