"""The real LangChain and LangGraph: what a model is sent fits, is valid, and consists of the caller's own messages."""

from __future__ import annotations

import asyncio
import re
import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from nexus_core import BudgetError, check, fit
from nexus_core.errors import MessageError, UnknownNameError, UsageError
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nexus_home")]

BUDGET = 2500
LONG = {"recursion_limit": 500}


@pytest.fixture(scope="module")
def world() -> ModuleType:
    """LangChain's messages, a scripted model, and agents over it."""
    return import_module("tests.adapters.graph_world")


@pytest.fixture
def loop(world: ModuleType) -> list[Any]:
    """A long tool loop that is not finished."""
    said = [world.SystemMessage("Be kind."), world.HumanMessage("Hello."), world.AIMessage("Hi.")]
    said.append(world.HumanMessage("Look everywhere."))
    for number in range(50):
        said.append(world.AIMessage("", tool_calls=[{"name": "look", "args": {"path": "a"}, "id": f"c{number}"}]))
        said.append(world.ToolMessage("nothing " * 20, tool_call_id=f"c{number}"))
    return said


def assert_sound(world: ModuleType, model: Any) -> None:
    assert len(model.sent) == model.rounds + 1
    for call in model.sent:
        chat = world.convert_to_openai_messages(call)
        tools = [world.convert_to_openai_tool(world.look)]
        assert [message.content for message in call[:2]] == [world.PROMPT, world.QUESTION]
        assert check(chat, api="openai") == ()
        assert fit(chat, model="gpt-4o", tools=tools, budget=BUDGET).messages == chat
    assert 10 < len(model.sent[-1]) < 40


def test_middleware_keeps_every_call_of_a_long_loop_valid_and_within_the_budget(world: ModuleType) -> None:
    model = world.ScriptedModel()

    state = world.agent_with_middleware(model, budget=BUDGET).invoke(world.asked(), LONG)

    assert_sound(world, model)
    assert len(state["messages"]) == 1 + 3 * 30 + 1


def test_middleware_does_the_same_with_an_event_loop(world: ModuleType) -> None:
    waited, awaited = world.ScriptedModel(rounds=12), world.ScriptedModel(rounds=12)

    world.agent_with_middleware(waited, budget=800).invoke(world.asked(), LONG)
    asyncio.run(world.agent_with_middleware(awaited, budget=800).ainvoke(world.asked(), LONG))

    assert [[each.content for each in call] for call in waited.sent] == [
        [each.content for each in call] for call in awaited.sent
    ]


def test_the_hook_keeps_every_call_of_a_long_loop_valid_and_within_the_budget(world: ModuleType) -> None:
    model = world.ScriptedModel()

    state = world.agent_with_hook(model, budget=BUDGET).invoke(world.asked(), LONG)

    assert_sound(world, model)
    assert len(state["messages"]) == 1 + 3 * 30 + 1


def test_what_is_kept_are_the_caller_s_own_messages(world: ModuleType, loop: list[Any]) -> None:
    kept = world.fit_messages(loop, model="gpt-4o", budget=600)

    places = [next(place for place, given in enumerate(loop) if given is each) for each in kept]
    assert places == [0, 3, *range(places[2], len(loop))]
    assert len(kept) > 10


def test_calls_keep_their_results_where_langchain_would_part_them(world: ModuleType, loop: list[Any]) -> None:
    parted = whole = 0

    for budget in range(500, 700, 10):
        trimmed = world.convert_to_openai_messages(world.trimmed(loop, budget))
        fitted = world.convert_to_openai_messages(world.fit_messages(loop, model="gpt-4o", budget=budget))
        parted += check(trimmed, api="openai") != ()
        whole += check(fitted, api="openai") == () and {"role": "user", "content": "Look everywhere."} in fitted

    assert whole == 20
    assert parted > 0


