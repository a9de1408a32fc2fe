"""Agents with what plugins bring: providers, MCP servers and skills."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from nexus_core import ProviderError
from nexus_core.agents import ToolResultEvent
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp._tools import ToolDefinition, store_catalog
from nexus_plugins.mcp.call import connect, connect_async
from nexus_plugins.skills.call import SkillGuideTool
from tests.agents.fakes import FakeModel, called, replied
from tests.conftest import InstallPlugin
from tests.plugins.mcp.world import define, script, servers_of, survivors

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="servers are ended by process group")

ECHO = """
from nexus_core import Message, Tool, hookimpl
from nexus_core.plugin import Provider, ProviderReply, TextDelta
from nexus_core.plugin.dialects import Reply


def echo(context, cancel):
    text = context.current_message.content.upper()
    yield TextDelta(text)
    yield ProviderReply(Reply(messages=(Message("assistant", text),), stop="end"))


@hookimpl
def nexus_providers(loaded):
    return [Provider(name="echo", stream=echo), Provider(name="openai", stream=echo)]
"""


def results(events: Any) -> list[str]:
    return [each.result.text for each in events if isinstance(each, ToolResultEvent)]


def test_a_plugin_provides_a_model(make_nexus: MakeNexus, install_plugin: InstallPlugin) -> None:
    install_plugin("echo", ECHO)

    assert "HELLO" in make_nexus().agent("s", provider="echo").answer("Hello")


def test_a_plugin_replaces_a_bundled_provider(make_nexus: MakeNexus, install_plugin: InstallPlugin) -> None:
    install_plugin("echo", ECHO)

    assert "HELLO" in make_nexus().agent("s", model="gpt-4o").answer("Hello")


def test_an_exception_of_a_plugin_is_an_error_with_its_cause(make_nexus: MakeNexus) -> None:
    model = FakeModel(ZeroDivisionError("oops"))

    with pytest.raises(ProviderError, match="the provider 'fake' failed: ZeroDivisionError: oops") as caught:
        make_nexus().agent("s", provider=model.provider).answer("Hi")

    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@linux
@pytest.mark.acceptance("M-08")
def test_a_real_server_runs_a_tool_that_was_asked_for(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, good=script())
    nexus = make_nexus()
    store_catalog(nexus_home, servers_of(nexus)["good"], [ToolDefinition("echo", "Says it again.", {"type": "object"})])
    model = FakeModel(called("mcp__good__echo", {"a": "1"}), replied("I see."))

    with connect(nexus) as servers:
        agent = nexus.agent("s", tools=[servers], provider=model.provider, ask=lambda _call, _reason: True)
        events = list(agent.run("Go."))

    assert results(events) == ['["echo", {"a": "1"}]']
    assert survivors(nexus_home) == []


@linux
def test_the_same_in_an_event_loop(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, good=script())
    nexus = make_nexus()
    store_catalog(nexus_home, servers_of(nexus)["good"], [ToolDefinition("echo", "Says it again.", {"type": "object"})])
    model = FakeModel(called("mcp__good__echo", {"a": "1"}), replied("I see."))

    async def main() -> list[Any]:
        async with connect_async(nexus) as servers:
            agent = nexus.async_agent("s", tools=[servers], provider=model.provider, ask=lambda _call, _reason: True)
            return [each async for each in agent.run("Go.")]

    assert results(asyncio.run(main())) == ['["echo", {"a": "1"}]']
    assert survivors(nexus_home) == []


@pytest.mark.acceptance("M-08")
def test_a_worker_has_no_servers(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, good=["/no/such/program"])
    nexus = make_nexus()
    store_catalog(nexus_home, servers_of(nexus)["good"], [ToolDefinition("echo", "Says it again.", {"type": "object"})])
    model = FakeModel(called("mcp__good__echo", {}), replied("I see."))

    with connect(nexus) as servers:
        agent = nexus.agent("s", tools=[servers], provider=model.provider, role="worker", task="Look.", ask=_allow)
        events = list(agent.run("Go."))

    assert results(events) == ["there is no tool called 'mcp__good__echo'"]


def _allow(_call: object, _reason: str) -> bool:
    return True


def test_an_agent_reads_the_guide_of_a_skill(make_nexus: MakeNexus, nexus_home: Path) -> None:
    guide = "---\nname: logs\ndescription: Read logs.\n---\nUse grep."
    write_files(nexus_home, {"skills/logs/SKILL.md": guide})
    nexus = make_nexus()
    model = FakeModel(called("read_skill", {"name": "logs"}), replied("I see."))

    events = list(nexus.agent("s", tools=[SkillGuideTool(nexus)], provider=model.provider).run("Go."))

    assert "Use grep." in results(events)[0]
    assert [tool.name for tool in model.contexts[0].tools] == ["read_skill"]
