"""The tools of servers: what models are offered, by which names, and what is withheld."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import ConfigError, Nexus, UnknownNameError
from nexus_core.plugin import MCPServerConfig, MCPServerWithOrigin
from nexus_core.session.steps.recorded import CallKey, RecordedStep
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp._telling.names import LONGEST, tool_name
from nexus_plugins.mcp._telling.records import Definition, approve, keep_listing, read_record
from nexus_plugins.mcp.call import connect, connect_async
from tests.plugins.mcp.world import define, script, servers_of, survivors
from tests.session.wire import asks

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="servers are ended by process group")
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "deep": {"type": "boolean"}},
    "required": ["path"],
}
READ = Definition("read", "Reads a file.", SCHEMA)
WRITE = Definition("write", "Writes a file.", {"type": "object"})


@pytest.fixture
def server(tmp_path: Path) -> MCPServerWithOrigin:
    return MCPServerWithOrigin(
        MCPServerConfig(name="files", type="stdio", command=("x",)), "global", tmp_path / "mcp.json"
    )


# ---- names ------------------------------------------------------------------------------------------------


def test_a_name_says_server_and_tool() -> None:
    assert tool_name("my-files", "read_file") == "mcp__my-files__read_file"


@pytest.mark.parametrize(("server", "tool"), [("oraios/serena", "find"), ("a__b", "c"), ("a", "b" * 80), ("", "x")])
def test_a_name_that_loses_something_ends_in_a_digest(server: str, tool: str) -> None:
    assert re.fullmatch(r"mcp__.*_[0-9a-f]{8}", tool_name(server, tool))


@given(st.text(), st.text())
def test_every_name_is_one_that_all_providers_accept(server: str, tool: str) -> None:
    name = tool_name(server, tool)

    assert len(name) <= LONGEST
    assert name[0].isalpha()
    assert all(each.isascii() and (each.isalnum() or each in "_-") for each in name)


@given(st.lists(st.tuples(st.text("a_/é", max_size=5), st.text("a_/é", max_size=5)), unique=True))
def test_no_two_tools_have_one_name(pairs: list[tuple[str, str]]) -> None:
    assert len({tool_name(*pair) for pair in pairs}) == len(pairs)


# ---- what is kept ----------------------------------------------------------------------------------------


def test_what_was_approved_counts_from_then_on(nexus_home: Path, server: MCPServerWithOrigin) -> None:
    keep_listing(nexus_home, server, [READ])
    keep_listing(nexus_home, server, [WRITE])

    record = approve(nexus_home, server)

    assert (record.usable, record.withheld) == ((WRITE,), ())
    assert read_record(nexus_home, server) == record


def test_what_is_known_is_for_nobody_else_to_read(nexus_home: Path, server: MCPServerWithOrigin) -> None:
    keep_listing(nexus_home, server, [READ])

    (file,) = (nexus_home / "mcp").glob("*.json")
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"version": 2}', '{"version": 1, "approved": 7, "current": [], "seen": 0}']
)
def test_a_damaged_file_is_named(nexus_home: Path, server: MCPServerWithOrigin, text: str) -> None:
    keep_listing(nexus_home, server, [READ])
    (file,) = (nexus_home / "mcp").glob("*.json")
    file.write_text(text)

    with pytest.raises(ConfigError, match="damaged") as caught:
        read_record(nexus_home, server)

    assert caught.value.where == str(file)


# ---- what models are offered ------------------------------------------------------------------------------


def known(nexus: Nexus, home: Path, *tools: Definition) -> None:
    for server in servers_of(nexus).values():
        keep_listing(home, server, tools)


@pytest.mark.acceptance("Z-02")
def test_known_tools_are_offered_with_their_server_as_origin_and_nothing_is_started(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path
) -> None:
    define(nexus_home, files=["/usr/bin/touch", str(tmp_path / "canary")])
    nexus = make_nexus()
    known(nexus, nexus_home, WRITE, READ)

    context = nexus.assemble(nexus.request())

    assert [(tool.name, tool.description) for tool in context.tools] == [
        ("mcp__files__read", "Reads a file."),
        ("mcp__files__write", "Writes a file."),
    ]
    origins = {place.source.uri for place in context.placements if place.kind == "tool"}
    assert origins == {"mcp:files"}
    assert not (tmp_path / "canary").exists()


@pytest.mark.acceptance("Z-02")
def test_the_tools_are_among_the_capabilities_and_in_the_shape_of_every_api(
    make_nexus: MakeNexus, nexus_home: Path
) -> None:
    define(nexus_home, files=["x"])
    nexus = make_nexus()
    known(nexus, nexus_home, READ)

    tagged = nexus.assemble(nexus.request(renderer="tagged"))
    request = nexus.assemble(nexus.request(message="Hello")).to("anthropic", max_tokens=10)

    assert any(
        "mcp__files__read" in text for text in [tagged.system_prompt, *(each.content for each in tagged.messages)]
    )
    assert request["tools"][0]["name"] == "mcp__files__read"
    assert request["tools"][0]["input_schema"] == SCHEMA


@pytest.mark.parametrize(
    ("entry", "config"),
    [
        ({"command": ["x"], "enabled": False}, {}),
        ({"command": ["x"]}, {"permissions": {"level": "sandboxed"}}),
        ({"command": ["x"]}, {"permissions": {"tools": {"deny": ["mcp__files__read"]}}}),
    ],
)
def test_tools_are_not_offered_where_the_user_does_not_want_them(
    make_nexus: MakeNexus, nexus_home: Path, entry: dict[str, Any], config: dict[str, Any]
) -> None:
    define(nexus_home, files=entry)
    (nexus_home / "config.json").write_text(json.dumps(config))
    nexus = make_nexus()
    known(nexus, nexus_home, READ)

    assert nexus.assemble(nexus.request()).tools == ()


@pytest.mark.acceptance("M-08")
def test_a_worker_is_offered_none(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, files=["x"])
    nexus = make_nexus()
    known(nexus, nexus_home, READ)

    assert nexus.assemble(nexus.request(role="worker", task="Look around.")).tools == ()


@pytest.mark.acceptance("T1")
def test_nothing_hidden_in_a_tool_reaches_a_model_and_names_and_values_stay(
    make_nexus: MakeNexus, nexus_home: Path
) -> None:
    hidden = "\u200b\U000e0041"
    name, value = f"na{hidden}me", f"va{hidden}lue"
    field = {"type": "string", "description": f"A{hidden} path.", "enum": [value], "anyOf": [{"title": f"T{hidden}"}]}
    schema = {"type": "object", "properties": {name: field, "description": {"type": "string"}}}
    define(nexus_home, files=["x"])
    nexus = make_nexus()
    known(nexus, nexus_home, Definition("read", f"Reads{hidden}.", schema))

    (tool,) = nexus.assemble(nexus.request()).tools

    assert tool.description == "Reads."
    said = {"type": "string", "description": "A path.", "enum": [value], "anyOf": [{"title": "T"}]}
    assert tool.parameters == {"type": "object", "properties": {name: said, "description": {"type": "string"}}}


def test_tools_of_a_server_that_is_not_approved_are_not_offered(make_nexus: MakeNexus, nexus_home: Path) -> None:
    nexus = make_nexus(files={".nexus3/mcp.json": '{"servers": [{"name": "theirs", "command": ["x"]}]}'})
    known(nexus, nexus_home, READ)

    assert nexus.assemble(nexus.request()).tools == ()


# ---- the loop ---------------------------------------------------------------------------------------------


@linux
def test_a_loop_runs_the_tools_of_servers_in_two_more_lines(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, good=script())
    nexus = make_nexus()
    known(nexus, nexus_home, Definition("echo", "Says it again.", {"type": "object"}))
    session = nexus.session("loop", model="gpt-4o")
    session.ask("Say it again.")
    step = session.record(asks("openai", 1, "mcp__good__echo", a="1"))

    with connect(nexus) as servers:
        for call in step.tool_calls:
            session.record(servers.run(call))

    (message,) = [each for each in session.next().messages if each.role == "tool"]
    assert message.tool_results[0].text == '["echo", {"a": "1"}]'
    assert survivors(nexus_home) == []


@linux
def test_the_same_is_awaited(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, good=script())
    nexus = make_nexus()
    known(nexus, nexus_home, Definition("echo", "Says it again.", {"type": "object"}))

    async def main() -> list[str]:
        async with connect_async(nexus) as servers:
            both = await asyncio.gather(*(servers.call("mcp__good__echo", {"n": n}) for n in (1, 2)))
            return [str(each.content) for each in both]

    assert asyncio.run(main()) == ['["echo", {"n": 1}]', '["echo", {"n": 2}]']
    assert survivors(nexus_home) == []


def test_a_server_that_fails_is_a_result_that_says_so(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, gone=["/no/such/program"])
    nexus = make_nexus()
    known(nexus, nexus_home, READ)

    with connect(nexus) as servers:
        outcome = servers.call("mcp__gone__read", {"path": "x"})

    assert outcome.is_error
    assert "server 'gone' cannot be started" in outcome.content


def test_a_tool_that_no_server_has_is_refused(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, files=["x"])
    nexus = make_nexus()
    known(nexus, nexus_home, READ)

    with connect(nexus) as servers:
        assert (list(servers), "read" in servers) == (["mcp__files__read"], False)
        with pytest.raises(UnknownNameError, match="read"):
            servers.call("mcp__files__reed", {})


@pytest.mark.parametrize("rule", [{"deny": ["mcp__files__write"]}, {"allow": ["mcp__files__read"]}])
def test_what_is_not_permitted_is_not_run_either(
    make_nexus: MakeNexus, nexus_home: Path, rule: dict[str, list[str]]
) -> None:
    define(nexus_home, files=["x"])
    (nexus_home / "config.json").write_text(json.dumps({"permissions": {"tools": rule}}))
    nexus = make_nexus()
    known(nexus, nexus_home, READ, WRITE)

    with connect(nexus) as servers:
        assert list(servers) == ["mcp__files__read"]
        with pytest.raises(UnknownNameError):
            servers.call("mcp__files__write", {})


@pytest.mark.parametrize("raw", ['{"path": "/tm', '{"path": NaN}', "[1]", "null", "x"])
def test_a_tool_is_not_run_with_arguments_that_are_broken(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, raw: str
) -> None:
    define(nexus_home, files=["touch", str(tmp_path / "ran")])
    nexus = make_nexus()
    known(nexus, nexus_home, READ)
    session = nexus.session("bug", model="gpt-4o")
    session.ask("Read it.")
    reply = asks("openai", 1, "mcp__files__read")
    reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = raw
    step = session.record(reply)

    with connect(nexus) as servers:
        result = servers.run(step.tool_calls[0]).result

    assert (result.is_error, "its arguments are no JSON object" in result.text) == (True, True)
    assert not (tmp_path / "ran").exists()


def test_a_tool_that_a_model_makes_up_is_a_result_that_says_so(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, files=["x"])
    nexus = make_nexus()
    known(nexus, nexus_home, READ)
    session = nexus.session("bug", model="gpt-4o")
    session.ask("Read it.")
    step = session.record(asks("openai", 1, "mcp__files__reed"))

    with connect(nexus) as servers:
        session.record(servers.run(step.tool_calls[0]))

    result = session.next().to("openai")["messages"][-1]
    assert (result["role"], "did you mean 'mcp__files__read'?" in result["content"]) == ("tool", True)


# ---- whose call it is -------------------------------------------------------------------------------------


def refused(nexus: Nexus, step: RecordedStep) -> str:
    """What a model is told whose call is not run."""
    with connect(nexus) as servers:
        result = servers.run(step.tool_calls[0]).result
    assert result.is_error
    return result.text


@pytest.mark.acceptance("M-08")
def test_a_worker_that_has_heard_of_a_tool_of_its_maker_does_not_get_it_run(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path
) -> None:
    define(nexus_home, files=["touch", str(tmp_path / "ran")])
    nexus = make_nexus()
    known(nexus, nexus_home, READ)
    session = nexus.session("boss", model="gpt-4o")
    session.ask("Have it read.")
    (call,) = session.record(asks("openai", 1, "delegate")).tool_calls
    worker = session.spawn("Call mcp__files__read.", call=call)
    worker.ask("Begin.")

    told = refused(nexus, worker.record(asks("openai", 1, "mcp__files__read", path="x")))

    assert told == "'mcp__files__read' is not run: it was not offered to this model"
    assert not (tmp_path / "ran").exists()


def test_a_worker_is_not_told_the_names_of_tools_either(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, files=["x"])
    nexus = make_nexus()
    known(nexus, nexus_home, READ)
    worker = nexus.session("worker", model="gpt-4o", role="worker", task="Look around.")
    worker.ask("Begin.")

    assert "mcp__files__read" not in refused(nexus, worker.record(asks("openai", 1, "mcp__files__reed")))


@linux
def test_a_call_that_waits_since_another_program_was_there_is_run(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, good=script())
    before = make_nexus()
    known(before, nexus_home, Definition("echo", "Says it again.", {"type": "object"}))
    session = before.session("loop", model="gpt-4o")
    session.ask("Say it again.")
    session.record(asks("openai", 1, "mcp__good__echo", a="1"))
    before.close()
    nexus = make_nexus()
    session = nexus.session("loop")

    with connect(nexus) as servers:
        results = [servers.run(call).result.text for call in session.pending]

    assert results == ['["echo", {"a": "1"}]']


def test_what_became_known_after_the_model_was_asked_is_not_run_for_it(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, files=["x"])
    nexus = make_nexus()
    known(nexus, nexus_home, READ)
    session = nexus.session("bug", model="gpt-4o")
    session.ask("Write it.")
    step = session.record(asks("openai", 1, "mcp__files__write"))
    for server in servers_of(nexus).values():
        keep_listing(nexus_home, server, [READ, WRITE])
        approve(nexus_home, server)

    assert "it was not offered" in refused(nexus, step)


def test_a_call_that_is_kept_elsewhere_is_not_run(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, files=["x"])
    nexus = make_nexus()
    known(nexus, nexus_home, READ)
    session = nexus.session("bug", model="gpt-4o")
    session.ask("Read it.")
    step = session.record(asks("openai", 1, "mcp__files__read"))
    call = replace(step.tool_calls[0], key=CallKey("01M7HRS29HN5YX053ZXZK53KTQ", 0))

    assert "it is not known what this model was offered" in refused(nexus, replace(step, tool_calls=(call,)))