def test_blocks_of_every_provider_stay_as_they_are(world: ModuleType) -> None:
    human, ai, tool = world.HumanMessage, world.AIMessage, world.ToolMessage
    said = [
        human([{"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}]),
        ai(
            [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
            ],
            tool_calls=[{"name": "look", "args": {}, "id": "c1"}],
        ),
        tool([{"type": "text", "text": "nothing"}], tool_call_id="c1", status="error"),
        ai([{"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}, {"type": "text", "text": "Nothing."}]),
        human([{"type": "image", "base64": "iVBORw0K", "mime_type": "image/png"}, {"type": "text", "text": "And?"}]),
        world.ChatMessage("Be brief.", role="developer"),
    ]

    kept = world.fit_messages(said, model="claude-sonnet-4")

    assert len(kept) == len(said)
    assert all(one is other for one, other in zip(kept, said, strict=True))


def test_what_is_mended_or_shortened_is_a_message_of_langchain(world: ModuleType) -> None:
    called = world.AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    long = world.ToolMessage("nothing " * 2000, tool_call_id="c1")
    orphan = world.ToolMessage("lost", tool_call_id="c0")

    kept = world.fit_messages([world.HumanMessage("a"), orphan, called, long], budget=500, result_tokens=100)

    assert [type(each) for each in kept] == [world.HumanMessage, world.AIMessage, world.ToolMessage]
    assert kept[2].tool_call_id == "c1"
    assert len(kept[2].content) < 2000


def test_what_must_stay_and_does_not_fit_is_an_error(world: ModuleType) -> None:
    with pytest.raises(BudgetError, match="do not fit into 50"):
        world.fit_messages([world.HumanMessage("word " * 100)], budget=50)


@pytest.mark.parametrize("given", [None, "x", {"messages": []}])
def test_what_is_no_list_of_messages_is_refused(world: ModuleType, given: Any) -> None:
    with pytest.raises(MessageError, match="expected a list of messages, not"):
        world.fit_messages(given, model="gpt-4o")


@pytest.mark.parametrize("name", ["fit_hook", "fit_middleware"])
def test_an_option_that_means_nothing_is_refused_before_anything_is_sent(world: ModuleType, name: str) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'budget'"):
        getattr(world, name)(budgt=1)


def test_several_results_in_one_message_are_named(world: ModuleType) -> None:
    results = [{"type": "tool_result", "tool_use_id": name, "content": "x"} for name in ("c1", "c2")]

    with pytest.raises(MessageError, match=r"several tools .*\n.*messages\[1\]"):
        world.fit_messages([world.HumanMessage("a"), world.HumanMessage(results)])


def test_what_is_no_message_for_a_model_is_named(world: ModuleType) -> None:
    with pytest.raises(MessageError, match=r"RemoveMessage.*\n.*messages\[1\]"):
        world.fit_messages([world.HumanMessage("a"), world.RemoveMessage(id="x")])


@pytest.mark.parametrize(("given", "name"), [(1, "int"), (None, "NoneType"), (b"hi", "bytes"), (["human"], "list")])
def test_what_is_no_message_at_all_is_named(world: ModuleType, given: Any, name: str) -> None:
    with pytest.raises(MessageError, match=rf"{name} is not a message for a model\n.*messages\[1\]"):
        world.fit_messages([world.HumanMessage("a"), given])


def test_only_what_fits_is_looked_at(world: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = import_module("nexus_core.adapters.langgraph")
    looked: list[int] = []
    convert = adapter.convert_message

    def converted(said: Any, place: int) -> Any:
        looked.append(place)
        return convert(said, place)

    monkeypatch.setattr(adapter, "convert_message", converted)
    said = [kind(f"{number}") for number in range(2000) for kind in (world.HumanMessage, world.AIMessage)]

    kept = world.fit_messages(said, model="gpt-4o", budget=400)

    assert 20 < len(kept) < 100
    assert len(looked) == len(set(looked)) < 300


def test_a_state_may_be_an_object(world: ModuleType) -> None:
    said = [world.HumanMessage("a")]

    assert world.fit_hook()(SimpleNamespace(messages=said)) == {"llm_input_messages": said}


def test_the_programs_of_the_page_run(
    world: ModuleType, work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(work)
    models: list[Any] = []

    def model_named(name: str, **options: Any) -> Any:
        assert (name, options) == ("openai:gpt-4o", {})
        models.append(world.ScriptedModel(rounds=1 if len(models) != 1 else 0))
        return models[-1]

    monkeypatch.setattr("langchain.agents.factory.init_chat_model", model_named)
    monkeypatch.setattr("langchain.chat_models.init_chat_model", model_named)
    page = (ROOT / "docs/how-to/adopt-from-langgraph.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=DeprecationWarning)  # the page says so
        for program in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            exec(program, names)  # noqa: S102 - our own page

    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == ["Nothing."] * 3
    assert printed[3] == "7 messages, as the session has: 7"
    assert printed[4:] == ["{'language': 'English'}"]
    assert [len(model.sent) for model in models] == [2, 1, 2, 3]


def test_calls_without_an_id_are_given_one(world: ModuleType) -> None:
    call = {"name": "look", "args": {"path": "a"}, "id": None}
    said = [
        world.HumanMessage("Look."),
        world.AIMessage("", tool_calls=[call, call]),
        world.ToolMessage("one", tool_call_id=""),
        world.ToolMessage("two", tool_call_id=""),
        world.HumanMessage("And?"),
    ]

    fitted = world.fit_messages(said, model="gpt-4o", budget=BUDGET)

    assert check(world.convert_to_openai_messages(fitted), api="openai") == ()
    assert [each["id"] for each in fitted[1].tool_calls] == [each.tool_call_id for each in fitted[2:4]]
    assert [fitted[0], fitted[-1]] == [said[0], said[-1]]
    assert world.fit_messages(said, model="gpt-4o", budget=BUDGET) == fitted
    assert said[1].tool_calls[0]["id"] is None


@pytest.mark.parametrize("state", [{}, None, [], SimpleNamespace(), {"messages": None}])
def test_a_state_without_messages_is_an_error_that_says_so(world: ModuleType, state: Any) -> None:
    with pytest.raises(UsageError, match="the state has no messages") as caught:
        world.fit_hook(model="gpt-4o")(state)

    assert "`messages`" in str(caught.value.hint)
