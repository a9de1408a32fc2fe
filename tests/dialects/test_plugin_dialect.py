"""Dialects of plugins among those that are built in: found, recognised, and held to their contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from nexus_core import (
    MessageError,
    Nexus,
    PluginError,
    Tool,
    UnknownNameError,
    check_messages,
    fit_messages,
    get_dialect,
    repair_messages,
)
from nexus_core.dialects.registry import BUILT_IN_NAMES, DialectRegistry
from nexus_core.plugin import Problem
from nexus_core.plugin.dialects import Conversation
from nexus_core.testing.check import try_dialects
from nexus_core.types.budget import Model
from nexus_core.types.messages import Message
from tests.conftest import InstallPlugin
from tests.dialects.telegraph import NAME, RULES, Telegraph, TelegraphPlugin
from tests.host.test_manager import Offering, like

WHY = {"from": "caller", "words": ["WHY"]}
BECAUSE = {"from": "office", "words": ["BECAUSE"]}
UNSURE = {"role": "user", "content": "hello"}
BLOCKS = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
NAMED = {"role": "user", "content": "hello", "name": "ada"}
CHAT = {"role": "tool", "tool_call_id": "c", "content": "x"}

INSTALLED = """
from nexus_core import hookimpl
from tests.dialects.telegraph import Telegraph

@hookimpl
def nexus_dialects():
    return [Telegraph()]
"""


@pytest.fixture
def nexus(nexus_home: Path, work: Path) -> Iterator[Nexus]:  # noqa: ARG001 - nothing else is installed
    with Nexus(layers=False, plugins=[TelegraphPlugin()]) as opened:
        yield opened


@pytest.fixture
def elsewhere(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of which no test before has asked what is installed."""
    monkeypatch.chdir(work)


# ---- found and recognised -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("elsewhere")
def test_the_public_function_finds_what_is_installed(install_plugin: InstallPlugin) -> None:
    install_plugin("wire", INSTALLED)

    assert get_dialect(NAME).read(WHY) == Message("user", "WHY", api=NAME)


def test_the_public_function_knows_nothing_of_the_plugins_of_a_nexus(nexus: Nexus) -> None:
    assert nexus.dialects.get(NAME).name == NAME
    with pytest.raises(UnknownNameError, match="unknown dialect 'telegraph'"):
        get_dialect(NAME)


@pytest.mark.parametrize("items", [[WHY], [UNSURE, WHY], [BLOCKS, WHY], [NAMED, WHY]])
def test_a_list_is_recognised_by_an_element_of_a_plugins_dialect(nexus: Nexus, items: list[object]) -> None:
    assert nexus.dialects.recognise(items).name == NAME


def test_what_is_surely_of_a_built_in_one_is_no_plugins_to_decide(nexus: Nexus) -> None:
    assert nexus.dialects.recognise([WHY, CHAT]).name == "openai"


@pytest.mark.parametrize(
    "item",
    [
        UNSURE,
        BLOCKS,
        NAMED,
        {"role": "developer", "content": "be brief"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]},
    ],
)
def test_one_that_claims_everything_gets_nothing_that_is_of_several_built_in_ones(item: object) -> None:
    with Nexus(layers=False, plugins=[Offering(like(recognises=lambda _item: True))]) as nexus:
        assert nexus.dialects.recognise([item]).name == "openai"


def test_an_object_of_an_sdk_is_recognised_by_its_fields(nexus: Nexus) -> None:
    class Telegram(BaseModel):
        sender: str = Field(alias="from")
        words: list[str]

    item = Telegram.model_validate(WHY)

    assert nexus.dialects.recognise([item]).name == NAME
    assert nexus.dialects.recognise([item]).read(item) == Message("user", "WHY", api=NAME)


def test_an_object_that_nobody_knows_is_named_with_its_place(nexus: Nexus) -> None:
    with pytest.raises(MessageError, match="expected a message, not a object") as caught:
        nexus.dialects.recognise([UNSURE, object()])

    assert caught.value.path == "messages[1]"


