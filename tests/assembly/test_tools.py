"""The tools that a caller gives."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core import MessageError, Nexus
from nexus_core.assembly.tools import offer_tools, read_tools
from nexus_core.rendering.core import UNIFIED
from nexus_core.values.conversation import Tool
from nexus_core.values.settings import Settings


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


def offered(*tools: Tool) -> dict[str, str]:
    """What became of the tools of a plugin, by name."""
    added = [(tool, "shop") for tool in tools]
    return {each.tool.name: each.refusal for each in offer_tools((), added, UNIFIED, Settings({}))}


@pytest.mark.parametrize("name", ["", " "])
def test_a_tool_of_a_plugin_without_a_name_reaches_no_model(name: str) -> None:
    assert offered(Tool(name=name), Tool(name="look")) == {name: "it has no name", "look": ""}


def test_a_tool_of_a_plugin_that_is_no_json_costs_that_tool_and_not_the_call() -> None:
    broken = Tool(name="buy", parameters={"properties": {"a": object()}})

    became = offered(broken, Tool(name="look"))

    assert became["buy"].startswith("JSON has no word for")
    assert became["buy"].endswith("at parameters.properties.a")
    assert became["look"] == ""


def test_what_a_provider_runs_needs_no_name_of_its_own() -> None:
    assert offered(Tool(name="", extra={"_builtin": True, "type": "web_search"})) == {"": ""}
