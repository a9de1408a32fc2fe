"""The tools that a caller gives."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core import MessageError, Nexus, UnknownNameError
from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.rendering import UNIFIED_ROLE
from nexus_core.request.prefix import offer_tools, read_tools
from nexus_core.types.messages import Tool
from nexus_core.types.settings import Settings


def anthropic(name: str) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}}


def test_two_tools_of_one_name_are_refused_whatever_their_shape() -> None:
    given = [anthropic("look"), Tool(name="read"), {"type": "function", "function": {"name": "look"}}]

    with pytest.raises(MessageError, match="two tools are called 'look'") as caught:
        read_tools(given, "anthropic", BUILT_IN_DIALECTS)

    assert caught.value.path == "tools"


@pytest.mark.parametrize("tool", [anthropic(""), anthropic(" "), Tool(name="")])
def test_a_tool_without_a_name_is_refused(tool: object) -> None:
    with pytest.raises(MessageError, match="a tool has no name"):
        read_tools([tool], "openai", BUILT_IN_DIALECTS)


def test_the_names_of_what_a_provider_runs_are_its_own_business() -> None:
    stores = [{"type": "file_search", "vector_store_ids": [name]} for name in "ab"]

    assert len(read_tools([*stores, {"type": "function", "name": "file_search"}], "responses", BUILT_IN_DIALECTS)) == 3


def test_a_session_with_such_tools_is_refused_before_anything_is_kept() -> None:
    with Nexus(ledger="memory:") as nexus:
        with pytest.raises(MessageError, match="two tools are called 'look'"):
            nexus.session("work", tools=[anthropic("look"), anthropic("look")]).ask("Hello")

        assert nexus.ledger.sessions(status=None) == []


SENDS: dict[str, dict[str, Any]] = {
    "anthropic": {**anthropic("send"), "scope": "messaging"},
    "openai": {"type": "function", "function": {"name": "send"}, "scope": "messaging"},
    "openai, inside": {"type": "function", "function": {"name": "send", "scope": "messaging"}},
    "responses": {"type": "function", "name": "send", "parameters": {"type": "object"}, "scope": "messaging"},
    "gemini": {"functionDeclarations": [{"name": "send", "scope": "messaging"}]},
    "neutral": {"name": "send", "scope": "messaging"},
}


@pytest.mark.acceptance("W-06", "C-34")
@pytest.mark.parametrize("shape", SENDS)
def test_a_definition_in_any_shape_may_say_what_the_tool_reaches(shape: str) -> None:
    with Nexus(ledger="memory:") as nexus:
        mine = nexus.assemble(nexus.request(message="Why?", tools=[SENDS[shape]]))
        workers = nexus.assemble(nexus.request(message="Why?", tools=[SENDS[shape]], role="worker", task="Look."))

    assert [tool.scope for tool in mine.tools] == ["messaging"]
    assert workers.tools == ()
    assert not any("messaging" in str(mine.to(api)) for api in ("anthropic", "openai", "responses", "gemini"))


def test_a_scope_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(
        UnknownNameError, match="unknown scope of the tool 'send': 'mesaging'\n  did you mean 'messaging'"
    ):
        read_tools([{**anthropic("send"), "scope": "mesaging"}], "anthropic", BUILT_IN_DIALECTS)


def test_what_else_stands_around_a_definition_stays() -> None:
    (tool,) = read_tools(
        [{"type": "function", "function": {"name": "a"}, "scope": "spawn", "x": 1}], "openai", BUILT_IN_DIALECTS
    )

    assert (tool.scope, tool.extra) == ("spawn", {"_outer": {"x": 1}})


def test_the_scope_of_what_a_provider_runs_is_its_own_business() -> None:
    (tool,) = read_tools([{"type": "web_search", "scope": "news"}], "responses", BUILT_IN_DIALECTS)

    assert tool.scope == "general"


def offered(*tools: Tool) -> dict[str, str]:
    """What became of the tools of a plugin, by name."""
    added = [(tool, "shop") for tool in tools]
    return {each.tool.name: each.refusal for each in offer_tools((), added, UNIFIED_ROLE, Settings({}))}


@pytest.mark.parametrize("name", ["", " "])
def test_a_tool_of_a_plugin_without_a_name_reaches_no_model(name: str) -> None:
    assert offered(Tool(name=name), Tool(name="look")) == {name: "it has no name", "look": ""}


def test_a_tool_of_a_plugin_that_is_no_json_costs_that_tool_and_not_the_call() -> None:
    broken = Tool(name="buy", parameters={"properties": {"a": object()}})

    became = offered(broken, Tool(name="look"))

    assert "cannot be written as JSON" in became["buy"]
    assert became["buy"].endswith("at parameters.properties.a")
    assert became["look"] == ""


def test_what_a_provider_runs_needs_no_name_of_its_own() -> None:
    assert offered(Tool(name="", extra={"_builtin": True, "type": "web_search"})) == {"": ""}