def test_one_that_cannot_tell_is_blamed_and_recognises_nothing() -> None:
    problems: list[Problem] = []

    def fail(_item: object) -> bool:
        raise KeyError("from")

    with Nexus(layers=False, plugins=[Offering(like(recognises=fail))], report=problems.append, strict=False) as nexus:
        told = nexus.dialects.told([{"role": "user", "content": "hello", "sent": "today"}])

    assert told == ""
    assert "recognises of its dialect 'telegraph' raised KeyError: 'from'" in str(problems[0])


def test_bedrocks_messages_are_recognised_and_nobody_elses(nexus: Nexus) -> None:
    converse = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]}

    assert nexus.dialects.recognise([UNSURE, converse]).name == "bedrock"
    assert nexus.dialects.recognise([UNSURE, BLOCKS]).name == "openai"


# ---- held to its contract -------------------------------------------------------------------------------------------


def broken(member: str, value: object) -> Any:
    """A dialect of a plugin that has something wrong with it."""
    wrong = like()
    setattr(wrong, member, value)
    with Nexus(layers=False, plugins=[Offering(wrong)]) as nexus:
        return nexus.dialects.get(NAME)


@pytest.mark.parametrize(
    ("member", "call"),
    [
        ("read", lambda speaking: speaking.read(WHY)),
        ("write", lambda speaking: speaking.write([Message("user", "x")])),
        ("read_request", lambda speaking: speaking.read_request({})),
        ("write_request", lambda speaking: speaking.write_request(Conversation())),
        ("read_reply", lambda speaking: speaking.read_reply({})),
        ("read_tools", lambda speaking: speaking.read_tools([])),
        ("write_tools", lambda speaking: speaking.write_tools([])),
    ],
)
def test_what_fails_in_it_or_is_of_another_kind_is_the_plugins(member: str, call: Callable[[Any], object]) -> None:
    def fail(*_given: object) -> object:
        raise KeyError("words")

    with pytest.raises(PluginError, match=f"{member} of its dialect 'telegraph' raised KeyError: 'words'"):
        call(broken(member, fail))
    with pytest.raises(PluginError, match=f"{member} of its dialect 'telegraph' answered"):
        call(broken(member, lambda *_given: 7))


def test_what_it_says_to_the_user_reaches_the_user(nexus: Nexus) -> None:
    with pytest.raises(MessageError, match="nobody sends as 'king'"):
        nexus.dialects.get(NAME).read({"from": "king"})


def test_what_keeps_the_contract_of_a_dialect_has_no_faults(nexus: Nexus) -> None:
    assert [(tried.name, tried.faults) for tried in try_dialects(nexus.host)] == [("bedrock", ()), (NAME, ())]


@pytest.mark.parametrize("name", BUILT_IN_NAMES)
def test_the_built_in_ones_would_pass_the_same_trial(name: str) -> None:
    real = get_dialect(name)
    members = {each: getattr(real, each) for each in ("read", "write", "read_request", "write_request", "read_reply")}

    with Nexus(layers=False, plugins=[Offering(_renamed(real, members))]) as nexus:
        (tried,) = (each for each in try_dialects(nexus.host) if each.name == "renamed")

    assert [fault for fault in tried.faults if "api=" not in fault] == []  # it says its real name


def _renamed(real: Any, members: dict[str, Any]) -> Any:
    tools = {"read_tools": real.read_tools, "write_tools": real.write_tools}
    return like("renamed", recognises=lambda _item: False, **members, **tools)


# ---- lists of messages ----------------------------------------------------------------------------------------------


def test_a_list_is_made_to_fit_in_the_dialect_of_a_plugin(nexus: Nexus) -> None:
    messages = [WHY, BECAUSE, WHY]

    fitted = nexus.fit(messages, budget=1000)

    assert fitted.messages == messages
    assert fitted.budget.byte_limit == RULES.request_bytes


