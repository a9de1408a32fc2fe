"""A permission level decides which tool calls run, which ask, and which are refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexus_core import Nexus, Tool, UnknownNameError, UsageError, hookimpl
from nexus_core.agents import PermissionEvent, ToolResultEvent, tool
from nexus_core.plugin.ledgers import CallResult, RecordedCall
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, called, replied

RAN = "(no result)"


def set_level(home: Path, level: str) -> None:
    write_files(home, {"config.json": json.dumps({"permissions": {"level": level}})})


def outcome(nexus: Nexus, risk: Any, *, ask: Any = None) -> tuple[str, int]:
    """What the model reads of a call of a tool of that risk, and how often the user was asked."""
    model = FakeModel(called("work", {}), replied("I see."))
    agent = nexus.agent("s", tools=[tool(lambda: None, name="work", risk=risk)], provider=model.provider, ask=ask)
    events = list(agent.run("Go."))
    (result,) = (each.result for each in events if isinstance(each, ToolResultEvent))
    assert result.is_error == (_text(result) != RAN)
    return _text(result), sum(isinstance(each, PermissionEvent) for each in events)


def _text(result: Any) -> str:
    return str(result.parts[0].text)


@pytest.mark.parametrize(
    ("level", "verdicts"),
    [("yolo", ("run", "run", "run")), ("trusted", ("run", "run", "ask")), ("sandboxed", ("run", "ask", "refuse"))],
)
def test_the_level_and_the_risk_decide(
    make_nexus: MakeNexus, nexus_home: Path, level: str, verdicts: tuple[str, str, str]
) -> None:
    set_level(nexus_home, level)

    for risk, verdict in zip(("low", "medium", "high"), verdicts, strict=True):
        allowed, asked = outcome(make_nexus(), risk, ask=lambda _call, _reason: True)
        assert (allowed == RAN, asked) == (verdict != "refuse", int(verdict == "ask"))


@pytest.mark.parametrize("answer", [False, None, "yes", 1])
def test_only_true_is_a_permission(make_nexus: MakeNexus, answer: object) -> None:
    text, asked = outcome(make_nexus(), "high", ask=lambda _call, _reason: answer)

    assert (text, asked) == ("work was not run: the user did not allow it", 1)


def test_without_somebody_to_ask_it_is_refused(make_nexus: MakeNexus) -> None:
    assert outcome(make_nexus(), "high") == ("work was not run: the permission level is 'trusted'", 0)


def test_the_callback_reads_the_call_and_the_reason(make_nexus: MakeNexus) -> None:
    heard: list[tuple[str, str]] = []

    def ask(call: RecordedCall, reason: str) -> bool:
        heard.append((call.name, reason))
        return True

    outcome(make_nexus(), "high", ask=ask)

    assert heard == [("work", "the permission level is 'trusted'")]


def test_the_callback_may_be_async(make_nexus: MakeNexus) -> None:
    async def ask(_call: RecordedCall, _reason: str) -> bool:
        return True

    assert outcome(make_nexus(), "high", ask=ask) == (RAN, 1)


def test_a_program_may_tighten_the_level_and_not_loosen_it(make_nexus: MakeNexus) -> None:
    nexus = make_nexus()

    assert nexus.agent("s", level="sandboxed").level == "sandboxed"
    with pytest.raises(UsageError, match="the settings allow the permission level 'trusted', not 'yolo'"):
        nexus.agent("s", level="yolo")
    with pytest.raises(UnknownNameError, match="unknown permission level 'sandbox'"):
        nexus.agent("s", level="sandbox")


def test_a_denied_tool_is_not_run_even_if_the_model_guesses_it(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"permissions": {"tools": {"deny": ["work"]}}})})

    text, _ = outcome(make_nexus(), "low")

    assert text == "there is no tool called 'work'"


class Runner:
    """Runs the tool of a plugin, as the servers of the MCP plugin do."""

    def __contains__(self, name: object) -> bool:
        return name == "remote"

    def run(self, call: RecordedCall) -> CallResult:
        return call.result(f"ran {call.arguments['word']}")


@pytest.mark.acceptance("M-08")
@pytest.mark.parametrize(
    ("level", "ask", "text"),
    [
        ("yolo", None, "ran it"),
        ("trusted", lambda _call, _reason: True, "ran it"),
        ("trusted", None, "remote was not run: the permission level is 'trusted'"),
        ("sandboxed", lambda _call, _reason: True, "remote was not run: the permission level is 'sandboxed'"),
    ],
)
def test_tools_of_servers_run_where_somebody_is_asked_or_the_user_has_set_it(
    make_nexus: MakeNexus, nexus_home: Path, level: str, ask: Any, text: str
) -> None:
    @hookimpl
    def nexus_tools() -> list[Tool]:
        return [Tool(name="remote", parameters={"type": "object"}, origin="mcp:remote")]

    set_level(nexus_home, level)
    model = FakeModel(called("remote", {"word": "it"}), replied("I see."))
    nexus = make_nexus(plugins=[SimpleNamespace(__name__="remote_plugin", nexus_tools=nexus_tools)])
    agent = nexus.agent("s", tools=[Runner()], provider=model.provider, ask=ask)

    (result,) = (each.result for each in agent.run("Go.") if isinstance(each, ToolResultEvent))

    assert _text(result) == text
