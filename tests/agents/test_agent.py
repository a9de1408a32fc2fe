"""An agent calls its model, runs its tools, and stores every step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Message, Nexus, UsageError
from nexus_core.agents import DoneEvent, StepEvent, ToolCallEvent, ToolResultEvent, UsageEvent
from nexus_core.plugin import ReasoningDelta, TextDelta
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.wire import APIS, KEY, VARIABLE, streamed, write_settings
from tests.plugins.providers.endpoints import Server, serving


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


def two_steps(api: str) -> tuple[object, object]:
    return streamed(api, "Let me see.", ("add", {"a": 1, "b": 2}), "r1"), streamed(api, "It is 3.", None, "r2")


@pytest.mark.parametrize("api", APIS)
def test_a_turn_with_one_tool_call_in_every_api(api: str, make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving(*two_steps(api)) as server:  # type: ignore[arg-type]
        write_settings(nexus_home, server.url, api)
        agent = make_nexus().agent("sums", tools=[add])
        events = list(agent.run("What is 1 + 2?"))

    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == "Let me see.It is 3."
    reasoning = "".join(each.text for each in events if isinstance(each, ReasoningDelta))
    assert reasoning == ("" if api == "responses" else "Hm.Hm.")
    assert [type(each) for each in events if not isinstance(each, TextDelta | ReasoningDelta)] == [
        *(StepEvent, UsageEvent, ToolCallEvent, ToolResultEvent, StepEvent, StepEvent, UsageEvent, DoneEvent)
    ]
    done = events[-1]
    assert isinstance(done, DoneEvent)
    assert (done.text, done.stop, done.cancelled, done.calls) == ("It is 3.", "end", False, 2)
    assert (done.usage.input_tokens, done.usage.output_tokens) == (22, 14)
    assert len(server.bodies) == 2
    assert '"3"' in json.dumps(server.bodies[1]).replace('\\"', '"')
    assert not agent.session.is_open


def test_what_was_said_is_in_the_session(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving(*two_steps("anthropic")) as server:  # type: ignore[arg-type]
        write_settings(nexus_home, server.url)
        nexus = make_nexus()
        answer = nexus.agent("sums", tools=[add]).answer("What is 1 + 2?")

    said = [(each.role, each.content) for each in nexus.session("sums").original_messages]
    assert answer == "It is 3."
    assert said[-4:] == [
        ("user", "What is 1 + 2?"),
        ("assistant", "Let me see."),
        ("tool", ""),
        ("assistant", "It is 3."),
    ]


def test_the_model_is_offered_the_schema_of_the_signature(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving(streamed("anthropic", "Hello.")) as server:
        write_settings(nexus_home, server.url)
        make_nexus().agent("sums", tools=[add]).answer(Message("user", "Hi"))

    (offered,) = server.body["tools"]
    assert (offered["name"], offered["description"]) == ("add", "Add two numbers.")
    assert offered["input_schema"] == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }


def test_opening_an_agent_connects_to_nothing(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving(streamed("anthropic", "Hello.")) as server:
        write_settings(nexus_home, server.url)
        make_nexus().agent("sums", tools=[add])

    assert server.bodies == []


def test_a_project_does_not_decide_where_a_call_goes(nexus_home: Path, work: Path) -> None:
    with serving(streamed("anthropic", "Mine.")) as mine, serving(streamed("anthropic", "Theirs.")) as theirs:
        write_settings(nexus_home, mine.url)
        (work / ".nexus3").mkdir()
        (work / ".nexus3/config.json").write_text(json.dumps({"provider": {"base_url": theirs.url}}))
        answer = Nexus(work, home=nexus_home).agent("sums").answer("Hi")

    assert (answer, _heard(mine), _heard(theirs)) == ("Mine.", 1, 0)


@pytest.mark.parametrize("choice", [{"provider": "openai"}, {"provider": "gemini", "model": "gemini-3-pro"}])
def test_a_project_does_not_choose_the_provider(nexus_home: Path, work: Path, choice: dict[str, str]) -> None:
    with serving(streamed("anthropic", "Mine.")) as mine:
        write_settings(nexus_home, mine.url)
        (work / ".nexus3").mkdir()
        (work / ".nexus3/config.json").write_text(json.dumps({"provider": choice}))
        nexus = Nexus(work, home=nexus_home)
        with pytest.raises(UsageError, match=r"provider\.provider of a project would decide") as caught:
            nexus.agent("sums")
        answer = nexus.agent("sums", provider="anthropic", model="claude-sonnet-4").answer("Hi")

    assert str(caught.value.where).startswith(str(work / ".nexus3/config.json"))
    assert (answer, _heard(mine)) == ("Mine.", 1)


def test_a_model_of_a_project_does_not_choose_the_provider(nexus_home: Path, work: Path) -> None:
    (work / ".nexus3").mkdir()
    (work / ".nexus3/config.json").write_text('{"provider": {"model": "gpt-4o"}}')

    with pytest.raises(UsageError, match=r"provider\.model of a project would decide"):
        Nexus(work, home=nexus_home).agent("sums")


def _heard(server: Server) -> int:
    return len(server.bodies)