def test_the_api_may_be_named_where_nothing_tells(nexus: Nexus) -> None:
    assert nexus.fit([BECAUSE, WHY], api=NAME, budget=1000).messages == [BECAUSE, WHY]
    with pytest.raises(UnknownNameError, match=r"did you mean 'telegraph'\?"):
        nexus.fit([WHY], api="telegrap")


def test_a_long_list_may_be_told_by_its_middle(nexus: Nexus) -> None:
    many: list[dict[str, Any]] = [{"from": "caller", "words": ["LONG AGO"]}, *[UNSURE] * 120]

    with pytest.raises(MessageError, match="nobody sends as None"):  # now it is read as a telegraph's
        nexus.fit(many, budget=100_000)


def test_a_list_is_checked_and_repaired_by_a_plugins_rules(nexus: Nexus) -> None:
    order = {"from": "office", "orders": [{"slip": "1", "do": "LOOK", "with": {}}]}
    given = [WHY, order, WHY]

    found = check_messages(given, host=nexus.host)
    repaired = repair_messages(given, host=nexus.host)

    assert [finding.code for finding in found] == [finding.code for finding in repaired.findings]
    assert [finding.code for finding in found] == ["missing-result"]
    assert [item["from"] for item in repaired.messages] == ["caller", "office", "clerk", "caller"]
    assert check_messages(repaired.messages, host=nexus.host) == ()


def test_chat_is_checked_by_a_plugins_rules(nexus: Nexus) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    given = [UNSURE, {"role": "assistant", "content": None, "tool_calls": calls}, {**CHAT, "tool_call_id": "c"}]

    assert [finding.code for finding in check_messages(given, NAME, host=nexus.host)] == ["invalid-tool-name"]
    with pytest.raises(UnknownNameError, match=r"unknown API 'telgraph'"):
        check_messages(given, "telgraph", host=nexus.host)


@pytest.mark.usefixtures("elsewhere")
def test_functions_without_a_host_ask_what_is_installed(install_plugin: InstallPlugin) -> None:
    install_plugin("wire", INSTALLED)

    assert check_messages([WHY, BECAUSE, WHY]) == ()
    assert repair_messages([WHY], api=NAME).messages == [WHY]
    assert fit_messages([WHY], budget=100).messages == [WHY]


# ---- tools ----------------------------------------------------------------------------------------------------------

LOOK = {"do": "LOOK", "takes": {"type": "object"}, "about": "Look."}
CHAT_TOOL = {"type": "function", "function": {"name": "SEND"}}


@pytest.mark.parametrize("api", [NAME, "", "openai", "anthropic", "neutral"])
def test_tools_are_read_in_the_shape_of_a_plugins_dialect(nexus: Nexus, api: str) -> None:
    own = Tool(name="OWN")

    read = nexus.dialects.read_tools([LOOK, CHAT_TOOL, own], api)

    assert [(tool.name, tool.api) for tool in read] == [("LOOK", NAME), ("SEND", "openai"), ("OWN", "")]


@pytest.mark.parametrize("api", [NAME, "openai"])
def test_a_tool_that_nobody_knows_is_named_with_its_place(nexus: Nexus, api: str) -> None:
    with pytest.raises(MessageError) as caught:
        nexus.dialects.read_tools([LOOK, {"x": 1}], api)

    assert caught.value.path.startswith("tools[1]")


# ---- how large ------------------------------------------------------------------------------------------------------


def test_a_request_may_be_as_large_as_the_plugins_rules_say(nexus: Nexus) -> None:
    model = Model(name="morse-1", window=1000, api=NAME)

    assert nexus.dialects.request_limit(model) == 50_000
    assert nexus.dialects.request_limit(Model(name="x", window=1, api="nobody's")) == 32_000_000
    assert nexus.dialects.request_limit(Model(name="x", window=1, api="anthropic"), NAME) == 50_000


def test_one_without_plugins_knows_those_that_are_built_in() -> None:
    assert DialectRegistry(dict).names == BUILT_IN_NAMES
    assert Telegraph().rules is RULES
